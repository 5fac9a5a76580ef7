//! Runs a study of regression: one task per draw, resumable, the same numbers on any number of threads.
use super::RegressionStudy;
use super::draw::{Draw, cells, draw, fitted_rows, no_attribute};
use super::fitting::check_width;
use super::plan::{PlannedFit, RegressionPlan};
use super::report::{RegressionReport, claim_of};
use super::simulation::Patients;
use crate::report::regression_page;
use crate::run::Speed;
use crate::session::{refuse_other_study, remove_report};
use crate::source::Problem;
use crate::store::Found;
use crate::{Error, Store, TaskId};
use dosimeter_data::regression::{Counts, Layout};
use dosimeter_data::{RegressionSpec, RegressionTable};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// Told how far a run is, and asked whether to go on.
pub trait Progress: Sync {
    /// So many draws are finished, of which `reused` from an earlier run.
    fn done(&self, _finished: u32, _of: u32, _reused: bool) {}
    /// Whether to stop as soon as possible; what is finished is kept.
    fn stop(&self) -> bool {
        false
    }
}

/// A study with its table.
#[derive(Debug)]
pub struct RegressionSession {
    study: RegressionStudy,
    text: String,
    /// Whether there is a study file that may be edited and run again.
    has_file: bool,
    table: RegressionTable,
    patients: Option<Patients>,
}

/// Whether a file is a study of regression: it has a `[regression]` table.
#[must_use]
pub fn is_regression(file: &Path) -> bool {
    let text = crate::file::text_of(file).unwrap_or_default();
    text.lines().any(|line| line.trim().starts_with("[regression]"))
}

const REPORT_FILES: [&str; 3] = ["report.json", "report.html", "cells.csv"];

/// What a table holds, without a row of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TableFacts {
    /// Name of the table.
    pub name: String,
    /// Digest of the layout and every number.
    pub fingerprint: String,
    /// Rows.
    pub rows: usize,
    /// Columns with their public bounds, attributes with few values, and what is predicted.
    pub layout: Layout,
    /// What was done to the rows: not private.
    pub counts: Counts,
    /// What a missing value of a column counts as.
    pub missing: BTreeMap<String, String>,
}
/// Loads the table of a study of regression and says what it holds; `None` if the file is no such study.
///
/// # Errors
/// What is wrong with the file or the table.
pub fn table_facts(file: &Path) -> Result<Option<TableFacts>, Error> {
    if !is_regression(file) {
        return Ok(None);
    }
    let study = RegressionStudy::read(file)?;
    let table = study.regression.load()?;
    Ok(Some(TableFacts {
        name: table.name.clone(),
        fingerprint: table.fingerprint(),
        rows: table.len(),
        missing: study.regression.missing_rules()?,
        layout: table.layout,
        counts: table.counts,
    }))
}

