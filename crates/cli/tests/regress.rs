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
    assert!(said.contains("ada_ssp on 400 rows: epsilon_upper 19.99"), "{said}");
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
    assert!(said.contains("nothing is proved"), "{said}");
    let (table, _) = run(
        "regress compare visits.csv --bounds b.toml --epsilons 1,5 --draws 3 --mechanisms ada_ssp,rls_out --attribute town --out run -q",
    );
    assert!(table.contains("rls_out") && table.contains("replaced, delta"), "{table}");
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
            "bounds the target `cost`",
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
    ] {
        let (code, out, said) = dosimeter(folder.path(), command);
        assert_eq!(code, Some(2), "{command}: {said}{out}");
        assert!(said.contains(wanted) && !said.contains("panicked"), "{command}: {said}");
    }
}
