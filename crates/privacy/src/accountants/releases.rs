//! From a ledger to the releases an accountant composes.
use super::Unsupported;
use crate::normal::{gaussian_log_delta, scaled_erfc, upper_tail};
use crate::{Event, Ledger, Relation};

/// One kind of release with the sensitivity of the relation already in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Release {
    /// Gaussian noise; `mu` is sensitivity over standard deviation.
    Gaussian { mu: f64 },
    /// Gaussian noise on a Poisson sample, one record added or removed.
    SampledGaussian { rate: f64, mu: f64 },
    /// Gaussian noise on a Poisson sample, one record replaced; `mu` is clipping norm over standard deviation.
    ReplacedGaussian { rate: f64, mu: f64 },
    /// Laplace noise, largest loss `epsilon`.
    Laplace { epsilon: f64 },
    /// Laplace noise on a Poisson sample, one record added or removed.
    SampledLaplace { rate: f64, epsilon: f64 },
    /// Randomized response among `categories`.
    Response { epsilon: f64, categories: u32 },
}

/// What a ledger holds for one relation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Releases {
    /// Something went out without noise.
    NoGuarantee,
    /// Distinct releases and their counts, all above 0; all Gaussians in one.
    Private(Vec<(Release, u64)>, Failure),
}

/// Probability that some release kept nothing back, from those whose theorem has a delta of its own; usually 0.
///
/// An `(epsilon, delta)` release can be made from one that fails openly with probability `delta` and is of loss `epsilon` otherwise
/// (Kairouz, Oh & Viswanath 2015, arXiv:1311.0776): failures and losses are counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Failure(f64);
impl Failure {
    /// What is left of `delta` for the losses; `None` if the failures alone exceed it.
    pub(crate) fn rest(self, delta: f64) -> Option<f64> {
        if self.0 > delta {
            None
        } else if self.0 > 0.0 {
            // Rounded down: what is left is a difference.
            Some((delta - self.0) / (1.0 - self.0) * (1.0 - 1e-12))
        } else {
            Some(delta)
        }
    }
    /// Delta of all, from that of the losses.
    pub(crate) fn with(self, delta: f64) -> f64 {
        (1.0 - self.0).mul_add(delta, self.0)
    }
}

/// Sensitivity over standard deviation above which noise counts as none.
const MOST_MU: f64 = 1e100;

/// Reads a ledger for `relation`; `name` is the accountant that a refusal names.
pub(crate) fn releases(
    ledger: &Ledger,
    relation: Relation,
    name: &'static str,
) -> Result<Releases, Unsupported> {
    let mut list: Vec<(Release, u64)> = Vec::new();
    let (mut mu_squared, mut log_kept, mut failures) = (0.0, 0.0, 0.0);
    for event in ledger.events() {
        let (event, count) = event.unrepeated();
        if count == 0 {
            continue;
        }
        let refused = || Unsupported { accountant: name, event: event.clone(), relation };
        match one(event, relation).map_err(|()| refused())? {
            One::Nothing => {}
            One::NoGuarantee => return Ok(Releases::NoGuarantee),
            // Squares and their multiples must stay finite; what is left of the noise is below any number's last bit.
            One::Release(
                Release::SampledGaussian { mu, .. } | Release::ReplacedGaussian { mu, .. },
            ) if mu > MOST_MU => return Ok(Releases::NoGuarantee),
            One::Release(Release::Gaussian { mu }) => mu_squared += count as f64 * mu * mu,
            One::Approximate { epsilon, delta } => {
                log_kept += count as f64 * (-delta).ln_1p();
                failures += count as f64 * delta;
                if epsilon > 0.0 {
                    add(&mut list, Release::Response { epsilon, categories: 2 }, count);
                }
            }
            One::Release(release) => add(&mut list, release, count),
        }
    }
    if mu_squared > 0.0 {
        // n Gaussian releases are one with mu^2 added up, exactly (Dong, Roth & Su 2019, arXiv:1905.02383).
        if !mu_squared.is_finite() {
            return Ok(Releases::NoGuarantee);
        }
        list.insert(0, (Release::Gaussian { mu: mu_squared.sqrt() }, 1));
    }
    // The sum bounds it too, and is exact for one.
    let failure = failures.min(-f64::exp_m1(log_kept) * (1.0 + 1e-12));
    Ok(Releases::Private(list, Failure(failure)))
}

fn add(list: &mut Vec<(Release, u64)>, release: Release, count: u64) {
    match list.iter_mut().find(|(r, _)| *r == release) {
        Some((_, times)) => *times = times.saturating_add(count),
        None => list.push((release, count)),
    }
}

