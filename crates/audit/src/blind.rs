//! Blind baseline: can members be told from non-members without the model?
//!
//! If they can, the two were drawn from different laws, and no membership figure on them measures what the model gives away.
use crate::binomial::real;
use crate::error::confidence as checked_confidence;
use crate::interval::Interval;
use crate::roc::below;
use crate::{Error, Evidence, Roc, normal};
use dosimeter_data::{Dataset, Inputs, RecordId, Seed};
use serde::{Deserialize, Serialize};

/// Fewest members, and non-members, that leave two of each on either side of a fold.
pub const LEAST: usize = 4;

/// How well membership is told from a record's own values and label.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// AUC on records held out of fitting, mean of both folds; its interval after DeLong.
    pub auc: Interval,
    /// Judged members.
    pub members: u64,
    /// Judged non-members.
    pub non_members: u64,
    /// Whether the interval lies above 0.5: then the candidates are not a fair test of the model.
    pub told_apart: bool,
}

/// Fits naive Bayes (log-odds of each bit, a Gaussian for each real, the label as a category; both kinds equally likely
/// beforehand) on one half of the records and scores the other half, then the other way round. Halves are drawn by `seed`, with
/// the same share of members. `member` belongs to `records`, entry by entry.
///
/// Sees differences in single inputs, not those that only several inputs together show: a clean result does not prove that
/// there is no difference. The interval treats the two folds as
/// one figure: it is too wide if anything.
///
/// Takes time linear in `records * inputs`.
///
/// # Errors
/// [`Error::Length`] if the lists differ in length, [`Error::NoSuchRow`], [`Error::DuplicateRecord`], [`Error::TooFew`] under
/// [`LEAST`] members or non-members, [`Error::OutOfRange`] for the confidence.
pub fn baseline(
    dataset: &Dataset,
    records: &[RecordId],
    member: &[bool],
    confidence: f64,
    seed: Seed,
) -> Result<Baseline, Error> {
    let alpha = 1.0 - checked_confidence(confidence)?;
    if records.len() != member.len() {
        return Err(Error::Length { what: "membership", needed: records.len(), got: member.len() });
    }
    if let Some(&record) = records.iter().find(|record| record.0 as usize >= dataset.len()) {
        return Err(Error::NoSuchRow { record, rows: dataset.len() });
    }
    let mut ids = records.to_vec();
    ids.sort_unstable();
    if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::DuplicateRecord { record: pair[0] });
    }
    let folds = halves(records, member, seed)?;
    let rocs = [(0, 1), (1, 0)].map(|(fitted, judged)| {
        let classifier = Classifier::fit(dataset, &folds[fitted]);
        Roc::of(&Evidence {
            rows: folds[judged]
                .iter()
                .map(|&(record, member)| (record, classifier.score(dataset, record), member))
                .collect(),
            not_assessable: Vec::new(),
        })
    });
    let [first, second] = rocs;
    let (first, second) = (first?, second?);
    let value = 0.5 * (first.auc() + second.auc());
    // Where there is nothing to learn both areas come down to the same product of the two halves' chance differences: they are
    // one figure, not two, and averaging them narrows nothing.
    let deviation = 0.5 * (first.auc_variance().sqrt() + second.auc_variance().sqrt());
    let half = normal::quantile(1.0 - alpha / 2.0) * deviation;
    let auc =
        Interval { value, low: (value - half).max(0.0), high: (value + half).min(1.0), confidence };
    Ok(Baseline {
        auc,
        members: first.members() + second.members(),
        non_members: first.non_members() + second.non_members(),
        told_apart: auc.low > 0.5,
    })
}

type Fold = Vec<(RecordId, bool)>;

