//! `dosimeter regress` on a small table.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
mod command;

use std::fmt::Write as _;
use std::path::Path;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "age,town,cost\n".to_owned();
    for i in 0..400 {
        let (age, town) = (i * 37 % 101, i * 13 % 3);
        writeln!(text, "{age},{},{}", ["Ulm", "Bonn", "Kiel"][town], 10 * town + age / 10).unwrap();
    }
    std::fs::write(folder.path().join("visits.csv"), text).unwrap();
    let bounds = "[columns.age]\nlower = 0\nupper = 100\n[columns.town]\ncategories = [\"Ulm\", \"Bonn\", \"Kiel\"]\n[target]\nname = \"cost\"\nlower = 0\nupper = 40\n";
    std::fs::write(folder.path().join("b.toml"), bounds).unwrap();
    folder
}
fn dosimeter(folder: &Path, command: &str) -> (Option<i32>, String, String) {
    command::run(folder, command.split(' '))
}

#[test]
fn a_model_is_fitted_used_and_inverted() {
    let folder = folder();
    let run = |command: &str| {
        let (code, out, said) = dosimeter(folder.path(), command);
        assert_eq!(code, Some(0), "{command}: {said}");
        (out, said)
    };
    let (_, said) = run(
        "regress fit visits.csv --bounds b.toml --target cost --epsilon 20 --out m.json --onnx m.onnx",
    );
    assert!(said.contains("ada_ssp on 400 rows: approximate, epsilon_upper 19.99"), "{said}");
    assert!(said.contains("at delta 0.000025 (replace-one, unit record, pld)"), "{said}");
    let inspected = run("model inspect m.onnx").0;
    assert!(inspected.contains("linear"), "{inspected}");
    let (predictions, said) = run("regress predict m.json visits.csv --bounds b.toml");
    assert_eq!(predictions.lines().count(), 401);
    assert!(said.contains("400 rows, mean squared error"), "{said}");
    let (found, _) = run("regress invert m.json visits.csv --bounds b.toml --attribute town");
    assert!(found.contains("prior alone") && found.contains("null: responses"), "{found}");
    // No noise that can be had again without a word.
    let said = run("regress fit visits.csv --bounds b.toml --epsilon 1 --seed 1 --out s.json").1;
    assert!(said.contains("not to be given away"), "{said}");
    let said =
        run("regress fit visits.csv --bounds b.toml --epsilon 1 --mechanism least_squares").1;
    assert!(said.contains("not-private: no epsilon_upper, nothing is proved"), "{said}");
    let (table, _) = run(
        "regress compare visits.csv --bounds b.toml --epsilons 1,5 --draws 3 --mechanisms ada_ssp,rls_out --attribute town --out run -q",
    );
    assert!(table.contains("rls_out") && table.contains("replaced, delta"), "{table}");
    let promises: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
    assert_eq!(promises[0], ["mechanism", "promise"]);
    assert!(promises.contains(&vec!["rls_out", "pure"]), "{table}");
    assert!(promises.contains(&vec!["ada_ssp", "approximate"]), "{table}");
    assert!(folder.path().join("run/report.html").is_file());
}

#[test]
fn bad_input_is_refused_in_words() {
    let folder = folder();
    std::fs::write(folder.path().join("bad.json"), "{").unwrap();
    for (command, wanted) in [
        (
            "regress fit visits.csv --bounds b.toml --epsilon 0",
            "epsilon must be finite and above 0",
        ),
        ("regress fit visits.csv --bounds b.toml --epsilon -1", "error: "),
        ("regress fit visits.csv --bounds b.toml --epsilon nan", "error: "),
        ("regress fit visits.csv --bounds b.toml --epsilon inf", "epsilon must be finite"),
        ("regress fit visits.csv --bounds none.toml --epsilon 1", "none.toml"),
        ("regress fit none.csv --bounds b.toml --epsilon 1", "none.csv"),
        (
            "regress fit visits.csv --bounds b.toml --epsilon 1 --target age",
            "the bounds have the target `cost`",
        ),
        (
            "regress fit visits.csv --bounds b.toml --epsilon 1 --mechanism ols",
            "there is no mechanism `ols`",
        ),
        (
            "regress fit visits.csv --bounds b.toml --epsilon 1 --radius 0",
            "radius must be finite and above 0",
        ),
        ("regress fit b.toml --bounds visits.csv --epsilon 1", "error: "),
        (
            "regress predict bad.json visits.csv --bounds b.toml",
            "not a model written by `regress fit`",
        ),
        (
            "regress compare visits.csv --bounds b.toml --epsilons 0 --out r",
            "needed numbers above 0",
        ),
        (
            "regress compare visits.csv --bounds b.toml --attribute age --out r",
            "there is no attribute `age`",
        ),
        ("regress simulate --iwpc visits.csv", "error: "),
        (
            "regress simulate --iwpc none.csv --fixed-mg 1e300",
            "needed 0 to 100 mg a day, got 1e300",
        ),
        ("regress fit --iwpc visits.csv --epsilon 1", "no column `Therapeutic Dose of Warfarin`"),
        ("regress fit --iwpc visits.csv --epsilon 1 --target dose", "no dose of the IWPC's table"),
        ("regress fit visits.csv --epsilon 1", "--bounds"),
        ("regress fit visits.csv --bounds b.toml --iwpc w.csv --epsilon 1", "cannot be used with"),
        (
            "regress fit visits.csv --bounds visits.csv --epsilon 1",
            "hint: docs/guide/regression.md says what a table, its bounds and a model hold",
        ),
    ] {
        let (code, out, said) = dosimeter(folder.path(), command);
        assert_eq!(code, Some(2), "{command}: {said}{out}");
        assert!(said.contains(wanted) && !said.contains("panicked"), "{command}: {said}");
    }
}

