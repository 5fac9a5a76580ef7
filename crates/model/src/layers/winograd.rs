//! Convolution by 3 x 3 windows in steps of 1, with 16 multiplications for four output numbers instead of 36.
//!
//! Four by four numbers of the input that overlap by two give two by two of the output:
//! `Y = A^T [(G g G^T) * (B^T d B)] A`, the product element by element. Over channels each of the 16 elements is a matrix
//! product. The gradients are the transposes of the same maps, so they save as much.
//!
//! Source: Winograd, *Arithmetic Complexity of Computations*, 1980; Lavin and Gray, *Fast Algorithms for Convolutional Neural
//! Networks*, CVPR 2016 (arXiv:1509.09308), section 4.1, F(2 x 2, 3 x 3), whose rounding errors are those of the sum itself.
use super::Scratch;
use super::window::{Plane, every, split_pairs};
use crate::kernels::{self, Finish, Limits, Matrix, Write};
use pulp::Arch;
use std::ops::Range;

/// Elements of a transformed tile.
const ELEMENTS: usize = 16;

/// Transformed numbers of input and output that are held at once: they should stay in the second-level cache.
const HELD: usize = 1 << 17;

/// Fewest tiles in a product: with fewer, reading the transformed weights takes longer than multiplying.
const FEWEST_TILES: usize = 48;

/// From one element of transformed tiles to the next: an odd number of cache lines, so that the 16 elements of a tile do not
/// push each other out of the first-level cache.
const fn apart(numbers: usize) -> usize {
    const LINE: usize = 16;
    (numbers.div_ceil(LINE) | 1) * LINE
}

/// Calls a function for tiles by sixteens, eights, fours and one by one: numbers of a fixed count stay in registers.
macro_rules! in_chunks {
    ($across:expr, $at:ident, $count:ident => $call:expr) => {{
        let mut $at = 0;
        in_chunks!(@ 16, $across, $at, $count => $call);
        in_chunks!(@ 8, $across, $at, $count => $call);
        in_chunks!(@ 4, $across, $at, $count => $call);
        in_chunks!(@ 1, $across, $at, $count => $call);
    }};
    (@ $size:literal, $across:expr, $at:ident, $count:ident => $call:expr) => {
        while $across - $at >= $size {
            const $count: usize = $size;
            $call;
            $at += $size;
        }
    };
}

/// A convolution in tiles.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tiled {
    plane: Plane,
    /// Rows and columns of padding before the first.
    before: [usize; 2],
    channels: usize,
    outputs: usize,
    /// Tiles down and across.
    tiles: [usize; 2],
}

