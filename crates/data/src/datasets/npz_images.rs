//! Images in NPZ.
use super::classes::Gaps;
use super::pixels::{self, Images, Pixels};
use super::{bits, npy};
use crate::dataset::written;
use crate::{Dataset, Error, FieldProblem};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Images in NPZ: `[records, height, width]`, or four sizes with channels last or first; labels as class numbers or one-hot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NpzImages {
    /// The file.
    pub path: PathBuf,
    /// Name of the array of images, of any number type.
    #[serde(default = "super::x")]
    pub inputs: String,
    /// Name of the array of labels.
    #[serde(default = "super::y")]
    pub labels: String,
    /// Where the channels stand in an array of four sizes; left out, on the one side whose size is 1 or 3.
    #[serde(default)]
    pub channels: Option<Channels>,
    /// The number that stands for full brightness, public: inputs are divided by it. 255 for `uint8` if left out, else 1.
    #[serde(default)]
    pub highest: Option<f64>,
    /// Keep the records of this many most frequent classes only.
    #[serde(default)]
    pub classes: Option<usize>,
}
/// Where the channels stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Channels {
    /// `[records, channels, height, width]`.
    First,
    /// `[records, height, width, channels]`.
    Last,
}

pub(super) fn load(spec: &NpzImages) -> Result<Dataset, Error> {
    let file = spec.path.as_path();
    let mut archive = npy::Npz::open(file)?;
    let sizes = archive.shape(&spec.inputs)?;
    let bytes = archive.is_bytes(&spec.inputs)?;
    let highest = spec.highest.unwrap_or(if bytes { 255.0 } else { 1.0 });
    let whole = (1..=u8::MAX).find(|&byte| f64::from(byte).total_cmp(&highest).is_eq());
    let in_range = highest.is_finite() && highest > 0.0;
    if !in_range || (bytes && whole.is_none()) {
        let needs = if bytes { "a whole number from 1 to 255" } else { "a number above 0" };
        let (setting, needs) = ("highest".to_owned(), needs.to_owned());
        return Err(Error::Setting { setting, needs, have: written(highest) });
    }
    let (shape, order) = shape(file, spec, &sizes)?;
    let pixels = match whole {
        Some(highest) if bytes => Pixels::Bytes { highest, values: Vec::new() },
        _ => Pixels::Reals(Vec::new()),
    };
    let mut images = Images { shape, records: 0, pixels };
    let (mut turned, width) = (Vec::new(), images.width());
    let rows = |_: &Path, _: &str, sizes: &[u64]| Ok((sizes.first().copied().unwrap_or(0), width));
    archive.rows_of(&spec.inputs, rows, |row, values| {
        images.count(file)?;
        if let Some(at) = values.iter().position(|v| !(0.0..=highest).contains(v)) {
            let problem = if values[at].is_finite() {
                FieldProblem::Brightness { highest: written(highest) }
            } else {
                FieldProblem::NotFinite
            };
            let (file, field) = (file.to_owned(), format!("pixel {at}"));
            return Err(Error::Field { file, row, field, problem });
        }
        // Channels first is what one channel last is, too.
        let channels = if order == Channels::Last { shape[0] } else { 1 };
        turned.clear();
        pixels::channels_first(values, channels, &mut turned);
        match &mut images.pixels {
            Pixels::Bytes { values: all, .. } => all.extend(turned.iter().map(|&v| v as u8)),
            Pixels::Reals(all) => all.extend(turned.iter().map(|&v| (v / highest) as f32)),
        }
        Ok(())
    })?;
    let gaps = if spec.classes.is_some() { Gaps::Allowed } else { Gaps::Refused };
    let classes = bits::read_npz_labels(&mut archive, &spec.labels, gaps)?;
    images.finish(file, classes, spec.classes)
}

/// `[channels, height, width]` of an array of images, and where it has its channels.
fn shape(file: &Path, spec: &NpzImages, sizes: &[u64]) -> Result<([usize; 3], Channels), Error> {
    let refuse = |needs: &str| {
        let (file, array) = (file.to_owned(), spec.inputs.clone());
        Err(Error::ArrayShape { file, array, needs: needs.to_owned(), shape: sizes.to_vec() })
    };
    let few = |channels: u64| channels == 1 || channels == 3;
    let (sides, order) = match (sizes, spec.channels) {
        (&[_, height, width], None) => ([1, height, width], Channels::First),
        (&[_, a, b, c], Some(Channels::First)) => ([a, b, c], Channels::First),
        (&[_, a, b, c], Some(Channels::Last)) => ([c, a, b], Channels::Last),
        (&[_, a, b, c], None) if few(a) && !few(c) => ([a, b, c], Channels::First),
        (&[_, a, b, c], None) if few(c) && !few(a) => ([c, a, b], Channels::Last),
        (&[_, _, _, _], None) => return refuse("`channels` set to \"first\" or \"last\""),
        (_, Some(_)) => return refuse("four sizes where `channels` is set"),
        _ => {
            return refuse(
                "[records, height, width], [records, height, width, channels] or [records, channels, height, width]",
            );
        }
    };
    if sizes[0] == 0 || sizes[0] > u64::from(u32::MAX) {
        return refuse("1 to 4294967295 records");
    }
    pixels::sides(file, &sides)?;
    Ok((sides.map(|side| side as usize), order))
}
