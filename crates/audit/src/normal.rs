//! The standard normal distribution.
use libm::erfc;
use statrs::function::erf::erfc_inv;
use std::f64::consts::{SQRT_2, TAU};

/// `P[N(0, 1) <= x]`.
pub(crate) fn cdf(x: f64) -> f64 {
    0.5 * erfc(-x / SQRT_2)
}

/// `x` with `P[N(0, 1) <= x] = probability`; infinite at 0 and 1.
pub(crate) fn quantile(probability: f64) -> f64 {
    if probability <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if probability >= 1.0 {
        return f64::INFINITY;
    }
    if probability > 0.5 {
        return -quantile(1.0 - probability);
    }
    // statrs gives about ten digits; one Newton step doubles them.
    let x = -SQRT_2 * erfc_inv(2.0 * probability);
    let density = (-0.5 * x * x).exp() / TAU.sqrt();
    if density > 0.0 { x - (cdf(x) - probability) / density } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_undo_probabilities() {
        for p in [1e-300, 1e-12, 0.001, 0.025, 0.3, 0.5, 0.9, 0.999] {
            assert!((cdf(quantile(p)) / p - 1.0).abs() < 1e-11, "{p}");
        }
        assert!((quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-13);
        assert!((cdf(1.0) - 0.841_344_746_068_542_9).abs() < 1e-14);
        assert!(quantile(0.0).is_infinite() && quantile(0.0) < 0.0);
        assert!(quantile(1.0).is_infinite() && quantile(1.0) > 0.0);
    }
}
