//! Labelled graphs in memory: another kind of record than a row of a table.
//!
//! A loader is its file in this folder, its `mod` line and its variant of [`GraphSpec`], and its line in [`GRAPHS`].
use crate::datasets::DatasetKind;
use crate::split::Labelled;
use crate::{Error, GraphProblem};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::PathBuf;

mod builder;
mod dgcnn;
mod records;
mod text;
mod tudataset;

pub use records::{GraphRecords, HIGHEST_MOST_DEGREE, MOST_DEGREE, NodeFeature, NodeFeatures};

/// Undirected graphs, each with a class. Graph `i` is [`RecordId`](crate::RecordId)`(i)` for ever; its nodes are numbered from 0.
///
/// Each edge stands in the list of both its ends; no node is its own neighbour, no neighbour stands in a list twice.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphSet {
    /// Where it came from, for people.
    pub name: String,
    /// First node of each graph in `first_neighbour` and `tags`, and the number of nodes of all: `graphs + 1` numbers.
    first_node: Vec<usize>,
    /// First neighbour of each node in `neighbours`, and their number: `nodes + 1` numbers.
    first_neighbour: Vec<usize>,
    /// Neighbours of each node, ascending, numbered within their graph.
    neighbours: Vec<u32>,
    /// Tag of each node, below `tag_names.len()`; none if nodes have no tags.
    tags: Vec<u32>,
    tag_names: Vec<String>,
    /// Numbers of each node, node after node.
    attributes: Vec<f32>,
    attribute_width: usize,
    labels: Vec<u32>,
    class_names: Vec<String>,
    dropped: Dropped,
}
/// Entries of a file that say nothing about who is connected to whom. They are left out, and counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// Entries that join a node to itself.
    pub self_loops: u64,
    /// Entries that repeat a neighbour of the same node.
    pub repeated: u64,
}
/// One graph.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Graph<'a> {
    first_neighbour: &'a [usize],
    neighbours: &'a [u32],
    /// Tag of each node; empty if nodes have no tags.
    pub tags: &'a [u32],
    /// Numbers of each node, node after node; empty if nodes have none.
    pub attributes: &'a [f32],
    /// Its class.
    pub label: u32,
}
impl<'a> Graph<'a> {
    /// Number of nodes, at least 1.
    #[must_use]
    pub const fn nodes(&self) -> usize {
        self.first_neighbour.len() - 1
    }
    /// Number of edges.
    #[must_use]
    pub fn edges(&self) -> usize {
        (self.first_neighbour[self.nodes()] - self.first_neighbour[0]) / 2
    }
    /// The lists of all nodes, one behind the other, and the length of each list.
    pub fn lists(&self) -> (&'a [u32], impl Iterator<Item = usize> + 'a) {
        let (first, last) = (self.first_neighbour[0], self.first_neighbour[self.nodes()]);
        let lengths = self.first_neighbour.windows(2).map(|ends| ends[1] - ends[0]);
        (&self.neighbours[first..last], lengths)
    }
    /// Neighbours of a node below [`Self::nodes`], ascending.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn neighbours(&self, node: usize) -> &'a [u32] {
        &self.neighbours[self.first_neighbour[node]..self.first_neighbour[node + 1]]
    }
}

/// Most nodes of all graphs.
const MOST_NODES: usize = 1 << 28;

