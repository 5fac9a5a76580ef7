//! Laws of chance. Each check states its false-failure probability under a fresh seed (`FALSE_FAILURE`) and what it can see.
#![allow(clippy::unwrap_used, clippy::panic, reason = "support functions of tests fail loudly")]
use dosimeter_data::datasets::SkewedPurchases;
use dosimeter_data::{
    BalancedMembership, Dataset, Inputs, Membership, RecordId, Seed, Split, SplitSpec,
};
use dosimeter_testing::hoeffding_margin;

fn bit(data: &Dataset, record: usize, bit: usize) -> bool {
    let Inputs::Bits(bits) = &data.inputs else { panic!("bits") };
    bits.row(record)[bit / 64] >> (bit % 64) & 1 == 1
}
/// Frequency of 1 and number of bits, over the records and the bits that satisfy `which(record, bit)`.
fn frequency(
    data: &Dataset,
    records: std::ops::Range<usize>,
    which: impl Fn(usize, usize) -> bool,
) -> (f64, u32) {
    let (mut ones, mut all) = (0_u32, 0);
    for record in records {
        for i in (0..600).filter(|&i| which(record, i)) {
            ones += u32::from(bit(data, record, i));
            all += 1;
        }
    }
    (f64::from(ones) / f64::from(all), all)
}

/// Sees a probability off by twice the margin: 0.009 inside the block of 10 classes, 0.003 outside.
#[test]
fn skewed_purchases_follow_the_printed_laws() {
    for (classes, block) in [(10, 60), (100, 6)] {
        let spec = SkewedPurchases {
            classes,
            train_records: 10_000,
            test_records: 10_000,
            ..Default::default()
        };
        let data = spec.generate(Seed::root(11)).unwrap();
        assert_eq!((data.len(), data.width(), data.classes), (20_000, 600, classes));
        let inside = |record: usize, i: usize| i / block == data.labels[record] as usize;
        for (records, p_inside, p_outside) in [(0..10_000, 0.8, 0.2), (10_000..20_000, 0.8, 0.5)] {
            let (got, n) = frequency(&data, records.clone(), inside);
            assert!((got - p_inside).abs() < hoeffding_margin(n), "{classes} inside: {got}");
            let (got, n) = frequency(&data, records.clone(), |r, i| !inside(r, i));
            assert!((got - p_outside).abs() < hoeffding_margin(n), "{classes} outside: {got}");
        }
    }
}

/// Measured from the bits, not from the settings: mean class-conditional entropy of test over train, as the paper's 0.3.
/// With 100,000 bits per frequency and entropy slope at most 2 (at p = 0.2) the measured difference is within 0.02 of the law's.
#[test]
fn the_entropy_differences_are_those_worked_by_hand() {
    for (classes, expected) in [(10, 0.250), (20, 0.264), (50, 0.273), (100, 0.275)] {
        let spec = SkewedPurchases {
            classes,
            train_records: 1_000,
            test_records: 1_000,
            ..Default::default()
        };
        assert!((spec.entropy_difference() - expected).abs() < 5e-4, "{classes}");
        let data = spec.generate(Seed::root(3)).unwrap();
        let block = 600 / classes;
        let inside = |record: usize, i: usize| i / block == data.labels[record] as usize;
        let part = |p: f64| -p * p.log2();
        let entropy = |p: f64| part(p) + part(1.0 - p);
        let law = |records: std::ops::Range<usize>| {
            let (p, _) = frequency(&data, records.clone(), inside);
            let (q, _) = frequency(&data, records, |r, i| !inside(r, i));
            (classes as f64 - 1.0).mul_add(entropy(q), entropy(p)) / classes as f64
        };
        let measured = law(1_000..2_000) - law(0..1_000);
        assert!((measured - expected).abs() < 0.02, "{classes}: {measured}");
    }
    assert!(SkewedPurchases::default().without_skew().entropy_difference().abs() < 1e-15);
}

