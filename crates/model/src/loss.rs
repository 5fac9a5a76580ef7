//! Losses of one record, and their gradients with respect to the network's outputs.
use crate::{Error, Rows, kernels};
use serde::{Deserialize, Serialize};

/// What the outputs are compared with. The network's outputs are logits: softmax and sigmoid belong to the loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// `-ln softmax(outputs)[class]`, in nats.
    CrossEntropy,
    /// `-t ln s - (1 - t) ln(1 - s)` with `s = sigmoid(output)`, summed over outputs, in nats; targets in `[0, 1]`.
    BinaryCrossEntropy,
    /// `1/2 sum (output - target)^2`; a class stands for its one-hot vector.
    SquaredError,
}

/// The right answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Targets<'a> {
    /// One class per record, below the number of outputs.
    Classes(&'a [u32]),
    /// Row-major `[records, outputs]`.
    Values(&'a [f32]),
}

/// Records with their right answers and how answers are judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Examples<'a> {
    /// The inputs.
    pub rows: Rows<'a>,
    /// The right answers, as many as rows.
    pub targets: Targets<'a>,
    /// How answers are judged.
    pub loss: Loss,
}

impl Examples<'_> {
    /// Records `start..start + length`.
    pub(crate) fn block(&self, start: usize, length: usize, outputs: usize) -> Self {
        let rows = self.rows.block(start, length);
        Self { rows, targets: self.targets.block(start, length, outputs), loss: self.loss }
    }
}

impl Targets<'_> {
    /// Records `start..start + length`.
    pub(crate) fn block(&self, start: usize, length: usize, outputs: usize) -> Self {
        match *self {
            Self::Classes(c) => Self::Classes(&c[start..start + length]),
            Self::Values(v) => Self::Values(&v[start * outputs..(start + length) * outputs]),
        }
    }
    /// Whether these are targets for `records` records of a network with `outputs` outputs under `loss`.
    ///
    /// # Errors
    /// [`Error::TargetCount`], [`Error::ClassRange`] or [`Error::ClassesNeeded`].
    pub fn check(&self, loss: Loss, records: usize, outputs: usize) -> Result<(), Error> {
        let (needed, got) = match self {
            Self::Classes(c) => (records, c.len()),
            Self::Values(v) => (records * outputs, v.len()),
        };
        if needed != got {
            return Err(Error::TargetCount { records, needed, got });
        }
        match self {
            Self::Values(_) if loss == Loss::CrossEntropy => Err(Error::ClassesNeeded),
            Self::Values(_) => Ok(()),
            Self::Classes(classes) => match classes.iter().position(|c| *c as usize >= outputs) {
                None => Ok(()),
                Some(row) => Err(Error::ClassRange { row, class: classes[row], outputs }),
            },
        }
    }
}

impl Loss {
    /// Per-record losses of `outputs` (`[records, width]`), which become the gradients of those losses.
    ///
    /// Targets must have been checked.
    pub(crate) fn gradient(
        self,
        outputs: &mut [f32],
        width: usize,
        targets: Targets<'_>,
        losses: &mut Vec<f32>,
    ) {
        let target = |row: usize, output: usize| match targets {
            Targets::Classes(c) => f32::from(u8::from(c[row] as usize == output)),
            Targets::Values(v) => v[row * width + output],
        };
        match (self, targets) {
            (Self::CrossEntropy, Targets::Classes(classes)) => {
                let first = losses.len();
                losses
                    .extend(outputs.chunks_exact(width).zip(classes).map(|(z, c)| z[*c as usize]));
                let new = &mut losses[first..];
                kernels::softmax_rows(outputs, width, |row, largest, sum| {
                    new[row] = (largest - new[row]) + sum.ln();
                });
                for (row, class) in outputs.chunks_exact_mut(width).zip(classes) {
                    row[*class as usize] -= 1.0;
                }
            }
            // `check` refuses numbers as targets of the cross-entropy; losses stay one per record regardless.
            (Self::CrossEntropy, Targets::Values(_)) | (Self::SquaredError, _) => {
                for (row, values) in outputs.chunks_exact_mut(width).enumerate() {
                    let mut sum = 0.0;
                    for (output, value) in values.iter_mut().enumerate() {
                        *value -= target(row, output);
                        sum = value.mul_add(*value, sum);
                    }
                    losses.push(0.5 * sum);
                }
            }
            (Self::BinaryCrossEntropy, _) => {
                for (row, values) in outputs.chunks_exact_mut(width).enumerate() {
                    let mut sum = 0.0;
                    for (output, value) in values.iter_mut().enumerate() {
                        let (z, t) = (*value, target(row, output));
                        // ln(1 + e^z) - t z without overflow; NaN stays NaN.
                        let positive = if z < 0.0 { 0.0 } else { z };
                        sum += t.mul_add(-z, positive) + kernels::exp_of(-z.abs()).ln_1p();
                        *value = kernels::sigmoid_of(z) - t;
                    }
                    losses.push(sum);
                }
            }
        }
    }
}
