//! Layers: each with a forward pass, an input gradient, a parameter gradient summed over records, and the squared
//! norm of every record's own parameter gradient.
mod activation;
mod linear;

pub use activation::Activation;
pub use linear::{Linear, LinearInput};
use serde::{Deserialize, Serialize};

/// One layer of a [`crate::Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Layer {
    /// `x W + b`.
    Linear(Linear),
    /// A function of each record's numbers, without parameters.
    Activation(Activation),
}
