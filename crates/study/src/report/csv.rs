//! Tables for a spreadsheet or a plotting script. Empty cells are absent values; epsilon may be `unbounded`.
use super::{Arm, AttackResult, Error, Report, finite};
use dosimeter_privacy::Epsilon;

/// One row per arm, repeat and attack; an arm without a result has one row, empty but for its name, kind, what was
/// set and the verdict `no-result`.
///
/// # Errors
/// [`Error::NotFinite`] if the report holds a NaN or infinity, [`Error::Csv`] if writing fails.
pub fn summary(report: &Report) -> Result<String, Error> {
    // Columns per false-positive rate, in order of first appearance.
    let mut rates: Vec<f64> = Vec::new();
    for (_, _, attack) in rows(report) {
        for at in &attack.tpr_at {
            if !rates.iter().any(|r| r.total_cmp(&at.fpr).is_eq()) {
                rates.push(at.fpr);
            }
        }
    }
    let mut header: Vec<String> = "setting,kind,noise_multiplier,clipping_norm,epsilon_per_feature,repeat,seed,steps,\
        train_accuracy,test_accuracy,attack,candidate_law,members,non_members,auc,auc_low,auc_high,average_precision,\
        epsilon_upper,epsilon_upper_delta,epsilon_upper_relation,epsilon_upper_unit,epsilon_upper_accountant,\
        epsilon_lower,epsilon_lower_delta,epsilon_lower_relation,epsilon_lower_unit,epsilon_lower_bound,\
        epsilon_lower_confidence,verdict"
        .split(',')
        .map(|c| c.trim().to_owned())
        .collect();
    for rate in &rates {
        header.extend(
            ["", "_low", "_high", "_below_resolution"].map(|s| format!("tpr_at_{rate}{s}")),
        );
    }
    table(report, &header, |out| {
        for (arm, repeat, attack) in rows(report) {
            let interval = attack.auc.interval.as_ref();
            let upper = repeat.epsilon_upper.first();
            let lower = attack.epsilon_lower.first();
            let mut row = vec![
                arm.setting.clone(),
                word(&arm.kind),
                option(arm.noise_multiplier),
                option(arm.clipping_norm),
                option(arm.epsilon_per_feature),
                repeat.repeat.to_string(),
                repeat.seed.clone(),
                repeat.steps.to_string(),
                repeat.train_accuracy.to_string(),
                repeat.test_accuracy.to_string(),
                attack.attack.clone(),
                word(&attack.candidate_law),
                attack.members.to_string(),
                attack.non_members.to_string(),
                attack.auc.value.to_string(),
                option(interval.map(|i| i.low)),
                option(interval.map(|i| i.high)),
                attack.average_precision.to_string(),
                upper.map(|u| epsilon(u.value)).unwrap_or_default(),
                option(upper.map(|u| u.delta)),
                upper.map(|u| word(&u.relation)).unwrap_or_default(),
                upper.map(|u| word(&u.unit)).unwrap_or_default(),
                upper.map(|u| u.accountant.clone()).unwrap_or_default(),
                lower.map(|l| epsilon(l.value)).unwrap_or_default(),
                option(lower.map(|l| l.delta)),
                lower.map(|l| word(&l.relation)).unwrap_or_default(),
                lower.map(|l| word(&l.unit)).unwrap_or_default(),
                lower.map(|l| l.bound.clone()).unwrap_or_default(),
                option(lower.map(|l| l.confidence)),
                word(&attack.verdict.verdict),
            ];
            for rate in &rates {
                let at = attack.tpr_at.iter().find(|at| at.fpr.total_cmp(rate).is_eq());
                let interval = at.and_then(|at| at.tpr.interval.as_ref());
                row.extend([
                    option(at.map(|at| at.tpr.value)),
                    option(interval.map(|i| i.low)),
                    option(interval.map(|i| i.high)),
                    at.map(|at| at.below_resolution.to_string()).unwrap_or_default(),
                ]);
            }
            out(&row)?;
        }
        // A setting without a result has a row that says so and holds no figure.
        for missing in &report.missing {
            let mut row = vec![String::new(); header.len()];
            for (name, known) in [
                ("setting", missing.setting.clone()),
                ("kind", word(&missing.kind)),
                ("noise_multiplier", option(missing.noise_multiplier)),
                ("clipping_norm", option(missing.clipping_norm)),
                ("epsilon_per_feature", option(missing.epsilon_per_feature)),
                ("verdict", "no-result".to_owned()),
            ] {
                if let Some(column) = header.iter().position(|column| column == name) {
                    row[column] = known;
                }
            }
            out(&row)?;
        }
        Ok(())
    })
}

/// One row per corner of every ROC curve.
///
/// # Errors
/// As [`summary`].
pub fn roc(report: &Report) -> Result<String, Error> {
    table(report, &["setting", "repeat", "attack", "candidate_law", "fpr", "tpr"], |out| {
        for (arm, repeat, attack) in rows(report) {
            for knot in &attack.roc {
                out(&[
                    arm.setting.clone(),
                    repeat.repeat.to_string(),
                    attack.attack.clone(),
                    word(&attack.candidate_law),
                    knot.fpr.to_string(),
                    knot.tpr.to_string(),
                ])?;
            }
        }
        Ok(())
    })
}

/// One row per record of every risk table.
///
/// # Errors
/// As [`summary`].
pub fn risk(report: &Report) -> Result<String, Error> {
    let header = [
        "setting",
        "attack",
        "flag_fpr",
        "record",
        "label",
        "member_in",
        "flagged_in",
        "non_member_in",
        "wrongly_flagged_in",
        "mean_rank",
    ];
    table(report, &header, |out| {
        for table in &report.risk {
            for record in &table.records {
                out(&[
                    table.setting.clone(),
                    table.attack.clone(),
                    table.flag_fpr.to_string(),
                    record.record.to_string(),
                    record.label.to_string(),
                    record.member_in.to_string(),
                    record.flagged_in.to_string(),
                    record.non_member_in.to_string(),
                    record.wrongly_flagged_in.to_string(),
                    record.mean_rank.to_string(),
                ])?;
            }
        }
        Ok(())
    })
}

fn rows(report: &Report) -> impl Iterator<Item = (&Arm, &super::Repeat, &AttackResult)> {
    report.arms.iter().flat_map(|arm| {
        arm.repeats.iter().flat_map(move |r| r.attacks.iter().map(move |attack| (arm, r, attack)))
    })
}

type Row<'a> = &'a mut dyn FnMut(&[String]) -> Result<(), Error>;
fn table<S: AsRef<[u8]>>(
    report: &Report,
    header: &[S],
    fill: impl FnOnce(Row<'_>) -> Result<(), Error>,
) -> Result<String, Error> {
    finite::check(report)?;
    let failed = |e: ::csv::Error| Error::Csv(e.to_string());
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(header).map_err(failed)?;
    fill(&mut |row| writer.write_record(row).map_err(failed))?;
    let bytes = writer.into_inner().map_err(|e| Error::Csv(e.to_string()))?;
    String::from_utf8(bytes).map_err(|e| Error::Csv(e.to_string()))
}

fn option(value: Option<f64>) -> String {
    value.map(|x| x.to_string()).unwrap_or_default()
}
fn epsilon(value: Epsilon) -> String {
    if value.is_unbounded() { "unbounded".into() } else { value.get().to_string() }
}
/// The word that `report.json` uses for this value.
fn word<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}
