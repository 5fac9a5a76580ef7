//! Images as files.
use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder};

/// An image as the bytes of a PNG: in colour with three channels, else grey by its first one.
///
/// # Shapes
/// `image`: `shape`, which is `[channels, height, width]`; numbers from 0 to 1, which become bytes, others are cut off. `None` where
/// `image` is not of that shape, or empty.
#[must_use]
pub fn png(image: &[f32], shape: [usize; 3]) -> Option<Vec<u8>> {
    let [channels, height, width] = shape;
    let area = height.checked_mul(width)?;
    if area == 0 || channels.checked_mul(area)? != image.len() || channels == 0 {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 255")]
    let byte = |number: f32| (number.clamp(0.0, 1.0) * 255.0).round() as u8;
    let (shown, colour) =
        if channels == 3 { (3, ExtendedColorType::Rgb8) } else { (1, ExtendedColorType::L8) };
    let bytes: Vec<u8> = (0..area)
        .flat_map(|place| (0..shown).map(move |channel| channel * area + place))
        .map(|i| byte(image[i]))
        .collect();
    let (width, height) = (u32::try_from(width).ok()?, u32::try_from(height).ok()?);
    let mut file = Vec::new();
    PngEncoder::new(&mut file).write_image(&bytes, width, height, colour).ok()?;
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_a_decoder_reads() {
        let read = |file: &[u8]| image::load_from_memory(file).unwrap();
        let grey = read(&png(&[0.0, 0.2, 1.0, 1.5, -1.0, 0.5], [1, 2, 3]).unwrap()).into_luma8();
        assert_eq!(grey.dimensions(), (3, 2));
        assert_eq!(grey.into_raw(), [0, 51, 255, 255, 0, 128]);
        let colours = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0];
        let colours = read(&png(&colours, [3, 1, 2]).unwrap()).into_rgb8();
        assert_eq!(colours.into_raw(), [0, 102, 204, 51, 153, 255]);
        // Of two channels the first.
        let first = read(&png(&[0.0, 1.0], [2, 1, 1]).unwrap()).into_luma8();
        assert_eq!(first.into_raw(), [0]);
    }
    #[test]
    fn what_is_not_of_its_shape_is_no_image() {
        assert!(png(&[0.0; 5], [1, 2, 3]).is_none() && png(&[], [1, 0, 3]).is_none());
        assert!(png(&[], [0, 1, 1]).is_none());
    }
}
