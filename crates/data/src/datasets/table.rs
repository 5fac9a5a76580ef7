//! Mixed tables: what the user says about them, and how columns become inputs.
use super::bits::{self, BitRows};
use super::classes::Classes;
use crate::dataset::written;
use crate::{Column, ColumnKind, Dataset, Error, FieldProblem, Inputs};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Most levels of a category, and most classes.
pub(super) const LEVEL_LIMIT: usize = 10_000;
/// Most inputs of a table with numbers (4 bytes each): 16 GiB.
const REAL_LIMIT: u64 = 1 << 32;

/// What the user says about one column: `kind = "bit"`, `"category"` or `"real"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ColumnSpec {
    /// 0 or 1 (also `false` and `true`); one input.
    Bit {},
    /// One of some levels; one input per level.
    Category {
        /// The levels, publicly known. Without them the distinct values of the file are taken, which is no private
        /// choice: say so where it matters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        levels: Option<Vec<String>>,
    },
    /// A number within public bounds, scaled to `[0, 1]`; one input.
    Real {
        /// Public lower bound.
        low: f64,
        /// Public upper bound, above `low`.
        high: f64,
        /// What to do with a value outside.
        #[serde(default)]
        outside: Outside,
    },
}
/// What to do with a number outside the public bounds of its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outside {
    /// An error naming row and field.
    #[default]
    Refuse,
    /// The nearer bound.
    Clamp,
}

/// A table with named columns (Parquet; CSV and NPZ have more settings).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The file.
    pub path: PathBuf,
    /// Name of the label column; its distinct values are the classes.
    pub label: String,
    /// Columns to leave out.
    #[serde(default)]
    pub ignore: Vec<String>,
    /// What columns hold. A column not named is a bit if it holds 0 and 1 only, a category if it holds text only; numbers need public bounds.
    #[serde(default)]
    pub columns: BTreeMap<String, ColumnSpec>,
    /// What every column not named in `columns` holds.
    #[serde(default)]
    pub other_columns: Option<ColumnSpec>,
    /// Keep the records of this many most frequent classes only.
    #[serde(default)]
    pub classes: Option<usize>,
}
/// A table in CSV (RFC 4180; also gzipped). Spaces around fields are dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CsvTable {
    /// The file.
    pub path: PathBuf,
    /// Name of the label column; its distinct values are the classes.
    pub label: String,
    /// Whether the first row names the columns; without it (and without `names`) they are `column 1`, `column 2` and so on.
    #[serde(default = "yes")]
    pub header: bool,
    /// Column names, in order, for a file without a header.
    #[serde(default)]
    pub names: Option<Vec<String>>,
    /// What separates fields, one ASCII character.
    #[serde(default = "comma")]
    pub delimiter: char,
    /// Lines at the top that are no part of the table.
    #[serde(default)]
    pub skip_lines: u64,
    /// Columns to leave out.
    #[serde(default)]
    pub ignore: Vec<String>,
    /// What columns hold; see [`Table::columns`].
    #[serde(default)]
    pub columns: BTreeMap<String, ColumnSpec>,
    /// What every column not named in `columns` holds.
    #[serde(default)]
    pub other_columns: Option<ColumnSpec>,
    /// Keep the records of this many most frequent classes only.
    #[serde(default)]
    pub classes: Option<usize>,
}
/// Arrays in NPZ: inputs `[records, columns]` of numbers, labels `[records]` of whole numbers or one-hot `[records, classes]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NpzTable {
    /// The file.
    pub path: PathBuf,
    /// Name of the array of inputs; its columns are `column 1`, `column 2` and so on.
    #[serde(default = "super::x")]
    pub inputs: String,
    /// Name of the array of labels.
    #[serde(default = "super::y")]
    pub labels: String,
    /// Columns to leave out.
    #[serde(default)]
    pub ignore: Vec<String>,
    /// What columns hold; see [`Table::columns`].
    #[serde(default)]
    pub columns: BTreeMap<String, ColumnSpec>,
    /// What every column not named in `columns` holds.
    #[serde(default)]
    pub other_columns: Option<ColumnSpec>,
    /// Keep the records of this many most frequent classes only.
    #[serde(default)]
    pub classes: Option<usize>,
}
const fn yes() -> bool {
    true
}
const fn comma() -> char {
    ','
}

/// What the user says about the columns, whatever the file format.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schema<'a> {
    pub(super) file: &'a Path,
    /// `None` where labels come from elsewhere.
    pub(super) label: Option<&'a str>,
    pub(super) ignore: &'a [String],
    pub(super) columns: &'a BTreeMap<String, ColumnSpec>,
    pub(super) other_columns: Option<&'a ColumnSpec>,
}

