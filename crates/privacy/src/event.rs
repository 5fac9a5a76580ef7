//! What was released, as data.
use crate::guarantee::{Delta, Epsilon, LaplaceScale, NoiseMultiplier, Relation, SamplingRate};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One kind of release. Events never change meaning; fields are only added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// Gaussian noise on a value of unit L2 sensitivity under AddRemove.
    Gaussian {
        /// Noise standard deviation over clipping norm.
        noise_multiplier: NoiseMultiplier,
    },
    /// Laplace noise on a value of unit L1 sensitivity under AddRemove.
    Laplace {
        /// Noise scale over clipping norm.
        scale: LaplaceScale,
    },
    /// k-ary randomized response.
    RandomizedResponse {
        /// Loss of one answer, nats.
        epsilon: Epsilon,
        /// Number of possible answers, at least 2 (fewer count as 2).
        categories: u32,
    },
    /// `event` on a Poisson sample.
    PoissonSampled {
        /// Inclusion probability.
        sampling_rate: SamplingRate,
        /// What was released about the sample.
        event: Box<Self>,
    },
    /// `event`, `count` times (run-length form).
    Repeated {
        /// What was repeated.
        event: Box<Self>,
        /// How often; 0 is nothing.
        count: u64,
    },
    /// A release without noise.
    NonPrivate,
    /// A release with a theorem of its own: no output is more than `e^epsilon` times as likely for one neighbour as for the other.
    Pure {
        /// Loss, nats.
        epsilon: Epsilon,
    },
    /// A release with a theorem of its own: but for a part of probability `delta`, no output is more than `e^epsilon` times as likely for
    /// one neighbour as for the other.
    Approximate {
        /// Loss, nats.
        epsilon: Epsilon,
        /// Failure probability.
        delta: Delta,
    },
    /// `event` about a value whose sensitivity is known for one relation alone: it is 1, or the loss `epsilon`, between
    /// neighbours of that relation.
    Under {
        /// Which neighbours.
        relation: Relation,
        /// What was released.
        event: Box<Self>,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gaussian { noise_multiplier } => {
                write!(f, "Gaussian noise of multiplier {:?}", noise_multiplier.get())
            }
            Self::Laplace { scale } => write!(f, "Laplace noise of scale {:?}", scale.get()),
            Self::RandomizedResponse { epsilon, categories } => write!(
                f,
                "randomized response over {categories} answers at epsilon {:?}",
                epsilon.get()
            ),
            Self::PoissonSampled { sampling_rate, event } => {
                write!(f, "{event} on a Poisson sample of rate {:?}", sampling_rate.get())
            }
            Self::Repeated { event, count } => write!(f, "{event}, {count} times"),
            Self::NonPrivate => f.write_str("a release without noise"),
            Self::Pure { epsilon } => write!(f, "a release of loss {:?}", epsilon.get()),
            Self::Approximate { epsilon, delta } => {
                write!(f, "a release of loss {:?} at delta {:?}", epsilon.get(), delta.get())
            }
            Self::Under { relation, event } => write!(f, "{event} ({relation})"),
        }
    }
}

impl Event {
    /// One Gaussian release.
    #[must_use]
    pub const fn gaussian(noise_multiplier: NoiseMultiplier) -> Self {
        Self::Gaussian { noise_multiplier }
    }
    /// This event for neighbours of `relation` alone.
    #[must_use]
    pub fn under(self, relation: Relation) -> Self {
        Self::Under { relation, event: Box::new(self) }
    }
    /// This event about a Poisson sample.
    #[must_use]
    pub fn sampled(self, sampling_rate: SamplingRate) -> Self {
        Self::PoissonSampled { sampling_rate, event: Box::new(self) }
    }
    /// The event without its run-length wrappers, and how often it happened.
    #[must_use]
    pub fn unrepeated(&self) -> (&Self, u64) {
        let (mut event, mut times) = (self, 1_u64);
        while let Self::Repeated { event: inner, count } = event {
            times = times.saturating_mul(*count);
            event = inner;
        }
        (event, times)
    }
}
