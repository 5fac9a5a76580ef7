//! Images brought to another size.
use image::imageops::{FilterType, resize};
use image::{ImageBuffer, Luma};

/// Appends one channel of an image, brought to another size, to `out`.
///
/// Bilinear between the centres of pixels; where the image becomes smaller, each new pixel is an average over all old ones that it
/// covers (a triangle as wide as two new pixels), as images of a folder are scaled.
///
/// # Shapes
/// `channel`: `[height, width]` of `from`, numbers in `[0, 1]`; appended: `[height, width]` of `to`, in `[0, 1]`. Nothing is appended
/// where `channel` is not of that size or a side is 0 or above 2^32.
pub fn scale_channel(channel: &[f32], from: [usize; 2], to: [usize; 2], out: &mut Vec<f32>) {
    if from == to {
        out.extend_from_slice(channel);
        return;
    }
    let side = |side: usize| u32::try_from(side).ok().filter(|&side| side > 0);
    let (Some(height), Some(width), Some(rows), Some(columns)) =
        (side(from[0]), side(from[1]), side(to[0]), side(to[1]))
    else {
        return;
    };
    let Some(image) = ImageBuffer::<Luma<f32>, &[f32]>::from_raw(width, height, channel) else {
        return;
    };
    out.extend(resize(&image, columns, rows, FilterType::Triangle).into_raw());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(channel: &[f32], from: [usize; 2], to: [usize; 2]) -> Vec<f32> {
        let mut out = Vec::new();
        scale_channel(channel, from, to, &mut out);
        out
    }
    fn close(found: &[f32], expected: &[f32]) {
        assert_eq!(found.len(), expected.len());
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() < 1e-6, "{found:?} {expected:?}");
        }
    }

    /// By hand: of two pixels 0 and 1 four have their centres at -1/4, 1/4, 3/4 and 5/4 of the way, cut off at the edges.
    #[test]
    fn what_lies_between_two_pixels_is_weighed_by_its_distance_from_their_centres() {
        close(&scaled(&[0.0, 1.0], [1, 2], [1, 4]), &[0.0, 0.25, 0.75, 1.0]);
        close(&scaled(&[0.0, 1.0], [2, 1], [4, 1]), &[0.0, 0.25, 0.75, 1.0]);
        let four = scaled(&[0.0, 0.0, 1.0, 1.0], [2, 2], [4, 2]);
        close(&four, &[0.0, 0.0, 0.25, 0.25, 0.75, 0.75, 1.0, 1.0]);
    }
    /// By hand: halved, a new pixel of old ones at distances 1/2, 1/2 and 3/2 of its centre (of a triangle that ends at 2) weighs
    /// them 3/4, 3/4 and 1/4.
    #[test]
    fn a_smaller_image_averages_what_it_covers() {
        close(&scaled(&[1.0, 0.0, 0.0, 0.0], [1, 4], [1, 2]), &[3.0 / 7.0, 0.0]);
        close(&scaled(&[0.0, 0.0, 1.0, 0.0], [1, 4], [1, 2]), &[1.0 / 7.0, 3.0 / 7.0]);
        close(&scaled(&[0.25; 6], [2, 3], [1, 1]), &[0.25]);
    }
    #[test]
    fn the_same_size_is_the_same_image_and_a_wrong_one_is_none() {
        close(&scaled(&[0.1, 0.2], [2, 1], [2, 1]), &[0.1, 0.2]);
        assert!(scaled(&[0.1, 0.2], [2, 2], [4, 4]).is_empty());
        assert!(scaled(&[], [0, 2], [4, 4]).is_empty());
    }
}
