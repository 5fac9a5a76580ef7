//! Properties over random settings.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::suboptimal_flops,
    clippy::float_cmp,
    reason = "a test fails by panicking, and compares with plain arithmetic"
)]
use dosimeter_privacy::{
    Accountant, Bounded, BoundedL1, Delta, Epsilon, Event, LaplaceScale, Ledger, NoiseMultiplier,
    NoiseRng, Relation, SamplingRate, Unit,
    accountants::{Pld, Rdp},
    calibrate::{self, Budget},
    ceiling::tpr_ceiling,
    mechanisms::Gaussian,
};
use proptest::prelude::*;

const BOUNDS: [&dyn Accountant; 2] = [&Pld, &Rdp];
/// What PLD's grid may add, relative.
const EXCESS: f64 = 2e-4;

fn cost(a: &dyn Accountant, q: f64, z: f64, steps: u64, delta: f64) -> f64 {
    let plan =
        calibrate::planned(SamplingRate::new(q).unwrap(), NoiseMultiplier::new(z).unwrap(), steps);
    a.epsilon_upper(&plan, Relation::AddRemove, Delta::new(delta).unwrap()).unwrap().get()
}

/// The released value with next to no noise: what clipping left, but for 1e-5 of the norm.
fn clipped(values: &[f32], norm: f64) -> Vec<f32> {
    let mechanism = Gaussian { noise_multiplier: NoiseMultiplier::new(1e-6).unwrap() };
    let input = Bounded::clip(values.to_vec(), norm).unwrap();
    let mut ledger = Ledger::new(Unit::Record);
    ledger.release(&mechanism, input, &mut NoiseRng::experiment([0; 32])).unwrap().into_inner()
}

