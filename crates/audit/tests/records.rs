//! Risk of single records and thresholds carried over from shadows, by hand.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
use dosimeter_audit::risk::per_record;
use dosimeter_audit::transfer::{PRIORS, from_shadows, precision_at};
use dosimeter_audit::{Error, Evidence};
use dosimeter_data::RecordId;

#[track_caller]
fn near(got: f64, wanted: f64) {
    assert!((got - wanted).abs() <= 1e-12, "got {got}, wanted {wanted}");
}

fn run(rows: &[(u32, f64, bool)], not_assessable: &[u32]) -> Evidence {
    Evidence {
        rows: rows.iter().map(|&(id, score, member)| (RecordId(id), score, member)).collect(),
        not_assessable: not_assessable.iter().map(|id| RecordId(*id)).collect(),
    }
}

/// Record 1 is a member twice and above both non-members once; record 2 is the non-member that beats it the other time.
#[test]
fn a_record_is_counted_as_member_and_as_non_member_apart() {
    let runs = [
        run(&[(1, 0.9, true), (2, 0.5, false), (3, 0.1, false)], &[4]),
        run(&[(1, 0.4, true), (2, 0.8, false), (3, 0.9, true)], &[]),
    ];
    let risks = per_record(&runs, 0.0, 0.95).unwrap();
    assert_eq!(risks.iter().map(|risk| risk.record.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let counts = |place: usize| {
        let risk = &risks[place];
        [
            risk.times_member,
            risk.times_recognised,
            risk.times_non_member,
            risk.times_mistaken,
            risk.times_not_assessable,
        ]
    };
    assert_eq!(counts(0), [2, 1, 0, 0, 0]);
    assert_eq!(counts(1), [0, 0, 2, 0, 0]);
    assert_eq!(counts(2), [1, 1, 1, 0, 0]);
    assert_eq!(counts(3), [0, 0, 0, 0, 1]);
    let recognised = risks[0].recognised.unwrap();
    near(recognised.value, 0.5);
    // One of two: the exact lower limit solves 1 - (1 - p)^2 = 0.025.
    near(recognised.low, 1.0 - 0.975_f64.sqrt());
    assert!(risks[1].recognised.is_none() && risks[3].recognised.is_none());
}

#[test]
fn a_looser_rate_recognises_more_and_mistakes_more() {
    let runs = [run(&[(1, 0.4, true), (2, 0.8, false), (3, 0.1, false)], &[])];
    let strict = per_record(&runs, 0.0, 0.95).unwrap();
    let loose = per_record(&runs, 0.5, 0.95).unwrap();
    assert_eq!((strict[0].times_recognised, strict[1].times_mistaken), (0, 0));
    assert_eq!((loose[0].times_recognised, loose[1].times_mistaken), (1, 1));
    assert_eq!(loose[2].times_mistaken, 0);
    assert!(per_record(&runs, 1.1, 0.95).is_err());
    assert!(per_record(&runs, 0.1, 1.0).is_err());
    let one_sided = [run(&[(1, 0.4, true)], &[])];
    assert_eq!(
        per_record(&one_sided, 0.1, 0.95),
        Err(Error::OneSided { members: 1, non_members: 0 })
    );
    assert_eq!(per_record(&[], 0.1, 0.95), Ok(vec![]));
}

/// Of 100 records asked about one is a member; TPR 0.5 and FPR 0.01 find 0.5 members among 1.49 called.
#[test]
fn precision_falls_with_the_share_of_members() {
    near(precision_at(0.5, 0.5, 0.01).unwrap(), 0.5 / 0.51);
    near(precision_at(0.01, 0.5, 0.01).unwrap(), 0.005 / 0.0149);
    assert_eq!(precision_at(0.5, 0.0, 0.0), None);
    assert_eq!(precision_at(0.0, 1.0, 0.0), None);
    near(precision_at(0.0, 1.0, 0.1).unwrap(), 0.0);
}

#[test]
fn a_threshold_from_shadows_is_applied_to_the_target_unchanged() {
    let shadows = [
        run(&[(1, 0.9, true), (2, 0.5, false)], &[]),
        // The same record in another shadow is another draw, not a duplicate.
        run(&[(1, 0.6, true), (2, 0.3, false)], &[]),
    ];
    let target = run(&[(5, 0.7, true), (6, 0.2, true), (7, 0.65, false), (8, 0.1, false)], &[]);
    let strict = from_shadows(&shadows, &target, 0.0, &PRIORS, 0.95).unwrap();
    assert_eq!(strict.threshold, Some(0.6));
    assert_eq!((strict.confusion.true_positives, strict.confusion.false_positives), (1, 1));
    near(strict.tpr.value, 0.5);
    near(strict.fpr.value, 0.5);
    assert_eq!(strict.precision.len(), 3);
    for (prior, precision) in strict.precision {
        near(precision.unwrap(), prior);
    }
}

#[test]
fn without_a_threshold_that_keeps_the_rate_nobody_is_called() {
    let shadows = [run(&[(1, 0.5, true), (2, 0.9, false)], &[])];
    let target = run(&[(5, 0.7, true), (7, 0.95, false)], &[]);
    let nobody = from_shadows(&shadows, &target, 0.0, &[0.5], 0.95).unwrap();
    assert_eq!(nobody.threshold, None);
    assert_eq!((nobody.confusion.true_positives, nobody.confusion.false_positives), (0, 0));
    assert_eq!(nobody.precision, [(0.5, None)]);
    assert!(from_shadows(&shadows, &target, 0.0, &[1.5], 0.95).is_err());
    assert!(from_shadows(&[], &target, 0.0, &[0.5], 0.95).is_err());
}
