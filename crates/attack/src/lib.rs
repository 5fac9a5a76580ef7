//! Membership inference attacks: what a model gives away, turned into one score per record.
//!
//! The study trains the models and queries them once; an attack sees the answers ([`ModelSignals`]) through a
//! [`View`] and never the truth about the target. Every attack is an entry of [`ATTACKS`].
//!
//! ```
//! use dosimeter_attack::{ATTACKS, ModelSignals, View};
//! use dosimeter_data::{RecordId, Seed};
//! let target = ModelSignals {
//!     records: vec![RecordId(0), RecordId(1)],
//!     labels: vec![0, 0],
//!     classes: 2,
//!     logits: vec![9.0, 0.0, 0.5, 0.0], // sure of record 0, unsure of record 1
//!     last_layer_inputs: None,
//! };
//! let view = View::new(&target, Seed::root(1))?;
//! let scores = ATTACKS[0].score(&view)?;
//! assert!(scores.judged[0].1 > scores.judged[1].1);
//! # Ok::<(), dosimeter_attack::Error>(())
//! ```
mod adam;
pub mod attack;
pub mod distinguishing;
mod dropout;
pub mod error;
pub mod inversion;
pub mod knowledge;
pub mod membership;
pub mod mimicry;
mod permutation;
pub mod query;
mod rank_one;
pub mod reconstruction;
pub mod signals;
pub mod squared_error;
mod stack;

pub use attack::{Access, Attack, Needs, Note, Outcome};
pub use dosimeter_audit::Scores;
pub use error::Error;
pub use membership::{ATTACKS, Settings, configured};
pub use mimicry::{Mimicry, ModelFacts};
pub use query::query;
pub use reconstruction::LinearReconstruction;
pub use signals::{ModelSignals, Shadow, View};
