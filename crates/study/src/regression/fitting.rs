//! One fit of a file, and what is done with the model.
use super::draw::{answer, mean_squared, no_attribute};
use crate::Error;
use dosimeter_attack::inversion::{Accuracy, Discriminant, ErrorModel, Inversion, Marginal};
use dosimeter_audit::clinical::{Arm, Patient, Trial};
use dosimeter_data::regression::warfarin::{self, DoseModel};
use dosimeter_data::regression::{Iwpc, IwpcTarget, Layout, Reading};
use dosimeter_data::{RegressionSpec, RegressionTable};
use dosimeter_privacy::accountants::Pld;
use dosimeter_privacy::{
    Accountant, Delta, Epsilon, Generator, NoiseRng, NoiseSource, Relation, Sampler,
};
use dosimeter_train::regression::{
    self as train, Bounds, Budget, Claim, Clipped, Input, LinearModel, Regression, Rows,
    Statistics, Summation,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;

/// How a file is fitted.
#[derive(Debug, Clone, PartialEq)]
pub struct FitOptions {
    /// Name of the mechanism.
    pub mechanism: String,
    /// Loss, nats, finite and above 0.
    pub epsilon: f64,
    /// Failure probability, at least 0 and below 1; left out, a hundredth of one over the rows, and 0 for a mechanism of pure loss.
    pub delta: Option<f64>,
    /// Length at which scaled rows are cut off.
    pub radius: Option<f64>,
    /// For numbers that can be had again: the model is then not to be given away. Without, noise comes from the operating system.
    pub seed: Option<u64>,
    /// Threads that parse a CSV, one per core if left out. Changes no number.
    pub threads: Option<NonZeroUsize>,
}

/// A model and what is promised of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fitted {
    /// In the units of the table.
    pub model: LinearModel,
    /// Which mechanism.
    pub mechanism: String,
    /// What it promises.
    pub claim: Claim,
    /// Proved loss, nats; `None`: nothing is proved.
    pub epsilon_upper: Option<f64>,
    /// At this failure probability.
    pub delta: f64,
    /// Neighbours.
    pub relation: Relation,
    /// What is protected.
    pub unit: String,
    /// Who proved it.
    pub accountant: String,
    /// Where the noise came from.
    pub noise: Vec<NoiseSource>,
    /// Rows, a public number.
    pub rows: u64,
    /// What a missing value of a column counts as, by public rules; in other columns it is refused.
    #[serde(default)]
    pub missing: BTreeMap<String, String>,
}

/// Most columns of a row, every category having one for each of its values but the first. The work grows with their cube, the memory with
/// their square.
pub const MOST_COLUMNS: usize = 4_000;

/// How long `ada_ssp` takes for so many columns beside the reading of the rows, seconds on an ordinary core, roughly; mechanisms that solve
/// for many parameters or parts take as many times longer.
#[must_use]
pub fn fit_seconds(columns: usize) -> f64 {
    SECONDS_PER_CUBE * (columns as f64).powi(3)
}
/// `ada_ssp` on a core of an AMD EPYC took 1.0 s for 1,000 columns and 9.9 s for 2,000.
const SECONDS_PER_CUBE: f64 = 1.2e-9;

pub(super) fn check_width(table: &RegressionSpec, columns: usize) -> Result<(), Error> {
    if columns <= MOST_COLUMNS {
        return Ok(());
    }
    Err(Error::Setting(format!(
        "{}: {columns} columns once every category has its own, at most {MOST_COLUMNS} can be fitted",
        table.path().display()
    )))
}

