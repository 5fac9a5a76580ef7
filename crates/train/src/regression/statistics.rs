//! What a least-squares fit needs to know of the rows: sums, formed in one pass.
use super::Error;
use super::bounds::{Bounds, Clipped};
use dosimeter_data::RegressionTable;
use nalgebra::{DMatrix, DVector};

/// Sums over scaled rows `x`, `[dimension]`, and targets `y`. Memory does not grow with the rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    /// Rows, a public number.
    pub rows: u64,
    /// Sum of `x x'`, row by row: all of it, since whole rows are summed faster than half of them.
    gram: Vec<f64>,
    /// Sum of `x y`.
    moments: Vec<f64>,
    /// Sum of `y^2`.
    pub squares: f64,
    /// What was moved into its bounds.
    pub clipped: Clipped,
}
impl Statistics {
    /// Of no row.
    #[must_use]
    pub fn new(dimension: usize) -> Self {
        Self {
            rows: 0,
            gram: vec![0.0; dimension * dimension],
            moments: vec![0.0; dimension],
            squares: 0.0,
            clipped: Clipped::default(),
        }
    }
    /// Numbers of a scaled row.
    #[must_use]
    pub const fn dimension(&self) -> usize {
        self.moments.len()
    }
    /// Adds a scaled row.
    pub fn add(&mut self, x: &[f64], y: f64) {
        for (row, a) in self.gram.chunks_exact_mut(x.len()).zip(x) {
            for (sum, b) in row.iter_mut().zip(x) {
                *sum += a * b;
            }
        }
        for (sum, a) in self.moments.iter_mut().zip(x) {
            *sum += a * y;
        }
        self.squares += y * y;
        self.rows += 1;
    }
    /// Adds the sums over other rows.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in [(&mut self.gram, &other.gram), (&mut self.moments, &other.moments)] {
            mine.iter_mut().zip(theirs).for_each(|(a, b)| *a += b);
        }
        self.squares += other.squares;
        self.rows += other.rows;
        self.clipped += other.clipped;
    }
    /// Sum of `x x'`.
    #[must_use]
    pub fn gram(&self) -> DMatrix<f64> {
        let d = self.dimension();
        DMatrix::from_row_slice(d, d, &self.gram)
    }
    /// Sum of `x y`.
    #[must_use]
    pub fn moments(&self) -> DVector<f64> {
        DVector::from_column_slice(&self.moments)
    }
    /// Sum of `(w . x - y)^2`.
    #[must_use]
    pub fn squared_error(&self, w: &DVector<f64>) -> f64 {
        let quadratic = (self.gram() * w).dot(w) + self.squares;
        2.0f64.mul_add(-self.moments().dot(w), quadratic).max(0.0)
    }
}

/// Scaled rows in memory, for mechanisms that look at them more than once.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    dimension: usize,
    /// Row after row.
    x: Vec<f64>,
    y: Vec<f64>,
    clipped: Clipped,
}
impl Rows {
    /// Without a row.
    ///
    /// # Errors
    /// As [`Bounds::check`].
    pub fn new(bounds: &Bounds) -> Result<Self, Error> {
        bounds.check()?;
        let dimension = bounds.dimension();
        Ok(Self { dimension, x: Vec::new(), y: Vec::new(), clipped: Clipped::default() })
    }
    /// Of a table.
    ///
    /// # Errors
    /// As [`Bounds::check`]; [`Error::Width`] if the bounds are not the table's.
    pub fn of(table: &RegressionTable, bounds: &Bounds) -> Result<Self, Error> {
        let mut rows = Self::new(bounds)?;
        table.rows().try_for_each(|(x, y)| rows.push(bounds, x, y))?;
        Ok(rows)
    }
    /// Scales a row and takes it.
    ///
    /// # Errors
    /// As [`Bounds::scale`].
    pub fn push(&mut self, bounds: &Bounds, features: &[f64], target: f64) -> Result<(), Error> {
        let start = self.x.len();
        self.x.resize(start + self.dimension, 0.0);
        let row = self.y.len() as u64 + 1;
        match bounds.scale(row, features, target, &mut self.x[start..], &mut self.clipped) {
            Ok(y) => {
                self.y.push(y);
                Ok(())
            }
            Err(error) => {
                self.x.truncate(start);
                Err(error)
            }
        }
    }
    /// How many.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.y.len()
    }
    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.y.is_empty()
    }
    /// A row and its target.
    pub fn iter(&self) -> impl Iterator<Item = (&[f64], f64)> {
        self.x.chunks_exact(self.dimension).zip(self.y.iter().copied())
    }
    /// Numbers of a scaled row.
    #[must_use]
    pub const fn dimension(&self) -> usize {
        self.dimension
    }
    /// Sums over all rows.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::new(self.dimension);
        self.iter().for_each(|(x, y)| statistics.add(x, y));
        statistics.clipped = self.clipped;
        statistics
    }
    /// Sums over `parts` parts of nearly equal size: row `i` goes to the part `order[i] % parts`, so the parts depend on positions
    /// alone.
    #[must_use]
    pub fn parts(&self, parts: usize, order: &[u32]) -> Vec<Statistics> {
        let mut all = vec![Statistics::new(self.dimension); parts];
        for ((x, y), position) in self.iter().zip(order) {
            all[*position as usize % parts].add(x, y);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_worked_by_hand_however_rows_are_put_together() {
        let rows = [([1.0, 2.0, 0.5], 3.0), ([-1.0, 0.0, 4.0], -2.0), ([0.0, 1.0, 1.0], 1.0)];
        let (mut all, mut first, mut rest) =
            (Statistics::new(3), Statistics::new(3), Statistics::new(3));
        for (i, (x, y)) in rows.iter().enumerate() {
            all.add(x, *y);
            if i == 0 { first.add(x, *y) } else { rest.add(x, *y) }
        }
        let gram = [2.0, 2.0, -3.5, 2.0, 5.0, 2.0, -3.5, 2.0, 17.25];
        assert_eq!(all.gram(), DMatrix::from_row_slice(3, 3, &gram));
        assert_eq!(all.moments().as_slice(), [5.0, 7.0, -5.5]);
        assert!((all.squares - 14.0).abs() < 1e-15);
        first.merge(&rest);
        assert_eq!(first, all);
        // Errors of w = (1, 0, 1): 1.5 - 3, 3 + 2, 1 - 1.
        let w = DVector::from_column_slice(&[1.0, 0.0, 1.0]);
        assert!((all.squared_error(&w) - 27.25).abs() < 1e-12);
    }
}
