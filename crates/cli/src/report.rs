//! `dosimeter report` and `dosimeter compare`, and the table that `run` ends with.
use crate::output::{Failure, print, print_json, print_table};
use dosimeter_study::report::{self, CandidateLaw, Check, Outcome, Verdict};
use dosimeter_study::session;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write the pages of a finished run again.
#[derive(Debug, clap::Args)]
pub(crate) struct Report {
    /// Run directory
    run: PathBuf,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}
impl Report {
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        let report = session::render(&self.run)?;
        if self.json {
            print_json(&summary(&report, &self.run))?;
        } else {
            arms_table(&report)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Compare two finished runs.
#[derive(Debug, clap::Args)]
pub(crate) struct Compare {
    /// Run directory
    first: PathBuf,
    /// Another run directory
    second: PathBuf,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}
impl Compare {
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        let (first, second) =
            (session::read_report(&self.first)?, session::read_report(&self.second)?);
        let comparison = report::compare::compare(&first, &second);
        let text = if self.json {
            comparison.to_json().map_err(dosimeter_study::Error::from)?
        } else {
            comparison.to_text()
        };
        print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The limits and claims that did not hold.
pub(crate) fn violated(report: &report::Report) -> Vec<&Check> {
    having(report, Outcome::Violated)
}
/// Those that neither held nor were violated: of a setting without a result, or beyond what the data can show.
pub(crate) fn undecided(report: &report::Report) -> Vec<&Check> {
    having(report, Outcome::Inconclusive)
}
fn having(report: &report::Report, outcome: Outcome) -> Vec<&Check> {
    report.checks.iter().filter(|c| c.outcome == outcome).collect()
}

/// What a script wants to know of a finished run.
pub(crate) fn summary(report: &report::Report, run: &Path) -> serde_json::Value {
    let arms: Vec<serde_json::Value> = report
        .arms
        .iter()
        .map(|arm| {
            let attacks: Vec<serde_json::Value> = arm
                .attacks
                .iter()
                .map(|a| {
                    json!({ "attack": a.attack, "candidate_law": a.candidate_law, "auc": a.auc.value,
                        "auc_interval": a.auc.interval,
                        "epsilon_lower": a.epsilon_lower.first(), "verdict": a.verdict.verdict })
                })
                .collect();
            json!({ "setting": arm.setting, "epsilon_upper": arm.epsilon_upper.first(),
                "test_accuracy": arm.test_accuracy.value,
                "test_accuracy_interval": arm.test_accuracy.interval, "attacks": attacks })
        })
        .collect();
    json!({
        "missing": report.missing,
        "study": report.study.name,
        "report_json": run.join("report.json"),
        "report_html": run.join("report.html"),
        "violated": violated(report),
        "undecided": undecided(report),
        "arms": arms,
    })
}

/// One line per arm and attack.
pub(crate) fn arms_table(report: &report::Report) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for arm in &report.arms {
        let upper = arm.epsilon_upper.first().map_or("-".to_owned(), |u| {
            if u.value.is_unbounded() {
                "unbounded".to_owned()
            } else {
                report::thousandths_up(u.value.get())
            }
        });
        let mut first = true;
        for attack in &arm.attacks {
            let name = match attack.candidate_law {
                CandidateLaw::SameLaw => attack.attack.clone(),
                CandidateLaw::TestLaw => format!("{} (test law)", attack.attack),
            };
            let head = |text: String| if first { text } else { String::new() };
            rows.push(vec![
                head(arm.setting.clone()),
                head(format!("{:.3}", arm.train_accuracy.value)),
                head(format!("{:.3}", arm.test_accuracy.value)),
                head(upper.clone()),
                name,
                estimate(&attack.auc),
                attack
                    .epsilon_lower
                    .first()
                    .map_or("-".to_owned(), |l| report::thousandths_down(l.value.get())),
                verdict(attack.verdict.verdict).to_owned(),
            ]);
            first = false;
        }
    }
    for missing in &report.missing {
        let empty = || "-".to_owned();
        let mut row = vec![missing.setting.clone()];
        row.extend(std::iter::repeat_with(empty).take(6));
        row.push("no result".to_owned());
        rows.push(row);
    }
    let header =
        ["arm", "train", "test", "epsilon_upper", "attack", "AUC", "epsilon_lower", "verdict"];
    print_table(&header, &[1, 2, 3, 6], rows)?;
    let mut lines = report::html::condition_lines(report);
    lines.extend(
        report
            .missing
            .iter()
            .map(|m| format!("No result: {}: {}: {}", m.setting, m.task, m.reason)),
    );
    print(&lines.join("\n"))
}

fn estimate(estimate: &report::Estimate) -> String {
    estimate.interval.as_ref().map_or_else(
        || format!("{:.3}", estimate.value),
        |i| format!("{:.3} [{:.3}, {:.3}]", estimate.value, i.low, i.high),
    )
}
const fn verdict(verdict: Verdict) -> &'static str {
    verdict.title()
}
