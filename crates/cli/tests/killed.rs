//! A run that is interrupted or killed, and resumed each time, ends with the same digests.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const STUDY: &str = r#"name = "killed"
seed = 5
repeats = 2
[dataset]
kind = "skewed-purchases"
classes = 10
train_records = 2000
test_records = 200
[split]
train = 200
test = 100
[target]
hidden = [32]
learning_rate = 0.01
batch_size = 20
epochs = 20
[shadows]
count = 3
[[arms]]
central = { noise_multipliers = [1.0, 4.0], clipping_norm = 1.0 }
[[arms]]
local = { epsilons_per_feature = [1.0] }
[attacks]
names = ["loss_threshold", "shadow_model"]
shadow_model = { epochs = 10 }
"#;

fn command(folder: &Path, out: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dosimeter"));
    command
        .args(["run", "study.toml", "--quiet", "--out", out, "--threads", "2"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Artifacts of a run: name and content.
fn artifacts(root: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for folder in std::fs::read_dir(root.join("tasks")).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            found.push((name, std::fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_says_so_with_130_and_goes_on_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("study.toml"), STUDY).unwrap();
    assert!(command(folder.path(), "straight").status().unwrap().success());

    let tasks = folder.path().join("stopped/tasks");
    let done = || std::fs::read_dir(&tasks).is_ok_and(|mut entries| entries.next().is_some());
    let mut child = command(folder.path(), "stopped").stderr(Stdio::piped()).spawn().unwrap();
    while !done() {
        assert!(child.try_wait().unwrap().is_none(), "ended before its first task was done");
        std::thread::sleep(Duration::from_millis(1));
    }
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("stopped on request"), "{stderr}");
    let kept = artifacts(&folder.path().join("stopped")).len();
    let all = artifacts(&folder.path().join("straight"));
    assert!(kept > 0 && kept < all.len(), "{kept} of {} tasks were done", all.len());
    assert!(!folder.path().join("stopped/report.json").exists());

    assert!(command(folder.path(), "stopped").status().unwrap().success());
    let read = |run: &str| std::fs::read(folder.path().join(run).join("report.json")).unwrap();
    assert_eq!(read("stopped"), read("straight"));
    assert_eq!(artifacts(&folder.path().join("stopped")), all);
}

#[test]
fn ten_kills_change_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("study.toml"), STUDY).unwrap();
    let start = Instant::now();
    assert!(command(folder.path(), "straight").status().unwrap().success());
    let whole = start.elapsed();

    let mut kills = 0;
    // Moments spread over the run by the golden ratio: early and late ones, never the same twice.
    for attempt in 1..=60_u32 {
        let part = (f64::from(attempt) * 0.618_033_988_75).fract();
        let mut child = command(folder.path(), "killed").spawn().unwrap();
        std::thread::sleep(whole.mul_f64(part.mul_add(0.6, 0.05)).max(Duration::from_millis(5)));
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap(); // SIGKILL
            kills += 1;
        }
        child.wait().unwrap();
        if kills == 10 {
            break;
        }
        if folder.path().join("killed/report.json").exists() {
            // Finished between kills: begin again, the count goes on.
            std::fs::remove_dir_all(folder.path().join("killed")).unwrap();
        }
    }
    assert_eq!(kills, 10, "the run was too quick to be killed ten times");
    assert!(command(folder.path(), "killed").status().unwrap().success());
    let read = |run: &str, name: &str| std::fs::read(folder.path().join(run).join(name)).unwrap();
    assert_eq!(read("killed", "report.json"), read("straight", "report.json"));
    assert_eq!(
        artifacts(&folder.path().join("killed")),
        artifacts(&folder.path().join("straight"))
    );
    assert_eq!(std::fs::read_dir(folder.path().join("killed/unfinished")).unwrap().count(), 0);
}
