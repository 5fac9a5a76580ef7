//! Least noise, most steps or best epsilon for a budget, rounded to the safe side.
//!
//! What comes back has been checked by the accountant it was asked of: `noise_multiplier` and `steps` never return a
//! value whose epsilon is above the budget.
use crate::{
    Accountant, Delta, Epsilon, Error, Event, Ledger, NoiseMultiplier, Relation, SamplingRate, Unit,
};

/// What may be spent, and for which neighbours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Privacy loss, nats.
    pub epsilon: Epsilon,
    /// Failure probability.
    pub delta: Delta,
    /// Neighbours.
    pub relation: Relation,
}

/// Least and largest noise multipliers that are looked at.
const NOISE: (f64, f64) = (1e-3, 1e9);
/// Relative width at which the search for the noise multiplier stops.
const NOISE_PRECISION: f64 = 1e-6;
/// Most steps that are looked at: 10^12 is far beyond any training.
const MOST_STEPS: u64 = 1_000_000_000_000;

/// The ledger of `steps` Poisson-sampled Gaussian releases: DP-SGD ahead of its run.
#[must_use]
pub fn planned(
    sampling_rate: SamplingRate,
    noise_multiplier: NoiseMultiplier,
    steps: u64,
) -> Ledger {
    let mut ledger = Ledger::new(Unit::Record);
    ledger.record(Event::gaussian(noise_multiplier).sampled(sampling_rate), steps);
    ledger
}

/// Epsilon of `steps` steps of DP-SGD.
///
/// # Errors
/// [`Error::Unsupported`] if the accountant cannot do the relation.
pub fn epsilon(
    accountant: &dyn Accountant,
    sampling_rate: SamplingRate,
    noise_multiplier: NoiseMultiplier,
    steps: u64,
    relation: Relation,
    delta: Delta,
) -> Result<Epsilon, Error> {
    Ok(accountant.epsilon_upper(
        &planned(sampling_rate, noise_multiplier, steps),
        relation,
        delta,
    )?)
}

/// Least noise multiplier, to one part in 10^6 and rounded up, with which `steps` steps stay within `budget`;
/// at least 0.001.
///
/// # Errors
/// [`Error::Unreachable`] if 10^9 is not enough (epsilon 0 at a small delta), [`Error::Unsupported`] as [`epsilon`].
pub fn noise_multiplier(
    accountant: &dyn Accountant,
    budget: Budget,
    sampling_rate: SamplingRate,
    steps: u64,
) -> Result<NoiseMultiplier, Error> {
    // Start where the noise of the sum would be about the budget; the bracket grows from there.
    let start = sampling_rate.get() * (steps as f64).sqrt() / budget.epsilon.get().clamp(1e-6, 1e6);
    least_noise(accountant, budget, start, |noise| planned(sampling_rate, noise, steps))
}

/// Least noise multiplier, to one part in 10^6 and rounded up, with which what `plan` gives stays within `budget`; at least 0.001.
/// More noise must not cost more. The search begins at `start`.
///
/// # Errors
/// [`Error::Unreachable`] if 10^9 is not enough, [`Error::Unsupported`] as [`epsilon`].
pub fn least_noise(
    accountant: &dyn Accountant,
    budget: Budget,
    start: f64,
    plan: impl Fn(NoiseMultiplier) -> Ledger,
) -> Result<NoiseMultiplier, Error> {
    let excess = |noise: f64| -> Result<f64, Error> {
        let ledger = plan(NoiseMultiplier::new(noise)?);
        let spent = accountant.epsilon_upper(&ledger, budget.relation, budget.delta)?;
        Ok(log_ratio(spent, budget.epsilon))
    };
    let start = start.clamp(0.3, 1e6);
    let unreachable = Error::Unreachable {
        what: "noise multiplier",
        epsilon: budget.epsilon.get(),
        delta: budget.delta.get(),
    };
    let found =
        last_within(start.ln(), NOISE.1.ln(), NOISE.0.ln(), NOISE_PRECISION, &|x| excess(x.exp()))?;
    Ok(NoiseMultiplier::new(found.ok_or(unreachable)?.exp())?)
}

