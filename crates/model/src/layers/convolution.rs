//! Convolution over one or two dimensions.
use super::depthwise::Depthwise;
use super::gram_norm::Parts;
use super::window::{Plane, Window};
use super::winograd::Tiled;
use super::{Kept, Misfit, Operation, Read, Scratch, only};
use crate::kernels::{self, Finish, Limits, Matrix, Write};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Every output channel is a weighted sum over a window of the input channels of its group, plus a bias (as in ONNX
/// and PyTorch: a cross-correlation, the kernel is not mirrored).
///
/// Reads `[channels, height, width]`, or `[channels, length]` as an image of height 1. Parameters lie as weights
/// row-major `[outputs, channels / groups, kernel height, kernel width]`, then biases `[outputs]` if there are any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Convolution {
    /// Channels going in.
    pub channels: usize,
    /// Channels coming out.
    pub outputs: usize,
    /// Channels are cut into so many groups, each convolved on its own; `channels` for a depthwise convolution.
    pub groups: usize,
    /// The window.
    pub window: Window,
    /// Whether each output channel has a bias.
    pub bias: bool,
}

/// Output numbers of one channel that a matrix product forms together: several records, if each has few.
const COLUMNS: usize = 512;

/// Gradients of single records are formed where Gram matrices would take more multiplications than this for every number of
/// such a gradient written and read again.
const GRAM_PER_NUMBER: usize = 16;

/// One group of a convolution on one shape: `[outputs, taps] x [taps, places]`.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    plane: Plane,
    /// Input channels of a group.
    channels: usize,
    /// Output channels of a group.
    outputs: usize,
    /// Weights of one output channel.
    taps: usize,
    /// Output numbers of one channel.
    places: usize,
    /// Records together.
    together: usize,
}

