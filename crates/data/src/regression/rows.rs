//! Rows on their way from a file to whoever takes them.
use super::RegressionTable;

/// Rows of a file that follow one another, within their bounds. How many come in a block depends on the file and the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct RowBlock {
    pub(super) width: usize,
    has_target: bool,
    pub(super) numbers: Vec<u64>,
    pub(super) features: Vec<f64>,
    pub(super) targets: Vec<f64>,
    /// Numbers moved into their bounds, by column of the file.
    pub(super) clipped: Vec<u64>,
    /// Missing values filled in, by column of the file.
    pub(super) imputed: Vec<u64>,
}
impl RowBlock {
    pub(super) fn new(width: usize, has_target: bool, columns: usize) -> Self {
        Self {
            width,
            has_target,
            numbers: Vec::new(),
            features: Vec::new(),
            targets: Vec::new(),
            clipped: vec![0; columns],
            imputed: vec![0; columns],
        }
    }
    /// The rows of a table, numbered from 1.
    pub(super) fn of(table: &RegressionTable) -> Self {
        let mut block = Self::new(table.layout.width(), true, 0);
        block.numbers.extend(1..=table.len() as u64);
        block.features.extend_from_slice(table.features());
        block.targets.extend_from_slice(table.targets());
        block
    }
    /// Numbers of the rows: the line of a CSV on which the row begins (the header is line 1), the row of a Parquet file from 1.
    #[must_use]
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }
    /// Row after row, `[rows, features]`.
    #[must_use]
    pub fn features(&self) -> &[f64] {
        &self.features
    }
    /// `[rows]`; `None` if the file has no target.
    #[must_use]
    pub fn targets(&self) -> Option<&[f64]> {
        self.has_target.then_some(self.targets.as_slice())
    }
    /// How many rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.numbers.len()
    }
    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }
    /// Number, features and target of each row.
    pub fn rows(&self) -> impl Iterator<Item = (u64, &[f64], Option<f64>)> {
        self.numbers.iter().enumerate().map(|(at, number)| {
            let features = &self.features[at * self.width..][..self.width];
            (*number, features, self.has_target.then(|| self.targets[at]))
        })
    }
    pub(super) fn clear(&mut self) {
        self.truncate(0);
        self.clipped.fill(0);
        self.imputed.fill(0);
    }
    /// Makes room for one more row.
    pub(super) fn start(&mut self, number: u64) {
        self.numbers.push(number);
        self.features.resize(self.features.len() + self.width, 0.0);
        self.targets.push(f64::NAN);
    }
    pub(super) fn truncate(&mut self, rows: usize) {
        self.numbers.truncate(rows);
        self.features.truncate(rows * self.width);
        self.targets.truncate(rows);
    }
}
