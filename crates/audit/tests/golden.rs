//! Published and hand-worked values.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::suboptimal_flops,
    clippy::must_use_candidate,
    reason = "a test may stop at the first surprise, and shows its figures"
)]
use dosimeter_audit::bounds::{
    delta_of_mu, epsilon_at_counts, epsilon_of_guesses, epsilon_of_mu, mu_at_counts, p_value,
};
use dosimeter_audit::interval;
use dosimeter_audit::tradeoff::{BelowBaseline, Figures, Phi, Undefined, phi, phi_patent};

#[track_caller]
fn near(got: f64, wanted: f64, within: f64) {
    assert!((got - wanted).abs() <= within, "got {got}, wanted {wanted}");
}

/// Five printed digits of the reference material, alpha 0.05, delta 0 and 1e-5.
#[test]
fn one_run_reproduces_the_reference_values() {
    for ((m, r, v), pure, approximate) in [
        ((100, 100, 100), 3.49297, 3.49022),
        ((1000, 1000, 1000), 5.80907, 5.78228),
        ((1000, 100, 95), 2.17243, 2.16518),
        ((1000, 200, 150), 0.82140, 0.81997),
        ((5000, 1500, 1400), 2.46651, 2.46367),
        ((1000, 1000, 526), 0.0, 0.0),
        ((1000, 1000, 530), 0.01400, 0.01376),
        ((1000, 0, 0), 0.0, 0.0),
    ] {
        near(epsilon_of_guesses(m, r, v, 0.05, 0.0), pure, 6e-6);
        near(epsilon_of_guesses(m, r, v, 0.05, 1e-5), approximate, 6e-6);
    }
}

#[test]
fn no_right_guess_and_less_than_half_right_show_nothing() {
    for right in [0, 300, 500] {
        near(epsilon_of_guesses(1000, 1000, right, 0.05, 1e-5), 0.0, 0.0);
    }
}

/// A level of 1 or more refutes everything: the search must end all the same.
#[test]
fn a_level_above_one_does_not_search_for_ever() {
    assert!(epsilon_of_guesses(10, 10, 10, 1.5, 0.0).is_finite());
}

#[test]
fn the_p_value_of_all_right_is_q_to_the_power_and_of_none_right_is_one() {
    let q = 1.0 / (1.0 + (-1.0_f64).exp());
    near(p_value(10, 10, 10, 1.0, 0.0), q.powi(10), 1e-15);
    near(p_value(10, 10, 0, 1.0, 0.0), 1.0, 0.0);
    // v = 1 of 1: beta = q, and the only i is 1 with P[X = 0] = 1 - q.
    near(p_value(5, 1, 1, 1.0, 0.01), q + 2.0 * 5.0 * 0.01 * (1.0 - q), 1e-15);
    near(p_value(1000, 10, 10, 1.0, 1.0), 1.0, 0.0);
}

#[test]
fn clopper_pearson_reproduces_the_reference_values() {
    for (tp, fp, n, wanted) in [
        (100, 0, 100, 3.281336),
        (1000, 0, 1000, 5.600577),
        (60, 20, 100, 0.532776),
        (50, 50, 100, 0.0),
    ] {
        near(epsilon_at_counts((tp, n), (fp, n), 0.05, 1e-5).unwrap(), wanted, 6e-7);
    }
}

#[test]
fn counts_that_cannot_be_are_refused_by_name() {
    for ((tp, members), (fp, non_members), alpha, what) in [
        ((0, 0), (0, 9), 0.05, "got 0 and 9"),
        ((0, 9), (0, 0), 0.05, "got 9 and 0"),
        ((10, 9), (0, 9), 0.05, "true positives must be at most the members, got 10"),
        ((0, 9), (10, 9), 0.05, "false positives must be at most the non-members, got 10"),
        ((5, 9), (4, 9), 0.0, "alpha must be strictly between 0 and 1, got 0"),
        ((5, 9), (4, 9), 1.0, "alpha must be strictly between 0 and 1, got 1"),
        ((5, 9), (4, 9), f64::NAN, "alpha must be strictly between 0 and 1, got NaN"),
    ] {
        let counts = ((tp, members), (fp, non_members));
        let by_rates = epsilon_at_counts(counts.0, counts.1, alpha, 0.0).unwrap_err();
        let by_curve = mu_at_counts(counts.0, counts.1, alpha).unwrap_err();
        assert!(by_rates.to_string().contains(what), "{by_rates}");
        assert_eq!(by_rates.to_string(), by_curve.to_string());
    }
    assert!(epsilon_at_counts((9, 9), (9, 9), 0.05, 0.0).is_ok());
}