impl Schema<'_> {
    /// No column has two roles: label, left out, described.
    fn one_role_each(&self) -> Result<(), Error> {
        let refuse = |setting: String, needs: &str, have: String| {
            Err(Error::Setting { setting, needs: needs.to_owned(), have })
        };
        if let Some(both) = self.ignore.iter().find(|name| self.columns.contains_key(*name)) {
            let have = format!("a list with `{both}`");
            return refuse("ignore".to_owned(), "names that `columns` does not describe", have);
        }
        let (Some(label), needs) = (self.label, "columns other than the label") else {
            return Ok(());
        };
        if self.ignore.iter().any(|name| name == label) {
            return refuse("ignore".to_owned(), needs, format!("a list with the label `{label}`"));
        }
        if self.columns.contains_key(label) {
            let have = "what the label column holds".to_owned();
            return refuse(format!("columns.{label}"), needs, have);
        }
        Ok(())
    }
}

/// A table being read, row by row.
#[derive(Debug)]
pub(super) struct TableBuilder<'a> {
    schema: Schema<'a>,
    /// One per column of the file; `None` is ignored.
    columns: Vec<Option<ColumnBuilder>>,
    label: Option<usize>,
    records: u64,
}
impl<'a> TableBuilder<'a> {
    /// Checks the user's names against the file's.
    pub(super) fn new(schema: Schema<'a>, names: Vec<String>) -> Result<Self, Error> {
        let file = || schema.file.to_owned();
        let mut seen = std::collections::BTreeSet::new();
        if let Some(twice) = names.iter().find(|n| !seen.insert(n.as_str())) {
            return Err(Error::DuplicateColumn { file: file(), column: twice.clone() });
        }
        let asked = schema.columns.keys().chain(schema.ignore).map(String::as_str);
        for column in asked.chain(schema.label) {
            if !seen.contains(column) {
                let column = column.to_owned();
                return Err(Error::NoSuchColumn { file: file(), column, have: names });
            }
        }
        schema.one_role_each()?;
        let label = names.iter().position(|n| Some(n.as_str()) == schema.label);
        let mut columns = Vec::with_capacity(names.len());
        for (i, name) in names.into_iter().enumerate() {
            columns.push(if Some(i) == label {
                let classes = ColumnSpec::Category { levels: None };
                Some(ColumnBuilder::new(name, "label", Some(&classes))?)
            } else if schema.ignore.contains(&name) {
                None
            } else if let Some(spec) = schema.columns.get(&name) {
                let place = format!("columns.{name}");
                Some(ColumnBuilder::new(name, &place, Some(spec))?)
            } else {
                Some(ColumnBuilder::new(name, "other_columns", schema.other_columns)?)
            });
        }
        Ok(Self { schema, columns, label, records: 0 })
    }
    /// Number of columns in the file.
    pub(super) fn width(&self) -> usize {
        self.columns.len()
    }
    /// Names of the columns that are read.
    #[cfg(feature = "parquet")]
    pub(super) fn is_read(&self, column: usize) -> bool {
        self.columns.get(column).is_some_and(Option::is_some)
    }
    /// Counts a record; its fields follow.
    pub(super) fn start_record(&mut self) -> Result<(), Error> {
        self.records += 1;
        let limit = u64::from(u32::MAX);
        if self.records > limit {
            return Err(Error::TooManyRecords { file: self.schema.file.to_owned(), limit });
        }
        Ok(())
    }
    /// Adds one field; `row` is its row in the file.
    pub(super) fn push(&mut self, row: u64, column: usize, value: Value<'_>) -> Result<(), Error> {
        let Some(Some(builder)) = self.columns.get_mut(column) else { return Ok(()) };
        match builder.push(value) {
            Ok(()) => Ok(()),
            Err(Refused::Field(problem)) => {
                let (file, field) = (self.schema.file.to_owned(), builder.name.clone());
                Err(Error::Field { file, row, field, problem })
            }
            Err(Refused::TooManyLevels) => Err(Error::TooManyLevels {
                file: self.schema.file.to_owned(),
                column: builder.name.clone(),
                limit: LEVEL_LIMIT,
            }),
        }
    }
    /// Encodes the columns. `classes` are given where the table has no label column.
    pub(super) fn finish(
        mut self,
        classes: Option<Classes>,
        most_frequent: Option<usize>,
    ) -> Result<Dataset, Error> {
        let file = self.schema.file;
        let records = self.records as usize;
        if records == 0 {
            return Err(Error::NoRecords { file: file.to_owned() });
        }
        let classes = match (classes, self.label) {
            (Some(classes), _) => classes,
            (None, Some(label)) => match self.columns[label].take().map(|c| c.state) {
                Some(State::Levels { levels, codes, .. }) => {
                    let (names, labels) = sorted(&levels, &codes);
                    if names.len() < 2 {
                        let (file, have) = (file.to_owned(), names.len());
                        return Err(Error::TooFewClasses { file, needs: 2, have });
                    }
                    Classes { labels, names }
                }
                _ => return Err(Error::NoRecords { file: file.to_owned() }),
            },
            (None, None) => return Err(Error::NoRecords { file: file.to_owned() }),
        };
        if classes.labels.len() != records {
            let (inputs, labels) = (records as u64, classes.labels.len() as u64);
            return Err(Error::LabelCount { file: file.to_owned(), inputs, labels });
        }
        let mut unbounded = Vec::new();
        let (mut columns, mut data, mut width) = (Vec::new(), Vec::new(), 0);
        for builder in self.columns.into_iter().flatten() {
            let name = builder.name.clone();
            match builder.finish() {
                Some((kind, values)) => {
                    let inputs = kind.inputs();
                    columns.push(Column { name, kind, first_input: width });
                    data.push(values);
                    width += inputs;
                }
                None => unbounded.push(name),
            }
        }
        if !unbounded.is_empty() {
            return Err(Error::NeedsBounds { file: file.to_owned(), columns: unbounded });
        }
        if columns.is_empty() {
            return Err(Error::NoInputs { file: file.to_owned() });
        }
        let inputs = if data.iter().any(|d| matches!(d, Values::Reals(_))) {
            reals(file, records, width, &columns, &data)?
        } else {
            bit_matrix(file, records, width, &columns, &data)?
        };
        super::named(file, columns, inputs, classes, most_frequent)
    }
}

