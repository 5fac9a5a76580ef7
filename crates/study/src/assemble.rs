//! Joins the judged repeats of all arms into one report.
use crate::Error;
use crate::frozen_core::Core;
use crate::judge::{
    access_level, candidate_law, claim, conditions, deltas, estimate, evidence, hex, judgement,
    lower, small, tpr_at,
};
use crate::packed;
use crate::plan::{Group, Law, Plan, Task};
use crate::report::{
    self, ArmKind, Artifact, AttackSummary, CandidateLaw, Check, CheckKind, DatasetFacts,
    EpsilonUpper, Estimate, Interval, MembershipLaw, NoiseFacts, Note, Origin, Outcome, Phi,
    PhiDefinition, PhiValue, Provenance, RecordRisk, Repeat, Report, RiskTable, Severity,
    StudyFacts, TprAt, Verdict,
};
use crate::run::{Records, recipe, recipe_digest, words};
use crate::session::Session;
use crate::store::{Found, Store};
use crate::study::{Arm, Defence, Figure, Limit, MembershipRule, OptimizerKind, Study};
use crate::{network, reconstruction};
use dosimeter_attack::ATTACKS;
use dosimeter_audit::tradeoff::{self, BelowBaseline, Figures, Undefined};
use dosimeter_audit::{BOUNDS, Evidence, Roc, interval};
use dosimeter_data::{Dataset, RecordId, Seed};
use dosimeter_privacy::{Epsilon, Generator, Sampler};
use rayon::prelude::*;

/// Most records in a risk table.
const MOST_AT_RISK: usize = 20;
const RESAMPLES: usize = 2000;

/// Reads what a finished run left and joins it.
///
/// # Errors
/// When an artifact is missing or damaged, or a statistic cannot be computed.
pub(crate) fn report(
    session: &Session,
    store: &Store,
    records: &[Records],
) -> Result<Report, Error> {
    let Session { study, dataset, core, plan } = session;
    let core = core.as_ref();
    let joined = (0..study.arms.len())
        .into_par_iter()
        .map(|index| arm(study, dataset, plan, store, records, index))
        .collect::<Result<Vec<_>, Error>>()?;
    let (mut arms, risk): (Vec<_>, Vec<_>) = joined.into_iter().unzip();
    let risk: Vec<RiskTable> = risk.into_iter().flatten().collect();
    trade_off(study, dataset, &mut arms)?;
    let checks = checks(study, &arms)?;
    let notes = notes(study, dataset, core, &arms);
    Ok(Report {
        format_version: report::FORMAT_VERSION,
        origin: Origin::Run,
        study: StudyFacts {
            name: study.name.clone(),
            description: study.description.clone(),
            membership: match study.membership {
                MembershipRule::Coins => MembershipLaw::FairCoins,
                MembershipRule::FixedHalf => MembershipLaw::FixedHalf,
            },
            repeats: study.repeats,
        },
        dataset: dataset_facts(study, dataset, plan, records),
        arms,
        risk,
        reconstructions: reconstruction::all(session, records)?,
        checks,
        notes,
        provenance: provenance(study, core, plan, store)?,
    })
}

