//! Guarantees, mechanisms, noise and accounting of differential privacy.
//!
//! This crate knows nothing of data sets or models: it is readable as mathematics. One door leads from a
//! bounded value to a released one, [`Ledger::release`]; [`ACCOUNTANTS`] turn what the ledger holds into epsilon.
//!
//! ```
//! use dosimeter_privacy::{mechanisms::Gaussian, *};
//! let mut rng = NoiseRng::replayable([7; 32]);
//! let mut ledger = Ledger::new(Unit::Record);
//! let mechanism = Gaussian { noise_multiplier: NoiseMultiplier::new(1.1)? };
//! for _step in 0..10 {
//!     let batch = ledger.sampled(SamplingRate::new(0.01)?, 1000, &mut rng);
//!     let sum = vec![batch.indices().len() as f32 * 0.01; 4]; // stands for a sum of clipped gradients
//!     let noisy = batch.release(&mechanism, Bounded::from_clipped_sum(sum, 1.0)?, &mut rng)?;
//!     assert_eq!(noisy.get().len(), 4);
//! }
//! # Ok::<(), Error>(())
//! ```
#![allow(
    clippy::suboptimal_flops,
    reason = "without a fused instruction at compile time mul_add is a slow library call, and with one results differ between machines"
)]
pub mod accountants;
pub mod bounded;
pub mod calibrate;
pub mod ceiling;
pub mod error;
pub mod event;
pub mod guarantee;
pub mod ledger;
pub mod mechanisms;
pub mod noise;
mod normal;
pub mod stable;

pub use accountants::{ACCOUNTANTS, Accountant, Unsupported};
pub use bounded::{Bounded, BoundedInParts, BoundedL1, Released};
pub use error::Error;
pub use event::Event;
pub use guarantee::{
    Delta, Epsilon, LaplaceScale, NoiseMultiplier, OutOfRange, Relation, SamplingRate, Unit,
};
pub use ledger::{Ledger, PoissonBatch};
pub use mechanisms::{MECHANISMS, Mechanism};
pub use noise::{Generator, NoiseRng, NoiseSource, Sampler};
pub use stable::{Costs, Stable, StableL1};
