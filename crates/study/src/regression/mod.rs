//! Studies of private linear regression: error, inversion and clinical risk over epsilon and over the share of the data, for every
//! mechanism on the same splits.
//!
//! A study file with a `[regression]` table is one of these; see `docs/guide/regression.md`.
mod draw;
mod fitting;
mod plan;
mod report;
mod session;
mod simulation;

pub use dosimeter_audit::Interval;
pub use dosimeter_data::RegressionSpec;
pub use dosimeter_data::regression::{BoundedFile, Iwpc, IwpcTarget};
pub use dosimeter_privacy::Sampler;
pub use fitting::{
    FitOptions, Fitted, InvertOptions, Inverted, MOST_COLUMNS, Share, SimulateOptions, fit,
    fit_seconds, invert, onnx, predict, read_model, simulate,
};
pub use plan::{PlannedFit, RegressionPlan};
pub use report::{Baselines, Cell, Measured, RegressionReport, Risks};
pub use session::{Progress, RegressionSession, TableFacts, is_regression, table_facts};

use crate::Error;
use crate::source::Problem;
use dosimeter_train::regression::{REGRESSIONS, regression};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What a study file of this kind holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegressionStudy {
    /// Name, for people.
    pub name: String,
    /// What it is about.
    #[serde(default)]
    pub description: Option<String>,
    /// Every number follows from it.
    #[serde(default = "one")]
    pub seed: u64,
    /// The table.
    pub regression: RegressionSpec,
    /// What is fitted.
    #[serde(default)]
    pub fit: FitPlan,
    /// An attribute to be guessed; left out, none is.
    #[serde(default)]
    pub inversion: Option<InversionPlan>,
    /// A simulated trial of the doses; for `kind = "iwpc"` alone.
    #[serde(default)]
    pub simulation: Option<SimulationPlan>,
    /// Fits to less of the data.
    #[serde(default)]
    pub shares: Option<SharesPlan>,
}
const fn one() -> u64 {
    1
}

/// Which fits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FitPlan {
    /// Names; all if left out.
    pub mechanisms: Vec<String>,
    /// Losses, nats, each finite and above 0.
    pub epsilons: Vec<f64>,
    /// Failure probability of approximate mechanisms; a hundredth of one over the fitted rows if left out.
    pub delta: Option<f64>,
    /// Splits, each with noise of its own; at least 2.
    pub draws: u32,
    /// Share of the rows that are fitted, in (0, 1); of the others half is the attacker's and half is judged.
    pub fitted: f64,
    /// Length at which scaled rows are cut off; see the `Bounds` of the fit.
    pub radius: Option<f64>,
    /// Of all intervals, in (0, 1).
    pub confidence: f64,
}
impl Default for FitPlan {
    fn default() -> Self {
        Self {
            mechanisms: Vec::new(),
            epsilons: vec![0.1, 0.3, 1.0, 3.0, 10.0],
            delta: None,
            draws: 100,
            fitted: 0.8,
            radius: None,
            confidence: 0.95,
        }
    }
}
/// What is guessed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InversionPlan {
    /// The attribute, by its name in the table's layout.
    pub attribute: String,
}
/// What is simulated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SimulationPlan {
    /// Patients of each draw, from the judged ones; at least 2.
    pub patients: usize,
    /// The reference arm's dose, milligrams a day: 0 to 100.
    pub fixed_mg: f64,
}
impl Default for SimulationPlan {
    fn default() -> Self {
        Self { patients: 100, fixed_mg: 10.0 }
    }
}
/// Fits to parts of the rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharesPlan {
    /// Of the rows that may be fitted, each in (0, 1].
    pub shares: Vec<f64>,
    /// At this loss, nats.
    pub epsilon: f64,
}

