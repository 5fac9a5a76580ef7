//! Data sets in and out without a run: generate, inspect, randomize.
use crate::study::refused;
use crate::{Error, file};
use dosimeter_data::datasets::{DatasetSpec, SkewedPurchases};
pub use dosimeter_data::graphs::Quantiles;
use dosimeter_data::graphs::{self, Dropped};
use dosimeter_data::{ColumnKind, Dataset, Inputs, Seed, datasets};
use dosimeter_privacy::{Accountant, Delta, Epsilon, Ledger, NoiseRng, Relation, Unit};
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// What a data set holds, without a record of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Facts {
    /// Name of the data set.
    pub name: String,
    /// Digest of schema, inputs and labels.
    pub fingerprint: String,
    /// Records.
    pub records: usize,
    /// Columns.
    pub columns: usize,
    /// Network inputs per record.
    pub width: usize,
    /// Channels, height and width, if the records are images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<[usize; 3]>,
    /// Classes.
    pub classes: usize,
    /// Records of the rarest and of the most frequent class.
    pub class_sizes: (usize, usize),
    /// Share of inputs that are 1, for bits.
    pub ones: Option<f64>,
    /// Records whose law differs from the others', if the data set has such.
    pub test_law_records: Option<usize>,
}

/// A class and how many records it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassCount {
    /// As the file names it.
    pub class: String,
    /// Records.
    pub records: usize,
}
/// Every class and its records, in the order of the classes' numbers.
#[must_use]
pub fn class_counts(names: &[String], counts: &[usize]) -> Vec<ClassCount> {
    let of = |(class, &records): (&String, &usize)| ClassCount { class: class.clone(), records };
    names.iter().zip(counts).map(of).collect()
}

/// Loads the data of a study file. Only its seed and its `dataset` table are looked at.
///
/// # Errors
/// Every problem of these, or what is wrong with the data.
pub fn load(study_file: &Path) -> Result<Dataset, Error> {
    let text = file::text_of(study_file)?;
    let (spec, seed) = file::dataset_in(study_file, &text)?;
    datasets::load(&spec, Seed::root(seed).child("dataset"))
        .map_err(|error| refused(study_file, &text, error))
}

/// What a set of graphs holds, without a graph of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GraphFacts {
    /// Name of the set.
    pub name: String,
    /// Digest of labels, tags, attributes and edges.
    pub fingerprint: String,
    /// Graphs.
    pub graphs: usize,
    /// Nodes of all graphs.
    pub nodes: usize,
    /// Edges of all graphs.
    pub edges: usize,
    /// Different tags of nodes; 0 if nodes have none.
    pub node_tags: usize,
    /// Numbers per node.
    pub node_attributes: usize,
    /// Nodes of the graphs.
    pub nodes_per_graph: Quantiles,
    /// Edges of the graphs.
    pub edges_per_graph: Quantiles,
    /// Entries of the file that were left out.
    pub dropped: Dropped,
    /// Every class.
    pub class_counts: Vec<ClassCount>,
}
/// Loads the graphs of a study file and says what they hold; `None` if its data are no graphs. Only its `dataset` table is looked at.
///
/// # Errors
/// Every problem of that table, or what is wrong with the graphs.
pub fn graph_facts(study_file: &Path) -> Result<Option<GraphFacts>, Error> {
    let text = file::text_of(study_file)?;
    let Some(spec) = file::graphs_in(study_file, &text)? else { return Ok(None) };
    let set = graphs::load(&spec).map_err(|error| refused(study_file, &text, error))?;
    let [nodes_per_graph, edges_per_graph] = set.sizes();
    Ok(Some(GraphFacts {
        name: set.name.clone(),
        fingerprint: set.fingerprint(),
        graphs: set.len(),
        nodes: set.nodes(),
        edges: set.edges(),
        node_tags: set.tag_names().len(),
        node_attributes: set.attribute_width(),
        nodes_per_graph,
        edges_per_graph,
        dropped: set.dropped(),
        class_counts: class_counts(set.class_names(), &set.class_counts()),
    }))
}

/// Generates Skewed Purchases.
///
/// # Errors
/// If a setting is out of range.
pub fn generate(
    classes: usize,
    train_records: u32,
    test_records: u32,
    seed: u64,
) -> Result<Dataset, Error> {
    let settings =
        SkewedPurchases { classes, train_records, test_records, ..SkewedPurchases::default() };
    let seed = Seed::root(seed).child("dataset");
    Ok(datasets::load(&DatasetSpec::SkewedPurchases(settings), seed)?)
}

