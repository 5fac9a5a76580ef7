//! Networks from elsewhere without a study: inspect, run on a data set, convert.
use crate::preparation::Reader;
use crate::{Error, Preparation, tables};
use dosimeter_data::RecordId;
use dosimeter_model::onnx::{self, Options};
use dosimeter_model::{Activation, Graph, Layer, RECORD_BLOCK, Rows, Value, Workspace};
use dosimeter_train::Batch;
use serde::Serialize;
use std::io::Write;
use std::num::NonZero;
use std::path::Path;

/// How checkpoints of this project begin.
const CHECKPOINT: &[u8] = b"dosimeter net ";

/// A network and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// The function.
    pub graph: Graph,
    /// What the file calls each value; empty for a checkpoint.
    names: Vec<String>,
    format: &'static str,
    producer: Option<String>,
    opset: Option<i64>,
    records: Option<usize>,
}
impl Network {
    /// How many of its layers are batch normalizations.
    #[must_use]
    pub fn batch_normalizations(&self) -> usize {
        batch_normalizations(&self.graph)
    }
}
fn batch_normalizations(graph: &Graph) -> usize {
    graph.nodes().iter().filter(|n| matches!(n.layer, Layer::BatchNormalization(_))).count()
}
/// Which part of a file is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// Shape of a record, where an ONNX model leaves it open.
    pub input: Option<Vec<usize>>,
    /// Name of the value in an ONNX model that is to be the output.
    pub output: Option<String>,
}

/// Reads an ONNX model or a checkpoint of this project, by its content.
///
/// # Errors
/// [`Error::Model`] or [`Error::Disk`].
pub fn load(path: &Path, part: &Part) -> Result<Network, Error> {
    let failed = |what: String| Error::Model { path: path.to_owned(), what };
    let disk = |source| Error::Disk { path: path.to_owned(), source };
    let mut start = Vec::new();
    // A device would fill the memory, a pipe cannot be read twice.
    if let Some(have) = dosimeter_data::file::other_than_file(path).map_err(disk)? {
        return Err(failed(format!("needs a file, got {have}")));
    }
    let file = std::fs::File::open(path).map_err(disk)?;
    let mut first = std::io::Read::take(file, CHECKPOINT.len() as u64);
    std::io::Read::read_to_end(&mut first, &mut start).map_err(disk)?;
    if start == CHECKPOINT {
        let bytes = std::fs::read(path).map_err(disk)?;
        let graph = Graph::from_bytes(&bytes).map_err(|e| failed(e.to_string()))?;
        if part != &Part::default() {
            return Err(failed("a checkpoint has one shape and one output".to_owned()));
        }
        let (names, format) = (Vec::new(), "checkpoint");
        return Ok(Network { graph, names, format, producer: None, opset: None, records: None });
    }
    let mut options = Options::default();
    options.input.clone_from(&part.input);
    options.output.clone_from(&part.output);
    let model = onnx::read(path, &options).map_err(|e| failed(e.to_string()))?;
    Ok(Network {
        graph: model.graph,
        names: model.names,
        format: "onnx",
        producer: Some(model.producer),
        opset: Some(model.opset),
        records: model.records,
    })
}

/// What a network is made of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Facts {
    /// `onnx` or `checkpoint`.
    pub format: &'static str,
    /// What wrote the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub producer: Option<String>,
    /// Operators of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opset: Option<i64>,
    /// Records at once for which the model was made, if not any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_for_records: Option<usize>,
    /// Shape of one record.
    pub input: Vec<usize>,
    /// Shape of its output.
    pub output: Vec<usize>,
    /// Numbers that training moves.
    pub parameters: usize,
    /// Multiplications by parameters for one record.
    pub multiplications: u64,
    /// In order.
    pub layers: Vec<LayerFacts>,
    /// Whether the gradient of each record can be clipped, so that DP training is possible.
    pub trainable: bool,
    /// What stands in the way of training, or is to be known before.
    pub remarks: Vec<String>,
}
/// One layer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerFacts {
    /// What the file calls its output.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What it does.
    pub kind: &'static str,
    /// Positions of the layers it reads; absent for the network's input.
    pub reads: Vec<Option<usize>>,
    /// Of one record's output.
    pub shape: Vec<usize>,
    /// Numbers that training moves.
    pub parameters: usize,
    /// Multiplications by them for one record.
    pub multiplications: u64,
}

