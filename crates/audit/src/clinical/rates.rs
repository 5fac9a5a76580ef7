//! How often patients bleed, have a stroke and die of either, by INR.
use crate::Error;
use crate::error::within;
use serde::{Deserialize, Serialize};

/// Expected numbers of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Events {
    /// Deaths by bleeding or stroke.
    pub mortality: f64,
    /// Major bleedings, fatal ones among them.
    pub haemorrhage: f64,
    /// Strokes, fatal ones among them.
    pub stroke: f64,
}
impl std::ops::AddAssign for Events {
    fn add_assign(&mut self, other: Self) {
        self.mortality += other.mortality;
        self.haemorrhage += other.haemorrhage;
        self.stroke += other.stroke;
    }
}

/// Probabilities of an event within a year at a steady INR, and the fatal shares. A probability `p` a year is a hazard of
/// `-ln(1 - p) / 365` a day.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventRates {
    /// A stroke in a year with an INR below 1.5, from 1.5 and below 2, and from 2.
    pub stroke: [f64; 3],
    /// A major bleeding in a year with an INR below 3, from 3 to 4, and above 4.
    pub haemorrhage: [f64; 3],
    /// Share of strokes that are fatal with an INR below 2, and from 2.
    pub fatal_strokes: [f64; 2],
    /// Share of major bleedings that are fatal.
    pub fatal_haemorrhages: f64,
}
impl EventRates {
    /// Patients with atrial fibrillation. Of major bleedings 30 % are intracranial (15.6 % fatal and intracranial), 60 %
    /// gastrointestinal (4.3 %), 10 % other (0.2 %).
    ///
    /// # Source
    /// The parameters of the warfarin model in the public repository `spgarbet/right` (`lookup tables/risks_warfarin.csv`); the form, and
    /// the use of such rates for dosing models, Sorensen et al. 2009.
    pub const ATRIAL_FIBRILLATION: Self = Self {
        stroke: [0.077, 0.019, 0.006],
        haemorrhage: [0.014_97, 0.062_24, 0.391_18],
        fatal_strokes: [0.16, 0.06],
        fatal_haemorrhages: 0.156 + 0.043 + 0.002,
    };
    /// # Errors
    /// [`Error::OutOfRange`] unless all are below 1 and those of events above 0: what never happens has no relative risk.
    pub(super) fn check(&self) -> Result<(), Error> {
        for yearly in self.stroke.into_iter().chain(self.haemorrhage) {
            within("yearly probability of an event", "strictly between 0 and 1", yearly, |p| {
                p > 0.0 && p < 1.0
            })?;
        }
        let fatal = self.fatal_strokes.into_iter().chain([self.fatal_haemorrhages]);
        for share in fatal {
            within("share of fatal events", "above 0, at most 1", share, |p| p > 0.0 && p <= 1.0)?;
        }
        Ok(())
    }
    /// Expected events of one day at this INR.
    #[must_use]
    pub fn of_a_day(&self, inr: f64) -> Events {
        let hazard = |yearly: f64| -(-yearly).ln_1p() / 365.0;
        let stroke = hazard(match inr {
            inr if inr < 1.5 => self.stroke[0],
            inr if inr < 2.0 => self.stroke[1],
            _ => self.stroke[2],
        });
        let haemorrhage = hazard(match inr {
            inr if inr < 3.0 => self.haemorrhage[0],
            inr if inr <= 4.0 => self.haemorrhage[1],
            _ => self.haemorrhage[2],
        });
        let fatal_stroke = self.fatal_strokes[usize::from(inr >= 2.0)];
        let mortality = haemorrhage.mul_add(self.fatal_haemorrhages, stroke * fatal_stroke);
        Events { mortality, haemorrhage, stroke }
    }
}

#[cfg(test)]
#[expect(clippy::suboptimal_flops, reason = "written as one works it out")]
mod tests {
    use super::*;

    /// A year at one INR: -ln(1 - p) events, worked out beside.
    #[test]
    fn a_year_at_each_inr_by_hand() {
        let rates = EventRates::ATRIAL_FIBRILLATION;
        let cases = [
            (1.49, 0.015_083_2, 0.080_126_0, 0.015_083_2 * 0.201 + 0.080_126_0 * 0.16),
            (1.5, 0.015_083_2, 0.019_182_8, 0.015_083_2 * 0.201 + 0.019_182_8 * 0.16),
            (2.0, 0.015_083_2, 0.006_018_1, 0.015_083_2 * 0.201 + 0.006_018_1 * 0.06),
            (3.0, 0.064_261_2, 0.006_018_1, 0.064_261_2 * 0.201 + 0.006_018_1 * 0.06),
            (4.0, 0.064_261_2, 0.006_018_1, 0.064_261_2 * 0.201 + 0.006_018_1 * 0.06),
            (4.01, 0.496_232_6, 0.006_018_1, 0.496_232_6 * 0.201 + 0.006_018_1 * 0.06),
        ];
        for (inr, haemorrhage, stroke, mortality) in cases {
            let day = rates.of_a_day(inr);
            assert!((day.haemorrhage * 365.0 - haemorrhage).abs() < 1e-6, "{inr}: {day:?}");
            assert!((day.stroke * 365.0 - stroke).abs() < 1e-6, "{inr}: {day:?}");
            assert!((day.mortality * 365.0 - mortality).abs() < 1e-6, "{inr}: {day:?}");
        }
    }
    #[test]
    fn what_is_no_probability_is_refused() {
        let good = EventRates::ATRIAL_FIBRILLATION;
        assert_eq!(good.check(), Ok(()));
        for bad in [0.0, 1.0, -0.1, f64::NAN] {
            assert!(EventRates { stroke: [0.1, bad, 0.1], ..good }.check().is_err());
            assert!(EventRates { haemorrhage: [0.1, 0.1, bad], ..good }.check().is_err());
        }
        assert!(EventRates { fatal_haemorrhages: 1.1, ..good }.check().is_err());
        assert!(EventRates { fatal_strokes: [f64::NAN, 0.1], ..good }.check().is_err());
    }
}
