//! Inversion against values worked by hand, a slow sum, and tables of which the answer is known.
#![expect(clippy::unwrap_used, clippy::suboptimal_flops, reason = "tests, written as in the books")]
use dosimeter_attack::Error;
use dosimeter_attack::inversion::{Accuracy, Discriminant, ErrorModel, Inversion, Marginal};
use dosimeter_attack::squared_error;
use dosimeter_data::Seed;
use dosimeter_data::regression::{Column, Group, Layout, Level, RegressionTable, Target};
use rand_core::Rng;

/// A gene of three values in two columns, and a number.
fn layout() -> Layout {
    let column = |name: &str, group| Column { name: name.into(), lower: -5.0, upper: 5.0, group };
    let level = |name: &str, values: [f64; 2]| Level { name: name.into(), values: values.into() };
    let levels = vec![level("gg", [0.0, 0.0]), level("ag", [1.0, 0.0]), level("aa", [0.0, 1.0])];
    Layout {
        columns: vec![column("ag", Some(0)), column("aa", Some(0)), column("age", None)],
        groups: vec![Group { name: "gene".into(), columns: 0..2, levels }],
        target: Target { name: "dose".into(), lower: -50.0, upper: 50.0 },
    }
}
fn model(x: &[f64]) -> f64 {
    -2.0f64.mul_add(x[0], 3.0 * x[1]) + x[2]
}
fn uniform(rng: &mut impl Rng) -> f64 {
    f64::from(rng.next_u32()) / f64::from(u32::MAX)
}
/// Genes with shares 1/2, 1/4, 1/4, `age` uniform and larger by `linked` per level, a dose `noise` off the model.
fn people(rows: usize, linked: f64, noise: f64, seed: u64) -> RegressionTable {
    let mut rng = Seed::root(seed).rng();
    let (mut features, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let gene = [0, 0, 1, 2][rng.next_u32() as usize % 4];
        let x = [
            f64::from(u8::from(gene == 1)),
            f64::from(u8::from(gene == 2)),
            linked.mul_add(f64::from(gene), uniform(&mut rng)),
        ];
        // A sum of four uniform numbers has variance 1/3.
        let error = (0..4).map(|_| uniform(&mut rng) - 0.5).sum::<f64>() * 3.0_f64.sqrt();
        targets.push(model(&x) + noise * error);
        features.extend(x);
    }
    RegressionTable::new("people", layout(), features, targets).unwrap()
}

#[test]
fn the_guess_is_the_one_worked_by_hand() {
    let gene = &layout().groups[0];
    let errors = ErrorModel::Gaussian { deviation: 1.0 };
    let guess = |shares: [f64; 3], response: f64| {
        let prior = Marginal::new(gene, &shares).unwrap();
        let attack = Inversion::new(prior, vec![], errors.clone()).unwrap();
        // What the record holds of the gene is not read.
        attack.guess(&[7.0, 7.0, 0.0], response, &model)
    };
    // Answers are 0, -2 and 3 (model: -(2 a - ...)); see below.
    let answers = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]].map(|g| model(&[g[0], g[1], 0.0]));
    let even = [1.0, 1.0, 1.0];
    for (i, answer) in answers.iter().enumerate() {
        assert_eq!(guess(even, *answer), Some(i));
    }
    // Half way between the first two the prior decides, and the first of equals.
    let between = 0.5 * (answers[0] + answers[1]);
    assert_eq!(guess(even, between), Some(0));
    assert_eq!(guess([1.0, 1.1, 1.0], between), Some(1));
    assert_eq!(guess([1.0, 0.0, 1.0], answers[1]), Some(2));
    // A prior of 1 : e^2 weighs as much as the half square of an error of 2.
    let two = answers[0] - answers[1];
    let weight = (0.5 * two * two).exp();
    assert_eq!(guess([weight * 1.01, 1.0, 1e-30], answers[1]), Some(0));
    assert_eq!(guess([weight * 0.99, 1.0, 1e-30], answers[1]), Some(1));
}

