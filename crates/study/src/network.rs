//! The network of a study on its data: how large it is and what it costs.
use crate::Error;
use crate::frozen_core::Core;
use crate::study::Study;
use dosimeter_data::{Dataset, Seed};
use dosimeter_model::{Activation, Pool};
use dosimeter_train::Architecture;
use dosimeter_train::local::ExpectedEdges;

/// Sizes of the network that a study trains on a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Network {
    /// Weights and biases.
    pub(crate) parameters: u64,
    /// Multiply-adds of one record, forward. Of a perceptron as many as parameters: a bias is one too.
    pub(crate) multiplications: u64,
    /// What the last linear layer reads.
    pub(crate) last_width: u64,
}
impl Network {
    /// Builds the network that is trained (behind the core, if there is one), save the linear layers whose widths the study
    /// chooses: those are counted, so that a study that asks for too much allocates nothing.
    ///
    /// # Errors
    /// [`Error::Study`] with `target.model` if it needs images, or larger ones.
    pub(crate) fn of(study: &Study, dataset: &Dataset, core: Option<&Core>) -> Result<Self, Error> {
        let width = core.map_or(dataset.width(), Core::width) as u64;
        let none = Self { parameters: 0, multiplications: 0, last_width: width };
        let architecture = match &study.target.architecture {
            Architecture::Mlp { hidden, .. } if dataset.graphs().is_none() => {
                return Ok(none.dense(hidden, dataset.classes));
            }
            // One class alone behind the convolutions, taken off again below.
            Architecture::Vgg16 { .. } => Architecture::Vgg16 { hidden: Vec::new() },
            other => other.clone(),
        };
        let records = match (dataset.shape(), dataset.graphs(), &architecture) {
            (_, Some(_), Architecture::Dgcnn { .. }) => "such graphs".to_owned(),
            (_, Some(_), _) => {
                return Err(study.problem("target.model", "needs \"dgcnn\" for graphs".to_owned()));
            }
            (_, None, Architecture::Dgcnn { .. }) => {
                let what = "\"dgcnn\" needs graphs, got a table or images".to_owned();
                return Err(study.problem("target.model", what));
            }
            (Some([channels, height, width]), ..) => {
                format!("images of {channels} x {height} x {width}")
            }
            (None, ..) => {
                let what = format!("needs images, got a table of {} inputs", dataset.width());
                return Err(study.problem("target.model", what));
            }
        };
        let cut = matches!(architecture, Architecture::Vgg16 { .. });
        let classes = if cut { 1 } else { dataset.classes };
        let mut unused = Seed::root(0).rng();
        let graph = architecture.build(dataset, classes, &mut unused).map_err(|error| {
            study.problem("target.model", format!("cannot take {records}: {error}"))
        })?;
        let last = graph.last_linear().map(|i| graph.nodes()[i].inputs[0]);
        let last = last.map(|read| graph.shape(read).iter().product::<usize>() as u64);
        let built = Self {
            parameters: graph.parameters().len() as u64,
            multiplications: graph.multiplications() + graph_convolutions(dataset),
            last_width: last.unwrap_or(none.last_width),
        };
        let Architecture::Vgg16 { hidden } = &study.target.architecture else { return Ok(built) };
        let convolutions = Self {
            parameters: built.parameters.saturating_sub(built.last_width + 1),
            multiplications: built.multiplications.saturating_sub(built.last_width),
            ..built
        };
        Ok(convolutions.dense(hidden, dataset.classes))
    }
    /// With linear layers of these widths behind it.
    fn dense(mut self, hidden: &[usize], classes: usize) -> Self {
        let mut width = self.last_width;
        for next in hidden.iter().copied().chain([classes]) {
            let more = (width + 1).saturating_mul(next as u64);
            self.parameters = self.parameters.saturating_add(more);
            self.multiplications = self.multiplications.saturating_add(more);
            (self.last_width, width) = (width, next as u64);
        }
        self
    }
}

/// Additions over neighbours and multiplications over nodes of an average graph, for the four convolutions of DGCNN.
fn graph_convolutions(dataset: &Dataset) -> u64 {
    let Some(graphs) = dataset.graphs() else { return 0 };
    let set = graphs.set();
    let (nodes, neighbours) = (set.nodes() as u64, 2 * set.edges() as u64);
    ((nodes + neighbours) * CHANNELS + nodes * 33 * 32 * 2) / (set.len().max(1) as u64)
}
/// Channels of those four, whose sums over neighbours grow with the edges.
const CHANNELS: u64 = 3 * 32 + 1;

/// How much dearer an average graph becomes where randomized response changes the number of edges.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
pub(crate) fn more_multiplications(dataset: &Dataset, expected: &ExpectedEdges) -> f64 {
    2.0 * (expected.after - expected.before as f64) * CHANNELS as f64 / dataset.len().max(1) as f64
}

/// `hidden 128 tanh`, `small-cnn tanh`, `vgg16 hidden none`.
pub(crate) fn line(architecture: &Architecture) -> String {
    let hidden = |widths: &[usize]| {
        let widths: Vec<String> = widths.iter().map(ToString::to_string).collect();
        format!("hidden {}", if widths.is_empty() { "none".to_owned() } else { widths.join("-") })
    };
    let between = |activation: &Activation| match activation {
        Activation::Tanh => "tanh",
        Activation::Relu => "relu",
        Activation::Sigmoid => "sigmoid",
        _ => "another activation",
    };
    match architecture {
        Architecture::Mlp { hidden: widths, activation } => {
            format!("{} {}", hidden(widths), between(activation))
        }
        Architecture::Lenet => "lenet".to_owned(),
        Architecture::SmallCnn { activation } => format!("small-cnn {}", between(activation)),
        Architecture::Cnn { activation, pool } => {
            let pool = if *pool == Pool::Max { "max" } else { "average" };
            format!("cnn {}, {pool} pooling", between(activation))
        }
        Architecture::Alexnet => "alexnet".to_owned(),
        Architecture::Vgg16 { hidden: widths } => format!("vgg16 {}", hidden(widths)),
        Architecture::MobilenetV1 => "mobilenet-v1".to_owned(),
        Architecture::Dgcnn { nodes: Some(nodes) } => format!("dgcnn keeping {nodes} nodes"),
        Architecture::Dgcnn { nodes: None } => {
            "dgcnn keeping the nodes of nine tenths of the graphs".to_owned()
        }
    }
}
