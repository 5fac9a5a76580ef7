//! The linear layer, on numbers and on bits.
use super::{Kept, Misfit, Operation, Read, Scratch, only};
use crate::kernels::{self, Matrix, RowLists, Write};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// `y = x W + b`. Parameters lie as `W` row-major `[inputs, outputs]`, then `b` `[outputs]`.
///
/// Row `i` of `W` belongs to input `i`, so for an input of zeros and ones `x W` is a sum of rows of `W`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Linear {
    /// Numbers per record going in.
    pub inputs: usize,
    /// Numbers per record coming out.
    pub outputs: usize,
}

/// What a linear layer reads: numbers, or for each record the list of inputs that are 1.
#[derive(Debug, Clone, Copy)]
pub enum LinearInput<'a> {
    /// Row-major `[records, inputs]`.
    Numbers(&'a [f32]),
    /// Inputs that are 1, by record, and the records in which each input is 1.
    Ones {
        /// One list per record.
        by_record: &'a RowLists,
        /// One list per input.
        by_input: &'a RowLists,
    },
}

impl Linear {
    /// Weights and biases.
    #[must_use]
    pub const fn parameter_count(&self) -> usize {
        self.inputs.saturating_add(1).saturating_mul(self.outputs)
    }
    /// `outputs = x W + b`.
    ///
    /// # Shapes
    /// `parameters`: [`Self::parameter_count`]; `outputs`: `[records, outputs]`.
    ///
    /// # Panics
    /// If a shape does not fit; so do the other functions.
    pub fn forward(&self, parameters: &[f32], input: LinearInput<'_>, outputs: &mut [f32]) {
        let (weights, bias) = parameters.split_at(self.inputs * self.outputs);
        for row in outputs.chunks_exact_mut(self.outputs) {
            row.copy_from_slice(bias);
        }
        match input {
            LinearInput::Numbers(values) => {
                let records = outputs.len() / self.outputs;
                kernels::matmul(
                    Matrix::new(values, records, self.inputs),
                    Matrix::new(weights, self.inputs, self.outputs),
                    outputs,
                    Write::Accumulate,
                );
            }
            LinearInput::Ones { by_record, .. } => {
                kernels::sum_listed_rows(
                    by_record,
                    0,
                    weights,
                    self.outputs,
                    outputs,
                    Write::Accumulate,
                );
            }
        }
    }
    /// `input_gradient = g W^T`, or `+=`, from the gradient `g` with respect to the outputs.
    ///
    /// # Panics
    /// If a shape does not fit.
    pub fn input_gradient(
        &self,
        parameters: &[f32],
        gradient: &[f32],
        input_gradient: &mut [f32],
        write: Write,
    ) {
        let weights = &parameters[..self.inputs * self.outputs];
        let records = gradient.len() / self.outputs;
        kernels::matmul(
            Matrix::new(gradient, records, self.outputs),
            Matrix::new(weights, self.inputs, self.outputs).transposed(),
            input_gradient,
            write,
        );
    }
    /// The gradient with respect to the parameters, summed over records: `x^T g`, then the column sums of `g`; of these
    /// `inputs + 1` rows those in `rows`.
    ///
    /// # Panics
    /// If a shape does not fit.
    pub fn parameter_gradient(
        &self,
        input: LinearInput<'_>,
        gradient: &[f32],
        rows: Range<usize>,
        parameter_gradient: &mut [f32],
        write: Write,
    ) {
        let of_weights = rows.start..rows.end.min(self.inputs);
        let (weights, bias) = parameter_gradient.split_at_mut(of_weights.len() * self.outputs);
        match input {
            LinearInput::Numbers(values) => {
                let records = gradient.len() / self.outputs;
                kernels::matmul(
                    Matrix::new(values, records, self.inputs).columns(of_weights).transposed(),
                    Matrix::new(gradient, records, self.outputs),
                    weights,
                    write,
                );
            }
            LinearInput::Ones { by_input, .. } => {
                let first = of_weights.start;
                kernels::sum_listed_rows(by_input, first, gradient, self.outputs, weights, write);
            }
        }
        if rows.end > self.inputs {
            if write == Write::Overwrite {
                bias.fill(0.0);
            }
            kernels::sum_rows(gradient, bias);
        }
    }
    /// Adds to `squared_norms` each record's squared norm of its own parameter gradient.
    ///
    /// One record's gradient is the outer product of its input `a` and its output gradient `b`, and `b` for the
    /// bias; so the squared norm is `|a|^2 |b|^2 + |b|^2` and the gradient need not be formed.
    ///
    /// # Source
    /// Goodfellow, *Efficient Per-Example Gradient Computations*, 2015 (arXiv:1510.01799v2), section 4.
    ///
    /// # Panics
    /// If a shape does not fit.
    pub fn add_squared_gradient_norms(
        &self,
        input: LinearInput<'_>,
        gradient: &[f32],
        squared_norms: &mut [f64],
    ) {
        for (i, (norm, b)) in
            squared_norms.iter_mut().zip(gradient.chunks_exact(self.outputs)).enumerate()
        {
            let input_norm = match input {
                LinearInput::Numbers(values) => {
                    kernels::squared_norm(&values[i * self.inputs..(i + 1) * self.inputs])
                }
                LinearInput::Ones { by_record, .. } => by_record.length(i) as f64,
            };
            *norm += kernels::squared_norm(b) * (input_norm + 1.0);
        }
    }
}

impl Operation for Linear {
    fn output_shape(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, Misfit> {
        if self.inputs == 0 || self.outputs == 0 {
            return Err(Misfit::new("a width above 0"));
        }
        if only(inputs)? != [self.inputs] {
            return Err(Misfit::new(format!("[{}]", self.inputs)));
        }
        Ok(vec![self.outputs])
    }
    fn parameter_groups(&self) -> Vec<(usize, bool)> {
        vec![(self.inputs.saturating_mul(self.outputs), true), (self.outputs, false)]
    }
    fn forward(&self, read: &Read<'_>, output: &mut [f32], _: &mut Scratch) {
        self.forward(read.parameters, LinearInput::Numbers(read.inputs[0]), output);
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
        self.input_gradient(read.parameters, gradient, out, write);
    }
    fn parameter_gradient(
        &self,
        read: &Read<'_>,
        gradient: &[f32],
        out: &mut [f32],
        write: Write,
        _: &mut Scratch,
    ) {
        let input = LinearInput::Numbers(read.inputs[0]);
        self.parameter_gradient(input, gradient, 0..self.inputs + 1, out, write);
    }
    fn add_squared_gradient_norms(
        &self,
        read: &Read<'_>,
        gradient: &[f32],
        squared_norms: &mut [f64],
        _: &mut Kept,
        _: &mut Scratch,
    ) {
        self.add_squared_gradient_norms(
            LinearInput::Numbers(read.inputs[0]),
            gradient,
            squared_norms,
        );
    }
}
