//! Two convolutions in a row against plain loops in double precision, for windows, paddings, groups, channels and batches on both
//! sides of every choice among the ways to compute them: losses, norms of single records, clipped sums.
use dosimeter_model::kernels::Write;
use dosimeter_model::{
    Activation, Convolution, Examples, Graph, Layer, Loss, Pool, Reshape, Rows, Targets, Window,
    Workspace, zoo,
};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::num::NonZero;

fn uniform(rng: &mut ChaCha8Rng) -> f32 {
    (rng.next_u32() >> 8) as f32 / (1 << 23) as f32 - 1.0
}
fn one_of<T: Copy>(rng: &mut ChaCha8Rng, from: &[T]) -> T {
    from[rng.next_u32() as usize % from.len()]
}

/// Calls `what` with every weight, number read and number written that belong together.
fn for_each_product(
    c: &Convolution,
    [h, w]: [usize; 2],
    [oh, ow]: [usize; 2],
    mut what: impl FnMut(usize, usize, usize),
) {
    let (channels, outputs, Window { kernel: [kh, kw], stride, dilation, before, .. }) =
        (c.channels / c.groups, c.outputs / c.groups, c.window);
    for (o, i) in (0..c.outputs).flat_map(|o| (0..channels).map(move |i| (o, i))) {
        let channel = o / outputs * channels + i;
        for (ky, kx) in (0..kh).flat_map(|ky| (0..kw).map(move |kx| (ky, kx))) {
            let weight = ((o * channels + i) * kh + ky) * kw + kx;
            for y in 0..oh {
                let Some(iy) = (y * stride[0] + ky * dilation[0]).checked_sub(before[0]) else {
                    continue;
                };
                for x in 0..ow {
                    let ix = (x * stride[1] + kx * dilation[1]).checked_sub(before[1]);
                    if let Some(ix) = ix.filter(|ix| *ix < w && iy < h) {
                        what(weight, (channel * h + iy) * w + ix, (o * oh + y) * ow + x);
                    }
                }
            }
        }
    }
}

struct Oracle<'a> {
    layers: [&'a Convolution; 2],
    /// Rows and columns of the input, between the two, and of the output.
    sizes: [[usize; 2]; 3],
    parameters: [&'a [f64]; 2],
}
impl Oracle<'_> {
    fn forward(&self, layer: usize, input: &[f64]) -> Vec<f64> {
        let (c, [h, w]) = (self.layers[layer], self.sizes[layer + 1]);
        let p = self.parameters[layer];
        let mut out = vec![0.0; c.outputs * h * w];
        if c.bias {
            for (o, row) in out.chunks_exact_mut(h * w).enumerate() {
                row.fill(p[c.weight_count() + o]);
            }
        }
        for_each_product(c, self.sizes[layer], [h, w], |k, i, o| out[o] += p[k] * input[i]);
        out
    }
    fn parameter_gradient(&self, layer: usize, input: &[f64], gradient: &[f64]) -> Vec<f64> {
        let (c, size) = (self.layers[layer], self.sizes[layer + 1]);
        let mut out = vec![0.0; c.weight_count()];
        for_each_product(c, self.sizes[layer], size, |k, i, o| out[k] += gradient[o] * input[i]);
        if c.bias {
            out.extend(gradient.chunks_exact(size[0] * size[1]).map(|row| row.iter().sum::<f64>()));
        }
        out
    }
    /// Loss and gradient of one record.
    fn gradient(&self, input: &[f32], class: u32) -> (f64, Vec<f64>) {
        let input: Vec<f64> = input.iter().map(|x| f64::from(*x)).collect();
        let between: Vec<f64> = self.forward(0, &input).iter().map(|x| x.tanh()).collect();
        let mut gradient = self.forward(1, &between);
        let largest = gradient.iter().fold(f64::MIN, |a, b| a.max(*b));
        let sum: f64 = gradient.iter().map(|x| (x - largest).exp()).sum();
        let loss = largest + sum.ln() - gradient[class as usize];
        gradient.iter_mut().for_each(|x| *x = (*x - largest).exp() / sum);
        gradient[class as usize] -= 1.0;
        let mut back = vec![0.0; between.len()];
        let p = self.parameters[1];
        for_each_product(self.layers[1], self.sizes[1], self.sizes[2], |k, i, o| {
            back[i] += p[k] * gradient[o];
        });
        back.iter_mut().zip(&between).for_each(|(g, y)| *g *= 1.0 - y * y);
        let mut all = self.parameter_gradient(0, &input, &back);
        all.extend(self.parameter_gradient(1, &between, &gradient));
        (loss, all)
    }
}