fn log_uniform(low: f64, high: f64) -> impl Strategy<Value = f64> {
    (low.ln()..high.ln()).prop_map(f64::exp)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn clipping_shortens_what_is_too_long_and_leaves_the_rest(
        values in prop::collection::vec(-1.0_f32..1.0, 1..40),
        norm in log_uniform(1e-3, 1e3),
        // Around the threshold, where an off-by-one in the comparison would show.
        factor in prop_oneof![0.2_f64..5.0, 1.0 - 1e-4..1.0 + 1e-4],
    ) {
        let length = values.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
        prop_assume!(length > 1e-3);
        let values: Vec<f32> =
            values.iter().map(|&x| (f64::from(x) / length * norm * factor) as f32).collect();
        let expected = factor.min(1.0) / factor;
        for (got, &given) in clipped(&values, norm).iter().zip(&values) {
            let wanted = f64::from(given) * expected;
            prop_assert!((f64::from(*got) - wanted).abs() <= 2e-5 * norm, "{got} is not {wanted}");
        }
    }

    #[test]
    fn the_clipping_norm_is_kept_to_the_last_bit(
        values in prop::collection::vec(prop::num::f32::NORMAL | prop::num::f32::ZERO, 1..20),
        norm in log_uniform(1e-6, 1e6),
    ) {
        // What a second clipping would change was too long after the first.
        let once = Bounded::clip(values.clone(), norm).unwrap();
        prop_assert_eq!(once.clipping_norm(), norm);
        let debug = format!("{once:?}");
        let inner: Vec<f32> = debug[debug.find('[').unwrap() + 1..debug.find(']').unwrap()]
            .split(", ").map(|x| x.parse().unwrap()).collect();
        let length = inner.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
        prop_assert!(length <= norm, "{length} is above {norm}");
        prop_assert_eq!(Bounded::clip(inner, norm).unwrap(), once);
        let l1 = format!("{:?}", BoundedL1::clip(values, norm).unwrap());
        let sum: f64 = l1[l1.find('[').unwrap() + 1..l1.find(']').unwrap()]
            .split(", ").map(|x| x.parse::<f64>().unwrap().abs()).sum();
        prop_assert!(sum <= norm * (1.0 + 1e-6), "{sum} is above {norm}");
    }

    #[test]
    fn a_ceiling_is_a_share_that_grows_with_epsilon_delta_and_the_false_positives(
        epsilon in 0.0_f64..20.0, more in 0.0_f64..5.0,
        delta in 0.0_f64..1.0, fpr in 0.0_f64..1.0, step in 0.0_f64..0.5,
    ) {
        let at = |e: f64, d: f64, f: f64| {
            tpr_ceiling(Epsilon::new(e).unwrap(), Delta::new(d).unwrap(), f)
        };
        let here = at(epsilon, delta, fpr);
        prop_assert!((0.0..=1.0).contains(&here));
        prop_assert!(here >= fpr - 1e-12, "guessing reaches {fpr}");
        prop_assert!(at(epsilon + more, delta, fpr) >= here - 1e-12);
        prop_assert!(at(epsilon, (delta + step).min(1.0), fpr) >= here - 1e-12);
        prop_assert!(at(epsilon, delta, (fpr + step).min(1.0)) >= here - 1e-12);
        // The region of possible error rates is symmetric: swapping the roles of the neighbours gives it again.
        if here < 1.0 {
            prop_assert!((at(epsilon, delta, 1.0 - here) - (1.0 - fpr)).abs() < 1e-6
                || at(epsilon, delta, 1.0 - here) >= 1.0 - fpr - 1e-9);
        }
        prop_assert_eq!(tpr_ceiling(Epsilon::UNBOUNDED, Delta::new(delta).unwrap(), fpr), 1.0);
    }

    #[test]
    fn ledgers_survive_json_and_count_what_was_recorded(
        plan in prop::collection::vec((0_usize..4, 0.1_f64..5.0, 1_u64..1000), 0..12),
    ) {
        let mut ledger = Ledger::new(Unit::FeatureVector);
        for &(kind, x, count) in &plan {
            let event = match kind {
                0 => Event::gaussian(NoiseMultiplier::new(x).unwrap()),
                1 => Event::Laplace { scale: LaplaceScale::new(x).unwrap() },
                2 => Event::RandomizedResponse { epsilon: Epsilon::new(x).unwrap(), categories: 3 },
                _ => Event::gaussian(NoiseMultiplier::new(x).unwrap())
                    .sampled(SamplingRate::new(x / 5.0).unwrap()),
            };
            ledger.record(event, count);
        }
        let total: u64 = ledger.events().iter().map(|e| e.unrepeated().1).sum();
        prop_assert_eq!(total, plan.iter().map(|p| p.2).sum::<u64>());
        let text = serde_json::to_string(&ledger).unwrap();
        prop_assert_eq!(serde_json::from_str::<Ledger>(&text).unwrap(), ledger);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn epsilon_grows_with_steps_and_rate_and_falls_with_delta_and_noise(
        q in log_uniform(1e-4, 0.9), z in log_uniform(0.4, 20.0),
        steps in log_uniform(1.0, 1e5), delta in log_uniform(1e-12, 0.5),
        factor in 1.05_f64..3.0,
    ) {
        let steps = steps as u64;
        for a in BOUNDS {
            let here = cost(a, q, z, steps, delta);
            prop_assert!(here >= 0.0 && !here.is_nan());
            let (least, most) = (here * (1.0 - EXCESS), here * (1.0 + EXCESS) + 1e-12);
            prop_assert!(cost(a, q, z, (steps as f64 * factor) as u64 + 1, delta) >= least);
            prop_assert!(cost(a, (q * factor).min(1.0), z, steps, delta) >= least);
            prop_assert!(cost(a, q, z, steps, (delta * factor).min(1.0)) <= most);
            prop_assert!(cost(a, q, z * factor, steps, delta) <= most);
        }
        // And the tightest is the tightest.
        let (pld, rdp) = (cost(&Pld, q, z, steps, delta), cost(&Rdp, q, z, steps, delta));
        prop_assert!(pld <= rdp * (1.0 + EXCESS) + 1e-12, "pld {pld} rdp {rdp}");
    }

    #[test]
    fn the_calibrated_noise_holds_the_budget_and_slightly_less_does_not(
        q in log_uniform(1e-3, 1.0), steps in log_uniform(1.0, 1e4),
        target in log_uniform(0.05, 20.0), delta in log_uniform(1e-9, 1e-3),
    ) {
        let (steps, rate) = (steps as u64, SamplingRate::new(q).unwrap());
        let budget = Budget {
            epsilon: Epsilon::new(target).unwrap(),
            delta: Delta::new(delta).unwrap(),
            relation: Relation::AddRemove,
        };
        for a in BOUNDS {
            let z = calibrate::noise_multiplier(a, budget, rate, steps).unwrap().get();
            let spent = cost(a, q, z, steps, delta);
            prop_assert!(spent <= target, "{}: {spent} at {z}", a.name());
            let less = cost(a, q, z * (1.0 - 1e-3), steps, delta);
            prop_assert!(less > target, "{}: {z} is not the least noise: {less}", a.name());
        }
    }

    #[test]
    fn the_calibrated_steps_hold_the_budget_and_one_more_does_not(
        q in log_uniform(1e-3, 0.5), z in log_uniform(0.6, 5.0),
        target in log_uniform(0.5, 20.0), delta in log_uniform(1e-9, 1e-3),
    ) {
        let (rate, noise) = (SamplingRate::new(q).unwrap(), NoiseMultiplier::new(z).unwrap());
        let budget = Budget {
            epsilon: Epsilon::new(target).unwrap(),
            delta: Delta::new(delta).unwrap(),
            relation: Relation::AddRemove,
        };
        for a in BOUNDS {
            let steps = calibrate::steps(a, budget, rate, noise).unwrap();
            prop_assert!(cost(a, q, z, steps, delta) <= target);
            prop_assert!(cost(a, q, z, steps + 1, delta) > target, "{}: {steps}", a.name());
        }
    }
}
