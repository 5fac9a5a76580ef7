//! What a dose model would do to patients: a simulated trial of warfarin.
//!
//! Each [`Arm`] gives each [`Patient`] an initial dose, a fixed one or a model's. The doses lead to INRs by a published model of
//! warfarin ([`Response`]), the INRs to doses by a published protocol ([`maintenance`]) and to events at published rates
//! ([`EventRates`]). Chance is the same in all arms: a patient keeps its body and its errors of measurement, so that arms differ by
//! their doses alone. Events are not drawn but their hazard is summed up, which leaves less noise still.
//!
//! This compares arms under a model. It does not predict what happens to people: the rates are those of one population with atrial
//! fibrillation, death from other causes is left out, and the first days are dosed without looking at the INR.
//!
//! ```
//! use dosimeter_audit::clinical::{Arm, Patient, Trial};
//! use dosimeter_data::{Seed, regression::warfarin::{Cyp2c9, Vkorc1}};
//!
//! let patients: Vec<Patient> = (0..200)
//!     .map(|i| Patient {
//!         age_years: 50.0 + f64::from(i % 40),
//!         cyp2c9: Cyp2c9::Star1Star1,
//!         vkorc1: Vkorc1::ALL[i as usize % 3],
//!     })
//!     .collect();
//! let fixed = Arm::fixed("fixed", patients.len(), 10.0);
//! let by_genotype = Arm::from_fn("genotype", &patients, |p| if p.vkorc1 == Vkorc1::Gg { 6.0 } else { 3.0 });
//! let report = Trial::default().simulate(&patients, &fixed, &[by_genotype], Seed::root(1))?;
//! assert!(report.arms[1].relative_risk.haemorrhage.high < 1.0);
//! # Ok::<(), dosimeter_audit::Error>(())
//! ```
pub mod maintenance;
mod rates;
mod response;

pub use rates::{EventRates, Events};
pub use response::{Patient, Response, Spread};

use crate::error::{confidence, within};
use crate::interval::Interval;
use crate::{Error, normal};
use dosimeter_data::Seed;
use maintenance::Maintenance;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Initial doses: one way of treating all patients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// Name, for people.
    pub name: String,
    /// Milligrams a day at first, one number per patient, finite and at least 0.
    pub daily_mg: Vec<f64>,
}
impl Arm {
    /// The same dose for everyone.
    #[must_use]
    pub fn fixed(name: &str, patients: usize, daily_mg: f64) -> Self {
        Self { name: name.to_owned(), daily_mg: vec![daily_mg; patients] }
    }
    /// A dose for each of any kind of patient.
    #[must_use]
    pub fn from_fn<P>(name: &str, patients: &[P], daily_mg: impl FnMut(&P) -> f64) -> Self {
        Self { name: name.to_owned(), daily_mg: patients.iter().map(daily_mg).collect() }
    }
}

/// How a trial is run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Trial {
    /// Days that are counted, 1 to 3,650.
    pub days: u32,
    /// Days of the initial dose before the protocol takes over, at least 1.
    pub initiation_days: u32,
    /// Highest initial dose, milligrams a day, above 0; higher ones are taken for it, and counted.
    pub highest_initial_mg: f64,
    /// How bodies differ.
    pub spread: Spread,
    /// Events by INR.
    pub rates: EventRates,
    /// Of the intervals, in (0, 1).
    pub confidence: f64,
}
impl Default for Trial {
    fn default() -> Self {
        Self {
            days: 90,
            initiation_days: 7,
            highest_initial_mg: 15.0,
            spread: Spread::Variances,
            rates: EventRates::ATRIAL_FIBRILLATION,
            confidence: 0.95,
        }
    }
}

