//! Writes the invented report of the tests, to look at the page: `cargo run -p dosimeter-study --example fixture_report -- DIR`.
#![allow(clippy::unwrap_used, clippy::suboptimal_flops, reason = "shares the fixture of the tests")]
use dosimeter_study::report;

#[path = "../tests/report/fixture.rs"]
mod fixture;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::path::PathBuf::from(std::env::args().nth(1).ok_or("which directory?")?);
    std::fs::create_dir_all(&dir)?;
    let made = fixture::report();
    std::fs::write(dir.join("report.html"), report::html::page(&made, Some(&fixture::timings()))?)?;
    std::fs::write(dir.join("report.json"), report::to_json(&made)?)?;
    std::fs::write(dir.join("summary.csv"), report::csv::summary(&made)?)?;
    std::fs::write(dir.join("roc.csv"), report::csv::roc(&made)?)?;
    std::fs::write(dir.join("risk.csv"), report::csv::risk(&made)?)?;
    std::fs::write(dir.join("schema.json"), report::schema())?;
    Ok(())
}
