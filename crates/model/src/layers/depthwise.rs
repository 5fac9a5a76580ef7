//! Convolution of every channel on its own: too few numbers for a matrix product.
//!
//! A plane is laid out so that each number of the window lies at one fixed distance from where an output goes, for all
//! outputs: rows behind each other with zeros between, and where windows move in steps of more than 1, rows and columns of
//! each phase of the steps together. Outputs are then computed in one run through all rows, whole registers at a time however
//! short a row is; those between the rows are thrown away.
use super::Scratch;
use super::window::{Plane, Window, every};
use crate::kernels::Finish;
use pulp::Arch;

/// Numbers computed together.
const TOGETHER: usize = 64;
/// The same where fewer are left.
const LANES: usize = 16;

/// A window on the planes of one size.
#[derive(Debug, Clone)]
pub(super) struct Depthwise {
    window: Window,
    plane: Plane,
    /// For each number of the window: where it lies for the first output.
    taps: Vec<usize>,
    columns: Vec<Columns>,
    /// For each row of the image where it begins in the first phase of columns, or [`NOWHERE`].
    starts: Vec<usize>,
    /// From one row of outputs to the next.
    pitch: usize,
    /// Rows of one phase.
    rows: usize,
    /// Numbers of one phase.
    length: usize,
}

/// Columns of the image in one phase of the steps.
#[derive(Debug, Clone)]
struct Columns {
    /// The first of them.
    first: usize,
    /// Where it lies, from the beginning of its row in the first phase on.
    at: usize,
    /// How many there are.
    count: usize,
    /// All bits for the numbers of the last register that belong to the row.
    kept: [u32; LANES],
}

/// Of rows that no window covers.
const NOWHERE: usize = usize::MAX;

impl Depthwise {
    pub(super) fn new(window: Window, plane: Plane) -> Self {
        let [by_y, by_x] = window.stride;
        let reach =
            |axis: usize| (window.kernel[axis] - 1) * window.dilation[axis] / window.stride[axis];
        let pitch = plane.output[1] + reach(1);
        let rows = plane.output[0] + reach(0);
        let length = rows * pitch + reach(1) + TOGETHER;
        let mut taps = Vec::with_capacity(window.kernel[0] * window.kernel[1]);
        window.for_each_tap(|_, ky, kx| {
            let (y, x) = (ky * window.dilation[0], kx * window.dilation[1]);
            taps.push((y % by_y * by_x + x % by_x) * length + y / by_y * pitch + x / by_x);
        });
        let columns = (0..by_x).map(|phase| {
            let before = window.before[1];
            let first = (phase + by_x - before % by_x) % by_x;
            let at = (first + before) / by_x;
            let there = plane.input[1].saturating_sub(first).div_ceil(by_x);
            let count = there.min(pitch.saturating_sub(at));
            let last = count.saturating_sub(1) / LANES * LANES;
            let kept = std::array::from_fn(|i| u32::from(last + i < count).wrapping_neg());
            Columns { first, at: phase * length + at, count, kept }
        });
        let columns = columns.filter(|columns| columns.count > 0).collect();
        let starts = (0..plane.input[0]).map(|y| {
            let row = y + window.before[0];
            let in_phase = row / by_y;
            if in_phase < rows { row % by_y * by_x * length + in_phase * pitch } else { NOWHERE }
        });
        let starts = starts.collect();
        Self { window, plane, taps, columns, starts, pitch, rows, length }
    }
    /// Numbers of all phases.
    const fn padded(&self) -> usize {
        self.length * self.window.stride[0] * self.window.stride[1]
    }
    /// Outputs in one run, with those between the rows.
    const fn run(&self) -> usize {
        self.plane.output[0] * self.pitch
    }
    /// Puts the plane that `input` begins with where its numbers belong. What lies around them is 0 afterwards if it was
    /// before.
    #[inline(always)]
    fn lay_out(&self, input: &[f32], padded: &mut [f32]) {
        let (width, step) = (self.plane.input[1], self.window.stride[1]);
        for Columns { first, at, count, kept } in &self.columns {
            // Plain loops: what an iterator calls for each row is compiled without the vector instructions.
            for (y, start) in self.starts.iter().enumerate() {
                if *start == NOWHERE {
                    continue;
                }
                let row = [y * width + first, start + at];
                match step {
                    1 => copy_row(row, *count, kept, input, padded),
                    2 => copy_every_second(row, *count, kept, input, padded),
                    _ => every(step, &input[row[0]..], &mut padded[row[1]..][..*count]),
                }
            }
        }
    }
    /// Adds the numbers of the image to `out`.
    #[inline(always)]
    fn add_back(&self, padded: &[f32], out: &mut [f32]) {
        let step = self.window.stride[1];
        let rows = out.chunks_exact_mut(self.plane.input[1]).zip(&self.starts);
        for (row, start) in rows.filter(|(_, start)| **start != NOWHERE) {
            for Columns { first, at, count, .. } in &self.columns {
                let from = &padded[start + at..][..*count];
                if step == 1 {
                    for (to, x) in row.iter_mut().zip(from) {
                        *to += x;
                    }
                    continue;
                }
                for (to, x) in row.iter_mut().skip(*first).step_by(step).zip(from) {
                    *to += x;
                }
            }
        }
    }