#[test]
fn the_control_without_skew_has_one_law() {
    let spec = SkewedPurchases { train_records: 2_000, test_records: 2_000, ..Default::default() };
    let data = spec.without_skew().generate(Seed::root(4)).unwrap();
    let (train, n) = frequency(&data, 0..2_000, |_, _| true);
    let (test, _) = frequency(&data, 2_000..4_000, |_, _| true);
    assert!((train - test).abs() < 2.0 * hoeffding_margin(n), "{train} {test}");
}

#[test]
fn permuting_moves_whole_columns_and_nothing_else() {
    let plain = SkewedPurchases { train_records: 50, test_records: 50, ..Default::default() };
    let permuted = SkewedPurchases { permute_seed: Some(9), ..plain };
    let (plain, permuted) =
        (plain.generate(Seed::root(5)).unwrap(), permuted.generate(Seed::root(5)).unwrap());
    assert_ne!(plain.inputs, permuted.inputs);
    let columns = |data: &Dataset| {
        let column = |i| (0..100).map(|r| bit(data, r, i)).collect::<Vec<bool>>();
        let mut columns: Vec<_> = (0..600).map(column).collect();
        columns.sort_unstable();
        columns
    };
    assert_eq!(columns(&plain), columns(&permuted));
}

#[test]
fn more_records_leave_the_earlier_ones_as_they_were() {
    let few = SkewedPurchases { train_records: 30, test_records: 0, ..Default::default() };
    let more = SkewedPurchases { train_records: 70, test_records: 5, ..Default::default() };
    let (few, more) = (few.generate(Seed::root(6)).unwrap(), more.generate(Seed::root(6)).unwrap());
    let (Inputs::Bits(few), Inputs::Bits(more)) = (&few.inputs, &more.inputs) else { panic!() };
    assert_eq!(few.words, more.words[..few.words.len()]);
}

#[test]
fn classes_take_turns_and_generator_settings_are_checked() {
    let spec =
        SkewedPurchases { classes: 20, train_records: 40, test_records: 20, ..Default::default() };
    let data = spec.generate(Seed::root(6)).unwrap();
    assert_eq!(data.class_counts(), [3; 20]);
    assert_eq!(data.test_law, Some(40..60));
    for broken in [
        SkewedPurchases { classes: 7, ..spec.clone() },
        SkewedPurchases { classes: 1, ..spec.clone() },
        SkewedPurchases { classes: 0, ..spec.clone() },
        SkewedPurchases { train_noise: f64::NAN, ..spec.clone() },
        SkewedPurchases { test_noise: 1.1, ..spec.clone() },
        SkewedPurchases { train_records: 0, ..spec.clone() },
        SkewedPurchases { train_records: u32::MAX, test_records: u32::MAX, ..spec },
    ] {
        assert!(broken.generate(Seed::root(1)).is_err(), "{broken:?}");
    }
}

#[test]
fn skewed_splits_take_candidates_from_the_train_law_and_test_from_the_other() {
    let spec = SkewedPurchases {
        classes: 10,
        train_records: 500,
        test_records: 100,
        ..Default::default()
    };
    let data = spec.generate(Seed::root(8)).unwrap();
    let split = Split::draw(&data, SplitSpec { train: 100, test: 50 }, Seed::root(8)).unwrap();
    let of_train = |records: &[RecordId]| records.iter().all(|r| r.0 < 500);
    assert!(of_train(&split.candidates) && of_train(&split.shadow_pool));
    assert!(split.test.iter().all(|r| r.0 >= 500));
    let control = split.test_of_train_law.unwrap();
    assert!(control.len() == 50 && of_train(&control));
    assert_eq!(split.candidates.len() + control.len() + split.shadow_pool.len(), 500);
    let error = Split::draw(&data, SplitSpec { train: 100, test: 101 }, Seed::root(8)).unwrap_err();
    assert_eq!(error.to_string(), "split: needs 101 test records of the test law, there are 100");
}

