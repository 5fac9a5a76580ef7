//! What people see: exit code, stdout and stderr of whole commands.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod command;

use dosimeter_testing::{STUDY, study_with};
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

/// A fresh folder with one file in it.
fn with_file(name: &str, text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), text).unwrap();
    folder
}

#[test]
fn a_study_with_mistakes_gets_all_of_them_with_their_lines() {
    let text = STUDY.replace("seed = 3", "sede = 3").replace("train = 40", "train = 0");
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
    let folder = with_file("small.toml", &study_with("train = 40", "train = 4000"));
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
    let folder = with_file("small.toml", STUDY);
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

/// Exit code, stdout, stderr.
fn parts(folder: &Path, command: &str) -> (Option<i32>, String, String) {
    command::run(folder, command.split(' '))
}

#[test]
fn every_command_prints_one_object_with_json() {
    let folder = with_file("tiny.toml", STUDY);
    for command in [
        "plan tiny.toml",
        "run tiny.toml --out run --quiet",
        "report run",
        "compare run run",
        "trace record 3 run",
        "trace epsilon run",
        "list attacks",
        "list datasets",
        "list accountants",
        "list mechanisms",
        "list bounds",
        "account epsilon --noise-multiplier 1 --sampling-rate 0.1 --steps 9 --delta 1e-5",
        "account noise --epsilon 1 --sampling-rate 0.1 --steps 9 --delta 1e-5",
        "account steps --epsilon 1 --noise-multiplier 1 --sampling-rate 0.1 --delta 1e-5",
        "data generate --classes 2 --train-records 4 --out generated.csv",
        "data inspect tiny.toml",
        "data randomize tiny.toml --epsilon-per-feature 1 --seed 1 --out randomized.csv",
    ] {
        let (code, stdout, stderr) = parts(folder.path(), &format!("{command} --json"));
        assert_eq!(code, Some(0), "{command}: {stderr}");
        let value: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        assert!(value.as_object().is_some_and(|o| !o.is_empty()), "{command}: {stdout}");
        let help = here(&command.split(' ').take(2).chain(["--help"]).collect::<Vec<_>>());
        assert!(help.contains("--json") || help.contains("COMMAND"), "{command}");
    }
}

#[test]
fn the_run_of_another_study_is_never_overwritten_and_that_of_an_edited_one_goes_on() {
    let folder = with_file("tiny.toml", STUDY);
    let other = study_with("\"tiny\"", "\"other\"");
    std::fs::write(folder.path().join("other.toml"), other).unwrap();
    let edited = study_with("epochs = 4", "epochs = 5");
    std::fs::write(folder.path().join("edited.toml"), edited).unwrap();
    let (code, _, stderr) = parts(folder.path(), "run tiny.toml --out run --quiet");
    assert_eq!(code, Some(0), "{stderr}");
    let report = || std::fs::read(folder.path().join("run/report.json")).unwrap();
    let before = report();
    assert_snapshot!(dosimeter(folder.path(), &["run", "other.toml", "--out", "run", "--quiet"]));
    assert_eq!(report(), before, "the report is as it was");
    let (code, _, stderr) = parts(folder.path(), "run edited.toml --out run --quiet");
    assert_eq!(code, Some(0), "{stderr}");
    assert_ne!(report(), before, "an edited study of the same name is run");
}

#[test]
fn no_number_is_printed_with_hundreds_of_digits() {
    let bounds = "columns.a = { kind = \"real\", low = 1e300, high = 2e300 }";
    let folder = with_file(
        "table.toml",
        &format!("[dataset]\nkind = \"csv\"\npath = \"t.csv\"\nlabel = \"y\"\n{bounds}\n"),
    );
    std::fs::write(folder.path().join("t.csv"), "a,y\n1,x\n0,z\n").unwrap();
    let real = "[dataset]\nkind = \"csv\"\npath = \"t.csv\"\nlabel = \"y\"\n\
                columns.a = { kind = \"real\", low = 0, high = 9 }\n";
    std::fs::write(folder.path().join("real.toml"), real).unwrap();
    let huge = study_with("noise_multipliers = [1.0]", "noise_multipliers = [1e300]");
    std::fs::write(folder.path().join("noise.toml"), huge).unwrap();
    let huge = study_with("clipping_norm = 1.0", "clipping_norm = 1e300");
    std::fs::write(folder.path().join("norm.toml"), huge).unwrap();
    for command in [
        "account epsilon --noise-multiplier 1e300 --sampling-rate 1e-300 --steps 1 --delta 1e-5",
        "account epsilon --noise-multiplier 1e-100 --sampling-rate 1 --steps 1 --delta 1e-5 --accountant rdp",
        "account epsilon --noise-multiplier 1 --sampling-rate 0.1 --steps 1 --delta 1e300",
        "account noise --epsilon=-1e300 --sampling-rate 0.1 --steps 1 --delta 1e-5",
        "data inspect table.toml",
        "data randomize real.toml --epsilon-per-feature 1e-300 --out o.csv",
        "run noise.toml --out noise --quiet",
        "run norm.toml --out norm --quiet",
    ] {
        let (_, stdout, stderr) = parts(folder.path(), command);
        let said = format!("{stdout}{stderr}");
        let short = ["e300", "e-300", "e299", "e199"].iter().any(|power| said.contains(power));
        assert!(short, "{command}: {said}");
        let longest = said.split(|c: char| !c.is_ascii_digit()).map(str::len).max();
        assert!(longest < Some(20), "{command}: {said}");
    }
}

#[test]
fn a_randomized_table_keeps_its_label_and_can_be_read_as_the_first() {
    let study = "[dataset]\nkind = \"csv\"\npath = \"t.csv\"\nlabel = \"the \\\"class\\\"\"\n";
    let folder = with_file("table.toml", study);
    let table = "label,\"the \"\"class\"\"\"\n0,\"ill, very\"\n1,well\n1,\"ill, very\"\n0,well\n";
    std::fs::write(folder.path().join("t.csv"), table).unwrap();
    let randomize = "data randomize table.toml --epsilon-per-feature 50 --seed 1 --out o.csv";
    let (code, _, stderr) = parts(folder.path(), randomize);
    assert_eq!(code, Some(0), "{stderr}");
    // At 50 nats a bit is flipped once in 10^21 draws.
    let expected =
        "\"the \"\"class\"\"\",label\n\"ill, very\",0\nwell,1\n\"ill, very\",1\nwell,0\n";
    assert_eq!(std::fs::read_to_string(folder.path().join("o.csv")).unwrap(), expected);
    std::fs::rename(folder.path().join("o.csv"), folder.path().join("t.csv")).unwrap();
    let (code, stdout, stderr) = parts(folder.path(), "data inspect table.toml");
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("classes      2 of 2 to 2 records"), "{stdout}");
    assert!(stdout.ends_with("\nwhat the columns hold\n  label: bit\n"), "{stdout}");
    let (_, stdout, _) = parts(folder.path(), "data inspect table.toml --json");
    let value: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let run = serde_json::json!({ "first": "label", "last": "label", "columns": 1, "kind": "bit" });
    assert_eq!(value["column_runs"], serde_json::json!([run]));
    assert_eq!(value["records"], 4);
}

