//! Pooling: one number for each window of each channel.
use super::window::{Plane, Window};
use super::{Misfit, Operation, Read, Scratch, only};
use crate::kernels::Write;
use pulp::Arch;
use serde::{Deserialize, Serialize};

/// What stands for a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Pool {
    /// The largest number inside the image; its gradient goes to the first of several largest. NaN counts as larger
    /// than every number.
    Max,
    /// The mean of the numbers inside the image.
    Average,
    /// The sum of the numbers inside the image over the size of the window: padding counts as 0.
    AverageWithPadding,
}

/// Slides a window over each channel of `[channels, height, width]` (or `[channels, length]`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pooling {
    /// What stands for a window.
    pub pool: Pool,
    /// The window.
    pub window: Window,
}

impl Pooling {
    /// Every window: its number and where the numbers it covers lie, as (row, column) tops and steps.
    fn for_each_window(
        &self,
        plane: Plane,
        mut what: impl FnMut(usize, &mut dyn Iterator<Item = usize>),
    ) {
        let w = self.window;
        // Tap k of window i lies at i * stride + k * dilation - before.
        let taps = |axis: usize, window: usize| {
            (0..w.kernel[axis]).filter_map(move |k| {
                let at =
                    (window * w.stride[axis] + k * w.dilation[axis]).checked_sub(w.before[axis])?;
                (at < plane.input[axis]).then_some(at)
            })
        };
        for y in 0..plane.output[0] {
            for x in 0..plane.output[1] {
                let mut covered = taps(0, y)
                    .flat_map(|row| taps(1, x).map(move |column| row * plane.input[1] + column));
                what(y * plane.output[1] + x, &mut covered);
            }
        }
    }
    /// The faster way, where it is one.
    fn halving(&self, plane: Plane) -> Option<Halving> {
        let Window { kernel, stride, dilation, before, .. } = self.window;
        let two = kernel == [2; 2] && stride == [2; 2] && dilation == [1; 2] && before == [0; 2];
        let inside = (0..2).all(|axis| 2 * plane.output[axis] <= plane.input[axis]);
        (two && inside).then_some(Halving { plane })
    }
    /// By what the sum over each window is divided.
    fn divisors(&self, plane: Plane) -> Vec<f32> {
        let size = self.window.kernel[0] * self.window.kernel[1];
        let mut divisors = vec![size as f32; plane.places()];
        if self.pool == Pool::Average {
            self.for_each_window(plane, |i, covered| divisors[i] = covered.count() as f32);
        }
        divisors
    }
}

/// Whether `x` takes the place of the largest number so far.
#[inline(always)]
fn exceeds(x: f32, largest: f32) -> bool {
    (x > largest) | (x.is_nan() & !largest.is_nan())
}

/// The mean of two numbers of a row and the two below them.
#[inline(always)]
fn mean([a, b]: [f32; 2], [c, d]: [f32; 2]) -> f32 {
    (0.0 + a + b + c + d) / 4.0
}
#[inline(always)]
fn largest([a, b]: [f32; 2], [c, d]: [f32; 2]) -> f32 {
    let mut largest = a;
    for x in [b, c, d] {
        largest = if exceeds(x, largest) { x } else { largest };
    }
    largest
}
/// `g` where the first largest number is, else 0.
#[inline(always)]
fn to_largest([a, b]: [f32; 2], [c, d]: [f32; 2], g: f32) -> [[f32; 2]; 2] {
    let (mut largest, mut place) = (a, 0);
    for (i, x) in [(1, b), (2, c), (3, d)] {
        place = if exceeds(x, largest) { i } else { place };
        largest = if exceeds(x, largest) { x } else { largest };
    }
    let at = |i: u32| if place == i { g } else { 0.0 };
    [[at(0), at(1)], [at(2), at(3)]]
}

/// Windows of two by two next to each other, all inside the image: what most networks have.
#[derive(Debug, Clone, Copy)]
struct Halving {
    plane: Plane,
}
impl Halving {
    /// The upper and the lower row of the windows in row `y`.
    #[inline(always)]
    fn rows(self, input: &[f32], y: usize) -> [&[[f32; 2]]; 2] {
        let width = self.plane.input[1];
        let (upper, lower) = input[2 * y * width..2 * (y + 1) * width].split_at(width);
        [upper.as_chunks().0, lower.as_chunks().0]
    }
    #[inline(always)]
    fn forward(self, input: &[f32], output: &mut [f32], f: impl Fn([f32; 2], [f32; 2]) -> f32) {
        Arch::new().dispatch(
            #[inline(always)]
            move || {
                let output = output;
                let planes = input.chunks_exact(self.plane.area());
                let outputs = output.chunks_exact_mut(self.plane.places());
                for (input, output) in planes.zip(outputs) {
                    let rows = output.chunks_exact_mut(self.plane.output[1]).enumerate();
                    for (y, out) in rows {
                        let [upper, lower] = self.rows(input, y);
                        for ((out, upper), lower) in out.iter_mut().zip(upper).zip(lower) {
                            *out = f(*upper, *lower);
                        }
                    }
                }
            },
        );
    }
    /// Adds what `f` gives for two numbers, the two below them and their gradient.
    #[inline(always)]
    fn backward(
        self,
        input: &[f32],
        gradient: &[f32],
        out: &mut [f32],
        f: impl Fn([f32; 2], [f32; 2], f32) -> [[f32; 2]; 2],
    ) {
        Arch::new().dispatch(
            #[inline(always)]
            move || {
                let out = out;
                let width = self.plane.input[1];
                let planes = input.chunks_exact(self.plane.area());
                let outs = out.chunks_exact_mut(self.plane.area());
                let gradients = gradient.chunks_exact(self.plane.places());
                for ((input, out), gradient) in planes.zip(outs).zip(gradients) {
                    let gradients = gradient.chunks_exact(self.plane.output[1]);
                    let outs = out.chunks_exact_mut(2 * width);
                    for (y, (out, gradient)) in outs.zip(gradients).enumerate() {
                        let [upper, lower] = self.rows(input, y);
                        let (to_upper, to_lower) = out.split_at_mut(width);
                        let to_upper = to_upper.as_chunks_mut::<2>().0.iter_mut();
                        let to = to_upper.zip(to_lower.as_chunks_mut::<2>().0);
                        let from = upper.iter().zip(lower).zip(gradient);
                        for ((to_upper, to_lower), ((upper, lower), g)) in to.zip(from) {
                            let [[a, b], [c, d]] = f(*upper, *lower, *g);
                            *to_upper = [to_upper[0] + a, to_upper[1] + b];
                            *to_lower = [to_lower[0] + c, to_lower[1] + d];
                        }
                    }
                }
            },
        );
    }
}

