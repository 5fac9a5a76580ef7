//! One graph convolution behind its weights.
use crate::kernels::{self, NeighbourLists};

/// `out = tanh(D^-1 ((A + I) rows + bias))`, where `D` is the degree of each node and 1 more, and `rows` is `X W`.
pub(super) fn forward(lists: NeighbourLists<'_>, rows: &[f32], bias: &[f32], out: &mut [f32]) {
    kernels::sum_neighbours(lists, rows, bias.len(), out);
    for (row, degree) in out.chunks_exact_mut(bias.len()).zip(lists.degrees()) {
        let share = 1.0 / (degree + 1) as f32;
        for (x, bias) in row.iter_mut().zip(bias) {
            *x = (*x + bias) * share;
        }
    }
    kernels::tanh(out);
}

/// The way back. `gradient`, with respect to `outputs`, becomes that with respect to `(A + I) rows + bias`, whose sum over the nodes
/// is added to `bias_gradient`; `rows_gradient` is overwritten by the gradient with respect to `rows`: `A` is its own transpose.
pub(super) fn backward(
    lists: NeighbourLists<'_>,
    outputs: &[f32],
    gradient: &mut [f32],
    bias_gradient: &mut [f32],
    rows_gradient: &mut [f32],
) {
    let width = bias_gradient.len();
    kernels::tanh_gradient(gradient, outputs);
    for (row, degree) in gradient.chunks_exact_mut(width).zip(lists.degrees()) {
        let share = 1.0 / (degree + 1) as f32;
        for x in row {
            *x *= share;
        }
    }
    kernels::sum_rows(gradient, bias_gradient);
    kernels::sum_neighbours(lists, gradient, width, rows_gradient);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path of three nodes, one channel: sums 3, 6, 5 and a bias of 1, divided by 2, 3, 2.
    #[test]
    fn a_path_is_as_by_hand() {
        let lists = NeighbourLists::new(&[0, 1, 3, 4], &[1, 0, 2, 1]);
        let mut out = [0.0; 3];
        forward(lists, &[1.0, 2.0, 3.0], &[1.0], &mut out);
        let by_hand = [4.0_f64 / 2.0, 7.0 / 3.0, 6.0 / 2.0].map(f64::tanh);
        for (got, right) in out.iter().zip(by_hand) {
            assert!((f64::from(*got) - right).abs() < 1e-6);
        }
        let mut gradient = [1.0, 0.0, 2.0];
        let (mut bias, mut rows) = ([10.0], [f32::NAN; 3]);
        backward(lists, &out, &mut gradient, &mut bias, &mut rows);
        // Slopes 1 - tanh^2, divided by the degrees: of the first and last node alone.
        let slope = |y: f64| y.mul_add(-y, 1.0);
        let (first, last) = (slope(by_hand[0]) / 2.0, slope(by_hand[2]));
        for (got, right) in rows.iter().zip([first, first + last, last]) {
            assert!((f64::from(*got) - right).abs() < 1e-6, "{got}, not {right}");
        }
        assert!((f64::from(bias[0]) - 10.0 - first - last).abs() < 1e-6);
    }
}
