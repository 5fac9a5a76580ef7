//! The black-box shadow-model attack.
use crate::permutation::{permutation, shuffle};
use crate::{Access, Attack, Error, ModelSignals, Needs, Note, Outcome, Scores, Shadow, View};
use dosimeter_data::{RecordId, Seed};
use dosimeter_model::{Activation, Graph, Rows, Workspace, kernels};
use dosimeter_train::plain::{ClassifierRecipe, Labelled, fit_classifier};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// What an attack network sees of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputForm {
    /// The softmax vector, as in the paper.
    #[default]
    Probabilities,
    /// Its logarithm from the logits, each class standardised over the network's training rows.
    LogProbabilities,
}

/// How many rows of a class each shadow gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Balance {
    /// As many members as non-members, as many as the class allows.
    #[default]
    Stratified,
    /// The same number for every class: what the scarcest class of that shadow allows.
    Equal,
}

/// Settings of [`ShadowModel`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShadowModelSettings {
    /// What the networks see.
    pub input: InputForm,
    /// How many rows of a class each shadow gives.
    pub balance: Balance,
    /// Hidden units of each attack network, at least 1.
    pub hidden: usize,
    /// Passes over a class's rows, at least 1.
    pub epochs: usize,
    /// Rows per step, at least 1.
    pub batch_size: usize,
    /// Adam's learning rate, positive.
    pub learning_rate: f64,
    /// Weight of half the squared norm of the weights in the loss, at least 0.
    pub l2: f64,
    /// Members, and non-members, that a class must have for a network of its own, at least 1.
    pub least_rows: usize,
}
impl ShadowModelSettings {
    /// One hidden layer of 64, Adam at 0.01, 50 epochs of batches of 100, L2 of 1e-6.
    pub const DEFAULT: Self = Self {
        input: InputForm::Probabilities,
        balance: Balance::Stratified,
        hidden: 64,
        epochs: 50,
        batch_size: 100,
        learning_rate: 0.01,
        l2: 1e-6,
        least_rows: 20,
    };
    /// Checks the ranges.
    ///
    /// # Errors
    /// Naming the first field out of range.
    pub fn check(&self) -> Result<(), Error> {
        let bad = |field, needed, have| Err(Error::Setting { attack: NAME, field, needed, have });
        for (field, value) in [
            ("hidden", self.hidden),
            ("epochs", self.epochs),
            ("batch_size", self.batch_size),
            ("least_rows", self.least_rows),
        ] {
            if value == 0 {
                return bad(field, "at least 1", 0.0);
            }
        }
        if !(self.learning_rate.is_finite() && self.learning_rate > 0.0) {
            return bad("learning_rate", "positive and finite", self.learning_rate);
        }
        if !(self.l2.is_finite() && self.l2 >= 0.0) {
            return bad("l2", "at least 0 and finite", self.l2);
        }
        Ok(())
    }
}
impl Default for ShadowModelSettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// One attack network per class, trained on the answers of shadow models to their own members and non-members.
///
/// The network of class `y` (input: the answer; one hidden layer of ReLU; two outputs, softmax cross-entropy) judges the
/// candidates of class `y`; the score is its log-odds of "member", so that scores are comparable across classes and one
/// ROC can be formed over all of them. Classes are matched by their number, so a shadow that never met a class changes no
/// other. A class with fewer than `least_rows` members or non-members in all shadows together is judged by one network
/// shared by such classes, which reads the true class's entry first and the others in falling order; a
/// [`Note::PooledClass`] says so.
///
/// The shadows must have been trained by the target's exact recipe, privacy included, with other seeds and records
/// ([`crate::mimicry::check`] compares them). With local randomization they are trained on randomized records, and all
/// signals, the target's too, are answers to the original records.
///
/// # Source
/// Shokri et al., *Membership Inference Attacks Against Machine Learning Models*, S&P 2017 (arXiv:1610.05820), sections V-C
/// to V-E; network as in Bernau et al. (arXiv:1912.11328).
#[derive(Debug, Clone, Copy)]
pub struct ShadowModel {
    /// Settings.
    pub settings: ShadowModelSettings,
}
impl ShadowModel {
    /// With default settings.
    pub const DEFAULT: Self = Self { settings: ShadowModelSettings::DEFAULT };
}

