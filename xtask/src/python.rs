//! A virtual environment in `.venv` with exactly the versions a requirements file pins.
use crate::step::{Done, root, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment's Python, with `requirements` (relative to the root) installed.
pub(crate) fn with(requirements: &str) -> Result<PathBuf, String> {
    let environment = root().join(".venv");
    let python = environment.join("bin/python");
    if !python.exists() {
        create(&environment)?;
    }
    let wanted = std::fs::read_to_string(root().join(requirements))
        .map_err(|e| format!("{requirements}: {e}"))?;
    let stamp = environment.join(requirements.replace('/', "-"));
    if std::fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return Ok(python);
    }
    let mut pip = Command::new(&python);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "-r",
        requirements,
    ]);
    run(&format!("install {requirements}"), pip.current_dir(root()))?;
    std::fs::write(&stamp, wanted).map_err(|e| format!("{}: {e}", stamp.display()))?;
    Ok(python)
}

fn create(environment: &Path) -> Done {
    run("create .venv", Command::new("python3").args(["-m", "venv"]).arg(environment))
        .map_err(|e| format!("{e} (Debian: apt-get install python3-venv)"))
}
