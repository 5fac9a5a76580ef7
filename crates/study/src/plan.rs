//! What a study will compute: tasks named by the hash of everything that decides their result.
use crate::Error;
use crate::frozen_core::Core;
use crate::network::{Network, more_multiplications};
use crate::store::TaskId;
use crate::study::{Arm, CoreSpec, Defence, MembershipRule, Study, Target};
use dosimeter_attack::{ATTACKS, Access};
use dosimeter_data::{Dataset, SplitSpec};
use dosimeter_privacy::NoiseSource;
use dosimeter_train::local::ExpectedEdges;
use serde::Serialize;

/// A kind of task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "stage", rename_all = "kebab-case")]
pub enum Stage {
    /// Run the frozen core on every record that is used.
    Features {
        /// On the records as a local arm randomizes them.
        randomized: bool,
    },
    /// Train the target.
    Train,
    /// Ask the target about every candidate.
    Query,
    /// Train one shadow model and ask it about its own candidates.
    Shadow {
        /// Which one, from 0.
        shadow: u32,
    },
    /// Run one attack.
    Attack {
        /// Its name.
        attack: String,
        /// Where the non-members that it is judged on come from. An attack that is told no membership scores a record alike
        /// among any others, so it runs once for all laws.
        laws: &'static [Law],
    },
    /// Join scores with the truth: rates, bounds, verdicts of one repeat.
    Judge,
}
impl Stage {
    /// Name of the stage without its details.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Features { .. } => "features",
            Self::Train => "train",
            Self::Query => "query",
            Self::Shadow { .. } => "shadow",
            Self::Attack { .. } => "attack",
            Self::Judge => "judge",
        }
    }
}

/// Where the non-members that an attack is judged on come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// The law of the members.
    Same,
    /// The test law of a skewed data set, as in the paper.
    Test,
}

/// One task.
#[derive(Debug, Clone, Serialize)]
pub struct Task {
    /// Hash of its specification.
    pub id: TaskId,
    /// Which repeat.
    pub repeat: u32,
    /// Position of the arm in [`Study::arms`].
    pub arm: usize,
    /// What it does.
    pub stage: Stage,
    /// Estimated seconds on one core.
    pub estimated_seconds: f64,
}

/// The tasks of one arm in one repeat.
#[derive(Debug, Clone, Serialize)]
pub struct Group {
    /// Which repeat.
    pub repeat: u32,
    /// Position of the arm.
    pub arm: usize,
    /// Run the frozen core on randomized records, in a local arm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<Task>,
    /// Train the target.
    pub train: Task,
    /// Query it.
    pub query: Task,
    /// Shadow models.
    pub shadows: Vec<Task>,
    /// Attacks, in the order of the study file.
    pub attacks: Vec<Task>,
    /// Judge.
    pub judge: Task,
}
impl Group {
    /// The tasks that train or show what training gave: those that can run away.
    pub(crate) fn trainings(&self) -> impl Iterator<Item = &Task> {
        [&self.train, &self.query].into_iter().chain(&self.shadows)
    }
    /// Every task, in the order in which they can be done.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.features
            .iter()
            .chain([&self.train, &self.query])
            .chain(&self.shadows)
            .chain(&self.attacks)
            .chain([&self.judge])
    }
    /// What is judged: the positions of the attacks that have scores under a law, the same law first.
    pub(crate) fn judged(&self) -> impl Iterator<Item = (usize, &str, Law)> {
        [Law::Same, Law::Test].into_iter().flat_map(|law| {
            self.attacks.iter().enumerate().filter_map(move |(position, task)| match &task.stage {
                Stage::Attack { attack, laws } if laws.contains(&law) => {
                    Some((position, attack.as_str(), law))
                }
                _ => None,
            })
        })
    }
}

/// What a study will compute.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// Name of the study.
    pub study: String,
    /// Digest of the data as loaded.
    pub data_fingerprint: String,
    /// Matrix kernel whose results these are.
    pub kernel: String,
    /// Labels of the arms.
    pub arms: Vec<String>,
    /// What randomized response does to the edges of graphs: arm and words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<(String, String)>,
    /// Whether attackers look into the target.
    pub access: Access,
    /// Run the frozen core on the records as they are, for every group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<Task>,
    /// What decides a record's features: the core, its settings and the data.
    #[serde(skip)]
    pub(crate) core_features: Option<TaskId>,
    /// Repeat by repeat, arm by arm.
    pub groups: Vec<Group>,
}
impl Plan {
    /// Every task.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.features.iter().chain(self.groups.iter().flat_map(Group::tasks))
    }
    /// Estimated seconds on one core.
    #[must_use]
    pub fn estimated_seconds(&self) -> f64 {
        self.tasks().map(|t| t.estimated_seconds).sum()
    }
}

