//! Convolution over gradients that are outer products, without forming the products.
//!
//! The gradient of a record's loss with respect to the weights of a linear layer, bias row appended, is the outer
//! product of the layer's input `a` (with 1 appended, `inputs` numbers) and the loss gradient `delta` at its outputs
//! (`classes` numbers). A kernel `K` of `inputs` by `height` that spans all inputs therefore gives at output `j`
//!
//! ```text
//! sum over i, t of K[i, t] a[i] delta[j + t]  =  sum over t of (K[., t] . a) delta[j + t]
//! ```
//!
//! which takes `height (inputs + positions)` multiplications a filter instead of `height inputs positions`, and
//! `inputs + classes` numbers a record instead of `inputs classes`: 55 and 56 times less at `inputs = 129`,
//! `classes = 100`, `height = 4`.
//!
//! Filters are held in blocks, each with its part of the dense layer that reads them, its moments and its buffers: a
//! block's gradient is used as soon as it is formed, and blocks are independent, so they run in parallel.
//! Sums over blocks are formed in order: the number of threads changes nothing.
use crate::adam::{Moments, Step};
use crate::dropout::fill_mask;
use crate::stack::{fill_uniform, multiply};
use dosimeter_data::Seed;
use dosimeter_model::kernels::{self, Matrix, Write};
use pulp::Arch;
use rayon::prelude::*;

/// Filters of one block: its part of the dense layer and the gradient of that fit a core's second-level cache.
const BLOCK: usize = 8;
/// Added to variances.
const VARIANCE_FLOOR: f32 = 1e-5;
/// Weight of the newest batch in the running means and variances.
const MOMENTUM: f32 = 0.1;

/// Sizes of the gradient branch up to its first dense layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Inputs of the attacked layer, constant 1 included.
    pub(crate) inputs: usize,
    /// Outputs of the attacked layer.
    pub(crate) classes: usize,
    pub(crate) filters: usize,
    /// Neighbouring outputs one filter spans, at most `classes`.
    pub(crate) height: usize,
    /// Outputs of the dense layer.
    pub(crate) hidden: usize,
    pub(crate) batch_norm: bool,
}
impl Shape {
    pub(crate) const fn positions(&self) -> usize {
        self.classes - self.height + 1
    }
}

/// What is done with the convolution's outputs before the dense layer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pass {
    /// Batch statistics and dropout by a seed of this step.
    Train { dropout: f32, seed: Seed },
    /// Running statistics, no dropout.
    Predict,
}

/// `dense(dropout(batch_norm(flatten(convolution(a outer delta)))))`, the dense layer without its bias.
///
/// Filters have no bias: before batch normalisation or a dense layer with a bias it would change nothing.
#[derive(Debug, Clone)]
pub(crate) struct RankOne {
    shape: Shape,
    blocks: Vec<Block>,
}

#[derive(Debug, Clone)]
struct Block {
    filters: usize,
    /// `[filters * height, inputs]` kernels, `[filters * positions, hidden]` weights, then with batch
    /// normalisation `[filters * positions]` scales and as many shifts.
    parameters: Vec<f32>,
    moments: Moments,
    running_mean: Vec<f32>,
    running_variance: Vec<f32>,
    buffers: Buffers,
}
#[derive(Debug, Clone, Default)]
struct Buffers {
    /// `[rows, filters * height]`: kernels times `a`.
    projections: Vec<f32>,
    /// `[rows, features]`: the convolution, normalised if asked for.
    normalised: Vec<f32>,
    /// `[features]`: one over the standard deviation of the batch.
    inverse_deviation: Vec<f32>,
    /// `[rows, features]` dropout factors.
    mask: Vec<f32>,
    /// `[rows, features]`: what the dense layer reads.
    read: Vec<f32>,
    /// `[rows, hidden]`: the block's part of the outputs.
    outputs: Vec<f32>,
}
/// Room for one block's backward pass.
#[derive(Debug, Default)]
struct Scratch {
    gradient: Vec<f32>,
    read: Vec<f32>,
    projections: Vec<f32>,
}

