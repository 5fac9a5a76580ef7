//! Graphs without batch normalization, which cannot be trained record by record.
use crate::layers::{Affine, BatchNormalization, Layer, Normalization};
use crate::{Error, Graph, Value};

impl Graph {
    /// The same function, up to rounding, with batch normalizations folded into the convolutions and linear layers before
    /// them. One stays where what it reads is something else, or is read by others too.
    ///
    /// # Errors
    /// As [`Self::add`]; none are known to happen.
    pub fn fold_batch_normalization(&self) -> Result<Self, Error> {
        let mut readers = vec![0_usize; self.nodes().len() + 1];
        for value in self.nodes().iter().flat_map(|n| &n.inputs) {
            readers[value.position()] += 1;
        }
        // For each layer, the batch normalization it takes in.
        let mut taken: Vec<Option<BatchNormalization>> = vec![None; self.nodes().len()];
        let mut folds = vec![false; self.nodes().len()];
        for (i, node) in self.nodes().iter().enumerate() {
            let Layer::BatchNormalization(normalization) = node.layer else { continue };
            let Some(before) = node.inputs[0].position().checked_sub(1) else { continue };
            let weighted =
                matches!(self.nodes()[before].layer, Layer::Convolution(_) | Layer::Linear(_));
            folds[i] = weighted && readers[before + 1] == 1;
            if folds[i] {
                taken[before] = Some(normalization);
            }
        }
        self.rebuilt(|i| match &self.nodes()[i].layer {
            // It is put where its normalization was, so that the last layer stays the last.
            _ if taken[i].is_some() => None,
            Layer::BatchNormalization(n) if folds[i] => {
                let before = self.nodes()[i].inputs[0].position() - 1;
                let factors = n.affine(&self.parameters()[self.parameters_of(i)]);
                let (layer, parameters) = self.scaled(before, &factors);
                Some((layer, parameters, self.nodes()[before].inputs.clone()))
            }
            layer => Some((
                layer.clone(),
                self.parameters()[self.parameters_of(i)].to_vec(),
                self.nodes()[i].inputs.clone(),
            )),
        })
    }
    /// Group normalizations in place of batch normalizations: another function, which keeps scales and shifts, forgets
    /// means and variances, and is to be trained. There are `groups` groups of channels, or the next smaller number that
    /// divides them.
    ///
    /// # Errors
    /// As [`Self::add`]: where a stabilizer is 0, which group normalization does not take.
    pub fn replace_batch_normalization(&self, groups: usize) -> Result<Self, Error> {
        self.rebuilt(|i| {
            let node = &self.nodes()[i];
            let mut parameters = self.parameters()[self.parameters_of(i)].to_vec();
            let layer = match node.layer {
                Layer::BatchNormalization(BatchNormalization { channels, stabilizer }) => {
                    parameters.truncate(2 * channels);
                    let most = groups.clamp(1, channels);
                    let groups = (1..=most).rev().find(|g| channels.is_multiple_of(*g));
                    Layer::Normalization(Normalization {
                        channels,
                        groups: groups.unwrap_or(1),
                        affine: Affine::Channel,
                        stabilizer,
                    })
                }
                ref layer => layer.clone(),
            };
            Some((layer, parameters, node.inputs.clone()))
        })
    }

    /// The weighted layer at `i` with every output channel multiplied and shifted.
    fn scaled(&self, i: usize, factors: &[(f32, f32)]) -> (Layer, Vec<f32>) {
        let mut parameters = self.parameters()[self.parameters_of(i)].to_vec();
        let outputs = factors.len();
        let layer = match self.nodes()[i].layer.clone() {
            Layer::Convolution(mut convolution) => {
                let weights = convolution.weight_count();
                if !convolution.bias {
                    convolution.bias = true;
                    parameters.resize(weights + outputs, 0.0);
                }
                let channels = parameters[..weights].chunks_exact_mut(weights / outputs);
                for (channel, (factor, _)) in channels.zip(factors) {
                    for weight in channel {
                        *weight *= factor;
                    }
                }
                Layer::Convolution(convolution)
            }
            layer => {
                let weights = parameters.len() - outputs;
                for row in parameters[..weights].chunks_exact_mut(outputs) {
                    for (weight, (factor, _)) in row.iter_mut().zip(factors) {
                        *weight *= factor;
                    }
                }
                layer
            }
        };
        let first = parameters.len() - outputs;
        for (bias, (factor, constant)) in parameters[first..].iter_mut().zip(factors) {
            *bias = bias.mul_add(*factor, *constant);
        }
        (layer, parameters)
    }

    /// A graph of what `change` gives for each layer: layer, parameters and what it reads here; `None`: nothing, for a layer
    /// that nothing left reads.
    fn rebuilt(
        &self,
        change: impl Fn(usize) -> Option<(Layer, Vec<f32>, Vec<Value>)>,
    ) -> Result<Self, Error> {
        let mut graph = Self::of_input(self.shape(Value::INPUT))?;
        let mut values = vec![Value::INPUT];
        for i in 0..self.nodes().len() {
            if let Some((layer, parameters, inputs)) = change(i) {
                let inputs: Vec<Value> = inputs.iter().map(|v| values[v.position()]).collect();
                graph.push(layer, &inputs)?;
                let range = graph.parameters_of(graph.nodes().len() - 1);
                graph.parameters_mut()[range].copy_from_slice(&parameters);
            }
            values.push(graph.output());
        }
        graph.lay_out();
        Ok(graph)
    }
}
