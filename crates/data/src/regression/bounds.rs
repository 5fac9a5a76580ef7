//! What the user says of a table for regression: a TOML file, apart from the data, so that no bound can come from them.
use crate::Error;
use crate::dataset::written;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Public bounds of a table. Columns of the file that it does not name are not read.
///
/// ```toml
/// [columns.age]
/// lower = 0
/// upper = 110
/// missing = "midpoint"           # or a number; left out, a missing value is refused
///
/// [columns.ward]
/// categories = ["A", "B", "C"]   # the first is all zeros, each other has a column of 0 and 1
/// missing = "A"
///
/// [target]
/// name = "cost"
/// lower = 0
/// upper = 5000
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableBounds {
    /// What separates the fields of a CSV, one ASCII character.
    #[serde(default = "comma")]
    pub delimiter: char,
    /// Fields that mean a missing value, besides the nulls of Parquet.
    #[serde(default = "usual_missing")]
    pub missing_values: Vec<String>,
    /// Of each feature, by its name in the file. The order of the features is that of the file.
    pub columns: BTreeMap<String, ColumnBounds>,
    /// What is predicted.
    pub target: TargetBounds,
}
const fn comma() -> char {
    ','
}
fn usual_missing() -> Vec<String> {
    vec![String::new(), "NA".to_owned()]
}

/// A number between `lower` and `upper`, or one of `categories`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnBounds {
    /// Public lower bound; a number below it counts as it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<f64>,
    /// Public upper bound, above `lower`; a number above it counts as it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
    /// All categories, publicly known, at least two; any other is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub categories: Option<Vec<String>>,
    /// What a missing value counts as; left out, it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Missing>,
}
/// What a missing value counts as: a rule that looks at no other record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Missing {
    /// This number, within the bounds.
    Number(f64),
    /// `"midpoint"` of the bounds, or a category.
    Word(String),
}

/// The number to be predicted. A missing one is refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetBounds {
    /// Its column.
    pub name: String,
    /// Public lower bound; a number below it counts as it.
    pub lower: f64,
    /// Public upper bound, above `lower`; a number above it counts as it.
    pub upper: f64,
}

pub(super) fn refuse<T>(setting: String, needs: &str, have: String) -> Result<T, Error> {
    Err(Error::Setting { setting, needs: needs.to_owned(), have })
}

/// Checks that two bounds are finite and have room for arithmetic between them.
pub(super) fn with_room(place: &str, lower: f64, upper: f64) -> Result<(), Error> {
    let room = upper - lower;
    if lower.is_finite() && upper.is_finite() && room > 0.0 && room.is_normal() {
        return Ok(());
    }
    let have = format!("{} with upper {}", written(lower), written(upper));
    refuse(
        format!("{place}.lower"),
        "finite, below a finite upper and not all but equal to it",
        have,
    )
}

impl TableBounds {
    /// Reads the TOML file.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::LongSettings`], [`Error::Damaged`] saying what the file should hold.
    pub fn read(file: &Path) -> Result<Self, Error> {
        let text = crate::settings::text(file)?;
        toml::from_str(&text).map_err(|e| Error::Damaged {
            file: file.to_owned(),
            format: "TOML",
            reason: e.to_string().trim_end().to_owned(),
        })
    }
    pub(super) fn missing_rules(&self) -> BTreeMap<String, String> {
        let rule = |(name, column): (&String, &ColumnBounds)| {
            let rule = match column.missing.as_ref()? {
                Missing::Number(number) => written(*number),
                Missing::Word(word) => word.clone(),
            };
            Some((name.clone(), rule))
        };
        self.columns.iter().filter_map(rule).collect()
    }
}
