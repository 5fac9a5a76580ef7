//! Accountants: from a ledger to `epsilon_upper`.
//!
//! | name | what | bound? |
//! |---|---|---|
//! | `pld` | privacy loss distributions, composed numerically; the tightest | yes |
//! | `rdp` | Rényi differential privacy at fixed orders; fast and classic | yes |
//! | `gdp` | central limit theorem; for comparison only | **no** |
//! | `basic` | adds up epsilon; for a handful of releases | yes |
//!
//! Every accountant gives epsilon 0 for an empty ledger and for delta 1, never a negative or NaN epsilon, and
//! [`Epsilon::UNBOUNDED`] where it cannot prove anything.
mod basic;
mod gdp;
pub mod pld;
pub mod rdp;
pub(crate) mod releases;

pub use basic::Basic;
pub use gdp::Gdp;
pub use pld::Pld;
pub use rdp::Rdp;

use crate::{Delta, Epsilon, Event, Ledger, Relation};

/// An accountant that cannot vouch for an event or relation says so instead of guessing.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the {accountant} accountant has no theorem for {event} under the {relation} relation")]
pub struct Unsupported {
    /// Who refuses.
    pub accountant: &'static str,
    /// What it cannot do.
    pub event: Event,
    /// For which neighbours.
    pub relation: Relation,
}

/// Stateless: two accountants may read one ledger.
pub trait Accountant: Sync {
    /// Name as written in study files and reports: `pld`, `rdp`, `gdp`, `basic`.
    fn name(&self) -> &'static str;
    /// What it does, in a line.
    fn what(&self) -> &'static str;
    /// Where it comes from.
    fn source(&self) -> &'static str;
    /// False for an approximation that is not a bound (gdp).
    fn is_bound(&self) -> bool {
        true
    }
    /// The least epsilon it can prove.
    ///
    /// # Errors
    /// [`Unsupported`] for an event or relation it has no theorem for.
    fn epsilon_upper(
        &self,
        ledger: &Ledger,
        relation: Relation,
        delta: Delta,
    ) -> Result<Epsilon, Unsupported>;
}

/// Every accountant, the default first.
pub const ACCOUNTANTS: &[&dyn Accountant] = &[&Pld, &Rdp, &Gdp, &Basic];

/// The accountant called `name`.
#[must_use]
pub fn accountant(name: &str) -> Option<&'static dyn Accountant> {
    ACCOUNTANTS.iter().copied().find(|a| a.name() == name)
}