impl Tiled {
    /// `None` where sums over windows are no slower: few channels, or few tiles in so many records.
    pub(super) fn new(
        plane: Plane,
        before: [usize; 2],
        channels: usize,
        outputs: usize,
        records: usize,
    ) -> Option<Self> {
        let tiles = plane.output.map(|size| size.div_ceil(2));
        let enough = tiles[0] * tiles[1] * records >= FEWEST_TILES && plane.output[0] > 1;
        (enough && channels >= 8 && outputs >= 8).then_some(Self {
            plane,
            before,
            channels,
            outputs,
            tiles,
        })
    }
    /// Rows of tiles, counted through all records, whose tiles go into one product.
    fn parts(&self, records: Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
        let most = (HELD / (ELEMENTS * (self.channels + self.outputs))).max(FEWEST_TILES);
        let together = most.div_ceil(self.tiles[1]);
        let (start, end) = (records.start * self.tiles[0], records.end * self.tiles[0]);
        (start..end).step_by(together).map(move |start| start..end.min(start + together))
    }
    /// The parts of a part that lie in one record: first tile, record, rows of tiles.
    fn runs(
        &self,
        part: &Range<usize>,
    ) -> impl Iterator<Item = (usize, usize, Range<usize>)> + use<> {
        let ([down, across], Range { start, end }) = (self.tiles, part.clone());
        (start / down..end.div_ceil(down)).map(move |record| {
            let rows = start.max(record * down)..end.min((record + 1) * down);
            let tile = (rows.start - start) * across;
            (tile, record, rows.start - record * down..rows.end - record * down)
        })
    }
    /// Element `k` of transformed planes.
    fn element(numbers: &[f32], k: usize, rows: usize, columns: usize) -> Matrix<'_> {
        let count = rows * columns;
        Matrix::new(&numbers[k * apart(count)..][..count], rows, columns)
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
        let Self { channels, outputs, .. } = *self;
        let Scratch { columns, products, weights: transformed, planes, .. } = scratch;
        transform_weights(weights, outputs * channels, transformed);
        for part in self.parts(0..records) {
            let width = part.len() * self.tiles[1];
            self.transform_inputs(input, &part, columns, planes);
            let stride = apart(outputs * width);
            products.resize(ELEMENTS * stride, 0.0);
            for (k, out) in products.chunks_exact_mut(stride).enumerate() {
                let out = &mut out[..outputs * width];
                let weights = Self::element(transformed, k, outputs, channels);
                let columns = Self::element(columns, k, channels, width);
                kernels::matmul(weights, columns, out, Write::Overwrite);
            }
            let places = self.plane.places();
            for (tile, record, run) in self.runs(&part) {
                for o in 0..outputs {
                    let out = &mut output[(record * outputs + o) * places..][..places];
                    let from = &products[o * width + tile..];
                    let (bias, limits) = (finish.bias(o), finish.limits);
                    self.write_outputs(from, stride, run.clone(), bias, limits, out);
                }
            }
        }
    }
    /// Adds the gradient with respect to the input to `out`.
    pub(super) fn input_gradient(
        &self,
        weights: &[f32],
        gradient: &[f32],
        records: usize,
        out: &mut [f32],
        scratch: &mut Scratch,
    ) {
        let Self { channels, outputs, .. } = *self;
        let Scratch { columns, products, weights: transformed, planes, rows, .. } = scratch;
        transform_weights(weights, outputs * channels, transformed);
        for part in self.parts(0..records) {
            let width = part.len() * self.tiles[1];
            self.transform_gradients(gradient, &part, products, rows);
            let stride = apart(channels * width);
            columns.resize(ELEMENTS * stride, 0.0);
            for (k, out) in columns.chunks_exact_mut(stride).enumerate() {
                let out = &mut out[..channels * width];
                let weights = Self::element(transformed, k, outputs, channels).transposed();
                let products = Self::element(products, k, outputs, width);
                kernels::matmul(weights, products, out, Write::Overwrite);
            }
            let area = self.plane.area();
            for (tile, record, run) in self.runs(&part) {
                for c in 0..channels {
                    let out = &mut out[(record * channels + c) * area..][..area];
                    let from = &columns[c * width + tile..];
                    self.add_inputs(from, stride, run.clone(), out, planes);
                }
            }
        }
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
        let Self { channels, outputs, .. } = *self;
        let Scratch { columns, products, weights: transformed, planes, rows, .. } = scratch;
        transformed.resize(ELEMENTS * apart(outputs * channels), 0.0);
        let mut add = Write::Overwrite;
        for part in self.parts(records) {
            let width = part.len() * self.tiles[1];
            self.transform_inputs(input, &part, columns, planes);
            self.transform_gradients(gradient, &part, products, rows);
            for (k, out) in transformed.chunks_exact_mut(apart(outputs * channels)).enumerate() {
                let out = &mut out[..outputs * channels];
                let products = Self::element(products, k, outputs, width);
                let columns = Self::element(columns, k, channels, width).transposed();
                kernels::matmul(products, columns, out, add);
            }
            add = Write::Accumulate;
        }
        if add == Write::Accumulate {
            write_weights(transformed, outputs * channels, out, write);
        }
    }

    /// `B^T d B` of every tile: `[16, channels, records * tiles]`.
    fn transform_inputs(
        &self,
        input: &[f32],
        part: &Range<usize>,
        out: &mut Vec<f32>,
        planes: &mut Vec<f32>,
    ) {
        let (channels, area) = (self.channels, self.plane.area());
        let width = part.len() * self.tiles[1];
        let stride = apart(channels * width);
        out.resize(ELEMENTS * stride, 0.0);
        let across = self.tiles[1];
        for (tile, record, run) in self.runs(part) {
            let down = run.len();
            // The padding stays as it is from channel to channel.
            planes.clear();
            planes.resize((2 * down + 2) * 2 * (across + 1), 0.0);
            let input = &input[record * channels * area..][..channels * area];
            let (out, planes, run) = (&mut out[tile..], &mut planes[..], &run);
            Arch::new().dispatch(
                #[inline(always)]
                move || {
                    let (out, planes) = (out, planes);
                    for (c, input) in input.chunks_exact(area).enumerate() {
                        self.split_columns(input, run, planes);
                        for ty in 0..down {
                            let rows = &planes[2 * ty * 2 * (across + 1)..][..8 * (across + 1)];
                            let to = c * width + ty * across;
                            in_chunks!(across, t, N => {
                                input_tiles::<N>(rows, across + 1, t, out, to + t, stride);
                            });
                        }
                    }
                },
            );
        }
    }
    /// The rows under some rows of tiles of one plane, each as its even and then its odd columns, `tiles + 1` of each. What
    /// lies outside the image stays.
    #[inline(always)]
    fn split_columns(&self, input: &[f32], run: &Range<usize>, planes: &mut [f32]) {
        let (across, [height, width]) = (self.tiles[1], self.plane.input);
        let half = across + 1;
        for (row, out) in planes.chunks_exact_mut(2 * half).enumerate() {
            let y = (2 * run.start + row).checked_sub(self.before[0]);
            let Some(y) = y.filter(|y| *y < height) else { continue };
            let input = &input[y * width..(y + 1) * width];
            let (even, odd) = out.split_at_mut(half);
            // Column x of the image is column x + before of the padded one.
            let (first, second, shift) = if self.before[1].is_multiple_of(2) {
                (even, odd, self.before[1] / 2)
            } else {
                (odd, even, self.before[1] / 2)
            };
            let second_shift = shift + self.before[1] % 2;
            let second = &mut second[second_shift.min(half)..];
            split_pairs(input, &mut first[shift.min(half)..], second);
        }
    }
    /// `A y A^T` of the gradients of every two by two outputs: `[16, outputs, records * tiles]`.
    fn transform_gradients(
        &self,
        gradient: &[f32],
        part: &Range<usize>,
        out: &mut Vec<f32>,
        rows: &mut Vec<f32>,
    ) {
        let (outputs, places) = (self.outputs, self.plane.places());
        let width = part.len() * self.tiles[1];
        let stride = apart(outputs * width);
        out.resize(ELEMENTS * stride, 0.0);
        let (across, [height, columns]) = (self.tiles[1], self.plane.output);
        rows.clear();
        rows.resize(4 * across, 0.0);
        for (tile, record, run) in self.runs(part) {
            let gradient = &gradient[record * outputs * places..][..outputs * places];
            let (out, rows) = (&mut out[tile..], &mut rows[..]);
            Arch::new().dispatch(
                #[inline(always)]
                move || {
                    let (out, rows) = (out, rows);
                    for (o, gradient) in gradient.chunks_exact(places).enumerate() {
                        for (i, ty) in run.clone().enumerate() {
                            // Two rows of gradients, each as even and odd columns; 0 beyond the plane.
                            for (r, row) in rows.chunks_exact_mut(2 * across).enumerate() {
                                let (even, odd) = row.split_at_mut(across);
                                let y = 2 * ty + r;
                                if y >= height {
                                    even.fill(0.0);
                                    odd.fill(0.0);
                                    continue;
                                }
                                let row = &gradient[y * columns..(y + 1) * columns];
                                every(2, row, even);
                                every(2, &row[1..], odd);
                            }
                            let to = o * width + i * across;
                            in_chunks!(across, t, N => {
                                gradient_tiles::<N>(rows, across, t, out, to + t, stride);
                            });
                        }
                    }
                },
            );
        }
    }
    /// `A^T m A` of every tile and the bias, clipped, in one plane of outputs.
    fn write_outputs(
        &self,
        from: &[f32],
        stride: usize,
        run: Range<usize>,
        bias: f32,
        limits: Limits,
        out: &mut [f32],
    ) {
        let (across, [height, columns]) = (self.tiles[1], self.plane.output);
        Arch::new().dispatch(
            #[inline(always)]
            move || {
                let out = out;
                let finish = |sum: f32| limits.of(bias + sum);
                for (i, ty) in run.enumerate() {
                    let from = &from[i * across..];
                    let out = &mut out[2 * ty * columns..];
                    let two = 2 * ty + 1 < height;
                    let (first, second) = out.split_at_mut(columns);
                    let second = if two { &mut second[..columns] } else { &mut [] };
                    in_chunks!(across, t, N => {
                        output_tiles::<N>(from, stride, t, finish, first, second);
                    });
                }
            },
        );
    }
    /// Adds `B z B^T` of every tile to one plane of inputs.
    fn add_inputs(
        &self,
        from: &[f32],
        stride: usize,
        run: Range<usize>,
        out: &mut [f32],
        planes: &mut Vec<f32>,
    ) {
        let (down, across, [height, width]) = (run.len(), self.tiles[1], self.plane.input);
        let half = across + 1;
        planes.clear();
        planes.resize((2 * down + 2) * 2 * half, 0.0);
        let sums = &mut planes[..];
        Arch::new().dispatch(
            #[inline(always)]
            move || {
                let (sums, out) = (sums, out);
                for ty in 0..down {
                    let from = &from[ty * across..];
                    let rows = &mut sums[2 * ty * 2 * half..][..8 * half];
                    in_chunks!(across, t, N => add_input_tiles::<N>(from, stride, half, t, rows));
                }
                for (i, row) in sums.chunks_exact(2 * half).enumerate() {
                    let y = (2 * run.start + i).checked_sub(self.before[0]);
                    let Some(y) = y.filter(|y| *y < height) else { continue };
                    let out = &mut out[y * width..(y + 1) * width];
                    // Column x of the image is column x + before of the padded one.
                    let (even, odd) = row.split_at(half);
                    let (first, second) =
                        if self.before[1].is_multiple_of(2) { (even, odd) } else { (odd, even) };
                    let shift = self.before[1] / 2;
                    let first = first.get(shift..).unwrap_or_default();
                    let second = second.get(shift + self.before[1] % 2..).unwrap_or_default();
                    let both = first.len().min(second.len()).min(width / 2);
                    let (pairs, rest) = out.split_at_mut(2 * both);
                    let pairs = pairs.as_chunks_mut::<2>().0;
                    for ((pair, x), z) in pairs.iter_mut().zip(&first[..both]).zip(&second[..both])
                    {
                        *pair = [pair[0] + x, pair[1] + z];
                    }
                    for (o, x) in rest.iter_mut().step_by(2).zip(&first[both..]) {
                        *o += x;
                    }
                    for (o, x) in rest.iter_mut().skip(1).step_by(2).zip(&second[both..]) {
                        *o += x;
                    }
                }
            },
        );
    }
}