impl GraphSet {
    /// Number of graphs.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.labels.len()
    }
    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
    /// The `i`-th graph; `None` if there is none.
    #[must_use]
    pub fn graph(&self, i: usize) -> Option<Graph<'_>> {
        let label = *self.labels.get(i)?;
        let (start, end) = (self.first_node[i], self.first_node[i + 1]);
        let tags = self.tags.get(start..end).unwrap_or_default();
        let width = self.attribute_width;
        Some(Graph {
            first_neighbour: &self.first_neighbour[start..=end],
            neighbours: &self.neighbours,
            tags,
            attributes: &self.attributes[start * width..end * width],
            label,
        })
    }
    /// All graphs in their order.
    pub fn graphs(&self) -> impl Iterator<Item = Graph<'_>> {
        (0..self.len()).filter_map(|i| self.graph(i))
    }
    /// Nodes of all graphs.
    #[must_use]
    pub const fn nodes(&self) -> usize {
        self.first_neighbour.len() - 1
    }
    /// Edges of all graphs.
    #[must_use]
    pub const fn edges(&self) -> usize {
        self.neighbours.len() / 2
    }
    /// Each tag of nodes as the file has it; none if nodes have no tags.
    #[must_use]
    pub fn tag_names(&self) -> &[String] {
        &self.tag_names
    }
    /// Numbers per node.
    #[must_use]
    pub const fn attribute_width(&self) -> usize {
        self.attribute_width
    }
    /// Class of each graph, below `class_names().len()`.
    #[must_use]
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }
    /// Each class as the file has it.
    #[must_use]
    pub fn class_names(&self) -> &[String] {
        &self.class_names
    }
    /// How many graphs each class has.
    #[must_use]
    pub fn class_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.class_names.len()];
        self.labels.iter().for_each(|&label| counts[label as usize] += 1);
        counts
    }
    /// What the file had and is left out.
    #[must_use]
    pub const fn dropped(&self) -> Dropped {
        self.dropped
    }
    /// Quantiles of the graphs' sizes: nodes and edges.
    #[must_use]
    pub fn sizes(&self) -> [Quantiles; 2] {
        let nodes = self.graphs().map(|graph| graph.nodes());
        [Quantiles::of(nodes), Quantiles::of(self.graphs().map(|graph| graph.edges()))]
    }
    /// These graphs alone, in this order.
    pub(crate) fn of_graphs(&self, chosen: &[usize]) -> Self {
        let mut set = Self {
            name: self.name.clone(),
            first_node: vec![0],
            first_neighbour: vec![0],
            neighbours: Vec::new(),
            tags: Vec::new(),
            tag_names: self.tag_names.clone(),
            attributes: Vec::new(),
            attribute_width: self.attribute_width,
            labels: Vec::new(),
            class_names: self.class_names.clone(),
            dropped: self.dropped,
        };
        for graph in chosen.iter().filter_map(|i| self.graph(*i)) {
            let (neighbours, lengths) = graph.lists();
            let mut end = set.neighbours.len();
            set.first_neighbour.extend(lengths.map(|length| {
                end += length;
                end
            }));
            set.neighbours.extend_from_slice(neighbours);
            set.tags.extend_from_slice(graph.tags);
            set.attributes.extend_from_slice(graph.attributes);
            set.labels.push(graph.label);
            set.first_node.push(set.first_neighbour.len() - 1);
        }
        set
    }
    /// Graphs of so many nodes each, without tags and edges, to which [`Self::with_edges`] gives some.
    ///
    /// # Errors
    /// [`Error::Inconsistent`] if a graph has no node, there is not one label for each, or one is no class.
    pub fn without_edges(
        name: &str,
        nodes: &[usize],
        labels: Vec<u32>,
        class_names: Vec<String>,
    ) -> Result<Self, Error> {
        let wrong = |what, needs: usize, have: usize| {
            Err(Error::Inconsistent { what, needs: needs as u64, have: have as u64 })
        };
        if labels.len() != nodes.len() {
            return wrong("labels", nodes.len(), labels.len());
        }
        if let Some(label) = labels.iter().find(|label| **label as usize >= class_names.len()) {
            return wrong("label (needs a class)", class_names.len(), *label as usize);
        }
        let mut first_node = vec![0];
        for &nodes in nodes {
            let end = first_node.last().copied().unwrap_or(0);
            match usize::checked_add(end, nodes).filter(|end| *end <= MOST_NODES && nodes > 0) {
                Some(end) => first_node.push(end),
                None => return wrong("nodes (1 to 2^28 in all)", 1, nodes),
            }
        }
        let all = first_node.last().copied().unwrap_or(0);
        Ok(Self {
            name: name.to_owned(),
            first_node,
            first_neighbour: vec![0; all + 1],
            neighbours: Vec::new(),
            tags: Vec::new(),
            tag_names: Vec::new(),
            attributes: Vec::new(),
            attribute_width: 0,
            labels,
            class_names,
            dropped: Dropped::default(),
        })
    }
    /// The same nodes, tags and classes with other edges: for each graph a list `(a, b)` with `a < b`, ascending, none twice.
    ///
    /// # Errors
    /// [`Error::Graph`] if an edge is not so or joins no two nodes of its graph, naming the graph.
    pub fn with_edges(
        &self,
        mut edges: impl FnMut(Graph<'_>, &mut Vec<(u32, u32)>),
    ) -> Result<Self, Error> {
        let mut set = self.clone();
        set.first_neighbour.truncate(1);
        set.neighbours.clear();
        let (mut list, mut fill) = (Vec::new(), Vec::new());
        for (i, graph) in self.graphs().enumerate() {
            list.clear();
            edges(graph, &mut list);
            let nodes = graph.nodes();
            let fits = |&(a, b): &(u32, u32)| a < b && (b as usize) < nodes;
            if !list.iter().all(fits) || !list.windows(2).all(|pair| pair[0] < pair[1]) {
                let (file, graph) = (self.name.clone().into(), i as u64 + 1);
                let problem = GraphProblem::Neighbour { nodes: nodes as u64 };
                return Err(Error::Graph { file, row: 0, graph, problem });
            }
            // Where the next neighbour of each node goes: edges in order give each list in order.
            fill.clear();
            fill.resize(nodes + 1, 0);
            for &(a, b) in &list {
                fill[a as usize + 1] += 1;
                fill[b as usize + 1] += 1;
            }
            fill[0] = set.neighbours.len();
            for node in 0..nodes {
                fill[node + 1] += fill[node];
            }
            set.first_neighbour.extend_from_slice(&fill[1..]);
            set.neighbours.resize(fill[nodes], 0);
            // First those below each node, then those above.
            for &(a, b) in &list {
                set.neighbours[fill[b as usize]] = a;
                fill[b as usize] += 1;
            }
            for &(a, b) in &list {
                set.neighbours[fill[a as usize]] = b;
                fill[a as usize] += 1;
            }
        }
        Ok(set)
    }
    /// BLAKE3 of the content (labels, tags, attributes, edges), 64 hexadecimal digits; the name is left out.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut hasher =
            blake3::Hasher::new_derive_key("dosimeter 2026 graph set fingerprint, version 1");
        for names in [&self.class_names, &self.tag_names] {
            hasher.update(&(names.len() as u64).to_le_bytes());
            for name in names {
                hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
            }
        }
        for starts in [&self.first_node, &self.first_neighbour] {
            hasher.update(&(starts.len() as u64).to_le_bytes());
            let bytes: Vec<u8> = starts.iter().flat_map(|&n| (n as u64).to_le_bytes()).collect();
            hasher.update(&bytes);
        }
        hasher.update(&(self.attribute_width as u64).to_le_bytes());
        let reals = self.attributes.iter().map(|x| x.to_bits());
        let numbers = self.labels.iter().chain(&self.tags).chain(&self.neighbours).copied();
        let mut buffer = Vec::with_capacity(1 << 16);
        for number in numbers.chain(reals) {
            buffer.extend_from_slice(&number.to_le_bytes());
            if buffer.len() >= 1 << 16 {
                hasher.update(&buffer);
                buffer.clear();
            }
        }
        hasher.update(&buffer);
        hasher.finalize().to_hex().to_string()
    }
}
impl Labelled for GraphSet {
    fn labels(&self) -> &[u32] {
        &self.labels
    }
    fn classes(&self) -> usize {
        self.class_names.len()
    }
    fn test_law(&self) -> Option<Range<u32>> {
        None
    }
}

