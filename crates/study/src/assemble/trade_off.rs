//! What each arm won over what it lost, against the arm without DP.
use crate::Error;
use crate::report::{
    self, ArmKind, Estimate, Interval, Missing, Phi, PhiDefinition, PhiValue, Repeat, plain,
};
use crate::study::Study;
use dosimeter_audit::interval;
use dosimeter_audit::tradeoff::{self, BelowBaseline, Figures, Undefined};
use dosimeter_data::{Dataset, Seed};

const RESAMPLES: usize = 2000;
/// Of one or two repeats every resample is one of three: no interval.
const FEWEST_RESAMPLED: usize = 3;

/// Fills in phi of every arm against the arm without DP. Without a result of that arm, or where its attack is not told from
/// guessing, there is nothing to win: phi is undefined and says why.
pub(super) fn trade_off(
    study: &Study,
    dataset: &Dataset,
    arms: &mut [report::Arm],
    missing: &[Missing],
) -> Result<(), Error> {
    if let Some(lost) = missing.iter().find(|m| m.kind == ArmKind::NoDp) {
        let reason = format!("there is nothing to compare with: {} has no result", lost.setting);
        for attack in arms.iter_mut().flat_map(|arm| &mut arm.attacks) {
            attack.phi = nowhere(&reason);
        }
        return Ok(());
    }
    let Some((original, others)) = arms.split_first_mut() else { return Ok(()) };
    #[expect(clippy::cast_precision_loss, reason = "few classes")]
    let baseline = 1.0 / dataset.classes as f64;
    for arm in others {
        for position in 0..arm.attacks.len() {
            let (attack, law) =
                (arm.attacks[position].attack.clone(), arm.attacks[position].candidate_law);
            let unprotected = original
                .attacks
                .iter()
                .find(|a| a.attack == attack && a.candidate_law == law)
                .map(|a| &a.auc);
            if let Some(reason) = unprotected.and_then(guessing) {
                arm.attacks[position].phi = nowhere(&reason);
                continue;
            }
            let figures: Vec<Figures> = original
                .repeats
                .iter()
                .zip(&arm.repeats)
                .filter_map(|(o, r)| {
                    let auc = |repeat: &Repeat| {
                        repeat
                            .attacks
                            .iter()
                            .find(|a| a.attack == attack && a.candidate_law == law)
                            .map(|a| a.auc.value)
                    };
                    Some(Figures {
                        attack_original: auc(o)?,
                        attack: auc(r)?,
                        attack_baseline: 0.5,
                        accuracy_original: o.test_accuracy,
                        accuracy: r.test_accuracy,
                        accuracy_baseline: baseline,
                    })
                })
                .collect();
            let seed = Seed::root(study.seed).child("phi").child(&arm.setting).child(&attack);
            let failed = |source| Error::Audit { setting: arm.setting.clone(), source };
            let phi = [
                (PhiDefinition::Paper, tradeoff::phi as PhiOf),
                (PhiDefinition::Patent, tradeoff::phi_patent as PhiOf),
            ]
            .into_iter()
            .map(|(definition, of)| {
                let value = phi_value(&figures, of, study.audit.confidence, seed)?;
                Ok(Phi { definition, value })
            })
            .collect::<Result<_, dosimeter_audit::Error>>()
            .map_err(failed)?;
            arm.attacks[position].phi = phi;
        }
    }
    Ok(())
}

/// Both definitions, without a value.
fn nowhere(reason: &str) -> Vec<Phi> {
    [PhiDefinition::Paper, PhiDefinition::Patent]
        .map(|definition| Phi {
            definition,
            value: PhiValue::Undefined { reason: reason.to_owned() },
        })
        .into()
}

/// Why an attack without DP leaves phi without meaning: its interval holds 0.5 or lies below. A fall from there is chance.
fn guessing(auc: &Estimate) -> Option<String> {
    let interval = auc.interval.as_ref().filter(|i| i.low <= 0.5)?;
    Some(format!(
        "the attack on the model without DP is not told from guessing (AUC {:.3}, {} % interval {:.3} to {:.3}): there was \
         nothing to protect",
        auc.value,
        plain(100.0 * interval.confidence),
        interval.low,
        interval.high
    ))
}

type PhiOf = fn(&Figures, BelowBaseline) -> Result<tradeoff::Phi, dosimeter_audit::Error>;

