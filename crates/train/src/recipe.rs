//! How a model is trained. Everything that changes a number is here or in the seed; [`crate::Speed`] changes none.
use crate::Error;
use dosimeter_data::{Dataset, Inputs};
use dosimeter_model::{Activation, Graph, Pool, zoo};
use dosimeter_privacy::NoiseMultiplier;
use rand_core::Rng;
use serde::{Deserialize, Serialize};

/// The network between inputs and classes, weights drawn as by [`zoo::initialise`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Architecture {
    /// [`zoo::mlp`].
    Mlp {
        /// Hidden widths, first to last; may be empty (then the model is linear).
        hidden: Vec<usize>,
        /// Activation behind each hidden layer.
        activation: Activation,
    },
    /// [`zoo::lenet`].
    Lenet,
    /// [`zoo::small_cnn`].
    SmallCnn {
        /// Behind every layer but the last.
        activation: Activation,
    },
    /// [`zoo::cnn`].
    Cnn {
        /// Behind every layer but the last.
        activation: Activation,
        /// Behind every two convolutions.
        pool: Pool,
    },
    /// [`zoo::alexnet`].
    Alexnet,
    /// [`zoo::vgg16`].
    Vgg16 {
        /// Widths behind the convolutions.
        hidden: Vec<usize>,
    },
    /// [`zoo::mobilenet_v1`].
    MobilenetV1,
    /// [`zoo::dgcnn`].
    Dgcnn {
        /// Nodes kept by sort pooling, at least [`zoo::LEAST_NODES`]. Absent: as many as nine tenths of all graphs of the data set do
        /// not exceed, within [`zoo::LEAST_NODES`] and [`zoo::MOST_NODES`]; numbers of nodes count as public.
        #[serde(default)]
        nodes: Option<usize>,
    },
}
impl Architecture {
    /// The network for the records of a data set, which all but a perceptron need to be images, or graphs.
    ///
    /// # Errors
    /// [`Error::Records`] for graphs where numbers are needed, or the other way round; [`Error::Model`] if images are too small, or no
    /// images.
    pub fn build<R: Rng + ?Sized>(
        &self,
        dataset: &Dataset,
        classes: usize,
        rng: &mut R,
    ) -> Result<Graph, Error> {
        let (image, table) = (dataset.shape(), [dataset.width()]);
        let shape = image.as_ref().map_or(table.as_slice(), |image| image.as_slice());
        let (numbers, graphs) = ("numbers", "graphs");
        match (matches!(self, Self::Dgcnn { .. }), &dataset.inputs) {
            (false, Inputs::Graphs(_)) => {
                return Err(Error::Records { needed: numbers, got: graphs });
            }
            (true, Inputs::Graphs(_)) | (false, _) => {}
            (true, _) => return Err(Error::Records { needed: graphs, got: numbers }),
        }
        Ok(match self {
            Self::Mlp { hidden, activation } => {
                zoo::mlp(dataset.width(), hidden, classes, *activation, rng)?
            }
            Self::Lenet => zoo::lenet(shape, classes, rng)?,
            Self::SmallCnn { activation } => zoo::small_cnn(shape, classes, *activation, rng)?,
            Self::Cnn { activation, pool } => zoo::cnn(shape, classes, *activation, *pool, rng)?,
            Self::Alexnet => zoo::alexnet(shape, classes, rng)?,
            Self::Vgg16 { hidden } => zoo::vgg16(shape, hidden, classes, rng)?,
            Self::MobilenetV1 => zoo::mobilenet_v1(shape, classes, rng)?,
            Self::Dgcnn { nodes } => {
                let usual = || dataset.graphs().map(|g| g.set().sizes()[0].ninety);
                let nodes = nodes
                    .or_else(|| usual().map(|n| n.min(zoo::MOST_NODES)))
                    .unwrap_or_default()
                    .max(zoo::LEAST_NODES);
                zoo::dgcnn(dataset.width(), nodes, classes, rng)?
            }
        })
    }
    fn hidden(&self) -> &[usize] {
        match self {
            Self::Mlp { hidden, .. } | Self::Vgg16 { hidden } => hidden,
            _ => &[],
        }
    }
    const fn activation(&self) -> Option<Activation> {
        match self {
            Self::Mlp { activation, .. }
            | Self::SmallCnn { activation }
            | Self::Cnn { activation, .. } => Some(*activation),
            _ => None,
        }
    }
}

/// The update rule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Optimizer {
    /// `v = momentum v + g; w -= learning_rate v`.
    Sgd {
        /// Above 0.
        learning_rate: f64,
        /// In `[0, 1)`; 0 is plain gradient descent.
        #[serde(default)]
        momentum: f64,
    },
    /// Adam with bias correction (Kingma and Ba 2015, algorithm 1).
    Adam {
        /// Above 0.
        learning_rate: f64,
        /// Decay of the first moment, in `[0, 1)`.
        #[serde(default = "first_decay")]
        beta1: f64,
        /// Decay of the second moment, in `[0, 1)`.
        #[serde(default = "second_decay")]
        beta2: f64,
        /// Added to the root of the second moment, above 0.
        #[serde(default = "stabilizer")]
        stabilizer: f64,
    },
}
const fn first_decay() -> f64 {
    0.9
}
const fn second_decay() -> f64 {
    0.999
}
const fn stabilizer() -> f64 {
    1e-8
}
impl Optimizer {
    /// Adam with the usual decays 0.9 and 0.999 and stabilizer 1e-8.
    #[must_use]
    pub const fn adam(learning_rate: f64) -> Self {
        Self::Adam {
            learning_rate,
            beta1: first_decay(),
            beta2: second_decay(),
            stabilizer: stabilizer(),
        }
    }
    /// Plain gradient descent.
    #[must_use]
    pub const fn sgd(learning_rate: f64) -> Self {
        Self::Sgd { learning_rate, momentum: 0.0 }
    }
}

