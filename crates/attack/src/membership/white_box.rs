//! The white-box attack on the last layer.
use crate::adam::{Adam, Moments};
use crate::knowledge::LEAST_KNOWN;
use crate::permutation::shuffle;
use crate::rank_one::{Pass, RankOne, Shape, Snapshot};
use crate::signals::softplus;
use crate::stack::{ACTIVATION, Mode, Stack, Width, drop_out, multiply};
use crate::{Access, Attack, Error, ModelSignals, Needs, Note, Outcome, Scores, View};
use dosimeter_data::Seed;
use dosimeter_model::kernels;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Settings of [`WhiteBox`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WhiteBoxSettings {
    /// Kernels over the gradient, at least 1. 1000 in the paper; cost and memory grow with it.
    pub filters: usize,
    /// Neighbouring outputs that one kernel spans, at least 1; no more than there are classes is used.
    pub conv_height: usize,
    /// Normalise every convolution output over the batch.
    pub batch_norm: bool,
    /// Fraction of units dropped in training, in `[0, 0.9]`.
    pub dropout: f32,
    /// Adam's learning rate, positive.
    pub learning_rate: f32,
    /// Records per step, at least 2, half members and half non-members.
    pub batch_size: usize,
    /// Most passes over the known records, at least 1.
    pub epochs: usize,
    /// Passes without a better validation accuracy before stopping, at least 1.
    pub patience: usize,
    /// Fraction of the known records kept apart to decide when to stop, in `(0, 1)`.
    pub validation: f64,
}
impl WhiteBoxSettings {
    /// The paper's attack.
    pub const DEFAULT: Self = Self {
        filters: 1000,
        conv_height: 4,
        batch_norm: true,
        dropout: 0.2,
        learning_rate: 1e-4,
        batch_size: 64,
        epochs: 500,
        patience: 10,
        validation: 0.2,
    };
    /// Checks the ranges.
    ///
    /// # Errors
    /// Naming the first field out of range.
    pub fn check(&self) -> Result<(), Error> {
        let bad =
            |field, needed, have| Err(Error::Setting { attack: "white_box", field, needed, have });
        for (field, value) in [
            ("filters", self.filters),
            ("conv_height", self.conv_height),
            ("epochs", self.epochs),
            ("patience", self.patience),
        ] {
            if value == 0 {
                return bad(field, "at least 1", 0.0);
            }
        }
        if self.batch_size < 2 {
            return bad("batch_size", "at least 2", self.batch_size as f64);
        }
        if !(0.0..=0.9).contains(&self.dropout) {
            return bad("dropout", "at least 0 and at most 0.9", self.dropout.into());
        }
        if !(self.learning_rate.is_finite() && self.learning_rate > 0.0) {
            return bad("learning_rate", "positive and finite", self.learning_rate.into());
        }
        if !(self.validation > 0.0 && self.validation < 1.0) {
            return bad("validation", "above 0 and below 1", self.validation);
        }
        Ok(())
    }
}
impl Default for WhiteBoxSettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A network on gradient, answer, loss and label, trained on the half of the candidates whose membership is known.
///
/// For every candidate it reads, from the released model alone: the gradient of the record's loss with respect to the
/// last layer's weights and biases, the softmax, the loss and the one-hot label. Each has a branch; the gradient's is a
/// convolution whose kernels span all inputs (bias included) of `conv_height` neighbouring outputs. The gradient is an
/// outer product and is never formed. The branches meet in a dense 256-128-64-1 encoder.
///
/// Training uses equally many known members and non-members (what one side has more is left out). A part of them,
/// `validation`, is kept apart and decides when to stop and which parameters to keep; **no record that is judged does**.
/// All known records are listed as not assessable.
///
/// Where this differs from the published attack, on purpose: both factors of the gradient are divided by their root mean
/// square and the loss is standardised, over the training part; weights start at the scale of their fan-in instead of
/// 0.01; the better of two epochs with equal validation accuracy is the one with the smaller loss.
///
/// # Source
/// Nasr et al., *Comprehensive Privacy Analysis of Deep Learning*, S&P 2019 (arXiv:1812.00910), restricted to the last
/// layer as in Bernau et al., *Comparing Local and Central Differential Privacy Using Membership Inference Attacks*
/// (arXiv:1912.11328).
#[derive(Debug, Clone, Copy)]
pub struct WhiteBox {
    /// Settings.
    pub settings: WhiteBoxSettings,
}
impl WhiteBox {
    /// With default settings.
    pub const DEFAULT: Self = Self { settings: WhiteBoxSettings::DEFAULT };
}

const NAME: &str = "white_box";
/// Outputs of the first and of the second dense layer of every branch.
const BRANCH: [usize; 2] = [128, 64];

impl Attack for WhiteBox {
    fn name(&self) -> &'static str {
        NAME
    }
    fn title(&self) -> &'static str {
        "white box: a network on last-layer gradient, answer, loss and label learns from the known half"
    }
    fn source(&self) -> &'static str {
        "Nasr et al., Comprehensive Privacy Analysis of Deep Learning, S&P 2019, last layer only"
    }
    fn needs(&self) -> Needs {
        Needs { shadows: 0, access: Access::WhiteBox, known_membership: true }
    }
    fn run(&self, view: &View<'_>) -> Result<Outcome, Error> {
        self.settings.check()?;
        let target = view.target();
        let seed = view.seed(NAME);
        let folds = Folds::draw(view, self.settings.validation, seed.child("folds"))?;
        let features = Features::of(target, &folds.train)?;
        let mut network = Network::new(&self.settings, &features, seed.child("weights"));
        let note = fit(&self.settings, view, &features, &folds, &mut network, seed.child("fit"))?;
        let rows = |known: bool| {
            let all = view.known().iter().enumerate();
            all.filter(move |(_, k)| k.is_some() == known).map(|(row, _)| row)
        };
        let judged: Vec<usize> = rows(false).collect();
        let logits = network.predict(&features, &judged);
        let judged =
            judged.iter().zip(logits).map(|(&r, z)| (target.records[r], z.into())).collect();
        let not_assessable = rows(true).map(|row| target.records[row]).collect();
        Ok(Outcome { scores: Scores { judged, not_assessable }, notes: vec![note] })
    }
}