/// Fits to a table, of which a file is read once, block by block; mechanisms that look at rows more than once hold them in memory. The
/// counts of what was moved into its bounds are of the data and no part of what may be given away.
///
/// # Errors
/// What is wrong with the file or an option.
pub fn fit(table: &RegressionSpec, options: &FitOptions) -> Result<(Fitted, Clipped), Error> {
    let mechanism = train::regression(&options.mechanism).ok_or_else(|| {
        let known: Vec<&str> = train::REGRESSIONS.iter().map(|r| r.name()).collect();
        let (name, known) = (&options.mechanism, known.join(", "));
        Error::Setting(format!("there is no mechanism `{name}`; there are {known}"))
    })?;
    let (epsilon, delta) = (options.epsilon, options.delta);
    if !(epsilon > 0.0 && epsilon.is_finite()) {
        let got = format!("epsilon must be finite and above 0, got {epsilon:?}");
        return Err(Error::Setting(got));
    }
    if delta.is_some_and(|d| !(0.0..1.0).contains(&d)) {
        return Err(Error::Setting("delta must be at least 0 and below 1".into()));
    }
    let layout = table.layout(true)?;
    check_width(table, layout.width())?;
    let mut bounds = Bounds::of(&layout)?;
    bounds.radius = options.radius;
    let mut summation = Summation::new(&bounds)?;
    let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let threads = options.threads.unwrap_or_else(cores);
    let counts = table.each_block::<Error>(Reading { threads, needs_target: true }, |block| {
        let targets = block.targets().unwrap_or_default();
        Ok(summation.add(block.features(), targets, |at| block.numbers()[at])?)
    })?;
    let statistics = summation.finish();
    // The file's rows have been moved into their bounds by the time they are scaled.
    let mut clipped = statistics.clipped;
    clipped.features =
        counts.clipped.iter().filter(|(k, _)| **k != layout.target.name).map(|(_, n)| n).sum();
    clipped.targets = counts.clipped.get(&layout.target.name).copied().unwrap_or_default();
    clipped.missing = counts.imputed.values().sum();
    if statistics.rows == 0 {
        return Err(Error::Setting(format!(
            "{}: needed at least one row, got none",
            table.path().display()
        )));
    }
    // A pure loss needs none.
    let usual = if mechanism.claim() == Claim::Pure { 0.0 } else { 0.01 / statistics.rows as f64 };
    let delta = delta.unwrap_or(usual);
    let budget = Budget { epsilon: Epsilon::new(epsilon)?, delta: Delta::new(delta)? };
    let fit = released(mechanism, &bounds, &statistics, None, budget, options.seed);
    let fit = match fit {
        Err(Error::Regression(train::Error::NeedsRows { .. })) => {
            let rows = Rows::of(&table.load()?, &bounds)?;
            released(mechanism, &bounds, &statistics, Some(&rows), budget, options.seed)?
        }
        fit => fit?,
    };
    let upper = Pld.epsilon_upper(&fit.ledger, Relation::ReplaceOne, budget.delta)?;
    let proved = matches!(mechanism.claim(), Claim::Pure | Claim::Approximate);
    let names = layout.columns.iter().map(|c| c.name.clone()).collect();
    let fitted = Fitted {
        model: fit.model(names, layout.target.name, bounds),
        mechanism: mechanism.name().to_owned(),
        claim: mechanism.claim(),
        epsilon_upper: (!upper.is_unbounded() && proved).then(|| upper.get()),
        delta,
        relation: Relation::ReplaceOne,
        unit: "record".to_owned(),
        accountant: Pld.name().to_owned(),
        noise: fit.ledger.noise().to_vec(),
        rows: statistics.rows,
        missing: table.missing_rules()?,
    };
    Ok((fitted, clipped))
}

/// With the exact sampler where the mechanism has one.
fn released(
    mechanism: &dyn Regression,
    bounds: &Bounds,
    statistics: &Statistics,
    rows: Option<&Rows>,
    budget: Budget,
    seed: Option<u64>,
) -> Result<train::Fit, Error> {
    let input = Input::new(bounds, statistics, rows);
    let noise = |sampler| {
        let generator = match seed {
            Some(_) => Generator::ReplayableChaCha,
            None => Generator::OperatingSystem,
        };
        let bytes =
            dosimeter_data::Seed::root(seed.unwrap_or_default()).child("regress fit").bytes();
        NoiseRng::with_source(NoiseSource { generator, sampler }, bytes)
    };
    match mechanism.fit(&input, budget, &mut noise(Sampler::Exact)?) {
        Err(train::Error::Privacy(dosimeter_privacy::Error::NoExactSampler { .. })) => {
            Ok(mechanism.fit(&input, budget, &mut noise(Sampler::Float)?)?)
        }
        fit => Ok(fit?),
    }
}

/// Reads what [`fit`] gave, as JSON.
///
/// # Errors
/// [`Error::Disk`], [`Error::Model`] for a file that is none.
pub fn read_model(file: &Path) -> Result<Fitted, Error> {
    let text = crate::file::text_of(file)?;
    let wrong = |what: String| Error::Model { path: file.to_owned(), what };
    let fitted: Fitted = serde_json::from_str(&text)
        .map_err(|e| wrong(format!("not a model written by `regress fit`: {e}")))?;
    let (model, width) = (&fitted.model, fitted.model.bounds.features.len());
    let deviations = model.noise_deviations.as_ref().map_or(width, Vec::len);
    if model.features.len() != width || model.coefficients.len() != width || deviations != width {
        let have = (model.features.len(), model.coefficients.len());
        return Err(wrong(format!(
            "{} names and {} coefficients for {width} bounds",
            have.0, have.1
        )));
    }
    let finite = model.coefficients.iter().chain([&model.intercept]).all(|x| x.is_finite());
    if finite { Ok(fitted) } else { Err(wrong("a coefficient is not finite".into())) }
}