/// Ends training when the validation loss has stopped falling.
///
/// Validation records are not training records, so watching them costs no privacy of the latter. The ledger holds the
/// steps actually taken, also when earlier parameters are restored: the choice looked at the later ones too.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlyStopping {
    /// Epochs without improvement before training ends, at least 1.
    pub patience: usize,
    /// Least fall of the validation loss that counts as an improvement, in nats; at least 0.
    #[serde(default)]
    pub least_improvement: f64,
    /// Whether the parameters of the best epoch are restored at the end.
    #[serde(default)]
    pub restore_best: bool,
}

/// What is done to gradients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arm {
    /// Nothing: the mean gradient of shuffled batches, each record once per epoch.
    NoDp,
    /// Clipping without noise, to tell its cost from that of noise; everything else, the Poisson batches and the
    /// fixed normaliser included, is as in [`Arm::Dp`]. Proves nothing.
    ClipOnly {
        /// L2 bound on one record's gradient, above 0.
        clipping_norm: f64,
    },
    /// DP-SGD or DP-Adam (Abadi et al. 2016): Poisson batches, clipped sum, Gaussian noise, division by the
    /// expected batch size.
    Dp {
        /// L2 bound on one record's gradient, above 0.
        clipping_norm: f64,
        /// Noise standard deviation over clipping norm.
        noise_multiplier: NoiseMultiplier,
    },
}
impl Arm {
    /// The bound on one record's gradient, if there is one.
    #[must_use]
    pub const fn clipping_norm(&self) -> Option<f64> {
        match self {
            Self::NoDp => None,
            Self::ClipOnly { clipping_norm } | Self::Dp { clipping_norm, .. } => {
                Some(*clipping_norm)
            }
        }
    }
}

/// How a model is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The network between inputs and classes.
    pub architecture: Architecture,
    /// The update rule.
    pub optimizer: Optimizer,
    /// Records per update, at least 1; expected records in the Poisson arms.
    pub batch_size: usize,
    /// Passes over the nominal number of records, at least 1.
    pub epochs: usize,
    /// `l2 / 2 |weights|^2` is added to the mean loss, outside the clipped gradient and not on biases; at least 0.
    #[serde(default)]
    pub l2: f64,
    /// Whether and when training ends before all epochs.
    #[serde(default)]
    pub early_stopping: Option<EarlyStopping>,
    /// Gives the average of the parameters over the updates instead of the last ones: each update moves the average by
    /// `1 - d` of the way, `d` the lesser of this decay and `(1 + t) / (10 + t)` behind update `t`. In `[0, 1)`.
    ///
    /// It smooths the noise of the updates away and costs no privacy: the average is computed from what was released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub averaging: Option<f64>,
    /// No DP, clipping only, or DP.
    pub arm: Arm,
}

impl Recipe {
    /// Checks every number.
    ///
    /// # Errors
    /// [`Error::Recipe`] naming the first number outside its range, NaN included.
    pub fn check(&self) -> Result<(), Error> {
        let positive = |what, x: f64| in_range(what, "finite and above 0", x, x > 0.0);
        let not_negative = |what, x: f64| in_range(what, "finite and at least 0", x, x >= 0.0);
        let decay = |what, x: f64| in_range(what, "in [0, 1)", x, (0.0..1.0).contains(&x));
        let counted = |what, n: usize| in_range(what, "at least 1", n as f64, n >= 1);
        for width in self.architecture.hidden() {
            counted("hidden width", *width)?;
        }
        if let Architecture::Dgcnn { nodes: Some(nodes) } = self.architecture {
            let needed = "at least 10";
            in_range("nodes kept", needed, nodes as f64, nodes >= zoo::LEAST_NODES)?;
        }
        if let Some(Activation::LeakyRelu { slope }) = self.architecture.activation() {
            positive("slope", f64::from(slope))?;
        }
        match self.optimizer {
            Optimizer::Sgd { learning_rate, momentum } => {
                positive("learning rate", learning_rate)?;
                decay("momentum", momentum)?;
            }
            Optimizer::Adam { learning_rate, beta1, beta2, stabilizer } => {
                positive("learning rate", learning_rate)?;
                decay("beta1", beta1)?;
                decay("beta2", beta2)?;
                positive("stabilizer", stabilizer)?;
            }
        }
        counted("batch size", self.batch_size)?;
        counted("epochs", self.epochs)?;
        not_negative("l2", self.l2)?;
        if let Some(averaging) = self.averaging {
            decay("averaging", averaging)?;
        }
        if let Some(early) = self.early_stopping {
            counted("patience", early.patience)?;
            not_negative("least improvement", early.least_improvement)?;
        }
        match self.arm {
            Arm::NoDp => Ok(()),
            Arm::ClipOnly { clipping_norm } | Arm::Dp { clipping_norm, .. } => {
                positive("clipping norm", clipping_norm)
            }
        }
    }
}

fn in_range(what: &'static str, needed: &'static str, got: f64, ok: bool) -> Result<(), Error> {
    if ok && got.is_finite() { Ok(()) } else { Err(Error::Recipe { what, needed, got }) }
}
