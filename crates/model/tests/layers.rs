//! Every layer against a plain-loop oracle in double precision: outputs, gradients of single records (by differences of
//! the oracle's own loss), norms and clipped sums.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![expect(clippy::suboptimal_flops, reason = "an oracle is written as in the books")]
#[path = "layers/graphs.rs"]
mod graphs;
#[path = "layers/without_parameters.rs"]
mod without_parameters;

use dosimeter_model::kernels::Write;
use dosimeter_model::layers::LAYERS;
use dosimeter_model::{
    Activation, Affine, BatchNormalization, Convolution, Error, Examples, Graph, GraphConvolutions,
    Layer, Linear, Loss, Normalization, Pool, Pooling, Reshape, Rows, Targets, Value, Window,
    Workspace,
};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

fn uniform(rng: &mut ChaCha8Rng) -> f32 {
    (rng.next_u32() >> 8) as f32 / (1 << 23) as f32 - 1.0
}

/// One record's numbers.
struct Tensor {
    shape: Vec<usize>,
    values: Vec<f64>,
}
impl Tensor {
    /// Channels, height, width.
    fn plane(&self) -> (usize, usize, usize) {
        match self.shape[..] {
            [c, h, w] => (c, h, w),
            [c, w] => (c, 1, w),
            _ => panic!("{:?}", self.shape),
        }
    }
}

/// Every number that a window covers, `None` for padding.
fn covered(
    window: Window,
    input: &Tensor,
    channel: usize,
    y: usize,
    x: usize,
) -> Vec<Option<usize>> {
    let (_, height, width) = input.plane();
    let mut found = vec![];
    for ky in 0..window.kernel[0] {
        for kx in 0..window.kernel[1] {
            let at = |o: usize, k: usize, axis: usize, size: usize| {
                let at = (o * window.stride[axis] + k * window.dilation[axis]) as i64
                    - window.before[axis] as i64;
                (at >= 0 && (at as usize) < size).then_some(at as usize)
            };
            let (row, column) = (at(y, ky, 0, height), at(x, kx, 1, width));
            found.push(row.zip(column).map(|(r, c)| (channel * height + r) * width + c));
        }
    }
    found
}

