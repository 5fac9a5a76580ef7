//! Golden values: the committed set, and every row in scope of the reference material where that is present.
//!
//! Known errors of the reference are not ours to repeat: its RDP of other tools drops signs, its randomized response
//! column composes by hand because the tool ignores counts, and its PLD grid is too coarse for some rows. There the exact
//! value, the PRV bracket or the size of the grid's own excess decide.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::suboptimal_flops,
    clippy::float_cmp,
    reason = "a test fails by panicking, and compares with plain arithmetic"
)]
use dosimeter_privacy::{
    Accountant, Delta, Epsilon, Event, LaplaceScale, Ledger, NoiseMultiplier, Relation,
    SamplingRate, Unit,
    accountants::{Gdp, Pld, Rdp, rdp},
    calibrate::{self, Budget},
};
use rayon::prelude::*;
use serde_json::Value;
use std::sync::OnceLock;

fn reference() -> Option<&'static Value> {
    static FILE: OnceLock<Option<Value>> = OnceLock::new();
    FILE.get_or_init(|| {
        let path = dosimeter_testing::shared("golden/accounting_reference.json")?;
        Some(serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
    })
    .as_ref()
}

/// Runs `check` over a section, in parallel; all failing rows are shown. Fails if there are fewer than `least` rows.
fn section(name: &str, least: usize, check: impl Fn(&Value) -> Result<(), String> + Sync) {
    let Some(file) = reference() else { return };
    let rows = file[name].as_array().unwrap();
    assert!(rows.len() >= least, "{name} has {} rows, expected {least}", rows.len());
    let failures: Vec<String> = rows
        .par_iter()
        .filter_map(|row| check(row).err().map(|e| format!("{row}\n  {e}")))
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {} rows fail:\n{}",
        failures.len(),
        rows.len(),
        failures.join("\n")
    );
}

/// A number, also when written as a string.
fn number(row: &Value, key: &str) -> Option<f64> {
    match &row[key] {
        Value::String(text) => text.parse().ok(),
        value => value.as_f64(),
    }
}
fn needed(row: &Value, key: &str) -> f64 {
    number(row, key).unwrap_or_else(|| panic!("no {key} in {row}"))
}
fn delta(row: &Value) -> Delta {
    Delta::new(needed(row, "delta")).unwrap()
}
fn plan(row: &Value) -> Ledger {
    let (q, z) = (needed(row, "q"), needed(row, "z"));
    calibrate::planned(
        SamplingRate::new(q).unwrap(),
        NoiseMultiplier::new(z).unwrap(),
        needed(row, "steps") as u64,
    )
}
fn pld(ledger: &Ledger, relation: Relation, delta: Delta) -> f64 {
    Pld.epsilon_upper(ledger, relation, delta).unwrap().get()
}
fn within(what: &str, got: f64, low: f64, high: f64) -> Result<(), String> {
    if got >= low && got <= high {
        Ok(())
    } else {
        Err(format!("{what} is {got}, not in [{low}, {high}]"))
    }
}

/// What the reference's grid may have added: `steps (slope + 1) h^2 / 12`, doubled.
fn grid_excess(ledger: &Ledger, relation: Relation, row: &Value, interval: f64) -> f64 {
    let d = needed(row, "delta");
    let near = pld(ledger, relation, Delta::new(d).unwrap());
    let far = pld(ledger, relation, Delta::new(d / 2.0).unwrap());
    let slope = 2.0_f64.ln() / (far - near).max(1e-12);
    needed(row, "steps") * (slope + 1.0) * interval * interval / 6.0
}

