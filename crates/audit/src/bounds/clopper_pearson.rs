//! Epsilon from true and false-positive rates, each with its exact limit.
use super::{Bound, Conditions, Draw, EpsilonLower, Found};
use crate::binomial::{lower_limit, real, upper_limit};
use crate::error::{confidence, within};
use crate::{Error, Roc};

/// Exact limits of both rates at many thresholds, corrected for choosing among them.
///
/// # Method
///
/// `(epsilon, delta)`-DP means `TPR <= e^eps FPR + delta` and `TNR <= e^eps FNR + delta` at every threshold. Thresholds
/// are laid at the scores of the non-members ranked 1, 2, 3, 4, 6, 9, 13, ... from the top: the false-positive rate
/// strictly above the `j`-th non-member is at most a `Beta(j, n - j + 1)` variable, whose upper limit is the
/// Clopper-Pearson limit at `j - 1` false positives, and given the threshold the true positives are binomial. The other
/// direction uses the members ranked likewise from the bottom. With `J` thresholds over both directions each limit is taken
/// at `alpha / (2 J)` (union bound); `J` is about `3.4 log2 n`, not `n`. Because both rates are monotone in the threshold, the limits
/// hold for every other threshold too (each rate bounded by its neighbour's limit), and no threshold between two ranks can
/// give more than the ranks do: the value is the largest over all thresholds.
///
/// # Source
///
/// Limits: Clopper & Pearson 1934. Use for auditing: Jagielski, Ullman & Oprea 2020; Nasr et al. 2021.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClopperPearson;

/// Epsilon shown by the counts at one threshold that was fixed beforehand, `alpha / 2` for each rate; the larger of both
/// directions, not corrected for taking the larger. At least 0.
///
/// # Errors
/// [`Error::OutOfRange`] if there are more positives than records, none of a kind, or `alpha` is not strictly between 0 and 1.
pub fn epsilon_at_counts(
    (true_positives, members): (u64, u64),
    (false_positives, non_members): (u64, u64),
    alpha: f64,
    delta: f64,
) -> Result<f64, Error> {
    checked_counts((true_positives, members), (false_positives, non_members), alpha)?;
    let limits = Limits::at(true_positives, members, false_positives, non_members, alpha / 2.0);
    let mirrored = Limits::at(
        non_members - false_positives,
        non_members,
        members - true_positives,
        members,
        alpha / 2.0,
    );
    Ok(limits.epsilon(delta).max(mirrored.epsilon(delta)))
}

pub(super) fn checked_counts(
    (true_positives, members): (u64, u64),
    (false_positives, non_members): (u64, u64),
    alpha: f64,
) -> Result<(), Error> {
    if members == 0 || non_members == 0 {
        return Err(Error::OneSided { members, non_members });
    }
    within("true positives", "at most the members", real(true_positives), |x| x <= real(members))?;
    within("false positives", "at most the non-members", real(false_positives), |x| {
        x <= real(non_members)
    })?;
    within("alpha", "strictly between 0 and 1", alpha, |x| x > 0.0 && x < 1.0)?;
    Ok(())
}

/// A lower limit of the rate of one kind accepted and an upper limit of the rate of the other kind accepted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) accepted_low: f64,
    pub(super) mistaken_high: f64,
}
impl Limits {
    fn at(accepted: u64, of: u64, mistaken: u64, others: u64, alpha: f64) -> Self {
        Self {
            accepted_low: lower_limit(accepted, of, alpha),
            mistaken_high: upper_limit(mistaken, others, alpha),
        }
    }
    fn epsilon(self, delta: f64) -> f64 {
        ((self.accepted_low - delta) / self.mistaken_high).ln().max(0.0)
    }
}

/// A threshold and what is known at it.
pub(super) struct Threshold {
    pub(super) limits: Limits,
    pub(super) found_at: String,
}

/// Ranks 1, 2, 3, 4, 6, 9, 13, ...: each half as large again as the last, up to `count`.
///
/// Denser ranks cost more correction, thinner ones more of a large block of ties; both losses are small here.
pub(super) fn ranks(count: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(1), |rank| Some(rank + (rank / 2).max(1)))
        .take_while(move |rank| *rank <= count)
}