/// What a layer gives, by its definition.
fn oracle(layer: &Layer, p: &[f64], inputs: &[&Tensor], shape: &[usize]) -> Vec<f64> {
    let of_one: Vec<_> = inputs.iter().map(|t| (&t.shape[..], &t.values[..])).collect();
    if let Some(values) = without_parameters::oracle(layer, &of_one, shape) {
        return values;
    }
    let input = inputs[0];
    let x = &input.values;
    match layer {
        Layer::Linear(l) => (0..l.outputs)
            .map(|o| {
                let sum: f64 = (0..l.inputs).map(|i| x[i] * p[i * l.outputs + o]).sum();
                sum + p[l.inputs * l.outputs + o]
            })
            .collect(),
        Layer::Activation(Activation::Tanh) => x.iter().map(|x| x.tanh()).collect(),
        Layer::Activation(Activation::Sigmoid) => {
            x.iter().map(|x| 1.0 / (1.0 + (-x).exp())).collect()
        }
        Layer::Activation(_) => x.iter().map(|x| x.max(0.0)).collect(),
        Layer::Reshape(_) => x.clone(),
        Layer::Convolution(c) => {
            let output = Tensor { shape: shape.to_vec(), values: vec![] };
            let (_, height, width) = output.plane();
            let (per_group, outputs) = (c.channels / c.groups, c.outputs / c.groups);
            let taps = c.window.kernel[0] * c.window.kernel[1];
            let area = x.len() / c.channels;
            let mut out = vec![0.0; c.outputs * height * width];
            for (place, y, xx) in
                (0..height * width).map(|place| (place, place / width, place % width))
            {
                let covered = covered(c.window, input, 0, y, xx);
                for o in 0..c.outputs {
                    let mut sum = if c.bias { p[c.outputs * per_group * taps + o] } else { 0.0 };
                    for i in 0..per_group {
                        let channel = o / outputs * per_group + i;
                        for (k, at) in covered.iter().enumerate() {
                            if let Some(at) = at {
                                sum += x[channel * area + at] * p[(o * per_group + i) * taps + k];
                            }
                        }
                    }
                    out[o * height * width + place] = sum;
                }
            }
            out
        }
        Layer::Pooling(pooling) => {
            let output = Tensor { shape: shape.to_vec(), values: vec![] };
            let (channels, height, width) = output.plane();
            let mut out = vec![];
            for c in 0..channels {
                for y in 0..height {
                    for xx in 0..width {
                        let all = covered(pooling.window, input, c, y, xx);
                        let inside: Vec<f64> = all.iter().flatten().map(|at| x[*at]).collect();
                        out.push(match pooling.pool {
                            Pool::Max => inside.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                            Pool::Average => inside.iter().sum::<f64>() / inside.len() as f64,
                            _ => inside.iter().sum::<f64>() / all.len() as f64,
                        });
                    }
                }
            }
            out
        }
        Layer::Normalization(n) => {
            let group = x.len() / n.groups;
            let scales = p.len() / 2;
            (0..x.len())
                .map(|i| {
                    let of_group = &x[i / group * group..(i / group + 1) * group];
                    let mean = of_group.iter().sum::<f64>() / group as f64;
                    let variance =
                        of_group.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / group as f64;
                    let s = match n.affine {
                        Affine::Channel => i / (x.len() / scales),
                        _ => i % group,
                    };
                    (x[i] - mean) / (variance + f64::from(n.stabilizer)).sqrt() * p[s]
                        + p[scales + s]
                })
                .collect()
        }
        Layer::BatchNormalization(n) => {
            let area = x.len() / n.channels;
            (0..x.len())
                .map(|i| {
                    let [scale, shift, mean, variance] =
                        [0, 1, 2, 3].map(|k| p[k * n.channels + i / area]);
                    (x[i] - mean) / (variance + f64::from(n.stabilizer)).sqrt() * scale + shift
                })
                .collect()
        }
        Layer::GraphConvolutions(layer) => graphs::oracle(layer, p, x),
        other => panic!("no oracle for {other:?}"),
    }
}

/// The graph's output for one record.
fn oracle_forward(graph: &Graph, parameters: &[f64], input: &[f32]) -> Vec<f64> {
    let values = input.iter().map(|x| f64::from(*x)).collect();
    let mut tensors = vec![Tensor { shape: graph.shape(Value::INPUT).to_vec(), values }];
    for (i, node) in graph.nodes().iter().enumerate() {
        let inputs: Vec<&Tensor> = node.inputs.iter().map(|v| &tensors[v.position()]).collect();
        let shape =
            node.layer.output_shape_of(&inputs.iter().map(|t| &t.shape[..]).collect::<Vec<_>>());
        let shape = shape.unwrap();
        let values = oracle(&node.layer, &parameters[graph.parameters_of(i)], &inputs, &shape);
        assert_eq!(values.len(), shape.iter().product::<usize>());
        tensors.push(Tensor { shape, values });
    }
    tensors.pop().unwrap().values
}

/// Half the squared distance to a one-hot vector.
fn oracle_loss(graph: &Graph, parameters: &[f64], input: &[f32], class: u32) -> f64 {
    let outputs = oracle_forward(graph, parameters, input);
    let target = |i: usize| f64::from(u8::from(i == class as usize));
    outputs.iter().enumerate().map(|(i, z)| 0.5 * (z - target(i)).powi(2)).sum()
}

/// Parameter gradient of one record's loss: central differences, error about 1e-9.
fn oracle_gradient(graph: &Graph, parameters: &[f64], input: &[f32], class: u32) -> Vec<f64> {
    let mut p = parameters.to_vec();
    (0..p.len())
        .map(|i| {
            let mut at = |x: f64| {
                p[i] = x;
                oracle_loss(graph, &p, input, class)
            };
            let (h, x) = (1e-5, parameters[i]);
            let slope = (at(x + h) - at(x - h)) / (2.0 * h);
            p[i] = x;
            slope
        })
        .collect()
}

fn convolution(channels: usize, outputs: usize, window: Window) -> Convolution {
    Convolution { channels, outputs, groups: 1, window, bias: true }
}
fn pooling(pool: Pool, window: Window) -> Layer {
    Layer::Pooling(Pooling { pool, window })
}