/// Most steps that stay within `budget`; 0 if not even one does, at most 10^12.
///
/// # Errors
/// [`Error::Unsupported`] as [`epsilon`].
pub fn steps(
    accountant: &dyn Accountant,
    budget: Budget,
    sampling_rate: SamplingRate,
    noise_multiplier: NoiseMultiplier,
) -> Result<u64, Error> {
    let excess = |count: u64| -> Result<f64, Error> {
        let spent = epsilon(
            accountant,
            sampling_rate,
            noise_multiplier,
            count,
            budget.relation,
            budget.delta,
        )?;
        Ok(log_ratio(spent, budget.epsilon))
    };
    let (mut within, mut past) = (0_u64, MOST_STEPS + 1);
    let (mut within_excess, mut past_excess) = (f64::NEG_INFINITY, f64::INFINITY);
    let mut next = 1_u64;
    while past - within > 1 {
        let e = excess(next)?;
        if e <= 0.0 {
            (within, within_excess) = (next, e);
        } else {
            (past, past_excess) = (next, e);
        }
        next = if past > MOST_STEPS {
            // Epsilon grows about like the root of the steps: aim straight at the budget, a little past it.
            let growth = if e.is_finite() { (-2.2 * e).exp().clamp(2.0, 1e4) } else { 100.0 };
            ((within as f64 * growth) as u64).max(within + 1).min(MOST_STEPS)
        } else if within_excess.is_finite() && past_excess.is_finite() && past - within > 4 {
            // Secant in log-log, then one step to the far side so that both ends close in.
            let (low, high) = ((within as f64).ln(), (past as f64).ln());
            let middle = low + (high - low) * within_excess / (within_excess - past_excess);
            let guess = middle.exp();
            let nudge = ((past - within) as f64 * 0.01).max(1.0);
            let guess = if e <= 0.0 { guess + nudge } else { guess - nudge };
            (guess as u64).clamp(within + 1, past - 1)
        } else {
            within + (past - within) / 2
        };
    }
    Ok(within)
}

/// `ln(spent / budget)`, with defined answers for 0 and unbounded: at most 0 exactly when the budget holds.
fn log_ratio(spent: Epsilon, budget: Epsilon) -> f64 {
    if spent <= budget {
        if budget.is_unbounded() || spent.get() == 0.0 {
            return f64::NEG_INFINITY;
        }
        (spent.get() / budget.get()).ln().min(0.0)
    } else if budget.get() == 0.0 || spent.is_unbounded() {
        f64::INFINITY
    } else {
        (spent.get() / budget.get()).ln().max(f64::MIN_POSITIVE)
    }
}

