//! The ways through a graph: forward, backward, and sums of the gradients of single records.
use crate::graph::Wiring;
use crate::kernels::{self, Limits, Write};
use crate::layers::{Kept, Layer, Linear, LinearInput, Read, Scratch};
use crate::workspace::Encoded;
use crate::{Error, Examples, GradientParts, Graph, Node, Rows, Value, Workspace};
use std::ops::Range;
use std::sync::Arc;

/// Bits are summed row by row below this share of ones, and written out as numbers for a dense product above it.
///
/// Measured on an AVX2 core: with 24 % ones a clipped sum takes 0.69 times as long by row sums as by dense products,
/// with 6169 inputs as with 600; growing with the ones, it would take as long at 36 to 41 %. The choice is made for each
/// block of records by counting its ones, so it depends on the data alone; the two ways differ in rounding only.
const SPARSE_BELOW: f64 = 0.35;

/// A clipped record is scaled to `clipping_norm / (1 + CLIPPING_SLACK)`, so that rounding its scaled gradient to
/// single precision cannot lift it above `clipping_norm`.
const CLIPPING_SLACK: f64 = 1.0 / (1 << 20) as f64;

impl Graph {
    /// Outputs of each record, row-major `[records, outputs]`; [`Workspace::last_layer_inputs`] then gives what the
    /// last linear layer read.
    ///
    /// A record's outputs do not depend on the other records in its block beyond rounding.
    ///
    /// # Errors
    /// [`Error::InputWidth`] if the rows are not [`Self::inputs`] wide.
    pub fn forward<'w>(
        &self,
        rows: &Rows<'_>,
        workspace: &'w mut Workspace,
    ) -> Result<&'w [f32], Error> {
        self.check_width(rows)?;
        let wiring = &*self.wiring;
        let last_linear = self.last_linear();
        workspace.outputs.clear();
        workspace.last_layer_inputs.clear();
        for start in (0..rows.len()).step_by(wiring.layout.block) {
            let length = wiring.layout.block.min(rows.len() - start);
            let block = rows.block(start, length);
            let input = self.forward_block(&block, false, workspace);
            let mut outputs = std::mem::take(&mut workspace.outputs);
            outputs.extend_from_slice(input.numbers(
                wiring,
                self.output().position(),
                &block,
                workspace,
            ));
            workspace.outputs = outputs;
            if let Some(node) = last_linear
                && let read = wiring.nodes[node].inputs[0].position()
                && wiring.layout.places[read].is_some()
            {
                let mut seen = std::mem::take(&mut workspace.last_layer_inputs);
                seen.extend_from_slice(input.numbers(wiring, read, &block, workspace));
                workspace.last_layer_inputs = seen;
            }
        }
        Ok(&workspace.outputs)
    }

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
    /// block of records (in small batches the only one) is not added up until a part is asked for; what comes before
    /// it is added up in `sum`, or to it.
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
        let last = records.saturating_sub(1) / block * block;
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

    fn check_width(&self, rows: &Rows<'_>) -> Result<(), Error> {
        let graphs = matches!(rows, Rows::Graphs(_));
        if graphs != self.reads_graphs() {
            let kind = |graphs: bool| if graphs { "graphs" } else { "numbers" };
            return Err(Error::InputKind { needed: kind(!graphs), got: kind(graphs) });
        }
        if rows.width() == self.inputs() {
            Ok(())
        } else {
            Err(Error::InputWidth { needed: self.inputs(), got: rows.width() })
        }
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
        workspace.losses.clear();
        workspace.gradient_norms.clear();
        (workspace.clipped, workspace.non_finite) = (0, 0);
        Ok(())
    }

    /// Adds up the records in `range`, block by block.
    fn add_blocks(
        &self,
        examples: &Examples<'_>,
        range: Range<usize>,
        clipping_norm: Option<f64>,
        workspace: &mut Workspace,
        out: &mut [f32],
        mut write: Write,
    ) {
        let wiring = &*self.wiring;
        for start in range.clone().step_by(wiring.layout.block) {
            let length = wiring.layout.block.min(range.end - start);
            let block = examples.block(start, length, self.outputs());
            let input = self.propagate(&block, clipping_norm, workspace);
            let mut scratch = std::mem::take(&mut workspace.scratch);
            for (i, parameters) in wiring.parameters.iter().enumerate() {
                if !parameters.is_empty() {
                    let out = &mut out[parameters.clone()];
                    input.parameter_gradient(
                        wiring,
                        i,
                        &block.rows,
                        workspace,
                        &mut scratch,
                        out,
                        write,
                    );
                }
            }
            workspace.scratch = scratch;
            write = Write::Accumulate;
        }
    }

    /// Forward, backward and, if asked, clipping of one block: what its parameter gradients are formed from.
    fn propagate(
        &self,
        examples: &Examples<'_>,
        clipping_norm: Option<f64>,
        workspace: &mut Workspace,
    ) -> BlockInput {
        let block = &examples.rows;
        let mut input = self.forward_block(block, true, workspace);
        self.backward_block(input, examples, workspace);
        for kept in &mut workspace.kept {
            kept.clear();
        }
        match clipping_norm {
            Some(clipping_norm) => {
                self.record_norms(block, input, false, workspace);
                workspace.gradient_norms.extend(workspace.squared_norms.iter().map(|s| s.sqrt()));
                self.clip_records(block, clipping_norm, &mut input, workspace);
            }
            None if self.nodes().iter().any(|n| n.layer.operation().keeps_gradients()) => {
                self.record_norms(block, input, true, workspace);
                workspace.coefficients.clear();
                workspace.coefficients.resize(block.len(), 1.0);
            }
            None => {}
        }
        input
    }

    fn forward_block(
        &self,
        block: &Rows<'_>,
        for_gradient: bool,
        workspace: &mut Workspace,
    ) -> BlockInput {
        let wiring = &*self.wiring;
        let records = block.len();
        let layout = &wiring.layout;
        let widths = if for_gradient { &layout.widths } else { &layout.slot_widths };
        workspace.values.resize_with(widths.len(), Vec::new);
        for (values, width) in workspace.values.iter_mut().zip(widths) {
            values.resize(records * width, 0.0);
        }
        let mut scratch = std::mem::take(&mut workspace.scratch);
        let input = encode(block, wiring.reads_ones(), for_gradient, &mut workspace.encoded);
        for (i, node) in wiring.nodes.iter().enumerate() {
            let Some(place) = wiring.layout.places[i + 1] else { continue };
            let at = input.position(wiring, place);
            let mut memory = std::mem::take(&mut workspace.values[at]);
            let output = &mut memory[..records * wiring.width(i + 1)];
            match &node.layer {
                Layer::Reshape(_) => {}
                _ if wiring.layout.done_before[i] => {}
                Layer::Activation(activation) if wiring.layout.in_place[i] => {
                    (*activation).forward(output, wiring.width(i + 1));
                }
                layer if wiring.layout.in_place[i] => {
                    kernels::clip(output, layer.limits().unwrap_or(Limits::NONE));
                }
                Layer::Convolution(convolution) => {
                    let limits = wiring.layout.limits[i];
                    input.with_read(wiring, self.parameters_at(i), i, block, workspace, |read| {
                        convolution.forward_clipped(read, limits, output, &mut scratch);
                    });
                }
                Layer::Linear(linear) => {
                    let read = input.linear(wiring, i, block, workspace);
                    linear.forward(self.parameters_at(i), read, output);
                }
                layer => {
                    input.with_read(wiring, self.parameters_at(i), i, block, workspace, |read| {
                        layer.operation().forward(read, output, &mut scratch);
                    });
                }
            }
            workspace.values[at] = memory;
        }
        workspace.scratch = scratch;
        input
    }

    /// Losses, and the gradients with respect to every value that depends on parameters.
    fn backward_block(
        &self,
        input: BlockInput,
        examples: &Examples<'_>,
        workspace: &mut Workspace,
    ) {
        let wiring = &*self.wiring;
        let layout = &wiring.layout;
        let (block, records) = (&examples.rows, examples.rows.len());
        workspace.gradients.resize_with(layout.widths.len(), Vec::new);
        for (gradient, width) in workspace.gradients.iter_mut().zip(&layout.widths) {
            gradient.resize(records * width, 0.0);
        }
        let output = self.output().position();
        let mut written = vec![false; layout.widths.len()];
        let Examples { targets, loss, .. } = *examples;
        let mut losses = std::mem::take(&mut workspace.losses);
        match layout.places[output] {
            Some(place) => {
                let gradient = &mut workspace.gradients[place];
                gradient.copy_from_slice(&workspace.values[place]);
                loss.gradient(gradient, self.outputs(), targets, &mut losses);
                written[place] = true;
            }
            // A graph without layers has a loss and no parameters.
            None => {
                let mut outputs = input.numbers(wiring, 0, block, workspace).to_vec();
                loss.gradient(&mut outputs, self.outputs(), targets, &mut losses);
            }
        }
        workspace.losses = losses;
        let mut scratch = std::mem::take(&mut workspace.scratch);
        for (i, node) in wiring.nodes.iter().enumerate().rev() {
            let Some(place) = layout.places[i + 1] else { continue };
            if !layout.depends[i + 1] || matches!(node.layer, Layer::Reshape(_)) {
                continue;
            }
            let mut gradient = std::mem::take(&mut workspace.gradients[place]);
            if !written[place] {
                // The loss does not depend on this value.
                gradient.fill(0.0);
                written[place] = true;
            }
            if layout.in_place[i] {
                let outputs = &workspace.values[place];
                if let Layer::Activation(activation) = &node.layer {
                    (*activation).backward(&mut gradient, outputs, wiring.width(i + 1));
                } else if let Some(limits) = node.layer.limits() {
                    kernels::clip_gradient(&mut gradient, outputs, limits);
                }
                workspace.gradients[place] = gradient;
                continue;
            }
            for (which, value) in node.inputs.iter().enumerate() {
                let Some(below) = layout.places[value.position()] else { continue };
                if !layout.depends[value.position()] {
                    continue;
                }
                let write = if written[below] { Write::Accumulate } else { Write::Overwrite };
                let mut out = std::mem::take(&mut workspace.gradients[below]);
                input.with_read(wiring, self.parameters_at(i), i, block, workspace, |read| {
                    let operation = node.layer.operation();
                    operation.input_gradient(read, which, &gradient, &mut out, write, &mut scratch);
                });
                workspace.gradients[below] = out;
                written[below] = true;
            }
            workspace.gradients[place] = gradient;
        }
        workspace.scratch = scratch;
    }

    /// Squared norms of the records' gradients, of all layers or of those alone that keep gradients in any case.
    fn record_norms(
        &self,
        block: &Rows<'_>,
        input: BlockInput,
        keeping_alone: bool,
        workspace: &mut Workspace,
    ) {
        let wiring = &*self.wiring;
        let mut squared_norms = std::mem::take(&mut workspace.squared_norms);
        let mut scratch = std::mem::take(&mut workspace.scratch);
        let mut kept = std::mem::take(&mut workspace.kept);
        kept.resize_with(wiring.nodes.len(), Kept::default);
        squared_norms.clear();
        squared_norms.resize(block.len(), 0.0);
        for (i, node) in wiring.nodes.iter().enumerate() {
            let Some(place) = wiring.layout.places[i + 1] else { continue };
            if wiring.parameters[i].is_empty()
                || keeping_alone && !node.layer.operation().keeps_gradients()
            {
                continue;
            }
            let gradient = &workspace.gradients[place];
            if let Layer::Linear(linear) = &node.layer {
                let read = input.linear(wiring, i, block, workspace);
                linear.add_squared_gradient_norms(read, gradient, &mut squared_norms);
                continue;
            }
            input.with_read(wiring, self.parameters_at(i), i, block, workspace, |read| {
                let (operation, kept) = (node.layer.operation(), &mut kept[i]);
                let norms = &mut squared_norms;
                operation.add_squared_gradient_norms(read, gradient, norms, kept, &mut scratch);
            });
        }
        workspace.squared_norms = squared_norms;
        workspace.scratch = scratch;
        workspace.kept = kept;
    }

    /// Scales every record's output gradients; blanks the records that are not finite (0 times NaN is NaN).
    fn clip_records(
        &self,
        block: &Rows<'_>,
        clipping_norm: f64,
        input: &mut BlockInput,
        workspace: &mut Workspace,
    ) {
        let layout = &self.wiring.layout;
        let records = block.len();
        workspace.coefficients.clear();
        workspace.coefficients.resize(records, 1.0);
        for record in 0..records {
            let norm = workspace.squared_norms[record].sqrt();
            let row = |width: usize| record * width..(record + 1) * width;
            if !norm.is_finite() {
                workspace.non_finite += 1;
                workspace.coefficients[record] = 0.0;
                for (place, width) in layout.widths.iter().enumerate() {
                    workspace.gradients[place][row(*width)].fill(0.0);
                    workspace.values[place][row(*width)].fill(0.0);
                }
                if let Rows::Dense { width, values } = block {
                    if !input.blanked {
                        workspace.encoded.expanded.clear();
                        workspace.encoded.expanded.extend_from_slice(values);
                    }
                    input.blanked = true;
                    workspace.encoded.expanded[row(*width)].fill(0.0);
                }
                continue;
            }
            let coefficient = clipping_norm / (norm * (1.0 + CLIPPING_SLACK));
            if coefficient < 1.0 && norm > clipping_norm {
                workspace.clipped += 1;
                // Below the normal numbers rounding is not relative.
                let coefficient =
                    Some(coefficient as f32).filter(|c| c.is_normal()).unwrap_or_default();
                workspace.coefficients[record] = coefficient;
                for (i, parameters) in self.wiring.parameters.iter().enumerate() {
                    if let Some(place) = layout.places[i + 1]
                        && !parameters.is_empty()
                        && workspace.kept[i].records.len() < records
                    {
                        let gradient = &mut workspace.gradients[place];
                        kernels::scale_down(&mut gradient[row(layout.widths[place])], coefficient);
                    }
                }
            }
        }
        // Records whose gradients are kept must not be added a second time.
        for (i, kept) in workspace.kept.iter().enumerate() {
            if let Some(place) = layout.places[i + 1]
                && kept.records.len() < records
            {
                let width = layout.widths[place];
                for record in &kept.records {
                    workspace.gradients[place][record * width..(record + 1) * width].fill(0.0);
                }
            }
        }
    }

    fn parameters_at(&self, node: usize) -> &[f32] {
        &self.parameters()[self.wiring.parameters[node].clone()]
    }
}

