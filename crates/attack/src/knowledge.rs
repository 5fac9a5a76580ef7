//! Which part of the target's membership a white-box attacker is given.
use crate::permutation::permutation;
use dosimeter_data::{Membership, RecordId, Seed};

/// Fewest known members, and known non-members, that leave an attacker something to train on and something to validate with.
pub const LEAST_KNOWN: usize = 4;

/// Half of the members and as many non-members, chosen at random, in candidate order.
///
/// With `m` members and `k` non-members, `min(m, k) / 2` (rounded down) of each are known, so what the attacker
/// learns from is balanced. The rest, at least half of each side, is what the attack is judged on.
///
/// # Source
/// Nasr et al., *Comprehensive Privacy Analysis of Deep Learning*, S&P 2019 (supervised attacker); the paper
/// reproduced here gives 50 % of members and non-members.
#[must_use]
pub fn known_half(membership: &Membership, seed: Seed) -> Vec<(RecordId, bool)> {
    let side = |wanted: bool| -> Vec<usize> {
        (0..membership.candidates.len()).filter(|&i| membership.member[i] == wanted).collect()
    };
    let (members, non_members) = (side(true), side(false));
    let half = members.len().min(non_members.len()) / 2;
    let mut known = Vec::with_capacity(2 * half);
    for (label, rows) in [("members", members), ("non-members", non_members)] {
        let mut rng = seed.child("known half").child(label).rng();
        known.extend(permutation(rows.len(), &mut rng).into_iter().take(half).map(|i| rows[i]));
    }
    known.sort_unstable();
    known.into_iter().map(|i| (membership.candidates[i], membership.member[i])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_scarcer_side_is_known_on_both_sides() {
        let candidates: Vec<RecordId> = (0..30).map(RecordId).collect();
        let member: Vec<bool> = (0..30).map(|i| i < 11).collect();
        let membership = Membership { candidates, member };
        let known = known_half(&membership, Seed::root(3));
        assert_eq!(known.iter().filter(|(_, m)| *m).count(), 5);
        assert_eq!(known.len(), 10);
        assert!(known.windows(2).all(|w| w[0].0 < w[1].0), "in candidate order, each once");
        assert!(known.iter().all(|&(r, m)| m == (r.0 < 11)), "what is told is true");
        assert_ne!(known, known_half(&membership, Seed::root(4)), "chosen at random");
        assert_eq!(known, known_half(&membership, Seed::root(3)));
    }
}