/// Everything training changes in a [`RankOne`], moments apart.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    blocks: Vec<[Vec<f32>; 3]>,
}

impl RankOne {
    /// Kernels with variance `1 / inputs`, weights with variance `2 / features` (He et al. 2015), scales 1, shifts 0.
    pub(crate) fn new(shape: Shape, seed: Seed) -> Self {
        let blocks = (0..shape.filters.div_ceil(BLOCK))
            .map(|number| {
                let filters = BLOCK.min(shape.filters - number * BLOCK);
                let features = filters * shape.positions();
                let mut rng = seed.index(number as u64).rng();
                let mut parameters = vec![0.0; filters * shape.height * shape.inputs];
                fill_uniform(&mut parameters, 1.0 / shape.inputs as f64, &mut rng);
                let mut weights = vec![0.0; features * shape.hidden];
                let all_features = shape.filters * shape.positions();
                fill_uniform(&mut weights, 2.0 / all_features as f64, &mut rng);
                parameters.append(&mut weights);
                let normalised = if shape.batch_norm { features } else { 0 };
                parameters.resize(parameters.len() + normalised, 1.0);
                parameters.resize(parameters.len() + normalised, 0.0);
                Block {
                    filters,
                    moments: Moments::new(parameters.len()),
                    parameters,
                    running_mean: vec![0.0; normalised],
                    running_variance: vec![1.0; normalised],
                    buffers: Buffers::default(),
                }
            })
            .collect();
        Self { shape, blocks }
    }
    /// Adds the dense layer's sums to `out` `[rows, hidden]`, for `a` `[rows, inputs]` and `delta` `[rows, classes]`.
    pub(crate) fn forward(&mut self, a: &[f32], delta: &[f32], pass: Pass, out: &mut [f32]) {
        let shape = &self.shape;
        self.blocks.par_iter_mut().enumerate().for_each(|(number, block)| {
            let pass = match pass {
                Pass::Train { dropout, seed } => {
                    Pass::Train { dropout, seed: seed.index(number as u64) }
                }
                Pass::Predict => Pass::Predict,
            };
            block.forward(shape, a, delta, pass);
        });
        for block in &self.blocks {
            kernels::axpy(out, 1.0, &block.buffers.outputs);
        }
    }
    /// One step of Adam, from the gradient of the loss with respect to the sums of the last training pass.
    pub(crate) fn step(&mut self, a: &[f32], delta: &[f32], gradient: &[f32], step: Step) {
        let shape = &self.shape;
        self.blocks.par_iter_mut().for_each_init(Scratch::default, |scratch, block| {
            block.backward(shape, a, delta, gradient, scratch);
            block.moments.apply(step, &mut block.parameters, &scratch.gradient);
        });
    }
    pub(crate) fn snapshot(&self) -> Snapshot {
        let of =
            |b: &Block| [b.parameters.clone(), b.running_mean.clone(), b.running_variance.clone()];
        Snapshot { blocks: self.blocks.iter().map(of).collect() }
    }
    pub(crate) fn restore(&mut self, snapshot: Snapshot) {
        for (block, [parameters, mean, variance]) in self.blocks.iter_mut().zip(snapshot.blocks) {
            block.parameters = parameters;
            block.running_mean = mean;
            block.running_variance = variance;
        }
    }
}