#[test]
fn a_table_without_its_target_is_predicted_and_its_attributes_are_named() {
    let folder = folder();
    let run = |command: &str| dosimeter(folder.path(), command);
    assert_eq!(run("regress fit visits.csv --bounds b.toml --epsilon 9 --out m.json").0, Some(0));
    std::fs::write(folder.path().join("new.csv"), "age,town\n40,Ulm\n50,Kiel\n").unwrap();
    let (code, out, said) = run("regress predict m.json new.csv --bounds b.toml");
    assert_eq!((code, out.lines().count()), (Some(0), 3), "{said}");
    assert_eq!(said, "2 rows, no column `cost` to compare with\n");
    let (code, _, said) = run("regress invert m.json new.csv --bounds b.toml --attribute town");
    assert!(code == Some(2) && said.contains("no column `cost`"), "{said}");
    let help = run("regress invert --help").1.replace('\n', " ");
    assert!(help.contains("true targets, which the table must have"), "{help}");
    let unknown = "regress invert m.json visits.csv --bounds b.toml --attribute town --unknown";
    let (code, _, said) = run(&format!("{unknown} height"));
    assert!(code == Some(2) && said.contains("there are: town, age"), "{said}");
    let (code, _, said) = run(&format!("{unknown} age"));
    assert_eq!(code, Some(0), "{said}");
    let listed = run("list datasets").1;
    assert!(listed.contains("\niwpc\n") && listed.contains("\nbounded\n"), "{listed}");
    let help = run("list --help").1;
    assert!(help.contains("regressions"), "{help}");
    if Path::new("/dev/zero").exists() {
        for command in [
            "regress fit visits.csv --bounds /dev/zero --epsilon 1",
            "regress predict /dev/zero visits.csv --bounds b.toml",
            "plan /dev/zero",
        ] {
            let (code, _, said) = run(command);
            assert!(
                code == Some(2) && said.contains("needs a file, got a device"),
                "{command}: {said}"
            );
        }
    }
}

#[test]
fn a_run_of_regression_is_planned_kept_and_told_from_others() {
    let folder = folder();
    let run = |command: &str| dosimeter(folder.path(), command);
    let text = "name = \"visits\"\n[regression]\nkind = \"bounded\"\npath = \"visits.csv\"\nbounds = \"b.toml\"\n[fit]\nmechanisms = [\"ada_ssp\"]\ndraws = 3\n";
    std::fs::write(folder.path().join("study.toml"), text).unwrap();
    let (code, out, said) = run("plan study.toml --json");
    assert_eq!(code, Some(0), "{said}");
    let plan: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((plan["draws"].as_u64(), plan["fits"].as_array().unwrap().len()), (Some(3), 5));
    assert_eq!(plan["fits"][0]["claim"], "approximate");
    assert!(plan["estimated_seconds"].as_f64().unwrap() > 0.0);
    let out = run("plan study.toml").1;
    assert!(out.starts_with("3 draws of 5 fits to 320 of 400 rows; about "), "{out}");
    let out = run("data inspect study.toml").1;
    assert!(
        out.starts_with("visits.csv: 400 rows, 3 columns\nto predict cost from 0 to 40\n"),
        "{out}"
    );
    assert!(out.contains("attribute town: Ulm, Bonn, Kiel"), "{out}");
    let compare =
        "regress compare visits.csv --bounds b.toml --mechanisms rls_out --draws 2 -q --out run";
    assert_eq!(run(compare).0, Some(0));
    let report = || std::fs::read(folder.path().join("run/report.json")).unwrap();
    let before = report();
    let (code, _, said) = run(&format!("{compare} --epsilons 7"));
    assert!(code == Some(2) && said.contains("with other settings (epsilons)"), "{said}");
    assert!(said.contains("hint: give another --out"), "{said}");
    assert_eq!(report(), before);
    assert_eq!(run(compare).0, Some(0));
    for command in ["trace epsilon run", "trace record 0 run", "report run"] {
        let (code, _, said) = run(command);
        let wanted = "the run of a study of regression; trace, report and compare follow studies of membership";
        assert!(code == Some(2) && said.contains(wanted), "{command}: {said}");
    }
}
