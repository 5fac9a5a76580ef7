//! From doses to INRs: how a body clears warfarin, and what warfarin does to clotting.
use crate::{Error, normal};
use dosimeter_data::regression::warfarin::{self, Cyp2c9, Vkorc1};
use rand_core::Rng;
use serde::{Deserialize, Serialize};

/// What the model of warfarin asks of a patient.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Patient {
    /// Years, 0 to 120.
    pub age_years: f64,
    /// Genotype of CYP2C9.
    pub cyp2c9: Cyp2c9,
    /// Genotype of VKORC1.
    pub vkorc1: Vkorc1,
}
impl Patient {
    pub(super) fn check(&self, patient: usize) -> Result<(), Error> {
        if (0.0..=120.0).contains(&self.age_years) {
            return Ok(());
        }
        Err(Error::Patient { patient, what: "the age".to_owned(), needed: "from 0 to 120 years" })
    }
}
impl From<&warfarin::Patient> for Patient {
    /// The age is the middle of the decade.
    fn from(patient: &warfarin::Patient) -> Self {
        Self {
            age_years: f64::from(patient.age_decade.min(11)) * 10.0 + 5.0,
            cyp2c9: patient.cyp2c9,
            vkorc1: patient.vkorc1,
        }
    }
}

/// How bodies of the same age and genotypes differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Not at all, and INRs are measured without error.
    None,
    /// By log-normal factors, of which the published numbers are the variances, as public implementations read them.
    #[default]
    Variances,
    /// By log-normal factors, of which the published numbers are the standard deviations.
    Deviations,
}

// Hamberg et al. 2007, Tables 2 and 4; S-warfarin.
const CLEARANCE: f64 = 0.314;
const CENTRAL: f64 = 13.8;
const PERIPHERAL: f64 = 6.59;
const BETWEEN: f64 = 0.131;
const ABSORPTION: f64 = 2.0;
const FIRST_TRANSIT: f64 = 11.6;
const SECOND_TRANSIT: f64 = 120.0;
const STEEPNESS: f64 = 0.424;
const HIGHEST_INR: f64 = 20.0;
const INR_POWER: f64 = 3.61;
/// Share of a dose that is absorbed, and half of it is S-warfarin.
const ABSORBED: f64 = 0.9 / 2.0;
/// Standard deviation of the logarithm of a measured INR.
pub(super) const INR_ERROR: f64 = 0.0325;
/// Of the logarithms of clearance, both volumes, both transit times and the concentration of half the effect.
const SPREADS: [f64; 6] = [0.310, 0.262, 0.991, 0.141, 1.020, 0.409];

const fn slowing(cyp2c9: Cyp2c9) -> f64 {
    match cyp2c9 {
        Cyp2c9::Star1Star1 => 0.0,
        Cyp2c9::Star1Star2 => 0.315,
        Cyp2c9::Star1Star3 => 0.453,
        Cyp2c9::Star2Star2 => 0.722,
        Cyp2c9::Star2Star3 => 0.690,
        Cyp2c9::Star3Star3 => 0.852,
    }
}
const fn half_effect(vkorc1: Vkorc1) -> f64 {
    match vkorc1 {
        Vkorc1::Gg => 4.61,
        Vkorc1::Ag => 3.02,
        Vkorc1::Aa => 2.20,
    }
}

