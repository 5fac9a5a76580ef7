//! From a study file to a report in a run directory: what the commands call.
use crate::frozen_core::{self, Core};
use crate::network::Network;
use crate::plan::{Plan, Rate, plan};
use crate::report::{self, Report, Timings};
use crate::run::{self, Speed, Watch};
use crate::store::Store;
use crate::study::{Arm, Defence, Study};
use crate::{Error, assemble, file, sizes};
use dosimeter_data::{Dataset, RecordId, Seed, datasets};
use dosimeter_model::kernels;
use dosimeter_privacy::Sampler;
use dosimeter_train::{Architecture, Training};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A checked study with its data and its plan.
#[derive(Debug)]
pub struct Session {
    /// The study.
    pub study: Study,
    /// Its data.
    pub dataset: Dataset,
    /// Its frozen core, if it has one.
    pub core: Option<Core>,
    /// Its tasks.
    pub plan: Plan,
}

/// Where a run came from, kept in its directory.
#[derive(Debug, Serialize, Deserialize)]
struct Origin {
    /// Absolute: data lie relative to it, wherever the run is looked at from.
    study_file: PathBuf,
    data_fingerprint: Option<String>,
}

impl Session {
    /// Reads a study file, loads its data and lays out its tasks.
    ///
    /// # Errors
    /// Every problem of the study file, or what is wrong with the data.
    pub fn open(study_file: &Path) -> Result<Self, Error> {
        let study = file::read(study_file)?;
        let dataset = load(&study)?;
        Self::of(study, dataset)
    }
    /// Opens what a run directory was made from.
    ///
    /// # Errors
    /// [`Error::NoReport`] if there is no run, otherwise as [`Session::open`].
    pub fn reopen(root: &Path) -> Result<Self, Error> {
        refuse_regression(root)?;
        let path = root.join("run.json");
        let text = finished(root, &path)?;
        let origin: Origin = serde_json::from_str(&text).map_err(|e| Error::BadArtifact {
            path,
            why: format!("not the origin of a run: {e}"),
        })?;
        let kept = root.join("study.toml");
        let mut study =
            file::check(&origin.study_file, &file::text_of(&kept)?).map_err(|mut problems| {
                // Paths are relative to the study file, problems are in the copy.
                problems.iter_mut().for_each(|p| p.file.clone_from(&kept));
                Error::Study(problems)
            })?;
        study.file = kept;
        let dataset = load(&study)?;
        if origin.data_fingerprint.is_some_and(|then| then != dataset.fingerprint()) {
            return Err(Error::OtherData { path: root.to_owned() });
        }
        Self::of(study, dataset)
    }
    fn of(study: Study, dataset: Dataset) -> Result<Self, Error> {
        let core = Core::load(&study, &dataset)?;
        let network = Network::of(&study, &dataset, core.as_ref())?;
        check_size(&study, &dataset, network)?;
        let rate = measured_rate(&study, &dataset, core.as_ref(), network);
        let plan = plan(&study, &dataset, core.as_ref(), kernels::kernel_name(), rate)?;
        sizes::check(&study, &dataset, &plan)?;
        Ok(Self { study, dataset, core, plan })
    }
    /// Does what is missing and writes `report.json`, `report.html`, the CSV tables and `timings.json`.
    ///
    /// # Errors
    /// [`Error::OtherStudy`] if the directory holds the run of a study of another name, otherwise the first thing that went
    /// wrong; finished tasks are kept.
    pub fn run(&self, root: &Path, speed: Speed, watch: &dyn Watch) -> Result<Report, Error> {
        let store = Store::open(root)?;
        refuse_other_study(root, &self.study.name)?;
        self.remove_other_report(root)?;
        let file = &self.study.file;
        let origin = Origin {
            study_file: std::path::absolute(file)
                .map_err(|source| Error::Disk { path: file.clone(), source })?,
            data_fingerprint: Some(self.plan.data_fingerprint.clone()),
        };
        store.publish("study.toml", self.study.text.as_bytes())?;
        store.publish("run.json", &serde_json::to_vec_pretty(&origin).map_err(Error::Encode)?)?;
        let (report, timings) = run::run(self, &store, speed, watch)?;
        publish(&store, &report, Some(&timings))?;
        Ok(report)
    }
    /// A report of other tasks or limits must not pass for that of this run, should it be stopped.
    fn remove_other_report(&self, root: &Path) -> Result<(), Error> {
        let digest = assemble::study_digest(&self.study, &self.plan)?;
        if read_report(root).is_ok_and(|report| report.provenance.study_digest == digest) {
            return Ok(());
        }
        remove_report(root, &REPORT_FILES)
    }
}

