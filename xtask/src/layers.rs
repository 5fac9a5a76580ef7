//! Which crate may use which. The table is the architecture; a manifest with another edge fails.
use crate::step::Done;
use std::collections::BTreeSet;
use std::path::Path;

/// Crate, what it may use, and why not more. A crate absent here may not exist.
const MAY_USE: &[(&str, &[&str], &str)] = &[
    ("privacy", &[], "readable as mathematics"),
    ("data", &[], "a record is a record"),
    ("model", &[], "a device links this alone"),
    ("train", &["privacy", "data", "model"], "training must not know it is watched"),
    ("audit", &["privacy", "data"], "any scores may be audited, a stranger's too"),
    ("attack", &["audit", "data", "model", "train"], "it reads signals; the study trains shadows"),
    ("study", &["privacy", "data", "model", "train", "audit", "attack"], "it orchestrates"),
    ("cli", &["study"], "no logic in the shell; lists come through study"),
    ("testing", &[], "a dev-dependency only"),
];

/// Reads every `crates/*/Cargo.toml`.
pub(crate) fn check(root: &Path) -> Done {
    let problems = problems(root)?;
    if problems.is_empty() { Ok(()) } else { Err(format!("layers: {}", problems.join("; "))) }
}

fn problems(root: &Path) -> Result<Vec<String>, String> {
    let mut problems = Vec::new();
    let mut folders: Vec<_> = std::fs::read_dir(root.join("crates"))
        .map_err(|e| format!("crates: {e}"))?
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|path| path.join("Cargo.toml").exists())
        .collect();
    folders.sort();
    for folder in folders {
        let file = folder.join("Cargo.toml");
        let text =
            std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let manifest: toml::Table = text.parse().map_err(|e| format!("{}: {e}", file.display()))?;
        let folder = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        problems.extend(of_manifest(&folder, &manifest));
    }
    Ok(problems)
}

/// The edges of one manifest that the table does not have.
fn of_manifest(folder: &str, manifest: &toml::Table) -> Vec<String> {
    let name = manifest.get("package").and_then(|p| p.get("name")).and_then(|n| n.as_str());
    let mut problems = Vec::new();
    if name != Some(&format!("dosimeter-{folder}")) {
        problems.push(format!("crates/{folder} must be named dosimeter-{folder}"));
    }
    let Some((_, may_use, why)) = MAY_USE.iter().find(|(name, ..)| *name == folder) else {
        problems.push(format!("crates/{folder} is not in the table of xtask/src/layers.rs"));
        return problems;
    };
    for used in ours(manifest, &["dependencies", "build-dependencies"]) {
        if !may_use.contains(&used.as_str()) {
            problems.push(format!("{folder} may not use {used}: {why}"));
        }
    }
    for used in ours(manifest, &["dev-dependencies"]) {
        if used != "testing" && !may_use.contains(&used.as_str()) {
            problems.push(format!("tests of {folder} may not use {used}: {why}"));
        }
    }
    problems
}

/// Our crates in these tables, also under `[target.*]` and renamed.
fn ours(manifest: &toml::Table, tables: &[&str]) -> BTreeSet<String> {
    let targets = manifest.get("target").and_then(|t| t.as_table());
    let targets = targets.into_iter().flat_map(|t| t.values()).filter_map(|t| t.as_table());
    std::iter::once(manifest)
        .chain(targets)
        .flat_map(|table| tables.iter().filter_map(|name| table.get(*name)?.as_table()))
        .flatten()
        .map(|(key, value)| value.get("package").and_then(|p| p.as_str()).unwrap_or(key))
        .filter_map(|name| name.strip_prefix("dosimeter-").map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifests_have_only_the_edges_of_the_architecture() {
        assert_eq!(problems(&crate::step::root()).unwrap(), Vec::<String>::new());
    }
    #[test]
    fn a_forbidden_edge_is_found_wherever_it_hides() {
        for text in [
            "[dependencies]\ndosimeter-attack.workspace = true",
            "[dependencies]\nwatcher = { package = \"dosimeter-attack\", path = \"../attack\" }",
            "[dev-dependencies]\ndosimeter-attack = { path = \"../attack\" }",
            "[build-dependencies]\ndosimeter-attack = { path = \"../attack\" }",
            "[target.'cfg(unix)'.dependencies]\ndosimeter-attack = { path = \"../attack\" }",
        ] {
            let text = format!("[package]\nname = \"dosimeter-train\"\n{text}");
            let problems = of_manifest("train", &text.parse().unwrap());
            assert_eq!(problems.len(), 1, "{text}: {problems:?}");
            assert!(problems[0].contains("train may not use attack"), "{problems:?}");
        }
    }
    #[test]
    fn a_crate_outside_the_table_and_a_wrong_name_are_found() {
        let manifest = "[package]\nname = \"dosimeter-helpers\"".parse().unwrap();
        assert_eq!(of_manifest("helpers", &manifest).len(), 1);
        assert_eq!(of_manifest("privacy", &manifest).len(), 1);
    }
    #[test]
    fn testing_is_no_ordinary_dependency() {
        let text =
            "[package]\nname = \"dosimeter-data\"\n[dependencies]\ndosimeter-testing = \"0\"";
        assert_eq!(of_manifest("data", &text.parse().unwrap()).len(), 1);
        let text = text.replace("[dep", "[dev-dep");
        assert_eq!(of_manifest("data", &text.parse().unwrap()), Vec::<String>::new());
    }
}
