//! The simulated trial: against another solution of the same equations, and what must hold whatever the numbers.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::float_cmp,
    reason = "support functions of tests fail loudly; the same sums are equal"
)]
use dosimeter_audit::Error;
use dosimeter_audit::clinical::{Arm, EventRates, Patient, Report, Response, Spread, Trial};
use dosimeter_data::Seed;
use dosimeter_data::regression::warfarin::{Cyp2c9, DoseModel, Vkorc1, daily_mg};
use dosimeter_data::regression::{Iwpc, IwpcTarget};
use dosimeter_testing::{golden, shared};

fn patients(n: usize) -> Vec<Patient> {
    let patient = |i: usize| Patient {
        age_years: 40.0 + (i * 7 % 50) as f64,
        cyp2c9: Cyp2c9::ALL[[0, 0, 0, 1, 2, 0, 3, 0, 4, 0, 5][i % 11]],
        vkorc1: Vkorc1::ALL[i % 3],
    };
    (0..n).map(patient).collect()
}
fn run(trial: &Trial, n: usize, doses: &[f64]) -> Report {
    let patients = patients(n);
    let arms: Vec<Arm> = doses.iter().map(|&d| Arm::fixed(&format!("{d} mg"), n, d)).collect();
    trial.simulate(&patients, &arms[0], &arms[1..], Seed::root(7)).unwrap()
}

