//! Graphs of every form, whole and broken. The test writes each file it reads.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "support functions of tests fail loudly and are called with literals"
)]
use dosimeter_data::graphs::{
    self, GraphFiles, GraphSet, GraphSpec, GraphText, NodeFeature, NodeFeatures, Quantiles, load,
};
use dosimeter_data::{Dataset, Error, GraphProblem, RecordId, Seed, Split, SplitSpec};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

struct Folder(tempfile::TempDir);
impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
    fn zip(&self, name: &str, entries: &[(&str, &str)]) -> PathBuf {
        let path = self.0.path().join(name);
        let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        for (name, text) in entries {
            zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        }
        zip.finish().unwrap();
        path
    }
}
fn dgcnn(path: &Path) -> Result<GraphSet, Error> {
    load(&GraphSpec::Dgcnn(GraphText::new(path.to_owned())))
}
fn tudataset(path: &Path) -> Result<GraphSet, Error> {
    load(&GraphSpec::Tudataset(GraphFiles::new(path.to_owned())))
}
/// The file's name is a temporary one: drop all up to its last folder.
fn said(error: &Error, folder: &Folder) -> String {
    error.to_string().replace(&format!("{}/", folder.0.path().display()), "")
}
fn lists(set: &GraphSet) -> Vec<Vec<Vec<u32>>> {
    set.graphs().map(|g| (0..g.nodes()).map(|n| g.neighbours(n).to_vec()).collect()).collect()
}

/// A triangle with a tail (class 4) and a pair beside a node alone (class -1).
const TWO: &str = "2\n4 4\n7 2 1 2\n7 2 2 0\n9 3 0 1 3\n7 1 2\n3 -1\n9 1 1\n9 1 0\n7 0\n";
const TWO_FILES: [(&str, &str); 4] = [
    ("T_A.txt", "1, 2\n2, 1\n1,3\n3,1\n2, 3\n3, 2\n3, 4\n4, 3\n5, 6\n6, 5\n"),
    ("T_graph_indicator.txt", "1\n1\n1\n1\n2\n2\n2\n"),
    ("T_graph_labels.txt", "4\n-1\n"),
    ("T_node_labels.txt", "7\n7\n9\n7\n9\n9\n7\n"),
];

