//! Layers: each with a forward pass, a gradient for every input, a parameter gradient summed over records, and the
//! squared norm of every record's own parameter gradient.
//!
//! One record's numbers lie in row-major order of its shape: `[numbers]`, or `[channels, height, width]`; records
//! follow each other.
mod activation;
mod arrange;
mod combine;
mod convolution;
mod depthwise;
mod elementwise;
mod gram_norm;
mod graph;
mod linear;
mod local_response;
mod normalization;
mod pooling;
mod reduce;
mod reshape;
mod softmax;
mod window;
mod winograd;

pub use activation::Activation;
pub use arrange::{Arrange, Concatenate, Cut, Fill};
pub use combine::{Arithmetic, Combine, CombineConstant};
pub use convolution::Convolution;
pub use elementwise::Elementwise;
pub use graph::GraphConvolutions;
pub use linear::{Linear, LinearInput};
pub use local_response::LocalResponse;
pub use normalization::{Affine, BatchNormalization, Normalization};
pub use pooling::{Pool, Pooling};
pub use reduce::{Reduce, Reduction};
pub use reshape::Reshape;
pub use softmax::Softmax;
pub use window::Window;

use crate::kernels::{self, Limits, Write};
use crate::{Error, GraphRows};
use serde::{Deserialize, Serialize};

/// One layer of a [`crate::Graph`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Layer {
    /// `x W + b`.
    Linear(Linear),
    /// A function of each record's numbers, without parameters.
    Activation(Activation),
    /// Weighted sums over windows.
    Convolution(Convolution),
    /// The largest number or the mean of windows.
    Pooling(Pooling),
    /// With the record's own statistics.
    Normalization(Normalization),
    /// With fixed statistics.
    BatchNormalization(BatchNormalization),
    /// The same numbers under another shape.
    Reshape(Reshape),
    /// A function of single numbers.
    Elementwise(Elementwise),
    /// Two values, number by number.
    Combine(Combine),
    /// A value and constants, number by number.
    CombineConstant(CombineConstant),
    /// Numbers put elsewhere.
    Arrange(Arrange),
    /// Values behind one another.
    Concatenate(Concatenate),
    /// Sums or means over axes.
    Reduce(Reduce),
    /// Softmax along one axis.
    Softmax(Softmax),
    /// Over the squares of neighbouring channels.
    LocalResponse(LocalResponse),
    /// Of graphs, with sort pooling behind.
    GraphConvolutions(GraphConvolutions),
}
/// Names of all layers, as in [`Layer::name`].
pub const LAYERS: &[&str] = &[
    "linear",
    "activation",
    "convolution",
    "pooling",
    "normalization",
    "batch-normalization",
    "reshape",
    "elementwise",
    "combine",
    "combine-constant",
    "arrange",
    "concatenate",
    "reduce",
    "softmax",
    "local-response",
    "graph-convolutions",
];

