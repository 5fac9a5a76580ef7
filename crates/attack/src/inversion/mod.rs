//! Model inversion: an attribute of a record, guessed from a model, the record's other attributes and its true response.
//!
//! What a guess is worth is what it adds to guessing without the model: [`Discriminant`] and the prior's mode are to be shown beside every
//! accuracy, and patients whom the model never saw beside those it was fitted to. A model that says much about everybody inverts well on
//! both: that is what it is for, and differential privacy does not promise against it.
//!
//! # Source
//! Fredrikson, Lantz, Jha, Lin, Page and Ristenpart, *Privacy in Pharmacogenetics*, USENIX Security 2014; Wu et al., arXiv:1512.06388.
mod discriminant;
mod marginal;

pub use discriminant::Discriminant;
pub use marginal::Marginal;

use crate::Error;
use dosimeter_audit::Interval;
use dosimeter_audit::interval::clopper_pearson;
use dosimeter_data::Seed;
use dosimeter_data::regression::RegressionTable;
use rayon::prelude::*;

/// How likely a response is where the model says another.
#[derive(Debug, Clone, PartialEq)]
pub enum ErrorModel {
    /// The response is the model's answer and a Gaussian error of this standard deviation, above 0.
    Gaussian {
        /// In the units of the response.
        deviation: f64,
    },
    /// Model and response are classes, numbered from 0: the share of records of true class `response` among those the model puts in class
    /// `answer` is `shares[answer][response]`.
    Confusion {
        /// `[classes][classes]`, each row a distribution.
        shares: Vec<Vec<f64>>,
    },
    /// Only candidates whose answer is the response, as near as this, count.
    Exact {
        /// In the units of the response, 0 or more.
        tolerance: f64,
    },
}
impl ErrorModel {
    fn log_likelihood(&self, response: f64, answer: f64) -> f64 {
        match self {
            Self::Gaussian { deviation } => {
                let error = (response - answer) / deviation;
                -0.5 * error * error
            }
            Self::Confusion { shares } => {
                let class =
                    |x: f64| if x >= 0.0 && x.fract() == 0.0 { x as usize } else { usize::MAX };
                let row = shares.get(class(answer));
                row.and_then(|row| row.get(class(response))).map_or(f64::NEG_INFINITY, |p| p.ln())
            }
            Self::Exact { tolerance } => {
                if (response - answer).abs() <= *tolerance {
                    0.0
                } else {
                    f64::NEG_INFINITY
                }
            }
        }
    }
    fn check(&self) -> Result<(), Error> {
        let (field, needed, have, holds) = match self {
            Self::Gaussian { deviation: x } => {
                ("deviation", "finite and above 0", *x, *x > 0.0 && x.is_finite())
            }
            Self::Exact { tolerance: x } => {
                ("tolerance", "finite and not below 0", *x, *x >= 0.0 && x.is_finite())
            }
            Self::Confusion { shares } => {
                let sums = shares.iter().map(|row| {
                    let whole = row.len() == shares.len() && row.iter().all(|p| *p >= 0.0);
                    if whole { row.iter().sum::<f64>() } else { f64::NAN }
                });
                let off = sums.map(|s| s - 1.0).find(|off| off.is_nan() || off.abs() > 1e-9);
                let off = off.unwrap_or(0.0);
                ("shares", "as many distributions as classes", 1.0 + off, off.abs() <= 0.0)
            }
        };
        let attack = "inversion";
        if holds { Ok(()) } else { Err(Error::Setting { attack, field, needed, have }) }
    }
}

/// Guesses the value of `target` that makes prior times likelihood greatest, summed over the values of attributes that are not known.
#[derive(Debug, Clone, PartialEq)]
pub struct Inversion {
    target: Marginal,
    unknown: Vec<Marginal>,
    errors: ErrorModel,
}

/// Combinations of unknown values beyond which the sum is refused.
const MOST_COMBINATIONS: usize = 1_000_000;

