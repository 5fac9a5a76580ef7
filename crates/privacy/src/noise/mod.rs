//! Generators and samplers of noise.
//!
//! [`exact`] holds the integer-only samplers for real releases, [`float`] the fast ones for experiments; both take any
//! [`rand_core::Rng`]. [`NoiseRng`] ties one generator to one sampler and is what mechanisms draw from.
pub mod double;
pub mod exact;
mod fast;
pub mod float;
pub mod response;

use crate::{Error, SamplingRate};
use fast::FastLanes;
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng, TryRng};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;

/// Where random bits come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampler {
    /// Integer-only discrete noise on a `2^-k` grid (Canonne, Kamath, Steinke 2020): safe against floating-point leaks.
    Exact,
    /// Continuous noise in floating point: for experiments.
    Float,
}
/// Generator and sampler together: recorded in the ledger and shown in every report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NoiseSource {
    /// Where the bits came from.
    pub generator: Generator,
    /// How they became noise.
    pub sampler: Sampler,
}

/// Random words made at a time: large enough to hide the cost of a refill, small enough for the first-level cache.
const BLOCK: usize = 2048;

enum Core {
    ChaCha(Box<ChaCha20Rng>),
    Fast(Box<FastLanes>),
}
impl Core {
    fn fill(&mut self, words: &mut [u32]) {
        match self {
            Self::ChaCha(rng) => {
                let mut bytes = [0_u8; 4096];
                for block in words.chunks_mut(1024) {
                    let bytes = &mut bytes[..4 * block.len()];
                    rng.fill_bytes(bytes);
                    for (word, four) in block.iter_mut().zip(bytes.as_chunks::<4>().0) {
                        *word = u32::from_le_bytes(*four);
                    }
                }
            }
            Self::Fast(lanes) => lanes.fill(words),
        }
    }
}

