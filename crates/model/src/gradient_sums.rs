//! Sums of the gradients of single records, block by block and on several threads.
use crate::kernels::{self, Write};
use crate::{Error, Examples, GradientParts, Graph, Layer, Node, Workspace};
use std::ops::Range;
use std::sync::Arc;

impl Graph {
    /// `out = sum over records of the gradient of the record's loss` with respect to all parameters, or `+=`.
    ///
    /// Losses per record are in the workspace afterwards. No rows: the sum is 0. Rows given in several calls, each of
    /// whole [`RECORD_BLOCK`](crate::RECORD_BLOCK)s but the last, give the same bits as in one call.
    ///
    /// # Errors
    /// If rows, targets or `out` do not fit the network.
    pub fn gradient_sum(
        &self,
        examples: &Examples<'_>,
        workspace: &mut Workspace,
        out: &mut [f32],
        write: Write,
    ) -> Result<(), Error> {
        self.sum_gradients(examples, None, workspace, out, write)
    }

    /// Clips each record's gradient to `clipping_norm` (L2, over all parameters) and adds them up.
    ///
    /// Norms come from inputs and output gradients of each layer (book-keeping), and the clipped sum is
    /// `A^T diag(c) B` layer by layer: there is no second backward pass, and no per-record gradient is formed save by
    /// normalizations, by convolutions for which that is the cheaper way, and where a convolution's gradients cancel over
    /// the places. A gradient once formed is what is added, so its norm is that of what is added, however it was rounded.
    /// Losses and norms per record are in the workspace afterwards. Several calls are as in [`Self::gradient_sum`].
    ///
    /// # Guarantee
    /// Adding or removing one record adds or removes one vector of norm at most `clipping_norm`, for any input
    /// (the sum itself is rounded to single precision):
    ///
    /// | record | contributes |
    /// |---|---|
    /// | norm ≤ `clipping_norm` | its gradient |
    /// | norm > `clipping_norm` | its gradient, scaled to `clipping_norm` (less 1e-6 relative, against rounding) |
    /// | NaN or infinite anywhere | zero; counted by [`Workspace::non_finite_records`] |
    /// | no records at all | zero |
    ///
    /// Norms are taken in double precision, of the single-precision numbers that the sum is formed from. Rounding scaled
    /// output gradients to single precision, and a norm by Gram matrices, stay within the 1e-6: a convolution forms the
    /// gradient of a record for which they would not.
    ///
    /// # Source
    /// Bu et al., *Differentially Private Optimization on Large Model at Small Cost*, ICML 2023
    /// (arXiv:2210.00038): the book-keeping algorithm.
    ///
    /// # Errors
    /// If rows, targets or `out` do not fit the network, or `clipping_norm` is not finite and above 0.
    pub fn clipped_gradient_sum(
        &self,
        examples: &Examples<'_>,
        clipping_norm: f64,
        workspace: &mut Workspace,
        out: &mut [f32],
        write: Write,
    ) -> Result<(), Error> {
        self.sum_gradients(examples, Some(clipping_norm), workspace, out, write)
    }

