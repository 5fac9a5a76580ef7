//! Output perturbation: the minimizer, moved by noise as long as one record could have moved it.
//!
//! # Source
//! Wu, Fredrikson, Wu, Jha and Naughton, arXiv:1512.06388; the tight constant is that of Chaudhuri, Monteleoni and Sarwate, JMLR 2011.
use super::ridge::{Quadratic, ball_constrained_ridge};
use super::{Budget, Claim, Error, Fit, Input, Regression, positive};
use dosimeter_privacy::mechanisms::GammaNorm;
use dosimeter_privacy::{Ledger, NoiseRng, Stable, Unit};
use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

/// How far replacing a record can move a minimizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SensitivityConstant {
    /// 4, as in the paper: safe, twice too much noise.
    Paper,
    /// 2: strong convexity used at both minimizers. For any loss.
    Tight,
    /// As tight, and for the squared loss alone: two gradients at one point differ by less than the sum of their lengths.
    #[default]
    SquaredLoss,
}

/// How far two gradients of `(w . x - y)^2` at one `w` can be apart, for `|x| <= 1`, `|y| <= 1`, `|w| <= radius`: `2 radius + 4`.
///
/// They differ by `2 (x x' - z z') w - 2 (y x - v z)`. The eigenvalues of `x x' - z z'` lie in `[-1, 1]`, so the first part is at most
/// `2 radius` long and the second at most 4; twice the Lipschitz constant would be `4 radius + 4`.
#[must_use]
pub fn squared_loss_gradient_change(radius: f64) -> f64 {
    2.0f64.mul_add(radius, 4.0)
}

/// Sensitivity of the minimizer over a convex set of a mean loss that is `lipschitz`-Lipschitz and `strong_convexity`-strongly convex
/// in the parameters (Theorem 14, Algorithm 1): `4 lipschitz / (strong_convexity rows)`, or half of it.
#[must_use]
pub fn strongly_convex_sensitivity(
    lipschitz: f64,
    strong_convexity: f64,
    rows: u64,
    constant: SensitivityConstant,
) -> f64 {
    let factor = match constant {
        SensitivityConstant::Paper => 4.0,
        SensitivityConstant::Tight | SensitivityConstant::SquaredLoss => 2.0,
    };
    factor * lipschitz / (strong_convexity * rows as f64)
}

/// Sensitivity of the minimizer within `|w| <= radius` of a mean `lipschitz`-Lipschitz convex loss plus `lambda / 2 |w|^2` (Theorem 16,
/// Algorithm 2): `4 (lipschitz + lambda radius) / (lambda rows)`; tight, `2 lipschitz / (lambda rows)`, since the regularizer is the same
/// for both minimizers.
#[must_use]
pub fn regularized_sensitivity(
    lipschitz: f64,
    lambda: f64,
    radius: f64,
    rows: u64,
    constant: SensitivityConstant,
) -> f64 {
    let lipschitz = match constant {
        SensitivityConstant::Paper => lambda.mul_add(radius, lipschitz),
        SensitivityConstant::Tight | SensitivityConstant::SquaredLoss => lipschitz,
    };
    strongly_convex_sensitivity(lipschitz, lambda, rows, constant)
}

/// Lipschitz constant in `w` of `(w . x - y)^2` for `|x| <= 1`, `|y| <= 1`, `|w| <= radius`.
#[must_use]
pub fn squared_loss_lipschitz(radius: f64) -> f64 {
    2.0 * (radius + 1.0)
}

/// The weight of the regularizer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lambda {
    /// `sqrt(dimension / (rows epsilon))`: from public numbers alone.
    DataIndependent,
    /// Given. Choosing it by looking at the data is not covered by any guarantee.
    Fixed(f64),
}
impl Lambda {
    fn value(self, dimension: usize, rows: u64, epsilon: f64) -> f64 {
        match self {
            Self::DataIndependent => (dimension as f64 / (rows as f64 * epsilon)).sqrt(),
            Self::Fixed(lambda) => lambda,
        }
    }
}