fn bit_matrix(
    file: &Path,
    records: usize,
    width: usize,
    columns: &[Column],
    data: &[Values],
) -> Result<Inputs, Error> {
    let mut rows = BitRows::new(width);
    for i in 0..records {
        let words = rows.push(file)?;
        for (column, values) in columns.iter().zip(data) {
            let (at, bit) = match values {
                Values::Bits(bits) => (column.first_input, bits.get(i)),
                Values::Codes(codes) => (column.first_input + codes[i] as usize, true),
                Values::Reals(_) => continue,
            };
            words[at / 64] |= u64::from(bit) << (at % 64);
        }
    }
    Ok(Inputs::Bits(rows.finish()))
}
fn reals(
    file: &Path,
    records: usize,
    width: usize,
    columns: &[Column],
    data: &[Values],
) -> Result<Inputs, Error> {
    if records as u64 * width as u64 > REAL_LIMIT {
        return Err(Error::TooLarge {
            file: file.to_owned(),
            records: records as u64,
            width: width as u64,
            limit: REAL_LIMIT,
        });
    }
    let mut values = vec![0.0_f32; records * width];
    for (i, row) in values.chunks_exact_mut(width).enumerate() {
        for (column, values) in columns.iter().zip(data) {
            match values {
                Values::Bits(bits) => row[column.first_input] = f32::from(u8::from(bits.get(i))),
                Values::Codes(codes) => row[column.first_input + codes[i] as usize] = 1.0,
                Values::Reals(reals) => row[column.first_input] = reals[i],
            }
        }
    }
    Ok(Inputs::Reals { width, values })
}

/// One field as its file holds it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    /// Bytes of a text file, trimmed.
    Text(&'a [u8]),
    /// A number of a typed file.
    Number(f64),
    /// A missing value of a typed file.
    #[cfg(feature = "parquet")]
    Null,
}
impl Value<'_> {
    fn bit(self) -> Result<bool, FieldProblem> {
        match self {
            Self::Text(b"false" | b"False" | b"FALSE") => Ok(false),
            Self::Text(b"true" | b"True" | b"TRUE") => Ok(true),
            Self::Text(text) => bits::parse(text),
            Self::Number(number) if !number.is_finite() => Err(FieldProblem::NotFinite),
            Self::Number(number) => bits::from_number(number).ok_or(FieldProblem::NotABit),
            #[cfg(feature = "parquet")]
            Self::Null => Err(FieldProblem::Empty),
        }
    }
    pub(crate) fn number(self) -> Result<f64, FieldProblem> {
        let number = match self {
            Self::Text(b"") => return Err(FieldProblem::Empty),
            Self::Text(text) => {
                fast_float2::parse(text).map_err(|_| match std::str::from_utf8(text) {
                    Ok(_) => FieldProblem::NotANumber,
                    Err(_) => FieldProblem::NotUtf8,
                })?
            }
            Self::Number(number) => number,
            #[cfg(feature = "parquet")]
            Self::Null => return Err(FieldProblem::Empty),
        };
        if number.is_finite() { Ok(number) } else { Err(FieldProblem::NotFinite) }
    }
}