#[test]
fn classes_and_exact_answers_are_judged_as_they_should_be() {
    let gene = &layout().groups[0];
    let prior = || Marginal::new(gene, &[0.5, 0.3, 0.2]).unwrap();
    // The model's class is 1 for aa only. Of those it puts in class 0, a tenth is of class 1.
    let class = |x: &[f64]| x[1];
    let shares = vec![vec![0.9, 0.1], vec![0.4, 0.6]];
    let attack = Inversion::new(prior(), vec![], ErrorModel::Confusion { shares }).unwrap();
    // 0.5 x 0.9, 0.3 x 0.9, 0.2 x 0.4; and 0.05, 0.03, 0.12.
    assert_eq!(attack.guess(&[0.0; 3], 0.0, &class), Some(0));
    assert_eq!(attack.guess(&[0.0; 3], 1.0, &class), Some(2));
    assert_eq!(attack.guess(&[0.0; 3], 2.0, &class), None);
    let exact = Inversion::new(prior(), vec![], ErrorModel::Exact { tolerance: 0.1 }).unwrap();
    let aa = model(&[0.0, 1.0, 0.5]);
    assert_eq!(exact.guess(&[0.0, 0.0, 0.5], aa + 0.05, &model), Some(2));
    assert_eq!(exact.guess(&[0.0, 0.0, 0.5], aa + 0.2, &model), None);
}

/// The sum over unknown values against one written out.
#[test]
fn unknown_attributes_are_summed_over() {
    let table = people(500, 0.5, 0.5, 1);
    let gene = Marginal::of_group(&table.layout.groups[0], &table).unwrap();
    let age = Marginal::of_number(2, &table, 7).unwrap();
    assert_eq!(age.len(), 7);
    let shares = (gene.shares(), age.shares());
    let errors = ErrorModel::Gaussian { deviation: 0.7 };
    let attack = Inversion::new(gene, vec![age], errors).unwrap();
    let mut sorted: Vec<f64> = table.rows().map(|(x, _)| x[2]).collect();
    sorted.sort_by(f64::total_cmp);
    let bin = |i: usize| {
        let part = &sorted[i * 500 / 7..(i + 1) * 500 / 7];
        part.iter().sum::<f64>() / part.len() as f64
    };
    for (x, y) in table.rows().take(100) {
        let scores = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]].iter().zip(&shares.0).map(|(g, p)| {
            let ages = (0..7).map(|i| {
                let error = (y - model(&[g[0], g[1], bin(i)])) / 0.7;
                shares.1[i] * (-0.5 * error * error).exp()
            });
            p * ages.sum::<f64>()
        });
        let scores: Vec<f64> = scores.collect();
        let best = (0..3).max_by(|a, b| scores[*a].total_cmp(&scores[*b]));
        assert_eq!(attack.guess(x, y, &model), best);
    }
}

/// Without noise every gene is found; with much only the prior is left; the null check finds the prior's mode and no more. 2,000 records:
/// a share of a half is known to 1.1 %.
#[test]
fn accuracies_are_those_of_tables_whose_answer_is_known() {
    let seed = Seed::root(3);
    let clear = people(2000, 0.0, 0.01, 2);
    let gene = Marginal::of_group(&clear.layout.groups[0], &clear).unwrap();
    let attack = |deviation| {
        Inversion::new(gene.clone(), vec![], ErrorModel::Gaussian { deviation }).unwrap()
    };
    let found = attack(0.01).accuracy(&clear, &model, 0.95).unwrap();
    assert_eq!((found.right, found.records), (2000, 2000));
    let mode = Accuracy::of(&clear, &gene, 0.95, &|_, _| Some(gene.mode())).unwrap();
    assert!(mode.share.contains(0.5), "{mode:?}");
    let null = attack(1.0).null(&clear, &model, 0.95, seed).unwrap();
    assert!(null.share.low < mode.share.high, "{null:?}");
    let hidden = people(2000, 0.0, 100.0, 4);
    let guessed = attack(30.0).accuracy(&hidden, &model, 0.95).unwrap();
    assert!((guessed.share.value - 0.5).abs() < 0.06, "{guessed:?}");
}

