//! ONNX models in and out, against ONNX Runtime's answers, and broken ones.
#![expect(clippy::unwrap_used, reason = "tests")]
use dosimeter_model::onnx::{self, Options};
use dosimeter_model::{Graph, Pool, Rows, Value, Workspace, zoo};
use dosimeter_testing::{golden, shared};
use proptest::prelude::*;
use rand_core::SeedableRng;
use std::fs;

/// A model, and its outputs or why it is refused.
#[derive(serde::Deserialize)]
struct Case {
    name: String,
    /// In hexadecimal.
    model: String,
    #[serde(default)]
    x: Vec<f32>,
    #[serde(default)]
    y: Vec<f32>,
    error: Option<String>,
}
impl Case {
    fn bytes(&self) -> Vec<u8> {
        let digit = |i: usize| u8::from_str_radix(&self.model[i..i + 2], 16).unwrap();
        (0..self.model.len()).step_by(2).map(digit).collect()
    }
}
fn cases() -> (Vec<Case>, f32) {
    let golden = golden::<Case>("onnx_operators");
    (golden.cases, golden.tolerance as f32)
}
fn read(bytes: &[u8]) -> Result<onnx::Model, onnx::Error> {
    onnx::read_bytes(bytes.to_vec(), &Options::default())
}
fn run(graph: &Graph, x: &[f32]) -> Vec<f32> {
    let rows = Rows::Dense { width: graph.inputs(), values: x };
    graph.forward(&rows, &mut Workspace::new()).unwrap().to_vec()
}
/// Whether all parameters are the same bits, which `==` does not tell of 0 and -0.
fn same(a: &Graph, b: &Graph) -> bool {
    let bits = |g: &Graph| g.parameters().iter().map(|p| p.to_bits()).collect::<Vec<_>>();
    a == b && bits(a) == bits(b)
}

