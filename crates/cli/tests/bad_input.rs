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

fn dosimeter(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_dosimeter"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}
const TABLE: &[u8] = b"a,b,class\n1,0,x\n0,1,y\n1,1,x\n0,0,y\n";

#[test]
fn a_network_too_large_for_memory_is_refused_with_its_field() {
    let folder = with(&STUDY.replace("[4]", "[65536, 65536]"), TABLE);
    let (code, stderr) = run(folder.path());
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("study.toml:11: target.hidden: needs"), "{stderr}");
    assert!(stderr.contains("got 4295360514 "), "{stderr}");
}

#[test]
fn the_data_set_is_not_overwritten_by_its_randomized_records() {
    let folder = with(STUDY, TABLE);
    let randomize = ["data", "randomize", "study.toml", "--epsilon-per-feature", "1", "--out"];
    let (code, _, stderr) = dosimeter(folder.path(), &[&randomize[..], &["./people.csv"]].concat());
    assert_eq!(code, Some(2), "{stderr}");
    assert_eq!(std::fs::read(folder.path().join("people.csv")).unwrap(), TABLE);
    let (code, ..) = dosimeter(folder.path(), &[&randomize[..], &["other.csv"]].concat());
    assert_eq!(code, Some(0));
}

/// A socket stands for a device: also no file, and a test may make one. Opening it fails; replacing it would not.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_never_replaced_by_one() {
    use std::os::unix::fs::FileTypeExt;
    let folder = with(STUDY, TABLE);
    let socket = folder.path().join("socket");
    let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let generate =
        ["data", "generate", "--train-records", "10", "--classes", "2", "--out", "socket"];
    let (code, _, stderr) = dosimeter(folder.path(), &generate);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(std::fs::symlink_metadata(&socket).unwrap().file_type().is_socket());
}

#[test]
fn a_report_that_is_none_is_named() {
    let folder = with(STUDY, TABLE);
    std::fs::create_dir(folder.path().join("run")).unwrap();
    std::fs::write(folder.path().join("run/report.json"), "{}").unwrap();
    for arguments in [&["report", "run"][..], &["compare", "run", "run"]] {
        let (code, _, stderr) = dosimeter(folder.path(), arguments);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.starts_with("error: run/report.json: not a report"), "{stderr}");
    }
}

#[test]
fn budgets_without_end_and_numbers_that_are_none_end_in_an_answer_or_an_error() {
    let folder = with(STUDY, TABLE);
    let steps = ["account", "steps", "--sampling-rate", "0.5", "--noise-multiplier", "1"];
    let unlimited = [&steps[..], &["--epsilon", "1", "--delta", "1"]].concat();
    let (code, stdout, stderr) = dosimeter(folder.path(), &unlimited);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("steps             1000000000000\n"), "{stdout}");

    let epsilon = ["account", "epsilon", "--sampling-rate", "0.5", "--noise-multiplier", "1"];
    for steps in ["1e18", "-1", "1.5", "18446744073709551616"] {
        let steps = format!("--steps={steps}");
        let arguments = [&epsilon[..], &["--delta", "1e-5", &steps]].concat();
        let (code, _, stderr) = dosimeter(folder.path(), &arguments);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains("needs a whole number from 0 to 1000000000000"), "{stderr}");
    }
}

#[test]
fn a_printed_epsilon_is_rounded_up() {
    let folder = with(STUDY, TABLE);
    let tiny = "account epsilon --noise-multiplier 1e6 --sampling-rate 1 --steps 1 --delta 1e-9";
    let (code, stdout, _) = dosimeter(folder.path(), &tiny.split(' ').collect::<Vec<_>>());
    assert_eq!(code, Some(0));
    let printed = stdout.lines().next().unwrap().rsplit(' ').next().unwrap();
    let printed: f64 = printed.parse().unwrap();
    let (_, json, _) =
        dosimeter(folder.path(), &format!("{tiny} --json").split(' ').collect::<Vec<_>>());
    let exact = json.lines().find(|l| l.contains("epsilon_upper")).unwrap();
    let exact: f64 = exact.trim_end_matches(',').rsplit(' ').next().unwrap().parse().unwrap();
    assert!(exact > 0.0 && printed >= exact && printed < exact + 1e-6, "{printed} {exact}");
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
