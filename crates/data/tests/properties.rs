//! Laws of seeds, splits, membership and class selection.
#![allow(clippy::unwrap_used, clippy::panic, reason = "support functions of tests fail loudly")]
use dosimeter_data::{
    BalancedMembership, BitMatrix, Dataset, Error, Inputs, Membership, RecordId, Seed, Split,
    SplitSpec,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A data set with these labels; record `i` holds the bits of `i`, so that contents betray a mix-up.
fn labelled(labels: &[u32], classes: usize) -> Dataset {
    let bits =
        BitMatrix { rows: labels.len(), width: 32, words: (0..labels.len() as u64).collect() };
    Dataset::from_bits("made", bits, labels.to_vec(), classes).unwrap()
}
fn counts(records: &[RecordId], labels: &[u32], classes: usize) -> Vec<usize> {
    let mut counts = vec![0; classes];
    records.iter().for_each(|r| counts[labels[r.0 as usize] as usize] += 1);
    counts
}
/// Labels of up to 5 classes, very unequal ones among them.
fn labels() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(prop_oneof![8 => 0..2_u32, 1 => 0..5_u32], 1..200)
}

proptest! {
    #[test]
    fn roles_are_disjoint_complete_and_keep_class_proportions(
        labels in labels(), train in 1..60_usize, test in 1..60_usize, number: u64,
    ) {
        let data = labelled(&labels, 5);
        let drawn = Split::draw(&data, SplitSpec { train, test }, Seed::root(number));
        if 2 * train + test > labels.len() {
            let error = drawn.unwrap_err().to_string();
            prop_assert!(error.contains(&format!("2 x {train} candidates + {test} test")), "{}", error);
            prop_assert!(error.contains(&labels.len().to_string()), "{}", error);
            return Ok(());
        }
        let split = drawn.unwrap();
        prop_assert_eq!((split.candidates.len(), split.test.len()), (2 * train, test));
        let all: BTreeSet<RecordId> =
            split.candidates.iter().chain(&split.test).chain(&split.shadow_pool).copied().collect();
        prop_assert_eq!(all.len(), labels.len());
        prop_assert_eq!(all.len(), split.candidates.len() + split.test.len() + split.shadow_pool.len());
        // Largest remainder: every class within one record of its exact share.
        let whole = data.class_counts();
        let got = counts(&split.candidates, &labels, 5);
        for (have, of) in got.iter().zip(&whole) {
            let exact = (of * 2 * train) as f64 / labels.len() as f64;
            prop_assert!((*have as f64 - exact).abs() < 1.0, "{} of exact {}", have, exact);
        }
        for role in [&split.candidates, &split.test, &split.shadow_pool] {
            prop_assert!(role.is_sorted());
        }
        prop_assert_eq!(Split::draw(&data, SplitSpec { train, test }, Seed::root(number)).unwrap(), split);
    }

    #[test]
    fn shadow_candidates_come_from_the_pool_only(labels in labels(), number: u64) {
        prop_assume!(labels.len() >= 10);
        let n = labels.len() / 5;
        let data = labelled(&labels, 5);
        let split = Split::draw(&data, SplitSpec { train: n, test: 1 }, Seed::root(number)).unwrap();
        match split.shadow_candidates(&data, n, Seed::root(number).child("shadow")) {
            Ok(shadow) => {
                prop_assert_eq!(shadow.len(), 2 * n);
                prop_assert!(shadow.iter().all(|r| split.shadow_pool.contains(r)));
                prop_assert!(shadow.windows(2).all(|w| w[0] < w[1]), "no record twice");
            }
            Err(error) => {
                prop_assert!(split.shadow_pool.len() < 2 * n);
                prop_assert!(error.to_string().contains("shadow"), "{}", error);
            }
        }
    }

    #[test]
    fn a_fixed_half_halves_the_whole_and_every_class(labels in labels(), number: u64) {
        let candidates: Vec<RecordId> = (0..labels.len() as u32).map(RecordId).collect();
        let half = Membership::fixed_half(candidates.clone(), &labels, Seed::root(number));
        prop_assert_eq!(half.members().len(), labels.len() / 2);
        prop_assert_eq!(half.members().len() + half.non_members().len(), labels.len());
        let (whole, members) = (counts(&candidates, &labels, 5), counts(&half.members(), &labels, 5));
        for (of, have) in whole.iter().zip(members) {
            prop_assert!(have == of / 2 || have == of.div_ceil(2), "{} of {}", have, of);
        }
    }

    #[test]
    fn a_coin_depends_on_the_record_and_not_on_its_companions(ids in prop::collection::btree_set(0..1000_u32, 1..50), number: u64) {
        let seed = Seed::root(number);
        let candidates: Vec<RecordId> = ids.iter().copied().map(RecordId).collect();
        let together = Membership::coins(candidates.clone(), seed);
        let mut backwards = candidates.clone();
        backwards.reverse();
        let backwards = Membership::coins(backwards, seed);
        for (record, member) in candidates.iter().zip(&together.member) {
            prop_assert_eq!(backwards.of(*record), Some(*member));
            prop_assert_eq!(Membership::coins(vec![*record], seed).member[0], *member);
        }
    }

    #[test]
    fn every_record_is_in_half_of_the_models_and_a_top_up_changes_no_earlier_model(
        records in 1..50_u32, models in 1..12_usize, number: u64,
    ) {
        let candidates: Vec<RecordId> = (0..records).map(RecordId).collect();
        let few = BalancedMembership::draw(candidates.clone(), models, Seed::root(number)).unwrap();
        for position in 0..records as usize {
            let with = few.models_with(position);
            prop_assert!(with == models / 2 || with == models.div_ceil(2), "{} of {}", with, models);
        }
        let more = BalancedMembership::draw(candidates, models + 2, Seed::root(number)).unwrap();
        for model in 0..models {
            prop_assert_eq!(few.of_model(model), more.of_model(model));
        }
        prop_assert_eq!(few.of_model(models), None);
    }

    #[test]
    fn selecting_classes_keeps_every_record_with_its_row(labels in labels(), classes in 2..5_usize) {
        let data = labelled(&labels, 5);
        let present = data.class_counts().iter().filter(|&&c| c > 0).count();
        match data.clone().most_frequent_classes(classes) {
            Err(error) => {
                prop_assert!(present < classes);
                let refused = matches!(error, Error::TooFewClasses { .. });
                prop_assert!(refused);
            }
            Ok(kept) => {
                let counts = data.class_counts();
                let weakest = kept.class_counts().into_iter().min().unwrap();
                let gone = data.len() - kept.len();
                let mut sorted = counts;
                sorted.sort_unstable();
                prop_assert_eq!(gone, sorted[..5 - classes].iter().sum::<usize>());
                prop_assert_eq!(weakest, sorted[5 - classes]);
                let Inputs::Bits(bits) = &kept.inputs else { panic!("bits") };
                for i in 0..kept.len() {
                    let row = kept.source_row(RecordId(i as u32)).unwrap() - 1;
                    prop_assert_eq!(bits.row(i), [row]);
                    let name = labels[row as usize].to_string();
                    prop_assert_eq!(&kept.class_names[kept.labels[i] as usize], &name);
                }
            }
        }
    }

    #[test]
    fn any_change_of_content_changes_the_fingerprint(labels in labels(), at: prop::sample::Index, bit in 0..32_u32) {
        let data = labelled(&labels, 5);
        let mut other = data.clone();
        let Inputs::Bits(bits) = &mut other.inputs else { panic!("bits") };
        bits.words[at.index(labels.len())] ^= 1 << bit;
        prop_assert_ne!(data.fingerprint(), other.fingerprint());
        let mut other = data.clone();
        other.labels[at.index(labels.len())] ^= 1;
        prop_assert_ne!(data.fingerprint(), other.fingerprint());
        let mut other = data.clone();
        other.columns[bit as usize].name.push('x');
        prop_assert_ne!(data.fingerprint(), other.fingerprint());
        let mut other = data.clone();
        other.test_law = Some(0..1);
        prop_assert_ne!(data.fingerprint(), other.fingerprint());
        let mut other = data.clone();
        other.name = "another path".into();
        prop_assert_eq!(data.fingerprint(), other.fingerprint());
    }
}

