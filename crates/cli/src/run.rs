//! `dosimeter run` and `dosimeter plan`.
use crate::output::{Failure, INCOMPLETE, VIOLATED, print, print_json, print_table, say};
use crate::progress::{Progress, words};
use crate::regress::run_regression;
use crate::report::{arms_table, summary, undecided, violated};
use dosimeter_study::regression::RegressionSession;
use dosimeter_study::report::Check;
use dosimeter_study::run::Speed;
use dosimeter_study::{Error, Session};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// Run a study.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// The study file
    study: PathBuf,
    /// Run directory: artifacts, report.json, report.html and tables
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Threads; one per core if left out. Changes no number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// No progress on stderr
    #[arg(long, short)]
    quiet: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}
impl Run {
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        if dosimeter_study::regression::is_regression(&self.study) {
            let session = RegressionSession::open(&self.study)?;
            return run_regression(&session, &self.out, self.threads, self.quiet, self.json);
        }
        let session = Session::open(&self.study)?;
        let progress = Progress::new(&session.plan, self.quiet);
        let speed = Speed { threads: self.threads.map(usize::from) };
        let result = session.run(&self.out, speed, &progress);
        progress.finish();
        if let Err(Error::NothingLeft { missing, undecided }) = &result {
            if self.json {
                print_json(
                    &json!({ "missing": missing, "study": session.study.name, "violated": [],
                    "undecided": undecided, "arms": [] }),
                )?;
            }
            tell("undecided", &undecided.iter().collect::<Vec<_>>());
        }
        let report = result?;
        let page = self.out.join("report.html");
        if self.json {
            print_json(&summary(&report, &self.out))?;
        } else {
            arms_table(&report)?;
            say(&format!("report: {}", page.display()));
        }
        let violated = violated(&report);
        tell("violated", &violated);
        tell("undecided", &undecided(&report));
        for missing in &report.missing {
            say(&format!("no result: {}: {}: {}", missing.setting, missing.task, missing.reason));
        }
        Ok(match (violated.is_empty(), report.missing.is_empty()) {
            (false, _) => ExitCode::from(VIOLATED),
            (true, false) => ExitCode::from(INCOMPLETE),
            (true, true) => ExitCode::SUCCESS,
        })
    }
}

/// One line for each limit or claim that came out so.
fn tell(outcome: &str, checks: &[&Check]) {
    for check in checks {
        let setting = check.setting.as_deref().unwrap_or("every arm");
        say(&format!("{outcome}: {setting}: {}: {}", check.statement, check.reason));
    }
}

/// Show what a study will compute.
#[derive(Debug, clap::Args)]
pub(crate) struct Plan {
    /// The study file
    study: PathBuf,
    /// Print the whole plan as one JSON object
    #[arg(long)]
    json: bool,
}
impl Plan {
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        if dosimeter_study::regression::is_regression(&self.study) {
            return self.regression();
        }
        let session = Session::open(&self.study)?;
        let plan = &session.plan;
        if self.json {
            print_json(plan)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut stages = vec!["train", "shadow", "attack", "judge"];
        if plan.features.is_some() {
            stages.insert(0, "features");
        }
        let mut rows: Vec<Vec<String>> = Vec::new();
        for (index, setting) in plan.arms.iter().enumerate() {
            let mut counts: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
            for task in plan.tasks().filter(|t| t.arm == index) {
                let count = counts.entry(task.stage.name()).or_default();
                *count = (count.0 + 1, count.1 + task.estimated_seconds);
            }
            let count = |stage| counts.get(stage).map_or(0, |c| c.0).to_string();
            let seconds: f64 = counts.values().map(|c| c.1).sum();
            let mut row = vec![setting.clone()];
            row.extend(stages.iter().map(&count));
            row.push(words(seconds));
            rows.push(row);
        }
        let mut header = vec!["arm"];
        header.extend(stages);
        header.push("one core, about");
        let right: Vec<usize> = (1..header.len()).collect();
        print_table(&header, &right, rows)?;
        for (setting, edges) in &plan.edges {
            print(&format!("{setting}: {edges}"))?;
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        #[expect(clippy::cast_precision_loss, reason = "few cores")]
        let all = plan.estimated_seconds() / cores as f64;
        print(&format!(
            "{} tasks, about {} on {cores} cores (an estimate from one short training)",
            plan.tasks().count(),
            words(all)
        ))?;
        Ok(ExitCode::SUCCESS)
    }
    fn regression(&self) -> Result<ExitCode, Failure> {
        let plan = RegressionSession::open(&self.study)?.plan()?;
        if self.json {
            print_json(&plan)?;
            return Ok(ExitCode::SUCCESS);
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        #[expect(clippy::cast_precision_loss, reason = "few cores")]
        let all = plan.estimated_seconds / cores as f64;
        print(&format!(
            "{} draws of {} fits to {} of {} rows; about {} on {cores} cores (an estimate from one draw)",
            plan.draws,
            plan.fits.len(),
            plan.fitted,
            plan.rows,
            words(all)
        ))?;
        Ok(ExitCode::SUCCESS)
    }
}