#[derive(serde::Deserialize)]
struct Case {
    body: [f64; 6],
    daily_mg: Vec<f64>,
    inrs: Vec<f64>,
}
#[test]
fn inrs_are_those_of_the_differential_equations() {
    let golden = golden::<Case>("warfarin_inr");
    assert!(golden.cases.len() >= 8, "a golden file must not quietly shrink");
    for case in &golden.cases {
        let [clearance_l_per_h, central_l, peripheral_l, first_transit_h, second_transit_h, half] =
            case.body;
        let body = Response {
            clearance_l_per_h,
            central_l,
            peripheral_l,
            first_transit_h,
            second_transit_h,
            half_effect_mg_per_l: half,
        };
        let inrs = body.inrs(&case.daily_mg).unwrap();
        assert_eq!(inrs.len(), case.inrs.len());
        for (day, (have, exact)) in inrs.iter().zip(&case.inrs).enumerate() {
            let error = (have / exact - 1.0).abs();
            assert!(error < golden.tolerance, "{:?}, day {day}: {have} {exact}", case.body);
        }
    }
}
/// The golden bodies are given by their parameters; that these are those of a typical patient is another matter.
#[test]
fn a_typical_body_by_hand() {
    let patient = Patient { age_years: 81.0, cyp2c9: Cyp2c9::Star1Star3, vkorc1: Vkorc1::Ag };
    let body = Response::typical(&patient).unwrap();
    // 0.314 * (1 - 0.091) * (1 - 0.453)
    assert!((body.clearance_l_per_h - 0.156_128_022).abs() < 1e-9, "{body:?}");
    assert_eq!((body.half_effect_mg_per_l, body.central_l, body.peripheral_l), (3.02, 13.8, 6.59));
    assert_eq!((body.first_transit_h, body.second_transit_h), (11.6, 120.0));
}
#[test]
fn the_same_doses_have_a_relative_risk_of_exactly_1() {
    let report = run(&Trial::default(), 300, &[10.0, 10.0, 5.0]);
    for arm in &report.arms[..2] {
        let risk = arm.relative_risk;
        for interval in [risk.mortality, risk.haemorrhage, risk.stroke] {
            assert_eq!((interval.value, interval.low, interval.high), (1.0, 1.0, 1.0));
        }
    }
    let risk = report.arms[2].relative_risk.haemorrhage;
    assert!(risk.low < risk.value && risk.value < risk.high && risk.high < 1.0, "{risk:?}");
}
#[test]
fn the_number_of_threads_changes_nothing() {
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run(&Trial::default(), 200, &[10.0, 4.0]))
    };
    let (one, three) = (on(1), on(3));
    assert_eq!(one, three);
    assert_eq!(serde_json::to_string(&one).unwrap(), serde_json::to_string(&three).unwrap());
    let back: Report = serde_json::from_str(&serde_json::to_string(&one).unwrap()).unwrap();
    // serde_json reads numbers to the last digit but one.
    assert_eq!((back.patients, back.trial, back.arms.len()), (200, one.trial, 2));
}
#[test]
fn a_patient_is_the_same_whoever_else_takes_part() {
    // Others change means, so a patient alone is seen through a trial of two against one of three with a silent third.
    let everyone = patients(3);
    let arm = |n: usize| Arm::fixed("ten", n, 10.0);
    let mean = |n: usize| {
        let report =
            Trial::default().simulate(&everyone[..n], &arm(n), &[], Seed::root(3)).unwrap();
        report.arms[0].expected.haemorrhage * n as f64
    };
    let third = mean(3) - mean(2);
    assert!(third > 0.0);
    let other_doses = Arm { name: "mixed".into(), daily_mg: vec![1.0, 2.0, 10.0] };
    let first_two = Arm { name: "mixed".into(), daily_mg: vec![1.0, 2.0] };
    let with = |n: usize, arm: &Arm| {
        let report = Trial::default().simulate(&everyone[..n], arm, &[], Seed::root(3)).unwrap();
        report.arms[0].expected.haemorrhage * n as f64
    };
    let again = with(3, &other_doses) - with(2, &first_two);
    assert!((third - again).abs() < 1e-12, "{third} {again}");
    let other_seed = Trial::default().simulate(&everyone, &arm(3), &[], Seed::root(4)).unwrap();
    assert_ne!(other_seed.arms[0].expected.haemorrhage, mean(3) / 3.0);
}
/// Without a protocol (it never begins) more warfarin means more bleeding, fewer strokes and more time above range, patient by patient.
#[test]
fn more_warfarin_means_more_bleeding_and_fewer_strokes() {
    let trial = Trial { initiation_days: 1_000, highest_initial_mg: 100.0, ..Trial::default() };
    let report = run(&trial, 400, &[0.0, 1.0, 3.0, 6.0, 12.0, 24.0]);
    for pair in report.arms.windows(2) {
        let (less, more) = (&pair[0], &pair[1]);
        assert!(less.expected.haemorrhage < more.expected.haemorrhage, "{pair:?}");
        assert!(less.expected.stroke > more.expected.stroke, "{pair:?}");
        assert!(less.above_4 < more.above_4 && less.below_range > more.below_range, "{pair:?}");
    }
    // Nobody takes anything: 90 days of an INR of 1, -ln(1 - 0.077) * 90 / 365 strokes.
    let none = &report.arms[0];
    assert!((none.expected.stroke - 0.019_757_1).abs() < 1e-6, "{none:?}");
    assert!((none.expected.haemorrhage - 0.003_719_1).abs() < 1e-6, "{none:?}");
    assert!((none.below_range - 1.0).abs() < 1e-9 && none.in_range == 0.0);
}
#[test]
fn the_protocol_brings_patients_into_range() {
    let long = Trial { days: 365, ..Trial::default() };
    let report = run(&long, 300, &[10.0, 2.0]);
    for arm in &report.arms {
        assert!(arm.in_range > 0.5, "{arm:?}");
        let between_3_and_4 = 1.0 - arm.in_range - arm.below_range - arm.above_4;
        assert!((0.0..0.3).contains(&between_3_and_4), "{arm:?}");
    }
    let without = Trial { initiation_days: 1_000, ..long };
    let without = run(&without, 300, &[10.0, 2.0]);
    assert!(without.arms.iter().all(|arm| arm.in_range < 0.5), "{without:?}");
}
#[test]
fn a_body_without_spread_is_the_typical_one() {
    let trial =
        Trial { spread: Spread::None, initiation_days: 1_000, days: 20, ..Trial::default() };
    let patients = patients(2);
    let report =
        trial.simulate(&patients, &Arm::fixed("five", 2, 5.0), &[], Seed::root(1)).unwrap();
    let mut bleedings = 0.0;
    for patient in &patients {
        for inr in Response::typical(patient).unwrap().inrs(&[5.0; 20]).unwrap() {
            bleedings += EventRates::ATRIAL_FIBRILLATION.of_a_day(inr).haemorrhage;
        }
    }
    assert!((report.arms[0].expected.haemorrhage - bleedings / 2.0).abs() < 1e-12);
    let spread = |spread| run(&Trial { spread, ..Trial::default() }, 50, &[10.0]).arms[0].expected;
    assert_ne!(spread(Spread::Variances), spread(Spread::Deviations));
}
#[test]
fn doses_above_the_highest_are_taken_for_it_and_counted() {
    let report = run(&Trial::default(), 50, &[15.0, 40.0, 14.0]);
    assert_eq!(report.arms.iter().map(|a| a.doses_clipped).collect::<Vec<_>>(), [0, 50, 0]);
    assert_eq!(report.arms[1].expected, report.arms[0].expected);
}
#[test]
fn what_makes_no_trial_is_refused() {
    let patients = patients(3);
    let ten = Arm::fixed("ten", 3, 10.0);
    let said = |trial: Trial, patients: &[Patient], arm: &Arm| {
        trial
            .simulate(patients, &ten, std::slice::from_ref(arm), Seed::root(1))
            .unwrap_err()
            .to_string()
    };
    let good = Trial::default();
    for (bad, place) in [(f64::NAN, 0), (-1.0, 1), (f64::INFINITY, 2)] {
        let mut arm = Arm::fixed("private", 3, 1.0);
        arm.daily_mg[place] = bad;
        assert_eq!(
            said(good, &patients, &arm),
            format!(
                "patient {place}: the initial dose of arm `private` must be finite and at least 0 mg a day"
            )
        );
    }
    let short = Arm::fixed("short", 2, 1.0);
    assert_eq!(said(good, &patients, &short), "an arm has 2 entries, needed 3");
    let mut old = patients.clone();
    old[1].age_years = f64::NAN;
    assert_eq!(said(good, &old, &ten), "patient 1: the age must be from 0 to 120 years");
    let one =
        Trial::default().simulate(&patients[..1], &Arm::fixed("a", 1, 1.0), &[], Seed::root(1));
    assert_eq!(one, Err(Error::TooFew { what: "a trial", needed: 2, got: 1 }));
    let mut rates = EventRates::ATRIAL_FIBRILLATION;
    rates.haemorrhage[2] = 1.0;
    for trial in [
        Trial { days: 0, ..good },
        Trial { days: 3_651, ..good },
        Trial { initiation_days: 0, ..good },
        Trial { highest_initial_mg: f64::NAN, ..good },
        Trial { confidence: 1.0, ..good },
        Trial { rates, ..good },
    ] {
        assert!(trial.simulate(&patients, &ten, &[], Seed::root(1)).is_err(), "{trial:?}");
    }
}

