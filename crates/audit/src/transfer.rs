//! Thresholds chosen on shadows, as a real attacker must, and what they are worth at realistic shares of members.
use crate::error::within;
use crate::interval::{self, Interval};
use crate::roc::Confusion;
use crate::{Error, Evidence, Roc};
use serde::{Deserialize, Serialize};

/// Shares of members at which a report gives the precision.
pub const PRIORS: [f64; 3] = [0.5, 0.1, 0.01];

/// What a threshold from shadows does on the target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transferred {
    /// The threshold; `None` if none on the shadows keeps the false-positive rate, so that nobody is called a member.
    pub threshold: Option<f64>,
    /// False-positive rate asked for on the shadows.
    pub target_fpr: f64,
    /// What the threshold does on the target.
    pub confusion: Confusion,
    /// True-positive rate on the target, exact interval.
    pub tpr: Interval,
    /// False-positive rate on the target, exact interval.
    pub fpr: Interval,
    /// Precision for each share of members asked for; `None` where nobody was called a member.
    pub precision: Vec<(f64, Option<f64>)>,
}

/// Chance that a record called a member is one, if a fraction `prior` of those asked about are.
#[must_use]
#[doc(alias = "ppv")]
pub fn precision_at(prior: f64, tpr: f64, fpr: f64) -> Option<f64> {
    let (right, wrong) = (prior * tpr, (1.0 - prior) * fpr);
    (right + wrong > 0.0).then(|| right / (right + wrong))
}

/// Takes the lowest threshold whose false-positive rate on the pooled shadows does not exceed `fpr`, and applies it to the target.
///
/// # Errors
/// [`Error::OneSided`] for shadows or a target without members or non-members; [`Error::OutOfRange`] for `fpr`, `confidence` or a
/// prior outside `[0, 1]`.
pub fn from_shadows(
    shadows: &[Evidence],
    target: &Evidence,
    fpr: f64,
    priors: &[f64],
    confidence: f64,
) -> Result<Transferred, Error> {
    for &prior in priors {
        within("share of members", "in [0, 1]", prior, |x| (0.0..=1.0).contains(&x))?;
    }
    let pooled = Evidence {
        rows: shadows.iter().flat_map(|shadow| shadow.rows.iter().copied()).collect(),
        not_assessable: Vec::new(),
    };
    let threshold = Roc::of(&pooled)?.tpr_at(fpr, confidence)?.threshold;
    let confusion = Roc::of(target)?.at_threshold(threshold.unwrap_or(f64::INFINITY));
    let tpr = interval::clopper_pearson(
        confusion.true_positives,
        confusion.true_positives + confusion.false_negatives,
        confidence,
    )?;
    let realised = interval::clopper_pearson(
        confusion.false_positives,
        confusion.false_positives + confusion.true_negatives,
        confidence,
    )?;
    let precision = priors
        .iter()
        .map(|&prior| (prior, precision_at(prior, tpr.value, realised.value)))
        .collect();
    Ok(Transferred { threshold, target_fpr: fpr, confusion, tpr, fpr: realised, precision })
}
