//! The ways of a block of records through a graph: forward, backward, and clipping.
use crate::block_input::{BlockInput, encode};
use crate::graph::Wiring;
use crate::kernels::{self, Limits, Write};
use crate::layers::{Kept, Layer};
use crate::{Error, Examples, Graph, Node, Rows, Value, Workspace};

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
        let length = self.wiring.layout.block;
        let block = |start: usize| rows.block(start, length.min(rows.len() - start));
        let starts: Vec<usize> = (0..rows.len()).step_by(length).collect();
        let mut outputs = std::mem::take(&mut workspace.outputs);
        let mut last_layer_inputs = std::mem::take(&mut workspace.last_layer_inputs);
        outputs.clear();
        last_layer_inputs.clear();
        workspace.in_blocks(
            &starts,
            |start, workspace| self.write_outputs(&block(start), workspace),
            |workspace| {
                outputs.extend_from_slice(&workspace.outputs);
                last_layer_inputs.extend_from_slice(&workspace.last_layer_inputs);
            },
        );
        (workspace.outputs, workspace.last_layer_inputs) = (outputs, last_layer_inputs);
        Ok(&workspace.outputs)
    }

    /// Of one block.
    fn write_outputs(&self, block: &Rows<'_>, workspace: &mut Workspace) {
        let wiring = &*self.wiring;
        let input = self.forward_block(block, false, workspace);
        let mut outputs = std::mem::take(&mut workspace.outputs);
        let output = self.output().position();
        outputs.clear();
        outputs.extend_from_slice(input.numbers(wiring, output, block, workspace));
        workspace.outputs = outputs;
        let mut seen = std::mem::take(&mut workspace.last_layer_inputs);
        seen.clear();
        if let Some(node) = self.last_linear()
            && let read = wiring.nodes[node].inputs[0].position()
            && wiring.layout.places[read].is_some()
        {
            seen.extend_from_slice(input.numbers(wiring, read, block, workspace));
        }
        workspace.last_layer_inputs = seen;
    }

    pub(crate) fn check_width(&self, rows: &Rows<'_>) -> Result<(), Error> {
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

    /// Forward, backward and, if asked, clipping of one block: what its parameter gradients are formed from.
    pub(crate) fn propagate(
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
                workspace
                    .seen
                    .gradient_norms
                    .extend(workspace.squared_norms.iter().map(|s| s.sqrt()));
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
        let mut losses = std::mem::take(&mut workspace.seen.losses);
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
        workspace.seen.losses = losses;
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
                workspace.seen.non_finite += 1;
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
                workspace.seen.clipped += 1;
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
