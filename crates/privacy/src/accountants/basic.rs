//! Basic composition.
use super::releases::{Releases, releases, solve};
use super::{Accountant, Unsupported};
use crate::{Delta, Epsilon, Ledger, Relation};

/// Adds up the epsilons of the single releases; delta is shared out evenly among those that need one.
///
/// # Source
/// Dwork & Roth 2014, Theorem 3.16, with the exact privacy profile of each release.
#[derive(Debug, Clone, Copy)]
pub struct Basic;

impl Accountant for Basic {
    fn name(&self) -> &'static str {
        "basic"
    }
    fn what(&self) -> &'static str {
        "sum of the epsilons: for local randomizers, whose record epsilon is the sum over features"
    }
    fn source(&self) -> &'static str {
        "Dwork et al., TCC 2006"
    }
    fn epsilon_upper(
        &self,
        ledger: &Ledger,
        relation: Relation,
        delta: Delta,
    ) -> Result<Epsilon, Unsupported> {
        let (list, failure) = match releases(ledger, relation, self.name())? {
            _ if delta.get() >= 1.0 => return Epsilon::new(0.0).or(Ok(Epsilon::UNBOUNDED)),
            Releases::NoGuarantee => return Ok(Epsilon::UNBOUNDED),
            Releases::Private(list, failure) => (list, failure),
        };
        let Some(delta) = failure.rest(delta.get()) else { return Ok(Epsilon::UNBOUNDED) };
        let sharing: f64 = list
            .iter()
            .filter(|(r, _)| r.pure_epsilon().is_infinite())
            .map(|(_, n)| *n as f64)
            .sum();
        let share = delta / sharing;
        let total = list
            .iter()
            .map(|&(release, count)| {
                let one = match release.pure_epsilon() {
                    pure if pure.is_finite() => pure,
                    _ if share > 0.0 => solve(share, |e| release.log_delta(e)),
                    _ => f64::INFINITY,
                };
                count as f64 * one
            })
            .sum::<f64>();
        Ok(Epsilon::at_least(total * (1.0 + 1e-14)))
    }
}
