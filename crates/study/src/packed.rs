//! Facts as one line of JSON, then arrays of little-endian numbers: how artifacts hold what models answered.
use crate::Error;
use dosimeter_attack::{ModelFacts, ModelSignals, Shadow};
use dosimeter_audit::Scores;
use dosimeter_data::RecordId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Header<T> {
    facts: T,
    /// Bytes of each array that follows.
    arrays: Vec<usize>,
}

/// Facts and raw arrays in one artifact.
pub(crate) fn pack<T: Serialize>(facts: &T, arrays: &[&[u8]]) -> Result<Vec<u8>, Error> {
    let header = Header { facts, arrays: arrays.iter().map(|a| a.len()).collect() };
    let mut bytes = serde_json::to_vec(&header).map_err(Error::Encode)?;
    bytes.push(b'\n');
    for array in arrays {
        bytes.extend_from_slice(array);
    }
    Ok(bytes)
}
/// The reverse of [`pack`].
pub(crate) fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, Vec<&[u8]>), Error> {
    let end = bytes.iter().position(|b| *b == b'\n').unwrap_or(bytes.len());
    let header: Header<T> = serde_json::from_slice(&bytes[..end]).map_err(Error::Decode)?;
    let mut rest = bytes.get(end + 1..).unwrap_or_default();
    let mut arrays = Vec::with_capacity(header.arrays.len());
    for length in header.arrays {
        let (array, after) = rest.split_at_checked(length).ok_or(Error::ArtifactShape)?;
        arrays.push(array);
        rest = after;
    }
    Ok((header.facts, arrays))
}

fn words<const N: usize, T>(bytes: &[u8], read: fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|chunk| read(*chunk)).collect()
}
pub(crate) fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}
pub(crate) fn ids(records: &[RecordId]) -> Vec<u8> {
    records.iter().flat_map(|r| r.0.to_le_bytes()).collect()
}
pub(crate) fn read_floats(bytes: &[u8]) -> Vec<f32> {
    words(bytes, f32::from_le_bytes)
}
pub(crate) fn read_ids(bytes: &[u8]) -> Vec<RecordId> {
    words(bytes, u32::from_le_bytes).into_iter().map(RecordId).collect()
}

#[derive(Serialize, Deserialize)]
struct SignalsHeader {
    classes: usize,
    last_layer_width: Option<usize>,
}

/// What one model answered.
pub(crate) fn signals_to_bytes(signals: &ModelSignals) -> Result<Vec<u8>, Error> {
    let labels: Vec<u8> = signals.labels.iter().flat_map(|l| l.to_le_bytes()).collect();
    let (width, inputs) = signals
        .last_layer_inputs
        .as_ref()
        .map_or((None, Vec::new()), |(width, values)| (Some(*width), floats(values)));
    pack(
        &SignalsHeader { classes: signals.classes, last_layer_width: width },
        &[&ids(&signals.records), &labels, &floats(&signals.logits), &inputs],
    )
}
/// The reverse of [`signals_to_bytes`].
pub(crate) fn signals_from_bytes(bytes: &[u8]) -> Result<ModelSignals, Error> {
    let (header, arrays) = unpack::<SignalsHeader>(bytes)?;
    let [records, labels, logits, inputs] = arrays[..] else { return Err(Error::ArtifactShape) };
    Ok(ModelSignals {
        records: read_ids(records),
        labels: words(labels, u32::from_le_bytes),
        classes: header.classes,
        logits: words(logits, f32::from_le_bytes),
        last_layer_inputs: header
            .last_layer_width
            .map(|width| (width, words(inputs, f32::from_le_bytes))),
    })
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Facts {
    pub(crate) nominal_size: usize,
    pub(crate) train_size: usize,
    pub(crate) recipe_digest: String,
    pub(crate) train_accuracy: f64,
    pub(crate) test_accuracy: f64,
}
impl From<Facts> for ModelFacts {
    fn from(f: Facts) -> Self {
        Self {
            nominal_size: f.nominal_size,
            train_size: f.train_size,
            recipe_digest: f.recipe_digest,
            train_accuracy: f.train_accuracy,
            test_accuracy: f.test_accuracy,
        }
    }
}
impl From<&ModelFacts> for Facts {
    fn from(f: &ModelFacts) -> Self {
        Self {
            nominal_size: f.nominal_size,
            train_size: f.train_size,
            recipe_digest: f.recipe_digest.clone(),
            train_accuracy: f.train_accuracy,
            test_accuracy: f.test_accuracy,
        }
    }
}

/// A shadow model as attacks see it.
pub(crate) fn shadow_to_bytes(shadow: &Shadow) -> Result<Vec<u8>, Error> {
    let member: Vec<u8> = shadow.member.iter().map(|m| u8::from(*m)).collect();
    pack(&Facts::from(&shadow.facts), &[&member, &signals_to_bytes(&shadow.signals)?])
}
/// The reverse of [`shadow_to_bytes`].
pub(crate) fn shadow_from_bytes(bytes: &[u8]) -> Result<Shadow, Error> {
    let (facts, arrays) = unpack::<Facts>(bytes)?;
    let [member, signals] = arrays[..] else { return Err(Error::ArtifactShape) };
    Ok(Shadow {
        signals: signals_from_bytes(signals)?,
        member: member.iter().map(|m| *m != 0).collect(),
        facts: facts.into(),
    })
}

/// What an attack said, with its remarks.
pub(crate) fn scores_to_bytes(scores: &Scores, notes: &[String]) -> Result<Vec<u8>, Error> {
    let judged: Vec<RecordId> = scores.judged.iter().map(|(r, _)| *r).collect();
    let values: Vec<u8> = scores.judged.iter().flat_map(|(_, s)| s.to_le_bytes()).collect();
    pack(&notes, &[&ids(&judged), &values, &ids(&scores.not_assessable)])
}
/// The reverse of [`scores_to_bytes`].
pub(crate) fn scores_from_bytes(bytes: &[u8]) -> Result<(Scores, Vec<String>), Error> {
    let (notes, arrays) = unpack::<Vec<String>>(bytes)?;
    let [judged, values, not_assessable] = arrays[..] else { return Err(Error::ArtifactShape) };
    let values = words(values, f64::from_le_bytes);
    let judged = read_ids(judged).into_iter().zip(values).collect();
    Ok((Scores { judged, not_assessable: read_ids(not_assessable) }, notes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_models_answered_comes_back_bit_for_bit() {
        let signals = ModelSignals {
            records: vec![RecordId(3), RecordId(u32::MAX)],
            labels: vec![1, 0],
            classes: 2,
            logits: vec![0.1, -0.0, f32::MIN_POSITIVE, 3e38],
            last_layer_inputs: Some((1, vec![0.3, -7.25])),
        };
        let shadow = Shadow { signals, member: vec![true, false], facts: ModelFacts::default() };
        let bytes = shadow_to_bytes(&shadow).unwrap();
        let again = shadow_from_bytes(&bytes).unwrap();
        assert_eq!(again, shadow);
        assert_eq!(shadow_to_bytes(&again).unwrap(), bytes);
        assert!(shadow_from_bytes(&bytes[..bytes.len() - 1]).is_err(), "cut short");

        let scores =
            Scores { judged: vec![(RecordId(1), 0.1 + 0.2)], not_assessable: vec![RecordId(2)] };
        let bytes = scores_to_bytes(&scores, &["a remark".to_owned()]).unwrap();
        assert_eq!(scores_from_bytes(&bytes).unwrap(), (scores, vec!["a remark".to_owned()]));
    }
}