#[test]
fn clopper_pearson_takes_the_better_direction() {
    // 80 of 100 non-members below, 40 of 100 members below is the mirror image of 60 and 20 with roles changed.
    let forward = epsilon_at_counts((60, 100), (20, 100), 0.05, 0.0).unwrap();
    let mirrored = epsilon_at_counts((80, 100), (40, 100), 0.05, 0.0).unwrap();
    near(forward, mirrored, 1e-12);
}

#[test]
fn the_gaussian_curve_reproduces_the_reference_values() {
    for (mu, epsilon) in [(0.5, 1.99309), (1.0, 4.37718), (2.0, 9.99726)] {
        near(epsilon_of_mu(mu, 1e-5).unwrap(), epsilon, 6e-6);
        near(delta_of_mu(mu, epsilon), 1e-5, 1e-9);
    }
    let mu = mu_at_counts((60, 100), (20, 100), 0.05).unwrap();
    near(mu, 0.54101, 6e-6);
    near(epsilon_of_mu(mu, 1e-5).unwrap(), 2.17680, 6e-6);
    near(mu_at_counts((40, 100), (60, 100), 0.05).unwrap(), 0.0, 0.0);
    // Advantage of a mu = 1 curve is delta at epsilon 0.
    near(delta_of_mu(1.0, 0.0), 0.38292, 6e-6);
    near(delta_of_mu(0.0, 1.0), 0.0, 0.0);
    near(epsilon_of_mu(0.0, 1e-5).unwrap(), 0.0, 0.0);
    near(epsilon_of_mu(1.0, 1.0).unwrap(), 0.0, 0.0);
    for (mu, delta) in [(1.0, 0.0), (1.0, 1.5), (1.0, f64::NAN), (-1.0, 0.1), (f64::INFINITY, 0.1)]
    {
        assert!(epsilon_of_mu(mu, delta).is_err(), "{mu} {delta}");
    }
    assert!(epsilon_of_mu(1.0, 0.0).unwrap_err().to_string().contains("in (0, 1], got 0"));
}

/// R 4: binom.test(60, 100), DescTools::BinomCI(60, 100, method = "wilson"); closed forms at the ends.
#[test]
fn intervals_of_rates_have_their_textbook_limits() {
    let exact = interval::clopper_pearson(60, 100, 0.95).unwrap();
    near(exact.low, 0.4972092, 5e-7);
    near(exact.high, 0.6967052, 5e-7);
    let score = interval::wilson(60, 100, 0.95).unwrap();
    near(score.low, 0.5020026, 5e-7);
    near(score.high, 0.6905987, 5e-7);
    let none = interval::clopper_pearson(0, 20, 0.95).unwrap();
    near(none.low, 0.0, 0.0);
    near(none.high, 1.0 - 0.025_f64.powf(1.0 / 20.0), 1e-14);
    near(interval::wilson(0, 20, 0.95).unwrap().low, 0.0, 0.0);
    near(interval::wilson(20, 20, 0.95).unwrap().high, 1.0, 0.0);
    assert!(interval::clopper_pearson(0, 0, 0.95).is_err());
    assert!(interval::wilson(3, 2, 0.95).is_err());
    assert!(interval::wilson(1, 2, 1.0).is_err());
}

/// By hand: 1, 2, 3 has mean 2, deviation 1, t(2) at 97.5 % is 4.302653, half-width 4.302653 / sqrt 3.
#[test]
fn repeats_have_a_mean_a_spread_and_a_t_interval() {
    let three = interval::across_repeats(&[1.0, 2.0, 3.0], 0.95).unwrap();
    near(three.mean, 2.0, 1e-15);
    near(three.standard_deviation.unwrap(), 1.0, 1e-15);
    let interval = three.interval.unwrap();
    near(interval.low, 2.0 - 4.302653 / 3.0_f64.sqrt(), 1e-6);
    near(interval.high, 2.0 + 4.302653 / 3.0_f64.sqrt(), 1e-6);
    assert_eq!(three.repeats, 3);
    // Twice the spread, twice the width; the mean moves with the values.
    let wider = interval::across_repeats(&[2.0, 4.0, 6.0], 0.95).unwrap();
    near(wider.mean, 4.0, 1e-15);
    near(wider.standard_deviation.unwrap(), 2.0, 1e-15);
    let interval = wider.interval.unwrap();
    near(interval.low, 4.0 - 2.0 * 4.302653 / 3.0_f64.sqrt(), 2e-6);
    near(interval.high, 4.0 + 2.0 * 4.302653 / 3.0_f64.sqrt(), 2e-6);
    let one = interval::across_repeats(&[1.0], 0.95).unwrap();
    assert!(one.interval.is_none() && one.standard_deviation.is_none());
    assert!(interval::across_repeats(&[], 0.95).is_err());
    assert!(interval::across_repeats(&[1.0, f64::NAN], 0.95).is_err());
}

