//! Bad data: exit code 2, file, row and field named, nothing half-written.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::path::Path;
use std::process::Command;

const STUDY: &str = r#"name = "bad"
seed = 1
[dataset]
kind = "csv"
path = "people.csv"
label = "class"
[split]
train = 2
test = 1
[target]
hidden = [4]
learning_rate = 0.01
batch_size = 1
epochs = 1
[[arms]]
central = { noise_multipliers = [1.0], clipping_norm = 1.0 }
[attacks]
names = ["loss_threshold"]
"#;

/// Exit code and stderr of a run in `folder`.
fn run(folder: &Path) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_dosimeter"))
        .args(["run", "study.toml", "--out", "run", "--quiet"])
        .current_dir(folder)
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}
fn with(study: &str, csv: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("study.toml"), study).unwrap();
    std::fs::write(folder.path().join("people.csv"), csv).unwrap();
    folder
}

#[test]
fn every_kind_of_bad_table_is_refused_with_file_and_row() {
    let table: &[(&str, &[u8], &[&str])] = &[
        ("ragged", b"a,b,class\n1,0,x\n1,y\n", &["people.csv", "row 3"]),
        ("three records", b"a,b,class\n1,0,x\n0,1,y\n1,1,x\n", &["candidates"]),
        ("empty", b"", &["people.csv"]),
        ("header only", b"a,b,class\n", &["people.csv", "no records"]),
        (
            "one class",
            b"a,b,class\n1,0,x\n0,1,x\n1,1,x\n0,0,x\n1,0,x\n",
            &["people.csv", "1 class"],
        ),
        ("no label column", b"a,b,c\n1,0,x\n", &["people.csv", "`class`"]),
        ("unbounded numbers", b"a,b,class\n1.5,0,x\n2.5,1,y\n", &["people.csv", "`a`", "bounds"]),
        ("binary rubbish", &[0xff, 0xfe, 0x00, b'\n', 0x80], &["people.csv"]),
    ];
    for (what, csv, expected) in table {
        let folder = with(STUDY, csv);
        let (code, stderr) = run(folder.path());
        assert_eq!(code, Some(2), "{what}: {stderr}");
        assert!(stderr.starts_with("error: "), "{what}: {stderr}");
        for word in *expected {
            assert!(stderr.contains(word), "{what}: `{word}` is not in: {stderr}");
        }
        assert!(!folder.path().join("run/report.json").exists(), "{what}");
    }
}

#[test]
fn nan_in_a_bounded_column_is_refused_with_its_row_and_field() {
    let study = STUDY.replace(
        "label = \"class\"",
        "label = \"class\"\ncolumns = { a = { kind = \"real\", low = 0, high = 10 } }",
    );
    let folder = with(&study, b"a,b,class\n1,0,x\nNaN,1,y\n1,1,x\n");
    let (code, stderr) = run(folder.path());
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("row 3") && stderr.contains("`a`"), "{stderr}");
}

#[test]
fn a_data_file_that_cannot_be_read_is_named() {
    let folder = with(STUDY, b"");
    std::fs::remove_file(folder.path().join("people.csv")).unwrap();
    let (code, stderr) = run(folder.path());
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("people.csv"), "{stderr}");
    // A folder where a file should be.
    std::fs::create_dir(folder.path().join("people.csv")).unwrap();
    let (code, stderr) = run(folder.path());
    assert_eq!(code, Some(2), "{stderr}");
}

#[test]
fn a_run_directory_that_cannot_be_made_is_an_error_and_not_a_crash() {
    let folder = with(STUDY, b"a,b,class\n1,0,x\n0,1,y\n1,1,x\n0,0,y\n1,0,y\n0,1,x\n");
    std::fs::write(folder.path().join("run"), "a file in the way").unwrap();
    let (code, stderr) = run(folder.path());
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("run"), "{stderr}");
}
