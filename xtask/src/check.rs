//! What each change must pass before it is run.
use crate::step::{self, Done, cargo, root};

pub(crate) fn run() -> Done {
    let mut doc = cargo("doc --workspace --no-deps --locked --quiet");
    doc.env("RUSTDOCFLAGS", "-D warnings");
    step::all([
        step::run("formatting", &mut cargo("fmt --all --check")),
        crate::layers::check(&root()),
        crate::names::check(&root()),
        step::run(
            "lints",
            &mut cargo("clippy --workspace --all-targets --locked --quiet -- -D warnings"),
        ),
        step::run("documentation", &mut doc),
        crate::generate::check(),
    ])
}