#[test]
fn shares_go_to_the_largest_remainders() {
    // 10 records, 5 / 3 / 2 of the classes; 4 candidates: exact 2.0 / 1.2 / 0.8, so 2 / 1 / 1.
    let labels = [0, 0, 0, 0, 0, 1, 1, 1, 2, 2];
    let data = labelled(&labels, 3);
    let split = Split::draw(&data, SplitSpec { train: 2, test: 3 }, Seed::root(1)).unwrap();
    assert_eq!(counts(&split.candidates, &labels, 3), [2, 1, 1]);
    // Of the 3 / 2 / 1 left, 3 test records: 1.5 / 1.0 / 0.5; the tie goes to the earlier class.
    assert_eq!(counts(&split.test, &labels, 3), [2, 1, 0]);
}
#[test]
fn three_records_cannot_be_split_into_four_roles_and_the_error_says_so() {
    let data = labelled(&[0, 1, 0], 2);
    let error =
        Split::draw(&data, SplitSpec { train: 1000, test: 500 }, Seed::root(1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "split: needs 2 x 1000 candidates + 500 test records of the data set, there are 3"
    );
    let huge = SplitSpec { train: usize::MAX, test: 1 };
    assert!(matches!(Split::draw(&data, huge, Seed::root(1)), Err(Error::TooFewRecords { .. })));
    for spec in [SplitSpec { train: 0, test: 1 }, SplitSpec { train: 1, test: 0 }] {
        assert!(matches!(Split::draw(&data, spec, Seed::root(1)), Err(Error::Setting { .. })));
    }
    assert!(Split::draw(&data, SplitSpec { train: 1, test: 1 }, Seed::root(1)).is_ok());
}
#[test]
fn two_candidates_give_one_member_and_six_use_all_six() {
    for number in 0..20 {
        let two =
            Membership::fixed_half(vec![RecordId(0), RecordId(1)], &[0, 0], Seed::root(number));
        assert_eq!((two.members().len(), two.non_members().len()), (1, 1));
        let six = (0..6).map(RecordId).collect();
        let six = Membership::fixed_half(six, &[0; 6], Seed::root(number));
        assert_eq!((six.members().len(), six.non_members().len()), (3, 3));
    }
}
#[test]
fn inconsistent_parts_are_refused() {
    let bits = |words: Vec<u64>| BitMatrix { rows: 2, width: 3, words };
    assert!(Dataset::from_bits("d", bits(vec![7, 0]), vec![0, 1], 2).is_ok());
    assert!(Dataset::from_bits("d", bits(vec![8, 0]), vec![0, 1], 2).is_err(), "padding");
    assert!(Dataset::from_bits("d", bits(vec![7]), vec![0, 1], 2).is_err(), "words");
    assert!(Dataset::from_bits("d", bits(vec![7, 0]), vec![0], 2).is_err(), "rows");
    assert!(Dataset::from_bits("d", bits(vec![7, 0]), vec![0, 2], 2).is_err(), "label");
    let error =
        Dataset::from_reals("d", 2, vec![0.0, 1.0, 0.5, f32::NAN], vec![0, 1], 2).unwrap_err();
    assert_eq!(error.to_string(), "record 1, input 1 is not finite");
    assert!(Dataset::from_reals("d", 2, vec![0.0; 3], vec![0, 1], 2).is_err(), "numbers");
}
#[test]
fn seeds_depend_on_every_label_and_on_no_call_order() {
    let root = Seed::root(7);
    let seeds = [
        root,
        root.child("a"),
        root.child("b"),
        root.child("a").child("b"),
        root.child("ab"),
        root.index(0),
        root.index(1),
        root.child(""),
        Seed::root(8),
    ];
    let distinct: BTreeSet<[u8; 32]> = seeds.iter().map(|s| s.bytes()).collect();
    assert_eq!(distinct.len(), seeds.len());
    assert_eq!(root.child("a").bytes(), Seed::root(7).child("a").bytes());
}
