//! Reference pages, written by the program itself from its registries, commands and schemas.
use crate::step::{Done, cargo, root, run};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const FOLDER: &str = "docs/reference";

pub(crate) fn write() -> Done {
    let fresh = fresh()?;
    let folder = root().join(FOLDER);
    let fresh_files = files(&fresh)?;
    for (name, bytes) in &fresh_files {
        let file = folder.join(name);
        let parent = file.parent().unwrap_or(&folder);
        std::fs::create_dir_all(parent).map_err(|e| format!("{}: {e}", parent.display()))?;
        std::fs::write(&file, bytes).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    for stale in files(&folder)?.keys().filter(|name| !fresh_files.contains_key(*name)) {
        let file = folder.join(stale);
        std::fs::remove_file(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Ok(())
}

pub(crate) fn check() -> Done {
    let (fresh, have) = (files(&fresh()?)?, files(&root().join(FOLDER))?);
    let names = fresh.keys().chain(have.keys());
    let stale: Vec<_> = names.filter(|n| fresh.get(*n) != have.get(*n)).collect();
    match stale.first() {
        None => Ok(()),
        Some(name) => Err(format!(
            "{FOLDER}/{} is not what the program writes; run `cargo xtask generate`",
            name.display()
        )),
    }
}

/// Has the program write its pages into an empty folder.
fn fresh() -> Result<PathBuf, String> {
    let folder = root().join("target/reference");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut command = cargo("run --locked --quiet --package dosimeter-cli -- generate-reference");
    run("reference pages", command.arg(&folder))?;
    Ok(folder)
}

fn files(folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(here) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&here) else { continue };
        for path in entries.filter_map(|e| e.ok().map(|e| e.path())) {
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            let name = path.strip_prefix(folder).unwrap_or(&path).to_owned();
            found.insert(name, bytes);
        }
    }
    Ok(found)
}
