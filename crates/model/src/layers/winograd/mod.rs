//! Convolution by 3 x 3 and 5 x 5 windows in steps of 1, with fewer multiplications.
//!
//! Six by six numbers of the input that overlap by two give four by four of the output with 36 multiplications instead of
//! 144: `Y = A^T [(G g G^T) * (B^T d B)] A`, the product element by element; four by four give two by two with 16 instead
//! of 36, and with windows of 5 x 5 six by six give two by two with 36 instead of 100. Over channels each element is a matrix product. The gradient with respect to the input is such a convolution
//! itself, by the kernels turned round, and that with respect to the weights is the transpose of the same maps.
//!
//! Source: Winograd, *Arithmetic Complexity of Computations*, 1980; Lavin and Gray, *Fast Algorithms for Convolutional Neural
//! Networks*, CVPR 2016 (arXiv:1509.09308), sections 4.1 to 4.3. Rounding errors of F(2 x 2, 3 x 3) are those of the sum itself,
//! those of tiles of 6 x 6 up to twice as large.
mod maps;
mod tiles;

use super::Scratch;
use super::window::{Plane, Window};
use crate::kernels::{self, Finish, Limits, Write};
use maps::{Input, Kernel, LANES, Map, Output, Transposed, Vector, ZERO, both, transpose};
use pulp::Arch;
use std::ops::Range;
use tiles::{Grid, Planes, apart, element, put, resize, sixteen};

/// Transformed numbers of input and output that are held at once: they should stay in the second-level cache.
const HELD: usize = 1 << 17;

/// Reading, transforming and writing a kernel takes as long as multiplying it by so many numbers.
const KERNEL: usize = 30;

/// A convolution in tiles.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tiled {
    input: Planes,
    output: Planes,
    /// Rows and columns of a window: 3 or 5.
    taps: usize,
    /// Rows and columns of output in a tile: 2, or 4 where windows are 3 x 3.
    side: usize,
}

/// Calls a method for the size of tiles at hand: numbers of a window, of output and of input along one axis.
macro_rules! by_size {
    ($tiled:expr, $method:ident, $($argument:expr),*) => {
        match ($tiled.taps, $tiled.side) {
            (3, 2) => $tiled.$method::<3, 2, 4>($($argument),*),
            (3, _) => $tiled.$method::<3, 4, 6>($($argument),*),
            _ => $tiled.$method::<5, 2, 6>($($argument),*),
        }
    };
}

impl Tiled {
    /// With so many channels and outputs in each of some groups. `None` where sums over windows are no slower: few channels, or few
    /// places in so many records.
    pub(super) fn new(
        window: &Window,
        plane: Plane,
        [channels, outputs, groups]: [usize; 3],
        records: usize,
    ) -> Option<Self> {
        let Window { kernel: [taps, other], stride, dilation, before, .. } = *window;
        // Both the planes and the gradients, turned round, are padded by less than a window.
        let padding = |i: usize| before[i] < taps && plane.output[i] <= plane.input[i] + before[i];
        if ![3, 5].contains(&taps)
            || (other, stride, dilation) != (taps, [1; 2], [1; 2])
            || channels.min(outputs) < LANES / 2
            || !(padding(0) && padding(1))
            || plane.output[0] < 2
        {
            return None;
        }
        let cost = |side: usize| {
            let tiles = Grid::new(plane.output, side).tiles() * records;
            (side + taps - 1) * (side + taps - 1) * (tiles + KERNEL)
        };
        let side = if taps == 3 && cost(4) < cost(2) { 4 } else { 2 };
        (cost(side) < taps * taps * plane.places() * records).then_some(Self {
            input: Planes::new(channels, groups, plane.input, before),
            output: Planes::new(outputs, groups, plane.output, [0; 2]),
            taps,
            side,
        })
    }

