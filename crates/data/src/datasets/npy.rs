//! NPZ archives of NPY arrays, read row by row; nothing is allocated because a header says so.
//!
//! Format: NumPy Enhancement Proposal 1 and `numpy.lib.format`, versions 1.0 to 3.0.
use crate::Error;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// NumPy itself refuses headers over 10,000 bytes.
const HEADER_LIMIT: usize = 1 << 16;
/// Widest row read.
const COLUMN_LIMIT: u64 = 1_000_000;
/// Most elements of a column-major array, which has to be held whole to be turned: 2 GiB of them.
const TURNED_LIMIT: u64 = 1 << 28;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F32,
    F64,
}
impl Element {
    const fn bytes(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }
    /// Whole numbers beyond 2^53 are rounded, as NumPy's `float64` would.
    fn decode(self, little_endian: bool, bytes: &[u8]) -> f64 {
        let mut le = [0; 8];
        let le = &mut le[..self.bytes()];
        le.copy_from_slice(bytes);
        if !little_endian {
            le.reverse();
        }
        macro_rules! as_f64 {
            ($t:ty) => {
                <$t>::from_le_bytes(le.try_into().unwrap_or_default()) as f64
            };
        }
        match self {
            Self::Bool => f64::from(u8::from(le[0] != 0)),
            Self::U8 => f64::from(le[0]),
            Self::I8 => f64::from(le[0] as i8),
            Self::U16 => as_f64!(u16),
            Self::I16 => as_f64!(i16),
            Self::U32 => as_f64!(u32),
            Self::I32 => as_f64!(i32),
            Self::U64 => as_f64!(u64),
            Self::I64 => as_f64!(i64),
            Self::F32 => as_f64!(f32),
            Self::F64 => as_f64!(f64),
        }
    }
}

/// What an NPY header says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Header {
    type_name: String,
    element: Option<Element>,
    little_endian: bool,
    column_major: bool,
    shape: Vec<u64>,
}

