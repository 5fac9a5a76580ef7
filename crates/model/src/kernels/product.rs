//! The matrix product, by the single-precision part of the `gemm` crate (`gemm-f32`: a quarter of its build time).
use super::finish::{Finish, finish_tile};
use std::ops::Range;

/// The longest sum formed at once. The `gemm` crate splits longer sums at lengths that depend on the machine's
/// caches; splitting here, at or below the least length it uses, makes the order of additions the same everywhere.
pub const LONGEST_SUM: usize = 512;

/// A matrix in row-major order, or the transpose of one.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    values: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}
impl<'a> Matrix<'a> {
    /// `rows` by `columns` numbers, row after row.
    ///
    /// # Panics
    /// If `values` does not hold exactly `rows * columns` numbers.
    #[must_use]
    pub fn new(values: &'a [f32], rows: usize, columns: usize) -> Self {
        assert_eq!(values.len(), rows * columns, "a {rows} by {columns} matrix");
        Self { values, rows, columns, row_stride: columns, column_stride: 1 }
    }
    /// The transpose: the same numbers, read the other way.
    #[must_use]
    pub const fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }
    /// The columns in `range`, all rows.
    ///
    /// # Panics
    /// If there are no such columns.
    #[must_use]
    pub fn columns(self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.columns, "columns");
        if self.rows == 0 || range.is_empty() {
            return Self { values: &[], columns: range.len(), ..self };
        }
        let values = &self.values[range.start * self.column_stride..];
        Self { values, columns: range.len(), ..self }
    }
}

/// What happens to the numbers that were there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// They are replaced.
    Overwrite,
    /// The result is added to them.
    Accumulate,
}

/// `out = a b`, or `out += a b`; `out` is row-major `[a.rows, b.columns]`.
///
/// Sums longer than [`LONGEST_SUM`] are formed in equal parts, added in order.
///
/// # Panics
/// If the shapes do not fit.
pub fn matmul(a: Matrix<'_>, b: Matrix<'_>, out: &mut [f32], write: Write) {
    let (rows, inner, columns) = (a.rows, a.columns, b.columns);
    assert_eq!(inner, b.rows, "inner dimensions");
    assert_eq!(out.len(), rows * columns, "a {rows} by {columns} result");
    if inner == 0 && write == Write::Overwrite {
        out.fill(0.0);
    }
    if rows == 0 || columns == 0 || inner == 0 {
        return;
    }
    let part = inner.div_ceil(inner.div_ceil(LONGEST_SUM));
    let (tile_rows, tile_columns) = if part < inner {
        (rows, equal_tiles(columns, TILE_COLUMNS))
    } else {
        (equal_tiles(rows, TILE_ROWS), columns)
    };
    for start in (0..inner).step_by(part) {
        let sum = start..inner.min(start + part);
        let accumulate = start > 0 || write == Write::Accumulate;
        for row in (0..rows).step_by(tile_rows) {
            for column in (0..columns).step_by(tile_columns) {
                let tile = Tile {
                    rows: row..rows.min(row + tile_rows),
                    columns: column..columns.min(column + tile_columns),
                };
                tile_of_product(a, b, out, &tile, sum.clone(), accumulate);
            }
        }
    }
}

/// `out = a b` with a bias added to each row and every number clipped, while the tile is still in the second-level cache. The
/// sums are those of [`matmul`] added to rows filled with their biases.
///
/// # Panics
/// If the shapes do not fit.
pub(crate) fn matmul_finished(a: Matrix<'_>, b: Matrix<'_>, finish: &Finish<'_>, out: &mut [f32]) {
    let (rows, inner, columns) = (a.rows, a.columns, b.columns);
    assert_eq!(inner, b.rows, "inner dimensions");
    assert_eq!(out.len(), rows * columns, "a {rows} by {columns} result");
    if rows == 0 || columns == 0 {
        return;
    }
    let parts = inner.div_ceil(LONGEST_SUM).max(1);
    let part = inner.div_ceil(parts).max(1);
    let tile_rows = equal_tiles(rows, TILE_ROWS);
    let most = FINISHED / tile_rows.min(rows) / 64 * 64;
    let tile_columns = equal_tiles(columns, most);
    for row in (0..rows).step_by(tile_rows) {
        for column in (0..columns).step_by(tile_columns) {
            let tile = Tile {
                rows: row..rows.min(row + tile_rows),
                columns: column..columns.min(column + tile_columns),
            };
            let mut finish = finish.from(row);
            let tile_of_out = &mut out[row * columns..tile.rows.end * columns];
            let range = [tile.columns.start, tile.columns.end];
            if parts > 1 || inner == 0 {
                // The biases come first in longer sums, so they cannot be added behind.
                for (i, row) in tile_of_out.chunks_exact_mut(columns).enumerate() {
                    row[range[0]..range[1]].fill(finish.bias(i));
                }
                finish.biases = &[];
            }
            for start in (0..inner).step_by(part) {
                let sum = start..inner.min(start + part);
                tile_of_product(a, b, out, &tile, sum, parts > 1);
            }
            finish_tile(&mut out[row * columns..tile.rows.end * columns], columns, range, &finish);
        }
    }
}

