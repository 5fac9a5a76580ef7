//! Mechanisms: what turns a bounded value into a noisy one.
use crate::{Bounded, Epsilon, Event, NoiseMultiplier, NoiseRng};

/// A randomised function with a known event. `sample` is called by the ledger only.
pub trait Mechanism {
    /// What it reads; carries its sensitivity where that matters.
    type Input;
    /// What it gives.
    type Output;
    /// What one use costs.
    fn event(&self) -> Event;
    /// Draws the output.
    fn sample(&self, input: Self::Input, rng: &mut NoiseRng) -> Self::Output;
}

/// Adds `N(0, (noise_multiplier * clipping_norm)^2)` to each coordinate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gaussian {
    /// Noise standard deviation over clipping norm.
    pub noise_multiplier: NoiseMultiplier,
}
impl Mechanism for Gaussian {
    type Input = Bounded;
    type Output = Vec<f32>;
    fn event(&self) -> Event {
        Event::Gaussian { noise_multiplier: self.noise_multiplier }
    }
    fn sample(&self, _input: Bounded, _rng: &mut NoiseRng) -> Vec<f32> {
        todo!()
    }
}

/// Binary randomized response on packed bits: each bit kept with probability `e^epsilon / (1 + e^epsilon)`.
/// One release of `n` bits is the event `Repeated { RandomizedResponse { epsilon, 2 }, n }`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BinaryRandomizedResponse {
    /// Loss per bit, nats.
    pub epsilon: Epsilon,
    /// Bits per release.
    pub bits: usize,
}

/// k-ary randomized response on one category.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomizedResponse {
    /// Loss per answer, nats.
    pub epsilon: Epsilon,
    /// Number of categories, at least 2.
    pub categories: u32,
}