/// A model means nothing for other columns, or for numbers cut off at other bounds.
fn check_layout(fitted: &Fitted, layout: &Layout) -> Result<(), Error> {
    let model = &fitted.model;
    let names: Vec<&str> = layout.columns.iter().map(|c| c.name.as_str()).collect();
    if names != model.features || layout.target.name != model.target {
        return Err(Error::Setting(format!(
            "the model needs the columns {} and the target {}; the bounds have {} and {}",
            model.features.join(", "),
            model.target,
            names.join(", "),
            layout.target.name
        )));
    }
    let bounds = Bounds::of(layout)?;
    let other = bounds.features.iter().zip(&model.bounds.features).position(|(a, b)| a != b);
    match other {
        None if bounds.target == model.bounds.target => Ok(()),
        None => Err(Error::Setting("the model was fitted with other bounds of the target".into())),
        Some(column) => {
            let name = &model.features[column];
            Err(Error::Setting(format!("the model was fitted with other bounds of `{name}`")))
        }
    }
}

/// The predictions for a table with the columns of the model, and the mean squared error if it has the target too.
///
/// # Errors
/// What is wrong with the file; [`Error::Setting`] if its columns are others.
pub fn predict(fitted: &Fitted, table: &RegressionSpec) -> Result<(Vec<f64>, Option<f64>), Error> {
    check_layout(fitted, &table.layout(false)?)?;
    let (mut predictions, mut squares, mut judged) = (Vec::new(), 0.0, 0_usize);
    table.each_block::<Error>(Reading { needs_target: false, ..Reading::default() }, |block| {
        for (row, features, target) in block.rows() {
            let prediction = fitted.model.predict(row, features)?;
            predictions.push(prediction);
            if let Some(target) = target {
                squares += (prediction - target).powi(2);
                judged += 1;
            }
        }
        Ok(())
    })?;
    let error = (judged > 0).then(|| squares / judged as f64);
    Ok((predictions, error))
}

/// The model as an ONNX file: one linear layer that reads features in the units of the table. It does not move them into their bounds.
///
/// # Errors
/// [`Error::Setting`] if it cannot be written.
pub fn onnx(fitted: &Fitted) -> Result<Vec<u8>, Error> {
    let graph = fitted.model.graph()?;
    dosimeter_model::onnx::write(&graph).map_err(|e| Error::Setting(format!("writing ONNX: {e}")))
}

/// What is guessed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvertOptions {
    /// An attribute with categories.
    pub attribute: String,
    /// Other columns or attributes that the attacker does not know.
    pub unknown: Vec<String>,
    /// Divides the rows.
    pub seed: u64,
}
/// Share of rows guessed right, with its exact 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// The share.
    pub value: f64,
    /// Lower limit.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
    /// Right guesses.
    pub right: u64,
    /// Rows.
    pub rows: u64,
}
/// An inversion beside what is guessed without the model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Inverted {
    /// From the model, the known attributes and the response.
    pub with_model: Share,
    /// The most frequent value.
    pub prior: Share,
    /// From the known attributes.
    pub without_model: Share,
    /// From the known attributes and the response.
    pub ideal: Share,
    /// As `with_model`, with responses dealt out anew.
    pub null: Share,
}

/// Parts into which the numbers of an unknown column are cut.
const BINS: usize = 10;

