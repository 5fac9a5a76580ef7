//! The gradient sum of a batch, handed out part by part.
use crate::block_input::BlockInput;
use crate::graph::Wiring;
use crate::kernels::{self, Write, equal_tiles};
use crate::layers::{Layer, Scratch};
use crate::{Linear, Rows, Workspace};
use std::sync::Arc;

/// The gradient sum of [`Graph::gradient_in_parts`](crate::Graph::gradient_in_parts): what an optimizer uses up part by
/// part while it is in the cache need not be written to memory and read back. The parts are those of the sum that
/// [`Graph::gradient_sum`](crate::Graph::gradient_sum) and
/// [`Graph::clipped_gradient_sum`](crate::Graph::clipped_gradient_sum) form, bit by bit.
#[derive(Debug)]
pub struct GradientParts<'a> {
    pub(crate) wiring: Arc<Wiring>,
    /// The last block of records.
    pub(crate) block: Rows<'a>,
    pub(crate) input: BlockInput,
    pub(crate) workspace: &'a Workspace,
    /// The sum over all blocks before.
    pub(crate) before: Option<&'a [f32]>,
    pub(crate) layer: usize,
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
        let longest_of = |i: usize| match self.wiring.nodes[i].layer {
            Layer::Linear(linear) => (self.rows_per_part(i, linear) + 1) * linear.outputs,
            _ => self.wiring.parameters[i].len(),
        };
        (0..self.wiring.nodes.len()).map(longest_of).max().unwrap_or(0)
    }
    fn rows_per_part(&self, layer: usize, linear: Linear) -> usize {
        let reads_rows = self.wiring.nodes[layer].inputs[0].position() == 0;
        let most = if reads_rows && self.input.sparse {
            (SPARSE_NUMBERS / linear.outputs).max(8)
        } else {
            DENSE_ROWS
        };
        equal_tiles(linear.inputs, most)
    }
    /// Writes the next part to the front of `out` and says how many numbers it has; 0 after the last one. Parts follow
    /// each other without gaps: of a linear layer some rows of weights, of another layer all its parameters.
    ///
    /// # Panics
    /// If `out` has less room than [`Self::longest`].
    pub fn next_part(&mut self, out: &mut [f32]) -> usize {
        let wiring = Arc::clone(&self.wiring);
        while wiring.parameters.get(self.layer).is_some_and(std::ops::Range::is_empty) {
            self.layer += 1;
        }
        let Some(range) = wiring.parameters.get(self.layer) else { return 0 };
        let layer = self.layer;
        let (start, rows) = match wiring.nodes[layer].layer {
            Layer::Linear(linear) => {
                // The biases are one more row behind the weights.
                let mut end = self.row + self.rows_per_part(layer, linear);
                if end >= linear.inputs {
                    end = linear.inputs + 1;
                }
                (range.start + self.row * linear.outputs, Some((linear, self.row..end)))
            }
            _ => (range.start, None),
        };
        let length = match &rows {
            Some((linear, rows)) => rows.len() * linear.outputs,
            None => range.len(),
        };
        let out = &mut out[..length];
        let before = self.before.map(|before| &before[start..start + length]);
        let (block, workspace, input) = (&self.block, self.workspace, self.input);
        match rows {
            Some((linear, rows)) => {
                self.row = rows.end;
                if rows.end > linear.inputs {
                    (self.layer, self.row) = (layer + 1, 0);
                }
                if !block.is_empty() {
                    let write = Write::Overwrite;
                    input.linear_gradient(
                        &wiring, layer, linear, block, workspace, rows, out, write,
                    );
                }
            }
            None => {
                self.layer = layer + 1;
                if !block.is_empty() {
                    let (scratch, write) = (&mut Scratch::default(), Write::Overwrite);
                    input.parameter_gradient(&wiring, layer, block, workspace, scratch, out, write);
                }
            }
        }
        match before {
            Some(before) if block.is_empty() => out.copy_from_slice(before),
            // Each block's sum is added as a whole.
            Some(before) => kernels::axpy(out, 1.0, before),
            None => {}
        }
        length
    }
}
