//! Convolution of every channel on its own: too few numbers for a matrix product.
use super::window::{Plane, Window};
use pulp::Arch;

/// Numbers computed together.
const LANES: usize = 8;

/// A window on the planes of one size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Depthwise {
    window: Window,
    plane: Plane,
}

/// Where each number of the window lies in a padded plane, from the first number of an output row on.
type Taps = Vec<(usize, usize)>;

impl Depthwise {
    pub(super) const fn new(window: Window, plane: Plane) -> Self {
        Self { window, plane }
    }
    /// Numbers of an output row, rounded up to whole lanes.
    const fn across(&self) -> usize {
        self.plane.output[1].next_multiple_of(LANES)
    }
    /// Columns of one phase: every `stride`-th column of a padded row lies together, so that the windows of a row read
    /// numbers next to each other.
    const fn phase(&self) -> usize {
        let w = &self.window;
        self.across() + (w.kernel[1] - 1) * w.dilation[1] / w.stride[1] + 1
    }
    /// Rows and length of a padded plane.
    const fn padded(&self) -> [usize; 2] {
        let w = &self.window;
        let rows = (self.plane.output[0] - 1) * w.stride[0] + (w.kernel[0] - 1) * w.dilation[0] + 1;
        [rows, w.stride[1] * self.phase()]
    }
    fn taps(&self) -> Taps {
        let (w, phase) = (self.window, self.phase());
        let mut taps = Vec::with_capacity(w.kernel[0] * w.kernel[1]);
        w.for_each_tap(|_, ky, kx| {
            let column = kx * w.dilation[1];
            taps.push((ky * w.dilation[0], column % w.stride[1] * phase + column / w.stride[1]));
        });
        taps
    }
    /// For each column of the image: where it lies in a padded row, if some window may cover it.
    fn column(&self, x: usize) -> Option<usize> {
        let (stride, phase) = (self.window.stride[1], self.phase());
        let column = x + self.window.before[1];
        (column / stride < phase).then_some(column % stride * phase + column / stride)
    }
    fn pad(&self, input: &[f32], columns: &[Option<usize>], padded: &mut Vec<f32>) {
        let [rows, length] = self.padded();
        padded.clear();
        padded.resize(rows * length, 0.0);
        for (row, out) in padded.chunks_exact_mut(length).enumerate() {
            let y = row.checked_sub(self.window.before[0]).filter(|y| *y < self.plane.input[0]);
            let Some(y) = y else { continue };
            let input = &input[y * self.plane.input[1]..(y + 1) * self.plane.input[1]];
            if self.window.stride[1] == 1 {
                // Columns stay next to each other.
                let out = &mut out[self.window.before[1]..];
                let covered = out.len().min(input.len());
                out[..covered].copy_from_slice(&input[..covered]);
                continue;
            }
            for (x, column) in input.iter().zip(columns) {
                if let Some(column) = column {
                    out[*column] = *x;
                }
            }
        }
    }
    fn columns(&self) -> Vec<Option<usize>> {
        (0..self.plane.input[1]).map(|x| self.column(x)).collect()
    }

