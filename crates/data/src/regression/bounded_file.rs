//! A CSV or Parquet file of numbers and categories, within the bounds of a TOML file beside it.
use super::bounds::{Encoder, TableBounds};
use super::{Counts, Layout, RegressionTable};
use crate::Error;
use crate::datasets::table::Value;
use crate::datasets::{csv_file, file_name, source};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

/// A table and its bounds. Rows are read one after another: [`Self::each_row`] takes memory for one of them, however many there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundedFile {
    /// A CSV with a header (RFC 4180, also gzipped) or a Parquet file, told apart by content.
    pub path: PathBuf,
    /// The [`TableBounds`], in TOML.
    pub bounds: PathBuf,
}
impl BoundedFile {
    /// What the numbers of each row are; reads the names of the columns and no row.
    ///
    /// # Errors
    /// As [`Self::each_row`].
    pub fn layout(&self) -> Result<Layout, Error> {
        let bounds = TableBounds::read(&self.bounds)?;
        layout(&self.path, &bounds)
    }
    /// Calls `row` for each row in its order with its number in the file (from 1; the header of a CSV is row 1), its features, within
    /// their bounds, and its target, until it fails. What has been counted comes with the end.
    ///
    /// # Errors
    /// What `row` says; else that a file cannot be read or parsed, lacks a column, or holds what its bounds do not allow: NaN, an
    /// infinity, a missing value without a rule, an unknown category. The error names file, row and field and quotes no field.
    pub fn each_row<E: From<Error>>(
        &self,
        row: impl FnMut(u64, &[f64], f64) -> Result<(), E>,
    ) -> Result<Counts, E> {
        let bounds = TableBounds::read(&self.bounds)?;
        each_row(&self.path, &bounds, row)
    }
    /// All rows in memory.
    ///
    /// # Errors
    /// As [`Self::each_row`]; [`Error::NoRecords`] if there are none, [`Error::TooManyRecords`] beyond what a
    /// [`RecordId`](crate::RecordId) can number.
    pub fn load(&self) -> Result<RegressionTable, Error> {
        let bounds = TableBounds::read(&self.bounds)?;
        let layout = layout(&self.path, &bounds)?;
        let (mut features, mut targets) = (Vec::new(), Vec::new());
        let file = || self.path.clone();
        let counts = each_row(&self.path, &bounds, |_, x, y| {
            if targets.len() == u32::MAX as usize {
                return Err(Error::TooManyRecords { file: file(), limit: u64::from(u32::MAX) });
            }
            features.extend_from_slice(x);
            targets.push(y);
            Ok(())
        })?;
        if targets.is_empty() {
            return Err(Error::NoRecords { file: file() });
        }
        let name = file_name(&self.path);
        Ok(RegressionTable { counts, ..RegressionTable::new(&name, layout, features, targets)? })
    }
}

fn layout(file: &Path, bounds: &TableBounds) -> Result<Layout, Error> {
    #[cfg(feature = "parquet")]
    if is_parquet(file)? {
        let (_, names) = crate::datasets::parquet_file::open(file)?;
        return Ok(Encoder::new(file, bounds, names)?.layout);
    }
    let delimiter = csv_file::delimiter(bounds.delimiter)?;
    source::with_text(file, None, |text| {
        let mut rows = csv_file::Rows::new(file, delimiter, 0, text);
        let mut record = csv::ByteRecord::new();
        let Some(row) = rows.next(&mut record)? else {
            return Err(Error::NoRecords { file: file.to_owned() });
        };
        let names = csv_file::header(file, row, &record)?;
        Ok(Encoder::new(file, bounds, names)?.layout)
    })
}

fn each_row<E: From<Error>>(
    file: &Path,
    bounds: &TableBounds,
    mut visit: impl FnMut(u64, &[f64], f64) -> Result<(), E>,
) -> Result<Counts, E> {
    if is_parquet(file)? {
        return parquet_rows(file, bounds, visit);
    }
    let delimiter = csv_file::delimiter(bounds.delimiter)?;
    source::with_text(file, None, |text| Ok(csv_rows(file, bounds, delimiter, text, &mut visit)))?
}

fn csv_rows<E: From<Error>>(
    file: &Path,
    bounds: &TableBounds,
    delimiter: u8,
    text: &mut dyn BufRead,
    visit: &mut impl FnMut(u64, &[f64], f64) -> Result<(), E>,
) -> Result<Counts, E> {
    let mut rows = csv_file::Rows::new(file, delimiter, 0, text);
    let mut record = csv::ByteRecord::new();
    let Some(row) = rows.next(&mut record)? else {
        return Err(Error::NoRecords { file: file.to_owned() }.into());
    };
    let mut encoder = Encoder::new(file, bounds, csv_file::header(file, row, &record)?)?;
    while let Some(row) = rows.next(&mut record)? {
        if record.len() != encoder.width() {
            let (needs, have) = (encoder.width(), record.len());
            return Err(Error::FieldCount { file: file.to_owned(), row, needs, have }.into());
        }
        encoder.start();
        for (column, field) in record.iter().enumerate() {
            encoder.push(row, column, Value::Text(field.trim_ascii()))?;
        }
        visit(row, &encoder.features, encoder.target)?;
    }
    Ok(encoder.counts)
}

/// Whether the file begins as Parquet does.
fn is_parquet(file: &Path) -> Result<bool, Error> {
    let mut start = [0; 4];
    let mut opened = std::fs::File::open(file).map_err(Error::read(file))?;
    Ok(opened.read(&mut start).map_err(Error::read(file))? == 4 && &start == b"PAR1")
}

#[cfg(not(feature = "parquet"))]
fn parquet_rows<E: From<Error>>(
    _: &Path,
    _: &TableBounds,
    _: impl FnMut(u64, &[f64], f64) -> Result<(), E>,
) -> Result<Counts, E> {
    Err(Error::NotBuiltIn { format: "parquet" }.into())
}
#[cfg(feature = "parquet")]
fn parquet_rows<E: From<Error>>(
    file: &Path,
    bounds: &TableBounds,
    visit: impl FnMut(u64, &[f64], f64) -> Result<(), E>,
) -> Result<Counts, E> {
    use crate::datasets::parquet_file::{self, TakesRows};

    struct Visitor<'a, E, V> {
        encoder: Encoder<'a>,
        visit: V,
        /// What `visit` said; it is not this crate's error.
        failed: Option<E>,
    }
    impl<E, V: FnMut(u64, &[f64], f64) -> Result<(), E>> TakesRows for Visitor<'_, E, V> {
        fn start(&mut self) -> Result<(), Error> {
            self.encoder.start();
            Ok(())
        }
        fn push(&mut self, row: u64, column: usize, value: Value<'_>) -> Result<(), Error> {
            self.encoder.push(row, column, value)
        }
        fn end(&mut self, row: u64) -> Result<bool, Error> {
            let said = (self.visit)(row, &self.encoder.features, self.encoder.target);
            self.failed = said.err();
            Ok(self.failed.is_none())
        }
    }
    let (reader, names) = parquet_file::open(file)?;
    let encoder = Encoder::new(file, bounds, names)?;
    let columns = encoder.read();
    let mut visitor = Visitor { encoder, visit, failed: None };
    parquet_file::rows(file, &reader, &columns, &mut visitor)?;
    match visitor.failed {
        Some(error) => Err(error),
        None => Ok(visitor.encoder.counts),
    }
}
