//! The walks of docs/paths and of `dosimeter trace` name functions that exist.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use dosimeter_study::trace::{EPSILON_PATH, RECORD_PATH};
use std::path::Path;

/// Every source file below `folder`, joined.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text.push_str(&sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
    text
}

/// Whether `crate::module::function` is a function in that module of that crate.
fn exists(function: &str) -> bool {
    let parts: Vec<&str> = function.split("::").collect();
    let [package, modules @ .., name] = parts.as_slice() else { return false };
    let root = dosimeter_testing::workspace().join("crates").join(package).join("src");
    let module = modules.iter().fold(root, |path, part| path.join(part));
    let file = module.with_extension("rs");
    let mut text = String::new();
    if file.is_file() {
        text.push_str(&std::fs::read_to_string(file).unwrap());
    }
    if module.is_dir() {
        text.push_str(&sources(&module));
    }
    text.contains(&format!("fn {name}(")) || text.contains(&format!("fn {name}<"))
}

#[test]
fn a_function_that_is_not_there_is_noticed() {
    assert!(exists("study::assemble::report"));
    assert!(!exists("study::assemble::reprot"));
    assert!(!exists("study::nowhere::report"));
}

#[test]
fn every_function_named_in_the_walks_exists() {
    for (stage, function) in RECORD_PATH.iter().chain(EPSILON_PATH) {
        assert!(exists(function), "{stage}: {function}");
    }
}

#[test]
fn the_pages_tell_the_same_walks_as_the_command() {
    for (page, path) in [("one-record.md", RECORD_PATH), ("one-epsilon.md", EPSILON_PATH)] {
        let file = dosimeter_testing::workspace().join("docs/paths").join(page);
        let text = std::fs::read_to_string(file).unwrap();
        let rows: Vec<String> = text
            .lines()
            .filter(|l| l.starts_with("| ") && l.contains("::"))
            .map(|l| l.split('|').take(3).collect::<Vec<_>>().join("|").trim().to_owned())
            .collect();
        let expected: Vec<String> =
            path.iter().map(|(stage, function)| format!("| {stage} | `{function}`")).collect();
        assert_eq!(rows, expected, "{page}");
    }
}
