//! AdaSSP: the sums of least squares with Gaussian noise, and as much ridge as the noise asks for.
//!
//! # Source
//! Wang, *Revisiting differentially private linear regression*, UAI 2018 (arXiv:1803.02596), Algorithm 2, with the noise of all three
//! releases calibrated together instead of each at a third of the budget.
use super::ridge::Quadratic;
use super::{Budget, Claim, Error, Fit, Input, Regression, positive};
use dosimeter_privacy::accountants::Pld;
use dosimeter_privacy::mechanisms::StableGaussian;
use dosimeter_privacy::{
    Ledger, Mechanism, NoiseMultiplier, NoiseRng, Relation, Stable, Unit, calibrate,
};
use nalgebra::{DMatrix, DVector};

/// Releases the smallest eigenvalue of `X'X`, `X'X` and `X'y` with Gaussian noise, adds a ridge chosen from the first and solves.
/// `(epsilon, delta)`-DP when one record is replaced, for rows of length at most 1 and targets in `[-1, 1]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdaSsp;

/// The ridge suffices with this probability of failing: a matter of utility alone.
const FAILURE: f64 = 0.05;

/// Noise multiplier with which `count` Gaussian releases stay within the budget.
pub(super) fn multiplier(budget: Budget, count: u64) -> Result<NoiseMultiplier, Error> {
    let Budget { epsilon, delta } = budget;
    positive("epsilon", epsilon.get())?;
    let whole = calibrate::Budget { epsilon, delta, relation: Relation::ReplaceOne };
    let plan = |noise_multiplier| {
        let mut ledger = Ledger::new(Unit::Record);
        ledger.record(StableGaussian { noise_multiplier }.event(), count);
        ledger
    };
    let start = (count as f64).sqrt() * 4.0 / epsilon.get().clamp(1e-6, 1e6);
    Ok(calibrate::least_noise(&Pld, whole, start, plan)?)
}

/// The upper triangle, numbers off the diagonal times the root of 2: the length of this vector is the Frobenius norm.
fn flatten(m: &DMatrix<f64>) -> Vec<f64> {
    let d = m.nrows();
    let factor = |i: usize, j: usize| if i == j { 1.0 } else { std::f64::consts::SQRT_2 };
    (0..d).flat_map(|i| (i..d).map(move |j| m[(i, j)] * factor(i, j))).collect()
}
fn unflatten(numbers: &[f64], d: usize) -> DMatrix<f64> {
    let mut m = DMatrix::zeros(d, d);
    let mut next = numbers.iter();
    for i in 0..d {
        for j in i..d {
            let factor = if i == j { 1.0 } else { std::f64::consts::FRAC_1_SQRT_2 };
            let number = next.next().copied().unwrap_or_default() * factor;
            (m[(i, j)], m[(j, i)]) = (number, number);
        }
    }
    m
}

impl Regression for AdaSsp {
    fn name(&self) -> &'static str {
        "ada_ssp"
    }
    fn what(&self) -> &'static str {
        "Gaussian noise on the sums of least squares, and a ridge that follows the noise"
    }
    fn source(&self) -> &'static str {
        "Wang, UAI 2018, arXiv:1803.02596"
    }
    fn claim(&self) -> Claim {
        Claim::Approximate
    }
    fn fit(&self, input: &Input<'_>, budget: Budget, rng: &mut NoiseRng) -> Result<Fit, Error> {
        let statistics = input.statistics()?;
        let d = statistics.dimension();
        let noise_multiplier = multiplier(budget, 3)?;
        let mechanism = StableGaussian { noise_multiplier };
        let z = noise_multiplier.get();
        let mut ledger = Ledger::new(Unit::Record);
        let mut release = |values: Vec<f64>, sensitivity: f64| -> Result<Vec<f64>, Error> {
            let value = Stable::new(values, sensitivity)?;
            Ok(ledger.release(&mechanism, value, rng)?.into_inner())
        };
        let (gram, moments) = (statistics.gram(), statistics.moments());
        // Replacing x by z adds z z' - x x', whose eigenvalues lie in [-1, 1] and whose Frobenius norm is at most the root of 2.
        let least = Quadratic::new(gram.clone(), &moments).least_eigenvalue();
        let least = release(vec![least], 1.0)?[0];
        let noisy = release(flatten(&gram), std::f64::consts::SQRT_2)?;
        let noisy_gram = unflatten(&noisy, d);
        let noisy_moments = DVector::from_vec(release(moments.as_slice().to_vec(), 2.0)?);
        // Everything from here on reads what is released.
        let sure = (z * (6.0 / budget.delta.get()).ln().sqrt()).max(0.0);
        let least = (least - sure).max(0.0);
        // Of a number off the diagonal.
        let deviation = z;
        let width = (d as f64 * (2.0 * (d * d) as f64 / FAILURE).ln()).sqrt();
        let ridge = deviation.mul_add(width, -least).max(0.0);
        let eigen = noisy_gram.symmetric_eigen();
        let inverse = eigen.eigenvalues.map(|value| 1.0 / (value + ridge).max(deviation));
        let solve = |b: &DVector<f64>| {
            &eigen.eigenvectors * eigen.eigenvectors.tr_mul(b).component_mul(&inverse)
        };
        let weights = solve(&noisy_moments);
        // The error E w - e of the noise E on X'X, e on X'y, seen through the inverse: cov(E w) = s^2 (|w|^2 I + w w').
        let inverse =
            &eigen.eigenvectors * DMatrix::from_diagonal(&inverse) * eigen.eigenvectors.transpose();
        let moments_variance = (2.0 * z).powi(2);
        let variance = deviation.powi(2).mul_add(weights.norm_squared(), moments_variance);
        let through = &inverse * &weights;
        let noise_covariance = Some(
            variance * (&inverse * inverse.transpose())
                + deviation.powi(2) * (&through * through.transpose()),
        );
        Ok(Fit { weights, noise_covariance, ledger })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flat_form_keeps_the_norm_and_comes_back() {
        let m = DMatrix::from_row_slice(2, 2, &[1.0, 2.0, 2.0, -3.0]);
        let flat = flatten(&m);
        assert_eq!(flat.len(), 3);
        let norm = flat.iter().map(|x| x * x).sum::<f64>();
        assert!((norm - m.norm_squared()).abs() < 1e-12);
        assert!((unflatten(&flat, 2) - m).norm() < 1e-15);
    }
}
