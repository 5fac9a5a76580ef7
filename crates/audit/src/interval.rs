//! Intervals of rates and means.
use crate::binomial::{lower_limit, real, upper_limit};
use crate::error::confidence as checked_confidence;
use crate::roc::below;
use crate::{Error, normal};
use dosimeter_data::Seed;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A value with two-sided limits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// Lower limit.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
    /// Confidence of both limits together.
    pub confidence: f64,
}
impl Interval {
    /// Whether `x` lies between the limits, limits included.
    #[must_use]
    pub fn contains(&self, x: f64) -> bool {
        self.low <= x && x <= self.high
    }
}

fn checked_counts(successes: u64, trials: u64) -> Result<(), Error> {
    if trials == 0 {
        return Err(Error::TooFew { what: "a rate", needed: 1, got: 0 });
    }
    if successes > trials {
        return Err(Error::OutOfRange {
            what: "successes",
            needed: "at most the number of trials",
            got: real(successes),
        });
    }
    Ok(())
}

/// Exact interval of a binomial rate, `alpha / 2` on each side: covers at least `confidence`, always.
///
/// Source: Clopper & Pearson, *Biometrika* 26, 1934.
///
/// # Errors
/// [`Error::TooFew`] without trials, [`Error::OutOfRange`] for more successes than trials or a confidence outside `(0, 1)`.
pub fn clopper_pearson(successes: u64, trials: u64, confidence: f64) -> Result<Interval, Error> {
    checked_counts(successes, trials)?;
    let tail = (1.0 - checked_confidence(confidence)?) / 2.0;
    Ok(Interval {
        value: real(successes) / real(trials),
        low: lower_limit(successes, trials, tail),
        high: upper_limit(successes, trials, tail),
        confidence,
    })
}

/// Score interval of a binomial rate: covers `confidence` on average over rates, shorter than the exact one.
///
/// Source: Wilson, *JASA* 22, 1927.
///
/// # Errors
/// As [`clopper_pearson`].
pub fn wilson(successes: u64, trials: u64, confidence: f64) -> Result<Interval, Error> {
    checked_counts(successes, trials)?;
    let z = normal::quantile(1.0 - (1.0 - checked_confidence(confidence)?) / 2.0);
    let (n, value) = (real(trials), real(successes) / real(trials));
    let shrink = 1.0 + z * z / n;
    let centre = (value + z * z / (2.0 * n)) / shrink;
    let half = z / shrink * (value * (1.0 - value) / n + z * z / (4.0 * n * n)).sqrt();
    Ok(Interval {
        value,
        low: if successes == 0 { 0.0 } else { (centre - half).max(0.0) },
        high: if successes == trials { 1.0 } else { (centre + half).min(1.0) },
        confidence,
    })
}

/// Mean over repeats (seeds) of one setting, with its spread and an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AcrossRepeats {
    /// Mean of the repeats.
    pub mean: f64,
    /// Sample standard deviation (divisor `repeats - 1`); `None` for one repeat.
    pub standard_deviation: Option<f64>,
    /// Interval of the mean by Student's t; `None` for one repeat, which says nothing about spread.
    pub interval: Option<Interval>,
    /// Number of repeats.
    pub repeats: usize,
}

/// Mean, spread and t interval over repeats. Assumes repeats with independent seeds and a mean near normal.
///
/// # Errors
/// [`Error::TooFew`] without repeats, [`Error::OutOfRange`] for a value that is not finite or a confidence outside `(0, 1)`.
pub fn across_repeats(values: &[f64], confidence: f64) -> Result<AcrossRepeats, Error> {
    let alpha = 1.0 - checked_confidence(confidence)?;
    checked_values(values)?;
    let n = real(values.len() as u64);
    let mean = values.iter().sum::<f64>() / n;
    if values.len() == 1 {
        return Ok(AcrossRepeats { mean, standard_deviation: None, interval: None, repeats: 1 });
    }
    let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    let deviation = variance.sqrt();
    let t =
        StudentsT::new(0.0, 1.0, n - 1.0).map_or(f64::NAN, |t| t.inverse_cdf(1.0 - alpha / 2.0));
    let half = t * deviation / n.sqrt();
    Ok(AcrossRepeats {
        mean,
        standard_deviation: Some(deviation),
        interval: Some(Interval { value: mean, low: mean - half, high: mean + half, confidence }),
        repeats: values.len(),
    })
}

fn checked_values(values: &[f64]) -> Result<(), Error> {
    if values.is_empty() {
        return Err(Error::TooFew { what: "a mean", needed: 1, got: 0 });
    }
    values.iter().find(|x| !x.is_finite()).map_or(Ok(()), |&got| {
        Err(Error::OutOfRange { what: "a repeat's value", needed: "finite", got })
    })
}

/// Percentile bootstrap interval of any statistic of `values`, drawn anew `resamples` times with replacement.
///
/// # Source
/// Efron 1979. Too short for fewer than about ten values; prefer [`across_repeats`] there.
///
/// # Errors
/// As [`across_repeats`]; [`Error::TooFew`] under 100 resamples.
pub fn bootstrap(
    values: &[f64],
    statistic: impl Fn(&[f64]) -> f64,
    confidence: f64,
    resamples: usize,
    seed: Seed,
) -> Result<Interval, Error> {
    checked_confidence(confidence)?;
    checked_values(values)?;
    let mut rng = seed.rng();
    let mut drawn = values.to_vec();
    let statistics = (0..resamples).map(|_| {
        for place in &mut drawn {
            *place = values[below(&mut rng, values.len())];
        }
        statistic(&drawn)
    });
    let statistics = statistics.collect();
    percentile(statistic(values), statistics, confidence)
}

/// The middle `confidence` of resampled statistics.
pub(crate) fn percentile(
    value: f64,
    mut statistics: Vec<f64>,
    confidence: f64,
) -> Result<Interval, Error> {
    if statistics.len() < 100 {
        return Err(Error::TooFew { what: "a bootstrap", needed: 100, got: statistics.len() });
    }
    if let Some(&got) = statistics.iter().find(|x| !x.is_finite()) {
        return Err(Error::OutOfRange { what: "a resampled statistic", needed: "finite", got });
    }
    statistics.sort_unstable_by(f64::total_cmp);
    let last = statistics.len() - 1;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a fraction of the number of resamples"
    )]
    let outside = ((1.0 - confidence) / 2.0 * real(statistics.len() as u64)).floor() as usize;
    Ok(Interval {
        value,
        low: statistics[outside.min(last)],
        high: statistics[last - outside.min(last)],
        confidence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 200 values, an eighth cut off on each side: the 25 lowest and the 25 highest are outside.
    #[test]
    fn the_middle_three_quarters_leave_an_eighth_on_each_side() {
        let values: Vec<f64> = (0..200).rev().map(f64::from).collect();
        let interval = percentile(7.0, values, 0.75).unwrap();
        assert!((interval.value - 7.0).abs() < 1e-15);
        assert!((interval.low - 25.0).abs() < 1e-15, "{interval:?}");
        assert!((interval.high - 174.0).abs() < 1e-15, "{interval:?}");
    }
}
