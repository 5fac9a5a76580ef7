//! What the user says of a table for regression: a TOML file, apart from the data, so that no bound can come from them.
use super::{Column, Counts, Group, Layout, Target, count};
use crate::dataset::written;
use crate::datasets::table::Value;
use crate::{Error, FieldProblem};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Most categories of a column.
const CATEGORY_LIMIT: usize = 10_000;

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

fn refuse<T>(setting: String, needs: &str, have: String) -> Result<T, Error> {
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

/// What becomes of the fields of one column.
#[derive(Debug)]
enum Rule {
    Ignored,
    Target,
    Number { first: usize, lower: f64, upper: f64, missing: Option<f64> },
    Category { first: usize, levels: Vec<String>, missing: Option<usize> },
}

impl TableBounds {
    /// Reads the TOML file.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Damaged`] saying what the file should hold.
    pub fn read(file: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(file).map_err(Error::read(file))?;
        toml::from_str(&text).map_err(|e| Error::Damaged {
            file: file.to_owned(),
            format: "TOML",
            reason: e.to_string().trim_end().to_owned(),
        })
    }
}
/// `None`: a number.
fn checked_categories(place: &str, column: &ColumnBounds) -> Result<Option<Vec<String>>, Error> {
    let Some(categories) = &column.categories else { return Ok(None) };
    if column.lower.is_some() || column.upper.is_some() {
        let have = "given beside `lower` or `upper`".to_owned();
        return refuse(
            format!("{place}.categories"),
            "no bounds: it is a category or a number",
            have,
        );
    }
    let distinct: std::collections::BTreeSet<&String> = categories.iter().collect();
    if categories.len() < 2
        || categories.len() > CATEGORY_LIMIT
        || distinct.len() != categories.len()
        || categories.iter().any(|c| c.trim().is_empty() || c.trim() != c)
    {
        let have = format!("a list of {}, {} of them different", categories.len(), distinct.len());
        let needs = "2 to 10000 different names, not empty and without spaces around";
        return refuse(format!("{place}.categories"), needs, have);
    }
    Ok(Some(categories.clone()))
}
fn checked_rule(name: &str, column: &ColumnBounds, first: usize) -> Result<Rule, Error> {
    let place = format!("columns.{name}");
    let setting = format!("{place}.missing");
    if let Some(levels) = checked_categories(&place, column)? {
        let missing = match &column.missing {
            None => None,
            Some(Missing::Word(word)) => match levels.iter().position(|l| l == word) {
                None => return refuse(setting, "one of the categories", format!("`{word}`")),
                found => found,
            },
            Some(Missing::Number(x)) => {
                return refuse(setting, "one of the categories, in quotes", written(*x));
            }
        };
        return Ok(Rule::Category { first, levels, missing });
    }
    let (Some(lower), Some(upper)) = (column.lower, column.upper) else {
        let needs = "`lower` and `upper` of a number, or `categories`; bounds taken from the data would leak it";
        return refuse(place, needs, "without them".to_owned());
    };
    with_room(&place, lower, upper)?;
    let missing = match &column.missing {
        None => None,
        Some(Missing::Word(word)) if word == "midpoint" => Some(lower.midpoint(upper)),
        Some(Missing::Word(word)) => {
            let needs = "a number within the bounds, or \"midpoint\"";
            return refuse(setting, needs, format!("`{word}`"));
        }
        Some(Missing::Number(x)) if (lower..=upper).contains(x) => Some(*x),
        Some(Missing::Number(x)) => {
            return refuse(setting, "a number within the bounds, or \"midpoint\"", written(*x));
        }
    };
    Ok(Rule::Number { first, lower, upper, missing })
}

/// Turns the fields of a row into numbers within their bounds.
#[derive(Debug)]
pub(super) struct Encoder<'a> {
    file: &'a Path,
    names: Vec<String>,
    rules: Vec<Rule>,
    missing_values: Vec<String>,
    pub(super) layout: Layout,
    pub(super) counts: Counts,
    /// The current row.
    pub(super) features: Vec<f64>,
    pub(super) target: f64,
}
impl<'a> Encoder<'a> {
    /// Fits bounds to the columns of the file.
    pub(super) fn new(
        file: &'a Path,
        bounds: &TableBounds,
        names: Vec<String>,
    ) -> Result<Self, Error> {
        let mut seen = std::collections::BTreeSet::new();
        if let Some(twice) = names.iter().find(|n| !seen.insert(n.as_str())) {
            return Err(Error::DuplicateColumn { file: file.to_owned(), column: twice.clone() });
        }
        let target = &bounds.target;
        with_room("target", target.lower, target.upper)?;
        if bounds.columns.contains_key(&target.name) {
            let have = "also the target".to_owned();
            return refuse(format!("columns.{}", target.name), "a feature", have);
        }
        if bounds.columns.is_empty() {
            return refuse("columns".to_owned(), "at least one feature", "empty".to_owned());
        }
        for column in bounds.columns.keys().chain([&target.name]) {
            if !seen.contains(column.as_str()) {
                let (file, column) = (file.to_owned(), column.clone());
                return Err(Error::NoSuchColumn { file, column, have: names });
            }
        }
        let (mut columns, mut groups, mut rules) = (Vec::new(), Vec::new(), Vec::new());
        for name in &names {
            let rule = match bounds.columns.get(name) {
                Some(column) => checked_rule(name, column, columns.len())?,
                None if *name == target.name => Rule::Target,
                None => Rule::Ignored,
            };
            match &rule {
                Rule::Number { lower, upper, .. } => {
                    let (name, lower, upper) = (name.clone(), *lower, *upper);
                    columns.push(Column { name, lower, upper, group: None });
                }
                Rule::Category { first, levels, .. } => {
                    let group = Some(groups.len());
                    columns.extend(levels[1..].iter().map(|level| Column {
                        name: format!("{name} {level}"),
                        lower: 0.0,
                        upper: 1.0,
                        group,
                    }));
                    groups.push(Group::one_hot(name, *first, levels));
                }
                Rule::Target | Rule::Ignored => {}
            }
            rules.push(rule);
        }
        let TargetBounds { name, lower, upper } = target.clone();
        let features = vec![0.0; columns.len()];
        let layout = Layout { columns, groups, target: Target { name, lower, upper } };
        let (counts, missing_values) = (Counts::default(), bounds.missing_values.clone());
        Ok(Self { file, names, rules, missing_values, layout, counts, features, target: f64::NAN })
    }
    /// Columns of the file.
    pub(super) const fn width(&self) -> usize {
        self.names.len()
    }
    /// Columns of the file that are read, ascending.
    #[cfg(feature = "parquet")]
    pub(super) fn read(&self) -> Vec<usize> {
        let rules = self.rules.iter().enumerate();
        rules.filter(|(_, rule)| !matches!(rule, Rule::Ignored)).map(|(i, _)| i).collect()
    }
    pub(super) fn start(&mut self) {
        self.counts.rows += 1;
    }
    /// Takes one field; `row` is its row in the file.
    pub(super) fn push(&mut self, row: u64, column: usize, value: Value<'_>) -> Result<(), Error> {
        let name = &self.names[column];
        let refused = |problem| {
            let (file, field) = (self.file.to_owned(), name.clone());
            Err(Error::Field { file, row, field, problem })
        };
        let is_missing = match value {
            Value::Text(text) => self.missing_values.iter().any(|m| m.as_bytes() == text),
            Value::Number(_) => false,
            #[cfg(feature = "parquet")]
            Value::Null => true,
        };
        match &self.rules[column] {
            Rule::Ignored => {}
            Rule::Target => {
                let number = if is_missing { Err(FieldProblem::Missing) } else { value.number() };
                let number = match number {
                    Ok(number) => number,
                    Err(problem) => return refused(problem),
                };
                let Target { lower, upper, .. } = self.layout.target;
                if !(lower..=upper).contains(&number) {
                    count(&mut self.counts.clipped, name);
                }
                self.target = number.clamp(lower, upper);
            }
            Rule::Number { first, lower, upper, missing } => {
                let number = match (is_missing, missing) {
                    (false, _) => value.number(),
                    (true, None) => Err(FieldProblem::Missing),
                    (true, &Some(number)) => {
                        count(&mut self.counts.imputed, name);
                        Ok(number)
                    }
                };
                let number = match number {
                    Ok(number) => number,
                    Err(problem) => return refused(problem),
                };
                if !(*lower..=*upper).contains(&number) {
                    count(&mut self.counts.clipped, name);
                }
                self.features[*first] = number.clamp(*lower, *upper);
            }
            Rule::Category { first, levels, missing } => {
                let written;
                let text = match value {
                    Value::Text(text) => text,
                    Value::Number(number) => {
                        written = number.to_string();
                        written.as_bytes()
                    }
                    #[cfg(feature = "parquet")]
                    Value::Null => b"",
                };
                let level = match (is_missing, missing) {
                    (false, _) => levels.iter().position(|l| l.as_bytes() == text),
                    (true, None) => return refused(FieldProblem::Missing),
                    (true, missing) => {
                        count(&mut self.counts.imputed, name);
                        *missing
                    }
                };
                let Some(level) = level else {
                    return refused(FieldProblem::UnknownLevel { levels: levels.len() });
                };
                let columns = &mut self.features[*first..*first + levels.len() - 1];
                columns.fill(0.0);
                if let Some(column) = level.checked_sub(1) {
                    columns[column] = 1.0;
                }
            }
        }
        Ok(())
    }
}
