//! Batch normalization folded into what is before it, or replaced.
#![expect(clippy::unwrap_used, reason = "tests")]
use dosimeter_model::kernels::Write;
use dosimeter_model::{
    Activation, Affine, Arithmetic, BatchNormalization, Combine, Convolution, Examples, Graph,
    Layer, Linear, Loss, Reshape, Rows, Targets, Value, Window, Workspace,
};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

const RECORDS: usize = 3;

fn numbers(count: usize, low: f32, rng: &mut ChaCha8Rng) -> Vec<f32> {
    (0..count).map(|_| low + (rng.next_u32() >> 8) as f32 / (1 << 24) as f32).collect()
}
fn run(graph: &Graph) -> Vec<f32> {
    let width = graph.inputs();
    let values = numbers(RECORDS * width, -0.5, &mut ChaCha8Rng::from_seed([2; 32]));
    let rows = Rows::Dense { width, values: &values };
    graph.forward(&rows, &mut Workspace::new()).unwrap().to_vec()
}
fn batch_normalizations(graph: &Graph) -> usize {
    graph.nodes().iter().filter(|n| n.layer.name() == "batch-normalization").count()
}

/// Convolutions with and without biases, a linear layer, and one normalization that reads a sum.
fn network() -> Graph {
    let mut graph = Graph::of_input(&[2, 4, 4]).unwrap();
    let mut add = |layer: Layer, inputs: &[Value]| graph.add(layer, inputs).unwrap();
    let window = Window::same(3);
    let conv = |channels, groups, bias| {
        Layer::Convolution(Convolution { channels, outputs: 4, groups, window, bias })
    };
    let normalize =
        |channels| Layer::BatchNormalization(BatchNormalization { channels, stabilizer: 1e-3 });
    let a = add(conv(2, 2, false), &[Value::INPUT]);
    let b = add(normalize(4), &[a]);
    let c = add(Layer::Activation(Activation::Relu), &[b]);
    let d = add(conv(4, 1, true), &[c]);
    // Between the convolution and its normalization there is another branch.
    let e = add(Layer::Activation(Activation::Tanh), &[c]);
    let f = add(normalize(4), &[d]);
    let g = add(Layer::Combine(Combine { operation: Arithmetic::Add }), &[e, f]);
    let h = add(normalize(4), &[g]);
    let i = add(Layer::Reshape(Reshape { shape: vec![64] }), &[h]);
    let j = add(Layer::Linear(Linear { inputs: 64, outputs: 3 }), &[i]);
    let k = add(Layer::Activation(Activation::Tanh), &[i]);
    let l = add(Layer::Linear(Linear { inputs: 64, outputs: 3 }), &[k]);
    let m = add(Layer::Combine(Combine { operation: Arithmetic::Multiply }), &[j, l]);
    let n = add(Layer::Linear(Linear { inputs: 3, outputs: 3 }), &[m]);
    add(normalize(3), &[n]);
    // Variances are above 0.
    let parameters = numbers(graph.parameters().len(), 0.1, &mut ChaCha8Rng::from_seed([1; 32]));
    graph.parameters_mut().copy_from_slice(&parameters);
    graph
}

#[test]
fn a_folded_graph_computes_the_same() {
    let graph = network();
    let folded = graph.fold_batch_normalization().unwrap();
    // The one that reads a sum stays.
    assert_eq!((batch_normalizations(&graph), batch_normalizations(&folded)), (4, 1));
    assert_eq!(folded.nodes().len(), graph.nodes().len() - 3);
    let (ours, right) = (run(&folded), run(&graph));
    let largest = right.iter().fold(0.0_f32, |m, x| m.max(x.abs()));
    for (a, b) in ours.iter().zip(&right) {
        assert!((a - b).abs() < 1e-5 * largest, "{a}, not {b}");
    }
    assert_eq!(folded.fold_batch_normalization().unwrap(), folded);
}

/// By hand: weight 2, bias 1, then (x - 3) / sqrt(3.75 + 0.25) * 4 + 5 is 4 x + 1 of the input.
#[test]
fn folding_is_as_by_hand() {
    let normalization = BatchNormalization { channels: 1, stabilizer: 0.25 };
    let layers = vec![
        Layer::Linear(Linear { inputs: 1, outputs: 1 }),
        Layer::BatchNormalization(normalization),
    ];
    let mut graph = Graph::chain(&[1], layers).unwrap();
    graph.parameters_mut().copy_from_slice(&[2.0, 1.0, 4.0, 5.0, 3.0, 3.75]);
    assert_eq!(graph.fold_batch_normalization().unwrap().parameters(), [4.0, 1.0]);
}

#[test]
fn a_layer_that_others_read_too_keeps_its_normalization() {
    let mut graph = Graph::of_input(&[2]).unwrap();
    let linear = Layer::Linear(Linear { inputs: 2, outputs: 2 });
    let a = graph.add(linear, &[Value::INPUT]).unwrap();
    let normalization = BatchNormalization { channels: 2, stabilizer: 1e-5 };
    let b = graph.add(Layer::BatchNormalization(normalization), &[a]).unwrap();
    graph.add(Layer::Combine(Combine { operation: Arithmetic::Add }), &[a, b]).unwrap();
    assert_eq!(graph.fold_batch_normalization().unwrap(), graph);
}

#[test]
fn with_group_normalization_in_its_place_a_graph_can_be_trained() {
    let graph = network().replace_batch_normalization(3).unwrap();
    let groups = |n: &dosimeter_model::Node| match n.layer {
        Layer::Normalization(n) => Some((n.channels, n.groups, n.affine)),
        _ => None,
    };
    let groups: Vec<_> = graph.nodes().iter().filter_map(groups).collect();
    // 3 does not divide 4 channels, 2 does.
    let of_four = (4, 2, Affine::Channel);
    assert_eq!(groups, [of_four, of_four, of_four, (3, 3, Affine::Channel)]);
    let values = vec![0.5; RECORDS * graph.inputs()];
    let examples = Examples {
        rows: Rows::Dense { width: graph.inputs(), values: &values },
        targets: Targets::Classes(&[0, 1, 2]),
        loss: Loss::CrossEntropy,
    };
    let mut out = vec![0.0; graph.parameters().len()];
    let workspace = &mut Workspace::new();
    assert!(
        graph.clipped_gradient_sum(&examples, 1.0, workspace, &mut out, Write::Overwrite).is_ok()
    );
    let refused =
        network().clipped_gradient_sum(&examples, 1.0, workspace, &mut [], Write::Overwrite);
    assert!(refused.is_err());
}
