//! Disjoint, stratified roles of records.
use crate::RecordId;

/// How a data set is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitSpec {
    /// Nominal training-set size `n`; `2 n` candidates are drawn, each a member by a fair coin (or exactly half of them).
    pub train: usize,
    /// Records for test accuracy, never candidates and never in the shadow pool; taken from `test_law` when the data set has one.
    pub test: usize,
}
/// Disjoint roles. Shadow candidates are drawn from `shadow_pool`, `2 n` at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// `2 n` candidates, stratified by class.
    pub candidates: Vec<RecordId>,
    /// Records for test accuracy.
    pub test: Vec<RecordId>,
    /// Everything else.
    pub shadow_pool: Vec<RecordId>,
}
