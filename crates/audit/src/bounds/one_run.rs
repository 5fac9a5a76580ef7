//! Epsilon from one trained model, by counting right guesses.
use super::{Bound, Conditions, Draw, EpsilonLower, Found};
use crate::binomial::{Probability, at_least, ln_probability, real};
use crate::error::{confidence, within};
use crate::{Error, Roc};

/// Which records are guessed: the highest scores "member", the lowest "non-member", the rest not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guesses {
    /// Several pairs that depend on the number of candidates alone, each tested at `alpha / pairs` (Bonferroni):
    /// the two halves, and the outermost `1/4`, `1/16`, `1/64`, ... of both ends and of the top end alone, down to 8
    /// guesses or to where delta lets nothing be shown.
    Geometric,
    /// So many highest and so many lowest, fixed before looking at any truth. Cut down to the number of candidates.
    Fixed {
        /// Highest scores, guessed members.
        members: u64,
        /// Lowest scores, guessed non-members.
        non_members: u64,
    },
    /// Every other record by rank chooses among the pairs of [`Guesses::Geometric`], the rest are tested.
    Split,
}

/// The one-run bound: from a single training run in which each candidate was a member by its own fair coin.
///
/// # Source
///
/// Steinke, Nasr & Jagielski, *Privacy Auditing with One (1) Training Run*, NeurIPS 2023 (arXiv:2305.08846), the main
/// theorem for `(epsilon, delta)` with abstentions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneRun {
    /// Which records are guessed.
    pub guesses: Guesses,
}

/// Chance, at most, of `right` or more right guesses among `guesses`, when `candidates` records were members by fair coins and
/// training was `(epsilon, delta)`-private.
///
/// `min(1, beta + 2 m delta max_i (P[v > X >= v - i] / i))` with `X ~ Bin(guesses, e^eps / (1 + e^eps))`,
/// `v = right`, `m = candidates`, `i = 1..=v` and `beta = P[X >= v]`. Takes `O(sqrt(guesses) log(guesses))` time.
#[must_use]
pub fn p_value(candidates: u64, guesses: u64, right: u64, epsilon: f64, delta: f64) -> f64 {
    let q = Probability::of_right_guess(epsilon);
    let beta = at_least(guesses, q, right);
    (2.0 * real(candidates) * delta).mul_add(largest_mean(guesses, right, q), beta).min(1.0)
}

/// `max_i P[v > X >= v - i] / i` over `i = 1..=v`: the largest mean of the probabilities of `v - 1, v - 2, ..., v - i`.
///
/// Going down from `v`, the probabilities rise to the mode and then fall, so their running mean rises until the next
/// one is below it, and falls for ever after.
fn largest_mean(guesses: u64, right: u64, q: Probability) -> f64 {
    if right == 0 {
        return 0.0;
    }
    // Far above the mean nothing is left to add: Bernstein puts P[X > start] below 1e-17, so the mean takes those as 0.
    let mean = real(guesses) * q.yes;
    let far = 9.0f64.mul_add((mean * q.no).sqrt(), mean + 60.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at least 60, cut down to the number of guesses"
    )]
    let start = (right - 1).min(far as u64);
    let odds = q.no / q.yes;
    let mut term = ln_probability(guesses, q, start).exp();
    let mut sum = term;
    for count in (1..=start).rev() {
        // `term` is P[X = count], `next` is P[X = count - 1].
        let next = term * (real(count) / real(guesses - count + 1)) * odds;
        let taken = real(right - count);
        if next * taken <= sum {
            return sum / taken;
        }
        sum += next;
        term = next;
    }
    sum / real(right)
}

/// Largest epsilon refuted at level `alpha` by `right` of `guesses` right guesses over `candidates` fair coins; 0 if none is.
///
/// Found by halving to `1e-9`, reported from below.
#[must_use]
pub fn epsilon_of_guesses(
    candidates: u64,
    guesses: u64,
    right: u64,
    alpha: f64,
    delta: f64,
) -> f64 {
    largest_refuted(candidates, guesses, right, alpha, delta, 0.0)
}

/// Whether `epsilon` is refuted. `P[X >= v]` alone decides most cases, and the largest single probability most others.
fn refuted(
    candidates: u64,
    guesses: u64,
    right: u64,
    alpha: f64,
    delta: f64,
    epsilon: f64,
) -> bool {
    let q = Probability::of_right_guess(epsilon);
    let beta = at_least(guesses, q, right);
    if beta >= alpha {
        return false;
    }
    let weight = 2.0 * real(candidates) * delta;
    if weight <= 0.0 {
        return true;
    }
    weight.mul_add(largest_mean(guesses, right, q), beta) < alpha
}