/// Rows of the target with known membership: what is learnt from, and what decides when to stop.
#[derive(Debug)]
struct Folds {
    /// Members, then as many non-members.
    train: [Vec<usize>; 2],
    /// Likewise.
    validation: [Vec<usize>; 2],
}
impl Folds {
    fn draw(view: &View<'_>, fraction: f64, seed: Seed) -> Result<Self, Error> {
        let mut sides = [true, false].map(|side| -> Vec<usize> {
            let all = view.known().iter().enumerate();
            all.filter(|(_, known)| **known == Some(side)).map(|(row, _)| row).collect()
        });
        let [members, non_members] = [sides[0].len(), sides[1].len()];
        let each = members.min(non_members);
        if each < LEAST_KNOWN {
            return Err(Error::OneSided {
                attack: NAME,
                needed: LEAST_KNOWN,
                members,
                non_members,
            });
        }
        let apart = ((each as f64 * fraction).round() as usize).clamp(1, each - 2);
        for (side, label) in sides.iter_mut().zip(["members", "non-members"]) {
            shuffle(side, &mut seed.child(label).rng());
            side.truncate(each);
        }
        let validation = [0, 1].map(|side: usize| sides[side].split_off(each - apart));
        Ok(Self { train: sides, validation })
    }
}

/// What the network reads of each row of the target.
#[derive(Debug)]
struct Features {
    /// Inputs of the attacked layer, constant 1 included.
    inputs: usize,
    classes: usize,
    /// `[rows, inputs]`.
    a: Vec<f32>,
    /// `[rows, classes]`: `softmax - one-hot`, the loss gradient at the outputs.
    delta: Vec<f32>,
    /// `[rows, classes]`.
    softmax: Vec<f32>,
    /// `[rows]`, standardised.
    loss: Vec<f32>,
    labels: Vec<u32>,
}
impl Features {
    /// Of all rows; scales come from the rows of `train` only.
    fn of(target: &ModelSignals, train: &[Vec<usize>; 2]) -> Result<Self, Error> {
        let (width, values) =
            target.last_layer_inputs.as_ref().ok_or(Error::MissingLastLayer { attack: NAME })?;
        let (inputs, classes) = (width + 1, target.classes);
        let mut a = Vec::with_capacity(target.len() * inputs);
        for row in 0..target.len() {
            a.extend_from_slice(&values[row * width..(row + 1) * width]);
            a.push(1.0);
        }
        let mut softmax = target.logits.clone();
        kernels::softmax_rows(&mut softmax, classes, |_, _, _| ());
        let mut delta = softmax.clone();
        for (row, &label) in delta.chunks_exact_mut(classes).zip(&target.labels) {
            // -(1 - p_y), from the other classes: 1 - p_y has no digits left where p_y is near 1.
            row[label as usize] = 0.0;
            row[label as usize] = -row.iter().sum::<f32>();
        }
        let mut loss: Vec<f64> = (0..target.len()).map(|row| target.loss(row)).collect();
        let rows = || train.iter().flatten();
        let count = rows().count() as f64;
        let mean = rows().map(|&row| loss[row]).sum::<f64>() / count;
        let variance = rows().map(|&row| (loss[row] - mean).powi(2)).sum::<f64>() / count;
        for value in &mut loss {
            *value = (*value - mean) * inverse_root(variance);
        }
        for (values, width) in [(&mut a, inputs), (&mut delta, classes)] {
            let norms = rows().map(|&r| kernels::squared_norm(&values[r * width..(r + 1) * width]));
            let mean_square = norms.sum::<f64>() / (count * width as f64);
            kernels::scale(values, inverse_root(mean_square) as f32);
        }
        let loss = loss.into_iter().map(|value| value as f32).collect();
        Ok(Self { inputs, classes, a, delta, softmax, loss, labels: target.labels.clone() })
    }
}