/// Inverts a model on half of a table's rows; the other half is the attacker's, for priors, the model's error and guesses without it.
///
/// # Errors
/// What is wrong with the file; [`Error::Setting`] for a column that there is not.
pub fn invert(
    fitted: &Fitted,
    table: &RegressionSpec,
    options: &InvertOptions,
) -> Result<Inverted, Error> {
    let failed = |source| Error::Attack {
        attack: "inversion".into(),
        setting: fitted.mechanism.clone(),
        source,
    };
    let table = table.load()?;
    check_layout(fitted, &table.layout)?;
    let seed = dosimeter_data::Seed::root(options.seed).child("regress invert");
    let (attacker, judged) = table.split(table.len() / 2, seed)?;
    let group = table.layout.group(&options.attribute);
    let group = group.ok_or_else(|| Error::Setting(no_attribute(&table, &options.attribute)))?;
    let target = Marginal::of_group(group, &attacker).map_err(failed)?;
    let unknown = options.unknown.iter().map(|name| {
        if let Some(group) = table.layout.group(name) {
            return Marginal::of_group(group, &attacker).map_err(failed);
        }
        // A column of a category is known or not with all of its others.
        let column = table.layout.columns.iter().position(|c| c.name == *name && c.group.is_none());
        let column = column.ok_or_else(|| Error::Setting(no_column(&table, name)))?;
        Marginal::of_number(column, &attacker, BINS.min(attacker.len())).map_err(failed)
    });
    let unknown = unknown.collect::<Result<Vec<_>, Error>>()?;
    let answer = answer(&fitted.model);
    let deviation = mean_squared(&attacker, &answer).sqrt().max(1e-9);
    let errors = ErrorModel::Gaussian { deviation };
    let attack = Inversion::new(target.clone(), unknown.clone(), errors).map_err(failed)?;
    let fit = |with| Discriminant::fit(&attacker, &target, &unknown, with).map_err(failed);
    let (without, ideal) = (fit(false)?, fit(true)?);
    let of = |guess: &(dyn Fn(&[f64], f64) -> Option<usize> + Sync)| {
        Accuracy::of(&judged, &target, 0.95, guess).map(share).map_err(failed)
    };
    Ok(Inverted {
        with_model: attack.accuracy(&judged, &answer, 0.95).map(share).map_err(failed)?,
        prior: of(&|_, _| Some(target.mode()))?,
        without_model: of(&|x, y| without.guess(x, y))?,
        ideal: of(&|x, y| ideal.guess(x, y))?,
        null: attack.null(&judged, &answer, 0.95, seed).map(share).map_err(failed)?,
    })
}
fn share(accuracy: Accuracy) -> Share {
    let (i, right, rows) = (accuracy.share, accuracy.right, accuracy.records);
    Share { value: i.value, low: i.low, high: i.high, right, rows }
}

fn no_column(table: &RegressionTable, name: &str) -> String {
    let numbers = table.layout.columns.iter().filter(|c| c.group.is_none()).map(|c| &c.name);
    let known: Vec<&str> =
        table.layout.groups.iter().map(|g| &g.name).chain(numbers).map(String::as_str).collect();
    format!("there is no column `{name}` that may be unknown; there are: {}", known.join(", "))
}

/// How doses are tried out.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulateOptions {
    /// The IWPC's table.
    pub iwpc: std::path::PathBuf,
    /// The first so many of its patients.
    pub patients: usize,
    /// The reference arm, milligrams a day: 0 to 100.
    pub fixed_mg: f64,
    /// Every number follows from it.
    pub seed: u64,
}
/// The doses of models, and of the IWPC's published ones, in a simulated trial. What a model predicts is told by its target's name.
///
/// # Errors
/// What is wrong with the file; [`Error::Setting`] for a model of other features or another target.
pub fn simulate(
    models: &[(String, Fitted)],
    options: &SimulateOptions,
) -> Result<dosimeter_audit::clinical::Report, Error> {
    super::simulation::check(options.patients, options.fixed_mg)
        .map_err(|(field, what)| Error::Setting(format!("{field}: {what}")))?;
    let iwpc = |target| Iwpc { path: options.iwpc.clone(), target };
    let kept = iwpc(IwpcTarget::SquareRootWeeklyMg).patients()?.kept;
    let who: Vec<&warfarin::Patient> = kept.iter().take(options.patients).collect();
    let patients: Vec<Patient> = who.iter().map(|p| Patient::from(*p)).collect();
    let mut arms = vec![Arm::from_fn("iwpc pharmacogenetic", &who, |p| {
        warfarin::daily_mg(DoseModel::PHARMACOGENETIC.predict(&p.features()).max(0.0))
    })];
    let targets = [IwpcTarget::SquareRootWeeklyMg, IwpcTarget::WeeklyMg, IwpcTarget::DailyMg];
    for (name, fitted) in models {
        let model = &fitted.model;
        let layout = warfarin::layout(IwpcTarget::DailyMg.target());
        let same = model.features.iter().eq(layout.columns.iter().map(|c| &c.name));
        let target = targets.iter().find(|t| t.target().name == model.target);
        let (true, Some(target)) = (same, target) else {
            let known: Vec<String> = targets.iter().map(|t| t.target().name).collect();
            return Err(Error::Setting(format!(
                "`{name}` is not a model of the IWPC's features and of one of: {}",
                known.join(", ")
            )));
        };
        let dose = |p: &&warfarin::Patient| {
            super::simulation::daily_mg(
                *target,
                model.predict(1, &p.features()).unwrap_or_default(),
            )
        };
        arms.push(Arm::from_fn(name, &who, dose));
    }
    let fixed = Arm::fixed("fixed", who.len(), options.fixed_mg);
    let seed = dosimeter_data::Seed::root(options.seed).child("regress simulate");
    Trial::default()
        .simulate(&patients, &fixed, &arms, seed)
        .map_err(|source| Error::Audit { setting: "the simulated trial".into(), source })
}