    /// The convolution of `input`.
    pub(super) fn forward(
        &self,
        weights: &[f32],
        finish: Finish<'_>,
        input: &[f32],
        records: usize,
        output: &mut [f32],
        scratch: &mut Scratch,
    ) {
        for (group, weights, first) in self.groups(weights) {
            let (kernels, finish) = (Kernels { weights, turned: false }, finish.from(first));
            let write = Write::Overwrite;
            by_size!(group, correlate, &kernels, finish, input, records, output, write, scratch);
        }
    }
    /// Writes or adds the gradient with respect to the input.
    pub(super) fn input_gradient(
        &self,
        weights: &[f32],
        gradient: &[f32],
        records: usize,
        out: &mut [f32],
        write: Write,
        scratch: &mut Scratch,
    ) {
        for (group, weights, _) in self.groups(weights) {
            let before = group.input.before.map(|before| group.taps - 1 - before);
            let back = Self {
                input: Planes { before, ..group.output },
                output: Planes { before: [0; 2], ..group.input },
                ..group
            };
            let kernels = Kernels { weights, turned: true };
            let finish = Finish { biases: &[], limits: Limits::NONE };
            by_size!(back, correlate, &kernels, finish, gradient, records, out, write, scratch);
        }
    }
    /// Each group of channels, its kernels, and its first output.
    fn groups<'a>(
        &self,
        weights: &'a [f32],
    ) -> impl Iterator<Item = (Self, &'a [f32], usize)> + use<'a> {
        let tiled = *self;
        weights
            .chunks_exact(tiled.weights())
            .enumerate()
            .map(move |(i, weights)| (tiled.group(i), weights, i * tiled.output.channels))
    }
    /// Weights of a group.
    const fn weights(&self) -> usize {
        self.input.channels * self.output.channels * self.taps * self.taps
    }
    const fn group(mut self, i: usize) -> Self {
        self.input.first = i * self.input.channels;
        self.output.first = i * self.output.channels;
        self
    }
    #[expect(clippy::too_many_arguments, reason = "the parts of one pass")]
    fn correlate<const TAPS: usize, const OUT: usize, const ALL: usize>(
        &self,
        kernels: &Kernels<'_>,
        finish: Finish<'_>,
        input: &[f32],
        records: usize,
        output: &mut [f32],
        write: Write,
        scratch: &mut Scratch,
    ) where
        Input: Map<ALL, ALL>,
        Kernel: Map<TAPS, ALL>,
        Output: Map<ALL, OUT>,
    {
        let Scratch { columns, products, weights: transformed, block, .. } = scratch;
        let (channels, outputs) = (self.input.channels, self.output.channels);
        kernels.transform::<TAPS, ALL>(channels, outputs, transformed);
        let grid = Grid::new(self.output.size, OUT);
        for part in grid.parts(0..records, self.tiles_at_once::<ALL>()) {
            let width = grid.width(&part);
            grid.spread::<Input, ALL, ALL>(self.input, input, &part, columns, block);
            let stride = apart(width * outputs);
            resize(products, ALL * ALL, width * outputs);
            for (k, out) in products.chunks_exact_mut(stride).take(ALL * ALL).enumerate() {
                let kernels = element(transformed, k, channels, outputs);
                let out = &mut out[..width * outputs];
                kernels::matmul(
                    element(columns, k, width, channels),
                    kernels,
                    out,
                    Write::Overwrite,
                );
            }
            let (products, out) = (&products[..], &mut *output);
            grid.collect::<Output, ALL, OUT>(
                self.output,
                products,
                &part,
                finish,
                out,
                write,
                block,
            );
        }
    }
    /// As many tiles as fit the cache, and enough that reading the kernels does not take longer than multiplying.
    const fn tiles_at_once<const ALL: usize>(&self) -> usize {
        let fit = HELD / (ALL * ALL * (self.input.channels + self.output.channels));
        if fit < KERNEL { KERNEL } else { fit }
    }

    /// The gradient with respect to the weights, summed over `records`, or adds it to `out`.
    pub(super) fn weight_gradient(
        &self,
        input: &[f32],
        gradient: &[f32],
        records: Range<usize>,
        out: &mut [f32],
        write: Write,
        scratch: &mut Scratch,
    ) {
        for (i, out) in out.chunks_exact_mut(self.weights()).enumerate() {
            let (group, records) = (self.group(i), records.clone());
            by_size!(group, weight_gradient_by, input, gradient, records, out, write, scratch);
        }
    }
    fn weight_gradient_by<const TAPS: usize, const OUT: usize, const ALL: usize>(
        &self,
        input: &[f32],
        gradient: &[f32],
        records: Range<usize>,
        out: &mut [f32],
        write: Write,
        scratch: &mut Scratch,
    ) where
        Input: Map<ALL, ALL>,
        Kernel: Map<TAPS, ALL>,
        Output: Map<ALL, OUT>,
    {
        let Scratch { columns, products, weights: sums, block, .. } = scratch;
        let (channels, outputs) = (self.input.channels, self.output.channels);
        let stride = apart(outputs * channels);
        resize(sums, ALL * ALL, outputs * channels);
        let grid = Grid::new(self.output.size, OUT);
        let mut add = Write::Overwrite;
        for part in grid.parts(records, self.tiles_at_once::<ALL>()) {
            let width = grid.width(&part);
            grid.spread::<Input, ALL, ALL>(self.input, input, &part, columns, block);
            grid.spread::<Transposed<Output>, OUT, ALL>(
                self.output,
                gradient,
                &part,
                products,
                block,
            );
            for (k, out) in sums.chunks_exact_mut(stride).take(ALL * ALL).enumerate() {
                let products = element(products, k, width, outputs).transposed();
                let out = &mut out[..outputs * channels];
                kernels::matmul(products, element(columns, k, width, channels), out, add);
            }
            add = Write::Accumulate;
        }
        write_kernels::<TAPS, ALL>(sums, out, write);
    }
}