/// `1 / sqrt(x)`, or 1 where that is beyond what single precision can scale by.
fn inverse_root(x: f64) -> f64 {
    let inverse = x.sqrt().recip();
    if inverse < 1e18 { inverse } else { 1.0 }
}

/// Rows gathered for one pass.
#[derive(Debug, Default)]
struct Batch {
    a: Vec<f32>,
    delta: Vec<f32>,
    softmax: Vec<f32>,
    loss: Vec<f32>,
    label: Vec<f32>,
}
impl Batch {
    fn gather(&mut self, features: &Features, rows: &[usize]) {
        let (inputs, classes) = (features.inputs, features.classes);
        for values in [&mut self.a, &mut self.delta, &mut self.softmax, &mut self.loss] {
            values.clear();
        }
        self.label.clear();
        self.label.resize(rows.len() * classes, 0.0);
        for (position, &row) in rows.iter().enumerate() {
            self.a.extend_from_slice(&features.a[row * inputs..(row + 1) * inputs]);
            self.delta.extend_from_slice(&features.delta[row * classes..(row + 1) * classes]);
            self.softmax.extend_from_slice(&features.softmax[row * classes..(row + 1) * classes]);
            self.loss.push(features.loss[row]);
            self.label[position * classes + features.labels[row] as usize] = 1.0;
        }
    }
}

