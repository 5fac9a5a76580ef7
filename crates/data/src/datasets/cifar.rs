//! Images in the binary form of CIFAR.
//!
//! Format: Krizhevsky, *The CIFAR-10 and CIFAR-100 datasets*: per record one label byte (CIFAR-100: coarse, then fine), then
//! 1,024 bytes of red, of green and of blue, row after row. There is no header.
use super::classes::{self, Gaps};
use super::pixels::{Images, Pixels};
use super::source;
use crate::{Dataset, Error, FieldProblem};
use serde::{Deserialize, Serialize};
use std::io::BufRead;
use std::path::{Path, PathBuf};

const SHAPE: [usize; 3] = [3, 32, 32];

/// Colour images of 32 x 32 pixels in the binary form of CIFAR.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CifarImages {
    /// A file of records (also gzipped), or a folder or archive (`.tar`, `.tar.gz`) of such files.
    pub path: PathBuf,
    /// Which label bytes there are, and which one is the class.
    #[serde(default)]
    pub form: CifarForm,
    /// File names within the folder or archive, in the order of their records; left out, the training files of the original.
    #[serde(default)]
    pub files: Vec<String>,
    /// Keep the records of this many most frequent classes only.
    #[serde(default)]
    pub classes: Option<usize>,
}
/// Label bytes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CifarForm {
    /// One: the class, below 10.
    #[default]
    #[serde(rename = "cifar-10")]
    Ten,
    /// Two, the class is the second, below 100.
    #[serde(rename = "cifar-100-fine")]
    HundredFine,
    /// Two, the class is the first, below 20.
    #[serde(rename = "cifar-100-coarse")]
    HundredCoarse,
}
impl CifarForm {
    /// Label bytes, which of them is the class, and how many classes there are.
    const fn labels(self) -> (usize, usize, u32) {
        match self {
            Self::Ten => (1, 0, 10),
            Self::HundredFine => (2, 1, 100),
            Self::HundredCoarse => (2, 0, 20),
        }
    }
    fn files(self) -> Vec<String> {
        match self {
            Self::Ten => (1..=5).map(|i| format!("data_batch_{i}.bin")).collect(),
            Self::HundredFine | Self::HundredCoarse => vec!["train.bin".to_owned()],
        }
    }
}

/// Records of one file.
struct Part {
    images: Images,
    labels: Vec<u32>,
}

pub(super) fn load(spec: &CifarImages) -> Result<Dataset, Error> {
    let path = spec.path.as_path();
    let names = if spec.files.is_empty() { spec.form.files() } else { spec.files.clone() };
    if let Some(twice) = (1..names.len()).find(|&i| names[..i].contains(&names[i])) {
        return Err(Error::Setting {
            setting: "files".to_owned(),
            needs: "each name once".to_owned(),
            have: format!("a list with `{}` twice", names[twice]),
        });
    }
    let mut parts: Vec<Option<Part>> = names.iter().map(|_| None).collect();
    if path.is_dir() {
        for (name, part) in names.iter().zip(&mut parts) {
            let file = path.join(name);
            *part = Some(source::with_text(&file, None, |reader| read(&file, spec.form, reader))?);
        }
    } else if !source::with_members(path, &names, |i, reader| {
        parts[i] = Some(read(&path.join(&names[i]), spec.form, reader)?);
        Ok(())
    })? {
        if !spec.files.is_empty() {
            return Err(Error::Setting {
                setting: "files".to_owned(),
                needs: "a `path` that is a folder or an archive".to_owned(),
                have: format!("{} names", spec.files.len()),
            });
        }
        parts = vec![Some(source::with_text(path, None, |reader| read(path, spec.form, reader))?)];
    }
    let (mut images, mut labels) = (Images::bytes(SHAPE, u8::MAX), Vec::new());
    for mut part in parts.into_iter().flatten() {
        labels.append(&mut part.labels);
        images.records += part.images.records;
        if let (Pixels::Bytes { values, .. }, Pixels::Bytes { values: more, .. }) =
            (&mut images.pixels, &mut part.images.pixels)
        {
            if values.is_empty() {
                *values = std::mem::take(more);
            } else {
                values.append(more);
            }
        }
    }
    let gaps = if spec.classes.is_some() { Gaps::Allowed } else { Gaps::Refused };
    images.finish(path, classes::number(path, &labels, gaps)?, spec.classes)
}

fn read(file: &Path, form: CifarForm, reader: &mut dyn BufRead) -> Result<Part, Error> {
    let (bytes, class, classes) = form.labels();
    let (mut images, mut labels) = (Images::bytes(SHAPE, u8::MAX), Vec::new());
    loop {
        let mut start = [0; 2];
        let have = source::fill(reader, &mut start[..bytes]).map_err(Error::read(file))?;
        if have == 0 {
            break;
        }
        let record = images.records + 1;
        let needs = (bytes + images.width()) as u64;
        let truncated = |have| {
            let file = file.to_owned();
            Error::RecordTruncated { file, record, needs, have }
        };
        if have < bytes {
            return Err(truncated(have as u64));
        }
        let label = u32::from(start[class]);
        if label >= classes {
            let problem = FieldProblem::NotBelow { classes };
            let (file, field) = (file.to_owned(), "label".to_owned());
            return Err(Error::Field { file, row: record, field, problem });
        }
        images.read(file, reader).map_err(|error| match error {
            Error::RecordTruncated { have, .. } => truncated(have + bytes as u64),
            other => other,
        })?;
        labels.push(label);
    }
    Ok(Part { images, labels })
}
