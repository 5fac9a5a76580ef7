//! The report as people and programs read it.
mod browser;
mod fixture;
mod written;
