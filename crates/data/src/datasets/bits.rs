//! Rows of bits from text, and the public forms of Purchase, Texas and Location.
use super::classes::{self, Classes, Gaps};
use super::{BinaryFile, PackedBits, npy, source};
use crate::{BitMatrix, Column, ColumnKind, Dataset, Error, FieldProblem, Inputs};
use std::io::BufRead;
use std::path::Path;

/// Most words (8 bytes) of bits held: 16 GiB.
const WORD_LIMIT: u64 = 1 << 31;

/// Rows of bits that grow as they are read, so that no declared size is trusted.
#[derive(Debug)]
pub(super) struct BitRows {
    matrix: BitMatrix,
}
impl BitRows {
    pub(super) const fn new(width: usize) -> Self {
        Self { matrix: BitMatrix { rows: 0, width, words: Vec::new() } }
    }
    /// Adds a row of zeros and gives its words.
    pub(super) fn push(&mut self, file: &Path) -> Result<&mut [u64], Error> {
        let matrix = &mut self.matrix;
        let start = matrix.words.len();
        let end = start + matrix.words_per_row();
        if end as u64 > WORD_LIMIT {
            return Err(Error::TooLarge {
                file: file.to_owned(),
                records: matrix.rows as u64 + 1,
                width: matrix.width as u64,
                limit: WORD_LIMIT * 64,
            });
        }
        if matrix.rows >= u32::MAX as usize {
            let limit = u64::from(u32::MAX);
            return Err(Error::TooManyRecords { file: file.to_owned(), limit });
        }
        matrix.rows += 1;
        matrix.words.resize(end, 0);
        Ok(&mut matrix.words[start..])
    }
    pub(super) fn finish(mut self) -> BitMatrix {
        self.matrix.words.shrink_to_fit();
        self.matrix
    }
}

/// A bit held as a number.
pub(super) fn from_number(value: f64) -> Option<bool> {
    if value.total_cmp(&1.0).is_eq() {
        Some(true)
    } else if value.abs().total_cmp(&0.0).is_eq() {
        Some(false)
    } else {
        None
    }
}

/// A bit written as text.
pub(super) fn parse(field: &[u8]) -> Result<bool, FieldProblem> {
    let field = field.trim_ascii();
    let field = field.strip_prefix(b"\"").and_then(|f| f.strip_suffix(b"\"")).unwrap_or(field);
    match field {
        b"0" | b"0.0" => Ok(false),
        b"1" | b"1.0" => Ok(true),
        b"" => Err(FieldProblem::Empty),
        _ => Err(FieldProblem::NotABit),
    }
}

/// Sets the bits of a line such as `0,1,1`. `words` are zero and hold `width` bits.
fn parse_row(line: &[u8], width: usize, words: &mut [u64]) -> Result<(), RowProblem> {
    if line.len() == (2 * width).saturating_sub(1) && parse_plain(line, words) {
        return Ok(());
    }
    words.fill(0);
    let have = line.split(|b| *b == b',').count();
    if have != width {
        return Err(RowProblem::Count(have));
    }
    for (i, field) in line.split(|b| *b == b',').enumerate() {
        let bit = parse(field).map_err(|problem| RowProblem::Field(i, problem))?;
        words[i / 64] |= u64::from(bit) << (i % 64);
    }
    Ok(())
}
/// The usual form, one digit and one comma in turn; false if it is another.
fn parse_plain(line: &[u8], words: &mut [u64]) -> bool {
    let mut odd = 0;
    for (chunk, word) in line.chunks(128).zip(words) {
        for (i, pair) in chunk.chunks(2).enumerate() {
            let digit = pair[0] ^ b'0';
            odd |= digit & !1;
            odd |= pair.get(1).map_or(0, |comma| comma ^ b',');
            *word |= u64::from(digit & 1) << i;
        }
    }
    odd == 0
}
enum RowProblem {
    Count(usize),
    Field(usize, FieldProblem),
}
impl RowProblem {
    fn at(self, file: &Path, row: u64, width: usize, label_fields: usize) -> Error {
        let file = file.to_owned();
        match self {
            Self::Count(have) => {
                let (needs, have) = (width + label_fields, have + label_fields);
                Error::FieldCount { file, row, needs, have }
            }
            Self::Field(i, problem) => {
                Error::Field { file, row, field: format!("bit {i}"), problem }
            }
        }
    }
}