/// Phi of the mean figures, with a bootstrap interval over repeats where there are at least three.
fn phi_value(
    figures: &[Figures],
    of: PhiOf,
    confidence: f64,
    seed: Seed,
) -> Result<PhiValue, dosimeter_audit::Error> {
    let Some(mean) = mean_figures(figures) else {
        return Ok(PhiValue::Undefined { reason: "no repeat to compare".to_owned() });
    };
    let phi = of(&mean, BelowBaseline::Literal)?;
    Ok(match phi {
        tradeoff::Phi::Undefined { why } => {
            PhiValue::Undefined { reason: undefined(why).to_owned() }
        }
        tradeoff::Phi::AccuracyKept { attack_fell: false } => PhiValue::Degenerate {
            value: tradeoff::Phi::LARGEST,
            reason: "neither accuracy nor the attack fell: the rule's 2 praises nothing".to_owned(),
        },
        tradeoff::Phi::AccuracyKept { attack_fell: true } | tradeoff::Phi::Defined { .. } => {
            let value = phi.value().unwrap_or(tradeoff::Phi::LARGEST);
            let interval = phi_interval(figures, of, confidence, seed)?;
            let no_interval = interval.is_none().then(|| {
                format!("needs {FEWEST_RESAMPLED} repeats to resample, got {}", figures.len())
            });
            PhiValue::Defined { value, interval, no_interval }
        }
    })
}

/// Resamples whole repeats, so that accuracy and attack of a repeat stay together.
fn phi_interval(
    figures: &[Figures],
    of: PhiOf,
    confidence: f64,
    seed: Seed,
) -> Result<Option<Interval>, dosimeter_audit::Error> {
    if figures.len() < FEWEST_RESAMPLED {
        return Ok(None);
    }
    #[expect(clippy::cast_precision_loss, reason = "few repeats")]
    let positions: Vec<f64> = (0..figures.len()).map(|i| i as f64).collect();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "they are indices")]
    let resampled = |drawn: &[f64]| {
        let drawn: Vec<Figures> = drawn.iter().map(|&i| figures[i as usize]).collect();
        mean_figures(&drawn)
            .and_then(|mean| of(&mean, BelowBaseline::Literal).ok())
            .and_then(|phi| phi.value())
            .unwrap_or(0.0)
    };
    let found = interval::bootstrap(&positions, resampled, confidence, RESAMPLES, seed)?;
    Ok(Some(Interval {
        low: found.low,
        high: found.high,
        confidence,
        method: "bootstrap over repeats".to_owned(),
    }))
}

fn mean_figures(figures: &[Figures]) -> Option<Figures> {
    let first = figures.first()?;
    #[expect(clippy::cast_precision_loss, reason = "few repeats")]
    let mean = |f: fn(&Figures) -> f64| figures.iter().map(f).sum::<f64>() / figures.len() as f64;
    Some(Figures {
        attack_original: mean(|f| f.attack_original),
        attack: mean(|f| f.attack),
        accuracy_original: mean(|f| f.accuracy_original),
        accuracy: mean(|f| f.accuracy),
        ..*first
    })
}

const fn undefined(why: Undefined) -> &'static str {
    match why {
        Undefined::NothingLeaked => {
            "the attack on the model without DP is no better than guessing: there was nothing to protect"
        }
        Undefined::NothingLearned => {
            "the model without DP is no better than guessing: there was nothing to lose"
        }
        Undefined::AttackAtBaseline => {
            "the attack on the protected model is exactly at its baseline"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phi_of_two_repeats_says_why_it_has_no_interval_and_that_of_three_has_one() {
        let figures = |attack: f64, accuracy| Figures {
            attack_original: 0.9,
            attack,
            attack_baseline: 0.5,
            accuracy_original: 0.8,
            accuracy,
            accuracy_baseline: 0.1,
        };
        let of = [figures(0.6, 0.6), figures(0.65, 0.55), figures(0.62, 0.5)];
        let phi =
            |repeats: usize| phi_value(&of[..repeats], tradeoff::phi, 0.95, Seed::root(1)).unwrap();
        let PhiValue::Defined { interval, no_interval, .. } = phi(2) else { panic!() };
        assert!(interval.is_none());
        assert_eq!(no_interval.as_deref(), Some("needs 3 repeats to resample, got 2"));
        let PhiValue::Defined { interval, no_interval, .. } = phi(3) else { panic!() };
        assert!(interval.is_some() && no_interval.is_none());
    }

    #[test]
    fn an_attack_whose_interval_holds_a_half_leaves_phi_without_meaning() {
        let auc = |low, high| Estimate {
            value: f64::midpoint(low, high),
            interval: Some(Interval { low, high, confidence: 0.95, method: String::new() }),
        };
        for (low, high, guesses) in
            [(0.45, 0.55, true), (0.5, 0.6, true), (0.3, 0.4, true), (0.501, 0.6, false)]
        {
            assert_eq!(guessing(&auc(low, high)).is_some(), guesses, "{low} {high}");
        }
        assert!(guessing(&Estimate::point(0.5)).is_none(), "without an interval nothing is said");
        let reason = guessing(&auc(0.45, 0.55)).unwrap();
        assert!(reason.contains("AUC 0.500, 95 % interval 0.450 to 0.550"), "{reason}");
    }
}
