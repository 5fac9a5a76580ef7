//! Comparisons with peers: `bench/run.py` measures both sides in one session and records them.
use crate::step::{Done, root, run};
use std::process::Command;

/// Passes `arguments` on; the results lie under `bench/runs/DATE-MACHINE/`.
pub(crate) fn measure(arguments: &[&str]) -> Done {
    let arguments = arguments.strip_prefix(&["--"]).unwrap_or(arguments);
    let mut command = Command::new("python3");
    run("bench", command.arg("bench/run.py").args(arguments).current_dir(root()))
}