enum One {
    Nothing,
    Approximate { epsilon: f64, delta: f64 },
    NoGuarantee,
    Release(Release),
}

fn one(event: &Event, relation: Relation) -> Result<One, ()> {
    // Two inputs of norm at most C differ by up to 2 C when one replaces the other.
    let sensitivity = match relation {
        Relation::AddRemove => 1.0,
        Relation::ReplaceOne | Relation::Local => 2.0,
    };
    Ok(One::Release(match event {
        Event::Gaussian { .. } | Event::Laplace { .. } => return additive(event, sensitivity),
        Event::Pure { .. } | Event::Approximate { .. } => return Err(()),
        Event::Under { relation: of, event } => {
            // Replacing a record is removing one and adding another.
            let steps = match (of, relation) {
                (Relation::AddRemove, Relation::ReplaceOne) => 2.0,
                (of, relation) if *of == relation => 1.0,
                _ => return Err(()),
            };
            return additive(event, steps);
        }
        // The answer of a record that is not there is not defined: add/remove makes no sense for it.
        Event::RandomizedResponse { .. } if relation == Relation::AddRemove => return Err(()),
        Event::RandomizedResponse { epsilon, .. } if epsilon.is_unbounded() => {
            return Ok(One::NoGuarantee);
        }
        Event::RandomizedResponse { epsilon, .. } if epsilon.get() == 0.0 => {
            return Ok(One::Nothing);
        }
        Event::RandomizedResponse { epsilon, categories } => {
            Release::Response { epsilon: epsilon.get(), categories: (*categories).max(2) }
        }
        Event::NonPrivate => return Ok(One::NoGuarantee),
        Event::PoissonSampled { sampling_rate, event } => {
            let (inner, count) = event.unrepeated();
            let rate = sampling_rate.get();
            if count == 0 {
                return Ok(One::Nothing);
            }
            if rate >= 1.0 && count == 1 {
                return one(inner, relation);
            }
            // Several Gaussian releases about one sample are one with less noise.
            let mu = |z: f64| (count as f64).sqrt() / z;
            match (inner, relation) {
                (Event::NonPrivate, _) => return Ok(One::NoGuarantee),
                (Event::Gaussian { noise_multiplier }, Relation::AddRemove) => {
                    let mu = mu(noise_multiplier.get());
                    if rate >= 1.0 {
                        Release::Gaussian { mu }
                    } else {
                        Release::SampledGaussian { rate, mu }
                    }
                }
                (Event::Gaussian { noise_multiplier }, Relation::ReplaceOne) => {
                    let mu = mu(noise_multiplier.get());
                    if rate >= 1.0 {
                        Release::Gaussian { mu: 2.0 * mu }
                    } else {
                        Release::ReplacedGaussian { rate, mu }
                    }
                }
                (Event::Laplace { scale }, Relation::AddRemove) if count == 1 => {
                    match scale.get().recip() {
                        epsilon if epsilon.is_finite() => Release::SampledLaplace { rate, epsilon },
                        _ => return Ok(One::NoGuarantee),
                    }
                }
                _ => return Err(()),
            }
        }
        Event::Repeated { .. } => return Err(()),
    }))
}

/// A release whose loss grows with the distance of its inputs, which is `sensitivity` times the event's own.
fn additive(event: &Event, sensitivity: f64) -> Result<One, ()> {
    let loss = |loss: f64, release: fn(f64) -> Release| match loss {
        0.0 => One::Nothing,
        loss if loss.is_finite() => One::Release(release(loss)),
        _ => One::NoGuarantee,
    };
    Ok(match event {
        Event::Gaussian { noise_multiplier } => {
            One::Release(Release::Gaussian { mu: sensitivity / noise_multiplier.get() })
        }
        Event::Laplace { scale } => {
            loss(sensitivity / scale.get(), |epsilon| Release::Laplace { epsilon })
        }
        // Of all releases of loss epsilon, an answer to one question of two possible answers gives most away: every other
        // one can be made from it (Kairouz, Oh & Viswanath 2015, arXiv:1311.0776).
        Event::Pure { epsilon } => loss(sensitivity * epsilon.get(), |epsilon| Release::Response {
            epsilon,
            categories: 2,
        }),
        Event::Approximate { epsilon, .. } if epsilon.is_unbounded() => One::NoGuarantee,
        // For neighbours of its own relation only.
        Event::Approximate { epsilon, delta } if sensitivity <= 1.0 => {
            One::Approximate { epsilon: epsilon.get(), delta: delta.get() }
        }
        Event::NonPrivate => One::NoGuarantee,
        _ => return Err(()),
    })
}

