//! The one door for noise.
use crate::mechanisms::Gaussian;
use crate::{
    BoundedInParts, Error, Event, Mechanism, NoiseRng, NoiseSource, Released, SamplingRate, Unit,
};

/// How far back a repeated event is looked for. Two or three releases per step are one entry each; a training whose
/// noise changes at every step stays linear in its steps.
const LOOK_BACK: usize = 8;

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
    /// What was released, run-length encoded, in order of first use. Composition does not depend on order.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }
    /// Which generators and samplers made the noise (distinct, in order of first use).
    #[must_use]
    pub fn noise(&self) -> &[NoiseSource] {
        &self.noise
    }
    /// Records an event without drawing noise: for accounting plans ahead of a run, and [`Event::NonPrivate`].
    /// A `count` of 0 records nothing.
    #[allow(clippy::needless_pass_by_value, reason = "callers build the event for this call")]
    pub fn record(&mut self, event: Event, count: u64) {
        let (event, count) = {
            let (inner, times) = event.unrepeated();
            (inner.clone(), times.saturating_mul(count))
        };
        if count == 0 {
            return;
        }
        for recent in self.events.iter_mut().rev().take(LOOK_BACK) {
            if recent.unrepeated().0 == &event {
                let count = recent.unrepeated().1.saturating_add(count);
                *recent = Event::Repeated { event: Box::new(event), count };
                return;
            }
        }
        self.events.push(if count == 1 {
            event
        } else {
            Event::Repeated { event: Box::new(event), count }
        });
    }
    /// Turns a bounded value into a released one and writes it down.
    ///
    /// # Errors
    /// If the mechanism refuses the input; nothing is released or recorded then.
    pub fn release<M: Mechanism>(
        &mut self,
        mechanism: &M,
        input: M::Input,
        rng: &mut NoiseRng,
    ) -> Result<Released<M::Output>, Error> {
        let output = mechanism.sample(input, rng)?;
        self.record(mechanism.event(), 1);
        self.note(rng.source());
        Ok(Released(output))
    }
    /// As [`Ledger::release`] for Gaussian noise, and calls `each(start, part)` for one part of the released vector after
    /// the other while it is in the cache: what makes the vector, noise and post-processing share one pass over memory.
    ///
    /// The event is written down before the first part is out.
    ///
    /// # Errors
    /// As [`Ledger::release`], except that the event stays written down, and that parts before a NaN or infinity are out
    /// by then.
    pub fn release_in_parts(
        &mut self,
        mechanism: &Gaussian,
        input: BoundedInParts<'_>,
        rng: &mut NoiseRng,
        each: impl FnMut(usize, Released<&[f32]>),
    ) -> Result<(), Error> {
        let event = mechanism.event();
        self.parts(event, mechanism, input, rng, each)
    }
    fn parts(
        &mut self,
        event: Event,
        mechanism: &Gaussian,
        input: BoundedInParts<'_>,
        rng: &mut NoiseRng,
        mut each: impl FnMut(usize, Released<&[f32]>),
    ) -> Result<(), Error> {
        self.record(event, 1);
        self.note(rng.source());
        mechanism.sample_in_parts(input, rng, |start, part| each(start, Released(part)))
    }
    /// Draws a Poisson batch from `records` records (positions below `records`, ascending; at most `u32::MAX` records).
    /// What is released about it goes through the batch, so sampler and accountant cannot disagree.
    pub fn sampled(
        &mut self,
        sampling_rate: SamplingRate,
        records: usize,
        rng: &mut NoiseRng,
    ) -> PoissonBatch<'_> {
        let indices = crate::noise::poisson_sample(sampling_rate, records, rng);
        PoissonBatch { ledger: self, sampling_rate, indices }
    }
    /// The ledger of all, where each of `parts` is about records of its own: no record is in two of them, and which it is in depends
    /// on no record. Each part must have released the same; together they cost what one of them does (parallel composition, McSherry,
    /// SIGMOD 2009).
    ///
    /// # Errors
    /// [`Error::PartsDiffer`] if they did not release the same, or there are none.
    pub fn of_disjoint(parts: &[Self]) -> Result<Self, Error> {
        let (first, rest) = parts.split_first().ok_or(Error::PartsDiffer { part: 0 })?;
        let mut all = first.clone();
        for (i, part) in rest.iter().enumerate() {
            if part.unit != all.unit || part.events != all.events {
                return Err(Error::PartsDiffer { part: i + 1 });
            }
            part.noise.iter().for_each(|source| all.note(*source));
        }
        Ok(all)
    }
    fn note(&mut self, source: NoiseSource) {
        if !self.noise.contains(&source) {
            self.noise.push(source);
        }
    }
}