/// How fast this machine is; an input of [`plan`] so that planning stays a pure function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Multiply-adds of training per second, one core.
    pub multiply_adds_per_second: f64,
    /// Seconds that the frozen core takes for a record, one core; 0 without one.
    pub core_seconds_per_record: f64,
}
impl Default for Rate {
    /// An ordinary core with 256-bit vectors.
    fn default() -> Self {
        Self { multiply_adds_per_second: 1e10, core_seconds_per_record: 0.0 }
    }
}

impl Rate {
    /// The rate at which an epoch without DP over `records` records took `seconds`.
    #[must_use]
    pub(crate) fn of_epoch(
        study: &Study,
        dataset: &Dataset,
        network: Network,
        records: usize,
        seconds: f64,
    ) -> Self {
        let unit = Self { multiply_adds_per_second: 1.0, core_seconds_per_record: 0.0 };
        let one = Cost::new(study, dataset, network, unit);
        let work = one.epoch(records as f64, study.target.batch_size as f64, PLAIN_STEP);
        Self { multiply_adds_per_second: work / seconds.max(1e-6), ..unit }
    }
}

/// Passes over the parameters per step, in multiply-adds per parameter: optimizer, and with DP its noise.
const PLAIN_STEP: f64 = 20.0;
const NOISY_STEP: f64 = 60.0;

/// Everything that decides a training; `seed`, `repeat` and `setting` are the path of its seed.
#[derive(Serialize)]
struct Ground<'a> {
    version: &'static str,
    kernel: &'a str,
    data: &'a str,
    train: usize,
    test: usize,
    membership: MembershipRule,
    seed: u64,
    repeat: u32,
    setting: &'a str,
    target: &'a Target,
    defence: Defence,
    epochs: usize,
    learning_rate: f64,
    batch_size: usize,
    noise: Option<NoiseSource>,
    /// What the network reads, if that is not the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<&'a TaskId>,
}
/// Everything that decides what a frozen core gives.
#[derive(Serialize)]
struct Featured<'a> {
    stage: &'static str,
    version: &'static str,
    kernel: &'a str,
    data: &'a str,
    core: &'a str,
    settings: &'a CoreSpec,
    /// How records are randomized before: the path of the seed, what is done, and how noise is drawn.
    randomized: Option<(u64, u32, &'a str, Defence, NoiseSource)>,
    /// What decides which of the randomized records are trained on: no others go through the core.
    trained_on: Option<(usize, usize, MembershipRule, Option<usize>, bool)>,
}
/// Which records of those go through the core: what their splits and the draws of shadow models follow from.
#[derive(Serialize)]
struct Used<'a> {
    features: &'a TaskId,
    seed: u64,
    repeats: u32,
    train: usize,
    test: usize,
    validation: Option<usize>,
    shadows: u32,
    settings: Vec<&'a str>,
}
#[derive(Serialize)]
struct Specification<'a, T> {
    stage: &'static str,
    ground: &'a Ground<'a>,
    inputs: Vec<&'a TaskId>,
    settings: T,
}

