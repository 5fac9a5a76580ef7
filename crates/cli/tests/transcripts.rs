//! What people see: exit code, stdout and stderr of whole commands.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use insta::assert_snapshot;
use std::path::Path;
use std::process::Command;

/// Runs the built command in `folder` with an empty environment and folds what it says into one text.
fn dosimeter(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_dosimeter"))
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .output()
        .unwrap();
    format!(
        "exit: {}\n--- stdout\n{}--- stderr\n{}",
        output.status.code().map_or("signal".to_owned(), |c| c.to_string()),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
fn here(arguments: &[&str]) -> String {
    dosimeter(&std::env::temp_dir(), arguments)
}

const SMALL: &str = r#"name = "small"
seed = 7
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
epochs = 2
[[arms]]
central = { noise_multipliers = [1.0], clipping_norm = 1.0 }
[attacks]
names = ["loss_threshold"]
"#;

/// A fresh folder with one file in it.
fn with_file(name: &str, text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), text).unwrap();
    folder
}

#[test]
fn a_study_with_mistakes_gets_all_of_them_with_their_lines() {
    let text = SMALL.replace("seed = 7", "sede = 7").replace("train = 40", "train = 0");
    let folder = with_file("small.toml", &text);
    assert_snapshot!(dosimeter(folder.path(), &["run", "small.toml", "--out", "run"]));
    assert!(!folder.path().join("run").exists(), "nothing half-written");
}

#[test]
fn a_study_file_that_is_not_there_is_named() {
    assert_snapshot!(here(&["plan", "no-such-study.toml"]));
}

#[test]
fn an_impossible_split_says_what_was_needed_and_what_was_there() {
    let folder = with_file("small.toml", &SMALL.replace("train = 40", "train = 4000"));
    assert_snapshot!(dosimeter(folder.path(), &["run", "small.toml", "--out", "run"]));
    assert!(!folder.path().join("run/report.json").exists());
}

#[test]
fn a_run_directory_without_a_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert_snapshot!(dosimeter(folder.path(), &["report", "."]));
    assert_snapshot!(dosimeter(folder.path(), &["trace", "record", "3", "."]));
}

#[test]
fn a_folder_with_something_else_in_it_is_left_alone() {
    let folder = with_file("small.toml", SMALL);
    assert_snapshot!(dosimeter(folder.path(), &["run", "small.toml", "--out", "."]));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn accounting_arguments_out_of_range_are_refused() {
    let epsilon = |rate, delta| {
        here(&[
            "account",
            "epsilon",
            "--noise-multiplier",
            "1.1",
            "--sampling-rate",
            rate,
            "--steps",
            "1000",
            "--delta",
            delta,
        ])
    };
    assert_snapshot!(epsilon("1.5", "1e-5"));
    assert_snapshot!(epsilon("0.01", "nan"));
}

#[test]
fn an_unknown_command_gets_a_suggestion() {
    assert_snapshot!(here(&["lst"]));
}

#[test]
fn accounting_prints_one_object_with_the_promised_fields() {
    let object = |accountant: &str| -> serde_json::Value {
        let output = Command::new(env!("CARGO_BIN_EXE_dosimeter"))
            .args(["account", "epsilon", "--noise-multiplier", "1.1", "--sampling-rate", "0.01"])
            .args(["--steps", "1000", "--delta", "1e-5", "--json", "--accountant", accountant])
            .output()
            .unwrap();
        assert!(output.status.success());
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let pld = object("pld");
    assert_eq!(pld["relation"], "add-remove");
    assert_eq!(pld["unit"], "record");
    assert_eq!(pld["accountant"], "pld");
    assert_eq!(pld["delta"], 1e-5);
    assert_eq!(pld["is_bound"], true);
    let epsilon = pld["epsilon_upper"].as_f64().unwrap();
    // Between what two other tools say of this row (PRV's lower end and RDP).
    assert!((1.5..1.9).contains(&epsilon), "{epsilon}");
    let rdp = object("rdp")["epsilon_upper"].as_f64().unwrap();
    assert!(rdp >= epsilon, "rdp {rdp} below pld {epsilon}");
    assert_eq!(object("gdp")["is_bound"], false);
}

#[test]
fn the_noise_found_for_a_budget_keeps_it() {
    let output = Command::new(env!("CARGO_BIN_EXE_dosimeter"))
        .args(["account", "noise", "--epsilon", "3", "--sampling-rate", "0.01"])
        .args(["--steps", "1000", "--delta", "1e-5", "--json"])
        .output()
        .unwrap();
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(found["noise_multiplier"].as_f64().unwrap() > 0.5);
    let epsilon = found["epsilon_upper"].as_f64().unwrap();
    assert!(epsilon <= 3.0 && epsilon > 2.99, "{epsilon}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_dosimeter"))
        .args(["list", "datasets"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_command_has_json_and_says_so() {
    for command in [
        &["run"][..],
        &["plan"],
        &["report"],
        &["compare"],
        &["list"],
        &["trace", "record"],
        &["trace", "epsilon"],
        &["account", "epsilon"],
        &["account", "noise"],
        &["account", "steps"],
        &["data", "generate"],
        &["data", "inspect"],
        &["data", "randomize"],
    ] {
        let mut arguments = command.to_vec();
        arguments.push("--help");
        assert!(here(&arguments).contains("--json"), "{command:?}");
    }
}
