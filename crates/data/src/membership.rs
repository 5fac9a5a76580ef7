//! Who was in whose training set.
use crate::seed::{below, fair_coin, shuffle};
use crate::{Error, RecordId, Seed};

/// Membership of a list of candidate records in one training set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// The candidates, in the order used everywhere.
    pub candidates: Vec<RecordId>,
    /// Whether each was trained on.
    pub member: Vec<bool>,
}
impl Membership {
    /// One independent fair coin per candidate: what the one-run bound assumes.
    ///
    /// A record's coin depends on the seed and its own id, not on the other candidates or their order.
    #[must_use]
    pub fn coins(candidates: Vec<RecordId>, seed: Seed) -> Self {
        let member = candidates.iter().map(|r| fair_coin(seed.index(u64::from(r.0)))).collect();
        Self { candidates, member }
    }
    /// Exactly half of the candidates (rounded down) are members, and of each class half, rounded up or down: fixed
    /// size, so the coins are no longer independent and the one-run bound does not hold.
    ///
    /// `labels[r]` is the class of record `r` of the whole data set. Of `n >= 2` candidates at least one is a member
    /// and at least one is not; no candidate is left out.
    #[must_use]
    pub fn fixed_half(candidates: Vec<RecordId>, labels: &[u32], seed: Seed) -> Self {
        let mut rng = seed.rng();
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        shuffle(&mut order, &mut rng);
        // Alternate in/out along the classes laid end to end: an odd class takes or leaves one, the next evens out.
        // Classes come in random order, so that no class is always the one left short.
        let class_order = seed.child("class order");
        order.sort_by_key(|&i| {
            let class = labels.get(candidates[i].0 as usize).copied();
            class.map(|c| (class_order.index(u64::from(c)).bytes(), c))
        });
        let first = usize::from(candidates.len() % 2 == 1) | below(&mut rng, 2) as usize;
        let mut member = vec![false; candidates.len()];
        for (position, &i) in order.iter().enumerate() {
            member[i] = position % 2 == first;
        }
        Self { candidates, member }
    }
    /// The records trained on, in candidate order.
    #[must_use]
    pub fn members(&self) -> Vec<RecordId> {
        self.candidates.iter().zip(&self.member).filter(|(_, m)| **m).map(|(r, _)| *r).collect()
    }
    /// The candidates not trained on, in candidate order.
    #[must_use]
    pub fn non_members(&self) -> Vec<RecordId> {
        self.candidates.iter().zip(&self.member).filter(|(_, m)| !**m).map(|(r, _)| *r).collect()
    }
    /// Whether `record` was trained on; `None` if it is no candidate. Linear in the candidates.
    #[must_use]
    pub fn of(&self, record: RecordId) -> Option<bool> {
        self.candidates.iter().position(|c| *c == record).map(|i| self.member[i])
    }
}

/// Membership of candidates in many training sets, balanced: each record is in half of them.
///
/// Models come in pairs; a fair coin per record and pair says which of the two trains on it. So each record is in exactly
/// half of any even number of models (within one for an odd number), and adding models later changes none of the
/// earlier ones. Within one model the coins of different records are independent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BalancedMembership {
    candidates: Vec<RecordId>,
    models: usize,
    /// `member[model * candidates + record]`.
    member: Vec<bool>,
}
impl BalancedMembership {
    /// Draws membership of `candidates` in `models` training sets.
    ///
    /// # Errors
    /// If `models` is 0 or the table would hold more than 2^32 entries.
    pub fn draw(candidates: Vec<RecordId>, models: usize, seed: Seed) -> Result<Self, Error> {
        let entries = candidates.len().checked_mul(models).filter(|&n| n as u64 <= 1 << 32);
        if models == 0 || entries.is_none() {
            return Err(Error::Setting {
                setting: "models".into(),
                needs: "at least 1, and models x candidates at most 2^32".into(),
                have: models.to_string(),
            });
        }
        let mut member = Vec::with_capacity(candidates.len() * models);
        for model in 0..models {
            let pair = seed.index(model as u64 / 2);
            let second = model % 2 == 1;
            let coin = |r: &RecordId| fair_coin(pair.index(u64::from(r.0))) != second;
            member.extend(candidates.iter().map(coin));
        }
        Ok(Self { candidates, models, member })
    }
    /// The candidates, in the order used everywhere.
    #[must_use]
    pub fn candidates(&self) -> &[RecordId] {
        &self.candidates
    }
    /// Number of models.
    #[must_use]
    pub const fn models(&self) -> usize {
        self.models
    }
    /// Membership in one model's training set; `None` if there is no such model.
    #[must_use]
    pub fn of_model(&self, model: usize) -> Option<Membership> {
        let n = self.candidates.len();
        let member = self.member.get(model * n..(model + 1) * n).filter(|_| model < self.models)?;
        Some(Membership { candidates: self.candidates.clone(), member: member.to_vec() })
    }
    /// How many models trained on the `position`-th candidate.
    #[must_use]
    pub fn models_with(&self, position: usize) -> usize {
        (0..self.models)
            .filter(|m| self.member.get(m * self.candidates.len() + position) == Some(&true))
            .count()
    }
}
