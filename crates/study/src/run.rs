//! Runs a plan: all cores, resumable, the same numbers for any number of threads.
//!
//! Each training is one thread's work; parallelism is across trainings and attacks. The queue is in the order of the
//! plan, so at most a few groups (an arm in a repeat) are in the making, and what a group holds in memory goes when its
//! last training is done and judged. Everything else is on disk.
use crate::diverged::Diverged;
use crate::features::{self, Parts};
use crate::frozen_core::Features;
use crate::packed::{self, pack, unpack};
use crate::plan::{Group, Law, Plan, Stage, Task};
use crate::report::{Repeat, Report, Timings};
use crate::store::{Found, Store};
use crate::study::{Arm, Defence, MembershipRule, OptimizerKind, Study};
use crate::{Core, Error, Session, assemble, frozen_core, judge, report, sizes};
use dosimeter_attack::knowledge::known_half;
use dosimeter_attack::query::query;
use dosimeter_attack::{Access, ModelFacts, ModelSignals, Shadow, View, configured};
use dosimeter_data::{Dataset, Membership, RecordId, Seed, Split};
use dosimeter_model::Graph;
use dosimeter_privacy::{Epsilon, Ledger, NoiseMultiplier, NoiseRng, OutOfRange};
use dosimeter_train::{self as train, Recipe};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// What changes the time and no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Speed {
    /// Threads; `None` is one per core.
    pub threads: Option<usize>,
}

/// Told what happens during a run, and asked whether to go on.
pub trait Watch: Sync {
    /// A task is finished.
    fn done(&self, _task: &Task, _reused: bool) {}
    /// So many records of a task that takes them one by one have been through it. Called now and then.
    fn records(&self, _task: &Task, _done: usize, _of: usize) {}
    /// Something a person should know; the run goes on.
    fn warn(&self, _text: &str) {}
    /// Whether to stop as soon as possible; what is finished is kept.
    fn stop(&self) -> bool {
        false
    }
}
/// Says nothing and never stops.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;
impl Watch for Silent {}

/// What the target's training gave, beside the network.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TrainedFacts {
    pub(crate) steps: u64,
    pub(crate) ledger: Ledger,
    pub(crate) facts: packed::Facts,
    /// Accuracy on held-out records of the train law, where the test law is another.
    pub(crate) test_accuracy_of_train_law: Option<f64>,
}

/// Splits and memberships of one repeat: the same for all arms, so that arms are compared on the same records.
pub(crate) struct Records {
    pub(crate) seed: Seed,
    pub(crate) split: Split,
    pub(crate) membership: Membership,
    /// For early stopping, taken out of the shadow pool; empty without.
    pub(crate) validation: Vec<RecordId>,
}
impl Records {
    pub(crate) fn draw(study: &Study, dataset: &Dataset, repeat: u32) -> Result<Self, Error> {
        let seed = Seed::root(study.seed).child("repeat").index(u64::from(repeat));
        let mut split = Split::draw(dataset, study.split, seed.child("split"))
            .map_err(|error| sizes::too_few(study, error))?;
        let membership = membership(study, dataset, &split.candidates, seed.child("membership"));
        let mut validation = Vec::new();
        if let Some(stopping) = study.target.early_stopping {
            let wanted = stopping.records.div_ceil(2);
            validation = split
                .shadow_candidates(dataset, wanted, seed.child("validation"))
                .map_err(|error| sizes::too_few_to_validate(study, 2 * wanted, error))?;
            let mut taken = validation.clone();
            taken.sort_unstable();
            split.shadow_pool.retain(|r| taken.binary_search(r).is_err());
        }
        Ok(Self { seed, split, membership, validation })
    }
    /// The truth about the records that are judged under a law.
    pub(crate) fn truth(&self, law: Law) -> Membership {
        if law != Law::Test {
            return self.membership.clone();
        }
        let mut candidates = self.membership.members();
        let members = candidates.len();
        candidates.extend_from_slice(&self.split.test);
        let member = (0..candidates.len()).map(|i| i < members).collect();
        Membership { candidates, member }
    }
    /// The candidates of a shadow model, and which of them it is trained on.
    pub(crate) fn shadow(
        &self,
        study: &Study,
        dataset: &Dataset,
        arm: &Arm,
        shadow: u32,
    ) -> Result<Membership, Error> {
        let seed = self.shadow_seed(arm, shadow);
        let candidates =
            self.split.shadow_candidates(dataset, study.split.train, seed.child("candidates"))?;
        Ok(membership(study, dataset, &candidates, seed.child("membership")))
    }
    fn shadow_seed(&self, arm: &Arm, shadow: u32) -> Seed {
        self.arm_seed(arm).child("shadow").index(u64::from(shadow))
    }
    fn arm_seed(&self, arm: &Arm) -> Seed {
        self.seed.child("arm").child(&arm.setting)
    }
    pub(crate) fn target_seed(&self, arm: &Arm) -> Seed {
        self.arm_seed(arm).child("target")
    }
}

