//! Follows one record, or one epsilon, through a finished run: a line per stage with the function and the artifact.
use crate::judge::evidence;
use crate::packed::{self, unpack};
use crate::plan::{Group, Law, Stage, Task};
use crate::report::{CandidateLaw, plain, terms, terms_lower, thousandths_down, thousandths_up};
use crate::run::{Records, TrainedFacts};
use crate::session::Session;
use crate::store::{Found, Store, TaskId};
use crate::study::Defence;
use crate::{Error, diverged};
use dosimeter_audit::Roc;
use dosimeter_data::RecordId;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// One stage of the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Stage of the way of the data.
    pub stage: &'static str,
    /// The function that does it, as `crate::module::function`.
    pub function: &'static str,
    /// What it did here.
    pub what: String,
    /// Where its result lies in the run directory; `None` for what is computed anew from the seed.
    pub artifact: Option<PathBuf>,
}

/// The functions of the two walks, in order: stage, function. `docs/paths/` tells the same.
pub const RECORD_PATH: &[(&str, &str)] = &[
    ("load", "data::datasets::load"),
    ("split", "data::split::draw"),
    ("draw membership", "data::membership::coins"),
    ("randomize locally", "train::local::randomize"),
    ("run the core", "study::frozen_core::features"),
    ("train", "train::trainer::fit"),
    ("query", "attack::query::query"),
    ("attack", "attack::attack::run"),
    ("join", "audit::evidence::join"),
    ("judge", "audit::roc::of"),
    ("report", "study::assemble::report"),
];
/// As [`RECORD_PATH`], for an epsilon.
pub const EPSILON_PATH: &[(&str, &str)] = &[
    ("bound", "privacy::bounded::from_clipped_sum"),
    ("sample", "privacy::ledger::sampled"),
    ("release", "privacy::ledger::release"),
    ("account", "privacy::accountants::epsilon_upper"),
    ("measure", "audit::bounds::epsilon_lower"),
    ("compare", "audit::verdict::compare"),
    ("trade off", "audit::tradeoff::phi"),
    ("report", "study::assemble::report"),
];

fn function(path: &[(&'static str, &'static str)], stage: &str) -> (&'static str, &'static str) {
    path.iter().find(|(s, _)| *s == stage).copied().unwrap_or(("", ""))
}

struct Walk<'a> {
    path: &'a [(&'static str, &'static str)],
    root: &'a Path,
    steps: Vec<Step>,
}
impl Walk<'_> {
    fn step(&mut self, stage: &str, what: String, artifact: Option<&TaskId>) {
        let (stage, function) = function(self.path, stage);
        let artifact = artifact.map(|id| Store::path(Path::new(""), id));
        self.steps.push(Step { stage, function, what, artifact });
    }
    fn read(&self, task: &Task) -> Result<Vec<u8>, Error> {
        let why = match Store::read_in(self.root, &task.id)? {
            Found::Whole(bytes) => return Ok(bytes),
            Found::Nothing => "is not there: the run is not finished".to_owned(),
            Found::Corrupt(why) => why,
        };
        Err(Error::BadArtifact { path: Store::path(self.root, &task.id), why })
    }
    /// Whether the setting of a group has no result, which is said once in its first repeat.
    fn missing(&mut self, session: &Session, group: &Group) -> Result<bool, Error> {
        let lost = diverged::of_arm(&session.study, &session.plan, self.root, group.arm)?;
        let Some(lost) = lost else { return Ok(false) };
        if group.repeat == 0 {
            let what = format!("{} has no result: {}: {}", lost.setting, lost.task, lost.reason);
            self.step(
                self.path.iter().map(|p| p.0).find(|s| *s == "train").unwrap_or("bound"),
                what,
                None,
            );
        }
        Ok(true)
    }
    fn report(&mut self) {
        let (stage, function) = function(self.path, "report");
        self.steps.push(Step {
            stage,
            function,
            what: "joined over repeats and arms".to_owned(),
            artifact: Some(PathBuf::from("report.json")),
        });
    }
}