impl Release {
    /// Largest possible loss of one release, infinite for Gaussian noise.
    pub(crate) fn pure_epsilon(self) -> f64 {
        match self {
            Self::Gaussian { .. }
            | Self::SampledGaussian { .. }
            | Self::ReplacedGaussian { .. } => f64::INFINITY,
            Self::Laplace { epsilon } | Self::Response { epsilon, .. } => epsilon,
            Self::SampledLaplace { rate, epsilon } => sampled_loss(rate, epsilon),
        }
    }

    /// `ln delta(epsilon)` of one release, the worse of the two directions, for `epsilon >= 0`. Closed forms.
    pub(crate) fn log_delta(self, epsilon: f64) -> f64 {
        match self {
            Self::Gaussian { mu } => gaussian_log_delta(epsilon, mu),
            Self::Laplace { epsilon: largest } => laplace_log_delta(epsilon, largest),
            Self::Response { epsilon: largest, categories } => {
                if epsilon >= largest {
                    return f64::NEG_INFINITY;
                }
                let keep = 1.0 / (1.0 + f64::from(categories - 1) * (-largest).exp());
                (keep * -(epsilon - largest).exp_m1()).ln()
            }
            Self::SampledGaussian { rate, mu } => {
                sampled_log_delta(epsilon, rate, |e| gaussian_log_delta(e, mu))
            }
            Self::SampledLaplace { rate, epsilon: largest } => {
                sampled_log_delta(epsilon, rate, |e| laplace_log_delta(e, largest))
            }
            Self::ReplacedGaussian { rate, mu } => replaced_log_delta(epsilon, rate, mu),
        }
    }
}

fn laplace_log_delta(epsilon: f64, largest: f64) -> f64 {
    if epsilon >= largest {
        f64::NEG_INFINITY
    } else {
        (-(0.5 * (epsilon - largest)).exp_m1()).ln()
    }
}

/// Loss on the sample for a loss of the unsampled mechanism: `ln(1 - q + q e^loss)`.
pub(crate) fn sampled_loss(rate: f64, loss: f64) -> f64 {
    if loss < 30.0 {
        (rate * loss.exp_m1()).ln_1p()
    } else {
        loss + rate.ln() + ((1.0 - rate) / rate * (-loss).exp()).ln_1p()
    }
}

/// Inverse of [`sampled_loss`]; `-inf` below its range.
pub(crate) fn unsampled_loss(rate: f64, loss: f64) -> f64 {
    if loss < 1.0 {
        let x = loss.exp_m1() / rate;
        if x > -1.0 { x.ln_1p() } else { f64::NEG_INFINITY }
    } else {
        loss - rate.ln() + (-(1.0 - rate) * (-loss).exp()).ln_1p()
    }
}

/// Privacy profile under Poisson sampling, the worse of removing and adding a record, from the profile `base` of a mechanism whose two
/// directions are alike.
///
/// Removing: `q base(ln(1 + (e^epsilon - 1) / q))`. Adding: with `r = 1 - (1 - q) e^epsilon > 0`,
/// `r base(ln(q e^epsilon / r))`, and 0 otherwise (Zhu, Dong & Wang 2022, arXiv:2106.08567).
fn sampled_log_delta(epsilon: f64, rate: f64, base: impl Fn(f64) -> f64) -> f64 {
    let removing = rate.ln() + base(unsampled_loss(rate, epsilon));
    let rest = -(epsilon + (-rate).ln_1p()).exp_m1();
    if rest <= 0.0 {
        return removing;
    }
    let adding = rest.ln() + base(epsilon + rate.ln() - rest.ln());
    removing.max(adding)
}

/// Where the loss of a replaced record on a Poisson sample is `epsilon`, in standard deviations of the noise.
///
/// With `y = e^(mu s)` and `c = e^(-mu^2 / 2)` the loss is `ln((1 - q + q c y) / (1 - q + q c / y))`; solved for `s`.
pub(crate) fn replaced_position(epsilon: f64, rate: f64, mu: f64) -> f64 {
    let half = 0.5 * epsilon;
    let log_factor = ((1.0 - rate) / rate).ln() + 0.5 * mu * mu;
    // asinh(e^log_factor sinh(half)), without overflow.
    let log_sine = half.abs() + (-(-2.0 * half.abs()).exp_m1() * 0.5).ln() + log_factor;
    let area =
        if log_sine > 20.0 { log_sine + std::f64::consts::LN_2 } else { log_sine.exp().asinh() };
    (half + area.copysign(half)) / mu
}