    /// Each channel's sums over windows; weights are `[channels, kernel]`.
    pub(super) fn forward(
        &self,
        weights: &[f32],
        finish: Finish<'_>,
        input: &[f32],
        output: &mut [f32],
        scratch: &mut Scratch,
    ) {
        let Scratch { planes, rows, .. } = scratch;
        planes.clear();
        planes.resize(self.padded(), 0.0);
        rows.resize(self.run().next_multiple_of(LANES) + LANES, 0.0);
        let (padded, sums) = (&mut planes[..], &mut rows[..]);
        Arch::new().dispatch(
            #[inline(always)]
            move || {
                let (padded, sums, output) = (padded, sums, output);
                let kernels = weights.chunks_exact(self.taps.len()).enumerate().cycle();
                let (area, places) = (self.plane.area(), self.plane.places());
                let [height, width] = self.plane.output;
                for (i, (channel, kernel)) in (0..output.len() / places).zip(kernels) {
                    self.lay_out(&input[i * area..], padded);
                    let (bias, limits) = (finish.bias(channel), finish.limits);
                    weighted_sums(kernel, &self.taps, padded, sums, |sum| limits.of(bias + sum));
                    for y in 0..height {
                        let row = [y * self.pitch, i * places + y * width];
                        copy_row(row, width, &[u32::MAX; LANES], sums, output);
                    }
                }
            },
        );
    }
    /// Adds the gradient with respect to the input to `out`.
    pub(super) fn input_gradient(
        &self,
        weights: &[f32],
        gradient: &[f32],
        out: &mut [f32],
        scratch: &mut Scratch,
    ) {
        let Scratch { planes, rows, .. } = scratch;
        let [by_y, by_x] = self.window.stride;
        let phases = by_y * by_x;
        // An input is covered by number t of the window whose output lies as far before it as t lies behind the first.
        let last = self.taps.iter().map(|tap| tap % self.length).max().unwrap_or(0);
        let of_phase = |phase: usize| {
            let taps = self.taps.iter().enumerate();
            taps.filter(move |(_, tap)| *tap / self.length == phase)
        };
        let order: Vec<usize> = (0..phases).flat_map(of_phase).map(|(i, _)| i).collect();
        let distances: Vec<usize> =
            order.iter().map(|i| last - self.taps[*i] % self.length).collect();
        let counts: Vec<usize> = (0..phases).map(|phase| of_phase(phase).count()).collect();
        let mut kernel = vec![0.0; order.len()];
        planes.clear();
        planes.resize(self.padded(), 0.0);
        rows.clear();
        rows.resize(last + self.length, 0.0);
        let (sums, spread) = (&mut planes[..], &mut rows[..]);
        let kernel = &mut kernel[..];
        Arch::new().dispatch(
            #[inline(always)]
            move || {
                let (sums, spread, out, kernel) = (sums, spread, out, kernel);
                let kernels = weights.chunks_exact(order.len()).cycle();
                let planes = out.chunks_exact_mut(self.plane.area());
                let gradients = gradient.chunks_exact(self.plane.places());
                for ((out, gradient), weights) in planes.zip(gradients).zip(kernels) {
                    self.spread(gradient, &mut spread[last..]);
                    for (to, i) in kernel.iter_mut().zip(&order) {
                        *to = weights[*i];
                    }
                    let (mut kernel, mut distances) = (&kernel[..], &distances[..]);
                    for (sums, count) in sums.chunks_exact_mut(self.length).zip(&counts) {
                        let sums = &mut sums[..(self.rows * self.pitch).next_multiple_of(LANES)];
                        let (these, others) = kernel.split_at(*count);
                        let (at, rest) = distances.split_at(*count);
                        weighted_sums(these, at, spread, sums, |sum| sum);
                        (kernel, distances) = (others, rest);
                    }
                    self.add_back(sums, out);
                }
            },
        );
    }
    /// Adds the gradient with respect to the weights of the channels in `input` and `gradient` to `out`.
    pub(super) fn weight_gradient(
        &self,
        input: &[f32],
        gradient: &[f32],
        out: &mut [f32],
        scratch: &mut Scratch,
    ) {
        let Scratch { planes, rows, .. } = scratch;
        planes.clear();
        planes.resize(self.padded(), 0.0);
        rows.clear();
        rows.resize(self.run().next_multiple_of(LANES), 0.0);
        let (padded, spread) = (&mut planes[..], &mut rows[..]);
        Arch::new().dispatch(
            #[inline(always)]
            move || {
                let (padded, spread, out) = (padded, spread, out);
                let channels = out.len() / self.taps.len();
                let gradients = gradient.chunks_exact(self.plane.places());
                for (i, gradient) in gradients.enumerate() {
                    self.lay_out(&input[i * self.plane.area()..], padded);
                    self.spread(gradient, spread);
                    let kernel = &mut out[i % channels * self.taps.len()..][..self.taps.len()];
                    for (weight, tap) in kernel.iter_mut().zip(&self.taps) {
                        *weight += product_sum(spread, &padded[*tap..]);
                    }
                }
            },
        );
    }
    /// Numbers of outputs as they lie in a run. What lies between the rows stays.
    #[inline(always)]
    fn spread(&self, numbers: &[f32], out: &mut [f32]) {
        let rows = numbers.chunks_exact(self.plane.output[1]);
        for (row, out) in rows.zip(out.chunks_mut(self.pitch)) {
            out[..row.len()].copy_from_slice(row);
        }
    }
}

