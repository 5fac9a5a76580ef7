//! Data on stdout, words on stderr, exit codes.
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use dosimeter_study::Error;
use dosimeter_study::account::Epsilon;
use dosimeter_study::report::plain;
use serde::Serialize;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// A limit or claim is violated.
pub(crate) const VIOLATED: u8 = 3;
/// A setting of the study, or every one, has no result, and nothing that has one is violated.
pub(crate) const INCOMPLETE: u8 = 4;
const BAD_INPUT: u8 = 2;
const INTERRUPTED: u8 = 130;

/// Why a command ends without its result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library refused.
    Study(Error),
    /// An argument that clap cannot judge.
    Argument {
        /// What was needed and what was there.
        what: String,
        /// What to do about it.
        hint: String,
    },
    /// Standard output cannot be written.
    Output(std::io::Error),
}
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Study(error)
    }
}
impl Failure {
    /// Says what is wrong and what to do, and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        let (what, hint, code) = match self {
            Self::Output(error) if error.kind() == ErrorKind::BrokenPipe => {
                return ExitCode::SUCCESS;
            }
            Self::Output(error) => (format!("writing the result: {error}"), None, BAD_INPUT),
            Self::Argument { what, hint } => (what, Some(hint), BAD_INPUT),
            Self::Study(error) => {
                let code = match error {
                    Error::Stopped => INTERRUPTED,
                    Error::NothingLeft { .. } => INCOMPLETE,
                    _ => BAD_INPUT,
                };
                (error.to_string(), hint(&error), code)
            }
        };
        for line in what.lines() {
            say(&format!("error: {line}"));
        }
        if let Some(hint) = hint {
            say(&format!("hint: {hint}"));
        }
        ExitCode::from(code)
    }
}

/// What a person can do about an error.
fn hint(error: &Error) -> Option<String> {
    let text = match error {
        Error::Study(_) => {
            "docs/reference/study-file.md lists every field, and docs/guide/regression.md those of a study of regression; `dosimeter plan` checks a file without running it"
        }
        Error::Model { .. } => {
            "docs/guide/networks-from-elsewhere.md says what a model may hold; --shape says what it leaves open, --output ends it at a value on the way"
        }
        Error::Data(_) => {
            "`dosimeter data inspect STUDY.toml` loads the data of a study alone; docs/guide/regression.md says what bounds are"
        }
        Error::Locked { .. } => "wait for the other run, or give another --out",
        Error::OtherStudy { .. } => {
            "give another --out; an edited study goes on there if it keeps its `name`"
        }
        Error::OtherSettings { .. } => {
            "give another --out; the same settings, or more --draws of them, go on there"
        }
        Error::RegressionRun { .. } => {
            "report.html, report.json and cells.csv there have its numbers"
        }
        Error::NotARun { .. } => "give --out a folder that does not exist yet",
        Error::NoReport { .. } => "run the study there first: dosimeter run STUDY.toml --out DIR",
        Error::Stopped => "the same command goes on where this one stopped",
        _ if error.is_divergence() => "a smaller learning rate keeps a training from diverging",
        Error::BadReport { .. } | Error::BadArtifact { .. } => {
            "the same `dosimeter run` again makes what is missing or damaged"
        }
        Error::Unsupported(_) => {
            "`dosimeter list accountants` says who can do what; pld does the most"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

/// A proved epsilon as text: rounded up, so that what is printed is still a bound.
pub(crate) fn millionths_up(epsilon: Epsilon) -> String {
    let value = epsilon.get();
    if epsilon.is_unbounded() {
        "unbounded".to_owned()
    } else if value < 1e6 {
        format!("{:.6}", (value * 1e6).ceil() / 1e6)
    } else {
        plain(value)
    }
}

/// One line on stderr. Nobody may be listening, and that is no reason to fail.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// The result, on stdout.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| if text.ends_with('\n') { Ok(()) } else { out.write_all(b"\n") })
        .and_then(|()| out.flush())
        .map_err(Failure::Output)
}

/// The result as one JSON object.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Failure::Output(e.into()))?;
    print(&text)
}

/// The result as a table; the columns named in `right` are numbers.
pub(crate) fn print_table(
    header: &[&str],
    right: &[usize],
    rows: Vec<Vec<String>>,
) -> Result<(), Failure> {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header.to_vec());
    for row in rows {
        table.add_row(row);
    }
    for column in right {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let text: String = table.to_string().lines().map(|l| format!("{}\n", l.trim_end())).collect();
    print(&text)
}
