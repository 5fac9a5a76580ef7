//! Differentiable functions with per-record gradients.
//!
//! A [`Graph`] is layers wired to each other over one flat slice of parameters, so that optimizers, noise and checkpoints
//! work on one slice. Two gradients are computed: the plain sum over records, and the sum of per-record gradients
//! each clipped to a norm, without ever forming a per-record gradient ([`Graph::clipped_gradient_sum`]).
//! This crate knows no data sets and no privacy.
mod block_input;
pub mod checkpoint;
pub mod error;
pub mod fold;
pub mod gradient_parts;
mod gradient_sums;
pub mod graph;
mod graph_rows;
pub mod kernels;
pub mod layers;
pub mod loss;
#[cfg(feature = "onnx")]
pub mod onnx;
mod passes;
pub mod rows;
pub mod workspace;
pub mod zoo;

pub use error::Error;
pub use gradient_parts::GradientParts;
pub use graph::{Graph, Node, Value};
pub use graph_rows::GraphRows;
pub use layers::{
    Activation, Affine, Arithmetic, Arrange, BatchNormalization, Combine, CombineConstant,
    Concatenate, Convolution, Cut, Elementwise, Fill, GraphConvolutions, Layer, Linear,
    LocalResponse, Normalization, Pool, Pooling, Reduce, Reduction, Reshape, Softmax, Window,
};
pub use loss::{Examples, Loss, Targets};
pub use rows::{RECORD_BLOCK, Rows};
pub use workspace::Workspace;
