//! The distinguishing game: how well two tables that differ in one record are told apart by what a mechanism says.
use crate::Error;
use dosimeter_audit::{Evidence, Roc};
use dosimeter_data::Seed;
use rayon::prelude::*;

/// Plays `mechanism` `trials` times on each of two neighbours; its answer is a number, the larger the more it speaks for the first. Where it
/// has none to give it says so by one. Lower bounds of epsilon that are read from the curve hold for the mechanism, since every trial has a seed
/// of its own for its noise; they hold at the audit's confidence.
///
/// A game refutes a claim or does not; that it does not, proves nothing.
///
/// # Errors
/// [`Error::Audit`] without trials, or for an answer that is not finite.
pub fn play(
    trials: u32,
    seed: Seed,
    mechanism: &(dyn Fn(bool, Seed) -> f64 + Sync),
) -> Result<Roc, Error> {
    let seed = seed.child("distinguishing");
    let answers = |first: bool| {
        let seed = seed.child(if first { "first" } else { "second" });
        let trial = move |i: u32| mechanism(first, seed.index(u64::from(i)));
        (0..trials).into_par_iter().map(trial).collect::<Vec<f64>>()
    };
    let (first, second) = (answers(true), answers(false));
    let member: Vec<bool> = (0..2 * trials).map(|i| i < trials).collect();
    Ok(Roc::of(&Evidence::from_arrays(&[first, second].concat(), &member)?)?)
}