/// A graph whose layers under test have parameters before and behind them, so that their input gradients matter too.
struct Case {
    name: &'static str,
    graph: Graph,
}

/// `layers`, flattened, then a linear layer with three outputs.
fn case(name: &'static str, input: &[usize], layers: Vec<Layer>) -> Case {
    let mut graph = Graph::chain(input, layers).unwrap();
    let width = graph.outputs();
    let last = graph.output();
    let flat = graph.add(Layer::Reshape(Reshape { shape: vec![width] }), &[last]).unwrap();
    graph.add(Layer::Linear(Linear { inputs: width, outputs: 3 }), &[flat]).unwrap();
    Case { name, graph }
}

fn cases() -> Vec<Case> {
    let tanh = Layer::Activation(Activation::Tanh);
    let same = Window::same(3);
    let odd =
        Window { kernel: [3, 2], stride: [2, 3], dilation: [2, 1], before: [1, 0], after: [2, 1] };
    let conv = |c: Convolution| Layer::Convolution(c);
    let normalization = |channels, groups, affine| {
        Layer::Normalization(Normalization { channels, groups, affine, stabilizer: 1e-5 })
    };
    let first = conv(convolution(2, 4, same));
    let wide = conv(convolution(2, 8, same));
    let mut cases = vec![
        case("same", &[2, 5, 4], vec![first.clone(), tanh.clone(), conv(convolution(4, 3, same))]),
        // Few outputs and many weights: norms by Gram matrices.
        case(
            "gram",
            &[2, 6, 6],
            vec![
                first.clone(),
                tanh.clone(),
                conv(convolution(4, 16, Window { stride: [4, 4], ..same })),
            ],
        ),
        // Enough channels and tiles for minimal filtering, of all records together and of one.
        case(
            "tiles of several records",
            &[2, 7, 6],
            vec![wide, tanh.clone(), conv(convolution(8, 9, same))],
        ),
        case(
            "tiles of one record",
            &[1, 13, 14],
            vec![
                conv(convolution(1, 8, Window::tiles(1))),
                tanh.clone(),
                conv(convolution(8, 8, Window { before: [2, 0], after: [1, 3], ..same })),
                pooling(
                    Pool::Average,
                    Window { kernel: [7; 2], stride: [7; 2], ..Window::tiles(1) },
                ),
            ],
        ),
        case(
            "odd window",
            &[2, 7, 8],
            vec![first.clone(), conv(Convolution { bias: false, ..convolution(4, 2, odd) })],
        ),
        case(
            "grouped",
            &[2, 4, 4],
            vec![first.clone(), conv(Convolution { groups: 2, ..convolution(4, 6, same) })],
        ),
        case(
            "depthwise and pointwise",
            &[2, 4, 5],
            vec![
                first.clone(),
                conv(Convolution { groups: 4, ..convolution(4, 4, same) }),
                conv(convolution(4, 3, Window::tiles(1))),
            ],
        ),
        case(
            "depthwise, odd window",
            &[2, 7, 9],
            vec![first.clone(), conv(Convolution { groups: 4, ..convolution(4, 4, odd) })],
        ),
        case(
            "one dimension",
            &[1, 12],
            vec![
                conv(convolution(
                    1,
                    4,
                    Window { kernel: [1, 4], stride: [1, 4], ..Window::tiles(1) },
                )),
                pooling(Pool::Max, Window { kernel: [1, 2], stride: [1, 2], ..Window::tiles(1) }),
            ],
        ),
        case(
            "max pooling",
            &[2, 6, 5],
            vec![first.clone(), pooling(Pool::Max, Window { stride: [2, 2], ..Window::same(3) })],
        ),
        case(
            "average pooling",
            &[2, 6, 5],
            vec![
                first.clone(),
                pooling(Pool::Average, Window { stride: [2, 1], ..Window::same(3) }),
            ],
        ),
        case(
            "average pooling over padding",
            &[2, 4, 4],
            vec![first.clone(), pooling(Pool::AverageWithPadding, odd)],
        ),
        case("group", &[2, 3, 4], vec![first.clone(), normalization(4, 2, Affine::Channel)]),
        case("instance", &[2, 3, 4], vec![first.clone(), normalization(4, 4, Affine::Channel)]),
        case(
            "layer",
            &[2, 3, 4],
            vec![first.clone(), normalization(4, 1, Affine::Element { numbers: 48 }), tanh.clone()],
        ),
        case(
            "layer of each channel",
            &[2, 3, 4],
            vec![first.clone(), normalization(4, 4, Affine::Element { numbers: 12 }), tanh.clone()],
        ),
        case("two functions", &[2, 3, 3], vec![first, tanh.clone(), tanh]),
    ];
    let others = without_parameters::cases().into_iter();
    cases.extend(others.map(|(name, graph)| Case { name, graph }));
    cases.extend(graphs::layers().into_iter().map(|(name, layer)| {
        let features = layer.features;
        case(name, &[features], vec![Layer::GraphConvolutions(layer)])
    }));
    cases
}