/// One kind of event each.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RelativeRisks {
    /// Of death by bleeding or stroke.
    pub mortality: Interval,
    /// Of a major bleeding.
    pub haemorrhage: Interval,
    /// Of a stroke.
    pub stroke: Interval,
}
/// What happens to the patients of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmReport {
    /// The arm.
    pub name: String,
    /// Events per patient over the whole trial, expected. A patient may have more than one, so that none of them hides another.
    pub expected: Events,
    /// Expected events over those of the reference arm. The interval is for drawing other patients from the same population; both
    /// arms have the same ones, so it is of the paired difference (delta method on the logarithm).
    pub relative_risk: RelativeRisks,
    /// Share of days with an INR from 2 to 3.
    pub in_range: f64,
    /// Share of days with an INR below 2.
    pub below_range: f64,
    /// Share of days with an INR above 4.
    pub above_4: f64,
    /// Initial doses that were above the highest allowed.
    pub doses_clipped: u64,
}
/// A trial's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Patients of each arm.
    pub patients: usize,
    /// How it was run.
    pub trial: Trial,
    /// The reference arm, then the others.
    pub arms: Vec<ArmReport>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Outcome {
    events: Events,
    in_range: f64,
    below_range: f64,
    above_4: f64,
}

impl Trial {
    /// Runs every arm on every patient. The same seed gives the same report on any number of threads; patient `i` is the same person
    /// whoever else takes part.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a setting, [`Error::TooFew`] for fewer than two patients, [`Error::Length`] if an arm has not one
    /// dose per patient, [`Error::Patient`] naming the patient for a dose that is not finite or below 0 and for an age that is not
    /// from 0 to 120 years.
    pub fn simulate(
        &self,
        patients: &[Patient],
        reference: &Arm,
        arms: &[Arm],
        seed: Seed,
    ) -> Result<Report, Error> {
        self.check()?;
        if patients.len() < 2 {
            return Err(Error::TooFew { what: "a trial", needed: 2, got: patients.len() });
        }
        for (number, patient) in patients.iter().enumerate() {
            patient.check(number)?;
        }
        let arms: Vec<&Arm> = std::iter::once(reference).chain(arms).collect();
        for arm in &arms {
            let (what, needed, got) = ("an arm", patients.len(), arm.daily_mg.len());
            if needed != got {
                return Err(Error::Length { what, needed, got });
            }
            let bad = arm.daily_mg.iter().position(|d| !(d.is_finite() && *d >= 0.0));
            if let Some(patient) = bad {
                let what = format!("the initial dose of arm `{}`", arm.name);
                return Err(Error::Patient {
                    patient,
                    what,
                    needed: "finite and at least 0 mg a day",
                });
            }
        }
        let seed = seed.child("clinical trial");
        let outcomes: Vec<Vec<Outcome>> = patients
            .par_iter()
            .enumerate()
            .map(|(number, patient)| {
                let mut rng = seed.index(number as u64).rng();
                let response = Response::draw(patient, self.spread, &mut rng);
                let chances: Vec<f64> =
                    (0..self.days).map(|_| response::open_unit(&mut rng)).collect();
                arms.iter()
                    .map(|arm| self.course(&response, arm.daily_mg[number], &chances))
                    .collect()
            })
            .collect();
        let z = normal::quantile(1.0 - (1.0 - self.confidence) / 2.0);
        let report = |(place, arm): (usize, &&Arm)| {
            let risk = |event: fn(&Events) -> f64| {
                let pairs =
                    outcomes.iter().map(|of| (event(&of[place].events), event(&of[0].events)));
                ratio(pairs, z, self.confidence)
            };
            let mean = |of: fn(&Outcome) -> f64| {
                outcomes.iter().map(|o| of(&o[place])).sum::<f64>() / patients.len() as f64
            };
            let above = arm.daily_mg.iter().filter(|d| **d > self.highest_initial_mg);
            ArmReport {
                name: arm.name.clone(),
                expected: Events {
                    mortality: mean(|o| o.events.mortality),
                    haemorrhage: mean(|o| o.events.haemorrhage),
                    stroke: mean(|o| o.events.stroke),
                },
                relative_risk: RelativeRisks {
                    mortality: risk(|e| e.mortality),
                    haemorrhage: risk(|e| e.haemorrhage),
                    stroke: risk(|e| e.stroke),
                },
                in_range: mean(|o| o.in_range),
                below_range: mean(|o| o.below_range),
                above_4: mean(|o| o.above_4),
                doses_clipped: above.count() as u64,
            }
        };
        let arms = arms.iter().enumerate().map(report).collect();
        Ok(Report { patients: patients.len(), trial: *self, arms })
    }
    fn check(&self) -> Result<(), Error> {
        confidence(self.confidence)?;
        let days = f64::from(self.days);
        within("days of a trial", "from 1 to 3650", days, |d| (1.0..=3650.0).contains(&d))?;
        let initiation = f64::from(self.initiation_days);
        within("days of the initial dose", "at least 1", initiation, |d| d >= 1.0)?;
        let highest = self.highest_initial_mg;
        within("highest initial dose", "finite and above 0 mg a day", highest, |d| {
            d.is_finite() && d > 0.0
        })?;
        self.rates.check()
    }
    /// One patient in one arm. `chances` are uniform in (0, 1), one for the error of an INR measured on each day.
    fn course(&self, response: &Response, initial_mg: f64, chances: &[f64]) -> Outcome {
        let mut body = response.body();
        let mut doses = Maintenance::new(initial_mg.min(self.highest_initial_mg));
        let (mut next_test, mut instead, mut days_instead) = (self.initiation_days, 0.0, 0);
        let mut outcome = Outcome::default();
        // Day 0 is the first; each is measured before its dose and counted by the INR at its end.
        for (day, &chance) in (0..self.days).zip(chances) {
            if day == next_test {
                let error = if self.spread == Spread::None {
                    1.0
                } else {
                    (response::INR_ERROR * normal::quantile(chance)).exp()
                };
                let plan = doses.decide(body.inr() * error);
                (instead, days_instead) = plan.instead.unwrap_or((0.0, 0));
                next_test = day + plan.retest_days;
            }
            let dose = if days_instead > 0 {
                days_instead -= 1;
                instead
            } else {
                doses.daily_mg()
            };
            body.day(dose);
            let inr = body.inr();
            outcome.events += self.rates.of_a_day(inr);
            let share = 1.0 / f64::from(self.days);
            if inr < 2.0 {
                outcome.below_range += share;
            } else if inr <= 3.0 {
                outcome.in_range += share;
            } else if inr > 4.0 {
                outcome.above_4 += share;
            }
        }
        outcome
    }
}

