//! Any bytes as an ONNX model; one that is read and small also runs, and comes back from being written.
#![no_main]
use dosimeter_model::{Rows, Value, Workspace, onnx};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let options = onnx::Options::default();
    let Ok(model) = onnx::read_bytes(bytes.to_vec(), &options) else { return };
    let graph = model.graph;
    let read = graph.nodes().iter().flat_map(|node| &node.inputs);
    let values = read.chain([&Value::INPUT]);
    let numbers: usize = values.map(|v| graph.shape(*v).iter().product::<usize>()).sum();
    if numbers + graph.outputs() > 10_000 {
        return;
    }
    let values = vec![0.5; 2 * graph.inputs()];
    let rows = Rows::Dense { width: graph.inputs(), values: &values };
    let outputs = graph.forward(&rows, &mut Workspace::new()).map(<[f32]>::len);
    assert_eq!(outputs, Ok(2 * graph.outputs()));
    let written = onnx::write(&graph).expect("what was read can be written");
    let again = onnx::read_bytes(written, &options).expect("what was written can be read");
    assert_eq!(again.graph.outputs(), graph.outputs());
});