#[derive(Debug, Default)]
struct Bits {
    words: Vec<u64>,
    len: usize,
}
impl Bits {
    fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        if let Some(last) = self.words.last_mut() {
            *last |= u64::from(bit) << (self.len % 64);
        }
        self.len += 1;
    }
    fn get(&self, i: usize) -> bool {
        self.words[i / 64] >> (i % 64) & 1 == 1
    }
}

/// The values of a finished column.
#[derive(Debug)]
enum Values {
    Bits(Bits),
    Codes(Vec<u32>),
    Reals(Vec<f32>),
}

#[derive(Debug)]
struct ColumnBuilder {
    name: String,
    state: State,
}
#[derive(Debug)]
enum State {
    /// Nothing said, and only `0` and `1` so far.
    Undeclared(Bits),
    /// A category, said or found.
    Levels {
        levels: Vec<String>,
        /// Looked up only, never walked.
        index: HashMap<String, u32>,
        codes: Vec<u32>,
        origin: Origin,
    },
    /// Nothing said, only numbers and too many different ones to be a category.
    Unbounded,
    Bits(Bits),
    Real {
        low: f64,
        high: f64,
        outside: Outside,
        values: Vec<f32>,
    },
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The user named the levels.
    Named,
    /// The user said it is a category.
    Category,
    /// Found text.
    Found,
    /// Found numbers only.
    FoundNumbers,
}
enum Refused {
    Field(FieldProblem),
    TooManyLevels,
}
impl From<FieldProblem> for Refused {
    fn from(problem: FieldProblem) -> Self {
        Self::Field(problem)
    }
}