/// What a network is made of, and what training can do with it.
#[must_use]
pub fn facts(network: &Network) -> Facts {
    let graph = &network.graph;
    let mut layers = Vec::with_capacity(graph.nodes().len());
    let mut value = Value::INPUT;
    let mut shapes: Vec<Vec<usize>> = vec![graph.shape(value).to_vec()];
    for (i, node) in graph.nodes().iter().enumerate() {
        let inputs: Vec<&[usize]> = node.inputs.iter().map(|v| graph.shape(*v)).collect();
        let shape = node.layer.output_shape_of(&inputs).unwrap_or_default();
        layers.push(LayerFacts {
            name: network.names.get(i + 1).cloned().unwrap_or_default(),
            kind: node.layer.name(),
            reads: node.inputs.iter().map(|v| v.position().checked_sub(1)).collect(),
            parameters: node.layer.parameter_count(),
            multiplications: node.layer.multiplications(&shape),
            shape: shape.clone(),
        });
        shapes.push(shape);
    }
    value = graph.output();
    let multiplications = layers.iter().fold(0_u64, |n, l| n.saturating_add(l.multiplications));
    let (trainable, remarks) = training(graph);
    Facts {
        format: network.format,
        producer: network.producer.clone(),
        opset: network.opset,
        made_for_records: network.records,
        input: shapes.swap_remove(0),
        output: graph.shape(value).to_vec(),
        parameters: graph.parameters().len(),
        multiplications,
        layers,
        trainable,
        remarks,
    }
}

fn training(graph: &Graph) -> (bool, Vec<String>) {
    let mut remarks = Vec::new();
    let normalizations = batch_normalizations(graph);
    if normalizations > 0 {
        remarks.push(format!(
            "{normalizations} batch normalizations: a record's gradient would depend on the others of its batch; fold them \
             (`model fold`) or replace them (`model fold --group-normalization`)"
        ));
    }
    if graph.parameters().is_empty() {
        remarks.push("no parameters: there is nothing to train".to_owned());
    }
    let last = graph.nodes().last().map(|n| &n.layer);
    let softmax = matches!(last, Some(Layer::Softmax(_) | Layer::Activation(Activation::Softmax)));
    if softmax {
        remarks.push(
            "the last layer is a softmax, which the cross-entropy of training contains: take the value before it \
             (`--output`)"
                .to_owned(),
        );
    }
    (normalizations == 0 && !graph.parameters().is_empty(), remarks)
}

/// What a network made of a data set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ran {
    /// Records.
    pub records: usize,
    /// Numbers per record.
    pub outputs: usize,
    /// Share of records whose largest output is that of their class, if there is an output for each class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// Share of records whose class is among the largest outputs that were asked for, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy_within_top: Option<f64>,
    /// Records of which an output is not a finite number.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_finite: usize,
    /// Shape of the images where the network reads another one: they are scaled, grey ones repeated for each channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaled_from: Option<[usize; 3]>,
    /// Whether images were turned to have their channels last, as the network has them.
    pub channels_last: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// Runs a network on the data of a study file, and writes every record's number, class and outputs as CSV: all of them, or the