impl Convolution {
    /// Numbers of weights.
    #[must_use]
    pub const fn weight_count(&self) -> usize {
        let [height, width] = self.window.kernel;
        let groups = if self.groups == 0 { 1 } else { self.groups };
        self.outputs
            .saturating_mul(self.channels / groups)
            .saturating_mul(height)
            .saturating_mul(width)
    }
    fn sizes(&self, shape: &[usize]) -> Sizes {
        let plane = self.window.plane(shape);
        let [height, width] = self.window.kernel;
        let channels = self.channels / self.groups;
        let places = plane.places();
        Sizes {
            plane,
            channels,
            outputs: self.outputs / self.groups,
            taps: channels * height * width,
            places,
            together: (COLUMNS / places).max(1),
        }
    }
    /// The way for channels on their own.
    fn depthwise(&self, sizes: &Sizes) -> Option<Depthwise> {
        (self.groups == self.channels && self.outputs == self.channels && self.channels > 1)
            .then(|| Depthwise::new(self.window, sizes.plane))
    }
    /// The faster way for small windows in steps of 1, where it is one.
    fn tiled(&self, sizes: &Sizes, records: usize) -> Option<Tiled> {
        let Sizes { plane, channels, outputs, .. } = *sizes;
        Tiled::new(&self.window, plane, [channels, outputs, self.groups], records)
    }
    /// What each output number is a weighted sum of, `[taps, records * places]`: written to `out`, or the input itself
    /// where it already lies so.
    fn columns<'a>(
        &self,
        sizes: &Sizes,
        input: &'a [f32],
        group: usize,
        records: Range<usize>,
        out: &'a mut Vec<f32>,
    ) -> &'a [f32] {
        let Sizes { plane, channels, taps, places, .. } = *sizes;
        let area = plane.area();
        let first = |record: usize| (record * self.channels + group * channels) * area;
        if records.len() == 1 && self.window.is_identity() {
            let start = first(records.start);
            return &input[start..start + channels * area];
        }
        let length = records.len() * places;
        out.resize(taps * length, 0.0);
        for (i, record) in records.enumerate() {
            let input = &input[first(record)..first(record) + channels * area];
            for (c, input) in input.chunks_exact(area).enumerate() {
                self.window.for_each_tap(|tap, ky, kx| {
                    let row = c * taps / channels + tap;
                    let out = &mut out[row * length + i * places..][..places];
                    self.window.gather(plane, ky, kx, input, out);
                });
            }
        }
        out
    }
    /// Output numbers or gradients of one group, `[outputs, records * places]`.
    fn rows<'a>(
        &self,
        sizes: &Sizes,
        numbers: &'a [f32],
        group: usize,
        records: Range<usize>,
        out: &'a mut Vec<f32>,
    ) -> &'a [f32] {
        let Sizes { outputs, places, .. } = *sizes;
        let first = |record: usize| (record * self.outputs + group * outputs) * places;
        if records.len() == 1 {
            let start = first(records.start);
            return &numbers[start..start + outputs * places];
        }
        out.resize(outputs * records.len() * places, 0.0);
        let length = records.len() * places;
        for (i, record) in records.enumerate() {
            let numbers = &numbers[first(record)..first(record) + outputs * places];
            for (o, row) in numbers.chunks_exact(places).enumerate() {
                out[o * length + i * places..][..places].copy_from_slice(row);
            }
        }
        out
    }
    /// `[outputs, taps]` of one group.
    fn weights<'a>(&self, sizes: &Sizes, group: usize, parameters: &'a [f32]) -> Matrix<'a> {
        let count = sizes.outputs * sizes.taps;
        Matrix::new(&parameters[group * count..(group + 1) * count], sizes.outputs, sizes.taps)
    }
    /// Groups of records and groups of channels, one after the other.
    fn for_each_product(
        &self,
        sizes: &Sizes,
        records: usize,
        mut what: impl FnMut(usize, Range<usize>),
    ) {
        for start in (0..records).step_by(sizes.together) {
            for group in 0..self.groups {
                what(group, start..records.min(start + sizes.together));
            }
        }
    }
    /// The squared norm of one record's gradient by Gram matrices, if they are exact enough.
    fn squared_norm_by_grams(
        &self,
        sizes: &Sizes,
        read: &Read<'_>,
        gradient: &[f32],
        record: usize,
        scratch: &mut Scratch,
    ) -> Option<f64> {
        let Sizes { plane, channels, places, .. } = *sizes;
        let one = f64::from(u8::from(self.bias));
        let Scratch { columns, products, grams, .. } = scratch;
        let mut parts = Parts::default();
        for group in 0..self.groups {
            let part = record..record + 1;
            let rows = self.rows(sizes, gradient, group, part.clone(), products);
            grams.gradients.form(rows, places);
            if sizes.gram_of_planes() {
                let first = (record * self.channels + group * channels) * plane.area();
                let planes = &read.inputs[0][first..first + channels * plane.area()];
                grams.inputs.form(planes, plane.area());
                parts.add(self.window, plane, one, grams);
            } else {
                grams
                    .inputs
                    .form(self.columns(sizes, read.inputs[0], group, part, columns), places);
                let places = Plane { input: plane.output, output: plane.output };
                parts.add(Window::same(1), places, one, grams);
            }
        }
        parts.squared_norm()
    }
    /// The gradient of the parameters, summed over some records; at least one.
    fn write_gradient(
        &self,
        read: &Read<'_>,
        gradient: &[f32],
        records: Range<usize>,
        out: &mut [f32],
        write: Write,
        scratch: &mut Scratch,
    ) {
        let sizes = self.sizes(read.shapes[0]);
        let (weights, biases) = out.split_at_mut(self.weight_count());
        let (first, count) = (records.start, records.len());
        let each = sizes.outputs * sizes.taps;
        let mut summed = 0;
        if let Some(depthwise) = self.depthwise(&sizes) {
            let part = |width: usize| first * width..(first + count) * width;
            let input = &read.inputs[0][part(self.channels * sizes.plane.area())];
            let gradient = &gradient[part(self.outputs * sizes.places)];
            if write == Write::Overwrite {
                weights.fill(0.0);
            }
            depthwise.weight_gradient(input, gradient, weights, scratch);
        } else if let Some(tiled) = self.tiled(&sizes, count) {
            tiled.weight_gradient(read.inputs[0], gradient, records, weights, write, scratch);
        } else {
            summed = count;
        }
        self.for_each_product(&sizes, summed, |group, part| {
            let write = if part.start == 0 { write } else { Write::Accumulate };
            let part = first + part.start..first + part.end;
            let length = part.len() * sizes.places;
            let columns =
                self.columns(&sizes, read.inputs[0], group, part.clone(), &mut scratch.columns);
            let rows = self.rows(&sizes, gradient, group, part, &mut scratch.products);
            let rows = Matrix::new(rows, sizes.outputs, length);
            let columns = Matrix::new(columns, sizes.taps, length);
            let out = &mut weights[group * each..(group + 1) * each];
            kernels::matmul(rows, columns.transposed(), out, write);
        });
        if self.bias {
            if write == Write::Overwrite {
                biases.fill(0.0);
            }
            for row in gradient.chunks_exact(self.outputs * sizes.places).skip(first).take(count) {
                kernels::add_sums(row, sizes.places, biases);
            }
        }
    }
    /// Overwrites `output` by numbers clipped to `limits`.
    pub(crate) fn forward_clipped(
        &self,
        read: &Read<'_>,
        limits: Limits,
        output: &mut [f32],
        scratch: &mut Scratch,
    ) {
        let sizes = self.sizes(read.shapes[0]);
        let (weights, biases) = read.parameters.split_at(self.weight_count());
        let finish = Finish { biases, limits };
        let (input, Sizes { outputs, places, .. }) = (read.inputs[0], sizes);
        if let Some(depthwise) = self.depthwise(&sizes) {
            depthwise.forward(weights, finish, input, output, scratch);
            return;
        }
        if let Some(tiled) = self.tiled(&sizes, read.records) {
            tiled.forward(weights, finish, input, read.records, output, scratch);
            return;
        }
        self.for_each_product(&sizes, read.records, |group, part| {
            let (columns, products) = (&mut scratch.columns, &mut scratch.products);
            let length = part.len() * places;
            let columns = self.columns(&sizes, input, group, part.clone(), columns);
            let columns = Matrix::new(columns, sizes.taps, length);
            let weights = self.weights(&sizes, group, weights);
            let finish = finish.from(group * outputs);
            let first = |record: usize| (record * self.outputs + group * outputs) * places;
            if part.len() == 1 {
                let out = &mut output[first(part.start)..][..outputs * places];
                kernels::matmul_finished(weights, columns, &finish, out);
                return;
            }
            products.resize(outputs * length, 0.0);
            kernels::matmul(weights, columns, products, Write::Overwrite);
            for (i, record) in part.enumerate() {
                let out = &mut output[first(record)..][..outputs * places];
                let rows = out.chunks_exact_mut(places).zip(products.chunks_exact(length));
                for (o, (row, product)) in rows.enumerate() {
                    let sums = &product[i * places..][..places];
                    kernels::finish_row(sums, finish.bias(o), limits, row);
                }
            }
        });
    }
}

