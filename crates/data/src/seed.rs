//! Seeds derived by label, never by call order.
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

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
