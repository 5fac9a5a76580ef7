//! The largest true-positive rate any attack can have under a guarantee.
use crate::{Delta, Epsilon};

/// Largest TPR at `fpr` under `(epsilon, delta)`-DP: `min(e^eps fpr + delta, 1 - e^-eps (1 - delta - fpr))`, in `[0, 1]`.
///
/// # Source
/// Kairouz, Oh & Viswanath 2015 (arXiv:1311.0776), Theorem 2.1, solved for the true-positive rate.
#[must_use]
pub fn tpr_ceiling(epsilon: Epsilon, delta: Delta, fpr: f64) -> f64 {
    if epsilon.is_unbounded() || fpr.is_nan() {
        return 1.0;
    }
    let fpr = fpr.clamp(0.0, 1.0);
    let (epsilon, delta) = (epsilon.get(), delta.get());
    // At fpr 0 the first term is delta for every epsilon; e^eps may overflow there.
    let low = if fpr > 0.0 { epsilon.exp() * fpr + delta } else { delta };
    let high = 1.0 - (-epsilon).exp() * (1.0 - delta - fpr);
    low.min(high).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ceiling_is_the_hand_worked_one() {
        let at = |e: f64, d: f64, f: f64| {
            tpr_ceiling(Epsilon::new(e).unwrap(), Delta::new(d).unwrap(), f)
        };
        // e^(ln 2) * 0.1 = 0.2, and 0.01 of delta on top; beyond the corner 1 - (1 - 0.8) / 2 = 0.9.
        assert!((at(2.0_f64.ln(), 0.0, 0.1) - 0.2).abs() < 1e-15);
        assert!((at(2.0_f64.ln(), 0.01, 0.1) - 0.21).abs() < 1e-15);
        assert!((at(2.0_f64.ln(), 0.0, 0.8) - 0.9).abs() < 1e-15);
        // No privacy loss: guessing. Delta 1 and overflow: anything.
        assert!((at(0.0, 0.0, 0.37) - 0.37).abs() < 1e-15);
        assert!((at(0.0, 1.0, 0.0) - 1.0).abs() < 1e-15);
        assert!((at(2000.0, 0.25, 0.0) - 0.25).abs() < 1e-15);
        assert!((at(2000.0, 0.0, 1e-9) - 1.0).abs() < 1e-15);
        // No bound, or no rate: anything, at rate 0 as well.
        assert!((at(1.0, 0.1, f64::NAN) - 1.0).abs() < 1e-15);
        let unbounded = tpr_ceiling(Epsilon::UNBOUNDED, Delta::new(0.1).unwrap(), 0.0);
        assert!((unbounded - 1.0).abs() < 1e-15);
    }
}