#[inline(always)]
fn at<const N: usize>(numbers: &[f32], at: usize) -> [f32; N] {
    let mut out = [0.0; N];
    out.copy_from_slice(&numbers[at..at + N]);
    out
}
#[inline(always)]
fn put<const N: usize>(numbers: &mut [f32], at: usize, values: [f32; N]) {
    numbers[at..at + N].copy_from_slice(&values);
}
#[inline(always)]
fn plus<const N: usize>(mut a: [f32; N], b: [f32; N]) -> [f32; N] {
    for i in 0..N {
        a[i] += b[i];
    }
    a
}
#[inline(always)]
fn minus<const N: usize>(mut a: [f32; N], b: [f32; N]) -> [f32; N] {
    for i in 0..N {
        a[i] -= b[i];
    }
    a
}
#[inline(always)]
fn negative<const N: usize>(a: [f32; N]) -> [f32; N] {
    minus([-0.0; N], a)
}

/// `B^T d B` of `N` tiles from tile `t` of a row on; `rows` are four rows of `half` even and as many odd columns.
#[inline(always)]
fn input_tiles<const N: usize>(
    rows: &[f32],
    half: usize,
    t: usize,
    out: &mut [f32],
    to: usize,
    stride: usize,
) {
    input_quarter::<0, N>(rows, half, t, out, to, stride);
    input_quarter::<1, N>(rows, half, t, out, to + 4 * stride, stride);
    input_quarter::<2, N>(rows, half, t, out, to + 8 * stride, stride);
    input_quarter::<3, N>(rows, half, t, out, to + 12 * stride, stride);
}
#[inline(always)]
fn input_quarter<const Q: usize, const N: usize>(
    rows: &[f32],
    half: usize,
    t: usize,
    out: &mut [f32],
    to: usize,
    stride: usize,
) {
    let (d0, d1) = (input_row::<Q, N>(rows, half, t), input_row::<Q, N>(rows, half, half + t));
    let (d2, d3) =
        (input_row::<Q, N>(rows, half, t + 1), input_row::<Q, N>(rows, half, half + t + 1));
    put(out, to, minus(d0, d2));
    put(out, to + stride, plus(d1, d2));
    put(out, to + 2 * stride, minus(d2, d1));
    put(out, to + 3 * stride, minus(d1, d3));
}
/// Of row `Q` of `B^T d` the column that begins at `first`: 1 0 -1 0, 0 1 1 0, 0 -1 1 0, 0 1 0 -1.
#[inline(always)]
fn input_row<const Q: usize, const N: usize>(rows: &[f32], half: usize, first: usize) -> [f32; N] {
    match Q {
        0 => minus(at(rows, first), at(rows, 4 * half + first)),
        1 => plus(at(rows, 2 * half + first), at(rows, 4 * half + first)),
        2 => minus(at(rows, 4 * half + first), at(rows, 2 * half + first)),
        _ => minus(at(rows, 2 * half + first), at(rows, 6 * half + first)),
    }
}