/// Records of a case, each as the oracle reads it.
fn records(graph: &Graph, count: usize, rng: &mut ChaCha8Rng) -> Vec<Vec<f32>> {
    let width = graph.inputs();
    let mut record = |i| {
        if graph.reads_graphs() {
            graphs::record(i, width, &mut || uniform(rng))
        } else {
            (0..width).map(|_| uniform(rng)).collect()
        }
    };
    (0..count).map(&mut record).collect()
}
/// The same records as a network reads them.
struct Gathered {
    width: usize,
    values: Vec<f32>,
    graphs: Option<graphs::Lists>,
}
impl Gathered {
    fn new(graph: &Graph, records: &[Vec<f32>]) -> Self {
        let graphs = graph.reads_graphs().then(|| graphs::Lists::new(records));
        Self { width: graph.inputs(), values: records.concat(), graphs }
    }
    fn rows(&self) -> Rows<'_> {
        match &self.graphs {
            Some(lists) => Rows::Graphs(lists.rows(self.width)),
            None => Rows::Dense { width: self.width, values: &self.values },
        }
    }
}

/// Parameters away from 0.
fn randomize(graph: &mut Graph, rng: &mut ChaCha8Rng) -> Vec<f64> {
    for p in graph.parameters_mut() {
        *p = 0.7 * uniform(rng) + 0.05;
    }
    graph.parameters().iter().map(|p| f64::from(*p)).collect()
}

#[test]
fn every_layer_is_tested() {
    let tested: Vec<&str> = cases()
        .iter()
        .flat_map(|c| c.graph.nodes().iter().map(|n| n.layer.name()).collect::<Vec<_>>())
        .collect();
    for name in LAYERS {
        let at_inference = *name == "batch-normalization"; // a test of its own
        assert!(at_inference || tested.contains(name), "{name} has no case");
    }
}