/// Follows record `record` through the run in `root`.
///
/// # Errors
/// [`Error::NoSuchRecord`], [`Error::NoReport`] or [`Error::BadArtifact`] for a run that is not finished or damaged, or what is wrong with its inputs.
pub fn record(root: &Path, record: u32) -> Result<Vec<Step>, Error> {
    let session = Session::reopen(root)?;
    let (study, dataset) = (&session.study, &session.dataset);
    let last = crate::judge::small(dataset.len() as u64).saturating_sub(1);
    if record > last {
        return Err(Error::NoSuchRecord { record, last });
    }
    let id = RecordId(record);
    let mut walk = Walk { path: RECORD_PATH, root, steps: Vec::new() };
    walk.step(
        "load",
        format!(
            "record {record} of {} ({}), class {}",
            dataset.name,
            &session.plan.data_fingerprint[..12],
            dataset.labels[record as usize]
        ),
        None,
    );
    for repeat in 0..study.repeats {
        let records = Records::draw(study, dataset, repeat)?;
        let split = &records.split;
        let held_out = split.test_of_train_law.as_ref().is_some_and(|r| r.contains(&id));
        let role = if split.candidates.contains(&id) {
            "candidate"
        } else if split.test.contains(&id) || held_out {
            "test"
        } else if split.shadow_pool.contains(&id) {
            "shadow pool"
        } else {
            "no role"
        };
        walk.step("split", format!("repeat {repeat}: {role}"), None);
        let Some(member) = records.membership.of(id) else { continue };
        let drawn = if member { "member" } else { "non-member" };
        walk.step("draw membership", format!("repeat {repeat}: {drawn} of the target"), None);
        for group in session.plan.groups.iter().filter(|g| g.repeat == repeat) {
            if walk.missing(&session, group)? {
                continue;
            }
            through(&session, &mut walk, &records, group, id, member)?;
        }
    }
    walk.report();
    Ok(walk.steps)
}

fn through(
    session: &Session,
    walk: &mut Walk<'_>,
    records: &Records,
    group: &Group,
    id: RecordId,
    member: bool,
) -> Result<(), Error> {
    let study = &session.study;
    let arm = &study.arms[group.arm];
    let place = format!("{}, repeat {}", arm.setting, group.repeat);
    if let Defence::Local { epsilon_per_feature } = arm.defence {
        let what = format!("{place}: each feature at {} nats", plain(epsilon_per_feature));
        walk.step("randomize locally", what, None);
    }
    if let Defence::Pixelization { cell, epsilon, .. } = arm.defence {
        let what = format!("{place}: cells of {cell} x {cell} at {} nats", plain(epsilon));
        walk.step("randomize locally", what, None);
    }
    if let Defence::EdgeRandomizedResponse { epsilon } = arm.defence {
        let what = format!("{place}: each pair of nodes at {} nats", plain(epsilon));
        walk.step("randomize locally", what, None);
    }
    if let Some(task) = group.features.as_ref().or(session.plan.features.as_ref()) {
        let read = if group.features.is_some() { "as it was randomized" } else { "as it is" };
        let features = session.core.as_ref().map_or(0, crate::Core::width);
        let what = format!("{place}: the record {read} becomes {features} features");
        walk.step("run the core", what, Some(&task.id));
    }
    let trained = walk.read(&group.train)?;
    let (facts, _) = unpack::<TrainedFacts>(&trained)?;
    let part = if member { "trained on" } else { "left out of" };
    let what = format!("{place}: {part} {} records, {} steps", facts.facts.train_size, facts.steps);
    walk.step("train", what, Some(&group.train.id));
    let query = walk.read(&group.query)?;
    let ((), arrays) = unpack(&query)?;
    let signals = packed::signals_from_bytes(arrays.first().ok_or(Error::ArtifactShape)?)?;
    let Some(row) = signals.records.iter().position(|r| *r == id) else { return Ok(()) };
    let confidence = (-signals.loss(row)).exp();
    walk.step(
        "query",
        format!("{place}: {confidence:.4} in the true class, loss {:.4} nats", signals.loss(row)),
        Some(&group.query.id),
    );
    for task in &group.attacks {
        let Stage::Attack { attack, laws } = &task.stage else { continue };
        if !laws.contains(&Law::Same) {
            continue;
        }
        let (scores, _) = packed::scores_from_bytes(&walk.read(task)?)?;
        let found = scores.judged.iter().find(|(r, _)| *r == id);
        let Some((_, score)) = found else {
            let what = format!("{place}: {attack} was given its membership and does not judge it");
            walk.step("attack", what, Some(&task.id));
            continue;
        };
        walk.step("attack", format!("{place}: {attack} scores it {score:.6}"), Some(&task.id));
        let failed = |source| Error::Audit { setting: arm.setting.clone(), source };
        let evidence = evidence(&scores, &records.membership).map_err(failed)?;
        walk.step(
            "join",
            format!("{place}: {attack} joined with the truth for {} records", evidence.rows.len()),
            None,
        );
        let roc = Roc::of(&evidence).map_err(failed)?;
        let at = roc.at_threshold(*score);
        walk.step(
            "judge",
            format!(
                "{place}: at its score {attack} finds {:.3} of the members at a false-positive rate of {:.3}; AUC {:.3}",
                at.true_positive_rate(),
                at.false_positive_rate(),
                roc.auc()
            ),
            Some(&group.judge.id),
        );
    }
    Ok(())
}

