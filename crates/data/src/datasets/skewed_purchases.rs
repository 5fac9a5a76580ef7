//! Skewed Purchases: a generated benchmark whose test records follow another law than its training records.
use crate::seed::shuffle;
use crate::{BitMatrix, Dataset, Error, Seed};
use rand_core::Rng;
use serde::{Deserialize, Serialize};

/// Bits per record.
const WIDTH: usize = 600;
/// Chance of a 1 inside a record's class block.
const INDICATOR: f64 = 0.8;

/// Settings of the Skewed Purchases generator.
///
/// Class `c` of `C` owns the block of bits `c k .. (c + 1) k`, `k = 600 / C`. All bits are independent: a bit of the record's own
/// block is 1 with probability 0.8, any other with probability `train_noise` (train law) or `test_noise` (test law). Classes
/// take turns, so they are balanced. Records `0 .. train_records` follow the train law, the rest the test law.
///
/// # Source
/// Bernau et al., *Comparing Local and Central Differential Privacy Using Membership Inference Attacks* (arXiv:1912.11328),
/// where the block is printed as "a fraction of 600 positions"; it must be `600 / C`, for then the mean class-conditional bit
/// entropy of test over train is (1 - 1/C)(H(0.5) - H(0.2)), the stated 0.3 bits or so.
///
/// # Caution
/// Members follow the train law. Non-members of the test law can be told from them without any model; audits therefore draw
/// their candidates from the train law.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SkewedPurchases {
    /// Number of classes, a divisor of 600 from 2 on; the paper uses 10, 20, 50 and 100.
    pub classes: usize,
    /// Records of the train law.
    pub train_records: u32,
    /// Records of the test law.
    pub test_records: u32,
    /// Chance of a 1 outside the class block under the train law, to the nearest 2^-32.
    pub train_noise: f64,
    /// The same under the test law; equal to `train_noise` it is the control without skew.
    pub test_noise: f64,
    /// Spreads the blocks over the 600 positions by a fixed permutation; without it they are contiguous.
    pub permute_seed: Option<u64>,
}
impl Default for SkewedPurchases {
    fn default() -> Self {
        Self {
            classes: 100,
            train_records: 100_000,
            test_records: 100_000,
            train_noise: 0.2,
            test_noise: 0.5,
            permute_seed: None,
        }
    }
}
impl SkewedPurchases {
    /// The control: test records follow the train law too.
    #[must_use]
    pub fn without_skew(self) -> Self {
        Self { test_noise: self.train_noise, ..self }
    }
    /// Draws the records. Record `i` depends on the seed, its law, its position within the law and the settings, not on how
    /// many records there are.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn generate(&self, seed: Seed) -> Result<Dataset, Error> {
        self.check()?;
        let seed = seed.child("skewed-purchases");
        let mut position: Vec<usize> = (0..WIDTH).collect();
        if let Some(number) = self.permute_seed {
            shuffle(&mut position, &mut Seed::root(number).child("permute").rng());
        }
        let block = WIDTH / self.classes;
        let rows = (self.train_records + self.test_records) as usize;
        let mut bits = BitMatrix { rows, width: WIDTH, words: vec![0; rows * WIDTH.div_ceil(64)] };
        let mut labels = Vec::with_capacity(rows);
        let words_per_row = bits.words_per_row();
        let mut words = bits.words.chunks_exact_mut(words_per_row);
        for (law, records, noise) in [
            ("train law", self.train_records, self.train_noise),
            ("test law", self.test_records, self.test_noise),
        ] {
            let law = seed.child(law);
            let (inside, outside) = (threshold(INDICATOR), threshold(noise));
            for (record, row) in (0..records).zip(&mut words) {
                let class = record as usize % self.classes;
                let mut rng = law.index(u64::from(record)).rng();
                for (bit, &at) in position.iter().enumerate() {
                    let limit = if bit / block == class { inside } else { outside };
                    row[at / 64] |= u64::from(u64::from(rng.next_u32()) < limit) << (at % 64);
                }
                labels.push(class as u32);
            }
        }
        let mut dataset = Dataset::from_bits("skewed-purchases", bits, labels, self.classes)?;
        dataset.test_law = Some(self.train_records..self.train_records + self.test_records);
        Ok(dataset)
    }
    /// Mean class-conditional entropy per bit of the test law over the train law, in bits: the size of the skew.
    #[must_use]
    pub fn entropy_difference(&self) -> f64 {
        let entropy = |p: f64| {
            [p, 1.0 - p].into_iter().filter(|&p| p > 0.0).map(|p| -p * p.log2()).sum::<f64>()
        };
        (1.0 - 1.0 / self.classes as f64) * (entropy(self.test_noise) - entropy(self.train_noise))
    }
    fn check(&self) -> Result<(), Error> {
        let refuse = |setting: &str, needs: &str, have: String| {
            Err(Error::Setting { setting: setting.to_owned(), needs: needs.to_owned(), have })
        };
        if self.classes < 2 || !WIDTH.is_multiple_of(self.classes) {
            return refuse("classes", "a divisor of 600 from 2 on", self.classes.to_string());
        }
        for (setting, p) in [("train_noise", self.train_noise), ("test_noise", self.test_noise)] {
            if !(0.0..=1.0).contains(&p) {
                return refuse(setting, "a probability from 0 to 1", format!("{p:?}"));
            }
        }
        let total = u64::from(self.train_records) + u64::from(self.test_records);
        if self.train_records == 0 || total > 20_000_000 {
            let have = format!("{} with test_records {}", self.train_records, self.test_records);
            return refuse(
                "train_records",
                "at least 1, and at most 20000000 with test_records",
                have,
            );
        }
        Ok(())
    }
}

/// `p` as a limit for a uniform 32-bit number: exact for 0 and 1, else to the nearest 2^-32.
fn threshold(p: f64) -> u64 {
    (p * f64::from(2.0_f32.powi(32))).round() as u64
}