impl Operation for Pooling {
    fn output_shape(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, Misfit> {
        let shape = only(inputs)?;
        let w = self.window;
        // A window without a number of the image has no largest one and no mean.
        for axis in 0..2 {
            let reach = w.dilation[axis].saturating_mul(w.kernel[axis].saturating_sub(1));
            if w.before[axis] > reach || w.after[axis] > reach {
                return Err(Misfit::new("padding smaller than the window"));
            }
        }
        let shape = w.output_shape(shape, shape.first().copied().unwrap_or(0))?;
        let plane = w.plane(only(inputs)?);
        let mut empty = false;
        self.for_each_window(plane, |_, covered| empty |= covered.next().is_none());
        if empty { Err(Misfit::new("windows that all cover some of the image")) } else { Ok(shape) }
    }
    fn forward(&self, read: &Read<'_>, output: &mut [f32], scratch: &mut Scratch) {
        let plane = self.window.plane(read.shapes[0]);
        if let Some(halving) = self.halving(plane) {
            match self.pool {
                Pool::Max => halving.forward(read.inputs[0], output, largest),
                _ => halving.forward(read.inputs[0], output, mean),
            }
            return;
        }
        let planes = read.inputs[0].chunks_exact(plane.area());
        let outputs = output.chunks_exact_mut(plane.places());
        let taken = &mut scratch.columns;
        taken.resize(plane.places(), 0.0);
        let divisors = self.divisors(plane);
        for (input, output) in planes.zip(outputs) {
            let start = if self.pool == Pool::Max { f32::NEG_INFINITY } else { 0.0 };
            output.fill(start);
            // Tap by tap over all windows, so that the inner loop runs along rows.
            self.window.for_each_tap(|_, ky, kx| {
                let ((rows, y), (columns, x)) =
                    (self.window.inside(plane, 0, ky), self.window.inside(plane, 1, kx));
                for (i, row) in rows.enumerate() {
                    let from = (y + i * self.window.stride[0]) * plane.input[1] + x;
                    let out = &mut output[row * plane.output[1]..][columns.clone()];
                    if out.is_empty() {
                        continue;
                    }
                    let from = input[from..].iter().step_by(self.window.stride[1]);
                    if self.pool == Pool::Max {
                        for (o, x) in out.iter_mut().zip(from) {
                            *o = if exceeds(*x, *o) { *x } else { *o };
                        }
                    } else {
                        for (o, x) in out.iter_mut().zip(from) {
                            *o += x;
                        }
                    }
                }
            });
            if self.pool != Pool::Max {
                for (o, divisor) in output.iter_mut().zip(&divisors) {
                    *o /= divisor;
                }
            }
        }
    }
    fn input_gradient(
        &self,
        read: &Read<'_>,
        _: usize,
        gradient: &[f32],
        out: &mut [f32],
        write: Write,
        scratch: &mut Scratch,
    ) {
        let plane = self.window.plane(read.shapes[0]);
        if write == Write::Overwrite {
            out.fill(0.0);
        }
        if let Some(halving) = self.halving(plane) {
            let input = read.inputs[0];
            match self.pool {
                Pool::Max => halving.backward(input, gradient, out, to_largest),
                _ => halving.backward(
                    input,
                    gradient,
                    out,
                    #[inline(always)]
                    |_, _, g| [[g / 4.0; 2]; 2],
                ),
            }
            return;
        }
        let outs = out.chunks_exact_mut(plane.area());
        let gradients = gradient.chunks_exact(plane.places());
        if self.pool == Pool::Max {
            let planes = read.inputs[0].chunks_exact(plane.area());
            for ((input, out), gradient) in planes.zip(outs).zip(gradients) {
                self.for_each_window(plane, |window, covered| {
                    let Some(mut first) = covered.next() else { return };
                    for at in covered {
                        if exceeds(input[at], input[first]) {
                            first = at;
                        }
                    }
                    out[first] += gradient[window];
                });
            }
            return;
        }
        let divisors = self.divisors(plane);
        let shares = &mut scratch.columns;
        for (out, gradient) in outs.zip(gradients) {
            shares.clear();
            shares.extend(gradient.iter().zip(&divisors).map(|(g, divisor)| g / divisor));
            self.window.for_each_tap(|_, ky, kx| self.window.scatter(plane, ky, kx, shares, out));
        }
    }
}
