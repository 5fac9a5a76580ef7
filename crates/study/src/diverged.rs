//! Trainings that ran away: kept in the run directory, so that they are not tried again, and the setting that they cost.
//!
//! A setting of which one training ran away has no result. Whoever trains it again gets the same, since everything that decides
//! a training is in the name of its task; a study that changes it has other tasks.
use crate::plan::{Group, Plan, Task};
use crate::report::Missing;
use crate::run::words;
use crate::store::{Found, Store, TaskId};
use crate::study::Study;
use crate::{Error, assemble};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What is kept of a training that ran away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Diverged {
    /// The epoch after which parameters were no longer finite, from 1; `None` if only the answers were not.
    pub(crate) epoch: Option<u32>,
    /// What the trainer said.
    pub(crate) reason: String,
}
impl Diverged {
    /// What an error says of a training that ran away; `None` for every other error.
    pub(crate) fn of(error: &Error) -> Option<Self> {
        match error {
            Error::Train {
                source: source @ dosimeter_train::Error::Diverged { epoch }, ..
            } => Some(Self { epoch: u32::try_from(*epoch).ok(), reason: source.to_string() }),
            Error::Attack {
                attack,
                source: source @ dosimeter_attack::Error::NotFinite { .. },
                ..
            } if attack == "query" => {
                let reason =
                    format!("after the last epoch {source}; a smaller learning rate may help");
                Some(Self { epoch: None, reason })
            }
            _ => None,
        }
    }
    /// Keeps it beside the artifacts of the run.
    pub(crate) fn write(&self, store: &Store, task: &Task) -> Result<(), Error> {
        store.write(&id(task)?, &serde_json::to_vec(self).map_err(Error::Encode)?)
    }
    /// What was kept of a task; `None` if it did not run away, or what was kept is damaged: it is tried again.
    pub(crate) fn read(root: &Path, task: &Task) -> Result<Option<Self>, Error> {
        let Found::Whole(bytes) = Store::read_in(root, &id(task)?)? else { return Ok(None) };
        Ok(serde_json::from_slice(&bytes).ok())
    }
    /// As an error of the run, for those who must stop at it.
    pub(crate) fn lost(&self, study: &Study, task: &Task) -> Error {
        let arm = &study.arms[task.arm];
        let (noise_multiplier, clipping_norm, epsilon_per_feature) = assemble::knobs(arm.defence);
        Error::Lost(Box::new(Missing {
            setting: arm.setting.clone(),
            kind: assemble::kind(arm.defence),
            noise_multiplier,
            clipping_norm,
            epsilon_per_feature,
            task: words(study, task),
            epoch: self.epoch,
            reason: self.reason.clone(),
        }))
    }
}

fn id(task: &Task) -> Result<TaskId, Error> {
    TaskId::of(&("diverged", task.id.as_str()))
}

/// Why an arm has no result: the first of its trainings that ran away, in the order of the plan. `None` if none did.
///
/// # Errors
/// [`Error::Disk`] for what is kept and cannot be read.
pub(crate) fn of_arm(
    study: &Study,
    plan: &Plan,
    root: &Path,
    arm: usize,
) -> Result<Option<Missing>, Error> {
    for task in plan.groups.iter().filter(|g| g.arm == arm).flat_map(Group::trainings) {
        let kept = Diverged::read(root, task)?;
        if let Some(Error::Lost(missing)) = kept.map(|kept| kept.lost(study, task)) {
            return Ok(Some(*missing));
        }
    }
    Ok(None)
}
