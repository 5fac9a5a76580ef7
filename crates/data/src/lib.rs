//! Records, tables, splits and membership.
//!
//! This crate knows no models and no privacy: a record is a record. It reads tables into a
//! [`Dataset`] whose row `i` is [`RecordId`]`(i)` for ever, divides it into disjoint roles
//! ([`Split`]) and says who was in whose training set ([`Membership`]). All randomness comes from a
//! [`Seed`] derived by label, so the order of calls and the number of threads change nothing.
//!
//! Tables whose target is a number are a [`RegressionTable`], with the public bounds that a fit may scale by.
//!
//! What it does not do: fill in missing values other than by a public rule that is asked for, take
//! bounds of numbers from the data (that would leak them), or quote a field in an error.
pub mod dataset;
pub mod datasets;
mod error;
pub mod file;
pub mod graphs;
pub mod membership;
mod picture;
pub mod record;
pub mod regression;
mod scale;
pub mod seed;
pub mod settings;
pub mod split;

pub use dataset::{BitMatrix, Column, ColumnKind, ColumnRun, Dataset, Inputs};
pub use datasets::DatasetSpec;
pub use error::{Error, FieldProblem, GraphProblem, ImageProblem};
pub use graphs::{GraphSet, GraphSpec};
pub use membership::{BalancedMembership, Membership};
pub use picture::png;
pub use record::RecordId;
pub use regression::{RegressionSpec, RegressionTable};
pub use scale::scale_channel;
pub use seed::Seed;
pub use split::{Labelled, Split, SplitSpec};
