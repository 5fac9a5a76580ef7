//! The fast paths against slow obvious ones: one record at a time, finite differences, dense against sparse.
#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(
    clippy::suboptimal_flops,
    clippy::imprecise_flops,
    reason = "an oracle is written as in the books"
)]
use dosimeter_model::kernels::{self, Matrix, Write};
use dosimeter_model::{
    Activation, Examples, Graph, Layer, Linear, Loss, Node, RECORD_BLOCK, Rows, Targets, Workspace,
    zoo,
};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

const ACTIVATIONS: [Activation; 5] = [
    Activation::Tanh,
    Activation::Relu,
    Activation::LeakyRelu { slope: 0.1 },
    Activation::Sigmoid,
    Activation::Softmax,
];
const LOSSES: [Loss; 3] = [Loss::CrossEntropy, Loss::BinaryCrossEntropy, Loss::SquaredError];

fn uniform(rng: &mut ChaCha8Rng) -> f32 {
    (rng.next_u32() >> 8) as f32 / (1 << 23) as f32 - 1.0
}

/// A network with random biases too.
fn network(
    inputs: usize,
    hidden: &[usize],
    outputs: usize,
    activation: Activation,
    seed: u8,
) -> Graph {
    let mut rng = ChaCha8Rng::from_seed([seed; 32]);
    let mut graph = zoo::mlp(inputs, hidden, outputs, activation, &mut rng).unwrap();
    for p in graph.parameters_mut().iter_mut().filter(|p| **p == 0.0) {
        *p = 0.1 * uniform(&mut rng);
    }
    graph
}