#[test]
fn outputs_gradients_norms_and_clipped_sums_equal_the_oracle() {
    for Case { name, mut graph } in cases() {
        let mut rng = ChaCha8Rng::from_seed([3; 32]);
        let parameters = randomize(&mut graph, &mut rng);
        let records = records(&graph, 5, &mut rng);
        let classes: Vec<u32> = (0..5).map(|i| i % 3).collect();
        let gathered = Gathered::new(&graph, &records);
        let rows = gathered.rows();
        let mut workspace = Workspace::new();
        let outputs = graph.forward(&rows, &mut workspace).unwrap().to_vec();
        for (row, got) in records.iter().zip(outputs.chunks_exact(3)) {
            for (right, got) in oracle_forward(&graph, &parameters, row).iter().zip(got) {
                assert!(
                    (right - f64::from(*got)).abs() < 2e-5 * right.abs().max(1.0),
                    "{name}: {got}, not {right}"
                );
            }
        }
        let gradients: Vec<Vec<f64>> = records
            .iter()
            .zip(&classes)
            .map(|(row, class)| oracle_gradient(&graph, &parameters, row, *class))
            .collect();
        let norms: Vec<f64> =
            gradients.iter().map(|g| g.iter().map(|x| x * x).sum::<f64>().sqrt()).collect();
        let mut sorted = norms.clone();
        sorted.sort_by(f64::total_cmp);
        let examples =
            Examples { rows, targets: Targets::Classes(&classes), loss: Loss::SquaredError };
        // Without clipping, and with a norm that clips about half of the records.
        for clipping_norm in [None, Some(sorted[2] * 1.000_1)] {
            let mut right = vec![0.0; parameters.len()];
            for (gradient, norm) in gradients.iter().zip(&norms) {
                let factor = clipping_norm.map_or(1.0, |c| (c / norm).min(1.0));
                for (r, g) in right.iter_mut().zip(gradient) {
                    *r += factor * g;
                }
            }
            let mut out = vec![9.0; parameters.len()];
            let write = Write::Overwrite;
            match clipping_norm {
                None => graph.gradient_sum(&examples, &mut workspace, &mut out, write),
                Some(c) => {
                    graph.clipped_gradient_sum(&examples, c, &mut workspace, &mut out, write)
                }
            }
            .unwrap();
            let scale = right.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
            for (i, (got, right)) in out.iter().zip(&right).enumerate() {
                assert!(
                    (f64::from(*got) - right).abs() < 2e-5 * scale,
                    "{name} {clipping_norm:?}: parameter {i}: {got}, not {right}"
                );
            }
            if clipping_norm.is_some() {
                for (got, right) in workspace.gradient_norms().iter().zip(&norms) {
                    assert!((got - right).abs() < 2e-5 * right, "{name}: norm {got}, not {right}");
                }
                assert_eq!(workspace.clipped_records(), 2, "{name}");
            }
            // The same sum in parts.
            let (mut other, mut sum) = (Workspace::new(), vec![0.0; out.len()]);
            let mut parts = graph
                .gradient_in_parts(&examples, clipping_norm, &mut other, &mut sum, write)
                .unwrap();
            let (mut part, mut joined) = (vec![f32::NAN; parts.longest()], vec![]);
            while let length @ 1.. = parts.next_part(&mut part) {
                joined.extend_from_slice(&part[..length]);
            }
            assert!(joined.iter().zip(&out).all(|(a, b)| a.to_bits() == b.to_bits()), "{name}");
            assert_eq!(joined.len(), out.len());
        }
    }
}

/// A record with a number that is not finite counts as zero, whatever the layers.
#[test]
fn records_that_are_not_finite_count_as_zero_in_every_layer() {
    for Case { name, mut graph } in cases() {
        let mut rng = ChaCha8Rng::from_seed([4; 32]);
        randomize(&mut graph, &mut rng);
        let mut records = records(&graph, 3, &mut rng);
        let (mut workspace, mut dirty) = (Workspace::new(), vec![0.0; graph.parameters().len()]);
        let mut clean = dirty.clone();
        if graph.reads_graphs() {
            // A feature that the second graph alone has, and whose weights are no numbers.
            let last = graph.inputs() - 1;
            graphs::set_feature(&mut records, last, 1);
            let start = graph.parameters_of(0).start + last * 3;
            graph.parameters_mut()[start..start + 3].fill(f32::NAN);
        } else {
            records[1].fill(f32::NAN);
        }
        let sum = |records: &[Vec<f32>],
                   classes: &[u32],
                   workspace: &mut Workspace,
                   out: &mut [f32]| {
            let gathered = Gathered::new(&graph, records);
            let targets = Targets::Classes(classes);
            let examples = Examples { rows: gathered.rows(), targets, loss: Loss::CrossEntropy };
            graph.clipped_gradient_sum(&examples, 0.1, workspace, out, Write::Overwrite).unwrap();
        };
        sum(&records, &[0, 1, 2], &mut workspace, &mut dirty);
        assert_eq!(workspace.non_finite_records(), 1, "{name}");
        records.remove(1);
        sum(&records, &[0, 2], &mut workspace, &mut clean);
        for (a, b) in dirty.iter().zip(&clean) {
            assert!((a - b).abs() < 1e-6, "{name}: {a}, not {b}");
        }
    }
}

