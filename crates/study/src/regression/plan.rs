//! What a study of regression will compute.
use serde::Serialize;

/// Draws of the same fits, each draw a task; and how long they take.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RegressionPlan {
    /// Name of the study.
    pub study: String,
    /// Name of the table.
    pub table: String,
    /// Digest of the layout and every number as loaded.
    pub data_fingerprint: String,
    /// Rows.
    pub rows: usize,
    /// Features of a row.
    pub features: usize,
    /// Rows that are fitted in a draw.
    pub fitted: usize,
    /// Splits, each with noise of its own.
    pub draws: u32,
    /// Fits of a draw.
    pub fits: Vec<PlannedFit>,
    /// Seconds of one draw on one core: the first was done, and its result thrown away.
    pub seconds_per_draw: f64,
    /// Seconds of all draws on one core.
    pub estimated_seconds: f64,
}
/// A mechanism at an epsilon on a share of the rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedFit {
    /// Its name.
    pub mechanism: String,
    /// What it promises.
    pub claim: &'static str,
    /// Loss asked for, nats; `None`: no protection is meant.
    pub epsilon: Option<f64>,
    /// Share of the rows that may be fitted.
    pub share: f64,
}
