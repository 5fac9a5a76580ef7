//! Linear regression: solvers against slow ones, sensitivities against random neighbours, every mechanism on every kind of table.
#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(
    clippy::suboptimal_flops,
    clippy::needless_range_loop,
    reason = "oracles written as in the books"
)]
use dosimeter_privacy::accountants::Pld;
use dosimeter_privacy::{Accountant, Delta, Epsilon, NoiseRng, Relation};
use dosimeter_train::regression::{
    Bounds, Budget, Claim, ClassifierLoss, Error, FunctionalMechanism, Input, Interval, Lambda,
    LeastSquares, LinearClassifier, Missing, OutputPerturbation, Quadratic, REGRESSIONS,
    Regression, Rows, SensitivityConstant, Statistics, ball_constrained_ridge, least_squares,
    oracle, regression,
};
use nalgebra::DVector;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    f64::from(rng.next_u32()) / f64::from(u32::MAX) * 2.0 - 1.0
}
/// A vector of length at most 1; one in two lies on the sphere.
fn in_ball(d: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let mut x: Vec<f64> = (0..d).map(|_| uniform(rng)).collect();
    let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
    if length > 1.0 || rng.next_u32() & 1 == 0 {
        x.iter_mut().for_each(|x| *x /= length.max(1e-9) * (1.0 + 1e-15));
    }
    x
}
fn bounds(features: usize) -> Bounds {
    let side = Interval::new(-1.0, 1.0).unwrap();
    let target = Interval::new(-2.0, 2.0).unwrap();
    let features = vec![side; features];
    Bounds { features, target, intercept: true, radius: None, missing: Missing::Refuse }
}
fn budget(epsilon: f64) -> Budget {
    Budget { epsilon: Epsilon::new(epsilon).unwrap(), delta: Delta::new(1e-6).unwrap() }
}

/// Rows `y = 0.3 + x . (0.5, -0.4, 0.3, ..) + noise`.
fn table(rows: usize, features: usize, bounds: &Bounds, rng: &mut ChaCha8Rng) -> Rows {
    let mut table = Rows::new(bounds).unwrap();
    for _ in 0..rows {
        let x: Vec<f64> = (0..features).map(|_| uniform(rng)).collect();
        let slope = |j: usize| [0.5, -0.4, 0.3][j % 3];
        let y = 0.3 + x.iter().enumerate().map(|(j, x)| slope(j) * x).sum::<f64>();
        table.push(&x, y + 0.2 * uniform(rng)).unwrap();
    }
    table
}

/// Gaussian elimination on the normal equations, with pivots.
fn eliminated(statistics: &Statistics, ridge: f64) -> Vec<f64> {
    let (gram, moments, d) = (statistics.gram(), statistics.moments(), statistics.dimension());
    let n = statistics.rows as f64;
    let mut m: Vec<Vec<f64>> = (0..d)
        .map(|i| {
            let mut row: Vec<f64> = (0..d).map(|j| gram[(i, j)] / n).collect();
            row[i] += ridge;
            row.push(moments[i] / n);
            row
        })
        .collect();
    for i in 0..d {
        let pivot = (i..d).max_by(|a, b| m[*a][i].abs().total_cmp(&m[*b][i].abs())).unwrap();
        m.swap(i, pivot);
        for j in 0..d {
            if j != i {
                let factor = m[j][i] / m[i][i];
                for k in i..=d {
                    m[j][k] -= factor * m[i][k];
                }
            }
        }
    }
    (0..d).map(|i| m[i][d] / m[i][i]).collect()
}
/// Projected gradient steps until nothing moves.
fn descended(statistics: &Statistics, lambda: f64, radius: f64) -> DVector<f64> {
    let n = statistics.rows as f64;
    let (gram, moments) = (statistics.gram() / n, statistics.moments() / n);
    let mut w = DVector::zeros(statistics.dimension());
    for _ in 0..2_000_000 {
        let mut next: DVector<f64> =
            &w - ((&gram * &w - &moments) * 2.0 + &w * lambda) * (1.0 / (2.0 + lambda));
        let length = next.norm();
        if length > radius {
            next *= radius / length;
        }
        if (&next - &w).norm() < 1e-14 {
            return next;
        }
        w = next;
    }
    w
}