impl ColumnBuilder {
    /// `place` is where the `dataset` table says what the column holds.
    fn new(name: String, place: &str, spec: Option<&ColumnSpec>) -> Result<Self, Error> {
        let refuse = |key: &str, needs: &str, have| {
            let setting = format!("{place}.{key}");
            Err(Error::Setting { setting, needs: needs.to_owned(), have })
        };
        let state = match spec {
            None => State::Undeclared(Bits::default()),
            Some(ColumnSpec::Bit {}) => State::Bits(Bits::default()),
            Some(ColumnSpec::Real { low, high, outside }) => {
                let have = || format!("{} with high {}", written(*low), written(*high));
                if !(low.is_finite() && high.is_finite() && low < high) {
                    return refuse("low", "finite and below a finite high", have());
                }
                if !(high - low).is_finite() {
                    return refuse("low", "such that high - low is finite", have());
                }
                State::Real { low: *low, high: *high, outside: *outside, values: Vec::new() }
            }
            Some(ColumnSpec::Category { levels }) => {
                let levels = levels.clone();
                let origin = if levels.is_some() { Origin::Named } else { Origin::Category };
                let levels = levels.unwrap_or_default();
                let index: HashMap<String, u32> =
                    levels.iter().enumerate().map(|(i, l)| (l.clone(), i as u32)).collect();
                let named = origin == Origin::Named;
                if named && (levels.is_empty() || levels.len() > LEVEL_LIMIT) {
                    let have = format!("a list of {}", levels.len());
                    return refuse("levels", "1 to 10000 names", have);
                }
                if index.len() != levels.len() {
                    let have = "a list with repetitions".to_owned();
                    return refuse("levels", "distinct names", have);
                }
                State::Levels { levels, index, codes: Vec::new(), origin }
            }
        };
        Ok(Self { name, state })
    }
    fn push(&mut self, value: Value<'_>) -> Result<(), Refused> {
        match &mut self.state {
            State::Undeclared(bits) => match value.bit() {
                Ok(bit) if !matches!(value, Value::Text(b"true" | b"false")) => bits.push(bit),
                Err(problem @ FieldProblem::Empty) => return Err(problem.into()),
                _ => {
                    let codes = (0..bits.len).map(|i| u32::from(bits.get(i))).collect();
                    let levels: Vec<String> =
                        if bits.len == 0 { Vec::new() } else { vec!["0".into(), "1".into()] };
                    let index = levels.iter().cloned().zip(0..).collect();
                    let origin = Origin::FoundNumbers;
                    self.state = State::Levels { levels, index, codes, origin };
                    return self.push(value);
                }
            },
            State::Bits(bits) => bits.push(value.bit()?),
            State::Real { low, high, outside, values } => {
                let number = value.number()?;
                if !(*low..=*high).contains(&number) && *outside == Outside::Refuse {
                    let (low, high) = (written(*low), written(*high));
                    return Err(FieldProblem::OutsideBounds { low, high }.into());
                }
                values.push(((number.clamp(*low, *high) - *low) / (*high - *low)) as f32);
            }
            State::Unbounded => {
                value.number().map_err(FieldProblem::among_numbers)?;
            }
            State::Levels { levels, index, codes, origin } => {
                if *origin == Origin::FoundNumbers {
                    match value.number() {
                        Ok(_) => {}
                        Err(FieldProblem::NotANumber) if levels.is_empty() => {
                            *origin = Origin::Found;
                        }
                        Err(problem) => return Err(problem.among_numbers().into()),
                    }
                }
                let written;
                let text = match value {
                    Value::Text(text) => {
                        std::str::from_utf8(text).map_err(|_| FieldProblem::NotUtf8)?
                    }
                    Value::Number(number) => {
                        if !number.is_finite() {
                            return Err(FieldProblem::NotFinite.into());
                        }
                        written = number.to_string();
                        &written
                    }
                    #[cfg(feature = "parquet")]
                    Value::Null => return Err(FieldProblem::Empty.into()),
                };
                if let Some(&code) = index.get(text) {
                    codes.push(code);
                } else if *origin == Origin::Named {
                    return Err(FieldProblem::UnknownLevel { levels: levels.len() }.into());
                } else if text.is_empty() {
                    return Err(FieldProblem::Empty.into());
                } else if *origin == Origin::Found && value.number().is_ok() {
                    return Err(FieldProblem::NumberAmongText.into());
                } else if levels.len() == LEVEL_LIMIT {
                    if *origin != Origin::FoundNumbers {
                        return Err(Refused::TooManyLevels);
                    }
                    self.state = State::Unbounded;
                } else {
                    let code = levels.len() as u32;
                    levels.push(text.to_owned());
                    index.insert(text.to_owned(), code);
                    codes.push(code);
                }
            }
        }
        Ok(())
    }
    /// `None`: numbers without bounds.
    fn finish(self) -> Option<(ColumnKind, Values)> {
        match self.state {
            State::Undeclared(bits) | State::Bits(bits) => {
                Some((ColumnKind::Bit, Values::Bits(bits)))
            }
            State::Real { low, high, values, .. } => {
                Some((ColumnKind::Real { low, high }, Values::Reals(values)))
            }
            State::Unbounded | State::Levels { origin: Origin::FoundNumbers, .. } => None,
            State::Levels { levels, codes, origin: Origin::Named, .. } => {
                Some((ColumnKind::Category(levels), Values::Codes(codes)))
            }
            State::Levels { levels, codes, .. } => {
                let (levels, codes) = sorted(&levels, &codes);
                Some((ColumnKind::Category(levels), Values::Codes(codes)))
            }
        }
    }
}

/// Levels in numeric order if all are numbers, else in byte order; unused ones (there may be two) dropped.
fn sorted(levels: &[String], codes: &[u32]) -> (Vec<String>, Vec<u32>) {
    let mut used = vec![false; levels.len()];
    codes.iter().for_each(|&c| used[c as usize] = true);
    let numbers: Option<Vec<f64>> = levels.iter().map(|l| l.parse().ok()).collect();
    let mut order: Vec<usize> = (0..levels.len()).filter(|&i| used[i]).collect();
    order.sort_by(|&a, &b| {
        let by_number = numbers.as_ref().map(|n| n[a].total_cmp(&n[b]));
        by_number.unwrap_or(std::cmp::Ordering::Equal).then_with(|| levels[a].cmp(&levels[b]))
    });
    let mut place = vec![0; levels.len()];
    for (new, &old) in order.iter().enumerate() {
        place[old] = new as u32;
    }
    let names = order.iter().map(|&i| levels[i].clone()).collect();
    (names, codes.iter().map(|&c| place[c as usize]).collect())
}