/// One record's gradient in double precision, by the definition: forward and backward with plain loops.
fn oracle_gradient(graph: &Graph, input: &[f32], class: usize, loss: Loss) -> (f64, Vec<f64>) {
    let parameters: Vec<f64> = graph.parameters().iter().map(|p| f64::from(*p)).collect();
    let mut values: Vec<Vec<f64>> = vec![input.iter().map(|x| f64::from(*x)).collect()];
    let mut offset = 0;
    let mut offsets = vec![];
    for Node { layer, .. } in graph.nodes() {
        let x = values.last().unwrap();
        let y = match layer {
            Layer::Linear(l) => {
                offsets.push(offset);
                let bias = offset + l.inputs * l.outputs;
                let y = (0..l.outputs)
                    .map(|o| {
                        (0..l.inputs).fold(parameters[bias + o], |sum, i| {
                            x[i].mul_add(parameters[offset + i * l.outputs + o], sum)
                        })
                    })
                    .collect();
                offset += l.parameter_count();
                y
            }
            Layer::Activation(Activation::Tanh) => x.iter().map(|x| x.tanh()).collect(),
            Layer::Activation(Activation::Relu) => x.iter().map(|x| x.max(0.0)).collect(),
            Layer::Activation(Activation::LeakyRelu { slope }) => {
                x.iter().map(|x| if *x < 0.0 { f64::from(*slope) * x } else { *x }).collect()
            }
            Layer::Activation(Activation::Sigmoid) => {
                x.iter().map(|x| 1.0 / (1.0 + (-x).exp())).collect()
            }
            Layer::Activation(Activation::Softmax) => {
                let sum: f64 = x.iter().map(|x| x.exp()).sum();
                x.iter().map(|x| x.exp() / sum).collect()
            }
            _ => unreachable!(),
        };
        values.push(y);
    }
    let z = values.last().unwrap();
    let one = |o: usize| f64::from(u8::from(o == class));
    let (cost, mut g): (f64, Vec<f64>) = match loss {
        Loss::CrossEntropy => {
            let sum: f64 = z.iter().map(|x| x.exp()).sum();
            (
                sum.ln() - z[class],
                z.iter().enumerate().map(|(o, x)| x.exp() / sum - one(o)).collect(),
            )
        }
        Loss::BinaryCrossEntropy => (
            z.iter().enumerate().map(|(o, x)| (1.0 + x.exp()).ln() - one(o) * x).sum(),
            z.iter().enumerate().map(|(o, x)| 1.0 / (1.0 + (-x).exp()) - one(o)).collect(),
        ),
        Loss::SquaredError => (
            z.iter().enumerate().map(|(o, x)| 0.5 * (x - one(o)).powi(2)).sum(),
            z.iter().enumerate().map(|(o, x)| x - one(o)).collect(),
        ),
    };
    let mut gradient = vec![0.0; parameters.len()];
    for (at, Node { layer, .. }) in graph.nodes().iter().enumerate().rev() {
        let (x, y) = (&values[at], &values[at + 1]);
        match layer {
            Layer::Linear(l) => {
                let offset = offsets.pop().unwrap();
                let mut below = vec![0.0; l.inputs];
                for i in 0..l.inputs {
                    for o in 0..l.outputs {
                        gradient[offset + i * l.outputs + o] = x[i] * g[o];
                        below[i] += parameters[offset + i * l.outputs + o] * g[o];
                    }
                }
                let bias = offset + l.inputs * l.outputs;
                gradient[bias..bias + l.outputs].copy_from_slice(&g);
                g = below;
            }
            Layer::Activation(activation) => {
                let dot: f64 = g.iter().zip(y).map(|(g, y)| g * y).sum();
                for (g, (x, y)) in g.iter_mut().zip(x.iter().zip(y)) {
                    *g = match activation {
                        Activation::Tanh => *g * (1.0 - y * y),
                        Activation::Relu => *g * f64::from(u8::from(*x > 0.0)),
                        Activation::LeakyRelu { slope } => {
                            if *x > 0.0 {
                                *g
                            } else {
                                f64::from(*slope) * *g
                            }
                        }
                        Activation::Sigmoid => *g * y * (1.0 - y),
                        Activation::Softmax => y * (*g - dot),
                        _ => unreachable!(),
                    };
                }
            }
            _ => unreachable!(),
        }
    }
    (cost, gradient)
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

struct Batch {
    width: usize,
    values: Vec<f32>,
    words: Vec<u64>,
    labels: Vec<u32>,
}
/// Random records; `density` None gives numbers in (-1, 1), else bits.
fn batch(records: usize, width: usize, classes: usize, density: Option<f64>, seed: u8) -> Batch {
    let mut rng = ChaCha8Rng::from_seed([seed; 32]);
    let per_row = width.div_ceil(64);
    let (mut values, mut words, mut labels) = (vec![], vec![0; records * per_row], vec![]);
    for r in 0..records {
        for j in 0..width {
            let x = uniform(&mut rng);
            match density {
                None => values.push(x),
                Some(d) => {
                    let on = f64::from(x) * 0.5 + 0.5 < d;
                    values.push(f32::from(u8::from(on)));
                    words[r * per_row + j / 64] |= u64::from(on) << (j % 64);
                }
            }
        }
        labels.push(rng.next_u32() % classes as u32);
    }
    Batch { width, values, words, labels }
}
impl Batch {
    fn dense(&self, loss: Loss) -> Examples<'_> {
        let rows = Rows::Dense { width: self.width, values: &self.values };
        Examples { rows, targets: Targets::Classes(&self.labels), loss }
    }
    fn bits(&self, loss: Loss) -> Examples<'_> {
        let rows = Rows::Bits { width: self.width, words: &self.words };
        Examples { rows, targets: Targets::Classes(&self.labels), loss }
    }
    fn part(&self, from: usize, to: usize) -> Examples<'_> {
        let rows = Rows::Dense {
            width: self.width,
            values: &self.values[from * self.width..to * self.width],
        };
        let targets = Targets::Classes(&self.labels[from..to]);
        Examples { rows, targets, loss: Loss::CrossEntropy }
    }
}

