//! Sums of listed rows of a matrix: what a matrix product becomes when one factor holds only zeros and ones.
use super::Write;
use pulp::Arch;

/// For each result row, which rows of a matrix to add up, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowLists {
    /// `starts[i]..starts[i + 1]` is the part of `rows` for result row `i`.
    starts: Vec<u32>,
    rows: Vec<u32>,
}
impl RowLists {
    /// Number of lists.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Length of list `i`: for set bits, the number of ones in row `i`.
    ///
    /// # Panics
    /// If there is no list `i`.
    #[must_use]
    pub fn length(&self, i: usize) -> usize {
        self.list(i).len()
    }
    /// List `i`.
    fn list(&self, i: usize) -> &[u32] {
        &self.rows[self.starts[i] as usize..self.starts[i + 1] as usize]
    }
    /// The set bits of each row of `words_per_row` words, buffers reused.
    ///
    /// # Panics
    /// If `words_per_row` is 0 and there are words.
    pub fn set_bits(&mut self, words: &[u64], words_per_row: usize) {
        self.starts.clear();
        self.rows.clear();
        self.starts.push(0);
        for row in words.chunks_exact(words_per_row) {
            for (w, word) in row.iter().enumerate() {
                let mut bits = *word;
                while bits != 0 {
                    self.rows.push((w * 64) as u32 + bits.trailing_zeros());
                    bits &= bits - 1;
                }
            }
            self.starts.push(self.rows.len() as u32);
        }
    }
    /// The transpose: for each of `width` columns, the lists of `of` that name it; buffers reused.
    ///
    /// # Panics
    /// If `of` names a row at or beyond `width`.
    pub fn transpose_of(&mut self, of: &Self, width: usize) {
        self.starts.clear();
        self.starts.resize(width + 1, 0);
        for row in &of.rows {
            self.starts[*row as usize + 1] += 1;
        }
        for i in 0..width {
            self.starts[i + 1] += self.starts[i];
        }
        self.rows.clear();
        self.rows.resize(of.rows.len(), 0);
        // Filling moves each start to the next list's start; one shift afterwards puts them back.
        for i in 0..of.len() {
            for row in of.list(i) {
                let at = &mut self.starts[*row as usize];
                self.rows[*at as usize] = i as u32;
                *at += 1;
            }
        }
        self.starts.copy_within(0..width, 1);
        self.starts[0] = 0;
    }
}

/// Writes bits out as 0.0 and 1.0: each row of `width.div_ceil(64)` words becomes `width` numbers, appended to `out`.
///
/// # Panics
/// If `width` is 0 and there are words.
pub fn expand_bits(words: &[u64], width: usize, out: &mut Vec<f32>) {
    let first = out.len();
    out.resize(first + words.len() / width.div_ceil(64) * width, 0.0);
    let numbers = &mut out[first..];
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let out = numbers;
            let rows = out.chunks_exact_mut(width);
            for (row, words) in rows.zip(words.chunks_exact(width.div_ceil(64))) {
                for (numbers, word) in row.chunks_mut(64).zip(words) {
                    let halves = [*word as u32, (*word >> 32) as u32];
                    for (numbers, half) in numbers.chunks_mut(32).zip(halves) {
                        for (j, x) in numbers.iter_mut().enumerate() {
                            *x = ((half >> j) & 1) as i32 as f32;
                        }
                    }
                }
            }
        },
    );
}

/// A matrix above this many bytes is walked in parts of so many bytes, each of whole rows and used by all lists
/// before the next: a large matrix is then read once, and the part in use stays in the second-level cache.
const PART: usize = 1 << 17;

/// Lists walked together: their result rows should stay in the second-level cache too.
const TOGETHER: usize = 128;

#[inline(always)]
fn tile<const N: usize>(
    list: &[u32],
    matrix: &[f32],
    width: usize,
    at: usize,
    out: &mut [f32],
    write: Write,
) {
    let Some(out) = out[at..].first_chunk_mut::<N>() else { return };
    let mut sum = if write == Write::Accumulate { *out } else { [0.0; N] };
    for row in list {
        let from = *row as usize * width + at;
        if let Some(values) = matrix[from..].first_chunk::<N>() {
            for i in 0..N {
                sum[i] += values[i];
            }
        }
    }
    *out = sum;
}

