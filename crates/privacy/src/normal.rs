//! Tails of the normal distribution and the exact privacy profile of Gaussian noise.
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Upper tail `P(N(0, 1) > x)`, relative error of a few units in the last place.
pub(crate) fn upper_tail(x: f64) -> f64 {
    0.5 * libm::erfc(x * FRAC_1_SQRT_2)
}

/// `exp(x^2) erfc(x)` for `x >= 0`: the tail without its exponential, so that it never underflows.
pub(crate) fn scaled_erfc(x: f64) -> f64 {
    if x < 20.0 {
        // The rounding error of x^2 would be magnified by exp: carry it along.
        let square = x * x;
        let rest = libm::fma(x, x, -square);
        square.exp() * (1.0 + rest) * libm::erfc(x)
    } else {
        // Asymptotic series (DLMF 7.12.1); at x = 20 the first term left out is below 1e-17.
        let r = 0.5 / (x * x);
        let series = 1.0
            - r * (1.0
                - 3.0 * r * (1.0 - 5.0 * r * (1.0 - 7.0 * r * (1.0 - 9.0 * r * (1.0 - 11.0 * r)))));
        series / (x * PI.sqrt())
    }
}

/// `ln delta(epsilon)` of Gaussian noise with `mu` = sensitivity over standard deviation, `epsilon` any real number.
///
/// # Source
/// Balle & Wang 2018 (arXiv:1805.06530), Theorem 8, written with scaled tails: `e^epsilon` times the second tail has the
/// same exponential as the first tail, so nothing overflows and little cancels.
pub(crate) fn gaussian_log_delta(epsilon: f64, mu: f64) -> f64 {
    let near = epsilon / mu - 0.5 * mu;
    let far = epsilon / mu + 0.5 * mu;
    if far < 0.0 {
        // e^epsilon is below 1 here: plain tails are fine.
        return (upper_tail(near) - epsilon.exp() * upper_tail(far)).ln();
    }
    let scale = -0.5 * near * near;
    if near >= 0.0 {
        scale
            + (0.5 * (scaled_erfc(near * FRAC_1_SQRT_2) - scaled_erfc(far * FRAC_1_SQRT_2)))
                .max(0.0)
                .ln()
    } else {
        (upper_tail(near) - 0.5 * scale.exp() * scaled_erfc(far * FRAC_1_SQRT_2)).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_of_one_gaussian_is_the_published_value() {
        // sigma 1, epsilon 1: 0.126936737507 (Balle & Wang's formula in 50 digits).
        assert!((gaussian_log_delta(1.0, 1.0).exp() - 0.126_936_737_507).abs() < 1e-12);
    }

    /// `delta(-e) = 1 - e^-e + e^-e delta(e)`: both sides integrate `max(p, e^-e q)`, and the two directions are alike.
    #[test]
    fn the_profile_at_a_negative_epsilon_follows_from_the_one_at_its_mirror_image() {
        for mu in [0.3, 1.0, 3.0] {
            for epsilon in [0.01, 0.5, 2.0, 6.0] {
                let mirrored =
                    -f64::exp_m1(-epsilon) + (gaussian_log_delta(epsilon, mu) - epsilon).exp();
                let got = gaussian_log_delta(-epsilon, mu).exp();
                assert!((got - mirrored).abs() < 1e-14, "{mu} {epsilon}: {got} {mirrored}");
            }
        }
    }

    #[test]
    fn far_below_every_loss_the_profile_is_one() {
        assert!(gaussian_log_delta(-60.0, 1.0).abs() < 1e-15);
    }

    #[test]
    fn the_scaled_tail_is_continuous_where_the_series_takes_over() {
        let (below, above) = (scaled_erfc(20.0 - 1e-12), scaled_erfc(20.0));
        assert!((below / above - 1.0).abs() < 1e-12, "{below} {above}");
        // In 50 digits. The square of 19.9 is rounded by 9e-15, which is seen in the result unless it is carried along.
        let beside = scaled_erfc(19.9) / 0.028_315_573_983_185_766 - 1.0;
        assert!(beside.abs() < 2e-15, "{beside}");
        // The last term of the series is seen only here.
        assert!((above / 0.028_174_348_741_051_32 - 1.0).abs() < 1e-15, "{above}");
        assert!((scaled_erfc(2.5) / 0.210_806_364_061_143_6 - 1.0).abs() < 2e-15);
        // exp(1) erfc(1), DLMF 7.2: 0.427583576155807.
        assert!((scaled_erfc(1.0) - 0.427_583_576_155_807).abs() < 1e-15);
    }
}
