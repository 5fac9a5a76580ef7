//! Epsilon by way of the Gaussian mechanism's trade-off curve.
use super::clopper_pearson::{
    Limits, all_limits, checked_counts, corrected_for, independence, perfect_limits,
};
use super::{Bound, Conditions, EpsilonLower, Found};
use crate::binomial::{lower_limit, upper_limit};
use crate::error::{confidence, within};
use crate::{Error, Roc, normal};

/// Exact limits of both rates turned into `mu` of a Gaussian trade-off curve, and that into epsilon at delta.
///
/// Far larger than [`super::ClopperPearson`] at small delta, but only as true as its assumption: that training's trade-off
/// curve is that of one Gaussian mechanism. It always carries that caveat.
///
/// # Source
///
/// Dong, Roth & Su, *Gaussian Differential Privacy*, 2022 (arXiv:1905.02383), Corollary 2.13 for `delta(epsilon)`; Nasr et
/// al., *Tight Auditing of Differentially Private Machine Learning*, 2023 (arXiv:2302.07956) for its use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gdp;

/// `mu` shown by the counts at one threshold fixed beforehand: `Phi^-1(1 - FPR_hi) - Phi^-1(FNR_hi)`, `alpha / 2` for each rate.
/// At least 0.
///
/// # Errors
/// As [`super::epsilon_at_counts`].
pub fn mu_at_counts(
    (true_positives, members): (u64, u64),
    (false_positives, non_members): (u64, u64),
    alpha: f64,
) -> Result<f64, Error> {
    checked_counts((true_positives, members), (false_positives, non_members), alpha)?;
    Ok(mu(Limits {
        accepted_low: lower_limit(true_positives, members, alpha / 2.0),
        mistaken_high: upper_limit(false_positives, non_members, alpha / 2.0),
    }))
}

/// The same in both directions: accepted and mistaken change places with their complements.
fn mu(limits: Limits) -> f64 {
    // -Phi^-1(x) = Phi^-1(1 - x), without rounding 1 - x.
    let mu = normal::quantile(limits.accepted_low) - normal::quantile(limits.mistaken_high);
    if mu > 0.0 { mu } else { 0.0 }
}

/// Delta of a `mu`-Gaussian trade-off curve at `epsilon`: `Phi(-e/mu + mu/2) - e^e Phi(-e/mu - mu/2)`; 0 for `mu = 0`.
#[must_use]
pub fn delta_of_mu(mu: f64, epsilon: f64) -> f64 {
    if mu <= 0.0 {
        return 0.0;
    }
    let second = normal::cdf(-epsilon / mu - mu / 2.0);
    let second = if second > 0.0 { (epsilon + second.ln()).exp() } else { 0.0 };
    (normal::cdf(mu / 2.0 - epsilon / mu) - second).max(0.0)
}

/// Epsilon of a `mu`-Gaussian trade-off curve at `delta`, found by halving to `1e-9` from below; at least 0.
///
/// # Errors
/// [`Error::OutOfRange`] unless `delta` is in `(0, 1]` (at 0 epsilon is unbounded) and `mu` finite and at least 0.
pub fn epsilon_of_mu(mu: f64, delta: f64) -> Result<f64, Error> {
    within("delta of a Gaussian trade-off curve", "in (0, 1]", delta, |x| x > 0.0 && x <= 1.0)?;
    within("mu", "finite and at least 0", mu, |x| x >= 0.0 && x.is_finite())?;
    if delta_of_mu(mu, 0.0) <= delta {
        return Ok(0.0);
    }
    let (mut low, mut high) = (0.0, 1.0);
    while delta_of_mu(mu, high) > delta {
        low = high;
        high *= 2.0;
    }
    while high - low > 1e-9 {
        let middle = 0.5 * (low + high);
        if delta_of_mu(mu, middle) > delta {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

impl Bound for Gdp {
    fn name(&self) -> &'static str {
        "gdp"
    }
    fn what(&self) -> &'static str {
        "exact limits of true and false-positive rates, read on a Gaussian trade-off curve"
    }
    fn needs(&self) -> &'static str {
        "delta above 0; assumes a Gaussian trade-off curve, so it always carries a caveat"
    }
    fn source(&self) -> &'static str {
        "Dong, Roth & Su 2022 (arXiv:1905.02383); Nasr et al. 2023 (arXiv:2302.07956)"
    }
    fn epsilon_lower(&self, roc: &Roc, conditions: &Conditions) -> Result<EpsilonLower, Error> {
        let alpha = 1.0 - confidence(conditions.confidence)?;
        let delta = conditions.delta.get();
        let mut best = 0.0;
        let mut found_at = "no threshold shows anything".to_owned();
        for threshold in all_limits(roc, alpha) {
            let mu = mu(threshold.limits);
            if mu > best {
                best = mu;
                found_at = format!("mu {mu:.4}: {}", threshold.found_at);
            }
        }
        let perfect = perfect_limits(roc, alpha).map(mu).into_iter().fold(0.0, f64::max);
        let mut caveat =
            "assumes that the trade-off curve of training is that of one Gaussian mechanism"
                .to_owned();
        if let Some(independence) = independence(conditions.draw) {
            caveat = format!("{caveat}; {independence}");
        }
        let found = Found {
            value: epsilon_of_mu(best, delta)?,
            largest_possible: epsilon_of_mu(perfect, delta)?,
            found_at,
            corrected_for: corrected_for(roc),
            assumptions: vec![
                "the trade-off curve of training is that of one Gaussian mechanism".to_owned(),
                "scores of different candidates are independent given their membership, and alike among members and among non-members"
                    .to_owned(),
            ],
            caveat: Some(caveat),
        };
        Ok(found.report(self, roc, conditions))
    }
}