#[test]
fn both_forms_give_the_same_graphs_plain_and_in_a_zip() {
    let folder = Folder::new();
    let plain = dgcnn(&folder.write("two.txt", TWO)).unwrap();
    assert_eq!((plain.len(), plain.nodes(), plain.edges()), (2, 7, 5));
    assert_eq!(
        lists(&plain),
        [vec![vec![1, 2], vec![0, 2], vec![0, 1, 3], vec![2]], vec![vec![1], vec![0], vec![]],]
    );
    assert_eq!(plain.class_names(), ["-1", "4"]);
    assert_eq!(plain.labels(), [1, 0]);
    assert_eq!(plain.tag_names(), ["7", "9"]);
    let second = plain.graph(1).unwrap();
    assert_eq!((second.tags, second.label, second.edges()), ([1, 1, 0].as_slice(), 0, 1));
    assert_eq!(plain.graph(2), None);
    let four = Quantiles { least: 3, tenth: 3, median: 3, ninety: 4, most: 4 };
    assert_eq!(plain.sizes()[0], four);
    for (name, text) in TWO_FILES {
        folder.write(&format!("T/{name}"), text);
    }
    let files = TWO_FILES.map(|(name, text)| (format!("T/{name}"), text));
    let files: Vec<(&str, &str)> = files.iter().map(|(n, t)| (n.as_str(), *t)).collect();
    let junk = [("T/.DS_Store", ""), ("__MACOSX/T/._T_A.txt", "")];
    for set in [
        dgcnn(&folder.zip("a.zip", &[("T/fold/1.txt", "0\n"), ("T/T.txt", TWO)])).unwrap(),
        dgcnn(&folder.zip("b.zip", &[("two.txt", TWO), junk[1]])).unwrap(),
        tudataset(&folder.0.path().join("T")).unwrap(),
        tudataset(&folder.zip("t.zip", &[&files[..], &junk[..]].concat())).unwrap(),
    ] {
        assert_eq!(set.fingerprint(), plain.fingerprint(), "{}", set.name);
    }
    let member = Some("x/1.txt".to_owned());
    let path = folder.zip("c.zip", &[("x/1.txt", TWO), ("x/2.txt", "0\n")]);
    let error = dgcnn(&path).unwrap_err();
    assert!(error.to_string().contains("name one with `member`"), "{error}");
    let named = load(&GraphSpec::Dgcnn(GraphText { member, ..GraphText::new(path) })).unwrap();
    assert_eq!(named.fingerprint(), plain.fingerprint());
}
#[test]
fn loops_and_repetitions_are_dropped_and_counted() {
    let folder = Folder::new();
    let plain = dgcnn(&folder.write("a", "2\n2 0\n0 1 1\n0 1 0\n1 1\n0 0\n")).unwrap();
    let noisy = "2\n2 0\n0 4 1 0 1 1\n0 1 0\n1 1\n0 2 0 0\n";
    let noisy = dgcnn(&folder.write("b", noisy)).unwrap();
    assert_eq!(noisy.fingerprint(), plain.fingerprint());
    assert_eq!((noisy.dropped().self_loops, noisy.dropped().repeated), (3, 2));
    assert_eq!((plain.dropped().self_loops, plain.dropped().repeated), (0, 0));
}
#[test]
fn nodes_may_have_numbers_in_both_forms() {
    let folder = Folder::new();
    let text = dgcnn(&folder.write("a", "2\n2 0\n0 1 1 0.5 -2\n0 1 0 1e3 4\n1 1\n0 0 7 8\n"));
    let text = text.unwrap();
    assert_eq!(text.attribute_width(), 2);
    assert_eq!(text.graph(0).unwrap().attributes, [0.5, -2.0, 1000.0, 4.0]);
    assert_eq!(text.graph(1).unwrap().attributes, [7.0, 8.0]);
    for (name, text) in [
        ("X_A.txt", "1,2\n2,1\n"),
        ("X_graph_indicator.txt", "1\n1\n2\n"),
        ("X_graph_labels.txt", "0\n1\n"),
        ("X_node_labels.txt", "0\n0\n0\n"),
        ("X_node_attributes.txt", "0.5, -2\n1e3, 4\n7, 8\n"),
    ] {
        folder.write(&format!("X/{name}"), text);
    }
    let files = tudataset(&folder.0.path().join("X")).unwrap();
    assert_eq!(files.fingerprint(), text.fingerprint());
    std::fs::remove_file(folder.0.path().join("X/X_node_labels.txt")).unwrap();
    let untagged = tudataset(&folder.0.path().join("X")).unwrap();
    assert!(untagged.tag_names().is_empty() && untagged.graph(0).unwrap().tags.is_empty());
    assert_ne!(untagged.fingerprint(), text.fingerprint());
}
#[test]
fn broken_texts_say_row_and_graph_and_what_was_needed() {
    let folder = Folder::new();
    for (text, expected) in [
        ("", "a: no records"),
        ("x\n", "a, row 1, field `number of graphs` is not a whole number of at most 18 digits"),
        ("-1\n", "a, row 1, field `number of graphs` is not a whole number of at most 18 digits"),
        ("0\n", "a: no records"),
        ("2\n1 0\n0 0\n", "a: ends before its first line of graph 2, declares 2 graphs"),
        ("1\n3 0\n0 0\n", "a: ends before all its nodes of graph 1, declares 1 graphs"),
        (
            "999999999999\n999999999999 0\n0 0\n",
            "a: ends before all its nodes of graph 1, declares 999999999999 graphs",
        ),
        (
            "1\n1 0\n0 0\n1 0\n",
            "a: not a readable DGCNN file: goes on after the 1 graphs that its first line declares",
        ),
        ("1\n0 0\n", "a, row 2, graph 1: has no node, needs at least one"),
        ("1\n2\n", "a, row 2, field `label` is empty"),
        ("1\n2 0 1\n", "a, row 2: 3 fields, needs 2 like the rows before it"),
        ("1\n1 0\n0\n", "a, row 3, field `degree` is empty"),
        ("1\n1 0\n0.5 0\n", "a, row 3, field `tag` is not a whole number of at most 18 digits"),
        ("1\n2 0\n0 2 1\n0 0\n", "a, row 3, graph 1: a node declares 2 neighbours and lists 1"),
        (
            "1\n2 0\n0 99999999999999999 1\n",
            "a, row 3, graph 1: a node declares 99999999999999999 neighbours and lists 1",
        ),
        (
            "1\n2 0\n0 1 2\n0 0\n",
            "a, row 3, graph 1: a node has a neighbour beyond the 2 nodes of its graph",
        ),
        (
            "1\n2 0\n0 1 -1\n0 0\n",
            "a, row 3, field `neighbour` is not a whole number of at most 18 digits",
        ),
        (
            "1\n2 0\n0 1 1\n0 0\n",
            "a, row 3, graph 1: node 0 lists node 1 (from 0) but not the other way round: edges need both",
        ),
        (
            "1\n3 0\n0 0\n0 1 0\n0 0\n",
            "a, row 4, graph 1: node 1 lists node 0 (from 0) but not the other way round: edges need both",
        ),
        (
            "1\n2 0\n0 0 1\n0 0\n",
            "a, row 4, graph 1: a node has 0 attributes, needs 1 like the nodes before it",
        ),
        ("1\n1 0\n0 0 NaN\n", "a, row 3, field `attribute` is not finite"),
        ("1\n1 0\n0 0 x\n", "a, row 3, field `attribute` is not a number"),
        ("1\n1 0\n0 0\n", "a: 1 classes, needs at least 2"),
    ] {
        let path = folder.write("a", text);
        assert_eq!(said(&dgcnn(&path).unwrap_err(), &folder), expected, "{text}");
    }
}
#[test]
fn broken_files_say_row_and_graph_and_what_was_needed() {
    for (file, text, expected) in [
        (
            "T_A.txt",
            "1, 2\n",
            "T/T_A.txt, row 1, graph 1: node 0 lists node 1 (from 0) but not the other way round: edges need both",
        ),
        (
            "T_A.txt",
            "1, 8\n",
            "T/T_A.txt, row 1, field `neighbour` is none of the 7 nodes, which are numbered from 1",
        ),
        (
            "T_A.txt",
            "0, 1\n",
            "T/T_A.txt, row 1, field `node` is none of the 7 nodes, which are numbered from 1",
        ),
        ("T_A.txt", "\n1\n", "T/T_A.txt, row 2, field `neighbour` is empty"),
        ("T_A.txt", "1, 2, 3\n", "T/T_A.txt, row 1: 3 fields, needs 2 like the rows before it"),
        ("T_A.txt", "4, 5\n5, 4\n", "T/T_A.txt, row 1, graph 1: is joined to graph 2"),
        ("T_graph_indicator.txt", "", "T/T_graph_indicator.txt: no records"),
        (
            "T_graph_indicator.txt",
            "2\n",
            "T/T_graph_indicator.txt, row 1, graph 1: needs its nodes after those of graph 0, without a graph between",
        ),
        (
            "T_graph_indicator.txt",
            "1\n3\n",
            "T/T_graph_indicator.txt, row 2, graph 2: needs its nodes after those of graph 1, without a graph between",
        ),
        (
            "T_graph_indicator.txt",
            "1\n2\n1\n",
            "T/T_graph_indicator.txt, row 3, graph 3: needs its nodes after those of graph 2, without a graph between",
        ),
        ("T_graph_indicator.txt", "1\n", "T/T_graph_indicator.txt: 1 records but 2 labels"),
        ("T_graph_indicator.txt", "1\n2\n3\n", "T/T_graph_indicator.txt: 3 records but 2 labels"),
        (
            "T_graph_labels.txt",
            "1\nx\n",
            "T/T_graph_labels.txt, row 2, field `label` is not a whole number of at most 18 digits",
        ),
        ("T_graph_labels.txt", "3\n3\n", "T/T_A.txt: 1 classes, needs at least 2"),
        ("T_node_labels.txt", "1\n", "T/T_node_labels.txt: 1 rows, needs 7, one per node"),
        (
            "T_node_attributes.txt",
            "1, 2\n1\n",
            "T/T_node_attributes.txt, row 2: 1 fields, needs 2 like the rows before it",
        ),
        (
            "T_node_attributes.txt",
            "1\n2\n",
            "T/T_node_attributes.txt: 2 rows, needs 7, one per node",
        ),
        (
            "T_node_attributes.txt",
            "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
            "T/T_node_attributes.txt: 8 rows, needs 7, one per node",
        ),
        (
            "T_node_attributes.txt",
            "1\ninf\n",
            "T/T_node_attributes.txt, row 2, field `attribute` is not finite",
        ),
    ] {
        let folder = Folder::new();
        for (name, text) in TWO_FILES {
            folder.write(&format!("T/{name}"), text);
        }
        folder.write(&format!("T/{file}"), text);
        let error = tudataset(&folder.0.path().join("T")).unwrap_err();
        assert_eq!(said(&error, &folder), expected, "{file}: {text}");
    }
    let folder = Folder::new();
    std::fs::create_dir(folder.0.path().join("T")).unwrap();
    let error = tudataset(&folder.0.path().join("T")).unwrap_err();
    assert!(error.to_string().contains("no `single NAME_A.txt` in it"), "{error}");
    folder.write("T/T_A.txt", "");
    let error = tudataset(&folder.0.path().join("T")).unwrap_err();
    assert!(
        error.to_string().contains("no `T_graph_indicator.txt` in it; it holds T_A.txt"),
        "{error}"
    );
    folder.write("T/U_A.txt", "");
    assert!(matches!(tudataset(&folder.0.path().join("T")), Err(Error::Missing { .. })));
    let error = tudataset(&folder.write("text", "1\n")).unwrap_err();
    assert!(matches!(error, Error::Setting { .. }), "{error}");
}
#[test]
fn graphs_are_split_by_class_as_tables_are() {
    let folder = Folder::new();
    let mut text = "40\n".to_owned();
    (0..40).for_each(|i| text.push_str(&format!("1 {}\n0 0\n", u32::from(i % 4 == 0))));
    let set = dgcnn(&folder.write("forty", text)).unwrap();
    let split = Split::draw(&set, SplitSpec { train: 8, test: 8 }, Seed::root(3)).unwrap();
    let ones =
        |records: &[RecordId]| records.iter().filter(|r| set.labels()[r.0 as usize] == 1).count();
    assert_eq!((split.candidates.len(), ones(&split.candidates)), (16, 4));
    assert_eq!((split.test.len(), ones(&split.test)), (8, 2));
    let shadow = split.shadow_candidates(&set, 4, Seed::root(4)).unwrap();
    assert_eq!((shadow.len(), ones(&shadow)), (8, 2));
}

