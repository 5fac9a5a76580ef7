//! Running other programs and saying so.
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What went wrong, for a person.
pub(crate) type Done = Result<(), String>;

/// The workspace root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// `cargo` of the toolchain that runs this, in the workspace root, with words split at spaces.
pub(crate) fn cargo(words: &str) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words.split_whitespace()).current_dir(root());
    command
}

/// Runs `command`, showing its output, the step's name and its time.
pub(crate) fn run(step: &str, command: &mut Command) -> Done {
    eprintln!("== {step}");
    let start = Instant::now();
    let status = command.status().map_err(|e| format!("{step}: {command:?}: {e}"))?;
    eprintln!("== {step}: {:.1} s", start.elapsed().as_secs_f64());
    if status.success() { Ok(()) } else { Err(format!("{step}: {command:?} ended with {status}")) }
}

/// Whether `program --version` runs.
pub(crate) fn is_here(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null());
    command.status().is_ok_and(|s| s.success())
}

/// The text `command` prints.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?} ended with {}: {said}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{command:?} did not print UTF-8"))
}

/// Runs every step and fails at the end naming all that failed, so that one run shows everything.
pub(crate) fn all(steps: impl IntoIterator<Item = Done>) -> Done {
    let failed: Vec<String> = steps.into_iter().filter_map(Result::err).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\nerror: ")) }
}
