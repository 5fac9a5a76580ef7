//! One-hot features of nodes: their product with a matrix is one of its rows for each node.
use crate::kernels;

/// `out[v] = rows[features[v]]`.
pub(super) fn embed(features: &[u32], rows: &[f32], width: usize, out: &mut [f32]) {
    for (out, feature) in out.chunks_exact_mut(width).zip(features) {
        out.copy_from_slice(&rows[*feature as usize * width..][..width]);
    }
}

/// Nodes in the order of their features, so that nodes with one feature stand together.
pub(super) fn by_feature<'a>(features: &[u32], order: &'a mut Vec<u32>) -> &'a [u32] {
    order.clear();
    order.extend(0..features.len() as u32);
    order.sort_unstable_by_key(|v| (features[*v as usize], *v));
    order
}

/// Appends the gradient of the rows that occur, in the order of their features: of each the sum over its nodes.
pub(super) fn gradient_rows(
    features: &[u32],
    gradient: &[f32],
    width: usize,
    order: &mut Vec<u32>,
    out: &mut Vec<f32>,
) {
    let feature = |v: &u32| features[*v as usize];
    for nodes in by_feature(features, order).chunk_by(|a, b| feature(a) == feature(b)) {
        let first = out.len();
        out.resize(first + width, 0.0);
        for node in nodes {
            kernels::sum_rows(&gradient[*node as usize * width..][..width], &mut out[first..]);
        }
    }
}

/// `out += factor gradient`, for rows as by [`gradient_rows`]; gives what follows them in `kept`.
pub(super) fn add_rows<'a>(
    features: &[u32],
    mut kept: &'a [f32],
    width: usize,
    factor: f32,
    order: &mut Vec<u32>,
    out: &mut [f32],
) -> &'a [f32] {
    let feature = |v: &u32| features[*v as usize];
    for nodes in by_feature(features, order).chunk_by(|a, b| feature(a) == feature(b)) {
        let (row, rest) = kept.split_at(width);
        let at = nodes.first().map_or(0, feature) as usize * width;
        kernels::axpy(&mut out[at..at + width], factor, row);
        kept = rest;
    }
    kept
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these values are exact")]
mod tests {
    use super::*;

    /// Four nodes with features 2, 0, 2, 5 of six: rows looked up, and the gradients of rows 0, 2 and 5 alone.
    #[test]
    fn rows_are_looked_up_and_their_gradients_gathered_as_by_hand() {
        let features = [2, 0, 2, 5];
        let rows: Vec<f32> = (0_u8..12).map(f32::from).collect();
        let mut out = [f32::NAN; 8];
        embed(&features, &rows, 2, &mut out);
        assert_eq!(out, [4.0, 5.0, 0.0, 1.0, 4.0, 5.0, 10.0, 11.0]);
        let gradient = [1.0, 2.0, 3.0, 4.0, 10.0, 20.0, -1.0, -2.0];
        let (mut order, mut kept) = (vec![9; 9], vec![7.0]);
        gradient_rows(&features, &gradient, 2, &mut order, &mut kept);
        assert_eq!(kept, [7.0, 3.0, 4.0, 11.0, 22.0, -1.0, -2.0]);
        kept.push(8.0);
        let mut sum = [1.0; 12];
        let rest = add_rows(&features, &kept[1..], 2, 0.5, &mut order, &mut sum);
        assert_eq!(rest, [8.0]);
        assert_eq!(sum, [2.5, 3.0, 1.0, 1.0, 6.5, 12.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.0]);
    }
}