/// One body: the parameters of the model of warfarin, all finite and above 0.
///
/// A dose (of which 0.9 is absorbed, half of it the active S-warfarin) passes from the gut at 2 an hour into a central volume, from
/// there at 0.131 l/h into a peripheral one and back, and is cleared. With `c` the concentration in the central volume, the effect is
/// `E = 1 - c^0.424 / (c^0.424 + half^0.424)`. `E` drives a chain of six compartments that takes `first_transit_h` in all and a single one
/// of `second_transit_h`; all begin at 1. With their last values `a` and `b`, `INR = 1 + 20 (1 - a b)^3.61`.
///
/// Concentrations are exact at any time; the chains are exact for an effect that is constant within each hour, its value at the half
/// hour. INRs of a day's end are within 0.2 % of a fine numerical solution.
///
/// # Source
/// Hamberg et al., *A PK-PD model for predicting the impact of age, CYP2C9, and VKORC1 genotype on individualization of warfarin therapy*,
/// Clinical Pharmacology & Therapeutics 81, 2007, Tables 2 and 4, as given in the public `reil` package (class `HambergPKPD`): baseline
/// INR 1, age effect at all ages. That package also lets the error of measured concentrations (log 0.301) drive the effect; here it
/// does not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// Litres an hour.
    pub clearance_l_per_h: f64,
    /// Central volume, litres.
    pub central_l: f64,
    /// Peripheral volume, litres.
    pub peripheral_l: f64,
    /// Mean time through the chain of six, hours.
    pub first_transit_h: f64,
    /// Mean time through the single compartment, hours.
    pub second_transit_h: f64,
    /// Concentration of half the effect, milligrams a litre.
    pub half_effect_mg_per_l: f64,
}
impl Response {
    /// The typical body of a patient.
    ///
    /// # Errors
    /// [`Error::Patient`] for an age that is not from 0 to 120 years.
    pub fn typical(patient: &Patient) -> Result<Self, Error> {
        patient.check(0)?;
        Ok(Self::of(patient))
    }
    fn of(patient: &Patient) -> Self {
        let by_age = 0.0091_f64.mul_add(-(patient.age_years - 71.0), 1.0);
        Self {
            clearance_l_per_h: CLEARANCE * by_age * (1.0 - slowing(patient.cyp2c9)),
            central_l: CENTRAL,
            peripheral_l: PERIPHERAL,
            first_transit_h: FIRST_TRANSIT,
            second_transit_h: SECOND_TRANSIT,
            half_effect_mg_per_l: half_effect(patient.vkorc1),
        }
    }
    /// A body of the population; six numbers are drawn whatever the spread.
    pub(super) fn draw(patient: &Patient, spread: Spread, rng: &mut impl Rng) -> Self {
        let factors = SPREADS.map(|published| {
            let deviation = match spread {
                Spread::None => 0.0,
                Spread::Variances => published.sqrt(),
                Spread::Deviations => published,
            };
            (deviation * normal::quantile(open_unit(rng))).exp()
        });
        let typical = Self::of(patient);
        Self {
            clearance_l_per_h: typical.clearance_l_per_h * factors[0],
            central_l: typical.central_l * factors[1],
            peripheral_l: typical.peripheral_l * factors[2],
            first_transit_h: typical.first_transit_h * factors[3],
            second_transit_h: typical.second_transit_h * factors[4],
            half_effect_mg_per_l: typical.half_effect_mg_per_l * factors[5],
        }
    }
    /// INR at the end of each day, each with a dose in milligrams at its beginning.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a parameter that is not finite and above 0 or a dose that is not finite or below 0.
    pub fn inrs(&self, daily_mg: &[f64]) -> Result<Vec<f64>, Error> {
        let parameters = [
            self.clearance_l_per_h,
            self.central_l,
            self.peripheral_l,
            self.first_transit_h,
            self.second_transit_h,
            self.half_effect_mg_per_l,
        ];
        for got in parameters {
            if !(got.is_finite() && got > 0.0) {
                let (what, needed) = ("a parameter of a body", "finite and above 0");
                return Err(Error::OutOfRange { what, needed, got });
            }
        }
        if let Some(&got) = daily_mg.iter().find(|d| !(d.is_finite() && **d >= 0.0)) {
            let (what, needed) = ("a daily dose", "finite and at least 0 mg");
            return Err(Error::OutOfRange { what, needed, got });
        }
        let mut body = self.body();
        let day = |&dose| {
            body.day(dose);
            body.inr()
        };
        Ok(daily_mg.iter().map(day).collect())
    }
    /// This body before the first dose.
    pub(super) fn body(&self) -> Body {
        let (to, back) = (BETWEEN / self.central_l, BETWEEN / self.peripheral_l);
        let out = self.clearance_l_per_h / self.central_l;
        let sum = out + to + back;
        let root = sum.mul_add(sum, -4.0 * out * back).max(0.0).sqrt();
        // The slower rate by the product of both, which loses no digits.
        let fast = 0.5 * (sum + root);
        let slow = out * back / fast;
        // The sum of exponentials has a removable singularity where absorption is as fast as one of them.
        let near = |rate: f64| (ABSORPTION - rate).abs() < 1e-6 * ABSORPTION;
        let gut = if near(fast) || near(slow) { ABSORPTION * (1.0 + 1e-5) } else { ABSORPTION };
        let scale = gut * ABSORBED / self.central_l;
        let per_mg = [
            scale * (back - fast) / ((gut - fast) * (slow - fast)),
            scale * (back - slow) / ((gut - slow) * (fast - slow)),
            scale * (back - gut) / ((fast - gut) * (slow - gut)),
        ];
        // What enters a chain within an hour leaves behind `n` compartments with the Poisson probability of `n` steps.
        let rate = CHAIN as f64 / self.first_transit_h;
        let mut steps = [0.0; CHAIN];
        let mut stays = [0.0; CHAIN];
        let (mut probability, mut more) = ((-rate).exp(), 1.0);
        for i in 0..CHAIN {
            steps[i] = probability;
            more -= probability;
            stays[i] = more;
            probability *= rate / (i + 1) as f64;
        }
        Body {
            half_hours: [fast, slow, gut].map(|rate| (-0.5 * rate).exp()),
            per_mg,
            parts: [0.0; 3],
            half_effect: self.half_effect_mg_per_l.powf(STEEPNESS),
            steps,
            stays,
            chain: [1.0; CHAIN],
            second_stays: (-1.0 / self.second_transit_h).exp(),
            second: 1.0,
        }
    }
}

