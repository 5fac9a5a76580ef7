//! Loss and accuracy of a network on records.
use crate::{Batch, Error};
use dosimeter_data::{Dataset, RecordId};
use dosimeter_model::{Graph, RECORD_BLOCK, Workspace};
use serde::{Deserialize, Serialize};

/// How well a network classifies some records.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// How many records.
    pub records: usize,
    /// How many of them were given their class (the largest logit; among equal ones the first).
    pub correct: usize,
    /// Mean cross-entropy in nats.
    pub loss: f64,
}
impl Evaluation {
    /// Share of correct answers.
    #[must_use]
    pub fn accuracy(&self) -> f64 {
        self.correct as f64 / self.records as f64
    }
}

/// Classifies the records and compares with their classes.
///
/// # Errors
/// [`Error::NoRecords`] for an empty list; an error naming the record if one cannot be used.
pub fn evaluate(
    graph: &Graph,
    dataset: &Dataset,
    records: &[RecordId],
) -> Result<Evaluation, Error> {
    let (mut batch, mut workspace) = (Batch::default(), Workspace::new());
    evaluate_with(graph, dataset, records, &mut batch, &mut workspace)
}

pub(crate) fn evaluate_with(
    graph: &Graph,
    dataset: &Dataset,
    records: &[RecordId],
    batch: &mut Batch,
    workspace: &mut Workspace,
) -> Result<Evaluation, Error> {
    if records.is_empty() {
        return Err(Error::NoRecords);
    }
    let (mut correct, mut loss) = (0, 0.0);
    for part in records.chunks(RECORD_BLOCK) {
        batch.gather(dataset, part.iter().copied())?;
        let logits = graph.forward(&batch.rows()?, workspace)?;
        for (row, class) in logits.chunks_exact(graph.outputs()).zip(batch.labels()) {
            let (hit, nats) = judge(row, *class as usize);
            correct += usize::from(hit);
            loss += nats;
        }
    }
    Ok(Evaluation { records: records.len(), correct, loss: loss / records.len() as f64 })
}

/// Whether the class has the first largest logit, and its cross-entropy in nats.
pub(crate) fn judge(logits: &[f32], class: usize) -> (bool, f64) {
    let mut best = 0;
    for (i, z) in logits.iter().enumerate() {
        if *z > logits[best] {
            best = i;
        }
    }
    let largest = f64::from(logits[best]);
    // Relative to the largest logit; its own term is 1 and is added by ln_1p, so confident rows keep their digits.
    let others: f64 = logits
        .iter()
        .enumerate()
        .filter(|(i, _)| *i != best)
        .map(|(_, z)| (f64::from(*z) - largest).exp())
        .sum();
    let own = logits.get(class).map_or(f64::NAN, |z| f64::from(*z));
    (best == class, (largest - own) + others.ln_1p())
}
