//! Development tasks: `check`, `test`, `generate`, `golden`, `bench`.
//!
//! Everything a change must pass is `cargo xtask check` and `cargo xtask test`; `.ci/run` calls both.
mod bench;
mod check;
mod generate;
mod golden;
mod layers;
mod names;
mod python;
mod step;
mod test;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask <task>

  check               formatting, lints, documentation, layers, file names, generated files
  test                every test and documentation example, licences, the quickstart study
  generate [--check]  write docs/reference from the program itself; with --check only compare
  golden [--check] [NAME ...]
                      run golden/*.py into golden/*.json; with --check only compare
  bench [-- ARGUMENTS]
                      run the comparisons of bench/run.py and record them under bench/runs/
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["check"] => check::run(),
        ["test"] => test::run(),
        ["generate"] => generate::write(),
        ["generate", "--check"] => generate::check(),
        ["golden", "--check", names @ ..] => golden::check(names),
        ["golden", names @ ..] => golden::write(names),
        ["bench", arguments @ ..] => bench::measure(arguments),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}
