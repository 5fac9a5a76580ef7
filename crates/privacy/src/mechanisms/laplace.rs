//! Laplace noise on a vector of bounded L1 norm.
use super::{Description, Mechanism, gaussian::float_scale};
use crate::noise::{exact, float};
use crate::{BoundedL1, Error, Event, LaplaceScale, NoiseRng, Sampler};

pub(super) const DESCRIPTION: Description = Description {
    name: "laplace",
    summary: "adds Laplace noise of scale times the L1 clipping norm to each coordinate",
    input: "a vector of bounded L1 norm",
    source: "Dwork, McSherry, Nissim & Smith 2006; Canonne, Kamath & Steinke 2020 for the discrete form",
};

/// Adds Laplace noise of scale `scale * clipping_norm` to each coordinate: `1 / scale`-DP under AddRemove and
/// `2 / scale`-DP under ReplaceOne and Local.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Laplace {
    /// Noise scale over clipping norm.
    pub scale: LaplaceScale,
}
impl Mechanism for Laplace {
    type Input = BoundedL1;
    type Output = Vec<f32>;
    fn event(&self) -> Event {
        Event::Laplace { scale: self.scale }
    }
    fn sample(&self, input: BoundedL1, rng: &mut NoiseRng) -> Result<Vec<f32>, Error> {
        let clipping_norm = input.clipping_norm();
        let mut values = input.into_values();
        match rng.source().sampler {
            Sampler::Exact => {
                exact::add_laplace(&mut values, self.scale.get(), clipping_norm, rng)?
            }
            Sampler::Float => {
                let scale = float_scale(self.scale.get(), clipping_norm)?;
                float::add_laplace(&mut values, scale, rng);
            }
        }
        Ok(values)
    }
}