/// `count` numbers from one place to another, whole registers at a time where there is room: what comes behind them is
/// then overwritten too, by what is not `kept` of the last register as zeros.
#[inline(always)]
fn copy_row(
    [first, to]: [usize; 2],
    count: usize,
    kept: &[u32; LANES],
    from: &[f32],
    out: &mut [f32],
) {
    let whole = count.next_multiple_of(LANES);
    match (from.get(first..first + whole), out.get_mut(to..to + whole)) {
        (Some(from), Some(out)) => {
            let (from, out) = (from.as_chunks::<LANES>().0, out.as_chunks_mut::<LANES>().0);
            let ([from @ .., last], [out @ .., out_last]) = (from, out) else { return };
            for (out, from) in out.iter_mut().zip(from) {
                *out = *from;
            }
            *out_last = masked(*last, kept);
        }
        _ => out[to..to + count].copy_from_slice(&from[first..first + count]),
    }
}

/// The first, third, and so on: as [`copy_row`].
#[inline(always)]
fn copy_every_second(
    [first, to]: [usize; 2],
    count: usize,
    kept: &[u32; LANES],
    from: &[f32],
    out: &mut [f32],
) {
    let whole = count.next_multiple_of(LANES);
    match (from.get(first..first + 2 * whole), out.get_mut(to..to + whole)) {
        (Some(from), Some(out)) => {
            let from = from.as_chunks::<{ 2 * LANES }>().0;
            let out = out.as_chunks_mut::<LANES>().0;
            let ([from @ .., last], [out @ .., out_last]) = (from, out) else { return };
            for (out, from) in out.iter_mut().zip(from) {
                *out = firsts(from);
            }
            *out_last = masked(firsts(last), kept);
        }
        _ => every(2, &from[first..], &mut out[to..to + count]),
    }
}

