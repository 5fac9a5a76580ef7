//! An ordered list of layers over one slice of parameters.
use crate::kernels::{self, Write};
use crate::layers::LinearInput;
use crate::workspace::Encoded;
use crate::{
    Activation, Error, Examples, GradientParts, Layer, Linear, RECORD_BLOCK, Rows, Workspace,
};
use std::ops::Range;

/// Bits are summed row by row below this share of ones, and written out as numbers for a dense product above it.
///
/// Measured on an AVX2 core: with 24 % ones a clipped sum takes 0.69 times as long by row sums as by dense products,
/// with 6169 inputs as with 600; growing with the ones, it would take as long at 36 to 41 %. The choice is made for each block of [`RECORD_BLOCK`] records by counting its ones, so it depends on the data alone;
/// the two ways differ in rounding only.
const SPARSE_BELOW: f64 = 0.35;

/// A clipped record is scaled to `clipping_norm / (1 + CLIPPING_SLACK)`, so that rounding its scaled gradient to
/// single precision cannot lift it above `clipping_norm`.
const CLIPPING_SLACK: f64 = 1.0 / (1 << 20) as f64;

/// A linear layer, where its parameters start, and the activation behind it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stage {
    pub(crate) linear: Linear,
    pub(crate) offset: usize,
    activation: Option<Activation>,
}
impl Stage {
    fn parameters<'a>(&self, all: &'a [f32]) -> &'a [f32] {
        &all[self.offset..self.offset + self.linear.parameter_count()]
    }
}

/// A feed-forward network. Its outputs are logits: softmax and sigmoid belong to the [`Loss`](crate::Loss).
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    layers: Vec<Layer>,
    stages: Vec<Stage>,
    parameters: Vec<f32>,
}

