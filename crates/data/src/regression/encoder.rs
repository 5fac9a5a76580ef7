//! From the fields of a row to numbers within their bounds.
use super::bounds::{ColumnBounds, Missing, TableBounds, TargetBounds, refuse, with_room};
use super::rows::RowBlock;
use super::{Column, Counts, Group, Layout, Target};
use crate::dataset::written;
use crate::datasets::table::Value;
use crate::{Error, FieldProblem};
use std::path::Path;

/// Most categories of a column.
const CATEGORY_LIMIT: usize = 10_000;

/// What becomes of the fields of one column.
#[derive(Debug)]
enum Rule {
    Ignored,
    Target { lower: f64, upper: f64 },
    Number { first: usize, lower: f64, upper: f64, missing: Option<f64> },
    Category { first: usize, levels: Vec<String>, missing: Option<usize> },
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
    pub(super) file: &'a Path,
    names: Vec<String>,
    rules: Vec<Rule>,
    missing_values: Vec<String>,
    /// Whether what looks like a number may mean that there is none.
    a_number_may_be_missing: bool,
    pub(super) layout: Layout,
    /// Whether the file has the target.
    pub(super) has_target: bool,
}
impl<'a> Encoder<'a> {
    /// Fits bounds to the columns of the file.
    pub(super) fn new(
        file: &'a Path,
        bounds: &TableBounds,
        names: Vec<String>,
        needs_target: bool,
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
        let needed = bounds.columns.keys().chain(needs_target.then_some(&target.name));
        for column in needed {
            if !seen.contains(column.as_str()) {
                let (file, column) = (file.to_owned(), column.clone());
                return Err(Error::NoSuchColumn { file, column, have: names });
            }
        }
        let (mut columns, mut groups, mut rules) = (Vec::new(), Vec::new(), Vec::new());
        for name in &names {
            let rule = match bounds.columns.get(name) {
                Some(column) => checked_rule(name, column, columns.len())?,
                None if *name == target.name => {
                    Rule::Target { lower: target.lower, upper: target.upper }
                }
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
                Rule::Target { .. } | Rule::Ignored => {}
            }
            rules.push(rule);
        }
        let TargetBounds { name, lower, upper } = target.clone();
        let layout = Layout { columns, groups, target: Target { name, lower, upper } };
        let missing_values = bounds.missing_values.clone();
        let a_number_may_be_missing =
            missing_values.iter().any(|m| Value::Text(m.trim().as_bytes()).number().is_ok());
        let has_target = rules.iter().any(|r| matches!(r, Rule::Target { .. }));
        Ok(Self { file, names, rules, missing_values, a_number_may_be_missing, layout, has_target })
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
    /// For the rows of this file.
    pub(super) fn block(&self) -> RowBlock {
        RowBlock::new(self.layout.width(), self.has_target, self.width())
    }
    /// Whether any finite number in a column is what it looks like, so that [`Self::number`] may take it.
    pub(super) fn takes_numbers(&self, column: usize) -> bool {
        !self.a_number_may_be_missing
            && matches!(self.rules[column], Rule::Number { .. } | Rule::Target { .. })
    }
    /// Takes a finite number of the row at `at` of the block, in a column that [takes numbers](Self::takes_numbers).
    #[inline(always)]
    pub(super) fn number(&self, block: &mut RowBlock, at: usize, column: usize, number: f64) {
        match self.rules[column] {
            Rule::Target { lower, upper } => {
                block.clipped[column] += u64::from(number < lower || number > upper);
                block.targets[at] = within(number, lower, upper);
            }
            Rule::Number { first, lower, upper, .. } => {
                block.clipped[column] += u64::from(number < lower || number > upper);
                block.features[at * block.width + first] = within(number, lower, upper);
            }
            Rule::Ignored | Rule::Category { .. } => {}
        }
    }
    /// As [`Self::number`] for the rows of the block from the first on, up to a number that is not finite; how many were taken.
    #[cfg(feature = "parquet")]
    pub(super) fn numbers(
        &self,
        block: &mut RowBlock,
        column: usize,
        numbers: impl Iterator<Item = f64>,
    ) -> usize {
        let width = block.width;
        let (taken, moved) = match self.rules[column] {
            Rule::Target { lower, upper } => put(numbers, block.targets.iter_mut(), lower, upper),
            Rule::Number { first, lower, upper, .. } => {
                let places = block.features[first..].iter_mut().step_by(width);
                put(numbers, places, lower, upper)
            }
            Rule::Ignored | Rule::Category { .. } => (0, 0),
        };
        block.clipped[column] += moved;
        taken
    }
    /// Takes any field of the row at `at` of the block.
    pub(super) fn push(
        &self,
        block: &mut RowBlock,
        at: usize,
        column: usize,
        value: Value<'_>,
    ) -> Result<(), Error> {
        self.take(block, at, column, value).map_err(|problem| Error::Field {
            file: self.file.to_owned(),
            row: block.numbers[at],
            field: self.names[column].clone(),
            problem,
        })
    }
    fn take(
        &self,
        block: &mut RowBlock,
        at: usize,
        column: usize,
        value: Value<'_>,
    ) -> Result<(), FieldProblem> {
        let is_missing = match value {
            Value::Text(text) => self.missing_values.iter().any(|m| m.as_bytes() == text),
            Value::Number(_) => false,
            #[cfg(feature = "parquet")]
            Value::Null => true,
        };
        match &self.rules[column] {
            Rule::Ignored => {}
            Rule::Target { .. } => {
                let number = if is_missing { Err(FieldProblem::Missing) } else { value.number() };
                self.number(block, at, column, number?);
            }
            Rule::Number { missing, .. } => {
                let number = match (is_missing, missing) {
                    (false, _) => value.number()?,
                    (true, None) => return Err(FieldProblem::Missing),
                    (true, &Some(number)) => {
                        block.imputed[column] += 1;
                        number
                    }
                };
                self.number(block, at, column, number);
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
                    (true, None) => return Err(FieldProblem::Missing),
                    (true, missing) => {
                        block.imputed[column] += 1;
                        *missing
                    }
                };
                let level = level.ok_or(FieldProblem::UnknownLevel { levels: levels.len() })?;
                let first = at * block.width + first;
                let columns = &mut block.features[first..first + levels.len() - 1];
                columns.fill(0.0);
                if let Some(column) = level.checked_sub(1) {
                    columns[column] = 1.0;
                }
            }
        }
        Ok(())
    }
    /// Adds what was counted in a block.
    pub(super) fn count(&self, block: &RowBlock, counts: &mut Counts) {
        counts.rows += block.len() as u64;
        for (column, name) in self.names.iter().enumerate() {
            let of_column = [
                (block.clipped[column], &mut counts.clipped),
                (block.imputed[column], &mut counts.imputed),
            ];
            for (more, counts) in of_column.into_iter().filter(|(more, _)| *more > 0) {
                *counts.entry(name.clone()).or_default() += more;
            }
        }
    }
    /// A row of another number of fields.
    pub(super) fn field_count(&self, row: u64, have: usize) -> Error {
        Error::FieldCount { file: self.file.to_owned(), row, needs: self.width(), have }
    }
}

/// Of a finite number; `clamp` checks the bounds each time.
#[inline]
const fn within(number: f64, lower: f64, upper: f64) -> f64 {
    let number = if number < lower { lower } else { number };
    if number > upper { upper } else { number }
}

/// Puts numbers into their places, within their bounds; how many, and how many of them had to be moved.
#[cfg(feature = "parquet")]
fn put<'a>(
    numbers: impl Iterator<Item = f64>,
    places: impl Iterator<Item = &'a mut f64>,
    lower: f64,
    upper: f64,
) -> (usize, u64) {
    let (mut taken, mut moved) = (0, 0);
    for (number, place) in numbers.take_while(|x| x.is_finite()).zip(places) {
        moved += u64::from(number < lower || number > upper);
        *place = within(number, lower, upper);
        taken += 1;
    }
    (taken, moved)
}
