//! The text form of the TUDataset collection.
//!
//! Format (the collection's README): nodes of all graphs are numbered from 1. `NAME_A.txt` has a line `row, column` per entry of
//! the adjacency matrix of all graphs, so each edge twice; `NAME_graph_indicator.txt` the number of each node's graph, from 1;
//! `NAME_graph_labels.txt` the class of each graph. `NAME_node_labels.txt` (a tag per node) and `NAME_node_attributes.txt`
//! (comma-separated numbers per node) may be there; the files of edge labels, edge attributes and graph attributes are not read.
use super::GraphSet;
use super::builder::{At, GraphBuilder};
use super::text::{self, Zip, real, whole, wrong};
use crate::datasets::source::{self, Lines};
use crate::{Error, FieldProblem, GraphProblem};
use std::path::Path;

/// Most entries of the adjacency matrix held while they are sorted (8 bytes each): 4 GiB.
const ENTRY_LIMIT: u64 = 1 << 29;
/// Most nodes of all graphs.
const NODE_LIMIT: u64 = super::MOST_NODES as u64;

/// Where the files lie.
enum Place<'a> {
    Folder(&'a Path),
    Zip(Zip<'a>),
}
impl Place<'_> {
    fn names(&self) -> Result<Vec<String>, Error> {
        match self {
            Self::Zip(zip) => Ok(zip.names()),
            Self::Folder(folder) => {
                let mut names = Vec::new();
                for entry in std::fs::read_dir(folder).map_err(Error::read(folder))? {
                    let entry = entry.map_err(Error::read(folder))?;
                    // A name that is not UTF-8 is none of those looked for.
                    names.extend(entry.file_name().into_string().ok());
                }
                names.sort();
                Ok(names)
            }
        }
    }
    fn lines<T>(
        &mut self,
        path: &Path,
        name: &str,
        read: impl FnOnce(&Path, &mut Lines<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let shown = path.join(name);
        match self {
            Self::Folder(_) => text::lines(&shown, |lines| read(&shown, lines)),
            Self::Zip(zip) => zip.lines(name, &shown, |lines| read(&shown, lines)),
        }
    }
}

pub(super) fn load(path: &Path) -> Result<GraphSet, Error> {
    let mut place = if path.is_dir() {
        Place::Folder(path)
    } else if source::is_zip(path)? {
        Place::Zip(Zip::open(path)?)
    } else {
        let (needs, have) = ("a folder or a zip archive".to_owned(), "another file".to_owned());
        return Err(Error::Setting { setting: "path".to_owned(), needs, have });
    };
    let names = place.names()?;
    let missing = |name: &str| Error::Missing {
        file: path.to_owned(),
        name: name.to_owned(),
        have: names.iter().take(16).cloned().collect(),
    };
    let mut starts = names.iter().filter_map(|name| name.strip_suffix("_A.txt"));
    let (Some(start), None) = (starts.next(), starts.next()) else {
        return Err(missing("single NAME_A.txt"));
    };
    let file = |what: &str| format!("{start}_{what}.txt");
    for what in ["graph_indicator", "graph_labels"] {
        if !names.contains(&file(what)) {
            return Err(missing(&file(what)));
        }
    }
    let labels = place.lines(path, &file("graph_labels"), |f, lines| codes(f, lines, "label"))?;
    let indicator = file("graph_indicator");
    let graphs = place.lines(path, &indicator, |f, lines| graph_of(f, lines, labels.len()))?;
    let nodes = graphs.len();
    let counted = |file: &Path, have: usize| {
        if have == nodes {
            return Ok(());
        }
        let (file, needs, have) = (file.to_owned(), nodes as u64, have as u64);
        Err(Error::NodeCount { file, needs, have })
    };
    let tags = if names.contains(&file("node_labels")) {
        let tags = place.lines(path, &file("node_labels"), |f, lines| {
            let tags = codes(f, lines, "tag")?;
            counted(f, tags.len())?;
            Ok(tags)
        })?;
        Some(tags)
    } else {
        None
    };
    let attributes = if names.contains(&file("node_attributes")) {
        place.lines(path, &file("node_attributes"), |f, lines| {
            let attributes = numbers(f, lines, nodes)?;
            counted(f, attributes.1)?;
            Ok(attributes.0)
        })?
    } else {
        Vec::new()
    };
    let entries = place.lines(path, &file("A"), |f, lines| entries(f, lines, &graphs))?;
    let shown = path.join(file("A"));
    match assemble(path, &shown, &labels, &graphs, tags.as_deref(), &attributes, entries) {
        // Entries are sorted by then; which line it was is only looked for when somebody must be told.
        Err(Error::Graph { file: at, row: 0, graph, problem }) => {
            let row = place
                .lines(path, &file("A"), |_, lines| row_of(lines, &graphs, graph, &problem))?;
            Err(Error::Graph { file: at, row, graph, problem })
        }
        done => done,
    }
}

/// The line of the entry that a problem of a graph is about; 0 if it is about none.
fn row_of(
    lines: &mut Lines<'_>,
    graphs: &[u32],
    graph: u64,
    problem: &GraphProblem,
) -> Result<u64, Error> {
    let GraphProblem::OneSided { node, neighbour } = problem else { return Ok(0) };
    let first = graphs.partition_point(|of| u64::from(*of) + 1 < graph) as u64;
    let ends = [first + node + 1, first + u64::from(*neighbour) + 1];
    while let Some((row, line)) = lines.next()? {
        let mut fields = line.split(|byte| *byte == b',').map(|field| whole(field.trim_ascii()));
        let is = |end: u64, field: Option<Result<i64, FieldProblem>>| {
            field.and_then(Result::ok).is_some_and(|n| n as u64 == end)
        };
        if is(ends[0], fields.next()) && is(ends[1], fields.next()) {
            return Ok(row);
        }
    }
    Ok(0)
}

/// A whole number in each line.
fn codes(file: &Path, lines: &mut Lines<'_>, field: &str) -> Result<Vec<i64>, Error> {
    let mut codes = Vec::new();
    while let Some((row, line)) = lines.next()? {
        codes.push(whole(line).map_err(|p| wrong(file, row, field, p))?);
        limited(file, codes.len() as u64, NODE_LIMIT)?;
    }
    Ok(codes)
}
fn limited(file: &Path, records: u64, limit: u64) -> Result<(), Error> {
    if records <= limit {
        return Ok(());
    }
    Err(Error::TooLarge { file: file.to_owned(), records, width: 1, limit })
}
/// The graph of each node, from 0: ascending and without a gap, so that every graph has a node.
fn graph_of(file: &Path, lines: &mut Lines<'_>, graphs: usize) -> Result<Vec<u32>, Error> {
    let mut of: Vec<u32> = Vec::new();
    while let Some((row, line)) = lines.next()? {
        let graph = whole(line).map_err(|p| wrong(file, row, "graph", p))?;
        let last = of.last().map_or(0, |&last| i64::from(last) + 1);
        if graph != last.max(1) && graph != last + 1 {
            let at = At { row, graph: last as u64 + 1 };
            return Err(at.error(file, GraphProblem::Order { last: last as u64 }));
        }
        if graph as u64 > graphs as u64 {
            let (inputs, labels) = (graph as u64, graphs as u64);
            return Err(Error::LabelCount { file: file.to_owned(), inputs, labels });
        }
        of.push((graph - 1) as u32);
        limited(file, of.len() as u64, NODE_LIMIT)?;
    }
    let inputs = of.last().map_or(0, |&last| u64::from(last) + 1);
    if of.is_empty() {
        return Err(Error::NoRecords { file: file.to_owned() });
    }
    if inputs != graphs as u64 {
        return Err(Error::LabelCount { file: file.to_owned(), inputs, labels: graphs as u64 });
    }
    Ok(of)
}
/// Numbers of each node, as many for each, and the number of nodes.
fn numbers(file: &Path, lines: &mut Lines<'_>, nodes: usize) -> Result<(Vec<f32>, usize), Error> {
    let (mut numbers, mut width, mut rows) = (Vec::new(), 0, 0);
    while let Some((row, line)) = lines.next()? {
        let before = numbers.len();
        for field in line.split(|byte| *byte == b',') {
            let number = real(field.trim_ascii());
            numbers.push(number.map_err(|p| wrong(file, row, "attribute", p))?);
        }
        limited(file, numbers.len() as u64, 1 << 30)?;
        let have = numbers.len() - before;
        if rows == 0 {
            width = have;
        }
        if have != width {
            return Err(Error::FieldCount { file: file.to_owned(), row, needs: width, have });
        }
        rows += 1;
        if rows > nodes {
            break;
        }
    }
    Ok((numbers, rows))
}
/// Node, neighbour (both from 0 over all graphs) of each entry of the matrix, both of one graph.
fn entries(file: &Path, lines: &mut Lines<'_>, graphs: &[u32]) -> Result<Vec<(u32, u32)>, Error> {
    let mut entries = Vec::new();
    while let Some((row, line)) = lines.next()? {
        let mut ends = [0; 2];
        let mut fields = line.split(|byte| *byte == b',');
        for (end, field) in ends.iter_mut().zip(["node", "neighbour"]) {
            let number = whole(fields.next().unwrap_or_default().trim_ascii())
                .map_err(|p| wrong(file, row, field, p))?;
            if number < 1 || number as u64 > graphs.len() as u64 {
                let problem = FieldProblem::NoNode { nodes: graphs.len() as u64 };
                return Err(wrong(file, row, field, problem));
            }
            *end = (number - 1) as u32;
        }
        if fields.next().is_some() {
            let have = 3 + fields.count();
            return Err(Error::FieldCount { file: file.to_owned(), row, needs: 2, have });
        }
        let of = ends.map(|end| graphs[end as usize]);
        if of[0] != of[1] {
            let at = At { row, graph: u64::from(of[0]) + 1 };
            let other = u64::from(of[1]) + 1;
            return Err(at.error(file, GraphProblem::BetweenGraphs { other }));
        }
        entries.push((ends[0], ends[1]));
        limited(file, entries.len() as u64, ENTRY_LIMIT)?;
    }
    Ok(entries)
}

fn assemble(
    path: &Path,
    file: &Path,
    labels: &[i64],
    graphs: &[u32],
    tags: Option<&[i64]>,
    attributes: &[f32],
    mut entries: Vec<(u32, u32)>,
) -> Result<GraphSet, Error> {
    entries.sort_unstable();
    let width = attributes.len() / graphs.len();
    let mut builder = GraphBuilder::new(file);
    let (mut entries, mut first) = (entries.into_iter().peekable(), 0);
    for (node, &graph) in graphs.iter().enumerate() {
        while let Some((_, neighbour)) = entries.next_if(|(from, _)| *from as usize == node) {
            builder.neighbour(neighbour - first)?;
        }
        for &number in &attributes[node * width..(node + 1) * width] {
            builder.attribute(number)?;
        }
        builder.node(0, tags.map(|tags| tags[node]))?;
        if graphs.get(node + 1) != Some(&graph) {
            builder.finish_graph(0, labels[graph as usize])?;
            first = node as u32 + 1;
        }
    }
    builder.finish(path)
}