fn membership(study: &Study, dataset: &Dataset, candidates: &[RecordId], seed: Seed) -> Membership {
    match study.membership {
        MembershipRule::Coins => Membership::coins(candidates.to_vec(), seed),
        MembershipRule::FixedHalf => {
            Membership::fixed_half(candidates.to_vec(), &dataset.labels, seed)
        }
    }
}

/// The recipe of an arm in the trainer's terms.
///
/// # Errors
/// [`Error::OutOfRange`] for a noise multiplier that is none.
pub(crate) fn recipe(study: &Study, arm: &Arm) -> Result<Recipe, Error> {
    let target = &study.target;
    Ok(Recipe {
        architecture: target.architecture.clone(),
        optimizer: match target.optimizer {
            OptimizerKind::Sgd => train::Optimizer::Sgd {
                learning_rate: arm.learning_rate,
                momentum: target.momentum,
            },
            OptimizerKind::Adam => train::Optimizer::adam(arm.learning_rate),
        },
        batch_size: arm.batch_size,
        epochs: arm.epochs,
        l2: target.l2,
        averaging: target.averaging,
        early_stopping: target.early_stopping.map(|s| train::EarlyStopping {
            patience: s.patience,
            least_improvement: 0.0,
            restore_best: true,
        }),
        arm: match arm.defence {
            Defence::NoDp
            | Defence::Local { .. }
            | Defence::Pixelization { .. }
            | Defence::EdgeRandomizedResponse { .. } => train::Arm::NoDp,
            Defence::ClipOnly { clipping_norm } => train::Arm::ClipOnly { clipping_norm },
            Defence::Central { clipping_norm, noise_multiplier } => {
                let noise_multiplier = NoiseMultiplier::new(noise_multiplier)?;
                train::Arm::Dp { clipping_norm, noise_multiplier }
            }
        },
    })
}

/// Digest of everything that fixes a training but its seed and records.
pub(crate) fn recipe_digest(study: &Study, arm: &Arm) -> Result<String, Error> {
    let canonical =
        serde_json::to_vec(&(recipe(study, arm)?, arm.defence)).map_err(Error::Encode)?;
    Ok(blake3::hash(&canonical).to_hex()[..16].to_owned())
}

/// Randomized data of the local arms of a group, made by the first training that needs it and dropped with the group.
struct InProgress {
    unfinished: AtomicUsize,
    randomized: Mutex<Option<Arc<Features>>>,
}

struct Run<'a> {
    study: &'a Study,
    dataset: &'a Dataset,
    core: Option<&'a Core>,
    /// What the core made of the data.
    features: Option<Features>,
    plan: &'a Plan,
    store: &'a Store,
    watch: &'a dyn Watch,
    records: Vec<Records>,
    progress: Vec<InProgress>,
    /// For each arm the first of its trainings that ran away, as its place in the plan; `usize::MAX` if none did.
    lost: Vec<AtomicUsize>,
    stages: Mutex<BTreeMap<&'static str, report::Stage>>,
}

