//! Output perturbation for two classes: logistic regression and the Huber support vector machine.
//!
//! # Source
//! Chaudhuri, Monteleoni and Sarwate, JMLR 2011, sections 3.2 and 3.4; Wu et al., arXiv:1512.06388, Algorithm 1.
use super::output_perturbation::{SensitivityConstant, strongly_convex_sensitivity};
use super::{Budget, Error, Fit, Rows, positive};
use dosimeter_privacy::mechanisms::GammaNorm;
use dosimeter_privacy::{Ledger, NoiseRng, Stable, Unit};
use nalgebra::{Cholesky, DMatrix, DVector};
use serde::{Deserialize, Serialize};

/// Loss of a margin `y w . x`, `y` -1 or 1: convex, and 1-Lipschitz in `w` as rows have length at most 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClassifierLoss {
    /// `ln(1 + e^-margin)`.
    Logistic,
    /// 0 above `1 + width`, `1 - margin` below `1 - width`, a parabola between; `width` above 0.
    Huber {
        /// Half of the parabola's.
        width: f64,
    },
}
impl ClassifierLoss {
    /// Loss, slope and curvature at a margin.
    fn at(self, margin: f64) -> (f64, f64, f64) {
        match self {
            Self::Logistic => {
                let small = (-margin.abs()).exp();
                let loss = (-margin).max(0.0) + small.ln_1p();
                let wrong = if margin > 0.0 { small / (1.0 + small) } else { 1.0 / (1.0 + small) };
                (loss, -wrong, wrong * (1.0 - wrong))
            }
            Self::Huber { width } => {
                let short = 1.0 + width - margin;
                if short <= 0.0 {
                    (0.0, 0.0, 0.0)
                } else if short >= 2.0 * width {
                    (1.0 - margin, -1.0, 0.0)
                } else {
                    (short * short / (4.0 * width), -short / (2.0 * width), 0.5 / width)
                }
            }
        }
    }
}

/// Minimizes the mean loss plus `lambda / 2 |w|^2` and adds noise of density proportional to `exp(-epsilon |noise| / sensitivity)`.
/// `epsilon`-DP when one record is replaced: the objective is `lambda`-strongly convex and each loss 1-Lipschitz, so the minimizer moves by
/// at most `2 / (lambda rows)`; the regularizer is the same for both tables.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearClassifier {
    /// Which loss.
    pub loss: ClassifierLoss,
    /// Weight of the regularizer, above 0.
    pub lambda: f64,
    /// Which bound on the sensitivity: `Paper` is twice the others, which are alike here.
    pub constant: SensitivityConstant,
}

/// The minimizer is found to this length at most; it is added to the sensitivity, twice.
const SOLVER_ERROR: f64 = 1e-9;
const MOST_STEPS: usize = 500;