/// Lays out the tasks of a study on a data set. Pure: the same inputs give the same plan.
///
/// # Errors
/// [`Error::Study`] if the network cannot be built on the data; [`Error::Encode`] if a specification cannot be written as JSON.
pub fn plan(
    study: &Study,
    dataset: &Dataset,
    core: Option<&Core>,
    kernel: &str,
    rate: Rate,
) -> Result<Plan, Error> {
    let fingerprint = dataset.fingerprint();
    let chosen: Vec<_> =
        study.attacks.iter().filter_map(|n| ATTACKS.iter().find(|a| a.name() == n)).collect();
    let access = chosen.iter().map(|a| a.needs().access).max().unwrap_or(Access::BlackBox);
    let shadows = if chosen.iter().any(|a| a.needs().shadows > 0) { study.shadows } else { 0 };
    let cost = Cost::new(study, dataset, Network::of(study, dataset, core)?, rate);
    let featured = |randomized: Option<(u64, u32, &str, Defence, NoiseSource)>| {
        let (Some(core), Some(settings)) = (core, &study.target.core) else { return Ok(None) };
        let (stage, version, data) = ("features", env!("CARGO_PKG_VERSION"), fingerprint.as_str());
        let core = core.digest.as_str();
        let validation = study.target.early_stopping.map(|s| s.records);
        let SplitSpec { train, test } = study.split;
        let trained_on = (train, test, study.membership, validation, shadows > 0);
        let trained_on = randomized.is_some().then_some(trained_on);
        let featured =
            Featured { stage, version, kernel, data, core, settings, randomized, trained_on };
        TaskId::of(&featured).map(Some)
    };
    // What the network reads of a record does not depend on which others are used.
    let core_features = featured(None)?;
    let features = core_features
        .as_ref()
        .map(|features| {
            let used = Used {
                features,
                seed: study.seed,
                repeats: study.repeats,
                train: study.split.train,
                test: study.split.test,
                validation: study.target.early_stopping.map(|s| s.records),
                shadows,
                settings: study.arms.iter().map(|arm| arm.setting.as_str()).collect(),
            };
            Ok::<_, Error>(Task {
                id: TaskId::of(&used)?,
                repeat: 0,
                arm: 0,
                stage: Stage::Features { randomized: false },
                estimated_seconds: cost.features(),
            })
        })
        .transpose()?;
    let mut groups = Vec::new();
    for repeat in 0..study.repeats {
        for (index, arm) in study.arms.iter().enumerate() {
            let ground = Ground {
                version: env!("CARGO_PKG_VERSION"),
                kernel,
                data: &fingerprint,
                train: study.split.train,
                test: study.split.test,
                membership: study.membership,
                seed: study.seed,
                repeat,
                setting: &arm.setting,
                target: &study.target,
                defence: arm.defence,
                epochs: arm.epochs,
                learning_rate: arm.learning_rate,
                batch_size: arm.batch_size,
                noise: arm.defence.is_private().then_some(study.noise),
                features: core_features.as_ref(),
            };
            let task = |stage: Stage, id: TaskId, estimated_seconds: f64| Task {
                id,
                repeat,
                arm: index,
                stage,
                estimated_seconds,
            };
            let id = |stage: &'static str, inputs: Vec<&TaskId>, settings: serde_json::Value| {
                TaskId::of(&Specification { stage, ground: &ground, inputs, settings })
            };
            let randomized = if arm.defence.is_local() {
                let setting = arm.setting.as_str();
                featured(Some((study.seed, repeat, setting, arm.defence, study.noise)))?
            } else {
                None
            };
            let stage = Stage::Features { randomized: true };
            let randomized =
                randomized.map(|id| task(stage, id, cost.randomized_features(shadows)));
            let reads = || randomized.iter().map(|task| &task.id).collect();
            let train = task(
                Stage::Train,
                id("train", reads(), serde_json::Value::Null)?,
                cost.training(arm),
            );
            let query = task(
                Stage::Query,
                id("query", vec![&train.id], serde_json::json!({ "access": access }))?,
                cost.query(),
            );
            let shadows = (0..shadows)
                .map(|shadow| {
                    let id = id("shadow", reads(), serde_json::json!(shadow))?;
                    Ok(task(Stage::Shadow { shadow }, id, cost.training(arm) + cost.query()))
                })
                .collect::<Result<Vec<_>, Error>>()?;
            let mut attacks = Vec::new();
            for attack in &chosen {
                let runs: &[&[Law]] = match (&dataset.test_law, attack.needs().known_membership) {
                    (None, _) => &[&[Law::Same]],
                    (Some(_), true) => &[&[Law::Same], &[Law::Test]],
                    (Some(_), false) => &[&[Law::Same, Law::Test]],
                };
                for &laws in runs {
                    let mut inputs = vec![&query.id];
                    if attack.needs().shadows > 0 {
                        inputs.extend(shadows.iter().map(|s| &s.id));
                    }
                    let settings = serde_json::json!({
                        "attack": attack.name(), "laws": laws, "settings": settings_of(study, attack.name())?,
                    });
                    attacks.push(task(
                        Stage::Attack { attack: attack.name().to_owned(), laws },
                        id("attack", inputs, settings)?,
                        cost.attack(attack.name()),
                    ));
                }
            }
            let mut inputs = vec![&train.id, &query.id];
            inputs.extend(shadows.iter().chain(&attacks).map(|t| &t.id));
            let judge = task(
                Stage::Judge,
                id("judge", inputs, serde_json::to_value(&study.audit).map_err(Error::Encode)?)?,
                cost.judge(attacks.len()),
            );
            groups.push(Group {
                repeat,
                arm: index,
                features: randomized,
                train,
                query,
                shadows,
                attacks,
                judge,
            });
        }
    }
    Ok(Plan {
        study: study.name.clone(),
        data_fingerprint: fingerprint,
        kernel: kernel.to_owned(),
        arms: study.arms.iter().map(|a| a.setting.clone()).collect(),
        edges: edges(study, dataset)?,
        access,
        features,
        core_features,
        groups,
    })
}

