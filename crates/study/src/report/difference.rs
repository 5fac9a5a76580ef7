//! Differences between two settings with their intervals.
use super::number::{short, signed};
use super::{Arm, AttackSummary, Estimate, Interval, Repeat};
use dosimeter_audit::interval::across_repeats;

/// Says differences and remembers by which methods their intervals were made, for one sentence about all of them.
#[derive(Debug, Default)]
pub(super) struct Differences {
    methods: Vec<String>,
}
impl Differences {
    /// Test accuracy of `after` less that of `before`.
    pub(super) fn of_accuracy(&mut self, after: &Arm, before: &Arm) -> String {
        let pairs = paired(after, before, |repeat| Some(repeat.test_accuracy));
        self.say(&pairs, &after.test_accuracy, &before.test_accuracy)
    }
    /// AUC of one attack on the setting of `after` less that on the setting of `before`.
    pub(super) fn of_auc(
        &mut self,
        (arm, after): (&Arm, &AttackSummary),
        (original, before): (&Arm, &AttackSummary),
    ) -> String {
        let auc = |repeat: &Repeat| {
            let same = |a: &&super::AttackResult| {
                a.attack == before.attack && a.candidate_law == before.candidate_law
            };
            repeat.attacks.iter().find(same).map(|a| a.auc.value)
        };
        let pairs = paired(arm, original, auc);
        self.say(&pairs, &after.auc, &before.auc)
    }
    fn say(&mut self, pairs: &[f64], after: &Estimate, before: &Estimate) -> String {
        let difference = signed(after.value - before.value);
        let Some(interval) = of_pairs(pairs, before).or_else(|| of_two(after, before)) else {
            return difference;
        };
        let method = format!("{} %, {}", short(100.0 * interval.confidence), interval.method);
        if !self.methods.contains(&method) {
            self.methods.push(method);
        }
        format!("{difference} [{}, {}]", signed(interval.low), signed(interval.high))
    }
    /// What the brackets behind the differences are; `None` if there are none.
    pub(super) fn sentence(&self) -> Option<String> {
        if self.methods.is_empty() {
            return None;
        }
        Some(format!("Brackets behind differences are intervals: {}.", self.methods.join("; ")))
    }
}

/// Differences repeat by repeat: the same repeat of two settings has the same records. Empty unless every repeat has its pair.
fn paired(after: &Arm, before: &Arm, figure: impl Fn(&Repeat) -> Option<f64>) -> Vec<f64> {
    let pair = |a: &Repeat| {
        let b = before.repeats.iter().find(|b| b.repeat == a.repeat)?;
        Some(figure(a)? - figure(b)?)
    };
    let pairs: Option<Vec<f64>> = after.repeats.iter().map(pair).collect();
    pairs.filter(|pairs| pairs.len() == before.repeats.len()).unwrap_or_default()
}

/// Student's interval of the mean difference over at least two repeats that do not all agree.
fn of_pairs(pairs: &[f64], before: &Estimate) -> Option<Interval> {
    let confidence = before.interval.as_ref().map_or(0.95, |i| i.confidence);
    let found = across_repeats(pairs, confidence).ok()?.interval?;
    let method = format!("Student's t over {} paired repeats", pairs.len());
    (found.high > found.low).then_some(Interval {
        low: found.low,
        high: found.high,
        confidence,
        method,
    })
}

/// Interval of a difference from the two intervals alone, as if they were of other records.
///
/// # Source
///
/// Newcombe, *Interval estimation for the difference between independent proportions*, Statistics in Medicine 17 (1998), method 10:
/// squares of the distances to the nearer ends are added.
fn of_two(after: &Estimate, before: &Estimate) -> Option<Interval> {
    let (a, b) = (after.interval.as_ref()?, before.interval.as_ref()?);
    if a.confidence.total_cmp(&b.confidence).is_ne() {
        return None;
    }
    let difference = after.value - before.value;
    Some(Interval {
        low: difference - (after.value - a.low).hypot(b.high - before.value),
        high: difference + (a.high - after.value).hypot(before.value - b.low),
        confidence: a.confidence,
        method: "Newcombe's from the two intervals, unpaired".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, low: f64, high: f64) -> Estimate {
        let interval = Interval { low, high, confidence: 0.95, method: String::new() };
        Estimate { value, interval: Some(interval) }
    }

    /// Worked by hand: differences 0.1, 0.2, 0.3 have mean 0.2 and deviation 0.1; t of two degrees at 97.5 % is 4.302653.
    #[test]
    fn repeats_are_paired_and_their_common_part_falls_out() {
        let found = of_pairs(&[0.1, 0.2, 0.3], &estimate(0.5, 0.1, 0.9)).unwrap();
        let half = 4.302_653 * 0.1 / 3f64.sqrt();
        assert!((found.low - (0.2 - half)).abs() < 1e-6, "{}", found.low);
        assert!((found.high - (0.2 + half)).abs() < 1e-6, "{}", found.high);
        assert_eq!(found.method, "Student's t over 3 paired repeats");
        assert!(of_pairs(&[0.1], &estimate(0.5, 0.1, 0.9)).is_none(), "one pair has no spread");
        assert!(of_pairs(&[0.1, 0.1], &estimate(0.5, 0.1, 0.9)).is_none(), "nor two equal ones");
    }

    /// By hand: 0.8 [0.77, 0.83] less 0.6 [0.56, 0.64] is 0.2, and 3 and 4 add up to 5.
    #[test]
    fn without_pairs_the_ends_of_the_two_intervals_are_added_in_squares() {
        let found = of_two(&estimate(0.8, 0.77, 0.83), &estimate(0.6, 0.56, 0.64)).unwrap();
        assert!((found.low - 0.15).abs() < 1e-12 && (found.high - 0.25).abs() < 1e-12, "{found:?}");
        assert!(of_two(&Estimate::point(0.8), &estimate(0.6, 0.56, 0.64)).is_none());
    }
}
