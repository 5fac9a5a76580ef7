//! Golden answers: `golden/NAME.py` prints `golden/NAME.json`.
use crate::step::{Done, all, output, root};
use std::path::PathBuf;
use std::process::Command;

pub(crate) fn write(names: &[&str]) -> Done {
    all(scripts(names)?.iter().map(|script| {
        let file = script.with_extension("json");
        std::fs::write(&file, answer(script)?).map_err(|e| format!("{}: {e}", file.display()))
    }))
}

pub(crate) fn check(names: &[&str]) -> Done {
    all(scripts(names)?.iter().map(|script| {
        let file = script.with_extension("json");
        let have =
            std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        if answer(script)? == have {
            return Ok(());
        }
        Err(format!("{} is not what {} prints", file.display(), script.display()))
    }))
}

fn answer(script: &PathBuf) -> Result<String, String> {
    let python = crate::python::with("golden/requirements.txt")?;
    eprintln!("== {}", script.display());
    output(Command::new(python).arg(script).current_dir(root()))
}

fn scripts(names: &[&str]) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(root().join("golden")).map_err(|e| format!("golden: {e}"))?;
    let mut scripts: Vec<PathBuf> = entries
        .filter_map(|e| e.ok().map(|e| e.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "py"))
        .filter(|path| {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            names.is_empty() || names.contains(&stem.as_ref())
        })
        .collect();
    scripts.sort();
    if scripts.len() < names.len() {
        return Err(format!("golden: no script for every one of {}", names.join(", ")));
    }
    Ok(scripts)
}
