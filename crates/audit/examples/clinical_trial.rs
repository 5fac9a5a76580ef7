//! A simulated trial of warfarin, timed: `cargo run --release -p dosimeter-audit --example clinical_trial [PATIENTS] [WARFARIN.CSV]`.
//!
//! With the IWPC's CSV its patients are doubled up to the number asked for and dosed by its published models; without, patients are made up.
#![allow(clippy::print_stdout, reason = "an example shows its figures")]
use dosimeter_audit::clinical::{Arm, Patient, Trial};
use dosimeter_data::Seed;
use dosimeter_data::regression::warfarin::{Cyp2c9, DoseModel, Race, Vkorc1, daily_mg};
use dosimeter_data::regression::{Iwpc, IwpcTarget, warfarin};
use std::time::Instant;

fn made_up(i: usize) -> warfarin::Patient {
    warfarin::Patient {
        age_decade: [4, 5, 6, 7, 8][i % 5],
        height_cm: 170.0,
        weight_kg: 80.0,
        amiodarone: false,
        enzyme_inducer: false,
        race: Race::White,
        cyp2c9: Cyp2c9::ALL[[0, 0, 0, 1, 2, 0, 0][i % 7]],
        vkorc1: Vkorc1::ALL[i % 3],
        weekly_dose_mg: 35.0,
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let n = arguments.next().map_or(Ok(10_000), |n| n.parse())?;
    let known = match arguments.next() {
        Some(path) => Iwpc { path: path.into(), target: IwpcTarget::default() }.patients()?.kept,
        None => (0..n).map(made_up).collect(),
    };
    let people: Vec<warfarin::Patient> = known.iter().copied().cycle().take(n).collect();
    let patients: Vec<Patient> = people.iter().map(Patient::from).collect();
    let by = |model: DoseModel| {
        Arm::from_fn(model.name, &people, |p| daily_mg(model.predict(&p.features())))
    };
    let arms =
        [by(DoseModel::PHARMACOGENETIC), by(DoseModel::CLINICAL), Arm::fixed("fixed 5 mg", n, 5.0)];
    let began = Instant::now();
    let report = Trial::default().simulate(
        &patients,
        &Arm::fixed("fixed 10 mg", n, 10.0),
        &arms,
        Seed::root(1),
    )?;
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{n} patients, {} arms, {} days: {seconds:.2} s",
        report.arms.len(),
        report.trial.days
    );
    println!(
        "relative risk against the first arm (95 %)    mortality            haemorrhage          stroke               in range  above 4"
    );
    for arm in &report.arms {
        let risk =
            |i: dosimeter_audit::Interval| format!("{:.3} [{:.3}, {:.3}]", i.value, i.low, i.high);
        let risks = arm.relative_risk;
        println!(
            "{:<44}  {:<20} {:<20} {:<20} {:>6.1} %  {:>5.1} %",
            arm.name,
            risk(risks.mortality),
            risk(risks.haemorrhage),
            risk(risks.stroke),
            100.0 * arm.in_range,
            100.0 * arm.above_4
        );
    }
    Ok(())
}