/// What a data set holds.
#[must_use]
pub fn facts(dataset: &Dataset) -> Facts {
    let sizes = dataset.class_counts();
    #[expect(clippy::cast_precision_loss, reason = "a share of records")]
    let ones = match &dataset.inputs {
        Inputs::Bits(bits) => {
            let set: u64 = bits.words.iter().map(|w| u64::from(w.count_ones())).sum();
            Some(set as f64 / (bits.rows * bits.width).max(1) as f64)
        }
        _ => None,
    };
    Facts {
        name: dataset.name.clone(),
        fingerprint: dataset.fingerprint(),
        records: dataset.len(),
        columns: dataset.columns.len(),
        width: dataset.width(),
        shape: dataset.shape(),
        classes: dataset.classes,
        class_sizes: (
            sizes.iter().copied().min().unwrap_or(0),
            sizes.iter().copied().max().unwrap_or(0),
        ),
        ones,
        test_law_records: dataset.test_law.as_ref().map(|law| law.len()),
    }
}

/// What randomizing a data set spends.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spent {
    /// Loss of one feature, nats.
    pub epsilon_per_feature: Epsilon,
    /// Loss of one record's feature vector: the sum over its features.
    pub epsilon_upper: Epsilon,
    /// Failure probability: none.
    pub delta: Delta,
    /// Any two feature vectors.
    pub relation: Relation,
    /// The label is public.
    pub unit: Unit,
    /// Who computed it.
    pub accountant: &'static str,
    /// Noise from the operating system, or from a seed.
    pub replayable: bool,
}

/// Randomizes every record. Without a seed the noise comes from the operating system.
///
/// # Errors
/// If the epsilon is out of range or a column cannot be randomized.
pub fn randomize(
    dataset: &Dataset,
    epsilon_per_feature: Epsilon,
    seed: Option<u64>,
) -> Result<(Dataset, Spent), Error> {
    let mut rng = match seed {
        Some(seed) => NoiseRng::replayable(Seed::root(seed).child("randomize").bytes()),
        None => NoiseRng::secure()?,
    };
    let (randomized, ledger) =
        dosimeter_train::local::randomize(dataset, epsilon_per_feature, &mut rng)
            .map_err(|source| Error::Train { task: "randomizing".to_owned(), source })?;
    let spent = spent(&ledger, epsilon_per_feature, seed.is_some())?;
    Ok((randomized, spent))
}

fn spent(ledger: &Ledger, epsilon_per_feature: Epsilon, replayable: bool) -> Result<Spent, Error> {
    let delta = Delta::new(0.0)?;
    let basic: &dyn Accountant = crate::account::accountant("basic").ok_or(Error::ArtifactShape)?;
    Ok(Spent {
        epsilon_per_feature,
        epsilon_upper: basic.epsilon_upper(ledger, Relation::Local, delta)?,
        delta,
        relation: Relation::Local,
        unit: ledger.unit(),
        accountant: basic.name(),
        replayable,
    })
}

/// Writes a data set as CSV: the label under its name `label`, then one column per column (of images one per number in `[0, 1]`,
/// `pixels 1` and so on); numbers back on their public scale, classes and categories as their file called them.
///
/// # Errors
/// What the writer says.
pub fn write_csv(dataset: &Dataset, label: &str, out: &mut dyn Write) -> std::io::Result<()> {
    let quoted = |name: &str| {
        if name.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", name.replace('"', "\"\""))
        } else {
            name.to_owned()
        }
    };
    let mut line = quoted(label);
    for column in &dataset.columns {
        if matches!(column.kind, ColumnKind::Image { .. }) {
            for number in 1..=column.kind.inputs() {
                line.push_str(&format!(",{}", quoted(&format!("{} {number}", column.name))));
            }
            continue;
        }
        line.push(',');
        line.push_str(&quoted(&column.name));
    }
    writeln!(out, "{line}")?;
    let mut row = Vec::with_capacity(dataset.width());
    for (record, label) in dataset.labels.iter().enumerate() {
        row.clear();
        dataset.inputs.append_row(record, &mut row);
        line.clear();
        line.push_str(&quoted(&dataset.class_names[*label as usize]));
        for column in &dataset.columns {
            let first = column.first_input;
            if matches!(column.kind, ColumnKind::Image { .. }) {
                for value in &row[first..first + column.kind.inputs()] {
                    line.push_str(&format!(",{value}"));
                }
                continue;
            }
            line.push(',');
            match &column.kind {
                ColumnKind::Bit => line.push(if row[first] > 0.5 { '1' } else { '0' }),
                ColumnKind::Category(levels) => {
                    let set = (0..levels.len()).find(|l| row[first + l] > 0.5);
                    if let Some(level) = set.and_then(|l| levels.get(l)) {
                        line.push_str(&quoted(level));
                    }
                }
                ColumnKind::Real { low, high } => {
                    let value = f64::from(row[first]).mul_add(high - low, *low);
                    line.push_str(&value.to_string());
                }
                _ => {}
            }
        }
        writeln!(out, "{line}")?;
    }
    Ok(())
}
