//! TukeyEM: many models, each from rows of its own, and one point deep among them.
//!
//! # Source
//! Amin, Joseph, Ribero and Vassilvitskii, *Easy Differentially Private Linear Regression*, ICLR 2023 (arXiv:2208.07353).
use super::ridge::least_squares;
use super::{Budget, Claim, Error, Fit, Input, Regression};
use crate::trainer::shuffle;
use dosimeter_privacy::mechanisms::{Points, TukeyDepth};
use dosimeter_privacy::{Ledger, NoiseRng, Unit};
use nalgebra::DVector;
use serde::{Deserialize, Serialize};

/// Least squares on each of many parts of the rows, and a model chosen by its depth among them. `(epsilon, delta)`-DP when one record is
/// replaced. Its noise does not grow with the bounds; it wants many rows, hundreds of times their numbers, and says so otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TukeyEm {
    /// How many parts; left out, as many as leave each of them twice as many rows as a row has numbers, at most 1,000.
    pub models: Option<u32>,
}
impl TukeyEm {
    /// As many models as there are rows for.
    pub const DEFAULT: Self = Self { models: None };
    fn models(self, rows: usize, dimension: usize) -> usize {
        self.models.map_or((rows / (2 * dimension)).clamp(1, 1000), |m| m as usize)
    }
}

impl Regression for TukeyEm {
    fn name(&self) -> &'static str {
        "tukey_em"
    }
    fn what(&self) -> &'static str {
        "least squares on many parts of the rows, and a model that lies deep among them"
    }
    fn source(&self) -> &'static str {
        "Amin et al., ICLR 2023, arXiv:2208.07353"
    }
    fn claim(&self) -> Claim {
        Claim::Approximate
    }
    /// Also [`Error::NoAgreement`], which is an outcome of the mechanism and spends the budget.
    fn fit(&self, input: &Input<'_>, budget: Budget, rng: &mut NoiseRng) -> Result<Fit, Error> {
        let rows = input.rows(self.name())?;
        let models = self.models(rows.len(), rows.dimension());
        if models == 0 || rows.len() < models {
            return Err(Error::TooFewRows { needed: models.max(1) as u64, got: rows.len() as u64 });
        }
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        shuffle(&mut order, rng);
        let parts = rows.parts(models, &order);
        let weights = parts.iter().flat_map(|part| Vec::from(least_squares(part).data)).collect();
        let mut ledger = Ledger::new(Unit::Record);
        let mechanism = TukeyDepth { epsilon: budget.epsilon, delta: budget.delta };
        let points = Points::new(rows.dimension(), weights)?;
        let chosen = ledger.release(&mechanism, points, rng)?.into_inner();
        let weights = DVector::from_vec(chosen.ok_or(Error::NoAgreement { models })?);
        Ok(Fit { weights, noise_covariance: None, ledger })
    }
}
