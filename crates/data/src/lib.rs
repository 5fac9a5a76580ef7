//! Records, tables, splits and membership. This crate knows no models and no privacy: a record is a record.
pub mod dataset;
pub mod datasets;
pub mod membership;
pub mod record;
pub mod seed;
pub mod split;

pub use dataset::{BitMatrix, Column, ColumnKind, Dataset, Inputs};
pub use membership::Membership;
pub use record::RecordId;
pub use seed::Seed;
pub use split::{Split, SplitSpec};
