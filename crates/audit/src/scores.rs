//! What an attack says of each record.
use crate::Error;
use dosimeter_data::RecordId;
use serde::{Deserialize, Serialize};

/// One finite number per judged record; larger = more likely a member. Records that could not be judged are listed apart.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Scores {
    /// Judged records and their scores, in candidate order.
    pub judged: Vec<(RecordId, f64)>,
    /// Candidates the attack could not judge (for example those it was given to learn from). Which they are must not
    /// depend on the membership of the judged ones.
    pub not_assessable: Vec<RecordId>,
}
impl Scores {
    /// Scores of records in the order given, none left out.
    ///
    /// # Errors
    /// [`Error::Length`] if the two lists differ in length.
    pub fn new(records: &[RecordId], scores: &[f64]) -> Result<Self, Error> {
        if records.len() != scores.len() {
            return Err(Error::Length { what: "scores", needed: records.len(), got: scores.len() });
        }
        Ok(Self {
            judged: records.iter().copied().zip(scores.iter().copied()).collect(),
            not_assessable: Vec::new(),
        })
    }
    /// The score of a record, if it was judged. Linear in the number of records.
    #[must_use]
    pub fn of(&self, record: RecordId) -> Option<f64> {
        self.judged.iter().find(|(r, _)| *r == record).map(|(_, s)| *s)
    }
}