impl Block {
    fn split<'a>(
        &self,
        shape: &Shape,
        all: &'a [f32],
    ) -> (&'a [f32], &'a [f32], &'a [f32], &'a [f32]) {
        let features = self.filters * shape.positions();
        let (kernels, rest) = all.split_at(self.filters * shape.height * shape.inputs);
        let (weights, rest) = rest.split_at(features * shape.hidden);
        let (scales, shifts) = rest.split_at(rest.len() / 2);
        (kernels, weights, scales, shifts)
    }

    fn forward(&mut self, shape: &Shape, a: &[f32], delta: &[f32], pass: Pass) {
        let rows = a.len() / shape.inputs;
        let features = self.filters * shape.positions();
        let mut buffers = std::mem::take(&mut self.buffers);
        let (kernels, weights, scales, shifts) = self.split(shape, &self.parameters);
        convolve(shape, self.filters, kernels, a, delta, &mut buffers);
        buffers.read.resize(rows * features, 0.0);
        if shape.batch_norm {
            let mut statistics = (Vec::new(), Vec::new());
            let (mean, variance) = match pass {
                Pass::Train { .. } => {
                    statistics = column_statistics(&buffers.normalised, features);
                    (&statistics.0, &statistics.1)
                }
                Pass::Predict => (&self.running_mean, &self.running_variance),
            };
            buffers.inverse_deviation.clear();
            buffers
                .inverse_deviation
                .extend(variance.iter().map(|v| (v + VARIANCE_FLOOR).sqrt().recip()));
            normalise(mean, scales, shifts, &mut buffers);
            for (running, new) in
                [(&mut self.running_mean, statistics.0), (&mut self.running_variance, statistics.1)]
            {
                for (r, n) in running.iter_mut().zip(new) {
                    *r += MOMENTUM * (n - *r);
                }
            }
        } else {
            buffers.read.copy_from_slice(&buffers.normalised);
        }
        if let Pass::Train { dropout, seed } = pass {
            buffers.mask.resize(rows * features, 0.0);
            fill_mask(&mut buffers.mask, dropout, &mut seed.rng());
            multiply(&mut buffers.read, &buffers.mask);
        }
        buffers.outputs.resize(rows * shape.hidden, 0.0);
        kernels::matmul(
            Matrix::new(&buffers.read, rows, features),
            Matrix::new(weights, features, shape.hidden),
            &mut buffers.outputs,
            Write::Overwrite,
        );
        self.buffers = buffers;
    }

    /// Leaves the gradient of all parameters in `scratch.gradient`.
    fn backward(
        &self,
        shape: &Shape,
        a: &[f32],
        delta: &[f32],
        gradient: &[f32],
        scratch: &mut Scratch,
    ) {
        let rows = a.len() / shape.inputs;
        let features = self.filters * shape.positions();
        let (_, weights, scales, _) = self.split(shape, &self.parameters);
        let buffers = &self.buffers;
        scratch.gradient.resize(self.parameters.len(), 0.0);
        let (to_kernels, rest) =
            scratch.gradient.split_at_mut(self.filters * shape.height * shape.inputs);
        let (to_weights, to_norm) = rest.split_at_mut(features * shape.hidden);
        let gradient = Matrix::new(gradient, rows, shape.hidden);
        let read = Matrix::new(&buffers.read, rows, features);
        kernels::matmul(read.transposed(), gradient, to_weights, Write::Overwrite);
        scratch.read.resize(rows * features, 0.0);
        let weights = Matrix::new(weights, features, shape.hidden).transposed();
        kernels::matmul(gradient, weights, &mut scratch.read, Write::Overwrite);
        multiply(&mut scratch.read, &buffers.mask);
        if shape.batch_norm {
            let (to_scales, to_shifts) = to_norm.split_at_mut(features);
            denormalise(&mut scratch.read, scales, buffers, to_scales, to_shifts);
        }
        // Of the convolution with respect to the projections: a correlation with delta.
        let wide = self.filters * shape.height;
        scratch.projections.resize(rows * wide, 0.0);
        let positions = shape.positions();
        let each = scratch.projections.chunks_exact_mut(wide);
        let each = each.zip(scratch.read.chunks_exact(features));
        let each = each.zip(delta.chunks_exact(shape.classes));
        Arch::new().dispatch(
            #[inline(always)]
            || {
                for ((to, from), delta) in each {
                    let filters =
                        to.chunks_exact_mut(shape.height).zip(from.chunks_exact(positions));
                    for (to, from) in filters {
                        for (t, value) in to.iter_mut().enumerate() {
                            *value = short_dot(from, &delta[t..t + positions]);
                        }
                    }
                }
            },
        );
        let to_projections = Matrix::new(&scratch.projections, rows, wide).transposed();
        kernels::matmul(
            to_projections,
            Matrix::new(a, rows, shape.inputs),
            to_kernels,
            Write::Overwrite,
        );
    }
}

