//! A CSV or Parquet file of numbers and categories, within the bounds of a TOML file beside it.
use super::bounds::TableBounds;
use super::csv_blocks::csv_blocks;
use super::encoder::Encoder;
use super::rows::RowBlock;
use super::{Counts, Layout, RegressionTable};
use crate::Error;
use crate::datasets::{csv_file, file_name, source};
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// A table and its bounds. Rows are read a block at a time: [`Self::each_block`] takes memory for a few of them, however many there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundedFile {
    /// A CSV with a header (RFC 4180, also gzipped) or a Parquet file, told apart by content.
    pub path: PathBuf,
    /// The [`TableBounds`], in TOML.
    pub bounds: PathBuf,
}
/// How the rows of a file are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Threads that parse a CSV. They change nothing but the time.
    pub threads: NonZeroUsize,
    /// Whether a file without the target is refused.
    pub needs_target: bool,
}
impl Default for Reading {
    /// One thread; the target is needed.
    fn default() -> Self {
        Self { threads: NonZeroUsize::MIN, needs_target: true }
    }
}
impl BoundedFile {
    /// What the numbers of each row are; reads the names of the columns and no row.
    ///
    /// # Errors
    /// As [`Self::each_block`].
    pub fn layout(&self, needs_target: bool) -> Result<Layout, Error> {
        let bounds = TableBounds::read(&self.bounds)?;
        layout(&self.path, &bounds, needs_target)
    }
    /// Calls `visit` with the rows in their order, block after block, until it fails. What has been counted comes with the end.
    ///
    /// # Errors
    /// What `visit` says; else that a file cannot be read or parsed, lacks a column, or holds what its bounds do not allow: NaN, an
    /// infinity, a missing value without a rule, an unknown category. The error names file, row and field and quotes no field; the
    /// rows before it have been handed out. A row is the line of a CSV on which it begins, its header being line 1 and blank lines
    /// counting, and the row of a Parquet file, from 1.
    pub fn each_block<E: From<Error>>(
        &self,
        reading: Reading,
        mut visit: impl FnMut(&RowBlock) -> Result<(), E>,
    ) -> Result<Counts, E> {
        let bounds = TableBounds::read(&self.bounds)?;
        each_block(&self.path, &bounds, reading, &mut visit)
    }
    /// As [`Self::each_block`] with one thread, row by row: its number in the file, its features and its target.
    ///
    /// # Errors
    /// As [`Self::each_block`].
    pub fn each_row<E: From<Error>>(
        &self,
        mut row: impl FnMut(u64, &[f64], f64) -> Result<(), E>,
    ) -> Result<Counts, E> {
        self.each_block(Reading::default(), |block| {
            block.rows().try_for_each(|(number, x, y)| row(number, x, y.unwrap_or(f64::NAN)))
        })
    }
    /// All rows in memory.
    ///
    /// # Errors
    /// As [`Self::each_block`]; [`Error::NoRecords`] if there are none, [`Error::TooManyRecords`] beyond what a
    /// [`RecordId`](crate::RecordId) can number.
    pub fn load(&self) -> Result<RegressionTable, Error> {
        let bounds = TableBounds::read(&self.bounds)?;
        let layout = layout(&self.path, &bounds, true)?;
        let (mut features, mut targets) = (Vec::new(), Vec::new());
        let file = || self.path.clone();
        let counts = each_block(&self.path, &bounds, Reading::default(), &mut |block| {
            if targets.len() + block.len() > u32::MAX as usize {
                return Err(Error::TooManyRecords { file: file(), limit: u64::from(u32::MAX) });
            }
            features.extend_from_slice(block.features());
            targets.extend_from_slice(block.targets().unwrap_or_default());
            Ok(())
        })?;
        if targets.is_empty() {
            return Err(Error::NoRecords { file: file() });
        }
        let name = file_name(&self.path);
        Ok(RegressionTable { counts, ..RegressionTable::new(&name, layout, features, targets)? })
    }
}

fn layout(file: &Path, bounds: &TableBounds, needs_target: bool) -> Result<Layout, Error> {
    #[cfg(feature = "parquet")]
    if is_parquet(file)? {
        let (_, names) = crate::datasets::parquet_file::open(file)?;
        return Ok(Encoder::new(file, bounds, names, needs_target)?.layout);
    }
    let delimiter = csv_file::delimiter(bounds.delimiter)?;
    source::with_text(file, None, |text| {
        let mut rows = csv_file::Rows::new(file, delimiter, 0, text);
        let mut record = csv::ByteRecord::new();
        let Some(row) = rows.next(&mut record)? else {
            return Err(Error::NoRecords { file: file.to_owned() });
        };
        let names = csv_file::header(file, row, &record)?;
        Ok(Encoder::new(file, bounds, names, needs_target)?.layout)
    })
}

fn each_block<E: From<Error>>(
    file: &Path,
    bounds: &TableBounds,
    reading: Reading,
    visit: &mut dyn FnMut(&RowBlock) -> Result<(), E>,
) -> Result<Counts, E> {
    if is_parquet(file)? {
        return parquet_rows(file, bounds, reading, visit);
    }
    let Reading { threads, needs_target } = reading;
    source::with_text(file, None, |text| {
        Ok(csv_blocks(file, bounds, needs_target, threads, text, visit))
    })?
}

/// Whether the file begins as Parquet does.
fn is_parquet(file: &Path) -> Result<bool, Error> {
    let mut start = [0; 4];
    let mut opened = crate::file::open(file)?;
    Ok(opened.read(&mut start).map_err(Error::read(file))? == 4 && &start == b"PAR1")
}

#[cfg(not(feature = "parquet"))]
fn parquet_rows<E: From<Error>>(
    _: &Path,
    _: &TableBounds,
    _: Reading,
    _: &mut dyn FnMut(&RowBlock) -> Result<(), E>,
) -> Result<Counts, E> {
    Err(Error::NotBuiltIn { format: "parquet" }.into())
}
#[cfg(feature = "parquet")]
fn parquet_rows<E: From<Error>>(
    file: &Path,
    bounds: &TableBounds,
    reading: Reading,
    visit: &mut dyn FnMut(&RowBlock) -> Result<(), E>,
) -> Result<Counts, E> {
    let (reader, names) = crate::datasets::parquet_file::open(file)?;
    let encoder = Encoder::new(file, bounds, names, reading.needs_target)?;
    super::parquet_blocks::parquet_blocks(&encoder, &reader, visit)
}