const CHAIN: usize = 6;

/// The state of a body from hour to hour.
#[derive(Debug, Clone)]
pub(super) struct Body {
    /// Decay of each part of the concentration within half an hour.
    half_hours: [f64; 3],
    /// What a milligram adds to each part.
    per_mg: [f64; 3],
    /// The concentration is the sum of these, milligrams a litre.
    parts: [f64; 3],
    /// Concentration of half the effect, to the power of the steepness.
    half_effect: f64,
    /// Probability of that many steps along the chain in an hour.
    steps: [f64; CHAIN],
    /// Weight of the hour's inflow in each compartment.
    stays: [f64; CHAIN],
    chain: [f64; CHAIN],
    second_stays: f64,
    second: f64,
}
impl Body {
    pub(super) fn dose(&mut self, mg: f64) {
        self.parts.iter_mut().zip(self.per_mg).for_each(|(part, one)| *part += mg * one);
    }
    fn half_hour(&mut self) {
        self.parts.iter_mut().zip(self.half_hours).for_each(|(part, stays)| *part *= stays);
    }
    pub(super) fn hour(&mut self) {
        self.half_hour();
        // Rounding may leave less than nothing.
        let power = self.parts.iter().sum::<f64>().max(0.0).powf(STEEPNESS);
        let effect = self.half_effect / (power + self.half_effect);
        self.half_hour();
        for i in (0..CHAIN).rev() {
            let moved: f64 = (0..=i).map(|n| self.steps[n] * self.chain[i - n]).sum();
            self.chain[i] = effect.mul_add(self.stays[i], moved);
        }
        self.second = (self.second - effect).mul_add(self.second_stays, effect);
    }
    /// A dose in milligrams, and the 24 hours after it.
    pub(super) fn day(&mut self, mg: f64) {
        self.dose(mg);
        (0..24).for_each(|_| self.hour());
    }
    pub(super) fn inr(&self) -> f64 {
        let clotting = (self.chain[CHAIN - 1] * self.second).clamp(0.0, 1.0);
        HIGHEST_INR.mul_add((1.0 - clotting).powf(INR_POWER), 1.0)
    }
}

