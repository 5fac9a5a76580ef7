//! Test support: golden files with provenance, statistical margins, where shared reference data lies.
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// Chance that a correct implementation fails one statistical check under a fresh seed.
pub const FALSE_FAILURE: f64 = 1e-9;

/// A whole study that runs in a moment, for tests to run or to spoil.
pub const STUDY: &str = r#"name = "tiny"
seed = 3
repeats = 2
[dataset]
kind = "skewed-purchases"
classes = 4
train_records = 400
test_records = 100
[split]
train = 40
test = 40
[target]
hidden = [8]
learning_rate = 0.02
batch_size = 10
epochs = 4
[shadows]
count = 2
[[arms]]
central = { noise_multipliers = [1.0], clipping_norm = 1.0 }
[[arms]]
local = { epsilons_per_feature = [1.0] }
[attacks]
names = ["loss_threshold", "shadow_model", "white_box"]
shadow_model = { epochs = 3 }
white_box = { filters = 4, epochs = 2 }
"#;

/// [`STUDY`] with one thing in it replaced.
///
/// # Panics
/// If it is not there: a test of a spoiled study must spoil it.
#[must_use]
#[expect(clippy::panic, reason = "test support")]
pub fn study_with(from: &str, to: &str) -> String {
    let study = STUDY.replacen(from, to, 1);
    if study == STUDY {
        panic!("`{from}` is not in the study, or is `{to}`");
    }
    study
}

/// Half-width `t` with `P(|mean - p| >= t) <= FALSE_FAILURE` for `n` draws in `[0, 1]`.
///
/// Source: Hoeffding 1963, Theorem 1. Holds for every `n`; no normal approximation.
#[must_use]
pub fn hoeffding_margin(n: u32) -> f64 {
    ((2.0 / FALSE_FAILURE).ln() / (2.0 * f64::from(n))).sqrt()
}

/// The workspace root.
#[must_use]
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file of the reference material beside the project, or `None` (with a line on stderr saying what is skipped).
#[must_use]
#[expect(clippy::print_stderr, reason = "a skipped check must say so")]
pub fn shared(path: &str) -> Option<PathBuf> {
    let file = workspace().join("../shared").join(path);
    if file.exists() {
        return Some(file);
    }
    eprintln!("skipped: {path} of the shared reference material is not here");
    None
}

/// Golden cases and where they come from.
#[derive(Debug, serde::Deserialize)]
pub struct Golden<T> {
    /// Script, oracle and its version, source.
    pub provenance: serde_json::Value,
    /// Largest allowed relative error.
    pub tolerance: f64,
    /// The cases.
    pub cases: Vec<T>,
}

/// Reads `golden/NAME.json`.
///
/// # Panics
/// If the file is missing or has another shape: a golden test without its file must fail.
#[must_use]
#[expect(clippy::panic, reason = "test support")]
pub fn golden<T: DeserializeOwned>(name: &str) -> Golden<T> {
    let path = workspace().join("golden").join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
