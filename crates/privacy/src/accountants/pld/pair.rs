//! The pair of distributions that one release is as hard to tell apart as.
use crate::accountants::releases::{Release, replaced_position, sampled_loss, unsampled_loss};
use crate::normal::upper_tail;

/// Whether the loss has the same law in both directions.
pub(super) fn symmetric(release: Release) -> bool {
    !matches!(release, Release::SampledGaussian { .. } | Release::SampledLaplace { .. })
}

/// Probability on one side of a point: the smaller side, so that no precision is lost.
#[derive(Debug, Clone, Copy)]
struct Tail {
    mass: f64,
    upper: bool,
}
impl Tail {
    const fn lower(mass: f64) -> Self {
        Self { mass, upper: false }
    }
    const fn upper(mass: f64) -> Self {
        Self { mass, upper: true }
    }
    fn normal(x: f64) -> Self {
        Self { mass: upper_tail(x.abs()), upper: x > 0.0 }
    }
    /// Probability between this point and a higher one.
    fn to(self, higher: Self) -> f64 {
        match (self.upper, higher.upper) {
            (true, true) => self.mass - higher.mass,
            (false, false) => higher.mass - self.mass,
            (false, true) => 1.0 - self.mass - higher.mass,
            (true, false) => 0.0,
        }
        .max(0.0)
    }
    const fn below(self) -> f64 {
        if self.upper { 1.0 - self.mass } else { self.mass }
    }
    const fn above(self) -> f64 {
        if self.upper { self.mass } else { 1.0 - self.mass }
    }
}

/// Most components of a pair; unused ones have weight 0.
const COMPONENTS: usize = 3;

/// What lies below one loss, component by component.
#[derive(Debug, Clone, Copy)]
pub(super) struct Boundary([Tail; COMPONENTS]);

/// Both probabilities of a range of losses, and the part of the first that goes to its upper end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    /// Under the distribution with the record.
    pub(super) p: f64,
    /// Under the distribution without it.
    pub(super) q: f64,
    /// `p - q e^low`: the upper end gets this over `1 - e^-width`.
    pub(super) excess: f64,
}

/// Losses `<= x` under each component. Point masses on `x` count as below.
pub(super) fn boundary(release: Release, x: f64) -> Boundary {
    let gaussian = |mu: f64, loss: f64| {
        // The loss of N(mu, 1) against N(0, 1) at s is mu s - mu^2 / 2.
        let s = loss / mu + 0.5 * mu;
        [Tail::normal(s), Tail::normal(s - mu), Tail::lower(0.0)]
    };
    let laplace = |largest: f64, loss: f64| {
        if loss >= largest {
            [Tail::upper(0.0); 3]
        } else if loss < -largest {
            [Tail::lower(0.0); 3]
        } else {
            let without = Tail::upper(0.5 * (-0.5 * (largest + loss)).exp());
            let with = Tail::lower(0.5 * (0.5 * (loss - largest)).exp());
            [without, with, Tail::lower(0.0)]
        }
    };
    Boundary(match release {
        Release::Gaussian { mu } => gaussian(mu, x),
        Release::SampledGaussian { rate, mu } => gaussian(mu, unsampled_loss(rate, x)),
        Release::ReplacedGaussian { rate, mu } => {
            let s = replaced_position(x, rate, mu);
            [Tail::normal(s), Tail::normal(s - mu), Tail::normal(s + mu)]
        }
        Release::Laplace { epsilon } => laplace(epsilon, x),
        Release::SampledLaplace { rate, epsilon } => {
            // The largest loss must be found below its own boundary whatever rounding does.
            if x >= sampled_loss(rate, epsilon) {
                [Tail::upper(0.0); 3]
            } else {
                laplace(epsilon, unsampled_loss(rate, x))
            }
        }
        Release::Response { epsilon, categories } => {
            let others = f64::from(categories - 1) * (-epsilon).exp();
            let keep = 1.0 / (1.0 + others);
            let lie = keep * (-epsilon).exp();
            // Without: truth elsewhere. The answer that reveals most has loss epsilon, the one that misleads -epsilon.
            if x >= epsilon {
                [Tail::upper(0.0); 3]
            } else if x >= 0.0 {
                [Tail::upper(lie), Tail::upper(keep), Tail::lower(0.0)]
            } else if x >= -epsilon {
                [Tail::lower(keep), Tail::lower(lie), Tail::lower(0.0)]
            } else {
                [Tail::lower(0.0); 3]
            }
        }
    })
}

/// Weights of the components in the distribution with the record and without it.
fn weights(release: Release) -> ([f64; COMPONENTS], [f64; COMPONENTS]) {
    match release {
        Release::Gaussian { .. } | Release::Laplace { .. } | Release::Response { .. } => {
            ([0.0, 1.0, 0.0], [1.0, 0.0, 0.0])
        }
        Release::SampledGaussian { rate, .. } | Release::SampledLaplace { rate, .. } => {
            ([1.0 - rate, rate, 0.0], [1.0, 0.0, 0.0])
        }
        Release::ReplacedGaussian { rate, .. } => {
            ([1.0 - rate, rate, 0.0], [1.0 - rate, 0.0, rate])
        }
    }
}

/// `with - e^low without` for each component, without cancellation at small losses.
fn excess_weights(release: Release, low: f64) -> [f64; COMPONENTS] {
    match release {
        Release::Gaussian { .. } | Release::Laplace { .. } | Release::Response { .. } => {
            [-low.exp(), 1.0, 0.0]
        }
        Release::SampledGaussian { rate, .. } | Release::SampledLaplace { rate, .. } => {
            [-(low.exp_m1() + rate), rate, 0.0]
        }
        Release::ReplacedGaussian { rate, .. } => {
            [-(1.0 - rate) * low.exp_m1(), rate, -rate * low.exp()]
        }
    }
}

fn dot(weights: [f64; COMPONENTS], masses: [f64; COMPONENTS]) -> f64 {
    weights[0] * masses[0] + weights[1] * masses[1] + weights[2] * masses[2]
}

/// The losses in `(low, high]`; `low` is the loss at the boundary `from`.
pub(super) fn cell(release: Release, low: f64, from: Boundary, to: Boundary) -> Cell {
    let masses = std::array::from_fn(|i| from.0[i].to(to.0[i]));
    let (with, without) = weights(release);
    Cell {
        p: dot(with, masses),
        q: dot(without, masses),
        excess: dot(excess_weights(release, low), masses),
    }
}

/// Both probabilities of losses `<=` the boundary.
pub(super) fn below(release: Release, at: Boundary) -> (f64, f64) {
    let masses = at.0.map(Tail::below);
    let (with, without) = weights(release);
    (dot(with, masses), dot(without, masses))
}

/// Both probabilities of losses above the boundary.
pub(super) fn above(release: Release, at: Boundary) -> (f64, f64) {
    let masses = at.0.map(Tail::above);
    let (with, without) = weights(release);
    (dot(with, masses), dot(without, masses))
}
