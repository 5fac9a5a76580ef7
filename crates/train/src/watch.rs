//! Progress events and stop requests.

/// Where a training stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Updates done.
    pub steps: u64,
    /// Updates planned (early stopping may end sooner).
    pub planned_steps: u64,
    /// Epochs done.
    pub epochs: usize,
    /// Validation loss after the last epoch, in nats per record, if there are validation records.
    pub validation_loss: Option<f64>,
}

/// Told of progress after every epoch and asked before every step whether to go on.
pub trait Watch: Sync {
    /// Called after every epoch.
    fn progress(&self, _progress: &Progress) {}
    /// Whether to stop; then training ends with [`crate::Error::Stopped`].
    fn stop_requested(&self) -> bool {
        false
    }
}

/// Nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;
impl Watch for Unwatched {}