/// Graphs as people draw them: per graph its label, its tags and its edges.
type Drawn = Vec<(i64, Vec<i64>, BTreeSet<(u32, u32)>)>;
fn drawn() -> impl Strategy<Value = Drawn> {
    let graph = (1..9_u32).prop_flat_map(|nodes| {
        let edge = (0..nodes, 0..nodes).prop_map(|(a, b)| (a.min(b), a.max(b)));
        let tags = prop::collection::vec(-3..4_i64, nodes as usize);
        (-2..3_i64, tags, prop::collection::btree_set(edge, 0..20))
    });
    prop::collection::vec(graph, 2..8)
}
fn as_text(graphs: &Drawn, seed: u64) -> String {
    let mut text = format!("{}\n", graphs.len());
    for (label, tags, edges) in graphs {
        text.push_str(&format!("{} {label}\n", tags.len()));
        for (node, tag) in (0..).zip(tags) {
            let mut list: Vec<u32> = edges.iter().filter(|e| e.0 == node).map(|e| e.1).collect();
            list.extend(edges.iter().filter(|e| e.1 == node && e.0 != e.1).map(|e| e.0));
            // Any order will do.
            list.sort_by_key(|n| (u64::from(*n) + 1).wrapping_mul(seed | 1));
            text.push_str(&format!("{tag} {}", list.len()));
            list.iter().for_each(|n| text.push_str(&format!(" {n}")));
            text.push('\n');
        }
    }
    text
}
fn as_files(graphs: &Drawn, folder: &Folder) -> PathBuf {
    let (mut entries, mut indicator, mut tags, mut first) = (vec![], vec![], vec![], 1);
    for (i, (_, own, edges)) in graphs.iter().enumerate() {
        for (a, b) in edges {
            entries.push(format!("{}, {}", a + first, b + first));
            entries.push(format!("{}, {}", b + first, a + first));
        }
        indicator.extend(own.iter().map(|_| (i + 1).to_string()));
        tags.extend(own.iter().map(i64::to_string));
        first += own.len() as u32;
    }
    let labels = graphs.iter().map(|g| g.0.to_string()).collect();
    for (name, mut lines) in [
        ("A", entries),
        ("graph_indicator", indicator),
        ("graph_labels", labels),
        ("node_labels", tags),
    ] {
        if name == "A" {
            lines.reverse();
        }
        folder.write(&format!("G/G_{name}.txt"), lines.join("\n"));
    }
    folder.0.path().join("G")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn graphs_are_read_back_as_they_were_drawn(graphs in drawn(), seed: u64) {
        let folder = Folder::new();
        let text = dgcnn(&folder.write("g", as_text(&graphs, seed)));
        let files = tudataset(&as_files(&graphs, &folder));
        if graphs.iter().all(|g| g.0 == graphs[0].0) {
            let one_class = |r: Result<GraphSet, Error>| matches!(r, Err(Error::TooFewClasses { .. }));
            prop_assert!(one_class(text) && one_class(files));
            return Ok(());
        }
        let (text, files) = (text.unwrap(), files.unwrap());
        prop_assert_eq!(text.fingerprint(), files.fingerprint());
        for (graph, (label, tags, edges)) in text.graphs().zip(&graphs) {
            prop_assert_eq!(&text.class_names()[graph.label as usize], &label.to_string());
            let named: Vec<String> =
                graph.tags.iter().map(|&t| text.tag_names()[t as usize].clone()).collect();
            prop_assert_eq!(named, tags.iter().map(i64::to_string).collect::<Vec<_>>());
            let mut found = BTreeSet::new();
            for node in 0..graph.nodes() {
                let list = graph.neighbours(node);
                prop_assert!(list.windows(2).all(|w| w[0] < w[1]));
                found.extend(list.iter().map(|&n| (n.min(node as u32), n.max(node as u32))));
            }
            let wanted: BTreeSet<(u32, u32)> = edges.iter().copied().filter(|e| e.0 != e.1).collect();
            prop_assert_eq!(graph.edges(), wanted.len());
            prop_assert_eq!(found, wanted);
        }
        let loops = graphs.iter().flat_map(|g| &g.2).filter(|e| e.0 == e.1).count() as u64;
        prop_assert_eq!(text.dropped().self_loops, loops);
    }

    /// An entry taken out of one list alone is found, whichever it is.
    #[test]
    fn an_edge_in_one_list_only_is_refused(graphs in drawn(), which: prop::sample::Index, back: bool) {
        let edges: Vec<(usize, (u32, u32))> = graphs.iter().enumerate()
            .flat_map(|(i, g)| g.2.iter().filter(|e| e.0 != e.1).map(move |e| (i, *e))).collect();
        prop_assume!(!edges.is_empty());
        let (graph, (a, b)) = edges[which.index(edges.len())];
        let (from, to) = if back { (b, a) } else { (a, b) };
        let mut lines: Vec<String> = as_text(&graphs, 0).lines().map(str::to_owned).collect();
        let head: usize = 1 + graphs[..graph].iter().map(|g| g.1.len() + 1).sum::<usize>();
        let line = &mut lines[head + 1 + from as usize];
        let mut fields: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let at = 2 + fields[2..].iter().position(|f| *f == to.to_string()).unwrap();
        fields.remove(at);
        fields[1] = (fields.len() - 2).to_string();
        *line = fields.join(" ");
        let folder = Folder::new();
        let error = dgcnn(&folder.write("g", lines.join("\n"))).unwrap_err();
        let wanted = GraphProblem::OneSided { node: u64::from(to), neighbour: from };
        let Error::Graph { graph: found, problem, .. } = &error else { panic!("{error}") };
        prop_assert_eq!((*found, problem), (graph as u64 + 1, &wanted));
    }

    /// Texts cut short or changed anywhere are read or refused, and never end the program.
    #[test]
    fn damage_is_never_worse_than_an_error(at: prop::sample::Index, byte: u8, cut: bool, file in 0..5_usize) {
        let folder = Folder::new();
        let damage = |text: &str| {
            let mut bytes = text.as_bytes().to_vec();
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] = byte }
            bytes
        };
        let result = if file == 4 {
            dgcnn(&folder.write("two", damage(TWO)))
        } else {
            for (i, (name, text)) in TWO_FILES.iter().enumerate() {
                let bytes = if i == file { damage(text) } else { text.as_bytes().to_vec() };
                folder.write(&format!("T/{name}"), bytes);
            }
            tudataset(&folder.0.path().join("T"))
        };
        if let Ok(set) = result {
            prop_assert!(set.class_names().len() == 2);
            prop_assert_eq!(set.graphs().map(|g| g.nodes()).sum::<usize>(), set.nodes());
        }
    }
}

