//! Convolution by 3 x 3 windows in steps of 1, with 16 multiplications for four output numbers instead of 36.
//!
//! Four by four numbers of the input that overlap by two give two by two of the output:
//! `Y = A^T [(G g G^T) * (B^T d B)] A`, the product element by element. Over channels each of the 16 elements is a matrix
//! product. The gradients are the transposes of the same maps, so they save as much.
//!
//! Source: Winograd, *Arithmetic Complexity of Computations*, 1980; Lavin and Gray, *Fast Algorithms for Convolutional Neural
//! Networks*, CVPR 2016 (arXiv:1509.09308), section 4.1, F(2 x 2, 3 x 3), whose rounding errors are those of the sum itself.
use super::Scratch;
use super::window::Plane;
use crate::kernels::{self, Finish, Limits, Matrix, Write};
use pulp::Arch;
use std::ops::Range;

/// Elements of a transformed tile.
const ELEMENTS: usize = 16;

/// Transformed numbers of input and output that are held at once: they should stay in the second-level cache.
const HELD: usize = 1 << 17;

/// Fewest tiles in a product: with fewer, reading the transformed weights takes longer than multiplying.
const FEWEST_TILES: usize = 48;

/// Calls a function for tiles by eights, by fours and one by one: numbers of a fixed count stay in registers.
macro_rules! in_chunks {
    ($across:expr, $at:ident, $count:ident => $call:expr) => {{
        let (eights, rest) = ($across / 8, $across % 8);
        if eights > 0 {
            const $count: usize = 8;
            let $at = [0, eights];
            $call;
        }
        if rest >= 4 {
            const $count: usize = 4;
            let $at = [8 * eights, 1];
            $call;
        }
        if rest % 4 > 0 {
            const $count: usize = 1;
            let $at = [$across - rest % 4, rest % 4];
            $call;
        }
    }};
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
        Matrix::new(&numbers[k * rows * columns..(k + 1) * rows * columns], rows, columns)
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
            products.resize(ELEMENTS * outputs * width, 0.0);
            for (k, out) in products.chunks_exact_mut(outputs * width).enumerate() {
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
                    self.write_outputs(from, outputs * width, run.clone(), bias, limits, out);
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
            columns.resize(ELEMENTS * channels * width, 0.0);
            for (k, out) in columns.chunks_exact_mut(channels * width).enumerate() {
                let weights = Self::element(transformed, k, outputs, channels).transposed();
                let products = Self::element(products, k, outputs, width);
                kernels::matmul(weights, products, out, Write::Overwrite);
            }
            let area = self.plane.area();
            for (tile, record, run) in self.runs(&part) {
                for c in 0..channels {
                    let out = &mut out[(record * channels + c) * area..][..area];
                    let from = &columns[c * width + tile..];
                    self.add_inputs(from, channels * width, run.clone(), out, planes);
                }
            }
        }
    }
    /// Adds the gradient with respect to the weights, summed over `records`, to `out`.
    pub(super) fn weight_gradient(
        &self,
        input: &[f32],
        gradient: &[f32],
        records: Range<usize>,
        out: &mut [f32],
        scratch: &mut Scratch,
    ) {
        let Self { channels, outputs, .. } = *self;
        let Scratch { columns, products, weights: transformed, planes, rows, .. } = scratch;
        transformed.resize(ELEMENTS * outputs * channels, 0.0);
        let mut write = Write::Overwrite;
        for part in self.parts(records) {
            let width = part.len() * self.tiles[1];
            self.transform_inputs(input, &part, columns, planes);
            self.transform_gradients(gradient, &part, products, rows);
            for (k, out) in transformed.chunks_exact_mut(outputs * channels).enumerate() {
                let products = Self::element(products, k, outputs, width);
                let columns = Self::element(columns, k, channels, width).transposed();
                kernels::matmul(products, columns, out, write);
            }
            write = Write::Accumulate;
        }
        if write == Write::Accumulate {
            add_weights(transformed, outputs * channels, out);
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
        out.resize(ELEMENTS * channels * width, 0.0);
        let across = self.tiles[1];
        for (tile, record, run) in self.runs(part) {
            let down = run.len();
            for c in 0..channels {
                let input = &input[(record * channels + c) * area..][..area];
                let out = &mut out[c * width + tile..];
                self.split_columns(input, &run, planes);
                let (stride, planes) = (channels * width, &planes[..]);
                Arch::new().dispatch(
                    #[inline(always)]
                    move || {
                        let out = out;
                        for ty in 0..down {
                            let rows = &planes[2 * ty * 2 * (across + 1)..][..8 * (across + 1)];
                            let out = &mut out[ty * across..];
                            in_chunks!(across, t, N => input_tiles::<N>(rows, across, t, out, stride));
                        }
                    },
                );
            }
        }
    }
    /// The rows under some rows of tiles of one plane with its padding, each as its even and then its odd columns,
    /// `tiles + 1` of each.
    fn split_columns(&self, input: &[f32], run: &Range<usize>, planes: &mut Vec<f32>) {
        let (down, across, [height, width]) = (run.len(), self.tiles[1], self.plane.input);
        let half = across + 1;
        planes.clear();
        planes.resize((2 * down + 2) * 2 * half, 0.0);
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
            let firsts = first[shift.min(half)..].iter_mut();
            for (o, x) in firsts.zip(input.iter().step_by(2)) {
                *o = *x;
            }
            let seconds = second[second_shift.min(half)..].iter_mut();
            for (o, x) in seconds.zip(input.iter().skip(1).step_by(2)) {
                *o = *x;
            }
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
        out.resize(ELEMENTS * outputs * width, 0.0);
        let (across, [height, columns]) = (self.tiles[1], self.plane.output);
        let stride = outputs * width;
        for (tile, record, run) in self.runs(part) {
            for o in 0..outputs {
                let gradient = &gradient[(record * outputs + o) * places..][..places];
                let out = &mut out[o * width + tile..];
                let run = run.clone();
                rows.clear();
                rows.resize(4 * across, 0.0);
                let rows = &mut rows[..];
                Arch::new().dispatch(
                    #[inline(always)]
                    move || {
                        let (out, rows) = (out, rows);
                        for (i, ty) in run.enumerate() {
                            // Two rows of gradients, each as even and odd columns; 0 beyond the plane.
                            for (r, row) in rows.chunks_exact_mut(2 * across).enumerate() {
                                let (even, odd) = row.split_at_mut(across);
                                let y = 2 * ty + r;
                                if y >= height {
                                    even.fill(0.0);
                                    odd.fill(0.0);
                                    continue;
                                }
                                let (pairs, rest) =
                                    gradient[y * columns..(y + 1) * columns].as_chunks::<2>();
                                for ((pair, e), o) in pairs.iter().zip(&mut *even).zip(&mut *odd) {
                                    (*e, *o) = (pair[0], pair[1]);
                                }
                                if let [last] = rest {
                                    even[pairs.len()] = *last;
                                }
                            }
                            let (rows, out) = (&rows[..], &mut out[i * across..]);
                            in_chunks!(across, t, N => gradient_tiles::<N>(rows, across, t, out, stride));
                        }
                    },
                );
            }
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
                let sums = sums;
                for ty in 0..down {
                    let from = &from[ty * across..];
                    let rows = &mut sums[2 * ty * 2 * half..][..8 * half];
                    in_chunks!(across, t, N => add_input_tiles::<N>(from, stride, across, t, rows));
                }
            },
        );
        for (i, row) in planes.chunks_exact(2 * half).enumerate() {
            let y = (2 * run.start + i).checked_sub(self.before[0]);
            let Some(y) = y.filter(|y| *y < height) else { continue };
            let out = &mut out[y * width..(y + 1) * width];
            // Column x of the image is column x + before of the padded one.
            let (even, odd) = row.split_at(half);
            let (first, second) =
                if self.before[1].is_multiple_of(2) { (even, odd) } else { (odd, even) };
            let shift = self.before[1] / 2;
            let firsts = first.iter().skip(shift);
            for (o, x) in out.iter_mut().step_by(2).zip(firsts) {
                *o += x;
            }
            let seconds = second.iter().skip(shift + self.before[1] % 2);
            for (o, x) in out.iter_mut().skip(1).step_by(2).zip(seconds) {
                *o += x;
            }
        }
    }
}