#[test]
fn batch_normalization_runs_with_fixed_statistics_and_is_not_trained() {
    let window = Window::same(3);
    let layers = vec![
        Layer::Convolution(convolution(2, 3, window)),
        Layer::BatchNormalization(BatchNormalization { channels: 3, stabilizer: 1e-3 }),
        Layer::Activation(Activation::Tanh),
    ];
    let Case { mut graph, .. } = case("batch", &[2, 4, 4], layers);
    let mut rng = ChaCha8Rng::from_seed([5; 32]);
    randomize(&mut graph, &mut rng);
    let variances = graph.parameters_of(1).end - 3..graph.parameters_of(1).end;
    for p in &mut graph.parameters_mut()[variances] {
        *p = p.abs() + 0.1;
    }
    let parameters: Vec<f64> = graph.parameters().iter().map(|p| f64::from(*p)).collect();
    let values: Vec<f32> = (0..2 * 32).map(|_| uniform(&mut rng)).collect();
    let rows = Rows::Dense { width: 32, values: &values };
    let mut workspace = Workspace::new();
    let outputs = graph.forward(&rows, &mut workspace).unwrap().to_vec();
    for (row, got) in values.chunks_exact(32).zip(outputs.chunks_exact(3)) {
        for (right, got) in oracle_forward(&graph, &parameters, row).iter().zip(got) {
            assert!((right - f64::from(*got)).abs() < 2e-5, "{got}, not {right}");
        }
    }
    let examples = Examples { rows, targets: Targets::Classes(&[0, 1]), loss: Loss::CrossEntropy };
    let mut out = vec![0.0; graph.parameters().len()];
    let refused =
        graph.clipped_gradient_sum(&examples, 1.0, &mut workspace, &mut out, Write::Overwrite);
    assert!(refused.unwrap_err().to_string().contains("batch normalization"));
    let refused = graph.gradient_sum(&examples, &mut workspace, &mut out, Write::Overwrite);
    assert!(refused.is_err());
}

/// A value read twice gets the sum of both gradients, and a function applied in place on one way does not reach the other.
#[test]
fn a_value_may_be_read_more_than_once() {
    let mut graph = Graph::of_input(&[4]).unwrap();
    let linear = |inputs, outputs| Layer::Linear(Linear { inputs, outputs });
    let a = graph.add(linear(4, 3), &[Value::INPUT]).unwrap();
    let b = graph.add(Layer::Activation(Activation::Tanh), &[a]).unwrap();
    let c = graph.add(linear(3, 3), &[a]).unwrap();
    let _unused = graph.add(linear(3, 2), &[b]).unwrap();
    graph.add(linear(3, 3), &[c]).unwrap();
    let mut rng = ChaCha8Rng::from_seed([6; 32]);
    let parameters = randomize(&mut graph, &mut rng);
    let values: Vec<f32> = (0..4).map(|_| uniform(&mut rng)).collect();
    let rows = Rows::Dense { width: 4, values: &values };
    let (mut workspace, mut out) = (Workspace::new(), vec![9.0; parameters.len()]);
    let examples = Examples { rows, targets: Targets::Classes(&[1]), loss: Loss::SquaredError };
    graph.gradient_sum(&examples, &mut workspace, &mut out, Write::Overwrite).unwrap();
    for (got, right) in out.iter().zip(oracle_gradient(&graph, &parameters, &values, 1)) {
        assert!((f64::from(*got) - right).abs() < 1e-5, "{got}, not {right}");
    }
}

