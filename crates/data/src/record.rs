//! The identity of a record.
use serde::{Deserialize, Serialize};

/// Position of a record in the data set as loaded: stable from file to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecordId(pub u32);