/// The point nearest to `towards` at which the decreasing `excess` is still at most 0, coming from the side of `away`;
/// `None` if it is above 0 at `away`. Bracketing secant search (Illinois), so it ends whatever the function does.
fn last_within(
    start: f64,
    away: f64,
    towards: f64,
    precision: f64,
    excess: &dyn Fn(f64) -> Result<f64, Error>,
) -> Result<Option<f64>, Error> {
    let first = excess(start)?;
    let (mut good, mut bad) =
        if first <= 0.0 { ((start, first), None) } else { ((f64::NAN, 0.0), Some((start, first))) };
    let mut step = 0.5_f64;
    if bad.is_none() {
        while bad.is_none() {
            if good.0 <= towards {
                return Ok(Some(towards.max(good.0)));
            }
            let x = (good.0 - step).max(towards);
            let e = excess(x)?;
            if e <= 0.0 {
                good = (x, e)
            } else {
                bad = Some((x, e))
            }
            step *= 2.0;
        }
    } else {
        while good.0.is_nan() {
            let at = bad.map_or(start, |b| b.0);
            if at >= away {
                return Ok(None);
            }
            let x = (at + step).min(away);
            let e = excess(x)?;
            if e <= 0.0 {
                good = (x, e)
            } else {
                bad = Some((x, e))
            }
            step *= 2.0;
        }
    }
    let Some(mut bad) = bad else { return Ok(Some(good.0)) };
    // Weights of the Illinois rule: an end that stays put counts half as much each time.
    let (mut good_weight, mut bad_weight) = (1.0, 1.0);
    for _ in 0..200 {
        let width = good.0 - bad.0;
        if width <= precision {
            break;
        }
        let (g, b) = (good.1 * good_weight, bad.1 * bad_weight);
        let x = if g.is_finite() && b.is_finite() && b > g {
            bad.0 + width * b / (b - g)
        } else {
            bad.0 + width / 2.0
        };
        // Stay inside, and step over the root by half the wanted precision so that the last step closes the bracket.
        let margin = precision * 0.4;
        let x = (x + if good_weight <= bad_weight { margin } else { -margin })
            .clamp(bad.0 + margin.min(width / 4.0), good.0 - margin.min(width / 4.0));
        let e = excess(x)?;
        if e <= 0.0 {
            good = (x, e);
            good_weight = 1.0;
            bad_weight *= 0.5;
        } else {
            bad = (x, e);
            bad_weight = 1.0;
            good_weight *= 0.5;
        }
    }
    Ok(Some(good.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unsupported;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Epsilon by a formula of noise multiplier and steps, and how often it was asked for.
    struct Formula {
        epsilon: fn(f64, f64) -> f64,
        questions: AtomicU32,
    }
    impl Accountant for Formula {
        fn name(&self) -> &'static str {
            "formula"
        }
        fn what(&self) -> &'static str {
            "a formula"
        }
        fn source(&self) -> &'static str {
            "this test"
        }
        fn epsilon_upper(
            &self,
            ledger: &Ledger,
            _: Relation,
            _: Delta,
        ) -> Result<Epsilon, Unsupported> {
            self.questions.fetch_add(1, Ordering::Relaxed);
            let (event, steps) = ledger.events()[0].unrepeated();
            let Event::PoissonSampled { event, .. } = event else { panic!("{event:?}") };
            let Event::Gaussian { noise_multiplier } = **event else { panic!("{event:?}") };
            Ok(Epsilon::at_least((self.epsilon)(noise_multiplier.get(), steps as f64)))
        }
    }

    fn budget(epsilon: f64) -> Budget {
        Budget {
            epsilon: Epsilon::new(epsilon).unwrap(),
            delta: Delta::new(1e-5).unwrap(),
            relation: Relation::AddRemove,
        }
    }

    /// Answers are hand-worked: most steps at noise 1, least noise at 10,000 steps. One question about a long training
    /// takes seconds: numbers of questions are those that the present guesses need, and a worse guess needs more.
    #[test]
    fn searches_end_at_the_last_value_within_budget_after_few_questions() {
        let root = |z: f64, n: f64| 0.01 * n.sqrt() / z;
        let linear = |z: f64, n: f64| 0.01 * n / z;
        let both = |z: f64, n: f64| (4e-4 * n + 0.01 * n.sqrt()) / (z * z);
        let cube = |z: f64, n: f64| 1e-4 * n / z.powi(3);
        let flat = |z: f64, n: f64| 0.01 * (n / z).powf(0.2);
        let cliff = |z: f64, n: f64| if n > 777.0 * z * z { f64::INFINITY } else { 1e-3 };
        let wall = |z: f64, n: f64| if n > 777.0 * z * z { f64::INFINITY } else { 0.0 };
        let edge = (10_000.0_f64 / 777.0).sqrt();
        type Case = (fn(f64, f64) -> f64, f64, (u64, u32), (f64, u32));
        let cases: [Case; 14] = [
            (root, 0.6005, (3606, 8), (1.0 / 0.6005, 3)),
            (root, 30.01, (9_006_001, 12), (1.0 / 30.01, 7)),
            (linear, 0.0123, (1, 2), (100.0 / 0.0123, 8)),
            (linear, 30.01, (3001, 8), (100.0 / 30.01, 7)),
            (both, 0.0123, (1, 2), ((5.0_f64 / 0.0123).sqrt(), 6)),
            (both, 0.6005, (795, 8), ((5.0_f64 / 0.6005).sqrt(), 6)),
            (both, 30.01, (68_482, 11), ((5.0_f64 / 30.01).sqrt(), 5)),
            (cube, 0.0123, (123, 8), ((1.0_f64 / 0.0123).cbrt(), 7)),
            (cube, 30.01, (300_100, 12), ((1.0_f64 / 30.01).cbrt(), 5)),
            (flat, 0.6005, (780_845_404, 19), (1e-3, 5)),
            (cliff, 0.0123, (777, 19), (edge, 25)),
            (cliff, 30.01, (777, 15), (edge, 26)),
            (wall, 0.6005, (777, 16), (edge, 25)),
            (|_, _| 0.0, 0.6005, (MOST_STEPS, 7), (1e-3, 5)),
        ];
        let rate = SamplingRate::new(0.01).unwrap();
        for (i, (epsilon, spent, most, least)) in cases.into_iter().enumerate() {
            let formula = Formula { epsilon, questions: AtomicU32::new(0) };
            let found = steps(&formula, budget(spent), rate, NoiseMultiplier::new(1.0).unwrap());
            let asked = formula.questions.swap(0, Ordering::Relaxed);
            assert_eq!(found.unwrap(), most.0, "case {i}");
            assert!(asked <= most.1, "case {i}: {asked} questions");
            let found = noise_multiplier(&formula, budget(spent), rate, 10_000).unwrap().get();
            let asked = formula.questions.swap(0, Ordering::Relaxed);
            let excess = found / least.0 - 1.0;
            assert!((-1e-15..=1e-6).contains(&excess), "case {i}: {found}, not {}", least.0);
            assert!(asked <= least.1, "case {i}: {asked} questions");
        }
    }

    /// Without a budget the first step is too much, with no bound on it no noise is too little; no noise reaches 0.
    #[test]
    fn searches_without_an_answer_in_between_end_at_the_ends() {
        let formula = |epsilon| Formula { epsilon, questions: AtomicU32::new(0) };
        let (rate, one) = (SamplingRate::new(0.5).unwrap(), NoiseMultiplier::new(1.0).unwrap());
        let costly = formula(|z, n| n / z);
        assert_eq!(steps(&costly, budget(0.0), rate, one).unwrap(), 0);
        let refused = noise_multiplier(&costly, budget(0.0), rate, 10);
        assert!(matches!(refused, Err(Error::Unreachable { .. })), "{refused:?}");
        let free = Budget { epsilon: Epsilon::UNBOUNDED, ..budget(0.0) };
        let bare = formula(|_, _| f64::INFINITY);
        assert_eq!(steps(&bare, free, rate, one).unwrap(), MOST_STEPS);
        let least = noise_multiplier(&bare, free, rate, 10).unwrap().get();
        assert!((least - 1e-3).abs() < 1e-15, "{least}");
    }
}