/// Ratio of the means of pairs, with its interval by the delta method on the logarithm.
fn ratio(
    pairs: impl ExactSizeIterator<Item = (f64, f64)> + Clone,
    z: f64,
    confidence: f64,
) -> Interval {
    let n = pairs.len() as f64;
    let (above, below) = pairs.clone().fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
    let value = above / below;
    // Patient by patient, relative to the means; the means of both are 1.
    let squares = pairs.map(|(x, y)| (n * x / above - n * y / below).powi(2)).sum::<f64>();
    let deviation = (squares / (n - 1.0) / n).sqrt();
    let factor = (z * deviation).exp();
    Interval { value, low: value / factor, high: value * factor, confidence }
}

#[cfg(test)]
#[expect(clippy::suboptimal_flops, reason = "written as one works it out")]
mod tests {
    use super::*;

    /// Pairs (2, 1), (4, 3): ratio 6/4; relative 2/3 - 1/2 and 4/3 - 3/2, so the variance of the logarithm is (2/36) / 1 / 2 = 1/36.
    #[test]
    fn a_ratio_and_its_interval_by_hand() {
        let interval = ratio([(2.0, 1.0), (4.0, 3.0)].into_iter(), 2.0, 0.95);
        let factor = (2.0_f64 / 6.0).exp();
        assert!((interval.value - 1.5).abs() < 1e-15);
        assert!((interval.high - 1.5 * factor).abs() < 1e-12, "{interval:?}");
        assert!((interval.low - 1.5 / factor).abs() < 1e-12);
    }
}