/// Clips and adds one record after the other: what the book-keeping must equal.
fn oracle_clipped_sum(
    graph: &Graph,
    batch: &Batch,
    loss: Loss,
    clipping_norm: f64,
) -> (Vec<f64>, Vec<f64>) {
    let mut sum = vec![0.0; graph.parameters().len()];
    let mut norms = vec![];
    for (row, class) in batch.values.chunks(batch.width).zip(&batch.labels) {
        let (_, gradient) = oracle_gradient(graph, row, *class as usize, loss);
        let n = norm(&gradient);
        norms.push(n);
        for (s, g) in sum.iter_mut().zip(&gradient) {
            *s += g * (clipping_norm / n).min(1.0);
        }
    }
    (sum, norms)
}

fn assert_close(got: &[f32], right: &[f64], tolerance: f64, what: &str) {
    let scale = right.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    for (i, (g, r)) in got.iter().zip(right).enumerate() {
        assert!(
            (f64::from(*g) - r).abs() <= tolerance * scale,
            "{what}: parameter {i}: {g}, not {r}"
        );
    }
}

#[test]
fn clipped_sums_equal_one_record_at_a_time_for_every_activation_and_loss() {
    for activation in ACTIVATIONS {
        for loss in LOSSES {
            for density in [None, Some(0.1), Some(0.7)] {
                let graph = network(70, &[33, 20], 7, activation, 1);
                let batch = batch(19, 70, 7, density, 2);
                let (_, norms) = oracle_clipped_sum(&graph, &batch, loss, 1.0);
                let mut sorted = norms.clone();
                sorted.sort_by(f64::total_cmp);
                let clipping_norm = sorted[9] * 1.000_01; // about half of the records are clipped
                let (sum, _) = oracle_clipped_sum(&graph, &batch, loss, clipping_norm);
                let mut ways = vec![batch.dense(loss)];
                if density.is_some() {
                    ways.push(batch.bits(loss));
                }
                for examples in ways {
                    let mut workspace = Workspace::new();
                    let mut out = vec![9.0; sum.len()];
                    graph
                        .clipped_gradient_sum(
                            &examples,
                            clipping_norm,
                            &mut workspace,
                            &mut out,
                            Write::Overwrite,
                        )
                        .unwrap();
                    let what = format!("{activation:?} {loss:?} {density:?}");
                    assert_close(&out, &sum, 1e-5, &what);
                    for (got, right) in workspace.gradient_norms().iter().zip(&norms) {
                        assert!(
                            (got - right).abs() < 1e-5 * right,
                            "{what}: norm {got}, not {right}"
                        );
                    }
                    assert_eq!(workspace.clipped_records(), 9, "{what}");
                    assert_eq!(workspace.non_finite_records(), 0);
                }
            }
        }
    }
}

#[test]
fn plain_sums_and_losses_equal_one_record_at_a_time() {
    for activation in ACTIVATIONS {
        for loss in LOSSES {
            let graph = network(12, &[9], 4, activation, 3);
            let batch = batch(11, 12, 4, None, 4);
            let (sum, _) = oracle_clipped_sum(&graph, &batch, loss, f64::INFINITY);
            let (mut workspace, mut out) = (Workspace::new(), vec![0.0; sum.len()]);
            let examples = batch.dense(loss);
            graph.gradient_sum(&examples, &mut workspace, &mut out, Write::Overwrite).unwrap();
            assert_close(&out, &sum, 1e-5, &format!("{activation:?} {loss:?}"));
            for ((row, class), got) in
                batch.values.chunks(12).zip(&batch.labels).zip(workspace.losses())
            {
                let (right, _) = oracle_gradient(&graph, row, *class as usize, loss);
                assert!(
                    (f64::from(*got) - right).abs() < 1e-5 * right.max(1.0),
                    "{got} not {right}"
                );
            }
        }
    }
}

