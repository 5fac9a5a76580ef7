//! The built command, run in a folder.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
use std::path::Path;
use std::process::Command;

/// Exit code, stdout, stderr.
pub(crate) fn run<'a>(
    folder: &Path,
    arguments: impl IntoIterator<Item = &'a str>,
) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_dosimeter"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}
