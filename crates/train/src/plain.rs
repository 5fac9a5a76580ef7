//! Small non-private fitting, for the attacker's own models.
use crate::optimizer::PlainOptimizer;
use crate::recipe::Optimizer;
use crate::trainer::shuffle;
use crate::{Error, evaluate::judge};
use dosimeter_data::Seed;
use dosimeter_model::kernels::Write;
use dosimeter_model::{
    Activation, Examples, Graph, Loss, RECORD_BLOCK, Rows, Targets, Workspace, zoo,
};

/// Labelled feature vectors.
#[derive(Debug, Clone, Copy)]
pub struct Labelled<'a> {
    /// Numbers per example.
    pub width: usize,
    /// Row-major `[examples, width]`.
    pub features: &'a [f32],
    /// One class per example.
    pub labels: &'a [u32],
}
impl<'a> Labelled<'a> {
    fn rows(&self) -> Rows<'a> {
        Rows::Dense { width: self.width, values: self.features }
    }
}

/// When fitting ends before all epochs: after `patience` epochs without a lower loss on `examples`; the parameters
/// of the best epoch are restored.
#[derive(Debug, Clone, Copy)]
pub struct Validation<'a> {
    /// Examples that are not trained on.
    pub examples: Labelled<'a>,
    /// Epochs without improvement, at least 1.
    pub patience: usize,
}

/// How a classifier is fitted.
#[derive(Debug, Clone, Copy)]
pub struct ClassifierRecipe<'a> {
    /// Hidden widths.
    pub hidden: &'a [usize],
    /// Behind each hidden layer.
    pub activation: Activation,
    /// Number of classes.
    pub classes: usize,
    /// Passes over the examples, at least 1.
    pub epochs: usize,
    /// Examples per update, at least 1.
    pub batch_size: usize,
    /// Of Adam, above 0.
    pub learning_rate: f64,
    /// `l2 / 2 |weights|^2` is added to the mean loss; at least 0.
    pub l2: f64,
}

/// Fits a multi-layer perceptron by Adam on shuffled batches of the mean cross-entropy.
///
/// Single-threaded; the same arguments give the same bits.
///
/// # Errors
/// [`Error::Recipe`], [`Error::NoRecords`] or [`Error::Model`] for arguments that do not fit;
/// [`Error::Diverged`] if the parameters stop being finite.
pub fn fit_classifier(
    recipe: &ClassifierRecipe<'_>,
    examples: Labelled<'_>,
    validation: Option<Validation<'_>>,
    seed: Seed,
) -> Result<Graph, Error> {
    recipe.check()?;
    if examples.labels.is_empty() || validation.is_some_and(|v| v.examples.labels.is_empty()) {
        return Err(Error::NoRecords);
    }
    let mut graph = zoo::mlp(
        examples.width,
        recipe.hidden,
        recipe.classes,
        recipe.activation,
        &mut seed.child("initial weights").rng(),
    )?;
    let mut optimizer =
        PlainOptimizer::new(Optimizer::adam(recipe.learning_rate), recipe.l2, &graph);
    let mut workspace = Workspace::new();
    let mut sum = vec![0.0; graph.parameters().len()];
    let mut order: Vec<u32> = (0..examples.labels.len() as u32).collect();
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    let mut best: Option<(usize, f64, Vec<f32>)> = None;
    // The whole set once, so that every later row is known to fit.
    mean_loss(&graph, examples, &mut workspace)?;
    for epoch in 1..=recipe.epochs {
        shuffle(&mut order, &mut seed.child("shuffle").index(epoch as u64).rng());
        for batch in order.chunks(recipe.batch_size) {
            features.clear();
            labels.clear();
            for row in batch {
                let row = *row as usize;
                let at = row * examples.width;
                features.extend_from_slice(&examples.features[at..at + examples.width]);
                labels.push(examples.labels[row]);
            }
            let gathered = Examples {
                rows: Rows::Dense { width: examples.width, values: &features },
                targets: Targets::Classes(&labels),
                loss: Loss::CrossEntropy,
            };
            graph.gradient_sum(&gathered, &mut workspace, &mut sum, Write::Overwrite)?;
            optimizer.step(&mut graph, &sum, batch.len() as f64);
        }
        if graph.parameters().iter().any(|p| !p.is_finite()) {
            return Err(Error::Diverged { epoch });
        }
        let Some(validation) = validation else { continue };
        let loss = mean_loss(&graph, validation.examples, &mut workspace)?;
        match &mut best {
            Some((at, least, _)) if loss >= *least => {
                if epoch - *at >= validation.patience {
                    break;
                }
            }
            _ => best = Some((epoch, loss, graph.parameters().to_vec())),
        }
    }
    if let Some((_, _, parameters)) = best {
        graph.parameters_mut().copy_from_slice(&parameters);
    }
    Ok(graph)
}

/// Mean cross-entropy in nats.
fn mean_loss(
    graph: &Graph,
    examples: Labelled<'_>,
    workspace: &mut Workspace,
) -> Result<f64, Error> {
    let (width, records) = (examples.width, examples.labels.len());
    Targets::Classes(examples.labels).check(
        Loss::CrossEntropy,
        examples.rows().len(),
        graph.outputs(),
    )?;
    let mut sum = 0.0;
    for start in (0..records).step_by(RECORD_BLOCK) {
        let end = (start + RECORD_BLOCK).min(records);
        let values = &examples.features[start * width..end * width];
        let logits = graph.forward(&Rows::Dense { width, values }, workspace)?;
        for (row, class) in logits.chunks_exact(graph.outputs()).zip(&examples.labels[start..end]) {
            sum += judge(row, *class as usize).1;
        }
    }
    Ok(sum / records as f64)
}

impl ClassifierRecipe<'_> {
    fn check(&self) -> Result<(), Error> {
        let wrong = |what, needed, got| Err(Error::Recipe { what, needed, got });
        if self.epochs == 0 {
            return wrong("epochs", "at least 1", 0.0);
        }
        if self.batch_size == 0 {
            return wrong("batch size", "at least 1", 0.0);
        }
        if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            return wrong("learning rate", "finite and above 0", self.learning_rate);
        }
        if !(self.l2 >= 0.0 && self.l2.is_finite()) {
            return wrong("l2", "finite and at least 0", self.l2);
        }
        Ok(())
    }
}
