//! What can be wrong with inputs, targets and checkpoints.

/// What was needed and what was there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A layer cannot read what it is given.
    #[error("layer {layer} takes {needed}, got {got}")]
    LayersDoNotFit {
        /// Position in the graph.
        layer: usize,
        /// What it takes: a number of inputs, or shapes of one record.
        needed: String,
        /// What it gets.
        got: String,
    },
    /// A layer that reads a value not made before it.
    #[error("layer {layer} reads value {value}, which is not made before it")]
    UnknownValue {
        /// Position in the graph.
        layer: usize,
        /// 0 is the input, `i + 1` the output of layer `i`.
        value: usize,
    },
    /// A shape without numbers, or with more than can be counted.
    #[error("a record of shape {shape:?} has no numbers, or more than 2^32")]
    Shape {
        /// Of one record.
        shape: Vec<usize>,
    },
    /// More parameters than a graph may have.
    #[error(
        "layer {layer} has {parameters} parameters; a graph has at most {} in all",
        crate::graph::MOST_PARAMETERS
    )]
    TooManyParameters {
        /// Position in the graph.
        layer: usize,
        /// Its own.
        parameters: usize,
    },
    /// A layer without gradients of single records.
    #[error(
        "layer {layer} is a batch normalization: a record's gradient would depend on the other records of its batch, so \
         it cannot be clipped; fold it into the layer before it, or put group normalization in its place"
    )]
    BatchNormalization {
        /// Position in the graph.
        layer: usize,
    },
    /// Inputs of another width than the first layer's.
    #[error("the network takes {needed} inputs per record, got {got}")]
    InputWidth {
        /// Of the network.
        needed: usize,
        /// Of the rows.
        got: usize,
    },
    /// Numbers where graphs are read, or graphs where numbers are.
    #[error("the network takes {needed}, got {got}")]
    InputKind {
        /// What the network takes.
        needed: &'static str,
        /// What the rows are.
        got: &'static str,
    },
    /// Lists that describe no graph.
    #[error("graph {record}: {what}")]
    Graphs {
        /// Position in the batch.
        record: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// Not one target per record.
    #[error("{records} records need {needed} targets, got {got}")]
    TargetCount {
        /// Number of rows.
        records: usize,
        /// Targets needed.
        needed: usize,
        /// Targets given.
        got: usize,
    },
    /// A class the network has no output for.
    #[error("row {row} has class {class}, but the network has {outputs} outputs")]
    ClassRange {
        /// Position in the batch.
        row: usize,
        /// Its class.
        class: u32,
        /// Classes known, `0..outputs`.
        outputs: usize,
    },
    /// A loss that has no meaning for these targets.
    #[error("cross-entropy over classes needs a class per record, not numbers")]
    ClassesNeeded,
    /// A gradient buffer of the wrong length.
    #[error("the network has {needed} parameters, got room for {got}")]
    ParameterCount {
        /// Of the network.
        needed: usize,
        /// Of the slice.
        got: usize,
    },
    /// A clipping norm that clips nothing sensible.
    #[error("the clipping norm must be finite and above 0")]
    ClippingNorm,
    /// Bytes that are no checkpoint of this version, or a damaged one.
    #[error("not a network checkpoint: {what}")]
    Checkpoint {
        /// What is wrong.
        what: &'static str,
    },
}
