//! Linear regression with differential privacy, mechanism beside mechanism.
//!
//! A row is scaled by public [`Bounds`] into the unit ball, its target into `[-1, 1]`; what a mechanism promises holds for every table,
//! since nothing else is assumed. Neighbours differ in one record that is replaced; the number of rows is public. Most mechanisms read
//! [`Statistics`], sums formed in one pass in memory that does not grow with the rows.
//!
//! A mechanism is its file in this folder and its line in [`REGRESSIONS`].
mod ada_ssp;
mod bounds;
mod functional_mechanism;
mod gradient_descent;
mod linear_classifier;
mod model;
mod objective_perturbation;
mod output_perturbation;
mod ridge;
mod statistics;
mod sums;
mod tukey_em;
mod tuning;

pub use ada_ssp::AdaSsp;
pub use bounds::{Bounds, Clipped, Interval, Missing};
pub use functional_mechanism::{FunctionalMechanism, Normalization};
pub use gradient_descent::GradientDescent;
pub use linear_classifier::{ClassifierLoss, LinearClassifier};
pub use model::LinearModel;
pub use objective_perturbation::ObjectivePerturbation;
pub use output_perturbation::{
    Lambda, OutputPerturbation, SensitivityConstant, oracle, regularized_sensitivity,
    squared_loss_gradient_change, squared_loss_lipschitz, strongly_convex_sensitivity,
};
pub use ridge::{Quadratic, ball_constrained_ridge, least_squares};
pub use statistics::{Rows, Statistics, Summation};
pub use tukey_em::TukeyEm;
pub use tuning::{PrivateTuning, Selection};

use dosimeter_privacy::{Delta, Epsilon, Event, Ledger, NoiseRng, Unit};
use nalgebra::{DMatrix, DVector};

/// What went wrong. No message tells a number of a record.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bounds without room between them.
    #[error("bounds must be two finite numbers, the lower one first, got [{low:?}, {high:?}]")]
    Interval {
        /// Lower.
        low: f64,
        /// Upper.
        high: f64,
    },
    /// Neither features nor an intercept.
    #[error("there is nothing to fit: no features and no intercept")]
    NoFeatures,
    /// A setting outside its range.
    #[error("{what} must be {needed}, got {got:?}")]
    Parameter {
        /// The quantity.
        what: &'static str,
        /// Its range.
        needed: &'static str,
        /// What was given.
        got: f64,
    },
    /// A row of another width than the bounds.
    #[error("row {row} has {got} features, the bounds are for {needed}")]
    Width {
        /// From 1.
        row: u64,
        /// Features that have bounds.
        needed: usize,
        /// Features of the row.
        got: usize,
    },
    /// A number that is missing, NaN or infinite.
    #[error("row {row}, {}: needed a finite number", column.map_or("target".to_owned(), |c| format!("feature {}", c + 1)))]
    NotFinite {
        /// From 1.
        row: u64,
        /// Of the features, from 0; `None`: the target.
        column: Option<usize>,
    },
    /// Fewer rows than the mechanism can do with.
    #[error("needed at least {needed} rows, got {got}")]
    TooFewRows {
        /// At least.
        needed: u64,
        /// There.
        got: u64,
    },
    /// The models of parts of the rows do not agree, or there are too few of them. Epsilon is spent all the same.
    #[error(
        "{models} models of parts of the rows do not agree enough for one to be chosen; the budget is spent; needed more rows or a larger epsilon"
    )]
    NoAgreement {
        /// How many.
        models: usize,
    },
    /// A class label that is neither of the two ends of the target's bounds.
    #[error(
        "row {row}: the target of a classifier must be the lower or the upper end of its bounds"
    )]
    NotAClass {
        /// From 1.
        row: u64,
    },
    /// A solver that did not arrive.
    #[error(
        "the minimizer was not found to the accuracy that the guarantee needs; a larger lambda helps"
    )]
    NotSolved,
    /// The mechanism looks at rows more than once.
    #[error("{mechanism} needs the rows in memory; sums over them do not do")]
    NeedsRows {
        /// Which.
        mechanism: &'static str,
    },
    /// A privacy parameter out of range, or noise that cannot be drawn.
    #[error(transparent)]
    Privacy(#[from] dosimeter_privacy::Error),
    /// A network that cannot be built.
    #[error(transparent)]
    Model(#[from] dosimeter_model::Error),
}

/// What may be spent; neighbours differ in one replaced record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Loss, nats: finite and above 0.
    pub epsilon: Epsilon,
    /// Failure probability; mechanisms of pure loss do not use it.
    pub delta: Delta,
}

