//! Bad data: exit code 2, file, row and field named, nothing half-written.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod command;

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

/// The study of `people.csv` with the fewest records that a split may ask for.
static STUDY: LazyLock<String> = LazyLock::new(|| {
    let dataset = dosimeter_testing::STUDY.lines().skip(3).take(5).collect::<Vec<_>>().join("\n");
    dosimeter_testing::study_with(
        &dataset,
        "[dataset]\nkind = \"csv\"\npath = \"people.csv\"\nlabel = \"class\"",
    )
    .replace("train = 40\ntest = 40", "train = 2\ntest = 1")
    .replace("batch_size = 10", "batch_size = 1")
});

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
        let folder = with(&STUDY, csv);
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
    command::run(folder, arguments.iter().copied())
}
const TABLE: &[u8] = b"a,b,class\n1,0,x\n0,1,y\n1,1,x\n0,0,y\n";

#[test]
fn a_network_too_large_for_memory_is_refused_with_its_field() {
    let folder = with(&STUDY.replace("[8]", "[65536, 65536]"), TABLE);
    let (code, stderr) = run(folder.path());
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("study.toml:12: target.hidden: needs"), "{stderr}");
    assert!(stderr.contains("got 4295360514 "), "{stderr}");
}

#[test]
fn the_data_set_is_not_overwritten_by_its_randomized_records() {
    let folder = with(&STUDY, TABLE);
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
    let folder = with(&STUDY, TABLE);
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
    let folder = with(&STUDY, TABLE);
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
    let folder = with(&STUDY, TABLE);
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
    let folder = with(&STUDY, TABLE);
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
    let folder = with(&STUDY, b"");
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
    let folder = with(&STUDY, b"a,b,class\n1,0,x\n0,1,y\n1,1,x\n0,0,y\n1,0,y\n0,1,x\n");
    std::fs::write(folder.path().join("run"), "a file in the way").unwrap();
    let (code, stderr) = run(folder.path());
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("run"), "{stderr}");
}

/// Spoils the generated study in one place; gives what is said, of `run` and of `plan` alike, before any training.
fn refused(from: &str, to: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let study = dosimeter_testing::study_with(from, to);
    std::fs::write(folder.path().join("study.toml"), study).unwrap();
    let (code, stderr) = run(folder.path());
    assert_eq!(code, Some(2), "{to}: {stderr}");
    assert!(!folder.path().join("run").exists(), "{to}: nothing is begun");
    let (code, _, planned) = dosimeter(folder.path(), &["plan", "study.toml"]);
    assert_eq!((code, &planned), (Some(2), &stderr), "{to}");
    stderr
}

#[test]
fn sizes_that_cannot_work_are_told_before_training_with_the_line_and_the_needed_number() {
    for (from, to, expected) in [
        (
            "train = 40",
            "train = 4000",
            "study.toml:10: split.train: needs 2 x 4000 candidates + 40 test records of the train law, there are 400\n",
        ),
        (
            "test = 40",
            "test = 200",
            "study.toml:11: split.test: needs 200 test records of the test law, there are 100\n",
        ),
        (
            "train = 40",
            "train = 100",
            "study.toml:10: split.train: needs 2 x 100 candidates for each shadow model, and the shadow pool has 160 records\n",
        ),
        (
            "test = 40",
            "test = 7",
            "study.toml:11: split.test: needs at least 8 records, the non-members of the test law for `white_box`, got 7\n",
        ),
        (
            "epochs = 4",
            "epochs = 4\nearly_stopping = { patience = 1, records = 100000 }",
            "study.toml:17: target.early_stopping.records: needs 100000 validation records of the shadow pool, there are 280\n",
        ),
        (
            "epochs = 4",
            "epochs = 4\nearly_stopping = { patience = 1, records = 202 }",
            "study.toml:17: target.early_stopping.records: needs at most 200 records, so that 2 x 40 candidates for each shadow model remain in the shadow pool, got 202\n",
        ),
    ] {
        let stderr = refused(from, to);
        assert!(stderr.starts_with(&format!("error: {expected}")), "{to}: {stderr}");
    }
}

