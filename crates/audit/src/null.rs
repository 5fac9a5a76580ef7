//! Self-check: with membership dealt out anew, every bound and interval must find nothing.
use crate::binomial::real;
use crate::bounds::{Bound, Conditions};
use crate::error::within;
use crate::interval::{self, Interval};
use crate::{Error, Roc};
use dosimeter_data::Seed;
use serde::{Deserialize, Serialize};

/// How often something was found where nothing was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FalseFindings {
    /// Name of the bound, or `auc-interval`.
    pub what: String,
    /// Shuffles in which it found something.
    pub found: u64,
    /// Fraction of shuffles, with its exact 99 % interval.
    pub fraction: Interval,
    /// Largest fraction allowed: 1 - confidence.
    pub allowed: f64,
    /// Whether the fraction is within what is allowed, as far as so many shuffles can tell (the interval's lower limit is).
    pub passed: bool,
}

/// The self-check's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelfCheck {
    /// Times membership was dealt out anew.
    pub shuffles: u64,
    /// One entry per bound, then the AUC interval.
    pub findings: Vec<FalseFindings>,
}
impl SelfCheck {
    /// Whether nothing was found more often than it may.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.findings.iter().all(|finding| finding.passed)
    }
}

/// Deals membership out anew among the same scores `shuffles` times, and counts how often each bound is above 0 and how often
/// the AUC interval misses 0.5.
///
/// Bounds that refuse the conditions (`gdp` at delta 0) are left out. Takes about as long as `shuffles` audits without sorting.
///
/// # Errors
/// [`Error::OutOfRange`] without shuffles or for a confidence outside `(0, 1)`.
pub fn self_check(
    roc: &Roc,
    bounds: &[&dyn Bound],
    conditions: &Conditions,
    shuffles: u32,
    seed: Seed,
) -> Result<SelfCheck, Error> {
    within("shuffles", "at least 1", f64::from(shuffles), |x| x >= 1.0)?;
    let bounds: Vec<_> = bounds
        .iter()
        .filter(|bound| bound.name() != "gdp" || conditions.delta.get() > 0.0)
        .collect();
    let mut found = vec![0_u64; bounds.len() + 1];
    let seed = seed.child("null");
    for shuffle in 0..shuffles {
        let shuffled = roc.shuffled(seed.index(u64::from(shuffle)));
        for (count, bound) in found.iter_mut().zip(&bounds) {
            *count += u64::from(bound.epsilon_lower(&shuffled, conditions)?.value > 0.0);
        }
        found[bounds.len()] +=
            u64::from(!shuffled.auc_interval(conditions.confidence)?.contains(0.5));
    }
    let allowed = 1.0 - conditions.confidence;
    let names = bounds.iter().map(|bound| bound.name()).chain(["auc-interval"]);
    let findings = names.zip(found).map(|(what, found)| {
        let fraction = interval::clopper_pearson(found, u64::from(shuffles), 0.99)?;
        Ok(FalseFindings {
            what: what.to_owned(),
            found,
            fraction,
            allowed,
            passed: fraction.low <= allowed,
        })
    });
    let findings = findings.collect::<Result<Vec<_>, Error>>()?;
    debug_assert!(real(u64::from(shuffles)) >= 1.0);
    Ok(SelfCheck { shuffles: u64::from(shuffles), findings })
}
