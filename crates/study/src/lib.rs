//! Reads a study file, plans, runs, joins results and writes the report.
pub mod report;
