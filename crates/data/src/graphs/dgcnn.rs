//! The text form of DGCNN.
//!
//! Format: the first line gives the number of graphs. Per graph a line `nodes label`, then a line per node:
//! `tag degree neighbour ... neighbour [number ... number]`, neighbours numbered from 0 within the graph. (As read by
//! `muhanzhang/pytorch_DGCNN`, `util.py`.)
use super::builder::{At, GraphBuilder};
use super::text::{self, Zip, real, whole, wrong};
use super::{GraphSet, GraphText};
use crate::datasets::source::{self, Lines};
use crate::{Error, FieldProblem, GraphProblem};
use std::path::Path;

pub(super) fn load(spec: &GraphText) -> Result<GraphSet, Error> {
    let path = spec.path.as_path();
    if !source::is_zip(path)? {
        if let Some(member) = &spec.member {
            return Err(Error::Setting {
                setting: "member".to_owned(),
                needs: "a `path` that is a zip".to_owned(),
                have: format!("`{member}`"),
            });
        }
        return text::lines(path, |lines| read(path, path, lines));
    }
    let mut zip = Zip::open(path)?;
    let member = member(path, spec.member.as_deref(), &zip.names())?;
    let shown = path.join(&member);
    zip.lines(&member, &shown, |lines| read(path, &shown, lines))
}

/// The text's name in the zip.
fn member(path: &Path, asked: Option<&str>, names: &[String]) -> Result<String, Error> {
    let found = match asked {
        Some(asked) => names.iter().find(|name| *name == asked),
        None => {
            let texts: Vec<&String> = names.iter().filter(|n| n.ends_with(".txt")).collect();
            let after_its_folder = |name: &&&String| {
                let mut parts = name.trim_end_matches(".txt").rsplit('/');
                let stem = parts.next();
                parts.next().is_some_and(|folder| Some(folder) == stem)
            };
            let mut own = texts.iter().filter(after_its_folder);
            match (own.next(), own.next(), texts.as_slice()) {
                (Some(own), None, _) => Some(*own),
                (None, _, [only]) => Some(*only),
                _ => None,
            }
        }
    };
    found.cloned().ok_or_else(|| {
        let name = asked.unwrap_or("NAME/NAME.txt or single .txt (name one with `member`)");
        let have = names.iter().take(16).cloned().collect();
        Error::Missing { file: path.to_owned(), name: name.to_owned(), have }
    })
}

fn read(path: &Path, file: &Path, lines: &mut Lines<'_>) -> Result<GraphSet, Error> {
    let Some((row, line)) = lines.next()? else {
        return Err(Error::NoRecords { file: file.to_owned() });
    };
    let declared = count(line).map_err(|p| wrong(file, row, "number of graphs", p))?;
    let mut builder = GraphBuilder::new(file);
    for graph in 1..=declared {
        let ends =
            |have| Error::GraphTruncated { file: file.to_owned(), graph, needs: declared, have };
        let Some((row, line)) = lines.next()? else { return Err(ends("its first line")) };
        let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
        let nodes = count(fields.next().unwrap_or_default())
            .map_err(|p| wrong(file, row, "number of nodes", p))?;
        let label =
            whole(fields.next().unwrap_or_default()).map_err(|p| wrong(file, row, "label", p))?;
        if fields.next().is_some() {
            let have = 3 + fields.count();
            return Err(Error::FieldCount { file: file.to_owned(), row, needs: 2, have });
        }
        let head = row;
        for _ in 0..nodes {
            let Some((row, line)) = lines.next()? else { return Err(ends("all its nodes")) };
            let tag = node(&mut builder, file, row, line, nodes)?;
            builder.node(row, Some(tag))?;
        }
        builder.finish_graph(head, label)?;
    }
    if lines.next()?.is_some() {
        let reason = format!("goes on after the {declared} graphs that its first line declares");
        return Err(Error::Damaged { file: file.to_owned(), format: "DGCNN", reason });
    }
    builder.finish(path)
}

/// Hands over what a node's line holds, and gives its tag.
fn node(
    builder: &mut GraphBuilder,
    file: &Path,
    row: u64,
    line: &[u8],
    nodes: u64,
) -> Result<i64, Error> {
    let at = At { row, graph: builder.graph() };
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let tag = whole(fields.next().unwrap_or_default()).map_err(|p| wrong(file, row, "tag", p))?;
    let degree =
        count(fields.next().unwrap_or_default()).map_err(|p| wrong(file, row, "degree", p))?;
    for have in 0..degree {
        let Some(field) = fields.next() else {
            return Err(at.error(file, GraphProblem::Degree { degree, have }));
        };
        let neighbour = count(field).map_err(|p| wrong(file, row, "neighbour", p))?;
        if neighbour >= nodes {
            return Err(at.error(file, GraphProblem::Neighbour { nodes }));
        }
        // Nodes are counted as they are read: one beyond 32 bits is never reached.
        builder.neighbour(u32::try_from(neighbour).unwrap_or(u32::MAX))?;
    }
    for field in fields {
        let number = real(field).map_err(|p| wrong(file, row, "attribute", p))?;
        builder.attribute(number)?;
    }
    Ok(tag)
}

/// A whole number from 0.
fn count(field: &[u8]) -> Result<u64, FieldProblem> {
    u64::try_from(whole(field)?).map_err(|_| FieldProblem::NotAWholeNumber)
}