/// Four branches and an encoder; everything but the gradient branch's first layers lies in one slice.
#[derive(Debug)]
struct Network {
    rank_one: RankOne,
    parameters: Vec<f32>,
    gradient: Vec<f32>,
    moments: Moments,
    adam: Adam,
    /// After the bias of the gradient branch's first dense layer, which lies at the start of `parameters`.
    tail: Stack,
    softmax: Stack,
    loss: Stack,
    label: Stack,
    encoder: Stack,
    batch: Batch,
    /// `[rows, 128]`: the gradient branch after its first dense layer.
    hidden: Vec<f32>,
    mask: Vec<f32>,
    /// `[rows, 4 * 64]`.
    joined: Vec<f32>,
    joined_gradient: Vec<f32>,
    part: Vec<f32>,
}
impl Network {
    fn new(settings: &WhiteBoxSettings, features: &Features, seed: Seed) -> Self {
        let [first, second] = BRANCH;
        let classes = features.classes;
        let shape = Shape {
            inputs: features.inputs,
            classes,
            filters: settings.filters,
            height: settings.conv_height.min(classes),
            hidden: first,
            batch_norm: settings.batch_norm,
        };
        let layer = |outputs, dropout| Width { outputs, activation: true, dropout };
        let branch = [layer(first, true), layer(second, false)];
        let encoder = [
            layer(256, true),
            layer(128, true),
            layer(64, false),
            Width { outputs: 1, activation: false, dropout: false },
        ];
        let mut offset = first;
        let tail = Stack::new(first, &[layer(second, true)], &mut offset);
        let softmax = Stack::new(classes, &branch, &mut offset);
        let loss = Stack::new(1, &branch, &mut offset);
        let label = Stack::new(classes, &branch, &mut offset);
        let encoder = Stack::new(4 * second, &encoder, &mut offset);
        let mut parameters = vec![0.0; offset];
        let stacks = [&tail, &softmax, &loss, &label, &encoder];
        for (stack, name) in stacks.into_iter().zip(["tail", "softmax", "loss", "label", "encoder"])
        {
            stack.initialise(&mut parameters, &mut seed.child(name).rng());
        }
        Self {
            rank_one: RankOne::new(shape, seed.child("gradient")),
            gradient: vec![0.0; offset],
            moments: Moments::new(offset),
            adam: Adam::new(settings.learning_rate),
            parameters,
            tail,
            softmax,
            loss,
            label,
            encoder,
            batch: Batch::default(),
            hidden: Vec::new(),
            mask: Vec::new(),
            joined: Vec::new(),
            joined_gradient: Vec::new(),
            part: Vec::new(),
        }
    }
    /// Log-odds of membership of the gathered rows.
    fn forward(&mut self, pass: Pass, mode: &mut Mode<'_, ChaCha8Rng>) -> &[f32] {
        let [first, second] = BRANCH;
        let rows = self.batch.loss.len();
        self.hidden.clear();
        for _ in 0..rows {
            self.hidden.extend_from_slice(&self.parameters[..first]);
        }
        self.rank_one.forward(&self.batch.a, &self.batch.delta, pass, &mut self.hidden);
        ACTIVATION.forward(&mut self.hidden, first);
        drop_out(&mut self.hidden, &mut self.mask, mode);
        self.joined.resize(rows * 4 * second, 0.0);
        let branches = [
            (&mut self.tail, &self.hidden),
            (&mut self.softmax, &self.batch.softmax),
            (&mut self.loss, &self.batch.loss),
            (&mut self.label, &self.batch.label),
        ];
        for (number, (stack, input)) in branches.into_iter().enumerate() {
            let outputs = stack.forward(&self.parameters, input, mode).chunks_exact(second);
            for (joined, outputs) in self.joined.chunks_exact_mut(4 * second).zip(outputs) {
                joined[number * second..(number + 1) * second].copy_from_slice(outputs);
            }
        }
        self.encoder.forward(&self.parameters, &self.joined, mode)
    }
    /// One step of Adam on the gathered rows, after a training pass whose loss has this gradient at the log-odds.
    fn step(&mut self, gradient: &[f32]) {
        self.backward(gradient);
        let step = self.adam.next_step();
        self.rank_one.step(&self.batch.a, &self.batch.delta, &self.hidden, step);
        self.moments.apply(step, &mut self.parameters, &self.gradient);
    }
    /// Leaves the gradient of `parameters` in `gradient`, and that of the sums of the rank-one part in `hidden`.
    fn backward(&mut self, gradient: &[f32]) {
        let [first, second] = BRANCH;
        let (parameters, to_parameters) = (&self.parameters, &mut self.gradient);
        self.joined_gradient.clear();
        self.joined_gradient.resize(self.joined.len(), 0.0);
        let to_joined = Some(self.joined_gradient.as_mut_slice());
        self.encoder.backward(parameters, &self.joined, gradient, to_parameters, to_joined);
        let mut to_hidden = vec![0.0; self.hidden.len()];
        let branches = [
            (&mut self.tail, &self.hidden, Some(to_hidden.as_mut_slice())),
            (&mut self.softmax, &self.batch.softmax, None),
            (&mut self.loss, &self.batch.loss, None),
            (&mut self.label, &self.batch.label, None),
        ];
        for (number, (stack, input, to_input)) in branches.into_iter().enumerate() {
            self.part.clear();
            for row in self.joined_gradient.chunks_exact(4 * second) {
                self.part.extend_from_slice(&row[number * second..(number + 1) * second]);
            }
            stack.backward(parameters, input, &self.part, to_parameters, to_input);
        }
        multiply(&mut to_hidden, &self.mask);
        ACTIVATION.backward(&mut to_hidden, &self.hidden, first);
        to_parameters[..first].fill(0.0);
        kernels::sum_rows(&to_hidden, &mut to_parameters[..first]);
        self.hidden = to_hidden;
    }
    fn predict(&mut self, features: &Features, rows: &[usize]) -> Vec<f32> {
        let mut logits = Vec::with_capacity(rows.len());
        for part in rows.chunks(256) {
            self.batch.gather(features, part);
            logits.extend_from_slice(self.forward(Pass::Predict, &mut Mode::Predict));
        }
        logits
    }
}

