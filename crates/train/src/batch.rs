//! Gathering records of a data set into network inputs.
use crate::Error;
use dosimeter_data::{Dataset, Inputs, RecordId};
use dosimeter_model::{Examples, Loss, Rows, Targets};

/// Gathered records; buffers are reused.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    values: Vec<f32>,
    words: Vec<u64>,
    labels: Vec<u32>,
    width: usize,
    bits: bool,
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
        self.labels.clear();
        self.width = dataset.width();
        self.bits = matches!(dataset.inputs, Inputs::Bits(_));
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
                inputs => inputs.append_row(row, &mut self.values),
            }
        }
        Ok(())
    }
    /// The inputs.
    #[must_use]
    pub fn rows(&self) -> Rows<'_> {
        if self.bits {
            Rows::Bits { width: self.width, words: &self.words }
        } else {
            Rows::Dense { width: self.width, values: &self.values }
        }
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
        Ok(Examples { rows: self.rows(), targets, loss: Loss::CrossEntropy })
    }
    /// The classes.
    #[must_use]
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }
}