#[test]
fn what_is_guessed_without_the_model_is_what_other_attributes_tell() {
    // Age says all of the gene: levels are 2 apart and ages 1 wide.
    let (linked, others) = (people(500, 2.0, 100.0, 5), people(500, 2.0, 100.0, 6));
    let gene = Marginal::of_group(&linked.layout.groups[0], &linked).unwrap();
    let known = Discriminant::fit(&others, &gene, &[], false).unwrap();
    let right = Accuracy::of(&linked, &gene, 0.95, &|x, y| known.guess(x, y)).unwrap();
    assert!(right.share.value > 0.97, "{right:?}");
    // Not known, it says nothing; the response does.
    let age = Marginal::of_number(2, &linked, 5).unwrap();
    let (clear, others) = (people(500, 2.0, 0.01, 7), people(500, 2.0, 0.01, 8));
    let blind = Discriminant::fit(&others, &gene, std::slice::from_ref(&age), false).unwrap();
    let right = Accuracy::of(&clear, &gene, 0.95, &|x, y| blind.guess(x, y)).unwrap();
    assert!(right.share.contains(0.5), "{right:?}");
    let ideal = Discriminant::fit(&others, &gene, &[age], true).unwrap();
    let right = Accuracy::of(&clear, &gene, 0.95, &|x, y| ideal.guess(x, y)).unwrap();
    assert!(right.share.value > 0.7, "{right:?}");
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let table = people(50, 0.0, 1.0, 9);
    let gene = || Marginal::of_group(&table.layout.groups[0], &table).unwrap();
    let refused = |attack: Result<Inversion, Error>| matches!(attack, Err(Error::Setting { .. }));
    for deviation in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(refused(Inversion::new(gene(), vec![], ErrorModel::Gaussian { deviation })));
    }
    for shares in [vec![vec![0.5, 0.4], vec![0.0, 1.0]], vec![vec![1.0]; 2], vec![vec![f64::NAN]]] {
        assert!(refused(Inversion::new(gene(), vec![], ErrorModel::Confusion { shares })));
    }
    let exact = ErrorModel::Exact { tolerance: 0.0 };
    assert!(refused(Inversion::new(gene(), vec![gene()], exact)));
    assert!(Marginal::new(&table.layout.groups[0], &[0.0; 3]).is_err());
    assert!(Marginal::new(&table.layout.groups[0], &[1.0; 2]).is_err());
    assert!(
        Marginal::of_number(3, &table, 2).is_err() && Marginal::of_number(2, &table, 0).is_err()
    );
    let empty = table.of_rows(&[]).unwrap();
    assert!(Accuracy::of(&empty, &gene(), 0.95, &|_, _| None).is_err());
    assert!(squared_error::membership(&table, &empty, &model).is_err());
}

/// A model that knows its rows by heart against one that does not.
#[test]
fn members_of_a_fit_by_heart_are_found_and_of_an_honest_one_not() {
    let (fitted, held_out) = (people(400, 0.0, 1.0, 10), people(400, 0.0, 1.0, 11));
    let honest = squared_error::membership(&fitted, &held_out, &model).unwrap();
    assert!(honest.auc_interval(0.999).unwrap().contains(0.5));
    let by_heart = |x: &[f64]| {
        fitted.rows().find(|(other, _)| *other == x).map_or_else(|| model(x), |(_, y)| y)
    };
    assert!(squared_error::membership(&fitted, &held_out, &by_heart).unwrap().auc() > 0.99);
}