impl Sizes {
    /// Multiplications by which Gram matrices of one record are formed and multiplied: of the input planes, or else of what
    /// the places read.
    fn gram_costs(&self) -> [usize; 2] {
        let Self { plane, channels, outputs, taps, places, .. } = *self;
        let square = |n: usize| n.saturating_mul(n);
        let of_gradients = square(places).saturating_mul(outputs);
        let of_planes = square(plane.area()).saturating_mul(channels);
        let of_places = square(places).saturating_mul(taps);
        [of_planes.saturating_add(square(places).saturating_mul(taps / channels)), of_places]
            .map(|cost| cost.saturating_add(of_gradients))
    }
    fn gram_of_planes(&self) -> bool {
        let [of_planes, of_places] = self.gram_costs();
        of_planes < of_places
    }
}

impl Operation for Convolution {
    fn output_shape(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, Misfit> {
        let shape = only(inputs)?;
        let Self { channels, outputs, groups, .. } = *self;
        if groups == 0 || outputs == 0 || channels == 0 || channels % groups + outputs % groups > 0
        {
            return Err(Misfit::new(format!(
                "channels ({channels} here) and outputs ({outputs}) above 0, in whole groups ({groups})"
            )));
        }
        if shape.first() != Some(&channels) {
            return Err(Misfit::new(format!("[{channels}, height, width]")));
        }
        self.window.output_shape(shape, outputs)
    }
    fn parameter_groups(&self) -> Vec<(usize, bool)> {
        vec![(self.weight_count(), true), (if self.bias { self.outputs } else { 0 }, false)]
    }
    fn forward(&self, read: &Read<'_>, output: &mut [f32], scratch: &mut Scratch) {
        self.forward_clipped(read, Limits::NONE, output, scratch);
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
        let sizes = self.sizes(read.shapes[0]);
        let Sizes { plane, channels, taps, places, .. } = sizes;
        if let Some(tiled) = self.tiled(&sizes, read.records) {
            let weights = &read.parameters[..self.weight_count()];
            tiled.input_gradient(weights, gradient, read.records, out, write, scratch);
            return;
        }
        if write == Write::Overwrite {
            out.fill(0.0);
        }
        if let Some(depthwise) = self.depthwise(&sizes) {
            let weights = &read.parameters[..self.weight_count()];
            depthwise.input_gradient(weights, gradient, out, scratch);
            return;
        }
        self.for_each_product(&sizes, read.records, |group, part| {
            let (columns, products) = (&mut scratch.columns, &mut scratch.products);
            let length = part.len() * places;
            let rows = self.rows(&sizes, gradient, group, part.clone(), products);
            let rows = Matrix::new(rows, sizes.outputs, length);
            columns.resize(taps * length, 0.0);
            let weights = self.weights(&sizes, group, read.parameters).transposed();
            kernels::matmul(weights, rows, columns, Write::Overwrite);
            let area = plane.area();
            for (i, record) in part.enumerate() {
                let first = (record * self.channels + group * channels) * area;
                for (c, out) in
                    out[first..first + channels * area].chunks_exact_mut(area).enumerate()
                {
                    self.window.for_each_tap(|tap, ky, kx| {
                        let row = c * taps / channels + tap;
                        let from = &columns[row * length + i * places..][..places];
                        self.window.scatter(plane, ky, kx, from, out);
                    });
                }
            }
        });
    }
    fn parameter_gradient(
        &self,
        read: &Read<'_>,
        gradient: &[f32],
        out: &mut [f32],
        write: Write,
        scratch: &mut Scratch,
    ) {
        if read.records == 0 {
            if write == Write::Overwrite {
                out.fill(0.0);
            }
            return;
        }
        self.write_gradient(read, gradient, 0..read.records, out, write, scratch);
    }
    /// The gradient of one record's weights is `G U^T` with `G` `[outputs, places]` and `U` `[taps, places]`: either it
    /// is formed and kept, or its squared norm is the sum of the products of the Gram matrices `G^T G` and `U^T U`. The
    /// latter, where windows overlap, is summed from the Gram matrix of the input planes, a ninth of the work for 3 x 3 windows.
    ///
    /// # Source
    /// Bu, Mao and Xu, *Scalable and Efficient Training of Large Convolutional Neural Networks with Differential
    /// Privacy*, NeurIPS 2022 (arXiv:2205.10683), section 3.
    fn add_squared_gradient_norms(
        &self,
        read: &Read<'_>,
        gradient: &[f32],
        squared_norms: &mut [f64],
        kept: &mut Kept,
        scratch: &mut Scratch,
    ) {
        let sizes = self.sizes(read.shapes[0]);
        let gram = sizes.gram_costs().into_iter().fold(usize::MAX, usize::min);
        let form = gram >= GRAM_PER_NUMBER.saturating_mul(sizes.outputs * sizes.taps);
        let count = self.weight_count() + if self.bias { self.outputs } else { 0 };
        for (record, norm) in squared_norms.iter_mut().enumerate() {
            let by_grams = if form {
                None
            } else {
                self.squared_norm_by_grams(&sizes, read, gradient, record, scratch)
            };
            *norm += by_grams.unwrap_or_else(|| {
                let out = kept.unwritten(record, count);
                let one = record..record + 1;
                self.write_gradient(read, gradient, one, out, Write::Overwrite, scratch);
                kernels::squared_norm(out)
            });
        }
    }
}