#[test]
fn least_squares_are_those_of_elimination_and_the_ball_those_of_descent() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for features in [1, 4, 14] {
        let bounds = bounds(features);
        let statistics = table(400, features, &bounds, &mut rng).statistics();
        let exact = eliminated(&statistics, 0.0);
        for (got, wanted) in least_squares(&statistics).iter().zip(&exact) {
            assert!((got - wanted).abs() < 1e-10 * wanted.abs().max(1.0), "{got}, not {wanted}");
        }
        for (lambda, radius) in [(0.01, 10.0), (0.01, 0.5), (0.2, 0.3), (1.0, 0.01)] {
            let got = ball_constrained_ridge(&statistics, lambda, radius);
            let wanted = descended(&statistics, lambda, radius);
            assert!((&got - &wanted).norm() < 1e-8, "{lambda} {radius}: {got} {wanted}");
        }
    }
}

/// 100,000 pairs of small tables that differ in one row: no minimizer moves further than the tight bound, and some go most of the way.
#[test]
fn no_neighbours_are_further_apart_than_the_sensitivity() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut closest = [0.0_f64; 2];
    for i in 0..100_000 {
        let d = 1 + i % 3;
        let n = 1 + rng.next_u32() as usize % 4;
        let extreme = |rng: &mut ChaCha8Rng| (in_ball(d, rng), uniform(rng).signum());
        let rows: Vec<_> = (0..n).map(|_| extreme(&mut rng)).collect();
        let other = extreme(&mut rng);
        let lambda = 10f64.powf(2.0 * uniform(&mut rng));
        let radius = 10f64.powf(1.5 * uniform(&mut rng));
        let minimizer = |last: &(Vec<f64>, f64)| {
            let mut statistics = Statistics::new(d);
            rows[1..].iter().chain([last]).for_each(|(x, y)| statistics.add(x, *y));
            ball_constrained_ridge(&statistics, lambda, radius)
        };
        let moved = (minimizer(&rows[0]) - minimizer(&other)).norm();
        let bound = |constant| {
            let lambda = Lambda::Fixed(lambda);
            let mechanism = OutputPerturbation { radius, lambda, constant, project: false };
            mechanism.sensitivity(d, n as u64, 1.0).unwrap().1
        };
        let general = bound(SensitivityConstant::Tight);
        let own = bound(SensitivityConstant::SquaredLoss);
        assert!(moved <= own && own < general, "{moved} above {own}");
        closest = [closest[0].max(moved / own), closest[1].max(moved / general)];
    }
    assert!(closest[0] > 0.75 && closest[1] > 0.75, "{closest:?}");
}

/// The sums that AdaSSP and the functional mechanism release, for 100,000 pairs of rows.
#[test]
fn no_row_moves_the_sums_further_than_is_said() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut closest = [0.0_f64; 4];
    for i in 0..100_000 {
        let d = 1 + i % 3;
        let sums = |rng: &mut ChaCha8Rng| {
            let mut statistics = Statistics::new(d);
            let y = if rng.next_u32() & 1 == 0 { uniform(rng) } else { uniform(rng).signum() };
            statistics.add(&in_ball(d, rng), y);
            statistics
        };
        let (mut a, mut b, rest) = (sums(&mut rng), sums(&mut rng), sums(&mut rng));
        a.merge(&rest);
        b.merge(&rest);
        let least = |s: &Statistics| Quadratic::new(s.gram(), &s.moments()).least_eigenvalue();
        let (gram, moments) = (a.gram() - b.gram(), a.moments() - b.moments());
        let l1 = |numbers: &[f64]| numbers.iter().map(|x| x.abs()).sum::<f64>();
        let moved = [
            (least(&a) - least(&b)).abs(),
            gram.norm() / 2.0_f64.sqrt(),
            moments.norm() / 2.0,
            (l1(gram.as_slice()) + 2.0 * l1(moments.as_slice()))
                / FunctionalMechanism::TIGHT.sensitivity(d),
        ];
        for (closest, moved) in closest.iter_mut().zip(moved) {
            assert!(moved <= 1.0 + 1e-9, "{moved}");
            *closest = closest.max(moved);
        }
    }
    assert!(closest.iter().all(|c| *c > 0.7), "{closest:?}");
}

