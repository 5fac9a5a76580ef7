//! Gram matrices in double precision.
use pulp::Arch;

/// Rows and columns that are formed together.
const DOWN: usize = 4;
const ACROSS: usize = 16;

/// `sum over rows of x_p x_q` for columns `p <= q`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gram {
    /// The rows in double precision, zeros behind each up to whole tiles.
    rows: Vec<f64>,
    products: Vec<f64>,
    stride: usize,
}

impl Gram {
    /// Of `rows` `[any, width]`. Products are exact, only the additions round. Takes `rows.len() * width` multiplications and
    /// additions, half of them for pairs.
    ///
    /// # Panics
    /// If `width` is 0.
    pub(crate) fn form(&mut self, rows: &[f32], width: usize) {
        let stride = width.next_multiple_of(ACROSS);
        self.stride = stride;
        self.rows.clear();
        self.rows.resize(rows.len() / width * stride, 0.0);
        self.products.resize(stride * stride, 0.0);
        let (wide, products) = (&mut self.rows[..], &mut self.products[..]);
        Arch::new().dispatch(
            #[inline(always)]
            move || {
                let (wide, products) = (wide, products);
                for (wide, row) in wide.chunks_exact_mut(stride).zip(rows.chunks_exact(width)) {
                    for (wide, x) in wide.iter_mut().zip(row) {
                        *wide = f64::from(*x);
                    }
                }
                for q in (0..width).step_by(ACROSS) {
                    for p in (0..q + ACROSS).step_by(DOWN) {
                        let mut sums = [[0.0_f64; ACROSS]; DOWN];
                        for row in wide.chunks_exact(stride) {
                            let (Some(down), Some(across)) =
                                (row[p..].first_chunk::<DOWN>(), row[q..].first_chunk::<ACROSS>())
                            else {
                                continue;
                            };
                            for i in 0..DOWN {
                                for j in 0..ACROSS {
                                    sums[i][j] = down[i].mul_add(across[j], sums[i][j]);
                                }
                            }
                        }
                        for (i, sums) in sums.iter().enumerate() {
                            products[(p + i) * stride + q..][..ACROSS].copy_from_slice(sums);
                        }
                    }
                }
            },
        );
    }
    /// Products of column `p` with those from `p` on.
    pub(crate) fn from(&self, p: usize) -> &[f64] {
        &self.products[p * self.stride + p..(p + 1) * self.stride]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::dot;

    /// Every entry is the product of two columns, whatever is left over behind whole tiles.
    #[test]
    fn entries_are_products_of_columns() {
        let mut gram = Gram::default();
        for (count, width) in [(1, 1), (3, 4), (40, 16), (7, 33), (2, 64)] {
            let rows: Vec<f32> =
                (0..count * width).map(|i| ((i * 37 % 101) as f32 - 50.0) / 64.0).collect();
            gram.form(&rows, width);
            let column =
                |p: usize| -> Vec<f32> { rows.iter().skip(p).step_by(width).copied().collect() };
            for p in 0..width {
                for q in p..width {
                    let right = dot(&column(p), &column(q));
                    assert!((gram.from(p)[q - p] - right).abs() < 1e-12, "{count} {width} {p} {q}");
                }
            }
        }
    }
}