impl RegressionStudy {
    /// Reads and checks a study file; paths in it are relative to it.
    ///
    /// # Errors
    /// [`Error::Disk`], [`Error::Study`] saying what is wrong in which line or field.
    pub fn read(file: &Path) -> Result<Self, Error> {
        Self::parse(file, &crate::file::text_of(file)?)
    }
    /// As [`Self::read`], of text that was read before.
    fn parse(file: &Path, text: &str) -> Result<Self, Error> {
        let mut study: Self = toml::from_str(text).map_err(|e| {
            let before = e.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let (line, what) = (before.matches('\n').count() + 1, e.message().to_owned());
            Error::Study(vec![Problem { file: file.to_owned(), line, field: String::new(), what }])
        })?;
        study
            .check()
            .map_err(|(field, what)| Error::Study(vec![Problem::of(file, text, field, what)]))?;
        let folder = file.parent().unwrap_or_else(|| Path::new(""));
        for path in study.regression.paths_mut() {
            *path = folder.join(&*path);
        }
        Ok(study)
    }
    /// The first setting that is out of its range.
    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        let share = |x: f64| x > 0.0 && x < 1.0;
        let above_0 = |x: &f64| *x > 0.0 && x.is_finite();
        let fit = &self.fit;
        if let Some(name) = fit.mechanisms.iter().find(|n| *n != ORACLE && regression(n).is_none())
        {
            let known: Vec<&str> = REGRESSIONS.iter().map(|r| r.name()).chain([ORACLE]).collect();
            return Err((
                "fit.mechanisms",
                format!("there is no `{name}`; there are {}", known.join(", ")),
            ));
        }
        if self.name.trim().is_empty() {
            return Err(("name", "needed a name".into()));
        }
        let twice = |list: &[f64]| (1..list.len()).any(|i| list[..i].contains(&list[i]));
        let names = &fit.mechanisms;
        if (1..names.len()).any(|i| names[..i].contains(&names[i])) {
            return Err(("fit.mechanisms", "needed each once".into()));
        }
        if twice(&fit.epsilons) {
            return Err(("fit.epsilons", "needed each once".into()));
        }
        if fit.epsilons.is_empty() || !fit.epsilons.iter().all(above_0) {
            return Err(("fit.epsilons", "needed numbers above 0, at least one".into()));
        }
        if fit.delta.is_some_and(|d| !share(d)) {
            return Err(("fit.delta", "needed a number between 0 and 1".into()));
        }
        if fit.draws < 2 {
            return Err(("fit.draws", "needed at least 2".into()));
        }
        for (field, x) in [("fit.fitted", fit.fitted), ("fit.confidence", fit.confidence)] {
            if !share(x) {
                return Err((field, "needed a number between 0 and 1".into()));
            }
        }
        if fit.radius.as_ref().is_some_and(|r| !above_0(r)) {
            return Err(("fit.radius", "needed a number above 0".into()));
        }
        if let Some(shares) = &self.shares {
            if shares.shares.is_empty() || !shares.shares.iter().all(|s| *s > 0.0 && *s <= 1.0) {
                return Err(("shares.shares", "needed numbers above 0 and at most 1".into()));
            }
            if twice(&shares.shares) {
                return Err(("shares.shares", "needed each once".into()));
            }
            if !above_0(&shares.epsilon) {
                return Err(("shares.epsilon", "needed a number above 0".into()));
            }
        }
        if let Some(simulation) = &self.simulation {
            if !matches!(self.regression, RegressionSpec::Iwpc(_)) {
                return Err(("simulation", "needed the patients of `kind = \"iwpc\"`".into()));
            }
            simulation::check(simulation.patients, simulation.fixed_mg).map_err(
                |(field, what)| {
                    let field = if field == "patients" {
                        "simulation.patients"
                    } else {
                        "simulation.fixed_mg"
                    };
                    (field, what)
                },
            )?;
        }
        Ok(())
    }
    /// Which settings that decide a draw, or how draws are put together, are others there. More draws of the same go on.
    pub(crate) fn differing(&self, there: &Self) -> Vec<&'static str> {
        let (here, fit, other) = (self, &self.fit, &there.fit);
        [
            ("seed", here.seed != there.seed),
            ("table", here.regression != there.regression),
            ("mechanisms", fit.mechanisms != other.mechanisms),
            ("epsilons", fit.epsilons != other.epsilons),
            ("delta", fit.delta != other.delta),
            ("fitted", fit.fitted.total_cmp(&other.fitted).is_ne()),
            ("radius", fit.radius != other.radius),
            ("confidence", fit.confidence.total_cmp(&other.confidence).is_ne()),
            ("attribute", here.inversion != there.inversion),
            ("simulation", here.simulation != there.simulation),
            ("shares", here.shares != there.shares),
        ]
        .into_iter()
        .filter_map(|(name, is_other)| is_other.then_some(name))
        .collect()
    }
    /// Mechanisms in the order of the file, or all.
    pub(crate) fn names(&self) -> Vec<&str> {
        if self.fit.mechanisms.is_empty() {
            REGRESSIONS.iter().map(|r| r.name()).chain([ORACLE]).collect()
        } else {
            self.fit.mechanisms.iter().map(String::as_str).collect()
        }
    }
}

/// The name of rls-out with parameters chosen on the judged rows: a registry entry has no such rows.
pub(crate) const ORACLE: &str = "rls_out_oracle";
