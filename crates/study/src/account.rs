//! Accounting without a run: what a plan of DP training costs, and what a budget buys.
use crate::Error;
use dosimeter_privacy::calibrate::{self, Budget};
use dosimeter_privacy::{ACCOUNTANTS, Accountant};
pub use dosimeter_privacy::{Delta, Epsilon, NoiseMultiplier, Relation, SamplingRate, Unit};
use serde::Serialize;

/// A training of Poisson-sampled Gaussian steps, and the guarantee asked of it.
#[derive(Clone, Copy)]
pub struct Question {
    /// Poisson inclusion probability.
    pub sampling_rate: SamplingRate,
    /// Failure probability.
    pub delta: Delta,
    /// Neighbouring data sets.
    pub relation: Relation,
    /// Who answers.
    pub accountant: &'static dyn Accountant,
}

impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Question")
            .field("sampling_rate", &self.sampling_rate)
            .field("delta", &self.delta)
            .field("relation", &self.relation)
            .field("accountant", &self.accountant.name())
            .finish()
    }
}

/// The accountant of that name.
#[must_use]
pub fn accountant(name: &str) -> Option<&'static dyn Accountant> {
    ACCOUNTANTS.iter().copied().find(|a| a.name() == name)
}

/// A guarantee with everything needed to read it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// Nats, or `unbounded`.
    pub epsilon_upper: Epsilon,
    /// Failure probability.
    pub delta: Delta,
    /// Neighbouring data sets.
    pub relation: Relation,
    /// Who computed it.
    pub accountant: &'static str,
    /// What one unit of privacy is.
    pub unit: Unit,
    /// Whether `epsilon_upper` is proved; false for an approximation, which may lie below the truth.
    pub is_bound: bool,
    /// Noise standard deviation over clipping norm.
    pub noise_multiplier: NoiseMultiplier,
    /// Poisson inclusion probability.
    pub sampling_rate: SamplingRate,
    /// Steps.
    pub steps: u64,
}

/// Epsilon of `steps` steps.
///
/// # Errors
/// If the accountant cannot do the relation.
pub fn epsilon(
    question: Question,
    noise_multiplier: NoiseMultiplier,
    steps: u64,
) -> Result<Answer, Error> {
    let Question { sampling_rate, delta, relation, accountant } = question;
    let epsilon_upper =
        calibrate::epsilon(accountant, sampling_rate, noise_multiplier, steps, relation, delta)?;
    Ok(Answer {
        epsilon_upper,
        delta,
        relation,
        accountant: accountant.name(),
        unit: Unit::Record,
        is_bound: accountant.is_bound(),
        noise_multiplier,
        sampling_rate,
        steps,
    })
}

/// Least noise multiplier with which `steps` steps stay within `budget`, and the epsilon it gives.
///
/// # Errors
/// If no noise is enough, or the accountant cannot do the relation.
pub fn noise(question: Question, budget: Epsilon, steps: u64) -> Result<Answer, Error> {
    let noise = calibrate::noise_multiplier(
        question.accountant,
        question.budget(budget),
        question.sampling_rate,
        steps,
    )?;
    epsilon(question, noise, steps)
}

/// Most steps that stay within `budget`, and the epsilon they give.
///
/// # Errors
/// If the accountant cannot do the relation.
pub fn steps(
    question: Question,
    budget: Epsilon,
    noise_multiplier: NoiseMultiplier,
) -> Result<Answer, Error> {
    let steps = calibrate::steps(
        question.accountant,
        question.budget(budget),
        question.sampling_rate,
        noise_multiplier,
    )?;
    epsilon(question, noise_multiplier, steps)
}

impl Question {
    const fn budget(self, epsilon: Epsilon) -> Budget {
        Budget { epsilon, delta: self.delta, relation: self.relation }
    }
}
