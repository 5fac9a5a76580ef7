//! Training one network.
use crate::evaluate::evaluate_with;
use crate::optimizer::{PlainOptimizer, PrivateOptimizer};
use crate::{Arm, Batch, EarlyStopping, Error, Evaluation, Progress, Recipe, Watch, evaluate};
use dosimeter_data::{Dataset, RecordId, Seed};
use dosimeter_model::kernels::{Write, squared_norm};
use dosimeter_model::{GradientParts, Graph, RECORD_BLOCK, Workspace};
use dosimeter_privacy::mechanisms::Gaussian;
use dosimeter_privacy::{
    BoundedInParts, Event, Ledger, NoiseRng, NoiseSource, Released, SamplingRate, Unit,
};
use rand_core::Rng;
use std::num::NonZero;

/// One training to be done.
#[derive(Debug, Clone, Copy)]
pub struct Training<'a> {
    /// How.
    pub recipe: &'a Recipe,
    /// Where the records are.
    pub dataset: &'a Dataset,
    /// The training records; each counts as one privacy unit, so none may be listed twice.
    pub records: &'a [RecordId],
    /// Public number of records the training is planned for. Sampling rate, normaliser and number of steps come from
    /// it and never from `records.len()`, which is private under AddRemove.
    pub nominal_size: usize,
    /// Records for early stopping and the reported validation loss; may be empty. Never training records.
    pub validation: &'a [RecordId],
    /// Initial weights, batches and replayable noise.
    pub seed: Seed,
    /// Where noise comes from, in the DP arm.
    pub noise: NoiseSource,
    /// Changes no number.
    pub speed: Speed,
}

/// Settings that change time and memory and no number.
///
/// Sums are formed in blocks of [`dosimeter_model::RECORD_BLOCK`] records in either case, so every micro-batch size
/// gives the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speed {
    /// Records gathered at once; rounded up to whole blocks.
    pub micro_batch: usize,
    /// Threads that share the blocks of a batch: of use where a batch has several, as those of convolutional networks on images
    /// have.
    pub threads: NonZero<usize>,
}
impl Default for Speed {
    fn default() -> Self {
        Self { micro_batch: 1024, threads: NonZero::<usize>::MIN }
    }
}

/// What was seen during one epoch. Losses, clipping and norms are measured on the training records without noise:
/// they are for studying a training and are not covered by its guarantee.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Epoch {
    /// Updates done so far (one per batch, whatever the micro-batches).
    pub steps: u64,
    /// Mean loss of the records seen, each before the update it took part in; `None` if every batch was empty.
    pub train_loss: Option<f64>,
    /// Share of the records seen that were scaled down; 0 without clipping.
    pub clipped: f64,
    /// Gradients that were not finite and counted as zero.
    pub non_finite: u64,
    /// Batches without a record: noise-only steps.
    pub empty_batches: u64,
    /// On the validation records, after the epoch.
    pub validation: Option<Evaluation>,
}

/// A trained network and what it cost.
#[derive(Debug, Clone)]
pub struct Trained {
    /// The network.
    pub graph: Graph,
    /// What was released about the training records: the steps actually taken in the DP arm, `NonPrivate` else.
    pub ledger: Ledger,
    /// Epoch by epoch.
    pub history: Vec<Epoch>,
    /// Updates done.
    pub steps: u64,
    /// Whether early stopping ended the training.
    pub stopped_early: bool,
    /// The epoch (from 1) whose parameters these are: the best one if early stopping restores it, else the last.
    pub epoch: usize,
    /// On the training records.
    pub train: Evaluation,
    /// On the validation records.
    pub validation: Option<Evaluation>,
}

/// How one update is made.
enum Updates {
    Plain(PlainOptimizer),
    /// The ledger only draws the batches: nothing is released through it.
    ClipOnly {
        optimizer: PlainOptimizer,
        sampler: Ledger,
        rng: NoiseRng,
    },
    Dp {
        optimizer: PrivateOptimizer,
        ledger: Ledger,
        clipping_norm: f64,
        mechanism: Gaussian,
        rng: NoiseRng,
    },
}

struct Run<'a> {
    training: &'a Training<'a>,
    graph: Graph,
    pass: Pass,
    /// The average of the parameters so far, empty without averaging.
    average: Vec<f32>,
    /// One part of a gradient sum.
    part: Vec<f32>,
    steps: u64,
}

