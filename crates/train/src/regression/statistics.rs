//! What a least-squares fit needs to know of the rows: sums, formed in one pass.
use super::Error;
use super::bounds::{Bounds, Clipped};
use super::sums::{LANES, Scale, add_products, block_rows, scale_rows, stride};
use dosimeter_data::RegressionTable;
use nalgebra::{DMatrix, DVector};

/// Sums over scaled rows `x`, `[dimension]`, and targets `y`. Memory does not grow with the rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    /// Rows, a public number.
    pub rows: u64,
    dimension: usize,
    /// Sum of `z z'`, where `z` is a row, its target and zeros: `[stride, stride]`, right of the diagonal.
    products: Vec<f64>,
    /// What was moved into its bounds.
    pub clipped: Clipped,
}
impl Statistics {
    /// Of no row.
    #[must_use]
    pub fn new(dimension: usize) -> Self {
        let products = vec![0.0; stride(dimension) * stride(dimension)];
        Self { rows: 0, dimension, products, clipped: Clipped::default() }
    }
    /// Numbers of a scaled row.
    #[must_use]
    pub const fn dimension(&self) -> usize {
        self.dimension
    }
    /// Adds a scaled row.
    ///
    /// # Panics
    /// If `x` is not `[dimension]`.
    pub fn add(&mut self, x: &[f64], y: f64) {
        assert_eq!(x.len(), self.dimension);
        let mut row = vec![0.0; stride(self.dimension)];
        row[..x.len()].copy_from_slice(x);
        row[x.len()] = y;
        self.add_rows(&row);
    }
    /// Adds scaled rows, `[rows, stride]`.
    fn add_rows(&mut self, rows: &[f64]) {
        let stride = stride(self.dimension);
        add_products(&mut self.products, rows, stride);
        self.rows += (rows.len() / stride) as u64;
    }
    /// Adds the sums over other rows.
    pub fn merge(&mut self, other: &Self) {
        self.products.iter_mut().zip(&other.products).for_each(|(a, b)| *a += b);
        self.rows += other.rows;
        self.clipped += other.clipped;
    }
    fn product(&self, i: usize, j: usize) -> f64 {
        self.products[i.min(j) * stride(self.dimension) + i.max(j)]
    }
    /// Sum of `x x'`.
    #[must_use]
    pub fn gram(&self) -> DMatrix<f64> {
        DMatrix::from_fn(self.dimension, self.dimension, |i, j| self.product(i, j))
    }
    /// Sum of `x y`.
    #[must_use]
    pub fn moments(&self) -> DVector<f64> {
        DVector::from_fn(self.dimension, |i, _| self.product(i, self.dimension))
    }
    /// Sum of `y^2`.
    #[must_use]
    pub fn squares(&self) -> f64 {
        self.product(self.dimension, self.dimension)
    }
    /// Sum of `(w . x - y)^2`.
    #[must_use]
    pub fn squared_error(&self, w: &DVector<f64>) -> f64 {
        let quadratic = (self.gram() * w).dot(w) + self.squares();
        2.0f64.mul_add(-self.moments().dot(w), quadratic).max(0.0)
    }
}

