//! The ROC of membership scores and what is read from it.
//!
//! Records with equal scores are one block: no order among them is ever assumed, so the order of the input changes no
//! number. A threshold accepts whole blocks.
use crate::binomial::{lower_limit, real, upper_limit};
use crate::error::{confidence as checked_confidence, within};
use crate::interval::Interval;
use crate::{Error, Evidence, normal};
use dosimeter_data::Seed;
use rand_core::Rng;
use serde::{Deserialize, Serialize};

/// All records with one score, and how many records have at least that score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// The score.
    pub score: f64,
    /// Members with this score or a higher one.
    pub true_positives: u32,
    /// Non-members with this score or a higher one.
    pub false_positives: u32,
}

/// Members and non-members at each score, highest score first.
#[derive(Debug, Clone, PartialEq)]
pub struct Roc {
    blocks: Vec<Block>,
    /// Membership by falling score; equal scores in an order that depends on record ids alone.
    order: Vec<bool>,
    members: u64,
    non_members: u64,
    not_assessable: u64,
}

/// What a threshold does: members are positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confusion {
    /// Members called members.
    pub true_positives: u64,
    /// Non-members called members.
    pub false_positives: u64,
    /// Members called non-members.
    pub false_negatives: u64,
    /// Non-members called non-members.
    pub true_negatives: u64,
}
impl Confusion {
    /// Fraction of all judged records called rightly.
    #[must_use]
    pub fn accuracy(&self) -> f64 {
        let right = self.true_positives + self.true_negatives;
        real(right) / real(right + self.false_positives + self.false_negatives)
    }
    /// True-positive rate minus false-positive rate (Yeom et al. 2018).
    #[must_use]
    pub fn advantage(&self) -> f64 {
        self.true_positive_rate() - self.false_positive_rate()
    }
    /// Fraction of members called members.
    #[must_use]
    pub fn true_positive_rate(&self) -> f64 {
        real(self.true_positives) / real(self.true_positives + self.false_negatives)
    }
    /// Fraction of non-members called members.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        real(self.false_positives) / real(self.false_positives + self.true_negatives)
    }
}

/// True-positive rate at a chosen false-positive rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// The false-positive rate asked for.
    pub target_fpr: f64,
    /// The false-positive rate of the threshold used: the largest one that does not exceed the target.
    pub fpr: f64,
    /// True-positive rate of that threshold.
    pub value: f64,
    /// Clopper-Pearson limits of the rate (both sides together).
    pub low: f64,
    /// See [`Rate::low`].
    pub high: f64,
    /// Confidence of the limits.
    pub confidence: f64,
    /// True-positive rate when the first block that is too large is accepted at random with the chance that meets the
    /// target exactly. Equals `target_fpr` when all scores are equal, where `value` is 0.
    pub randomised: f64,
    /// The target is finer than one non-member (`target_fpr < 1 / non_members`): `value` is the rate at 0 false
    /// positives, and says nothing finer.
    pub below_resolution: bool,
    /// Lowest accepted score; `None` when nothing can be accepted.
    pub threshold: Option<f64>,
    /// What the threshold does.
    pub confusion: Confusion,
}

/// A point of the curve for a report: false-positive rate, true-positive rate.
pub type CurvePoint = (f64, f64);