/// The columns from `at` on.
#[inline(always)]
fn columns(
    list: &[u32],
    matrix: &[f32],
    width: usize,
    mut at: usize,
    out: &mut [f32],
    write: Write,
) {
    while width - at >= 64 {
        tile::<64>(list, matrix, width, at, out, write);
        at += 64;
    }
    while width - at >= 16 {
        tile::<16>(list, matrix, width, at, out, write);
        at += 16;
    }
    while width - at >= 4 {
        tile::<4>(list, matrix, width, at, out, write);
        at += 4;
    }
    while at < width {
        tile::<1>(list, matrix, width, at, out, write);
        at += 1;
    }
}

/// `out[i] = sum of matrix[r] for r in lists[first + i]`, or `+=`, for as many lists as `out` has rows; rows are `width`
/// numbers, added in list order.
///
/// # Panics
/// If there are not so many lists, one names a row the matrix does not have, or `out` is not of whole rows.
pub fn sum_listed_rows(
    lists: &RowLists,
    first: usize,
    matrix: &[f32],
    width: usize,
    out: &mut [f32],
    write: Write,
) {
    if width == 0 {
        return;
    }
    assert_eq!(out.len() % width, 0);
    assert!(out.len() / width <= lists.len() - first);
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let out = out;
            walk(lists, first, matrix, width, out, write);
        },
    );
}

#[inline(always)]
fn walk(
    lists: &RowLists,
    first: usize,
    matrix: &[f32],
    width: usize,
    out: &mut [f32],
    write: Write,
) {
    let rows = matrix.len() / width;
    let part = if size_of_val(matrix) > 2 * PART {
        (PART / (width * size_of::<f32>())).max(1)
    } else {
        rows.max(1)
    };
    for (group, out) in out.chunks_mut(TOGETHER * width).enumerate() {
        // How much of each list is done. Every number is the same sum, in list order, however the matrix is parted.
        let mut done = [0_usize; TOGETHER];
        let mut write = write;
        let mut end = part;
        loop {
            for (i, (row, done)) in out.chunks_exact_mut(width).zip(&mut done).enumerate() {
                let list = &lists.list(first + group * TOGETHER + i)[*done..];
                let taken = if end >= rows {
                    list.len()
                } else {
                    list.iter().position(|r| *r as usize >= end).unwrap_or(list.len())
                };
                *done += taken;
                columns(&list[..taken], matrix, width, 0, row, write);
            }
            if end >= rows {
                break;
            }
            write = Write::Accumulate;
            end += part;
        }
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these values are exact")]
mod tests {
    use super::*;

    /// Bits 0 and 65 of the first row, bit 1 of the second.
    #[test]
    fn lists_set_bits_and_transposes_them() {
        let mut lists = RowLists::default();
        lists.set_bits(&[1, 2, 2, 0], 2);
        assert_eq!((lists.list(0), lists.list(1)), (&[0, 65][..], &[1][..]));
        let mut transposed = RowLists::default();
        transposed.transpose_of(&lists, 70);
        assert_eq!(transposed.len(), 70);
        assert_eq!((transposed.list(0), transposed.list(1)), (&[0][..], &[1][..]));
        assert_eq!((transposed.list(65), transposed.list(2)), (&[0][..], &[][..]));
    }

    #[test]
    fn bits_are_written_out_one_by_one() {
        let words = [1 << 63 | 0b101, 0b10, u64::MAX, 0];
        let mut out = vec![7.0];
        expand_bits(&words, 66, &mut out);
        assert_eq!(out.len(), 1 + 2 * 66);
        for (i, x) in out[1..].iter().enumerate() {
            let (row, j) = (i / 66, i % 66);
            let right = (words[2 * row + j / 64] >> (j % 64)) & 1 == 1;
            assert_eq!(*x, f32::from(u8::from(right)), "bit {j} of row {row}");
        }
    }

    /// Numbers are small whole ones, so every order of addition gives the same exact sum.
    #[test]
    fn sums_equal_the_plain_loop_for_every_width() {
        for width in [1, 3, 4, 15, 64, 100, 131] {
            let rows = 2048; // above two parts for the wider ones
            let matrix: Vec<f32> = (0..rows * width).map(|i| (i % 251) as f32).collect();
            let mut lists = RowLists::default();
            let words: Vec<u64> = (0..3 * 32_u64)
                .map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) & 0x1111_1111)
                .collect();
            lists.set_bits(&words, 32);
            let mut out = vec![1.0; 3 * width];
            sum_listed_rows(&lists, 0, &matrix, width, &mut out, Write::Accumulate);
            for i in 0..3 {
                for c in 0..width {
                    let sum: f32 =
                        lists.list(i).iter().map(|r| matrix[*r as usize * width + c]).sum();
                    assert_eq!(out[i * width + c], 1.0 + sum, "width {width}");
                }
            }
        }
    }
}
