//! `dosimeter trace`.
use crate::output::{Failure, print, print_json};
use dosimeter_study::trace;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Follow one record or one epsilon through a finished run of a study of membership.
#[derive(Debug, clap::Args)]
pub(crate) struct Trace {
    #[command(subcommand)]
    what: What,
}
#[derive(Debug, clap::Subcommand)]
enum What {
    /// One record, from the file to the report
    Record {
        /// Position of the record in the data set, from 0
        id: u32,
        /// Run directory
        run: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Every epsilon, from the clipped gradient to the verdict
    Epsilon {
        /// Run directory
        run: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}
impl Trace {
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        let (steps, json) = match &self.what {
            What::Record { id, run, json } => (trace::record(run, *id)?, *json),
            What::Epsilon { run, json } => (trace::epsilon(run)?, *json),
        };
        if json {
            print_json(&json!({ "steps": steps }))?;
            return Ok(ExitCode::SUCCESS);
        }
        let lines: String = steps
            .iter()
            .map(|step| {
                let artifact = step
                    .artifact
                    .as_ref()
                    .map_or(String::new(), |path| format!("  [{}]", path.display()));
                format!("{:<18} {:<40} {}{artifact}\n", step.stage, step.function, step.what)
            })
            .collect();
        print(&lines)?;
        Ok(ExitCode::SUCCESS)
    }
}