impl Wiring {
    /// Whether the graph's input goes into linear layers only, which take lists of ones.
    fn reads_ones(&self) -> bool {
        let reads_input = |node: &&Node| node.inputs.contains(&Value::INPUT);
        self.nodes.iter().filter(reads_input).all(|n| matches!(n.layer, Layer::Linear(_)))
    }
}

/// How the graph's input lies in the workspace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockInput {
    /// As lists of ones.
    pub(crate) sparse: bool,
    /// As a copy without the records that are not finite.
    blanked: bool,
    /// Whether every value keeps a place of its own, for the gradients.
    for_gradient: bool,
}
impl BlockInput {
    /// Where a place lies in the workspace.
    fn position(self, wiring: &Wiring, place: usize) -> usize {
        if self.for_gradient { place } else { wiring.layout.slots[place] }
    }
    /// The numbers of a value, `[records, width]`.
    fn numbers<'a>(
        self,
        wiring: &Wiring,
        value: usize,
        block: &Rows<'a>,
        workspace: &'a Workspace,
    ) -> &'a [f32] {
        match (wiring.layout.places[value], block) {
            (Some(place), _) => {
                let memory = &workspace.values[self.position(wiring, place)];
                &memory[..block.len() * wiring.width(value)]
            }
            (None, Rows::Dense { values, .. }) if !self.blanked => values,
            (None, _) => &workspace.encoded.expanded,
        }
    }
    /// What a linear layer reads.
    fn linear<'a>(
        self,
        wiring: &Wiring,
        node: usize,
        block: &Rows<'a>,
        workspace: &'a Workspace,
    ) -> LinearInput<'a> {
        let value = wiring.nodes[node].inputs[0].position();
        if self.sparse && wiring.layout.places[value].is_none() {
            let Encoded { by_record, by_input, .. } = &workspace.encoded;
            return LinearInput::Ones { by_record, by_input };
        }
        LinearInput::Numbers(self.numbers(wiring, value, block, workspace))
    }
    /// Calls `what` with all that a layer reads.
    fn with_read(
        self,
        wiring: &Wiring,
        parameters: &[f32],
        node: usize,
        block: &Rows<'_>,
        workspace: &Workspace,
        what: impl FnOnce(&Read<'_>),
    ) {
        let shapes = wiring.input_shapes(node);
        let inputs: Vec<&[f32]> = wiring.nodes[node]
            .inputs
            .iter()
            .map(|v| self.numbers(wiring, v.position(), block, workspace))
            .collect();
        let graphs = match block {
            Rows::Graphs(graphs) => Some(*graphs),
            _ => None,
        };
        what(&Read { records: block.len(), parameters, shapes: &shapes, inputs: &inputs, graphs });
    }
    /// Writes or adds the gradient of a layer's parameters.
    #[expect(clippy::too_many_arguments, reason = "the parts of one pass")]
    pub(crate) fn parameter_gradient(
        self,
        wiring: &Wiring,
        node: usize,
        block: &Rows<'_>,
        workspace: &Workspace,
        scratch: &mut Scratch,
        out: &mut [f32],
        write: Write,
    ) {
        let Some(place) = wiring.layout.places[node + 1] else { return };
        let gradient = &workspace.gradients[place];
        if let Layer::Linear(linear) = wiring.nodes[node].layer {
            self.linear_gradient(
                wiring,
                node,
                linear,
                block,
                workspace,
                0..linear.inputs + 1,
                out,
                write,
            );
            return;
        }
        let kept = workspace.kept.get(node).filter(|k| !k.records.is_empty());
        let operation = wiring.nodes[node].layer.operation();
        self.with_read(wiring, &[], node, block, workspace, |read| {
            let mut write = write;
            if kept.is_none_or(|k| k.records.len() < block.len()) {
                operation.parameter_gradient(read, gradient, out, write, scratch);
                write = Write::Accumulate;
            }
            if let Some(kept) = kept {
                operation.sum_kept(read, kept, &workspace.coefficients, out, write, scratch);
            }
        });
    }
    /// Of the rows of a linear layer's parameter gradient those in `rows`.
    #[expect(clippy::too_many_arguments, reason = "the parts of one pass")]
    pub(crate) fn linear_gradient(
        self,
        wiring: &Wiring,
        node: usize,
        linear: Linear,
        block: &Rows<'_>,
        workspace: &Workspace,
        rows: Range<usize>,
        out: &mut [f32],
        write: Write,
    ) {
        let Some(place) = wiring.layout.places[node + 1] else { return };
        let read = self.linear(wiring, node, block, workspace);
        linear.parameter_gradient(read, &workspace.gradients[place], rows, out, write);
    }
}

/// Prepares bits: lists of ones if they are few and lists will do, else numbers in `encoded.expanded`.
fn encode(
    block: &Rows<'_>,
    lists_will_do: bool,
    for_gradient: bool,
    encoded: &mut Encoded,
) -> BlockInput {
    let dense = BlockInput { sparse: false, blanked: false, for_gradient };
    let Rows::Bits { width, words } = *block else { return dense };
    let ones: u64 = words.iter().map(|w| u64::from(w.count_ones())).sum();
    if lists_will_do && (ones as f64) < SPARSE_BELOW * (block.len() * width) as f64 {
        encoded.by_record.set_bits(words, width.div_ceil(64));
        if for_gradient {
            let records = block.len();
            kernels::transpose_bits(words, records, width, &mut encoded.transposed);
            encoded.by_input.set_bits(&encoded.transposed, records.div_ceil(64));
        }
        return BlockInput { sparse: true, ..dense };
    }
    encoded.expanded.clear();
    kernels::expand_bits(words, width, &mut encoded.expanded);
    dense
}