fn spent(ledger: &dosimeter_privacy::Ledger) -> f64 {
    let delta = Delta::new(1e-6).unwrap();
    Pld.epsilon_upper(ledger, Relation::ReplaceOne, delta).unwrap().get()
}

#[test]
fn every_mechanism_spends_what_it_says_and_finds_the_line_when_there_is_much_to_spend() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let bounds = bounds(2);
    let rows = table(20_000, 2, &bounds, &mut rng);
    let statistics = rows.statistics();
    let input = Input::new(&bounds, &statistics, Some(&rows));
    let mut noise = NoiseRng::experiment([1; 32]);
    let n = statistics.rows as f64;
    let best = statistics.squared_error(&least_squares(&statistics)) / n;
    let around_mean = statistics.squares() / n;
    for mechanism in REGRESSIONS {
        for epsilon in [1.0, 1000.0] {
            let fit = mechanism.fit(&input, budget(epsilon), &mut noise).unwrap();
            match mechanism.claim() {
                Claim::Pure | Claim::Approximate => {
                    let spent = spent(&fit.ledger);
                    assert!(
                        spent <= epsilon * (1.0 + 1e-6) && spent > 0.9 * epsilon,
                        "{}: {spent} of {epsilon}",
                        mechanism.name()
                    );
                }
                Claim::NotPrivate | Claim::Unsound => assert!(spent(&fit.ledger).is_infinite()),
            }
            let error = statistics.squared_error(&fit.weights) / n;
            // With much to spend all but the choice of small balls come close to least squares.
            if epsilon > 100.0 {
                assert!(
                    error < best + 0.25 * (around_mean - best),
                    "{}: {error}, least squares {best}, none {around_mean}",
                    mechanism.name()
                );
            }
        }
    }
}

#[test]
fn names_are_distinct_and_find_their_mechanism() {
    for mechanism in REGRESSIONS {
        assert_eq!(regression(mechanism.name()).unwrap().name(), mechanism.name());
        assert_eq!(REGRESSIONS.iter().filter(|r| r.name() == mechanism.name()).count(), 1);
    }
    assert!(regression("ridge").is_none());
}

/// The standard deviations that fits tell are those of 2,000 fits, within 15 % (a deviation of 2,000 draws is known to 1.6 %; the
/// projection and the ridge of AdaSSP make the formulas approximations).
#[test]
fn told_deviations_are_those_of_many_fits() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let bounds = bounds(2);
    let rows = table(50_000, 2, &bounds, &mut rng);
    let statistics = rows.statistics();
    let input = Input::new(&bounds, &statistics, Some(&rows));
    let mut noise = NoiseRng::experiment([2; 32]);
    let paper = regression("rls_out").unwrap();
    for (mechanism, epsilon) in [(regression("ada_ssp").unwrap(), 5.0), (paper, 5.0)] {
        let fits: Vec<_> = (0..2000)
            .map(|_| mechanism.fit(&input, budget(epsilon), &mut noise).unwrap())
            .collect();
        let n = fits.len() as f64;
        for i in 0..3 {
            let mean = fits.iter().map(|f| f.weights[i]).sum::<f64>() / n;
            let variance = fits.iter().map(|f| (f.weights[i] - mean).powi(2)).sum::<f64>() / n;
            let told =
                fits.iter().map(|f| f.noise_covariance.as_ref().unwrap()[(i, i)]).sum::<f64>() / n;
            let ratio = (told / variance).sqrt();
            assert!((0.85..1.15).contains(&ratio), "{} {i}: {ratio}", mechanism.name());
        }
        // The intercept of bounds whose middles are not 0 moves with every weight.
        let interval = |low, high| Interval::new(low, high).unwrap();
        let features = vec![interval(0.0, 10.0), interval(-6.0, -4.0)];
        let units = Bounds { features, target: interval(3.0, 8.0), ..bounds.clone() };
        let names = || vec!["a".to_owned(), "b".to_owned()];
        let models: Vec<_> =
            fits.iter().map(|f| f.model(names(), "y".to_owned(), units.clone())).collect();
        let mean = models.iter().map(|m| m.intercept).sum::<f64>() / n;
        let variance = models.iter().map(|m| (m.intercept - mean).powi(2)).sum::<f64>() / n;
        let told = models.iter().map(|m| m.intercept_noise_deviation.unwrap().powi(2)).sum::<f64>();
        let ratio = (told / n / variance).sqrt();
        assert!((0.85..1.15).contains(&ratio), "{}, intercept: {ratio}", mechanism.name());
    }
}