    /// The same sums in parts: [`Self::clipped_gradient_sum`] with a clipping norm, else [`Self::gradient_sum`]. The last
    /// block of records (in small batches the only one) is not added up until a part is asked for, unless several threads
    /// share the blocks; what comes before it is added up in `sum`, or to it.
    ///
    /// # Errors
    /// As those two.
    pub fn gradient_in_parts<'a>(
        &self,
        examples: &Examples<'a>,
        clipping_norm: Option<f64>,
        workspace: &'a mut Workspace,
        sum: &'a mut [f32],
        write: Write,
    ) -> Result<GradientParts<'a>, Error> {
        self.check_gradient(examples, clipping_norm, workspace, sum)?;
        let (records, block) = (examples.rows.len(), self.wiring.layout.block);
        let mut last = records.saturating_sub(1) / block * block;
        if last > 0 && workspace.threads > 1 {
            // The last block is another thread's, or has to wait for those of others.
            last = records;
        }
        if records == 0 && write == Write::Overwrite {
            sum.fill(0.0);
        }
        self.add_blocks(examples, 0..last, clipping_norm, workspace, sum, write);
        let block = examples.block(last, records - last, self.outputs());
        let input = self.propagate(&block, clipping_norm, workspace);
        let alone = records > 0 && last == 0 && write == Write::Overwrite;
        Ok(GradientParts {
            wiring: Arc::clone(&self.wiring),
            block: block.rows,
            input,
            workspace,
            before: if alone { None } else { Some(sum) },
            layer: 0,
            row: 0,
        })
    }

    fn sum_gradients(
        &self,
        examples: &Examples<'_>,
        clipping_norm: Option<f64>,
        workspace: &mut Workspace,
        out: &mut [f32],
        write: Write,
    ) -> Result<(), Error> {
        self.check_gradient(examples, clipping_norm, workspace, out)?;
        let records = examples.rows.len();
        if records == 0 && write == Write::Overwrite {
            out.fill(0.0);
        }
        self.add_blocks(examples, 0..records, clipping_norm, workspace, out, write);
        Ok(())
    }

    fn check_gradient(
        &self,
        examples: &Examples<'_>,
        clipping_norm: Option<f64>,
        workspace: &mut Workspace,
        out: &[f32],
    ) -> Result<(), Error> {
        if clipping_norm.is_some_and(|norm| !(norm > 0.0 && norm.is_finite())) {
            return Err(Error::ClippingNorm);
        }
        let batch_normalization = |n: &Node| matches!(n.layer, Layer::BatchNormalization(_));
        if let Some(layer) = self.nodes().iter().position(batch_normalization) {
            return Err(Error::BatchNormalization { layer });
        }
        self.check_width(&examples.rows)?;
        examples.targets.check(examples.loss, examples.rows.len(), self.outputs())?;
        let needed = self.parameters().len();
        if out.len() != needed {
            return Err(Error::ParameterCount { needed, got: out.len() });
        }
        workspace.seen.clear();
        Ok(())
    }

    /// Adds up the records in `range`. The sum of each block is formed by itself and then added, in order, so that it does not
    /// matter which thread forms it.
    fn add_blocks(
        &self,
        examples: &Examples<'_>,
        range: Range<usize>,
        clipping_norm: Option<f64>,
        workspace: &mut Workspace,
        out: &mut [f32],
        mut write: Write,
    ) {
        let length = self.wiring.layout.block;
        let block =
            |start: usize| examples.block(start, length.min(range.end - start), self.outputs());
        let starts: Vec<usize> = range.clone().step_by(length).collect();
        let mut seen = std::mem::take(&mut workspace.seen);
        workspace.in_blocks(
            &starts,
            |start, workspace| {
                workspace.seen.clear();
                let mut sum = std::mem::take(&mut workspace.sum);
                sum.resize(self.parameters().len(), 0.0);
                self.sum_block(&block(start), clipping_norm, workspace, &mut sum);
                workspace.sum = sum;
            },
            |workspace| {
                match write {
                    Write::Overwrite => out.copy_from_slice(&workspace.sum),
                    Write::Accumulate => kernels::axpy(out, 1.0, &workspace.sum),
                }
                write = Write::Accumulate;
                seen.add(&workspace.seen);
            },
        );
        workspace.seen = seen;
    }

    /// Overwrites `out` by the sum of one block.
    fn sum_block(
        &self,
        block: &Examples<'_>,
        clipping_norm: Option<f64>,
        workspace: &mut Workspace,
        out: &mut [f32],
    ) {
        let wiring = &*self.wiring;
        let input = self.propagate(block, clipping_norm, workspace);
        let mut scratch = std::mem::take(&mut workspace.scratch);
        for (i, parameters) in wiring.parameters.iter().enumerate() {
            if !parameters.is_empty() {
                let (out, write) = (&mut out[parameters.clone()], Write::Overwrite);
                let (rows, scratch) = (&block.rows, &mut scratch);
                input.parameter_gradient(wiring, i, rows, workspace, scratch, out, write);
            }
        }
        workspace.scratch = scratch;
    }
}
