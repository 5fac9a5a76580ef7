//! Reads a study file, plans, runs, joins results and writes the report.
//!
//! [`Session::open`] reads and checks a study file, loads its data and lays out its tasks; [`Session::run`] does what is
//! missing of them in a run directory and writes the report there.
pub mod account;
mod assemble;
mod diverged;
pub mod error;
mod features;
pub mod file;
mod frozen_core;
mod judge;
pub mod list;
pub mod models;
mod network;
mod packed;
pub mod plan;
mod preparation;
mod reconstruction;
pub mod regression;
pub mod report;
pub mod run;
pub mod session;
mod sizes;
mod source;
pub mod store;
pub mod study;
pub mod tables;
pub mod trace;

pub use error::Error;
pub use frozen_core::Core;
pub use plan::Plan;
pub use preparation::Preparation;
pub use session::Session;
pub use source::{Field, Problem};
pub use store::{Store, TaskId};
pub use study::Study;