/// `label,bit,bit,...` without a header; the label may be quoted.
fn read_labelled(file: &Path, text: &mut dyn BufRead) -> Result<(BitMatrix, Vec<u32>), Error> {
    let mut lines = source::Lines::new(file, text);
    let (mut rows, mut labels) = (None, Vec::new());
    while let Some((row, line)) = lines.next()? {
        let Some(comma) = line.iter().position(|b| *b == b',') else {
            let needs = rows.as_ref().map_or(2, |r: &BitRows| r.matrix.width + 1);
            return Err(Error::FieldCount { file: file.to_owned(), row, needs, have: 1 });
        };
        let label = classes::parse(&line[..comma]).map_err(|problem| Error::Field {
            file: file.to_owned(),
            row,
            field: "label".into(),
            problem,
        })?;
        let line = &line[comma + 1..];
        let rows = rows.get_or_insert_with(|| BitRows::new(fields(line)));
        let width = rows.matrix.width;
        parse_row(line, width, rows.push(file)?).map_err(|p| p.at(file, row, width, 1))?;
        labels.push(label);
    }
    let rows = rows.ok_or_else(|| Error::NoRecords { file: file.to_owned() })?;
    Ok((rows.finish(), labels))
}
fn read_features(file: &Path, text: &mut dyn BufRead) -> Result<BitMatrix, Error> {
    let mut lines = source::Lines::new(file, text);
    let mut rows = None;
    while let Some((row, line)) = lines.next()? {
        let rows = rows.get_or_insert_with(|| BitRows::new(fields(line)));
        let width = rows.matrix.width;
        parse_row(line, width, rows.push(file)?).map_err(|p| p.at(file, row, width, 0))?;
    }
    Ok(rows.ok_or_else(|| Error::NoRecords { file: file.to_owned() })?.finish())
}
fn read_labels(file: &Path, text: &mut dyn BufRead) -> Result<Vec<u32>, Error> {
    let mut lines = source::Lines::new(file, text);
    let mut labels = Vec::new();
    while let Some((row, line)) = lines.next()? {
        labels.push(classes::parse(line).map_err(|problem| Error::Field {
            file: file.to_owned(),
            row,
            field: "label".into(),
            problem,
        })?);
    }
    Ok(labels)
}
fn fields(line: &[u8]) -> usize {
    line.split(|b| *b == b',').count()
}

/// Arrays of an NPZ benchmark: `[records, width]` of 0 and 1, and labels.
fn read_npz(file: &BinaryFile, inputs: &str, labels: &str) -> Result<Dataset, Error> {
    let path = &file.path;
    let mut archive = npy::Npz::open(path)?;
    let mut rows = None;
    archive.rows(inputs, |row, values| {
        let rows = rows.get_or_insert_with(|| BitRows::new(values.len()));
        let words = rows.push(path)?;
        for (i, &value) in values.iter().enumerate() {
            match from_number(value) {
                Some(bit) => words[i / 64] |= u64::from(bit) << (i % 64),
                None => {
                    let problem = if value.is_finite() {
                        FieldProblem::NotABit
                    } else {
                        FieldProblem::NotFinite
                    };
                    let field = format!("bit {i}");
                    return Err(Error::Field { file: path.clone(), row, field, problem });
                }
            }
        }
        Ok(())
    })?;
    let bits = rows.ok_or_else(|| Error::NoRecords { file: path.clone() })?.finish();
    let classes = read_npz_labels(&mut archive, labels, gaps(file.classes))?;
    assemble(path, bits, classes, file.classes)
}
/// Labels `[records]` of class numbers or `[records, classes]` one-hot.
pub(super) fn read_npz_labels(
    archive: &mut npy::Npz,
    array: &str,
    gaps: Gaps,
) -> Result<Classes, Error> {
    let file = archive.file().to_owned();
    let one_hot = archive.shape(array)?.get(1).is_some_and(|&columns| columns != 1);
    let mut numbers = Vec::new();
    let mut width = 0;
    archive.rows(array, |row, values| {
        width = values.len();
        let class =
            if one_hot { classes::from_one_hot(values) } else { classes::from_number(values[0]) };
        numbers.push(class.map_err(|problem| Error::Field {
            file: file.clone(),
            row,
            field: array.to_owned(),
            problem,
        })?);
        Ok(())
    })?;
    if one_hot && gaps == Gaps::Refused {
        let mut has = vec![false; width];
        numbers.iter().for_each(|&n| has[n as usize] = true);
        if let Some(class) = has.iter().position(|has| !has) {
            return Err(Error::ClassWithoutRecord { file, class: class as u64 });
        }
    }
    classes::number(&file, &numbers, gaps)
}