#[inline(always)]
fn add<const N: usize>(numbers: &mut [f32], at: usize, values: [f32; N]) {
    if let Some(to) = numbers[at..].first_chunk_mut::<N>() {
        for i in 0..N {
            to[i] += values[i];
        }
    }
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
/// `a + sign b`.
#[inline(always)]
fn signed<const N: usize>(mut a: [f32; N], sign: f32, b: [f32; N]) -> [f32; N] {
    for i in 0..N {
        a[i] = b[i].mul_add(sign, a[i]);
    }
    a
}
#[inline(always)]
fn scaled<const N: usize>(mut a: [f32; N], factor: f32) -> [f32; N] {
    for x in &mut a {
        *x *= factor;
    }
    a
}
#[inline(always)]
fn negative<const N: usize>(a: [f32; N]) -> [f32; N] {
    minus([-0.0; N], a)
}

/// `count` times `N` numbers from `at` on.
#[inline(always)]
fn cut<const N: usize>(numbers: &[f32], at: usize, count: usize) -> &[[f32; N]] {
    numbers[at..at + count * N].as_chunks().0
}
/// Of transformed tiles the four elements of row `q`.
#[inline(always)]
fn row_mut<const N: usize>(
    out: &mut [f32],
    stride: usize,
    q: usize,
    [at, count]: [usize; 2],
) -> [&mut [[f32; N]]; 4] {
    let (first, out) = out[4 * q * stride..].split_at_mut(stride);
    let (second, out) = out.split_at_mut(stride);
    let (third, fourth) = out.split_at_mut(stride);
    let to = at..at + count * N;
    [
        first[to.clone()].as_chunks_mut().0,
        second[to.clone()].as_chunks_mut().0,
        third[to.clone()].as_chunks_mut().0,
        fourth[to].as_chunks_mut().0,
    ]
}

/// `B^T d B` of `count` times `N` tiles from `at` on; `rows` are four rows of `across + 1` even and as many odd columns.
#[inline(always)]
fn input_tiles<const N: usize>(
    rows: &[f32],
    across: usize,
    [at, count]: [usize; 2],
    out: &mut [f32],
    stride: usize,
) {
    let half = across + 1;
    // 1 0 -1 0, 0 1 1 0, 0 -1 1 0, 0 1 0 -1
    for (q, (first, second, sign)) in
        [(0, 2, -1.0), (1, 2, 1.0), (2, 1, -1.0), (1, 3, -1.0)].into_iter().enumerate()
    {
        let (a, b) = (2 * first * half + at, 2 * second * half + at);
        let (a0, a1) = (cut::<N>(rows, a, count), cut::<N>(rows, a + half, count));
        let (a2, a3) = (cut::<N>(rows, a + 1, count), cut::<N>(rows, a + half + 1, count));
        let (b0, b1) = (cut::<N>(rows, b, count), cut::<N>(rows, b + half, count));
        let (b2, b3) = (cut::<N>(rows, b + 1, count), cut::<N>(rows, b + half + 1, count));
        let [o0, o1, o2, o3] = row_mut::<N>(out, stride, q, [at, count]);
        for i in 0..count {
            let d0 = signed(a0[i], sign, b0[i]);
            let d1 = signed(a1[i], sign, b1[i]);
            let d2 = signed(a2[i], sign, b2[i]);
            let d3 = signed(a3[i], sign, b3[i]);
            o0[i] = minus(d0, d2);
            o1[i] = plus(d1, d2);
            o2[i] = minus(d2, d1);
            o3[i] = minus(d1, d3);
        }
    }
}

/// `A y A^T` of `count` times `N` tiles from `at` on; `rows` are two rows of `across` even and as many odd columns.
#[inline(always)]
fn gradient_tiles<const N: usize>(
    rows: &[f32],
    across: usize,
    [at, count]: [usize; 2],
    out: &mut [f32],
    stride: usize,
) {
    // 1 0, 1 1, 1 -1, 0 -1
    for (q, (first, second)) in
        [(1.0, 0.0), (1.0, 1.0), (1.0, -1.0), (0.0, -1.0)].into_iter().enumerate()
    {
        let (a0, a1) = (cut::<N>(rows, at, count), cut::<N>(rows, across + at, count));
        let b0 = cut::<N>(rows, 2 * across + at, count);
        let b1 = cut::<N>(rows, 3 * across + at, count);
        let [o0, o1, o2, o3] = row_mut::<N>(out, stride, q, [at, count]);
        for i in 0..count {
            let y0 = signed(scaled(a0[i], first), second, b0[i]);
            let y1 = signed(scaled(a1[i], first), second, b1[i]);
            o0[i] = y0;
            o1[i] = plus(y0, y1);
            o2[i] = minus(y0, y1);
            o3[i] = negative(y1);
        }
    }
}

/// The four rows of column `k` of `count` times `N` transformed tiles from `at` on.
#[inline(always)]
fn column<const N: usize>(
    from: &[f32],
    stride: usize,
    k: usize,
    [at, count]: [usize; 2],
) -> [&[[f32; N]]; 4] {
    [
        cut(from, k * stride + at, count),
        cut(from, (4 + k) * stride + at, count),
        cut(from, (8 + k) * stride + at, count),
        cut(from, (12 + k) * stride + at, count),
    ]
}

/// `A^T m A` of `count` times `N` tiles from `at` on, finished, in two rows (or one, at an odd edge) of outputs.
#[inline(always)]
fn output_tiles<const N: usize>(
    from: &[f32],
    stride: usize,
    [at, count]: [usize; 2],
    finish: impl Fn(f32) -> f32,
    first: &mut [f32],
    second: &mut [f32],
) {
    let columns = [
        column::<N>(from, stride, 0, [at, count]),
        column::<N>(from, stride, 1, [at, count]),
        column::<N>(from, stride, 2, [at, count]),
        column::<N>(from, stride, 3, [at, count]),
    ];
    for i in 0..count {
        // 1 1 1 0, 0 1 -1 -1
        let mut upper = [[0.0; N]; 4];
        let mut lower = [[0.0; N]; 4];
        for k in 0..4 {
            let [m0, m1, m2, m3] = columns[k];
            let (m1, m2) = (m1[i], m2[i]);
            upper[k] = plus(m0[i], plus(m1, m2));
            lower[k] = minus(minus(m1, m2), m3[i]);
        }
        write_pairs(first, at + i * N, &finish, upper);
        write_pairs(second, at + i * N, &finish, lower);
    }
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

/// Row `r` of `B z`: 1 0 0 0, 0 1 -1 1, -1 1 1 0, 0 0 0 -1.
#[inline(always)]
fn adjoint_row<const N: usize>([z0, z1, z2, z3]: [&[[f32; N]]; 4], i: usize, r: usize) -> [f32; N] {
    match r {
        0 => z0[i],
        1 => plus(minus(z1[i], z2[i]), z3[i]),
        2 => plus(minus(z1[i], z0[i]), z2[i]),
        _ => negative(z3[i]),
    }
}

/// Adds `B z B^T` of `count` times `N` tiles from `at` on to four rows of `across + 1` even and as many odd columns.
#[inline(always)]
fn add_input_tiles<const N: usize>(
    from: &[f32],
    stride: usize,
    across: usize,
    [at, count]: [usize; 2],
    rows: &mut [f32],
) {
    let half = across + 1;
    let columns = [
        column::<N>(from, stride, 0, [at, count]),
        column::<N>(from, stride, 1, [at, count]),
        column::<N>(from, stride, 2, [at, count]),
        column::<N>(from, stride, 3, [at, count]),
    ];
    for r in 0..4 {
        let row = &mut rows[2 * r * half..][..2 * half];
        for i in 0..count {
            let z0 = adjoint_row(columns[0], i, r);
            let z1 = adjoint_row(columns[1], i, r);
            let z2 = adjoint_row(columns[2], i, r);
            let z3 = adjoint_row(columns[3], i, r);
            let at = at + i * N;
            add(row, at, z0);
            add(row, half + at, plus(minus(z1, z2), z3));
            add(row, at + 1, plus(minus(z1, z0), z2));
            add(row, half + at + 1, negative(z3));
        }
    }
}

/// Kernels that are transformed side by side: what is written lies next to each other then.
const SIDE_BY_SIDE: usize = 16;
type Numbers = [f32; SIDE_BY_SIDE];

/// `G g G^T` of every kernel: `[16, kernels]`.
fn transform_weights(weights: &[f32], kernels: usize, out: &mut Vec<f32>) {
    out.resize(ELEMENTS * kernels, 0.0);
    // (1 0 0), (1 1 1) / 2, (1 -1 1) / 2, (0 0 1)
    let spread = |[a, b, c]: [&Numbers; 3]| {
        let (mut plus, mut minus) = ([0.0; SIDE_BY_SIDE], [0.0; SIDE_BY_SIDE]);
        for i in 0..SIDE_BY_SIDE {
            let (sum, half) = (0.5 * (a[i] + c[i]), 0.5 * b[i]);
            (plus[i], minus[i]) = (sum + half, sum - half);
        }
        [*a, plus, minus, *c]
    };
    for (block, kernel) in weights.chunks(9 * SIDE_BY_SIDE).enumerate() {
        let mut g = [[0.0; SIDE_BY_SIDE]; 9];
        let kernel = kernel.as_chunks::<9>().0;
        for (i, kernel) in kernel.iter().enumerate() {
            for (numbers, x) in g.iter_mut().zip(kernel) {
                numbers[i] = *x;
            }
        }
        let rows = [0, 1, 2].map(|r| spread([&g[3 * r], &g[3 * r + 1], &g[3 * r + 2]]));
        let [first, second, third] = &rows;
        for (k, ((a, b), c)) in first.iter().zip(second).zip(third).enumerate() {
            let column = spread([a, b, c]);
            for (q, numbers) in column.iter().enumerate() {
                let at = (4 * q + k) * kernels + block * SIDE_BY_SIDE;
                out[at..at + kernel.len()].copy_from_slice(&numbers[..kernel.len()]);
            }
        }
    }
}

/// Adds `G^T p G` of every element to the kernels.
fn add_weights(transformed: &[f32], kernels: usize, out: &mut [f32]) {
    let gather = |p: [f32; 4]| {
        let (sum, difference) = (0.5 * (p[1] + p[2]), 0.5 * (p[1] - p[2]));
        [p[0] + sum, difference, sum + p[3]]
    };
    for (i, g) in out.as_chunks_mut::<9>().0.iter_mut().enumerate() {
        let element = |q: usize, k: usize| transformed[(4 * q + k) * kernels + i];
        let columns = [0, 1, 2, 3].map(|k| gather([0, 1, 2, 3].map(|q| element(q, k))));
        for r in 0..3 {
            let row = gather([columns[0][r], columns[1][r], columns[2][r], columns[3][r]]);
            for (x, value) in row.into_iter().enumerate() {
                g[3 * r + x] += value;
            }
        }
    }
}