/// The convolution of all rows, into `buffers.normalised` `[rows, filters * positions]`.
fn convolve(
    shape: &Shape,
    filters: usize,
    kernels: &[f32],
    a: &[f32],
    delta: &[f32],
    buffers: &mut Buffers,
) {
    let (rows, wide, positions) =
        (a.len() / shape.inputs, filters * shape.height, shape.positions());
    buffers.projections.resize(rows * wide, 0.0);
    kernels::matmul(
        Matrix::new(a, rows, shape.inputs),
        Matrix::new(kernels, wide, shape.inputs).transposed(),
        &mut buffers.projections,
        Write::Overwrite,
    );
    buffers.normalised.resize(rows * filters * positions, 0.0);
    let each = buffers.normalised.chunks_exact_mut(filters * positions);
    let each = each.zip(buffers.projections.chunks_exact(wide));
    let each = each.zip(delta.chunks_exact(shape.classes));
    // What is dispatched must consume what it captures: only then is it compiled for the instruction set chosen.
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for ((out, projections), delta) in each {
                let filters = out.chunks_exact_mut(positions);
                for (out, projections) in filters.zip(projections.chunks_exact(shape.height)) {
                    out.fill(0.0);
                    for (t, &projection) in projections.iter().enumerate() {
                        for (o, &d) in out.iter_mut().zip(&delta[t..t + positions]) {
                            *o = projection.mul_add(d, *o);
                        }
                    }
                }
            }
        },
    );
}

/// Mean and variance of each of `width` columns.
fn column_statistics(values: &[f32], width: usize) -> (Vec<f32>, Vec<f32>) {
    let scale = (values.len() as f32 / width as f32).recip();
    let (mut mean, mut variance) = (vec![0.0; width], vec![0.0; width]);
    kernels::sum_rows(values, &mut mean);
    kernels::scale(&mut mean, scale);
    let rows = values.chunks_exact(width);
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for row in rows {
                for ((sum, &value), &mean) in variance.iter_mut().zip(row).zip(&mean) {
                    let off = value - mean;
                    *sum = off.mul_add(off, *sum);
                }
            }
        },
    );
    kernels::scale(&mut variance, scale);
    (mean, variance)
}

/// `normalised = (normalised - mean) inverse_deviation`, `read = scale normalised + shift`.
fn normalise(mean: &[f32], scales: &[f32], shifts: &[f32], buffers: &mut Buffers) {
    let width = mean.len();
    let rows = buffers.normalised.chunks_exact_mut(width).zip(buffers.read.chunks_exact_mut(width));
    let deviation = &buffers.inverse_deviation;
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for (normalised, read) in rows {
                let columns = mean.iter().zip(deviation).zip(scales.iter().zip(shifts));
                let values = normalised.iter_mut().zip(read);
                for ((value, read), ((mean, deviation), (scale, shift))) in values.zip(columns) {
                    *value = (*value - mean) * deviation;
                    *read = scale.mul_add(*value, *shift);
                }
            }
        },
    );
}

