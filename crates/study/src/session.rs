//! From a study file to a report in a run directory: what the commands call.
use crate::plan::{Plan, Rate, plan};
use crate::report::{self, Report, Timings};
use crate::run::{self, Speed, Watch};
use crate::store::Store;
use crate::study::Study;
use crate::{Error, file, sizes};
use dosimeter_data::{Dataset, RecordId, Seed, datasets};
use dosimeter_model::kernels;
use dosimeter_train::Training;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A checked study with its data and its plan.
#[derive(Debug)]
pub struct Session {
    /// The study.
    pub study: Study,
    /// Its data.
    pub dataset: Dataset,
    /// Its tasks.
    pub plan: Plan,
}

/// Where a run came from, kept in its directory.
#[derive(Debug, Serialize, Deserialize)]
struct Origin {
    study_file: PathBuf,
}

impl Session {
    /// Reads a study file, loads its data and lays out its tasks.
    ///
    /// # Errors
    /// Every problem of the study file, or what is wrong with the data.
    pub fn open(study_file: &Path) -> Result<Self, Error> {
        Self::of(file::read(study_file)?)
    }
    /// Opens what a run directory was made from.
    ///
    /// # Errors
    /// [`Error::NoReport`] if there is no run, otherwise as [`Session::open`].
    pub fn reopen(root: &Path) -> Result<Self, Error> {
        let text = file::text_of(&root.join("run.json"))
            .map_err(|_| Error::NoReport { path: root.to_owned() })?;
        let origin: Origin = serde_json::from_str(&text).map_err(Error::Decode)?;
        let study = file::text_of(&root.join("study.toml"))?;
        Self::of(file::check(&origin.study_file, &study).map_err(Error::Study)?)
    }
    fn of(study: Study) -> Result<Self, Error> {
        let dataset = load(&study)?;
        check_size(&study, &dataset)?;
        let plan = plan(&study, &dataset, kernels::kernel_name(), measured_rate(&study, &dataset))?;
        sizes::check(&study, &dataset, &plan)?;
        Ok(Self { study, dataset, plan })
    }
    /// Does what is missing and writes `report.json`, `report.html`, the CSV tables and `timings.json`.
    ///
    /// # Errors
    /// [`Error::OtherStudy`] if the directory holds the run of a study of another name, otherwise the first thing that went
    /// wrong; finished tasks are kept.
    pub fn run(&self, root: &Path, speed: Speed, watch: &dyn Watch) -> Result<Report, Error> {
        let store = Store::open(root)?;
        self.refuse_other_study(root)?;
        let origin = Origin { study_file: self.study.file.clone() };
        store.publish("study.toml", self.study.text.as_bytes())?;
        store.publish("run.json", &serde_json::to_vec_pretty(&origin).map_err(Error::Encode)?)?;
        let (report, timings) =
            run::run(&self.study, &self.dataset, &self.plan, &store, speed, watch)?;
        publish(&store, &report, Some(&timings))?;
        Ok(report)
    }
    /// A study that was edited keeps its name; one of another name would lose the report that is there.
    fn refuse_other_study(&self, root: &Path) -> Result<(), Error> {
        let text = file::text_of(&root.join("study.toml")).unwrap_or_default();
        match file::name_in(&text) {
            Some(there) if there != self.study.name => {
                let (path, here) = (root.to_owned(), self.study.name.clone());
                Err(Error::OtherStudy { path, there, here })
            }
            _ => Ok(()),
        }
    }
}

/// Loads the data of a study; generated data depend on its seed.
///
/// # Errors
/// What is wrong with the data.
pub fn load(study: &Study) -> Result<Dataset, Error> {
    let seed = Seed::root(study.seed).child("dataset");
    datasets::load(&study.dataset, seed).map_err(|error| study.refused(error))
}

/// Reads the report of a finished run and writes its pages again.
///
/// # Errors
/// [`Error::NoReport`] if there is none, or what is wrong with it.
pub fn render(root: &Path) -> Result<Report, Error> {
    let report = read_report(root)?;
    let timings = file::text_of(&root.join("timings.json"))
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok());
    publish(&Store::open(root)?, &report, timings.as_ref())?;
    Ok(report)
}

/// Reads the report of a finished run.
///
/// # Errors
/// [`Error::NoReport`] if there is none, or what is wrong with it.
pub fn read_report(root: &Path) -> Result<Report, Error> {
    let path = root.join("report.json");
    let text = file::text_of(&path).map_err(|_| Error::NoReport { path: root.to_owned() })?;
    report::from_json(&text).map_err(|source| Error::BadReport { path, source })
}

/// Writes every form of a report; `report.json` last, so that where it is the others are.
fn publish(store: &Store, report: &Report, timings: Option<&Timings>) -> Result<(), Error> {
    if let Some(timings) = timings {
        store.publish("timings.json", report::timings_to_json(timings)?.as_bytes())?;
    }
    store.publish("report.html", report::html::page(report, timings)?.as_bytes())?;
    for (name, table) in [
        ("summary.csv", report::csv::summary(report)?),
        ("roc.csv", report::csv::roc(report)?),
        ("risk.csv", report::csv::risk(report)?),
    ] {
        store.publish(name, table.as_bytes())?;
    }
    store.publish("report.json", report::to_json(report)?.as_bytes())
}

/// Refuses a network that no machine could train, before something asks for its memory.
fn check_size(study: &Study, dataset: &Dataset) -> Result<(), Error> {
    const MOST_PARAMETERS: u64 = 100_000_000;
    let parameters = crate::plan::parameters(study, dataset);
    if parameters <= MOST_PARAMETERS {
        return Ok(());
    }
    let what = format!(
        "needs a network of at most {MOST_PARAMETERS} parameters, got {parameters} with {} inputs and {} classes",
        dataset.width(),
        dataset.classes
    );
    Err(study.problem("target.hidden", what))
}

/// Times one epoch on a few records of the study's own network, for estimates only. A network that cannot be
/// trained is found out by the run, not here.
fn measured_rate(study: &Study, dataset: &Dataset) -> Rate {
    const RECORDS: u32 = 256;
    let records: Vec<RecordId> =
        (0..RECORDS.min(u32::try_from(dataset.len()).unwrap_or(RECORDS))).map(RecordId).collect();
    let Some(mut recipe) = study.arms.first().and_then(|arm| run::recipe(study, arm).ok()) else {
        return Rate::default();
    };
    (recipe.epochs, recipe.early_stopping) = (1, None);
    let training = Training {
        recipe: &recipe,
        dataset,
        records: &records,
        nominal_size: records.len(),
        validation: &[],
        seed: Seed::root(0),
        noise: study.noise,
        speed: dosimeter_train::Speed::default(),
    };
    let start = Instant::now();
    match dosimeter_train::fit(&training, &dosimeter_train::Unwatched) {
        Ok(_) => Rate::of_epoch(study, dataset, records.len(), start.elapsed().as_secs_f64()),
        Err(_) => Rate::default(),
    }
}
