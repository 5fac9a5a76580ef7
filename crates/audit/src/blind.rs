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
            Inputs::Reals { width, values } => InputModel::Reals(gaussians(*width, values, fold)),
            _ => InputModel::Reals(Vec::new()),
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
                (InputModel::Reals(curves), Inputs::Reals { width, values }) => values
                    [row * width..(row + 1) * width]
                    .iter()
                    .zip(curves)
                    .map(|(&x, [a, b, c])| {
                        let x = f64::from(x);
                        a.mul_add(x, *b).mul_add(x, *c)
                    })
                    .sum(),
                _ => 0.0,
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
fn gaussians(width: usize, values: &[f32], fold: &Fold) -> Vec<[f64; 3]> {
    let mut sums = vec![[[0.0_f64; 2]; 2]; width];
    let mut counts = [0.0_f64; 2];
    // Shifted by the first row, so that squares of far-off inputs lose no digits.
    let shift: Vec<f64> = fold.first().map_or_else(Vec::new, |(record, _)| {
        let row = record.0 as usize;
        values[row * width..(row + 1) * width].iter().map(|&x| f64::from(x)).collect()
    });
    for &(record, member) in fold {
        let (row, kind) = (record.0 as usize, usize::from(member));
        counts[kind] += 1.0;
        for ((sum, &x), base) in
            sums.iter_mut().zip(&values[row * width..(row + 1) * width]).zip(&shift)
        {
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
