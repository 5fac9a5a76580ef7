//! Thresholds and bits of randomized response.
use crate::Epsilon;
use rand_core::Rng;

const TWO_64: f64 = (1_u128 << 64) as f64;

/// Chance of another answer than the true one, out of 2^64, rounded so that the loss is never above `epsilon`:
/// `(k - 1) / (e^epsilon + k - 1)`, a little up. `None` when even the rounded-up chance would favour a lie over the
/// truth: then the answer is drawn uniformly, at no loss.
pub(crate) fn lie_threshold(epsilon: Epsilon, categories: u32) -> Option<u64> {
    let others = f64::from(categories.max(2) - 1);
    let lie = others / (epsilon.get().exp() + others);
    // exp, the sum and the quotient are each good to two units in the last place: 2^-50 covers them.
    let threshold = (lie * (1.0 + 2.0_f64.powi(-49)) * TWO_64).ceil().max(1.0);
    let most = others / (others + 1.0) * TWO_64;
    (threshold < most * (1.0 - 2.0_f64.powi(-48))).then_some(threshold as u64)
}

/// The loss that a lie threshold really gives, nats.
#[must_use]
pub fn loss_of_threshold(threshold: u64, categories: u32) -> f64 {
    let lie = threshold as f64 / TWO_64;
    let others = f64::from(categories.max(2) - 1);
    ((1.0 - lie) * others / lie).ln()
}

/// 64 independent bits, each 1 with probability exactly `threshold / 2^64`.
///
/// Compares 64 uniform numbers with the threshold bit by bit from the top, all at once, until each is decided: eight
/// random words on average instead of 64.
#[inline]
pub fn bernoulli_bits<R: Rng + ?Sized>(rng: &mut R, threshold: u64) -> u64 {
    let (mut ones, mut undecided) = (0_u64, u64::MAX);
    let mut bit = 64;
    while undecided != 0 && bit > 0 {
        bit -= 1;
        let word = rng.next_u64();
        if threshold >> bit & 1 == 1 {
            ones |= undecided & !word;
            undecided &= word;
        } else {
            undecided &= !word;
        }
        // Lower bits of the threshold all zero: what is still equal is not below.
        if bit > 0 && threshold << (64 - bit) == 0 {
            break;
        }
    }
    ones
}

/// Uniform below `n` for `n >= 1` (Lemire 2019, arXiv:1805.10941): unbiased.
#[inline]
pub(crate) fn below<R: Rng + ?Sized>(rng: &mut R, n: u32) -> u32 {
    let mut product = u64::from(rng.next_u32()) * u64::from(n);
    if (product as u32) < n {
        let reject_below = n.wrapping_neg() % n;
        while (product as u32) < reject_below {
            product = u64::from(rng.next_u32()) * u64::from(n);
        }
    }
    (product >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_of_the_rounded_chance_is_never_above_the_claimed_one() {
        for categories in [2, 3, 10, 1000] {
            for epsilon in [1e-12, 1e-3, 0.1, 0.5, 1.0, 3.0, 10.0, 40.0, 44.0, 60.0, 700.0] {
                let claimed = Epsilon::new(epsilon).unwrap();
                if let Some(threshold) = lie_threshold(claimed, categories) {
                    let real = loss_of_threshold(threshold, categories);
                    assert!(real <= epsilon * (1.0 + 1e-13), "{categories} {epsilon}: {real}");
                    if epsilon < 40.0 && epsilon > 1e-3 {
                        assert!(
                            real >= epsilon * (1.0 - 1e-9),
                            "{categories} {epsilon}: {real} wastes accuracy"
                        );
                    }
                } else {
                    assert!(epsilon < 1e-9);
                }
            }
        }
    }

    #[test]
    fn no_loss_or_one_lost_in_rounding_is_a_uniform_answer() {
        for (epsilon, uniform) in [(0.0, true), (7e-15, true), (2e-13, false)] {
            for categories in [2, 7] {
                let threshold = lie_threshold(Epsilon::new(epsilon).unwrap(), categories);
                assert_eq!(threshold.is_none(), uniform, "{epsilon} {categories}");
            }
        }
    }

    /// Words that were written down beforehand; asking for more of them fails.
    struct Script(std::vec::IntoIter<u64>);
    impl rand_core::TryRng for Script {
        type Error = std::convert::Infallible;
        fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
            self.try_next_u64().map(|word| word as u32)
        }
        fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
            Ok(self.0.next().unwrap())
        }
        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
            bytes.chunks_mut(8).for_each(|c| c.copy_from_slice(&self.next_u64().to_le_bytes()));
            Ok(())
        }
    }

    /// Each bit position reads a binary number below 1 from the words, and is set if that is below the threshold.
    #[test]
    fn bits_are_comparisons_with_the_threshold_by_as_many_words_as_decide_them() {
        let (a, b, c) = (0b1100_1010_u64, 0b1010_0110, 0b0110_0011);
        for (threshold, words, wanted) in [
            // Half: below if the first digit is 0.
            (1 << 63, vec![a], !a),
            // Three quarters, a quarter, five eighths.
            (3 << 62, vec![a, b], !a | !b),
            (1 << 62, vec![a, b], !a & !b),
            (5 << 61, vec![a, b, c], !a | (!b & !c)),
            // 2^-64: all digits 0. All but 2^-64: not all digits 1.
            (1, vec![0; 64], u64::MAX),
            (u64::MAX, vec![u64::MAX; 64], 0),
            // Decided everywhere by the first word.
            (u64::MAX, vec![0], u64::MAX),
            (1, vec![u64::MAX], 0),
        ] {
            let mut script = Script(words.into_iter());
            assert_eq!(bernoulli_bits(&mut script, threshold), wanted, "{threshold:x}");
            assert_eq!(script.0.len(), 0, "{threshold:x}: words were left");
        }
    }

    /// Of the four values of `3 w mod 4` the quarter 0 is refused, so that 0, 1 and 2 quarters of the range are left.
    #[test]
    fn a_draw_that_would_favour_some_numbers_is_repeated() {
        let quarter = 1 << 30;
        for (words, wanted) in
            [(vec![1], 0), (vec![2], 1), (vec![3], 2), (vec![4, 3], 2), (vec![0, 8, 2], 1)]
        {
            let mut script = Script(words.clone().into_iter());
            assert_eq!(below(&mut script, 3 * quarter), wanted, "{words:?}");
            assert_eq!(script.0.len(), 0, "{words:?}: words were left");
        }
    }
}
