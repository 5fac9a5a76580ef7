//! Tensors that a file holds: numbers in it, or in files beside it.
use super::wire::{self, data_type};
use super::{Error, shown};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// More axes than any model has.
pub(super) const MOST_AXES: usize = 16;

/// Numbers known when a model is read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Floats {
    pub(super) dims: Vec<usize>,
    pub(super) values: Vec<f32>,
}
/// Whole numbers known when a model is read: settings, indices, shapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Integers {
    pub(super) dims: Vec<usize>,
    pub(super) values: Vec<Size>,
}
/// A whole number, or a multiple of the number of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    Number(i64),
    Records(i64),
}
impl Integers {
    /// The numbers, if none depends on how many records there are.
    pub(super) fn numbers(&self) -> Result<Vec<i64>, String> {
        let number = |size: &Size| match size {
            Size::Number(n) => Ok(*n),
            Size::Records(_) => Err("it depends on the number of records".to_owned()),
        };
        self.values.iter().map(number).collect()
    }
}

#[derive(Debug, Clone)]
pub(super) enum Tensor {
    Floats(Rc<Floats>),
    Integers(Rc<Integers>),
}
impl Tensor {
    /// The tensor that a message holds.
    pub(super) fn decode(message: &wire::Tensor, folder: &Folder) -> Result<Self, Error> {
        let name = || shown(&message.name);
        decode(message, folder).map_err(|what| Error::Tensor { name: name(), what })
    }
}

fn decode(message: &wire::Tensor, folder: &Folder) -> Result<Tensor, String> {
    let (dims, count) = dims_of(&message.dims)?;
    if message.segment.is_some() {
        return Err("it is stored in segments, which no current exporter writes".into());
    }
    let size = match message.data_type {
        data_type::FLOAT | data_type::INT32 => 4,
        data_type::INT64 => 8,
        data_type::UINT8 | data_type::INT8 | data_type::BOOL => 1,
        data_type::UINT16 | data_type::INT16 | data_type::FLOAT16 | data_type::BFLOAT16 => 2,
        other => {
            let kind = data_type::name(other.into());
            return Err(format!(
                "it holds {kind}, not floating-point numbers of 16 or 32 bits or whole numbers; convert the model"
            ));
        }
    };
    let needed = count.checked_mul(size).ok_or("it has more numbers than can be counted")?;
    let read;
    let raw: Option<&[u8]> = match message.data_location {
        0 => message.raw_data.as_deref(),
        1 => {
            read = folder.read(&message.external_data, needed)?;
            Some(&read)
        }
        other => return Err(format!("its data lie at a place of unknown kind {other}")),
    };
    if let Some(raw) = raw
        && raw.len() != needed
    {
        return Err(format!("its shape {dims:?} needs {needed} bytes, it has {}", raw.len()));
    }
    let fits = |got: usize| {
        if got == count {
            Ok(())
        } else {
            Err(format!("its shape {dims:?} needs {count} numbers, it has {got}"))
        }
    };
    if message.data_type == data_type::FLOAT {
        let values: Vec<f32> = match raw {
            Some(raw) => raw.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
            None => {
                fits(message.float_data.len())?;
                message.float_data.clone()
            }
        };
        return Ok(Tensor::Floats(Rc::new(Floats { dims, values })));
    }
    let half: Option<fn(u16) -> f32> = match message.data_type {
        data_type::FLOAT16 => Some(|bits| half::f16::from_bits(bits).to_f32()),
        data_type::BFLOAT16 => Some(|bits| half::bf16::from_bits(bits).to_f32()),
        _ => None,
    };
    if let Some(half) = half {
        let values = match raw {
            Some(raw) => {
                raw.as_chunks::<2>().0.iter().map(|b| half(u16::from_le_bytes(*b))).collect()
            }
            None => {
                fits(message.int32_data.len())?;
                message.int32_data.iter().map(|bits| half(*bits as u16)).collect()
            }
        };
        return Ok(Tensor::Floats(Rc::new(Floats { dims, values })));
    }
    let values: Vec<i64> = match (raw, message.data_type) {
        (Some(raw), data_type::INT64) => {
            raw.as_chunks::<8>().0.iter().map(|b| i64::from_le_bytes(*b)).collect()
        }
        (Some(raw), data_type::INT32) => {
            raw.as_chunks::<4>().0.iter().map(|b| i32::from_le_bytes(*b).into()).collect()
        }
        (Some(raw), data_type::INT16) => {
            raw.as_chunks::<2>().0.iter().map(|b| i16::from_le_bytes(*b).into()).collect()
        }
        (Some(raw), data_type::UINT16) => {
            raw.as_chunks::<2>().0.iter().map(|b| u16::from_le_bytes(*b).into()).collect()
        }
        (Some(raw), data_type::INT8) => raw.iter().map(|b| i64::from(*b as i8)).collect(),
        (Some(raw), _) => raw.iter().map(|b| i64::from(*b)).collect(),
        (None, data_type::INT64) => {
            fits(message.int64_data.len())?;
            message.int64_data.clone()
        }
        (None, _) => {
            fits(message.int32_data.len())?;
            message.int32_data.iter().map(|n| i64::from(*n)).collect()
        }
    };
    let values = values.into_iter().map(Size::Number).collect();
    Ok(Tensor::Integers(Rc::new(Integers { dims, values })))
}