/// Kernels `[outputs, channels, taps, taps]` of a convolution.
struct Kernels<'a> {
    weights: &'a [f32],
    /// Read from the last number to the first, and from outputs to channels.
    turned: bool,
}
impl Kernels<'_> {
    /// `G g G^T` of every kernel: `[ALL * ALL, channels, outputs]`, of the convolution at hand.
    fn transform<const TAPS: usize, const ALL: usize>(
        &self,
        channels: usize,
        outputs: usize,
        out: &mut Vec<f32>,
    ) where
        Kernel: Map<TAPS, ALL>,
    {
        let Self { weights, turned } = *self;
        resize(out, ALL * ALL, channels * outputs);
        let (out, stride) = (&mut out[..], apart(channels * outputs));
        Arch::new().dispatch(
            #[inline(always)]
            move || {
                let out = out;
                for (c, first) in places(channels, outputs) {
                    let lanes = LANES.min(outputs - first);
                    let mut numbers = [ZERO; MOST_TAPS];
                    for (part, numbers) in parts_of_kernel(TAPS * TAPS, &mut numbers) {
                        let mut rows = [ZERO; LANES];
                        for (lane, row) in rows.iter_mut().take(lanes).enumerate() {
                            let o = first + lane;
                            let kernel = if turned { c * outputs + o } else { o * channels + c };
                            let from = &weights[kernel * TAPS * TAPS..][part.clone()];
                            row[..part.len()].copy_from_slice(from);
                        }
                        transpose(rows.each_ref(), numbers);
                    }
                    if turned {
                        numbers[..TAPS * TAPS].reverse();
                    }
                    both::<Kernel, TAPS, ALL>(
                        #[inline(always)]
                        |row, column| &numbers[TAPS * row + column],
                        #[inline(always)]
                        |k, x| put(x, lanes, &mut out[k * stride + c * outputs + first..]),
                    );
                }
            },
        );
    }
}

/// Room for the numbers of a kernel, in whole sixteens.
const MOST_TAPS: usize = 2 * LANES;

/// The numbers of a kernel by sixteens: which, and their place.
#[inline(always)]
fn parts_of_kernel(
    taps: usize,
    numbers: &mut [Vector; MOST_TAPS],
) -> impl Iterator<Item = (Range<usize>, &mut [Vector; LANES])> {
    let parts = numbers.as_chunks_mut::<LANES>().0.iter_mut();
    (0..taps).step_by(LANES).map(move |start| start..taps.min(start + LANES)).zip(parts)
}

/// Rows, and every sixteenth of their columns.
#[inline(always)]
fn places(rows: usize, columns: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows).flat_map(
        #[inline(always)]
        move |row| (0..columns).step_by(LANES).map(move |column| (row, column)),
    )
}