impl Inversion {
    /// `unknown` attributes are summed over as if independent of each other, each with its marginal; all others are known.
    ///
    /// # Errors
    /// [`Error::Setting`] for an error model out of its range, attributes that share a column, and more than a million combinations.
    pub fn new(
        target: Marginal,
        unknown: Vec<Marginal>,
        errors: ErrorModel,
    ) -> Result<Self, Error> {
        errors.check()?;
        let setting = |field, needed, have: usize| Error::Setting {
            attack: "inversion",
            field,
            needed,
            have: have as f64,
        };
        let combinations = unknown.iter().fold(1_usize, |n, m| n.saturating_mul(m.len()));
        if combinations > MOST_COMBINATIONS {
            return Err(setting(
                "combinations of unknown values",
                "at most 1,000,000",
                combinations,
            ));
        }
        let mut columns: Vec<usize> =
            unknown.iter().chain([&target]).flat_map(Marginal::columns).collect();
        let all = columns.len();
        columns.sort_unstable();
        columns.dedup();
        if columns.len() < all {
            return Err(setting("unknown", "attributes without a common column", all));
        }
        Ok(Self { target, unknown, errors })
    }
    /// The place of the guess among the target's values; the first of equals, and none if no value can be right.
    /// What the record holds in the columns of the target and of unknown attributes is not read.
    pub fn guess(
        &self,
        features: &[f64],
        response: f64,
        model: &(dyn Fn(&[f64]) -> f64 + Sync),
    ) -> Option<usize> {
        let mut row = features.to_vec();
        let mut best: Option<(f64, usize)> = None;
        for value in 0..self.target.len() {
            let log_prior = self.target.set(&mut row, value);
            let score = log_prior + self.log_likelihood(&mut row, response, model, 0);
            if score > best.map_or(f64::NEG_INFINITY, |b| b.0) {
                best = Some((score, value));
            }
        }
        best.map(|b| b.1)
    }
    fn log_likelihood(
        &self,
        row: &mut [f64],
        response: f64,
        model: &dyn Fn(&[f64]) -> f64,
        next: usize,
    ) -> f64 {
        let Some(attribute) = self.unknown.get(next) else {
            return self.errors.log_likelihood(response, model(row));
        };
        let terms = (0..attribute.len()).map(|value| {
            let log_weight = attribute.set(row, value);
            log_weight + self.log_likelihood(row, response, model, next + 1)
        });
        log_sum(terms)
    }
    /// How many of the table's rows are guessed right.
    ///
    /// # Errors
    /// As [`Accuracy::of`].
    pub fn accuracy(
        &self,
        table: &RegressionTable,
        model: &(dyn Fn(&[f64]) -> f64 + Sync),
        confidence: f64,
    ) -> Result<Accuracy, Error> {
        Accuracy::of(table, &self.target, confidence, &|x, y| self.guess(x, y, model))
    }
    /// The same with the responses dealt out anew among the rows: what is left of the accuracy comes from the prior and from nothing else.
    ///
    /// # Errors
    /// As [`Accuracy::of`].
    pub fn null(
        &self,
        table: &RegressionTable,
        model: &(dyn Fn(&[f64]) -> f64 + Sync),
        confidence: f64,
        seed: Seed,
    ) -> Result<Accuracy, Error> {
        let mut order: Vec<usize> = (0..table.len()).collect();
        dosimeter_data::seed::shuffle(&mut order, &mut seed.child("inversion null").rng());
        let targets = order.iter().map(|i| table.targets()[*i]).collect();
        let layout = table.layout.clone();
        let dealt = RegressionTable::new(&table.name, layout, table.features().to_vec(), targets)?;
        self.accuracy(&dealt, model, confidence)
    }
}

/// `ln` of the sum of `e^term`.
fn log_sum(terms: impl Iterator<Item = f64>) -> f64 {
    // Streaming: the largest so far and the sum relative to it.
    let (mut top, mut sum) = (f64::NEG_INFINITY, 0.0);
    for term in terms {
        if term > top {
            sum = f64::mul_add(sum, (top - term).exp(), 1.0);
            top = term;
        } else if term > f64::NEG_INFINITY {
            sum += (term - top).exp();
        }
    }
    top + f64::ln(sum)
}

/// Share of records whose attribute is guessed right.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Accuracy {
    /// Right guesses.
    pub right: u64,
    /// Records.
    pub records: u64,
    /// The share, with exact limits: as if each record were a draw of its own.
    pub share: Interval,
}
impl Accuracy {
    /// Of `guess`, which gives the place of a value of `target` or nothing; rows that hold none of the values are never guessed right.
    ///
    /// # Errors
    /// [`Error::Audit`] without rows or for a confidence outside `(0, 1)`.
    pub fn of(
        table: &RegressionTable,
        target: &Marginal,
        confidence: f64,
        guess: &(dyn Fn(&[f64], f64) -> Option<usize> + Sync),
    ) -> Result<Self, Error> {
        let right = (0..table.len())
            .into_par_iter()
            .filter(|i| {
                let row = table.row(*i);
                row.is_some_and(|(x, y)| {
                    let truth = target.value_of(x);
                    truth.is_some() && truth == guess(x, y)
                })
            })
            .count() as u64;
        let records = table.len() as u64;
        Ok(Self { right, records, share: clopper_pearson(right, records, confidence)? })
    }
}