impl Graph {
    /// A network with all parameters 0.
    ///
    /// # Errors
    /// [`Error::Unsupported`] unless it starts with a linear layer, each is followed by at most one activation, and
    /// all widths are above 0;
    /// [`Error::LayersDoNotFit`] if one layer's outputs are not as many as the next one's inputs.
    pub fn new(layers: Vec<Layer>) -> Result<Self, Error> {
        let mut stages: Vec<Stage> = Vec::new();
        let mut offset = 0;
        for (layer, what) in layers.iter().enumerate() {
            match (*what, stages.last_mut()) {
                (Layer::Linear(Linear { inputs: 0, .. } | Linear { outputs: 0, .. }), _) => {
                    return Err(Error::Unsupported { layer });
                }
                // Gradients are computed from outputs, and only those of the last function are kept.
                (Layer::Activation(activation), Some(stage)) if stage.activation.is_none() => {
                    stage.activation = Some(activation);
                }
                (Layer::Activation(_), _) => return Err(Error::Unsupported { layer }),
                (Layer::Linear(linear), stage) => {
                    if let Some(before) = stage
                        && before.linear.outputs != linear.inputs
                    {
                        let (needed, got) = (linear.inputs, before.linear.outputs);
                        return Err(Error::LayersDoNotFit { layer, needed, got });
                    }
                    stages.push(Stage { linear, offset, activation: None });
                    offset += linear.parameter_count();
                }
            }
        }
        if stages.is_empty() {
            return Err(Error::Unsupported { layer: 0 });
        }
        Ok(Self { layers, stages, parameters: vec![0.0; offset] })
    }
    /// The layers, in order.
    #[must_use]
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }
    /// All parameters, layer after layer; each linear layer's weights `[inputs, outputs]`, then its biases.
    #[must_use]
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }
    /// All parameters, to be changed by an optimizer.
    pub fn parameters_mut(&mut self) -> &mut [f32] {
        &mut self.parameters
    }
    /// For each parameter range, whether it holds weights (true) or biases (false), in order.
    pub fn parameter_ranges(&self) -> impl Iterator<Item = (std::ops::Range<usize>, bool)> + '_ {
        self.stages.iter().flat_map(|s| {
            let bias = s.offset + s.linear.inputs * s.linear.outputs;
            [(s.offset..bias, true), (bias..bias + s.linear.outputs, false)]
        })
    }
    /// Inputs per record.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.stages.first().map_or(0, |s| s.linear.inputs)
    }
    /// Outputs per record.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.stages.last().map_or(0, |s| s.linear.outputs)
    }

    /// Logits of each record, row-major `[records, outputs]`; [`Workspace::last_layer_inputs`] then gives what the
    /// last linear layer read. Holds the activations of all `rows`: for large data sets call it in parts.
    ///
    /// A record's logits do not depend on the other records in its block beyond rounding.
    ///
    /// # Errors
    /// [`Error::InputWidth`] if the rows are not [`Self::inputs`] wide.
    pub fn forward<'w>(
        &self,
        rows: &Rows<'_>,
        workspace: &'w mut Workspace,
    ) -> Result<&'w [f32], Error> {
        self.check_width(rows)?;
        self.make_room(workspace, rows.len(), 0);
        workspace.last_layer = self.stages.len() - 1;
        for start in (0..rows.len()).step_by(RECORD_BLOCK) {
            let length = RECORD_BLOCK.min(rows.len() - start);
            let block = rows.block(start, length);
            let sparse = encode(&block, workspace, false);
            self.forward_block(&block, sparse, start, length, workspace);
        }
        Ok(&workspace.outputs[self.stages.len() - 1])
    }

    /// `out = sum over records of the gradient of the record's loss` with respect to all parameters, or `+=`.
    ///
    /// Losses per record are in the workspace afterwards. No rows: the sum is 0. Rows given in several calls, each of
    /// whole [`RECORD_BLOCK`]s but the last, give the same bits as in one call.
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
    /// `A^T diag(c) B` layer by layer: no per-record gradient is formed and there is no second backward pass.
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
        let records = examples.rows.len();
        let last = records.saturating_sub(1) / RECORD_BLOCK * RECORD_BLOCK;
        if records == 0 && write == Write::Overwrite {
            sum.fill(0.0);
        }
        self.add_blocks(examples, 0..last, clipping_norm, workspace, sum, write);
        let block = examples.block(last, records - last, self.outputs());
        let encoding = self.propagate(&block, clipping_norm, workspace);
        let alone = records > 0 && last == 0 && write == Write::Overwrite;
        Ok(GradientParts {
            stages: self.stages.clone(),
            block: block.rows,
            encoding,
            workspace,
            before: if alone { None } else { Some(sum) },
            stage: 0,
            row: 0,
        })
    }

    fn check_width(&self, rows: &Rows<'_>) -> Result<(), Error> {
        if rows.width() == self.inputs() {
            Ok(())
        } else {
            Err(Error::InputWidth { needed: self.inputs(), got: rows.width() })
        }
    }

    fn make_room(&self, workspace: &mut Workspace, records: usize, gradients: usize) {
        workspace.outputs.resize_with(self.stages.len(), Vec::new);
        workspace.gradients.resize_with(self.stages.len(), Vec::new);
        for (i, stage) in self.stages.iter().enumerate() {
            workspace.outputs[i].resize(records * stage.linear.outputs, 0.0);
            workspace.gradients[i].resize(gradients * stage.linear.outputs, 0.0);
        }
    }

    fn forward_block(
        &self,
        block: &Rows<'_>,
        sparse: bool,
        start: usize,
        length: usize,
        workspace: &mut Workspace,
    ) {
        for (i, stage) in self.stages.iter().enumerate() {
            let (before, rest) = workspace.outputs.split_at_mut(i);
            let Linear { inputs, outputs } = stage.linear;
            let input = match before.last() {
                Some(values) => {
                    LinearInput::Numbers(&values[start * inputs..(start + length) * inputs])
                }
                None => first_input(block, sparse, &workspace.encoded),
            };
            let output = &mut rest[0][start * outputs..(start + length) * outputs];
            stage.linear.forward(stage.parameters(&self.parameters), input, output);
            if let Some(activation) = stage.activation {
                activation.forward(output, outputs);
            }
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
        self.check_width(&examples.rows)?;
        examples.targets.check(examples.loss, examples.rows.len(), self.outputs())?;
        if out.len() != self.parameters.len() {
            return Err(Error::ParameterCount { needed: self.parameters.len(), got: out.len() });
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
        for start in range.clone().step_by(RECORD_BLOCK) {
            let length = RECORD_BLOCK.min(range.end - start);
            let block = examples.block(start, length, self.outputs());
            let encoding = self.propagate(&block, clipping_norm, workspace);
            for (i, stage) in self.stages.iter().enumerate() {
                let input = encoding.input(i, &block.rows, workspace);
                let rows = 0..stage.linear.inputs + 1;
                let range = stage.offset..stage.offset + stage.linear.parameter_count();
                let (gradient, out) = (&workspace.gradients[i], &mut out[range]);
                stage.linear.parameter_gradient(input, gradient, rows, out, write);
            }
            write = Write::Accumulate;
        }
    }

    /// Forward, backward and, if asked, clipping of one block: what its parameter gradients are formed from.
    fn propagate(
        &self,
        examples: &Examples<'_>,
        clipping_norm: Option<f64>,
        workspace: &mut Workspace,
    ) -> Encoding {
        let block = &examples.rows;
        let records = block.len();
        self.make_room(workspace, records, records);
        let sparse = encode(block, workspace, true);
        self.forward_block(block, sparse, 0, records, workspace);
        self.backward_block(examples, workspace);
        let mut encoding = Encoding { sparse, blanked: false };
        if let Some(clipping_norm) = clipping_norm {
            self.record_norms(block, encoding, workspace);
            encoding.blanked = self.clip_records(block, clipping_norm, workspace);
        }
        encoding
    }

    /// Losses, and the gradients with respect to each linear layer's outputs.
    fn backward_block(&self, examples: &Examples<'_>, workspace: &mut Workspace) {
        for (i, stage) in self.stages.iter().enumerate().rev() {
            let (before, rest) = workspace.gradients.split_at_mut(i + 1);
            let gradient = &mut before[i];
            let (outputs, width) = (&workspace.outputs[i], stage.linear.outputs);
            match rest.first() {
                None => {
                    gradient.copy_from_slice(outputs);
                    let Examples { targets, loss, .. } = *examples;
                    loss.gradient(gradient, width, targets, &mut workspace.losses);
                }
                Some(next) => {
                    let next_stage = &self.stages[i + 1];
                    let parameters = next_stage.parameters(&self.parameters);
                    next_stage.linear.input_gradient(parameters, next, gradient);
                }
            }
            if let Some(activation) = stage.activation {
                activation.backward(gradient, outputs, width);
            }
        }
    }

    fn record_norms(&self, block: &Rows<'_>, encoding: Encoding, workspace: &mut Workspace) {
        let mut squared_norms = std::mem::take(&mut workspace.squared_norms);
        squared_norms.clear();
        squared_norms.resize(block.len(), 0.0);
        for (i, stage) in self.stages.iter().enumerate() {
            let input = encoding.input(i, block, workspace);
            let gradient = &workspace.gradients[i];
            stage.linear.add_squared_gradient_norms(input, gradient, &mut squared_norms);
        }
        workspace.gradient_norms.extend(squared_norms.iter().map(|s| s.sqrt()));
        workspace.squared_norms = squared_norms;
    }

    /// Scales every record's output gradients; blanks the records that are not finite (0 times NaN is NaN). Returns
    /// whether the first layer's input is now the blanked copy in `workspace.encoded.expanded`.
    fn clip_records(
        &self,
        block: &Rows<'_>,
        clipping_norm: f64,
        workspace: &mut Workspace,
    ) -> bool {
        let mut blanked = false;
        for record in 0..block.len() {
            let norm = workspace.squared_norms[record].sqrt();
            let row = |width: usize| record * width..(record + 1) * width;
            if !norm.is_finite() {
                workspace.non_finite += 1;
                for (i, stage) in self.stages.iter().enumerate() {
                    workspace.gradients[i][row(stage.linear.outputs)].fill(0.0);
                    workspace.outputs[i][row(stage.linear.outputs)].fill(0.0);
                }
                if let Rows::Dense { width, values } = block {
                    if !blanked {
                        workspace.encoded.expanded.clear();
                        workspace.encoded.expanded.extend_from_slice(values);
                    }
                    blanked = true;
                    workspace.encoded.expanded[row(*width)].fill(0.0);
                }
                continue;
            }
            let coefficient = clipping_norm / (norm * (1.0 + CLIPPING_SLACK));
            if coefficient < 1.0 && norm > clipping_norm {
                workspace.clipped += 1;
                for (i, stage) in self.stages.iter().enumerate() {
                    let gradient = &mut workspace.gradients[i][row(stage.linear.outputs)];
                    kernels::scale(gradient, coefficient as f32);
                }
            }
        }
        blanked
    }
}

/// Prepares bits: lists of ones if they are few (returns true), else numbers in `workspace.encoded.expanded`.
fn encode(block: &Rows<'_>, workspace: &mut Workspace, for_gradient: bool) -> bool {
    let Rows::Bits { width, words } = *block else { return false };
    let encoded = &mut workspace.encoded;
    let ones: u64 = words.iter().map(|w| u64::from(w.count_ones())).sum();
    if (ones as f64) < SPARSE_BELOW * (block.len() * width) as f64 {
        encoded.by_record.set_bits(words, width.div_ceil(64));
        if for_gradient {
            let records = block.len();
            kernels::transpose_bits(words, records, width, &mut encoded.transposed);
            encoded.by_input.set_bits(&encoded.transposed, records.div_ceil(64));
        }
        return true;
    }
    encoded.expanded.clear();
    kernels::expand_bits(words, width, &mut encoded.expanded);
    false
}

/// How the first layer's input lies in the workspace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Encoding {
    /// As lists of ones.
    pub(crate) sparse: bool,
    /// As a copy without the records that are not finite.
    blanked: bool,
}
impl Encoding {
    /// What the linear layer of a stage read.
    pub(crate) fn input<'a>(
        self,
        stage: usize,
        block: &Rows<'a>,
        workspace: &'a Workspace,
    ) -> LinearInput<'a> {
        match stage.checked_sub(1) {
            Some(before) => LinearInput::Numbers(&workspace.outputs[before]),
            None if self.blanked => LinearInput::Numbers(&workspace.encoded.expanded),
            None => first_input(block, self.sparse, &workspace.encoded),
        }
    }
}

fn first_input<'a>(block: &Rows<'a>, sparse: bool, encoded: &'a Encoded) -> LinearInput<'a> {
    match block {
        Rows::Dense { values, .. } => LinearInput::Numbers(values),
        Rows::Bits { .. } if sparse => {
            LinearInput::Ones { by_record: &encoded.by_record, by_input: &encoded.by_input }
        }
        Rows::Bits { .. } => LinearInput::Numbers(&encoded.expanded),
    }
}
