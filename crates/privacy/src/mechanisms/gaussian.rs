//! Gaussian noise on a vector of bounded L2 norm.
use super::{Description, Mechanism};
use crate::noise::{exact, float};
use crate::{Bounded, BoundedInParts, Error, Event, NoiseMultiplier, NoiseRng, Sampler};

pub(super) const DESCRIPTION: Description = Description {
    name: "gaussian",
    summary: "adds Gaussian noise of noise_multiplier times the clipping norm to each coordinate",
    input: "a vector of bounded L2 norm",
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
        let clipping_norm = input.clipping_norm();
        let mut values = input.into_values();
        match rng.source().sampler {
            Sampler::Exact => {
                exact::add_gaussian(&mut values, self.noise_multiplier.get(), clipping_norm, rng)?;
            }
            Sampler::Float => {
                let deviation = float_scale(self.noise_multiplier.get(), clipping_norm)?;
                float::add_gaussian(&mut values, deviation, rng);
            }
        }
        Ok(values)
    }
}

/// Coordinates in a part: few enough to stay in the second-level cache beside a parameter and two moments each.
const PART: usize = 16 * float::BLOCK;

impl Gaussian {
    /// As [`Mechanism::sample`] (parts change no number), calling `each(start, values[start..end])` for one part after the
    /// other as soon as its noise is added. An error other than [`Error::NotFinite`] comes before the first part.
    pub(crate) fn sample_in_parts(
        &self,
        input: BoundedInParts<'_>,
        rng: &mut NoiseRng,
        mut each: impl FnMut(usize, &[f32]),
    ) -> Result<(), Error> {
        let (multiplier, clipping_norm) = (self.noise_multiplier.get(), input.clipping_norm());
        match rng.source().sampler {
            // The grid depends on the number of coordinates, so all must be there.
            Sampler::Exact => input.for_each_run(usize::MAX, |values| {
                exact::add_gaussian(values, multiplier, clipping_norm, rng)?;
                each(0, values);
                Ok(())
            }),
            Sampler::Float => {
                let deviation = float_scale(multiplier, clipping_norm)?;
                let mut start = 0;
                // Whole blocks of the sampler.
                input.for_each_run(float::BLOCK, |values| {
                    for part in values.chunks_mut(PART) {
                        float::add_gaussian(part, deviation, rng);
                        each(start, part);
                        start += part.len();
                    }
                    Ok(())
                })
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floating_point_noise_that_would_be_lost_or_overflow_is_refused() {
        assert!((float_scale(2.0, 3.0).unwrap() - 6.0).abs() < 1e-6);
        assert!(float_scale(1e30, 1e6).is_ok() && float_scale(1e-30, 1e-6).is_ok());
        for (multiplier, clipping_norm) in
            [(1e20, 2e17), (1e30, 1e30), (1e-20, 1e-20), (1e-30, 1e-30)]
        {
            let refused = float_scale(multiplier, clipping_norm);
            assert!(
                matches!(
                    refused,
                    Err(Error::Unrepresentable { noise, sensitivity, .. })
                        if (noise / (multiplier * clipping_norm) - 1.0).abs() < 1e-12
                            && (sensitivity / clipping_norm - 1.0).abs() < 1e-12
                ),
                "{multiplier} {clipping_norm}: {refused:?}"
            );
        }
    }
}