/// Follows every epsilon of the run in `root`.
///
/// # Errors
/// [`Error::NoReport`] for a run that is not finished, or what is wrong with its inputs.
pub fn epsilon(root: &Path) -> Result<Vec<Step>, Error> {
    let session = Session::reopen(root)?;
    let report = crate::session::read_report(root)?;
    let study = &session.study;
    let mut walk = Walk { path: EPSILON_PATH, root, steps: Vec::new() };
    for group in &session.plan.groups {
        if walk.missing(&session, group)? {
            continue;
        }
        let arm = &study.arms[group.arm];
        let place = format!("{}, repeat {}", arm.setting, group.repeat);
        let trained = walk.read(&group.train)?;
        let (facts, _) = unpack::<TrainedFacts>(&trained)?;
        let ledger = Some(&group.train.id);
        match arm.defence {
            Defence::NoDp => {}
            Defence::ClipOnly { clipping_norm } | Defence::Central { clipping_norm, .. } => {
                let what =
                    format!("{place}: each record's gradient clipped to {}", plain(clipping_norm));
                walk.step("bound", what, ledger);
            }
            Defence::Local { epsilon_per_feature } => {
                let what =
                    format!("{place}: each feature once, at {} nats", plain(epsilon_per_feature));
                walk.step("release", what, ledger);
            }
            Defence::EdgeRandomizedResponse { epsilon } => {
                let what = format!("{place}: each pair of nodes once, at {} nats", plain(epsilon));
                walk.step("release", what, ledger);
            }
            Defence::Pixelization { cell, neighbouring_pixels, epsilon } => {
                let what = format!(
                    "{place}: the average of each cell of {cell} x {cell} once, at {} nats for {neighbouring_pixels} pixels",
                    plain(epsilon)
                );
                walk.step("release", what, ledger);
            }
        }
        if let Defence::Central { noise_multiplier, .. } = arm.defence {
            #[expect(clippy::cast_precision_loss, reason = "sizes of batches")]
            let rate = arm.batch_size as f64 / study.split.train as f64;
            walk.step("sample", format!("{place}: Poisson batches at rate {rate}"), ledger);
            walk.step(
                "release",
                format!(
                    "{place}: {} steps of Gaussian noise {}",
                    facts.steps,
                    plain(noise_multiplier)
                ),
                ledger,
            );
        }
        let found = report.arms.iter().find(|a| a.setting == arm.setting);
        let found = found.and_then(|a| a.repeats.get(group.repeat as usize));
        let Some(repeat) = found else { continue };
        for upper in &repeat.epsilon_upper {
            let value = if upper.value.is_unbounded() {
                "unbounded".to_owned()
            } else {
                thousandths_up(upper.value.get())
            };
            let what = format!("{place}: epsilon_upper {value} ({})", terms(upper));
            walk.step("account", what, Some(&group.judge.id));
        }
        for attack in &repeat.attacks {
            let name = match attack.candidate_law {
                CandidateLaw::SameLaw => attack.attack.clone(),
                CandidateLaw::TestLaw => format!("{} (test law)", attack.attack),
            };
            for lower in &attack.epsilon_lower {
                let what = format!(
                    "{place}: {name} shows epsilon_lower {} ({})",
                    thousandths_down(lower.value.get()),
                    terms_lower(lower)
                );
                walk.step("measure", what, Some(&group.judge.id));
            }
            let what = format!("{place}: {name}: {}", attack.verdict.reason);
            walk.step("compare", what, Some(&group.judge.id));
        }
    }
    walk.step("trade off", "each arm against the arm without DP".to_owned(), None);
    walk.report();
    Ok(walk.steps)
}
