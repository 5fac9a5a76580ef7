//! Rényi differential privacy.
use super::pld::Atoms;
use super::releases::{Release, Releases, releases};
use super::{Accountant, Unsupported};
use crate::{Delta, Epsilon, Ledger, Relation};

/// Rényi differential privacy at fixed orders, converted by the best known formula.
///
/// Sampled Gaussian: Mironov, Talwar & Zhang 2019 (arXiv:1908.10530), Section 3.3, with the signs of the fractional
/// binomials kept (dropping them is safe but loses up to a factor 3.4). Conversion: Canonne, Kamath & Steinke 2020
/// (arXiv:2004.00010), and epsilon 0 where `delta^2 >= 1 - exp(-KL)` (Bretagnolle & Huber).
#[derive(Debug, Clone, Copy)]
pub struct Rdp;

/// The orders: 1.1 to 10.9 by tenths, 11 to 63, then powers of two up to 1024.
#[must_use]
pub fn orders() -> Vec<f64> {
    let tenths = (1..100).map(|i| 1.0 + f64::from(i) / 10.0);
    tenths.chain((11..64).map(f64::from)).chain([128.0, 256.0, 512.0, 1024.0]).collect()
}

impl Accountant for Rdp {
    fn name(&self) -> &'static str {
        "rdp"
    }
    fn what(&self) -> &'static str {
        "Renyi differential privacy over a grid of orders: a looser bound, and a cross-check of pld"
    }
    fn source(&self) -> &'static str {
        "Mironov, CSF 2017; Mironov, Talwar & Zhang, arXiv:1908.10530"
    }
    fn epsilon_upper(
        &self,
        ledger: &Ledger,
        relation: Relation,
        delta: Delta,
    ) -> Result<Epsilon, Unsupported> {
        let delta = delta.get();
        let (list, failure) = match releases(ledger, relation, self.name())? {
            _ if delta >= 1.0 => return Ok(Epsilon::at_least(0.0)),
            Releases::NoGuarantee => return Ok(Epsilon::UNBOUNDED),
            Releases::Private(list, failure) => (list, failure),
        };
        let Some(delta) = failure.rest(delta) else { return Ok(Epsilon::UNBOUNDED) };
        if list.is_empty() {
            return Ok(Epsilon::at_least(0.0));
        }
        // Order infinity: the sum of the largest losses, at any delta.
        let pure: f64 = list.iter().map(|&(r, n)| n as f64 * r.pure_epsilon()).sum();
        let divergences: Vec<RenyiOf> = list.iter().map(|&(r, _)| RenyiOf::new(r)).collect();
        let best = orders()
            .into_iter()
            .map(|order| {
                let total: f64 =
                    divergences.iter().zip(&list).map(|(d, &(_, n))| n as f64 * d.at(order)).sum();
                convert(order, total, delta)
            })
            .fold(pure, f64::min);
        Ok(Epsilon::at_least(best))
    }
}

/// Epsilon at `delta` from Rényi divergence `total` at `order`.
fn convert(order: f64, total: f64, delta: f64) -> f64 {
    if delta * delta + (-total).exp_m1() > 0.0 {
        0.0
    } else if delta > 0.0 {
        total + (-1.0 / order).ln_1p() - (delta * order).ln() / (order - 1.0)
    } else {
        f64::INFINITY
    }
}

/// Rényi divergence of one sampled Gaussian release, one record added or removed.
///
/// `noise_multiplier` and `sampling_rate` as in the event, `order` above 1; nats.
#[must_use]
pub fn sampled_gaussian(
    sampling_rate: crate::SamplingRate,
    noise_multiplier: crate::NoiseMultiplier,
    order: f64,
) -> f64 {
    let (rate, mu) = (sampling_rate.get(), noise_multiplier.get().recip());
    let release =
        if rate >= 1.0 { Release::Gaussian { mu } } else { Release::SampledGaussian { rate, mu } };
    RenyiOf::new(release).at(order)
}