const NAME: &str = "shadow_model";
/// Most rows of the network shared by rare classes.
const MOST_SHARED_ROWS: usize = 8_000;

impl Attack for ShadowModel {
    fn name(&self) -> &'static str {
        NAME
    }
    fn title(&self) -> &'static str {
        "shadow models: one network per class learns how answers to members look"
    }
    fn source(&self) -> &'static str {
        "Shokri et al., Membership Inference Attacks Against Machine Learning Models, S&P 2017"
    }
    fn needs(&self) -> Needs {
        Needs { shadows: 1, access: Access::BlackBox, known_membership: false }
    }
    fn run(&self, view: &View<'_>) -> Result<Outcome, Error> {
        self.settings.check()?;
        let (target, shadows) = (view.target(), view.shadows());
        if shadows.is_empty() {
            return Err(Error::TooFewShadows { attack: NAME, needed: 1, have: 0 });
        }
        let seed = view.seed(NAME);
        let classes = collect(shadows, target.classes, self.settings.balance, seed.child("rows"))?;
        let mut candidates = vec![Vec::new(); target.classes];
        for (row, &label) in target.labels.iter().enumerate() {
            candidates[label as usize].push(row);
        }
        let rare = |class: usize| classes[class].len() / 2 < self.settings.least_rows;
        let some_rare = (0..target.classes).any(|c| rare(c) && !candidates[c].is_empty());
        let shared =
            if some_rare { share(&classes, seed.child("shared rows")) } else { Vec::new() };
        // The network shared by rare classes is the last of the list.
        let scores: Vec<Vec<(usize, f64)>> = (0..=target.classes)
            .into_par_iter()
            .map(|class| {
                let (rows, order, judged): (&[Example], _, Vec<usize>) = if class == target.classes
                {
                    let rare = (0..target.classes).filter(|&c| rare(c));
                    (
                        &shared,
                        Order::TrueClassFirst,
                        rare.flat_map(|c| candidates[c].clone()).collect(),
                    )
                } else if rare(class) {
                    return Ok(Vec::new());
                } else {
                    (&classes[class], Order::ByClass, candidates[class].clone())
                };
                if judged.is_empty() {
                    return Ok(Vec::new());
                }
                view.go_on()?;
                let form = Form { input: self.settings.input, order };
                let seed = seed.child("network").index(class as u64);
                let network = Network::fit(&self.settings, target.classes, form, rows, seed)?;
                network.judge(target, &judged)
            })
            .collect::<Result<_, Error>>()?;
        let mut by_row = vec![0.0; target.len()];
        for (row, score) in scores.into_iter().flatten() {
            by_row[row] = score;
        }
        let judged: Vec<(RecordId, f64)> = target.records.iter().copied().zip(by_row).collect();
        let notes = (0..target.classes)
            .filter(|&class| rare(class) && !candidates[class].is_empty())
            .map(|class| Note::PooledClass { class: class as u32, rows: classes[class].len() / 2 })
            .collect();
        Ok(Outcome { scores: Scores { judged, not_assessable: Vec::new() }, notes })
    }
}

/// A row of a shadow model.
#[derive(Debug, Clone, Copy)]
struct Example<'a> {
    signals: &'a ModelSignals,
    row: usize,
    member: bool,
}

/// For each class, as many members as non-members of every shadow, alternating.
fn collect(
    shadows: &[Shadow],
    classes: usize,
    balance: Balance,
    seed: Seed,
) -> Result<Vec<Vec<Example<'_>>>, Error> {
    let mut examples = vec![Vec::new(); classes];
    for (number, shadow) in shadows.iter().enumerate() {
        let mut sides = vec![[Vec::new(), Vec::new()]; classes];
        for (row, (&label, &member)) in shadow.signals.labels.iter().zip(&shadow.member).enumerate()
        {
            sides[label as usize][usize::from(member)].push(row);
        }
        let balanced = |side: &[Vec<usize>; 2]| side[0].len().min(side[1].len());
        let most = match balance {
            Balance::Stratified => usize::MAX,
            Balance::Equal => sides.iter().map(balanced).filter(|&n| n > 0).min().unwrap_or(0),
        };
        for (class, rows) in sides.iter_mut().enumerate() {
            let count = balanced(rows).min(most);
            let mut rng = seed.index(number as u64).index(class as u64).rng();
            for side in rows.iter_mut() {
                shuffle(side, &mut rng);
            }
            for i in 0..count {
                for (side, member) in rows.iter().zip([false, true]) {
                    examples[class].push(Example {
                        signals: &shadow.signals,
                        row: side[i],
                        member,
                    });
                }
            }
        }
    }
    if examples.iter().all(Vec::is_empty) {
        let members = shadows.iter().flat_map(|s| &s.member).filter(|m| **m).count();
        let all: usize = shadows.iter().map(|s| s.member.len()).sum();
        let non_members = all - members;
        return Err(Error::OneSided { attack: NAME, needed: 1, members, non_members });
    }
    Ok(examples)
}