/// Orders equal scores by record id alone, so that the order of the input (which may tell membership) does not matter.
const fn scrambled(record: u32) -> u64 {
    let mut x = (record as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Integers that sort as the finite `score` does, highest first; -0 and 0 are equal.
fn falling_key(score: f64) -> u64 {
    let bits = (score + 0.0).to_bits();
    let rising = if bits >> 63 == 1 { !bits } else { bits | (1 << 63) };
    !rising
}

impl Roc {
    /// Sorts evidence into blocks. Takes `O(n log n)` time.
    ///
    /// # Errors
    /// [`Error::OneSided`] without at least one member and one non-member, [`Error::NotFinite`] for rows that were
    /// not made by [`Evidence::join`], [`Error::TooManyRecords`] beyond `u32::MAX` rows.
    pub fn of(evidence: &Evidence) -> Result<Self, Error> {
        if u32::try_from(evidence.rows.len()).is_err() {
            return Err(Error::TooManyRecords { got: evidence.rows.len() });
        }
        let mut rows = Vec::with_capacity(evidence.rows.len());
        for &(record, score, member) in &evidence.rows {
            if !score.is_finite() {
                return Err(Error::NotFinite { record, score });
            }
            rows.push((falling_key(score), record.0, member));
        }
        rows.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| scrambled(a.1).cmp(&scrambled(b.1)))
        });
        let order: Vec<bool> = rows.iter().map(|row| row.2).collect();
        let mut blocks: Vec<Block> = Vec::new();
        let mut previous = None;
        let (mut true_positives, mut false_positives) = (0, 0);
        for (key, _, member) in rows {
            if member {
                true_positives += 1
            } else {
                false_positives += 1
            }
            if previous != Some(key) {
                let rising = !key;
                let bits = if rising >> 63 == 1 { rising & !(1 << 63) } else { !rising };
                blocks.push(Block {
                    score: f64::from_bits(bits),
                    true_positives: 0,
                    false_positives: 0,
                });
                previous = Some(key);
            }
            if let Some(last) = blocks.last_mut() {
                last.true_positives = true_positives;
                last.false_positives = false_positives;
            }
        }
        let (members, non_members) = (u64::from(true_positives), u64::from(false_positives));
        if members == 0 || non_members == 0 {
            return Err(Error::OneSided { members, non_members });
        }
        Ok(Self {
            blocks,
            order,
            members,
            non_members,
            not_assessable: evidence.not_assessable.len() as u64,
        })
    }

    /// The same scores with membership dealt out anew among the records: nothing is left to find.
    #[must_use]
    pub fn shuffled(&self, seed: Seed) -> Self {
        let mut order = self.order.clone();
        let mut rng = seed.rng();
        for last in (1..order.len()).rev() {
            order.swap(last, below(&mut rng, last + 1));
        }
        let mut blocks = self.blocks.clone();
        let (mut start, mut true_positives, mut false_positives) = (0, 0, 0);
        for block in &mut blocks {
            let end = block.true_positives as usize + block.false_positives as usize;
            for &member in &order[start..end] {
                if member { true_positives += 1 } else { false_positives += 1 }
            }
            start = end;
            block.true_positives = true_positives;
            block.false_positives = false_positives;
        }
        Self { blocks, order, ..*self }
    }

    /// Blocks of equal scores, highest first, with counts accumulated.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }
    /// Judged members.
    #[must_use]
    pub const fn members(&self) -> u64 {
        self.members
    }
    /// Judged non-members.
    #[must_use]
    pub const fn non_members(&self) -> u64 {
        self.non_members
    }
    /// Candidates that could not be judged and are in no number here.
    #[must_use]
    pub const fn not_assessable(&self) -> u64 {
        self.not_assessable
    }
    /// Membership by falling score; equal scores in an order that depends on record ids alone.
    #[must_use]
    pub fn by_falling_score(&self) -> &[bool] {
        &self.order
    }

    /// Members and non-members of each block, not accumulated, highest score first.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut before = (0, 0);
        self.blocks.iter().map(move |block| {
            let step = (
                u64::from(block.true_positives) - before.0,
                u64::from(block.false_positives) - before.1,
            );
            before = (u64::from(block.true_positives), u64::from(block.false_positives));
            step
        })
    }

    /// Area under the curve: the chance that a random member scores above a random non-member, ties counting half
    /// (Mann-Whitney). Exact integer counts until the last division.
    #[must_use]
    #[doc(alias = "auroc")]
    pub fn auc(&self) -> f64 {
        let (mut above, mut halves) = (0_u64, 0_u128);
        for (members, non_members) in self.steps() {
            // Each non-member of this block is beaten by all members above it and ties with those beside it.
            halves += u128::from(non_members) * u128::from(2 * above + members);
            above += members;
        }
        #[expect(clippy::cast_precision_loss, reason = "one rounding of an exact count")]
        let (halves, pairs) =
            (halves as f64, 2.0 * (u128::from(self.members) * u128::from(self.non_members)) as f64);
        halves / pairs
    }

    /// Average precision `sum (R_t - R_{t-1}) P_t` over blocks, not interpolated.
    #[must_use]
    pub fn average_precision(&self) -> f64 {
        let mut before = 0;
        let mut sum = 0.0;
        for block in &self.blocks {
            if block.true_positives > before {
                let accepted = f64::from(block.true_positives) + f64::from(block.false_positives);
                sum += f64::from(block.true_positives - before) * f64::from(block.true_positives)
                    / accepted;
                before = block.true_positives;
            }
        }
        sum / real(self.members)
    }

    /// What accepting the `blocks` highest blocks does.
    fn confusion(&self, blocks: usize) -> Confusion {
        let (true_positives, false_positives) = match blocks.checked_sub(1) {
            None => (0, 0),
            Some(last) => (
                u64::from(self.blocks[last].true_positives),
                u64::from(self.blocks[last].false_positives),
            ),
        };
        Confusion {
            true_positives,
            false_positives,
            false_negatives: self.members - true_positives,
            true_negatives: self.non_members - false_positives,
        }
    }

    /// What calling every record with `score >= threshold` a member does.
    #[must_use]
    pub fn at_threshold(&self, threshold: f64) -> Confusion {
        self.confusion(self.blocks.partition_point(|block| block.score >= threshold))
    }

    /// True-positive rate of the lowest threshold whose false-positive rate does not exceed `fpr`, with its
    /// Clopper-Pearson interval at `confidence`.
    ///
    /// The threshold depends on non-members alone, so the interval is exact for the threshold used, if records are
    /// independent. A target finer than one non-member is marked `below_resolution`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `fpr` is in `[0, 1]` and `confidence` strictly between 0 and 1.
    pub fn tpr_at(&self, fpr: f64, confidence: f64) -> Result<Rate, Error> {
        within("false-positive rate", "in [0, 1]", fpr, |x| (0.0..=1.0).contains(&x))?;
        let alpha = 1.0 - checked_confidence(confidence)?;
        let all = real(self.non_members);
        // A quotient of counts rounds to the double nearest the fraction, as a written target does: 29 of 100 is 0.29.
        let accepted =
            self.blocks.partition_point(|block| f64::from(block.false_positives) / all <= fpr);
        let confusion = self.confusion(accepted);
        let value = confusion.true_positive_rate();
        let randomised = self.blocks.get(accepted).map_or(value, |next| {
            let part = (fpr - confusion.false_positive_rate())
                / (f64::from(next.false_positives) / all - confusion.false_positive_rate());
            part.mul_add(f64::from(next.true_positives) / real(self.members) - value, value)
        });
        Ok(Rate {
            target_fpr: fpr,
            fpr: confusion.false_positive_rate(),
            value,
            low: lower_limit(confusion.true_positives, self.members, alpha / 2.0),
            high: upper_limit(confusion.true_positives, self.members, alpha / 2.0),
            confidence,
            randomised,
            below_resolution: fpr < 1.0 / all,
            threshold: accepted.checked_sub(1).map(|last| self.blocks[last].score),
            confusion,
        })
    }

    /// Largest accuracy over all thresholds. Chosen on the same records, so it is biased upwards.
    #[must_use]
    pub fn best_accuracy(&self) -> f64 {
        (0..=self.blocks.len()).map(|k| self.confusion(k).accuracy()).fold(0.0, f64::max)
    }

    /// Largest advantage (true minus false-positive rate) over all thresholds. Chosen on the same records, so it is
    /// biased upwards; at least 0.
    #[must_use]
    pub fn best_advantage(&self) -> f64 {
        (0..=self.blocks.len()).map(|k| self.confusion(k).advantage()).fold(0.0, f64::max)
    }

    /// Interval of the AUC after DeLong, on the log-odds scale so that it stays inside `[0, 1]`.
    ///
    /// Asymptotic; assumes independent records. When every pair agrees (AUC 0 or 1, or nothing but ties) the
    /// estimated variance is 0 and would claim certainty: then the exact binomial limit of
    /// `min(members, non_members)` disjoint pairs is given. With a single member or non-member the interval is
    /// `[0, 1]`.
    ///
    /// # Source
    /// DeLong, DeLong & Clarke-Pearson, *Biometrics* 44, 1988; in `O(n)` after sorting, by counts per block.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `confidence` is strictly between 0 and 1.
    pub fn auc_interval(&self, confidence: f64) -> Result<Interval, Error> {
        let alpha = 1.0 - checked_confidence(confidence)?;
        let value = self.auc();
        let interval = |low, high| Interval { value, low, high, confidence };
        if self.members < 2 || self.non_members < 2 {
            return Ok(interval(0.0, 1.0));
        }
        let variance = self.auc_variance();
        if variance <= 0.0 {
            let doubt = upper_limit(0, self.members.min(self.non_members), alpha / 2.0);
            return Ok(if value > 0.75 {
                interval(1.0 - doubt, 1.0)
            } else if value < 0.25 {
                interval(0.0, doubt)
            } else {
                interval(0.5f64.mul_add(-doubt, 0.5), 0.5f64.mul_add(doubt, 0.5))
            });
        }
        let log_odds = (value / (1.0 - value)).ln();
        let width = normal::quantile(1.0 - alpha / 2.0) * variance.sqrt() / (value * (1.0 - value));
        let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
        Ok(interval(logistic(log_odds - width), logistic(log_odds + width)))
    }

    /// DeLong's variance of the AUC. Needs two members and two non-members.
    pub(crate) fn auc_variance(&self) -> f64 {
        let (members, non_members, auc) = (real(self.members), real(self.non_members), self.auc());
        let (mut above, mut below) = (0, self.non_members);
        let (mut member_squares, mut non_member_squares) = (0.0, 0.0);
        for (inside, outside) in self.steps() {
            below -= outside;
            let beats = 0.5f64.mul_add(real(outside), real(below)) / non_members - auc;
            let beaten = 0.5f64.mul_add(real(inside), real(above)) / members - auc;
            member_squares += real(inside) * beats * beats;
            non_member_squares += real(outside) * beaten * beaten;
            above += inside;
        }
        member_squares / ((members - 1.0) * members)
            + non_member_squares / ((non_members - 1.0) * non_members)
    }

    /// Percentile bootstrap interval of the AUC: members and non-members are drawn anew, separately, `resamples` times.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for the confidence, [`Error::TooFew`] under 100 resamples.
    pub fn auc_bootstrap(
        &self,
        confidence: f64,
        resamples: usize,
        seed: Seed,
    ) -> Result<Interval, Error> {
        checked_confidence(confidence)?;
        let mut block_of = [Vec::new(), Vec::new()];
        for (block, (members, non_members)) in self.steps().enumerate() {
            block_of[1].extend((0..members).map(|_| block));
            block_of[0].extend((0..non_members).map(|_| block));
        }
        let mut counts = vec![[0_u64; 2]; self.blocks.len()];
        let mut rng = seed.rng();
        let aucs = (0..resamples).map(|_| {
            counts.fill([0, 0]);
            for (side, blocks) in block_of.iter().enumerate() {
                for _ in 0..blocks.len() {
                    counts[blocks[below(&mut rng, blocks.len())]][side] += 1;
                }
            }
            let (mut above, mut halves) = (0_u64, 0.0);
            for &[non_members, members] in &counts {
                halves += real(non_members) * real(2 * above + members);
                above += members;
            }
            halves / (2.0 * real(self.members) * real(self.non_members))
        });
        crate::interval::percentile(self.auc(), aucs.collect(), confidence)
    }

    /// At most about `2 * per_scale + 2` points of the curve, for drawing on linear and on log-log axes: `(0, 0)`,
    /// `(1, 1)`, and the point with the largest false-positive rate not above each of `per_scale` evenly spaced and
    /// `per_scale` logarithmically spaced rates down to one non-member. Every point is a point of the full curve.
    #[must_use]
    pub fn curve(&self, per_scale: u32) -> Vec<CurvePoint> {
        let all = real(self.non_members);
        let mut accepted = vec![0, self.blocks.len()];
        for i in 0..per_scale {
            let part = f64::from(i) / f64::from(per_scale);
            for fpr in [part, all.powf(-part)] {
                accepted.push(
                    self.blocks
                        .partition_point(|block| f64::from(block.false_positives) / all <= fpr),
                );
            }
        }
        accepted.sort_unstable();
        accepted.dedup();
        let points = accepted.into_iter().map(|blocks| {
            let confusion = self.confusion(blocks);
            (confusion.false_positive_rate(), confusion.true_positive_rate())
        });
        points.collect()
    }

    /// Corners of the concave hull of the curve, from `(0, 0)` to `(1, 1)`: what thresholds with randomisation can
    /// reach. On few records it is biased upwards, so no area is computed from it.
    #[must_use]
    pub fn hull(&self) -> Vec<CurvePoint> {
        let mut corners: Vec<(i128, i128)> = vec![(0, 0)];
        for block in &self.blocks {
            let next = (i128::from(block.false_positives), i128::from(block.true_positives));
            while let [.., a, b] = corners[..] {
                // Keep b only if the curve bends down there.
                if (b.0 - a.0) * (next.1 - a.1) < (next.0 - a.0) * (b.1 - a.1) {
                    break;
                }
                corners.pop();
            }
            corners.push(next);
        }
        #[expect(clippy::cast_precision_loss, reason = "counts are below 2^53")]
        let points = corners
            .into_iter()
            .map(|(fp, tp)| (fp as f64 / real(self.non_members), tp as f64 / real(self.members)));
        points.collect()
    }
}

/// A uniform integer below `bound` (Lemire 2019, without bias).
#[expect(
    clippy::cast_possible_truncation,
    reason = "the high word of a product below bound * 2^64"
)]
pub(crate) fn below(rng: &mut impl Rng, bound: usize) -> usize {
    let bound = bound as u64;
    loop {
        let product = u128::from(rng.next_u64()) * u128::from(bound);
        if product as u64 >= bound.wrapping_neg() % bound {
            return (product >> 64) as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 30,000 draws below 3: a share off by 0.02 has probability below 1e-10 each (Hoeffding).
    #[test]
    fn integers_below_a_bound_are_equally_likely() {
        let mut rng = Seed::root(1).rng();
        let mut counts = [0_u32; 3];
        for _ in 0..30_000 {
            counts[below(&mut rng, 3)] += 1;
        }
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 600), "{counts:?}");
    }
}