/// `A y A^T` of `N` tiles from tile `t` of a row on; `rows` are two rows of `across` even and as many odd columns.
#[inline(always)]
fn gradient_tiles<const N: usize>(
    rows: &[f32],
    across: usize,
    t: usize,
    out: &mut [f32],
    to: usize,
    stride: usize,
) {
    let (a0, a1) = (at::<N>(rows, t), at::<N>(rows, across + t));
    let (b0, b1) = (at::<N>(rows, 2 * across + t), at::<N>(rows, 3 * across + t));
    // 1 0, 1 1, 1 -1, 0 -1
    gradient_quarter(a0, a1, out, to, stride);
    gradient_quarter(plus(a0, b0), plus(a1, b1), out, to + 4 * stride, stride);
    gradient_quarter(minus(a0, b0), minus(a1, b1), out, to + 8 * stride, stride);
    gradient_quarter(negative(b0), negative(b1), out, to + 12 * stride, stride);
}
#[inline(always)]
fn gradient_quarter<const N: usize>(
    y0: [f32; N],
    y1: [f32; N],
    out: &mut [f32],
    to: usize,
    stride: usize,
) {
    put(out, to, y0);
    put(out, to + stride, plus(y0, y1));
    put(out, to + 2 * stride, minus(y0, y1));
    put(out, to + 3 * stride, negative(y1));
}