/// The oracle's own gradient against differences of its loss: guards against both being wrong alike.
#[test]
fn gradients_are_the_slope_of_the_loss() {
    for activation in ACTIVATIONS {
        for loss in LOSSES {
            let mut graph = network(5, &[4], 3, activation, 5);
            let input = [0.3, -0.8, 0.5, 0.9, -0.2];
            let (_, gradient) = oracle_gradient(&graph, &input, 2, loss);
            for (i, slope) in gradient.iter().enumerate() {
                let p = graph.parameters()[i];
                let at = |graph: &mut Graph, x: f32| {
                    graph.parameters_mut()[i] = x;
                    (f64::from(graph.parameters()[i]), oracle_gradient(graph, &input, 2, loss).0)
                };
                let ((x0, y0), (x1, y1)) = (at(&mut graph, p - 1e-3), at(&mut graph, p + 1e-3));
                graph.parameters_mut()[i] = p;
                let numeric = (y1 - y0) / (x1 - x0);
                assert!(
                    (numeric - slope).abs() < 1e-5,
                    "{activation:?} {loss:?} {i}: {slope}, {numeric}"
                );
            }
        }
    }
}

/// 4096 sums of numbers of size one: single precision with any order of additions stays within 1e-4.
#[test]
fn products_equal_the_plain_loop_for_every_transposition_and_length() {
    let mut rng = ChaCha8Rng::from_seed([7; 32]);
    for (m, k, n) in [(1, 7, 1), (3, 1, 5), (17, 33, 9), (5, 1200, 130), (128, 513, 3), (2, 600, 1)]
    {
        let a: Vec<f32> = (0..m * k).map(|_| uniform(&mut rng)).collect();
        let b: Vec<f32> = (0..k * n).map(|_| uniform(&mut rng)).collect();
        let flip = |v: &[f32], rows: usize, columns: usize| -> Vec<f32> {
            (0..rows * columns).map(|i| v[(i % rows) * columns + i / rows]).collect()
        };
        let (at, bt) = (flip(&a, m, k), flip(&b, k, n));
        let mut right = vec![0.0_f64; m * n];
        for i in 0..m {
            for j in 0..n {
                right[i * n + j] =
                    (0..k).map(|p| f64::from(a[i * k + p]) * f64::from(b[p * n + j])).sum();
            }
        }
        for (fa, fb) in [
            (Matrix::new(&a, m, k), Matrix::new(&b, k, n)),
            (Matrix::new(&at, k, m).transposed(), Matrix::new(&b, k, n)),
            (Matrix::new(&a, m, k), Matrix::new(&bt, n, k).transposed()),
            (Matrix::new(&at, k, m).transposed(), Matrix::new(&bt, n, k).transposed()),
        ] {
            let mut out = vec![0.5; m * n];
            kernels::matmul(fa, fb, &mut out, Write::Accumulate);
            for (got, right) in out.iter().zip(&right) {
                assert!((f64::from(*got) - 0.5 - right).abs() < 1e-4, "{m} {k} {n}");
            }
        }
    }
}

/// Bits given as bits or as numbers differ in rounding only, on both sides of the density at which the way changes.
#[test]
fn bits_give_the_gradients_of_the_same_numbers() {
    for density in [0.0, 0.02, 0.24, 0.26, 0.9, 1.0] {
        let graph = network(130, &[70], 5, Activation::Tanh, 8);
        let batch = batch(300, 130, 5, Some(density), 9);
        let mut results = vec![];
        for examples in [batch.dense(Loss::CrossEntropy), batch.bits(Loss::CrossEntropy)] {
            let (mut workspace, mut out) = (Workspace::new(), vec![0.0; graph.parameters().len()]);
            graph
                .clipped_gradient_sum(&examples, 0.5, &mut workspace, &mut out, Write::Overwrite)
                .unwrap();
            let logits = graph.forward(&examples.rows, &mut workspace).unwrap().to_vec();
            results.push((out, logits));
        }
        let right: Vec<f64> = results[0].0.iter().map(|x| f64::from(*x)).collect();
        assert_close(&results[1].0, &right, 1e-5, &format!("density {density}"));
        for (a, b) in results[0].1.iter().zip(&results[1].1) {
            assert!((a - b).abs() < 1e-5);
        }
    }
}

