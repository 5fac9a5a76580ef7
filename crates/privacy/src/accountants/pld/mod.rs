//! Privacy loss distributions.
//!
//! The loss of one release is put on a grid so that the privacy profile is never below the true one (connect the dots:
//! `lattice`), composed by Fourier transforms of the *tilted* law (mass times `e^(tilt * loss)`, `compose`), and read
//! off. Tilting makes the loss that decides about `delta` the typical one, so rounding errors are relative to `delta`
//! however small it is.
//!
//! | quantity | how it is kept on the safe side |
//! |---|---|
//! | grid | each cell's mass goes to its two ends, both probabilities kept: the profile at grid points is exact, between them above |
//! | mass above the window | bounded by Chernoff, added to delta |
//! | mass that wraps around the transform | comes in addition, never instead |
//! | rounding | an allowance for the transform is added to every point (tested against plain sums of products), one part in 10^7 of delta is set aside for the rest |
//! | tails of one release | wider cells, by the same rule |
//!
//! One release, and any number of Gaussian releases without sampling, use closed forms instead.
//!
//! # Source
//! Koskela, Jälkö & Honkela 2020 (arXiv:1906.03049) for Fourier composition; Doroshenko, Ghazi, Kamath, Kumar & Manurangsi
//! 2022 (arXiv:2207.04380) for connect the dots; Zhu, Dong & Wang 2022 (arXiv:2106.08567) for dominating pairs.
mod atoms;
mod compose;
mod lattice;
mod pair;

pub(crate) use atoms::Atoms;

use super::releases::{Release, Releases, releases, solve};
use super::{Accountant, Unsupported};
use crate::{Delta, Epsilon, Ledger, Relation};

/// Privacy loss distributions composed numerically: the tightest accountant, and the default.
#[derive(Debug, Clone, Copy)]
pub struct Pld;

impl Accountant for Pld {
    fn name(&self) -> &'static str {
        "pld"
    }
    fn what(&self) -> &'static str {
        "privacy loss distribution, rounded up on a grid and composed by convolution: the default, tight"
    }
    fn source(&self) -> &'static str {
        "Doroshenko et al., Connect the Dots, PETS 2022; Koskela et al., AISTATS 2020"
    }
    fn epsilon_upper(
        &self,
        ledger: &Ledger,
        relation: Relation,
        delta: Delta,
    ) -> Result<Epsilon, Unsupported> {
        let delta = delta.get();
        Ok(match releases(ledger, relation, self.name())? {
            _ if delta >= 1.0 => Epsilon::at_least(0.0),
            Releases::NoGuarantee => Epsilon::UNBOUNDED,
            Releases::Private(list, failure) => match failure.rest(delta) {
                Some(delta) => Epsilon::at_least(epsilon(&list, delta)),
                None => Epsilon::UNBOUNDED,
            },
        })
    }
}

impl Pld {
    /// The least delta it can prove at each of `epsilons`: the whole privacy profile for about the price of one epsilon.
    /// Absolute precision about 1e-9.
    ///
    /// # Errors
    /// [`Unsupported`] as [`Accountant::epsilon_upper`].
    pub fn delta_upper(
        &self,
        ledger: &Ledger,
        relation: Relation,
        epsilons: &[Epsilon],
    ) -> Result<Vec<Delta>, Unsupported> {
        let deltas: Vec<f64> = match releases(ledger, relation, self.name())? {
            Releases::NoGuarantee => vec![1.0; epsilons.len()],
            Releases::Private(list, failure) => match list.as_slice() {
                [] => vec![failure.with(0.0); epsilons.len()],
                [(release, 1)] => {
                    let delta = |e: &Epsilon| failure.with(release.log_delta(e.get()).exp());
                    epsilons.iter().map(delta).collect()
                }
                list => {
                    let removing = compose::profile(list, false, epsilons);
                    let adding = if list.iter().all(|(r, _)| pair::symmetric(*r)) {
                        removing.clone()
                    } else {
                        compose::profile(list, true, epsilons)
                    };
                    removing.iter().zip(&adding).map(|(a, b)| failure.with(a.max(*b))).collect()
                }
            },
        };
        // An unbounded epsilon needs no delta; rounding must not leave [0, 1].
        let checked = deltas.iter().zip(epsilons).map(|(&d, e)| {
            let d = if e.is_unbounded() {
                0.0
            } else if d.is_nan() {
                1.0
            } else {
                (d * (1.0 + 1e-12)).clamp(0.0, 1.0)
            };
            Delta::new(d).unwrap_or(Delta::ONE)
        });
        Ok(checked.collect())
    }
}

/// Epsilon of `list` at `delta < 1`; infinite if there is none.
fn epsilon(list: &[(Release, u64)], delta: f64) -> f64 {
    let pure: f64 = list.iter().map(|&(r, n)| n as f64 * r.pure_epsilon()).sum();
    // Below 1e-290 the profile underflows: only the largest loss is left to say.
    if list.is_empty() || delta < 1e-290 {
        return pure;
    }
    if let [(release, 1)] = list {
        return solve(delta, |e| release.log_delta(e)).min(pure);
    }
    let removing = compose::epsilon(list, false, delta, 0.0);
    if list.iter().all(|(r, _)| pair::symmetric(*r)) {
        return removing.min(pure);
    }
    let adding = compose::epsilon(list, true, delta, removing);
    removing.max(adding).min(pure)
}