    /// Adds each channel's sums over windows to `output`; weights are `[channels, kernel]`.
    pub(super) fn forward(
        &self,
        weights: &[f32],
        input: &[f32],
        output: &mut [f32],
        padded: &mut Vec<f32>,
    ) {
        let (taps, columns) = (self.taps(), self.columns());
        let kernels = weights.chunks_exact(taps.len()).cycle();
        let planes = input.chunks_exact(self.plane.area());
        let outputs = output.chunks_exact_mut(self.plane.places());
        for ((input, output), kernel) in planes.zip(outputs).zip(kernels) {
            self.pad(input, &columns, padded);
            let (padded, taps) = (&padded[..], &taps[..]);
            Arch::new().dispatch(
                #[inline(always)]
                move || {
                    let output = output;
                    self.forward_plane(kernel, taps, padded, output);
                },
            );
        }
    }
    #[inline(always)]
    fn forward_plane(
        &self,
        kernel: &[f32],
        taps: &[(usize, usize)],
        padded: &[f32],
        output: &mut [f32],
    ) {
        let length = self.padded()[1];
        for (y, output) in output.chunks_exact_mut(self.plane.output[1]).enumerate() {
            let row = y * self.window.stride[0];
            for (i, out) in output.chunks_mut(LANES).enumerate() {
                let mut sum = [0.0; LANES];
                for (weight, (down, across)) in kernel.iter().zip(taps) {
                    let from = &padded[(row + down) * length + across + i * LANES..];
                    if let Some(from) = from.first_chunk::<LANES>() {
                        for (s, x) in sum.iter_mut().zip(from) {
                            *s = weight.mul_add(*x, *s);
                        }
                    }
                }
                for (o, s) in out.iter_mut().zip(sum) {
                    *o += s;
                }
            }
        }
    }
    /// Adds the gradient with respect to the input to `out`.
    pub(super) fn input_gradient(
        &self,
        weights: &[f32],
        gradient: &[f32],
        out: &mut [f32],
        padded: &mut Vec<f32>,
    ) {
        let (taps, columns) = (self.taps(), self.columns());
        let [rows, length] = self.padded();
        let kernels = weights.chunks_exact(taps.len()).cycle();
        let planes = out.chunks_exact_mut(self.plane.area());
        let gradients = gradient.chunks_exact(self.plane.places());
        for ((out, gradient), kernel) in planes.zip(gradients).zip(kernels) {
            padded.clear();
            padded.resize(rows * length, 0.0);
            let (sums, taps) = (&mut padded[..], &taps[..]);
            Arch::new().dispatch(
                #[inline(always)]
                move || {
                    let sums = sums;
                    self.scatter_plane(kernel, taps, gradient, sums);
                },
            );
            for (row, sums) in padded.chunks_exact(length).enumerate() {
                let y = row.checked_sub(self.window.before[0]).filter(|y| *y < self.plane.input[0]);
                let Some(y) = y else { continue };
                let out = &mut out[y * self.plane.input[1]..(y + 1) * self.plane.input[1]];
                for (o, column) in out.iter_mut().zip(&columns) {
                    if let Some(column) = column {
                        *o += sums[*column];
                    }
                }
            }
        }
    }
    #[inline(always)]
    fn scatter_plane(
        &self,
        kernel: &[f32],
        taps: &[(usize, usize)],
        gradient: &[f32],
        sums: &mut [f32],
    ) {
        let length = self.padded()[1];
        for (y, gradient) in gradient.chunks_exact(self.plane.output[1]).enumerate() {
            let row = y * self.window.stride[0];
            for (i, part) in gradient.chunks(LANES).enumerate() {
                let mut g = [0.0; LANES];
                g[..part.len()].copy_from_slice(part);
                for (weight, (down, across)) in kernel.iter().zip(taps) {
                    let to = &mut sums[(row + down) * length + across + i * LANES..];
                    if let Some(to) = to.first_chunk_mut::<LANES>() {
                        for (t, g) in to.iter_mut().zip(g) {
                            *t = weight.mul_add(g, *t);
                        }
                    }
                }
            }
        }
    }
    /// Adds the gradient with respect to the weights of the channels in `input` and `gradient` to `out`.
    pub(super) fn weight_gradient(
        &self,
        input: &[f32],
        gradient: &[f32],
        out: &mut [f32],
        padded: &mut Vec<f32>,
    ) {
        let (taps, columns) = (self.taps(), self.columns());
        let channels = out.len() / taps.len();
        let mut lanes = vec![[0.0_f32; LANES]; taps.len()];
        let planes = input.chunks_exact(self.plane.area());
        let gradients = gradient.chunks_exact(self.plane.places());
        for (i, (input, gradient)) in planes.zip(gradients).enumerate() {
            self.pad(input, &columns, padded);
            lanes.fill([0.0; LANES]);
            let (padded, taps, sums) = (&padded[..], &taps[..], &mut lanes[..]);
            Arch::new().dispatch(
                #[inline(always)]
                move || {
                    let sums = sums;
                    self.correlate(taps, padded, gradient, sums);
                },
            );
            let channel = i % channels;
            let kernel = &mut out[channel * lanes.len()..(channel + 1) * lanes.len()];
            for (weight, lanes) in kernel.iter_mut().zip(&lanes) {
                *weight += lanes.iter().sum::<f32>();
            }
        }
    }
    #[inline(always)]
    fn correlate(
        &self,
        taps: &[(usize, usize)],
        padded: &[f32],
        gradient: &[f32],
        sums: &mut [[f32; LANES]],
    ) {
        let length = self.padded()[1];
        for (y, gradient) in gradient.chunks_exact(self.plane.output[1]).enumerate() {
            let row = y * self.window.stride[0];
            for (i, part) in gradient.chunks(LANES).enumerate() {
                let mut g = [0.0; LANES];
                g[..part.len()].copy_from_slice(part);
                for (sum, (down, across)) in sums.iter_mut().zip(taps) {
                    let from = &padded[(row + down) * length + across + i * LANES..];
                    if let Some(from) = from.first_chunk::<LANES>() {
                        for ((s, x), g) in sum.iter_mut().zip(from).zip(g) {
                            *s = x.mul_add(g, *s);
                        }
                    }
                }
            }
        }
    }
}
