//! What can go wrong in training.
use dosimeter_data::RecordId;

/// What was needed and what was there.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number of the recipe outside its range.
    #[error("{what} must be {needed}, got {got}")]
    Recipe {
        /// The quantity.
        what: &'static str,
        /// Its range.
        needed: &'static str,
        /// What was given.
        got: f64,
    },
    /// An architecture for other records than the data set has.
    #[error("the network takes {needed}, the data set has {got}")]
    Records {
        /// What the architecture takes.
        needed: &'static str,
        /// What there is.
        got: &'static str,
    },
    /// Nothing to train on.
    #[error("training needs at least one record")]
    NoRecords,
    /// Early stopping watches the loss on validation records.
    #[error("early stopping needs validation records, got none")]
    NoValidation,
    /// A record the data set does not have.
    #[error("record {} is not in the data set of {records} records", record.0)]
    UnknownRecord {
        /// Which.
        record: RecordId,
        /// How many there are.
        records: usize,
    },
    /// A record whose label or inputs a network cannot use.
    #[error("record {}: class {class} is not below the number of classes {classes}", record.0)]
    ClassRange {
        /// Which.
        record: RecordId,
        /// Its class.
        class: u32,
        /// Number of classes.
        classes: usize,
    },
    /// A record listed twice would count twice while the ledger counts it once.
    #[error("record {} is listed twice among the training records", record.0)]
    Repeated {
        /// Which.
        record: RecordId,
    },
    /// The parameters are no longer finite.
    #[error(
        "the parameters are no longer finite after epoch {epoch}; a smaller learning rate may help"
    )]
    Diverged {
        /// Counted from 1.
        epoch: usize,
    },
    /// The watcher asked to stop.
    #[error("stopped on request after {steps} steps")]
    Stopped {
        /// Updates done.
        steps: u64,
    },
    /// A column that has no local randomizer or does not fit its inputs.
    #[error("column {column}: {what}")]
    Column {
        /// Its name.
        column: String,
        /// What is wrong.
        what: &'static str,
    },
    /// Shapes that do not fit the network.
    #[error(transparent)]
    Model(#[from] dosimeter_model::Error),
    /// A privacy parameter out of range, or noise that cannot be represented.
    #[error(transparent)]
    Privacy(#[from] dosimeter_privacy::Error),
}