/// What one pass over a batch needs beside the network.
struct Pass {
    workspace: Workspace,
    batch: Batch,
    /// Gradient sum of all blocks of records but the last.
    sum: Vec<f32>,
    seen: Seen,
}

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    records: u64,
    loss: f64,
    clipped: u64,
    non_finite: u64,
    empty_batches: u64,
}

/// Trains one network.
///
/// One epoch is `nominal_size / batch_size` updates, rounded up, in the Poisson arms ([`Arm::ClipOnly`],
/// [`Arm::Dp`]); each draws every record with probability `batch_size / nominal_size`, adds the clipped gradients
/// (and noise) and divides by `batch_size`, whatever the number drawn; an empty batch is a noise-only update.
/// [`Arm::NoDp`] shuffles the records anew each epoch, cuts them into batches of `batch_size` and divides by the
/// actual number, as undefended models are usually trained.
///
/// The same training gives the same bits on any number of threads, unless noise comes from the operating system.
///
/// # Errors
/// [`Error::Recipe`], [`Error::NoRecords`], [`Error::NoValidation`] or an error naming a record before anything is
/// trained; [`Error::Diverged`] if parameters stop being finite; [`Error::Stopped`] if `watch` asks.
pub fn fit(training: &Training<'_>, watch: &dyn Watch) -> Result<Trained, Error> {
    training.check()?;
    let Training { recipe, dataset, seed, .. } = *training;
    let mut weights = seed.child("initial weights").rng();
    let graph = recipe.architecture.build(dataset, dataset.classes, &mut weights)?;
    let mut updates = training.updates(&graph)?;
    let parameters = graph.parameters().len();
    let average = recipe.averaging.map(|_| graph.parameters().to_vec()).unwrap_or_default();
    let mut run = Run {
        training,
        graph,
        average,
        pass: Pass {
            workspace: Workspace::with_threads(training.speed.threads),
            batch: Batch::default(),
            sum: vec![0.0; parameters],
            seen: Seen::default(),
        },
        part: Vec::new(),
        steps: 0,
    };
    let planned_steps = training.steps_per_epoch() as u64 * recipe.epochs as u64;
    let mut history = Vec::new();
    let mut best = Best::default();
    for epoch in 1..=recipe.epochs {
        run.epoch(epoch, &mut updates, watch)?;
        if !squared_norm(run.graph.parameters()).is_finite() {
            return Err(Error::Diverged { epoch });
        }
        run.exchange();
        let facts = run.facts()?;
        history.push(facts);
        let validation_loss = facts.validation.map(|v| v.loss);
        let steps = run.steps;
        watch.progress(&Progress { steps, planned_steps, epochs: epoch, validation_loss });
        if let (Some(early), Some(loss)) = (recipe.early_stopping, validation_loss)
            && best.stagnates(early, epoch, loss, run.graph.parameters())
        {
            return run.finish(history, &best, updates);
        }
        if epoch < recipe.epochs {
            run.exchange();
        }
    }
    run.finish(history, &best, updates)
}

/// The best epoch so far, for early stopping.
#[derive(Debug, Default)]
struct Best {
    epoch: usize,
    loss: f64,
    parameters: Vec<f32>,
}
impl Best {
    /// Takes note of an epoch; true if there has been no improvement for `patience` epochs.
    fn stagnates(
        &mut self,
        early: EarlyStopping,
        epoch: usize,
        loss: f64,
        parameters: &[f32],
    ) -> bool {
        if self.epoch == 0 || loss < self.loss - early.least_improvement {
            (self.epoch, self.loss) = (epoch, loss);
            if early.restore_best {
                self.parameters.clear();
                self.parameters.extend_from_slice(parameters);
            }
        }
        epoch - self.epoch >= early.patience
    }
}

