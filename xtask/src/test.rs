//! Everything that is run to trust a change, and what it needs on a fresh machine.
use crate::step::{self, Done, cargo, is_here, root};
use std::process::Command;

pub(crate) fn run() -> Done {
    step::all([
        browser(),
        tests(),
        step::run(
            "data without Parquet",
            &mut cargo("check --locked --quiet --package dosimeter-data --no-default-features"),
        ),
        licences(),
        quickstart(),
    ])
}

fn tests() -> Done {
    let mut command = cargo("test --workspace --locked --quiet");
    // A snapshot that differs is a failure, never a new snapshot.
    command.env("INSTA_UPDATE", "no").env("CI", "true");
    // Models we write are run by ONNX Runtime.
    match crate::python::with("golden/requirements.txt") {
        Ok(python) => {
            command.env("DOSIMETER_PYTHON", python);
        }
        Err(why) => eprintln!("no ONNX Runtime here, its checks will say they are skipped: {why}"),
    }
    step::run("tests", &mut command)
}

/// The report is checked in a real headless browser.
fn browser() -> Done {
    if ["chromium", "chromium-browser", "google-chrome"].into_iter().any(is_here) {
        return Ok(());
    }
    let root_user = step::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if !(root_user && is_here("apt-get")) {
        eprintln!("no chromium here: the browser checks of the report will say they are skipped");
        eprintln!("to have them: apt-get install chromium");
        return Ok(());
    }
    step::run("package lists", Command::new("apt-get").args(["update", "-qq"]))?;
    let mut install = Command::new("apt-get");
    install.args(["install", "-y", "-qq", "--no-install-recommends", "chromium"]);
    step::run("install chromium", install.env("DEBIAN_FRONTEND", "noninteractive"))
}

/// Licences, sources and duplicate versions of what is linked; `deny.toml` says what is allowed.
fn licences() -> Done {
    if !is_here("cargo-deny") {
        eprintln!("skipped: licences and sources (cargo install cargo-deny --locked)");
        return Ok(());
    }
    // Not the advisories: a database fetched from outside must not redden a change.
    step::run("licences and sources", &mut cargo("deny --locked check licenses bans sources"))
}

/// The README's first command, to a finished report.
fn quickstart() -> Done {
    let out = root().join("target/quickstart");
    if out.exists() {
        std::fs::remove_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    }
    let mut command =
        cargo("run --locked --quiet --package dosimeter-cli -- run studies/quickstart.toml --out");
    step::run("quickstart study", command.arg(&out))?;
    for file in ["report.json", "report.html"] {
        let written = std::fs::metadata(out.join(file)).map_err(|e| format!("{file}: {e}"))?;
        if written.len() == 0 {
            return Err(format!("quickstart study: {file} is empty"));
        }
    }
    Ok(())
}
