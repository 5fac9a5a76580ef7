//! What must hold for any scores, against slow obvious oracles.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::suboptimal_flops,
    clippy::must_use_candidate,
    reason = "a test may stop at the first surprise, and shows its figures"
)]
use dosimeter_audit::bounds::{BOUNDS, Conditions, bound, epsilon_of_guesses, p_value};
use dosimeter_audit::{Evidence, Roc, interval};
use dosimeter_data::Seed;
use dosimeter_privacy::Delta;
use proptest::prelude::*;

/// Scores on a coarse grid, so that ties are common, with at least one record of each kind.
fn rows() -> impl Strategy<Value = (Vec<f64>, Vec<bool>)> {
    prop::collection::vec((0..12_i32, any::<bool>()), 0..60).prop_map(|rows| {
        let mut scores: Vec<f64> = rows.iter().map(|row| f64::from(row.0 - 6) / 4.0).collect();
        let mut member: Vec<bool> = rows.iter().map(|row| row.1).collect();
        scores.extend([0.25, 0.0]);
        member.extend([true, false]);
        (scores, member)
    })
}

fn roc(scores: &[f64], member: &[bool]) -> Roc {
    Roc::of(&Evidence::from_arrays(scores, member).unwrap()).unwrap()
}

fn kinds(scores: &[f64], member: &[bool]) -> (Vec<f64>, Vec<f64>) {
    let of =
        |kind| scores.iter().zip(member).filter(|(_, m)| **m == kind).map(|(s, _)| *s).collect();
    (of(true), of(false))
}

fn share(part: usize, whole: usize) -> f64 {
    f64::from(u32::try_from(part).unwrap()) / f64::from(u32::try_from(whole).unwrap())
}

