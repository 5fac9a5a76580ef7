//! Public bounds: what turns a row of a table into a vector of the unit ball and a target in `[-1, 1]`.
use super::Error;
use dosimeter_data::regression::Layout;
use serde::{Deserialize, Serialize};

/// Where a column's numbers lie, known without looking at them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "[f64; 2]", into = "[f64; 2]")]
pub struct Interval {
    low: f64,
    high: f64,
    /// Kept, since scaling a table would compute them for every number.
    middle: f64,
    half: f64,
}
impl Interval {
    /// # Errors
    /// [`Error::Interval`] unless both are finite and `low < high`, with room for arithmetic between them.
    pub fn new(low: f64, high: f64) -> Result<Self, Error> {
        let half = 0.5f64.mul_add(high, -0.5 * low);
        let middle = 0.5f64.mul_add(low, 0.5 * high);
        if half > 0.0 && half.is_normal() && low.is_finite() && high.is_finite() {
            Ok(Self { low, high, middle, half })
        } else {
            Err(Error::Interval { low, high })
        }
    }
    /// The smallest number allowed.
    #[must_use]
    pub const fn low(self) -> f64 {
        self.low
    }
    /// The largest number allowed.
    #[must_use]
    pub const fn high(self) -> f64 {
        self.high
    }
    /// Half way.
    #[must_use]
    pub const fn middle(self) -> f64 {
        self.middle
    }
    /// From the middle to an end, above 0.
    #[must_use]
    pub const fn half(self) -> f64 {
        self.half
    }
    /// Into `[-1, 1]`, numbers outside moved to the nearer end.
    pub(super) fn unit(self, value: f64) -> f64 {
        ((value.clamp(self.low, self.high) - self.middle) / self.half).clamp(-1.0, 1.0)
    }
    pub(super) fn holds(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}
impl TryFrom<[f64; 2]> for Interval {
    type Error = Error;
    fn try_from([low, high]: [f64; 2]) -> Result<Self, Error> {
        Self::new(low, high)
    }
}
impl From<Interval> for [f64; 2] {
    fn from(interval: Interval) -> Self {
        [interval.low, interval.high]
    }
}

/// What becomes of a number that is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// The row is refused.
    #[default]
    Refuse,
    /// The middle of its bounds: a rule that looks at no other record.
    Middle,
}
impl Missing {
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// Public bounds of a table. Everything a guarantee rests on is here and nothing is taken from the data: a number outside its
/// bounds is moved to the nearer end, and counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Of each feature.
    pub features: Vec<Interval>,
    /// Of the target.
    pub target: Interval,
    /// Whether a constant is appended to the features.
    #[serde(default = "yes")]
    pub intercept: bool,
    /// Length at which a row (each feature in `[-1, 1]`, and the constant 1) is cut off; the root of its numbers if left out, which
    /// no row exceeds. A smaller one means less noise and, past the usual length of rows, more distortion.
    #[serde(default)]
    pub radius: Option<f64>,
    /// For features that come as NaN; a missing target is always refused. Not written where it is the usual rule, since a table may fill in
    /// values before rows are scaled.
    #[serde(default, skip_serializing_if = "Missing::is_usual")]
    pub missing: Missing,
}
const fn yes() -> bool {
    true
}

/// Numbers that had to be moved into their bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clipped {
    /// Features.
    pub features: u64,
    /// Targets.
    pub targets: u64,
    /// Rows longer than the radius.
    pub rows: u64,
    /// Features that were missing.
    pub missing: u64,
}
impl std::ops::AddAssign for Clipped {
    fn add_assign(&mut self, other: Self) {
        self.features += other.features;
        self.targets += other.targets;
        self.rows += other.rows;
        self.missing += other.missing;
    }
}