/// Sees a coin off by 0.0073 over all records, and two records' coins correlated by as much.
#[test]
fn coins_are_fair_and_independent_between_records_and_seeds() {
    let n = 200_000;
    let candidates: Vec<RecordId> = (0..n).map(RecordId).collect();
    let first = Membership::coins(candidates.clone(), Seed::root(1)).member;
    let second = Membership::coins(candidates, Seed::root(2)).member;
    let mean = |coins: &mut dyn Iterator<Item = bool>| coins.map(u32::from).sum::<u32>();
    let margin = hoeffding_margin(n);
    let fair = f64::from(mean(&mut first.iter().copied())) / f64::from(n);
    assert!((fair - 0.5).abs() < margin, "{fair}");
    let seeds = mean(&mut first.iter().zip(&second).map(|(a, b)| a == b));
    assert!((f64::from(seeds) / f64::from(n) - 0.5).abs() < margin, "{seeds}");
    // Neighbours' products overlap; even and odd pairs are independent among themselves.
    let pairs = mean(&mut first.chunks(2).map(|pair| pair[0] == pair[1]));
    assert!((f64::from(pairs) / f64::from(n / 2) - 0.5).abs() < hoeffding_margin(n / 2), "{pairs}");
}

/// Over 20,000 seeds; sees a record whose chance of membership is off by 0.023.
#[test]
fn every_record_of_a_fixed_half_is_a_member_half_of_the_time() {
    // Six records: a class of three, of two and of one.
    let labels = [0, 0, 0, 1, 1, 2];
    let mut member = [0_u32; 6];
    for number in 0..20_000 {
        let half =
            Membership::fixed_half((0..6).map(RecordId).collect(), &labels, Seed::root(number));
        half.members().iter().for_each(|r| member[r.0 as usize] += 1);
    }
    for (record, count) in member.iter().enumerate() {
        let rate = f64::from(*count) / 20_000.0;
        assert!((rate - 0.5).abs() < hoeffding_margin(20_000), "record {record}: {rate}");
    }
}

#[test]
fn balanced_membership_is_fair_in_every_model() {
    let n = 50_000;
    let table = BalancedMembership::draw((0..n).map(RecordId).collect(), 5, Seed::root(3)).unwrap();
    for model in 0..5 {
        let rate = table.of_model(model).unwrap().members().len() as f64 / f64::from(n);
        assert!((rate - 0.5).abs() < hoeffding_margin(n), "model {model}: {rate}");
    }
}

/// Over 20,000 seeds; sees a record whose chance of candidacy is off by 0.023.
#[test]
fn every_record_of_a_class_is_a_candidate_equally_often() {
    let data =
        SkewedPurchases { classes: 2, train_records: 10, test_records: 0, ..Default::default() };
    let mut data = data.generate(Seed::root(1)).unwrap();
    data.test_law = None;
    let mut chosen = [0_u32; 10];
    for number in 0..20_000 {
        let split =
            Split::draw(&data, SplitSpec { train: 2, test: 1 }, Seed::root(number)).unwrap();
        split.candidates.iter().for_each(|r| chosen[r.0 as usize] += 1);
    }
    for (record, count) in chosen.iter().enumerate() {
        let rate = f64::from(*count) / 20_000.0;
        assert!((rate - 0.4).abs() < hoeffding_margin(20_000), "record {record}: {rate}");
    }
}

/// A change here changes the numbers of every study on generated data: it belongs under Numbers in the changelog.
#[test]
fn generated_data_is_the_same_in_every_version_and_on_every_machine() {
    let spec = SkewedPurchases { train_records: 500, test_records: 500, ..Default::default() };
    assert_eq!(
        spec.generate(Seed::root(1)).unwrap().fingerprint(),
        "175a04e8da94fd5bb5e2dfc44b57798512c3c681f58e8f1cb6f3872b9a7e7eec"
    );
}