/// Examples of all classes for the network shared by rare ones: pairs of a member and a non-member, chosen at random.
fn share<'a>(classes: &[Vec<Example<'a>>], seed: Seed) -> Vec<Example<'a>> {
    let pairs: Vec<&[Example<'a>]> = classes.iter().flat_map(|rows| rows.chunks_exact(2)).collect();
    let chosen = permutation(pairs.len(), &mut seed.rng()).into_iter().take(MOST_SHARED_ROWS / 2);
    chosen.flat_map(|pair| pairs[pair].iter().copied()).collect()
}

/// How an answer is laid out for a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    ByClass,
    TrueClassFirst,
}
#[derive(Debug, Clone, Copy)]
struct Form {
    input: InputForm,
    order: Order,
}
impl Form {
    /// Appends one input row, not yet standardised.
    fn append(self, signals: &ModelSignals, row: usize, out: &mut Vec<f32>) {
        let (start, label) = (out.len(), signals.labels[row] as usize);
        out.extend_from_slice(signals.logits_of(row));
        let new = &mut out[start..];
        match self.input {
            InputForm::Probabilities => kernels::softmax_rows(new, signals.classes, |_, _, _| ()),
            InputForm::LogProbabilities => {
                let top = new.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let sum: f64 = new.iter().map(|z| f64::from(z - top).exp()).sum();
                let shift = f64::from(top) + sum.ln();
                for value in new.iter_mut() {
                    *value = (f64::from(*value) - shift) as f32;
                }
            }
        }
        if self.order == Order::TrueClassFirst {
            new.swap(0, label);
            new[1..].sort_unstable_by(|x, y| y.total_cmp(x));
        }
    }
}

