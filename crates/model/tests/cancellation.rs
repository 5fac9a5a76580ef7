//! Gradients of a convolution that cancel over the places of a record: its norm, and what it adds to a clipped sum.
#![expect(clippy::unwrap_used, reason = "tests")]
use dosimeter_model::kernels::Write;
use dosimeter_model::{
    Convolution, Examples, Graph, Layer, Linear, Loss, Reshape, Rows, Targets, Window, Workspace,
};

const CHANNELS: usize = 512;
/// Output gradients of the convolution: plus and minus this at the two places.
const SLOPE: f32 = 1_048_576.0;

/// One output channel at two places, whose difference times [`SLOPE`] is the only logit. The convolution's weights are 0,
/// so with a target of 1 the logit's gradient is -1.
fn difference(bias: bool) -> Graph {
    let convolution =
        Convolution { channels: CHANNELS, outputs: 1, groups: 1, window: Window::tiles(1), bias };
    let layers = vec![
        Layer::Convolution(convolution),
        Layer::Reshape(Reshape { shape: vec![2] }),
        Layer::Linear(Linear { inputs: 2, outputs: 1 }),
    ];
    let mut graph = Graph::chain(&[CHANNELS, 1, 2], layers).unwrap();
    let weights = graph.parameters_of(2).start;
    graph.parameters_mut()[weights..weights + 2].copy_from_slice(&[SLOPE, -SLOPE]);
    graph
}

/// Channels that are `level` at the first place and `level + step` at the second.
fn record(level: f32, step: f32) -> Vec<f32> {
    [level, level + step].repeat(CHANNELS)
}

/// The gradient of `difference`'s convolution for `record(level, step)` is `SLOPE step` for every weight and 0 for the bias;
/// that of the logit's bias is -1, its weights' inputs are 0.
fn gradient(step: f32, bias: bool) -> Vec<f64> {
    let mut gradient = vec![f64::from(SLOPE) * f64::from(step); CHANNELS];
    gradient.extend(bias.then_some(0.0));
    gradient.extend([0.0, 0.0, -1.0]);
    gradient
}
fn norm(numbers: impl IntoIterator<Item = f64>) -> f64 {
    numbers.into_iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Gram matrices in single precision see nothing of a step of 2^-20 on 1: of 512, 512.0005 and 512.001 only rounding is
/// left. The record's true norm is sqrt(512 + 1).
#[test]
fn a_record_whose_gradients_cancel_is_clipped_to_the_norm() {
    let step = 2_f32.powi(-20);
    for bias in [false, true] {
        let graph = difference(bias);
        // Alone, and with records before and behind it whose gradients do not cancel, one of them not finite.
        let others = [record(0.0, 0.25 * step), record(f32::NAN, 1.0), record(0.0, 2.0 * step)];
        let one = record(1.0, step);
        let all = [&others[0][..], &one, &others[1], &others[2], &one].concat();
        for (values, steps) in [
            (one, vec![Some(step)]),
            (
                all,
                [Some(0.25), Some(1.0), None, Some(2.0), Some(1.0)]
                    .map(|s| s.map(|s| s * step))
                    .to_vec(),
            ),
        ] {
            let rows = Rows::Dense { width: 2 * CHANNELS, values: &values };
            let ones = vec![1.0; steps.len()];
            let examples =
                Examples { rows, targets: Targets::Values(&ones), loss: Loss::SquaredError };
            let mut workspace = Workspace::new();
            for clipping_norm in [1.5, 100.0] {
                let mut sum = vec![9.0; graph.parameters().len()];
                graph
                    .clipped_gradient_sum(
                        &examples,
                        clipping_norm,
                        &mut workspace,
                        &mut sum,
                        Write::Overwrite,
                    )
                    .unwrap();
                let mut right = vec![0.0; sum.len()];
                for (step, got) in steps.iter().zip(workspace.gradient_norms()) {
                    let Some(step) = step else { continue };
                    let one = gradient(*step, bias);
                    let length = norm(one.iter().copied());
                    assert!((got - length).abs() < 1e-6 * length, "{got}, not {length}");
                    for (r, x) in right.iter_mut().zip(one) {
                        *r += x * (clipping_norm / length).min(1.0);
                    }
                }
                let sum: Vec<f64> = sum.into_iter().map(f64::from).collect();
                let off = norm(sum.iter().zip(&right).map(|(a, b)| a - b));
                assert!(off < 1e-5 * norm(right.iter().copied()), "off by {off}");
                if steps.len() == 1 {
                    assert!(norm(sum.iter().copied()) <= clipping_norm, "{clipping_norm}");
                }
                // The same sum in parts.
                let (mut other, mut before) = (Workspace::new(), vec![0.0; sum.len()]);
                let mut parts = graph
                    .gradient_in_parts(
                        &examples,
                        Some(clipping_norm),
                        &mut other,
                        &mut before,
                        Write::Overwrite,
                    )
                    .unwrap();
                let (mut part, mut joined) = (vec![f32::NAN; parts.longest()], vec![]);
                while let length @ 1.. = parts.next_part(&mut part) {
                    joined.extend(part[..length].iter().map(|x| f64::from(*x).to_bits()));
                }
                assert!(sum.iter().map(|x| x.to_bits()).eq(joined));
            }
        }
    }
}
