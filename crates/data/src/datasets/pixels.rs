//! Images that grow as they are read, so that no declared size is trusted.
use super::classes::Classes;
use crate::{Dataset, Error, Inputs};
use std::io::Read;
use std::path::Path;

/// Most numbers (pixels times channels) of one image.
pub(super) const IMAGE_LIMIT: u64 = 1 << 24;
/// Most bytes of images held: 4 GiB; CIFAR-10 takes 0.18.
const BYTE_LIMIT: u64 = 1 << 32;
/// Most numbers of images held that are no bytes, 4 bytes each: 4 GiB.
const REAL_LIMIT: u64 = 1 << 30;

/// The numbers of a file's images, one image after the other.
#[derive(Debug)]
pub(super) enum Pixels {
    Bytes { highest: u8, values: Vec<u8> },
    Reals(Vec<f32>),
}

/// Images of one shape.
#[derive(Debug)]
pub(super) struct Images {
    /// `[channels, height, width]`.
    pub(super) shape: [usize; 3],
    pub(super) records: u64,
    pub(super) pixels: Pixels,
}
impl Images {
    pub(super) const fn bytes(shape: [usize; 3], highest: u8) -> Self {
        Self { shape, records: 0, pixels: Pixels::Bytes { highest, values: Vec::new() } }
    }
    /// Numbers of one image.
    pub(super) const fn width(&self) -> usize {
        self.shape[0] * self.shape[1] * self.shape[2]
    }
    /// Counts one more image, if it may be held.
    pub(super) fn count(&mut self, file: &Path) -> Result<(), Error> {
        self.could_hold(file, self.records + 1)?;
        self.records += 1;
        Ok(())
    }
    /// Refuses more images than may be held.
    pub(super) fn could_hold(&self, file: &Path, records: u64) -> Result<(), Error> {
        let limit = match self.pixels {
            Pixels::Bytes { .. } => BYTE_LIMIT,
            Pixels::Reals(_) => REAL_LIMIT,
        };
        let width = self.width() as u64;
        if records.saturating_mul(width) > limit {
            return Err(Error::TooLarge { file: file.to_owned(), records, width, limit });
        }
        if records > u64::from(u32::MAX) {
            let limit = u64::from(u32::MAX);
            return Err(Error::TooManyRecords { file: file.to_owned(), limit });
        }
        Ok(())
    }
    /// Adds an image of bytes as it comes from `reader`.
    pub(super) fn read(&mut self, file: &Path, reader: &mut dyn Read) -> Result<(), Error> {
        self.count(file)?;
        let (width, record) = (self.width(), self.records);
        let Pixels::Bytes { values, .. } = &mut self.pixels else { return Ok(()) };
        let start = values.len();
        values.resize(start + width, 0);
        let have = super::source::fill(reader, &mut values[start..]).map_err(Error::read(file))?;
        if have < width {
            return Err(Error::RecordTruncated {
                file: file.to_owned(),
                record,
                needs: width as u64,
                have: have as u64,
            });
        }
        Ok(())
    }
    /// The data set, named after its file.
    pub(super) fn finish(
        self,
        path: &Path,
        classes: Classes,
        most_frequent: Option<usize>,
    ) -> Result<Dataset, Error> {
        if self.records != classes.labels.len() as u64 {
            let (inputs, labels) = (self.records, classes.labels.len() as u64);
            return Err(Error::LabelCount { file: path.to_owned(), inputs, labels });
        }
        let (width, shape) = (self.width(), self.shape);
        let inputs = match self.pixels {
            Pixels::Bytes { highest, mut values } => {
                values.shrink_to_fit();
                Inputs::Bytes { width, highest, values }
            }
            Pixels::Reals(mut values) => {
                values.shrink_to_fit();
                Inputs::Reals { width, values }
            }
        };
        let name = super::file_name(path);
        let dataset = Dataset::from_images(&name, shape, inputs, classes.labels, classes.names)?;
        match most_frequent {
            Some(classes) => dataset.most_frequent_classes(classes),
            None => Ok(dataset),
        }
    }
}

/// Moves each channel's numbers together: `[pixels, channels]` to `[channels, pixels]`.
pub(super) fn channels_first<T: Copy>(pixels: &[T], channels: usize, out: &mut Vec<T>) {
    for channel in 0..channels {
        out.extend(pixels.iter().skip(channel).step_by(channels));
    }
}
/// Sides of an image: none 0, not too many numbers in all.
pub(super) fn sides(file: &Path, shape: &[u64]) -> Result<(), Error> {
    let numbers = shape.iter().try_fold(1_u64, |n, &side| n.checked_mul(side));
    if numbers.is_some_and(|n| (1..=IMAGE_LIMIT).contains(&n)) {
        return Ok(());
    }
    let (file, shape) = (file.to_owned(), shape.to_vec());
    Err(Error::ImageShape { file, shape, limit: IMAGE_LIMIT })
}
