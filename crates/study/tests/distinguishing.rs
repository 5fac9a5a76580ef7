//! Every regression mechanism is played against: what it claims must hold, and what is marked unsound must be found out.
#![expect(clippy::unwrap_used, reason = "tests")]
use dosimeter_attack::distinguishing::play;
use dosimeter_audit::bounds::{BOUNDS, Conditions};
use dosimeter_data::Seed;
use dosimeter_privacy::{Delta, Epsilon, NoiseRng};
use dosimeter_train::regression::{
    Bounds, Budget, Claim, Input, Interval, Missing, REGRESSIONS, Regression, Rows, regression,
};

fn bounds() -> Bounds {
    let side = Interval::new(-1.0, 1.0).unwrap();
    let features = vec![side];
    Bounds { features, target: side, intercept: false, radius: None, missing: Missing::Refuse }
}
/// Rows at 0 but for one.
fn table(rows: usize, (x, y): (f64, f64)) -> Rows {
    let bounds = bounds();
    let mut table = Rows::new(&bounds).unwrap();
    for i in 0..rows {
        let (x, y) = if i == 0 { (x, y) } else { (0.0, 0.0) };
        table.push(&[x], y).unwrap();
    }
    table
}
/// Epsilon that the game shows, with 99.9 % confidence, for a score of the fitted weight; fits that say nothing score -1000.
fn shown(
    mechanism: &dyn Regression,
    budget: Budget,
    tables: [&Rows; 2],
    trials: u32,
    score: fn(f64) -> f64,
) -> f64 {
    let sums = tables.map(Rows::statistics);
    let bounds = bounds();
    let fit = |first: bool, seed: Seed| {
        let rng = &mut NoiseRng::experiment(seed.bytes());
        let side = usize::from(!first);
        let input = Input::new(&bounds, &sums[side], Some(tables[side]));
        mechanism.fit(&input, budget, rng).map_or(-1000.0, |fit| score(fit.weights[0]))
    };
    let roc = play(trials, Seed::root(1), &fit).unwrap();
    let mut conditions = Conditions::new(budget.delta);
    conditions.confidence = 0.999;
    let bound = BOUNDS.iter().find(|b| b.name() == "clopper-pearson").unwrap();
    bound.epsilon_lower(&roc, &conditions).unwrap().value
}
fn budget(epsilon: f64, delta: f64) -> Budget {
    Budget { epsilon: Epsilon::new(epsilon).unwrap(), delta: Delta::new(delta).unwrap() }
}

/// A false alarm of one of the dozen games once in 100; a mechanism with half of its noise would be found out (see the power below).
#[test]
fn no_sound_mechanism_is_told_apart_better_than_it_claims() {
    let tables = [table(30, (1.0, 1.0)), table(30, (1.0, -1.0))];
    for mechanism in REGRESSIONS {
        if !matches!(mechanism.claim(), Claim::Pure | Claim::Approximate) {
            continue;
        }
        let found = shown(*mechanism, budget(2.0, 1e-3), [&tables[0], &tables[1]], 20_000, |w| w);
        assert!(found <= 2.0, "{}: {found} above 2", mechanism.name());
        // Mechanisms whose noise is fitted to the gradient, or to the sums, of the worst row show some of it.
        if ["objective_perturbation", "ada_ssp", "rls_out"].contains(&mechanism.name()) {
            assert!(found > 0.1, "{}: {found}", mechanism.name());
        }
    }
}

/// One row at 1 among rows at 0: if it falls to the rows of the choice, once in 25, sums of errors without a bound choose the model that is
/// nearest to 1 by chance, out of 24; else the choice is blind. So what is near to 1 comes up to 24/25 + 24/25 times as often: a loss of
/// 0.65, whatever epsilon is claimed.
#[test]
fn the_selection_by_sums_spends_more_than_it_says() {
    let tables = [table(25, (1.0, 1.0)), table(25, (0.0, 0.0))];
    let near = |w: f64| -(w - 1.0).abs();
    let paper = regression("tuned_paper_sum").unwrap();
    let sound = regression("tuned").unwrap();
    let claimed = 0.2;
    let play =
        |mechanism| shown(mechanism, budget(claimed, 0.0), [&tables[0], &tables[1]], 60_000, near);
    let (found, correct) = (play(paper), play(sound));
    assert!(found > claimed, "the paper's rule shows {found}");
    assert!(correct <= claimed, "the sound rule shows {correct}");
}
