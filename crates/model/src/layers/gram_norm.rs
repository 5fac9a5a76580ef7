//! Norms of a convolution's gradients by Gram matrices.
use super::window::{Plane, Window};
use crate::kernels::Gram;
use pulp::Arch;

const LANES: usize = 8;

/// A record whose gradients cancel over the places to less than one in so many is formed. Its norm by Gram matrices would be
/// right, but the sum of scaled gradients would not keep to it: rounding the output gradients to 24 bits moves the sum by
/// up to `2^-24 sum_p |g_p| |u_p|`, and with the rounding of the coefficient that must stay below
/// [`CLIPPING_SLACK`](crate::passes) = 2^-20.
const CANCELLATION: f64 = 12.0;

/// Squared norm of inputs beyond which a gradient is formed: output gradients that vanish when scaled (below 1.2e-38) would
/// otherwise count.
const LARGE_INPUTS: f64 = 1e20;

/// Gram matrices of one group of one record, and squared norms of what each place reads.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grams {
    /// Of the input planes, or of what the places read.
    pub(super) inputs: Gram,
    pub(super) gradients: Gram,
    of_inputs: Vec<f64>,
}

/// What a squared norm is the sum of.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Parts {
    squared: f64,
    /// Norms of the outer products, place by place.
    lengths: f64,
    /// Squared norm of all that the places read.
    input_norm: f64,
}
impl Parts {
    /// The squared norm. In double precision, so wrong by at most 1e-16 (taps + outputs) of `(sum_p |u_p| |g_p|)^2`; `None` if
    /// that or the sum over records could be felt (see [`CANCELLATION`]).
    pub(super) fn squared_norm(self) -> Option<f64> {
        let Self { squared, lengths, input_norm } = self;
        (lengths <= CANCELLATION * squared.sqrt() && input_norm < LARGE_INPUTS).then_some(squared)
    }
    /// Adds `sum_pq (u_p . u_q + one) (g_p . g_q)` over the places of one group. Place `p` reads through the window, so
    /// `u_p . u_q` is a sum over taps of products of two places of the input planes.
    pub(super) fn add(&mut self, window: Window, plane: Plane, one: f64, grams: &mut Grams) {
        let Grams { inputs, gradients, of_inputs } = grams;
        let [in_width, width] = [plane.input[1], plane.output[1]];
        of_inputs.clear();
        of_inputs.resize(plane.places(), 0.0);
        let mut lanes = [0.0; LANES];
        window.for_each_tap(|_, ky, kx| {
            let ((rows, y), (columns, x)) =
                (window.inside(plane, 0, ky), window.inside(plane, 1, kx));
            let [down, across] = [window.stride[0] * in_width, window.stride[1]];
            let whole = across == 1 && columns.len() == width && down == width;
            let (of_inputs, lanes) = (&mut of_inputs[..], &mut lanes);
            let (inputs, gradients) = (&*inputs, &*gradients);
            Arch::new().dispatch(
                #[inline(always)]
                move || {
                    let (of_inputs, lanes) = (of_inputs, lanes);
                    for (i, row) in rows.clone().enumerate() {
                        for (j, column) in columns.clone().enumerate() {
                            let p = row * width + column;
                            let read = y * in_width + x + i * down + j * across;
                            let (products, others) = (gradients.from(p), inputs.from(read));
                            of_inputs[p] += others[0];
                            if whole {
                                let count = rows.end * width - p - 1;
                                add_products(&products[1..], &others[1..], 1, count, lanes);
                                continue;
                            }
                            // The rest of this row, then the rows below.
                            let rest = columns.end - column - 1;
                            if rest > 0 {
                                add_products(
                                    &products[1..],
                                    &others[across..],
                                    across,
                                    rest,
                                    lanes,
                                );
                            }
                            for below in 1..rows.end - row {
                                let products = &products[below * width - j..];
                                let others = &others[below * down - j * across..];
                                add_products(products, others, across, columns.len(), lanes);
                            }
                        }
                    }
                },
            );
        });
        let mut pairs: f64 = lanes.iter().sum();
        for (p, of_inputs) in of_inputs.iter().enumerate() {
            let products = gradients.from(p);
            let of_place = (of_inputs + one) * products[0];
            self.input_norm += of_inputs;
            self.lengths += of_place.sqrt();
            self.squared += of_place;
            if one > 0.0 {
                pairs += one * products[1..plane.places() - p].iter().sum::<f64>();
            }
        }
        self.squared += 2.0 * pairs;
    }
}

