//! What is done to a record before a network from elsewhere reads it.
use dosimeter_data::scale_channel;
use serde::Serialize;

/// What is done to the numbers of a record, which lie in `[0, 1]`: `(number * highest - mean) / deviation`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Preparation {
    /// The number that the network takes for full brightness.
    pub highest: f32,
    /// Subtracted: none, one, or one for each channel.
    pub means: Vec<f32>,
    /// By which is divided afterwards: none, one, or one for each channel.
    pub deviations: Vec<f32>,
}
impl Default for Preparation {
    fn default() -> Self {
        Self { highest: 1.0, means: Vec::new(), deviations: Vec::new() }
    }
}

/// From the numbers of a record to those that a network reads: images are scaled to its size, grey ones repeated for each of
/// three channels, and turned where it has its channels last.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reader {
    preparation: Preparation,
    /// Numbers of a record.
    from: usize,
    image: Option<Image>,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Image {
    /// `[channels, height, width]` of the data.
    from: [usize; 3],
    /// The same of what the network reads.
    to: [usize; 3],
    channels_last: bool,
}

impl Reader {
    /// For records of `width` numbers, `image` if they are images, and a network that reads `wanted`.
    ///
    /// # Errors
    /// What the network takes and what there is.
    pub(crate) fn new(
        preparation: Preparation,
        width: usize,
        image: Option<[usize; 3]>,
        wanted: &[usize],
    ) -> Result<Self, String> {
        let placed = match (image, wanted) {
            (Some(from), &[a, b, c]) => Image::of(from, [a, b, c]),
            _ => None,
        };
        let same = wanted.iter().try_fold(1_usize, |n, side| n.checked_mul(*side)) == Some(width);
        if placed.is_none() && !same {
            return Err(format!(
                "it takes records of shape {wanted:?}, the data have {}",
                image.map_or_else(
                    || format!("{width} numbers"),
                    |shape| format!("images of shape {shape:?}")
                )
            ));
        }
        let channels = placed.map_or(1, |i| i.to[0]);
        for numbers in [&preparation.means, &preparation.deviations] {
            if numbers.len() > 1 && numbers.len() != channels {
                return Err(format!(
                    "{channels} channels need as many means and deviations, got {}",
                    numbers.len()
                ));
            }
        }
        Ok(Self { preparation, from: width, image: placed })
    }
    /// Whether images are given another size or more channels.
    pub(crate) fn scales(&self) -> bool {
        self.image.is_some_and(|i| i.from != i.to)
    }
    /// Whether images are turned.
    pub(crate) fn channels_last(&self) -> bool {
        self.image.is_some_and(|i| i.channels_last)
    }
    /// Appends what the network reads of one record.
    pub(crate) fn append(&self, record: &[f32], out: &mut Vec<f32>) {
        debug_assert_eq!(record.len(), self.from);
        let start = out.len();
        let Some(Image { from: [own, height, width], to, channels_last }) = self.image else {
            out.extend_from_slice(record);
            self.prepare(0, &mut out[start..]);
            return;
        };
        let [channels, rows, columns] = to;
        for channel in record.chunks_exact(height * width) {
            scale_channel(channel, [height, width], [rows, columns], out);
        }
        let area = rows * columns;
        for _ in own..channels {
            out.extend_from_within(start..start + area);
        }
        for (channel, numbers) in out[start..].chunks_exact_mut(area).enumerate() {
            self.prepare(channel, numbers);
        }
        if channels_last {
            let first = out[start..].to_vec();
            let turned = (0..first.len()).map(|i| first[i % channels * area + i / channels]);
            out.truncate(start);
            out.extend(turned);
        }
    }
    fn prepare(&self, channel: usize, numbers: &mut [f32]) {
        let of_channel = |list: &[f32], none: f32| match list {
            [] => none,
            [one] => *one,
            several => several[channel],
        };
        let Preparation { highest, means, deviations } = &self.preparation;
        let (mean, deviation) = (of_channel(means, 0.0), of_channel(deviations, 1.0));
        for number in numbers {
            *number = number.mul_add(*highest, -mean) / deviation;
        }
    }
}
impl Image {
    /// How images of a shape are read by a network that wants another, with its channels first if that fits; `None` if their
    /// channels do not fit either way.
    fn of(from: [usize; 3], wanted: [usize; 3]) -> Option<Self> {
        let [channels, height, width] = from;
        let first = Self { from, to: wanted, channels_last: false };
        let to = [wanted[2], wanted[0], wanted[1]];
        let last = Self { from, to, channels_last: true };
        let fits = |image: &Self| {
            let [read, ..] = image.to;
            (read == channels || (channels == 1 && read == 3)) && !image.to.contains(&0)
        };
        if wanted != from && wanted == [height, width, channels] {
            return Some(last);
        }
        [first, last].into_iter().find(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        preparation: Preparation,
        image: [usize; 3],
        wanted: &[usize],
        record: &[f32],
    ) -> Vec<f32> {
        let reader = Reader::new(preparation, record.len(), Some(image), wanted).unwrap();
        let mut out = vec![9.0];
        reader.append(record, &mut out);
        out.split_off(1)
    }
    fn close(found: &[f32], expected: &[f32]) {
        assert_eq!(found.len(), expected.len());
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() < 1e-5, "{found:?} {expected:?}");
        }
    }

    /// By hand: two grey pixels 0 and 1, one above the other, become four, 0, 1/4, 3/4 and 1; times 4 they are 0, 1, 3 and 4; each
    /// channel subtracts its mean and divides by 2.
    #[test]
    fn a_grey_image_is_scaled_repeated_and_brought_to_the_numbers_of_each_channel() {
        let preparation =
            Preparation { highest: 4.0, means: vec![0.0, 1.0, 2.0], deviations: vec![2.0] };
        let found = read(preparation.clone(), [1, 2, 1], &[3, 4, 1], &[0.0, 1.0]);
        close(&found, &[0.0, 0.5, 1.5, 2.0, -0.5, 0.0, 1.0, 1.5, -1.0, -0.5, 0.5, 1.0]);
        // The same with the channels last: pixel by pixel.
        let last = read(preparation, [1, 2, 1], &[4, 1, 3], &[0.0, 1.0]);
        close(&last, &[0.0, -0.5, -1.0, 0.5, 0.0, -0.5, 1.5, 1.0, 0.5, 2.0, 1.5, 1.0]);
    }
    #[test]
    fn colours_stay_as_they_are_and_turn_where_channels_are_last() {
        let record = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6];
        close(&read(Preparation::default(), [3, 1, 2], &[3, 1, 2], &record), &record);
        let turned = [0.1, 0.3, 0.5, 0.2, 0.4, 0.6];
        close(&read(Preparation::default(), [3, 1, 2], &[1, 2, 3], &record), &turned);
        // A flat network of as many numbers reads them in the order of the data.
        close(&read(Preparation::default(), [3, 1, 2], &[6], &record), &record);
    }
    #[test]
    fn what_does_not_fit_is_refused_with_what_is_taken_and_what_there_is() {
        let new = |preparation, image, width, wanted: &[usize]| {
            Reader::new(preparation, width, image, wanted).unwrap_err()
        };
        assert_eq!(
            new(Preparation::default(), Some([3, 2, 2]), 12, &[1, 2, 2]),
            "it takes records of shape [1, 2, 2], the data have images of shape [3, 2, 2]"
        );
        assert_eq!(
            new(Preparation::default(), None, 5, &[4]),
            "it takes records of shape [4], the data have 5 numbers"
        );
        let two = Preparation { means: vec![0.0, 1.0], ..Preparation::default() };
        assert_eq!(
            new(two.clone(), Some([1, 2, 2]), 4, &[3, 2, 2]),
            "3 channels need as many means and deviations, got 2"
        );
        assert_eq!(new(two, None, 4, &[4]), "1 channels need as many means and deviations, got 2");
    }
}
