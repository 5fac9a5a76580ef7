//! Generators and samplers of noise.
use serde::{Deserialize, Serialize};

/// Where random bits come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Generator {
    /// ChaCha20 seeded by the operating system: for real releases.
    OperatingSystem,
    /// ChaCha20 from a given seed: cryptographic but replayable.
    ReplayableChaCha,
    /// A fast, non-cryptographic generator from a given seed: for experiments.
    ReplayableFast,
}
/// How real-valued noise is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampler {
    /// Integer-only discrete noise on a `2^-k` grid (Canonne, Kamath, Steinke 2020): safe against floating-point leaks.
    Exact,
    /// Continuous noise in floating point: for experiments.
    Float,
}
/// Generator and sampler together: recorded in the ledger and shown in every report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoiseSource {
    /// Where the bits came from.
    pub generator: Generator,
    /// How they became noise.
    pub sampler: Sampler,
}

/// The caller's generator of noise.
#[derive(Debug)]
pub struct NoiseRng {
    source: NoiseSource,
}
impl NoiseRng {
    /// From the operating system, exact samplers: for real releases.
    #[must_use]
    pub fn secure() -> Self {
        todo!()
    }
    /// ChaCha20 from `seed`, exact samplers.
    #[must_use]
    pub fn replayable(_seed: [u8; 32]) -> Self {
        todo!()
    }
    /// Fast generator from `seed`, float samplers: for experiments.
    #[must_use]
    pub fn experiment(_seed: [u8; 32]) -> Self {
        todo!()
    }
    /// Any other pair.
    #[must_use]
    pub fn with_source(_source: NoiseSource, _seed: [u8; 32]) -> Self {
        todo!()
    }
    /// Which generator and sampler these are.
    #[must_use]
    pub const fn source(&self) -> NoiseSource {
        self.source
    }
}
