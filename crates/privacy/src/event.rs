//! What was released, as data.
use crate::guarantee::{Epsilon, NoiseMultiplier, SamplingRate};
use serde::{Deserialize, Serialize};

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
    /// Laplace noise; `scale` is noise scale over L1 sensitivity.
    Laplace {
        /// Noise scale over L1 sensitivity.
        scale: f64,
    },
    /// k-ary randomized response.
    RandomizedResponse {
        /// Loss of one answer, nats.
        epsilon: Epsilon,
        /// Number of possible answers, at least 2.
        categories: u32,
    },
    /// `event` on a Poisson sample.
    PoissonSampled {
        /// Inclusion probability.
        sampling_rate: SamplingRate,
        /// What was released about the sample.
        event: Box<Event>,
    },
    /// `event`, `count` times (run-length form).
    Repeated {
        /// What was repeated.
        event: Box<Event>,
        /// How often, at least 1.
        count: u64,
    },
    /// A release without noise.
    NonPrivate,
}
