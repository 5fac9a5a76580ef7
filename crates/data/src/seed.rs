//! Seeds derived by label, never by call order.
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// One root seed; children by label: `seed.child("shadow").index(3)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed([u8; 32]);
impl Seed {
    /// The root seed of a study.
    #[must_use]
    pub fn root(number: u64) -> Self {
        Self(
            *blake3::Hasher::new_derive_key("dosimeter 2026 root seed")
                .update(&number.to_le_bytes())
                .finalize()
                .as_bytes(),
        )
    }
    /// The child named `label`.
    #[must_use]
    pub fn child(self, label: &str) -> Self {
        Self(
            *blake3::Hasher::new_keyed(&self.0)
                .update(b"label:")
                .update(label.as_bytes())
                .finalize()
                .as_bytes(),
        )
    }
    /// The child numbered `index`.
    #[must_use]
    pub fn index(self, index: u64) -> Self {
        Self(
            *blake3::Hasher::new_keyed(&self.0)
                .update(b"index:")
                .update(&index.to_le_bytes())
                .finalize()
                .as_bytes(),
        )
    }
    /// Raw bytes, for generators of other crates.
    #[must_use]
    pub const fn bytes(self) -> [u8; 32] {
        self.0
    }
    /// A replayable generator for shuffles, splits and initial weights.
    #[must_use]
    pub fn rng(self) -> ChaCha8Rng {
        ChaCha8Rng::from_seed(self.0)
    }
}

/// A uniform number below `n >= 1`, without bias.
///
/// Source: Lemire, *Fast Random Integer Generation in an Interval*, 2019, Algorithm 5.
pub(crate) fn below(rng: &mut ChaCha8Rng, n: u32) -> u32 {
    let mut product = u64::from(rng.next_u32()) * u64::from(n);
    if (product as u32) < n {
        let threshold = n.wrapping_neg() % n;
        while (product as u32) < threshold {
            product = u64::from(rng.next_u32()) * u64::from(n);
        }
    }
    (product >> 32) as u32
}

/// Fisher-Yates; `items` holds at most 2^32 - 1.
pub fn shuffle<T>(items: &mut [T], rng: &mut ChaCha8Rng) {
    for i in (1..items.len()).rev() {
        items.swap(i, below(rng, i as u32 + 1) as usize);
    }
}

/// The one fair coin of a seed.
pub(crate) fn fair_coin(seed: Seed) -> bool {
    seed.0[0] & 1 == 1
}
