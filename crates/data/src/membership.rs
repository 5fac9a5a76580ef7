//! Who was in whose training set.
use crate::{RecordId, Seed};

/// Membership of a list of candidate records in one training set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// The candidates, in the order used everywhere.
    pub candidates: Vec<RecordId>,
    /// Whether each was trained on.
    pub member: Vec<bool>,
}
impl Membership {
    /// One independent fair coin per candidate: what the one-run bound assumes.
    #[must_use]
    pub fn coins(_candidates: Vec<RecordId>, _seed: Seed) -> Self {
        todo!()
    }
    /// Exactly half (rounded down) of each class are members: fixed size, coins no longer independent.
    #[must_use]
    pub fn fixed_half(_candidates: Vec<RecordId>, _labels: &[u32], _seed: Seed) -> Self {
        todo!()
    }
    /// The records trained on, in candidate order.
    #[must_use]
    pub fn members(&self) -> Vec<RecordId> {
        self.candidates.iter().zip(&self.member).filter(|(_, m)| **m).map(|(r, _)| *r).collect()
    }
    /// The candidates not trained on, in candidate order.
    #[must_use]
    pub fn non_members(&self) -> Vec<RecordId> {
        self.candidates.iter().zip(&self.member).filter(|(_, m)| !**m).map(|(r, _)| *r).collect()
    }
}
