//! Objective perturbation: a random linear term in the objective, and enough ridge.
//!
//! # Source
//! Chaudhuri, Monteleoni and Sarwate, JMLR 2011, section 3.3; Kifer, Smith and Thakurta, *Private Convex Empirical Risk Minimization*,
//! COLT 2012, for minimizers within a convex set. Their neighbours differ by a record more; here one is replaced.
use super::output_perturbation::squared_loss_gradient_change;
use super::ridge::Quadratic;
use super::{Budget, Claim, Error, Fit, Input, Regression, positive};
use dosimeter_privacy::noise::double::add_gamma_norm;
use dosimeter_privacy::{Epsilon, Event, Ledger, Mechanism, NoiseRng, Relation, Sampler, Unit};
use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

/// Minimizes `sum (w . x - y)^2 + b . w + ridge / 2 |w|^2` within a ball, `b` of density proportional to `exp(-epsilon |b| / (2 D))` with `D`
/// how far two gradients can be apart, `2 radius + 4`. `epsilon`-DP when one record is replaced.
///
/// Half of epsilon pays for the gradients, which a replaced record moves by at most `D`; half for the change of volume, which is at most
/// `1 + 2 / ridge` as each loss has one direction of curvature, at most 2: so `ridge = 2 / (e^(epsilon / 2) - 1)`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectivePerturbation {
    /// Of the ball that holds the weights, for rows of length at most 1 and targets in `[-1, 1]`.
    pub radius: f64,
}
impl ObjectivePerturbation {
    /// Radius 1.
    pub const DEFAULT: Self = Self { radius: 1.0 };
}

/// The random objective, for the ledger.
struct RandomObjective {
    epsilon: Epsilon,
    radius: f64,
}
impl RandomObjective {
    fn ridge(&self) -> f64 {
        2.0 / (0.5 * self.epsilon.get()).exp_m1()
    }
    fn scale(&self) -> f64 {
        2.0 * squared_loss_gradient_change(self.radius) / self.epsilon.get()
    }
}
impl Mechanism for RandomObjective {
    /// Sums `x x'` and `x y`.
    type Input = (DMatrix<f64>, DVector<f64>);
    type Output = DVector<f64>;
    fn event(&self) -> Event {
        Event::Pure { epsilon: self.epsilon }.under(Relation::ReplaceOne)
    }
    fn sample(
        &self,
        (gram, moments): Self::Input,
        rng: &mut NoiseRng,
    ) -> Result<DVector<f64>, dosimeter_privacy::Error> {
        let scale = self.scale();
        if rng.source().sampler == Sampler::Exact {
            let mechanism = "objective_perturbation";
            return Err(dosimeter_privacy::Error::NoExactSampler { mechanism });
        }
        if !(scale.is_normal() && self.ridge().is_finite()) {
            let (noise, sampler) = (scale, "float");
            let sensitivity = squared_loss_gradient_change(self.radius);
            return Err(dosimeter_privacy::Error::Unrepresentable { noise, sensitivity, sampler });
        }
        let mut linear = vec![0.0; moments.len()];
        add_gamma_norm(&mut linear, scale, rng);
        // w' M w - 2 m . w + b . w: the linear term is -2 (m - b / 2).
        let shifted = moments - DVector::from_vec(linear) * 0.5;
        Ok(Quadratic::new(gram, &shifted).minimizer_in_ball(0.5 * self.ridge(), self.radius))
    }
}

impl Regression for ObjectivePerturbation {
    fn name(&self) -> &'static str {
        "objective_perturbation"
    }
    fn what(&self) -> &'static str {
        "a random linear term in the objective, minimized in the unit ball"
    }
    fn source(&self) -> &'static str {
        "Chaudhuri et al., JMLR 2011; Kifer, Smith & Thakurta, COLT 2012"
    }
    fn claim(&self) -> Claim {
        Claim::Pure
    }
    fn fit(&self, input: &Input<'_>, budget: Budget, rng: &mut NoiseRng) -> Result<Fit, Error> {
        let statistics = input.statistics()?;
        let radius = positive("radius", self.radius)?;
        let mut ledger = Ledger::new(Unit::Record);
        let mechanism = RandomObjective { epsilon: budget.epsilon, radius };
        let sums = (statistics.gram(), statistics.moments());
        let weights = ledger.release(&mechanism, sums, rng)?.into_inner();
        Ok(Fit { weights, noise_covariance: None, ledger })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In one dimension with sums M and m the released w has the density of b = -2 (M w - m) - ridge w, times |db/dw|: between
    /// neighbours its logarithm moves by at most epsilon, wherever w is inside of the ball.
    #[test]
    fn in_one_dimension_the_loss_is_bounded_by_epsilon_at_every_output() {
        for epsilon in [0.1, 1.0, 5.0] {
            let mechanism =
                RandomObjective { epsilon: Epsilon::new(epsilon).unwrap(), radius: 1.0 };
            let log_density = |x: f64, y: f64, w: f64| {
                let (others, with_y) = (3.0, 1.2);
                let slope = 2.0f64.mul_add(x.mul_add(x, others), mechanism.ridge());
                let b = 2.0f64.mul_add(x.mul_add(y, with_y), -slope * w);
                slope.ln() - b.abs() / mechanism.scale()
            };
            let ends = [-1.0, 0.0, 1.0];
            let mut worst = 0.0_f64;
            for (x, y) in ends.iter().flat_map(|x| ends.map(|y| (*x, y))) {
                for (u, v) in ends.iter().flat_map(|u| ends.map(|v| (*u, v))) {
                    for w in (-99..=99).map(|i| f64::from(i) / 100.0) {
                        worst = worst.max(log_density(x, y, w) - log_density(u, v, w));
                    }
                }
            }
            assert!(worst <= epsilon, "{worst} at {epsilon}");
            // And it is no idle bound.
            assert!(worst > 0.3 * epsilon, "{worst} at {epsilon}");
        }
    }
}
