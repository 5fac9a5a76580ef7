//! Named architectures.
use crate::{Activation, Error, Graph, Layer, Linear};
use rand_core::Rng;

/// A multi-layer perceptron: hidden widths with `activation`, then `classes` logits.
///
/// Weights are uniform with variance `2 / (inputs + outputs)` (Glorot and Bengio 2010) for tanh, sigmoid and
/// softmax, and `2 / inputs` (He et al. 2015) for the rectifiers; biases are 0.
///
/// # Errors
/// [`Error::Unsupported`] if a width is 0.
///
/// # Example
/// ```
/// # use rand_core::SeedableRng;
/// # use dosimeter_model::{zoo, Activation};
/// let mut rng = rand_chacha::ChaCha8Rng::from_seed([1; 32]);
/// let graph = zoo::mlp(600, &[128], 100, Activation::Tanh, &mut rng)?;
/// assert_eq!(graph.parameters().len(), 601 * 128 + 129 * 100);
/// # Ok::<(), dosimeter_model::Error>(())
/// ```
pub fn mlp<R: Rng + ?Sized>(
    inputs: usize,
    hidden: &[usize],
    classes: usize,
    activation: Activation,
    rng: &mut R,
) -> Result<Graph, Error> {
    let mut layers = Vec::with_capacity(2 * hidden.len() + 1);
    let mut width = inputs;
    for outputs in hidden {
        layers.push(Layer::Linear(Linear { inputs: width, outputs: *outputs }));
        layers.push(Layer::Activation(activation));
        width = *outputs;
    }
    layers.push(Layer::Linear(Linear { inputs: width, outputs: classes }));
    let mut graph = Graph::new(layers)?;
    let mut parameters = Vec::with_capacity(graph.parameters().len());
    for (i, layer) in graph.layers().iter().enumerate() {
        let Layer::Linear(linear) = layer else { continue };
        let fan = match graph.layers().get(i + 1) {
            Some(Layer::Activation(Activation::Relu | Activation::LeakyRelu { .. })) => {
                linear.inputs
            }
            _ => linear.inputs + linear.outputs,
        };
        // A uniform number on (-limit, limit) has variance limit^2 / 3.
        let limit = (6.0 / fan as f64).sqrt();
        parameters.extend((0..linear.inputs * linear.outputs).map(|_| uniform(rng, limit)));
        parameters.resize(parameters.len() + linear.outputs, 0.0);
    }
    graph.parameters_mut().copy_from_slice(&parameters);
    Ok(graph)
}

/// Uniform on `(-limit, limit)`, on a grid symmetric about 0.
fn uniform<R: Rng + ?Sized>(rng: &mut R, limit: f64) -> f32 {
    let step = (rng.next_u32() >> 8) as f64 + 0.5;
    (limit * (step / f64::from(1_u32 << 23) - 1.0)) as f32
}