/// Turns the gradient of the normalised, scaled and shifted values into that of the values before, through the batch's
/// own mean and variance; writes those of scales and shifts.
///
/// # Source
/// Ioffe & Szegedy, *Batch Normalization*, ICML 2015 (arXiv:1502.03167), section 3.
fn denormalise(
    gradient: &mut [f32],
    scales: &[f32],
    buffers: &Buffers,
    to_scales: &mut [f32],
    to_shifts: &mut [f32],
) {
    let width = scales.len();
    let share = (gradient.len() as f32 / width as f32).recip();
    let (normalised, deviation) = (&buffers.normalised, &buffers.inverse_deviation);
    to_scales.fill(0.0);
    to_shifts.fill(0.0);
    let rows = gradient.chunks_exact(width).zip(normalised.chunks_exact(width));
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for (row, normalised) in rows {
                let sums = to_scales.iter_mut().zip(to_shifts.iter_mut());
                for ((&g, &x), (scale, shift)) in row.iter().zip(normalised).zip(sums) {
                    *scale = g.mul_add(x, *scale);
                    *shift += g;
                }
            }
        },
    );
    let rows = gradient.chunks_exact_mut(width).zip(normalised.chunks_exact(width));
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for (row, normalised) in rows {
                let sums = to_scales.iter().zip(to_shifts.iter()).zip(scales.iter().zip(deviation));
                for ((g, &x), ((to_scale, to_shift), (scale, deviation))) in
                    row.iter_mut().zip(normalised).zip(sums)
                {
                    let mean = share * x.mul_add(*to_scale, *to_shift);
                    *g = scale * deviation * (*g - mean);
                }
            }
        },
    );
}

