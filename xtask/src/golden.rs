//! Golden answers: `golden/NAME.py` writes `NAME.json` beside itself.
use crate::step::{Done, all, root, run};
use std::path::{Path, PathBuf};
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
        if answer(script)? == read(&file)? {
            return Ok(());
        }
        Err(format!("{} is not what {} writes", file.display(), script.display()))
    }))
}

/// Runs a copy of the script, so that the answers in the tree stay as they are.
fn answer(script: &Path) -> Result<Vec<u8>, String> {
    // A script may need more than the others.
    let own = script.with_extension("requirements.txt");
    let requirements = match own.strip_prefix(root()) {
        Ok(own) if root().join(own).exists() => own.to_string_lossy().into_owned(),
        _ => "golden/requirements.txt".to_owned(),
    };
    let python = crate::python::with(&requirements)?;
    let folder = root().join("target/golden");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let copy = folder.join(script.file_name().unwrap_or_default());
    std::fs::copy(script, &copy).map_err(|e| format!("{}: {e}", copy.display()))?;
    let answer = copy.with_extension("json");
    if answer.exists() {
        std::fs::remove_file(&answer).map_err(|e| format!("{}: {e}", answer.display()))?;
    }
    let name = format!("golden {}", copy.file_stem().unwrap_or_default().display());
    run(&name, Command::new(python).arg(&copy).current_dir(root()))?;
    read(&answer)
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))
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
