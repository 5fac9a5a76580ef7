//! Names that say nothing may not be file or folder names.
use crate::step::{Done, output};
use std::path::Path;
use std::process::Command;

const FORBIDDEN: &[&str] = &[
    "util", "utils", "common", "helper", "helpers", "misc", "type", "types", "core", "base",
    "manager", "handler", "factory", "context", "prelude",
];

pub(crate) fn check(root: &Path) -> Done {
    let files = output(Command::new("git").args(["ls-files", "-z"]).current_dir(root));
    // Outside a git checkout (a source archive) there is nothing to list.
    let Ok(files) = files else { return Ok(()) };
    let bad: Vec<&str> = files.split('\0').filter(|path| is_forbidden(path)).collect();
    if bad.is_empty() { Ok(()) } else { Err(format!("file names: {}", bad.join(", "))) }
}

fn is_forbidden(path: &str) -> bool {
    path.split('/').any(|part| {
        let stem = part.split('.').find(|s| !s.is_empty()).unwrap_or_default();
        let words = [stem, stem.trim_start_matches("test_"), stem.trim_end_matches("_test")];
        words.iter().any(|word| FORBIDDEN.contains(&word.to_ascii_lowercase().as_str()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_of_the_project_has_a_name_that_says_nothing() {
        assert_eq!(check(&crate::step::root()), Ok(()));
    }
    #[test]
    fn forbidden_names_are_found_in_files_and_folders() {
        for path in ["crates/data/src/utils.rs", "tests/common/mod.rs", "bench/helpers.py", "core"]
        {
            assert!(is_forbidden(path), "{path}");
        }
        for path in ["crates/data/src/record.rs", "docs/databases.md", ".cargo/config.toml"] {
            assert!(!is_forbidden(path), "{path}");
        }
    }
}
