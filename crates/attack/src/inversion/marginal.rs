//! What an attacker knows of an attribute before the attack.
use crate::Error;
use dosimeter_data::regression::{Group, RegressionTable};

/// Values of an attribute, each a number for each of its columns, and how often they occur.
#[derive(Debug, Clone, PartialEq)]
pub struct Marginal {
    first: usize,
    /// `[values][columns]`.
    values: Vec<Vec<f64>>,
    /// Natural logarithm of each share.
    log_shares: Vec<f64>,
}
impl Marginal {
    /// Of an attribute whose value `i` makes up `shares[i]` of a population, a publicly known number. All columns of the attribute are
    /// set together.
    ///
    /// # Errors
    /// [`Error::WrongLength`], [`Error::Setting`] unless shares are finite, not below 0 and not all 0; they need not sum to 1.
    pub fn new(group: &Group, shares: &[f64]) -> Result<Self, Error> {
        let (needed, have) = (group.levels.len(), shares.len());
        if needed != have {
            return Err(Error::WrongLength { what: "shares of an attribute", needed, have });
        }
        let values = group.levels.iter().map(|level| level.values.clone()).collect();
        Self::of(group.columns.start, values, shares)
    }
    /// With the shares that a table has. A value that is not there has share 0 and is never guessed.
    ///
    /// # Errors
    /// [`Error::Setting`] for a table in which no row has a value of the attribute.
    pub fn of_group(group: &Group, table: &RegressionTable) -> Result<Self, Error> {
        let mut counts = vec![0.0; group.levels.len()];
        for (features, _) in table.rows() {
            if let Some(level) = group.level_of(features) {
                counts[level] += 1.0;
            }
        }
        Self::new(group, &counts)
    }
    /// Of the number in `column`: the means of `bins` equal shares of the table's rows by its size.
    ///
    /// # Errors
    /// [`Error::Setting`] for a column that there is not, no bins, or fewer rows than bins.
    pub fn of_number(column: usize, table: &RegressionTable, bins: usize) -> Result<Self, Error> {
        let width = table.layout.width();
        let attack = "inversion";
        if column >= width {
            let (field, needed, have) = ("column", "a column of the table", column as f64);
            return Err(Error::Setting { attack, field, needed, have });
        }
        if bins == 0 || bins > table.len() {
            let (field, needed, have) = ("bins", "from 1 to the number of rows", bins as f64);
            return Err(Error::Setting { attack, field, needed, have });
        }
        let mut sorted: Vec<f64> = table.rows().map(|(x, _)| x[column]).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let ends = |i: usize| i * sorted.len() / bins;
        let parts = (0..bins).map(|i| &sorted[ends(i)..ends(i + 1)]);
        let values = parts.clone().map(|p| vec![p.iter().sum::<f64>() / p.len() as f64]).collect();
        let shares: Vec<f64> = parts.map(|p| p.len() as f64).collect();
        Self::of(column, values, &shares)
    }
    fn of(first: usize, values: Vec<Vec<f64>>, shares: &[f64]) -> Result<Self, Error> {
        let all: f64 = shares.iter().sum();
        if !(all > 0.0 && all.is_finite() && shares.iter().all(|s| *s >= 0.0)) {
            let (attack, field) = ("inversion", "sum of shares");
            let needed = "finite and above 0, and no share below 0";
            return Err(Error::Setting { attack, field, needed, have: all });
        }
        let log_shares = shares.iter().map(|s| (s / all).ln()).collect();
        Ok(Self { first, values, log_shares })
    }
    /// Number of values.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.values.len()
    }
    /// Never: there is a value.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
    /// The columns that hold the attribute.
    #[must_use]
    pub fn columns(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.values.first().map_or(0, Vec::len)
    }
    /// Share of each value.
    #[must_use]
    pub fn shares(&self) -> Vec<f64> {
        self.log_shares.iter().map(|s| s.exp()).collect()
    }
    /// The most frequent value, the first of equals: the guess of one who knows nothing else.
    #[must_use]
    pub fn mode(&self) -> usize {
        let by_share = |a: &usize, b: &usize| self.log_shares[*a].total_cmp(&self.log_shares[*b]);
        (0..self.len()).rev().max_by(by_share).unwrap_or_default()
    }
    /// The value that a row holds.
    #[must_use]
    pub fn value_of(&self, features: &[f64]) -> Option<usize> {
        let held = features.get(self.columns())?;
        self.values.iter().position(|value| value == held)
    }
    /// Writes a value to its columns and gives the logarithm of its share.
    pub(super) fn set(&self, row: &mut [f64], value: usize) -> f64 {
        row[self.columns()].copy_from_slice(&self.values[value]);
        self.log_shares[value]
    }
}
