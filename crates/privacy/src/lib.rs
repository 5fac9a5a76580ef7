//! Guarantees, mechanisms, noise and accounting of differential privacy.
//!
//! This crate knows nothing of data sets or models: it is readable as mathematics. One door leads from a
//! bounded value to a released one, [`Ledger::release`].
pub mod accountants;
pub mod bounded;
pub mod calibrate;
pub mod ceiling;
pub mod event;
pub mod guarantee;
pub mod ledger;
pub mod mechanisms;
pub mod noise;

pub use accountants::{ACCOUNTANTS, Accountant, Unsupported};
pub use bounded::{Bounded, Released};
pub use event::Event;
pub use guarantee::{Delta, Epsilon, NoiseMultiplier, OutOfRange, Relation, SamplingRate, Unit};
pub use ledger::{Ledger, PoissonBatch};
pub use mechanisms::Mechanism;
pub use noise::{Generator, NoiseRng, NoiseSource, Sampler};
