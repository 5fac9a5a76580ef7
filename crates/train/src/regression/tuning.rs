//! Parameters chosen privately: one noisy model per candidate, each from rows of its own, and a noisy choice on further rows.
//!
//! # Source
//! Chaudhuri, Monteleoni and Sarwate, JMLR 2011, Algorithm 3; Wu et al., arXiv:1512.06388.
use super::output_perturbation::{Lambda, OutputPerturbation, SensitivityConstant, project};
use super::{Budget, Claim, Error, Fit, Input, Regression};
use crate::trainer::shuffle;
use dosimeter_privacy::mechanisms::Exponential;
use dosimeter_privacy::{Costs, Event, Ledger, NoiseRng, Unit};
use serde::{Deserialize, Serialize};

/// How the choice is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// By the sum of squared errors of models within their balls, whose sensitivity is `(R + 1)^2`.
    #[default]
    Correct,
    /// By the mean squared error against an assumed sensitivity of `R^2`, as the paper's own definition of the loss has it: close to
    /// a blind choice, and among models that may lie outside of their balls, for which no bound holds.
    PaperMean,
    /// By the sum of squared errors against an assumed sensitivity of `R^2`: spends more than it says.
    PaperSum,
}

/// rls-out for every pair of radius and `lambda`, and one chosen. `epsilon`-DP when one record is replaced, since a record is in one
/// part only: it moves one model or the choice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivateTuning {
    /// Candidates for the radius.
    pub radii: [f64; 3],
    /// How the choice is made.
    pub selection: Selection,
    /// Which bound on the sensitivity of each model.
    pub constant: SensitivityConstant,
}

/// Candidates for `lambda`: 0.002, doubled seven times.
fn lambdas() -> impl Iterator<Item = f64> {
    (0..8).map(|j| 0.002 * f64::from(1 << j))
}

impl PrivateTuning {
    /// The first set of radii of the paper, with a sound choice.
    pub const SOUND: Self = Self {
        radii: [0.25, 0.5, 1.0],
        selection: Selection::Correct,
        constant: SensitivityConstant::SquaredLoss,
    };
    /// As the paper has it, with the mean.
    pub const PAPER_MEAN: Self = Self {
        selection: Selection::PaperMean,
        constant: SensitivityConstant::Paper,
        ..Self::SOUND
    };
    /// As the paper has it, with the sum.
    pub const PAPER_SUM: Self = Self { selection: Selection::PaperSum, ..Self::PAPER_MEAN };
    /// Models to choose from; the rows are cut into one part more.
    #[must_use]
    pub fn candidates(&self) -> usize {
        self.radii.len() * lambdas().count()
    }
}

impl Regression for PrivateTuning {
    fn name(&self) -> &'static str {
        match self.selection {
            Selection::Correct => "tuned",
            Selection::PaperMean => "tuned_paper_mean",
            Selection::PaperSum => "tuned_paper_sum",
        }
    }
    fn what(&self) -> &'static str {
        match self.selection {
            Selection::Correct => {
                "radius and lambda of 24 pairs, chosen privately on rows of their own"
            }
            Selection::PaperMean => {
                "the same, chosen by the mean error as in the paper: nearly blind, without a bound on the error"
            }
            Selection::PaperSum => {
                "the same, chosen by the sum of errors as if one record moved it by R^2: not private as claimed"
            }
        }
    }
    fn source(&self) -> &'static str {
        "Chaudhuri et al., JMLR 2011, Algorithm 3; Wu et al., arXiv:1512.06388"
    }
    fn claim(&self) -> Claim {
        match self.selection {
            Selection::Correct => Claim::Pure,
            Selection::PaperMean | Selection::PaperSum => Claim::Unsound,
        }
    }
    fn fit(&self, input: &Input<'_>, budget: Budget, rng: &mut NoiseRng) -> Result<Fit, Error> {
        let rows = input.rows(self.name())?;
        let parts = self.candidates() + 1;
        if rows.len() < parts {
            return Err(Error::TooFewRows { needed: parts as u64, got: rows.len() as u64 });
        }
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        shuffle(&mut order, rng);
        let parts = rows.parts(parts, &order);
        let pairs = self.radii.iter().flat_map(|r| lambdas().map(move |lambda| (*r, lambda)));
        let (mut models, mut ledgers) = (Vec::new(), Vec::new());
        for ((radius, lambda), part) in pairs.zip(&parts) {
            let one = OutputPerturbation {
                radius,
                lambda: Lambda::Fixed(lambda),
                constant: self.constant,
                project: self.selection == Selection::Correct,
            };
            let (weights, _, ledger) = one.release(part, budget, rng)?;
            models.push(weights);
            ledgers.push(ledger);
        }
        let last = &parts[models.len()];
        let radius = self.radii.iter().copied().fold(0.0, f64::max);
        let errors = models.iter().map(|w| last.squared_error(w));
        let (costs, sensitivity): (Vec<f64>, f64) = match self.selection {
            Selection::Correct => (errors.collect(), (radius + 1.0).powi(2)),
            Selection::PaperMean => {
                (errors.map(|e| e / last.rows as f64).collect(), radius.powi(2))
            }
            Selection::PaperSum => (errors.collect(), radius.powi(2)),
        };
        let mut choice = Ledger::new(Unit::Record);
        let mechanism = Exponential { epsilon: budget.epsilon };
        let chosen = choice.release(&mechanism, Costs::new(costs, sensitivity)?, rng)?;
        ledgers.push(choice);
        let mut ledger = Ledger::of_disjoint(&ledgers)?;
        if self.claim() == Claim::Unsound {
            ledger.record(Event::NonPrivate, 1);
        }
        let mut weights = models.swap_remove(chosen.into_inner());
        if self.selection == Selection::Correct {
            project(&mut weights, radius);
        }
        Ok(Fit { weights, noise_covariance: None, ledger })
    }
}