/// Dimensions, and how many numbers they make.
pub(super) fn dims_of(dims: &[i64]) -> Result<(Vec<usize>, usize), String> {
    if dims.len() > MOST_AXES {
        return Err(format!("it has {} axes, more than {MOST_AXES}", dims.len()));
    }
    let bad = || format!("its shape {dims:?} has a negative length or too many numbers");
    let sizes: Option<Vec<usize>> = dims.iter().map(|d| usize::try_from(*d).ok()).collect();
    let sizes = sizes.ok_or_else(bad)?;
    let count = sizes.iter().try_fold(1_usize, |n, s| n.checked_mul(*s)).ok_or_else(bad)?;
    Ok((sizes, count))
}

/// Where data files lie, and what was read from them.
#[derive(Debug)]
pub(super) struct Folder {
    /// `None`: there are none.
    path: Option<PathBuf>,
    /// Bytes read, and the files with their sizes.
    taken: RefCell<(u64, BTreeMap<PathBuf, u64>)>,
}
impl Folder {
    pub(super) fn new(path: Option<&Path>) -> Self {
        Self { path: path.map(Path::to_owned), taken: RefCell::default() }
    }
    /// Bytes read so far.
    pub(super) fn bytes_read(&self) -> u64 {
        self.taken.borrow().0
    }
    /// Counts bytes to be read. Tensors may share data, but not so often that a small model fills the memory.
    fn take(&self, path: &Path, size: u64, needed: u64) -> Result<(), String> {
        let (read, files) = &mut *self.taken.borrow_mut();
        files.insert(path.to_owned(), size);
        *read = read.saturating_add(needed);
        if *read
            > files.values().fold(0_u64, |sum, size| sum.saturating_add(*size)).saturating_mul(2)
        {
            return Err("too many tensors share the same data".into());
        }
        Ok(())
    }
    /// Part of a file in the model's folder or below, however the path is spelt and wherever links lead.
    fn read(&self, entries: &[wire::Entry], needed: usize) -> Result<Vec<u8>, String> {
        let folder = self
            .path
            .as_deref()
            .ok_or("its data lie in another file; read the model from its file")?;
        let (mut location, mut offset, mut length) = (None, 0_u64, None);
        for wire::Entry { key, value } in entries {
            let number = || {
                value
                    .parse::<u64>()
                    .map_err(|_| format!("its {} {:?} is no number", key, shown(value)))
            };
            match key.as_str() {
                "location" => location = Some(value),
                "offset" => offset = number()?,
                "length" => length = Some(number()?),
                _ => {}
            }
        }
        let location = location.ok_or("its data lie in another file, which is not named")?;
        let place = shown(location);
        if length.is_some_and(|length| length != needed as u64) {
            return Err(format!(
                "its shape needs {needed} bytes, the entry for {place:?} has another length"
            ));
        }
        let path = Path::new(location);
        if !path.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir)) {
            return Err(format!("its data may only lie in the model's folder, not in {place:?}"));
        }
        let failed = |e: std::io::Error| format!("its data in {place:?}: {e}");
        let folder = folder.canonicalize().map_err(failed)?;
        let path = folder.join(path).canonicalize().map_err(failed)?;
        if !path.starts_with(&folder) {
            return Err(format!(
                "its data may only lie in the model's folder; {place:?} links elsewhere"
            ));
        }
        // A pipe or a device could keep us waiting.
        if !path.metadata().map_err(failed)?.is_file() {
            return Err(format!("its data in {place:?}: not a file"));
        }
        let mut file = std::fs::File::open(&path).map_err(failed)?;
        let there = file.metadata().map_err(failed)?.len();
        if offset.checked_add(needed as u64).is_none_or(|end| end > there) {
            return Err(format!(
                "it needs {needed} bytes from byte {offset} of {place:?}, which has {there}"
            ));
        }
        self.take(&path, there, needed as u64)?;
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        let mut bytes = vec![0; needed];
        file.read_exact(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }
}