/// Among 4 fair coins there are never 8 heads; among 16, 8 of each in 1 draw of 5, so some of the two repeats fails.
#[test]
fn a_confidence_that_no_report_can_use_is_refused_with_its_range() {
    let limit = |confidence| format!("[audit]\nconfidence = {confidence}\n[attacks]");
    for confidence in ["0.9999999999999999", "0.9999991", "1"] {
        let stderr = refused("[attacks]", &limit(confidence));
        let expected = format!(
            "error: study.toml:24: audit.confidence: needs a number above 0.5 and at most 0.999999, got {confidence}\n"
        );
        assert!(stderr.starts_with(&expected), "{stderr}");
    }
}

#[test]
fn a_draw_with_too_few_members_is_told_before_training() {
    for train in ["2", "3", "6"] {
        let stderr = refused(
            "train = 40\ntest = 40\n[target]\nhidden = [8]\nlearning_rate = 0.02\nbatch_size = 10",
            &format!(
                "train = {train}\ntest = 40\n[target]\nhidden = [8]\nlearning_rate = 0.02\nbatch_size = 1"
            ),
        );
        let start = "error: study.toml:10: split.train: needs at least 8 members and 8 non-members for `white_box`, repeat ";
        assert!(stderr.starts_with(start), "{stderr}");
    }
}

/// Whatever a small study asks for, it is refused before it begins or it runs to its end.
#[test]
fn no_small_study_fails_after_training() {
    let folder = tempfile::tempdir().unwrap();
    let (mut ran, mut not) = (0, 0);
    for train in 2..=12 {
        for attacks in ["\"loss_threshold\"", "\"loss_threshold\", \"shadow_model\""] {
            let study = dosimeter_testing::STUDY
                .replace("train = 40\n", &format!("train = {train}\n"))
                .replace("test = 40\n", "test = 4\n")
                .replace("batch_size = 10", "batch_size = 1")
                .replace("repeats = 2", "repeats = 1")
                .replace("\"loss_threshold\", \"shadow_model\", \"white_box\"", attacks);
            let out = format!("run {train} {}", attacks.len());
            std::fs::write(folder.path().join("study.toml"), study).unwrap();
            let run = ["run", "study.toml", "--quiet", "--out", &out];
            let (code, _, stderr) = dosimeter(folder.path(), &run);
            let begun = folder.path().join(&out).exists();
            assert_eq!(begun, code == Some(0), "n = {train}, {attacks}: {stderr}");
            assert!(begun || stderr.contains("study.toml:10: split.train: needs"), "{stderr}");
            *(if begun { &mut ran } else { &mut not }) += 1;
        }
    }
    assert!(ran > 3 && not > 3, "{ran} ran, {not} did not");
}

#[test]
fn a_setting_that_the_data_refuse_is_named_with_its_line() {
    for (from, to, expected) in [
        (
            "classes = 4",
            "classes = 7",
            "study.toml:6: dataset.classes: needs a divisor of 600 from 2 on, got 7\n",
        ),
        (
            "classes = 4",
            "classes = 4\ntest_noise = 1e300",
            "study.toml:7: dataset.test_noise: needs a probability from 0 to 1, got 1e300\n",
        ),
        (
            "train_records = 400",
            "train_records = 9999999999",
            "study.toml:7: dataset.train_records: invalid value: integer `9999999999`, expected a whole number from 0 to 4294967295\n",
        ),
        (
            "learning_rate = 0.02",
            "learning_rate = inf",
            "study.toml:14: target.learning_rate: needs a finite number above 0, got inf\n",
        ),
        (
            "train_records = 400",
            "train_records = 0",
            "study.toml:7: dataset.train_records: needs at least 1, and at most 20000000 with test_records, got 0 with test_records 100\n",
        ),
    ] {
        let stderr = refused(from, to);
        assert!(stderr.starts_with(&format!("error: {expected}")), "{to}: {stderr}");
    }
    for (more, expected) in [
        (
            "ignore = [\"class\"]",
            "study.toml:8: dataset.ignore: needs columns other than the label, got a list with the label `class`\n",
        ),
        (
            "columns.class = { kind = \"bit\" }",
            "study.toml:8: dataset.columns.class: needs columns other than the label, got what the label column holds\n",
        ),
        (
            "columns.a = { kind = \"real\", low = 1e300, high = 1 }",
            "study.toml:8: dataset.columns.a.low: needs finite and below a finite high, got 1e300 with high 1\n",
        ),
    ] {
        let label = "label = \"class\"";
        let folder = with(&STUDY.replace(label, &format!("{label}\n{more}")), TABLE);
        let (code, stderr) = run(folder.path());
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.starts_with(&format!("error: {expected}")), "{more}: {stderr}");
        let (_, _, inspected) = dosimeter(folder.path(), &["data", "inspect", "study.toml"]);
        assert!(inspected.starts_with(&format!("error: {expected}")), "{more}: {inspected}");
    }
}