/// How many thresholds both directions have, for so many records.
pub(super) fn thresholds(members: u64, non_members: u64) -> u64 {
    (ranks(members).count() + ranks(non_members).count()) as u64
}

/// Every threshold of both directions with limits at `alpha / (2 thresholds)`.
pub(super) fn all_limits(roc: &Roc, alpha: f64) -> Vec<Threshold> {
    let (members, non_members) = (roc.members(), roc.non_members());
    let each = alpha / (2.0 * real(thresholds(members, non_members)));
    let blocks = roc.blocks();
    let mut found = Vec::new();
    for rank in ranks(non_members) {
        // Members strictly above the block that holds the non-member of this rank.
        let block = blocks.partition_point(|block| u64::from(block.false_positives) < rank);
        let above = block.checked_sub(1).map_or(0, |last| u64::from(blocks[last].true_positives));
        found.push(Threshold {
            limits: Limits::at(above, members, rank - 1, non_members, each),
            found_at: format!(
                "{above} of {members} members above the non-member ranked {rank} from the top"
            ),
        });
    }
    for rank in ranks(members) {
        // Non-members strictly below the block that holds the member of this rank from the bottom.
        let block =
            blocks.partition_point(|block| u64::from(block.true_positives) <= members - rank);
        let below = non_members - u64::from(blocks[block].false_positives);
        found.push(Threshold {
            limits: Limits::at(below, non_members, rank - 1, members, each),
            found_at: format!("{below} of {non_members} non-members below the member ranked {rank} from the bottom"),
        });
    }
    found
}

/// What a perfect attack shows at its best threshold in each direction.
pub(super) fn perfect_limits(roc: &Roc, alpha: f64) -> [Limits; 2] {
    let (members, non_members) = (roc.members(), roc.non_members());
    let each = alpha / (2.0 * real(thresholds(members, non_members)));
    [
        Limits::at(members, members, 0, non_members, each),
        Limits::at(non_members, non_members, 0, members, each),
    ]
}

/// What both bounds from rates assume of the records.
pub(super) fn independence(draw: Draw) -> Option<String> {
    match draw {
        Draw::IndependentModels => None,
        Draw::FairCoins | Draw::FixedSize | Draw::Unknown => Some(
            "assumes independent records: scores of records that shared one trained model may depend on one another"
                .to_owned(),
        ),
    }
}

pub(super) fn corrected_for(roc: &Roc) -> String {
    format!(
        "the choice among all thresholds and both directions, by a union bound over {} ranks and two rates",
        thresholds(roc.members(), roc.non_members())
    )
}

impl Bound for ClopperPearson {
    fn name(&self) -> &'static str {
        "clopper-pearson"
    }
    fn what(&self) -> &'static str {
        "exact limits of true and false-positive rates, over all thresholds and both directions"
    }
    fn needs(&self) -> &'static str {
        "independently trained models, one score each; else it assumes independent records and says so"
    }
    fn source(&self) -> &'static str {
        "Clopper & Pearson, Biometrika 1934"
    }
    fn epsilon_lower(&self, roc: &Roc, conditions: &Conditions) -> Result<EpsilonLower, Error> {
        let alpha = 1.0 - confidence(conditions.confidence)?;
        let delta = conditions.delta.get();
        let mut value = 0.0;
        let mut found_at = "no threshold shows anything".to_owned();
        for threshold in all_limits(roc, alpha) {
            let epsilon = threshold.limits.epsilon(delta);
            if epsilon > value {
                (value, found_at) = (epsilon, threshold.found_at);
            }
        }
        let largest_possible = perfect_limits(roc, alpha)
            .map(|limits| limits.epsilon(delta))
            .into_iter()
            .fold(0.0, f64::max);
        let found = Found {
            value,
            largest_possible,
            found_at,
            corrected_for: corrected_for(roc),
            assumptions: vec![
                "scores of different candidates are independent given their membership, and alike among members and among non-members"
                    .to_owned(),
            ],
            caveat: independence(conditions.draw),
        };
        Ok(found.report(self, roc, conditions))
    }
}