/// Does what is missing of a plan and writes the report's contents.
///
/// # Errors
/// The first thing that went wrong, or [`Error::Stopped`]. Finished tasks are kept either way.
pub fn run(
    session: &Session,
    store: &Store,
    speed: Speed,
    watch: &dyn Watch,
) -> Result<(Report, Timings), Error> {
    let Session { study, dataset, core, plan } = session;
    let start = Instant::now();
    let records = (0..study.repeats)
        .map(|repeat| Records::draw(study, dataset, repeat))
        .collect::<Result<Vec<_>, _>>()?;
    let progress = plan
        .groups
        .iter()
        .map(|group| InProgress {
            unfinished: AtomicUsize::new(1 + group.shadows.len()),
            randomized: Mutex::new(None),
        })
        .collect();
    let mut run = Run {
        study,
        dataset,
        core: core.as_ref(),
        features: None,
        plan,
        store,
        watch,
        records,
        progress,
        lost: study.arms.iter().map(|_| AtomicUsize::new(usize::MAX)).collect(),
        stages: Mutex::new(BTreeMap::new()),
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(speed.threads.unwrap_or(0)).build()?;
    let threads = u32::try_from(pool.current_num_threads()).unwrap_or(u32::MAX);
    // Before everything else: each takes all threads, and holding a lock meanwhile could wait for itself.
    pool.install(|| run.make_features())?;
    pool.install(|| {
        let units = plan.groups.iter().enumerate().flat_map(|(g, group)| {
            std::iter::once((g, None)).chain(group.shadows.iter().map(move |s| (g, Some(s))))
        });
        // A bridge hands out units one by one in their order; splitting the range would start all groups at once.
        let units = units.enumerate().par_bridge();
        units.try_for_each(|(place, (g, shadow))| run.unit(place, g, shadow))
    })?;
    let report = pool.install(|| assemble::report(session, store, &run.records))?;
    let stages = run.stages.into_inner().unwrap_or_else(PoisonError::into_inner);
    let order = ["features", "train", "query", "shadow", "attack", "judge"];
    let stages = order.iter().filter_map(|name| stages.get(name).cloned()).collect();
    let timings = Timings { wall_seconds: start.elapsed().as_secs_f64(), threads, stages };
    Ok((report, timings))
}

impl Run<'_> {
    /// Reads a finished task or does it. A damaged artifact is done again, with a warning.
    fn once(
        &self,
        task: &Task,
        compute: impl FnOnce() -> Result<Vec<u8>, Error>,
    ) -> Result<Vec<u8>, Error> {
        let start = Instant::now();
        let (bytes, reused) = match self.store.read(&task.id)? {
            Found::Whole(bytes) => (bytes, true),
            found => {
                if let Found::Corrupt(why) = found {
                    let text = format!("{}: {why}; computed again", task.id.short());
                    self.watch.warn(&text);
                }
                if let Some(diverged) = Diverged::read(self.store.root(), task)? {
                    return Err(diverged.lost(self.study, task));
                }
                if self.watch.stop() {
                    return Err(Error::Stopped);
                }
                let bytes = compute().map_err(|error| self.keep(task, error))?;
                self.store.write(&task.id, &bytes)?;
                (bytes, false)
            }
        };
        let name = task.stage.name();
        let mut stages = self.stages.lock().unwrap_or_else(PoisonError::into_inner);
        let stage = stages.entry(name).or_insert_with(|| report::Stage {
            name: name.to_owned(),
            tasks: 0,
            reused: 0,
            seconds: 0.0,
        });
        if reused {
            stage.reused += 1;
        } else {
            stage.tasks += 1;
            stage.seconds += start.elapsed().as_secs_f64();
        }
        drop(stages);
        self.watch.done(task, reused);
        Ok(bytes)
    }

    /// Keeps a training that ran away, so that no later run tries it again, and says so once. Other errors stay what they are.
    fn keep(&self, task: &Task, error: Error) -> Error {
        let Some(diverged) = Diverged::of(&error) else { return error };
        let lost = diverged.lost(self.study, task);
        if let Err(failed) = diverged.write(self.store, task) {
            return failed;
        }
        self.watch.warn(&format!("{lost}. Its setting has no result; the others go on"));
        lost
    }

    /// Runs the core on the records, and on what each local arm makes of them.
    fn make_features(&mut self) -> Result<(), Error> {
        let (Some(core), Some(task)) = (self.core, &self.plan.features) else { return Ok(()) };
        let through =
            |task: &Task, dataset: &Dataset, records: &[RecordId], ledger: Option<&Ledger>| {
                let features = core.features(dataset, records, &|done| {
                    self.watch.records(task, done, records.len());
                    !self.watch.stop()
                })?;
                frozen_core::to_bytes(core.width(), records, &features, ledger)
            };
        let shadows = self.plan.groups.first().map_or(0, |group| group.shadows.len());
        let shadows = u32::try_from(shadows).unwrap_or(u32::MAX);
        let used = features::used(self.study, self.dataset, &self.records, shadows)?;
        let of = self.plan.core_features.as_ref().ok_or(Error::ArtifactShape)?;
        let parts = Parts { core, dataset: self.dataset, store: self.store, of };
        let goes_on = |done: usize| {
            self.watch.records(task, done, used.len());
            !self.watch.stop()
        };
        let all = || parts.of(&used, &goes_on, &|text| self.watch.warn(text));
        let mut made = None;
        self.once(task, || {
            let all = all()?;
            let bytes = features::summary(&all, &used);
            made = Some(all);
            bytes
        })?;
        let made = made.map_or_else(all, Ok)?;
        for group in &self.plan.groups {
            let Some(task) = &group.features else { continue };
            self.once(task, || {
                let randomized = self.randomize(group).map_err(|e| self.faulty(task, e))?;
                let (dataset, ledger) = randomized.ok_or(Error::ArtifactShape)?;
                through(task, &dataset, &self.trained_on(group), Some(&ledger))
            })?;
        }
        self.features = Some(made);
        Ok(())
    }
    /// Every record that some training of a group may read, in ascending order.
    fn trained_on(&self, group: &Group) -> Vec<RecordId> {
        let (_, records) = self.parts(group);
        let mut trained_on = records.membership.members();
        trained_on.extend_from_slice(&records.validation);
        if !group.shadows.is_empty() {
            trained_on.extend_from_slice(&records.split.shadow_pool);
        }
        trained_on.sort_unstable();
        trained_on.dedup();
        trained_on
    }
    /// The records as the network reads them.
    fn read(&self) -> &Dataset {
        self.features.as_ref().map_or(self.dataset, |features| &features.dataset)
    }
    /// Where records of the study stand in [`Self::read`].
    fn rows(&self, records: &[RecordId]) -> Result<Vec<RecordId>, Error> {
        self.features.as_ref().map_or_else(|| Ok(records.to_vec()), |f| f.rows(records))
    }
    /// Asks a network about records, as it reads them.
    fn ask(
        &self,
        graph: &Graph,
        records: &[RecordId],
        access: Access,
        task: &Task,
    ) -> Result<ModelSignals, Error> {
        let rows = self.rows(records)?;
        let mut signals = query(graph, self.read(), &rows, access).map_err(|error| {
            let named = match error {
                dosimeter_attack::Error::NotFinite { record: row, what } => {
                    let at = rows.iter().position(|r| *r == row);
                    let record = at.map_or(row, |at| records[at]);
                    dosimeter_attack::Error::NotFinite { record, what }
                }
                error => error,
            };
            self.unanswered(task, named)
        })?;
        signals.records = records.to_vec();
        Ok(signals)
    }

    /// Trains one model of a group; whoever finishes the last one attacks and judges the group.
    ///
    /// A training that ran away ends its arm and nothing else. What of the arm comes later in the plan is left out; what comes
    /// earlier is not, so that the report names the same training for any number of threads.
    fn unit(&self, place: usize, g: usize, shadow: Option<&Task>) -> Result<(), Error> {
        let group = &self.plan.groups[g];
        let lost = &self.lost[group.arm];
        if lost.load(Ordering::Acquire) > place {
            let trained = match shadow {
                None => self.target(group, g),
                Some(task) => self.shadow(group, g, task),
            };
            match trained {
                Err(Error::Lost(_)) => {
                    lost.fetch_min(place, Ordering::AcqRel);
                }
                trained => trained?,
            }
        }
        if self.progress[g].unfinished.fetch_sub(1, Ordering::AcqRel) == 1 {
            *self.progress[g].randomized.lock().unwrap_or_else(PoisonError::into_inner) = None;
            if lost.load(Ordering::Acquire) == usize::MAX {
                self.attack_and_judge(group)?;
            }
        }
        Ok(())
    }

    fn target(&self, group: &Group, g: usize) -> Result<(), Error> {
        let (arm, records) = self.parts(group);
        let trained = self.once(&group.train, || {
            let members = records.membership.members();
            let (graph, steps, ledger) =
                self.fit(group, g, &members, records.target_seed(arm), &group.train)?;
            let test = self.accuracy(&graph, &records.split.test, &group.train)?;
            let test_accuracy_of_train_law = records
                .split
                .test_of_train_law
                .as_ref()
                .map(|held_out| self.accuracy(&graph, held_out, &group.train))
                .transpose()?;
            let facts = packed::Facts {
                nominal_size: self.study.split.train,
                train_size: members.len(),
                recipe_digest: recipe_digest(self.study, arm)?,
                train_accuracy: self.accuracy(&graph, &members, &group.train)?,
                test_accuracy: test,
            };
            pack(
                &TrainedFacts { steps, ledger, facts, test_accuracy_of_train_law },
                &[&graph.to_bytes()?],
            )
        })?;
        self.once(&group.query, || {
            let (_, arrays) = unpack::<TrainedFacts>(&trained)?;
            let graph = arrays
                .first()
                .and_then(|bytes| Graph::from_bytes(bytes).ok())
                .ok_or(Error::ArtifactShape)?;
            let ask = |records: &[RecordId]| {
                let signals = self.ask(&graph, records, self.plan.access, &group.query)?;
                packed::signals_to_bytes(&signals)
            };
            let candidates = ask(&records.membership.candidates)?;
            if self.dataset.test_law.is_some() {
                pack(&(), &[&candidates, &ask(&records.split.test)?])
            } else {
                pack(&(), &[&candidates])
            }
        })?;
        Ok(())
    }

    fn shadow(&self, group: &Group, g: usize, task: &Task) -> Result<(), Error> {
        let Stage::Shadow { shadow } = task.stage else { return Ok(()) };
        let (arm, records) = self.parts(group);
        self.once(task, || {
            let seed = records.shadow_seed(arm, shadow);
            let drawn = records.shadow(self.study, self.dataset, arm, shadow)?;
            let (members, others) = (drawn.members(), drawn.non_members());
            let (graph, ..) = self.fit(group, g, &members, seed.child("fit"), task)?;
            let facts = ModelFacts {
                nominal_size: self.study.split.train,
                train_size: members.len(),
                recipe_digest: recipe_digest(self.study, arm)?,
                train_accuracy: self.accuracy(&graph, &members, task)?,
                test_accuracy: self.accuracy(&graph, &others, task)?,
            };
            let signals = self.ask(&graph, &drawn.candidates, Access::BlackBox, task)?;
            packed::shadow_to_bytes(&Shadow { signals, member: drawn.member, facts })
        })?;
        Ok(())
    }

    /// Trains one model on `members`, on randomized records in a local arm.
    fn fit(
        &self,
        group: &Group,
        g: usize,
        members: &[RecordId],
        seed: Seed,
        task: &Task,
    ) -> Result<(Graph, u64, Ledger), Error> {
        let (arm, records) = self.parts(group);
        let failed = |source| self.failed(task, source);
        let randomized = self.randomized(group, g).map_err(|e| self.faulty(task, e))?;
        let dataset = randomized.as_ref().map_or(self.read(), |r| &r.dataset);
        let rows = |records: &[RecordId]| match &randomized {
            Some(features) => features.rows(records),
            None => self.rows(records),
        };
        let (members, validation) = (rows(members)?, rows(&records.validation)?);
        let training = train::Training {
            recipe: &recipe(self.study, arm)?,
            dataset,
            records: &members,
            nominal_size: self.study.split.train,
            validation: &validation,
            seed,
            noise: self.study.noise,
            speed: train::Speed { threads: self.threads_of_one(), ..train::Speed::default() },
        };
        let trained = train::fit(&training, &Stopping(self.watch)).map_err(failed)?;
        // What a local arm spends is spent on each record before training; training it adds nothing.
        let ledger = randomized.as_ref().and_then(|r| r.ledger.clone()).unwrap_or(trained.ledger);
        Ok((trained.graph, trained.steps, ledger))
    }

    /// Threads for one training: its share of those that no other training is left to take.
    fn threads_of_one(&self) -> NonZero<usize> {
        let left = self.progress.iter().map(|group| group.unfinished.load(Ordering::Relaxed));
        let threads = rayon::current_num_threads();
        NonZero::new(threads / left.sum::<usize>().clamp(1, threads))
            .unwrap_or(NonZero::<usize>::MIN)
    }

    fn randomized(&self, group: &Group, g: usize) -> Result<Option<Arc<Features>>, Fault> {
        let mut slot = self.progress[g].randomized.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            let made = match &group.features {
                Some(task) => Some(self.randomized_features(task).map_err(Fault::Study)?),
                None => self.randomize(group)?.map(Features::randomized),
            };
            *slot = made.map(Arc::new);
        }
        Ok(slot.clone())
    }
    fn randomized_features(&self, task: &Task) -> Result<Features, Error> {
        let Found::Whole(bytes) = self.store.read(&task.id)? else {
            return Err(Error::ArtifactShape);
        };
        let features = frozen_core::from_bytes(&bytes, self.dataset)?;
        if features.ledger.is_some() { Ok(features) } else { Err(Error::ArtifactShape) }
    }
    fn randomize(&self, group: &Group) -> Result<Option<(Dataset, Ledger)>, Fault> {
        let (arm, records) = self.parts(group);
        randomize(self.study, self.dataset, arm, records)
    }

    fn attack_and_judge(&self, group: &Group) -> Result<(), Error> {
        let (arm, records) = self.parts(group);
        // Attacks find their inputs only if one of them is still to be done.
        let inputs = OnceInputs::default();
        let scores = group
            .attacks
            .par_iter()
            .map(|task| {
                let bytes = self.once(task, || {
                    let inputs = inputs.get(|| Inputs::read(self.store, group))?;
                    self.attack(arm, records, &inputs, task)
                })?;
                let (scores, notes) = packed::scores_from_bytes(&bytes)?;
                Ok((scores, notes))
            })
            .collect::<Result<Vec<_>, Error>>()?;
        self.once(&group.judge, || {
            let inputs = inputs.get(|| Inputs::read(self.store, group))?;
            let trained = self.store.read(&group.train.id)?;
            let Found::Whole(trained) = trained else { return Err(Error::ArtifactShape) };
            let (facts, _) = unpack::<TrainedFacts>(&trained)?;
            let repeat: Repeat =
                judge::repeat(self.study, self.dataset, group, records, &facts, &inputs, &scores)?;
            serde_json::to_vec(&repeat).map_err(Error::Encode)
        })?;
        Ok(())
    }

    fn attack(
        &self,
        arm: &Arm,
        records: &Records,
        inputs: &Inputs,
        task: &Task,
    ) -> Result<Vec<u8>, Error> {
        let Stage::Attack { attack: name, laws } = &task.stage else {
            return Err(Error::ArtifactShape);
        };
        let failed = |source| match source {
            dosimeter_attack::Error::Stopped => Error::Stopped,
            source => {
                let setting = format!("{}, repeat {}", arm.setting, task.repeat);
                Error::Attack { attack: name.clone(), setting, source }
            }
        };
        let Some(attack) = configured(name, &self.study.attack_settings) else {
            return Err(Error::ArtifactShape);
        };
        let same = laws.contains(&Law::Same);
        let seed = records.arm_seed(arm).child(if same { "same law" } else { "test law" });
        let signals = inputs.signals(records, laws)?;
        let needs = attack.needs();
        let stop = || self.watch.stop();
        let mut view = View::new(&signals, seed).map_err(failed)?.with_stop(&stop);
        if needs.shadows > 0 {
            view = view.with_shadows(&inputs.shadows).map_err(failed)?;
        }
        if needs.known_membership {
            let law = if same { Law::Same } else { Law::Test };
            view = view.with_known(&known_half(&records.truth(law), seed)).map_err(failed)?;
        }
        let outcome = attack.run(&view).map_err(failed)?;
        let notes: Vec<String> = outcome.notes.iter().map(ToString::to_string).collect();
        packed::scores_to_bytes(&outcome.scores, &notes)
    }

    fn parts(&self, group: &Group) -> (&Arm, &Records) {
        (&self.study.arms[group.arm], &self.records[group.repeat as usize])
    }
    /// Accuracy on records as they are, never on randomized ones.
    fn accuracy(&self, graph: &Graph, records: &[RecordId], task: &Task) -> Result<f64, Error> {
        train::evaluate(graph, self.read(), &self.rows(records)?)
            .map(|evaluation| evaluation.accuracy())
            .map_err(|source| self.failed(task, source))
    }
    fn faulty(&self, task: &Task, fault: Fault) -> Error {
        match fault {
            Fault::Train(source) => self.failed(task, source),
            Fault::Study(error) => error,
        }
    }
    fn unanswered(&self, task: &Task, source: dosimeter_attack::Error) -> Error {
        let setting = self.study.arms[task.arm].setting.clone();
        Error::Attack { attack: "query".to_owned(), setting, source }
    }
    fn failed(&self, task: &Task, source: train::Error) -> Error {
        match source {
            train::Error::Stopped { .. } => Error::Stopped,
            source => Error::Train { task: words(self.study, task), source },
        }
    }
}

