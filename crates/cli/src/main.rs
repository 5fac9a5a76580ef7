//! The dosimeter command: a skin over the study crate.
mod account;
mod data;
mod list;
mod model;
mod output;
mod progress;
mod reference;
mod regress;
mod report;
mod run;
mod trace;

use clap::{Parser, Subcommand};
use output::Failure;
use std::process::ExitCode;

/// How much does differential privacy protect the records behind a model, and what does it cost?
#[derive(Debug, Parser)]
#[command(name = "dosimeter", version, disable_help_subcommand = true, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a study; a run that was interrupted goes on where it stopped
    Run(run::Run),
    /// Show what a study will compute and about how long it takes
    Plan(run::Plan),
    /// Write the pages of a finished run again
    Report(report::Report),
    /// Compare two finished runs
    Compare(report::Compare),
    /// List attacks, data sets, accountants, mechanisms, bounds or regressions
    List(list::List),
    /// Follow one record or one epsilon through a finished run of a study of membership
    Trace(trace::Trace),
    /// Privacy accounting without a run
    #[command(subcommand)]
    Account(account::Account),
    /// Generate, inspect or randomize data
    #[command(subcommand)]
    Data(data::Data),
    /// Inspect, run or convert a network
    #[command(subcommand)]
    Model(model::Model),
    /// Private linear regression, and what its models give away
    #[command(subcommand)]
    Regress(regress::Regress),
    /// Write the reference pages
    #[command(hide = true)]
    GenerateReference(reference::GenerateReference),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // A closed pipe while help is printed is not worth a word.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    let result = match arguments.command {
        Command::Run(command) => command.run(),
        Command::Plan(command) => command.run(),
        Command::Report(command) => command.run(),
        Command::Compare(command) => command.run(),
        Command::List(command) => command.run(),
        Command::Trace(command) => command.run(),
        Command::Account(command) => command.run(),
        Command::Data(command) => command.run(),
        Command::Model(command) => command.run(),
        Command::Regress(command) => command.run(),
        Command::GenerateReference(command) => command.run(),
    };
    result.unwrap_or_else(Failure::report)
}