/// Adds `count` products with every `step`-th of `others`, in turn to each of the sums.
#[inline(always)]
fn add_products(
    products: &[f64],
    others: &[f64],
    step: usize,
    count: usize,
    sums: &mut [f64; LANES],
) {
    let products = &products[..count];
    if step > 1 {
        for (i, (x, y)) in products.iter().zip(others.iter().step_by(step)).enumerate() {
            sums[i % LANES] = x.mul_add(*y, sums[i % LANES]);
        }
        return;
    }
    let ((x, x_rest), (y, y_rest)) =
        (products.as_chunks::<LANES>(), others[..count].as_chunks::<LANES>());
    for (x, y) in x.iter().zip(y) {
        for lane in 0..LANES {
            sums[lane] = x[lane].mul_add(y[lane], sums[lane]);
        }
    }
    for (sum, (x, y)) in sums.iter_mut().zip(x_rest.iter().zip(y_rest)) {
        *sum = x.mul_add(*y, *sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By either Gram matrix, the squared norm is that of the gradient itself, formed number by number.
    #[test]
    fn norms_are_those_of_the_gradients_formed() {
        let window = |kernel, stride, dilation, before, after| Window {
            kernel,
            stride,
            dilation,
            before,
            after,
        };
        let windows = [
            Window::same(1),
            Window::same(3),
            window([3; 2], [2, 1], [1; 2], [1; 2], [0, 1]),
            window([2, 3], [1, 2], [2, 1], [0, 2], [1, 0]),
            window([5, 1], [1; 2], [1; 2], [2, 0], [2, 0]),
        ];
        let (channels, outputs) = (3, 4);
        let number = |i: usize, seed: usize| ((i * 37 + seed) % 101) as f32 / 64.0 - 0.7;
        for window in windows {
            let plane = window.plane(&[channels, 7, 6]);
            let (area, places) = (plane.area(), plane.places());
            let planes: Vec<f32> = (0..channels * area).map(|i| number(i, 5)).collect();
            let gradient: Vec<f32> = (0..outputs * places).map(|i| number(i * 3, 11)).collect();
            let mut columns = Vec::new();
            for plane_of_channel in planes.chunks_exact(area) {
                window.for_each_tap(|_, ky, kx| {
                    let mut out = vec![0.0; places];
                    window.gather(plane, ky, kx, plane_of_channel, &mut out);
                    columns.extend(out);
                });
            }
            let mut right = 0.0;
            for row in gradient.chunks_exact(places) {
                let ones = vec![1.0; places];
                for column in columns.chunks_exact(places).chain([&ones[..]]) {
                    right += crate::kernels::dot(row, column).powi(2);
                }
            }
            let mut grams = Grams::default();
            grams.gradients.form(&gradient, places);
            grams.inputs.form(&planes, area);
            let (mut of_planes, mut of_places) = (Parts::default(), Parts::default());
            of_planes.add(window, plane, 1.0, &mut grams);
            grams.inputs.form(&columns, places);
            let output = Plane { input: plane.output, output: plane.output };
            of_places.add(Window::same(1), output, 1.0, &mut grams);
            for got in [of_planes, of_places] {
                assert!((got.squared - right).abs() < 1e-11 * right, "{window:?}: {got:?} {right}");
            }
            assert!((of_planes.lengths - of_places.lengths).abs() < 1e-11 * of_places.lengths);
            assert!((of_planes.input_norm - of_places.input_norm).abs() < 1e-9);
        }
    }
}