#[test]
fn poisson_add_remove_pld_lies_between_the_exact_or_fine_value_and_the_reference() {
    section("poisson_add_remove", 560, |row| {
        let ledger = plan(row);
        let got = pld(&ledger, Relation::AddRemove, delta(row));
        if let Some(exact) = number(row, "eps_exact") {
            within("pld", got, exact, exact * (1.0 + 1e-9) + 1e-13)?;
        }
        if let Some(known) = number(row, "eps_pld").filter(|known| known.is_finite()) {
            let interval = number(row, "pld_interval").unwrap_or(1e-4);
            let excess = grid_excess(&ledger, Relation::AddRemove, row, interval);
            within("pld", got, known * (1.0 - 1e-4) - excess, known * (1.0 + 2e-4))?;
        }
        // The reference itself: never above what RDP proves.
        within("pld", got, 0.0, needed(row, "eps_rdp"))
    });
}

#[test]
fn poisson_add_remove_rdp_is_the_signed_series_at_the_same_orders() {
    section("poisson_add_remove", 560, |row| {
        let got = Rdp.epsilon_upper(&plan(row), Relation::AddRemove, delta(row)).unwrap().get();
        let known = needed(row, "eps_rdp");
        within("rdp", got, known * (1.0 - 1e-7), known * (1.0 + 1e-7))
    });
}

#[test]
fn the_central_limit_approximation_is_the_published_formula() {
    section("poisson_add_remove", 560, |row| {
        let Some(known) = number(row, "eps_gdp_clt").filter(|_| needed(row, "q") < 1.0) else {
            return Ok(());
        };
        if !known.is_finite() || known > 1e5 {
            return Ok(());
        }
        let got = Gdp.epsilon_upper(&plan(row), Relation::AddRemove, delta(row)).unwrap().get();
        within("gdp", got, known * (1.0 - 1e-6) - 1e-9, known * (1.0 + 1e-6) + 1e-9)
    });
}

#[test]
fn one_step_is_exact_to_nine_digits_and_never_below() {
    section("exact_single_step_poisson_gaussian", 140, |row| {
        let (q, z) = (needed(row, "q"), needed(row, "z"));
        let ledger =
            calibrate::planned(SamplingRate::new(q).unwrap(), NoiseMultiplier::new(z).unwrap(), 1);
        let exact = needed(row, "eps");
        within(
            "pld",
            pld(&ledger, Relation::AddRemove, delta(row)),
            exact,
            exact * (1.0 + 1e-9) + 1e-13,
        )
    });
}

#[test]
fn renyi_divergences_agree_with_fifty_digit_arithmetic() {
    section("rdp_values_poisson_gaussian", 136, |row| {
        let (q, z) = (
            SamplingRate::new(needed(row, "q")).unwrap(),
            NoiseMultiplier::new(needed(row, "z")).unwrap(),
        );
        let got = rdp::sampled_gaussian(q, z, needed(row, "order"));
        let exact = needed(row, "rdp_mpmath");
        within("rdp", got, exact * (1.0 - 1e-8) - 1e-14, exact * (1.0 + 1e-8) + 1e-14)
    });
}

#[test]
fn poisson_replace_one_pld_agrees_but_for_the_coarse_grid_of_the_reference() {
    section("poisson_replace_one_pld", 96, |row| {
        let ledger = plan(row);
        let got = pld(&ledger, Relation::ReplaceOne, delta(row));
        let known = needed(row, "eps_pld");
        let excess = grid_excess(&ledger, Relation::ReplaceOne, row, needed(row, "interval"));
        within("pld", got, known * (1.0 - 1e-4) - excess, known * (1.0 + 2e-4))
    });
}

#[test]
fn laplace_agrees_and_is_exact_for_one_release() {
    section("laplace", 48, |row| {
        let mut ledger = Ledger::new(Unit::Record);
        let scale = LaplaceScale::new(needed(row, "scale")).unwrap();
        ledger.record(Event::Laplace { scale }, needed(row, "count") as u64);
        let got = pld(&ledger, Relation::AddRemove, delta(row));
        if let Some(exact) = number(row, "eps_exact") {
            within("pld", got, exact, exact * (1.0 + 1e-9))?;
        }
        if let Some(known) = number(row, "eps_pld") {
            within("pld", got, known * (1.0 - 1e-3), known * (1.0 + 2e-4))?;
        }
        within("pld", got, 0.0, needed(row, "eps_pure").min(needed(row, "eps_rdp")))?;
        let renyi = Rdp.epsilon_upper(&ledger, Relation::AddRemove, delta(row)).unwrap().get();
        // Ours also knows the pure bound.
        let known = needed(row, "eps_rdp").min(needed(row, "eps_pure"));
        within("rdp", renyi, known * (1.0 - 1e-7), known * (1.0 + 1e-7))
    });
}

