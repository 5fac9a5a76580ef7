//! Gathering records of a data set into network inputs.
use crate::Error;
use dosimeter_data::graphs::GraphRecords;
use dosimeter_data::{Dataset, Inputs, RecordId};
use dosimeter_model::{Examples, GraphRows, Loss, Rows, Targets};

/// Gathered records; buffers are reused.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    values: Vec<f32>,
    words: Vec<u64>,
    graphs: Graphs,
    labels: Vec<u32>,
    width: usize,
    kind: Kind,
}
/// Which of the buffers is in use.
#[derive(Debug, Clone, Copy, Default)]
enum Kind {
    #[default]
    Dense,
    Bits,
    Graphs,
}
/// Gathered graphs, in the form of [`GraphRows`].
#[derive(Debug, Clone, Default)]
struct Graphs {
    first_node: Vec<usize>,
    first_neighbour: Vec<usize>,
    neighbours: Vec<u32>,
    features: Vec<u32>,
}
impl Graphs {
    fn clear(&mut self) {
        self.first_node.clear();
        self.first_node.push(0);
        self.first_neighbour.clear();
        self.first_neighbour.push(0);
        self.neighbours.clear();
        self.features.clear();
    }
    fn add(&mut self, records: &GraphRecords, row: usize) {
        let Some(graph) = records.set().graph(row) else { return };
        let (neighbours, lengths) = graph.lists();
        let mut end = self.neighbours.len();
        self.first_neighbour.extend(lengths.map(|length| {
            end += length;
            end
        }));
        self.neighbours.extend_from_slice(neighbours);
        self.features.extend(records.node_features(row));
        self.first_node.push(self.features.len());
    }
}
impl Batch {
    /// Replaces the content by the given records, in their order.
    ///
    /// # Errors
    /// [`Error::UnknownRecord`] or [`Error::ClassRange`] for the first record that cannot be used.
    pub fn gather(
        &mut self,
        dataset: &Dataset,
        records: impl IntoIterator<Item = RecordId>,
    ) -> Result<(), Error> {
        self.values.clear();
        self.words.clear();
        self.graphs.clear();
        self.labels.clear();
        self.width = dataset.width();
        self.kind = match dataset.inputs {
            Inputs::Bits(_) => Kind::Bits,
            Inputs::Graphs(_) => Kind::Graphs,
            _ => Kind::Dense,
        };
        for record in records {
            let row = record.0 as usize;
            let Some(class) = dataset.labels.get(row).copied() else {
                return Err(Error::UnknownRecord { record, records: dataset.len() });
            };
            if class as usize >= dataset.classes {
                return Err(Error::ClassRange { record, class, classes: dataset.classes });
            }
            self.labels.push(class);
            match &dataset.inputs {
                Inputs::Bits(bits) => self.words.extend_from_slice(bits.row(row)),
                Inputs::Graphs(graphs) => self.graphs.add(graphs, row),
                inputs => inputs.append_row(row, &mut self.values),
            }
        }
        Ok(())
    }
    /// The inputs.
    ///
    /// # Errors
    /// [`Error::Model`] for graphs if nothing was gathered yet.
    pub fn rows(&self) -> Result<Rows<'_>, Error> {
        Ok(match self.kind {
            Kind::Dense => Rows::Dense { width: self.width, values: &self.values },
            Kind::Bits => Rows::Bits { width: self.width, words: &self.words },
            Kind::Graphs => {
                let Graphs { first_node, first_neighbour, neighbours, features } = &self.graphs;
                let rows =
                    GraphRows::new(self.width, first_node, first_neighbour, neighbours, features);
                Rows::Graphs(rows?)
            }
        })
    }
    /// Gathers the records at `positions` of `records`, to be judged by cross-entropy.
    ///
    /// # Errors
    /// As [`Self::gather`].
    pub(crate) fn examples(
        &mut self,
        dataset: &Dataset,
        records: &[RecordId],
        positions: &[u32],
    ) -> Result<Examples<'_>, Error> {
        self.gather(dataset, positions.iter().map(|i| records[*i as usize]))?;
        let targets = Targets::Classes(&self.labels);
        Ok(Examples { rows: self.rows()?, targets, loss: Loss::CrossEntropy })
    }
    /// The classes.
    #[must_use]
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }
}
