//! Joins the judged repeats of all arms into one report.
mod checks;
mod notes;
mod provenance;
mod risk;
mod trade_off;

pub(crate) use provenance::study_digest;

use crate::judge::{
    access_level, candidate_law, claim, conditions, deltas, estimate, evidence, judgement, lower,
    small, tpr_at,
};
use crate::packed;
use crate::plan::{Group, Law, Plan, Task};
use crate::report::{
    self, ArmKind, AttackSummary, DatasetFacts, EpsilonUpper, Estimate, Interval, MembershipLaw,
    Missing, Origin, Repeat, Report, RiskTable, StudyFacts, TprAt, Verdict,
};
use crate::run::Records;
use crate::session::Session;
use crate::store::{Found, Store};
use crate::study::{Arm, Defence, Figure, MembershipRule, Study};
use crate::{Error, diverged, reconstruction};
use dosimeter_attack::ATTACKS;
use dosimeter_audit::{BOUNDS, Evidence, Roc, interval};
use dosimeter_data::Dataset;
use dosimeter_privacy::Epsilon;
use rayon::prelude::*;

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
    let lost = (0..study.arms.len())
        .map(|index| diverged::of_arm(study, plan, store.root(), index))
        .collect::<Result<Vec<_>, Error>>()?;
    let joined = (0..study.arms.len())
        .into_par_iter()
        .filter(|index| lost[*index].is_none())
        .map(|index| arm(study, dataset, plan, store, records, index))
        .collect::<Result<Vec<_>, Error>>()?;
    let missing: Vec<Missing> = lost.into_iter().flatten().collect();
    if joined.is_empty() {
        let undecided = checks::checks(study, &[], &missing)?;
        return Err(Error::NothingLeft { missing, undecided });
    }
    let (mut arms, risk): (Vec<_>, Vec<_>) = joined.into_iter().unzip();
    let risk: Vec<RiskTable> = risk.into_iter().flatten().collect();
    trade_off::trade_off(study, dataset, &mut arms, &missing)?;
    let checks = checks::checks(study, &arms, &missing)?;
    let notes = notes::notes(study, dataset, core, &arms);
    let provenance = provenance::provenance(study, core, plan, store, &missing)?;
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
        missing,
        risk,
        reconstructions: reconstruction::all(session, records)?,
        checks,
        notes,
        provenance,
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
            risk.push(risk::risk_table(study, dataset, arm, attack, &runs).map_err(failed)?);
        }
    }
    let (noise_multiplier, clipping_norm, epsilon_per_feature) = knobs(arm.defence);
    let accuracy = |f: fn(&Repeat) -> f64| {
        over_repeats(&repeats.iter().map(f).collect::<Vec<_>>(), confidence, 1.0).map_err(failed)
    };
    let epsilon_claimed = claimed(study, arm, &epsilon_upper)?;
    let joined = report::Arm {
        setting: arm.setting.clone(),
        kind: kind(arm.defence),
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

/// Noise multiplier, clipping norm and epsilon per feature of a defence, where it has them.
pub(crate) const fn knobs(defence: Defence) -> (Option<f64>, Option<f64>, Option<f64>) {
    match defence {
        Defence::ClipOnly { clipping_norm } => (None, Some(clipping_norm), None),
        Defence::Central { clipping_norm, noise_multiplier } => {
            (Some(noise_multiplier), Some(clipping_norm), None)
        }
        Defence::Local { epsilon_per_feature } => (None, None, Some(epsilon_per_feature)),
        Defence::NoDp | Defence::Pixelization { .. } | Defence::EdgeRandomizedResponse { .. } => {
            (None, None, None)
        }
    }
}

/// What kind of protection a defence is.
pub(crate) const fn kind(defence: Defence) -> ArmKind {
    match defence {
        Defence::NoDp => ArmKind::NoDp,
        Defence::ClipOnly { .. } => ArmKind::ClipOnly,
        Defence::Central { .. } => ArmKind::Central,
        Defence::Local { .. }
        | Defence::Pixelization { .. }
        | Defence::EdgeRandomizedResponse { .. } => ArmKind::Local,
    }
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
