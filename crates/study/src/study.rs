//! A study that has been checked: every number in range, every combination possible.
use crate::Error;
use crate::preparation::Preparation;
use crate::source::Problem;
use dosimeter_attack::Settings as AttackSettings;
use dosimeter_data::{DatasetSpec, SplitSpec};
use dosimeter_privacy::{Epsilon, NoiseSource, OutOfRange};
use dosimeter_train::Architecture;
use dosimeter_train::local::{EdgeRandomizedResponse, Pixelization};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A checked study. Everything here changes numbers; threads and progress do not, and are elsewhere ([`crate::run::Speed`]).
#[derive(Debug, Clone)]
pub struct Study {
    /// The file it was read from.
    pub file: PathBuf,
    /// The text of that file, kept with the run.
    pub text: String,
    /// Name for people.
    pub name: String,
    /// One or two sentences of the author.
    pub description: Option<String>,
    /// Root of every seed.
    pub seed: u64,
    /// Independent repetitions: other split, membership, weights and noise.
    pub repeats: u32,
    /// Where records come from.
    pub dataset: DatasetSpec,
    /// How they are divided.
    pub split: SplitSpec,
    /// How members are drawn among the candidates.
    pub membership: MembershipRule,
    /// The network and its training, without any defence.
    pub target: Target,
    /// Generator and sampler of the privacy noise.
    pub noise: NoiseSource,
    /// Shadow models per arm and repeat.
    pub shadows: u32,
    /// The settings compared; the first is always without DP.
    pub arms: Vec<Arm>,
    /// Names of the attacks, in order.
    pub attacks: Vec<String>,
    /// Settings of the attacks that have any.
    pub attack_settings: AttackSettings,
    /// Confidence, delta and rates of the report.
    pub audit: Audit,
    /// What must hold for exit code 0.
    pub limits: Vec<Limit>,
    /// How many members the report shows as images; with 0 it holds none.
    pub show_images: usize,
}

impl Study {
    /// A problem with one of its fields that its data brought to light.
    pub(crate) fn problem(&self, field: &str, what: String) -> Error {
        Error::Study(vec![Problem::of(&self.file, &self.text, field, what)])
    }
    /// Likewise with a whole number `got` in the table of an arm.
    pub(crate) fn problem_of_arm(&self, field: &str, got: u64, what: String) -> Error {
        let place = ("arms", field);
        Error::Study(vec![Problem::of_listed(&self.file, &self.text, place, got, what)])
    }
    /// Says with its line which setting the data refused. Other errors of data name their own file.
    pub(crate) fn refused(&self, error: dosimeter_data::Error) -> Error {
        refused(&self.file, &self.text, error)
    }
}

/// As [`Study::refused`], for a file of which only the `dataset` table was read.
pub(crate) fn refused(file: &Path, text: &str, error: dosimeter_data::Error) -> Error {
    match error {
        dosimeter_data::Error::Setting { setting, needs, have } => {
            let (field, what) =
                (format!("dataset.{setting}"), format!("needs {needs}, got {have}"));
            Error::Study(vec![Problem::of(file, text, &field, what)])
        }
        error => error.into(),
    }
}

/// How members are drawn among the `2 n` candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MembershipRule {
    /// A fair coin each: what the one-run bound assumes.
    Coins,
    /// Exactly half of each class: the one-run bound does not hold.
    FixedHalf,
}

/// The network and its training, shared by all arms but for what an arm overrides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Target {
    /// A public network in front of the one that is trained, if any. Not written with the rest: it decides the features, and the
    /// task that makes them is named by all of it.
    #[serde(skip)]
    pub core: Option<CoreSpec>,
    /// Its layers.
    pub architecture: Architecture,
    /// Update rule.
    pub optimizer: OptimizerKind,
    /// Step size.
    pub learning_rate: f64,
    /// Momentum of SGD, in `[0, 1)`.
    pub momentum: f64,
    /// Records per step (expected number for DP arms).
    pub batch_size: usize,
    /// Most passes over the training set.
    pub epochs: usize,
    /// Weight of half the squared norm of the parameters, outside of clipping.
    pub l2: f64,
    /// Decay of the average of the weights that is given in place of the last ones, in `[0, 1)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub averaging: Option<f64>,
    /// Stop when the loss on validation records no longer falls.
    pub early_stopping: Option<EarlyStopping>,
}

/// A public network that turns each record into features, once; only what reads them is trained.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CoreSpec {
    /// An ONNX model or a checkpoint. Not written: what is in the file counts.
    #[serde(skip)]
    pub path: PathBuf,
    /// The value of an ONNX model that is taken as the features; its only output if left out.
    pub output: Option<String>,
    /// Shape of one record where the model leaves it open.
    pub input: Option<Vec<usize>>,
    /// What is done to the records before the core reads them.
    pub preparation: Preparation,
}

