//! Mixed tables: what the user says about them, and how columns become inputs.
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

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
    /// What columns hold. A column not named is a bit if it holds 0 and 1 only, a category if it holds text; numbers need public bounds.
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