/// Fresh patients, 200 times: the interval of the same ratio in 20 times as many patients. A correct interval of 95 % covers fewer
/// than 165 of 200 with a probability below 1e-9 (binomial), so what is noticed is a true confidence below about 80 %.
#[test]
fn intervals_cover_the_ratio_of_the_population() {
    let trial = Trial { days: 30, ..Trial::default() };
    let report = |n: usize, seed: Seed| {
        let patients = patients(n);
        let arms = [Arm::fixed("ten", n, 10.0), Arm::fixed("five", n, 5.0)];
        trial.simulate(&patients, &arms[0], &arms[1..], seed).unwrap().arms[1].relative_risk
    };
    let truth = report(16_500, Seed::root(99));
    let covered = (0..200).filter(|&i| {
        let risk = report(165, Seed::root(i));
        risk.haemorrhage.contains(truth.haemorrhage.value)
    });
    let covered = covered.count();
    assert!((165..=200).contains(&covered), "{covered} of 200");
}

/// Patients of the IWPC: the published models against 10 mg for all, and against the same model with so much noise that it is useless.
#[test]
fn a_good_dose_model_helps_patients_and_a_noisy_one_does_not() {
    let Some(path) = shared("data/iwpc-warfarin/warfarin.csv") else { return };
    let iwpc = Iwpc { path, target: IwpcTarget::default() };
    let kept = iwpc.patients().unwrap().kept;
    let patients: Vec<Patient> = kept.iter().map(Patient::from).collect();
    let by = |name: &str, model: DoseModel, noise: f64| {
        let mut sign = 1.0;
        Arm::from_fn(name, &kept, |p| {
            sign = -sign;
            daily_mg(model.predict(&p.features()) + sign * noise)
        })
    };
    let arms = [
        by("pharmacogenetic", DoseModel::PHARMACOGENETIC, 0.0),
        by("clinical", DoseModel::CLINICAL, 0.0),
        by("noisy", DoseModel::PHARMACOGENETIC, 4.0),
    ];
    let ten = Arm::fixed("10 mg", patients.len(), 10.0);
    let report = Trial::default().simulate(&patients, &ten, &arms, Seed::root(1)).unwrap();
    let risk = |arm: usize| report.arms[arm].relative_risk;
    assert!(risk(1).mortality.high < 1.0 && risk(1).haemorrhage.high < 1.0, "{report:?}");
    assert!(risk(1).mortality.high < risk(2).mortality.low, "{report:?}");
    assert!(risk(1).mortality.high < risk(3).mortality.low, "{report:?}");
    assert!(report.arms[1].in_range > report.arms[0].in_range, "{report:?}");
}