#[inline(always)]
fn firsts(pairs: &[f32; 2 * LANES]) -> [f32; LANES] {
    let mut out = [0.0; LANES];
    for i in 0..LANES {
        out[i] = pairs[2 * i];
    }
    out
}
#[inline(always)]
fn masked(mut numbers: [f32; LANES], kept: &[u32; LANES]) -> [f32; LANES] {
    for i in 0..LANES {
        numbers[i] = f32::from_bits(numbers[i].to_bits() & kept[i]);
    }
    numbers
}

/// `out[i] = finish(sum of weight times from[tap + i])`.
#[inline(always)]
fn weighted_sums(
    weights: &[f32],
    taps: &[usize],
    from: &[f32],
    out: &mut [f32],
    finish: impl Fn(f32) -> f32,
) {
    // A fixed number of taps is unrolled.
    match (<&[f32; 9]>::try_from(weights), <&[usize; 9]>::try_from(taps)) {
        (Ok(weights), Ok(taps)) => run(weights, taps, from, out, finish),
        _ => run(weights, taps, from, out, finish),
    }
}

#[inline(always)]
fn run(
    weights: &[f32],
    taps: &[usize],
    from: &[f32],
    out: &mut [f32],
    finish: impl Fn(f32) -> f32,
) {
    let (whole, rest) = out.as_chunks_mut::<TOGETHER>();
    let first = whole.len() * TOGETHER;
    for (i, out) in whole.iter_mut().enumerate() {
        let sums = sums_of::<TOGETHER>(weights, taps, from, i * TOGETHER);
        for (o, sum) in out.iter_mut().zip(sums) {
            *o = finish(sum);
        }
    }
    for (i, out) in rest.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let sums = sums_of::<LANES>(weights, taps, from, first + i * LANES);
        for (o, sum) in out.iter_mut().zip(sums) {
            *o = finish(sum);
        }
    }
}

#[inline(always)]
fn sums_of<const N: usize>(weights: &[f32], taps: &[usize], from: &[f32], at: usize) -> [f32; N] {
    let mut sums = [0.0; N];
    for (weight, tap) in weights.iter().zip(taps) {
        if let Some(from) = from[tap + at..].first_chunk::<N>() {
            for i in 0..N {
                sums[i] = weight.mul_add(from[i], sums[i]);
            }
        }
    }
    sums
}

