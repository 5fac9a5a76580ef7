//! The Intermountain protocol: which dose and which day of the next test follow from an INR.
//!
//! | INR | dose | next test, first time / again |
//! |---|---|---|
//! | below 1.6 | twice the dose for a day, then 10 % more a week | 5 / 14 days |
//! | 1.6 to 1.8 | 1.5 times the dose for a day, then 5 % more | 7 / 14 days |
//! | 1.8 to 2 | the same; 5 % more if again | 14 days |
//! | 2 to 3 | the same | 14 / 28 days |
//! | above 3, below 3.4 | the same; 5 % less if again | 14 days |
//! | 3.4 to 5 | half the dose (none from 4) for a day, then 10 % less | 7 / 14 days |
//! | from 5 | none, tested after 2 days until below 3.4, then 15 % less | 7 days from then |
//!
//! Again: as at the test before. A limit belongs to the row above it, but 2 and 3 are in range.
//!
//! # Source
//! Anderson et al., *Randomized Trial of Genotype-Guided Versus Standard Warfarin Dosing in Patients Initiating Oral Anticoagulation*,
//! Circulation 116, 2007, supplement, appendix B, as given in the public `reil` package (class `Intermountain`). Differs from that
//! class in one point: it goes on holding doses when the INR has fallen below 1.8, which the protocol does not say.

/// Where an INR lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Zone {
    FarBelow,
    Below,
    JustBelow,
    InRange,
    JustAbove,
    Above,
    FarAbove,
}
impl Zone {
    fn of(inr: f64) -> Self {
        match inr {
            inr if inr < 1.6 => Self::FarBelow,
            inr if inr < 1.8 => Self::Below,
            inr if inr < 2.0 => Self::JustBelow,
            inr if inr <= 3.0 => Self::InRange,
            inr if inr < 3.4 => Self::JustAbove,
            inr if inr < 5.0 => Self::Above,
            _ => Self::FarAbove,
        }
    }
}

/// What follows from a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Another dose (milligrams a day) than the usual, from the day of the test on, and for how many days.
    pub instead: Option<(f64, u32)>,
    /// Days until the next test, counted from this one.
    pub retest_days: u32,
}

/// A patient under the protocol.
#[derive(Debug, Clone, PartialEq)]
pub struct Maintenance {
    daily_mg: f64,
    last: Option<Zone>,
}
impl Maintenance {
    /// Begins with a daily dose, milligrams: the mean of the last days before.
    #[must_use]
    pub const fn new(daily_mg: f64) -> Self {
        Self { daily_mg, last: None }
    }
    /// The usual dose, milligrams a day.
    #[must_use]
    pub const fn daily_mg(&self) -> f64 {
        self.daily_mg
    }
    /// Takes a measured INR. NaN counts as far above: nothing is given.
    pub fn decide(&mut self, inr: f64) -> Plan {
        let (zone, before) = (Zone::of(inr), self.daily_mg);
        let holds = self.last == Some(Zone::FarAbove);
        if zone == Zone::FarAbove || (holds && zone == Zone::Above) {
            self.last = Some(Zone::FarAbove);
            return Plan { instead: Some((0.0, 2)), retest_days: 2 };
        }
        let again = self.last == Some(zone);
        self.last = Some(zone);
        if holds {
            self.daily_mg *= 0.85;
            return Plan { instead: None, retest_days: 7 };
        }
        let (instead, change, retest_days) = match zone {
            Zone::FarBelow => (Some(2.0), 1.1, [5, 14]),
            Zone::Below => (Some(1.5), 1.05, [7, 14]),
            Zone::JustBelow => (None, if again { 1.05 } else { 1.0 }, [14, 14]),
            Zone::InRange => (None, 1.0, [14, 28]),
            Zone::JustAbove => (None, if again { 0.95 } else { 1.0 }, [14, 14]),
            Zone::Above | Zone::FarAbove => (Some(if inr < 4.0 { 0.5 } else { 0.0 }), 0.9, [7, 14]),
        };
        self.daily_mg *= change;
        let retest_days = retest_days[usize::from(again)];
        Plan { instead: instead.map(|factor| (factor * before, 1)), retest_days }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// INR, usual dose after it, dose instead and its days, days to the next test.
    type Step = (f64, f64, Option<(f64, u32)>, u32);

    /// One test after another, from 10 mg.
    fn follow(steps: &[Step]) {
        let mut patient = Maintenance::new(10.0);
        for &(inr, daily, instead, retest_days) in steps {
            let plan = patient.decide(inr);
            assert!((patient.daily_mg() - daily).abs() < 1e-12, "{inr}: {patient:?}");
            assert_eq!(plan.retest_days, retest_days, "{inr}");
            assert_eq!(plan.instead.map(|i| i.1), instead.map(|i| i.1), "{inr}");
            let (have, needs) = (plan.instead.unwrap_or_default(), instead.unwrap_or_default());
            assert!((have.0 - needs.0).abs() < 1e-12, "{inr}: {plan:?}");
        }
    }
    #[test]
    fn low_inrs_raise_the_dose() {
        follow(&[
            (1.59, 11.0, Some((20.0, 1)), 5),
            (1.5, 12.1, Some((22.0, 1)), 14),
            (1.6, 12.705, Some((18.15, 1)), 7),
            (1.79, 13.340_25, Some((19.057_5, 1)), 14),
            (1.8, 13.340_25, None, 14),
            (1.99, 14.007_262_5, None, 14),
        ]);
    }
    #[test]
    fn inrs_in_range_are_left_alone() {
        follow(&[(2.0, 10.0, None, 14), (3.0, 10.0, None, 28), (2.5, 10.0, None, 28)]);
    }
    #[test]
    fn high_inrs_lower_it() {
        follow(&[
            (3.01, 10.0, None, 14),
            (3.39, 9.5, None, 14),
            (3.4, 8.55, Some((4.75, 1)), 7),
            (4.0, 7.695, Some((0.0, 1)), 14),
            (2.5, 7.695, None, 14),
        ]);
    }
    #[test]
    fn far_above_holds_until_it_has_fallen() {
        follow(&[
            (5.0, 10.0, Some((0.0, 2)), 2),
            (4.9, 10.0, Some((0.0, 2)), 2),
            (3.4, 10.0, Some((0.0, 2)), 2),
            (3.39, 8.5, None, 7),
            (3.3, 8.075, None, 14),
        ]);
        // Fallen too far, it is no longer held either.
        follow(&[
            (6.0, 10.0, Some((0.0, 2)), 2),
            (1.2, 8.5, None, 7),
            (1.2, 9.35, Some((17.0, 1)), 14),
        ]);
        follow(&[(f64::NAN, 10.0, Some((0.0, 2)), 2)]);
    }
}