fn dataset_facts(
    study: &Study,
    dataset: &Dataset,
    plan: &Plan,
    records: &[Records],
) -> DatasetFacts {
    let mut counts = vec![0_u64; dataset.classes];
    let tested = records.first().map(|r| r.split.test.as_slice()).unwrap_or_default();
    for record in tested {
        counts[dataset.labels[record.0 as usize] as usize] += 1;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of records")]
    let majority_rate =
        counts.iter().max().map_or(0.0, |most| *most as f64) / tested.len().max(1) as f64;
    DatasetFacts {
        name: dataset.name.clone(),
        fingerprint: plan.data_fingerprint.clone(),
        records: dataset.len() as u64,
        width: small(dataset.width() as u64),
        classes: small(dataset.classes as u64),
        majority_rate,
        train: small(study.split.train as u64),
        candidates: small(2 * study.split.train as u64),
        test: small(study.split.test as u64),
        shadow_pool: records.first().map_or(0, |r| r.split.shadow_pool.len() as u64),
    }
}

/// One arm over its repeats, with its risk tables.
fn arm(
    study: &Study,
    dataset: &Dataset,
    plan: &Plan,
    store: &Store,
    records: &[Records],
    index: usize,
) -> Result<(report::Arm, Vec<RiskTable>), Error> {
    let arm = &study.arms[index];
    let groups: Vec<&Group> = plan.groups.iter().filter(|g| g.arm == index).collect();
    let repeats = groups
        .iter()
        .map(|g| serde_json::from_slice(&whole(store, &g.judge)?).map_err(Error::Decode))
        .collect::<Result<Vec<Repeat>, Error>>()?;
    let confidence = study.audit.confidence;
    let failed = |source| Error::Audit { setting: arm.setting.clone(), source };
    let epsilon_upper = largest_upper(&repeats);
    let mut summaries = Vec::new();
    let mut risk = Vec::new();
    for (position, attack, law) in groups.iter().take(1).flat_map(|g| g.judged()) {
        let runs = groups
            .iter()
            .map(|g| {
                let (scores, _) = packed::scores_from_bytes(&whole(store, &g.attacks[position])?)?;
                let truth = records[g.repeat as usize].truth(law);
                evidence(&scores, &truth).map_err(failed)
            })
            .collect::<Result<Vec<Evidence>, Error>>()?;
        let rocs = runs.iter().map(Roc::of).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let of = |f: &dyn Fn(&report::AttackResult) -> f64| -> Vec<f64> {
            repeats
                .iter()
                .flat_map(|r| &r.attacks)
                .filter(|a| a.attack == attack && a.candidate_law == candidate_law(law))
                .map(f)
                .collect()
        };
        let auc = match rocs.as_slice() {
            [only] => estimate(&only.auc_interval(confidence).map_err(failed)?, "DeLong, log-odds"),
            _ => over_repeats(&of(&|a| a.auc.value), confidence, 1.0).map_err(failed)?,
        };
        summaries.push(AttackSummary {
            attack: attack.to_owned(),
            access: ATTACKS
                .iter()
                .find(|a| a.name() == attack)
                .map_or(report::AccessLevel::BlackBox, |a| access_level(a.needs().access)),
            candidate_law: candidate_law(law),
            auc,
            average_precision: over_repeats(&of(&|a| a.average_precision), confidence, 1.0)
                .map_err(failed)?,
            tpr_at: pooled_tpr(study, &rocs).map_err(failed)?,
            epsilon_lower: Vec::new(),
            verdict: report::Judgement { verdict: Verdict::Inconclusive, reason: String::new() },
            phi: Vec::new(),
        });
        let summary = summaries.len() - 1;
        let (measured, verdict) =
            best_over_repeats(study, law, &rocs, &epsilon_upper).map_err(|e| match e {
                Fault::Audit(source) => failed(source),
                Fault::Study(error) => error,
            })?;
        summaries[summary].epsilon_lower = measured;
        summaries[summary].verdict = verdict;
        if law == Law::Same {
            risk.push(risk_table(study, dataset, arm, attack, &runs).map_err(failed)?);
        }
    }
    let (noise_multiplier, clipping_norm, epsilon_per_feature, kind) = match arm.defence {
        Defence::NoDp => (None, None, None, ArmKind::NoDp),
        Defence::ClipOnly { clipping_norm } => (None, Some(clipping_norm), None, ArmKind::ClipOnly),
        Defence::Central { clipping_norm, noise_multiplier } => {
            (Some(noise_multiplier), Some(clipping_norm), None, ArmKind::Central)
        }
        Defence::Local { epsilon_per_feature } => {
            (None, None, Some(epsilon_per_feature), ArmKind::Local)
        }
        Defence::Pixelization { .. } | Defence::EdgeRandomizedResponse { .. } => {
            (None, None, None, ArmKind::Local)
        }
    };
    let accuracy = |f: fn(&Repeat) -> f64| {
        over_repeats(&repeats.iter().map(f).collect::<Vec<_>>(), confidence, 1.0).map_err(failed)
    };
    let epsilon_claimed = claimed(study, arm, &epsilon_upper)?;
    let joined = report::Arm {
        setting: arm.setting.clone(),
        kind,
        noise_multiplier,
        clipping_norm,
        epsilon_per_feature,
        epsilon_upper,
        epsilon_claimed,
        train_accuracy: accuracy(|r| r.train_accuracy)?,
        test_accuracy: with_records(
            accuracy(|r| r.test_accuracy)?,
            study.split.test as u64,
            confidence,
        )
        .map_err(failed)?,
        attacks: summaries,
        repeats,
    };
    Ok((joined, risk))
}

/// The epsilon that the study file claims for an arm, read for the relation and unit of what is proved.
fn claimed(
    study: &Study,
    arm: &Arm,
    proved: &[EpsilonUpper],
) -> Result<Option<EpsilonUpper>, Error> {
    let claim = study.limits.iter().find(|l| l.figure == Figure::ClaimedEpsilon && l.covers(arm));
    let (Some(claim), Some(headline)) = (claim, proved.first()) else { return Ok(None) };
    Ok(Some(EpsilonUpper {
        value: Epsilon::new(claim.at_most)?,
        accountant: "study file".to_owned(),
        caveats: Vec::new(),
        ..headline.clone()
    }))
}

enum Fault {
    Audit(dosimeter_audit::Error),
    Study(Error),
}
impl From<dosimeter_audit::Error> for Fault {
    fn from(e: dosimeter_audit::Error) -> Self {
        Self::Audit(e)
    }
}
impl From<Error> for Fault {
    fn from(e: Error) -> Self {
        Self::Study(e)
    }
}

fn whole(store: &Store, task: &Task) -> Result<Vec<u8>, Error> {
    match store.read(&task.id)? {
        Found::Whole(bytes) => Ok(bytes),
        _ => Err(Error::ArtifactShape),
    }
}

/// The largest over the repeats for each relation, unit, delta and accountant, in the order of the first.
fn largest_upper(repeats: &[Repeat]) -> Vec<EpsilonUpper> {
    let mut largest: Vec<EpsilonUpper> = Vec::new();
    for upper in repeats.iter().flat_map(|r| &r.epsilon_upper) {
        let same = largest.iter_mut().find(|l| {
            l.accountant == upper.accountant
                && l.unit == upper.unit
                && l.relation == upper.relation
                && l.delta.total_cmp(&upper.delta).is_eq()
        });
        match same {
            Some(l) if l.value < upper.value => *l = upper.clone(),
            Some(_) => {}
            None => largest.push(upper.clone()),
        }
    }
    largest
}

/// Mean over repeats with Student's interval, cut to `[0, most]`.
fn over_repeats(
    values: &[f64],
    confidence: f64,
    most: f64,
) -> Result<Estimate, dosimeter_audit::Error> {
    let across = interval::across_repeats(values, confidence)?;
    Ok(Estimate {
        value: across.mean,
        interval: across.interval.map(|i| Interval {
            low: i.low.max(0.0),
            high: i.high.min(most),
            confidence,
            method: format!("Student's t over {} repeats", values.len()),
        }),
    })
}

/// An accuracy with the interval of its test records alone where the repeats give none: there is one, or all gave the same.
fn with_records(
    accuracy: Estimate,
    records: u64,
    confidence: f64,
) -> Result<Estimate, dosimeter_audit::Error> {
    if accuracy.interval.as_ref().is_some_and(|i| i.high > i.low) || records == 0 {
        return Ok(accuracy);
    }
    #[expect(clippy::cast_precision_loss, reason = "records fit")]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of them")]
    let right = (accuracy.value * records as f64).round() as u64;
    let of_records = interval::clopper_pearson(right.min(records), records, confidence)?;
    let Estimate { interval, .. } = estimate(&of_records, "Clopper-Pearson over the test records");
    Ok(Estimate { interval, ..accuracy })
}

/// True-positive rates of all repeats together, each at its own threshold.
fn pooled_tpr(study: &Study, rocs: &[Roc]) -> Result<Vec<TprAt>, dosimeter_audit::Error> {
    if let [only] = rocs {
        return tpr_at(study, only);
    }
    let confidence = study.audit.confidence;
    let pooled = study.audit.false_positive_rates.iter().map(|&fpr| {
        let (mut found, mut members, mut below_resolution) = (0, 0, false);
        for roc in rocs {
            let rate = roc.tpr_at(fpr, confidence)?;
            found += rate.confusion.true_positives;
            members += roc.members();
            below_resolution |= rate.below_resolution;
        }
        let tpr = interval::clopper_pearson(found, members, confidence)?;
        Ok(TprAt { fpr, tpr: estimate(&tpr, "Clopper-Pearson, all repeats"), below_resolution })
    });
    pooled.collect()
}

/// The best bound over the repeats. Each repeat is tested at `1 - alpha / repeats`, so that the best of them is
/// right with the stated confidence (a union bound).
fn best_over_repeats(
    study: &Study,
    law: Law,
    rocs: &[Roc],
    proved: &[EpsilonUpper],
) -> Result<(Vec<report::EpsilonLower>, report::Judgement), Fault> {
    let confidence = study.audit.confidence;
    #[expect(clippy::cast_precision_loss, reason = "few repeats")]
    let each = 1.0 - (1.0 - confidence) / rocs.len() as f64;
    let delta = deltas(study)?[0];
    let conditions = conditions(study, law, each, delta);
    let mut best = Vec::new();
    for bound in BOUNDS {
        let mut largest: Option<dosimeter_audit::EpsilonLower> = None;
        for roc in rocs {
            let measured = bound.epsilon_lower(roc, &conditions)?;
            if largest.as_ref().is_none_or(|l| measured.value > l.value) {
                largest = Some(measured);
            }
        }
        // Right with the study's confidence, since the union over repeats is paid for.
        best.extend(largest.map(|l| dosimeter_audit::EpsilonLower { confidence, ..l }));
    }
    let verdict = judgement(&claim(proved, delta)?, &best);
    let lowers = best.iter().map(lower).collect::<Result<_, _>>()?;
    Ok((lowers, verdict))
}

/// False-positive rate at which a record counts as recognised: the one in the middle of those reported.
fn flag_rate(study: &Study) -> f64 {
    let mut rates = study.audit.false_positive_rates.clone();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(0.01)
}

fn risk_table(
    study: &Study,
    dataset: &Dataset,
    arm: &Arm,
    attack: &str,
    runs: &[Evidence],
) -> Result<RiskTable, dosimeter_audit::Error> {
    let flag_fpr = flag_rate(study);
    let risks = dosimeter_audit::risk::per_record(runs, flag_fpr, study.audit.confidence)?;
    let mut flagged_times = vec![0; runs.len() + 1];
    for risk in risks.iter().filter(|r| r.times_member > 0) {
        if let Some(count) = flagged_times.get_mut(risk.times_recognised as usize) {
            *count += 1;
        }
    }
    let ranks = mean_ranks(runs);
    let mut records: Vec<RecordRisk> = risks
        .iter()
        .filter(|r| r.times_member > 0)
        .map(|r| RecordRisk {
            record: r.record.0,
            label: dataset.labels[r.record.0 as usize],
            member_in: small(r.times_member),
            flagged_in: small(r.times_recognised),
            non_member_in: small(r.times_non_member),
            wrongly_flagged_in: small(r.times_mistaken),
            mean_rank: ranks.get(&r.record).copied().unwrap_or(0.0),
        })
        .collect();
    // Recognised most often first, then nearest to the top, then by id so that ties do not move.
    records.sort_by(|a, b| {
        (b.flagged_in.cmp(&a.flagged_in))
            .then(b.mean_rank.total_cmp(&a.mean_rank))
            .then(a.record.cmp(&b.record))
    });
    records.truncate(MOST_AT_RISK);
    Ok(RiskTable {
        setting: arm.setting.clone(),
        attack: attack.to_owned(),
        flag_fpr,
        flagged_times,
        records,
    })
}

/// Mean share of non-members with a lower score (ties half), over the runs in which a record was a member.
fn mean_ranks(runs: &[Evidence]) -> std::collections::BTreeMap<RecordId, f64> {
    let mut sums: std::collections::BTreeMap<RecordId, (f64, f64)> =
        std::collections::BTreeMap::new();
    for run in runs {
        let mut others: Vec<f64> = run.rows.iter().filter(|r| !r.2).map(|r| r.1).collect();
        others.sort_by(f64::total_cmp);
        for &(record, score, member) in &run.rows {
            if member && !others.is_empty() {
                let below = others.partition_point(|o| *o < score);
                let up_to = others.partition_point(|o| *o <= score);
                #[expect(clippy::cast_precision_loss, reason = "counts of records")]
                let rank = (below + up_to) as f64 / (2 * others.len()) as f64;
                let sum = sums.entry(record).or_default();
                *sum = (sum.0 + rank, sum.1 + 1.0);
            }
        }
    }
    sums.into_iter().map(|(record, (sum, count))| (record, sum / count)).collect()
}

/// Fills in phi of every arm against the arm without DP.
fn trade_off(study: &Study, dataset: &Dataset, arms: &mut [report::Arm]) -> Result<(), Error> {
    let Some((original, others)) = arms.split_first_mut() else { return Ok(()) };
    #[expect(clippy::cast_precision_loss, reason = "few classes")]
    let baseline = 1.0 / dataset.classes as f64;
    for arm in others {
        for position in 0..arm.attacks.len() {
            let (attack, law) =
                (arm.attacks[position].attack.clone(), arm.attacks[position].candidate_law);
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
            PhiValue::Defined { value, interval: phi_interval(figures, of, confidence, seed)? }
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
    if figures.len() < 3 {
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

/// Judges the limits of the study file, and every verdict of an arm with a guarantee as a claim of its own.
fn checks(study: &Study, arms: &[report::Arm]) -> Result<Vec<Check>, Error> {
    let mut checks = Vec::new();
    for (settings, arm) in study.arms.iter().zip(arms) {
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
        let concerned = study.arms.iter().zip(arms).filter(|(settings, _)| limit.covers(settings));
        for (_, arm) in concerned {
            checks.push(check(limit, arm)?);
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

/// The attack figures that limits speak of: only those of one law, the test law being no test of the model.
fn check(limit: &Limit, arm: &report::Arm) -> Result<Check, Error> {
    let attacks = || arm.attacks.iter().filter(|a| a.candidate_law == CandidateLaw::SameLaw);
    let most = |values: &mut dyn Iterator<Item = f64>| values.max_by(f64::total_cmp);
    let (what, found): (String, Option<f64>) = match limit.figure {
        Figure::EpsilonUpper => {
            ("epsilon_upper".to_owned(), arm.epsilon_upper.first().map(|u| u.value.get()))
        }
        // The first bound is the default; one with a caveat counts against a limit all the same.
        Figure::EpsilonLower | Figure::ClaimedEpsilon => (
            "epsilon_lower".to_owned(),
            most(&mut attacks().filter_map(|a| a.epsilon_lower.first()).map(|l| l.value.get())),
        ),
        Figure::Auc => ("AUC".to_owned(), most(&mut attacks().map(|a| a.auc.value))),
        Figure::TruePositiveRate { fpr } => (
            format!("TPR at FPR {fpr}"),
            most(
                &mut attacks()
                    .flat_map(|a| &a.tpr_at)
                    .filter(|t| t.fpr.total_cmp(&fpr).is_eq())
                    .map(|t| t.tpr.value),
            ),
        ),
    };
    let claimed = limit.figure == Figure::ClaimedEpsilon;
    let statement = if claimed {
        format!("epsilon is at most {}", report::plain(limit.at_most))
    } else {
        format!("{what} at most {}", report::plain(limit.at_most))
    };
    let (outcome, reason) = match found {
        None => (Outcome::Inconclusive, "not measured".to_owned()),
        Some(found) if exceeds(found, limit.at_most) => {
            let shown =
                if found.is_finite() { format!("{found:.4}") } else { "unbounded".to_owned() };
            (Outcome::Violated, format!("{what} is {shown}"))
        }
        Some(found) if claimed => {
            let proved = arm.epsilon_upper.first().map_or(Epsilon::UNBOUNDED, |u| u.value);
            if !exceeds(proved.get(), limit.at_most) {
                (Outcome::Held, format!("proved at most {}", report::thousandths_up(proved.get())))
            } else {
                (Outcome::Inconclusive, format!("measured at least {found:.4}; more was not seen"))
            }
        }
        Some(found) => (Outcome::Held, format!("{what} is {found:.4}")),
    };
    Ok(Check {
        kind: if claimed { CheckKind::Claim } else { CheckKind::Limit },
        statement,
        setting: Some(arm.setting.clone()),
        outcome,
        reason,
    })
}

/// What a reader must know before using a number.
fn notes(study: &Study, dataset: &Dataset, core: Option<&Core>, arms: &[report::Arm]) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut note = |severity, setting: Option<&str>, text: String| {
        notes.push(Note { severity, setting: setting.map(str::to_owned), text });
    };
    if study.arms.iter().any(|a| a.defence.is_local()) {
        note(
            Severity::Info,
            None,
            "Local arms: each feature vector is randomized before training and its label is public, so the guarantee is \
             local and for the feature vector. Attacks measure whether a record was trained on at all, an add-remove \
             question; the two are shown side by side and neither contradicts the other. Accuracy and attack features \
             come from the records as they are, not from the randomized ones."
                .to_owned(),
        );
    }
    if let Some(core) = core {
        note(
            Severity::Info,
            None,
            format!(
                "A frozen core turned each record into {} numbers once, and only the head behind it is trained and attacked. \
                 The core counts as public: no guarantee here covers the records that it was itself made from, and if \
                 candidates are among them, that is neither counted nor measured.",
                core.width()
            ),
        );
    }
    if study.show_images > 0 {
        note(
            Severity::Caution,
            None,
            "This page and report.json hold records: images of members as they are. They are as confidential as the data."
                .to_owned(),
        );
    }
    if study.arms.iter().any(|a| matches!(a.defence, Defence::Pixelization { .. })) {
        note(
            Severity::Info,
            None,
            "Pixelization arms have two guarantees for the same noise. The first is for the whole image: any two images. \
             The one per so many pixels holds only between images that differ in no more pixels than that, which two \
             pictures of different people hardly ever do."
                .to_owned(),
        );
    }
    if dataset.graphs().is_some() {
        note(
            Severity::Info,
            None,
            "Records are graphs. Their numbers of nodes are public in every arm: they choose how many nodes the network keeps."
                .to_owned(),
        );
    }
    for arm in &study.arms {
        let Ok(Some(edges)) = arm.defence.edges() else { continue };
        let Ok(expected) = edges.expect(dataset) else { continue };
        let text = format!(
            "Nodes, tags and classes are public, edges are not. The first guarantee is for a whole graph, the largest one with {} \
             pairs of nodes; the one per edge holds only between graphs that differ in one edge. {}",
            expected.most_pairs,
            crate::plan::edges_line(&expected)
        );
        note(Severity::Info, Some(arm.setting.as_str()), text);
    }
    if study.arms.iter().any(|a| a.defence.is_private()) && study.noise.sampler == Sampler::Float {
        note(
            Severity::Caution,
            None,
            "Noise was drawn by a fast replayable generator in floating point: right for an experiment, not for a \
             release. `noise = \"exact\"` uses integer samplers."
                .to_owned(),
        );
    }
    if study.audit.delta.is_none() {
        note(
            Severity::Info,
            None,
            "Delta is 1/n, as in the paper. That is too weak to exclude releasing one whole record, so epsilon at a \
             tenth of it is given too."
                .to_owned(),
        );
    }
    if study.membership == MembershipRule::FixedHalf {
        note(
            Severity::Caution,
            None,
            "Exactly half of the candidates are members, so their coins are not independent and the one-run bound does \
             not hold; measured bounds carry that caveat."
                .to_owned(),
        );
    }
    if study.target.early_stopping.is_some() {
        note(
            Severity::Info,
            None,
            "Training stopped on the loss of validation records taken from the shadow pool; epsilon counts the steps \
             actually taken. The guarantee does not cover the validation records."
                .to_owned(),
        );
    }
    if dataset.test_law.is_some() {
        note(
            Severity::Caution,
            None,
            "Test records follow another law than training records. Figures marked `test law` take their non-members from \
             it, as the paper does: an attack can then succeed without looking at the model, as the blind baseline shows. \
             Audits, limits and verdicts use non-members of the train law."
                .to_owned(),
        );
    }
    if study.arms.iter().filter(|a| a.defence.is_private()).count() > 1 {
        note(
            Severity::Info,
            None,
            "Each epsilon is for one training. Choosing among arms by looking at their results on the same records spends \
             more privacy than any one of them."
                .to_owned(),
        );
    }
    for arm in arms {
        let setting = Some(arm.setting.as_str());
        for repeat in &arm.repeats {
            for problem in repeat.mimicry.iter().flat_map(|m| &m.problems) {
                note(
                    Severity::Caution,
                    setting,
                    format!(
                        "Shadow models do not mimic the target of repeat {}: {problem}.",
                        repeat.repeat
                    ),
                );
            }
            for attack in &repeat.attacks {
                if attack.candidate_law == CandidateLaw::SameLaw
                    && attack.null_check.as_ref().is_some_and(|n| !n.passed)
                {
                    note(
                        Severity::Invalid,
                        setting,
                        format!(
                            "The null self-check of {} in repeat {} failed: its epsilon_lower must not be used.",
                            attack.attack, repeat.repeat
                        ),
                    );
                }
            }
        }
    }
    // The blind baseline is about records, the same for all arms.
    for blind in arms.first().into_iter().flat_map(|a| &a.repeats).flat_map(|r| &r.blind) {
        if blind.separable && blind.candidate_law == CandidateLaw::SameLaw {
            note(
                Severity::Caution,
                None,
                format!(
                    "Members can be told from non-members without the model (blind AUC {:.3}): part of what attacks show \
                     may not come from the model.",
                    blind.auc.value
                ),
            );
        }
    }
    notes
}

fn provenance(
    study: &Study,
    core: Option<&Core>,
    plan: &Plan,
    store: &Store,
) -> Result<Provenance, Error> {
    let mut recipes = Vec::new();
    let mut noise = Vec::new();
    for arm in &study.arms {
        recipes.push(report::Recipe {
            setting: arm.setting.clone(),
            text: recipe_line(study, core, arm),
            digest: recipe_digest(study, arm)?,
        });
        // Checked here too: a recipe that the trainer would refuse must not reach a report.
        recipe(study, arm)?;
        let mechanism = match arm.defence {
            Defence::Central { .. } => "gaussian",
            Defence::Local { .. } | Defence::EdgeRandomizedResponse { .. } => "randomized-response",
            Defence::Pixelization { .. } => "laplace",
            Defence::NoDp | Defence::ClipOnly { .. } => continue,
        };
        noise.push(NoiseFacts {
            setting: arm.setting.clone(),
            mechanism: mechanism.to_owned(),
            generator: match study.noise.generator {
                Generator::OperatingSystem => "operating system",
                Generator::ReplayableChaCha => "replayable, ChaCha20",
                Generator::ReplayableFast => "replayable, not cryptographic",
            }
            .to_owned(),
            sampler: match study.noise.sampler {
                Sampler::Exact => "exact integer",
                Sampler::Float => "fast float",
            }
            .to_owned(),
        });
    }
    let artifacts = plan
        .tasks()
        .map(|task| {
            Ok(Artifact {
                task: words(study, task),
                id: task.id.as_str().to_owned(),
                digest: store.digest(&task.id)?,
            })
        })
        .collect::<Result<_, Error>>()?;
    Ok(Provenance {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        study_digest: study_digest(study, plan)?,
        seed: hex(&study.seed.to_be_bytes()),
        command: format!("dosimeter run {} --out RUN", study.file.display()),
        kernel: plan.kernel.clone(),
        platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        noise,
        recipes,
        artifacts,
    })
}

/// Digest of what decides the figures of a report: the tasks, which know their data, and the limits.
pub(crate) fn study_digest(study: &Study, plan: &Plan) -> Result<String, Error> {
    let mut digest = blake3::Hasher::new();
    for group in &plan.groups {
        digest.update(group.judge.id.as_str().as_bytes());
    }
    digest.update(&serde_json::to_vec(&study.limits).map_err(Error::Encode)?);
    if study.show_images > 0 {
        digest.update(&(study.show_images as u64).to_le_bytes());
    }
    Ok(digest.finalize().to_hex().to_string())
}

fn recipe_line(study: &Study, core: Option<&Core>, arm: &Arm) -> String {
    let target = &study.target;
    let optimizer = match target.optimizer {
        OptimizerKind::Sgd => "sgd",
        OptimizerKind::Adam => "adam",
    };
    let front = study.target.core.as_ref().zip(core).map_or_else(String::new, |(spec, core)| {
        let name = spec.path.file_name().unwrap_or_default().to_string_lossy();
        let (digest, width) = (&core.file_digest[..16], core.width());
        format!("frozen core {name} (BLAKE3 {digest}) with {width} outputs, then ")
    });
    let mut line = format!(
        "{front}{}, {optimizer} at {}, batch {}, at most {} epochs, l2 {}",
        network::line(&target.architecture),
        arm.learning_rate,
        arm.batch_size,
        arm.epochs,
        target.l2,
    );
    if let Some(decay) = target.averaging {
        line.push_str(&format!(", weights averaged at {decay}"));
    }
    if let Some(stopping) = target.early_stopping {
        line.push_str(&format!(", patience {}", stopping.patience));
    }
    match arm.defence {
        Defence::NoDp => {}
        Defence::ClipOnly { clipping_norm } => {
            line.push_str(&format!(", clipping norm {clipping_norm}"));
        }
        Defence::Central { clipping_norm, noise_multiplier } => line.push_str(&format!(
            ", clipping norm {clipping_norm}, noise multiplier {noise_multiplier}, Poisson batches"
        )),
        Defence::Local { epsilon_per_feature } => {
            line.push_str(&format!(", features randomized at {epsilon_per_feature} nats each"));
        }
        Defence::Pixelization { cell, neighbouring_pixels, epsilon } => line.push_str(&format!(
            ", images averaged over cells of {cell} x {cell} with noise for {epsilon} nats between images that differ in \
             {neighbouring_pixels} pixels"
        )),
        Defence::EdgeRandomizedResponse { epsilon } => {
            line.push_str(&format!(", pairs of nodes randomized at {epsilon} nats each"));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::exceeds;

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