#[test]
fn odd_tables_have_answers_or_clear_errors() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let mut noise = NoiseRng::experiment([3; 32]);
    // One row; more features than rows; a constant column; two equal columns.
    let wide = bounds(9);
    let mut constant = Rows::new(&wide).unwrap();
    for _ in 0..60 {
        let mut x: Vec<f64> = (0..9).map(|_| uniform(&mut rng)).collect();
        (x[3], x[5]) = (0.25, x[4]);
        constant.push(&x, uniform(&mut rng)).unwrap();
    }
    for rows in [table(1, 9, &wide, &mut rng), table(5, 9, &wide, &mut rng), constant] {
        let statistics = rows.statistics();
        let input = Input::new(&wide, &statistics, Some(&rows));
        for mechanism in REGRESSIONS {
            match mechanism.fit(&input, budget(1.0), &mut noise) {
                Ok(fit) => assert!(fit.weights.iter().all(|w| w.is_finite()), "{mechanism:?}"),
                Err(Error::NoAgreement { .. }) => assert_eq!(mechanism.name(), "tukey_em"),
                Err(error) => {
                    assert!(mechanism.name().starts_with("tuned") && rows.len() < 25, "{error}");
                    assert!(error.to_string().starts_with("needed at least 25 rows, got"));
                }
            }
        }
    }
    // No row; no epsilon; rows that are not there.
    let none = Statistics::new(10);
    for mechanism in REGRESSIONS {
        let empty = mechanism.fit(&Input::new(&wide, &none, None), budget(1.0), &mut noise);
        assert!(empty.is_err(), "{mechanism:?}");
    }
    let rows = table(60, 9, &wide, &mut rng);
    let statistics = rows.statistics();
    let input = Input::new(&wide, &statistics, Some(&rows));
    for mechanism in REGRESSIONS.iter().filter(|r| r.claim() != Claim::NotPrivate) {
        for epsilon in [Epsilon::new(0.0).unwrap(), Epsilon::UNBOUNDED] {
            let fit = mechanism.fit(&input, Budget { epsilon, ..budget(1.0) }, &mut noise);
            assert!(fit.is_err(), "{mechanism:?} at {epsilon:?}");
        }
    }
}

#[test]
fn the_model_speaks_the_units_of_the_table() {
    let interval = |low, high| Interval::new(low, high).unwrap();
    let bounds = Bounds {
        features: vec![interval(0.0, 100.0), interval(-5.0, 5.0)],
        target: interval(0.0, 50.0),
        intercept: true,
        radius: None,
        missing: Missing::Refuse,
    };
    let mut rows = Rows::new(&bounds).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    for _ in 0..50 {
        let x = [50.0 + 40.0 * uniform(&mut rng), 4.0 * uniform(&mut rng)];
        rows.push(&x, 20.0 + 0.1 * x[0] - 2.0 * x[1]).unwrap();
    }
    let statistics = rows.statistics();
    let input = Input::new(&bounds, &statistics, Some(&rows));
    let fit = LeastSquares.fit(&input, budget(1.0), &mut NoiseRng::experiment([0; 32])).unwrap();
    let names = vec!["age".to_owned(), "score".to_owned()];
    let model = fit.model(names, "dose".to_owned(), bounds);
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a}, not {b}");
    close(model.coefficients[0], 0.1);
    close(model.coefficients[1], -2.0);
    close(model.intercept, 20.0);
    close(model.predict(1, &[10.0, 1.0]).unwrap(), 19.0);
    // Beyond the bounds a feature counts as their end.
    close(model.predict(1, &[1000.0, 1.0]).unwrap(), 28.0);
    assert!(model.predict(1, &[1.0]).is_err());
    let text = serde_json::to_string(&model).unwrap();
    assert_eq!(
        serde_json::from_str::<dosimeter_train::regression::LinearModel>(&text).unwrap(),
        model
    );
}