fn convolution(channels: usize, rng: &mut ChaCha8Rng) -> Convolution {
    let kernel = one_of(rng, &[[1; 2], [3; 2], [3; 2], [3; 2], [5; 2], [2, 3], [1, 7]]);
    let stride = one_of(rng, &[[1; 2], [1; 2], [1; 2], [2; 2], [1, 2]]);
    let dilation = one_of(rng, &[[1; 2], [1; 2], [1; 2], [2, 1], [3, 6]]);
    // Wide ones too, so that a window may hang over a small plane with whole columns.
    let most = one_of(rng, &[3, 3, 3, 8]);
    let mut padding = || [(); 2].map(|()| rng.next_u32() as usize % most);
    let window = Window { kernel, stride, dilation, before: padding(), after: padding() };
    let groups = one_of(rng, &[1, 1, 1, 2, channels]);
    let groups = if channels.is_multiple_of(groups) { groups } else { 1 };
    let outputs = groups * one_of(rng, &[1, 7, 8, 9, 16, 17]).min(34 / groups).max(1);
    Convolution { channels, outputs, groups, window, bias: rng.next_u32().is_multiple_of(2) }
}

#[test]
fn convolutions_give_the_numbers_of_their_definition() {
    let mut rng = ChaCha8Rng::seed_from_u64(20_261_201);
    let mut checked = 0;
    while checked < 200 {
        let channels = one_of(&mut rng, &[1, 3, 7, 8, 9, 16, 18]);
        let size = [(); 2].map(|()| 1 + rng.next_u32() as usize % 14);
        let first = convolution(channels, &mut rng);
        let second = convolution(first.outputs, &mut rng);
        let records = one_of(&mut rng, &[1, 2, 5, 16, 33]);
        let chain = [
            Layer::Convolution(first),
            Layer::Activation(Activation::Tanh),
            Layer::Convolution(second),
        ];
        let Ok(graph) = Graph::chain(&[channels, size[0], size[1]], chain.to_vec()) else {
            continue; // The window does not fit.
        };
        let shape = |value: &[usize]| [value[1], value[2]];
        let between = chain[0].output_shape_of(&[&[channels, size[0], size[1]]]).unwrap();
        let output = chain[2].output_shape_of(&[&between]).unwrap();
        let outputs = graph.outputs();
        let flat = Layer::Reshape(Reshape { shape: vec![outputs] });
        let layers = chain.into_iter().chain([flat]).collect();
        let mut graph = Graph::chain(&[channels, size[0], size[1]], layers).unwrap();
        let scale = [first, second].map(|c| 1.5 / ((c.weight_count() / c.outputs) as f32).sqrt());
        for (node, scale) in [(0, scale[0]), (2, scale[1])] {
            let range = graph.parameters_of(node);
            for p in &mut graph.parameters_mut()[range] {
                *p = scale * uniform(&mut rng);
            }
        }
        let values: Vec<f32> = (0..records * graph.inputs()).map(|_| uniform(&mut rng)).collect();
        let classes: Vec<u32> = (0..records).map(|_| rng.next_u32() % outputs as u32).collect();
        let parameters: Vec<f64> = graph.parameters().iter().map(|p| f64::from(*p)).collect();
        let (of_first, of_second) = parameters.split_at(graph.parameters_of(0).end);
        let oracle = Oracle {
            layers: [&first, &second],
            sizes: [size, shape(&between), shape(&output)],
            parameters: [of_first, of_second],
        };
        let what = format!("{size:?}, {records} records, {first:?}, {second:?}");
        let rights: Vec<(f64, Vec<f64>)> = values
            .chunks_exact(graph.inputs())
            .zip(&classes)
            .map(|(input, class)| oracle.gradient(input, *class))
            .collect();
        let norms: Vec<f64> =
            rights.iter().map(|(_, g)| g.iter().map(|x| x * x).sum::<f64>().sqrt()).collect();
        // About half of the records are clipped.
        let mut sorted = norms.clone();
        sorted.sort_by(f64::total_cmp);
        let clipping_norm = 0.999 * sorted[records / 2];
        if clipping_norm == 0.0 {
            continue; // One output, which is always right, or nothing but padding.
        }
        let mut right = vec![0.0; parameters.len()];
        for ((_, gradient), norm) in rights.iter().zip(&norms) {
            for (sum, x) in right.iter_mut().zip(gradient) {
                *sum += x * (clipping_norm / norm).min(1.0);
            }
        }
        let examples = Examples {
            rows: Rows::Dense { width: graph.inputs(), values: &values },
            targets: Targets::Classes(&classes),
            loss: Loss::CrossEntropy,
        };
        let mut workspace = Workspace::with_threads(NonZero::new(2).unwrap());
        let mut sum = vec![0.0; parameters.len()];
        graph
            .clipped_gradient_sum(
                &examples,
                clipping_norm,
                &mut workspace,
                &mut sum,
                Write::Overwrite,
            )
            .unwrap();
        for (got, (loss, _)) in workspace.losses().iter().zip(&rights) {
            assert!((f64::from(*got) - loss).abs() < 1e-5 * loss.max(1.0), "{got} {loss}: {what}");
        }
        for (got, right) in workspace.gradient_norms().iter().zip(&norms) {
            assert!((got - right).abs() < 1e-5 * right, "norm {got} {right}: {what}");
        }
        let size = (right.iter().map(|x| x * x).sum::<f64>() / right.len() as f64).sqrt();
        let off = sum.iter().zip(&right).map(|(got, right)| (f64::from(*got) - right).powi(2));
        let off = (off.sum::<f64>() / right.len() as f64).sqrt();
        assert!(off < 1e-5 * size, "sum off by {off} of {size}: {what}");
        checked += 1;
    }
}

