//! The limits and claims of a study file, judged.
use crate::Error;
use crate::report::{
    self, CandidateLaw, Check, CheckKind, Missing, Outcome, Rounding, Verdict, told,
};
use crate::study::{Figure, Limit, Study};
use dosimeter_privacy::Epsilon;

/// Judges the limits of the study file, and every verdict of an arm with a guarantee as a claim of its own.
pub(super) fn checks(
    study: &Study,
    arms: &[report::Arm],
    missing: &[Missing],
) -> Result<Vec<Check>, Error> {
    let of = |setting: &str| arms.iter().find(|a| a.setting == setting);
    let mut checks = Vec::new();
    for settings in &study.arms {
        let Some(arm) = of(&settings.setting) else { continue };
        for attack in &arm.attacks {
            if settings.defence.is_private() && attack.verdict.verdict == Verdict::Violated {
                checks.push(Check {
                    kind: CheckKind::Claim,
                    statement: format!("{} measures no more than is proved", attack.attack),
                    setting: Some(arm.setting.clone()),
                    outcome: Outcome::Violated,
                    reason: attack.verdict.reason.clone(),
                });
            }
        }
    }
    for limit in &study.limits {
        for settings in study.arms.iter().filter(|settings| limit.covers(settings)) {
            let (setting, lost) =
                (settings.setting.as_str(), |m: &&Missing| m.setting == settings.setting);
            match (of(setting), missing.iter().find(lost)) {
                (Some(arm), _) => checks.push(check(limit, arm)?),
                (None, lost) => checks.push(undecided(limit, setting, lost)),
            }
        }
    }
    Ok(checks)
}

/// A proved epsilon is rounded up by some units in the last place: six times 1 comes out as 6.00000000000006. That much
/// more, relative, still counts as equal to a limit or a claim.
const SLACK: f64 = 1e-12;

fn exceeds(found: f64, at_most: f64) -> bool {
    found > at_most && found - at_most > at_most * SLACK
}

/// What a limit speaks of, for reading.
fn what(limit: &Limit) -> String {
    match limit.figure {
        Figure::EpsilonUpper => "epsilon_upper".to_owned(),
        Figure::EpsilonLower | Figure::ClaimedEpsilon => "epsilon_lower".to_owned(),
        Figure::Auc => "AUC".to_owned(),
        Figure::TruePositiveRate { fpr } => format!("TPR at FPR {fpr}"),
    }
}
const fn rounding(limit: &Limit) -> Rounding {
    match limit.figure {
        Figure::EpsilonUpper => Rounding::Up,
        Figure::EpsilonLower | Figure::ClaimedEpsilon => Rounding::Down,
        Figure::Auc | Figure::TruePositiveRate { .. } => Rounding::Nearest,
    }
}
fn is_claim(limit: &Limit) -> bool {
    limit.figure == Figure::ClaimedEpsilon
}
/// What it demands, as a sentence of the report.
fn statement(limit: &Limit) -> String {
    let subject = if is_claim(limit) { "epsilon is".to_owned() } else { what(limit) };
    format!("{subject} at most {}", report::plain(limit.at_most))
}
fn kind(limit: &Limit) -> CheckKind {
    if is_claim(limit) { CheckKind::Claim } else { CheckKind::Limit }
}

/// A limit on a setting that has no result neither held nor was violated.
fn undecided(limit: &Limit, setting: &str, lost: Option<&Missing>) -> Check {
    let why = lost.map_or_else(String::new, |m| format!(": {}", m.reason));
    Check {
        kind: kind(limit),
        statement: statement(limit),
        setting: Some(setting.to_owned()),
        outcome: Outcome::Inconclusive,
        reason: format!("no result{why}"),
    }
}

