//! Why an attack could not be run.
use dosimeter_data::RecordId;

/// What was needed and what was there.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A list has another length than the records ask for.
    #[error("{what} has {have} values; {needed} are needed")]
    WrongLength {
        /// Which list.
        what: &'static str,
        /// Values needed.
        needed: usize,
        /// Values there.
        have: usize,
    },
    /// A label is not below the number of classes.
    #[error("record {} has label {label}; there are {classes} classes", record.0)]
    LabelOutOfRange {
        /// The record.
        record: RecordId,
        /// Its label.
        label: u32,
        /// Number of classes.
        classes: usize,
    },
    /// A model answered NaN or infinity.
    #[error("{what} of record {} is not finite", record.0)]
    NotFinite {
        /// The record.
        record: RecordId,
        /// Which signal.
        what: &'static str,
    },
    /// A record was queried twice.
    #[error("record {} was queried twice", record.0)]
    DuplicateRecord {
        /// The record.
        record: RecordId,
    },
    /// A shadow model has another number of classes than the target.
    #[error("shadow {shadow} has {have} classes; the target has {needed}")]
    ClassesDiffer {
        /// Position among the shadows.
        shadow: usize,
        /// Classes of the target.
        needed: usize,
        /// Classes of the shadow.
        have: usize,
    },
    /// The attack needs more shadow models.
    #[error("{attack} needs {needed} shadow models; there are {have}")]
    TooFewShadows {
        /// The attack.
        attack: &'static str,
        /// Shadow models needed.
        needed: usize,
        /// Shadow models there.
        have: usize,
    },
    /// A shadow model knows a record on which the target is attacked.
    #[error("shadow {shadow} was queried on record {}, a candidate of the target", record.0)]
    SharedRecord {
        /// Position among the shadows.
        shadow: usize,
        /// The record.
        record: RecordId,
    },
    /// Members or non-members are missing from what an attack learns from.
    #[error(
        "{attack} needs {needed} members and {needed} non-members to learn from; there are {members} and {non_members}"
    )]
    OneSided {
        /// The attack.
        attack: &'static str,
        /// Records needed on each side.
        needed: usize,
        /// Members there.
        members: usize,
        /// Non-members there.
        non_members: usize,
    },
    /// Membership of a record was given that the target was not queried on.
    #[error("membership of record {} is given, but the target was not queried on it", record.0)]
    UnknownRecord {
        /// The record.
        record: RecordId,
    },
    /// The inputs of the last layer are needed: query with white-box access.
    #[error("{attack} needs the inputs of the target's last layer: query with white-box access")]
    MissingLastLayer {
        /// The attack.
        attack: &'static str,
    },
    /// A setting is out of range.
    #[error("{attack}: {field} is {have}; it must be {needed}")]
    Setting {
        /// The attack.
        attack: &'static str,
        /// The setting.
        field: &'static str,
        /// What it must be.
        needed: &'static str,
        /// What it is.
        have: f64,
    },
    /// The attack's own network left the finite numbers.
    #[error(
        "training its network gave a number that is not finite after epoch {epoch}; a smaller {attack}.learning_rate may help"
    )]
    Diverged {
        /// The attack.
        attack: &'static str,
        /// The epoch, from 1.
        epoch: usize,
    },
    /// A rate or a curve without records, or a confidence out of range.
    #[error(transparent)]
    Audit(#[from] dosimeter_audit::Error),
    /// A table that does not hold together.
    #[error("{0}")]
    Table(String),
    /// A network could not be built or queried.
    #[error(transparent)]
    Model(#[from] dosimeter_model::Error),
    /// An attack network could not be fitted, or records could not be gathered.
    #[error(transparent)]
    Train(#[from] dosimeter_train::Error),
    /// The caller asked to stop.
    #[error("stopped on request")]
    Stopped,
}
impl From<dosimeter_data::Error> for Error {
    fn from(error: dosimeter_data::Error) -> Self {
        Self::Table(error.to_string())
    }
}