/// `top` largest with what they stand for, the largest first.
///
/// # Errors
/// Of the data, [`Error::Model`] if the network does not read them or has fewer than `top` outputs, or what the writer says.
pub fn run(
    path: &Path,
    part: &Part,
    study_file: &Path,
    preparation: &Preparation,
    top: Option<NonZero<usize>>,
    mut table: Option<&mut dyn Write>,
) -> Result<Ran, Error> {
    let failed = |what: String| Error::Model { path: path.to_owned(), what };
    let dataset = tables::load(study_file)?;
    let image = dataset.shape();
    let network = match load(path, part) {
        Ok(network) => network,
        // A model that takes images of any size takes those at hand.
        Err(error) => match image {
            Some(shape) if part.input.is_none() => {
                let part = Part { input: Some(shape.to_vec()), ..part.clone() };
                load(path, &part).map_err(|_| error)?
            }
            _ => return Err(error),
        },
    };
    let graph = &network.graph;
    let graphs = dataset.graphs().is_some();
    if graphs && preparation != &Preparation::default() {
        return Err(failed("graphs have no numbers to subtract from or divide".to_owned()));
    }
    if graphs != graph.reads_graphs() {
        let kind = |graphs: bool| if graphs { "graphs" } else { "numbers" };
        let (needed, got) = (kind(graph.reads_graphs()), kind(graphs));
        return Err(failed(format!("it takes {needed}, the data have {got}")));
    }
    let wanted = graph.shape(Value::INPUT);
    let reader =
        Reader::new(preparation.clone(), dataset.width(), image, wanted).map_err(failed)?;
    let width = graph.inputs();
    let outputs = graph.outputs();
    let top = top.map(NonZero::get);
    if let Some(top) = top.filter(|top| *top > outputs) {
        return Err(failed(format!("of its {outputs} outputs the {top} largest were asked for")));
    }
    let threads = std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    let mut workspace = Workspace::with_threads(threads);
    let (mut values, mut row) = (Vec::new(), Vec::new());
    // Outputs stand for the classes of the data.
    let named = outputs == dataset.classes && outputs > 1;
    let mut batch = Batch::default();
    let refused = |source| Error::Train { task: "running a network".to_owned(), source };
    let (mut right, mut within_top, mut not_finite) = (0_usize, 0_usize, 0_usize);
    let disk = |source| Error::Disk { path: path.to_owned(), source };
    if let Some(table) = &mut table {
        write_head(outputs, top, table).map_err(disk)?;
    }
    for start in (0..dataset.len()).step_by(RECORD_BLOCK) {
        values.clear();
        let block = start..(start + RECORD_BLOCK).min(dataset.len());
        for record in block.clone().filter(|_| !graphs) {
            row.clear();
            dataset.inputs.append_row(record, &mut row);
            reader.append(&row, &mut values);
        }
        let rows = if graphs {
            let records = block.clone().filter_map(|record| u32::try_from(record).ok());
            batch.gather(&dataset, records.map(RecordId)).map_err(refused)?;
            batch.rows().map_err(refused)?
        } else {
            Rows::Dense { width, values: &values }
        };
        let given = graph.forward(&rows, &mut workspace)?;
        for (record, outputs) in block.zip(given.chunks_exact(outputs)) {
            let class = dataset.labels[record] as usize;
            let best = largest(outputs, top.unwrap_or(1));
            right += usize::from(best.first() == Some(&class));
            within_top += usize::from(best.contains(&class));
            not_finite += usize::from(outputs.iter().any(|x| !x.is_finite()));
            if let Some(table) = &mut table {
                let name = |class: usize| dataset.class_names.get(class).map_or("", String::as_str);
                write!(table, "{record},{}", quoted(name(class))).map_err(disk)?;
                if top.is_none() {
                    for output in outputs {
                        write!(table, ",{output}").map_err(disk)?;
                    }
                } else {
                    for i in best {
                        let what = if named { quoted(name(i)) } else { i.to_string() };
                        write!(table, ",{what},{}", outputs[i]).map_err(disk)?;
                    }
                }
                writeln!(table).map_err(disk)?;
            }
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a share of records")]
    let share = |count: usize| named.then(|| count as f64 / dataset.len().max(1) as f64);
    Ok(Ran {
        records: dataset.len(),
        outputs,
        accuracy: share(right),
        accuracy_within_top: top.and_then(|_| share(within_top)),
        not_finite,
        scaled_from: image.filter(|_| reader.scales()),
        channels_last: reader.channels_last(),
    })
}

/// What becomes of batch normalizations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Change {
    /// They stay.
    #[default]
    None,
    /// They are folded into the layers before them.
    Fold,
    /// Group normalizations with so many groups take their place.
    Groups(usize),
}

/// Writes a network as an ONNX model, or as a checkpoint.
///
/// # Errors
/// [`Error::Model`] if it cannot be written so, or what the writer says.
pub fn export(
    path: &Path,
    network: &Network,
    change: Change,
    as_onnx: bool,
) -> Result<(Network, Vec<u8>), Error> {
    let failed = |what: String| Error::Model { path: path.to_owned(), what };
    let graph = match change {
        Change::None => network.graph.clone(),
        Change::Fold => network.graph.fold_batch_normalization()?,
        Change::Groups(groups) => network.graph.replace_batch_normalization(groups)?,
    };
    let bytes = if as_onnx {
        onnx::write(&graph).map_err(|e| failed(e.to_string()))?
    } else {
        graph.to_bytes()?
    };
    Ok((Network { graph, names: Vec::new(), ..network.clone() }, bytes))
}

fn write_head(outputs: usize, top: Option<usize>, out: &mut dyn Write) -> std::io::Result<()> {
    write!(out, "record,class")?;
    match top {
        None => (0..outputs).try_for_each(|i| write!(out, ",output_{i}"))?,
        Some(top) => (1..=top).try_for_each(|i| write!(out, ",top_{i},output_{i}"))?,
    }
    writeln!(out)
}
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
/// Places of the largest numbers, the largest first; of equal ones the first.
fn largest(numbers: &[f32], count: usize) -> Vec<usize> {
    let order = |a: &usize, b: &usize| numbers[*b].total_cmp(&numbers[*a]).then(a.cmp(b));
    let mut places: Vec<usize> = (0..numbers.len()).collect();
    if count < places.len() {
        places.select_nth_unstable_by(count, order);
        places.truncate(count);
    }
    places.sort_unstable_by(order);
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_numbers_come_first_and_of_equal_ones_the_first() {
        let numbers = [0.5, 2.0, -1.0, 2.0, 0.75];
        assert_eq!(largest(&numbers, 1), [1]);
        assert_eq!(largest(&numbers, 3), [1, 3, 4]);
        assert_eq!(largest(&numbers, 5), [1, 3, 4, 0, 2]);
    }
}
