//! `dosimeter list`.
use crate::output::{Failure, print, print_json};
use dosimeter_study::list::{self, Entry};
use serde_json::json;
use std::process::ExitCode;

/// List what there is to choose from.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// What to list
    what: What,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum What {
    Attacks,
    Datasets,
    Accountants,
    Mechanisms,
    Bounds,
    Regressions,
}
impl List {
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        let (name, entries) = match self.what {
            What::Attacks => ("attacks", list::attacks()),
            What::Datasets => ("datasets", [list::datasets(), list::regression_tables()].concat()),
            What::Accountants => ("accountants", list::accountants()),
            What::Mechanisms => ("mechanisms", list::mechanisms()),
            What::Bounds => ("bounds", list::bounds()),
            What::Regressions => ("regressions", list::regressions()),
        };
        if self.json {
            print_json(&json!({ name: entries }))?;
        } else {
            print(&entries.iter().map(paragraph).collect::<String>())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn paragraph(entry: &Entry) -> String {
    let mut text = format!("{}\n    {}\n", entry.name, entry.what);
    for line in entry.detail.lines().chain([entry.source.as_str()]).filter(|l| !l.is_empty()) {
        text.push_str(&format!("    {line}\n"));
    }
    text
}
