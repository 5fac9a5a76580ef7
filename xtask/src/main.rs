//! Development tasks: `check`, `test`, `generate`, `golden`, `bench`.
fn main() {}
