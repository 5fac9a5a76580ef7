//! What a run found, as one value, and how it is shown: HTML, JSON, CSV, and beside another report.
//!
//! [`Report`] is the meeting point. The study fills it; everything else in this module is a pure
//! function of it, so a page can be written again at any time from `report.json`. Wall time is not part
//! of a report: it lives in [`Timings`], a separate file, so that two runs of one study file give
//! byte-identical reports.
pub mod compare;
mod contents;
pub mod csv;
mod difference;
mod figure;
mod figures;
mod finite;
pub mod html;
mod json;
mod number;
mod reading;
mod reconstructions;
mod regression;
mod schema;

pub use contents::*;
pub use finite::NotFinite;
pub use json::{from_json, timings_to_json, to_json};
pub(crate) use number::{Rounding, told};
pub use number::{plain, thousandths_down, thousandths_up};
pub(crate) use number::{terms, terms_lower};
pub use reading::sentences;
pub(crate) use regression::regression_page;
pub use schema::schema;

/// A report that cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number that is NaN or infinite.
    #[error(transparent)]
    NotFinite(#[from] NotFinite),
    /// Not a report, or a damaged one.
    #[error("not a report: {0}")]
    Json(#[from] serde_json::Error),
    /// Written by another version of the format.
    #[error("the report has format version {found}; this build reads version {needed}")]
    Version {
        /// The version this build reads.
        needed: u32,
        /// The version in the file.
        found: u32,
    },
    /// A CSV table could not be written.
    #[error("csv: {0}")]
    Csv(String),
}

/// The guide's example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/your-own-scores.md")]
struct YourOwnScores;
