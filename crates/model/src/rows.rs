//! Mini-batches of network inputs.
use crate::GraphRows;

/// Records processed together. Sums over a batch are formed block by block, in order, so that neither memory nor
/// any number depends on how many records are held at once.
pub const RECORD_BLOCK: usize = 256;

/// Gathered network inputs, one row per record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rows<'a> {
    /// Numbers, row after row.
    Dense {
        /// Numbers per row, at least 1.
        width: usize,
        /// Whole rows.
        values: &'a [f32],
    },
    /// Bits: each row padded to whole words with zeros, bit `j` is bit `j % 64` of word `j / 64`.
    Bits {
        /// Bits per row, at least 1.
        width: usize,
        /// Whole rows of `width.div_ceil(64)` words.
        words: &'a [u64],
    },
    /// Graphs, for a network that begins with graph convolutions.
    Graphs(GraphRows<'a>),
}
impl<'a> Rows<'a> {
    /// Inputs per record; of graphs, features per node.
    #[must_use]
    pub const fn width(&self) -> usize {
        match self {
            Self::Dense { width, .. } | Self::Bits { width, .. } => *width,
            Self::Graphs(graphs) => graphs.features(),
        }
    }
    /// Number of records (whole rows; 0 if the width is 0).
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Dense { width: 0, .. } | Self::Bits { width: 0, .. } => 0,
            Self::Dense { width, values } => values.len() / *width,
            Self::Bits { width, words } => words.len() / width.div_ceil(64),
            Self::Graphs(graphs) => graphs.len(),
        }
    }
    /// Whether there are no records.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Records `start..start + length`.
    pub(crate) fn block(&self, start: usize, length: usize) -> Self {
        match *self {
            Self::Dense { width, values } => {
                Self::Dense { width, values: &values[start * width..(start + length) * width] }
            }
            Self::Bits { width, words } => {
                let per_row = width.div_ceil(64);
                Self::Bits { width, words: &words[start * per_row..(start + length) * per_row] }
            }
            Self::Graphs(graphs) => Self::Graphs(graphs.block(start, length)),
        }
    }
}
