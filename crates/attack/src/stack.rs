//! Dense layers with leaky rectifiers and dropout: the small parts of the white-box network.
use crate::dropout::fill_mask;
use dosimeter_model::layers::LinearInput;
use dosimeter_model::{Activation, Linear, kernels};
use rand_core::Rng;

/// The activation of every hidden layer.
pub(crate) const ACTIVATION: Activation = Activation::LeakyRelu { slope: 0.1 };

/// Training draws dropout masks; prediction does not.
#[derive(Debug)]
pub(crate) enum Mode<'a, R> {
    Train { dropout: f32, rng: &'a mut R },
    Predict,
}

/// One dense layer: its width, whether an activation follows, whether dropout follows that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Width {
    pub(crate) outputs: usize,
    pub(crate) activation: bool,
    pub(crate) dropout: bool,
}

#[derive(Debug, Clone)]
struct Layer {
    linear: Linear,
    /// First parameter in the network's slice.
    offset: usize,
    width: Width,
    /// `[rows, outputs]` after activation and dropout.
    outputs: Vec<f32>,
    /// `[rows, outputs]` factors of the last training pass.
    mask: Vec<f32>,
    /// `[rows, outputs]`, of the loss with respect to `outputs` and then to what the linear layer gave.
    gradient: Vec<f32>,
}

/// Dense layers in sequence, over a range of a slice of parameters that they do not own.
#[derive(Debug, Clone)]
pub(crate) struct Stack {
    layers: Vec<Layer>,
}
impl Stack {
    /// Takes its parameters from `offset` on and moves `offset` behind them.
    pub(crate) fn new(inputs: usize, widths: &[Width], offset: &mut usize) -> Self {
        let mut before = inputs;
        let mut layers = Vec::with_capacity(widths.len());
        for &width in widths {
            let linear = Linear { inputs: before, outputs: width.outputs };
            layers.push(Layer {
                linear,
                offset: *offset,
                width,
                outputs: Vec::new(),
                mask: Vec::new(),
                gradient: Vec::new(),
            });
            *offset += linear.parameter_count();
            before = width.outputs;
        }
        Self { layers }
    }
    /// Weights uniform with variance `2 / inputs` (He et al. 2015), biases 0.
    pub(crate) fn initialise(&self, parameters: &mut [f32], rng: &mut impl Rng) {
        for layer in &self.layers {
            let weights = layer.linear.inputs * layer.linear.outputs;
            let range = layer.offset..layer.offset + layer.linear.parameter_count();
            let (weights, bias) = parameters[range].split_at_mut(weights);
            fill_uniform(weights, 2.0 / layer.linear.inputs as f64, rng);
            bias.fill(0.0);
        }
    }
    /// Outputs `[rows, width of the last layer]` for `input` `[rows, inputs]`.
    pub(crate) fn forward<R: Rng>(
        &mut self,
        parameters: &[f32],
        input: &[f32],
        mode: &mut Mode<'_, R>,
    ) -> &[f32] {
        let rows = self.layers.first().map_or(0, |l| input.len() / l.linear.inputs);
        for i in 0..self.layers.len() {
            let (before, rest) = self.layers.split_at_mut(i);
            let input = before.last().map_or(input, |l| l.outputs.as_slice());
            let layer = &mut rest[0];
            layer.outputs.resize(rows * layer.width.outputs, 0.0);
            let range = layer.offset..layer.offset + layer.linear.parameter_count();
            layer.linear.forward(
                &parameters[range],
                LinearInput::Numbers(input),
                &mut layer.outputs,
            );
            if layer.width.activation {
                ACTIVATION.forward(&mut layer.outputs, layer.width.outputs);
            }
            if layer.width.dropout {
                drop_out(&mut layer.outputs, &mut layer.mask, mode);
            }
        }
        self.layers.last().map_or(&[], |l| &l.outputs)
    }
    /// Writes the gradient of its own parameters into `parameter_gradient` and adds that of its input to `input_gradient`.
    ///
    /// `gradient` is that of the outputs of the last training pass, whose input was `input`.
    pub(crate) fn backward(
        &mut self,
        parameters: &[f32],
        input: &[f32],
        gradient: &[f32],
        parameter_gradient: &mut [f32],
        input_gradient: Option<&mut [f32]>,
    ) {
        let last = self.layers.len() - 1;
        self.layers[last].gradient.clear();
        self.layers[last].gradient.extend_from_slice(gradient);
        for i in (0..=last).rev() {
            let (before, rest) = self.layers.split_at_mut(i);
            let layer = &mut rest[0];
            if layer.width.dropout {
                multiply(&mut layer.gradient, &layer.mask);
            }
            if layer.width.activation {
                // Dropped outputs are 0 and so is their gradient; the others have kept their sign.
                ACTIVATION.backward(&mut layer.gradient, &layer.outputs, layer.width.outputs);
            }
            let range = layer.offset..layer.offset + layer.linear.parameter_count();
            layer.linear.parameter_gradient(
                LinearInput::Numbers(before.last().map_or(input, |l| l.outputs.as_slice())),
                &layer.gradient,
                0..layer.linear.inputs + 1,
                &mut parameter_gradient[range.clone()],
                kernels::Write::Overwrite,
            );
            let parameters = &parameters[range];
            if let Some(before) = before.last_mut() {
                before.gradient.resize(before.outputs.len(), 0.0);
                let write = kernels::Write::Overwrite;
                layer.linear.input_gradient(
                    parameters,
                    &layer.gradient,
                    &mut before.gradient,
                    write,
                );
            }
        }
        if let Some(out) = input_gradient {
            let first = &self.layers[0];
            let range = first.offset..first.offset + first.linear.parameter_count();
            let write = kernels::Write::Accumulate;
            first.linear.input_gradient(&parameters[range], &first.gradient, out, write);
        }
    }
}

/// In training: draws a mask and multiplies by it.
pub(crate) fn drop_out<R: Rng>(values: &mut [f32], mask: &mut Vec<f32>, mode: &mut Mode<'_, R>) {
    if let Mode::Train { dropout, rng } = mode {
        mask.resize(values.len(), 0.0);
        fill_mask(mask, *dropout, *rng);
        multiply(values, mask);
    }
}

pub(crate) fn multiply(values: &mut [f32], factors: &[f32]) {
    for (value, factor) in values.iter_mut().zip(factors) {
        *value *= factor;
    }
}

/// Uniform numbers of mean 0 and the given variance.
pub(crate) fn fill_uniform(values: &mut [f32], variance: f64, rng: &mut impl Rng) {
    let limit = (3.0 * variance).sqrt();
    for value in values {
        let unit = (f64::from(rng.next_u32()) + 0.5) / 2_147_483_648.0 - 1.0;
        *value = (limit * unit) as f32;
    }
}
