//! Noise on vectors of double precision with a sensitivity of their own, and a choice by costs: for neighbours of which one has
//! another record in a place ([`Relation::ReplaceOne`]).
use super::{Description, Mechanism};
use crate::noise::{double, exact};
use crate::{
    Costs, Epsilon, Error, Event, LaplaceScale, NoiseMultiplier, NoiseRng, Relation, Sampler,
    Stable, StableL1,
};

pub(super) const GAMMA_NORM: Description = Description {
    name: "gamma_norm",
    summary: "adds a vector of density proportional to exp(-epsilon |noise| / sensitivity): a Gamma length, a uniform direction",
    input: "a vector of known L2 sensitivity when one record is replaced",
    source: "Chaudhuri, Monteleoni & Sarwate, JMLR 2011; Wu et al., arXiv:1512.06388, Theorem 8",
};
pub(super) const LAPLACE: Description = Description {
    name: "stable_laplace",
    summary: "adds Laplace noise of scale sensitivity / epsilon to each coordinate, in double precision",
    input: "a vector of known L1 sensitivity when one record is replaced",
    source: "Dwork, McSherry, Nissim & Smith 2006",
};
pub(super) const GAUSSIAN: Description = Description {
    name: "stable_gaussian",
    summary: "adds Gaussian noise of noise_multiplier times the sensitivity to each coordinate, in double precision",
    input: "a vector of known L2 sensitivity when one record is replaced",
    source: "Dwork & Roth 2014, Appendix A; Dong, Roth & Su 2019 (arXiv:1905.02383)",
};
pub(super) const EXPONENTIAL: Description = Description {
    name: "exponential",
    summary: "chooses with probability proportional to exp(-epsilon cost / (2 sensitivity))",
    input: "the cost of each choice, of known sensitivity when one record is replaced",
    source: "McSherry & Talwar, FOCS 2007",
};

/// Noise of density proportional to `exp(-epsilon |noise|_2 / sensitivity)`: `epsilon`-DP.
///
/// There is no exact sampler: [`Sampler::Exact`] is refused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GammaNorm {
    /// Loss, nats.
    pub epsilon: Epsilon,
}
impl Mechanism for GammaNorm {
    type Input = Stable;
    type Output = Vec<f64>;
    fn event(&self) -> Event {
        Event::Pure { epsilon: self.epsilon }.under(Relation::ReplaceOne)
    }
    fn sample(&self, input: Stable, rng: &mut NoiseRng) -> Result<Vec<f64>, Error> {
        let scale = scale(self.epsilon, input.sensitivity())?;
        float_only("gamma_norm", rng)?;
        let mut values = input.into_values();
        double::add_gamma_norm(&mut values, scale, rng);
        Ok(values)
    }
}

/// Laplace noise of scale `sensitivity / epsilon` on each coordinate: `epsilon`-DP.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StableLaplace {
    /// Loss, nats.
    pub epsilon: Epsilon,
}
impl Mechanism for StableLaplace {
    type Input = StableL1;
    type Output = Vec<f64>;
    fn event(&self) -> Event {
        match LaplaceScale::new(self.epsilon.get().recip()) {
            Ok(scale) => Event::Laplace { scale }.under(Relation::ReplaceOne),
            Err(_) => Event::NonPrivate,
        }
    }
    fn sample(&self, input: StableL1, rng: &mut NoiseRng) -> Result<Vec<f64>, Error> {
        let (sensitivity, scale) = (input.sensitivity(), scale(self.epsilon, input.sensitivity())?);
        let mut values = input.into_values();
        match rng.source().sampler {
            Sampler::Exact => {
                exact::add_laplace(&mut values, self.epsilon.get().recip(), sensitivity, rng)?;
            }
            Sampler::Float => values.iter_mut().for_each(|v| *v += scale * double::laplace(rng)),
        }
        Ok(values)
    }
}

/// Gaussian noise of standard deviation `noise_multiplier * sensitivity` on each coordinate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StableGaussian {
    /// Standard deviation over sensitivity.
    pub noise_multiplier: NoiseMultiplier,
}
impl Mechanism for StableGaussian {
    type Input = Stable;
    type Output = Vec<f64>;
    fn event(&self) -> Event {
        Event::gaussian(self.noise_multiplier).under(Relation::ReplaceOne)
    }
    fn sample(&self, input: Stable, rng: &mut NoiseRng) -> Result<Vec<f64>, Error> {
        let (multiplier, sensitivity) = (self.noise_multiplier.get(), input.sensitivity());
        let mut values = input.into_values();
        match rng.source().sampler {
            Sampler::Exact => exact::add_gaussian(&mut values, multiplier, sensitivity, rng)?,
            Sampler::Float => {
                let deviation = finite(multiplier * sensitivity, sensitivity)?;
                values.iter_mut().for_each(|v| *v += deviation * double::gaussian(rng));
            }
        }
        Ok(values)
    }
}