/// A Poisson sample and the right to release one value about it.
///
/// One batch, one release: the second does not compile.
///
/// ```compile_fail,E0382
/// # use dosimeter_privacy::*;
/// # let mut rng = NoiseRng::experiment([0; 32]);
/// # let mechanism = mechanisms::Gaussian { noise_multiplier: NoiseMultiplier::new(1.0).unwrap() };
/// let mut ledger = Ledger::new(Unit::Record);
/// let batch = ledger.sampled(SamplingRate::new(0.1).unwrap(), 100, &mut rng);
/// batch.release(&mechanism, Bounded::clip(vec![1.0], 1.0).unwrap(), &mut rng).unwrap();
/// batch.release(&mechanism, Bounded::clip(vec![1.0], 1.0).unwrap(), &mut rng).unwrap();
/// ```
#[derive(Debug)]
#[must_use = "a batch that is not released costs nothing and gives nothing"]
pub struct PoissonBatch<'ledger> {
    ledger: &'ledger mut Ledger,
    sampling_rate: SamplingRate,
    indices: Vec<u32>,
}
impl PoissonBatch<'_> {
    /// Positions drawn, ascending; may be empty (then a noise-only step is still released).
    #[must_use]
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }
    /// Releases one value about the batch.
    ///
    /// # Errors
    /// As [`Ledger::release`].
    pub fn release<M: Mechanism>(
        self,
        mechanism: &M,
        input: M::Input,
        rng: &mut NoiseRng,
    ) -> Result<Released<M::Output>, Error> {
        let output = mechanism.sample(input, rng)?;
        self.ledger.record(mechanism.event().sampled(self.sampling_rate), 1);
        self.ledger.note(rng.source());
        Ok(Released(output))
    }
    /// Releases one vector about the batch, part by part.
    ///
    /// # Errors
    /// As [`Ledger::release_in_parts`].
    pub fn release_in_parts(
        self,
        mechanism: &Gaussian,
        input: BoundedInParts<'_>,
        rng: &mut NoiseRng,
        each: impl FnMut(usize, Released<&[f32]>),
    ) -> Result<(), Error> {
        let event = mechanism.event().sampled(self.sampling_rate);
        self.ledger.parts(event, mechanism, input, rng, each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bounded, NoiseMultiplier};

    fn gaussian(z: f64) -> Event {
        Event::gaussian(NoiseMultiplier::new(z).unwrap())
    }

    #[test]
    fn disjoint_parts_cost_what_one_does() {
        let part = |z| {
            let mut ledger = Ledger::new(Unit::Record);
            ledger.record(gaussian(z), 2);
            ledger
        };
        assert_eq!(Ledger::of_disjoint(&[part(1.0), part(1.0)]), Ok(part(1.0)));
        let differ = Ledger::of_disjoint(&[part(1.0), part(1.0), part(2.0)]);
        assert_eq!(differ, Err(Error::PartsDiffer { part: 2 }));
        assert_eq!(Ledger::of_disjoint(&[]), Err(Error::PartsDiffer { part: 0 }));
    }

    #[test]
    fn equal_events_become_one_entry_with_a_count() {
        let mut ledger = Ledger::new(Unit::Record);
        for _ in 0..1000 {
            ledger.record(gaussian(1.0), 1);
            ledger.record(gaussian(2.0), 3);
        }
        let counts: Vec<u64> = ledger.events().iter().map(|e| e.unrepeated().1).collect();
        assert_eq!(counts, [1000, 3000]);
    }

    #[test]
    fn every_source_of_noise_is_written_down_once() {
        let mechanism = Gaussian { noise_multiplier: NoiseMultiplier::new(1.0).unwrap() };
        let mut ledger = Ledger::new(Unit::Record);
        let mut sources = [NoiseRng::experiment([0; 32]), NoiseRng::replayable([0; 32])];
        for i in [0, 1, 0, 0, 1] {
            let sum = Bounded::from_clipped_sum(vec![0.0], 1.0).unwrap();
            ledger.release(&mechanism, sum, &mut sources[i]).unwrap();
        }
        assert_eq!(ledger.noise(), sources.map(|rng| rng.source()));
    }

    #[test]
    fn nested_repetitions_multiply_and_zero_times_is_nothing() {
        let mut ledger = Ledger::new(Unit::Record);
        ledger.record(Event::Repeated { event: Box::new(gaussian(1.0)), count: 5 }, 4);
        ledger.record(gaussian(3.0), 0);
        assert_eq!(
            ledger.events(),
            [Event::Repeated { event: Box::new(gaussian(1.0)), count: 20 }]
        );
    }

    #[test]
    fn a_release_in_parts_is_the_same_release() {
        let mechanism = Gaussian { noise_multiplier: NoiseMultiplier::new(1.5).unwrap() };
        let values: Vec<f32> = (0..40_001_u16).map(|i| f32::from(i) / 64.0).collect();
        let mut memory = vec![];
        let exact = crate::NoiseSource {
            generator: crate::Generator::ReplayableChaCha,
            sampler: crate::Sampler::Exact,
        };
        for source in [NoiseRng::experiment([0; 32]).source(), exact] {
            let rng = || NoiseRng::with_source(source, [3; 32]).unwrap();
            let bounded = || Bounded::from_clipped_sum(values.clone(), 0.5).unwrap();
            let (mut whole, mut parts) = (Ledger::new(Unit::Record), Ledger::new(Unit::Record));
            let at_once = whole.release(&mechanism, bounded(), &mut rng()).unwrap();
            let mut seen = vec![];
            // Parts of 1 to 2500 numbers, which no block of the sampler divides.
            let (mut left, mut length) = (values.as_slice(), 1);
            let mut next = |out: &mut [f32]| {
                let (now, later) = left.split_at(length.min(left.len()));
                out[..now.len()].copy_from_slice(now);
                (left, length) = (later, (length * 7) % 2501);
                now.len()
            };
            let in_parts =
                BoundedInParts::from_clipped_sum(0.5, 2500, &mut next, &mut memory).unwrap();
            parts
                .release_in_parts(&mechanism, in_parts, &mut rng(), |start, part| {
                    assert_eq!(start, seen.len());
                    assert!(!part.get().is_empty(), "a part without numbers");
                    seen.extend_from_slice(part.get());
                })
                .unwrap();
            assert_eq!(&seen, at_once.get());
            assert_eq!(parts, whole);
        }
    }

    #[test]
    fn a_batch_released_in_parts_is_the_batch_released_whole() {
        let mechanism = Gaussian { noise_multiplier: NoiseMultiplier::new(1.5).unwrap() };
        let rate = SamplingRate::new(0.25).unwrap();
        let (mut whole, mut parts) = (Ledger::new(Unit::Record), Ledger::new(Unit::Record));
        let mut rng = NoiseRng::experiment([8; 32]);
        let sum = Bounded::from_clipped_sum(vec![2.0; 10], 1.0).unwrap();
        let at_once = whole.sampled(rate, 10, &mut rng).release(&mechanism, sum, &mut rng).unwrap();
        let mut rng = NoiseRng::experiment([8; 32]);
        let mut left = 10;
        let mut next = |out: &mut [f32]| {
            out.fill(2.0);
            std::mem::take(&mut left)
        };
        let mut memory = vec![];
        let sum = BoundedInParts::from_clipped_sum(1.0, 16, &mut next, &mut memory).unwrap();
        let mut seen = vec![];
        let batch = parts.sampled(rate, 10, &mut rng);
        batch
            .release_in_parts(&mechanism, sum, &mut rng, |_, part| {
                seen.extend_from_slice(part.get());
            })
            .unwrap();
        assert_eq!(&seen, at_once.get());
        assert_eq!(parts, whole);
        assert_eq!(parts.events(), [gaussian(1.5).sampled(rate)]);
    }

    /// The position is the one in the whole vector, and the event is paid for although nothing useful came of it.
    #[test]
    fn a_part_that_is_not_finite_is_refused_by_its_position() {
        let mechanism = Gaussian { noise_multiplier: NoiseMultiplier::new(1.0).unwrap() };
        let mut ledger = Ledger::new(Unit::Record);
        let mut calls = 0;
        let mut next = |out: &mut [f32]| {
            calls += 1;
            out.fill(0.5);
            if calls == 3 {
                out[7] = f32::NAN;
            }
            out.len()
        };
        let mut memory = vec![];
        let bounded = BoundedInParts::from_clipped_sum(1.0, 1000, &mut next, &mut memory).unwrap();
        let mut rng = NoiseRng::experiment([0; 32]);
        let mut seen = 0;
        let refused = ledger.release_in_parts(&mechanism, bounded, &mut rng, |_, part| {
            seen += part.get().len();
        });
        assert!(matches!(refused, Err(Error::NotFinite { position: 2007, .. })), "{refused:?}");
        assert_eq!((seen, ledger.events().len()), (1024, 1));
    }

    #[test]
    fn a_ledger_survives_json() {
        let mut ledger = Ledger::new(Unit::Record);
        ledger.record(gaussian(1.1).sampled(SamplingRate::new(0.01).unwrap()), 1000);
        let text = serde_json::to_string(&ledger).unwrap();
        assert_eq!(serde_json::from_str::<Ledger>(&text).unwrap(), ledger);
        let forged = text.replace("1.1", "-1.1");
        assert!(
            serde_json::from_str::<Ledger>(&forged).is_err(),
            "a negative noise multiplier was read"
        );
    }
}
