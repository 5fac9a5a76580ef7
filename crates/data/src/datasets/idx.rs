//! Images in IDX, the form of MNIST.
//!
//! Format: LeCun, Cortes and Burges, *The MNIST database of handwritten digits*: two zero bytes, the element type, the number of
//! dimensions, each dimension as a big-endian 32-bit number, the elements.
use super::classes::{self, Gaps};
use super::pixels::{self, Images};
use super::source;
use crate::{Dataset, Error};
use serde::{Deserialize, Serialize};
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// Grey images in IDX and their labels, plain or gzipped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdxImages {
    /// The file of images, `[records, height, width]` unsigned bytes.
    pub path: PathBuf,
    /// The file of labels, `[records]` unsigned bytes; a relative name is relative to the folder of `path`. Left out, it is the
    /// name of `path` with `labels` for `images` and `idx1` for `idx3`.
    #[serde(default)]
    pub labels: Option<PathBuf>,
    /// Keep the records of this many most frequent classes only.
    #[serde(default)]
    pub classes: Option<usize>,
}

pub(super) fn load(spec: &IdxImages) -> Result<Dataset, Error> {
    let file = spec.path.as_path();
    let labels = labels_of(spec)?;
    let images = source::with_text(file, None, |reader| {
        let [records, height, width] = header(file, reader, "00000803 (unsigned bytes, 3 sizes)")?;
        pixels::sides(file, &[height, width])?;
        // Sides within the limit fit any address.
        let mut images = Images::bytes([1, height as usize, width as usize], u8::MAX);
        images.could_hold(file, records)?;
        for _ in 0..records {
            images.read(file, reader)?;
        }
        ends(file, reader, records)?;
        Ok(images)
    })?;
    let numbers = source::with_text(&labels, None, |reader| {
        let [records] = header(&labels, reader, "00000801 (unsigned bytes, 1 size)")?;
        let mut numbers = Vec::new();
        for record in 1..=records {
            let mut label = [0];
            if source::fill(reader, &mut label).map_err(Error::read(&labels))? == 0 {
                let file = labels.clone();
                return Err(Error::RecordTruncated { file, record, needs: 1, have: 0 });
            }
            numbers.push(u32::from(label[0]));
        }
        ends(&labels, reader, records)?;
        Ok(numbers)
    })?;
    let gaps = if spec.classes.is_some() { Gaps::Allowed } else { Gaps::Refused };
    images.finish(file, classes::number(&labels, &numbers, gaps)?, spec.classes)
}

/// The label file's path.
fn labels_of(spec: &IdxImages) -> Result<PathBuf, Error> {
    if let Some(labels) = &spec.labels {
        return Ok(spec.path.with_file_name("").join(labels));
    }
    let name = super::file_name(&spec.path);
    let labels = name.replacen("images", "labels", 1).replacen("idx3", "idx1", 1);
    if labels == name {
        return Err(Error::Setting {
            setting: "labels".to_owned(),
            needs: "the name of the file of labels".to_owned(),
            have: "left out, and the name of the images does not tell it".to_owned(),
        });
    }
    Ok(spec.path.with_file_name(labels))
}

/// The sizes an IDX file of unsigned bytes declares.
fn header<const SIZES: usize>(
    file: &Path,
    reader: &mut dyn BufRead,
    needs: &'static str,
) -> Result<[u64; SIZES], Error> {
    let mut magic = [0; 4];
    let have = source::fill(reader, &mut magic).map_err(Error::read(file))?;
    if have < 4 || magic != [0, 0, 8, SIZES as u8] {
        let have = if have == 0 {
            "nothing".to_owned()
        } else {
            magic[..have].iter().map(|byte| format!("{byte:02x}")).collect()
        };
        return Err(Error::Start { file: file.to_owned(), needs, have });
    }
    let mut sizes = [0; SIZES];
    for (i, size) in sizes.iter_mut().enumerate() {
        let mut bytes = [0; 4];
        let have = source::fill(reader, &mut bytes).map_err(Error::read(file))?;
        if have < 4 {
            let (needs, have) = (4 * (SIZES as u64 + 1), 4 * (i as u64 + 1) + have as u64);
            return Err(Error::RecordTruncated { file: file.to_owned(), record: 0, needs, have });
        }
        *size = u64::from(u32::from_be_bytes(bytes));
    }
    Ok(sizes)
}
/// Nothing comes after the last record. Reading to the end is also what makes gzip verify its checksum.
fn ends(file: &Path, reader: &mut dyn BufRead, records: u64) -> Result<(), Error> {
    if source::fill(reader, &mut [0]).map_err(Error::read(file))? == 0 {
        return Ok(());
    }
    let reason = format!("goes on after the {records} records that its header declares");
    Err(Error::Damaged { file: file.to_owned(), format: "IDX", reason })
}