/// As [`epsilon_of_guesses`], but `floor` when nothing above `floor` is refuted.
fn largest_refuted(
    candidates: u64,
    guesses: u64,
    right: u64,
    alpha: f64,
    delta: f64,
    floor: f64,
) -> f64 {
    let refutes = |epsilon| refuted(candidates, guesses, right, alpha, delta, epsilon);
    if guesses == 0 || !refutes(floor) {
        return floor;
    }
    let (mut low, mut step) = (floor, 1.0);
    // All right: P = q^guesses >= alpha for some finite epsilon, so this ends; the limit is for alpha near 1.
    let mut high = loop {
        if !refutes(low + step) {
            break low + step;
        }
        low += step;
        step *= 2.0;
        if low > 700.0 {
            return low;
        }
    };
    while high - low > 1e-9 {
        let middle = 0.5 * (low + high);
        if refutes(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Pairs (highest, lowest) for so many candidates, most guesses first, as far as they can show anything.
///
/// The delta term alone is at least `2 m delta (1 - beta) / guesses`, so rules with few guesses can refute nothing
/// however right they are. They are left out before looking, and the others need not pay for them.
fn pairs(candidates: u64, alpha: f64, delta: f64) -> Vec<(u64, u64)> {
    let half = candidates / 2;
    let mut pairs = vec![(candidates - half, half)];
    let mut part = candidates / 4;
    while part >= 8 {
        pairs.push((part / 2, part / 2));
        pairs.push((part, 0));
        part /= 4;
    }
    while let [_, .., last] = pairs[..] {
        let each = alpha / real(pairs.len() as u64);
        if 2.0 * real(candidates) * delta * (1.0 - each) < each * real(last.0 + last.1) {
            break;
        }
        pairs.pop();
    }
    pairs
}

fn right_guesses(order: &[bool], (top, bottom): (u64, u64)) -> u64 {
    let count = |part: &[bool], member: bool| part.iter().filter(|m| **m == member).count() as u64;
    let (top, bottom) = (index(top), index(bottom));
    count(&order[..top], true) + count(&order[order.len() - bottom..], false)
}

#[expect(clippy::cast_possible_truncation, reason = "never more than the number of records")]
const fn index(count: u64) -> usize {
    count as usize
}

impl OneRun {
    /// Pairs to test, membership by rank of the tested records, and what was paid for the choice.
    fn plan(&self, roc: &Roc, alpha: f64, delta: f64) -> (Vec<(u64, u64)>, Vec<bool>, String) {
        let order = roc.by_falling_score();
        let all = order.len() as u64;
        match self.guesses {
            Guesses::Geometric => {
                let pairs = pairs(all, alpha, delta);
                let paid =
                    format!("the choice among {} guessing rules, by Bonferroni", pairs.len());
                (pairs, order.to_vec(), paid)
            }
            Guesses::Fixed { members, non_members } => {
                let top = members.min(all);
                (
                    vec![(top, non_members.min(all - top))],
                    order.to_vec(),
                    "nothing was chosen after looking".to_owned(),
                )
            }
            Guesses::Split => {
                let part = |odd: usize| -> Vec<bool> {
                    order.iter().skip(odd).step_by(2).copied().collect()
                };
                let (choosing, tested) = (part(0), part(1));
                let epsilon = |pair: (u64, u64)| {
                    epsilon_of_guesses(
                        choosing.len() as u64,
                        pair.0 + pair.1,
                        right_guesses(&choosing, pair),
                        alpha,
                        delta,
                    )
                };
                let mut best = ((0, 0), -1.0);
                for pair in pairs(tested.len() as u64, alpha, delta) {
                    let pair_fits = pair.0 + pair.1 <= choosing.len() as u64;
                    let found = if pair_fits { epsilon(pair) } else { 0.0 };
                    if found > best.1 {
                        best = (pair, found);
                    }
                }
                (
                    vec![best.0],
                    tested,
                    "the choice of guessing rule, made on the other half of the records".to_owned(),
                )
            }
        }
    }
}

impl Bound for OneRun {
    fn name(&self) -> &'static str {
        "one-run"
    }
    fn what(&self) -> &'static str {
        "right guesses of membership in one training run"
    }
    fn needs(&self) -> &'static str {
        "membership by independent fair coins"
    }
    fn source(&self) -> &'static str {
        "Steinke, Nasr & Jagielski, NeurIPS 2023 (arXiv:2305.08846)"
    }
    fn epsilon_lower(&self, roc: &Roc, conditions: &Conditions) -> Result<EpsilonLower, Error> {
        let delta = conditions.delta.get();
        within("delta", "below 1", delta, |x| x < 1.0)?;
        let (pairs, order, corrected_for) =
            self.plan(roc, 1.0 - confidence(conditions.confidence)?, delta);
        let alpha = (1.0 - conditions.confidence) / real(pairs.len() as u64);
        let candidates = order.len() as u64;
        let members = order.iter().filter(|member| **member).count() as u64;
        let (mut value, mut largest_possible) = (0.0, 0.0);
        let mut found_at = "no guessing rule shows anything".to_owned();
        for &(top, bottom) in &pairs {
            let guesses = top + bottom;
            let right = right_guesses(&order, (top, bottom));
            let found = largest_refuted(candidates, guesses, right, alpha, delta, value);
            if found > value {
                value = found;
                found_at = format!(
                    "{right} of {guesses} guesses right (the {top} highest scores as members, the {bottom} lowest as non-members)"
                );
            }
            // Coins rarely give the rule as many members as it guesses: not even a perfect attack has every guess right.
            let most = top.min(members) + bottom.min(candidates - members);
            largest_possible =
                largest_refuted(candidates, guesses, most, alpha, delta, largest_possible);
        }
        let caveat = match conditions.draw {
            Draw::FairCoins | Draw::IndependentModels => None,
            Draw::FixedSize => Some(
                "a fixed number of candidates were members, so their coins are not independent and the one-run theorem does not hold"
                    .to_owned(),
            ),
            Draw::Unknown => Some(
                "it is not known that each candidate was a member by its own fair coin, which the one-run theorem needs"
                    .to_owned(),
            ),
        };
        let found = Found {
            value,
            largest_possible,
            found_at,
            corrected_for,
            assumptions: vec![
                "each judged candidate was a member by its own independent fair coin".to_owned(),
                "which records were judged does not depend on their membership".to_owned(),
            ],
            caveat,
        };
        Ok(found.report(self, roc, conditions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every `i`, from the probabilities themselves: near the mode, far above it, and below it.
    #[test]
    fn the_largest_mean_is_found_without_visiting_every_length() {
        for (guesses, right) in [(5000, 5000), (5000, 2700), (5000, 2501), (5000, 1), (200, 200)] {
            for epsilon in [0.0, 0.1, 1.0, 5.0] {
                let q = Probability::of_right_guess(epsilon);
                let (mut sum, mut slow) = (0.0, 0.0_f64);
                for i in 1..=right {
                    sum += ln_probability(guesses, q, right - i).exp();
                    slow = slow.max(sum / real(i));
                }
                // Below the mode the first term is the answer, or it is too small to be a number.
                let fast = largest_mean(guesses, right, q);
                assert!(
                    (fast - slow).abs() <= 1e-9 * slow,
                    "{guesses} {right} {epsilon}: {fast} {slow}"
                );
            }
        }
    }

    /// By hand: 100 candidates give halves of 50, quarters of 12 at both ends, 25 at the top; a sixteenth is under 8.
    #[test]
    fn the_rules_tried_depend_on_the_number_of_candidates_alone() {
        assert_eq!(pairs(100, 0.05, 0.0), [(50, 50), (12, 12), (25, 0)]);
        assert_eq!(pairs(7, 0.05, 0.0), [(4, 3)]);
        assert_eq!(pairs(1, 0.05, 0.0), [(1, 0)]);
        assert_eq!(pairs(1_000_000, 0.05, 0.0).len(), 17);
        assert!(pairs(1_000_000, 0.05, 0.0).iter().all(|(a, b)| a + b <= 1_000_000));
    }

    /// 2 * 10^6 * 10^-5 = 20: nine rules at 0.05 / 9 need 20 / 0.0056 = 3,600 guesses, and the ninth has 3,906.
    #[test]
    fn rules_that_delta_makes_hopeless_are_left_out_and_not_paid_for() {
        let kept = pairs(1_000_000, 0.05, 1e-5);
        assert_eq!(kept.len(), 9);
        assert_eq!(kept.last(), Some(&(3906, 0)));
        assert_eq!(pairs(1000, 0.05, 0.5).len(), 1);
        // 200 * 0.003 = 0.6: three rules at 0.05 / 3 need 35 guesses and the last has 25; two at 0.025 need 23.4 and have 24.
        assert_eq!(pairs(100, 0.05, 0.003), [(50, 50), (12, 12)]);
        for (top, bottom) in pairs(1_000_000, 0.05, 0.0).into_iter().skip(11) {
            let guesses = top + bottom;
            let shown = epsilon_of_guesses(1_000_000, guesses, guesses, 0.05 / 11.0, 1e-5);
            assert!(shown <= 0.0, "{guesses}: {shown}");
        }
    }

    #[test]
    fn right_guesses_are_members_at_the_top_and_non_members_at_the_bottom() {
        let order = [true, false, true, true, false];
        assert_eq!(right_guesses(&order, (2, 2)), 2);
        assert_eq!(right_guesses(&order, (3, 1)), 3);
        assert_eq!(right_guesses(&order, (0, 5)), 2);
        assert_eq!(right_guesses(&order, (0, 0)), 0);
    }
}