/// `A^T m A` of `N` tiles from tile `t` on, finished, in two rows (or one, at an odd edge) of outputs.
#[inline(always)]
fn output_tiles<const N: usize>(
    from: &[f32],
    stride: usize,
    t: usize,
    finish: impl Fn(f32) -> f32,
    first: &mut [f32],
    second: &mut [f32],
) {
    // 1 1 1 0, 0 1 -1 -1
    let mut rows = [[[0.0; N]; 4]; 2];
    let [upper, lower] = &mut rows;
    for (k, sum) in upper.iter_mut().enumerate() {
        let m = k * stride + t;
        let (m1, m2) = (at(from, m + 4 * stride), at(from, m + 8 * stride));
        *sum = plus(at(from, m), plus(m1, m2));
    }
    write_pairs(first, t, &finish, *upper);
    for (k, sum) in lower.iter_mut().enumerate() {
        let m = k * stride + t;
        let (m1, m2) = (at(from, m + 4 * stride), at(from, m + 8 * stride));
        *sum = minus(minus(m1, m2), at(from, m + 12 * stride));
    }
    write_pairs(second, t, &finish, *lower);
}

/// Even and odd columns, finished, in turn.
#[inline(always)]
fn write_pairs<const N: usize>(
    row: &mut [f32],
    at: usize,
    finish: &impl Fn(f32) -> f32,
    [m0, m1, m2, m3]: [[f32; N]; 4],
) {
    let (even, odd) = (plus(m0, plus(m1, m2)), minus(minus(m1, m2), m3));
    if let Some(to) = row.get_mut(2 * at..2 * (at + N)) {
        for (i, pair) in to.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            *pair = [finish(even[i]), finish(odd[i])];
        }
    } else {
        // The last tile of an odd width, or a row that is not there.
        let both = even.into_iter().zip(odd).flat_map(|(e, o)| [e, o]);
        for (to, x) in row.iter_mut().skip(2 * at).zip(both) {
            *to = finish(x);
        }
    }
}