impl Layer {
    /// What kind of layer it is.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Linear(_) => "linear",
            Self::Activation(_) => "activation",
            Self::Convolution(_) => "convolution",
            Self::Pooling(_) => "pooling",
            Self::Normalization(_) => "normalization",
            Self::BatchNormalization(_) => "batch-normalization",
            Self::Reshape(_) => "reshape",
            Self::Elementwise(_) => "elementwise",
            Self::Combine(_) => "combine",
            Self::CombineConstant(_) => "combine-constant",
            Self::Arrange(_) => "arrange",
            Self::Concatenate(_) => "concatenate",
            Self::Reduce(_) => "reduce",
            Self::Softmax(_) => "softmax",
            Self::LocalResponse(_) => "local-response",
            Self::GraphConvolutions(_) => "graph-convolutions",
        }
    }
    /// Shape of one record's output for the shapes of its inputs; `None` if it does not take them.
    #[must_use]
    pub fn output_shape_of(&self, inputs: &[&[usize]]) -> Option<Vec<usize>> {
        self.operation().output_shape(inputs).ok()
    }
    /// Multiplications by its parameters for one record, whose output has this shape.
    #[must_use]
    pub fn multiplications(&self, output: &[usize]) -> u64 {
        let product =
            |factors: &[usize]| factors.iter().fold(1_u64, |n, f| n.saturating_mul(*f as u64));
        match self {
            Self::Linear(layer) => product(&[layer.inputs, layer.outputs]),
            // Every weight at every place.
            Self::Convolution(layer) => product(&[layer.weight_count()])
                .saturating_mul(product(output.get(1..).unwrap_or_default())),
            Self::Normalization(_) | Self::BatchNormalization(_) => product(output),
            _ => 0,
        }
    }
    pub(crate) fn operation(&self) -> &dyn Operation {
        match self {
            Self::Linear(layer) => layer,
            Self::Activation(layer) => layer,
            Self::Convolution(layer) => layer,
            Self::Pooling(layer) => layer,
            Self::Normalization(layer) => layer,
            Self::BatchNormalization(layer) => layer,
            Self::Reshape(layer) => layer,
            Self::Elementwise(layer) => layer,
            Self::Combine(layer) => layer,
            Self::CombineConstant(layer) => layer,
            Self::Arrange(layer) => layer,
            Self::Concatenate(layer) => layer,
            Self::Reduce(layer) => layer,
            Self::Softmax(layer) => layer,
            Self::LocalResponse(layer) => layer,
            Self::GraphConvolutions(layer) => layer,
        }
    }
    /// Whether it can overwrite what it reads, because its gradient is computed from its outputs.
    pub(crate) fn works_in_place(&self) -> bool {
        matches!(self, Self::Activation(_)) || self.limits().is_some()
    }
    /// Of a layer that only clips.
    pub(crate) fn limits(&self) -> Option<Limits> {
        match self {
            Self::Activation(Activation::Relu) => Some(Limits { low: 0.0, ..Limits::NONE }),
            Self::Elementwise(function) => function.limits(),
            _ => None,
        }
    }
    /// Weights, biases and other numbers that training moves.
    #[must_use]
    pub fn parameter_count(&self) -> usize {
        let groups = self.operation().parameter_groups();
        groups.iter().fold(0, |sum: usize, (count, _)| sum.saturating_add(*count))
    }
}

/// What an operation reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Read<'a> {
    /// Records at once.
    pub(crate) records: usize,
    /// The layer's own parameters.
    pub(crate) parameters: &'a [f32],
    /// Of one record, for each input.
    pub(crate) shapes: &'a [&'a [usize]],
    /// Each `[records, shape]`.
    pub(crate) inputs: &'a [&'a [f32]],
    /// In place of the graph's input, where records are graphs.
    pub(crate) graphs: Option<GraphRows<'a>>,
}

/// Memory that operations use as they like and leave behind as it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scratch {
    pub(crate) columns: Vec<f32>,
    pub(crate) products: Vec<f32>,
    pub(crate) weights: Vec<f32>,
    pub(crate) planes: Vec<f32>,
    pub(crate) rows: Vec<f32>,
    /// Sixteen channels side by side.
    pub(crate) block: Vec<[f32; 16]>,
    pub(crate) grams: gram_norm::Grams,
    pub(crate) graph: graph::Buffers,
}

/// Gradients of single records that were formed on the way to their norms.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept {
    /// `[records kept, parameters]`, or as the operation's [`Operation::sum_kept`] reads them.
    pub(crate) gradients: Vec<f32>,
    /// Whose they are, in order.
    pub(crate) records: Vec<usize>,
}
impl Kept {
    pub(crate) fn clear(&mut self) {
        self.records.clear();
    }
    /// Room for the gradient of one more record, filled with 0.
    pub(crate) fn add(&mut self, record: usize, parameters: usize) -> &mut [f32] {
        let room = self.unwritten(record, parameters);
        room.fill(0.0);
        room
    }
    /// Room for the gradient of one more record, filled with whatever was there.
    pub(crate) fn unwritten(&mut self, record: usize, parameters: usize) -> &mut [f32] {
        let range = self.records.len() * parameters..(self.records.len() + 1) * parameters;
        if self.gradients.len() < range.end {
            self.gradients.resize(range.end, 0.0);
        }
        self.records.push(record);
        &mut self.gradients[range]
    }
}