/// Scales rows and adds them up, a block at a time.
#[derive(Debug, Clone)]
pub struct Summation {
    scale: Scale,
    statistics: Statistics,
    /// Scaled rows, `[block, stride]`.
    block: Vec<f64>,
    /// Counts of a block.
    moved: Vec<[u64; LANES]>,
}
impl Summation {
    /// Of no row.
    ///
    /// # Errors
    /// As [`Bounds::check`].
    pub fn new(bounds: &Bounds) -> Result<Self, Error> {
        bounds.check()?;
        let dimension = bounds.dimension();
        let block = vec![0.0; block_rows(dimension) * stride(dimension)];
        let statistics = Statistics::new(dimension);
        Ok(Self { scale: Scale::new(bounds), statistics, block, moved: Vec::new() })
    }
    /// Takes rows: `features` `[rows, features]` and `targets` `[rows]`, in the units of the table. `number` says what an error calls
    /// the row at a place of these.
    ///
    /// # Errors
    /// [`Error::Width`] if the lengths do not fit together, [`Error::NotFinite`] naming row and column; the rows before it are taken.
    pub fn add(
        &mut self,
        features: &[f64],
        targets: &[f64],
        number: impl Fn(usize) -> u64,
    ) -> Result<(), Error> {
        let (needed, rows) = (self.scale.features(), targets.len());
        if rows.checked_mul(needed) != Some(features.len()) {
            let got = features.len().checked_div(rows).unwrap_or(features.len());
            return Err(Error::Width { row: number(0), needed, got });
        }
        let stride = stride(self.scale.dimension());
        let most = self.block.len() / stride;
        for (block, targets) in targets.chunks(most).enumerate() {
            let (first, rows) = (block * most, targets.len());
            let features = &features[first * needed..];
            let out = &mut self.block[..rows * stride];
            let clipped = &mut self.statistics.clipped;
            match scale_rows(&self.scale, features, targets, out, &mut self.moved, clipped) {
                Ok(()) => self.statistics.add_rows(out),
                Err((at, column)) => {
                    self.statistics.add_rows(&out[..at * stride]);
                    return Err(Error::NotFinite { row: number(first + at), column });
                }
            }
        }
        Ok(())
    }
    /// What was summed.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }
    /// What was summed.
    #[must_use]
    pub fn finish(self) -> Statistics {
        self.statistics
    }
}