/// Adds `B z B^T` of `N` tiles from tile `t` of a row on to four rows of `half` even and as many odd columns.
#[inline(always)]
fn add_input_tiles<const N: usize>(
    from: &[f32],
    stride: usize,
    half: usize,
    t: usize,
    rows: &mut [f32],
) {
    add_row::<0, N>(from, stride, half, t, rows);
    add_row::<1, N>(from, stride, half, t, rows);
    add_row::<2, N>(from, stride, half, t, rows);
    add_row::<3, N>(from, stride, half, t, rows);
}
#[inline(always)]
fn add_row<const R: usize, const N: usize>(
    from: &[f32],
    stride: usize,
    half: usize,
    t: usize,
    rows: &mut [f32],
) {
    let (z0, z1) =
        (adjoint_row::<R, N>(from, stride, t), adjoint_row::<R, N>(from, stride, stride + t));
    let (z2, z3) = (
        adjoint_row::<R, N>(from, stride, 2 * stride + t),
        adjoint_row::<R, N>(from, stride, 3 * stride + t),
    );
    let (even, odd) = (2 * R * half + t, (2 * R + 1) * half + t);
    add(rows, even, z0);
    add(rows, odd, plus(minus(z1, z2), z3));
    add(rows, even + 1, plus(minus(z1, z0), z2));
    add(rows, odd + 1, negative(z3));
}
#[inline(always)]
fn add<const N: usize>(numbers: &mut [f32], to: usize, values: [f32; N]) {
    put(numbers, to, plus(at(numbers, to), values));
}

/// Of row `R` of `B z` the column that begins at `first`: 1 0 0 0, 0 1 -1 1, -1 1 1 0, 0 0 0 -1.
#[inline(always)]
fn adjoint_row<const R: usize, const N: usize>(
    from: &[f32],
    stride: usize,
    first: usize,
) -> [f32; N] {
    let (second, third) = (first + 4 * stride, first + 8 * stride);
    match R {
        0 => at(from, first),
        1 => plus(minus(at(from, second), at(from, third)), at(from, third + 4 * stride)),
        2 => plus(minus(at(from, second), at(from, first)), at(from, third)),
        _ => negative(at(from, third + 4 * stride)),
    }
}

/// Kernels that are transformed side by side: what is written lies next to each other then.
const SIDE_BY_SIDE: usize = 16;
type Numbers = [f32; SIDE_BY_SIDE];

