//! The report as people and programs read it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::suboptimal_flops,
    reason = "helpers of tests: a broken fixture or browser must stop the test, and a skipped one must say so"
)]
mod browser;
mod fixture;
mod written;
