//! Layers without parameters.
use super::{Misfit, Operation, Read, Scratch, only};
use crate::kernels::{self, Write};
use serde::{Deserialize, Serialize};

/// A function applied to a record's numbers, in place. Gradients are computed from its outputs alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Activation {
    /// Hyperbolic tangent.
    Tanh,
    /// `max(x, 0)`.
    Relu,
    /// `x`, or `slope x` below 0.
    LeakyRelu {
        /// Above 0.
        slope: f32,
    },
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// `e^x_i / sum_j e^x_j` over the record's numbers. Not before a cross-entropy, which contains it.
    Softmax,
}
impl Activation {
    /// Replaces each row of `width` inputs by its outputs.
    pub fn forward(self, values: &mut [f32], width: usize) {
        match self {
            Self::Tanh => kernels::tanh(values),
            Self::Relu => kernels::relu(values),
            Self::LeakyRelu { slope } => kernels::leaky_relu(values, slope),
            Self::Sigmoid => kernels::sigmoid(values),
            Self::Softmax => kernels::softmax_rows(values, width, |_, _, _| ()),
        }
    }
    /// Replaces the gradient with respect to the outputs by that with respect to the inputs.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn backward(self, gradient: &mut [f32], outputs: &[f32], width: usize) {
        match self {
            Self::Tanh => kernels::tanh_gradient(gradient, outputs),
            Self::Relu => kernels::relu_gradient(gradient, outputs),
            Self::LeakyRelu { slope } => kernels::leaky_relu_gradient(gradient, outputs, slope),
            Self::Sigmoid => kernels::sigmoid_gradient(gradient, outputs),
            Self::Softmax => {
                assert_eq!(gradient.len(), outputs.len());
                for (g, y) in gradient.chunks_exact_mut(width).zip(outputs.chunks_exact(width)) {
                    let mean = kernels::dot(g, y) as f32;
                    for (g, y) in g.iter_mut().zip(y) {
                        *g = y * (*g - mean);
                    }
                }
            }
        }
    }
}

impl Operation for Activation {
    fn output_shape(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, Misfit> {
        only(inputs).map(<[_]>::to_vec)
    }
    fn forward(&self, read: &Read<'_>, output: &mut [f32], _: &mut Scratch) {
        output.copy_from_slice(read.inputs[0]);
        (*self).forward(output, row_width(read));
    }
    /// Called only where the function could not be applied in place, so its outputs are computed anew.
    fn input_gradient(
        &self,
        read: &Read<'_>,
        _: usize,
        gradient: &[f32],
        out: &mut [f32],
        write: Write,
        scratch: &mut Scratch,
    ) {
        let (outputs, product) = (&mut scratch.columns, &mut scratch.products);
        outputs.clear();
        outputs.extend_from_slice(read.inputs[0]);
        (*self).forward(outputs, row_width(read));
        product.clear();
        product.extend_from_slice(gradient);
        (*self).backward(product, outputs, row_width(read));
        match write {
            Write::Overwrite => out.copy_from_slice(product),
            Write::Accumulate => kernels::axpy(out, 1.0, product),
        }
    }
}

/// Numbers of one record.
fn row_width(read: &Read<'_>) -> usize {
    read.shapes[0].iter().product::<usize>().max(1)
}
