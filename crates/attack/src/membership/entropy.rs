//! Entropy of the answer, with and without the true class.
use super::loss_threshold::per_row;
use crate::signals::{log_odds, softplus};
use crate::{Access, Attack, Error, Needs, Outcome, View};

/// A sure answer, probably a member: the score is minus the entropy of the softmax. Does not use the label.
///
/// # Source
/// Song & Mittal, *Systematic Evaluation of Privacy Risks of Machine Learning Models*, USENIX Security 2021
/// (arXiv:2003.10595), section 3.1; one threshold for all classes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Entropy;

impl Attack for Entropy {
    fn name(&self) -> &'static str {
        "entropy"
    }
    fn title(&self) -> &'static str {
        "entropy threshold: a sure answer means a member"
    }
    fn source(&self) -> &'static str {
        "Song & Mittal, Systematic Evaluation of Privacy Risks, USENIX Security 2021"
    }
    fn needs(&self) -> Needs {
        Needs { shadows: 0, access: Access::BlackBox, known_membership: false }
    }
    fn run(&self, view: &View<'_>) -> Result<Outcome, Error> {
        Ok(per_row(view, |row| -entropy(view.target().logits_of(row))))
    }
}

/// A sure and right answer, probably a member: the score is minus the modified entropy
/// `-(1 - p_y) ln p_y - sum over i != y of p_i ln(1 - p_i)`.
///
/// # Source
/// Song & Mittal 2021 (arXiv:2003.10595), section 3.2; one threshold for all classes.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModifiedEntropy;

impl Attack for ModifiedEntropy {
    fn name(&self) -> &'static str {
        "modified_entropy"
    }
    fn title(&self) -> &'static str {
        "modified entropy threshold: a sure and right answer means a member"
    }
    fn source(&self) -> &'static str {
        "Song & Mittal, Systematic Evaluation of Privacy Risks, USENIX Security 2021"
    }
    fn needs(&self) -> Needs {
        Needs { shadows: 0, access: Access::BlackBox, known_membership: false }
    }
    fn run(&self, view: &View<'_>) -> Result<Outcome, Error> {
        let target = view.target();
        Ok(per_row(view, |row| {
            -modified_entropy(target.logits_of(row), target.labels[row] as usize)
        }))
    }
}

/// Entropy of the softmax in nats: `ln S - (sum of e_i (z_i - top)) / S` with `e_i = exp(z_i - top)`, `S` their sum.
fn entropy(logits: &[f32]) -> f64 {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let (mut sum, mut weighted) = (0.0, 0.0);
    for &z in logits {
        let shifted = f64::from(z) - f64::from(top);
        sum += shifted.exp();
        weighted += shifted * shifted.exp();
    }
    f64::ln(sum) - weighted / sum
}

/// Both logarithms come from log-odds, so none is taken of a difference `1 - p` that has lost its digits.
fn modified_entropy(logits: &[f32], label: usize) -> f64 {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&z| (f64::from(z) - f64::from(top)).exp()).sum();
    let mut total = 0.0;
    for (class, &z) in logits.iter().enumerate() {
        let p = (f64::from(z) - f64::from(top)).exp() / sum;
        // 1 - p is accurate unless p is near 1, and then the log-odds are.
        let (ln_p, ln_not_p, not_p) = if p <= 0.5 {
            (f64::from(z) - f64::from(top) - sum.ln(), (-p).ln_1p(), 1.0 - p)
        } else {
            let odds = log_odds(logits, class);
            (-softplus(-odds), -softplus(odds), (-softplus(odds)).exp())
        };
        total -= if class == label { not_p * ln_p } else { p * ln_not_p };
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the spec's worked example, p = (.7, .2, .1).
    #[test]
    fn modified_entropy_of_a_worked_example() {
        let logits: Vec<f32> = [0.7f32, 0.2, 0.1].iter().map(|p| p.ln()).collect();
        assert!((modified_entropy(&logits, 0) - 0.162_167).abs() < 1e-6);
        assert!((modified_entropy(&logits, 2) - 2.959_736).abs() < 1e-5);
    }

    /// A tool took logits that sum to 1 for probabilities and found 1.386 and 4.394.
    #[test]
    fn logits_that_sum_to_one_are_logits_still() {
        assert!((modified_entropy(&[2.0, -1.0], 0) - 0.004_610).abs() < 1e-5);
        assert!((modified_entropy(&[3.0, -2.0], 0) - 0.000_090).abs() < 1e-6);
    }

    /// By hand: a uniform answer over 4 classes has ln 4; a certain one has 0; the modified form of a certain and wrong one grows with the logit.
    #[test]
    fn extremes_are_finite_and_right() {
        assert!((entropy(&[5.0; 4]) - 4f64.ln()).abs() < 1e-12);
        assert!(entropy(&[900.0, 0.0, -900.0]).abs() < 1e-300);
        let wrong = modified_entropy(&[100.0, 0.0], 1);
        // -(1-p_y) ln p_y = 100; the other class has p = 1 - e^-100, ln(1 - p) = -100.
        assert!((wrong - 200.0).abs() < 1e-9, "{wrong}");
    }
}