#[test]
fn laplace_on_a_poisson_sample_agrees() {
    section("laplace_poisson", 8, |row| {
        let mut ledger = Ledger::new(Unit::Record);
        let event = Event::Laplace { scale: LaplaceScale::new(needed(row, "scale")).unwrap() };
        ledger.record(
            event.sampled(SamplingRate::new(needed(row, "q")).unwrap()),
            needed(row, "count") as u64,
        );
        let known = needed(row, "eps_pld");
        // The reference's grid is 1e-3 wide: coarse against losses of a few thousandths.
        within(
            "pld",
            pld(&ledger, Relation::AddRemove, delta(row)),
            known - 1e-3,
            known * (1.0 + 2e-4),
        )
    });
}

#[test]
fn randomized_response_counts_every_answer() {
    section("randomized_response_replace_one", 36, |row| {
        let mut ledger = Ledger::new(Unit::Record);
        let (epsilon, categories) =
            (Epsilon::new(needed(row, "eps0")).unwrap(), needed(row, "num_buckets") as u32);
        ledger
            .record(Event::RandomizedResponse { epsilon, categories }, needed(row, "count") as u64);
        // The exact column (printed to 15 digits) has two answers only; the others are bounded by the coarse grid.
        let exact = number(row, "eps_exact");
        let known = needed(row, "eps_pld_self_compose");
        for relation in [Relation::ReplaceOne, Relation::Local] {
            let got = pld(&ledger, relation, delta(row));
            within(
                "pld",
                got,
                exact.map_or(known * (1.0 - 2e-3), |e| e * (1.0 - 1e-14)),
                exact.map_or(known, |e| e * (1.0 + 1e-6)),
            )?;
        }
        Ok(())
    });
}

#[test]
fn the_least_noise_for_one_gaussian_release_is_the_analytic_one() {
    section("analytic_gaussian_sigma", 40, |row| {
        let budget = Budget {
            epsilon: Epsilon::new(needed(row, "eps")).unwrap(),
            delta: delta(row),
            relation: Relation::AddRemove,
        };
        let got = calibrate::noise_multiplier(&Pld, budget, SamplingRate::new(1.0).unwrap(), 1)
            .unwrap()
            .get();
        let exact = needed(row, "sigma_mpmath");
        within("noise", got, exact * (1.0 - 1e-11), exact * (1.0 + 3e-6))
    });
}

#[test]
fn sequences_of_different_releases_agree() {
    section("heterogeneous", 11, |row| {
        let mut ledger = Ledger::new(Unit::Record);
        let gaussian = |z: f64| Event::gaussian(NoiseMultiplier::new(z).unwrap());
        let rate = |q: f64| SamplingRate::new(q).unwrap();
        if let Some(phases) = row["phases"].as_array() {
            for phase in phases {
                let at = |i: usize| phase[i].as_f64().unwrap();
                ledger.record(gaussian(at(1)).sampled(rate(at(0))), at(2) as u64);
            }
        } else {
            assert_eq!(row["mix"], "Gaussian z=5 x3 + Laplace b=4 x2 + Poisson q=.02 z=1.2 x400");
            ledger.record(gaussian(5.0), 3);
            ledger.record(Event::Laplace { scale: LaplaceScale::new(4.0).unwrap() }, 2);
            ledger.record(gaussian(1.2).sampled(rate(0.02)), 400);
        }
        let known = needed(row, "eps_pld");
        within(
            "pld",
            pld(&ledger, Relation::AddRemove, delta(row)),
            known * (1.0 - 1e-3),
            known * (1.0 + 2e-4),
        )?;
        let known = needed(row, "eps_rdp");
        let got = Rdp.epsilon_upper(&ledger, Relation::AddRemove, delta(row)).unwrap().get();
        // This column dropped the signs of the series: up to 1e-5 above.
        within("rdp", got, known * (1.0 - 2e-5), known * (1.0 + 1e-7))
    });
}

