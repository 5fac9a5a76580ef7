//! A frozen core: a public network that turns each record into features, once. The study trains and attacks a head on them.
use crate::Error;
use crate::models::{self, Part};
use crate::packed::{self, pack, unpack};
use crate::preparation::Reader;
use crate::study::{CoreSpec, Study};
use dosimeter_data::{Column, ColumnKind, Dataset, Inputs, RecordId};
use dosimeter_model::{Graph, Rows, Workspace};
use dosimeter_privacy::Ledger;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Most numbers of features of all records together, 4 bytes each: 4 GiB.
const MOST_NUMBERS: u64 = 1 << 30;
/// Records at a time are so few that what a thread holds of them stays below about this many numbers.
const NUMBERS_AT_A_TIME: usize = 1 << 24;
const MOST_AT_A_TIME: usize = 32;

/// A network in front of the one that a study trains: public, and the same for every arm.
#[derive(Debug)]
pub struct Core {
    graph: Graph,
    reader: Reader,
    /// BLAKE3 of the file, as `b3sum` gives it.
    pub(crate) file_digest: String,
    /// BLAKE3 of the network as read, with weights from elsewhere and without what is not used.
    pub(crate) digest: String,
    path: PathBuf,
    /// Records computed together. It follows from the network alone, so no number depends on the machine.
    at_a_time: usize,
}
impl Core {
    /// Reads the core of a study, if it has one, and looks whether it can read the data.
    ///
    /// # Errors
    /// [`Error::Study`] with the field of the study file, what was needed and what was there.
    pub(crate) fn load(study: &Study, dataset: &Dataset) -> Result<Option<Self>, Error> {
        let Some(spec) = &study.target.core else { return Ok(None) };
        let refused =
            |field: &str, what: String| study.problem(&format!("target.core.{field}"), what);
        let unreadable = |error: Error| refused("path", format!("cannot be read: {error}"));
        let part = Part { input: spec.input.clone(), output: spec.output.clone() };
        let network = models::load(&spec.path, &part).map_err(unreadable)?;
        let disk = |source| unreadable(Error::Disk { path: spec.path.clone(), source });
        let file_digest = blake3::hash(&std::fs::read(&spec.path).map_err(disk)?).to_hex();
        Self::of(network.graph, file_digest.to_string(), spec, dataset)
            .map(Some)
            .map_err(|what| refused("path", what))
    }
    fn of(
        graph: Graph,
        file_digest: String,
        spec: &CoreSpec,
        dataset: &Dataset,
    ) -> Result<Self, String> {
        let wanted = graph.shape(dosimeter_model::Value::INPUT);
        if dataset.graphs().is_some() || graph.reads_graphs() {
            return Err(
                "needs a core that reads numbers, and records of numbers, got graphs".to_owned()
            );
        }
        let (width, image) = (dataset.width(), dataset.shape());
        let reader = Reader::new(spec.preparation.clone(), width, image, wanted)?;
        let (records, outputs) = (dataset.len() as u64, graph.outputs() as u64);
        if records.saturating_mul(outputs) > MOST_NUMBERS {
            return Err(format!(
                "needs a core with at most {} outputs for {records} records, got {outputs}; `output` takes a later value",
                MOST_NUMBERS / records.max(1)
            ));
        }
        let digest = blake3::hash(&graph.to_bytes().map_err(|e| e.to_string())?).to_hex();
        Ok(Self {
            reader,
            file_digest,
            digest: digest.to_string(),
            path: spec.path.clone(),
            at_a_time: at_a_time(&graph),
            graph,
        })
    }
    /// Features of a record.
    pub(crate) fn width(&self) -> usize {
        self.graph.outputs()
    }
    /// Records that are computed together.
    pub(crate) const fn at_a_time(&self) -> usize {
        self.at_a_time
    }
    /// Seconds that a record takes on this machine, for estimates; 0 if the core fails, as the run will tell.
    pub(crate) fn seconds_per_record(&self, dataset: &Dataset) -> f64 {
        let few: Vec<RecordId> = every_record(dataset).take(self.at_a_time.min(4)).collect();
        let start = Instant::now();
        match self.block(dataset, &few, &mut Buffers::default()) {
            #[expect(clippy::cast_precision_loss, reason = "few records")]
            Ok(_) => start.elapsed().as_secs_f64() / few.len().max(1) as f64,
            Err(_) => 0.0,
        }
    }
    /// Runs records through the core, on all threads of the pool: `[records, width]`. `goes_on` is told how many are done, and
    /// says whether to go on.
    ///
    /// # Errors
    /// [`Error::Stopped`]; [`Error::Network`].
    pub(crate) fn features(
        &self,
        dataset: &Dataset,
        records: &[RecordId],
        goes_on: &(dyn Fn(usize) -> bool + Sync),
    ) -> Result<Vec<f32>, Error> {
        let done = AtomicUsize::new(0);
        let blocks = records
            .par_chunks(self.at_a_time)
            .map_init(Buffers::default, |buffers, block| {
                if !goes_on(done.load(Ordering::Relaxed)) {
                    return Err(Error::Stopped);
                }
                let features = self.block(dataset, block, buffers)?;
                done.fetch_add(block.len(), Ordering::Relaxed);
                Ok(features)
            })
            .collect::<Result<Vec<_>, Error>>()?;
        Ok(blocks.concat())
    }
    fn block(
        &self,
        dataset: &Dataset,
        records: &[RecordId],
        buffers: &mut Buffers,
    ) -> Result<Vec<f32>, Error> {
        let Buffers { workspace, record, read } = buffers;
        read.clear();
        for id in records {
            record.clear();
            dataset.inputs.append_row(id.0 as usize, record);
            self.reader.append(record, read);
        }
        let rows = Rows::Dense { width: self.graph.inputs(), values: read };
        let features = self.graph.forward(&rows, workspace)?;
        let width = self.width().max(1);
        if let Some(at) = features.iter().position(|feature| !feature.is_finite()) {
            let what = format!(
                "as a core, gives {} as feature {} of record {}; `highest`, `mean` and `deviation` of target.core say how it wants its images",
                features[at],
                at % width,
                records[at / width].0
            );
            return Err(Error::Model { path: self.path.clone(), what });
        }
        Ok(features.to_vec())
    }
}