/// What a mechanism says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Claim {
    /// No guarantee.
    NotPrivate,
    /// `epsilon`, whatever delta.
    Pure,
    /// `(epsilon, delta)`.
    Approximate,
    /// Published with a guarantee that it does not have; offered for comparison.
    Unsound,
}
impl Claim {
    /// As written in models, reports, lists and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotPrivate => "not-private",
            Self::Pure => "pure",
            Self::Approximate => "approximate",
            Self::Unsound => "unsound",
        }
    }
    /// What the word means.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::NotPrivate => "nothing is promised",
            Self::Pure => "epsilon, whatever delta",
            Self::Approximate => "epsilon at delta",
            Self::Unsound => "nothing is promised: the published proof does not hold",
        }
    }
}

/// The rows of a fit.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    statistics: &'a Statistics,
    rows: Option<&'a Rows>,
    /// By which rows were divided, [`Bounds::row_radius`].
    radius: f64,
}
impl<'a> Input<'a> {
    /// Sums, and the rows they were formed from if they are in memory.
    #[must_use]
    pub fn new(bounds: &Bounds, statistics: &'a Statistics, rows: Option<&'a Rows>) -> Self {
        Self { statistics, rows, radius: bounds.row_radius() }
    }
    /// # Errors
    /// [`Error::TooFewRows`] without a row.
    pub fn statistics(&self) -> Result<&'a Statistics, Error> {
        match self.statistics.rows {
            0 => Err(Error::TooFewRows { needed: 1, got: 0 }),
            _ => Ok(self.statistics),
        }
    }
    fn rows(&self, mechanism: &'static str) -> Result<&'a Rows, Error> {
        self.rows.ok_or(Error::NeedsRows { mechanism })
    }
}

/// Weights for scaled rows, and what they cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// `[dimension]`, in the scale of [`Bounds`].
    pub weights: DVector<f64>,
    /// Covariance of the weights by the noise alone, `[dimension, dimension]`, from released numbers, where the mechanism tells.
    pub noise_covariance: Option<DMatrix<f64>>,
    /// What was released.
    pub ledger: Ledger,
}
impl Fit {
    /// The model in the units of the table.
    #[must_use]
    pub fn model(&self, features: Vec<String>, target: String, bounds: Bounds) -> LinearModel {
        let noise = self.noise_covariance.as_ref();
        LinearModel::from_weights(&self.weights, noise, features, target, bounds)
    }
}

/// A way to fit a linear model.
pub trait Regression: Sync + std::fmt::Debug {
    /// Name as written in study files and reports.
    fn name(&self) -> &'static str;
    /// What it does, in a line.
    fn what(&self) -> &'static str;
    /// Where it comes from.
    fn source(&self) -> &'static str;
    /// What it promises.
    fn claim(&self) -> Claim;
    /// Fits. The ledger says what was spent, which is never more than `budget` where [`Self::claim`] is a sound one.
    ///
    /// # Errors
    /// [`Error::Parameter`], [`Error::TooFewRows`], [`Error::NeedsRows`], [`Error::Privacy`] for an epsilon that is 0 or unbounded.
    fn fit(&self, input: &Input<'_>, budget: Budget, rng: &mut NoiseRng) -> Result<Fit, Error>;
}

/// Ordinary least squares, without noise: what the others are measured by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeastSquares;
impl Regression for LeastSquares {
    fn name(&self) -> &'static str {
        "least_squares"
    }
    fn what(&self) -> &'static str {
        "ordinary least squares, without any protection"
    }
    fn source(&self) -> &'static str {
        "Gauss, 1809"
    }
    fn claim(&self) -> Claim {
        Claim::NotPrivate
    }
    fn fit(&self, input: &Input<'_>, _: Budget, _: &mut NoiseRng) -> Result<Fit, Error> {
        let mut ledger = Ledger::new(Unit::Record);
        ledger.record(Event::NonPrivate, 1);
        let weights = least_squares(input.statistics()?);
        Ok(Fit { weights, noise_covariance: None, ledger })
    }
}

/// Every mechanism with its usual parameters, the default first.
pub const REGRESSIONS: &[&dyn Regression] = &[
    &AdaSsp,
    &GradientDescent::DEFAULT,
    &ObjectivePerturbation::DEFAULT,
    &OutputPerturbation::PROJECTED,
    &OutputPerturbation::PAPER,
    &PrivateTuning::SOUND,
    &TukeyEm::DEFAULT,
    &FunctionalMechanism::TIGHT,
    &FunctionalMechanism::PUBLISHED,
    &FunctionalMechanism::PROGRAM,
    &PrivateTuning::PAPER_MEAN,
    &PrivateTuning::PAPER_SUM,
    &LeastSquares,
];

/// The mechanism called `name`.
#[must_use]
pub fn regression(name: &str) -> Option<&'static dyn Regression> {
    REGRESSIONS.iter().copied().find(|r| r.name() == name)
}

fn positive(what: &'static str, got: f64) -> Result<f64, Error> {
    if got > 0.0 && got.is_finite() {
        Ok(got)
    } else {
        Err(Error::Parameter { what, needed: "finite and above 0", got })
    }
}
