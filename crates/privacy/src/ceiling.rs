//! The largest true-positive rate any attack can have under a guarantee.
use crate::{Delta, Epsilon};

/// Largest TPR at `fpr` under `(epsilon, delta)`-DP: `min(e^eps fpr + delta, 1 - e^-eps (1 - delta - fpr))`, in `[0, 1]`.
#[must_use]
pub fn tpr_ceiling(_epsilon: Epsilon, _delta: Delta, _fpr: f64) -> f64 {
    todo!()
}
