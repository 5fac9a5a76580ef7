//! The one door for noise.
use crate::{Event, Mechanism, NoiseRng, NoiseSource, Released, SamplingRate, Unit};

/// Everything released about one data set, run-length encoded.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Ledger {
    unit: Unit,
    events: Vec<Event>,
    noise: Vec<NoiseSource>,
}
impl Ledger {
    /// An empty ledger.
    #[must_use]
    pub const fn new(unit: Unit) -> Self {
        Self { unit, events: Vec::new(), noise: Vec::new() }
    }
    /// What one privacy unit is.
    #[must_use]
    pub const fn unit(&self) -> Unit {
        self.unit
    }
    /// What was released, run-length encoded, in order.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }
    /// Which generators and samplers made the noise (distinct, in order of first use).
    #[must_use]
    pub fn noise(&self) -> &[NoiseSource] {
        &self.noise
    }
    /// Records an event without sampling: for accounting plans ahead of a run, and `Event::NonPrivate`.
    pub fn record(&mut self, _event: Event, _count: u64) {
        todo!()
    }
    /// Turns a bounded value into a released one and writes it down.
    pub fn release<M: Mechanism>(
        &mut self,
        _mechanism: &M,
        _input: M::Input,
        _rng: &mut NoiseRng,
    ) -> Released<M::Output> {
        todo!()
    }
    /// Draws a Poisson batch from `records` records (indices, ascending). What is released about it goes through the
    /// batch, so sampler and accountant cannot disagree.
    pub fn sampled(
        &mut self,
        _sampling_rate: SamplingRate,
        _records: usize,
        _rng: &mut NoiseRng,
    ) -> PoissonBatch<'_> {
        todo!()
    }
}

/// A Poisson sample and the right to release one value about it.
#[derive(Debug)]
pub struct PoissonBatch<'ledger> {
    _ledger: &'ledger mut Ledger,
    indices: Vec<u32>,
}
impl PoissonBatch<'_> {
    /// Positions drawn, ascending; may be empty (then a noise-only step is still released).
    #[must_use]
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }
    /// Releases one value about the batch.
    pub fn release<M: Mechanism>(
        self,
        _mechanism: &M,
        _input: M::Input,
        _rng: &mut NoiseRng,
    ) -> Released<M::Output> {
        todo!()
    }
}