/// The attack figures that limits speak of: only those of one law, the test law being no test of the model.
fn check(limit: &Limit, arm: &report::Arm) -> Result<Check, Error> {
    let attacks = || arm.attacks.iter().filter(|a| a.candidate_law == CandidateLaw::SameLaw);
    let most = |values: &mut dyn Iterator<Item = f64>| values.max_by(f64::total_cmp);
    let found = match limit.figure {
        Figure::EpsilonUpper => arm.epsilon_upper.first().map(|u| u.value.get()),
        // The first bound is the default; one with a caveat counts against a limit all the same.
        Figure::EpsilonLower | Figure::ClaimedEpsilon => {
            most(&mut attacks().filter_map(|a| a.epsilon_lower.first()).map(|l| l.value.get()))
        }
        Figure::Auc => most(&mut attacks().map(|a| a.auc.value)),
        Figure::TruePositiveRate { fpr } => most(
            &mut attacks()
                .flat_map(|a| &a.tpr_at)
                .filter(|t| t.fpr.total_cmp(&fpr).is_eq())
                .map(|t| t.tpr.value),
        ),
    };
    let (what, claimed) = (what(limit), is_claim(limit));
    let shown = |found| told(found, 4, rounding(limit), |x| exceeds(x, limit.at_most));
    let (outcome, reason) = match found {
        None => (Outcome::Inconclusive, "not measured".to_owned()),
        Some(found) if exceeds(found, limit.at_most) => {
            (Outcome::Violated, format!("{what} is {}", shown(found)))
        }
        Some(found) if claimed => {
            let proved = arm.epsilon_upper.first().map_or(Epsilon::UNBOUNDED, |u| u.value);
            if !exceeds(proved.get(), limit.at_most) {
                let proved = told(proved.get(), 3, Rounding::Up, |x| exceeds(x, limit.at_most));
                (Outcome::Held, format!("proved at most {proved}"))
            } else {
                (
                    Outcome::Inconclusive,
                    format!("measured at least {}; more was not seen", shown(found)),
                )
            }
        }
        Some(found) => (Outcome::Held, format!("{what} is {}", shown(found))),
    };
    Ok(Check {
        kind: kind(limit),
        statement: statement(limit),
        setting: Some(arm.setting.clone()),
        outcome,
        reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dosimeter_privacy::{Relation, Unit};

    #[test]
    fn the_numbers_of_a_limit_keep_the_side_of_their_bound_and_show_which_is_larger() {
        let upper = |value| report::EpsilonUpper {
            side: report::UpperSide::Upper,
            value: Epsilon::new(value).unwrap(),
            delta: 1e-5,
            relation: Relation::AddRemove,
            unit: Unit::Record,
            accountant: "pld".to_owned(),
            caveats: Vec::new(),
        };
        let arm = |value| report::Arm {
            setting: "central z=4".to_owned(),
            kind: report::ArmKind::Central,
            noise_multiplier: None,
            clipping_norm: None,
            epsilon_per_feature: None,
            epsilon_upper: vec![upper(value)],
            epsilon_claimed: None,
            train_accuracy: report::Estimate::point(0.5),
            test_accuracy: report::Estimate::point(0.5),
            attacks: Vec::new(),
            repeats: Vec::new(),
        };
        for (at_most, outcome, reason) in [
            (0.9864, Outcome::Violated, "epsilon_upper is 0.9865"),
            (0.986_449, Outcome::Violated, "epsilon_upper is 0.9865"),
            (0.986_45, Outcome::Held, "epsilon_upper is 0.98645"),
            (1.0, Outcome::Held, "epsilon_upper is 0.9865"),
        ] {
            let limit = Limit { settings: Vec::new(), figure: Figure::EpsilonUpper, at_most };
            let found = check(&limit, &arm(0.986_45)).unwrap();
            assert_eq!((found.outcome, found.reason.as_str()), (outcome, reason), "{at_most}");
        }
    }

    #[test]
    fn what_rounding_adds_does_not_break_a_limit_and_anything_more_does() {
        for (found, at_most, expected) in [
            (6.000_000_000_000_06, 6.0, false),
            (6.000_000_001, 6.0, true),
            (5.0, 6.0, false),
            (1e-300, 0.0, true),
            (0.0, 0.0, false),
            (f64::INFINITY, f64::MAX, true),
        ] {
            assert_eq!(exceeds(found, at_most), expected, "{found} {at_most}");
        }
    }
}