/// Numbers of a tile that are finished together: they lie in the second-level cache.
const FINISHED: usize = 1 << 16;

/// Result columns and rows formed at a time: with fewer, what is packed and written stays in the second-level cache.
/// Tiles change no number: each is its own sum. Measured with 128 records, 6169 inputs and 512 outputs on an AVX2
/// core: `x W` takes 10.7 ms instead of 12.6, `x^T g` 10.3 instead of 11.4.
const TILE_COLUMNS: usize = 128;
const TILE_ROWS: usize = 240;

/// The length of the fewest equal tiles of at most `most`, a multiple of 8, so that no sliver is left over.
pub(crate) fn equal_tiles(length: usize, most: usize) -> usize {
    length.div_ceil(length.div_ceil(most)).next_multiple_of(8)
}

struct Tile {
    rows: Range<usize>,
    columns: Range<usize>,
}

#[expect(unsafe_code, reason = "the gemm crate takes raw pointers")]
#[expect(
    clippy::cast_possible_wrap,
    reason = "strides are below the length of a slice, at most isize::MAX"
)]
fn tile_of_product(
    a: Matrix<'_>,
    b: Matrix<'_>,
    out: &mut [f32],
    tile: &Tile,
    sum: Range<usize>,
    accumulate: bool,
) {
    let columns = b.columns;
    let from_a = &a.values[tile.rows.start * a.row_stride + sum.start * a.column_stride..];
    let from_b = &b.values[sum.start * b.row_stride + tile.columns.start * b.column_stride..];
    let out = &mut out[tile.rows.start * columns + tile.columns.start..];
    // The kernels want columns, so this asks for `out^T = b^T a^T`.
    // SAFETY: `Matrix::new` checked that `values` holds `rows * columns` numbers, `transposed` only swaps the two
    // strides and `columns` drops the numbers before the first column it keeps, so number `(i, p)` of `a`, `i < a.rows` and `p < a.columns`, lies at
    // `i * row_stride + p * column_stride < a.values.len()`, and likewise for `b`. The caller gives non-empty ranges
    // with `tile.rows.end <= a.rows`, `tile.columns.end <= b.columns` and `sum.end <= a.columns == b.rows`, and an
    // `out` of `a.rows * b.columns` numbers; the slices start at the first number of each range and end with the
    // matrix. `out` is borrowed mutably, so it overlaps neither operand. All memory is initialised.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            tile.columns.len(),
            tile.rows.len(),
            sum.len(),
            out.as_mut_ptr(),
            columns as isize,
            1,
            accumulate,
            from_b.as_ptr(),
            b.row_stride as isize,
            b.column_stride as isize,
            from_a.as_ptr(),
            a.row_stride as isize,
            a.column_stride as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            gemm_common::Parallelism::None,
        );
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these values are exact")]
mod tests {
    use super::*;

    /// By hand: [1 2; 3 4] [5 6; 7 8] = [19 22; 43 50]; with the first transposed, [26 30; 38 44].
    #[test]
    fn multiplies_small_matrices_as_by_hand() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
        let (a, b) = (Matrix::new(&a, 2, 2), Matrix::new(&b, 2, 2));
        let mut out = [0.0; 4];
        matmul(a, b, &mut out, Write::Overwrite);
        assert_eq!(out, [19.0, 22.0, 43.0, 50.0]);
        matmul(a.transposed(), b, &mut out, Write::Overwrite);
        assert_eq!(out, [26.0, 30.0, 38.0, 44.0]);
        matmul(a, b.transposed(), &mut out, Write::Accumulate);
        assert_eq!(out, [26.0 + 17.0, 30.0 + 23.0, 38.0 + 39.0, 44.0 + 53.0]);
    }

    #[test]
    fn an_empty_sum_is_zero() {
        let mut out = [3.0; 6];
        matmul(Matrix::new(&[], 2, 0), Matrix::new(&[], 0, 3), &mut out, Write::Accumulate);
        assert_eq!(out, [3.0; 6]);
        matmul(Matrix::new(&[], 2, 0), Matrix::new(&[], 0, 3), &mut out, Write::Overwrite);
        assert_eq!(out, [0.0; 6]);
    }
}
