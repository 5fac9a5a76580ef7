//! How a block of records lies in the workspace, and what layers read of it.
use crate::graph::Wiring;
use crate::kernels::{self, Write};
use crate::layers::{Layer, Linear, LinearInput, Read, Scratch};
use crate::workspace::Encoded;
use crate::{Rows, Workspace};
use std::ops::Range;

/// Bits are summed row by row below this share of ones, and written out as numbers for a dense product above it.
///
/// Measured on an AVX2 core: with 24 % ones a clipped sum takes 0.69 times as long by row sums as by dense products,
/// with 6169 inputs as with 600; growing with the ones, it would take as long at 36 to 41 %. The choice is made for each
/// block of records by counting its ones, so it depends on the data alone; the two ways differ in rounding only.
const SPARSE_BELOW: f64 = 0.35;
/// How the graph's input lies in the workspace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockInput {
    /// As lists of ones.
    pub(crate) sparse: bool,
    /// As a copy without the records that are not finite.
    pub(crate) blanked: bool,
    /// Whether every value keeps a place of its own, for the gradients.
    pub(crate) for_gradient: bool,
}
impl BlockInput {
    /// Where a place lies in the workspace.
    pub(crate) fn position(self, wiring: &Wiring, place: usize) -> usize {
        if self.for_gradient { place } else { wiring.layout.slots[place] }
    }
    /// The numbers of a value, `[records, width]`.
    pub(crate) fn numbers<'a>(
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
    pub(crate) fn linear<'a>(
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
    pub(crate) fn with_read(
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
pub(crate) fn encode(
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