/// Trains until the validation fold has not been judged better for `patience` epochs, and restores the best epoch.
fn fit(
    settings: &WhiteBoxSettings,
    view: &View<'_>,
    features: &Features,
    folds: &Folds,
    network: &mut Network,
    seed: Seed,
) -> Result<Note, Error> {
    let mut best: Option<(Judged, usize, Vec<f32>, Snapshot)> = None;
    let mut train = folds.train.clone();
    let each = train[0].len();
    let batches = each.div_ceil(settings.batch_size / 2);
    let (mut rows, mut gradient) = (Vec::new(), Vec::new());
    let mut epochs = 0;
    for epoch in 0..settings.epochs {
        let epoch_seed = seed.index(epoch as u64);
        for (side, label) in train.iter_mut().zip(["members", "non-members"]) {
            shuffle(side, &mut epoch_seed.child(label).rng());
        }
        for batch in 0..batches {
            view.go_on()?;
            let range = batch * each / batches..(batch + 1) * each / batches;
            rows.clear();
            rows.extend_from_slice(&train[0][range.clone()]);
            rows.extend_from_slice(&train[1][range.clone()]);
            network.batch.gather(features, &rows);
            let step_seed = epoch_seed.child("step").index(batch as u64);
            let mut rng = step_seed.child("dropout").rng();
            let dropout = settings.dropout;
            let pass = Pass::Train { dropout, seed: step_seed.child("gradient dropout") };
            let logits = network.forward(pass, &mut Mode::Train { dropout, rng: &mut rng });
            gradient.clear();
            gradient.extend(logits.iter().enumerate().map(|(row, &z)| {
                let target = if row < range.len() { 1.0 } else { 0.0 };
                (((1.0 + (-z).exp()).recip()) - target) / (2 * range.len()) as f32
            }));
            network.step(&gradient);
        }
        epochs = epoch + 1;
        let judged = judge(network, features, &folds.validation);
        if !judged.loss.is_finite() {
            return Err(Error::Diverged { attack: NAME, epoch: epochs });
        }
        match &best {
            Some((before, ..)) if !judged.better_than(before) => {}
            _ => {
                let snapshot = network.rank_one.snapshot();
                best = Some((judged, epochs, network.parameters.clone(), snapshot));
            }
        }
        if best.as_ref().is_some_and(|(_, at, ..)| epochs - at >= settings.patience) {
            break;
        }
    }
    let Some((judged, best_epoch, parameters, snapshot)) = best else {
        return Err(Error::Diverged { attack: NAME, epoch: epochs });
    };
    network.parameters = parameters;
    network.rank_one.restore(snapshot);
    Ok(Note::Fitted { epochs, best_epoch, validation_accuracy: judged.accuracy })
}