/// rls-out (Algorithm 4): ridge in a ball plus noise of density proportional to `exp(-epsilon |noise| / sensitivity)`. `epsilon`-DP when
/// one record is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputPerturbation {
    /// Of the ball that holds the weights, for rows of length at most 1 and targets in `[-1, 1]`.
    pub radius: f64,
    /// The weight of the regularizer.
    pub lambda: Lambda,
    /// Which bound on the sensitivity.
    pub constant: SensitivityConstant,
    /// Whether the noisy weights are moved back to the ball: free, and at small epsilon a great gain.
    pub project: bool,
}
impl OutputPerturbation {
    /// As the paper has it: radius 1, `lambda` from public numbers, constant 4, no projection.
    pub const PAPER: Self = Self {
        radius: 1.0,
        lambda: Lambda::DataIndependent,
        constant: SensitivityConstant::Paper,
        project: false,
    };
    /// The same with the tightest sensitivity, and projected.
    pub const PROJECTED: Self =
        Self { constant: SensitivityConstant::SquaredLoss, project: true, ..Self::PAPER };
    /// `lambda` and the sensitivity for so many rows.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a radius or `lambda` that is not above 0.
    pub fn sensitivity(
        &self,
        dimension: usize,
        rows: u64,
        epsilon: f64,
    ) -> Result<(f64, f64), Error> {
        let radius = positive("radius", self.radius)?;
        let lambda = positive("lambda", self.lambda.value(dimension, rows, epsilon))?;
        let lipschitz = match self.constant {
            SensitivityConstant::Paper | SensitivityConstant::Tight => {
                squared_loss_lipschitz(radius)
            }
            SensitivityConstant::SquaredLoss => 0.5 * squared_loss_gradient_change(radius),
        };
        let exact = regularized_sensitivity(lipschitz, lambda, radius, rows, self.constant);
        // The solver is off by rounding: by less than this on either side.
        Ok((lambda, 2.0f64.mul_add(SOLVER_ERROR * radius, exact)))
    }
    /// The noisy weights and what they cost.
    pub(super) fn release(
        &self,
        statistics: &super::Statistics,
        budget: Budget,
        rng: &mut NoiseRng,
    ) -> Result<(DVector<f64>, f64, Ledger), Error> {
        let (dimension, epsilon) = (statistics.dimension(), budget.epsilon.get());
        let (lambda, sensitivity) = self.sensitivity(dimension, statistics.rows, epsilon)?;
        let best = ball_constrained_ridge(statistics, lambda, self.radius);
        let mut ledger = Ledger::new(Unit::Record);
        let stable = Stable::new(best.as_slice().to_vec(), sensitivity)?;
        let noisy = ledger.release(&GammaNorm { epsilon: budget.epsilon }, stable, rng)?;
        let mut weights = DVector::from_vec(noisy.into_inner());
        if self.project {
            project(&mut weights, self.radius);
        }
        Ok((weights, sensitivity, ledger))
    }
}

/// rls-out as in the paper at the radius and `lambda` with the least expected squared error on `held_out` rows, over radii 0.25, 0.5, 1
/// and 2 and 100 steps of `lambda` from 0.001 to 0.5. **Not private**: the choice reads the rows without noise.
///
/// The expectation is exact: the noise `N` adds `E N' A N`, the trace of `A` times the variance of a coordinate.
///
/// # Errors
/// As [`OutputPerturbation::sensitivity`], [`Error::TooFewRows`] without rows.
pub fn oracle(
    fitted: &super::Statistics,
    held_out: &super::Statistics,
    epsilon: f64,
) -> Result<OutputPerturbation, Error> {
    if fitted.rows == 0 || held_out.rows == 0 {
        return Err(Error::TooFewRows { needed: 1, got: 0 });
    }
    let trace = held_out.gram().trace();
    let mean = Quadratic::mean_squared_error(fitted);
    let d = fitted.dimension() as f64;
    let mut best = (f64::INFINITY, OutputPerturbation::PAPER);
    for radius in [0.25, 0.5, 1.0, 2.0] {
        for step in 0..100 {
            let lambda = 0.499f64.mul_add(f64::from(step) / 99.0, 0.001);
            let one = OutputPerturbation {
                radius,
                lambda: Lambda::Fixed(lambda),
                ..OutputPerturbation::PAPER
            };
            let (_, sensitivity) = one.sensitivity(fitted.dimension(), fitted.rows, epsilon)?;
            let scale = sensitivity / epsilon;
            let w = mean.minimizer_in_ball(0.5 * lambda, radius);
            let error = ((d + 1.0) * scale * scale).mul_add(trace, held_out.squared_error(&w));
            if error < best.0 {
                best = (error, one);
            }
        }
    }
    Ok(best.1)
}