#[test]
fn images_and_graphs_are_inspected_and_graphs_are_not_randomized_as_tables() {
    let folder = with_file("images.toml", "[dataset]\nkind = \"idx\"\npath = \"images\"\n");
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("images", b"\0\0\x08\x03\0\0\0\x03\0\0\0\x01\0\0\0\x02abcdef");
    write("labels", b"\0\0\x08\x01\0\0\0\x03\x01\0\x01");
    let (code, stdout, stderr) = parts(folder.path(), "data inspect images.toml");
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("\nshape        1 x 1 x 2\n"), "{stdout}");
    let end = "\nrecords of each class\n  0: 1\n  1: 2\nwhat the columns hold\n  pixels: image, 1 x 1 x 2\n";
    assert!(stdout.ends_with(end), "{stdout}");
    let (_, stdout, _) = parts(folder.path(), "data inspect images.toml --json");
    let value: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(value["shape"], serde_json::json!([1, 1, 2]));
    assert_eq!(value["class_counts"][1], serde_json::json!({ "class": "1", "records": 2 }));

    write("graphs.toml", b"[dataset]\nkind = \"dgcnn\"\npath = \"graphs\"\n");
    write("graphs", b"2\n3 5\n0 2 1 1\n0 1 0\n0 1 2\n1 6\n0 0\n");
    let (code, stdout, stderr) = parts(folder.path(), "data inspect graphs.toml");
    assert_eq!(code, Some(0), "{stderr}");
    for line in [
        "graphs       2",
        "nodes        4 (per graph 1 to 3: a tenth up to 1, half up to 1, nine tenths up to 3)",
        "edges        1 (per graph 0 to 1: a tenth up to 0, half up to 0, nine tenths up to 1)",
        "left out     1 entries of a node as its own neighbour, 1 of a neighbour twice",
        "  6: 1",
    ] {
        assert!(stdout.lines().any(|l| l == line), "{line} in {stdout}");
    }
    let (_, stdout, _) = parts(folder.path(), "data inspect graphs.toml --json");
    let value: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&value["edges"], &value["dropped"]["self_loops"]), (&1.into(), &1.into()));
    let (code, _, stderr) =
        parts(folder.path(), "data randomize graphs.toml --epsilon-per-feature 1 --out o.csv");
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("graphs are randomized by their edges"), "{stderr}");
    write("graphs.toml", b"[dataset]\nkind = \"dgcnn\"\npat = \"graphs\"\n");
    let (code, _, stderr) = parts(folder.path(), "data inspect graphs.toml");
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("graphs.toml:3: dataset.pat: unknown field `pat`"), "{stderr}");
}

