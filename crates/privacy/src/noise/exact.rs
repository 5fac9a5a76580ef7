//! Integer-only samplers: no floating-point number touches the noise.
//!
//! # Source
//! Canonne, Kamath & Steinke, *The Discrete Gaussian for Differential Privacy*, NeurIPS 2020 (arXiv:2004.00010),
//! Algorithms 1 to 3. Every comparison is between integers and every uniform draw is unbiased, so the output law is
//! exact. The time taken depends on the values drawn: do not expose it to an attacker.
use super::response::below;
use crate::{Error, NoiseRng};
use rand_core::Rng;

/// Largest standard deviation or scale in grid steps; products of two such numbers and a small factor fit 64 bits.
pub const LARGEST_SCALE: u32 = 1 << 30;

/// True with probability `exp(-numerator / denominator)`, for `numerator <= denominator`.
///
/// The number of successes in a row of events with probability `x / k`, `k = 1, 2, ..` is even with probability
/// `exp(-x)` (their Algorithm 1).
#[inline]
fn bernoulli_exp<R: Rng + ?Sized>(rng: &mut R, numerator: u32, denominator: u32) -> bool {
    let mut k = 1;
    while below(rng, denominator) < numerator && (k == 1 || below(rng, k) == 0) {
        k += 1;
    }
    k & 1 == 1
}

/// True with probability `exp(-1)`.
#[inline]
fn bernoulli_exp_one<R: Rng + ?Sized>(rng: &mut R) -> bool {
    let mut k = 2;
    while below(rng, k) == 0 {
        k += 1;
    }
    k & 1 == 1
}

/// True with probability `exp(-1/2)`.
#[inline]
fn bernoulli_exp_half<R: Rng + ?Sized>(rng: &mut R) -> bool {
    let mut k = 1;
    while below(rng, 2 * k) == 0 {
        k += 1;
    }
    k & 1 == 1
}

/// True with probability `exp(-f^2 / 2)`, `f = numerator / denominator <= 1`.
#[inline]
fn bernoulli_exp_half_square<R: Rng + ?Sized>(
    rng: &mut R,
    numerator: u32,
    denominator: u32,
) -> bool {
    let mut k = 1;
    // f^2 / (2 k) = P(1 of 2k) P(f) P(f), cheapest test first.
    while below(rng, 2 * k) == 0
        && below(rng, denominator) < numerator
        && below(rng, denominator) < numerator
    {
        k += 1;
    }
    k & 1 == 1
}

/// Quotient and remainder by `scale` of a geometric variable with ratio `exp(-1 / scale)`.
#[inline]
fn geometric<R: Rng + ?Sized>(rng: &mut R, scale: u32) -> (u32, u32) {
    let remainder = loop {
        let u = below(rng, scale);
        if bernoulli_exp(rng, u, scale) {
            break u;
        }
    };
    let mut quotient = 0;
    while bernoulli_exp_one(rng) {
        quotient += 1;
    }
    (quotient, remainder)
}

/// Discrete Laplace noise: `P(x)` proportional to `exp(-|x| / scale)`.
///
/// `scale` is in `1..=LARGEST_SCALE`; outside, the nearest allowed value is used.
#[inline]
pub fn discrete_laplace<R: Rng + ?Sized>(rng: &mut R, scale: u32) -> i64 {
    let scale = scale.clamp(1, LARGEST_SCALE);
    loop {
        let (quotient, remainder) = geometric(rng, scale);
        let size = i64::from(quotient) * i64::from(scale) + i64::from(remainder);
        let negative = rng.next_u32() & 1 == 1;
        // Zero must not be counted twice.
        if !(negative && size == 0) {
            return if negative { -size } else { size };
        }
    }
}

/// Discrete Gaussian noise: `P(x)` proportional to `exp(-x^2 / (2 standard_deviation^2))`.
///
/// `standard_deviation` is in `1..=LARGEST_SCALE`; outside, the nearest allowed value is used.
#[inline]
pub fn discrete_gaussian<R: Rng + ?Sized>(rng: &mut R, standard_deviation: u32) -> i64 {
    let s = standard_deviation.clamp(1, LARGEST_SCALE);
    loop {
        // A discrete Laplace of scale s, kept with probability exp(-(|y| - s)^2 / (2 s^2)) (their Algorithm 3, t = s).
        let (quotient, remainder) = geometric(rng, s);
        // | |y| - s | / s = whole + part / s
        let (whole, part) =
            if quotient == 0 { (0, s - remainder) } else { (quotient - 1, remainder) };
        // exp(-(w + f)^2 / 2) = exp(-1/2)^(w^2) exp(-f)^w exp(-f^2 / 2)
        let keep = bernoulli_exp_half_square(rng, part, s)
            && (whole == 0
                || ((0..u64::from(whole) * u64::from(whole)).all(|_| bernoulli_exp_half(rng))
                    && (0..whole).all(|_| bernoulli_exp(rng, part, s))));
        if !keep {
            continue;
        }
        let size = i64::from(quotient) * i64::from(s) + i64::from(remainder);
        let negative = rng.next_u32() & 1 == 1;
        if !(negative && size == 0) {
            return if negative { -size } else { size };
        }
    }
}

/// What values are held in.
pub trait Number: Copy + Into<f64> {
    /// The nearest number of this kind.
    fn nearest(value: f64) -> Self;
}
impl Number for f32 {
    #[inline]
    fn nearest(value: f64) -> Self {
        value as Self
    }
}
impl Number for f64 {
    #[inline]
    fn nearest(value: f64) -> Self {
        value
    }
}

