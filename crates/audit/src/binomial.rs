//! Binomial probabilities and the exact limits of a binomial rate.
//!
//! `statrs` stops its incomplete beta function after 140 terms of the continued fraction, which is not enough for
//! counts in the hundreds of thousands. Sums of a binomial tail have only positive terms, need about `8 sqrt(n)` of them and lose
//! no digits, so they are summed here.
use statrs::function::gamma::ln_gamma;
use std::f64::consts::PI;

/// A probability with its complement, so that neither is rounded away near 0 or 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Probability {
    pub(crate) yes: f64,
    pub(crate) no: f64,
}
impl Probability {
    pub(crate) const fn new(yes: f64) -> Self {
        Self { yes, no: 1.0 - yes }
    }
    const fn complement(self) -> Self {
        Self { yes: self.no, no: self.yes }
    }
    /// Chance `e^eps / (1 + e^eps)` that a guess is right against an `eps`-private fair coin.
    pub(crate) fn of_right_guess(epsilon: f64) -> Self {
        let odds = (-epsilon).exp();
        Self { yes: 1.0 / (1.0 + odds), no: odds / (1.0 + odds) }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are below 2^53")]
pub(crate) const fn real(count: u64) -> f64 {
    count as f64
}

/// `ln n! - ln(sqrt(2 pi n) (n/e)^n)`.
fn stirling_error(n: f64) -> f64 {
    if n < 16.0 {
        return 0.5f64.mul_add(-(2.0 * PI).ln(), ln_gamma(n + 1.0) - (n + 0.5).mul_add(n.ln(), -n));
    }
    let s = 1.0 / (n * n);
    (1.0 / 12.0 - s * (1.0 / 360.0 - s * (1.0 / 1260.0 - s * (1.0 / 1680.0 - s / 1188.0)))) / n
}

/// `x ln(x/y) + y - x`, without cancellation when `x` is near `y`.
fn deviance(x: f64, y: f64) -> f64 {
    if (x - y).abs() < 0.1 * (x + y) {
        let v = (x - y) / (x + y);
        let mut sum = (x - y) * v;
        let mut term = 2.0 * x * v;
        let mut odd = 3.0;
        loop {
            term *= v * v;
            let next = sum + term / odd;
            if (next - sum).abs() <= f64::EPSILON * next.abs() {
                return next;
            }
            sum = next;
            odd += 2.0;
        }
    }
    x.mul_add((x / y).ln(), y - x)
}

/// `ln P[Bin(n, p) = k]`.
///
/// Source: Loader, *Fast and accurate computation of binomial probabilities*, 2000 (saddle-point form).
pub(crate) fn ln_probability(n: u64, p: Probability, k: u64) -> f64 {
    if k > n {
        return f64::NEG_INFINITY;
    }
    let (size, right, wrong) = (real(n), real(k), real(n - k));
    if k == 0 {
        return if n == 0 { 0.0 } else { size * ln(p.no, p.yes) };
    }
    if k == n {
        return size * ln(p.yes, p.no);
    }
    if p.yes <= 0.0 || p.no <= 0.0 {
        return f64::NEG_INFINITY;
    }
    0.5f64.mul_add(
        (size / (2.0 * PI * right * wrong)).ln(),
        stirling_error(size)
            - stirling_error(right)
            - stirling_error(wrong)
            - deviance(right, size * p.yes)
            - deviance(wrong, size * p.no),
    )
}

/// `ln x` where `1 - x` is known exactly too.
fn ln(x: f64, complement: f64) -> f64 {
    if complement < 0.5 { (-complement).ln_1p() } else { x.ln() }
}

/// `P[Bin(n, p) >= k]`.
pub(crate) fn at_least(n: u64, p: Probability, k: u64) -> f64 {
    if k == 0 {
        return 1.0;
    }
    if k > n {
        return 0.0;
    }
    if real(k) > real(n) * p.yes {
        rising_tail(n, p, k)
    } else {
        1.0 - rising_tail(n, p.complement(), n - k + 1)
    }
}

/// `P[Bin(n, p) <= k]`.
#[cfg(test)]
pub(crate) fn at_most(n: u64, p: Probability, k: u64) -> f64 {
    if k >= n { 1.0 } else { at_least(n, p.complement(), n - k) }
}

/// `P[Bin(n, p) >= k]` for `k` above the mean: terms only fall.
fn rising_tail(n: u64, p: Probability, k: u64) -> f64 {
    let first = ln_probability(n, p, k).exp();
    if first <= 0.0 || p.no <= 0.0 {
        return first;
    }
    let odds = p.yes / p.no;
    let (mut sum, mut term) = (1.0, 1.0);
    for right in k..n {
        term *= real(n - right) / real(right + 1) * odds;
        sum += term;
        if term < sum * 1e-17 {
            break;
        }
    }
    (first * sum).min(1.0)
}

/// Largest `p` with `P[Bin(trials, p) >= successes] <= alpha`: the exact one-sided lower limit of the rate.
///
/// Source: Clopper & Pearson 1934. 0 when there were no successes.
pub(crate) fn lower_limit(successes: u64, trials: u64, alpha: f64) -> f64 {
    if successes == 0 || alpha <= 0.0 {
        return 0.0;
    }
    if alpha >= 1.0 {
        return 1.0;
    }
    if successes >= trials {
        return (alpha.ln() / real(trials)).exp();
    }
    // Newton on ln P in p, held inside a bracket. P rises from 0 to 1; its derivative is successes / p * P[= successes].
    let (mut low, mut high) = (0.0, 1.0);
    let mut p = real(successes) / real(trials);
    for _ in 0..200 {
        let probability = Probability::new(p);
        let tail = at_least(trials, probability, successes);
        if tail <= alpha {
            low = p;
        } else {
            high = p;
        }
        if high - low <= 4.0 * f64::EPSILON * high {
            break;
        }
        let slope = real(successes) / p * ln_probability(trials, probability, successes).exp();
        let step = tail * (tail / alpha).ln() / slope;
        let next = p - step;
        if step.abs() <= 2.0 * f64::EPSILON * p {
            break;
        }
        p = if next > low && next < high { next } else { 0.5 * (low + high) };
    }
    p
}

/// Smallest `p` with `P[Bin(trials, p) <= successes] <= alpha`: the exact one-sided upper limit of the rate.
pub(crate) fn upper_limit(successes: u64, trials: u64, alpha: f64) -> f64 {
    if successes == 0 && alpha > 0.0 && alpha < 1.0 && trials > 0 {
        return -(alpha.ln() / real(trials)).exp_m1();
    }
    1.0 - lower_limit(trials.saturating_sub(successes), trials, alpha)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slow obvious way: each coefficient by its product, added up.
    fn by_summing(n: u64, p: f64, k: u64) -> f64 {
        (k..=n)
            .map(|i| {
                let coefficient: f64 = (0..i).map(|j| real(n - j) / real(i - j)).product();
                coefficient * p.powf(real(i)) * (1.0 - p).powf(real(n - i))
            })
            .sum()
    }

    #[test]
    fn tails_agree_with_the_sum_of_exact_terms() {
        for n in [1_u64, 2, 7, 30, 60] {
            for p in [0.01, 0.3, 0.5, 0.731, 0.99] {
                for k in 0..=n + 1 {
                    let (fast, slow) = (at_least(n, Probability::new(p), k), by_summing(n, p, k));
                    assert!(
                        (fast - slow).abs() <= 1e-12 * slow.max(1e-3),
                        "{n} {p} {k}: {fast} {slow}"
                    );
                    if k <= n && k > 0 {
                        let below = at_most(n, Probability::new(p), k - 1);
                        assert!((fast + below - 1.0).abs() < 1e-12);
                    }
                }
            }
        }
    }

    /// mpmath at 40 digits; the series leaves out a term of 1.1e-16 at 16.
    #[test]
    fn the_error_of_stirlings_formula_is_good_to_the_last_term_left_out() {
        for (n, wanted) in [
            (16.0, 0.005_207_655_919_609_64),
            (20.0, 0.004_166_319_691_996_922),
            (100.0, 0.000_833_330_555_634_914_7),
        ] {
            assert!((stirling_error(n) - wanted).abs() < 2e-16, "{n}: {}", stirling_error(n));
        }
    }

    #[test]
    fn probabilities_of_a_large_binomial_add_to_one() {
        let (n, p) = (100_000_u64, Probability::new(0.3));
        let sum: f64 = (0..=n).map(|k| ln_probability(n, p, k).exp()).sum();
        assert!((sum - 1.0).abs() < 1e-11, "{sum}");
    }

    #[test]
    fn degenerate_coins_have_their_obvious_probabilities() {
        let (never, always) = (Probability::new(0.0), Probability::new(1.0));
        assert_eq!(at_least(5, never, 1).to_bits(), 0.0_f64.to_bits());
        assert!((at_least(5, always, 5) - 1.0).abs() < 1e-15);
        assert!((at_least(5, never, 0) - 1.0).abs() < 1e-15);
        assert!((at_most(5, never, 0) - 1.0).abs() < 1e-15);
        assert!((ln_probability(5, always, 5)).abs() < 1e-15);
        assert!(ln_probability(5, always, 3).is_infinite());
        assert!((ln_probability(0, never, 0)).abs() < 1e-15);
    }

    /// scipy 1.17: beta.ppf(.025, 60, 41), beta.ppf(.975, 61, 40) and friends are the roots of the tail.
    #[test]
    fn limits_are_the_roots_of_the_tails() {
        for (k, n) in
            [(1_u64, 10_u64), (9, 10), (60, 100), (500, 1000), (3, 1_000_000), (499_000, 1_000_000)]
        {
            for alpha in [0.4, 0.025, 1e-6] {
                let low = lower_limit(k, n, alpha);
                let high = upper_limit(k, n, alpha);
                let at_low = at_least(n, Probability::new(low), k);
                let at_high = at_most(n, Probability::new(high), k);
                assert!((at_low / alpha - 1.0).abs() < 1e-7, "{k}/{n} {alpha}: {low} {at_low}");
                assert!((at_high / alpha - 1.0).abs() < 1e-7, "{k}/{n} {alpha}: {high} {at_high}");
                assert!(low < real(k) / real(n) && real(k) / real(n) < high);
            }
        }
        assert!((lower_limit(10, 10, 0.05) - 0.05_f64.powf(0.1)).abs() < 1e-14);
        assert!((upper_limit(0, 10, 0.05) - (1.0 - 0.05_f64.powf(0.1))).abs() < 1e-14);
        assert_eq!(lower_limit(0, 10, 0.05).to_bits(), 0.0_f64.to_bits());
        assert!((upper_limit(10, 10, 0.05) - 1.0).abs() < 1e-15);
        assert!((upper_limit(0, 0, 0.05) - 1.0).abs() < 1e-15);
    }
}
