//! Randomized response on bits and on categories.
use super::{Description, Mechanism};
use crate::noise::response::{below, bernoulli_bits, lie_threshold};
use crate::{Epsilon, Error, Event, NoiseRng};
use rand_core::Rng;

const SOURCE: &str = "Warner 1965; Kairouz, Oh & Viswanath 2016 (arXiv:1407.1338) for k answers";
pub(super) const BINARY: Description = Description {
    name: "binary_randomized_response",
    summary: "keeps each bit with probability e^epsilon / (1 + e^epsilon)",
    input: "bits",
    source: SOURCE,
};
pub(super) const CATEGORIES: Description = Description {
    name: "randomized_response",
    summary: "keeps a category with probability e^epsilon / (e^epsilon + k - 1), else answers one of the others",
    input: "a category out of a known number",
    source: SOURCE,
};

/// Binary randomized response on packed bits: each bit kept with probability `e^epsilon / (1 + e^epsilon)`.
/// One release of `n` bits is the event `Repeated { RandomizedResponse { epsilon, 2 }, n }`.
///
/// The chance of a flip is a multiple of 2^-64, rounded up: the loss is never above `epsilon`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BinaryRandomizedResponse {
    /// Loss per bit, nats.
    pub epsilon: Epsilon,
    /// Bits per release.
    pub bits: usize,
}
impl BinaryRandomizedResponse {
    /// Chance that a bit is flipped: `1 / (1 + e^epsilon)`.
    #[must_use]
    pub fn flip_probability(&self) -> f64 {
        1.0 / (1.0 + self.epsilon.get().exp())
    }
    /// `2 / (1 + e^epsilon)`: the chance that a fair coin replaces the bit, as papers write it. For reports only.
    #[must_use]
    pub fn rho(&self) -> f64 {
        2.0 * self.flip_probability()
    }
}
impl Mechanism for BinaryRandomizedResponse {
    /// Bit `i` is bit `i % 64` of word `i / 64`; bits past the end are 0.
    type Input = Vec<u64>;
    type Output = Vec<u64>;
    fn event(&self) -> Event {
        let event = if self.epsilon.is_unbounded() {
            Event::NonPrivate
        } else {
            Event::RandomizedResponse { epsilon: self.epsilon, categories: 2 }
        };
        Event::Repeated { event: Box::new(event), count: self.bits as u64 }
    }
    fn sample(&self, mut words: Vec<u64>, rng: &mut NoiseRng) -> Result<Vec<u64>, Error> {
        let needed = self.bits.div_ceil(64);
        let tail = match self.bits % 64 {
            0 => u64::MAX,
            rest => (1 << rest) - 1,
        };
        if words.len() != needed || words.last().is_some_and(|w| w & !tail != 0) {
            return Err(Error::WrongBits { got: words.len(), needed, bits: self.bits });
        }
        if self.epsilon.is_unbounded() {
            return Ok(words);
        }
        let threshold = lie_threshold(self.epsilon, 2);
        for word in &mut words {
            *word = match threshold {
                Some(threshold) => *word ^ bernoulli_bits(rng, threshold),
                None => rng.next_u64(),
            };
        }
        if let Some(last) = words.last_mut() {
            *last &= tail;
        }
        Ok(words)
    }
}

/// k-ary randomized response on one category: kept with probability `e^epsilon / (e^epsilon + k - 1)`, else one of the
/// `k - 1` others, each as likely.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomizedResponse {
    /// Loss per answer, nats.
    pub epsilon: Epsilon,
    /// Number of categories, at least 2.
    pub categories: u32,
}
impl RandomizedResponse {
    /// Chance that the true category is answered.
    #[must_use]
    pub fn keep_probability(&self) -> f64 {
        1.0 - self.rho() * f64::from(self.categories.max(2) - 1) / f64::from(self.categories.max(2))
    }
    /// `k / (e^epsilon + k - 1)`: the chance that a uniform answer replaces the true one, as papers write it.
    /// For reports only.
    #[must_use]
    pub fn rho(&self) -> f64 {
        let k = f64::from(self.categories.max(2));
        k / (self.epsilon.get().exp() + k - 1.0)
    }
}
impl Mechanism for RandomizedResponse {
    type Input = u32;
    type Output = u32;
    fn event(&self) -> Event {
        if self.epsilon.is_unbounded() {
            Event::NonPrivate
        } else {
            Event::RandomizedResponse { epsilon: self.epsilon, categories: self.categories.max(2) }
        }
    }
    fn sample(&self, category: u32, rng: &mut NoiseRng) -> Result<u32, Error> {
        if self.categories < 2 || category >= self.categories {
            return Err(Error::UnknownCategory { got: category, categories: self.categories });
        }
        if self.epsilon.is_unbounded() {
            return Ok(category);
        }
        Ok(match lie_threshold(self.epsilon, self.categories) {
            None => below(rng, self.categories),
            Some(threshold) if rng.next_u64() >= threshold => category,
            Some(_) => {
                let other = below(rng, self.categories - 1);
                other + u32::from(other >= category)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epsilon(x: f64) -> Epsilon {
        Epsilon::new(x).unwrap()
    }

    #[test]
    fn chances_are_the_hand_worked_ones() {
        let close = |got: f64, wanted: f64| (got - wanted).abs() < 1e-15;
        // Odds 3 to 1, and half of a fair coin.
        let bits = BinaryRandomizedResponse { epsilon: epsilon(3.0_f64.ln()), bits: 1 };
        assert!(close(bits.flip_probability(), 0.25) && close(bits.rho(), 0.5));
        // Odds 2 to 1 to 1 to 1: kept with 2/5; a uniform answer with 4/5 keeps 1/5 + 4/5 / 4.
        let four = RandomizedResponse { epsilon: epsilon(2.0_f64.ln()), categories: 4 };
        assert!(close(four.rho(), 0.8) && close(four.keep_probability(), 0.4));
        // Fewer than two answers are asked about as two.
        let one = RandomizedResponse { epsilon: epsilon(3.0_f64.ln()), categories: 1 };
        assert!(close(one.rho(), 0.5) && close(one.keep_probability(), 0.75));
    }

    #[test]
    fn one_category_is_no_choice_and_two_are() {
        let mut rng = NoiseRng::replayable([5; 32]);
        for (categories, category, fine) in
            [(0, 0, false), (1, 0, false), (2, 1, true), (2, 2, false)]
        {
            let mechanism = RandomizedResponse { epsilon: epsilon(1.0), categories };
            let answer = mechanism.sample(category, &mut rng);
            assert_eq!(answer.is_ok_and(|a| a < categories), fine, "{category} of {categories}");
        }
    }

    #[test]
    fn without_noise_the_truth_is_answered_and_charged_as_such() {
        let mut rng = NoiseRng::replayable([6; 32]);
        let category = RandomizedResponse { epsilon: Epsilon::UNBOUNDED, categories: 7 };
        let bits = BinaryRandomizedResponse { epsilon: Epsilon::UNBOUNDED, bits: 65 };
        for i in 0..7 {
            assert_eq!(category.sample(i, &mut rng).unwrap(), i);
        }
        assert_eq!(bits.sample(vec![u64::MAX, 1], &mut rng).unwrap(), [u64::MAX, 1]);
        assert_eq!(category.event(), Event::NonPrivate);
        assert_eq!(bits.event().unrepeated(), (&Event::NonPrivate, 65));
    }
}
