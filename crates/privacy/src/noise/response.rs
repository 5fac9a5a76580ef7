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

/// Uniform below `n` for `n >= 1`, unbiased.
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
    fn no_loss_is_a_uniform_answer() {
        assert_eq!(lie_threshold(Epsilon::new(0.0).unwrap(), 2), None);
        assert_eq!(lie_threshold(Epsilon::new(0.0).unwrap(), 7), None);
    }
}