/// Rényi divergence of one release as a function of the order.
struct RenyiOf {
    release: Release,
    /// For pairs without a formula, and where the series converges too slowly: the law of the loss.
    atoms: Option<Atoms>,
}
impl RenyiOf {
    fn new(release: Release) -> Self {
        let by_atoms =
            matches!(release, Release::ReplacedGaussian { .. } | Release::SampledGaussian { .. });
        let atoms = by_atoms.then(|| Atoms::of(release, false));
        Self { release, atoms }
    }
    /// `ln E_Q[(dP/dQ)^order] / (order - 1)`.
    fn at(&self, order: f64) -> f64 {
        let value = match self.release {
            Release::Gaussian { mu } => 0.5 * order * mu * mu,
            Release::Laplace { epsilon } => laplace(epsilon, order),
            Release::Response { epsilon, categories } => {
                let k = f64::from(categories);
                let log_total = log_add(epsilon, (k - 1.0).ln());
                let others = (k - 2.0).ln();
                let sum = log_add(log_add(order * epsilon, (1.0 - order) * epsilon), others);
                (sum - log_total) / (order - 1.0)
            }
            Release::SampledGaussian { rate, mu } => {
                let log_moment = if order.fract() == 0.0 {
                    sampled_integer(rate, order, |k| 0.5 * k * (k - 1.0) * mu * mu)
                } else {
                    sampled_gaussian_fractional(rate, mu, order)
                        .or_else(|| self.atoms.as_ref().map(|a| a.log_moment(order - 1.0)))
                        .unwrap_or(f64::INFINITY)
                };
                log_moment / (order - 1.0)
            }
            // Between integers the divergence at the next one is a bound: it grows with the order.
            Release::SampledLaplace { rate, epsilon } => {
                let order = order.ceil();
                let moment = |k: f64| if k < 2.0 { 0.0 } else { (k - 1.0) * laplace(epsilon, k) };
                sampled_integer(rate, order, moment) / (order - 1.0)
            }
            Release::ReplacedGaussian { .. } => match &self.atoms {
                Some(atoms) => atoms.log_moment(order - 1.0) / (order - 1.0),
                None => f64::INFINITY,
            },
        };
        // The divergence is at least 0; rounding may leave -1e-17, and a failed series NaN.
        if value.is_nan() { f64::INFINITY } else { value.max(0.0) }
    }
}

/// Mironov 2017 (arXiv:1702.07476), Table II.
fn laplace(epsilon: f64, order: f64) -> f64 {
    let high = (order / (2.0 * order - 1.0)).ln() + (order - 1.0) * epsilon;
    let low = ((order - 1.0) / (2.0 * order - 1.0)).ln() - order * epsilon;
    log_add(high, low) / (order - 1.0)
}

/// `ln sum_k C(order, k) (1 - q)^(order - k) q^k e^(log_moment(k))` for an integer order.
fn sampled_integer(rate: f64, order: f64, log_moment: impl Fn(f64) -> f64) -> f64 {
    let (log_in, log_out) = (rate.ln(), (-rate).ln_1p());
    let mut log_choose = 0.0;
    let mut sum = order * log_out;
    let mut k = 0.0;
    while k < order {
        log_choose += ((order - k) / (k + 1.0)).ln();
        k += 1.0;
        sum = log_add(sum, log_choose + k * log_in + (order - k) * log_out + log_moment(k));
    }
    sum
}

