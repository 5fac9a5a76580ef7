//! Disjoint, stratified roles of records.
use crate::seed::shuffle;
use crate::{Dataset, Error, RecordId, Seed};
use std::ops::Range;

/// How a data set is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitSpec {
    /// Nominal training-set size `n`; `2 n` candidates are drawn, each a member by a fair coin (or exactly half of them).
    pub train: usize,
    /// Records for test accuracy, never candidates and never in the shadow pool; taken from `test_law` when the data set has one.
    pub test: usize,
}
/// Records with a class each, whatever else a record is: what [`Split`] needs to know.
pub trait Labelled {
    /// Class of each record, below `classes`.
    fn labels(&self) -> &[u32];
    /// Number of classes.
    fn classes(&self) -> usize;
    /// Records drawn from a second, test-only law.
    fn test_law(&self) -> Option<Range<u32>>;
}
impl Labelled for Dataset {
    fn labels(&self) -> &[u32] {
        &self.labels
    }
    fn classes(&self) -> usize {
        self.classes
    }
    fn test_law(&self) -> Option<Range<u32>> {
        self.test_law.clone()
    }
}
/// Disjoint roles. Shadow candidates are drawn from `shadow_pool`, `2 n` at a time.
///
/// Every list is stratified (each class has its share, rounded by largest remainder) and in ascending order of ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// `2 n` candidates, of the train law.
    pub candidates: Vec<RecordId>,
    /// Records for test accuracy, of the test law when the data set has one.
    pub test: Vec<RecordId>,
    /// Where the data set has a test law: as many further records of the train law, so that accuracy (and an attack)
    /// can be told apart from the change of law. `None` where there is one law only.
    pub test_of_train_law: Option<Vec<RecordId>>,
    /// Every other record of the train law.
    pub shadow_pool: Vec<RecordId>,
}
impl Split {
    /// Divides `dataset`; the same seed gives the same roles.
    ///
    /// # Errors
    /// If `train` or `test` is 0, or the data set has too few records for the roles.
    pub fn draw(dataset: &impl Labelled, spec: SplitSpec, seed: Seed) -> Result<Self, Error> {
        for (setting, have) in [("train", spec.train), ("test", spec.test)] {
            if have == 0 {
                let (setting, needs) = (setting.into(), "at least 1".into());
                return Err(Error::Setting { setting, needs, have: "0".into() });
            }
        }
        let law = dataset.test_law().unwrap_or(0..0);
        let all = 0..dataset.labels().len() as u32;
        let (test_law, train_law): (Vec<RecordId>, Vec<RecordId>) =
            all.map(RecordId).partition(|r| law.contains(&r.0));
        let of = if dataset.test_law().is_some() { "the train law" } else { "the data set" };
        let needed = spec.train.checked_mul(2).and_then(|n| n.checked_add(spec.test));
        if needed.is_none_or(|n| n > train_law.len()) {
            return Err(Error::TooFewRecords {
                role: "split",
                needs: format!("2 x {} candidates + {} test", spec.train, spec.test),
                of,
                have: train_law.len(),
            });
        }
        let (candidates, rest) =
            stratified(&train_law, 2 * spec.train, dataset, seed.child("candidates"));
        let (held_out, shadow_pool) = stratified(&rest, spec.test, dataset, seed.child("test"));
        if dataset.test_law().is_none() {
            return Ok(Self { candidates, test: held_out, test_of_train_law: None, shadow_pool });
        }
        if spec.test > test_law.len() {
            return Err(Error::TooFewRecords {
                role: "split",
                needs: format!("{} test", spec.test),
                of: "the test law",
                have: test_law.len(),
            });
        }
        let (test, _) = stratified(&test_law, spec.test, dataset, seed.child("test law"));
        Ok(Self { candidates, test, test_of_train_law: Some(held_out), shadow_pool })
    }
    /// `2 n` candidates for one shadow model, stratified, from the shadow pool. Different seeds overlap.
    ///
    /// # Errors
    /// If the pool holds fewer than `2 n`.
    pub fn shadow_candidates(
        &self,
        dataset: &impl Labelled,
        train: usize,
        seed: Seed,
    ) -> Result<Vec<RecordId>, Error> {
        match train.checked_mul(2).filter(|&n| n <= self.shadow_pool.len()) {
            Some(n) => Ok(stratified(&self.shadow_pool, n, dataset, seed).0),
            None => Err(Error::TooFewRecords {
                role: "shadow",
                needs: format!("2 x {train} candidates"),
                of: "the shadow pool",
                have: self.shadow_pool.len(),
            }),
        }
    }
}

/// `take <= from.len()` records with each class in proportion, and the rest; both ascending.
fn stratified(
    from: &[RecordId],
    take: usize,
    dataset: &impl Labelled,
    seed: Seed,
) -> (Vec<RecordId>, Vec<RecordId>) {
    let mut by_class = vec![Vec::new(); dataset.classes()];
    for &record in from {
        by_class[dataset.labels()[record.0 as usize] as usize].push(record);
    }
    let counts: Vec<usize> = by_class.iter().map(Vec::len).collect();
    let shares = shares(&counts, take);
    let (mut taken, mut rest) = (Vec::with_capacity(take), Vec::new());
    for (class, (mut records, share)) in by_class.into_iter().zip(shares).enumerate() {
        shuffle(&mut records, &mut seed.index(class as u64).rng());
        taken.extend_from_slice(&records[..share]);
        rest.extend_from_slice(&records[share..]);
    }
    taken.sort_unstable();
    rest.sort_unstable();
    (taken, rest)
}

/// `take` seats over classes in proportion to `counts` by largest remainder (ties: the earlier class).
///
/// No class gets more than it has: its share is its exact quota rounded up or down.
fn shares(counts: &[usize], take: usize) -> Vec<usize> {
    let total = counts.iter().sum::<usize>() as u128;
    if total == 0 {
        return vec![0; counts.len()];
    }
    let quota = |c: usize| c as u128 * take as u128;
    let mut shares: Vec<usize> = counts.iter().map(|&c| (quota(c) / total) as usize).collect();
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(quota(counts[i]) % total), i));
    let missing = take - shares.iter().sum::<usize>();
    for &class in &order[..missing] {
        shares[class] += 1;
    }
    shares
}
