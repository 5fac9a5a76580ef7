//! ONNX models in and out.
//!
//! [`read`] takes models of opsets [`OLDEST_OPSET`] to [`NEWEST_OPSET`] as they are exported for inference: one input with
//! records along its first axis, 32-bit numbers, the operators of [`operators`]. Whatever depends on constants and shapes
//! alone is computed while reading. Anything else is refused by the name of its node. [`write()`] gives a model of opset 17
//! that any ONNX runtime takes.
//!
//! # Broken and hostile files
//! No file makes [`read`] panic; memory is bounded by the size of the file (data files included): a few times for tensors,
//! and up to some hundred bytes for each byte that describes nothing but empty nodes. External data are read from the
//! model's folder only.
mod call;
mod export;
mod import;
mod operators;
mod tensor;
mod wire;

pub use export::write;
pub use operators::names as operators;

use crate::Graph;
use prost::Message;
use prost::bytes::Bytes;
use std::path::Path;

/// The oldest set of operators that is read.
pub const OLDEST_OPSET: i64 = 9;
/// The newest.
pub const NEWEST_OPSET: i64 = 28;

/// What is wrong with a model, or with a graph to be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// It is no model, or not one that can be taken.
    #[error("not a model that can be read: {what}")]
    Model {
        /// What is wrong, and what would do.
        what: String,
    },
    /// A tensor is broken or of a kind that is not read.
    #[error("tensor {name:?}: {what}")]
    Tensor {
        /// Its name.
        name: String,
        /// What is wrong, and what would do.
        what: String,
    },
    /// A node is broken or of a kind that is not read.
    #[error("node {node:?} ({operator}, opset {opset}): {what}")]
    Node {
        /// Its name, or that of its first output.
        node: String,
        /// What it is to do.
        operator: String,
        /// Of the model.
        opset: i64,
        /// What is wrong, and what would do.
        what: String,
    },
    /// A graph that cannot be written.
    #[error("layer {layer}: {what}")]
    Layer {
        /// Position in the graph.
        layer: usize,
        /// What is wrong.
        what: String,
    },
}

/// How a model is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Shape of one record, if the model leaves it open.
    pub input: Option<Vec<usize>>,
    /// Which value the graph shall give: an output or any value on the way; absent: the only output.
    pub output: Option<String>,
}

/// A model as read.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Model {
    /// The function from record to record.
    pub graph: Graph,
    /// What the model calls each value of the graph, by [`crate::Value::position`].
    pub names: Vec<String>,
    /// Operators are as in this set.
    pub opset: i64,
    /// What wrote it.
    pub producer: String,
    /// Number of records at once for which it was made; `None`: any. The graph takes any.
    pub records: Option<usize>,
}

/// Reads a model from its file; data files may lie beside it.
///
/// # Errors
/// [`Error`], which names what is wrong.
pub fn read(path: &Path, options: &Options) -> Result<Model, Error> {
    let failed = |source| Error::File { path: path.display().to_string(), source };
    let bytes = std::fs::read(path).map_err(failed)?;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    decode(bytes, Some(folder), options)
}

/// Reads a model from its bytes; data files are refused.
///
/// # Errors
/// [`Error`], which names what is wrong.
pub fn read_bytes(bytes: Vec<u8>, options: &Options) -> Result<Model, Error> {
    decode(bytes, None, options)
}

fn decode(bytes: Vec<u8>, folder: Option<&Path>, options: &Options) -> Result<Model, Error> {
    let size = bytes.len();
    let model = wire::Model::decode(Bytes::from(bytes))
        .map_err(|e| Error::Model { what: format!("it does not follow the format: {e}") })?;
    import::import(&model, size, folder, options)
}

/// A name from a file, short enough to be printed; errors print it with its control characters spelt out.
fn shown(name: &str) -> String {
    const LONGEST: usize = 80;
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}