/// Records of 32 x 32 pixels pass by 32: 70 of them are three blocks, shared by up to three threads.
#[test]
fn threads_give_the_bits_of_one() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let graph = zoo::cnn(&[3, 32, 32], 10, Activation::Tanh, Pool::Average, &mut rng).unwrap();
    let (records, width) = (70, graph.inputs());
    let values: Vec<f32> = (0..records * width).map(|_| uniform(&mut rng)).collect();
    let classes: Vec<u32> = (0..records as u32).map(|i| i % 10).collect();
    let examples = Examples {
        rows: Rows::Dense { width, values: &values },
        targets: Targets::Classes(&classes),
        loss: Loss::CrossEntropy,
    };
    let outputs = |threads| {
        let mut workspace = Workspace::with_threads(NonZero::new(threads).unwrap());
        let outputs = graph.forward(&examples.rows, &mut workspace).unwrap().to_vec();
        (outputs, workspace.last_layer_inputs().to_vec())
    };
    assert_eq!(outputs(1).0.len(), 10 * records);
    for threads in [2, 3, 8] {
        assert!(outputs(threads) == outputs(1), "{threads} threads");
    }
    for clipping_norm in [None, Some(0.5)] {
        let sum = |threads| {
            let mut workspace = Workspace::with_threads(NonZero::new(threads).unwrap());
            let mut sum = vec![1.0; graph.parameters().len()];
            let write = Write::Accumulate;
            let mut parts = graph
                .gradient_in_parts(&examples, clipping_norm, &mut workspace, &mut sum, write)
                .unwrap();
            let (mut all, mut part) = (Vec::new(), vec![0.0; parts.longest()]);
            loop {
                let length = parts.next_part(&mut part);
                if length == 0 {
                    break;
                }
                all.extend(part[..length].iter().map(|x| x.to_bits()));
            }
            let norms = workspace.gradient_norms().iter().map(|n| n.to_bits()).collect::<Vec<_>>();
            let losses = workspace.losses().iter().map(|l| l.to_bits()).collect::<Vec<_>>();
            assert_eq!(losses.len(), records);
            (all, norms, losses, workspace.clipped_records())
        };
        let alone = sum(1);
        assert_eq!(alone.0.len(), graph.parameters().len());
        for threads in [2, 3, 8] {
            assert!(sum(threads) == alone, "{threads} threads");
        }
    }
}