#[test]
fn a_study_of_the_repository_without_its_data_names_the_exact_path() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("studies")).unwrap();
    let mut without = 0;
    for entry in std::fs::read_dir(dosimeter_testing::workspace().join("studies")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let Some(data) = text.lines().find_map(|l| l.strip_prefix("path = \"")) else { continue };
        let data = data.split('"').next().unwrap();
        std::fs::write(folder.path().join("studies").join(&name), &text).unwrap();
        let (code, stdout, stderr) =
            dosimeter(folder.path(), &["plan", &format!("studies/{name}")]);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{name}: {stderr}");
        assert!(stderr.starts_with(&format!("error: studies/{data}")), "{name}: {stderr}");
        without += 1;
    }
    assert!(without >= 4, "only {without} studies have a file of data");
}

#[test]
fn attack_networks_too_large_for_memory_are_refused_with_their_field() {
    for (from, to, expected) in [
        (
            "{ epochs = 3 }",
            "{ hidden = 9223372036854775807 }",
            "study.toml:25: attacks.shadow_model.hidden: needs a network of at most 100000000 parameters, got 18446744073709551615 with 4 inputs",
        ),
        (
            // 9 inputs times height 4, and 128 units behind the one position: 164 a filter.
            "{ filters = 4, epochs = 2 }",
            "{ filters = 4000000000 }",
            "study.toml:26: attacks.white_box.filters: needs a network of at most 100000000 parameters, got 656000000000 with 9 inputs",
        ),
    ] {
        let stderr = refused(from, to);
        assert!(stderr.starts_with(&format!("error: {expected}")), "{to}: {stderr}");
    }
}

/// The bound is 2^29 over the root of 4844 parameters.
#[test]
fn exact_noise_is_refused_before_training_where_it_cannot_be_drawn_and_drawn_below() {
    let folder = tempfile::tempdir().unwrap();
    let with = |multiplier: &str| {
        let study = dosimeter_testing::STUDY
            .replace("repeats = 2", "repeats = 1\nnoise = \"exact\"")
            .replace("noise_multipliers = [1.0]", &format!("noise_multipliers = [{multiplier}]"))
            .replace("\"loss_threshold\", \"shadow_model\", \"white_box\"", "\"loss_threshold\"");
        std::fs::write(folder.path().join("study.toml"), study).unwrap();
        run(folder.path())
    };
    let (code, stderr) = with("1e9");
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("arms: needs noise multipliers of at most 7713"), "{stderr}");
    assert!(!folder.path().join("run").exists());
    let (code, stderr) = with("7.7e6");
    assert_eq!(code, Some(0), "{stderr}");
}

#[test]
fn a_loss_per_feature_out_of_range_names_its_flag_and_range() {
    let folder = tempfile::tempdir().unwrap();
    for given in ["0", "-1", "1001", "nan", "x"] {
        let command =
            format!("data randomize study.toml --epsilon-per-feature {given} --out out.csv");
        let (code, _, said) = command::run(folder.path(), command.split(' '));
        assert_eq!(code, Some(2), "{said}");
        let needed = "--epsilon-per-feature needs a number of nats from 1e-9 to 1000, got";
        assert!(said.contains(needed), "{said}");
    }
}