#[test]
fn calls_of_whole_blocks_give_the_bits_of_one_call() {
    let graph = network(40, &[30, 20], 6, Activation::Relu, 10);
    let records = 3 * RECORD_BLOCK + 5;
    let batch = batch(records, 40, 6, None, 11);
    let mut workspace = Workspace::new();
    let mut whole = vec![0.0; graph.parameters().len()];
    let examples = batch.part(0, records);
    graph
        .clipped_gradient_sum(&examples, 0.7, &mut workspace, &mut whole, Write::Overwrite)
        .unwrap();
    for size in [RECORD_BLOCK, 2 * RECORD_BLOCK] {
        let mut parts = vec![f32::NAN; whole.len()];
        for from in (0..records).step_by(size) {
            let write = if from == 0 { Write::Overwrite } else { Write::Accumulate };
            let examples = batch.part(from, (from + size).min(records));
            graph.clipped_gradient_sum(&examples, 0.7, &mut workspace, &mut parts, write).unwrap();
        }
        assert!(whole.iter().zip(&parts).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
}

/// Layers above and below the rows of one part, dense and sparse, one block, several, and none.
#[test]
fn the_parts_of_a_sum_are_the_bits_of_the_sum() {
    for (width, hidden, density) in [
        (700, &[30, 250][..], None),
        (600, &[130][..], Some(0.1)),
        (1, &[][..], None),
        (600, &[7][..], Some(0.9)),
    ] {
        let graph = network(width, hidden, 6, Activation::Tanh, 12);
        let batch = batch(RECORD_BLOCK + 20, width, 6, density, 13);
        let (mut workspace, mut other) = (Workspace::new(), Workspace::new());
        for records in [0, 1, 9, RECORD_BLOCK, RECORD_BLOCK + 20] {
            for clipping_norm in [None, Some(0.5)] {
                for write in [Write::Overwrite, Write::Accumulate] {
                    let examples = batch.part(0, records);
                    let mut whole = vec![0.25; graph.parameters().len()];
                    let mut sum = whole.clone();
                    match clipping_norm {
                        None => graph.gradient_sum(&examples, &mut workspace, &mut whole, write),
                        Some(norm) => graph.clipped_gradient_sum(
                            &examples,
                            norm,
                            &mut workspace,
                            &mut whole,
                            write,
                        ),
                    }
                    .unwrap();
                    let mut parts = graph
                        .gradient_in_parts(&examples, clipping_norm, &mut other, &mut sum, write)
                        .unwrap();
                    let mut out = vec![f32::NAN; parts.longest()];
                    let mut joined = vec![];
                    loop {
                        let length = parts.next_part(&mut out);
                        joined.extend_from_slice(&out[..length]);
                        if length == 0 {
                            break;
                        }
                    }
                    assert_eq!(joined.len(), whole.len());
                    assert!(
                        whole.iter().zip(&joined).all(|(a, b)| a.to_bits() == b.to_bits()),
                        "{width} inputs, {records} records, {clipping_norm:?}, {write:?}"
                    );
                    assert_eq!(workspace.losses(), other.losses());
                    assert_eq!(workspace.gradient_norms(), other.gradient_norms());
                }
            }
        }
    }
}

#[test]
fn records_that_are_not_finite_count_as_zero_and_are_counted() {
    for poison in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
        for activation in ACTIVATIONS {
            let graph = network(10, &[8], 3, activation, 12);
            let clean = batch(6, 10, 3, None, 13);
            let mut dirty = batch(6, 10, 3, None, 13);
            dirty.values[23] = poison; // record 2
            let right = {
                let mut rest = batch(6, 10, 3, None, 13);
                rest.values.drain(20..30);
                rest.labels.remove(2);
                oracle_clipped_sum(&graph, &rest, Loss::CrossEntropy, 0.5).0
            };
            let (mut workspace, mut out) = (Workspace::new(), vec![0.0; graph.parameters().len()]);
            let examples = dirty.dense(Loss::CrossEntropy);
            graph
                .clipped_gradient_sum(&examples, 0.5, &mut workspace, &mut out, Write::Overwrite)
                .unwrap();
            assert!(out.iter().all(|x| x.is_finite()), "{activation:?} {poison}");
            if workspace.non_finite_records() == 1 {
                assert_close(&out, &right, 1e-5, &format!("{activation:?} {poison}"));
            } else {
                // A huge but finite number may leave a finite gradient: then it is a record like any other.
                assert_eq!(workspace.non_finite_records(), 0);
                assert!(poison.abs() > 1e30, "{activation:?} {poison}");
            }
            let _ = clean;
        }
    }
}

#[test]
fn no_records_give_a_zero_sum_and_leave_an_accumulated_one_alone() {
    let graph = network(4, &[3], 2, Activation::Tanh, 14);
    let examples = Examples {
        rows: Rows::Dense { width: 4, values: &[] },
        targets: Targets::Classes(&[]),
        loss: Loss::CrossEntropy,
    };
    let (mut workspace, mut out) = (Workspace::new(), vec![2.0; graph.parameters().len()]);
    graph
        .clipped_gradient_sum(&examples, 1.0, &mut workspace, &mut out, Write::Accumulate)
        .unwrap();
    assert!(out.iter().all(|x| (x - 2.0).abs() < 1e-9));
    graph.clipped_gradient_sum(&examples, 1.0, &mut workspace, &mut out, Write::Overwrite).unwrap();
    assert!(out.iter().all(|x| *x == 0.0));
    assert!(graph.forward(&examples.rows, &mut workspace).unwrap().is_empty());
}

#[test]
fn checkpoints_restore_every_bit_and_refuse_damage() {
    for activation in ACTIVATIONS {
        let mut graph = network(7, &[5, 4], 3, activation, 15);
        graph.parameters_mut()[0] = f32::from_bits(0x7fc0_1234); // a NaN with a payload
        let bytes = graph.to_bytes().unwrap();
        let back = Graph::from_bytes(&bytes).unwrap();
        assert_eq!(back.nodes(), graph.nodes());
        assert!(
            back.parameters()
                .iter()
                .zip(graph.parameters())
                .all(|(a, b)| a.to_bits() == b.to_bits())
        );
        assert_eq!(back.to_bytes().unwrap(), bytes);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(Graph::from_bytes(&damaged).is_err(), "byte {at} changed unseen");
            assert!(Graph::from_bytes(&bytes[..at]).is_err(), "cut at {at} unseen");
        }
    }
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let graph = network(4, &[3], 2, Activation::Tanh, 16);
    let mut workspace = Workspace::new();
    let mut out = vec![0.0; graph.parameters().len()];
    let rows = Rows::Dense { width: 4, values: &[0.0; 8] };
    let mut sum = |rows, targets, loss, norm, out: &mut [f32]| {
        let examples = Examples { rows, targets, loss };
        graph.clipped_gradient_sum(&examples, norm, &mut workspace, out, Write::Overwrite)
    };
    let classes = Targets::Classes(&[0, 1]);
    assert!(sum(rows, classes, Loss::CrossEntropy, 1.0, &mut out).is_ok());
    let narrow = Rows::Dense { width: 3, values: &[0.0; 6] };
    assert!(sum(narrow, classes, Loss::CrossEntropy, 1.0, &mut out).is_err());
    assert!(sum(rows, Targets::Classes(&[0]), Loss::CrossEntropy, 1.0, &mut out).is_err());
    assert!(sum(rows, Targets::Classes(&[0, 2]), Loss::CrossEntropy, 1.0, &mut out).is_err());
    assert!(sum(rows, Targets::Values(&[0.0; 4]), Loss::CrossEntropy, 1.0, &mut out).is_err());
    assert!(sum(rows, Targets::Values(&[0.0; 4]), Loss::SquaredError, 1.0, &mut out).is_ok());
    assert!(sum(rows, classes, Loss::CrossEntropy, 1.0, &mut out[1..]).is_err());
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(sum(rows, classes, Loss::CrossEntropy, bad, &mut out).is_err());
    }
    let linear = |inputs, outputs| Layer::Linear(Linear { inputs, outputs });
    for layers in [vec![linear(0, 1)], vec![linear(1, 0)], vec![linear(1, 2), linear(3, 1)]] {
        assert!(Graph::chain(&[1], layers).is_err());
    }
    assert!(Graph::of_input(&[]).is_err());
    assert!(Graph::of_input(&[3, 0]).is_err());
    assert!(Graph::of_input(&[usize::MAX, 2]).is_err());
    let mut other = Graph::chain(&[1], vec![linear(1, 2), linear(2, 2)]).unwrap();
    let later = other.output();
    let mut short = Graph::of_input(&[1]).unwrap();
    assert!(short.add(linear(2, 2), &[later]).is_err());
    assert!(other.add(linear(2, 2), &[later, later]).is_err());
}