impl Training<'_> {
    fn check(&self) -> Result<(), Error> {
        self.recipe.check()?;
        if self.records.is_empty() {
            return Err(Error::NoRecords);
        }
        if self.recipe.early_stopping.is_some() && self.validation.is_empty() {
            return Err(Error::NoValidation);
        }
        if self.nominal_size < self.recipe.batch_size {
            return Err(Error::Recipe {
                what: "batch size",
                needed: "at most the nominal number of training records",
                got: self.recipe.batch_size as f64,
            });
        }
        let records = self.dataset.len();
        for record in self.records.iter().chain(self.validation) {
            match self.dataset.labels.get(record.0 as usize) {
                None => return Err(Error::UnknownRecord { record: *record, records }),
                Some(class) if *class as usize >= self.dataset.classes => {
                    let (record, class, classes) = (*record, *class, self.dataset.classes);
                    return Err(Error::ClassRange { record, class, classes });
                }
                Some(_) => {}
            }
        }
        let mut sorted = self.records.to_vec();
        sorted.sort_unstable();
        match sorted.windows(2).find(|w| w[0] == w[1]) {
            Some(twice) => Err(Error::Repeated { record: twice[0] }),
            None => Ok(()),
        }
    }

    /// Updates of one epoch.
    fn steps_per_epoch(&self) -> usize {
        let records = match self.recipe.arm {
            Arm::NoDp => self.records.len(),
            Arm::ClipOnly { .. } | Arm::Dp { .. } => self.nominal_size,
        };
        records.div_ceil(self.recipe.batch_size)
    }

    fn updates(&self, graph: &Graph) -> Result<Updates, Error> {
        let Recipe { optimizer, l2, .. } = *self.recipe;
        let bytes = self.seed.child("batches and noise").bytes();
        let rng = || NoiseRng::with_source(self.noise, bytes);
        Ok(match self.recipe.arm {
            Arm::NoDp => Updates::Plain(PlainOptimizer::new(optimizer, l2, graph)),
            Arm::ClipOnly { .. } => Updates::ClipOnly {
                optimizer: PlainOptimizer::new(optimizer, l2, graph),
                sampler: Ledger::new(Unit::Record),
                rng: rng()?,
            },
            Arm::Dp { clipping_norm, noise_multiplier } => Updates::Dp {
                clipping_norm,
                optimizer: PrivateOptimizer::new(optimizer, l2, graph),
                ledger: Ledger::new(Unit::Record),
                mechanism: Gaussian { noise_multiplier },
                rng: rng()?,
            },
        })
    }
}

impl Run<'_> {
    fn epoch(
        &mut self,
        epoch: usize,
        updates: &mut Updates,
        watch: &dyn Watch,
    ) -> Result<(), Error> {
        self.pass.seen = Seen::default();
        let Training { recipe, records, nominal_size, seed, .. } = *self.training;
        let mut shuffled = Vec::new();
        if recipe.arm == Arm::NoDp {
            shuffled.extend(0..records.len() as u32);
            shuffle(&mut shuffled, &mut seed.child("shuffle").index(epoch as u64).rng());
        }
        let sampling_rate = SamplingRate::new(recipe.batch_size as f64 / nominal_size as f64)
            .map_err(dosimeter_privacy::Error::from)?;
        for step in 0..self.training.steps_per_epoch() {
            if watch.stop_requested() {
                return Err(Error::Stopped { steps: self.steps });
            }
            let (training, graph, part) = (self.training, &mut self.graph, &mut self.part);
            match updates {
                Updates::Plain(optimizer) => {
                    let from = step * recipe.batch_size;
                    let drawn = &shuffled[from..(from + recipe.batch_size).min(shuffled.len())];
                    let sum = self.pass.gradient(training, graph, drawn)?;
                    optimizer.step_in_parts(graph, sum, part, drawn.len() as f64);
                }
                Updates::ClipOnly { optimizer, sampler, rng } => {
                    let batch = sampler.sampled(sampling_rate, records.len(), rng);
                    let sum = self.pass.gradient(training, graph, batch.indices())?;
                    optimizer.step_in_parts(graph, sum, part, recipe.batch_size as f64);
                }
                Updates::Dp { optimizer, ledger, clipping_norm, mechanism, rng } => {
                    let batch = ledger.sampled(sampling_rate, records.len(), rng);
                    let mut sum = self.pass.gradient(training, graph, batch.indices())?;
                    let longest = sum.longest();
                    let mut next = |out: &mut [f32]| sum.next_part(out);
                    let bounded =
                        BoundedInParts::from_clipped_sum(*clipping_norm, longest, &mut next, part)?;
                    let mut update = optimizer.begin(graph, recipe.batch_size as f64);
                    let each = |start, part: Released<&[f32]>| update.part(start, part);
                    batch.release_in_parts(mechanism, bounded, rng, each)?;
                }
            }
            self.steps += 1;
            self.follow();
        }
        Ok(())
    }

    /// Moves the average of the parameters towards those of the last update.
    fn follow(&mut self) {
        let Some(decay) = self.training.recipe.averaging else { return };
        let t = self.steps as f64;
        let way = (1.0 - decay.min((1.0 + t) / (10.0 + t))) as f32;
        for (average, parameter) in self.average.iter_mut().zip(self.graph.parameters()) {
            *average += way * (parameter - *average);
        }
    }

    /// Puts the averaged parameters into the network and keeps those of the last update, or the other way round.
    fn exchange(&mut self) {
        if !self.average.is_empty() {
            self.average.swap_with_slice(self.graph.parameters_mut());
        }
    }

    /// What was seen in the epoch that has just ended.
    fn facts(&mut self) -> Result<Epoch, Error> {
        let Training { dataset, validation, .. } = *self.training;
        let seen = self.pass.seen;
        let records = seen.records as f64;
        let validation = if validation.is_empty() {
            None
        } else {
            let Pass { batch, workspace, .. } = &mut self.pass;
            Some(evaluate_with(&self.graph, dataset, validation, batch, workspace)?)
        };
        Ok(Epoch {
            steps: self.steps,
            train_loss: (seen.records > 0).then_some(seen.loss / records),
            clipped: if seen.records > 0 { seen.clipped as f64 / records } else { 0.0 },
            non_finite: seen.non_finite,
            empty_batches: seen.empty_batches,
            validation,
        })
    }

    fn finish(
        mut self,
        history: Vec<Epoch>,
        best: &Best,
        updates: Updates,
    ) -> Result<Trained, Error> {
        let Training { recipe, dataset, records, validation, .. } = *self.training;
        let mut epoch = history.len();
        if !best.parameters.is_empty() {
            self.graph.parameters_mut().copy_from_slice(&best.parameters);
            epoch = best.epoch;
        }
        let ledger = match updates {
            Updates::Dp { ledger, .. } => ledger,
            Updates::Plain(_) | Updates::ClipOnly { .. } => {
                let mut ledger = Ledger::new(Unit::Record);
                ledger.record(Event::NonPrivate, 1);
                ledger
            }
        };
        let validation = match validation {
            [] => None,
            some => Some(evaluate(&self.graph, dataset, some)?),
        };
        Ok(Trained {
            ledger,
            steps: self.steps,
            stopped_early: history.len() < recipe.epochs,
            epoch,
            train: evaluate(&self.graph, dataset, records)?,
            validation,
            history,
            graph: self.graph,
        })
    }
}

