//! Graphs that grow as they are read, checked one by one.
use super::{Dropped, GraphSet};
use crate::datasets::file_name;
use crate::{Error, GraphProblem};
use std::path::{Path, PathBuf};

/// Most entries of neighbour lists held (4 bytes each): 4 GiB. COLLAB has 25 million.
const NEIGHBOUR_LIMIT: u64 = 1 << 30;
/// Most nodes of all graphs.
const NODE_LIMIT: u64 = super::MOST_NODES as u64;
/// Most numbers of all nodes (4 bytes each): 4 GiB.
const ATTRIBUTE_LIMIT: u64 = 1 << 30;

/// Where a graph or node stands, for errors.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub(super) row: u64,
    /// From 1.
    pub(super) graph: u64,
}
impl At {
    pub(super) fn error(self, file: &Path, problem: GraphProblem) -> Error {
        Error::Graph { file: file.to_owned(), row: self.row, graph: self.graph, problem }
    }
}

/// Grows a [`GraphSet`]: per graph its nodes, each with its neighbours, then its label.
#[derive(Debug)]
pub(super) struct GraphBuilder {
    file: PathBuf,
    first_node: Vec<usize>,
    first_neighbour: Vec<usize>,
    neighbours: Vec<u32>,
    tags: Vec<i64>,
    attributes: Vec<f32>,
    /// Numbers of a node, once there was one.
    width: Option<usize>,
    labels: Vec<i64>,
    /// Row of each node of the graph that is being read.
    rows: Vec<u64>,
    /// Of each node, how many of its neighbours were seen from their side.
    seen: Vec<usize>,
    dropped: Dropped,
}
impl GraphBuilder {
    pub(super) fn new(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            first_node: vec![0],
            first_neighbour: vec![0],
            neighbours: Vec::new(),
            tags: Vec::new(),
            attributes: Vec::new(),
            width: None,
            labels: Vec::new(),
            rows: Vec::new(),
            seen: Vec::new(),
            dropped: Dropped::default(),
        }
    }
    /// Number of the graph that is being read, from 1.
    pub(super) fn graph(&self) -> u64 {
        self.labels.len() as u64 + 1
    }
    fn limited(&self, have: u64, limit: u64, width: u64) -> Result<(), Error> {
        if have <= limit {
            return Ok(());
        }
        let file = self.file.clone();
        Err(Error::TooLarge { file, records: self.graph(), width, limit })
    }
    /// A neighbour of the node to come, below `nodes` of its graph.
    pub(super) fn neighbour(&mut self, neighbour: u32) -> Result<(), Error> {
        self.limited(self.neighbours.len() as u64 + 1, NEIGHBOUR_LIMIT, 1)?;
        self.neighbours.push(neighbour);
        Ok(())
    }
    /// A number of the node to come.
    pub(super) fn attribute(&mut self, number: f32) -> Result<(), Error> {
        self.limited(self.attributes.len() as u64 + 1, ATTRIBUTE_LIMIT, 1)?;
        self.attributes.push(number);
        Ok(())
    }
    /// Ends a node: sorts its neighbours, drops itself and repetitions from them.
    pub(super) fn node(&mut self, row: u64, tag: Option<i64>) -> Result<(), Error> {
        let at = At { row, graph: self.graph() };
        let node = self.rows.len() as u32;
        self.limited(self.first_neighbour.len() as u64, NODE_LIMIT, 1)?;
        let start = self.first_neighbour.last().copied().unwrap_or_default();
        let list = &mut self.neighbours[start..];
        if !list.is_sorted() {
            list.sort_unstable();
        }
        let mut kept = start;
        for i in start..self.neighbours.len() {
            let neighbour = self.neighbours[i];
            if neighbour == node {
                self.dropped.self_loops += 1;
            } else if kept > start && self.neighbours[kept - 1] == neighbour {
                self.dropped.repeated += 1;
            } else {
                self.neighbours[kept] = neighbour;
                kept += 1;
            }
        }
        self.neighbours.truncate(kept);
        self.first_neighbour.push(kept);
        self.rows.push(row);
        self.tags.extend(tag);
        let nodes = self.first_neighbour.len() - 1;
        let before = self.width.map_or(0, |width| width * (nodes - 1));
        let have = self.attributes.len() - before;
        let needs = *self.width.get_or_insert(have);
        if have != needs {
            return Err(at.error(&self.file, GraphProblem::Attributes { needs, have }));
        }
        Ok(())
    }
    /// Ends a graph: it has nodes, and each edge stands in the lists of both its ends.
    pub(super) fn finish_graph(&mut self, row: u64, label: i64) -> Result<(), Error> {
        let at = At { row, graph: self.graph() };
        let start = self.first_node.last().copied().unwrap_or_default();
        let nodes = self.rows.len();
        if nodes == 0 {
            return Err(at.error(&self.file, GraphProblem::NoNode));
        }
        if self.labels.len() >= u32::MAX as usize {
            let limit = u64::from(u32::MAX);
            return Err(Error::TooManyRecords { file: self.file.clone(), limit });
        }
        let ends = &self.first_neighbour[start..=start + nodes];
        let list = |node: usize| &self.neighbours[ends[node]..ends[node + 1]];
        // Walking the sorted lists in order meets each node's neighbours in the order of its own list.
        self.seen.clear();
        self.seen.resize(nodes, 0);
        let one_sided = |node: usize, neighbour: u32| {
            let at = At { row: self.rows[node], graph: at.graph };
            Err(at.error(&self.file, GraphProblem::OneSided { node: node as u64, neighbour }))
        };
        for node in 0..nodes {
            for &neighbour in list(node) {
                let Some(seen) = self.seen.get_mut(neighbour as usize) else {
                    let at = At { row: self.rows[node], graph: at.graph };
                    let problem = GraphProblem::Neighbour { nodes: nodes as u64 };
                    return Err(at.error(&self.file, problem));
                };
                match list(neighbour as usize).get(*seen) {
                    Some(&back) if back as usize == node => *seen += 1,
                    // Its next one was passed already and did not name it.
                    Some(&back) if (back as usize) < node => {
                        return one_sided(neighbour as usize, back);
                    }
                    _ => return one_sided(node, neighbour),
                }
            }
        }
        for node in 0..nodes {
            if let Some(&neighbour) = list(node).get(self.seen[node]) {
                return one_sided(node, neighbour);
            }
        }
        self.first_node.push(start + nodes);
        self.labels.push(label);
        self.rows.clear();
        Ok(())
    }
    /// The graphs; classes and tags are numbered in the order of the file's numbers.
    pub(super) fn finish(mut self, path: &Path) -> Result<GraphSet, Error> {
        if self.labels.is_empty() {
            return Err(Error::NoRecords { file: self.file });
        }
        let (labels, class_names) = numbered(&self.labels);
        if class_names.len() < 2 {
            let (file, have) = (self.file, class_names.len());
            return Err(Error::TooFewClasses { file, needs: 2, have });
        }
        let (tags, tag_names) = numbered(&self.tags);
        self.neighbours.shrink_to_fit();
        Ok(GraphSet {
            name: file_name(path),
            first_node: self.first_node,
            first_neighbour: self.first_neighbour,
            neighbours: self.neighbours,
            tags,
            tag_names,
            attributes: self.attributes,
            attribute_width: self.width.unwrap_or_default(),
            labels,
            class_names,
            dropped: self.dropped,
        })
    }
}

/// Numbers the distinct codes in ascending order and names each as it was.
fn numbered(codes: &[i64]) -> (Vec<u32>, Vec<String>) {
    let mut distinct = codes.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let of = |code: &i64| distinct.partition_point(|d| d < code) as u32;
    (codes.iter().map(of).collect(), distinct.iter().map(i64::to_string).collect())
}
