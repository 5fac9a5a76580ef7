//! Training with and without differential privacy: where records, models and privacy meet.
//!
//! [`fit`] trains one network under one [`Recipe`], single-threaded and bit-reproducible; run several trainings in
//! parallel instead of one training on several threads. Noise passes through
//! [`dosimeter_privacy::Ledger::sampled`] only, and [`optimizer::PrivateOptimizer`] accepts nothing else.
pub mod batch;
pub mod error;
pub mod evaluate;
pub mod local;
pub mod optimizer;
pub mod plain;
pub mod recipe;
pub mod regression;
pub mod trainer;
pub mod watch;

pub use batch::Batch;
pub use error::Error;
pub use evaluate::{Evaluation, evaluate};
pub use recipe::{Architecture, Arm, EarlyStopping, Optimizer, Recipe};
pub use trainer::{Epoch, Speed, Trained, Training, fit};
pub use watch::{Progress, Unwatched, Watch};