/// A choice with probability proportional to `exp(-epsilon cost / (2 sensitivity))`: `epsilon`-DP. The smallest costs are the likeliest.
///
/// There is no exact sampler: [`Sampler::Exact`] is refused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exponential {
    /// Loss, nats.
    pub epsilon: Epsilon,
}
impl Mechanism for Exponential {
    type Input = Costs;
    type Output = usize;
    fn event(&self) -> Event {
        Event::Pure { epsilon: self.epsilon }.under(Relation::ReplaceOne)
    }
    fn sample(&self, input: Costs, rng: &mut NoiseRng) -> Result<usize, Error> {
        let scale = 2.0 * scale(self.epsilon, input.sensitivity())?;
        float_only("exponential", rng)?;
        // The smallest of cost minus Gumbel noise has just these probabilities, and nothing overflows.
        let noisy: Vec<f64> = input
            .into_values()
            .into_iter()
            .map(|cost| cost / scale + double::exponential(rng).ln())
            .collect();
        let least = (0..noisy.len()).min_by(|&a, &b| noisy[a].total_cmp(&noisy[b]));
        least.ok_or(Error::NoChoice)
    }
}

/// `sensitivity / epsilon`, if it can be drawn.
fn scale(epsilon: Epsilon, sensitivity: f64) -> Result<f64, Error> {
    finite(sensitivity / epsilon.get(), sensitivity)
}
fn finite(noise: f64, sensitivity: f64) -> Result<f64, Error> {
    if noise.is_normal() && noise < 1e300 {
        Ok(noise)
    } else {
        Err(Error::Unrepresentable { noise, sensitivity, sampler: "float" })
    }
}
pub(super) fn float_only(mechanism: &'static str, rng: &NoiseRng) -> Result<(), Error> {
    match rng.source().sampler {
        Sampler::Exact => Err(Error::NoExactSampler { mechanism }),
        Sampler::Float => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Accountant, Delta, Ledger, Unit, accountants::Pld};

    fn epsilon(x: f64) -> Epsilon {
        Epsilon::new(x).unwrap()
    }
    fn spent(ledger: &Ledger, relation: Relation) -> Result<f64, crate::Unsupported> {
        Pld.epsilon_upper(ledger, relation, Delta::new(0.0).unwrap()).map(Epsilon::get)
    }

    /// Length Gamma(d, scale): mean `d scale`, variance `d scale^2`; each coordinate has variance `(d + 1) scale^2`. Over 20,000 draws
    /// each mean is within 6 of its standard errors: all false failures together are below 1e-7; a length of shape `d - 1`
    /// would be 100 of them off.
    #[test]
    fn gamma_norm_noise_has_the_length_and_the_direction_it_should() {
        let (d, scale, draws) = (5, 0.3, 20_000);
        let mut rng = NoiseRng::experiment([3; 32]);
        let (mut lengths, mut squares, mut sums) = (0.0, 0.0, [0.0; 5]);
        for _ in 0..draws {
            let input = Stable::new(vec![0.0; d], 0.6).unwrap();
            let noise = GammaNorm { epsilon: epsilon(2.0) }.sample(input, &mut rng).unwrap();
            let square: f64 = noise.iter().map(|x| x * x).sum();
            lengths += square.sqrt();
            squares += square;
            sums.iter_mut().zip(&noise).for_each(|(s, x)| *s += x);
        }
        let (n, k) = (f64::from(draws), d as f64);
        let close = |got: f64, wanted: f64, deviation: f64| {
            assert!((got - wanted).abs() < 6.0 * deviation / n.sqrt(), "{got}, not {wanted}");
        };
        close(lengths / n, k * scale, k.sqrt() * scale);
        // E L^2 = k (k + 1), E L^4 = k (k + 1) (k + 2) (k + 3), in units of the scale.
        let fourth = k * (k + 1.0) * ((k + 2.0) * (k + 3.0) - k * (k + 1.0));
        close(squares / n, k * (k + 1.0) * scale * scale, fourth.sqrt() * scale * scale);
        for sum in sums {
            close(sum / n, 0.0, (k + 1.0).sqrt() * scale);
        }
    }

    #[test]
    fn the_choice_has_the_probabilities_it_should() {
        // Costs 0, 1, 3 of sensitivity 2 at epsilon 4: weights 1, e^-1, e^-3.
        let mut rng = NoiseRng::experiment([5; 32]);
        let (n, mut counts) = (40_000, [0.0_f64; 3]);
        for _ in 0..n {
            let costs = Costs::new(vec![0.0, 1.0, 3.0], 2.0).unwrap();
            counts[Exponential { epsilon: epsilon(4.0) }.sample(costs, &mut rng).unwrap()] += 1.0;
        }
        let weights = [1.0, (-1.0_f64).exp(), (-3.0_f64).exp()];
        let total: f64 = weights.iter().sum();
        // Five standard deviations: a false failure once in a million.
        for (count, weight) in counts.iter().zip(weights) {
            let p = weight / total;
            let deviation = (f64::from(n) * p * (1.0 - p)).sqrt();
            assert!((count - f64::from(n) * p).abs() < 5.0 * deviation, "{counts:?}");
        }
        let huge = Costs::new(vec![1e250, 0.0], 1e-10).unwrap();
        assert_eq!(Exponential { epsilon: epsilon(1.0) }.sample(huge, &mut rng).unwrap(), 1);
        let none = Costs::new(vec![], 1.0).unwrap();
        assert_eq!(
            Exponential { epsilon: epsilon(1.0) }.sample(none, &mut rng),
            Err(Error::NoChoice)
        );
    }

    #[test]
    fn the_loss_is_that_of_one_replaced_record_and_unknown_for_one_added() {
        let mut rng = NoiseRng::experiment([1; 32]);
        let mut ledger = Ledger::new(Unit::Record);
        let value = || Stable::new(vec![1.0], 0.5).unwrap();
        ledger.release(&GammaNorm { epsilon: epsilon(0.75) }, value(), &mut rng).unwrap();
        let sums = StableL1::new(vec![1.0], 0.5).unwrap();
        ledger.release(&StableLaplace { epsilon: epsilon(0.5) }, sums, &mut rng).unwrap();
        let total = spent(&ledger, Relation::ReplaceOne).unwrap();
        assert!((1.25..1.25 + 1e-9).contains(&total), "{total}");
        assert!(spent(&ledger, Relation::AddRemove).is_err());
        // What is proved for adding and removing holds twice over for replacing.
        let mut other = Ledger::new(Unit::Record);
        other.record(Event::Pure { epsilon: epsilon(0.75) }.under(Relation::AddRemove), 1);
        let total = spent(&other, Relation::ReplaceOne).unwrap();
        assert!((1.5..1.5 + 1e-9).contains(&total), "{total}");
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        let value = || Stable::new(vec![1.0], 0.5).unwrap();
        let mut exact = NoiseRng::replayable([1; 32]);
        let refused = GammaNorm { epsilon: epsilon(1.0) }.sample(value(), &mut exact);
        assert_eq!(refused, Err(Error::NoExactSampler { mechanism: "gamma_norm" }));
        let mut rng = NoiseRng::experiment([1; 32]);
        for bad in [epsilon(0.0), Epsilon::UNBOUNDED] {
            let refused = GammaNorm { epsilon: bad }.sample(value(), &mut rng);
            assert!(matches!(refused, Err(Error::Unrepresentable { .. })), "{refused:?}");
        }
    }

    /// A Gaussian sum in double precision, exact and float: means and variances over 4,000 draws within 6 standard errors.
    #[test]
    fn gaussian_noise_has_the_deviation_it_should() {
        for mut rng in [NoiseRng::replayable([2; 32]), NoiseRng::experiment([2; 32])] {
            let mechanism = StableGaussian { noise_multiplier: NoiseMultiplier::new(3.0).unwrap() };
            let input = Stable::new(vec![1e6; 4000], 0.5).unwrap();
            let noisy = mechanism.sample(input, &mut rng).unwrap();
            let noise: Vec<f64> = noisy.iter().map(|x| x - 1e6).collect();
            let mean = noise.iter().sum::<f64>() / 4000.0;
            let variance = noise.iter().map(|x| x * x).sum::<f64>() / 4000.0;
            assert!(mean.abs() < 6.0 * 1.5 / 4000.0_f64.sqrt(), "{mean}");
            // The grid is widened for 4,000 coordinates: the noise may be larger by 1/4096.
            let error = (variance / 2.25 - 1.0).abs();
            assert!(error < 6.0 * (2.0 / 4000.0_f64).sqrt(), "{variance}");
        }
    }
}
