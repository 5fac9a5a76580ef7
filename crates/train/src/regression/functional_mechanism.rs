//! The functional mechanism: noise on the coefficients of the objective.
//!
//! # Source
//! Zhang, Zhang, Xiao, Yang and Winslett, *Functional Mechanism*, VLDB 2012 (arXiv:1208.0219), and the first author's program.
use super::{Budget, Claim, Error, Fit, Input, Regression};
use dosimeter_privacy::mechanisms::StableLaplace;
use dosimeter_privacy::{Ledger, NoiseRng, StableL1, Unit};
use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

/// In what scale rows enter the objective, and how far one of them moves its coefficients in L1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normalization {
    /// Rows of length at most 1, sensitivity `2 (1 + 2 d + d^2)`: as published.
    Published,
    /// Rows of length at most 1, sensitivity `2 (2 sqrt(d) + d)`: what such rows can do, without the constant term, which is not
    /// released.
    #[default]
    Tight,
    /// Numbers in `[-1, 1]`, sensitivity `2 d^2 + 4 d`: as the author's program has it.
    Program,
}

/// Minimizes `w' M w + a . w`, `M` and `a` the sums `x x'` and `-2 x y` with Laplace noise, `M` made symmetric, moved up its diagonal and
/// freed of directions without curvature. `epsilon`-DP when one record is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionalMechanism {
    /// In what scale.
    pub normalization: Normalization,
    /// So many standard deviations of the noise are added to the diagonal: 4 in the paper, 5 in the program.
    pub regularization: f64,
}

/// Eigenvalues below this are left out.
const TRIMMED: f64 = 1e-8;

impl FunctionalMechanism {
    /// As published.
    pub const PUBLISHED: Self =
        Self { normalization: Normalization::Published, regularization: 4.0 };
    /// With the tight sensitivity.
    pub const TIGHT: Self = Self { normalization: Normalization::Tight, regularization: 4.0 };
    /// As in the author's program.
    pub const PROGRAM: Self = Self { normalization: Normalization::Program, regularization: 5.0 };
    /// L1 sensitivity of the coefficients for rows of `dimension` numbers.
    #[must_use]
    pub fn sensitivity(&self, dimension: usize) -> f64 {
        let d = dimension as f64;
        match self.normalization {
            Normalization::Published => 2.0 * (d + 1.0).powi(2),
            Normalization::Tight => 2.0 * 2.0f64.mul_add(d.sqrt(), d),
            Normalization::Program => 2.0 * d * (d + 2.0),
        }
    }
}

/// The minimizer of `w' M w + a . w` over the directions along which `M` curves upward.
fn trimmed_minimizer(m: DMatrix<f64>, a: &DVector<f64>) -> DVector<f64> {
    let eigen = m.symmetric_eigen();
    let along = eigen.eigenvectors.tr_mul(a).zip_map(&eigen.eigenvalues, |a, value| {
        if value < TRIMMED { 0.0 } else { -a / (2.0 * value) }
    });
    eigen.eigenvectors * along
}

impl Regression for FunctionalMechanism {
    fn name(&self) -> &'static str {
        match self.normalization {
            Normalization::Published => "functional_mechanism_published",
            Normalization::Tight => "functional_mechanism",
            Normalization::Program => "functional_mechanism_program",
        }
    }
    fn what(&self) -> &'static str {
        match self.normalization {
            Normalization::Published => {
                "Laplace noise on the coefficients of the objective, with the published sensitivity"
            }
            Normalization::Tight => {
                "Laplace noise on the coefficients of the objective, with the sensitivity that rows of length 1 have"
            }
            Normalization::Program => {
                "Laplace noise on the coefficients of the objective, as in the author's program"
            }
        }
    }
    fn source(&self) -> &'static str {
        "Zhang et al., VLDB 2012, arXiv:1208.0219"
    }
    fn claim(&self) -> Claim {
        Claim::Pure
    }
    fn fit(&self, input: &Input<'_>, budget: Budget, rng: &mut NoiseRng) -> Result<Fit, Error> {
        let statistics = input.statistics()?;
        let d = statistics.dimension();
        // Rows of length 1 were divided by the root of their numbers, or a smaller radius: times it, each number is in [-1, 1].
        let scale = match self.normalization {
            Normalization::Program => input.radius,
            Normalization::Published | Normalization::Tight => 1.0,
        };
        let mut coefficients: Vec<f64> =
            statistics.gram().iter().map(|x| x * scale * scale).collect();
        coefficients.extend(statistics.moments().iter().map(|x| -2.0 * x * scale));
        let sensitivity = self.sensitivity(d);
        let mut ledger = Ledger::new(Unit::Record);
        let mechanism = StableLaplace { epsilon: budget.epsilon };
        let noisy = ledger
            .release(&mechanism, StableL1::new(coefficients, sensitivity)?, rng)?
            .into_inner();
        let m = DMatrix::from_column_slice(d, d, &noisy[..d * d]);
        let noise = sensitivity / budget.epsilon.get();
        let lift = self.regularization * std::f64::consts::SQRT_2 * noise;
        let m = (&m + m.transpose()) * 0.5 + DMatrix::identity(d, d) * lift;
        let weights = trimmed_minimizer(m, &DVector::from_column_slice(&noisy[d * d..])) * scale;
        Ok(Fit { weights, noise_covariance: None, ledger })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sensitivities_are_those_of_paper_and_program() {
        let at = |mechanism: FunctionalMechanism| mechanism.sensitivity(4);
        assert!((at(FunctionalMechanism::PUBLISHED) - 50.0).abs() < 1e-12);
        assert!((at(FunctionalMechanism::TIGHT) - 16.0).abs() < 1e-12);
        assert!((at(FunctionalMechanism::PROGRAM) - 48.0).abs() < 1e-12);
    }

    #[test]
    fn one_and_two_dimensions_are_solved_by_hand() {
        // 2 w^2 - 3 w: w = 3/4.
        let one =
            trimmed_minimizer(DMatrix::from_element(1, 1, 2.0), &DVector::from_element(1, -3.0));
        assert!((one[0] - 0.75).abs() < 1e-15);
        // (2, 1; 1, 2) has eigenvalues 3 and 1: M w = -a / 2 = (1, -1) gives w = (1, -1).
        let m = DMatrix::from_row_slice(2, 2, &[2.0, 1.0, 1.0, 2.0]);
        let two = trimmed_minimizer(m, &DVector::from_column_slice(&[-2.0, 2.0]));
        assert!((two[0] - 1.0).abs() < 1e-14 && (two[1] + 1.0).abs() < 1e-14, "{two}");
        // (1, 2; 2, 1) has -1 along (1, -1): only (1, 1) with 3 is kept. a = (-2, -4): along (1, 1) / sqrt 2 it is -6 / sqrt 2.
        let m = DMatrix::from_row_slice(2, 2, &[1.0, 2.0, 2.0, 1.0]);
        let kept = trimmed_minimizer(m, &DVector::from_column_slice(&[-2.0, -4.0]));
        assert!((kept[0] - 0.5).abs() < 1e-14 && (kept[1] - 0.5).abs() < 1e-14, "{kept}");
    }
}
