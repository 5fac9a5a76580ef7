//! The central-limit approximation.
use super::releases::{Release, Releases, releases, solve};
use super::{Accountant, Unsupported};
use crate::normal::gaussian_log_delta;
use crate::{Delta, Epsilon, Ledger, Relation};

/// Gaussian differential privacy with the central limit theorem. **Not a bound**: for DP-SGD it is usually below the
/// true epsilon (1.62 for 1.83 at rate 0.01, noise 1, 1000 steps). Exact for Gaussian noise without sampling.
///
/// # Source
/// Bu, Dong, Long & Su 2020 (arXiv:1911.11607): `mu = q sqrt(steps (exp(1 / z^2) - 1))`.
#[derive(Debug, Clone, Copy)]
pub struct Gdp;

impl Accountant for Gdp {
    fn name(&self) -> &'static str {
        "gdp"
    }
    fn what(&self) -> &'static str {
        "central limit of many small steps; can lie below the true epsilon"
    }
    fn source(&self) -> &'static str {
        "Bu, Dong, Long & Su, HDSR 2020"
    }
    fn is_bound(&self) -> bool {
        false
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
        let mut mu_squared = 0.0;
        for (release, count) in list {
            mu_squared += count as f64
                * match release {
                    Release::Gaussian { mu } => mu * mu,
                    Release::SampledGaussian { rate, mu } => rate * rate * (mu * mu).exp_m1(),
                    _ => return Err(first_other(ledger, relation)),
                };
        }
        Ok(if mu_squared == 0.0 {
            Epsilon::at_least(0.0)
        } else if mu_squared.is_finite() && delta > 0.0 {
            Epsilon::at_least(solve(delta, |e| gaussian_log_delta(e, mu_squared.sqrt())))
        } else {
            Epsilon::UNBOUNDED
        })
    }
}

/// Names the first event that is not Gaussian noise under a relation that the theorem covers.
fn first_other(ledger: &Ledger, relation: Relation) -> Unsupported {
    let covered = |event: &crate::Event| {
        let mut one = Ledger::new(ledger.unit());
        one.record(event.clone(), 1);
        matches!(releases(&one, relation, "gdp"), Ok(Releases::Private(list, _))
            if list.iter().all(|(r, _)| matches!(r, Release::Gaussian { .. } | Release::SampledGaussian { .. })))
    };
    let event = ledger.events().iter().map(|e| e.unrepeated().0).find(|e| !covered(e));
    Unsupported {
        accountant: "gdp",
        event: event.cloned().unwrap_or(crate::Event::NonPrivate),
        relation,
    }
}