fn halves(records: &[RecordId], member: &[bool], seed: Seed) -> Result<[Fold; 2], Error> {
    let mut rng = seed.child("blind").rng();
    let mut folds = [Vec::new(), Vec::new()];
    for kind in [true, false] {
        let mut of_kind: Vec<RecordId> = records
            .iter()
            .zip(member)
            .filter(|(_, member)| **member == kind)
            .map(|(record, _)| *record)
            .collect();
        if of_kind.len() < LEAST {
            return Err(Error::TooFew {
                what: if kind {
                    "members of a blind baseline"
                } else {
                    "non-members of a blind baseline"
                },
                needed: LEAST,
                got: of_kind.len(),
            });
        }
        for last in (1..of_kind.len()).rev() {
            of_kind.swap(last, below(&mut rng, last + 1));
        }
        for (place, record) in of_kind.into_iter().enumerate() {
            folds[place % 2].push((record, kind));
        }
    }
    Ok(folds)
}

/// Naive Bayes of members against non-members.
struct Classifier {
    inputs: InputModel,
    /// Log-odds of membership for each label.
    labels: Vec<f64>,
}
enum InputModel {
    /// Score of the all-zero row, and what each set bit adds.
    Bits { zeros: f64, per_bit: Vec<f64> },
    /// `a x^2 + b x + c` of each input.
    Reals(Vec<[f64; 3]>),
}

/// `ln` of the ratio of two smoothed frequencies.
fn log_odds((inside, members): (u64, u64), (outside, non_members): (u64, u64), levels: u64) -> f64 {
    let smoothed = |count, of| (real(count) + 1.0) / (real(of) + real(levels));
    (smoothed(inside, members) / smoothed(outside, non_members)).ln()
}

impl Classifier {
    fn fit(dataset: &Dataset, fold: &Fold) -> Self {
        let members = fold.iter().filter(|row| row.1).count() as u64;
        let totals = [fold.len() as u64 - members, members];
        let mut labels = vec![[0_u64; 2]; dataset.classes];
        for &(record, member) in fold {
            if let Some(count) = labels.get_mut(dataset.labels[record.0 as usize] as usize) {
                count[usize::from(member)] += 1;
            }
        }
        let labels = labels
            .into_iter()
            .map(|[out, inside]| {
                log_odds((inside, totals[1]), (out, totals[0]), dataset.classes as u64)
            })
            .collect();
        let inputs = match &dataset.inputs {
            Inputs::Bits(bits) => {
                let mut set = vec![[0_u64; 2]; bits.width];
                for &(record, member) in fold {
                    for_each_bit(bits.row(record.0 as usize), |bit| {
                        if let Some(count) = set.get_mut(bit) {
                            count[usize::from(member)] += 1;
                        }
                    });
                }
                let mut zeros = 0.0;
                let mut per_bit = Vec::with_capacity(bits.width);
                for [out, inside] in set {
                    let clear =
                        log_odds((totals[1] - inside, totals[1]), (totals[0] - out, totals[0]), 2);
                    zeros += clear;
                    per_bit.push(log_odds((inside, totals[1]), (out, totals[0]), 2) - clear);
                }
                InputModel::Bits { zeros, per_bit }
            }
            numbers => InputModel::Reals(gaussians(numbers, fold)),
        };
        Self { inputs, labels }
    }

    fn score(&self, dataset: &Dataset, record: RecordId) -> f64 {
        let row = record.0 as usize;
        let label = self.labels.get(dataset.labels[row] as usize).copied().unwrap_or(0.0);
        label
            + match (&self.inputs, &dataset.inputs) {
                (InputModel::Bits { zeros, per_bit }, Inputs::Bits(bits)) => {
                    let mut score = *zeros;
                    for_each_bit(bits.row(row), |bit| {
                        score += per_bit.get(bit).copied().unwrap_or(0.0);
                    });
                    score
                }
                (InputModel::Reals(curves), numbers) => {
                    let mut values = Vec::with_capacity(curves.len());
                    numbers.append_row(row, &mut values);
                    let parabola = |(&x, [a, b, c]): (&f32, &[f64; 3])| {
                        let x = f64::from(x);
                        a.mul_add(x, *b).mul_add(x, *c)
                    };
                    values.iter().zip(curves).map(parabola).sum()
                }
                (InputModel::Bits { .. }, _) => 0.0,
            }
    }
}

