//! What can be wrong with scores and questions about them.
use dosimeter_data::RecordId;

/// Why an audit could not be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A score is NaN or infinite.
    #[error("record {} has the score {score:?}; scores must be finite, records that cannot be judged are listed as not assessable", record.0)]
    NotFinite {
        /// The record.
        record: RecordId,
        /// Its score.
        score: f64,
    },
    /// A record was judged whose membership is not known.
    #[error("record {} was judged but is no candidate: its membership is not known", record.0)]
    UnknownRecord {
        /// The record.
        record: RecordId,
    },
    /// A record appears twice.
    #[error("record {} appears twice (among judged and not assessable records together); each may appear once", record.0)]
    DuplicateRecord {
        /// The record.
        record: RecordId,
    },
    /// Two arrays that belong together differ in length.
    #[error("{what} has {got} entries, needed {needed}")]
    Length {
        /// The array.
        what: &'static str,
        /// Entries needed.
        needed: usize,
        /// Entries given.
        got: usize,
    },
    /// Members or non-members are missing, so that nothing can be compared.
    #[error(
        "needed at least one judged member and one judged non-member, got {members} and {non_members}"
    )]
    OneSided {
        /// Judged members.
        members: u64,
        /// Judged non-members.
        non_members: u64,
    },
    /// More records than record ids.
    #[error("{got} records are more than the {} that ids can name", u32::MAX)]
    TooManyRecords {
        /// Records given.
        got: usize,
    },
    /// A number outside the range its meaning allows.
    #[error("{what} must be {needed}, got {got:?}")]
    OutOfRange {
        /// The quantity.
        what: &'static str,
        /// The range it must lie in.
        needed: &'static str,
        /// What was given.
        got: f64,
    },
    /// Too few values for what was asked.
    #[error("{what} needs at least {needed}, got {got}")]
    TooFew {
        /// What was asked.
        what: &'static str,
        /// Values needed.
        needed: usize,
        /// Values given.
        got: usize,
    },
    /// Something about a patient of a trial.
    #[error("patient {patient}: {what} must be {needed}")]
    Patient {
        /// Its place, from 0.
        patient: usize,
        /// Which quantity.
        what: String,
        /// The range it must lie in.
        needed: &'static str,
    },
    /// A record id that is no row of the data set.
    #[error("record {} is no row of a data set of {rows} rows", record.0)]
    NoSuchRow {
        /// The record.
        record: RecordId,
        /// Rows of the data set.
        rows: usize,
    },
}

/// Checks that `value` satisfies `ok`; NaN never does.
pub(crate) fn within(
    what: &'static str,
    needed: &'static str,
    value: f64,
    ok: impl Fn(f64) -> bool,
) -> Result<f64, Error> {
    if ok(value) { Ok(value) } else { Err(Error::OutOfRange { what, needed, got: value }) }
}

/// Checks a confidence level, `(0, 1)`.
pub(crate) fn confidence(value: f64) -> Result<f64, Error> {
    within("confidence", "strictly between 0 and 1", value, |x| x > 0.0 && x < 1.0)
}
