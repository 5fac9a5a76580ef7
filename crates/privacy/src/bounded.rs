//! Values with a known sensitivity, and values that have been released.

/// A vector whose L2 norm contribution per record is at most `clipping_norm`.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounded {
    values: Vec<f32>,
    clipping_norm: f64,
}
impl Bounded {
    /// The bound on one record's contribution in L2.
    #[must_use]
    pub const fn clipping_norm(&self) -> f64 {
        self.clipping_norm
    }
    /// A sum of per-record vectors, each already scaled to at most `clipping_norm` by the caller (`train::gradient`).
    #[must_use]
    pub const fn from_clipped_sum(values: Vec<f32>, clipping_norm: f64) -> Self {
        Self { values, clipping_norm }
    }
    pub(crate) fn into_values(self) -> Vec<f32> {
        self.values
    }
}

/// A value that has passed through a mechanism. Free to post-process, store and send. Only a ledger makes one.
#[derive(Debug, Clone, PartialEq)]
pub struct Released<T>(pub(crate) T);
impl<T> Released<T> {
    /// Takes the value out.
    pub fn into_inner(self) -> T {
        self.0
    }
    /// Reads the value.
    pub const fn get(&self) -> &T {
        &self.0
    }
}
