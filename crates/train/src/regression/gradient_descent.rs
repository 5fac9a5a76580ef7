//! Noisy gradient descent on all rows.
//!
//! # Source
//! Bassily, Smith and Thakurta, FOCS 2014 (arXiv:1405.7085), with whole gradients and the Gaussian accountant of this project.
use super::ada_ssp::multiplier;
use super::output_perturbation::{project, squared_loss_gradient_change};
use super::{Budget, Claim, Error, Fit, Input, Regression, positive};
use dosimeter_privacy::mechanisms::StableGaussian;
use dosimeter_privacy::{Ledger, NoiseRng, Stable, Unit};
use nalgebra::DVector;
use serde::{Deserialize, Serialize};

/// `steps` steps along the gradient of the mean squared error with Gaussian noise, within a ball; the mean of the second half of them.
/// `(epsilon, delta)`-DP when one record is replaced: in the ball two gradients are at most
/// `2 radius + 4` apart, nothing is clipped.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GradientDescent {
    /// Of the ball that holds the weights, for rows of length at most 1 and targets in `[-1, 1]`.
    pub radius: f64,
    /// How many, at least 2.
    pub steps: u32,
}
impl GradientDescent {
    /// 64 steps in the unit ball.
    pub const DEFAULT: Self = Self { radius: 1.0, steps: 64 };
}

/// One over the largest curvature of the squared error of rows of length at most 1.
const STEP: f64 = 0.5;

impl Regression for GradientDescent {
    fn name(&self) -> &'static str {
        "gradient_descent"
    }
    fn what(&self) -> &'static str {
        "steps along the gradient of all rows with Gaussian noise, in the unit ball"
    }
    fn source(&self) -> &'static str {
        "Bassily, Smith & Thakurta, FOCS 2014, arXiv:1405.7085"
    }
    fn claim(&self) -> Claim {
        Claim::Approximate
    }
    fn fit(&self, input: &Input<'_>, budget: Budget, rng: &mut NoiseRng) -> Result<Fit, Error> {
        let statistics = input.statistics()?;
        let radius = positive("radius", self.radius)?;
        if self.steps < 2 {
            let (what, needed, got) = ("steps", "at least 2", f64::from(self.steps));
            return Err(Error::Parameter { what, needed, got });
        }
        let mechanism =
            StableGaussian { noise_multiplier: multiplier(budget, u64::from(self.steps))? };
        let n = statistics.rows as f64;
        let (gram, moments) = (statistics.gram() / n, statistics.moments() / n);
        let sensitivity = squared_loss_gradient_change(radius) / n;
        let mut ledger = Ledger::new(Unit::Record);
        let mut w = DVector::zeros(statistics.dimension());
        let mut sum = w.clone();
        let from = self.steps / 2;
        for step in 0..self.steps {
            let gradient = (&gram * &w - &moments) * 2.0;
            let stable = Stable::new(gradient.as_slice().to_vec(), sensitivity)?;
            let noisy = ledger.release(&mechanism, stable, rng)?.into_inner();
            w -= DVector::from_vec(noisy) * STEP;
            project(&mut w, radius);
            if step >= from {
                sum += &w;
            }
        }
        let weights = sum / f64::from(self.steps - from);
        Ok(Fit { weights, noise_covariance: None, ledger })
    }
}
