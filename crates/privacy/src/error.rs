//! What can go wrong in this crate.
use crate::{OutOfRange, Unsupported};

/// Why a value was refused or a number could not be computed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number outside its range.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// An accountant has no theorem for what was released.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// NaN or infinity in a value to be released.
    #[error("coordinate {position} of the value to release is {value}; needed a finite number")]
    NotFinite {
        /// First such coordinate.
        position: usize,
        /// What it holds.
        value: f32,
    },
    /// A category that the mechanism does not know.
    #[error("category {got} given to randomized response over {categories} categories")]
    UnknownCategory {
        /// What was given.
        got: u32,
        /// How many there are.
        categories: u32,
    },
    /// Another number of bits than the mechanism announces.
    #[error(
        "{got} words of bits given to randomized response over {bits} bits ({needed} words needed, none set past the end)"
    )]
    WrongBits {
        /// Words given.
        got: usize,
        /// Words needed.
        needed: usize,
        /// Bits announced.
        bits: usize,
    },
    /// The noise cannot be represented.
    #[error(
        "noise of standard deviation or scale {noise:?} on sensitivity {sensitivity:?} cannot be drawn by the {sampler} sampler"
    )]
    Unrepresentable {
        /// Standard deviation or scale asked for.
        noise: f64,
        /// Sensitivity.
        sensitivity: f64,
        /// Which sampler.
        sampler: &'static str,
    },
    /// A mechanism that has only a floating-point sampler.
    #[error(
        "{mechanism} has no exact sampler; draw its noise with the float sampler, or take another mechanism"
    )]
    NoExactSampler {
        /// Which.
        mechanism: &'static str,
    },
    /// Parts of the data about which not the same was released.
    #[error(
        "part {part} of the data released something else than the first: they cannot be counted as one"
    )]
    PartsDiffer {
        /// Which, from 0.
        part: usize,
    },
    /// Nothing to choose from.
    #[error("a choice among none was asked for")]
    NoChoice,
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes: {0}")]
    NoEntropy(String),
    /// No setting reaches the budget.
    #[error("no {what} reaches epsilon {epsilon:?} at delta {delta:?}")]
    Unreachable {
        /// What was solved for.
        what: &'static str,
        /// Budget.
        epsilon: f64,
        /// Budget.
        delta: f64,
    },
}