impl Pass {
    /// The sum of the drawn records' gradients, clipped unless the arm is [`Arm::NoDp`].
    fn gradient(
        &mut self,
        training: &Training<'_>,
        graph: &Graph,
        drawn: &[u32],
    ) -> Result<GradientParts<'_>, Error> {
        let Training { recipe, dataset, records, speed, .. } = *training;
        let Self { workspace, batch, sum, seen } = self;
        seen.empty_batches += u64::from(drawn.is_empty());
        seen.records += drawn.len() as u64;
        let clipping_norm = recipe.arm.clipping_norm();
        let micro_batch = speed.micro_batch.max(1).next_multiple_of(RECORD_BLOCK);
        let last = drawn.len().saturating_sub(1) / micro_batch * micro_batch;
        let (first, last) = drawn.split_at(last);
        let mut write = Write::Overwrite;
        for part in first.chunks(micro_batch) {
            let examples = batch.examples(dataset, records, part)?;
            match clipping_norm {
                None => graph.gradient_sum(&examples, workspace, sum, write)?,
                Some(norm) => graph.clipped_gradient_sum(&examples, norm, workspace, sum, write)?,
            }
            write = Write::Accumulate;
            seen.count(workspace);
        }
        let examples = batch.examples(dataset, records, last)?;
        let parts = graph.gradient_in_parts(&examples, clipping_norm, workspace, sum, write)?;
        seen.count(parts.workspace());
        Ok(parts)
    }
}

impl Seen {
    /// Adds what the last gradient call saw.
    fn count(&mut self, workspace: &Workspace) {
        self.loss += workspace.losses().iter().map(|l| f64::from(*l)).sum::<f64>();
        self.clipped += workspace.clipped_records() as u64;
        self.non_finite += workspace.non_finite_records() as u64;
    }
}

/// A uniformly random order (Fisher and Yates). The multiply-shift draw is off uniform by less than 2^-32.
pub(crate) fn shuffle<T, R: Rng + ?Sized>(items: &mut [T], rng: &mut R) {
    for last in (1..items.len()).rev() {
        let other = (u128::from(rng.next_u64()) * (last as u128 + 1)) >> 64;
        items.swap(last, other as usize);
    }
}
