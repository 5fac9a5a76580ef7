//! A run may be stopped, damaged, and done by any number of threads: the report is the same, byte for byte.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use dosimeter_study::plan::Task;
use dosimeter_study::run::{Silent, Speed, Watch};
use dosimeter_study::{Error, Session, Store, report};
use dosimeter_testing::STUDY;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

fn study(folder: &Path) -> PathBuf {
    let file = folder.join("tiny.toml");
    std::fs::write(&file, STUDY).unwrap();
    file
}
fn one_thread() -> Speed {
    Speed { threads: Some(1) }
}
fn json(root: &Path) -> String {
    std::fs::read_to_string(root.join("report.json")).unwrap()
}

/// Stops after some tasks, and remembers what was reused and what was said.
#[derive(Default)]
struct Counting {
    stop_after: Option<usize>,
    done: AtomicUsize,
    reused: AtomicUsize,
    warnings: Mutex<Vec<String>>,
}
impl Watch for Counting {
    fn done(&self, _: &Task, reused: bool) {
        let counter = if reused { &self.reused } else { &self.done };
        counter.fetch_add(1, Ordering::SeqCst);
    }
    fn warn(&self, text: &str) {
        self.warnings.lock().unwrap().push(text.to_owned());
    }
    fn stop(&self) -> bool {
        self.stop_after.is_some_and(|most| self.done.load(Ordering::SeqCst) >= most)
    }
}

#[test]
fn threads_stops_and_damage_change_no_byte_of_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let file = study(folder.path());
    let session = Session::open(&file).unwrap();
    let tasks = session.plan.tasks().count();

    let straight = folder.path().join("straight");
    let report = session.run(&straight, one_thread(), &Silent).unwrap();
    assert_eq!(report.arms.len(), 3);
    assert_eq!(report::to_json(&report).unwrap(), json(&straight));

    let four = folder.path().join("four");
    session.run(&four, Speed { threads: Some(4) }, &Silent).unwrap();
    assert_eq!(json(&four), json(&straight), "four threads");

    // Stopped again and again, a few tasks at a time.
    let halting = folder.path().join("halting");
    let mut stops = 0;
    loop {
        let watch = Counting { stop_after: Some(5), ..Counting::default() };
        match session.run(&halting, one_thread(), &watch) {
            Ok(_) => break,
            Err(Error::Stopped) => stops += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(!halting.join("report.json").exists(), "no report of an unfinished run");
        assert!(stops < 100, "no progress");
    }
    assert!(stops >= 5, "stopped only {stops} times");
    assert_eq!(json(&halting), json(&straight), "stopped {stops} times");

    // A second run does nothing.
    let again = Counting::default();
    session.run(&halting, one_thread(), &again).unwrap();
    assert_eq!(again.done.load(Ordering::SeqCst), 0);
    assert_eq!(again.reused.load(Ordering::SeqCst), tasks);

    // Damage to every kind of artifact is noticed, said, and mended.
    let group = &session.plan.groups[0];
    let damaged = [&group.train, &group.query, &group.shadows[0], &group.attacks[0], &group.judge];
    for task in damaged {
        let path = Store::path(&halting, &task.id);
        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    let mending = Counting::default();
    session.run(&halting, one_thread(), &mending).unwrap();
    assert_eq!(mending.done.load(Ordering::SeqCst), damaged.len());
    assert_eq!(mending.warnings.lock().unwrap().len(), damaged.len());
    assert_eq!(json(&halting), json(&straight), "mended");
}

#[test]
fn measured_is_never_above_proved_and_limits_are_judged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("limited.toml");
    let text = STUDY.replace("repeats = 2", "repeats = 1").replace(
        "[attacks]",
        "[[limits]]\nmax_epsilon_upper = 0.001\n[[limits]]\narms = [\"central z=1\"]\nclaimed_epsilon = 1e6\n[attacks]",
    );
    std::fs::write(&file, text).unwrap();
    let session = Session::open(&file).unwrap();
    let report = session.run(&folder.path().join("run"), Speed::default(), &Silent).unwrap();
    for arm in &report.arms {
        let upper = arm.epsilon_upper.first().unwrap().value.get();
        for attack in &arm.attacks {
            for lower in attack.epsilon_lower.iter().filter(|l| l.caveats.is_empty()) {
                assert!(lower.value.get() <= upper, "{}: {}", arm.setting, attack.attack);
            }
        }
    }
    let outcomes: Vec<_> =
        report.checks.iter().map(|c| (c.setting.clone().unwrap(), c.outcome)).collect();
    assert_eq!(
        outcomes,
        [
            ("central z=1".to_owned(), report::Outcome::Violated),
            ("local eps=1".to_owned(), report::Outcome::Violated),
            ("central z=1".to_owned(), report::Outcome::Held),
        ]
    );
}

