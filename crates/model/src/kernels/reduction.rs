//! Reductions with a fixed order.
use pulp::Arch;

const LANES: usize = 16;

/// `sum x^2`, in double precision: no finite single-precision vector overflows it.
#[must_use]
pub fn squared_norm(values: &[f32]) -> f64 {
    dot(values, values)
}

/// `sum x y`, in double precision: products are exact, only the additions round.
///
/// # Panics
/// If the lengths differ.
#[must_use]
pub fn dot(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let mut lanes = [0.0_f64; LANES];
    let sums = &mut lanes;
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let sums = sums;
            dot_lanes(a, b, sums);
        },
    );
    fold(lanes)
}

/// `sum x`, in double precision.
#[must_use]
pub fn sum(values: &[f32]) -> f64 {
    sum_of(values, f64::from)
}

/// `out += sum of row`, for each row of `width` numbers, as by [`sum`].
///
/// # Panics
/// If `width` is 0.
pub(crate) fn add_sums(rows: &[f32], width: usize, out: &mut [f32]) {
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let out = out;
            for (out, row) in out.iter_mut().zip(rows.chunks_exact(width)) {
                *out += fold(sum_lanes(row)) as f32;
            }
        },
    );
}

/// For each row of `width` numbers: its sum, and the sum of its products with the row of `others`, as by [`sum`] and [`dot`].
///
/// # Panics
/// If `width` is 0 or the lengths differ.
pub(crate) fn sums_and_dots(
    rows: &[f32],
    others: &[f32],
    width: usize,
    each: impl FnMut(usize, f64, f64),
) {
    assert_eq!(rows.len(), others.len());
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let mut each = each;
            let pairs = rows.chunks_exact(width).zip(others.chunks_exact(width));
            for (i, (row, other)) in pairs.enumerate() {
                let mut products = [0.0; LANES];
                dot_lanes(row, other, &mut products);
                each(i, fold(sum_lanes(row)), fold(products));
            }
        },
    );
}

#[inline(always)]
fn sum_lanes(row: &[f32]) -> [f64; LANES] {
    let mut lanes = [0.0_f64; LANES];
    let (whole, rest) = row.as_chunks::<LANES>();
    for x in whole {
        for i in 0..LANES {
            lanes[i] += f64::from(x[i]);
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane += f64::from(*x);
    }
    lanes
}

/// `sum f(x)`, in double precision.
#[must_use]
pub fn sum_of(values: &[f32], f: impl Fn(f32) -> f64) -> f64 {
    let mut lanes = [0.0_f64; LANES];
    let sums = &mut lanes;
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let sums = sums;
            let mut lanes = *sums;
            let (whole, rest) = values.as_chunks::<LANES>();
            for x in whole {
                for i in 0..LANES {
                    lanes[i] += f(x[i]);
                }
            }
            for (lane, x) in lanes.iter_mut().zip(rest) {
                *lane += f(*x);
            }
            *sums = lanes;
        },
    );
    fold(lanes)
}

/// Halves added to halves.
#[inline(always)]
fn fold(mut lanes: [f64; LANES]) -> f64 {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
        width /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn dot_lanes(a: &[f32], b: &[f32], sums: &mut [f64; LANES]) {
    // A local copy stays in registers.
    let mut lanes = *sums;
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (x, y) in a.iter().zip(b) {
        for i in 0..LANES {
            lanes[i] = f64::from(x[i]).mul_add(f64::from(y[i]), lanes[i]);
        }
    }
    for (lane, (x, y)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *lane = f64::from(*x).mul_add(f64::from(*y), *lane);
    }
    *sums = lanes;
}

/// `out += sum of rows`, row after row; `rows` is `[any, out.len()]`.
///
/// # Panics
/// If `rows` is not whole rows.
pub fn sum_rows(rows: &[f32], out: &mut [f32]) {
    if out.is_empty() {
        return;
    }
    assert_eq!(rows.len() % out.len(), 0);
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let out = out;
            for row in rows.chunks_exact(out.len()) {
                for (o, x) in out.iter_mut().zip(row) {
                    *o += x;
                }
            }
        },
    );
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these values are exact")]
mod tests {
    use super::*;

    /// 1 + 4 + ... + 19^2 = 2470, exactly representable; the length leaves a rest after whole lanes.
    #[test]
    fn squared_norm_of_the_first_numbers_is_exact() {
        let values: Vec<f32> = (0_u8..20).map(f32::from).collect();
        assert!((squared_norm(&values) - 2470.0).abs() < 1e-12);
        assert!(squared_norm(&[3e38, 3e38]).is_finite());
        assert!(squared_norm(&[f32::NAN, 1.0]).is_nan());
    }

    #[test]
    fn every_row_is_summed_by_itself() {
        let rows: Vec<f32> = (0_u8..38).map(f32::from).collect();
        let mut out = [1.0, 0.0];
        add_sums(&rows, 19, &mut out);
        assert_eq!(out, [1.0 + 171.0, 532.0]);
        assert_eq!(f64::from(out[1]), sum(&rows[19..]));
        let mut found = vec![];
        sums_and_dots(&rows, &rows, 19, |i, sum, dot| found.push((i, sum, dot)));
        assert_eq!(found[0], (0, 171.0, 2109.0));
        assert_eq!(found[1], (1, sum(&rows[19..]), dot(&rows[19..], &rows[19..])));
    }

    #[test]
    fn rows_are_added_column_by_column() {
        let mut out = [1.0, 0.0];
        sum_rows(&[1.0, 2.0, 3.0, 4.0], &mut out);
        assert_eq!(out, [5.0, 6.0]);
    }
}