fn for_each_bit(row: &[u64], mut found: impl FnMut(usize)) {
    for (word, &bits) in row.iter().enumerate() {
        let mut rest = bits;
        while rest != 0 {
            found(word * 64 + rest.trailing_zeros() as usize);
            rest &= rest - 1;
        }
    }
}

/// Log-ratio of two normal densities per input, as a parabola. An input that never varies says nothing.
fn gaussians(numbers: &Inputs, fold: &Fold) -> Vec<[f64; 3]> {
    let mut sums = vec![[[0.0_f64; 2]; 2]; numbers.width()];
    let mut counts = [0.0_f64; 2];
    // Shifted by the first row, so that squares of far-off inputs lose no digits.
    let mut values = Vec::with_capacity(numbers.width());
    if let Some((record, _)) = fold.first() {
        numbers.append_row(record.0 as usize, &mut values);
    }
    let shift: Vec<f64> = values.iter().map(|&x| f64::from(x)).collect();
    for &(record, member) in fold {
        let kind = usize::from(member);
        counts[kind] += 1.0;
        values.clear();
        numbers.append_row(record.0 as usize, &mut values);
        for ((sum, &x), base) in sums.iter_mut().zip(&values).zip(&shift) {
            let x = f64::from(x) - base;
            sum[kind][0] += x;
            sum[kind][1] += x * x;
        }
    }
    sums.iter()
        .zip(&shift)
        .map(|(sum, base)| {
            let mean = [0, 1].map(|kind| sum[kind][0] / counts[kind]);
            let spread = [0, 1].map(|k| mean[k].mul_add(-mean[k], sum[k][1] / counts[k]).max(0.0));
            // A kind without spread in a small half must not rule everything else out: half of the pooled spread is shared.
            let pooled = 0.5f64.mul_add(spread[0] + spread[1], 0.25 * (mean[1] - mean[0]).powi(2));
            if pooled <= 0.0 {
                return [0.0; 3];
            }
            let spread = spread.map(|v| v.max(0.01 * pooled));
            let log_density = |kind: usize| {
                let (m, v) = (mean[kind] + base, spread[kind]);
                [-0.5 / v, m / v, -0.5 * (m * m / v + v.ln())]
            };
            let (inside, out) = (log_density(1), log_density(0));
            [inside[0] - out[0], inside[1] - out[1], inside[2] - out[2]]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dosimeter_data::BitMatrix;

    #[track_caller]
    fn near(got: f64, wanted: f64) {
        assert!((got - wanted).abs() < 1e-12, "got {got}, wanted {wanted}");
    }

    fn fold(members: &[u32], non_members: &[u32]) -> Fold {
        let of = |ids: &[u32], kind: bool| -> Fold {
            ids.iter().map(|id| (RecordId(*id), kind)).collect()
        };
        [of(members, true), of(non_members, false)].concat()
    }

    /// Three members and two non-members, one added to each count and two to each total:
    /// label 0: 2 and 0, so (3/5) / (1/4) = 2.4; label 1: 1 and 2, so (2/5) / (3/4) = 8/15;
    /// bit 3 set or clear as label 0 or 1; bit 67 set: 1 and 1, so (2/5) / (2/4) = 0.8, clear: (3/5) / (2/4) = 1.2;
    /// each of the 68 bits that nobody has: (4/5) / (3/4) = 16/15.
    #[test]
    fn bits_and_label_add_up_their_smoothed_log_odds() {
        let words = vec![8, 8, 8, 0, 0, 0, 0, 0, 0, 8];
        let bits = BitMatrix { rows: 5, width: 70, words };
        let data = Dataset::from_bits("made", bits, vec![0, 0, 1, 1, 1], 2).unwrap();
        let classifier = Classifier::fit(&data, &fold(&[0, 1, 2], &[3, 4]));
        let others = 68.0 * (16.0_f64 / 15.0).ln();
        near(classifier.score(&data, RecordId(0)), (2.4_f64 * 2.4 * 0.8).ln() + others);
        near(classifier.score(&data, RecordId(1)), (2.4_f64 * 2.4 * 1.2).ln() + others);
        let rare = 8.0_f64 / 15.0;
        near(classifier.score(&data, RecordId(3)), (rare * rare * 1.2).ln() + others);
        near(classifier.score(&data, RecordId(4)), (rare * rare * 0.8).ln() + others);
    }

    /// First input: members 1 and 3 (mean 2, variance 1), non-members 4 and 8 (6, 4). Second: never varies. Third: members 0 and
    /// 0, non-members 0 and 20 (10, 100); pooled 75, so the members' variance is lifted to a hundredth of it, 0.75.
    #[test]
    fn reals_add_up_their_log_ratios_of_two_normal_densities() {
        let bytes = vec![1, 7, 0, 3, 7, 0, 4, 7, 0, 8, 7, 20];
        let values = bytes.iter().map(|&b| f32::from(b)).collect();
        let data = Dataset::from_reals("made", 3, values, vec![0; 4], 1).unwrap();
        let classifier = Classifier::fit(&data, &fold(&[0, 1], &[2, 3]));
        let log_density = |x: f64, mean: f64, variance: f64| {
            -0.5 * ((x - mean).powi(2) / variance + variance.ln())
        };
        for (row, first, third) in [(0, 1.0, 0.0), (1, 3.0, 0.0), (2, 4.0, 0.0), (3, 8.0, 20.0)] {
            let wanted = log_density(first, 2.0, 1.0) - log_density(first, 6.0, 4.0)
                + log_density(third, 0.0, 0.75)
                - log_density(third, 10.0, 100.0);
            near(classifier.score(&data, RecordId(row)), wanted);
        }
        // Bytes are judged as the numbers they stand for.
        let values = bytes.iter().map(|&b| f32::from(b) / 20.0).collect();
        let scaled = Dataset::from_reals("made", 3, values, vec![0; 4], 1).unwrap();
        let inputs = Inputs::Bytes { width: 3, highest: 20, values: bytes };
        let names = vec!["0".into()];
        let images = Dataset::from_images("made", [1, 1, 3], inputs, vec![0; 4], names).unwrap();
        let members = fold(&[0, 1], &[2, 3]);
        let (of_bytes, of_reals) =
            (Classifier::fit(&images, &members), Classifier::fit(&scaled, &members));
        for row in (0..4).map(RecordId) {
            near(of_bytes.score(&images, row), of_reals.score(&scaled, row));
        }
    }

    #[test]
    fn both_halves_get_their_share_of_either_kind_and_every_record_once() {
        let records: Vec<RecordId> = (0..14).map(RecordId).collect();
        let member: Vec<bool> = (0..14).map(|i| i < 9).collect();
        let folds = halves(&records, &member, Seed::root(1)).unwrap();
        let kinds = |fold: &Fold| {
            let members = fold.iter().filter(|row| row.1).count();
            (members, fold.len() - members)
        };
        assert_eq!(folds.each_ref().map(kinds), [(5, 3), (4, 2)]);
        let mut all = folds.concat();
        all.sort_unstable();
        let wanted: Fold = records.iter().copied().zip(member.iter().copied()).collect();
        assert_eq!(all, wanted);
        assert_ne!(folds, halves(&records, &member, Seed::root(2)).unwrap());
    }

    /// Members have the one bit, non-members have not: told apart without a mistake in both halves.
    #[test]
    fn a_bit_that_is_membership_is_found_and_every_record_counted() {
        let member: Vec<bool> = (0..20).map(|i| i < 12).collect();
        let words = member.iter().map(|m| u64::from(*m)).collect();
        let data =
            Dataset::from_bits("made", BitMatrix { rows: 20, width: 1, words }, vec![0; 20], 1)
                .unwrap();
        let records: Vec<RecordId> = (0..20).map(RecordId).collect();
        let found = baseline(&data, &records, &member, 0.95, Seed::root(1)).unwrap();
        near(found.auc.value, 1.0);
        assert_eq!((found.members, found.non_members, found.told_apart), (12, 8, true));
    }
}
