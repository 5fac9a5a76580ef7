//! Studies of graphs: a whole run with central and local arms, and what is refused.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use dosimeter_study::Session;
use dosimeter_study::account::{Relation, Unit};
use dosimeter_study::run::{Silent, Speed};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Rings and stars of 5 to 12 nodes in the text form of DGCNN.
fn write_graphs(folder: &Path, graphs: usize) {
    let mut text = format!("{graphs}\n");
    for i in 0..graphs {
        let (nodes, star) = (5 + i % 8, i % 2 == 1);
        writeln!(text, "{nodes} {}", i % 2).unwrap();
        for node in 0..nodes {
            let list: Vec<usize> = match (star, node) {
                (true, 0) => (1..nodes).collect(),
                (true, _) => vec![0],
                _ => vec![(node + nodes - 1) % nodes, (node + 1) % nodes],
            };
            let list: Vec<String> = list.iter().map(ToString::to_string).collect();
            writeln!(text, "0 {} {}", list.len(), list.join(" ")).unwrap();
        }
    }
    std::fs::write(folder.join("graphs.txt"), text).unwrap();
}

const STUDY: &str = r#"name = "rings"
seed = 3
[dataset]
kind = "dgcnn"
path = "graphs.txt"
[split]
train = 40
test = 60
[target]
model = "dgcnn"
learning_rate = 0.01
batch_size = 10
epochs = 8
[shadows]
count = 1
[[arms]]
central = { noise_multipliers = [1], clipping_norm = 1 }
[[arms]]
local = { edge_randomized_response = { epsilons = [2] } }
[attacks]
white_box = { filters = 4, epochs = 3 }
"#;

const TABLE: &str =
    "kind = \"skewed-purchases\"\nclasses = 10\ntrain_records = 1000\ntest_records = 500";

fn study(folder: &Path, text: &str) -> PathBuf {
    let file = folder.join("rings.toml");
    std::fs::write(&file, text).unwrap();
    file
}

#[test]
fn a_study_of_graphs_runs_from_the_file_to_the_report() {
    let folder = tempfile::tempdir().unwrap();
    write_graphs(folder.path(), 300);
    let session = Session::open(&study(folder.path(), STUDY)).unwrap();
    // 5 to 12 nodes: 10, 15, .. 66 pairs; 37 or 38 graphs of each size.
    let (setting, line) = &session.plan.edges[0];
    assert_eq!(setting, "edges eps=2");
    assert!(line.starts_with("Edges are 2"), "{line}");
    let root = folder.path().join("run");
    let report = session.run(&root, Speed { threads: Some(2) }, &Silent).unwrap();
    assert_eq!(report.arms.len(), 3);
    let plain = &report.arms[0];
    assert!(plain.test_accuracy.value > 0.9, "{:?}", plain.test_accuracy);
    assert!(report.arms[1].epsilon_upper[0].value.get() < 40.0);
    assert_eq!(
        report.provenance.recipes[2].text,
        "dgcnn keeping the nodes of nine tenths of the graphs, adam at 0.01, batch 10, at most 8 epochs, l2 0, pairs of nodes \
         randomized at 2 nats each"
    );
    assert!(plain.attacks.iter().any(|a| a.attack == "white_box"));

    // 66 pairs of the largest graph cost 132 nats, and that leads; an edge costs 2.
    let edges = &report.arms[2];
    let (whole, edge) = (&edges.epsilon_upper[0], edges.epsilon_upper.last().unwrap());
    assert!((whole.value.get() - 132.0).abs() < 1e-9);
    assert_eq!((whole.relation, whole.unit), (Relation::Local, Unit::FeatureVector));
    assert!((edge.value.get() - 2.0).abs() < 1e-12 && edge.unit == Unit::Edge);
    assert!(edge.caveats.iter().any(|c| c.contains("differ in one edge")), "{:?}", edge.caveats);
    let notes: Vec<&str> = report.notes.iter().map(|n| n.text.as_str()).collect();
    assert!(notes.iter().any(|n| n.contains("66 pairs of nodes") && n.contains(line)), "{notes:?}");
    assert!(notes.iter().any(|n| n.contains("numbers of nodes are public")), "{notes:?}");
}

#[test]
fn what_does_not_fit_graphs_is_told_before_anything_is_trained() {
    let folder = tempfile::tempdir().unwrap();
    write_graphs(folder.path(), 300);
    let refused = |text: &str| {
        Session::open(&study(folder.path(), text)).map(|_| ()).unwrap_err().to_string()
    };
    for (from, to, says) in [
        ("model = \"dgcnn\"", "model = \"lenet\"", "target.model: needs \"dgcnn\" for graphs"),
        ("model = \"dgcnn\"\n", "", "target.model: needs \"dgcnn\" for graphs"),
        ("model = \"dgcnn\"", "model = \"dgcnn\"\nnodes = 9", "target.nodes: needs a whole number"),
        ("model = \"dgcnn\"", "model = \"cnn\"\nnodes = 20", "target.nodes: belongs to model"),
        (
            "path = \"graphs.txt\"",
            "path = \"graphs.txt\"\nmost_degree = 0",
            "dataset.most_degree: needs a whole number from 1",
        ),
        (
            "edge_randomized_response = { epsilons = [2] }",
            "edge_randomized_response = { epsilons = [0] }",
            "local.edge_randomized_response.epsilons: needs a list of numbers above 0",
        ),
        (
            "edge_randomized_response = { epsilons = [2] }",
            "epsilons_per_feature = [2]",
            "randomized by their edges",
        ),
        (
            "edge_randomized_response = { epsilons = [2] }",
            "edge_randomized_response = { epsilons = [2] }, epsilons_per_feature = [1]",
            "got epsilons_per_feature and edge_randomized_response",
        ),
    ] {
        let text = STUDY.replace(from, to);
        assert_ne!(text, STUDY);
        let error = refused(&text);
        assert!(error.contains(says), "{to}: {error}");
    }
    // Edges of a table, and a network for graphs on it.
    let table =
        (STUDY.replace("kind = \"dgcnn\"\npath = \"graphs.txt\"", TABLE), "model = \"dgcnn\"\n");
    let error = refused(&table.0);
    assert!(error.contains("target.model: \"dgcnn\" needs graphs"), "{error}");
    let error = refused(&table.0.replace(table.1, ""));
    assert!(error.contains("arms: `edges eps=2`") && error.contains("needs graphs"), "{error}");
    // Graphs of one node are records like others, but one class is too few.
    std::fs::write(folder.path().join("graphs.txt"), "2\n1 0\n0 0\n1 0\n0 0\n").unwrap();
    assert!(refused(STUDY).contains("class"), "{}", refused(STUDY));
}
