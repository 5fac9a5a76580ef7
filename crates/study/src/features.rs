//! Features of the records that a study uses, kept in parts: what is done stays, whenever a run stops and whatever is used next.
//!
//! A part holds the features of some records, under a name that follows from the core and its place in a row of parts alone. A run
//! reads the parts that are there, makes the records that they lack, and adds parts as they are made. So a stopped run loses a part
//! at most, and a study with another arm or repeat makes only the records that no study here used before. In what parts features
//! lie changes no number: each record goes through the core by itself.
use crate::frozen_core::{self, Features};
use crate::packed::{self, pack, unpack};
use crate::run::Records;
use crate::store::{Found, Store, TaskId};
use crate::study::Study;
use crate::{Core, Error};
use dosimeter_data::{Dataset, RecordId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Blocks that a thread takes through the core for one part: enough that threads seldom wait for each other at its end.
const BLOCKS: usize = 4;

/// Every record that some model of a study is trained on or asked about, in ascending order.
pub(crate) fn used(
    study: &Study,
    dataset: &Dataset,
    records: &[Records],
    shadows: u32,
) -> Result<Vec<RecordId>, Error> {
    let mut used = Vec::new();
    for repeat in records {
        used.extend_from_slice(&repeat.split.candidates);
        used.extend_from_slice(&repeat.split.test);
        used.extend(repeat.split.test_of_train_law.iter().flatten());
        used.extend_from_slice(&repeat.validation);
        for arm in &study.arms {
            for shadow in 0..shadows {
                used.extend(repeat.shadow(study, dataset, arm, shadow)?.candidates);
            }
        }
    }
    used.sort_unstable();
    used.dedup();
    Ok(used)
}

#[derive(Debug, Serialize, Deserialize)]
struct PartFacts {
    width: usize,
}

/// The parts of one core in a run directory.
pub(crate) struct Parts<'a> {
    pub(crate) core: &'a Core,
    pub(crate) dataset: &'a Dataset,
    pub(crate) store: &'a Store,
    /// What decides a record's features.
    pub(crate) of: &'a TaskId,
}
impl Parts<'_> {
    fn id(&self, part: usize) -> Result<TaskId, Error> {
        TaskId::of(&("features part", self.of.as_str(), part))
    }
    /// Features of `used`, which ascends: those that are there, and the others made now. `goes_on` is told how many of them there
    /// are, and says whether to go on; `warn` is told of a damaged part, which is made again.
    ///
    /// # Errors
    /// [`Error::Stopped`], with every part made so far kept; what the core or the disk says.
    pub(crate) fn of(
        &self,
        used: &[RecordId],
        goes_on: &(dyn Fn(usize) -> bool + Sync),
        warn: &dyn Fn(&str),
    ) -> Result<Features, Error> {
        let width = self.core.width();
        let mut found: BTreeMap<RecordId, Vec<f32>> = BTreeMap::new();
        let (mut free, mut next) = (Vec::new(), 0);
        loop {
            let id = self.id(next)?;
            match self.store.read(&id)? {
                Found::Whole(bytes) => take(&bytes, width, used, &mut found)?,
                Found::Corrupt(why) => {
                    warn(&format!("{}: {why}; computed again", id.short()));
                    free.push(next);
                }
                Found::Nothing => break,
            }
            next += 1;
        }
        let missing: Vec<RecordId> =
            used.iter().filter(|record| !found.contains_key(record)).copied().collect();
        let mut done = used.len() - missing.len();
        let length = self.core.at_a_time() * BLOCKS * rayon::current_num_threads();
        for part in missing.chunks(length.max(1)) {
            let made = self.core.features(self.dataset, part, &|made| goes_on(done + made))?;
            let place = free.pop().unwrap_or_else(|| {
                next += 1;
                next - 1
            });
            let facts = PartFacts { width };
            let bytes = pack(&facts, &[&packed::ids(part), &packed::floats(&made)])?;
            self.store.write(&self.id(place)?, &bytes)?;
            done += part.len();
            found.extend(part.iter().copied().zip(made.chunks_exact(width).map(<[f32]>::to_vec)));
        }
        let values = found.into_values().flatten().collect();
        let dataset = frozen_core::of_numbers(width, values, used, self.dataset)?;
        Ok(Features::of_records(dataset, used.to_vec()))
    }
}

/// Takes what is used out of a part.
fn take(
    bytes: &[u8],
    width: usize,
    used: &[RecordId],
    found: &mut BTreeMap<RecordId, Vec<f32>>,
) -> Result<(), Error> {
    let (facts, arrays) = unpack::<PartFacts>(bytes)?;
    let [records, numbers] = arrays[..] else { return Err(Error::ArtifactShape) };
    let (records, numbers) = (packed::read_ids(records), packed::read_floats(numbers));
    if facts.width != width || numbers.len() != width * records.len() {
        return Err(Error::ArtifactShape);
    }
    for (record, features) in records.into_iter().zip(numbers.chunks_exact(width)) {
        if used.binary_search(&record).is_ok() {
            found.insert(record, features.to_vec());
        }
    }
    Ok(())
}

/// What is kept of the task as a whole: which records, and the digest of their features in that order.
#[derive(Debug, Serialize, Deserialize)]
struct Summary {
    width: usize,
    records: usize,
    digest: String,
}
/// The artifact of the task: small, the numbers lie in the parts; the same however they were made.
pub(crate) fn summary(features: &Features, used: &[RecordId]) -> Result<Vec<u8>, Error> {
    let digest = features.dataset.fingerprint();
    let width = features.dataset.width();
    pack(&Summary { width, records: used.len(), digest }, &[&packed::ids(used)])
}
