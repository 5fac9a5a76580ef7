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
        self.starts.push(0);
        let ones: usize = words.iter().map(|word| word.count_ones() as usize).sum();
        self.rows.resize(ones, 0);
        let mut rows = self.rows.iter_mut();
        for row in words.chunks_exact(words_per_row) {
            for (w, word) in row.iter().enumerate() {
                let mut bits = *word;
                while bits != 0
                    && let Some(row) = rows.next()
                {
                    *row = (w * 64) as u32 + bits.trailing_zeros();
                    bits &= bits - 1;
                }
            }
            self.starts.push((ones - rows.len()) as u32);
        }
    }
}

/// The bits with rows and columns exchanged: `rows` rows of `width.div_ceil(64)` words become `width` rows of
/// `rows.div_ceil(64)` words in `out`.
///
/// # Panics
/// If there are fewer words than that.
pub fn transpose_bits(words: &[u64], rows: usize, width: usize, out: &mut Vec<u64>) {
    let (from, to) = (width.div_ceil(64), rows.div_ceil(64));
    out.clear();
    out.resize(width * to, 0);
    for block in 0..to {
        for word in 0..from {
            let mut square = [0; 64];
            for (i, row) in square.iter_mut().zip(block * 64..rows) {
                *i = words[row * from + word];
            }
            transpose_square(&mut square);
            for (column, bits) in (word * 64..width).zip(square) {
                out[column * to + block] = bits;
            }
        }
    }
}

/// Exchanges ever smaller quarters (Warren, *Hacker's Delight*, section 7-3), bit 0 being the first column.
fn transpose_square(square: &mut [u64; 64]) {
    let (mut size, mut mask) = (32, 0x0000_0000_FFFF_FFFF_u64);
    while size > 0 {
        for i in (0..64).filter(|i| i & size == 0) {
            let other = ((square[i] >> size) ^ square[i + size]) & mask;
            square[i] ^= other << size;
            square[i + size] ^= other;
        }
        size /= 2;
        mask ^= mask << size;
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
pub(super) fn columns(
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
    while width - at >= 32 {
        tile::<32>(list, matrix, width, at, out, write);
        at += 32;
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

    /// Bits 0 and 65 of the first row, bit 1 of the second; lists are overwritten by longer and shorter ones.
    #[test]
    fn lists_set_bits_row_by_row() {
        let mut lists = RowLists::default();
        for _ in 0..2 {
            lists.set_bits(&[1, 2, 2, 0], 2);
            assert_eq!((lists.list(0), lists.list(1)), (&[0, 65][..], &[1][..]));
            lists.set_bits(&[u64::MAX], 1);
            assert_eq!((lists.len(), lists.length(0)), (1, 64));
        }
    }

    #[test]
    fn transposed_bits_are_the_bits_read_the_other_way() {
        for (rows, width) in [(1, 1), (3, 64), (64, 65), (130, 600), (200, 3)] {
            let from = usize::div_ceil(width, 64);
            let mut state = 1_u64;
            let mut words: Vec<u64> = (0..rows * from)
                .map(|_| {
                    state = state
                        .wrapping_mul(0x5851_F42D_4C95_7F2D)
                        .wrapping_add(0x1405_7B7E_F767_814F);
                    state ^ (state >> 29)
                })
                .collect();
            for row in words.chunks_exact_mut(from) {
                row[from - 1] &= u64::MAX >> (from * 64 - width);
            }
            let mut out = vec![7];
            transpose_bits(&words, rows, width, &mut out);
            let to = rows.div_ceil(64);
            assert_eq!(out.len(), width * to);
            for column in 0..width {
                for row in 0..to * 64 {
                    let right =
                        row < rows && words[row * from + column / 64] >> (column % 64) & 1 == 1;
                    assert_eq!(out[column * to + row / 64] >> (row % 64) & 1 == 1, right);
                }
            }
        }
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