/// Rows of two classes; one in ten on the wrong side.
fn classes(rows: usize, bounds: &Bounds, rng: &mut ChaCha8Rng) -> Rows {
    let mut table = Rows::new(bounds).unwrap();
    for _ in 0..rows {
        let x: Vec<f64> = bounds.features.iter().map(|_| uniform(rng)).collect();
        let side = if x[0] + 0.2 > 0.0 { 2.0 } else { -2.0 };
        let wrong = rng.next_u32().is_multiple_of(10);
        table.push(&x, if wrong { -side } else { side }).unwrap();
    }
    table
}

/// Minimizers are flat to the last digits, no neighbour's is further away than is said (over 3,000 pairs of small tables), and a private classifier finds the side.
#[test]
fn classifiers_are_minimizers_stable_and_useful() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let mut noise = NoiseRng::experiment([4; 32]);
    for loss in [ClassifierLoss::Logistic, ClassifierLoss::Huber { width: 0.25 }] {
        let constant = SensitivityConstant::Tight;
        let mut closest = 0.0_f64;
        for i in 0..3_000 {
            let bounds = bounds(1 + i % 2);
            let lambda = 10f64.powf(1.5 * uniform(&mut rng));
            let classifier = LinearClassifier { loss, lambda, constant };
            let n = 1 + rng.next_u32() as usize % 3;
            let extreme = |rng: &mut ChaCha8Rng| {
                let x: Vec<f64> = bounds.features.iter().map(|_| uniform(rng).signum()).collect();
                (x, 2.0 * uniform(rng).signum())
            };
            let mut rows: Vec<_> = (0..n).map(|_| extreme(&mut rng)).collect();
            let minimizer = |rows: &[(Vec<f64>, f64)]| {
                let mut table = Rows::new(&bounds).unwrap();
                rows.iter().for_each(|(x, y)| table.push(x, *y).unwrap());
                classifier.minimizer(&table).unwrap()
            };
            let one = minimizer(&rows);
            rows[0] = extreme(&mut rng);
            let moved = (one - minimizer(&rows)).norm();
            let bound = 2.0 / (lambda * n as f64) + 2e-9;
            assert!(moved <= bound, "{moved} above {bound}");
            closest = closest.max(moved / bound);
        }
        // At a lambda that leaves w near 0 slopes are a half: for rows on one line half of the bound is all there is.
        assert!(closest > 0.45, "{closest}");
        let bounds = bounds(2);
        let table = classes(5_000, &bounds, &mut rng);
        let classifier = LinearClassifier { loss, lambda: 0.01, constant };
        let fit = classifier.fit(&table, budget(1.0), &mut noise).unwrap();
        let right = table.iter().filter(|(x, y)| {
            let score: f64 = x.iter().zip(fit.weights.iter()).map(|(a, b)| a * b).sum();
            score * y > 0.0
        });
        let right = right.count() as f64 / table.len() as f64;
        assert!(right > 0.8, "{right}");
        assert!((spent(&fit.ledger) - 1.0).abs() < 1e-5);
        let between = self::table(10, 2, &bounds, &mut rng);
        assert_eq!(classifier.minimizer(&between), Err(Error::NotAClass { row: 1 }));
    }
}

/// The best of the grid by its exact expected error is also the best by the mean of 400 draws, up to what those can tell.
#[test]
fn the_oracle_is_no_worse_than_public_parameters() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let mut noise = NoiseRng::experiment([5; 32]);
    let bounds = bounds(3);
    let fitted = table(2_000, 3, &bounds, &mut rng).statistics();
    let held_out = table(500, 3, &bounds, &mut rng).statistics();
    let chosen = oracle(&fitted, &held_out, 2.0).unwrap();
    let input = Input::new(&bounds, &fitted, None);
    let mut error = |mechanism: &OutputPerturbation| {
        let errors = (0..400).map(|_| {
            let fit = mechanism.fit(&input, budget(2.0), &mut noise).unwrap();
            held_out.squared_error(&fit.weights)
        });
        errors.sum::<f64>() / 400.0
    };
    let (best, public) = (error(&chosen), error(&OutputPerturbation::PAPER));
    assert!(best < 1.05 * public, "{best} {public}");
    assert!(oracle(&fitted, &Statistics::new(4), 1.0).is_err());
}
