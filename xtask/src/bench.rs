//! Comparisons with peers: each `bench/NAME/run` measures both in one run.
use crate::step::{Done, all, cargo, output, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the named comparisons (all without names), one after another, into `bench/runs/DATE-MACHINE/NAME/`.
///
/// Each `run` is called in the workspace root with that folder as its argument, `PYTHON` set to the pinned environment and
/// `DOSIMETER` to the optimised program.
pub(crate) fn run(names: &[&str]) -> Done {
    let folder = root().join("bench");
    let mut scripts: Vec<PathBuf> = std::fs::read_dir(&folder)
        .map_err(|e| format!("bench: {e}"))?
        .filter_map(|e| e.ok().map(|e| e.path().join("run")))
        .filter(|script| script.exists())
        .filter(|script| names.is_empty() || names.contains(&name(script).as_str()))
        .collect();
    scripts.sort();
    if scripts.is_empty() || scripts.len() < names.len() {
        return Err(format!("bench: no `bench/NAME/run` for [{}]", names.join(", ")));
    }
    let python = crate::python::with("bench/requirements.txt")?;
    step_build()?;
    let runs = runs_folder(&folder)?;
    all(scripts.iter().map(|script| {
        let into = runs.join(name(script));
        std::fs::create_dir_all(&into).map_err(|e| format!("{}: {e}", into.display()))?;
        let mut command = Command::new(script);
        command.arg(&into).current_dir(root()).env("PYTHON", &python);
        command.env("DOSIMETER", root().join("target/release/dosimeter"));
        crate::step::run(&format!("bench {}", name(script)), &mut command)
    }))
}

fn step_build() -> Done {
    let mut build = cargo("build --release --locked --quiet --package dosimeter-cli");
    crate::step::run("build", build.env("CARGO_TARGET_DIR", root().join("target")))
}

fn name(script: &Path) -> String {
    let folder = script.parent().and_then(Path::file_name).unwrap_or_default();
    folder.to_string_lossy().into_owned()
}

/// Writes what the machine is and which commit is measured.
fn runs_folder(bench: &Path) -> Result<PathBuf, String> {
    let tell = |program: &str, arguments: &[&str]| {
        let told = output(Command::new(program).args(arguments).current_dir(root()));
        told.map(|t| t.trim().to_owned()).unwrap_or_else(|_| "unknown".into())
    };
    let (date, machine) = (tell("date", &["+%Y-%m-%d"]), tell("uname", &["-m"]));
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor =
        processor.lines().find_map(|l| l.strip_prefix("model name")?.split(": ").nth(1));
    let processor = processor.unwrap_or(machine.as_str());
    let short: String = processor
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty() && !matches!(*word, "R" | "TM" | "CPU"))
        .take(3)
        .collect::<Vec<_>>()
        .join("-")
        .to_lowercase();
    let runs = bench.join("runs").join(format!("{date}-{short}"));
    std::fs::create_dir_all(&runs).map_err(|e| format!("{}: {e}", runs.display()))?;
    let setup = format!(
        "# Setup\n\n- date: {date}\n- commit: {}\n- processor: {processor}, {} cores seen\n- system: {}\n- rustc: {}\n- load before: {}\n- command: `cargo xtask bench`\n",
        tell("git", &["describe", "--always", "--dirty"]),
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        tell("uname", &["-sr"]),
        tell("rustc", &["--version"]),
        std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim(),
    );
    std::fs::write(runs.join("setup.md"), setup).map_err(|e| format!("{}: {e}", runs.display()))?;
    Ok(runs)
}