/// Removes what of a report lies in a run directory.
pub(crate) fn remove_report(root: &Path, files: &[&str]) -> Result<(), Error> {
    for name in files {
        let path = root.join(name);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                return Err(Error::Disk { path, source });
            }
            _ => {}
        }
    }
    Ok(())
}

/// A study that was edited keeps its name; one of another name would lose the report that is there.
pub(crate) fn refuse_other_study(root: &Path, name: &str) -> Result<(), Error> {
    let text = file::text_of(&root.join("study.toml")).unwrap_or_default();
    match file::name_in(&text) {
        Some(there) if there != name => {
            let (path, here) = (root.to_owned(), name.to_owned());
            Err(Error::OtherStudy { path, there, here })
        }
        _ => Ok(()),
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
    refuse_regression(root)?;
    let path = root.join("report.json");
    let text = finished(root, &path)?;
    report::from_json(&text).map_err(|source| Error::BadReport { path, source })
}

/// A study of regression has other artifacts and another report.
fn refuse_regression(root: &Path) -> Result<(), Error> {
    if crate::regression::is_regression(&root.join("study.toml")) {
        return Err(Error::RegressionRun { path: root.to_owned() });
    }
    Ok(())
}

/// The text of a file that every finished run has.
fn finished(root: &Path, path: &Path) -> Result<String, Error> {
    file::text_of(path).map_err(|error| match error {
        Error::Disk { source, .. } if source.kind() == ErrorKind::NotFound => {
            Error::NoReport { path: root.to_owned() }
        }
        error => error,
    })
}

/// What [`publish`] writes, the one that readers look for first.
const REPORT_FILES: [&str; 6] =
    ["report.json", "report.html", "summary.csv", "roc.csv", "risk.csv", "timings.json"];

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

/// Refuses networks that no machine could train, before something asks for their memory, and noise that cannot be drawn.
fn check_size(study: &Study, dataset: &Dataset, network: Network) -> Result<(), Error> {
    const MOST_PARAMETERS: u64 = 100_000_000;
    let classes = dataset.classes as u64;
    let refuse = |field: &str, parameters: u64, inputs: u64| {
        let what = format!(
            "needs a network of at most {MOST_PARAMETERS} parameters, got {parameters} with {inputs} inputs and {classes} classes"
        );
        if parameters > MOST_PARAMETERS { Err(study.problem(field, what)) } else { Ok(()) }
    };
    let field = match study.target.architecture {
        Architecture::Mlp { .. } | Architecture::Vgg16 { .. } => "target.hidden",
        _ => "target.model",
    };
    refuse(field, network.parameters, dataset.width() as u64)?;
    let asked = |name: &str| study.attacks.iter().any(|a| a == name);
    if asked("shadow_model") {
        let hidden = study.attack_settings.shadow_model.hidden as u64;
        let parameters = hidden.saturating_mul(classes + 3).saturating_add(2);
        refuse("attacks.shadow_model.hidden", parameters, classes)?;
    }
    if asked("white_box") {
        // A filter spans all inputs, with their bias, of its height; each of its positions feeds 128 units.
        let settings = &study.attack_settings.white_box;
        let inputs = network.last_width + 1;
        let height = (settings.conv_height as u64).min(classes);
        let each = height * inputs + 128 * (classes - height + 1);
        let parameters = (settings.filters as u64).saturating_mul(each);
        refuse("attacks.white_box.filters", parameters, inputs)?;
    }
    check_pixelization(study, dataset)?;
    check_local(study, dataset)?;
    check_noise(study, network.parameters)
}

/// Cells and pixels that the images do not have, and data without images.
fn check_pixelization(study: &Study, dataset: &Dataset) -> Result<(), Error> {
    for arm in &study.arms {
        let Some(pixelization) = arm.defence.pixelization()? else { continue };
        if let (Defence::Pixelization { cell, neighbouring_pixels, .. }, Some([_, height, width])) =
            (arm.defence, dataset.shape())
        {
            let images = format!("images of {height} x {width}");
            let (side, pixels) = (height.max(width) as u64, (height * width) as u64);
            for (field, got, most, why) in [
                (
                    "cell",
                    cell as u64,
                    side,
                    "a larger cell than the longer side averages nothing more",
                ),
                (
                    "neighbouring_pixels",
                    neighbouring_pixels,
                    pixels,
                    "an image has no more pixels to differ in",
                ),
            ] {
                if !(1..=most).contains(&got) {
                    let what = format!(
                        "`{}`: `{field}` needs a whole number from 1 to {most} for {images} ({why}), got {got}",
                        arm.setting
                    );
                    let field = format!("local.pixelization.{field}");
                    return Err(study.problem_of_arm(&field, got, what));
                }
            }
        }
        pixelization
            .check(dataset)
            .map_err(|error| study.problem("arms", format!("`{}`: {error}", arm.setting)))?;
    }
    Ok(())
}

/// Graphs have no features to randomize one by one.
fn check_local(study: &Study, dataset: &Dataset) -> Result<(), Error> {
    let of_features = |arm: &&Arm| matches!(arm.defence, Defence::Local { .. });
    match study.arms.iter().find(of_features) {
        Some(arm) if dataset.graphs().is_some() => {
            let what = "graphs are randomized by their edges: `edge_randomized_response`";
            Err(study.problem("arms", format!("`{}`: {what}", arm.setting)))
        }
        _ => Ok(()),
    }
}

/// On the grid of the exact sampler, noise and rounding together must stay below 2^30 steps.
fn check_noise(study: &Study, parameters: u64) -> Result<(), Error> {
    const MOST: f64 = 536_870_912.0;
    #[expect(clippy::cast_precision_loss, reason = "a number of parameters is far below 2^53")]
    let most = MOST / (parameters as f64).sqrt();
    for arm in &study.arms {
        let Defence::Central { noise_multiplier, .. } = arm.defence else { continue };
        if study.noise.sampler == Sampler::Exact && noise_multiplier > most {
            let what = format!(
                "needs noise multipliers of at most {most:.0} with noise = \"exact\" and {parameters} parameters, got {}",
                report::plain(noise_multiplier)
            );
            return Err(study.problem("arms", what));
        }
    }
    Ok(())
}

/// Times the core on a few records and one epoch of the study's own network, for estimates only. A network that cannot be
/// trained is found out by the run, not here.
fn measured_rate(study: &Study, dataset: &Dataset, core: Option<&Core>, network: Network) -> Rate {
    let core_seconds_per_record = core.map_or(0.0, |core| core.seconds_per_record(dataset));
    // What the head costs does not depend on what it reads.
    let stand_in = core.map(|core| {
        let few: Vec<RecordId> = frozen_core::every_record(dataset).take(256).collect();
        let values = vec![0.5; core.width() * few.len()];
        frozen_core::of_numbers(core.width(), values, &few, dataset)
    });
    let rate = match &stand_in {
        None => training_rate(study, dataset, network),
        Some(Ok(features)) => training_rate(study, features, network),
        Some(Err(_)) => Rate::default(),
    };
    Rate { core_seconds_per_record, ..rate }
}

fn training_rate(study: &Study, dataset: &Dataset, network: Network) -> Rate {
    const RECORDS: u64 = 256;
    // Some seconds at most, also of a large network on large images.
    const WORK: u64 = 10_000_000_000;
    let few = (WORK / network.multiplications.saturating_mul(3).max(1)).clamp(1, RECORDS);
    let few = few.min(dataset.len() as u64);
    let records: Vec<RecordId> = (0..u32::try_from(few).unwrap_or(1)).map(RecordId).collect();
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
        Ok(_) => {
            let seconds = start.elapsed().as_secs_f64();
            Rate::of_epoch(study, dataset, network, records.len(), seconds)
        }
        Err(_) => Rate::default(),
    }
}
