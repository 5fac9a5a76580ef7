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
