//! Statistics of membership scores. Knows no models and no attacks: any scores may be audited, a stranger's too.
//!
//! Scores are joined with the truth into [`Evidence`], sorted once into a [`Roc`], and everything else is read from that:
//! rates and areas with their intervals, lower bounds of epsilon ([`bounds::BOUNDS`]), the comparison with what was claimed
//! ([`verdict::compare`]) and the check that shuffled membership shows nothing ([`null::self_check`]). What protection costs patients
//! whose doses a model sets is simulated by [`clinical`].
//!
//! ```
//! use dosimeter_audit::{Evidence, Roc, bounds::{BOUNDS, Conditions}};
//! use dosimeter_privacy::Delta;
//!
//! let scores = [0.9, 0.8, 0.7, 0.3, 0.2, 0.1];
//! let member = [true, true, true, false, false, false];
//! let roc = Roc::of(&Evidence::from_arrays(&scores, &member)?)?;
//! assert_eq!(roc.auc(), 1.0);
//! let conditions = Conditions::new(Delta::new(0.0).unwrap());
//! let bound = BOUNDS[0].epsilon_lower(&roc, &conditions)?;
//! assert!(bound.value < 1.0); // six records show little, however perfect the attack
//! # Ok::<(), dosimeter_audit::Error>(())
//! ```
mod binomial;
pub mod blind;
pub mod bounds;
pub mod clinical;
pub mod error;
pub mod evidence;
pub mod interval;
mod normal;
pub mod null;
pub mod risk;
pub mod roc;
pub mod scores;
pub mod tradeoff;
pub mod transfer;
pub mod verdict;

pub use bounds::{BOUNDS, Bound, Conditions, Draw, EpsilonLower};
pub use error::Error;
pub use evidence::Evidence;
pub use interval::Interval;
pub use roc::{Rate, Roc};
pub use scores::Scores;
pub use tradeoff::{phi, phi_patent};
pub use verdict::{Claim, Verdict};
