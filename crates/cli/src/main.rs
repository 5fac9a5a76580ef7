//! The `dosimeter` command.
fn main() {}