impl LinearClassifier {
    /// Fits to rows whose target is an end of its bounds, so -1 or 1 once scaled. The sign of `w . x` is the class.
    ///
    /// # Errors
    /// [`Error::NotAClass`] naming the row, [`Error::TooFewRows`], [`Error::Parameter`], [`Error::NotSolved`], [`Error::Privacy`].
    pub fn fit(&self, rows: &Rows, budget: Budget, rng: &mut NoiseRng) -> Result<Fit, Error> {
        let lambda = positive("lambda", self.lambda)?;
        let best = self.minimizer(rows)?;
        let n = rows.len() as u64;
        let exact = strongly_convex_sensitivity(1.0, lambda, n, self.constant);
        let sensitivity = 2.0f64.mul_add(SOLVER_ERROR, exact);
        let stable = Stable::new(best.as_slice().to_vec(), sensitivity)?;
        let mut ledger = Ledger::new(Unit::Record);
        let noisy = ledger.release(&GammaNorm { epsilon: budget.epsilon }, stable, rng)?;
        let weights = DVector::from_vec(noisy.into_inner());
        let scale = sensitivity / budget.epsilon.get();
        let variance = (weights.len() as f64 + 1.0) * scale * scale;
        let noise_covariance =
            Some(DMatrix::from_diagonal_element(weights.len(), weights.len(), variance));
        Ok(Fit { weights, noise_covariance, ledger })
    }
    /// The minimizer, not private, to 10^-9: Newton's method with halved steps. The gradient bounds the distance, as its length
    /// over `lambda`.
    ///
    /// # Errors
    /// As [`Self::fit`].
    pub fn minimizer(&self, rows: &Rows) -> Result<DVector<f64>, Error> {
        let lambda = positive("lambda", self.lambda)?;
        if let ClassifierLoss::Huber { width } = self.loss {
            positive("width", width)?;
        }
        if rows.is_empty() {
            return Err(Error::TooFewRows { needed: 1, got: 0 });
        }
        if let Some(row) = rows.iter().position(|(_, y)| y.abs() < 1.0) {
            return Err(Error::NotAClass { row: row as u64 + 1 });
        }
        let d = rows.dimension();
        let mut w = DVector::zeros(d);
        for _ in 0..MOST_STEPS {
            let (value, gradient, curvature) = self.derivatives(rows, &w);
            if gradient.norm() <= lambda * SOLVER_ERROR {
                return Ok(w);
            }
            let factors = Cholesky::new(curvature).ok_or(Error::NotSolved)?;
            let step = factors.solve(&gradient);
            let slope = gradient.dot(&step);
            let mut length = 1.0;
            // Near the minimum values are equal to the last digit, and a whole step is right.
            while length > 1e-12
                && self.value(rows, &(&w - &step * length))
                    > 1e-15f64.mul_add(value.abs(), 1e-4f64.mul_add(-length * slope, value))
            {
                length *= 0.5;
            }
            w -= step * length;
        }
        Err(Error::NotSolved)
    }
    fn value(&self, rows: &Rows, w: &DVector<f64>) -> f64 {
        let sum: f64 = rows.iter().map(|(x, y)| self.loss.at(y * dot(x, w)).0).sum();
        (0.5 * self.lambda).mul_add(w.norm_squared(), sum / rows.len() as f64)
    }
    fn derivatives(&self, rows: &Rows, w: &DVector<f64>) -> (f64, DVector<f64>, DMatrix<f64>) {
        let (d, n) = (rows.dimension(), rows.len() as f64);
        let (mut sum, mut gradient, mut curvature) = (0.0, DVector::zeros(d), DMatrix::zeros(d, d));
        for (x, y) in rows.iter() {
            let (loss, slope, bend) = self.loss.at(y * dot(x, w));
            sum += loss;
            for i in 0..d {
                gradient[i] += slope * y * x[i];
                for j in 0..d {
                    curvature[(i, j)] += bend * x[i] * x[j];
                }
            }
        }
        let value = (0.5 * self.lambda).mul_add(w.norm_squared(), sum / n);
        let gradient = gradient / n + w * self.lambda;
        (value, gradient, curvature / n + DMatrix::identity(d, d) * self.lambda)
    }
}

fn dot(x: &[f64], w: &DVector<f64>) -> f64 {
    x.iter().zip(w.iter()).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_meet_where_their_pieces_do_and_slopes_are_differences() {
        let losses = [ClassifierLoss::Logistic, ClassifierLoss::Huber { width: 0.5 }];
        assert!((losses[0].at(0.0).0 - 2.0_f64.ln()).abs() < 1e-15);
        assert_eq!(losses[1].at(-2.0), (3.0, -1.0, 0.0));
        assert!((losses[1].at(1.0).0 - 0.125).abs() < 1e-15);
        for loss in losses {
            for i in -300..300 {
                let (margin, h) = (f64::from(i) / 100.0 + 0.003, 1e-5);
                let (up, down) = (loss.at(margin + h), loss.at(margin - h));
                let (_, slope, bend) = loss.at(margin);
                assert!(((up.0 - down.0) / (2.0 * h) - slope).abs() < 1e-8, "{margin}");
                assert!(((up.1 - down.1) / (2.0 * h) - bend).abs() < 1e-8, "{margin}");
                assert!(slope.abs() <= 1.0);
            }
        }
    }
}