/// Uniform, strictly between 0 and 1.
pub(super) fn open_unit(rng: &mut impl Rng) -> f64 {
    ((rng.next_u64() >> 11) as f64 + 0.5) * (-53_f64).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patient() -> Patient {
        Patient { age_years: 71.0, cyp2c9: Cyp2c9::Star1Star1, vkorc1: Vkorc1::Gg }
    }

    /// 5 mg a day given as 5/24 mg an hour: steady concentration 0.45 * (5/24) / 0.314 = 0.298567 mg/l; to the power of 0.424 that is
    /// 0.598987, half the effect is at 4.61^0.424 = 1.911654, so E = 0.761421, and INR = 1 + 20 (1 - E^2)^3.61 = 1.8747.
    #[test]
    fn a_steady_inr_by_hand() {
        let mut body = Response::typical(&patient()).unwrap().body();
        for _ in 0..24 * 120 {
            body.dose(5.0 / 24.0);
            body.hour();
        }
        let concentration: f64 = body.parts.iter().sum();
        let expected = 0.45 * (5.0 / 24.0) / 0.314;
        // What has just been swallowed is not yet in it.
        assert!((concentration / expected - 1.0).abs() < 0.01, "{concentration} {expected}");
        assert!((body.inr() - 1.8747).abs() < 0.01, "{}", body.inr());
        // Once a day, about the same on the whole.
        let daily = Response::typical(&patient()).unwrap().inrs(&[5.0; 120]).unwrap();
        assert!((daily[119] - 1.8747).abs() < 0.05, "{}", daily[119]);
        assert!((daily[119] - daily[118]).abs() < 1e-3);
    }
    #[test]
    fn without_warfarin_the_inr_is_1() {
        let inrs = Response::typical(&patient()).unwrap().inrs(&[0.0; 30]).unwrap();
        assert!(inrs.iter().all(|inr| (inr - 1.0).abs() < 1e-12), "{inrs:?}");
    }
    #[test]
    fn more_warfarin_slower_enzymes_and_sensitive_genotypes_raise_it() {
        let inrs = |patient: Patient, dose: f64| {
            Response::typical(&patient).unwrap().inrs(&[dose; 40]).unwrap()
        };
        let mut last = inrs(patient(), 0.0);
        let mut rises = |next: Vec<f64>, what: &str| {
            // On the first day the chains have hardly moved, but they have.
            for (day, (low, high)) in last.iter().zip(&next).enumerate() {
                assert!(low < high, "{what}, day {day}: {low} {high}");
            }
            last = next;
        };
        for dose in [0.5, 1.0, 2.0, 5.0, 10.0, 15.0] {
            rises(inrs(patient(), dose), "dose");
        }
        let old = Patient { age_years: 90.0, ..patient() };
        rises(inrs(old, 15.0), "age");
        for cyp2c9 in
            [Cyp2c9::Star1Star2, Cyp2c9::Star1Star3, Cyp2c9::Star2Star3, Cyp2c9::Star2Star2]
        {
            rises(inrs(Patient { cyp2c9, ..old }, 15.0), cyp2c9.name());
        }
        let slowest = Patient { cyp2c9: Cyp2c9::Star3Star3, ..old };
        rises(inrs(slowest, 15.0), "*3/*3");
        for vkorc1 in [Vkorc1::Ag, Vkorc1::Aa] {
            rises(inrs(Patient { vkorc1, ..slowest }, 15.0), vkorc1.name());
        }
        assert!(last.iter().all(|inr| *inr < 21.0));
    }
    /// Absorption as fast as one of the other rates: no division by nothing, and next to bodies beside it.
    #[test]
    fn absorption_as_fast_as_clearance_is_no_exception() {
        let at = |clearance_l_per_h: f64| {
            let body = Response { clearance_l_per_h, ..Response::typical(&patient()).unwrap() };
            body.inrs(&[10.0; 20]).unwrap()
        };
        // The fast rate is 2 where (2 - k10 - k12)(2 - k21) = k12 k21.
        let (k12, k21) = (BETWEEN / CENTRAL, BETWEEN / PERIPHERAL);
        let clearance = CENTRAL * (2.0 - k12 - k12 * k21 / (2.0 - k21));
        let (exact, beside) = (at(clearance), at(clearance * 1.001));
        for (a, b) in exact.iter().zip(&beside) {
            assert!(a.is_finite() && (a - b).abs() < 1e-3 * a, "{a} {b}");
        }
    }
    #[test]
    fn what_is_no_body_or_no_dose_is_refused() {
        let body = Response::typical(&patient()).unwrap();
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Response { clearance_l_per_h: bad, ..body }.inrs(&[1.0]).is_err());
            assert!(Response { second_transit_h: bad, ..body }.inrs(&[1.0]).is_err());
        }
        for bad in [-0.1, f64::NAN, f64::INFINITY] {
            assert!(body.inrs(&[1.0, bad]).is_err());
        }
        assert!(Response::typical(&Patient { age_years: f64::NAN, ..patient() }).is_err());
        assert!(Response::typical(&Patient { age_years: 121.0, ..patient() }).is_err());
    }
}
