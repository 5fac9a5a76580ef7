//! Mechanisms: what turns a bounded value into a noisy one.
mod depth;
mod gaussian;
mod laplace;
mod randomized_response;
mod stable;

pub use depth::{Points, TukeyDepth};
pub use gaussian::Gaussian;
pub use laplace::Laplace;
pub use randomized_response::{BinaryRandomizedResponse, RandomizedResponse};
pub use stable::{Exponential, GammaNorm, StableGaussian, StableLaplace};

use crate::{Error, Event, NoiseRng};

/// A randomised function with a known event. `sample` is called by the ledger only: its output is not
/// [`Released`](crate::Released), so nothing that needs a released value takes it.
pub trait Mechanism {
    /// What it reads; carries its sensitivity where that matters.
    type Input;
    /// What it gives.
    type Output;
    /// What one use costs.
    fn event(&self) -> Event;
    /// Draws the output.
    ///
    /// # Errors
    /// For an input that the mechanism cannot take, or noise that cannot be represented.
    fn sample(&self, input: Self::Input, rng: &mut NoiseRng) -> Result<Self::Output, Error>;
}

/// What is known of a mechanism without its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// Name as written in study files and reports.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What it takes.
    pub input: &'static str,
    /// Where it comes from.
    pub source: &'static str,
}

/// Every mechanism.
pub const MECHANISMS: &[Description] = &[
    gaussian::DESCRIPTION,
    laplace::DESCRIPTION,
    randomized_response::BINARY,
    randomized_response::CATEGORIES,
    stable::GAMMA_NORM,
    stable::LAPLACE,
    stable::GAUSSIAN,
    stable::EXPONENTIAL,
    depth::TUKEY_DEPTH,
];