/// The two signed series of Mironov, Talwar & Zhang for a fractional order; `None` if 300 terms do not suffice (little
/// noise: the terms then fall off like a power only).
fn sampled_gaussian_fractional(rate: f64, mu: f64, order: f64) -> Option<f64> {
    let sigma = mu.recip();
    let (log_in, log_out) = (rate.ln(), (-rate).ln_1p());
    // Below z0 the unsampled density is the larger one: there the series runs in q / (1 - q), above it in the inverse.
    let z0 = sigma * sigma * (log_out - log_in) + 0.5;
    let mut total = 0.0_f64; // in units of e^reference
    let mut reference = f64::NEG_INFINITY;
    let mut log_choose = 0.0; // ln |C(order, i)|
    let mut sign = 1.0;
    let mut i = 0.0;
    loop {
        let j = order - i;
        let left = log_choose
            + i * log_in
            + j * log_out
            + 0.5 * i * (i - 1.0) * mu * mu
            + log_upper_tail((i - z0) * mu);
        let right = log_choose
            + j * log_in
            + i * log_out
            + 0.5 * j * (j - 1.0) * mu * mu
            + log_upper_tail((z0 - j) * mu);
        let term = log_add(left, right);
        if term > reference {
            total *= (reference - term).exp();
            reference = term;
        }
        total += sign * (term - reference).exp();
        // The whole is at least 1, and past the order the terms alternate and fall.
        if i > order && term < -37.0 {
            break;
        }
        if i > 300.0 {
            return None;
        }
        let ratio = (order - i) / (i + 1.0);
        if ratio == 0.0 {
            break;
        }
        log_choose += ratio.abs().ln();
        sign *= ratio.signum();
        i += 1.0;
    }
    (total > 0.0).then(|| reference + total.ln())
}

fn log_upper_tail(x: f64) -> f64 {
    if x < 5.0 {
        crate::normal::upper_tail(x).ln()
    } else {
        (0.5 * crate::normal::scaled_erfc(x * std::f64::consts::FRAC_1_SQRT_2)).ln() - 0.5 * x * x
    }
}