fn figures(attack_original: f64, attack: f64, accuracy_original: f64, accuracy: f64) -> Figures {
    Figures {
        attack_original,
        attack,
        attack_baseline: 0.5,
        accuracy_original,
        accuracy,
        accuracy_baseline: 0.1,
    }
}

#[test]
fn phi_of_the_paper_reproduces_the_reference_values() {
    let value = |f| phi(&f, BelowBaseline::Literal).unwrap();
    near(value(figures(0.8, 0.5, 0.9, 0.5)).value().unwrap(), 2.0, 1e-12);
    near(value(figures(0.8, 0.65, 0.9, 0.5)).value().unwrap(), 1.0, 1e-12);
    near(value(figures(0.8, 0.85, 0.9, 0.7)).value().unwrap(), 0.0, 0.0);
    // More than twice the relative loss: 0.3/0.3 over 0.1/0.8 is 8, shown as 2.
    assert_eq!(value(figures(0.8, 0.5, 0.9, 0.8)), Phi::Defined { value: 2.0 });
    // Attack at chance and two thirds of the accuracy lost: 1 / 0.67, as in the paper's figures.
    near(value(figures(0.8, 0.5, 0.9, 0.9 - 0.67 * 0.8)).value().unwrap(), 1.0 / 0.67, 1e-12);
}

#[test]
fn phi_is_two_when_accuracy_is_kept_and_degenerate_when_the_attack_is_too() {
    let kept = phi(&figures(0.8, 0.6, 0.9, 0.9), BelowBaseline::Literal).unwrap();
    assert_eq!(kept, Phi::AccuracyKept { attack_fell: true });
    assert_eq!(kept.value(), Some(2.0));
    assert!(!kept.is_degenerate());
    let nothing = phi(&figures(0.8, 0.8, 0.9, 0.95), BelowBaseline::Literal).unwrap();
    assert_eq!(nothing.value(), Some(2.0));
    assert!(nothing.is_degenerate());
}

#[test]
fn phi_is_undefined_when_there_was_nothing_to_protect_or_to_lose() {
    for form in [phi, phi_patent] {
        let leaked = form(&figures(0.5, 0.5, 0.9, 0.5), BelowBaseline::Literal).unwrap();
        assert_eq!(leaked, Phi::Undefined { why: Undefined::NothingLeaked });
        assert_eq!(leaked.value(), None);
        let learned = form(&figures(0.8, 0.5, 0.1, 0.1), BelowBaseline::Literal).unwrap();
        assert_eq!(learned, Phi::Undefined { why: Undefined::NothingLearned });
        assert!(form(&figures(0.8, f64::NAN, 0.9, 0.5), BelowBaseline::Literal).is_err());
        assert!(form(&figures(0.8, 0.7, 1.9, 0.5), BelowBaseline::Literal).is_err());
    }
}

#[test]
fn phi_counts_an_attack_below_chance_literally_unless_clamped() {
    let f = figures(0.8, 0.4, 0.9, 0.2);
    // (0.4 * 0.8) / (0.7 * 0.3) and (0.3 * 0.8) / (0.7 * 0.3)
    near(phi(&f, BelowBaseline::Literal).unwrap().value().unwrap(), 0.32 / 0.21, 1e-12);
    near(phi(&f, BelowBaseline::Clamp).unwrap().value().unwrap(), 0.24 / 0.21, 1e-12);
    let worse = figures(0.8, 0.65, 0.9, 0.05);
    near(phi(&worse, BelowBaseline::Clamp).unwrap().value().unwrap(), 0.5, 1e-12);
}

#[test]
fn phi_of_the_patent_is_another_ratio() {
    // Half of the accuracy above chance kept, a quarter of the attack's: 2.
    let f = figures(0.9, 0.6, 0.9, 0.5);
    near(phi_patent(&f, BelowBaseline::Literal).unwrap().value().unwrap(), 2.0, 1e-12);
    let at_chance = figures(0.9, 0.5, 0.9, 0.5);
    assert_eq!(
        phi_patent(&at_chance, BelowBaseline::Literal).unwrap(),
        Phi::Undefined { why: Undefined::AttackAtBaseline }
    );
    let below = figures(0.9, 0.4, 0.9, 0.5);
    near(phi_patent(&below, BelowBaseline::Literal).unwrap().value().unwrap(), -2.0, 1e-12);
    assert_eq!(
        phi_patent(&below, BelowBaseline::Clamp).unwrap(),
        Phi::Undefined { why: Undefined::AttackAtBaseline }
    );
}