/// The smallest, the tenth, fifth and ninth tenth, and the largest of some numbers: each one of them, the nearest rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Quantiles {
    /// Smallest.
    pub least: usize,
    /// A tenth is not above it.
    pub tenth: usize,
    /// Half is not above it.
    pub median: usize,
    /// Nine tenths are not above it.
    pub ninety: usize,
    /// Largest.
    pub most: usize,
}
impl Quantiles {
    fn of(numbers: impl Iterator<Item = usize>) -> Self {
        let mut numbers: Vec<usize> = numbers.collect();
        numbers.sort_unstable();
        let Some((&least, &most)) = numbers.first().zip(numbers.last()) else {
            return Self::default();
        };
        let at = |tenths: usize| numbers[(numbers.len() * tenths).div_ceil(10) - 1];
        Self { least, tenth: at(1), median: at(5), ninety: at(9), most }
    }
}

/// Which graphs, as written in a study file: `kind = "..."` and that kind's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum GraphSpec {
    /// The text form of the TUDataset collection.
    Tudataset(GraphFiles),
    /// The text form of DGCNN.
    Dgcnn(GraphText),
}
/// Files of a graph set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphFiles {
    /// The folder with `NAME_A.txt` and its sister files, or a zip of it.
    pub path: PathBuf,
    /// What a network is told of a node; see [`NodeFeatures`].
    #[serde(default)]
    pub node_feature: Option<NodeFeature>,
    /// Higher degrees are taken for this one; see [`NodeFeatures`].
    #[serde(default)]
    pub most_degree: Option<u32>,
}
/// A text of graphs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphText {
    /// The text (also gzipped), or a zip with it.
    pub path: PathBuf,
    /// Name of the text within a zip; left out, it is the `NAME/NAME.txt` or the only `.txt` of the zip.
    #[serde(default)]
    pub member: Option<String>,
    /// What a network is told of a node; see [`NodeFeatures`].
    #[serde(default)]
    pub node_feature: Option<NodeFeature>,
    /// Higher degrees are taken for this one; see [`NodeFeatures`].
    #[serde(default)]
    pub most_degree: Option<u32>,
}
impl GraphFiles {
    /// Graphs in these files, with features by default.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self { path, node_feature: None, most_degree: None }
    }
}
impl GraphText {
    /// Graphs in this text, with features by default.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self { path, member: None, node_feature: None, most_degree: None }
    }
}

