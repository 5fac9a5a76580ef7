//! Reusable memory of the passes through a graph.
use crate::kernels::RowLists;
use crate::layers::{Kept, Scratch};

/// All buffers of forward and backward passes. They grow to the largest block seen and are then reused: a training
/// step allocates next to nothing.
#[derive(Debug, Clone, Default)]
pub struct Workspace {
    /// Values of the block at hand: by place, or in a pass without gradients by slot.
    pub(crate) values: Vec<Vec<f32>>,
    /// Gradients with respect to them.
    pub(crate) gradients: Vec<Vec<f32>>,
    /// Gradients of single records that were formed, by layer.
    pub(crate) kept: Vec<Kept>,
    /// By which the gradients of each record count in `kept`.
    pub(crate) coefficients: Vec<f32>,
    pub(crate) encoded: Encoded,
    pub(crate) scratch: Scratch,
    pub(crate) squared_norms: Vec<f64>,
    pub(crate) seen: Seen,
    /// Of all records of the last `forward`.
    pub(crate) outputs: Vec<f32>,
    pub(crate) last_layer_inputs: Vec<f32>,
    /// Threads that share the blocks of a call; 0 is 1.
    pub(crate) threads: usize,
    /// Of the other threads.
    pub(crate) others: Vec<Self>,
    /// The gradient sum of a block.
    pub(crate) sum: Vec<f32>,
}

/// What a gradient call saw of its records.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) losses: Vec<f32>,
    pub(crate) gradient_norms: Vec<f64>,
    pub(crate) clipped: usize,
    pub(crate) non_finite: usize,
}
impl Seen {
    pub(crate) fn clear(&mut self) {
        self.losses.clear();
        self.gradient_norms.clear();
        (self.clipped, self.non_finite) = (0, 0);
    }
    /// Adds the records of the next block.
    pub(crate) fn add(&mut self, next: &Self) {
        self.losses.extend_from_slice(&next.losses);
        self.gradient_norms.extend_from_slice(&next.gradient_norms);
        self.clipped += next.clipped;
        self.non_finite += next.non_finite;
    }
}

/// The graph's input in the form in which it is used.
#[derive(Debug, Clone, Default)]
pub(crate) struct Encoded {
    /// Bits written out as numbers, or inputs with bad rows blanked.
    pub(crate) expanded: Vec<f32>,
    /// Bits with records and inputs exchanged.
    pub(crate) transposed: Vec<u64>,
    pub(crate) by_record: RowLists,
    pub(crate) by_input: RowLists,
}

impl Workspace {
    /// Empty.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    /// Empty; outputs and gradient sums are shared by so many threads, as far as a batch has blocks of records to share. Changes no
    /// number.
    #[must_use]
    pub fn with_threads(threads: std::num::NonZero<usize>) -> Self {
        Self { threads: threads.get(), ..Self::default() }
    }
    /// Does some work for every block, and hands what it leaves in a workspace to `done` in the order of the blocks, whichever
    /// thread did it.
    pub(crate) fn in_blocks(
        &mut self,
        starts: &[usize],
        work: impl Fn(usize, &mut Self) + Sync,
        mut done: impl FnMut(&Self),
    ) {
        let mut others = std::mem::take(&mut self.others);
        others.resize_with(self.threads.clamp(1, starts.len().max(1)) - 1, Self::new);
        let work = &work;
        for round in starts.chunks(others.len() + 1) {
            std::thread::scope(|scope| {
                for (start, other) in round[1..].iter().zip(&mut others) {
                    scope.spawn(move || work(*start, other));
                }
                work(round[0], self);
            });
            done(self);
            others[..round.len() - 1].iter().for_each(&mut done);
        }
        self.others = others;
    }
    /// What the last linear layer read in the last `forward`, row-major `[records, hidden]`; empty if it read the
    /// inputs themselves or there is none.
    #[must_use]
    pub fn last_layer_inputs(&self) -> &[f32] {
        &self.last_layer_inputs
    }
    /// Losses of the records of the last gradient call, in order.
    #[must_use]
    pub fn losses(&self) -> &[f32] {
        &self.seen.losses
    }
    /// Norms of the records' gradients before clipping, from the last clipped gradient call, in order; may be NaN
    /// or infinite for a record that was left out.
    #[must_use]
    pub fn gradient_norms(&self) -> &[f64] {
        &self.seen.gradient_norms
    }
    /// How many records of the last clipped gradient call were scaled down.
    #[must_use]
    pub const fn clipped_records(&self) -> usize {
        self.seen.clipped
    }
    /// How many records of the last clipped gradient call had a gradient that is not finite and were left out.
    #[must_use]
    pub const fn non_finite_records(&self) -> usize {
        self.seen.non_finite
    }
}