proptest! {
    /// One record whose norm lies on either side of the threshold: never longer, never turned, whole if short.
    #[test]
    fn one_clipped_record_is_never_above_the_norm_and_never_turned(
        seed in 0_u8..=255,
        ratio in 0.0..4.0_f64, // of norm to clipping norm: both sides of 1 are drawn often
    ) {
        let graph = network(9, &[6], 4, Activation::Tanh, seed);
        let batch = batch(1, 9, 4, None, seed.wrapping_add(1));
        let (mut workspace, mut plain) = (Workspace::new(), vec![0.0; graph.parameters().len()]);
        let examples = batch.dense(Loss::CrossEntropy);
        graph.gradient_sum(&examples, &mut workspace, &mut plain, Write::Overwrite).unwrap();
        let length = kernels::squared_norm(&plain).sqrt();
        prop_assume!(ratio > 1e-3 && length > 1e-6);
        let clipping_norm = length / ratio;
        let mut clipped = vec![0.0; plain.len()];
        graph
            .clipped_gradient_sum(&examples, clipping_norm, &mut workspace, &mut clipped, Write::Overwrite)
            .unwrap();
        let got = kernels::squared_norm(&clipped).sqrt();
        prop_assert!(got <= clipping_norm, "{got} above {clipping_norm}");
        prop_assert!(got >= clipping_norm.min(length) * (1.0 - 3e-6), "{got} too short");
        let along = kernels::dot(&clipped, &plain);
        prop_assert!(along >= got * length * (1.0 - 1e-6), "turned");
        prop_assert_eq!(workspace.clipped_records() == 1, workspace.gradient_norms()[0] > clipping_norm);
    }

    /// Removing one record moves the clipped sum by at most the clipping norm (and rounding).
    #[test]
    fn one_record_moves_the_clipped_sum_by_at_most_the_norm(
        seed in 0_u8..=255,
        clipping_norm in 0.01..10.0_f64,
    ) {
        let graph = network(20, &[12], 5, Activation::Relu, seed);
        let batch = batch(8, 20, 5, None, seed.wrapping_add(7));
        let mut workspace = Workspace::new();
        let (mut with, mut without) = (vec![0.0; graph.parameters().len()], vec![0.0; graph.parameters().len()]);
        graph.clipped_gradient_sum(&batch.part(0, 8), clipping_norm, &mut workspace, &mut with, Write::Overwrite).unwrap();
        graph.clipped_gradient_sum(&batch.part(0, 7), clipping_norm, &mut workspace, &mut without, Write::Overwrite).unwrap();
        let difference: Vec<f32> = with.iter().zip(&without).map(|(a, b)| a - b).collect();
        prop_assert!(kernels::squared_norm(&difference).sqrt() <= clipping_norm * (1.0 + 1e-5));
    }
}
