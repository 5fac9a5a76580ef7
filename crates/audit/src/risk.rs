//! Risk of single records over repeated runs and several attacks.
use crate::error::{confidence as checked_confidence, within};
use crate::interval::{self, Interval};
use crate::{Error, Evidence, Roc};
use dosimeter_data::RecordId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How often a record was confidently called a member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordRisk {
    /// The record.
    pub record: RecordId,
    /// Runs in which it was a member and judged.
    pub times_member: u64,
    /// Among those, runs in which it was called a member.
    pub times_recognised: u64,
    /// Runs in which it was a non-member and judged.
    pub times_non_member: u64,
    /// Among those, runs in which it was called a member all the same.
    pub times_mistaken: u64,
    /// Runs in which it could not be judged.
    pub times_not_assessable: u64,
    /// Fraction recognised when a member, with its exact interval; `None` if it never was one. With few runs the interval is wide,
    /// and it says so. Assumes independent runs: several attacks on one model are not.
    pub recognised: Option<Interval>,
}

/// Counts over `runs` (one per repeat and attack), by record. In each run a record is called a member if its score reaches the
/// lowest threshold of that run whose false-positive rate does not exceed `fpr`; where there is none, nobody is.
///
/// A record that is recognised about as often as it is mistaken looks like a member to the attack; it is not exposed by training.
///
/// # Errors
/// [`Error::OneSided`] for a run without members or non-members, [`Error::OutOfRange`] for `fpr` or `confidence`.
pub fn per_record(runs: &[Evidence], fpr: f64, confidence: f64) -> Result<Vec<RecordRisk>, Error> {
    within("false-positive rate", "in [0, 1]", fpr, |x| (0.0..=1.0).contains(&x))?;
    checked_confidence(confidence)?;
    let mut risks: BTreeMap<RecordId, RecordRisk> = BTreeMap::new();
    let blank = |record| RecordRisk {
        record,
        times_member: 0,
        times_recognised: 0,
        times_non_member: 0,
        times_mistaken: 0,
        times_not_assessable: 0,
        recognised: None,
    };
    for run in runs {
        let threshold = Roc::of(run)?.tpr_at(fpr, confidence)?.threshold;
        for &(record, score, member) in &run.rows {
            let called = u64::from(threshold.is_some_and(|threshold| score >= threshold));
            let risk = risks.entry(record).or_insert_with(|| blank(record));
            if member {
                risk.times_member += 1;
                risk.times_recognised += called;
            } else {
                risk.times_non_member += 1;
                risk.times_mistaken += called;
            }
        }
        for &record in &run.not_assessable {
            risks.entry(record).or_insert_with(|| blank(record)).times_not_assessable += 1;
        }
    }
    for risk in risks.values_mut().filter(|risk| risk.times_member > 0) {
        risk.recognised =
            Some(interval::clopper_pearson(risk.times_recognised, risk.times_member, confidence)?);
    }
    Ok(risks.into_values().collect())
}
