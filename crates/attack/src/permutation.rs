//! Random orders.
use rand_core::Rng;

/// The numbers below `n` in uniformly random order (Fisher-Yates).
pub(crate) fn permutation(n: usize, rng: &mut impl Rng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    shuffle(&mut order, rng);
    order
}

/// Shuffles in place, every order equally likely.
pub(crate) fn shuffle<T>(values: &mut [T], rng: &mut impl Rng) {
    for last in (1..values.len()).rev() {
        values.swap(last, below(last as u64 + 1, rng) as usize);
    }
}

/// Uniform below `bound`, without bias (Lemire 2019, rejection form).
fn below(bound: u64, rng: &mut impl Rng) -> u64 {
    let threshold = bound.wrapping_neg() % bound;
    loop {
        let wide = u128::from(rng.next_u64()) * u128::from(bound);
        if wide as u64 >= threshold {
            return (wide >> 64) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dosimeter_data::Seed;
    use dosimeter_testing::hoeffding_margin;

    /// False failure at most 1e-9 per order; 6 orders of 3 things are each 1/6 likely.
    #[test]
    fn every_order_is_equally_likely() {
        let mut rng = Seed::root(1).rng();
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..60_000 {
            *seen.entry(permutation(3, &mut rng)).or_insert(0_u32) += 1;
        }
        assert_eq!(seen.len(), 6);
        for (order, count) in seen {
            let frequency = f64::from(count) / 60_000.0;
            assert!(
                (frequency - 1.0 / 6.0).abs() < hoeffding_margin(60_000),
                "{order:?} {frequency}"
            );
        }
    }
}