/// How a fold is judged: as many members as non-members.
#[derive(Debug, Clone, Copy)]
struct Judged {
    accuracy: f64,
    loss: f64,
}
impl Judged {
    fn better_than(&self, other: &Self) -> bool {
        self.accuracy.total_cmp(&other.accuracy).then(other.loss.total_cmp(&self.loss)).is_gt()
    }
}
fn judge(network: &mut Network, features: &Features, fold: &[Vec<usize>; 2]) -> Judged {
    let (mut right, mut loss, mut count) = (0.0, 0.0, 0.0);
    for (rows, sign) in fold.iter().zip([1.0, -1.0]) {
        for logit in network.predict(features, rows) {
            let margin = sign * f64::from(logit);
            right += if margin > 0.0 { 1.0 } else { 0.0 };
            loss += softplus(-margin);
            count += 1.0;
        }
    }
    Judged { accuracy: right / count, loss: loss / count }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::fill_uniform;
    use dosimeter_data::RecordId;

    fn numbers(n: usize, label: &str) -> Vec<f32> {
        let mut values = vec![0.0; n];
        fill_uniform(&mut values, 1.0, &mut Seed::root(12).child(label).rng());
        values
    }
    fn signals(rows: usize, hidden: usize, classes: usize) -> ModelSignals {
        ModelSignals {
            records: (0..rows as u32).map(RecordId).collect(),
            labels: (0..rows as u32).map(|i| i % classes as u32).collect(),
            classes,
            logits: numbers(rows * classes, "logits"),
            last_layer_inputs: Some((hidden, numbers(rows * hidden, "hidden"))),
        }
    }
    fn quick() -> WhiteBoxSettings {
        WhiteBoxSettings { filters: 8, learning_rate: 1e-3, ..WhiteBoxSettings::DEFAULT }
    }

    /// By hand: logits `(ln 3, 0)` and label 0 give `p = (3/4, 1/4)`, `delta = (-1/4, 1/4)`; the last layer read 2, so with
    /// the constant `a = (2, 1)`. The other record has label 1: `delta = (3/4, -3/4)`, `a = (-1, 1)`. Root mean squares:
    /// `a: sqrt((4 + 1 + 1 + 1)/4)`, `delta: sqrt((2/16 + 18/16)/4) = sqrt(5/16)`. Losses `ln 4/3`, `ln 4`: -1 and 1 once
    /// standardised.
    #[test]
    fn features_of_two_records_by_hand() {
        let z = 3f32.ln();
        let target = ModelSignals {
            records: vec![RecordId(0), RecordId(1)],
            labels: vec![0, 1],
            classes: 2,
            logits: vec![z, 0.0, z, 0.0],
            last_layer_inputs: Some((1, vec![2.0, -1.0])),
        };
        let features = Features::of(&target, &[vec![0], vec![1]]).unwrap();
        let close = |have: &[f32], by: f64, expected: &[f64]| {
            assert_eq!(have.len(), expected.len());
            for (h, e) in have.iter().zip(expected) {
                assert!((f64::from(*h) - e / by).abs() < 1e-5, "{have:?} {expected:?} / {by}");
            }
        };
        close(&features.a, 1.75f64.sqrt(), &[2.0, 1.0, -1.0, 1.0]);
        close(&features.delta, (5.0f64 / 16.0).sqrt(), &[-0.25, 0.25, 0.75, -0.75]);
        close(&features.softmax, 1.0, &[0.75, 0.25, 0.75, 0.25]);
        close(&features.loss, 1.0, &[-1.0, 1.0]);
    }

    /// The answers say nothing about membership here; the inputs of the last layer do, through the gradient alone.
    #[test]
    fn membership_that_shows_only_in_the_gradient_is_found() {
        let mut target = signals(400, 3, 4);
        let member = |row: usize| (row / 4).is_multiple_of(2);
        if let Some((width, values)) = &mut target.last_layer_inputs {
            for row in 0..400 {
                values[row * *width] = if member(row) { 1.0 } else { -1.0 };
            }
        }
        let known: Vec<_> = (0..200).map(|row| (RecordId(row as u32), member(row))).collect();
        let view = View::new(&target, Seed::root(1)).unwrap().with_known(&known).unwrap();
        let outcome = WhiteBox { settings: quick() }.run(&view).unwrap();
        let judged = &outcome.scores.judged;
        assert_eq!((judged.len(), judged[0].0), (200, RecordId(200)));
        assert_eq!(outcome.scores.not_assessable, (0..200).map(RecordId).collect::<Vec<_>>());
        let right = judged.iter().filter(|(r, s)| (*s > 0.0) == member(r.0 as usize)).count();
        assert!(right >= 190, "{right} of 200, {:?}", outcome.notes);
    }

    #[test]
    fn validation_records_are_apart_from_training_and_from_the_judged() {
        let target = signals(60, 2, 3);
        let known: Vec<_> = (0..25).map(|i| (RecordId(i * 2), i < 11)).collect();
        let view = View::new(&target, Seed::root(1)).unwrap().with_known(&known).unwrap();
        let folds = Folds::draw(&view, 0.2, Seed::root(2)).unwrap();
        // 11 members, 14 non-members: 11 of each, 2 of them for validation.
        for side in 0..2 {
            assert_eq!((folds.train[side].len(), folds.validation[side].len()), (9, 2));
            let all: Vec<_> = folds.train[side].iter().chain(&folds.validation[side]).collect();
            assert!(all.iter().all(|row| view.known()[**row] == Some(side == 0)));
            assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 11);
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let target = signals(20, 2, 3);
        let view = View::new(&target, Seed::root(1)).unwrap();
        let nothing = Error::OneSided { attack: NAME, needed: 4, members: 0, non_members: 0 };
        assert_eq!(WhiteBox::DEFAULT.run(&view), Err(nothing));
        let known: Vec<_> = (0..12).map(|i| (RecordId(i), i % 2 == 0)).collect();
        let black_box = ModelSignals { last_layer_inputs: None, ..target.clone() };
        let view = View::new(&black_box, Seed::root(1)).unwrap().with_known(&known).unwrap();
        assert_eq!(WhiteBox::DEFAULT.run(&view), Err(Error::MissingLastLayer { attack: NAME }));
        let settings = WhiteBoxSettings { dropout: 0.95, ..WhiteBoxSettings::DEFAULT };
        assert!(matches!(settings.check(), Err(Error::Setting { field: "dropout", .. })));
    }

    /// Central differences over every 97th parameter outside the rank-one part, dropout masks held by their seed.
    #[test]
    fn gradients_of_branches_and_encoder_agree_with_finite_differences() {
        let target = signals(12, 3, 5);
        let rows: Vec<usize> = (0..12).collect();
        let features = Features::of(&target, &[rows[..6].to_vec(), rows[6..].to_vec()]).unwrap();
        let mut network = Network::new(&quick(), &features, Seed::root(3));
        network.batch.gather(&features, &rows);
        let factors = numbers(12, "factors");
        let loss = |network: &mut Network| -> f64 {
            let mut rng = Seed::root(4).rng();
            let pass = Pass::Train { dropout: 0.2, seed: Seed::root(5) };
            let logits = network.forward(pass, &mut Mode::Train { dropout: 0.2, rng: &mut rng });
            logits.iter().zip(&factors).map(|(z, f)| f64::from(*z) * f64::from(*f)).sum()
        };
        loss(&mut network);
        network.backward(&factors);
        let gradient = network.gradient.clone();
        let (mut off, mut size) = (0.0, 0.0);
        for index in (0..gradient.len()).step_by(97) {
            let before = network.parameters[index];
            let mut at = |value: f32| {
                network.parameters[index] = value;
                loss(&mut network)
            };
            let slope = (at(before + 2e-3) - at(before - 2e-3)) / 4e-3;
            at(before);
            off += (slope - f64::from(gradient[index])).powi(2);
            size += slope.powi(2);
        }
        assert!(size > 0.0 && off < 1e-3 * size, "relative squared error {}", off / size);
    }
}