fn wins(a: f64, b: f64) -> f64 {
    if a > b {
        1.0
    } else if a < b {
        0.0
    } else {
        0.5
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_area_is_the_share_of_pairs_won((scores, member) in rows()) {
        let (inside, out) = kinds(&scores, &member);
        let won: f64 = inside.iter().flat_map(|a| out.iter().map(|b| wins(*a, *b))).sum();
        let slow = won / (share(inside.len(), 1) * share(out.len(), 1));
        prop_assert!((roc(&scores, &member).auc() - slow).abs() < 1e-12);
    }

    #[test]
    fn rates_are_those_of_the_most_generous_threshold_tried_one_by_one(
        (scores, member) in rows(), target in 0..=20_u32
    ) {
        let target = f64::from(target) / 20.0;
        let (inside, out) = kinds(&scores, &member);
        let mut best = 0.0_f64;
        for threshold in &scores {
            let fpr = share(out.iter().filter(|s| *s >= threshold).count(), out.len());
            if fpr <= target {
                best = best.max(share(inside.iter().filter(|s| *s >= threshold).count(), inside.len()));
            }
        }
        let rate = roc(&scores, &member).tpr_at(target, 0.9).unwrap();
        prop_assert!((rate.value - best).abs() < 1e-15);
        prop_assert!(rate.low <= rate.value && rate.value <= rate.high && rate.value <= rate.randomised + 1e-15);
        if let Some(threshold) = rate.threshold {
            prop_assert_eq!(roc(&scores, &member).at_threshold(threshold), rate.confusion);
        }
    }

    #[test]
    fn average_precision_adds_precision_over_distinct_thresholds((scores, member) in rows()) {
        let mut thresholds = scores.clone();
        thresholds.sort_by(|a, b| b.total_cmp(a));
        thresholds.dedup();
        let (inside, _) = kinds(&scores, &member);
        let (mut before, mut slow) = (0.0, 0.0);
        for t in thresholds {
            let recall = share(inside.iter().filter(|s| **s >= t).count(), inside.len());
            let precision = share(
                scores.iter().zip(&member).filter(|(s, m)| **s >= t && **m).count(),
                scores.iter().filter(|s| **s >= t).count(),
            );
            slow += (recall - before) * precision;
            before = recall;
        }
        prop_assert!((roc(&scores, &member).average_precision() - slow).abs() < 1e-12);
    }

    #[test]
    fn accuracy_and_advantage_are_the_best_of_all_thresholds((scores, member) in rows()) {
        let curve = roc(&scores, &member);
        let (mut accuracy, mut advantage) = (0.0_f64, 0.0_f64);
        for threshold in scores.iter().copied().chain([f64::INFINITY]) {
            let right = scores.iter().zip(&member).filter(|(s, m)| (**s >= threshold) == **m).count();
            accuracy = accuracy.max(share(right, scores.len()));
            let confusion = curve.at_threshold(threshold);
            prop_assert!((confusion.accuracy() - share(right, scores.len())).abs() < 1e-15);
            advantage = advantage.max(confusion.advantage());
        }
        prop_assert!((curve.best_accuracy() - accuracy).abs() < 1e-15);
        prop_assert!((curve.best_advantage() - advantage).abs() < 1e-15);
    }

    /// DeLong 1988, equation 4 to 6, written out over pairs.
    #[test]
    fn the_interval_of_the_area_uses_the_variance_over_pairs((scores, member) in rows()) {
        let (inside, out) = kinds(&scores, &member);
        prop_assume!(inside.len() > 1 && out.len() > 1);
        let curve = roc(&scores, &member);
        let auc = curve.auc();
        let spread = |of: &[f64], against: &[f64], flip: bool| {
            let component = |a: &f64| {
                let won: f64 = against.iter().map(|b| if flip { wins(*b, *a) } else { wins(*a, *b) }).sum();
                won / share(against.len(), 1) - auc
            };
            let n = share(of.len(), 1);
            of.iter().map(|a| component(a).powi(2)).sum::<f64>() / (n - 1.0) / n
        };
        let variance = spread(&inside, &out, false) + spread(&out, &inside, true);
        prop_assume!(variance > 1e-12);
        let interval = curve.auc_interval(0.95).unwrap();
        let log_odds = |x: f64| (x / (1.0 - x)).ln();
        let width = 0.5 * (log_odds(interval.high) - log_odds(interval.low));
        let wanted = 1.959_963_984_540_054 * variance.sqrt() / (auc * (1.0 - auc));
        prop_assert!((width / wanted - 1.0).abs() < 1e-6, "{} {}", width, wanted);
        prop_assert!(interval.contains(auc));
    }

    #[test]
    fn points_for_drawing_and_hull_corners_lie_on_the_curve_and_rise((scores, member) in rows()) {
        let curve = roc(&scores, &member);
        let (inside, out) = kinds(&scores, &member);
        let mut all = vec![(0.0, 0.0)];
        all.extend(curve.blocks().iter().map(|block| {
            (share(block.false_positives as usize, out.len()), share(block.true_positives as usize, inside.len()))
        }));
        for points in [curve.curve(5), curve.hull()] {
            prop_assert_eq!(points.first(), all.first());
            prop_assert_eq!(points.last(), all.last());
            prop_assert!(points.iter().all(|point| all.contains(point)));
            prop_assert!(points.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 <= w[1].1));
        }
        // Every point of the curve is on or below the hull, which bends down everywhere.
        let hull = curve.hull();
        for (x, y) in all {
            for w in hull.windows(2).filter(|w| w[0].0 <= x && x <= w[1].0 && w[0].0 < w[1].0) {
                let on_hull = w[0].1 + (x - w[0].0) / (w[1].0 - w[0].0) * (w[1].1 - w[0].1);
                prop_assert!(y <= on_hull + 1e-12);
            }
        }
    }

    #[test]
    fn shuffling_keeps_scores_and_counts((scores, member) in rows(), seed in any::<u64>()) {
        let curve = roc(&scores, &member);
        let shuffled = curve.shuffled(Seed::root(seed));
        prop_assert_eq!(shuffled.members(), curve.members());
        prop_assert_eq!(shuffled.non_members(), curve.non_members());
        prop_assert_eq!(shuffled.blocks().len(), curve.blocks().len());
        let size = |b: &dosimeter_audit::roc::Block| b.true_positives + b.false_positives;
        for (a, b) in shuffled.blocks().iter().zip(curve.blocks()) {
            prop_assert_eq!(size(a), size(b));
            prop_assert!((a.score - b.score).abs() < 1e-300);
        }
        prop_assert_eq!(shuffled, curve.shuffled(Seed::root(seed)));
    }

    /// The definition, term by term: every `i`, every probability from its product.
    #[test]
    fn the_one_run_p_value_is_the_largest_over_every_i(
        guesses in 1..40_u64, right_share in 0.0..=1.0_f64, epsilon in 0.0..4.0_f64, delta in 0.0..0.01_f64
    ) {
        let right = (share(usize::try_from(guesses).unwrap(), 1) * right_share).round() as u64;
        let q = 1.0 / (1.0 + (-epsilon).exp());
        let term = |k: u64| -> f64 {
            let ways: f64 = (0..k).map(|j| share((guesses - j) as usize, (k - j) as usize)).product();
            ways * q.powi(k as i32) * (1.0 - q).powi((guesses - k) as i32)
        };
        let beta: f64 = (right..=guesses).map(term).sum();
        let largest = (1..=right)
            .map(|i| (right - i..right).map(term).sum::<f64>() / share(i as usize, 1))
            .fold(0.0, f64::max);
        let slow = (beta + 2.0 * 50.0 * delta * largest).min(1.0);
        let fast = p_value(50, guesses, right, epsilon, delta);
        prop_assert!((fast - slow).abs() < 1e-12, "{} {}", fast, slow);
    }

    #[test]
    fn the_one_run_epsilon_is_where_the_p_value_crosses_alpha(
        guesses in 1..400_u64, right_share in 0.5..=1.0_f64, delta in prop::sample::select(vec![0.0, 1e-6, 1e-4])
    ) {
        let right = (share(usize::try_from(guesses).unwrap(), 1) * right_share).floor() as u64;
        let epsilon = epsilon_of_guesses(500, guesses, right, 0.05, delta);
        prop_assert!(p_value(500, guesses, right, epsilon + 2e-9, delta) >= 0.05);
        if epsilon > 0.0 {
            prop_assert!(p_value(500, guesses, right, epsilon, delta) < 0.05);
        }
        prop_assert!(epsilon <= epsilon_of_guesses(500, guesses, (right + 1).min(guesses), 0.05, delta) + 1e-8);
    }

    /// Every ranked threshold by counting, each limit from the public interval.
    #[test]
    fn the_bound_from_rates_is_the_best_of_all_ranked_thresholds(
        rows in prop::collection::vec((0..12_i32, any::<bool>()), 60..160), lead in 3..12_i32
    ) {
        let member: Vec<bool> = rows.iter().map(|row| row.1).collect();
        let scores: Vec<f64> =
            rows.iter().map(|row| f64::from(if row.1 { row.0 + lead } else { row.0 })).collect();
        let (mut inside, mut out) = kinds(&scores, &member);
        prop_assume!(!inside.is_empty() && !out.is_empty());
        inside.sort_by(f64::total_cmp);
        out.sort_by(|a, b| b.total_cmp(a));
        let ranks = |count: usize| {
            [1_usize, 2, 3, 4, 6, 9, 13, 19, 28, 42, 63, 94, 141].into_iter().filter(move |r| *r <= count)
        };
        let thresholds = share(ranks(inside.len()).count() + ranks(out.len()).count(), 1);
        let limits = |k: usize, n: usize| {
            interval::clopper_pearson(k as u64, n as u64, 1.0 - 2.0 * 0.05 / (2.0 * thresholds)).unwrap()
        };
        let mut best = 0.0_f64;
        for rank in ranks(out.len()) {
            let above = inside.iter().filter(|s| **s > out[rank - 1]).count();
            let (low, high) = (limits(above, inside.len()).low, limits(rank - 1, out.len()).high);
            best = best.max(((low - 1e-3) / high).ln());
        }
        for rank in ranks(inside.len()) {
            let below = out.iter().filter(|s| **s < inside[rank - 1]).count();
            let (low, high) = (limits(below, out.len()).low, limits(rank - 1, inside.len()).high);
            best = best.max(((low - 1e-3) / high).ln());
        }
        let conditions = Conditions::new(Delta::new(1e-3).unwrap());
        let found = bound("clopper-pearson").unwrap().epsilon_lower(&roc(&scores, &member), &conditions);
        let value = found.unwrap().value;
        prop_assert!((value - best).abs() < 1e-9, "{} {}", value, best);
    }

    #[test]
    fn no_bound_shows_more_than_a_perfect_attack_could(
        (scores, member) in rows(), delta in prop::sample::select(vec![1e-9, 1e-5, 0.3])
    ) {
        let conditions = Conditions::new(Delta::new(delta).unwrap());
        for bound in BOUNDS {
            let lower = bound.epsilon_lower(&roc(&scores, &member), &conditions).unwrap();
            prop_assert!(lower.value >= 0.0 && lower.value.is_finite());
            prop_assert!(lower.value <= lower.largest_possible + 1e-9, "{:?}", lower);
        }
    }
}
