//! Gaussian noise on a vector of bounded L2 norm.
use super::{Description, Mechanism};
use crate::noise::{exact, float};
use crate::{Bounded, Error, Event, NoiseMultiplier, NoiseRng, Sampler};

pub(super) const DESCRIPTION: Description = Description {
    name: "gaussian",
    summary: "adds Gaussian noise of noise_multiplier times the clipping norm to each coordinate",
    source: "Dwork & Roth 2014, Appendix A; Canonne, Kamath & Steinke 2020 for the discrete form",
};

/// Adds `N(0, (noise_multiplier * clipping_norm)^2)` to each coordinate.
///
/// With [`Sampler::Exact`] the value is first rounded to a `2^-k` grid and the noise is a discrete Gaussian on it,
/// larger by the widening of the sensitivity that the rounding causes, so that the event still holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gaussian {
    /// Noise standard deviation over clipping norm.
    pub noise_multiplier: NoiseMultiplier,
}
impl Mechanism for Gaussian {
    type Input = Bounded;
    type Output = Vec<f32>;
    fn event(&self) -> Event {
        Event::gaussian(self.noise_multiplier)
    }
    fn sample(&self, input: Bounded, rng: &mut NoiseRng) -> Result<Vec<f32>, Error> {
        self.sample_in_parts(input, rng, |_, _| ())
    }
}

/// Coordinates in a part: whole blocks of the float sampler, so that parts change no number, and few enough to stay in
/// the second-level cache beside a parameter and two moments each.
const PART: usize = 16_384;

impl Gaussian {
    /// As [`Mechanism::sample`], calling `each(start, values[start..end])` for one part after the other as soon as its
    /// noise is added. An error comes before the first part.
    pub(crate) fn sample_in_parts(
        &self,
        input: Bounded,
        rng: &mut NoiseRng,
        mut each: impl FnMut(usize, &[f32]),
    ) -> Result<Vec<f32>, Error> {
        let clipping_norm = input.clipping_norm();
        let mut values = input.into_values();
        match rng.source().sampler {
            Sampler::Exact => {
                exact::add_gaussian(&mut values, self.noise_multiplier.get(), clipping_norm, rng)?;
                each(0, &values);
            }
            Sampler::Float => {
                let deviation = float_scale(self.noise_multiplier.get(), clipping_norm)?;
                let mut start = 0;
                for part in values.chunks_mut(PART) {
                    float::add_gaussian(part, deviation, rng);
                    each(start, part);
                    start += part.len();
                }
            }
        }
        Ok(values)
    }
}

/// The scale of floating-point noise, refused where it would be lost or overflow.
pub(super) fn float_scale(multiplier: f64, clipping_norm: f64) -> Result<f32, Error> {
    let scale = (multiplier * clipping_norm) as f32;
    if scale.is_normal() && scale < 1e37 {
        Ok(scale)
    } else {
        Err(Error::Unrepresentable {
            noise: multiplier * clipping_norm,
            sensitivity: clipping_norm,
            sampler: "float",
        })
    }
}