#[test]
fn the_least_noise_for_a_training_agrees_and_keeps_the_budget() {
    section("inverse_sigma", 35, |row| {
        let (rate, steps) =
            (SamplingRate::new(needed(row, "q")).unwrap(), needed(row, "steps") as u64);
        let epsilon = Epsilon::new(needed(row, "target_eps")).unwrap();
        let budget = Budget { epsilon, delta: delta(row), relation: Relation::AddRemove };
        if let Some(known) = number(row, "z_pld") {
            let noise = calibrate::noise_multiplier(&Pld, budget, rate, steps)
                .map_err(|e| e.to_string())?;
            // The coarse grids of the reference ask for up to a few parts in a thousand more noise.
            within("pld noise", noise.get(), known * (1.0 - 2e-2), known * (1.0 + 2e-4))?;
            let spent =
                pld(&calibrate::planned(rate, noise, steps), Relation::AddRemove, delta(row));
            within("epsilon", spent, epsilon.get() * (1.0 - 1e-3), epsilon.get())?;
        }
        if let Some(known) = number(row, "z_rdp") {
            let noise = calibrate::noise_multiplier(&Rdp, budget, rate, steps)
                .map_err(|e| e.to_string())?;
            within("rdp noise", noise.get(), known * (1.0 - 1e-3), known * (1.0 + 1e-4))?;
        }
        Ok(())
    });
}

#[test]
fn the_most_steps_agree() {
    section("inverse_steps_rdp", 4, |row| {
        let (rate, noise) = (
            SamplingRate::new(needed(row, "q")).unwrap(),
            NoiseMultiplier::new(needed(row, "z")).unwrap(),
        );
        let epsilon = Epsilon::new(needed(row, "target_eps")).unwrap();
        let budget = Budget { epsilon, delta: delta(row), relation: Relation::AddRemove };
        let known = needed(row, "max_steps_rdp");
        let steps = calibrate::steps(&Rdp, budget, rate, noise).map_err(|e| e.to_string())?;
        within("steps", steps as f64, known - 1.0, known + 1.0)?;
        let tight = calibrate::steps(&Pld, budget, rate, noise).map_err(|e| e.to_string())?;
        within("steps by pld", tight as f64, known, known * 2.5)
    });
}

#[test]
fn pld_lies_in_the_bracket_of_the_prv_accountant() {
    section("prv_and_opacus", 32, |row| {
        let got = pld(&plan(row), Relation::AddRemove, delta(row));
        within("pld", got, needed(row, "prv_low"), needed(row, "prv_high"))
    });
}

#[derive(serde::Deserialize)]
struct Case {
    events: Vec<(Event, u64)>,
    relation: Relation,
    delta: f64,
    epsilon: f64,
    exact: bool,
}

#[test]
fn pld_agrees_with_the_committed_values() {
    let golden = dosimeter_testing::golden::<Case>("privacy_accounting");
    assert!(golden.cases.len() >= 30);
    assert!(golden.provenance["script"].is_string() && golden.provenance["oracle"].is_string());
    for case in &golden.cases {
        let mut ledger = Ledger::new(Unit::Record);
        for (event, count) in &case.events {
            ledger.record(event.clone(), *count);
        }
        let got = pld(&ledger, case.relation, Delta::new(case.delta).unwrap());
        let low = if case.exact {
            case.epsilon * (1.0 - 1e-14)
        } else {
            case.epsilon * (1.0 - golden.tolerance)
        };
        assert!(
            got >= low && got <= case.epsilon * (1.0 + golden.tolerance),
            "{:?} at {}: {got} is not {}",
            case.events,
            case.delta,
            case.epsilon
        );
    }
}
