//! A labelled data set in memory.

/// Rows of bits, each row padded to whole 64-bit words (bit `j` of a row is bit `j % 64` of word `j / 64`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitMatrix {
    /// Number of rows.
    pub rows: usize,
    /// Bits per row.
    pub width: usize,
    /// `rows * words_per_row` words; padding bits are 0.
    pub words: Vec<u64>,
}
impl BitMatrix {
    /// Words per row.
    #[must_use]
    pub const fn words_per_row(&self) -> usize {
        self.width.div_ceil(64)
    }
    /// Words of one row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[u64] {
        let w = self.words_per_row();
        &self.words[row * w..(row + 1) * w]
    }
}

/// Encoded network inputs, one row per record.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Inputs {
    /// Every input is 0 or 1 (bits and one-hot categories).
    Bits(BitMatrix),
    /// Row-major `[records, width]`, finite.
    Reals {
        /// Numbers per row.
        width: usize,
        /// `records * width` finite numbers.
        values: Vec<f32>,
    },
}

/// What a column holds.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ColumnKind {
    /// 0 or 1; one input.
    Bit,
    /// One of the named levels; one input per level (one-hot).
    Category(Vec<String>),
    /// A number within public bounds, scaled to `[0, 1]`; one input.
    Real {
        /// Public lower bound.
        low: f64,
        /// Public upper bound.
        high: f64,
    },
}
/// A named column and where its inputs start.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Name as in the file, or `bit 17`.
    pub name: String,
    /// What it holds.
    pub kind: ColumnKind,
    /// First encoded input.
    pub first_input: usize,
}

/// A labelled data set. Record `i` is row `i`; `RecordId(i)` never changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// Where it came from, for people.
    pub name: String,
    /// Columns, in order of their inputs.
    pub columns: Vec<Column>,
    /// Encoded inputs.
    pub inputs: Inputs,
    /// Class of each record, below `classes`.
    pub labels: Vec<u32>,
    /// Number of classes.
    pub classes: usize,
}
impl Dataset {
    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.labels.len()
    }
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
    /// Inputs per record.
    #[must_use]
    pub fn width(&self) -> usize {
        match &self.inputs {
            Inputs::Bits(b) => b.width,
            Inputs::Reals { width, .. } => *width,
        }
    }
    /// BLAKE3 of the content (schema, inputs, labels), hex.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        todo!()
    }
}