/// Every kind of graph set, in the order of [`GraphSpec`].
pub const GRAPHS: &[DatasetKind] = &[
    DatasetKind {
        name: "tudataset",
        describe: "labelled graphs in the form of the TUDataset collection: `NAME_A.txt`, `NAME_graph_indicator.txt`, \
                   `NAME_graph_labels.txt` and, if there, `NAME_node_labels.txt` and `NAME_node_attributes.txt`, in a folder or a zip; \
                   `node_feature` is \"degree\" (up to `most_degree`) or \"tag\"",
        source: "Morris et al., TUDataset, arXiv:2007.08663",
        example: "kind = \"tudataset\"\npath = \"MUTAG.zip\"\n",
    },
    DatasetKind {
        name: "dgcnn",
        describe: "labelled graphs in one text, as DGCNN and GIN read them, plain, gzipped or within a zip; \
                   `node_feature` is \"degree\" (up to `most_degree`) or \"tag\"",
        source: "Zhang et al., An End-to-End Deep Learning Architecture for Graph Classification, AAAI 2018",
        example: "kind = \"dgcnn\"\npath = \"COLLAB.zip\"\n",
    },
];

impl GraphSpec {
    /// The kind's name, as in the study file.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Tudataset(_) => "tudataset",
            Self::Dgcnn(_) => "dgcnn",
        }
    }
    /// The file to read; relative ones are relative to the current folder (a study resolves them against its own).
    #[must_use]
    pub const fn path(&self) -> &PathBuf {
        match self {
            Self::Tudataset(files) => &files.path,
            Self::Dgcnn(text) => &text.path,
        }
    }
    /// The same as [`Self::path`], to change.
    #[must_use]
    pub const fn path_mut(&mut self) -> &mut PathBuf {
        match self {
            Self::Tudataset(files) => &mut files.path,
            Self::Dgcnn(text) => &mut text.path,
        }
    }
}

/// Loads graphs.
///
/// # Errors
/// If a file cannot be read or does not have the form its kind needs; the error names file, row and graph.
pub fn load(spec: &GraphSpec) -> Result<GraphSet, Error> {
    match spec {
        GraphSpec::Tudataset(files) => tudataset::load(&files.path),
        GraphSpec::Dgcnn(text) => dgcnn::load(text),
    }
}