/// Bound on the relative error of the solver.
const SOLVER_ERROR: f64 = 1e-9;

/// Moves a vector to the nearest of the ball.
pub(super) fn project(w: &mut DVector<f64>, radius: f64) {
    let length = w.norm();
    if length > radius {
        *w *= radius / length;
    }
}

impl Regression for OutputPerturbation {
    fn name(&self) -> &'static str {
        match (self.constant, self.project, self.lambda) {
            (SensitivityConstant::Paper, false, Lambda::DataIndependent) => "rls_out",
            _ => "output_perturbation",
        }
    }
    fn what(&self) -> &'static str {
        match self.name() {
            "rls_out" => {
                "ridge in the unit ball plus noise, every parameter from public numbers, as in the paper"
            }
            _ => "ridge in a ball plus noise, with the tight sensitivity and projected to the ball",
        }
    }
    fn source(&self) -> &'static str {
        "Wu et al., arXiv:1512.06388, Algorithm 4"
    }
    fn claim(&self) -> Claim {
        Claim::Pure
    }
    fn fit(&self, input: &Input<'_>, budget: Budget, rng: &mut NoiseRng) -> Result<Fit, Error> {
        let (weights, sensitivity, ledger) = self.release(input.statistics()?, budget, rng)?;
        // The noise has no direction and each of its coordinates variance (d + 1) scale^2; a projection only takes away from it.
        let scale = sensitivity / budget.epsilon.get();
        let variance = (weights.len() as f64 + 1.0) * scale * scale;
        let noise_covariance =
            Some(DMatrix::from_diagonal_element(weights.len(), weights.len(), variance));
        Ok(Fit { weights, noise_covariance, ledger })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The formulas of the paper at round numbers.
    #[test]
    fn sensitivities_are_those_of_the_theorems() {
        let (paper, tight) = (SensitivityConstant::Paper, SensitivityConstant::Tight);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12 * b, "{a}, not {b}");
        close(strongly_convex_sensitivity(3.0, 0.5, 100, paper), 0.24);
        close(strongly_convex_sensitivity(3.0, 0.5, 100, tight), 0.12);
        // rls-out with R = 1, lambda = 0.1, n = 1000: 4 (0.1 + 4) / 100 and 2 * 4 / 100.
        let lipschitz = squared_loss_lipschitz(1.0);
        close(regularized_sensitivity(lipschitz, 0.1, 1.0, 1000, paper), 0.164);
        close(regularized_sensitivity(lipschitz, 0.1, 1.0, 1000, tight), 0.08);
        // 6 / 100 for the squared loss, and what the solver is off.
        let own =
            OutputPerturbation { lambda: Lambda::Fixed(0.1), ..OutputPerturbation::PROJECTED };
        let (_, sensitivity) = own.sensitivity(3, 1000, 1.0).unwrap_or_default();
        assert!((sensitivity - 0.06).abs() < 1e-8, "{sensitivity}");
        // d = 14, n = 3000, epsilon = 0.1.
        close(Lambda::DataIndependent.value(14, 3000, 0.1), (14.0_f64 / 300.0).sqrt());
    }
}
