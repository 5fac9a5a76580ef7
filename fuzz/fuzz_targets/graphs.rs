//! Any bytes as a DGCNN text or zip, or (odd first byte) cut at lines of `--` into the four files of a TUDataset.
#![no_main]
use dosimeter_data::graphs::{GraphFiles, GraphSet, GraphSpec, GraphText, load};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (Ok(folder), Some((how, bytes))) = (tempfile::tempdir(), bytes.split_first()) else {
        return;
    };
    let path = folder.path().join("text");
    let spec = if how % 2 == 0 {
        if std::fs::write(&path, bytes).is_err() {
            return;
        }
        GraphSpec::Dgcnn(GraphText::new(path))
    } else {
        let text = String::from_utf8_lossy(bytes);
        let names = ["A", "graph_indicator", "graph_labels", "node_labels", "node_attributes"];
        for (name, part) in names.iter().zip(text.split("--\n")) {
            if std::fs::write(folder.path().join(format!("T_{name}.txt")), part).is_err() {
                return;
            }
        }
        GraphSpec::Tudataset(GraphFiles::new(folder.path().to_owned()))
    };
    if let Ok(set) = load(&spec) {
        holds(&set);
    }
});

/// Whatever was accepted is a set of undirected graphs.
fn holds(set: &GraphSet) {
    assert!(!set.is_empty() && set.class_names().len() >= 2);
    for graph in set.graphs() {
        for node in 0..graph.nodes() {
            for &other in graph.neighbours(node) {
                assert!(other as usize != node);
                assert!(graph.neighbours(other as usize).binary_search(&(node as u32)).is_ok());
            }
        }
    }
    assert_eq!(set.fingerprint().len(), 64);
}