/// An open NPZ.
pub(super) struct Npz {
    file: PathBuf,
    archive: zip::ZipArchive<BufReader<File>>,
}
impl Npz {
    pub(super) fn open(file: &Path) -> Result<Self, Error> {
        let opened = crate::file::open(file)?;
        let archive = zip::ZipArchive::new(BufReader::new(opened)).map_err(damaged(file))?;
        Ok(Self { file: file.to_owned(), archive })
    }
    pub(super) fn file(&self) -> &Path {
        &self.file
    }
    pub(super) fn shape(&mut self, array: &str) -> Result<Vec<u64>, Error> {
        self.with_array(array, |_, header, _| Ok(header.shape))
    }
    /// Calls `row(number from 1, elements)` for each row; a one-dimensional array has rows of one element.
    pub(super) fn rows(
        &mut self,
        array: &str,
        row: impl FnMut(u64, &[f64]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.rows_of(array, table_shape, row)
    }
    /// As [`Self::rows`], where `shape` gives the rows and the elements of each, or refuses the array's shape.
    pub(super) fn rows_of(
        &mut self,
        array: &str,
        shape: impl FnOnce(&Path, &str, &[u64]) -> Result<(u64, usize), Error>,
        mut row: impl FnMut(u64, &[f64]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.with_array(array, |file, header, reader| {
            let element = header.element.ok_or_else(|| Error::ArrayType {
                file: file.to_owned(),
                array: array.to_owned(),
                needs: "a boolean, integer, float32 or float64 type",
                have: header.type_name.clone(),
            })?;
            let (rows, columns) = shape(file, array, &header.shape)?;
            if header.column_major && header.shape.len() > 2 {
                return Err(Error::ArrayType {
                    file: file.to_owned(),
                    array: array.to_owned(),
                    needs: "row-major elements, as numpy.ascontiguousarray gives",
                    have: format!("{}, column-major", header.type_name),
                });
            }
            let mut values = vec![0.0; columns];
            let decode = |bytes: &[u8], values: &mut [f64]| {
                for (value, bytes) in values.iter_mut().zip(bytes.chunks_exact(element.bytes())) {
                    *value = element.decode(header.little_endian, bytes);
                }
            };
            if !header.column_major || columns == 1 {
                return each_row(
                    file,
                    array,
                    rows,
                    columns * element.bytes(),
                    reader,
                    |i, bytes| {
                        decode(bytes, &mut values);
                        row(i, &values)
                    },
                );
            }
            if rows.saturating_mul(columns as u64) > TURNED_LIMIT {
                return Err(Error::TooLarge {
                    file: file.to_owned(),
                    records: rows,
                    width: columns as u64,
                    limit: TURNED_LIMIT,
                });
            }
            let mut all = Vec::new();
            let mut one = [0.0];
            let elements = rows * columns as u64;
            each_row(file, array, elements, element.bytes(), reader, |_, bytes| {
                decode(bytes, &mut one);
                all.push(one[0]);
                Ok(())
            })?;
            for i in 0..rows as usize {
                for (column, value) in values.iter_mut().enumerate() {
                    *value = all[column * rows as usize + i];
                }
                row(i as u64 + 1, &values)?;
            }
            Ok(())
        })
    }
    /// Whether the elements are `uint8`.
    pub(super) fn is_bytes(&mut self, array: &str) -> Result<bool, Error> {
        self.with_array(array, |_, header, _| Ok(header.element == Some(Element::U8)))
    }
    /// Calls `row(number from 1, bytes)` for each row of a `uint8` array.
    pub(super) fn bytes(
        &mut self,
        array: &str,
        row: impl FnMut(u64, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.with_array(array, |file, header, reader| {
            if header.element != Some(Element::U8) || header.column_major {
                return Err(Error::ArrayType {
                    file: file.to_owned(),
                    array: array.to_owned(),
                    needs: "row-major uint8, as numpy.packbits(axis=1) gives",
                    have: header.type_name,
                });
            }
            let (rows, columns) = table_shape(file, array, &header.shape)?;
            each_row(file, array, rows, columns, reader, row)
        })
    }
    fn with_array<T>(
        &mut self,
        array: &str,
        read: impl FnOnce(&Path, Header, &mut dyn Read) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let file = self.file.as_path();
        let member = format!("{array}.npy");
        if self.archive.index_for_name(&member).is_none() {
            let have = self.archive.file_names().flatten().take(16);
            let have = have.map(|n| n.strip_suffix(".npy").unwrap_or(&n).to_owned()).collect();
            let name = array.to_owned();
            return Err(Error::Missing { file: file.to_owned(), name, have });
        }
        let entry = self.archive.by_name(&member).map_err(damaged(file))?;
        let mut reader = BufReader::with_capacity(1 << 18, entry);
        let header = read_header(file, &mut reader)?.map_err(|problem| {
            let (file, array) = (file.to_owned(), array.to_owned());
            Error::ArrayHeader { file, array, problem }
        })?;
        read(file, header, &mut reader)
    }
}

fn damaged(file: &Path) -> impl FnOnce(zip::result::ZipError) -> Error + '_ {
    move |e| Error::Damaged { file: file.to_owned(), format: "NPZ", reason: e.to_string() }
}

/// `[rows]` is one column.
fn table_shape(file: &Path, array: &str, shape: &[u64]) -> Result<(u64, usize), Error> {
    let (rows, columns) = match *shape {
        [rows] => (rows, 1),
        [rows, columns] => (rows, columns),
        _ => (0, 0),
    };
    if rows == 0 || columns == 0 || columns > COLUMN_LIMIT || rows > u64::from(u32::MAX) {
        return Err(Error::ArrayShape {
            file: file.to_owned(),
            array: array.to_owned(),
            needs: format!(
                "[records] or [records, columns], 1 to {} records, 1 to {COLUMN_LIMIT} columns",
                u32::MAX
            ),
            shape: shape.to_vec(),
        });
    }
    Ok((rows, columns as usize))
}

fn each_row(
    file: &Path,
    array: &str,
    rows: u64,
    row_bytes: usize,
    reader: &mut dyn Read,
    mut row: impl FnMut(u64, &[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut buffer = vec![0; row_bytes];
    let mut reader = reader;
    for i in 0..rows {
        let have = super::source::fill(&mut reader, &mut buffer).map_err(Error::read(file))?;
        if have < row_bytes {
            return Err(Error::ArrayTruncated {
                file: file.to_owned(),
                array: array.to_owned(),
                needs: rows.saturating_mul(row_bytes as u64),
                have: i * row_bytes as u64 + have as u64,
            });
        }
        row(i + 1, &buffer)?;
    }
    // Reading up to the end is also what makes the archive verify its checksum.
    if super::source::fill(&mut reader, &mut [0]).map_err(Error::read(file))? > 0 {
        let reason = format!(
            "array `{array}` goes on after the {} bytes that its header declares",
            rows.saturating_mul(row_bytes as u64)
        );
        return Err(Error::Damaged { file: file.to_owned(), format: "NPZ", reason });
    }
    Ok(())
}

/// The outer error is of the disk, the inner of the header.
fn read_header(file: &Path, reader: &mut dyn Read) -> Result<Result<Header, &'static str>, Error> {
    let mut reader = reader;
    let mut start = [0; 12];
    let have = super::source::fill(&mut reader, &mut start[..10]).map_err(Error::read(file))?;
    if have < 10 || !start.starts_with(b"\x93NUMPY") {
        return Ok(Err("does not start like an NPY array"));
    }
    let length = match start[6] {
        1 => usize::from(u16::from_le_bytes([start[8], start[9]])),
        2 | 3 => {
            let have =
                super::source::fill(&mut reader, &mut start[10..]).map_err(Error::read(file))?;
            if have < 2 {
                return Ok(Err("ends within the header"));
            }
            u32::from_le_bytes([start[8], start[9], start[10], start[11]]) as usize
        }
        _ => return Ok(Err("format version is not 1, 2 or 3")),
    };
    if length > HEADER_LIMIT {
        return Ok(Err("declares a header over 65536 bytes"));
    }
    let mut text = vec![0; length];
    if super::source::fill(&mut reader, &mut text).map_err(Error::read(file))? < length {
        return Ok(Err("ends within the header"));
    }
    Ok(parse_header(&text))
}

/// The header is a Python dictionary of three entries.
fn parse_header(text: &[u8]) -> Result<Header, &'static str> {
    let text = std::str::from_utf8(text).map_err(|_| "is not UTF-8")?;
    let mut rest = Python { rest: text };
    rest.expect("{")?;
    let (mut descr, mut order, mut shape) = (None, None, None);
    while !rest.take("}") {
        let key = rest.string()?;
        rest.expect(":")?;
        match key {
            "descr" if rest.peeks("[") => descr = Some("a structure"),
            "descr" => descr = Some(rest.string()?),
            "fortran_order" if rest.take("True") => order = Some(true),
            "fortran_order" if rest.take("False") => order = Some(false),
            "shape" => shape = Some(rest.tuple()?),
            _ => return Err("has an entry other than descr, fortran_order and shape"),
        }
        if descr == Some("a structure") {
            break;
        }
        if !rest.take(",") {
            rest.expect("}")?;
            break;
        }
    }
    let type_name = descr.ok_or("has no descr")?.to_owned();
    let (little_endian, element) = element(&type_name);
    if element.is_none() {
        let shape = shape.unwrap_or_default();
        return Ok(Header { type_name, element, little_endian, column_major: false, shape });
    }
    let column_major = order.ok_or("has no fortran_order")?;
    let shape = shape.ok_or("has no shape")?;
    Ok(Header { type_name, element, little_endian, column_major, shape })
}
fn element(name: &str) -> (bool, Option<Element>) {
    let (big, kind) = match name.as_bytes().first() {
        Some(b'>') => (true, &name[1..]),
        Some(b'<' | b'|' | b'=') => (false, &name[1..]),
        _ => (false, name),
    };
    let element = match kind {
        "b1" => Element::Bool,
        "u1" => Element::U8,
        "i1" => Element::I8,
        "u2" => Element::U16,
        "i2" => Element::I16,
        "u4" => Element::U32,
        "i4" => Element::I32,
        "u8" => Element::U64,
        "i8" => Element::I64,
        "f4" => Element::F32,
        "f8" => Element::F64,
        _ => return (!big, None),
    };
    (!big, Some(element))
}

/// The few Python literals an NPY header may hold.
struct Python<'a> {
    rest: &'a str,
}
impl<'a> Python<'a> {
    fn peeks(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        self.rest.starts_with(token)
    }
    fn take(&mut self, token: &str) -> bool {
        let here = self.peeks(token);
        if here {
            self.rest = &self.rest[token.len()..];
        }
        here
    }
    fn expect(&mut self, token: &str) -> Result<(), &'static str> {
        if self.take(token) { Ok(()) } else { Err("is not the Python dictionary it should be") }
    }
    fn string(&mut self) -> Result<&'a str, &'static str> {
        let quote = if self.take("'") {
            '\''
        } else if self.take("\"") {
            '"'
        } else {
            return Err("lacks a quoted string");
        };
        let end = self.rest.find(quote).ok_or("has a string without an end")?;
        let text = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Ok(text)
    }
    fn tuple(&mut self) -> Result<Vec<u64>, &'static str> {
        self.expect("(")?;
        let mut numbers = Vec::new();
        while !self.take(")") {
            self.rest = self.rest.trim_start();
            let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let number =
                self.rest[..end].parse().map_err(|_| "has a dimension that is no number")?;
            numbers.push(number);
            // NumPy 1 under Python 2 wrote a trailing L.
            self.rest = self.rest[end..].trim_start_matches('L');
            if !self.take(",") {
                self.expect(")")?;
                break;
            }
            if numbers.len() > 32 {
                return Err("has more than 32 dimensions");
            }
        }
        Ok(numbers)
    }
}