impl RegressionSession {
    /// Reads a study file and loads its table.
    ///
    /// # Errors
    /// What is wrong with the file or the data.
    pub fn open(file: &Path) -> Result<Self, Error> {
        let text = crate::file::text_of(file)?;
        let study = RegressionStudy::parse(file, &text)?;
        Self::of(study, text, Some(file))
    }
    /// Of a study that is in no file.
    ///
    /// # Errors
    /// [`Error::Setting`] for a setting out of its range, or what is wrong with the data.
    pub fn new(study: RegressionStudy) -> Result<Self, Error> {
        study.check().map_err(|(field, what)| Error::Setting(format!("{field}: {what}")))?;
        let text = toml::to_string(&study).map_err(|e| Error::Setting(e.to_string()))?;
        Self::of(study, text, None)
    }
    fn of(study: RegressionStudy, text: String, file: Option<&Path>) -> Result<Self, Error> {
        check_width(&study.regression, study.regression.layout(true)?.width())?;
        let table = study.regression.load()?;
        let problem = |field, what: String| {
            Err(match file {
                Some(file) => Error::Study(vec![Problem::of(file, &text, field, what)]),
                None => Error::Setting(what),
            })
        };
        let fitted = fitted_rows(&study, table.len());
        if fitted < 1 || table.len() - fitted < 4 {
            let what = format!(
                "needed at least one row to fit and four others, got {fitted} and {}",
                table.len() - fitted
            );
            return problem("fit.fitted", what);
        }
        if let Some(plan) = &study.inversion
            && table.layout.group(&plan.attribute).is_none()
        {
            return problem("inversion.attribute", no_attribute(&table, &plan.attribute));
        }
        let patients = match (&study.regression, &study.simulation) {
            (RegressionSpec::Iwpc(iwpc), Some(_)) => Some(Patients::load(iwpc)?),
            _ => None,
        };
        Ok(Self { study, text, has_file: file.is_some(), table, patients })
    }
    /// What will be computed. Does the first draw to see how long it takes.
    ///
    /// # Errors
    /// What goes wrong in that draw.
    pub fn plan(&self) -> Result<RegressionPlan, Error> {
        let started = Instant::now();
        draw(&self.study, &self.table, self.patients.as_ref(), 0)?;
        let seconds = started.elapsed().as_secs_f64();
        let fits = cells(&self.study).into_iter().map(|cell| PlannedFit {
            claim: claim_of(&cell.mechanism).name(),
            mechanism: cell.mechanism,
            epsilon: cell.epsilon,
            share: cell.share,
        });
        Ok(RegressionPlan {
            study: self.study.name.clone(),
            table: self.table.name.clone(),
            data_fingerprint: self.table.fingerprint(),
            rows: self.table.len(),
            features: self.table.layout.width(),
            fitted: fitted_rows(&self.study, self.table.len()),
            draws: self.study.fit.draws,
            fits: fits.collect(),
            seconds_per_draw: seconds,
            estimated_seconds: seconds * f64::from(self.study.fit.draws),
        })
    }
    /// The report of another study, or of other settings without a file where they could have been edited, must not be lost; one of
    /// this study before it was edited must not pass for the report of this run, should it be stopped.
    fn spare_other_report(&self, root: &Path) -> Result<(), Error> {
        refuse_other_study(root, &self.study.name)?;
        let there = crate::file::text_of(&root.join("study.toml")).unwrap_or_default();
        if there.is_empty() || there == self.text {
            return Ok(());
        }
        let other: Option<RegressionStudy> = toml::from_str(&there).ok();
        if let (false, Some(other)) = (self.has_file, other) {
            let differing = self.study.differing(&other);
            if !differing.is_empty() {
                let (path, name) = (root.to_owned(), self.study.name.clone());
                return Err(Error::OtherSettings { path, name, differing });
            }
        }
        remove_report(root, &REPORT_FILES)
    }
    /// Does what is missing and writes `report.json`, `report.html` and `cells.csv`.
    ///
    /// # Errors
    /// [`Error::OtherStudy`] if the directory holds the run of a study of another name, [`Error::OtherSettings`] if this study is in no
    /// file and the directory holds a run with other settings, [`Error::Stopped`], otherwise the first thing
    /// that went wrong; finished draws are kept.
    pub fn run(
        &self,
        root: &Path,
        speed: Speed,
        progress: &dyn Progress,
    ) -> Result<RegressionReport, Error> {
        let store = Store::open(root)?;
        self.spare_other_report(root)?;
        store.publish("study.toml", self.text.as_bytes())?;
        let fingerprint = self.table.fingerprint();
        let draws = self.study.fit.draws;
        // A change of the number of draws or of the words keeps what is there.
        let mut same = self.study.clone();
        (same.fit.draws, same.name, same.description) = (0, String::new(), None);
        let version = "regression draw, version 2";
        let id = |index: u32| TaskId::of(&(version, &same, &fingerprint, index));
        let finished = AtomicU32::new(0);
        let one = |index: u32| -> Result<(), Error> {
            if progress.stop() {
                return Err(Error::Stopped);
            }
            let id = id(index)?;
            let reused = matches!(store.read(&id)?, Found::Whole(_));
            if !reused {
                let draw = draw(&self.study, &self.table, self.patients.as_ref(), index)?;
                store.write(&id, &serde_json::to_vec(&draw).map_err(Error::Encode)?)?;
            }
            let finished = finished.fetch_add(1, Ordering::Relaxed) + 1;
            progress.done(finished, draws, reused);
            Ok(())
        };
        let threads = speed.threads.unwrap_or(0);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
        pool.install(|| (0..draws).into_par_iter().try_for_each(one))?;
        let read = |index: u32| -> Result<Draw, Error> {
            match store.read(&id(index)?)? {
                Found::Whole(bytes) => serde_json::from_slice(&bytes).map_err(Error::Decode),
                _ => Err(Error::ArtifactShape),
            }
        };
        let all = (0..draws).map(read).collect::<Result<Vec<_>, _>>()?;
        let report = RegressionReport::of(&self.study, &self.table, &cells(&self.study), &all)?;
        let mut json = serde_json::to_string_pretty(&report).map_err(Error::Encode)?;
        json.push('\n');
        store.publish("cells.csv", report.csv().as_bytes())?;
        store.publish("report.html", regression_page(&report).as_bytes())?;
        store.publish("report.json", json.as_bytes())?;
        Ok(report)
    }
}