impl Bounds {
    /// Those of a table, with a constant.
    ///
    /// # Errors
    /// [`Error::Interval`] for bounds without room between them.
    pub fn of(layout: &Layout) -> Result<Self, Error> {
        let interval = |low, high| Interval::new(low, high);
        let features = layout.columns.iter().map(|c| interval(c.lower, c.upper));
        let features = features.collect::<Result<_, _>>()?;
        let target = interval(layout.target.lower, layout.target.upper)?;
        Ok(Self { features, target, intercept: true, radius: None, missing: Missing::Refuse })
    }
    /// Numbers of a row as a mechanism sees it: the features, and the constant if there is one.
    #[must_use]
    pub const fn dimension(&self) -> usize {
        self.features.len() + self.intercept as usize
    }
    /// The radius in force.
    #[must_use]
    pub fn row_radius(&self) -> f64 {
        self.radius.unwrap_or_else(|| (self.dimension() as f64).sqrt())
    }
    /// # Errors
    /// [`Error::NoFeatures`], [`Error::Parameter`] for a radius that is not above 0.
    pub fn check(&self) -> Result<(), Error> {
        if self.dimension() == 0 {
            return Err(Error::NoFeatures);
        }
        let radius = self.row_radius();
        if radius > 0.0 && radius.is_normal() {
            Ok(())
        } else {
            Err(Error::Parameter { what: "radius", needed: "finite and above 0", got: radius })
        }
    }
    /// Writes the row's vector, of length at most 1, to `out`, `[dimension]`, and returns its target in `[-1, 1]`; `row` (from 1) is
    /// what an error names. No error tells a number of the row.
    ///
    /// # Errors
    /// [`Error::Width`], [`Error::NotFinite`] naming row and column.
    pub fn scale(
        &self,
        row: u64,
        features: &[f64],
        target: f64,
        out: &mut [f64],
        clipped: &mut Clipped,
    ) -> Result<f64, Error> {
        self.scale_features(row, features, out, clipped)?;
        if !target.is_finite() {
            return Err(Error::NotFinite { row, column: None });
        }
        clipped.targets += u64::from(!self.target.holds(target));
        Ok(self.target.unit(target))
    }
    /// As [`Self::scale`], without a target.
    ///
    /// # Errors
    /// As [`Self::scale`].
    pub fn scale_features(
        &self,
        row: u64,
        features: &[f64],
        out: &mut [f64],
        clipped: &mut Clipped,
    ) -> Result<(), Error> {
        if features.len() != self.features.len() || out.len() != self.dimension() {
            let (needed, got) = (self.features.len(), features.len());
            return Err(Error::Width { row, needed, got });
        }
        let radius = self.row_radius();
        for (column, ((value, bounds), out)) in
            features.iter().zip(&self.features).zip(out.iter_mut()).enumerate()
        {
            *out = match (value.is_finite(), self.missing) {
                (true, _) => {
                    clipped.features += u64::from(!bounds.holds(*value));
                    bounds.unit(*value) / radius
                }
                (false, Missing::Middle) if value.is_nan() => {
                    clipped.missing += 1;
                    0.0
                }
                _ => return Err(Error::NotFinite { row, column: Some(column) }),
            };
        }
        if self.intercept
            && let Some(last) = out.last_mut()
        {
            *last = radius.recip();
        }
        let length = out.iter().map(|x| x * x).sum::<f64>().sqrt();
        if length > 1.0 {
            // The root of the dimension is exceeded by rounding alone.
            clipped.rows += u64::from(self.radius.is_some());
            out.iter_mut().for_each(|x| *x /= length * (1.0 + 1e-15));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds() -> Bounds {
        let interval = |low, high| Interval::new(low, high).unwrap();
        Bounds {
            features: vec![interval(0.0, 10.0), interval(-1.0, 1.0)],
            target: interval(0.0, 4.0),
            intercept: false,
            radius: None,
            missing: Missing::Refuse,
        }
    }

    #[test]
    fn numbers_are_centred_scaled_and_moved_to_their_bounds() {
        let (mut out, mut clipped) = ([0.0; 2], Clipped::default());
        let target = bounds().scale(1, &[10.0, -3.0], 5.0, &mut out, &mut clipped).unwrap();
        let side = 0.5_f64.sqrt();
        assert!((out[0] - side).abs() < 1e-15 && (out[1] + side).abs() < 1e-15 && target >= 1.0);
        assert_eq!(clipped, Clipped { features: 1, targets: 1, ..Clipped::default() });
        // With a constant and a radius of 1: (0.5, 0, 1) / |(0.5, 0, 1)|.
        let near = Bounds { intercept: true, radius: Some(1.0), ..bounds() };
        let mut out = [0.0; 3];
        near.scale_features(1, &[7.5, 0.0], &mut out, &mut clipped).unwrap();
        let length = 1.25_f64.sqrt();
        assert!((out[0] - 0.5 / length).abs() < 1e-14 && (out[2] - 1.0 / length).abs() < 1e-14);
        assert_eq!(clipped.rows, 1);
        assert!(out.iter().map(|x| x * x).sum::<f64>() <= 1.0);
    }

    #[test]
    fn what_is_missing_is_refused_or_taken_as_the_middle() {
        let (mut out, mut clipped) = ([0.0; 2], Clipped::default());
        let refused = bounds().scale(7, &[1.0, f64::NAN], 1.0, &mut out, &mut clipped);
        assert_eq!(refused, Err(Error::NotFinite { row: 7, column: Some(1) }));
        let middle = Bounds { missing: Missing::Middle, ..bounds() };
        middle.scale(7, &[1.0, f64::NAN], 1.0, &mut out, &mut clipped).unwrap();
        assert!(out[1] == 0.0 && clipped.missing == 1);
        let infinite = middle.scale(7, &[f64::INFINITY, 0.0], 1.0, &mut out, &mut clipped);
        assert_eq!(infinite, Err(Error::NotFinite { row: 7, column: Some(0) }));
        let target = middle.scale(8, &[1.0, 0.0], f64::NAN, &mut out, &mut clipped);
        assert_eq!(target, Err(Error::NotFinite { row: 8, column: None }));
    }

    #[test]
    fn intervals_without_room_are_refused() {
        for (low, high) in
            [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY), (0.0, 1e-320)]
        {
            assert!(Interval::new(low, high).is_err(), "{low} {high}");
        }
        assert!(Interval::new(-1.7e308, 1.7e308).is_ok());
    }
}