#[test]
fn layers_that_do_not_fit_are_refused() {
    for layer in without_parameters::misfits() {
        let refused = Graph::chain(&[2, 3, 4], vec![layer.clone()]);
        assert!(refused.is_err(), "{layer:?}");
    }
    let window = Window::same(3);
    let bad_window = |change: fn(&mut Window)| {
        let mut window = Window::same(3);
        change(&mut window);
        Layer::Convolution(convolution(2, 2, window))
    };
    let normalization = |channels, groups, stabilizer| {
        Layer::Normalization(Normalization {
            channels,
            groups,
            affine: Affine::Channel,
            stabilizer,
        })
    };
    for layer in [
        Layer::Convolution(convolution(3, 2, window)),
        Layer::Convolution(convolution(2, 0, window)),
        Layer::Convolution(Convolution { groups: 0, ..convolution(2, 2, window) }),
        Layer::Convolution(Convolution { groups: 2, ..convolution(2, 3, window) }),
        bad_window(|w| w.kernel = [0, 3]),
        bad_window(|w| w.stride = [1, 0]),
        bad_window(|w| w.dilation = [0, 1]),
        bad_window(|w| w.kernel = [7, 1]),
        bad_window(|w| w.before = [usize::MAX, 0]),
        bad_window(|w| w.dilation = [usize::MAX, 1]),
        pooling(Pool::Max, Window { before: [3, 0], ..window }),
        pooling(Pool::Max, Window { dilation: [5, 5], before: [6, 6], after: [6, 6], ..window }),
        normalization(2, 0, 1e-5),
        normalization(2, 3, 1e-5),
        normalization(3, 3, 1e-5),
        normalization(2, 1, 0.0),
        normalization(2, 1, f32::NAN),
        Layer::BatchNormalization(BatchNormalization { channels: 5, stabilizer: 1e-5 }),
        Layer::Reshape(Reshape { shape: vec![7] }),
        Layer::Reshape(Reshape { shape: vec![usize::MAX, 4] }),
    ] {
        let what = format!("{layer:?}");
        let refused = Graph::chain(&[2, 4, 4], vec![layer]);
        assert!(refused.is_err(), "{what}");
    }
}

/// Other numbers for the nodes of a graph change nothing but rounding, ties included; and the rest of a mixture of kinds is refused.
#[test]
fn graphs_are_the_same_however_their_nodes_are_numbered() {
    for Case { name, mut graph } in cases().into_iter().filter(|c| c.graph.reads_graphs()) {
        let mut rng = ChaCha8Rng::from_seed([5; 32]);
        randomize(&mut graph, &mut rng);
        let plain = records(&graph, 5, &mut rng);
        let turned: Vec<Vec<f32>> = plain.iter().map(|r| graphs::turned(r)).collect();
        let mut outputs = [plain, turned].map(|records| {
            let gathered = Gathered::new(&graph, &records);
            graph.forward(&gathered.rows(), &mut Workspace::new()).unwrap().to_vec()
        });
        let [plain, turned] = &mut outputs;
        for (a, b) in plain.iter().zip(turned) {
            assert!((a - *b).abs() < 1e-5 * a.abs().max(1.0), "{name}: {a} and {b}");
        }
    }
}

#[test]
fn graphs_and_numbers_are_not_mixed() {
    let layer = GraphConvolutions { features: 2, channels: vec![1], nodes: 2 };
    let layer = || Layer::GraphConvolutions(layer.clone());
    let mut graph = Graph::chain(&[2], vec![layer()]).unwrap();
    let linear = || Layer::Linear(Linear { inputs: 2, outputs: 2 });
    assert!(matches!(graph.add(linear(), &[Value::INPUT]), Err(Error::LayersDoNotFit { .. })));
    assert!(graph.add(layer(), &[Value::INPUT]).is_ok());
    let mut numbers = Graph::chain(&[2], vec![linear()]).unwrap();
    let last = numbers.output();
    assert!(matches!(numbers.add(layer(), &[last]), Err(Error::LayersDoNotFit { .. })));
    assert!(matches!(numbers.add(layer(), &[Value::INPUT]), Err(Error::LayersDoNotFit { .. })));
    let lists = graphs::Lists::new(&[vec![1.0, 1.0, 0.0]]);
    let (rows, dense) = (Rows::Graphs(lists.rows(2)), Rows::Dense { width: 2, values: &[0.5; 4] });
    let mut workspace = Workspace::new();
    let refused = |graph: &Graph, rows: &Rows<'_>, workspace: &mut Workspace| {
        matches!(graph.forward(rows, workspace), Err(Error::InputKind { .. }))
    };
    assert!(refused(&graph, &dense, &mut workspace) && refused(&numbers, &rows, &mut workspace));
    let wider = Rows::Graphs(lists.rows(3));
    assert!(matches!(graph.forward(&wider, &mut workspace), Err(Error::InputWidth { .. })));
    assert_eq!(graph.forward(&rows, &mut workspace).unwrap().len(), 2);
    assert_eq!(Graph::from_bytes(&graph.to_bytes().unwrap()).unwrap(), graph);
}