/// The records as a local arm randomizes them; `None` for other arms.
pub(crate) fn randomize(
    study: &Study,
    dataset: &Dataset,
    arm: &Arm,
    records: &Records,
) -> Result<Option<(Dataset, Ledger)>, Fault> {
    if !arm.defence.is_local() {
        return Ok(None);
    }
    let seed = records.arm_seed(arm).child("randomize").bytes();
    let mut rng = NoiseRng::with_source(study.noise, seed).map_err(|e| Fault::Study(e.into()))?;
    match arm.defence {
        Defence::Local { epsilon_per_feature } => {
            let epsilon = Epsilon::new(epsilon_per_feature).map_err(|e| Fault::Study(e.into()))?;
            train::local::randomize(dataset, epsilon, &mut rng)
        }
        defence => {
            let failed = |e: OutOfRange| Fault::Study(e.into());
            let pixels = defence.pixelization().map_err(failed)?;
            let edges = defence.edges().map_err(failed)?;
            match (pixels, edges) {
                (Some(pixelization), _) => pixelization.randomize(dataset, &mut rng),
                (None, Some(edges)) => edges.randomize(dataset, &mut rng),
                (None, None) => return Ok(None),
            }
        }
    }
    .map(Some)
    .map_err(Fault::Train)
}

/// A task in words: `train, central z=2, repeat 0`.
pub(crate) fn words(study: &Study, task: &Task) -> String {
    let detail = match &task.stage {
        Stage::Features { randomized: false } => {
            return "features of every record that is used".to_owned();
        }
        Stage::Shadow { shadow } => format!("shadow {shadow}"),
        Stage::Attack { attack, laws: [Law::Test] } => format!("attack {attack} (test law)"),
        Stage::Attack { attack, .. } => format!("attack {attack}"),
        stage => stage.name().to_owned(),
    };
    format!("{detail}, {}, repeat {}", study.arms[task.arm].setting, task.repeat)
}