/// A grid of spacing `2^-k` and the noise on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Grid {
    /// Spacing, a power of two.
    pub(crate) spacing: f64,
    /// Standard deviation or scale in grid steps, rounded up.
    pub(crate) steps: u32,
}
impl Grid {
    /// The grid on which noise of `multiplier` times the sensitivity is drawn.
    ///
    /// Rounding each coordinate to the grid moves the difference of two neighbours by at most one step a coordinate, so
    /// the sensitivity on the grid is at most `clipping_norm / spacing + widening`, with `widening` the norm of the all-ones
    /// vector: `sqrt(d)` in L2, `d` in L1. The noise is `multiplier` times that, rounded up: what the event claims holds
    /// for the rounded value. The spacing is the largest that keeps the widening below 1/4096 and the noise above
    /// 2^20 steps, where the discrete and the continuous law differ by less than `exp(-2^40)`.
    pub(crate) fn new(multiplier: f64, clipping_norm: f64, widening: f64) -> Result<Self, Error> {
        let refused = Error::Unrepresentable {
            noise: multiplier * clipping_norm,
            sensitivity: clipping_norm,
            sampler: "exact",
        };
        let resolution = (1_048_576.0 / multiplier).max(4096.0 * widening.max(1.0));
        // Fewer steps when the largest scale would be passed: more widening, never less noise.
        let resolution = resolution.min(f64::from(LARGEST_SCALE / 4) / multiplier);
        let exponent = (clipping_norm / resolution).log2().floor();
        if !(-900.0..=900.0).contains(&exponent) {
            return Err(refused);
        }
        let spacing = exponent.exp2();
        let steps = (multiplier * (clipping_norm / spacing + widening) * (1.0 + 1e-12)).ceil();
        if steps.is_finite() && (1.0..=f64::from(LARGEST_SCALE)).contains(&steps) {
            Ok(Self { spacing, steps: steps as u32 })
        } else {
            Err(refused)
        }
    }
    /// Rounds to the grid and adds noise drawn by `noise`. Saturates far outside any clipped sum; saturation moves
    /// no two values apart.
    #[inline]
    fn perturb<T: Number>(self, values: &mut [T], mut noise: impl FnMut(u32) -> i64) {
        let inverse = self.spacing.recip();
        for value in values {
            // Exact: a power of two only moves the exponent. The cast saturates; 2^52 leaves room for the noise.
            let rounded = ((*value).into() * inverse)
                .round()
                .clamp(-4_503_599_627_370_496.0, 4_503_599_627_370_496.0);
            *value = T::nearest((rounded as i64 + noise(self.steps)) as f64 * self.spacing);
        }
    }
}

/// Rounds `values` to a grid and adds discrete Gaussian noise of at least `noise_multiplier` times the widened sensitivity.
///
/// # Errors
/// [`Error::Unrepresentable`] if no grid serves (noise multiplier times root of the dimension above about 10^9).
pub fn add_gaussian<T: Number>(
    values: &mut [T],
    noise_multiplier: f64,
    clipping_norm: f64,
    rng: &mut NoiseRng,
) -> Result<(), Error> {
    let grid = Grid::new(noise_multiplier, clipping_norm, (values.len() as f64).sqrt())?;
    grid.perturb(values, |steps| discrete_gaussian(rng, steps));
    Ok(())
}

/// Rounds `values` to a grid and adds discrete Laplace noise of at least `scale` times the widened L1 sensitivity.
///
/// # Errors
/// [`Error::Unrepresentable`] if no grid serves.
pub fn add_laplace<T: Number>(
    values: &mut [T],
    scale: f64,
    clipping_norm: f64,
    rng: &mut NoiseRng,
) -> Result<(), Error> {
    let grid = Grid::new(scale, clipping_norm, values.len() as f64)?;
    grid.perturb(values, |steps| discrete_laplace(rng, steps));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widened_sensitivity_is_covered_by_the_noise() {
        for (z, c, d) in
            [(1.0, 1.0, 1_usize), (0.3, 7.5, 3_200_000), (16.0, 1e-6, 3_200_000), (100.0, 1e9, 10)]
        {
            let widening = (d as f64).sqrt();
            let grid = Grid::new(z, c, widening).unwrap();
            let claimed = z * (c / grid.spacing + widening);
            assert!(f64::from(grid.steps) >= claimed, "{grid:?}");
            assert!(
                f64::from(grid.steps) * grid.spacing <= z * c * 1.001 + grid.spacing,
                "{grid:?} wastes noise"
            );
            assert!(grid.steps >= 1 << 20);
        }
    }

    #[test]
    fn values_are_rounded_to_the_grid_before_the_noise_and_saturate_far_out() {
        let mut values = [0.7_f32, -0.8, 0.0, 1e30, -1e30];
        Grid { spacing: 0.5, steps: 9 }.perturb(&mut values, |steps| i64::from(steps) - 6);
        // 1.4 is rounded to 1, -1.6 to -2, and 3 is added: halves of 4, 1, 3 and of 2^52, where 3 is not seen any more.
        let far = (1_u64 << 51) as f32;
        for (got, wanted) in values.into_iter().zip([2.0, 0.5, 1.5, far, -far]) {
            assert!((got - wanted).abs() <= 1e-7 * wanted.abs(), "{got}, not {wanted}");
        }
    }

    #[test]
    fn impossible_grids_are_refused() {
        assert!(Grid::new(1e300, 1.0, 1.0).is_err());
        assert!(Grid::new(1.0, 1e-300, 1.0).is_err());
        assert!(Grid::new(1e9, 1.0, 1e6).is_err());
    }
}