const fn gaps(selected: Option<usize>) -> Gaps {
    if selected.is_some() { Gaps::Allowed } else { Gaps::Refused }
}

/// Purchase: label then bits in text, or `features` and one-hot `labels` in NPZ.
pub(super) fn purchase(file: &BinaryFile) -> Result<Dataset, Error> {
    if source::is_zip(&file.path)? {
        return read_npz(file, "features", "labels");
    }
    labelled_text(file)
}
/// Location: label (quoted) then bits in text, or `x` and `y` in NPZ.
pub(super) fn location(file: &BinaryFile) -> Result<Dataset, Error> {
    if source::is_zip(&file.path)? {
        return read_npz(file, "x", "y");
    }
    labelled_text(file)
}
fn labelled_text(file: &BinaryFile) -> Result<Dataset, Error> {
    let path = &file.path;
    let (bits, numbers) = source::with_text(path, None, |text| read_labelled(path, text))?;
    let classes = classes::number(path, &numbers, gaps(file.classes))?;
    assemble(path, bits, classes, file.classes)
}
/// Texas: `feats` and `labels` side by side in a folder or archive, or `features` and `labels` in NPZ.
pub(super) fn texas(file: &BinaryFile) -> Result<Dataset, Error> {
    let path = &file.path;
    let (feats, labels) = if path.is_dir() {
        (path.join("feats"), path.join("labels"))
    } else if source::is_zip(path)? {
        return read_npz(file, "features", "labels");
    } else {
        (path.clone(), path.clone())
    };
    let bits = source::with_text(&feats, Some("feats"), |text| read_features(&feats, text))?;
    let numbers = source::with_text(&labels, Some("labels"), |text| read_labels(&labels, text))?;
    if bits.rows != numbers.len() {
        let (inputs, labels) = (bits.rows as u64, numbers.len() as u64);
        return Err(Error::LabelCount { file: path.clone(), inputs, labels });
    }
    let classes = classes::number(&labels, &numbers, gaps(file.classes))?;
    assemble(path, bits, classes, file.classes)
}
/// Bits packed along the rows, first bit highest, and labels.
pub(super) fn packed(file: &PackedBits) -> Result<Dataset, Error> {
    let path = &file.path;
    if file.width == 0 {
        let (needs, have) = ("at least 1".into(), "0".into());
        return Err(Error::Setting { setting: "width".into(), needs, have });
    }
    let mut archive = npy::Npz::open(path)?;
    let shape = archive.shape(&file.inputs)?;
    if shape.len() != 2 || shape[1] != file.width.div_ceil(8) as u64 {
        return Err(Error::ArrayShape {
            file: path.clone(),
            array: file.inputs.clone(),
            needs: format!("[records, {}] for {} bits", file.width.div_ceil(8), file.width),
            shape,
        });
    }
    let mut rows = BitRows::new(file.width);
    archive.bytes(&file.inputs, |row, bytes| {
        let words = rows.push(path)?;
        for (i, &byte) in bytes.iter().enumerate() {
            words[i / 8] |= u64::from(byte.reverse_bits()) << (8 * (i % 8));
        }
        let used = file.width % 64;
        let padding = if used == 0 { 0 } else { !0 << used };
        match words.last() {
            Some(last) if last & padding != 0 => Err(Error::Field {
                file: path.clone(),
                row,
                field: format!("bit {}", file.width),
                problem: FieldProblem::PaddingBit { width: file.width },
            }),
            _ => Ok(()),
        }
    })?;
    let classes = read_npz_labels(&mut archive, &file.labels, gaps(file.classes))?;
    assemble(path, rows.finish(), classes, file.classes)
}

fn assemble(
    path: &Path,
    bits: BitMatrix,
    classes: Classes,
    most_frequent: Option<usize>,
) -> Result<Dataset, Error> {
    if bits.rows != classes.labels.len() {
        let (inputs, labels) = (bits.rows as u64, classes.labels.len() as u64);
        return Err(Error::LabelCount { file: path.to_owned(), inputs, labels });
    }
    let columns = (0..bits.width)
        .map(|i| Column { name: format!("bit {i}"), kind: ColumnKind::Bit, first_input: i })
        .collect();
    super::named(path, columns, Inputs::Bits(bits), classes, most_frequent)
}
