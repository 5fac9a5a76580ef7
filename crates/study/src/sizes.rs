//! Whether there are records enough for everything a study asks, told before anything is trained.
use crate::plan::Plan;
use crate::run::Records;
use crate::study::Study;
use crate::{Error, reconstruction};
use dosimeter_attack::ATTACKS;
use dosimeter_attack::knowledge::LEAST_KNOWN;
use dosimeter_audit::blind;
use dosimeter_data::{Dataset, Error as DataError, RecordId};
use std::collections::BTreeSet;

/// Draws what every repeat will draw, and looks whether it suffices.
///
/// # Errors
/// [`Error::Study`] with the field that asks for too much, what it needs and what there is.
pub(crate) fn check(study: &Study, dataset: &Dataset, plan: &Plan) -> Result<(), Error> {
    for repeat in 0..study.repeats {
        let records = Records::draw(study, dataset, repeat)?;
        judged(study, dataset, repeat, &records)?;
        if repeat == 0 {
            reconstruction::check(study, &records)?;
        }
        shadows(study, dataset, plan, repeat, &records)?;
    }
    Ok(())
}

/// Too few records for a role, as a problem of the field that asked for them.
pub(crate) fn too_few(study: &Study, error: DataError) -> Error {
    let DataError::TooFewRecords { needs, of, have, .. } = error else { return error.into() };
    let field = if of == "the test law" { "split.test" } else { "split.train" };
    study.problem(field, format!("needs {needs} records of {of}, there are {have}"))
}

/// Too few validation records, likewise.
pub(crate) fn too_few_to_validate(study: &Study, wanted: usize, error: DataError) -> Error {
    let DataError::TooFewRecords { of, have, .. } = error else { return error.into() };
    let what = format!("needs {wanted} validation records of {of}, there are {have}");
    study.problem("target.early_stopping.records", what)
}

/// Members and non-members enough to judge an attack, and for it to learn from.
fn judged(study: &Study, dataset: &Dataset, repeat: u32, records: &Records) -> Result<(), Error> {
    let learns =
        |name: &&String| ATTACKS.iter().any(|a| a.name() == **name && a.needs().known_membership);
    // Half of either side is known to such an attack.
    let (least, who) = match study.attacks.iter().find(learns) {
        Some(name) => (2 * LEAST_KNOWN, format!("`{name}`")),
        None => (blind::LEAST, "the blind baseline".to_owned()),
    };
    let members = records.membership.members().len();
    let others = records.membership.candidates.len() - members;
    if members.min(others) < least {
        let what = format!(
            "needs at least {least} members and {least} non-members for {who}, repeat {repeat} draws {members} and \
             {others}; a larger one gives more"
        );
        return Err(study.problem("split.train", what));
    }
    let test = records.split.test.len();
    if dataset.test_law.is_some() && test < least {
        let what = format!(
            "needs at least {least} records, the non-members of the test law for {who}, got {test}"
        );
        return Err(study.problem("split.test", what));
    }
    Ok(())
}

/// A pool that fills every shadow model, and for each a member to train on.
fn shadows(
    study: &Study,
    dataset: &Dataset,
    plan: &Plan,
    repeat: u32,
    records: &Records,
) -> Result<(), Error> {
    let groups = || plan.groups.iter().filter(|g| g.repeat == repeat && !g.shadows.is_empty());
    if groups().next().is_none() {
        return Ok(());
    }
    pool(study, records)?;
    // Of more fair coins all fall alike less often than once in 10^30 draws.
    const COINS: usize = 100;
    let few = 2 * study.split.train <= COINS;
    for group in groups() {
        let arm = &study.arms[group.arm];
        let mut balanced = false;
        for shadow in 0..u32::try_from(group.shadows.len()).unwrap_or(u32::MAX) {
            let drawn = records.shadow(study, dataset, arm, shadow)?;
            if few && drawn.members().is_empty() {
                let what = format!(
                    "needs a member for every shadow model, and shadow {shadow} of {}, repeat {repeat}, draws none of {} \
                     candidates; a larger one gives more",
                    arm.setting,
                    drawn.candidates.len()
                );
                return Err(study.problem("split.train", what));
            }
            let label = |r: &RecordId| dataset.labels[r.0 as usize];
            let others: BTreeSet<u32> = drawn.non_members().iter().map(label).collect();
            balanced |= drawn.members().iter().any(|r| others.contains(&label(r)));
            if balanced && !few {
                break;
            }
        }
        if !balanced {
            let what = format!(
                "needs a class with a member and a non-member in some shadow model, and {}, repeat {repeat}, has none; a \
                 larger one gives more",
                arm.setting
            );
            return Err(study.problem("split.train", what));
        }
    }
    Ok(())
}

fn pool(study: &Study, records: &Records) -> Result<(), Error> {
    let train = study.split.train;
    let (needed, have) = (2 * train, records.split.shadow_pool.len());
    if needed <= have {
        return Ok(());
    }
    let Some(room) = (have + records.validation.len()).checked_sub(needed).filter(|r| *r >= 2)
    else {
        let what = format!(
            "needs 2 x {train} candidates for each shadow model, and the shadow pool has {have} records"
        );
        return Err(study.problem("split.train", what));
    };
    let what = format!(
        "needs at most {} records, so that 2 x {train} candidates for each shadow model remain in the shadow pool, got {}",
        room - room % 2,
        records.validation.len()
    );
    Err(study.problem("target.early_stopping.records", what))
}