/// Profile of a replaced record on a Poisson sample: `(1 - q) N(0) + q N(mu)` against `(1 - q) N(0) + q N(-mu)`, the
/// dominating pair of Poisson sampling under substitution (Lebeda, Regehr, Kamath & Steinke 2024, arXiv:2405.20769).
fn replaced_log_delta(epsilon: f64, rate: f64, mu: f64) -> f64 {
    let s = replaced_position(epsilon, rate, mu);
    // e^shift P(N > x)
    let tail = |x: f64, shift: f64| {
        if x > 0.0 {
            0.5 * (shift - 0.5 * x * x).exp() * scaled_erfc(x * std::f64::consts::FRAC_1_SQRT_2)
        } else {
            shift.exp() * upper_tail(x)
        }
    };
    let sampled = rate * (tail(s - mu, 0.0) - tail(s + mu, epsilon));
    let unsampled = (1.0 - rate) * (tail(s, 0.0) - tail(s, epsilon));
    (sampled + unsampled).max(0.0).ln()
}

/// Smallest `epsilon >= 0` at which the decreasing `log_delta` is at most `ln delta`, rounded up; infinite past 10^15.
pub(crate) fn solve(delta: f64, log_delta: impl Fn(f64) -> f64) -> f64 {
    // The formulas are good to about 1e-13 in delta: aim that much lower.
    let target = delta.ln() - 1e-12;
    let within = |epsilon: f64| {
        let l = log_delta(epsilon);
        l <= target && !l.is_nan()
    };
    if within(0.0) {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while !within(high) {
        low = high;
        high *= 2.0;
        if high > 1e15 {
            return f64::INFINITY;
        }
    }
    // Down from 1 by halves, so that a tiny epsilon keeps its relative precision.
    while low == 0.0 && high > 1e-300 {
        if within(0.5 * high) { high *= 0.5 } else { low = 0.5 * high }
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if within(middle) {
            high = middle
        } else {
            low = middle
        }
        if high - low <= 1e-15 * high {
            break;
        }
    }
    // Positions in the tail are differences of numbers as large as epsilon.
    high * (1.0 + 1e-13)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, wanted: f64) -> bool {
        (got - wanted).abs() <= 1e-12 * wanted.abs().max(1.0)
    }

    /// Both densities of the output at `x`: with the record and without, or with the one and with the other.
    fn densities(release: Release, x: f64) -> (f64, f64) {
        let normal = |x: f64| (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let laplace = |x: f64, epsilon: f64| 0.5 * epsilon * (-epsilon * x.abs()).exp();
        let mixed = |rate: f64, out: f64, in_it: f64| (1.0 - rate) * out + rate * in_it;
        match release {
            Release::Gaussian { mu } => (normal(x - mu), normal(x)),
            Release::SampledGaussian { rate, mu } => {
                (mixed(rate, normal(x), normal(x - mu)), normal(x))
            }
            Release::ReplacedGaussian { rate, mu } => {
                (mixed(rate, normal(x), normal(x - mu)), mixed(rate, normal(x), normal(x + mu)))
            }
            Release::Laplace { epsilon } => (laplace(x - 1.0, epsilon), laplace(x, epsilon)),
            Release::SampledLaplace { rate, epsilon } => {
                let without = laplace(x, epsilon);
                (mixed(rate, without, laplace(x - 1.0, epsilon)), without)
            }
            // Answers 0, 1, .. as cells of width 1; the true one is 0 or 1.
            Release::Response { epsilon, categories } => {
                let lie = 1.0 / (epsilon.exp() + f64::from(categories) - 1.0);
                let answer = x.floor();
                let chance = |truth: f64| {
                    if answer < 0.0 || answer >= f64::from(categories) {
                        0.0
                    } else if (answer - truth).abs() < 0.5 {
                        lie * epsilon.exp()
                    } else {
                        lie
                    }
                };
                (chance(0.0), chance(1.0))
            }
        }
    }

    /// `integral of max(0, p - e^epsilon q)`, the worse of the two directions, by midpoints.
    fn integrated(release: Release, epsilon: f64) -> f64 {
        let cells = 1000;
        let factor = epsilon.exp();
        let (mut one, mut other) = (0.0, 0.0);
        for i in 0..26 * cells {
            let x = (f64::from(i) + 0.5) / f64::from(cells) - 12.0;
            let (p, q) = densities(release, x);
            one += (p - factor * q).max(0.0);
            other += (q - factor * p).max(0.0);
        }
        one.max(other) / f64::from(cells)
    }

    #[test]
    fn the_closed_profiles_are_the_integrals_over_the_outputs() {
        for release in [
            Release::Gaussian { mu: 1.0 },
            Release::Gaussian { mu: 2.5 },
            Release::SampledGaussian { rate: 0.3, mu: 1.5 },
            Release::ReplacedGaussian { rate: 0.3, mu: 1.5 },
            Release::ReplacedGaussian { rate: 0.6, mu: 0.8 },
            Release::Laplace { epsilon: 1.5 },
            Release::SampledLaplace { rate: 0.4, epsilon: 2.0 },
            Release::Response { epsilon: 1.5, categories: 2 },
            Release::Response { epsilon: 1.5, categories: 5 },
        ] {
            for epsilon in [0.0, 0.05, 0.3, 0.8, 1.4, 1.6, 3.0] {
                let (got, wanted) =
                    (release.log_delta(epsilon).exp(), integrated(release, epsilon));
                assert!(
                    (got - wanted).abs() <= 1e-6,
                    "{release:?} at {epsilon}: {got}, not {wanted}"
                );
            }
        }
    }

    #[test]
    fn largest_losses_are_the_hand_worked_ones() {
        // Half of the records, each answered with ratios up to 3: 1/2 + 3/2.
        let sampled = Release::SampledLaplace { rate: 0.5, epsilon: 3.0_f64.ln() };
        assert!(close(sampled.pure_epsilon(), std::f64::consts::LN_2));
        assert!(close(Release::Response { epsilon: 0.7, categories: 3 }.pure_epsilon(), 0.7));
        assert!(Release::Gaussian { mu: 1e-9 }.pure_epsilon().is_infinite());
    }

    #[test]
    fn the_loss_on_a_sample_and_its_inverse_keep_their_digits() {
        assert!(close(sampled_loss(0.5, 3.0_f64.ln()), std::f64::consts::LN_2));
        assert!(close(unsampled_loss(0.5, std::f64::consts::LN_2), 3.0_f64.ln()));
        // ln(1 - q + q e^40) with q = e^-40: neither term can be left out.
        assert!(close(sampled_loss((-40.0_f64).exp(), 40.0), std::f64::consts::LN_2));
        assert!(unsampled_loss(0.5, -1.0).is_infinite(), "losses on the sample are above ln(1/2)");
        for rate in [1e-9, 0.1, 0.5, 0.999] {
            for loss in [-3.0, -1e-3, 1e-9, 0.5, 1.0, 4.0, 29.9, 30.1, 60.0, 500.0] {
                let back = unsampled_loss(rate, sampled_loss(rate, loss));
                assert!(
                    (back - loss).abs() <= 1e-11 * loss.abs().max(1.0),
                    "{rate} {loss}: {back}"
                );
            }
        }
    }

    #[test]
    fn the_position_of_a_loss_between_replaced_records_is_the_hand_worked_one() {
        // y = e^(mu s) and c = e^(-mu^2 / 2) with c y = 1: the first density is 1, the second (1 + e^(-mu^2)) / 2.
        for mu in [0.3, 1.0, 8.0] {
            let loss = 2.0_f64.ln() - f64::exp(-mu * mu).ln_1p();
            assert!(close(replaced_position(loss, 0.5, mu), 0.5 * mu), "{mu}");
            assert!(close(replaced_position(-loss, 0.5, mu), -0.5 * mu), "{mu}");
        }
        assert!(replaced_position(0.0, 0.2, 1.0).abs() < 1e-300);
        for (rate, mu) in [(0.01, 1.0), (0.3, 4.0), (0.9, 0.5)] {
            for s in [-3.0, -0.5, 0.01, 1.0, 6.0] {
                let density = |shift: f64| 1.0 - rate + rate * (shift * s - 0.5 * mu * mu).exp();
                let loss = (density(mu) / density(-mu)).ln();
                let got = replaced_position(loss, rate, mu);
                assert!((got - s).abs() <= 1e-9 * s.abs(), "{rate} {mu}: {got}, not {s}");
            }
        }
    }

    #[test]
    fn the_solution_is_precise_from_tiny_to_huge_and_infinite_past_the_largest() {
        for scale in [1e-250, 1e-9, 0.3, 1.0, 7.0, 1e9] {
            let found = solve(0.5, |epsilon| -epsilon / scale);
            let exact = std::f64::consts::LN_2 * scale;
            assert!(found >= exact && found <= exact * (1.0 + 1e-11), "{scale}: {found}");
        }
        assert!(solve(0.5, |epsilon| -epsilon / 1e16).is_infinite());
        assert!(solve(0.5, |_| f64::NAN).is_infinite());
        assert!(solve(0.5, |_| -1.0).abs() < 1e-300);
    }
}