#[test]
fn a_record_and_an_epsilon_can_be_followed_through_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = study(folder.path());
    let session = Session::open(&file).unwrap();
    let root = folder.path().join("run");
    session.run(&root, Speed::default(), &Silent).unwrap();
    let epsilon = dosimeter_study::trace::epsilon(&root).unwrap();
    for (stage, _) in dosimeter_study::trace::EPSILON_PATH {
        assert!(epsilon.iter().any(|s| s.stage == *stage), "{stage}");
    }
    let account: Vec<&str> =
        epsilon.iter().filter(|s| s.stage == "account").map(|s| s.what.as_str()).collect();
    assert!(account.iter().any(|w| w.contains(", add-remove, per record, pld)")), "{account:?}");
    assert!(epsilon.iter().any(|s| s.stage == "measure" && s.what.contains("(test law) shows")));
    assert!(epsilon.iter().all(|s| !s.what.contains("0000000")), "short numbers");
    let candidate = report::from_json(&json(&root)).unwrap().risk[0].records[0].record;
    let record = dosimeter_study::trace::record(&root, candidate).unwrap();
    // This study has no core.
    let stages = dosimeter_study::trace::RECORD_PATH.iter().map(|(stage, _)| *stage);
    for stage in stages.filter(|stage| *stage != "run the core") {
        assert!(record.iter().any(|s| s.stage == stage), "{stage}");
    }
    for step in epsilon.iter().chain(&record) {
        assert!(step.artifact.as_ref().is_none_or(|a| root.join(a).is_file()), "{step:?}");
    }
    assert!(matches!(
        dosimeter_study::trace::record(&root, 500),
        Err(Error::NoSuchRecord { record: 500, last: 499 })
    ));
}

#[test]
fn the_report_of_an_edited_study_is_gone_when_its_run_begins() {
    let folder = tempfile::tempdir().unwrap();
    let file = study(folder.path());
    let root = folder.path().join("run");
    let session = Session::open(&file).unwrap();
    session.run(&root, Speed::default(), &Silent).unwrap();
    std::fs::remove_file(Store::path(&root, &session.plan.groups[0].train.id)).unwrap();
    let stopped = || {
        let watch = Counting { stop_after: Some(0), ..Counting::default() };
        Session::open(&file).unwrap().run(&root, one_thread(), &watch).unwrap_err()
    };
    stopped();
    assert!(root.join("report.json").exists(), "the same study: its report still holds");
    std::fs::write(&file, STUDY.replace("seed = 3", "seed = 4")).unwrap();
    stopped();
    for name in ["report.json", "report.html", "summary.csv", "roc.csv", "risk.csv"] {
        assert!(!root.join(name).exists(), "{name}");
    }
    assert!(matches!(dosimeter_study::session::read_report(&root), Err(Error::NoReport { .. })));
}

#[test]
fn what_is_wrong_in_a_run_directory_is_said_of_the_file_it_is_wrong_in() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run");
    Session::open(&study(folder.path())).unwrap().run(&root, Speed::default(), &Silent).unwrap();
    let refused = |name: &str, text: &str| {
        let path = root.join(name);
        let before = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text).unwrap();
        let error = dosimeter_study::trace::epsilon(&root).unwrap_err().to_string();
        std::fs::write(&path, &before).unwrap();
        assert!(error.starts_with(&path.display().to_string()), "{error}");
        error
    };
    refused("study.toml", "?");
    refused("run.json", "?");
    let origin = std::fs::read_to_string(root.join("run.json")).unwrap();
    let origin: serde_json::Value = serde_json::from_str(&origin).unwrap();
    assert!(Path::new(origin["study_file"].as_str().unwrap()).is_absolute());
    let mut other = origin;
    other["data_fingerprint"] = "0".into();
    std::fs::write(root.join("run.json"), other.to_string()).unwrap();
    assert!(matches!(dosimeter_study::trace::epsilon(&root), Err(Error::OtherData { .. })));
}