/// `G g G^T` of every kernel: `[16, kernels]`.
fn transform_weights(weights: &[f32], kernels: usize, out: &mut Vec<f32>) {
    let stride = apart(kernels);
    out.resize(ELEMENTS * stride, 0.0);
    let out = &mut out[..];
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let out = out;
            for (block, kernel) in weights.chunks(9 * SIDE_BY_SIDE).enumerate() {
                let mut g = [[0.0; SIDE_BY_SIDE]; 9];
                let kernel = kernel.as_chunks::<9>().0;
                for (i, kernel) in kernel.iter().enumerate() {
                    for (numbers, x) in g.iter_mut().zip(kernel) {
                        numbers[i] = *x;
                    }
                }
                let mut rows = [[[0.0; SIDE_BY_SIDE]; 4]; 3];
                for (r, row) in rows.iter_mut().enumerate() {
                    spread([&g[3 * r], &g[3 * r + 1], &g[3 * r + 2]], row);
                }
                let [first, second, third] = &rows;
                for (k, ((a, b), c)) in first.iter().zip(second).zip(third).enumerate() {
                    let mut column = [[0.0; SIDE_BY_SIDE]; 4];
                    spread([a, b, c], &mut column);
                    for (q, numbers) in column.iter().enumerate() {
                        let at = (4 * q + k) * stride + block * SIDE_BY_SIDE;
                        let out = &mut out[at..at + kernel.len()];
                        match out.first_chunk_mut() {
                            Some(out) => *out = *numbers,
                            None => out.copy_from_slice(&numbers[..kernel.len()]),
                        }
                    }
                }
            }
        },
    );
}

/// (1 0 0), (1 1 1) / 2, (1 -1 1) / 2, (0 0 1)
#[inline(always)]
fn spread([a, b, c]: [&Numbers; 3], out: &mut [Numbers; 4]) {
    out[0] = *a;
    for i in 0..SIDE_BY_SIDE {
        let (sum, half) = (0.5 * (a[i] + c[i]), 0.5 * b[i]);
        out[1][i] = sum + half;
        out[2][i] = sum - half;
    }
    out[3] = *c;
}

/// Writes `G^T p G` of every element to the kernels, or adds it.
fn write_weights(transformed: &[f32], kernels: usize, out: &mut [f32], write: Write) {
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let out = out;
            for (block, out) in out.chunks_mut(9 * SIDE_BY_SIDE).enumerate() {
                let at = block * SIDE_BY_SIDE;
                let mut p = [[0.0; SIDE_BY_SIDE]; ELEMENTS];
                for (element, p) in p.iter_mut().enumerate() {
                    let from = &transformed[element * apart(kernels) + at..][..kernels - at];
                    match from.first_chunk() {
                        Some(from) => *p = *from,
                        None => p[..from.len()].copy_from_slice(from),
                    }
                }
                let mut columns = [[[0.0; SIDE_BY_SIDE]; 3]; 4];
                for (k, column) in columns.iter_mut().enumerate() {
                    gather([&p[k], &p[4 + k], &p[8 + k], &p[12 + k]], column);
                }
                let mut g = [[[0.0; SIDE_BY_SIDE]; 3]; 3];
                let [first, second, third, fourth] = &columns;
                for (r, row) in g.iter_mut().enumerate() {
                    gather([&first[r], &second[r], &third[r], &fourth[r]], row);
                }
                for (i, kernel) in out.as_chunks_mut::<9>().0.iter_mut().enumerate() {
                    for (x, g) in kernel.iter_mut().zip(g.as_flattened()) {
                        *x = if write == Write::Accumulate { *x + g[i] } else { g[i] };
                    }
                }
            }
        },
    );
}

/// (1 1/2 1/2 0), (0 1/2 -1/2 0), (0 1/2 1/2 1)
#[inline(always)]
fn gather(p: [&Numbers; 4], out: &mut [Numbers; 3]) {
    for i in 0..SIDE_BY_SIDE {
        let (sum, difference) = (0.5 * (p[1][i] + p[2][i]), 0.5 * (p[1][i] - p[2][i]));
        out[0][i] = p[0][i] + sum;
        out[1][i] = difference;
        out[2][i] = sum + p[3][i];
    }
}
