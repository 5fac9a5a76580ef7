//! What an attack says of each record.
use dosimeter_data::RecordId;

/// One finite number per judged record; larger = more likely a member. Records that could not be judged are listed apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    /// Judged records and their scores, in candidate order.
    pub judged: Vec<(RecordId, f64)>,
    /// Candidates the attack could not judge, with the reason (for example its own training half).
    pub not_assessable: Vec<RecordId>,
}