#[derive(Default)]
struct Buffers {
    workspace: Workspace,
    record: Vec<f32>,
    read: Vec<f32>,
}

/// How many records to compute together, from all the numbers that one makes on its way.
fn at_a_time(graph: &Graph) -> usize {
    let mut shapes: Vec<Vec<usize>> = vec![graph.shape(dosimeter_model::Value::INPUT).to_vec()];
    for node in graph.nodes() {
        let inputs: Vec<&[usize]> = node
            .inputs
            .iter()
            .filter_map(|v| shapes.get(v.position()).map(Vec::as_slice))
            .collect();
        shapes.push(node.layer.output_shape_of(&inputs).unwrap_or_default());
    }
    let numbers = shapes.iter().map(|s| s.iter().product::<usize>()).sum::<usize>();
    (NUMBERS_AT_A_TIME / numbers.max(1)).clamp(1, MOST_AT_A_TIME)
}

/// All records of a data set.
pub(crate) fn every_record(dataset: &Dataset) -> impl Iterator<Item = RecordId> {
    (0..u32::try_from(dataset.len()).unwrap_or(u32::MAX)).map(RecordId)
}

/// Records as a network reads them: row `i` is the `i`-th of `records`, which are in ascending order; all of them without.
#[derive(Debug)]
pub(crate) struct Features {
    pub(crate) dataset: Dataset,
    records: Option<Vec<RecordId>>,
    /// What randomizing the records spent on each.
    pub(crate) ledger: Option<Ledger>,
}
impl Features {
    /// Some records, in ascending order, as a core turned them into features.
    pub(crate) const fn of_records(dataset: Dataset, records: Vec<RecordId>) -> Self {
        Self { dataset, records: Some(records), ledger: None }
    }
    pub(crate) fn randomized((dataset, ledger): (Dataset, Ledger)) -> Self {
        Self { dataset, records: None, ledger: Some(ledger) }
    }
    /// Where records of the study stand here.
    ///
    /// # Errors
    /// [`Error::ArtifactShape`] for one that is not here.
    pub(crate) fn rows(&self, records: &[RecordId]) -> Result<Vec<RecordId>, Error> {
        let Some(here) = &self.records else { return Ok(records.to_vec()) };
        let row = |record| {
            let at = here.binary_search(record).ok().and_then(|at| u32::try_from(at).ok());
            at.map(RecordId).ok_or(Error::ArtifactShape)
        };
        records.iter().map(row).collect()
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Facts {
    width: usize,
    ledger: Option<Ledger>,
}

/// Features of `records` as they are kept in the run directory.
pub(crate) fn to_bytes(
    width: usize,
    records: &[RecordId],
    features: &[f32],
    ledger: Option<&Ledger>,
) -> Result<Vec<u8>, Error> {
    let facts = Facts { width, ledger: ledger.cloned() };
    pack(&facts, &[&packed::ids(records), &packed::floats(features)])
}
/// The reverse of [`to_bytes`], with the labels of `dataset`. Features have no public bounds, and need none: gradients are clipped
/// record by record, and local arms randomize records, not features.
///
/// # Errors
/// [`Error::ArtifactShape`] for an artifact of other records; [`Error::Data`] with the row whose features are not finite.
pub(crate) fn from_bytes(bytes: &[u8], dataset: &Dataset) -> Result<Features, Error> {
    let (facts, arrays) = unpack::<Facts>(bytes)?;
    let [records, numbers] = arrays[..] else { return Err(Error::ArtifactShape) };
    let records = packed::read_ids(records);
    let values = packed::read_floats(numbers);
    let dataset = of_numbers(facts.width, values, &records, dataset)?;
    Ok(Features { dataset, records: Some(records), ledger: facts.ledger })
}

/// Records of `dataset` as their features.
pub(crate) fn of_numbers(
    width: usize,
    values: Vec<f32>,
    records: &[RecordId],
    dataset: &Dataset,
) -> Result<Dataset, Error> {
    let unbounded = || ColumnKind::Real { low: f64::NEG_INFINITY, high: f64::INFINITY };
    let columns = (0..width)
        .map(|i| Column { name: format!("feature {i}"), kind: unbounded(), first_input: i })
        .collect();
    let inputs = Inputs::Reals { width, values };
    let label = |record: &RecordId| dataset.labels.get(record.0 as usize).copied();
    let labels: Option<Vec<u32>> = records.iter().map(label).collect();
    let labels = labels.ok_or(Error::ArtifactShape)?;
    let names = dataset.class_names.clone();
    Ok(Dataset::from_parts(&dataset.name, columns, inputs, labels, names)?)
}