#[test]
fn a_setting_that_diverges_is_named_and_has_an_exit_code_of_its_own() {
    let arm = "[[arms]]\nlearning_rate = 1e38\ncentral = { noise_multipliers = [3.0], clipping_norm = 1.0 }\n[[limits]]\narms = [\"central z=3\"]\nmax_auc = 0.9\n[attacks]";
    let folder = with_file("small.toml", &study_with("[attacks]", arm));
    let text = dosimeter(folder.path(), &["run", "small.toml", "--out", "run", "--quiet"]);
    assert!(text.starts_with("exit: 4\n"), "{text}");
    for said in [
        "no result: central z=3: train, central z=3, repeat 0:",
        "smaller learning rate",
        "undecided: central z=3: AUC at most 0.9: no result:",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    let again = dosimeter(folder.path(), &["run", "small.toml", "--out", "run", "--json"]);
    for said in ["\"setting\": \"central z=3\"", "\"undecided\": [\n    {", "\"auc_interval\": {"] {
        assert!(again.contains(said), "{said}\n{again}");
    }
    assert!(again.contains("\"test_accuracy_interval\": {"), "{again}");
}

#[test]
fn a_study_of_which_every_setting_diverges_has_the_same_exit_code_and_an_object() {
    let limit = "[[limits]]\nmax_auc = 0.9\n[attacks]";
    let study = study_with("[attacks]", limit).replace("= 0.02", "= 1e38");
    let folder = with_file("small.toml", &study);
    let text =
        dosimeter(folder.path(), &["run", "small.toml", "--out", "run", "--quiet", "--json"]);
    assert!(text.starts_with("exit: 4\n--- stdout\n{"), "{text}");
    for said in [
        "\"setting\": \"no DP\"",
        "\"setting\": \"local eps=1\"",
        "\"outcome\": \"inconclusive\"",
        "error: no setting has a result\n",
        "undecided: central z=1: AUC at most 0.9: no result:",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
}

/// There `pld` proves nothing, and `rdp` something: one bound, under its own name, in every place.
#[test]
fn at_a_tiny_delta_the_bound_that_there_is_leads_everywhere_under_its_own_name() {
    let study = study_with("[attacks]", "[audit]\ndelta = 1e-300\n[attacks]");
    let folder = with_file("small.toml", &study);
    let text = dosimeter(folder.path(), &["run", "small.toml", "--out", "run", "--quiet"]);
    assert!(text.starts_with("exit: 0\n"), "{text}");
    let row = text.lines().find(|l| l.trim_start().starts_with("central z=1 ")).unwrap();
    assert!(!row.contains("unbounded"), "{text}");
    assert!(text.contains("add-remove, per record, rdp (central z=1)"), "{text}");
    let summary = std::fs::read_to_string(folder.path().join("run/summary.csv")).unwrap();
    let rows = || summary.lines().filter(|l| l.starts_with("central z=1,"));
    assert!(rows().count() > 0 && rows().all(|l| l.contains(",record,rdp,")), "{summary}");
}

#[test]
fn an_attack_network_that_runs_away_names_attack_setting_repeat_epoch_and_field() {
    let study =
        study_with("filters = 4, epochs = 2", "filters = 4, epochs = 2, learning_rate = 1e38");
    let folder = with_file("small.toml", &study);
    let text = dosimeter(folder.path(), &["run", "small.toml", "--out", "run", "--quiet"]);
    assert!(text.starts_with("exit: 2\n"), "{text}");
    assert!(text.contains("error: attack white_box on "), "{text}");
    for said in [", repeat ", "after epoch 1; a smaller white_box.learning_rate may help"] {
        assert!(text.contains(said), "{said}\n{text}");
    }
}