/// `ln(e^a + e^b)`.
fn log_add(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, wanted: f64) -> bool {
        (got - wanted).abs() <= 1e-13 * wanted.abs().max(1.0)
    }

    #[test]
    fn divergences_are_the_hand_worked_ones() {
        let two = 2.0_f64.ln();
        let at = |release: Release, order: f64| RenyiOf::new(release).at(order);
        assert!(close(at(Release::Gaussian { mu: 0.5 }, 3.0), 0.375));
        // Chances 1/2, 1/4, 1/4 against 1/4, 1/2, 1/4: 1 + 1/8 + 1/4, and 2 + 1/16 + 1/4.
        let response = Release::Response { epsilon: two, categories: 3 };
        assert!(close(at(response, 2.0), (11.0_f64 / 8.0).ln()));
        assert!(close(at(response, 3.0), 0.5 * (37.0_f64 / 16.0).ln()));
        // Chances 3/4, 1/4: 9/4 + 1/12.
        let bit = Release::Response { epsilon: 3.0_f64.ln(), categories: 2 };
        assert!(close(at(bit, 2.0), (7.0_f64 / 3.0).ln()));
        // Order 2: 2/3 2 + 1/3 1/4. Order 3: 3/5 4 + 2/5 1/8.
        let laplace = Release::Laplace { epsilon: two };
        assert!(close(at(laplace, 2.0), (17.0_f64 / 12.0).ln()));
        assert!(close(at(laplace, 3.0), 0.5 * 2.45_f64.ln()));
        // Moments 1, 1, 17/12, 2.45 with weights 1, 2, 1 over 4 and 1, 3, 3, 1 over 8; between integers the next one.
        let sampled = Release::SampledLaplace { rate: 0.5, epsilon: two };
        assert!(close(at(sampled, 2.0), (53.0_f64 / 48.0).ln()));
        assert!(close(at(sampled, 3.0), 0.5 * 1.3375_f64.ln()));
        assert!(close(at(sampled, 2.5), at(sampled, 3.0)));
    }

    #[test]
    fn the_divergence_between_replaced_records_is_the_integral_over_the_outputs() {
        let (rate, mu) = (0.3, 1.2);
        let divergences = RenyiOf::new(Release::ReplacedGaussian { rate, mu });
        for order in [1.5, 2.0, 3.0, 6.0] {
            // Without the factor that all densities share until the end.
            let sum: f64 = (-1500..1500)
                .map(|i| {
                    let x = 0.01 * f64::from(i);
                    let density =
                        |shift: f64| 1.0 - rate + rate * (shift * x - 0.5 * mu * mu).exp();
                    (-0.5 * x * x).exp() * density(-mu) * (density(mu) / density(-mu)).powf(order)
                })
                .sum();
            let moment = 0.01 * sum / (2.0 * std::f64::consts::PI).sqrt();
            let wanted = moment.ln() / (order - 1.0);
            let got = divergences.at(order);
            assert!((got - wanted).abs() <= 1e-9 * wanted, "order {order}: {got}, not {wanted}");
        }
    }

    #[test]
    fn the_conversion_is_the_hand_worked_one() {
        // 1 + ln(1/2) - ln(1/2) / 1, and 2 + ln(2/3) - ln(1) / 2.
        assert!(close(convert(2.0, 1.0, 0.25), 1.0));
        assert!(close(convert(3.0, 2.0, 1.0 / 3.0), 2.0 + (2.0_f64 / 3.0).ln()));
        // 1/4 is above 1 - e^-0.25 and below 1 - e^-0.3.
        assert!(convert(2.0, 0.25, 0.5).abs() < 1e-300);
        assert!(close(convert(2.0, 0.3, 0.5), 0.3 - 2.0_f64.ln()));
        assert!(convert(2.0, 1.0, 0.0).is_infinite());
    }

    /// Through [`RenyiOf::at`] a series that gave up would be compared with what it falls back on.
    #[test]
    fn the_series_itself_is_taken_where_it_converges() {
        for (rate, noise) in [(0.001, 1.0), (0.001, 8.0), (0.1, 8.0)] {
            let atoms = Atoms::of(Release::SampledGaussian { rate, mu: 1.0 / noise }, false);
            for order in [1.1, 1.7, 3.3, 10.9] {
                let (got, wanted) = (
                    sampled_gaussian_fractional(rate, 1.0 / noise, order),
                    atoms.log_moment(order - 1.0),
                );
                assert!(
                    got.is_some_and(|got| (got - wanted).abs() <= 1e-8 * wanted + 1e-13),
                    "rate {rate} noise {noise} order {order}: {got:?} {wanted}"
                );
            }
        }
        // 25 terms a power apart would need thousands: it must say so.
        assert!(sampled_gaussian_fractional(0.5, 2.0, 1.1).is_none());
    }

    #[test]
    fn logarithms_of_tails_and_sums_are_good_where_the_numbers_underflow() {
        // Of P(N > 3), P(N > 6) and P(N > 40), in 50 digits.
        for (x, wanted) in [
            (3.0, -6.607_726_221_510_35),
            (6.0, -20.736_768_949_974_706),
            (40.0, -804.608_442_013_753_8),
        ] {
            assert!(close(log_upper_tail(x), wanted), "{x}");
        }
        assert!(close(log_add(2.0_f64.ln(), 3.0_f64.ln()), 5.0_f64.ln()));
        assert!(close(log_add(-2000.0, f64::NEG_INFINITY), -2000.0));
        assert!(close(log_add(1000.0, 1000.0), 1000.0 + 2.0_f64.ln()));
    }

    #[test]
    fn the_series_agrees_with_quadrature() {
        for rate in [0.001, 0.1, 0.5] {
            for noise in [0.5, 1.0, 8.0] {
                let release = Release::SampledGaussian { rate, mu: 1.0 / noise };
                let (series, atoms) = (RenyiOf::new(release), Atoms::of(release, false));
                for order in [1.1, 1.7, 2.0, 3.3, 7.0, 10.9] {
                    let (a, b) = (series.at(order), atoms.log_moment(order - 1.0) / (order - 1.0));
                    assert!(
                        (a - b).abs() <= 1e-8 * b + 1e-13,
                        "rate {rate} noise {noise} order {order}: {a} {b}"
                    );
                }
            }
        }
    }
}
