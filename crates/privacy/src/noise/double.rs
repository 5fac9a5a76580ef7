//! Floating-point samplers in double precision, for statistics of few numbers. Their low bits may give the value away: not for real
//! releases.
use crate::NoiseRng;
use rand_core::Rng;

/// Uniform in `(0, 1)`, a multiple of 2^-53 plus 2^-54.
pub(crate) fn uniform(rng: &mut NoiseRng) -> f64 {
    ((rng.next_u64() >> 11) as f64 + 0.5) * (-53_f64).exp2()
}

/// One standard Gaussian number (Box & Muller 1958; the second of the pair is not used, so that a draw depends on nothing before it).
#[must_use]
pub fn gaussian(rng: &mut NoiseRng) -> f64 {
    let radius = (-2.0 * uniform(rng).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(rng)).cos()
}

/// One standard exponential number.
#[must_use]
pub fn exponential(rng: &mut NoiseRng) -> f64 {
    -uniform(rng).ln()
}

/// One Laplace number of scale 1.
#[must_use]
pub fn laplace(rng: &mut NoiseRng) -> f64 {
    let size = exponential(rng);
    if rng.next_u32() & 1 == 1 { -size } else { size }
}

/// Adds to `values` a vector of density proportional to `exp(-|x|_2 / scale)`: its length is a sum of as many exponential numbers as
/// there are coordinates (a Gamma law of that shape), its direction uniform.
///
/// # Source
/// Chaudhuri, Monteleoni & Sarwate, *Differentially Private Empirical Risk Minimization*, JMLR 12, 2011, section 2.2.
pub fn add_gamma_norm(values: &mut [f64], scale: f64, rng: &mut NoiseRng) {
    let length: f64 = values.iter().map(|_| exponential(rng)).sum();
    let direction: Vec<f64> = values.iter().map(|_| gaussian(rng)).collect();
    let norm = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
    for (value, x) in values.iter_mut().zip(&direction) {
        *value += scale * length * x / norm;
    }
}