/// The arm of the last table trains at a rate at which no training stays finite, the others as they are.
const DIVERGING: &str = "[[arms]]\nlearning_rate = 1e38\ncentral = { noise_multipliers = [3.0], clipping_norm = 1.0 }\n[attacks]";

#[test]
fn an_arm_that_diverges_costs_its_own_result_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    let straight = Session::open(&study(folder.path())).unwrap();
    let without = straight.run(&whole, one_thread(), &Silent).unwrap();

    let file = folder.path().join("diverging.toml");
    let text = STUDY.replace("[attacks]", DIVERGING).replace(
        "[attacks]",
        "[[limits]]\nmax_epsilon_upper = 1e9\narms = [\"central z=3\"]\n[attacks]",
    );
    std::fs::write(&file, text).unwrap();
    let session = Session::open(&file).unwrap();
    let root = folder.path().join("run");
    let watch = Counting::default();
    let report = session.run(&root, one_thread(), &watch).unwrap();

    let [missing] = &report.missing[..] else { panic!("{:?}", report.missing) };
    assert_eq!(missing.setting, "central z=3");
    assert_eq!(missing.task, "train, central z=3, repeat 0");
    assert_eq!(missing.epoch, Some(1));
    assert!(missing.reason.contains("after epoch 1; a smaller learning rate"), "{missing:?}");
    assert_eq!(watch.warnings.lock().unwrap().len(), 1, "said once");
    // The others are what they are in a study without that arm.
    assert!(report.arms == without.arms, "an arm changed");
    let [check] = &report.checks[..] else { panic!("{:?}", report.checks) };
    assert_eq!(check.outcome, report::Outcome::Inconclusive);
    assert!(check.reason.starts_with("no result"), "{}", check.reason);
    assert!(report::sentences(&report).iter().any(|s| s.starts_with("central z=3 has no result")));
    let page = std::fs::read_to_string(root.join("report.html")).unwrap();
    assert!(page.contains("no result"));
    let summary = std::fs::read_to_string(root.join("summary.csv")).unwrap();
    let row = summary.lines().find(|l| l.starts_with("central z=3")).unwrap();
    assert!(row.starts_with("central z=3,central,3,1,,") && row.contains(",no-result"), "{row}");
    let same = report::compare::compare(&report, &report);
    assert!(same.only_before.is_empty() && same.missing[0].setting == "central z=3");
    dosimeter_study::trace::epsilon(&root).unwrap();

    // Neither a second run nor another number of threads trains it again or names another training.
    let again = Counting::default();
    session.run(&root, one_thread(), &again).unwrap();
    assert_eq!(again.done.load(Ordering::SeqCst), 0, "nothing is done again");
    assert!(again.warnings.lock().unwrap().is_empty());
    let four = folder.path().join("four");
    session.run(&four, Speed { threads: Some(4) }, &Silent).unwrap();
    assert_eq!(json(&four), json(&root), "four threads");
}

#[test]
fn without_the_yardstick_there_is_no_trade_off_and_without_any_arm_no_report() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tiny.toml");
    let text = STUDY.replace("[attacks]", "[[arms]]\nno_dp = {}\nlearning_rate = 1e38\n[attacks]");
    std::fs::write(&file, text).unwrap();
    let report =
        Session::open(&file).unwrap().run(&folder.path().join("a"), one_thread(), &Silent).unwrap();
    assert_eq!(report.missing[0].setting, "no DP");
    for phi in report.arms.iter().flat_map(|a| &a.attacks).flat_map(|a| &a.phi) {
        let report::PhiValue::Undefined { reason } = &phi.value else { panic!("{phi:?}") };
        assert!(reason.contains("no DP has no result"), "{reason}");
    }

    std::fs::write(&file, STUDY.replace("learning_rate = 0.02", "learning_rate = 1e38")).unwrap();
    let root = folder.path().join("b");
    let error = Session::open(&file).unwrap().run(&root, one_thread(), &Silent).unwrap_err();
    assert!(matches!(&error, Error::NothingLeft { missing, .. } if missing.len() == 3), "{error}");
    assert!(error.is_divergence());
    assert!(!root.join("report.json").exists());
}