pub(crate) enum Fault {
    Train(train::Error),
    Study(Error),
}

struct Stopping<'a>(&'a dyn Watch);
impl train::Watch for Stopping<'_> {
    fn stop_requested(&self) -> bool {
        self.0.stop()
    }
}

/// The inputs of attacks and judge, read at most once and only if needed.
#[derive(Default)]
struct OnceInputs(Mutex<Option<Arc<Inputs>>>);
impl OnceInputs {
    fn get(&self, read: impl FnOnce() -> Result<Inputs, Error>) -> Result<Arc<Inputs>, Error> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(inputs) = &*slot {
            return Ok(Arc::clone(inputs));
        }
        let inputs = Arc::new(read()?);
        *slot = Some(Arc::clone(&inputs));
        Ok(inputs)
    }
}

/// What the models of a group answered.
pub(crate) struct Inputs {
    pub(crate) candidates: ModelSignals,
    pub(crate) test: Option<ModelSignals>,
    pub(crate) shadows: Vec<Shadow>,
}
impl Inputs {
    pub(crate) fn read(store: &Store, group: &Group) -> Result<Self, Error> {
        let whole = |task: &Task| match store.read(&task.id)? {
            Found::Whole(bytes) => Ok(bytes),
            _ => Err(Error::ArtifactShape),
        };
        let query = whole(&group.query)?;
        let ((), arrays) = unpack(&query)?;
        let candidates = arrays.first().ok_or(Error::ArtifactShape)?;
        Ok(Self {
            candidates: packed::signals_from_bytes(candidates)?,
            test: arrays.get(1).map(|bytes| packed::signals_from_bytes(bytes)).transpose()?,
            shadows: group
                .shadows
                .iter()
                .map(|task| packed::shadow_from_bytes(&whole(task)?))
                .collect::<Result<_, _>>()?,
        })
    }
    /// What the target answered to the records that an attack scores.
    pub(crate) fn signals(&self, records: &Records, laws: &[Law]) -> Result<ModelSignals, Error> {
        if !laws.contains(&Law::Test) {
            return Ok(self.candidates.clone());
        }
        let same = laws.contains(&Law::Same);
        let test = self.test.as_ref().ok_or(Error::ArtifactShape)?;
        let mut joined = ModelSignals {
            records: Vec::new(),
            labels: Vec::new(),
            classes: test.classes,
            logits: Vec::new(),
            last_layer_inputs: test.last_layer_inputs.as_ref().map(|(w, _)| (*w, Vec::new())),
        };
        let sources = (0..self.candidates.len())
            .filter(|&row| same || records.membership.member[row])
            .map(|row| (&self.candidates, row))
            .chain((0..test.len()).map(|row| (test, row)));
        for (signals, row) in sources {
            joined.records.push(signals.records[row]);
            joined.labels.push(signals.labels[row]);
            joined.logits.extend_from_slice(signals.logits_of(row));
            if let (Some((_, to)), Some((width, from))) =
                (&mut joined.last_layer_inputs, &signals.last_layer_inputs)
            {
                to.extend_from_slice(&from[row * width..(row + 1) * width]);
            }
        }
        Ok(joined)
    }
}
