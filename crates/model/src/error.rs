//! What can be wrong with inputs, targets and checkpoints.

/// What was needed and what was there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Layers do not fit onto each other.
    #[error("layer {layer} takes {needed} numbers per record, but the layer before it gives {got}")]
    LayersDoNotFit {
        /// Position in the list.
        layer: usize,
        /// What it takes.
        needed: usize,
        /// What it gets.
        got: usize,
    },
    /// A graph starts with a linear layer, and every linear layer has at least one input and output and at most one
    /// activation behind it.
    #[error(
        "layer {layer} cannot be there: linear layers of width above 0, each with at most one activation behind it"
    )]
    Unsupported {
        /// Position in the list.
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
