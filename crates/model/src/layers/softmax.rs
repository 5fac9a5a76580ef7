//! Softmax along one axis.
use super::{Misfit, Operation, Read, Scratch, only};
use crate::kernels::{self, Write};
use serde::{Deserialize, Serialize};

/// `e^x_i / sum_j e^x_j` along one axis of a record's shape, or its logarithm. Not before a cross-entropy, which
/// contains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Softmax {
    /// Which axis.
    pub axis: usize,
    /// Whether logarithms are given.
    pub logarithm: bool,
}

impl Operation for Softmax {
    fn output_shape(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, Misfit> {
        let input = only(inputs)?;
        if self.axis < input.len() {
            Ok(input.to_vec())
        } else {
            Err(Misfit::new(format!("a shape with an axis {}", self.axis)))
        }
    }
    fn forward(&self, read: &Read<'_>, output: &mut [f32], scratch: &mut Scratch) {
        let (length, stride) = self.extent(read);
        let row = &mut scratch.columns;
        for_each_line(output.len(), length, stride, |start| {
            row.clear();
            row.extend((0..length).map(|i| read.inputs[0][start + i * stride]));
            let (mut largest, mut sum) = (0.0, 0.0);
            kernels::softmax_rows(row, length, |_, l, s| (largest, sum) = (l, s));
            let shift = largest + libm::logf(sum);
            for (i, y) in row.iter().enumerate() {
                let at = start + i * stride;
                output[at] = if self.logarithm { read.inputs[0][at] - shift } else { *y };
            }
        });
    }
    fn input_gradient(
        &self,
        read: &Read<'_>,
        _: usize,
        gradient: &[f32],
        out: &mut [f32],
        write: Write,
        scratch: &mut Scratch,
    ) {
        if write == Write::Overwrite {
            out.fill(0.0);
        }
        let (length, stride) = self.extent(read);
        let row = &mut scratch.columns;
        for_each_line(out.len(), length, stride, |start| {
            row.clear();
            row.extend((0..length).map(|i| read.inputs[0][start + i * stride]));
            kernels::softmax_rows(row, length, |_, _, _| ());
            let along = row.iter().enumerate().map(|(i, y)| (start + i * stride, *y));
            let weighted =
                |(at, y): (usize, f32)| gradient[at] * if self.logarithm { 1.0 } else { y };
            let sum: f32 = along.clone().map(weighted).sum();
            for (at, y) in along {
                let g = gradient[at];
                out[at] += if self.logarithm { sum.mul_add(-y, g) } else { y * (g - sum) };
            }
        });
    }
}
impl Softmax {
    /// Numbers along the axis, and how far they lie apart.
    fn extent(&self, read: &Read<'_>) -> (usize, usize) {
        let shape = read.shapes[0];
        (shape[self.axis], shape[self.axis + 1..].iter().product())
    }
}

/// Calls `line` with the first place of each line along an axis.
fn for_each_line(numbers: usize, length: usize, stride: usize, mut line: impl FnMut(usize)) {
    for block in (0..numbers).step_by(length * stride) {
        for inner in 0..stride {
            line(block + inner);
        }
    }
}