/// Sum of products in eight lanes.
#[inline(always)]
fn short_dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 8];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    for (x, y) in a.iter().zip(b) {
        for i in 0..8 {
            lanes[i] = x[i].mul_add(y[i], lanes[i]);
        }
    }
    for (lane, (x, y)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *lane = x.mul_add(*y, *lane);
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (b + f)) + ((c + g) + (d + h))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adam::Adam;

    fn shape() -> Shape {
        Shape { inputs: 5, classes: 7, filters: 10, height: 3, hidden: 4, batch_norm: true }
    }
    fn numbers(n: usize, label: &str) -> Vec<f32> {
        let mut values = vec![0.0; n];
        fill_uniform(&mut values, 1.0, &mut Seed::root(11).child(label).rng());
        values
    }

    /// The slow way: form the outer product and slide the kernel over it.
    fn outer_product_convolution(
        shape: &Shape,
        filters: usize,
        kernels: &[f32],
        a: &[f32],
        delta: &[f32],
    ) -> Vec<f64> {
        let mut out = Vec::new();
        for (a, delta) in a.chunks_exact(shape.inputs).zip(delta.chunks_exact(shape.classes)) {
            let gradient = |i: usize, j: usize| f64::from(a[i]) * f64::from(delta[j]);
            for filter in 0..filters {
                for j in 0..shape.positions() {
                    let mut sum = 0.0;
                    for t in 0..shape.height {
                        for i in 0..shape.inputs {
                            let kernel = kernels[(filter * shape.height + t) * shape.inputs + i];
                            sum += f64::from(kernel) * gradient(i, j + t);
                        }
                    }
                    out.push(sum);
                }
            }
        }
        out
    }

    #[test]
    fn the_rank_one_form_is_the_convolution_over_the_outer_product() {
        for shape in [
            shape(),
            Shape { inputs: 129, classes: 100, height: 4, filters: 3, ..shape() },
            Shape { inputs: 2, classes: 2, height: 1, filters: 1, ..shape() },
            Shape { inputs: 3, classes: 4, height: 4, filters: 2, ..shape() },
        ] {
            let rows = 6;
            let (a, delta) =
                (numbers(rows * shape.inputs, "a"), numbers(rows * shape.classes, "d"));
            let kernels = numbers(shape.filters * shape.height * shape.inputs, "k");
            let mut buffers = Buffers::default();
            convolve(&shape, shape.filters, &kernels, &a, &delta, &mut buffers);
            let slow = outer_product_convolution(&shape, shape.filters, &kernels, &a, &delta);
            assert_eq!(buffers.normalised.len(), slow.len());
            let size = (slow.iter().map(|x| x * x).sum::<f64>() / slow.len() as f64).sqrt();
            for (fast, slow) in buffers.normalised.iter().zip(&slow) {
                assert!(
                    (f64::from(*fast) - slow).abs() < 1e-5 * size.max(slow.abs()),
                    "{fast} {slow}"
                );
            }
        }
    }

    /// By hand: one filter of height 2 over two inputs and three outputs. The gradient is
    /// `[[2, 4, 6], [1, 2, 3]]` (inputs by outputs); the kernel, inputs by height, is `[[1, 0], [0, 10]]`.
    /// At output 0: `1 * 2 + 10 * 2 = 22`; at output 1: `1 * 4 + 10 * 3 = 34`. Scrambled orientation gives others.
    #[test]
    fn kernels_span_all_inputs_of_neighbouring_outputs() {
        let shape =
            Shape { inputs: 2, classes: 3, filters: 1, height: 2, hidden: 1, batch_norm: false };
        let kernels = [1.0, 0.0, 0.0, 10.0]; // [height, inputs]
        let mut buffers = Buffers::default();
        convolve(&shape, 1, &kernels, &[2.0, 1.0], &[1.0, 2.0, 3.0], &mut buffers);
        assert_eq!(buffers.normalised, [22.0, 34.0]);
    }

    /// Central differences of `sum of outputs times fixed factors`, with dropout and batch statistics; f32 sums limit
    /// the agreement, so a step of 1e-2 and a tolerance of 2e-2 of the largest entry of its kind.
    #[test]
    fn gradients_agree_with_finite_differences() {
        for batch_norm in [true, false] {
            let shape = Shape { batch_norm, ..shape() };
            let rows = 9;
            let (a, delta) =
                (numbers(rows * shape.inputs, "a"), numbers(rows * shape.classes, "d"));
            let factors = numbers(rows * shape.hidden, "f");
            let pass = Pass::Train { dropout: 0.3, seed: Seed::root(5) };
            let mut branch = RankOne::new(shape, Seed::root(6));
            let loss = |branch: &mut RankOne| -> f64 {
                let mut out = vec![0.0; rows * shape.hidden];
                branch.forward(&a, &delta, pass, &mut out);
                out.iter().zip(&factors).map(|(o, f)| f64::from(*o) * f64::from(*f)).sum()
            };
            loss(&mut branch);
            let mut scratch = Scratch::default();
            for number in 0..branch.blocks.len() {
                loss(&mut branch);
                branch.blocks[number].backward(&shape, &a, &delta, &factors, &mut scratch);
                let gradient = scratch.gradient.clone();
                let largest = gradient.iter().fold(0.0_f32, |m, g| m.max(g.abs()));
                for index in (0..gradient.len()).step_by(3) {
                    let before = branch.blocks[number].parameters[index];
                    let mut at = |value: f32| {
                        branch.blocks[number].parameters[index] = value;
                        loss(&mut branch)
                    };
                    let slope = (at(before + 1e-2) - at(before - 1e-2)) / 2e-2;
                    at(before);
                    let off = (slope - f64::from(gradient[index])).abs();
                    assert!(
                        off < 2e-2 * f64::from(largest),
                        "{batch_norm} {index}: {slope} {}",
                        gradient[index]
                    );
                }
            }
        }
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let shape = Shape { filters: 40, ..shape() };
        let (a, delta) = (numbers(8 * shape.inputs, "a"), numbers(8 * shape.classes, "d"));
        let factors = numbers(8 * shape.hidden, "f");
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut branch = RankOne::new(shape, Seed::root(6));
                let mut adam = Adam::new(1e-2);
                let mut out = vec![0.0; 8 * shape.hidden];
                for step in 0..5 {
                    let pass = Pass::Train { dropout: 0.2, seed: Seed::root(step) };
                    branch.forward(&a, &delta, pass, &mut out);
                    branch.step(&a, &delta, &factors, adam.next_step());
                }
                out
            })
        };
        assert_eq!(run(1), run(3));
    }

    #[test]
    fn restoring_a_snapshot_undoes_training() {
        let shape = shape();
        let (a, delta) = (numbers(8 * shape.inputs, "a"), numbers(8 * shape.classes, "d"));
        let factors = numbers(8 * shape.hidden, "f");
        let mut branch = RankOne::new(shape, Seed::root(6));
        let mut adam = Adam::new(1e-2);
        let predict = |branch: &mut RankOne| {
            let mut out = vec![0.0; 8 * shape.hidden];
            branch.forward(&a, &delta, Pass::Predict, &mut out);
            out
        };
        let (before, snapshot) = (predict(&mut branch), branch.snapshot());
        let mut out = vec![0.0; 8 * shape.hidden];
        branch.forward(&a, &delta, Pass::Train { dropout: 0.2, seed: Seed::root(1) }, &mut out);
        branch.step(&a, &delta, &factors, adam.next_step());
        assert_ne!(predict(&mut branch), before);
        branch.restore(snapshot);
        assert_eq!(predict(&mut branch), before);
    }

    /// By hand for 129 inputs, 100 outputs, height 4: `97 * 129 * 4 = 50,052` multiplications a filter over the outer
    /// product, `4 * (129 + 97) = 904` in the rank-one form: 55.4 times less. Run with `--ignored` to see what that is
    /// worth in time against a convolution by matrix product over unfolded outer products.
    #[test]
    #[ignore = "measures"]
    #[expect(clippy::print_stderr, reason = "a measurement for people")]
    fn time_of_the_rank_one_form_against_unfolded_outer_products() {
        let shape = Shape {
            inputs: 129,
            classes: 100,
            filters: 1000,
            height: 4,
            hidden: 128,
            batch_norm: true,
        };
        let (rows, positions, window) = (16, shape.positions(), shape.height * shape.inputs);
        let (a, delta) = (numbers(rows * shape.inputs, "a"), numbers(rows * shape.classes, "d"));
        let kernels = numbers(shape.filters * window, "k");
        let mut buffers = Buffers::default();
        convolve(&shape, shape.filters, &kernels, &a, &delta, &mut buffers);
        let start = std::time::Instant::now();
        convolve(&shape, shape.filters, &kernels, &a, &delta, &mut buffers);
        let fast = start.elapsed().as_secs_f64() / rows as f64;
        let mut unfolded = vec![0.0; positions * window];
        let mut out = vec![0.0; shape.filters * positions];
        let start = std::time::Instant::now();
        for (row, (a, delta)) in
            a.chunks_exact(shape.inputs).zip(delta.chunks_exact(shape.classes)).enumerate()
        {
            for (j, window) in unfolded.chunks_exact_mut(window).enumerate() {
                for (t, values) in window.chunks_exact_mut(shape.inputs).enumerate() {
                    for (value, a) in values.iter_mut().zip(a) {
                        *value = a * delta[j + t];
                    }
                }
            }
            let kernels = Matrix::new(&kernels, shape.filters, window);
            let unfolded = Matrix::new(&unfolded, positions, window).transposed();
            kernels::matmul(kernels, unfolded, &mut out, Write::Overwrite);
            let both = buffers.normalised[row * out.len()..(row + 1) * out.len()].iter().zip(&out);
            assert!(both.clone().all(|(x, y)| (x - y).abs() < 1e-2), "the same numbers");
        }
        let slow = start.elapsed().as_secs_f64() / rows as f64;
        eprintln!(
            "a record: rank-one {:.0} us, unfolded {:.0} us, {:.0} times",
            fast * 1e6,
            slow * 1e6,
            slow / fast
        );
    }
}
