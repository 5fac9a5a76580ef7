//! Measured against proved: what a lower bound says of a claimed upper one.
use crate::bounds::EpsilonLower;
use dosimeter_privacy::{Delta, Epsilon, Relation, Unit};
use serde::{Deserialize, Serialize};

/// A guarantee that somebody claims or an accountant proves.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Epsilon is at most this.
    pub epsilon: Epsilon,
    /// At this delta.
    pub delta: Delta,
    /// For these pairs of data sets.
    pub relation: Relation,
    /// Of this unit.
    pub unit: Unit,
}

/// Why a comparison decides nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[non_exhaustive]
pub enum Reason {
    /// The claim is unbounded: nothing can contradict it.
    NothingClaimed,
    /// The claim speaks of other pairs of data sets or of another unit than was measured, and does not imply one that was.
    OtherRelation {
        /// Relation claimed.
        claimed: Relation,
        /// Relation measured.
        measured: Relation,
    },
    /// The claim speaks of another unit than was measured.
    OtherUnit {
        /// Unit claimed.
        claimed: Unit,
        /// Unit measured.
        measured: Unit,
    },
    /// Delta of the measurement is below the claim's: what it refutes was never claimed.
    SmallerDelta {
        /// Delta that the claim implies for the measured relation.
        claimed: f64,
        /// Delta measured.
        measured: f64,
    },
    /// The measured value is no valid bound here.
    Caveat {
        /// The bound's caveat.
        caveat: String,
    },
    /// Even a perfect attack on so few records could not have shown more than was claimed.
    BelowResolution {
        /// What a perfect attack would have shown.
        largest_possible: f64,
        /// Epsilon that the claim implies for the measured relation.
        claimed: f64,
    },
}

/// What a measurement says of a claim. There is no word for "safe": a lower bound cannot show that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verdict")]
pub enum Verdict {
    /// A violation was within reach of the measurement, and it found none. A better attack might.
    Consistent,
    /// The claim is false, at the confidence of the measurement.
    Violated {
        /// How far the lower bound is above the claim, in nats.
        by: f64,
    },
    /// Nothing follows.
    Inconclusive {
        /// Why.
        reason: Reason,
    },
}

/// Compares a claim with a measurement, by these rules in this order:
///
/// 1. An unbounded claim decides nothing.
/// 2. The claim is carried over to the measured relation. The same relation needs nothing. A claim for
///    [`Relation::AddRemove`] implies `(2 epsilon, (1 + e^epsilon) delta)` for [`Relation::ReplaceOne`] (a replacement is
///    one removal and one addition). A [`Relation::Local`] claim holds for any two inputs, so it implies the same for
///    [`Relation::ReplaceOne`] of the same unit. Anything else decides nothing: replacing says nothing of adding, and
///    a local randomizer hides a record's values, not that there is a record.
/// 3. The unit must be the same. A claim for a whole [`Unit::Record`] covers its [`Unit::FeatureVector`] when replaced.
/// 4. The measured delta must be at least the claim's, since a guarantee holds at every larger delta, not at smaller ones.
/// 5. A bound with a caveat decides nothing, above the claim or below it.
/// 6. A lower bound above the claim violates it.
/// 7. If even a perfect attack on these members and non-members could not have shown more than the claim, nothing is decided.
/// 8. Otherwise both are consistent.
#[must_use]
pub fn compare(claim: &Claim, measured: &EpsilonLower) -> Verdict {
    let inconclusive = |reason| Verdict::Inconclusive { reason };
    if claim.epsilon.is_unbounded() {
        return inconclusive(Reason::NothingClaimed);
    }
    let (epsilon, delta) = (claim.epsilon.get(), claim.delta.get());
    let (epsilon, delta) = match (claim.relation, measured.relation) {
        (claimed, measured) if claimed == measured => (epsilon, delta),
        (Relation::AddRemove, Relation::ReplaceOne) => {
            (2.0 * epsilon, (epsilon.exp().mul_add(delta, delta)).min(1.0))
        }
        (Relation::Local, Relation::ReplaceOne) => (epsilon, delta),
        (claimed, measured) => return inconclusive(Reason::OtherRelation { claimed, measured }),
    };
    let covers = claim.unit == measured.unit
        || (claim.unit == Unit::Record && measured.relation != Relation::AddRemove);
    if !covers {
        return inconclusive(Reason::OtherUnit { claimed: claim.unit, measured: measured.unit });
    }
    if measured.delta.get() < delta {
        return inconclusive(Reason::SmallerDelta {
            claimed: delta,
            measured: measured.delta.get(),
        });
    }
    if let Some(caveat) = &measured.caveat {
        return inconclusive(Reason::Caveat { caveat: caveat.clone() });
    }
    if measured.value > epsilon {
        return Verdict::Violated { by: measured.value - epsilon };
    }
    if measured.largest_possible <= epsilon {
        return inconclusive(Reason::BelowResolution {
            largest_possible: measured.largest_possible,
            claimed: epsilon,
        });
    }
    Verdict::Consistent
}