/// `sum of a[i] b[i]` over all of `a`, which are whole lanes.
#[inline(always)]
fn product_sum(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0_f32; TOGETHER];
    let (whole, rest) = a.as_chunks::<TOGETHER>();
    let (others, other_rest) = b[..a.len()].as_chunks::<TOGETHER>();
    for (a, b) in whole.iter().zip(others) {
        for i in 0..TOGETHER {
            sums[i] = a[i].mul_add(b[i], sums[i]);
        }
    }
    let rest = rest.as_chunks::<LANES>().0.iter().zip(other_rest.as_chunks::<LANES>().0);
    for (a, b) in rest {
        for i in 0..LANES {
            sums[i] = a[i].mul_add(b[i], sums[i]);
        }
    }
    let mut width = TOGETHER / 2;
    while width > 0 {
        for i in 0..width {
            sums[i] += sums[i + width];
        }
        width /= 2;
    }
    sums[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Limits;

    fn numbers(count: usize, seed: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 7919 + seed * 104_729 + 13) % 1009) as f32 / 504.5 - 1.0).collect()
    }
    fn window(kernel: [usize; 2], stride: [usize; 2], dilation: [usize; 2], pad: usize) -> Window {
        Window { kernel, stride, dilation, before: [pad; 2], after: [pad; 2] }
    }

    /// Every pair of an output and an input that a number of the window joins.
    fn pairs(window: Window, plane: Plane, mut each: impl FnMut(usize, usize, usize)) {
        for y in 0..plane.output[0] {
            for x in 0..plane.output[1] {
                window.for_each_tap(|tap, ky, kx| {
                    let at = |out: usize, k: usize, axis: usize| {
                        (out * window.stride[axis] + k * window.dilation[axis])
                            .checked_sub(window.before[axis])
                            .filter(|at| *at < plane.input[axis])
                    };
                    if let (Some(row), Some(column)) = (at(y, ky, 0), at(x, kx, 1)) {
                        each(tap, y * plane.output[1] + x, row * plane.input[1] + column);
                    }
                });
            }
        }
    }

    /// Rows shorter and longer than registers, steps and gaps of several sizes, padding beyond the window, inputs that no
    /// window covers; two records, so that what follows a plane is written after it. The plain loop is in double precision.
    #[test]
    fn forward_and_gradients_are_those_of_the_plain_loop() {
        for (shape, window) in [
            ([7, 7], window([3, 3], [1, 1], [1, 1], 1)),
            ([9, 14], window([3, 3], [2, 2], [1, 1], 1)),
            ([5, 40], window([3, 3], [1, 1], [1, 1], 1)),
            ([6, 67], window([3, 3], [2, 2], [1, 1], 0)),
            ([8, 33], window([5, 2], [1, 2], [2, 3], 3)),
            ([11, 20], window([2, 3], [3, 4], [1, 1], 2)),
            ([1, 90], window([1, 5], [1, 3], [1, 2], 4)),
            ([3, 2], window([1, 1], [2, 2], [1, 1], 0)),
        ] {
            let [height, width] = shape;
            let plane = window.plane(&[1, height, width]);
            let (channels, records, taps) = (3, 2, window.kernel[0] * window.kernel[1]);
            let (area, places) = (plane.area(), plane.places());
            let input = numbers(records * channels * area, 1);
            let gradient = numbers(records * channels * places, 2);
            let (weights, biases) = (numbers(channels * taps, 3), numbers(channels, 4));
            let mut output: Vec<f64> = (0..records * channels * places)
                .map(|i| f64::from(biases[i / places % channels]))
                .collect();
            let mut of_input = vec![0.5_f64; input.len()];
            let mut of_weights = vec![0.5_f64; weights.len()];
            for i in 0..records * channels {
                let first = i % channels * taps;
                pairs(window, plane, |tap, to, from| {
                    let (to, from, tap) = (i * places + to, i * area + from, first + tap);
                    let [x, w, g] = [input[from], weights[tap], gradient[to]].map(f64::from);
                    output[to] += x * w;
                    of_input[from] += w * g;
                    of_weights[tap] += x * g;
                });
            }
            let limits = Limits { low: -0.8, high: 0.9 };
            for y in &mut output {
                *y = y.clamp(f64::from(limits.low), f64::from(limits.high));
            }
            let (depthwise, mut scratch) = (Depthwise::new(window, plane), Scratch::default());
            // What other layers leave behind must not be felt.
            scratch.planes = vec![f32::NAN; 9];
            scratch.rows = vec![f32::NAN; 9];
            let mut got = vec![f32::NAN; output.len()];
            let finish = Finish { biases: &biases, limits };
            depthwise.forward(&weights, finish, &input, &mut got, &mut scratch);
            let mut got_input = vec![0.5; input.len()];
            depthwise.input_gradient(&weights, &gradient, &mut got_input, &mut scratch);
            let mut got_weights = vec![0.5; weights.len()];
            depthwise.weight_gradient(&input, &gradient, &mut got_weights, &mut scratch);
            for (what, got, right, tolerance) in [
                ("forward", &got, &output, 2e-6),
                ("input gradient", &got_input, &of_input, 2e-6),
                ("weight gradient", &got_weights, &of_weights, 2e-5),
            ] {
                for (i, (g, r)) in got.iter().zip(right).enumerate() {
                    let error = (f64::from(*g) - r).abs();
                    assert!(error < tolerance, "{what} {i} of {shape:?}, {window:?}: {g}, not {r}");
                }
            }
        }
    }
}