/// Writes `G^T p G` of every element to the kernels, or adds it.
fn write_kernels<const TAPS: usize, const ALL: usize>(
    transformed: &[f32],
    out: &mut [f32],
    write: Write,
) where
    Kernel: Map<TAPS, ALL>,
{
    let stride = apart(out.len() / (TAPS * TAPS));
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let out = out;
            for (i, kernels) in out.chunks_mut(TAPS * TAPS * LANES).enumerate() {
                let mut numbers = [ZERO; MOST_TAPS];
                both::<Transposed<Kernel>, ALL, TAPS>(
                    #[inline(always)]
                    |row, column| sixteen(transformed, (row * ALL + column) * stride + i * LANES),
                    #[inline(always)]
                    |k, x| numbers[k] = *x,
                );
                for (part, numbers) in parts_of_kernel(TAPS * TAPS, &mut numbers) {
                    let mut rows = [ZERO; LANES];
                    transpose(numbers.each_ref(), &mut rows);
                    for (kernel, row) in kernels.chunks_exact_mut(TAPS * TAPS).zip(&rows) {
                        let kernel = &mut kernel[part.clone()];
                        if write == Write::Accumulate {
                            for (x, sum) in kernel.iter_mut().zip(row) {
                                *x += sum;
                            }
                        } else {
                            kernel.copy_from_slice(&row[..part.len()]);
                        }
                    }
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        let mixed = |i: u32| (i.wrapping_mul(2_654_435_761) ^ seed).wrapping_mul(0x9E37_79B1);
        (0..count as u32).map(|i| (mixed(i) >> 8) as f32 / 8_388_608.0 - 1.0).collect()
    }
    fn assert_close(got: &[f32], right: &[f64], what: &str) {
        let size = right.iter().map(|x| x * x).sum::<f64>() / right.len() as f64;
        for (i, (got, right)) in got.iter().zip(right).enumerate() {
            let off = (f64::from(*got) - right).abs() / size.sqrt();
            assert!(off < 3e-5, "{what}, number {i}: {got} and not {right}");
        }
    }

    /// All three passes in tiles of both sizes are the sums that define them, whatever hangs over the edges.
    #[test]
    fn tiles_give_the_sums_over_windows() {
        let sizes =
            [([8, 8], [1; 2], [1; 2]), ([14, 14], [1; 2], [1; 2]), ([2, 3], [1; 2], [1; 2])];
        let others =
            [([5, 17], [0, 2], [2, 1]), ([7, 4], [2, 0], [0, 0]), ([16, 33], [0; 2], [1; 2])];
        for (input, before, after) in sizes.into_iter().chain(others) {
            for (channels, outputs, groups, records) in
                [(8, 16, 1, 1), (16, 24, 1, 3), (37, 9, 1, 2), (9, 18, 3, 2)]
            {
                for (taps, side) in [(3, 2), (3, 4), (5, 2)] {
                    // As much more padding as a window of 5 needs.
                    let [before, after] =
                        [before, after].map(|padding| padding.map(|p| p + (taps - 3) / 2));
                    let kernel = [taps; 2];
                    let window = Window { kernel, stride: [1; 2], dilation: [1; 2], before, after };
                    let plane = window.plane(&[channels * groups, input[0], input[1]]);
                    let mut tiled =
                        Tiled::new(&window, plane, [channels, outputs, groups], 1000).unwrap();
                    tiled.side = side;
                    check(tiled, records);
                }
            }
        }
    }
    fn check(tiled: Tiled, records: usize) {
        let Planes { channels: of_group, of_record: channels, size: [h, w], before, .. } =
            tiled.input;
        let (outputs_of_group, outputs) = (tiled.output.channels, tiled.output.of_record);
        let [oh, ow] = tiled.output.size;
        let (what, taps) = (format!("{tiled:?}"), tiled.taps);
        let weights = numbers(outputs * of_group * taps * taps, 2);
        let input = numbers(records * channels * h * w, 1);
        let (gradient, biases) = (numbers(records * outputs * oh * ow, 3), numbers(outputs, 4));
        let mut forward = vec![0.0; gradient.len()];
        let mut of_input = vec![0.0; input.len()];
        let mut of_weights = vec![0.0; weights.len()];
        for (r, o, y, x) in all_places(records, outputs, oh, ow) {
            let out = ((r * outputs + o) * oh + y) * ow + x;
            forward[out] += f64::from(biases[o]);
            let group = o / outputs_of_group * of_group;
            for (c, tap) in (0..of_group).flat_map(|c| (0..taps * taps).map(move |tap| (c, tap))) {
                let (iy, ix) = (y + tap / taps, x + tap % taps);
                if iy < before[0] || ix < before[1] || iy - before[0] >= h || ix - before[1] >= w {
                    continue;
                }
                let i = ((r * channels + group + c) * h + iy - before[0]) * w + ix - before[1];
                let k = (o * of_group + c) * taps * taps + tap;
                forward[out] += f64::from(input[i]) * f64::from(weights[k]);
                of_input[i] += f64::from(gradient[out]) * f64::from(weights[k]);
                of_weights[k] += f64::from(gradient[out]) * f64::from(input[i]);
            }
        }
        let scratch = &mut Scratch::default();
        let finish = Finish { biases: &biases, limits: Limits { low: -0.5, high: 8.0 } };
        let mut out = vec![f32::NAN; forward.len()];
        tiled.forward(&weights, finish, &input, records, &mut out, scratch);
        let clipped: Vec<f64> = forward.iter().map(|x| x.clamp(-0.5, 8.0)).collect();
        assert_close(&out, &clipped, &what);
        for write in [Write::Overwrite, Write::Accumulate] {
            let start = if write == Write::Accumulate { 1.0 } else { f32::NAN };
            let more = |right: &[f64]| -> Vec<f64> {
                right.iter().map(|x| x + if start.is_nan() { 0.0 } else { 1.0 }).collect()
            };
            let mut out = vec![start; of_input.len()];
            tiled.input_gradient(&weights, &gradient, records, &mut out, write, scratch);
            assert_close(&out, &more(&of_input), &what);
            let mut out = vec![start; of_weights.len()];
            tiled.weight_gradient(&input, &gradient, 0..records, &mut out, write, scratch);
            assert_close(&out, &more(&of_weights), &what);
        }
    }
    fn all_places(
        records: usize,
        channels: usize,
        height: usize,
        width: usize,
    ) -> impl Iterator<Item = (usize, usize, usize, usize)> {
        (0..records * channels * height * width).map(move |i| {
            let (plane, place) = (i / (height * width), i % (height * width));
            (plane / channels, plane % channels, place / width, place % width)
        })
    }
}
