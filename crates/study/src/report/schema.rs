//! The JSON schema of a report, generated from the types.
use super::Report;

/// JSON schema (draft 2020-12) of `report.json`, as pretty text that ends in a newline.
#[must_use]
pub fn schema() -> String {
    let schema = schemars::schema_for!(Report);
    // A schema is a JSON value with string keys: formatting it cannot fail.
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