/// A trained attack network and how its inputs are scaled.
#[derive(Debug)]
struct Network {
    graph: Graph,
    form: Form,
    /// Mean and one over the standard deviation of each input, for logarithms.
    scaling: Option<(Vec<f32>, Vec<f32>)>,
}
impl Network {
    fn fit(
        settings: &ShadowModelSettings,
        width: usize,
        form: Form,
        examples: &[Example<'_>],
        seed: Seed,
    ) -> Result<Self, Error> {
        let mut inputs = Vec::with_capacity(examples.len() * width);
        for example in examples {
            form.append(example.signals, example.row, &mut inputs);
        }
        let scaling = (form.input == InputForm::LogProbabilities).then(|| scaling(&inputs, width));
        scale(&mut inputs, scaling.as_ref());
        let labels: Vec<u32> = examples.iter().map(|e| u32::from(e.member)).collect();
        let recipe = ClassifierRecipe {
            hidden: &[settings.hidden],
            activation: Activation::Relu,
            classes: 2,
            epochs: settings.epochs,
            batch_size: settings.batch_size,
            learning_rate: settings.learning_rate,
            l2: settings.l2,
        };
        let examples = Labelled { width, features: &inputs, labels: &labels };
        let graph = fit_classifier(&recipe, examples, None, seed)?;
        Ok(Self { graph, form, scaling })
    }
    /// Log-odds of "member" of rows of the target.
    fn judge(&self, target: &ModelSignals, rows: &[usize]) -> Result<Vec<(usize, f64)>, Error> {
        let width = target.classes;
        let mut inputs = Vec::with_capacity(rows.len() * width);
        for &row in rows {
            self.form.append(target, row, &mut inputs);
        }
        scale(&mut inputs, self.scaling.as_ref());
        let mut workspace = Workspace::new();
        let logits = self.graph.forward(&Rows::Dense { width, values: &inputs }, &mut workspace)?;
        let odds = logits
            .as_chunks::<2>()
            .0
            .iter()
            .map(|[out, member]| f64::from(*member) - f64::from(*out));
        Ok(rows.iter().copied().zip(odds).collect())
    }
}

/// Mean and one over the standard deviation of each column; 1 where a column does not vary.
fn scaling(values: &[f32], width: usize) -> (Vec<f32>, Vec<f32>) {
    let count = (values.len() / width) as f64;
    let (mut mean, mut square) = (vec![0.0_f64; width], vec![0.0_f64; width]);
    for row in values.chunks_exact(width) {
        for (mean, &value) in mean.iter_mut().zip(row) {
            *mean += f64::from(value) / count;
        }
    }
    for row in values.chunks_exact(width) {
        for ((square, &mean), &value) in square.iter_mut().zip(&mean).zip(row) {
            *square += (f64::from(value) - mean).powi(2) / count;
        }
    }
    let inverse = |&s: &f64| if s > 1e-12 { s.sqrt().recip() as f32 } else { 1.0 };
    (mean.iter().map(|&m| m as f32).collect(), square.iter().map(inverse).collect())
}
fn scale(values: &mut [f32], scaling: Option<&(Vec<f32>, Vec<f32>)>) {
    let Some((mean, inverse)) = scaling else { return };
    for row in values.chunks_exact_mut(mean.len()) {
        for ((value, mean), inverse) in row.iter_mut().zip(mean).zip(inverse) {
            *value = (*value - mean) * inverse;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelFacts;

    /// Logits `(0, ln(1/p - 1), ..)` do: two classes, the first with probability `p`.
    fn signals(first_id: u32, rows: &[(u32, f32)]) -> ModelSignals {
        ModelSignals {
            records: (first_id..).take(rows.len()).map(RecordId).collect(),
            labels: rows.iter().map(|r| r.0).collect(),
            classes: 2,
            logits: rows.iter().flat_map(|&(_, p)| [0.0, (p.recip() - 1.0).ln()]).collect(),
            last_layer_inputs: None,
        }
    }
    fn shadow(first_id: u32, rows: &[(u32, f32, bool)]) -> Shadow {
        let answers: Vec<(u32, f32)> = rows.iter().map(|r| (r.0, r.1)).collect();
        Shadow {
            signals: signals(first_id, &answers),
            member: rows.iter().map(|r| r.2).collect(),
            facts: ModelFacts::default(),
        }
    }
    fn score(settings: ShadowModelSettings, target: &ModelSignals, shadows: &[Shadow]) -> Outcome {
        let view = View::new(target, Seed::root(1)).unwrap().with_shadows(shadows).unwrap();
        ShadowModel { settings }.run(&view).unwrap()
    }

    /// By hand: among answers of 0.9 three in four are members, among answers of 0.4 one in four. The best log-odds are
    /// `ln 3` and `-ln 3`, and cross-entropy finds them.
    #[test]
    fn the_score_is_the_log_odds_of_membership_given_the_answer() {
        let mut rows = Vec::new();
        for (p, members, non_members) in [(0.9, 300, 100), (0.4, 100, 300)] {
            rows.extend((0..members).map(|_| (0, p, true)));
            rows.extend((0..non_members).map(|_| (0, p, false)));
        }
        let settings = ShadowModelSettings {
            learning_rate: 1e-3,
            epochs: 300,
            ..ShadowModelSettings::DEFAULT
        };
        let target = signals(5000, &[(0, 0.9), (0, 0.4)]);
        for input in [InputForm::Probabilities, InputForm::LogProbabilities] {
            let settings = ShadowModelSettings { input, ..settings };
            let scores = score(settings, &target, &[shadow(0, &rows)]).scores.judged;
            assert!((scores[0].1 - 3f64.ln()).abs() < 0.1, "{scores:?}");
            assert!((scores[1].1 + 3f64.ln()).abs() < 0.1, "{scores:?}");
        }
    }

    /// In class 0 members are answered 0.9 and non-members 0.6, in class 1 the other way round: one network for all
    /// classes that saw the answer only would be right half of the time.
    #[test]
    fn every_class_has_a_network_of_its_own() {
        let mut rows = Vec::new();
        for _ in 0..30 {
            rows.extend([(0, 0.9, true), (0, 0.6, false), (1, 0.6, true), (1, 0.9, false)]);
        }
        let target = signals(5000, &[(0, 0.9), (0, 0.6), (1, 0.6), (1, 0.9)]);
        let outcome =
            score(ShadowModelSettings::DEFAULT, &target, &[shadow(0, &rows), shadow(200, &rows)]);
        let signs: Vec<bool> = outcome.scores.judged.iter().map(|s| s.1 > 0.0).collect();
        assert_eq!(signs, [true, false, true, false], "{outcome:?}");
        assert!(outcome.notes.is_empty());
    }

    /// Class 1 is missing from one shadow and rare in the other: it is judged all the same, by what other classes teach,
    /// and class 0 is matched by its number.
    #[test]
    fn a_rare_class_is_judged_by_the_shared_network_and_named() {
        let mut rows = Vec::new();
        for _ in 0..40 {
            rows.extend([(0, 0.95, true), (0, 0.5, false)]);
        }
        let with_class_1: Vec<_> =
            rows.iter().copied().chain([(1, 0.05, true), (1, 0.5, false)]).collect();
        let target = signals(5000, &[(0, 0.95), (0, 0.5), (1, 0.05), (1, 0.5)]);
        let outcome = score(
            ShadowModelSettings::DEFAULT,
            &target,
            &[shadow(0, &rows), shadow(200, &with_class_1)],
        );
        assert_eq!(outcome.notes, [Note::PooledClass { class: 1, rows: 1 }]);
        let signs: Vec<bool> = outcome.scores.judged.iter().map(|s| s.1 > 0.0).collect();
        assert_eq!(signs, [true, false, true, false], "{outcome:?}");
    }

    /// By hand: class 0 has 3 members and 1 non-member in the first shadow and 2 and 2 in the second, class 1 has 4 and 4
    /// and none. Stratified: 2 (1 + 2) = 6 and 2 * 4 = 8 rows. Equal: shadow by shadow 1, then 2: 6 and 2 rows.
    #[test]
    fn members_and_non_members_are_balanced_within_class_and_shadow() {
        let mut first = vec![(0, 0.5, true), (0, 0.5, true), (0, 0.5, true), (0, 0.5, false)];
        first.extend([(1, 0.5, true); 4]);
        first.extend([(1, 0.5, false); 4]);
        let second = [(0, 0.5, true), (0, 0.5, true), (0, 0.5, false), (0, 0.5, false)];
        let shadows = [shadow(0, &first), shadow(100, &second)];
        for (balance, expected) in [(Balance::Stratified, [6, 8]), (Balance::Equal, [6, 2])] {
            let classes = collect(&shadows, 2, balance, Seed::root(1)).unwrap();
            assert_eq!([classes[0].len(), classes[1].len()], expected);
            for rows in classes {
                assert_eq!(rows.iter().filter(|e| e.member).count() * 2, rows.len());
                let mut seen: Vec<_> = rows.iter().map(|e| e.signals.records[e.row]).collect();
                seen.sort_unstable();
                seen.dedup();
                assert_eq!(seen.len(), rows.len(), "without replacement");
            }
        }
    }

    #[test]
    fn missing_shadows_and_one_sided_shadows_are_refused_with_counts() {
        let target = signals(5000, &[(0, 0.9)]);
        let view = View::new(&target, Seed::root(1)).unwrap();
        let error = ShadowModel::DEFAULT.run(&view).unwrap_err();
        assert_eq!(error, Error::TooFewShadows { attack: NAME, needed: 1, have: 0 });
        let all_in = [shadow(0, &[(0, 0.9, true), (1, 0.9, true)])];
        let view = view.with_shadows(&all_in).unwrap();
        let error = ShadowModel::DEFAULT.run(&view).unwrap_err();
        assert_eq!(error, Error::OneSided { attack: NAME, needed: 1, members: 2, non_members: 0 });
    }

    #[test]
    fn stopping_on_request_is_an_error_of_its_own() {
        let target = signals(5000, &[(0, 0.9)]);
        let rows: Vec<_> = (0..60).map(|i| (0, 0.9, i % 2 == 0)).collect();
        let shadows = [shadow(0, &rows)];
        let view = View::new(&target, Seed::root(1)).unwrap().with_shadows(&shadows).unwrap();
        let error = ShadowModel::DEFAULT.run(&view.with_stop(&|| true)).unwrap_err();
        assert_eq!(error, Error::Stopped);
    }
}