/// Graphs as a data set: features by hand, node counts by feature, and what cannot be asked for.
#[test]
fn graphs_are_records_of_a_data_set() {
    let folder = Folder::new();
    let set = || dgcnn(&folder.write("two.txt", TWO)).unwrap();
    let features = |feature, most_degree| NodeFeatures { feature, most_degree };
    // Two tags: they are what a node is known by.
    let data = Dataset::from_graphs(set(), features(None, None)).unwrap();
    let row = |data: &Dataset, i: usize| {
        let mut row = vec![];
        data.inputs.append_row(i, &mut row);
        row
    };
    assert_eq!((data.len(), data.width(), data.classes), (2, 2, 2));
    assert_eq!(data.labels, [1, 0]);
    assert_eq!((row(&data, 0), row(&data, 1)), (vec![3.0, 1.0], vec![1.0, 2.0]));
    assert_eq!(data.column_runs()[0].to_string(), "graph: graph, nodes of 2 features");
    // Degrees 2, 2, 3, 1 and 1, 1, 0; no graph has more than 4 nodes.
    let degree = Some(NodeFeature::Degree);
    let data = Dataset::from_graphs(set(), features(degree, None)).unwrap();
    assert_eq!(row(&data, 0), [0.0, 1.0, 2.0, 1.0]);
    assert_eq!(row(&data, 1), [1.0, 2.0, 0.0, 0.0]);
    let most = Dataset::from_graphs(set(), features(degree, Some(2))).unwrap();
    assert_eq!(row(&most, 0), [0.0, 1.0, 3.0]);
    let graphs = most.graphs().unwrap();
    assert_eq!(graphs.node_features(0).collect::<Vec<_>>(), [2, 2, 2, 1]);
    assert_eq!(graphs.node_features(2).count(), 0);
    assert_ne!(most.fingerprint(), data.fingerprint());
    for (wrong, says) in [
        (
            features(Some(NodeFeature::Tag), Some(3)),
            "`most_degree` is 3 for tags, needs node_feature = \"degree\"",
        ),
        (features(degree, Some(0)), "`most_degree` is 0, needs a whole number from 1"),
        (features(degree, Some(u32::MAX)), "`most_degree` is 4294967295, needs a whole number"),
    ] {
        let error = Dataset::from_graphs(set(), wrong).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    // One tag says nothing; none cannot be asked for.
    let path = folder.write("one", "2\n2 0\n0 1 1\n0 1 0\n1 1\n0 0\n");
    let one = Dataset::from_graphs(dgcnn(&path).unwrap(), features(None, None)).unwrap();
    assert_eq!(one.graphs().unwrap().feature(), NodeFeature::Degree);
    for (name, text) in [
        ("X/X_A.txt", "1,2\n2,1\n"),
        ("X/X_graph_indicator.txt", "1\n1\n2\n"),
        ("X/X_graph_labels.txt", "0\n1\n"),
    ] {
        folder.write(name, text);
    }
    let untagged = tudataset(&folder.0.path().join("X")).unwrap();
    let tag = features(Some(NodeFeature::Tag), None);
    let error = Dataset::from_graphs(untagged, tag).unwrap_err().to_string();
    assert!(
        error.contains("`node_feature` is \"tag\" of nodes without tags, needs \"degree\""),
        "{error}"
    );
    // The more frequent class alone.
    let three = folder.write("three", "3\n1 5\n0 0\n2 6\n0 1 1\n0 1 0\n1 5\n0 0\n");
    let three = Dataset::from_graphs(dgcnn(&three).unwrap(), features(None, None)).unwrap();
    let both = three.clone().most_frequent_classes(2).unwrap();
    assert_eq!(both.graphs(), three.graphs());
    assert!(three.most_frequent_classes(1).is_err());
}

proptest! {
    /// Other edges on the same nodes: every list is the one the edges say, and the old edges give the old set.
    #[test]
    fn edges_are_replaced(nodes in 1_u32..9, picks in prop::collection::vec(any::<bool>(), 36)) {
        let folder = Folder::new();
        let set = dgcnn(&folder.write("two.txt", TWO)).unwrap();
        let own = |g: graphs::Graph<'_>, out: &mut Vec<(u32, u32)>| {
            for a in 0..g.nodes() as u32 {
                out.extend(g.neighbours(a as usize).iter().filter(|b| **b > a).map(|b| (a, *b)));
            }
        };
        prop_assert_eq!(&set.with_edges(own).unwrap(), &set);
        let text = format!("2\n{nodes} 0\n{}1 1\n0 0\n", "0 0\n".repeat(nodes as usize));
        let bare = dgcnn(&folder.write("bare", text)).unwrap();
        let pairs = (0..nodes).flat_map(|a| (a + 1..nodes).map(move |b| (a, b)));
        let edges: Vec<_> = pairs.zip(&picks).filter(|(_, p)| **p).map(|(e, _)| e).collect();
        let made = bare.with_edges(|g, out| {
            out.extend(edges.iter().filter(|_| g.nodes() == nodes as usize && g.label == 0));
        });
        // A second graph of as many nodes has another label.
        let made = made.unwrap();
        let lists = lists(&made);
        for a in 0..nodes {
            let right: Vec<u32> = (0..nodes)
                .filter(|b| edges.contains(&(a, *b)) || edges.contains(&(*b, a)))
                .collect();
            prop_assert_eq!(&lists[0][a as usize], &right);
        }
        for wrong in [(0, 0), (1, 0), (0, nodes)] {
            let refused = bare.with_edges(|_, out| out.push(wrong));
            prop_assert!(refused.is_err());
        }
    }
}
