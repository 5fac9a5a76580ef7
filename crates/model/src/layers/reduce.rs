//! Sums and means over axes.
use super::combine::{Pairs, rows, rows_mut};
use super::{Misfit, Operation, Read, Scratch, only};
use crate::kernels::Write;
use serde::{Deserialize, Serialize};

/// Which number stands for many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
}

/// One number for all along some axes, which keep length 1. Over the last two axes of `[channels, height, width]` the
/// mean is known as global average pooling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reduce {
    /// Which number.
    pub reduction: Reduction,
    /// In ascending order, each once.
    pub axes: Vec<usize>,
}

impl Operation for Reduce {
    fn output_shape(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, Misfit> {
        let mut shape = only(inputs)?.to_vec();
        if !self.axes.is_sorted_by(|a, b| a < b) || self.axes.iter().any(|a| *a >= shape.len()) {
            return Err(Misfit::new(format!("a shape with the axes {:?}, ascending", self.axes)));
        }
        for axis in &self.axes {
            shape[*axis] = 1;
        }
        Ok(shape)
    }
    fn forward(&self, read: &Read<'_>, output: &mut [f32], _: &mut Scratch) {
        let (pairs, factor) = self.pairs(read);
        for (out, x) in rows_mut(output, read.records).zip(rows(read.inputs[0], read.records)) {
            out.fill(0.0);
            pairs.each_run(|_, [at, to], length, [_, step]| {
                let x = &x[at..at + length];
                if step == 0 {
                    out[to] += x.iter().map(|x| f64::from(*x)).sum::<f64>() as f32;
                } else {
                    for (out, x) in out[to..to + length].iter_mut().zip(x) {
                        *out += x;
                    }
                }
            });
            for out in out {
                *out *= factor;
            }
        }
    }
    fn input_gradient(
        &self,
        read: &Read<'_>,
        _: usize,
        gradient: &[f32],
        out: &mut [f32],
        write: Write,
        _: &mut Scratch,
    ) {
        if write == Write::Overwrite {
            out.fill(0.0);
        }
        let (pairs, factor) = self.pairs(read);
        for (out, g) in rows_mut(out, read.records).zip(rows(gradient, read.records)) {
            pairs.each_run(|_, [at, from], length, [_, step]| {
                for (i, out) in out[at..at + length].iter_mut().enumerate() {
                    *out += factor * g[from + i * step];
                }
            });
        }
    }
}
impl Reduce {
    /// Where the numbers lie and where they go, and by what their sum is multiplied.
    fn pairs(&self, read: &Read<'_>) -> (Pairs, f32) {
        let mut shape = read.shapes[0].to_vec();
        let mut numbers = 1;
        for axis in &self.axes {
            numbers *= shape[*axis];
            shape[*axis] = 1;
        }
        let factor = match self.reduction {
            Reduction::Sum => 1.0,
            Reduction::Mean => 1.0 / numbers as f32,
        };
        (Pairs::new(read.shapes[0], &shape), factor)
    }
}