/// Scaled rows in memory, for mechanisms that look at them more than once.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    scale: Scale,
    /// Row after row, each with its target and zeros behind it: `[rows, stride]`.
    numbers: Vec<f64>,
    clipped: Clipped,
}
impl Rows {
    /// Without a row.
    ///
    /// # Errors
    /// As [`Bounds::check`].
    pub fn new(bounds: &Bounds) -> Result<Self, Error> {
        bounds.check()?;
        Ok(Self { scale: Scale::new(bounds), numbers: Vec::new(), clipped: Clipped::default() })
    }
    /// Of a table.
    ///
    /// # Errors
    /// As [`Bounds::check`]; [`Error::Width`] if the bounds are not the table's.
    pub fn of(table: &RegressionTable, bounds: &Bounds) -> Result<Self, Error> {
        let mut rows = Self::new(bounds)?;
        rows.numbers.reserve(table.len() * rows.stride());
        table.rows().try_for_each(|(x, y)| rows.push(x, y))?;
        Ok(rows)
    }
    /// Scales a row and takes it.
    ///
    /// # Errors
    /// As [`Bounds::scale`], the row being numbered from 1.
    pub fn push(&mut self, features: &[f64], target: f64) -> Result<(), Error> {
        let row = self.len() as u64 + 1;
        let (needed, got) = (self.scale.features(), features.len());
        if needed != got {
            return Err(Error::Width { row, needed, got });
        }
        let start = self.numbers.len();
        self.numbers.resize(start + self.stride(), 0.0);
        let out = &mut self.numbers[start..];
        self.scale.row(features, target, out, &mut self.clipped).map_err(|column| {
            self.numbers.truncate(start);
            Error::NotFinite { row, column }
        })
    }
    const fn stride(&self) -> usize {
        stride(self.dimension())
    }
    /// How many.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.numbers.len() / self.stride()
    }
    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }
    /// A row and its target.
    pub fn iter(&self) -> impl Iterator<Item = (&[f64], f64)> {
        let dimension = self.dimension();
        let rows = self.numbers.chunks_exact(self.stride());
        rows.map(move |row| (&row[..dimension], row[dimension]))
    }
    /// Numbers of a scaled row.
    #[must_use]
    pub const fn dimension(&self) -> usize {
        self.scale.dimension()
    }
    /// Sums over all rows.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::new(self.dimension());
        let block = block_rows(self.dimension()) * self.stride();
        self.numbers.chunks(block).for_each(|rows| statistics.add_rows(rows));
        statistics.clipped = self.clipped;
        statistics
    }
    /// Sums over `parts` parts of nearly equal size: row `i` goes to the part `order[i] % parts`, so the parts depend on positions
    /// alone.
    #[must_use]
    pub fn parts(&self, parts: usize, order: &[u32]) -> Vec<Statistics> {
        let mut all = vec![Statistics::new(self.dimension()); parts];
        for (row, position) in self.numbers.chunks_exact(self.stride()).zip(order) {
            all[*position as usize % parts].add_rows(row);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regression::{Interval, Missing};

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
        assert!((all.squares() - 14.0).abs() < 1e-15);
        first.merge(&rest);
        assert_eq!(first, all);
        // Errors of w = (1, 0, 1): 1.5 - 3, 3 + 2, 1 - 1.
        let w = DVector::from_column_slice(&[1.0, 0.0, 1.0]);
        assert!((all.squared_error(&w) - 27.25).abs() < 1e-12);
    }
    /// However they come: one by one in memory, or in blocks.
    #[test]
    fn rows_in_memory_and_rows_in_blocks_have_the_same_sums() {
        let interval = |low, high| Interval::new(low, high).unwrap();
        let features = vec![interval(-1.0, 3.0); 9];
        let target = interval(0.0, 1.0);
        let missing = Missing::Middle;
        for radius in [None, Some(1.5)] {
            let bounds =
                Bounds { features: features.clone(), target, intercept: true, radius, missing };
            let number = |i: usize| f64::from((i * 7919 % 1009) as u32) / 200.0 - 1.5;
            let mut x: Vec<f64> = (0..9 * 1000).map(number).collect();
            x[300] = f64::NAN;
            let y: Vec<f64> = (0..1000).map(|i| number(i + 5)).collect();
            let mut rows = Rows::new(&bounds).unwrap();
            x.chunks(9).zip(&y).for_each(|(x, y)| rows.push(x, *y).unwrap());
            let mut summation = Summation::new(&bounds).unwrap();
            summation.add(&x[..9 * 700], &y[..700], |_| 0).unwrap();
            summation.add(&x[9 * 700..], &y[700..], |_| 0).unwrap();
            assert_eq!(summation.statistics(), &rows.statistics());
            let clipped = summation.finish().clipped;
            assert!(clipped.features > 0 && clipped.targets > 0 && clipped.missing == 1);
            assert_eq!(clipped.rows > 0, radius.is_some());
            assert!(rows.iter().all(|(x, _)| x.iter().map(|x| x * x).sum::<f64>() <= 1.0 + 1e-15));
            // As one by one, whose arithmetic is another.
            let (mut out, mut again) = ([0.0; 10], Clipped::default());
            for ((place, (x, y)), (scaled, target)) in
                x.chunks(9).zip(&y).enumerate().zip(rows.iter())
            {
                let expected = bounds.scale(place as u64 + 1, x, *y, &mut out, &mut again).unwrap();
                assert!((expected - target).abs() < 1e-15);
                assert!(out.iter().zip(scaled).all(|(a, b)| (a - b).abs() < 1e-15), "{place}");
            }
            assert_eq!(again, clipped);
        }
    }
    #[test]
    fn what_is_not_finite_is_named() {
        let side = Interval::new(0.0, 1.0).unwrap();
        let bounds = Bounds {
            features: vec![side; 2],
            target: side,
            intercept: false,
            radius: None,
            missing: Missing::Refuse,
        };
        let mut summation = Summation::new(&bounds).unwrap();
        let number = |at: usize| at as u64 + 40;
        let refused = summation.add(&[0.5, 0.5, 0.5, f64::NAN], &[1.0, 1.0], number);
        assert_eq!(refused, Err(Error::NotFinite { row: 41, column: Some(1) }));
        let refused = summation.add(&[0.5, f64::INFINITY], &[1.0], number);
        assert_eq!(refused, Err(Error::NotFinite { row: 40, column: Some(1) }));
        let refused = summation.add(&[0.5, 0.5], &[f64::NAN], number);
        assert_eq!(refused, Err(Error::NotFinite { row: 40, column: None }));
        let refused = summation.add(&[0.5; 3], &[1.0], number);
        assert_eq!(refused, Err(Error::Width { row: 40, needed: 2, got: 3 }));
        assert_eq!(summation.statistics().rows, 1);
    }
}