/// The caller's generator of noise. It is a [`rand_core::Rng`], so every sampler of the ecosystem takes it too.
///
/// Not `Clone`: a copied generator would give the same noise twice.
pub struct NoiseRng {
    source: NoiseSource,
    core: Core,
    words: Box<[u32; BLOCK]>,
    used: usize,
}
impl std::fmt::Debug for NoiseRng {
    /// Shows the source only: the state would give the noise away.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NoiseRng").field("source", &self.source).finish_non_exhaustive()
    }
}
impl NoiseRng {
    /// From the operating system, exact samplers: for real releases.
    ///
    /// # Errors
    /// [`Error::NoEntropy`] if the operating system gives no seed.
    pub fn secure() -> Result<Self, Error> {
        let source = NoiseSource { generator: Generator::OperatingSystem, sampler: Sampler::Exact };
        Self::with_source(source, [0; 32])
    }
    /// ChaCha20 from `seed`, exact samplers.
    #[must_use]
    pub fn replayable(seed: [u8; 32]) -> Self {
        let source =
            NoiseSource { generator: Generator::ReplayableChaCha, sampler: Sampler::Exact };
        Self::from_core(source, Core::ChaCha(Box::new(ChaCha20Rng::from_seed(seed))))
    }
    /// Fast generator from `seed`, float samplers: for experiments.
    #[must_use]
    pub fn experiment(seed: [u8; 32]) -> Self {
        let source = NoiseSource { generator: Generator::ReplayableFast, sampler: Sampler::Float };
        Self::from_core(source, Core::Fast(Box::new(FastLanes::new(seed))))
    }
    /// Any other pair. With [`Generator::OperatingSystem`] the seed is not used.
    ///
    /// # Errors
    /// [`Error::NoEntropy`] if the operating system was asked for a seed and gives none.
    pub fn with_source(source: NoiseSource, mut seed: [u8; 32]) -> Result<Self, Error> {
        let core = match source.generator {
            Generator::OperatingSystem => {
                getrandom::fill(&mut seed).map_err(|e| Error::NoEntropy(e.to_string()))?;
                Core::ChaCha(Box::new(ChaCha20Rng::from_seed(seed)))
            }
            Generator::ReplayableChaCha => Core::ChaCha(Box::new(ChaCha20Rng::from_seed(seed))),
            Generator::ReplayableFast => Core::Fast(Box::new(FastLanes::new(seed))),
        };
        Ok(Self::from_core(source, core))
    }
    fn from_core(source: NoiseSource, core: Core) -> Self {
        Self { source, core, words: Box::new([0; BLOCK]), used: BLOCK }
    }
    /// Which generator and sampler these are.
    #[must_use]
    pub const fn source(&self) -> NoiseSource {
        self.source
    }
    /// Fills `words` with random words, a block at a time.
    pub fn fill_words(&mut self, words: &mut [u32]) {
        self.core.fill(words);
    }
    #[cold]
    #[inline(never)]
    fn refill(&mut self) {
        self.core.fill(&mut self.words[..]);
        self.used = 0;
    }
    #[inline]
    fn word(&mut self) -> u32 {
        if self.used >= BLOCK {
            self.refill();
        }
        let word = self.words[self.used];
        self.used += 1;
        word
    }
}
impl TryRng for NoiseRng {
    type Error = Infallible;
    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.word())
    }
    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let low = u64::from(self.word());
        Ok(u64::from(self.word()) << 32 | low)
    }
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(4) {
            chunk.copy_from_slice(&self.word().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

/// Positions below `records` that a Poisson sample takes, ascending.
///
/// Each is taken with probability `floor(sampling_rate * 2^64) / 2^64`, never above the rate that is accounted for.
#[must_use]
pub fn poisson_sample(sampling_rate: SamplingRate, records: usize, rng: &mut NoiseRng) -> Vec<u32> {
    let records = u32::try_from(records).unwrap_or(u32::MAX);
    if sampling_rate.get() >= 1.0 {
        return (0..records).collect();
    }
    // Exact: multiplying by 2^64 only moves the exponent, and the cast truncates.
    let threshold = (sampling_rate.get() * (1_u128 << 64) as f64) as u64;
    let (high, low) = ((threshold >> 32) as u32, threshold as u32);
    let mut taken =
        Vec::with_capacity((f64::from(records) * sampling_rate.get() * 1.1) as usize + 16);
    let mut words = [0_u32; 1024];
    let mut first = 0_u32;
    while first < records {
        let block = &mut words[..(records - first).min(1024) as usize];
        rng.fill_words(block);
        for (offset, &word) in (0_u32..).zip(block.iter()) {
            // The lower 32 bits decide only on a tie of the upper ones.
            if word < high || (word == high && rng.next_u32() < low) {
                taken.push(first + offset);
            }
        }
        first = first.saturating_add(1024);
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_long_words_are_the_words_in_little_endian_order() {
        let rng = || NoiseRng::replayable([4; 32]);
        let mut words = rng();
        let words = [(); 3].map(|()| words.next_u32());
        let mut bytes = [0; 10];
        rng().fill_bytes(&mut bytes);
        assert_eq!(bytes, words.map(u32::to_le_bytes).as_flattened()[..10]);
        assert_eq!(rng().next_u64(), u64::from(words[1]) << 32 | u64::from(words[0]));
    }

    /// A sample of one record takes one word, and a second one if that equals the upper half of the rate.
    #[test]
    fn a_tie_of_the_upper_words_is_decided_by_the_lower_ones() {
        let words = |seed: [u8; 32]| {
            let (mut rng, mut high) = (NoiseRng::experiment(seed), [0]);
            rng.fill_words(&mut high);
            (seed, u64::from(high[0]), u64::from(rng.next_u32()))
        };
        // A rate has 53 bits: the threshold and its neighbours must be numbers of that length.
        let (seed, high, low) = (0..u32::MAX)
            .map(|i| words(std::array::from_fn(|k| i.to_le_bytes()[k % 4])))
            .find(|(_, high, low)| high >> 31 == 1 && low % 4096 == 0)
            .unwrap();
        let taken = |threshold: u64| {
            let rate = SamplingRate::new(threshold as f64 / (1_u128 << 64) as f64).unwrap();
            !poisson_sample(rate, 1, &mut NoiseRng::experiment(seed)).is_empty()
        };
        let tie = high << 32 | low;
        assert_eq!([tie - 4096, tie, tie + 4096].map(taken), [false, false, true]);
    }
}