/// What a layer does to the numbers of a block of records.
///
/// Gradients are computed from what the layer read ([`Activation`]s alone: from what they wrote), so nothing else
/// is kept between the passes.
pub(crate) trait Operation {
    /// Shape of one record's output.
    ///
    /// # Errors
    /// [`Misfit`] if there are not as many inputs as the layer takes, or of other shapes.
    fn output_shape(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, Misfit>;
    /// How many parameters of each kind follow each other, and whether L2 regularisation concerns them (weights: yes;
    /// biases: no).
    fn parameter_groups(&self) -> Vec<(usize, bool)> {
        Vec::new()
    }
    /// Overwrites `output`.
    fn forward(&self, read: &Read<'_>, output: &mut [f32], scratch: &mut Scratch);
    /// Writes or adds the gradient with respect to input number `which`, from that with respect to the output.
    fn input_gradient(
        &self,
        read: &Read<'_>,
        which: usize,
        gradient: &[f32],
        out: &mut [f32],
        write: Write,
        scratch: &mut Scratch,
    );
    /// Writes or adds the parameter gradient, summed over the records.
    fn parameter_gradient(
        &self,
        _read: &Read<'_>,
        _gradient: &[f32],
        _out: &mut [f32],
        _write: Write,
        _scratch: &mut Scratch,
    ) {
    }
    /// Adds to `squared_norms` each record's squared norm of its own parameter gradient.
    ///
    /// An operation that forms gradients of single records on the way leaves them in `kept`; they are then added as they
    /// are, and [`Self::parameter_gradient`] is asked for the other records alone. Where it is, a rounding of the output
    /// gradients by 2^-24 relative must not lift a record's gradient by more than 15 times as much above this norm.
    fn add_squared_gradient_norms(
        &self,
        _read: &Read<'_>,
        _gradient: &[f32],
        _squared_norms: &mut [f64],
        _kept: &mut Kept,
        _scratch: &mut Scratch,
    ) {
    }
    /// Whether the gradients of all records are kept, even if nothing is clipped: because they depend on the parameters, which
    /// an optimizer may have moved when their sum is asked for.
    fn keeps_gradients(&self) -> bool {
        false
    }
    /// Writes or adds the sum of the gradients kept, each times its record's coefficient. Where that is 0, the gradient may be
    /// anything.
    fn sum_kept(
        &self,
        _read: &Read<'_>,
        kept: &Kept,
        coefficients: &[f32],
        out: &mut [f32],
        write: Write,
        _scratch: &mut Scratch,
    ) {
        sum_weighted(kept, coefficients, out, write);
    }
}

/// `out = sum of coefficient times row`, or `+=`; piece by piece, so that the sum stays in the first-level cache.
fn sum_weighted(kept: &Kept, coefficients: &[f32], out: &mut [f32], write: Write) {
    const PIECE: usize = 2048;
    let width = out.len();
    for (i, out) in out.chunks_mut(PIECE).enumerate() {
        if write == Write::Overwrite {
            out.fill(0.0);
        }
        for (row, record) in kept.gradients.chunks_exact(width).zip(&kept.records) {
            let coefficient = coefficients[*record];
            if coefficient != 0.0 {
                kernels::axpy(out, coefficient, &row[i * PIECE..][..out.len()]);
            }
        }
    }
}

/// Why a layer cannot take its inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misfit {
    pub(crate) needed: String,
}
impl Misfit {
    pub(crate) fn new(needed: impl Into<String>) -> Self {
        Self { needed: needed.into() }
    }
    pub(crate) fn at(self, layer: usize, inputs: &[&[usize]]) -> Error {
        let got = inputs.iter().map(|s| format!("{s:?}")).collect::<Vec<_>>().join(" and ");
        Error::LayersDoNotFit { layer, needed: self.needed, got }
    }
}

/// The shape of the only input.
pub(crate) fn only<'a>(inputs: &[&'a [usize]]) -> Result<&'a [usize], Misfit> {
    match inputs {
        [one] => Ok(one),
        _ => Err(Misfit::new("one input")),
    }
}