/// What to expect of the arms that randomize edges.
fn edges(study: &Study, dataset: &Dataset) -> Result<Vec<(String, String)>, Error> {
    let mut found = Vec::new();
    for arm in &study.arms {
        let Some(edges) = arm.defence.edges()? else { continue };
        let expected = edges
            .expect(dataset)
            .map_err(|error| study.problem("arms", format!("`{}`: {error}", arm.setting)))?;
        found.push((arm.setting.clone(), edges_line(&expected)));
    }
    Ok(found)
}
/// Edges and their density before and after.
pub(crate) fn edges_line(expected: &ExpectedEdges) -> String {
    let [before, after] = expected.densities();
    format!(
        "Edges are {} before and about {:.0} after, {:.2} % and {:.2} % of all pairs of nodes.",
        expected.before,
        expected.after,
        100.0 * before,
        100.0 * after
    )
}

/// Settings of an attack as they enter its id.
fn settings_of(study: &Study, attack: &str) -> Result<serde_json::Value, Error> {
    let settings = &study.attack_settings;
    match attack {
        "shadow_model" => serde_json::to_value(settings.shadow_model),
        "white_box" => serde_json::to_value(settings.white_box),
        _ => Ok(serde_json::Value::Null),
    }
    .map_err(Error::Encode)
}

/// A rough model of run time: multiply-adds over the machine's rate. An estimate, and shown as one.
struct Cost<'a> {
    study: &'a Study,
    dataset: &'a Dataset,
    parameters: f64,
    multiplications: f64,
    candidates: f64,
    classes: f64,
    last_width: f64,
    shadows: f64,
    rate: f64,
    records: f64,
    core_seconds_per_record: f64,
}
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
impl<'a> Cost<'a> {
    fn new(study: &'a Study, dataset: &'a Dataset, network: Network, rate: Rate) -> Self {
        Self {
            study,
            dataset,
            parameters: network.parameters as f64,
            multiplications: network.multiplications as f64,
            candidates: 2.0 * study.split.train as f64,
            classes: dataset.classes as f64,
            last_width: network.last_width as f64,
            shadows: f64::from(study.shadows),
            rate: rate.multiply_adds_per_second,
            records: dataset.len() as f64,
            core_seconds_per_record: rate.core_seconds_per_record,
        }
    }
    /// Forward, two products backward, and for each step one pass over the parameters per noise draw.
    fn training(&self, arm: &Arm) -> f64 {
        let per_step = match arm.defence {
            Defence::Central { .. } => NOISY_STEP,
            _ => PLAIN_STEP,
        };
        let records = self.candidates / 2.0;
        let edges = arm.defence.edges().ok().flatten();
        let expected = edges.and_then(|edges| edges.expect(self.dataset).ok());
        let more = expected.map_or(0.0, |e| more_multiplications(self.dataset, &e));
        let epoch = self.epoch(records, arm.batch_size as f64, per_step);
        let epoch = (records * 3.0).mul_add(more, epoch);
        arm.epochs as f64 * epoch / self.rate
    }
    fn epoch(&self, records: f64, batch_size: f64, per_step: f64) -> f64 {
        let steps = records / batch_size;
        (records * 3.0).mul_add(self.multiplications, steps * per_step * self.parameters)
    }
    fn features(&self) -> f64 {
        self.records * self.core_seconds_per_record
    }
    fn randomized_features(&self, shadows: u32) -> f64 {
        let records = if shadows > 0 { self.records } else { self.candidates / 2.0 };
        records * self.core_seconds_per_record
    }
    fn query(&self) -> f64 {
        self.candidates * self.multiplications / self.rate
    }
    fn attack(&self, name: &str) -> f64 {
        let settings = &self.study.attack_settings;
        let work = match name {
            "shadow_model" => {
                let s = &settings.shadow_model;
                let rows = self.candidates * self.shadows;
                rows * s.epochs as f64 * 3.0 * (self.classes + 3.0) * s.hidden as f64
            }
            "white_box" => {
                // Early stopping usually ends it after some tens of epochs.
                let s = &settings.white_box;
                let epochs = (s.epochs as f64).min(40.0);
                let per_record = (s.filters as f64)
                    * (s.conv_height as f64).mul_add(self.last_width, 128.0 * self.classes);
                self.candidates / 2.0 * epochs * 3.0 * per_record
            }
            _ => self.candidates * self.classes * 20.0,
        };
        work / self.rate
    }
    fn judge(&self, attacks: usize) -> f64 {
        0.2 + attacks as f64 * self.candidates * 2e5 / self.rate
    }
}
