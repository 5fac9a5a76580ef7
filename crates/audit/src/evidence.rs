//! Scores joined with the truth by record.
use dosimeter_data::RecordId;

/// Scores with the truth beside them, in candidate order.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Record, score, membership.
    pub rows: Vec<(RecordId, f64, bool)>,
}