#[test]
fn every_operator_computes_what_onnx_runtime_computes() {
    let (cases, tolerance) = cases();
    let mut wrong = Vec::new();
    for case in cases.iter().filter(|c| c.error.is_none()) {
        let model = match read(&case.bytes()) {
            Ok(model) => model,
            Err(e) => {
                wrong.push(format!("{}: {e}", case.name));
                continue;
            }
        };
        let y = run(&model.graph, &case.x);
        let close = |(a, b): (&f32, &f32)| (a - b).abs() <= tolerance * b.abs().max(1.0);
        if y.len() != case.y.len() || !y.iter().zip(&case.y).all(close) {
            wrong.push(format!("{}: {y:?} instead of {:?}", case.name, case.y));
        }
        assert_eq!(model.names.len(), model.graph.output().position() + 1);
        assert_eq!(model.names[0], "x");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Every operator known is among them.
    let names: String =
        cases.iter().map(|c| String::from_utf8_lossy(&c.bytes()).into_owned()).collect();
    for operator in onnx::operators() {
        assert!(names.contains(operator), "no case for {operator}");
    }
}

#[test]
fn biases_of_a_node_of_their_own_are_trained_with_the_weights() {
    // Constants that are not one for each output of a product stay what they are.
    let layers = [
        ("MatMul Add opset 17", 1),
        ("Conv Add opset 17", 1),
        ("Conv Add first opset 17", 1),
        ("Conv Add along the width opset 17", 2),
        ("Conv Add, read twice opset 17", 3),
        ("Conv with biases Add opset 17", 2),
    ];
    for (name, count) in layers {
        let cases = cases().0;
        let case = cases.iter().find(|c| c.name == name).unwrap();
        assert_eq!(read(&case.bytes()).unwrap().graph.nodes().len(), count, "{name}");
    }
}

#[test]
fn what_cannot_be_read_is_refused_and_the_error_says_where_and_why() {
    let mut wrong = Vec::new();
    for case in cases().0 {
        let Some(expected) = &case.error else { continue };
        match read(&case.bytes()) {
            Ok(_) => wrong.push(format!("{}: read", case.name)),
            Err(e) if e.to_string().contains(expected) => {}
            Err(e) => wrong.push(format!("{}: {e}\n   instead of {expected}", case.name)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_graph_written_and_read_again_is_the_same() {
    for case in cases().0.iter().filter(|c| c.error.is_none()) {
        let mut graph = read(&case.bytes()).unwrap().graph;
        // Numbers of every size and sign, 0 of both.
        for (i, p) in graph.parameters_mut().iter_mut().enumerate() {
            *p = [0.0, -0.0, 1e-45, -3.4e38, 0.1][i % 5];
        }
        let bytes = onnx::write(&graph).unwrap();
        let again = read(&bytes).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        // A softmax over several axes needs reshapes around it in ONNX.
        if case.name != "Softmax opset 9" && case.name != "Softmax opset 11" {
            assert!(same(&again.graph, &graph), "{}: {:?}", case.name, again.graph.nodes());
        }
        assert_eq!(again.records, None);
        assert_eq!(onnx::write(&again.graph).unwrap(), bytes, "{}", case.name);
    }
}

#[test]
fn a_number_that_is_not_finite_is_not_written() {
    let (cases, _) = cases();
    let case = cases.iter().find(|c| c.name == "Gemm opset 17").unwrap();
    let mut graph = read(&case.bytes()).unwrap().graph;
    graph.parameters_mut()[1] = f32::INFINITY;
    let error = onnx::write(&graph).unwrap_err().to_string();
    assert_eq!(error, "layer 0: it holds inf, not a finite number");
}

/// Reads bytes and, if they are a model, runs it if it is small.
fn survive(bytes: &[u8]) {
    let Ok(model) = read(bytes) else { return };
    let graph = &model.graph;
    let mut values = vec![Value::INPUT, graph.output()];
    values.extend(graph.nodes().iter().flat_map(|n| n.inputs.clone()));
    let numbers: usize = values.iter().map(|v| graph.shape(*v).iter().product::<usize>()).sum();
    if numbers < 10_000 {
        run(graph, &vec![0.5; 2 * graph.inputs()]);
        let again = onnx::write(graph).map(|bytes| read(&bytes).unwrap().graph);
        assert!(again.is_ok());
    }
}

#[test]
fn no_flipped_bit_and_no_early_end_makes_it_panic() {
    for case in cases().0 {
        let bytes = case.bytes();
        for i in 0..bytes.len() {
            survive(&bytes[..i]);
            for bit in 0..8 {
                let mut bytes = bytes.clone();
                bytes[i] ^= 1 << bit;
                survive(&bytes);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]
    #[test]
    fn no_bytes_make_it_panic(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        moved in any::<(prop::sample::Index, prop::sample::Index)>(),
    ) {
        thread_local! { static CASES: Vec<Vec<u8>> = cases().0.iter().map(Case::bytes).collect(); }
        let mut bytes = CASES.with(|cases| which.get(cases).clone());
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        survive(&bytes);
        // A part of it twice.
        let (a, b) = (moved.0.index(bytes.len()), moved.1.index(bytes.len()));
        let part = bytes[a.min(b)..a.max(b)].to_vec();
        bytes.splice(a..a, part);
        survive(&bytes);
    }
}

#[test]
fn external_data_are_read_from_the_folder_of_the_model_only() {
    let (cases, _) = cases();
    let bytes = cases.iter().find(|c| c.name == "external data").unwrap().bytes();
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("model");
    fs::create_dir_all(folder.join("below")).unwrap();
    let mut weights = vec![9; 4];
    weights.extend([1.0_f32, 2.0, 3.0, 4.0].iter().flat_map(|w| w.to_le_bytes()));
    for place in ["model/weights.bin", "model/below/w.b", "weig.bin"] {
        fs::write(outer.path().join(place), &weights).unwrap();
    }
    let model = folder.join("model.onnx");
    let result = |place: &str| {
        assert_eq!(place.len(), "weights.bin".len());
        let at = bytes.windows(11).position(|w| w == b"weights.bin").unwrap();
        let mut bytes = bytes.clone();
        bytes[at..at + 11].copy_from_slice(place.as_bytes());
        fs::write(&model, &bytes).unwrap();
        onnx::read(&model, &Options::default()).map_err(|e| e.to_string())
    };
    for place in ["weights.bin", "below/./w.b"] {
        let graph = result(place).unwrap().graph;
        assert_eq!(graph.parameters(), [1.0, 2.0, 3.0, 4.0, 0.0, 0.0]);
    }
    let refused = |place: &str, why: &str| {
        let error = result(place).unwrap_err();
        assert!(error.starts_with("tensor \"w\": ") && error.contains(why), "{error}");
    };
    refused("../weig.bin", "only lie in the model's folder, not in");
    refused("/etc/passwd", "only lie in the model's folder, not in");
    refused("missing.bin", "missing.bin");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("../weig.bin", folder.join("link001.bin")).unwrap();
        refused("link001.bin", "links elsewhere");
        std::os::unix::fs::symlink("..", folder.join("up")).unwrap();
        refused("up/weig.bin", "links elsewhere");
        fs::create_dir(folder.join("directory00")).unwrap();
        refused("directory00", "not a file");
    }
    // The same 16 bytes for three tensors, of a file of 20: at most twice the file is read.
    let share = cases.iter().find(|c| c.name == "shared external data").unwrap().bytes();
    fs::write(&model, &share).unwrap();
    let error = onnx::read(&model, &Options::default()).unwrap_err().to_string();
    assert_eq!(error, "tensor \"w3\": too many tensors share the same data");
    fs::write(folder.join("weights.bin"), &weights[..19]).unwrap();
    refused("weights.bin", "it needs 16 bytes from byte 4 of \"weights.bin\", which has 19");
}

#[test]
fn the_output_may_be_any_value_on_the_way() {
    let (cases, _) = cases();
    let case = cases.iter().find(|c| c.name == "MatMul Add Add opset 17").unwrap();
    let until = |output: &str| {
        let mut options = Options::default();
        options.output = Some(output.into());
        onnx::read_bytes(case.bytes(), &options)
    };
    assert_eq!(until("u").unwrap().graph.nodes().len(), 1);
    assert_eq!(until("y").unwrap().graph.nodes().len(), 2);
    // As the output, the product is read twice: no bias is added to it.
    let product = until("z").unwrap().graph;
    assert_eq!(product.parameters()[6..], [0.0, 0.0]);
    let error = until("v").unwrap_err().to_string();
    assert_eq!(error, "not a model that can be read: it has no value \"v\"");
}

#[test]
fn the_shape_of_a_record_may_be_given() {
    let (cases, _) = cases();
    let case = cases.iter().find(|c| c.name == "an open shape").unwrap();
    let with = |dims: &[usize]| {
        let mut options = Options::default();
        options.input = Some(dims.to_vec());
        onnx::read_bytes(case.bytes(), &options)
    };
    assert_eq!(with(&[7]).unwrap().graph.outputs(), 7);
    assert!(
        with(&[7, 1]).unwrap_err().to_string().contains("takes records of shape [?], not [7, 1]")
    );
    assert!(with(&[0]).is_err());
}

#[test]
fn a_graph_of_thousands_of_layers_is_read_as_fast_as_it_is_long() {
    use dosimeter_model::{Activation, Layer, Reshape};
    let layer = |i: usize| match i % 2 {
        0 => Layer::Activation(Activation::Tanh),
        _ => Layer::Reshape(Reshape { shape: if i % 4 == 1 { vec![1, 2] } else { vec![2] } }),
    };
    let graph = Graph::chain(&[2], (0..40_000).map(layer).collect()).unwrap();
    let bytes = onnx::write(&graph).unwrap();
    let again = read(&bytes).unwrap().graph;
    assert!(same(&again, &graph));
    assert_eq!(Graph::from_bytes(&graph.to_bytes().unwrap()).unwrap(), graph);
    assert!(run(&again, &[1.0, -1.0]).iter().all(|x| x.abs() < 0.02));
}

/// Some outputs of a pre-trained model.
#[derive(serde::Deserialize)]
struct Pretrained {
    file: String,
    record: Vec<usize>,
    outputs: usize,
    places: Vec<usize>,
    y: Vec<f32>,
    largest: f32,
}

#[test]
fn pre_trained_models_compute_what_onnx_runtime_computes() {
    let golden = golden::<Pretrained>("onnx_models");
    for case in golden.cases {
        let Some(path) = shared(&format!("data/models/{}", case.file)) else { continue };
        let mut options = Options::default();
        options.input = Some(case.record.clone());
        let model = onnx::read(&path, &options).unwrap();
        let graph = &model.graph;
        assert_eq!((graph.shape(Value::INPUT), graph.outputs()), (&case.record[..], case.outputs));
        let number = |i: usize| ((i * 7919 + 13) % 1009) as f32 / 504.5 - 1.0;
        let y = run(graph, &(0..2 * graph.inputs()).map(number).collect::<Vec<_>>());
        let kept = y.chunks(case.outputs).flat_map(|y| case.places.iter().map(|p| y[*p]));
        let worst = kept.zip(&case.y).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(
            f64::from(worst / case.largest.max(1.0)) < golden.tolerance,
            "{}: {worst}",
            case.file
        );
        let again = read(&onnx::write(graph).unwrap()).unwrap().graph;
        assert!(same(&again, graph), "{}", case.file);
    }
}

/// `cargo xtask test` says where a Python with ONNX Runtime is.
#[test]
#[expect(clippy::print_stderr, reason = "a skipped check must say so")]
fn onnx_runtime_computes_what_a_written_graph_computes() {
    let Some(python) = std::env::var_os("DOSIMETER_PYTHON") else {
        eprintln!(
            "skipped: written models in ONNX Runtime (DOSIMETER_PYTHON names no Python that has it)"
        );
        return;
    };
    let mut graphs: Vec<(String, Graph)> = Vec::new();
    for (i, case) in cases().0.iter().enumerate().filter(|(_, c)| c.error.is_none()) {
        graphs.push((format!("{i:03}"), read(&case.bytes()).unwrap().graph));
    }
    let mut rng = rand_chacha::ChaCha8Rng::from_seed([1; 32]);
    let (image, tanh) = (&[3, 32, 32], dosimeter_model::Activation::Tanh);
    for (name, graph) in [
        ("lenet", zoo::lenet(image, 10, &mut rng)),
        ("small-cnn", zoo::small_cnn(image, 10, tanh, &mut rng)),
        ("cnn", zoo::cnn(image, 10, tanh, Pool::Max, &mut rng)),
        ("mobilenet", zoo::mobilenet_v1(image, 10, &mut rng)),
    ] {
        graphs.push((name.into(), graph.unwrap()));
    }
    let folder = tempfile::tempdir().unwrap();
    let bytes = |x: &[f32]| x.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
    let mut ours = Vec::new();
    for (name, graph) in &graphs {
        let number = |i: usize| ((i * 7919 + 13) % 1009) as f32 / 1009.0 + 0.1;
        let x: Vec<f32> = (0..3 * graph.inputs()).map(number).collect();
        fs::write(folder.path().join(format!("{name}.onnx")), onnx::write(graph).unwrap()).unwrap();
        fs::write(folder.path().join(format!("{name}.x")), bytes(&x)).unwrap();
        ours.push(run(graph, &x));
    }
    let script = dosimeter_testing::workspace().join("crates/model/tests/onnx_runtime.py");
    let ran = std::process::Command::new(python).arg(script).arg(folder.path()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    for ((name, _), ours) in graphs.iter().zip(&ours) {
        let theirs = fs::read(folder.path().join(format!("{name}.y"))).unwrap();
        let theirs: Vec<f32> =
            theirs.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        assert_eq!(theirs.len(), ours.len(), "{name}");
        for (a, b) in ours.iter().zip(&theirs) {
            assert!((a - b).abs() <= 1e-5 * b.abs().max(1.0), "{name}: {a}, not {b}");
        }
    }
}