/// When to stop before the last epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct EarlyStopping {
    /// Epochs without a lower loss before stopping.
    pub patience: usize,
    /// Validation records, taken from the shadow pool: public to the trainer, never candidates.
    pub records: usize,
}

/// Update rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptimizerKind {
    /// Stochastic gradient descent, with momentum if that is above 0.
    Sgd,
    /// Adam.
    Adam,
}

/// One setting that is compared with the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Arm {
    /// Label in plans and reports, unique in a study: `no DP`, `central z=2`, `local eps=0.5`.
    pub setting: String,
    /// What protects the records.
    pub defence: Defence,
    /// Passes over the training set, after the arm's own override.
    pub epochs: usize,
    /// Step size, after the arm's own override.
    pub learning_rate: f64,
    /// Records per step, after the arm's own override.
    pub batch_size: usize,
}

/// What protects the records of an arm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Defence {
    /// Nothing.
    NoDp,
    /// Clipped per-record gradients without noise: no guarantee.
    ClipOnly {
        /// L2 bound per record.
        clipping_norm: f64,
    },
    /// Clipped per-record gradients with Gaussian noise.
    Central {
        /// L2 bound per record.
        clipping_norm: f64,
        /// Noise standard deviation over clipping norm.
        noise_multiplier: f64,
    },
    /// Every feature of a record randomized before training.
    Local {
        /// Loss per feature, nats.
        epsilon_per_feature: f64,
    },
    /// Every image averaged over cells and noised before training.
    Pixelization {
        /// Side of a cell, pixels.
        cell: usize,
        /// Pixels in which two images may differ and still be protected at `epsilon`.
        neighbouring_pixels: u64,
        /// Loss between two such images, nats.
        epsilon: f64,
    },
    /// Who is connected to whom randomized in every graph before training.
    EdgeRandomizedResponse {
        /// Loss of one pair of nodes, nats.
        epsilon: f64,
    },
}
impl Defence {
    /// Whether any guarantee comes with it.
    #[must_use]
    pub const fn is_private(self) -> bool {
        matches!(self, Self::Central { .. }) || self.is_local()
    }
    /// Whether records are randomized before training.
    #[must_use]
    pub const fn is_local(self) -> bool {
        matches!(
            self,
            Self::Local { .. } | Self::Pixelization { .. } | Self::EdgeRandomizedResponse { .. }
        )
    }
    /// Its pixelization, if it is one.
    ///
    /// # Errors
    /// If epsilon is none.
    pub(crate) fn pixelization(self) -> Result<Option<Pixelization>, OutOfRange> {
        let Self::Pixelization { cell, neighbouring_pixels, epsilon } = self else {
            return Ok(None);
        };
        let epsilon = Epsilon::new(epsilon)?;
        Ok(Some(Pixelization { cell, neighbouring_pixels, epsilon }))
    }
    /// Its randomized response on edges, if it is one.
    ///
    /// # Errors
    /// If epsilon is none.
    pub(crate) fn edges(self) -> Result<Option<EdgeRandomizedResponse>, OutOfRange> {
        let Self::EdgeRandomizedResponse { epsilon } = self else { return Ok(None) };
        Ok(Some(EdgeRandomizedResponse { epsilon: Epsilon::new(epsilon)? }))
    }
}

/// Confidence, delta and rates of the report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Audit {
    /// Confidence of intervals and bounds, in `(0.5, 1)`.
    pub confidence: f64,
    /// Delta of `epsilon_upper` and `epsilon_lower`; `None` is `1/n`.
    pub delta: Option<f64>,
    /// False-positive rates at which the true-positive rate is reported.
    pub false_positive_rates: Vec<f64>,
}

/// A bound that the author sets on a figure of the report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limit {
    /// Settings it holds for; empty means every arm with a guarantee.
    pub settings: Vec<String>,
    /// The figure.
    pub figure: Figure,
    /// Largest allowed value.
    pub at_most: f64,
}
impl Limit {
    /// Whether an arm must hold it.
    #[must_use]
    pub fn covers(&self, arm: &Arm) -> bool {
        if self.settings.is_empty() {
            arm.defence.is_private()
        } else {
            self.settings.contains(&arm.setting)
        }
    }
}
/// A figure that can be limited or claimed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Proved epsilon at the headline delta.
    EpsilonUpper,
    /// Measured epsilon, the largest over the attacks.
    EpsilonLower,
    /// Area under the ROC curve, the largest over the attacks.
    Auc,
    /// True-positive rate at a false-positive rate, the largest over the attacks.
    TruePositiveRate {
        /// The false-positive rate.
        fpr: f64,
    },
    /// An epsilon that somebody claims: violated when more is measured.
    ClaimedEpsilon,
}
