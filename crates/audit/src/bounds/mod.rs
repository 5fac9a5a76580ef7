//! Lower bounds of epsilon from membership scores.
//!
//! A bound is a test turned round: every epsilon below the value is refuted at the stated confidence. What makes a
//! bound valid is written on each result; a result with a `caveat` refutes nothing by itself.
mod clopper_pearson;
mod gdp;
mod one_run;

pub use clopper_pearson::{ClopperPearson, epsilon_at_counts};
pub use gdp::{Gdp, delta_of_mu, epsilon_of_mu, mu_at_counts};
pub use one_run::{Guesses, OneRun, epsilon_of_guesses, p_value};

use crate::{Error, Roc};
use dosimeter_privacy::{Delta, Relation, Unit};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Every bound; the first is the default. Adding one: its file in this folder, its `mod` line above, its line here.
pub const BOUNDS: &[&dyn Bound] = &[&OneRun { guesses: Guesses::Geometric }, &ClopperPearson, &Gdp];

/// How the audited membership came about: which bounds hold depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Draw {
    /// One trained model; each candidate was a member by its own fair coin.
    FairCoins,
    /// One trained model; a fixed number of the candidates were members, so their coins are not independent.
    FixedSize,
    /// Every score comes from a model trained for it alone, each candidate a member by its own fair coin.
    IndependentModels,
    /// Nothing is known: somebody else's scores.
    Unknown,
}

/// What a bound is asked, and what is known of how the evidence was gathered.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// Chance that the bound is right, strictly between 0 and 1.
    pub confidence: f64,
    /// Delta of the guarantee that is tested.
    pub delta: Delta,
    /// What a member differs from a non-member by. A record trained on or left out is [`Relation::AddRemove`].
    pub relation: Relation,
    /// What is in or out.
    pub unit: Unit,
    /// How membership was drawn.
    pub draw: Draw,
}
impl Conditions {
    /// 95 % confidence, a record added or removed by a fair coin.
    #[must_use]
    pub const fn new(delta: Delta) -> Self {
        Self {
            confidence: 0.95,
            delta,
            relation: Relation::AddRemove,
            unit: Unit::Record,
            draw: Draw::FairCoins,
        }
    }
}

/// A measured bound never speaks of the upper side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Side {
    /// Epsilon is at least the value.
    Lower,
}

/// Epsilon is at least `value`, with everything needed to know what that means.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpsilonLower {
    /// Always [`Side::Lower`].
    pub side: Side,
    /// The bound in nats: finite, at least 0.
    pub value: f64,
    /// Chance that the bound is right, over the drawing of membership and all noise.
    pub confidence: f64,
    /// Delta of the guarantee tested.
    pub delta: Delta,
    /// Relation of the guarantee tested.
    pub relation: Relation,
    /// Unit of the guarantee tested.
    pub unit: Unit,
    /// Name of the bound in [`BOUNDS`].
    pub bound: String,
    /// What was chosen after looking, and how that was paid for.
    pub corrected_for: String,
    /// What must hold for the value to be a bound.
    pub assumptions: Vec<String>,
    /// Why the value is no valid bound here, where it is not: an assumption is known to fail or cannot be known.
    pub caveat: Option<String>,
    /// What a perfect attack on these members and non-members would have shown: nothing above it could be seen.
    pub largest_possible: f64,
    /// Where the value was found, for people.
    pub found_at: String,
    /// Judged members.
    pub members: u64,
    /// Judged non-members.
    pub non_members: u64,
    /// Candidates left out because the attack could not judge them.
    pub not_assessable: u64,
}

/// A way to bound epsilon from below.
pub trait Bound: Sync + fmt::Debug {
    /// Name in reports and study files.
    fn name(&self) -> &'static str;
    /// What it is, in a line.
    fn what(&self) -> &'static str;
    /// When it holds without a caveat, in a line.
    fn needs(&self) -> &'static str;
    /// Where it comes from.
    fn source(&self) -> &'static str;
    /// The bound for these scores.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for conditions it cannot work with.
    fn epsilon_lower(&self, roc: &Roc, conditions: &Conditions) -> Result<EpsilonLower, Error>;
}

/// The bound of that name.
#[must_use]
pub fn bound(name: &str) -> Option<&'static dyn Bound> {
    BOUNDS.iter().copied().find(|bound| bound.name() == name)
}

/// Fills in what every bound says of the evidence.
struct Found {
    value: f64,
    largest_possible: f64,
    found_at: String,
    corrected_for: String,
    assumptions: Vec<String>,
    caveat: Option<String>,
}
impl Found {
    fn report(self, bound: &dyn Bound, roc: &Roc, conditions: &Conditions) -> EpsilonLower {
        EpsilonLower {
            side: Side::Lower,
            value: self.value,
            confidence: conditions.confidence,
            delta: conditions.delta,
            relation: conditions.relation,
            unit: conditions.unit,
            bound: bound.name().to_owned(),
            corrected_for: self.corrected_for,
            assumptions: self.assumptions,
            caveat: self.caveat,
            largest_possible: self.largest_possible,
            found_at: self.found_at,
            members: roc.members(),
            non_members: roc.non_members(),
            not_assessable: roc.not_assessable(),
        }
    }
}
