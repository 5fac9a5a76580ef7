//! `report.json` and `timings.json`: written only if every number is finite.
use super::{Error, FORMAT_VERSION, Report, Timings, finite};

/// The report as pretty JSON that ends in a newline. Keys come in the order of the type: same report, same bytes.
///
/// # Errors
/// [`Error::NotFinite`] with the path of the first NaN or infinity.
pub fn to_json(report: &Report) -> Result<String, Error> {
    pretty(report)
}

/// The timings, likewise.
///
/// # Errors
/// [`Error::NotFinite`] with the path of the first NaN or infinity.
pub fn timings_to_json(timings: &Timings) -> Result<String, Error> {
    pretty(timings)
}

fn pretty<T: serde::Serialize>(value: &T) -> Result<String, Error> {
    finite::check(value)?;
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(text)
}

/// Reads a report.
///
/// # Errors
/// [`Error::Version`] for another format version (checked first), [`Error::Json`] with line and column for anything else.
pub fn from_json(text: &str) -> Result<Report, Error> {
    #[derive(serde::Deserialize)]
    struct Head {
        format_version: u32,
    }
    let Head { format_version: found } = serde_json::from_str(text)?;
    if found != FORMAT_VERSION {
        return Err(Error::Version { needed: FORMAT_VERSION, found });
    }
    Ok(serde_json::from_str(text)?)
}
