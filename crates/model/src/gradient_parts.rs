//! The gradient sum of a batch, handed out part by part.
use crate::graph::{Encoding, Stage};
use crate::kernels::{Write, equal_tiles};
use crate::{Rows, Workspace};

/// The gradient sum of [`Graph::gradient_in_parts`](crate::Graph::gradient_in_parts): what an optimizer uses up part by
/// part while it is in the cache need not be written to memory and read back. The parts are those of the sum that
/// [`Graph::gradient_sum`](crate::Graph::gradient_sum) and
/// [`Graph::clipped_gradient_sum`](crate::Graph::clipped_gradient_sum) form, bit by bit.
#[derive(Debug)]
pub struct GradientParts<'a> {
    pub(crate) stages: Vec<Stage>,
    /// The last block of records.
    pub(crate) block: Rows<'a>,
    pub(crate) encoding: Encoding,
    pub(crate) workspace: &'a Workspace,
    /// The sum over all blocks before.
    pub(crate) before: Option<&'a [f32]>,
    pub(crate) stage: usize,
    pub(crate) row: usize,
}

/// Rows of a weight matrix in one part: as many as a dense product forms at a time, and of a sparse one so many that
/// the part, its parameters and two moments fit the second-level cache.
const DENSE_ROWS: usize = 240;
const SPARSE_NUMBERS: usize = 1 << 14;

impl GradientParts<'_> {
    /// Losses, norms and counts of the batch.
    #[must_use]
    pub const fn workspace(&self) -> &Workspace {
        self.workspace
    }
    /// Most numbers in a part.
    #[must_use]
    pub fn longest(&self) -> usize {
        let rows = |i: usize| (self.rows_per_part(i) + 1) * self.stages[i].linear.outputs;
        (0..self.stages.len()).map(rows).max().unwrap_or(0)
    }
    fn rows_per_part(&self, stage: usize) -> usize {
        let linear = self.stages[stage].linear;
        let most = if stage == 0 && self.encoding.sparse {
            (SPARSE_NUMBERS / linear.outputs).max(8)
        } else {
            DENSE_ROWS
        };
        equal_tiles(linear.inputs, most)
    }
    /// Writes the next part to the front of `out` and says how many numbers it has; 0 after the last one. Parts follow
    /// each other without gaps.
    ///
    /// # Panics
    /// If `out` has less room than [`Self::longest`].
    pub fn next_part(&mut self, out: &mut [f32]) -> usize {
        let Some(stage) = self.stages.get(self.stage) else { return 0 };
        let linear = stage.linear;
        // The biases are one more row behind the weights.
        let mut end = self.row + self.rows_per_part(self.stage);
        if end >= linear.inputs {
            end = linear.inputs + 1;
        }
        let length = (end - self.row) * linear.outputs;
        let out = &mut out[..length];
        let write = match self.before {
            None => Write::Overwrite,
            Some(before) => {
                let start = stage.offset + self.row * linear.outputs;
                out.copy_from_slice(&before[start..start + length]);
                Write::Accumulate
            }
        };
        if !self.block.is_empty() {
            let input = self.encoding.input(self.stage, &self.block, self.workspace);
            let gradient = &self.workspace.gradients[self.stage];
            linear.parameter_gradient(input, gradient, self.row..end, out, write);
        }
        self.row = end;
        if end > linear.inputs {
            (self.stage, self.row) = (self.stage + 1, 0);
        }
        length
    }
}
