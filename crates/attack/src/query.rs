//! Asks a model about records.
use crate::{Access, Error, ModelSignals};
use dosimeter_data::{Dataset, RecordId};
use dosimeter_model::{Graph, Rows, Value, Workspace};
use dosimeter_train::Batch;

/// Records asked about at a time: bounds memory, changes no answer.
const PART: usize = 1024;

/// The answers of `graph` to `records` of `dataset`, in that order, with their true labels.
///
/// With [`Access::WhiteBox`] also what the last linear layer read (the network's inputs, if it is the only one).
///
/// For a model trained on locally randomized records, pass the **original** data set.
///
/// # Errors
/// When a record is not in the data set or is asked for twice, the data set does not fit the network, a label is beyond
/// the network's classes, or an answer is not finite; the error names the record.
pub fn query(
    graph: &Graph,
    dataset: &Dataset,
    records: &[RecordId],
    access: Access,
) -> Result<ModelSignals, Error> {
    let read = graph.last_linear().map_or(Value::INPUT, |i| graph.nodes()[i].inputs[0]);
    let last_width = graph.shape(read).iter().product();
    let mut logits = Vec::with_capacity(records.len() * graph.outputs());
    let mut last = Vec::new();
    let mut labels = Vec::with_capacity(records.len());
    let (mut workspace, mut batch) = (Workspace::new(), Batch::default());
    for part in records.chunks(PART) {
        batch.gather(dataset, part.iter().copied())?;
        let rows = batch.rows()?;
        labels.extend_from_slice(batch.labels());
        logits.extend_from_slice(graph.forward(&rows, &mut workspace)?);
        if access == Access::WhiteBox {
            match rows {
                _ if !workspace.last_layer_inputs().is_empty() => {
                    last.extend_from_slice(workspace.last_layer_inputs());
                }
                Rows::Dense { values, .. } => last.extend_from_slice(values),
                Rows::Bits { width, words } => {
                    for row in words.chunks_exact(width.div_ceil(64)) {
                        last.extend((0..width).map(|j| ((row[j / 64] >> (j % 64)) & 1) as f32));
                    }
                }
                // The last linear layer of a network of graphs reads what other layers gave.
                Rows::Graphs(_) => {}
            }
        }
    }
    let signals = ModelSignals {
        records: records.to_vec(),
        labels,
        classes: graph.outputs(),
        logits,
        last_layer_inputs: (access == Access::WhiteBox).then_some((last_width, last)),
    };
    signals.check()?;
    Ok(signals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dosimeter_data::{BitMatrix, Inputs, Seed};
    use dosimeter_model::{Activation, zoo};

    /// 2,500 rows of 70 bits: more than two parts, more than a word.
    fn twins() -> (Dataset, Dataset) {
        let rows = 2500;
        let bit = |i: usize, j: usize| (i * 31 + j * j * 7 + i * j) % 5 < 2;
        let mut words = Vec::new();
        let mut values = Vec::new();
        for i in 0..rows {
            let mut row = [0_u64; 2];
            for j in 0..70 {
                row[j / 64] |= u64::from(bit(i, j)) << (j % 64);
                values.push(f32::from(u8::from(bit(i, j))));
            }
            words.extend(row);
        }
        let labels: Vec<u32> = (0..rows as u32).map(|i| i % 3).collect();
        let bits = BitMatrix { rows, width: 70, words };
        let bits = Dataset::from_bits("test", bits, labels.clone(), 3).unwrap();
        (bits, Dataset::from_reals("test", 70, values, labels, 3).unwrap())
    }

    #[test]
    fn answers_follow_the_order_asked_for_and_bits_mean_numbers() {
        let (bits, reals) = twins();
        let graph = zoo::mlp(70, &[5], 3, Activation::Tanh, &mut Seed::root(1).rng()).unwrap();
        let records: Vec<RecordId> = (0..2500).map(|i| RecordId((i * 7 + 3) % 2500)).collect();
        let all = query(&graph, &bits, &records, Access::WhiteBox).unwrap();
        let numbers = query(&graph, &reals, &records, Access::WhiteBox).unwrap();
        let close = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5);
        assert_eq!(all.records, records);
        assert!(close(&all.logits, &numbers.logits));
        for row in [0, 1023, 1024, 2499] {
            let one = query(&graph, &reals, &records[row..=row], Access::WhiteBox).unwrap();
            assert!(close(all.logits_of(row), &one.logits), "{row}");
            assert_eq!(one.labels[0], records[row].0 % 3);
            let (width, last) = all.last_layer_inputs.as_ref().unwrap();
            assert_eq!(*width, 5);
            assert!(close(&last[row * 5..(row + 1) * 5], &one.last_layer_inputs.unwrap().1));
        }
        assert_eq!(
            query(&graph, &bits, &records, Access::BlackBox).unwrap().last_layer_inputs,
            None
        );
    }

    #[test]
    fn a_single_layer_reads_the_record_itself() {
        let (bits, reals) = twins();
        let graph = zoo::mlp(70, &[], 3, Activation::Tanh, &mut Seed::root(1).rng()).unwrap();
        let records = [RecordId(4), RecordId(2)];
        let all = query(&graph, &bits, &records, Access::WhiteBox).unwrap();
        let Inputs::Reals { values, .. } = &reals.inputs else { panic!() };
        let expected = [&values[280..350], &values[140..210]].concat();
        assert_eq!(all.last_layer_inputs, Some((70, expected)));
    }

    #[test]
    fn a_record_that_is_not_there_is_named() {
        let (bits, _) = twins();
        let graph = zoo::mlp(70, &[5], 3, Activation::Tanh, &mut Seed::root(1).rng()).unwrap();
        let error = query(&graph, &bits, &[RecordId(2500)], Access::BlackBox).unwrap_err();
        assert_eq!(error.to_string(), "record 2500 is not in the data set of 2500 records");
    }
}
