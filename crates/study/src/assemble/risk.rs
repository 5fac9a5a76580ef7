//! Which records an attack finds, over the repeats of an arm.
use crate::judge::small;
use crate::report::{RecordRisk, RiskTable};
use crate::study::{Arm, Study};
use dosimeter_audit::Evidence;
use dosimeter_data::{Dataset, RecordId};

/// Most records in a risk table.
const MOST_AT_RISK: usize = 20;

/// False-positive rate at which a record counts as recognised: the one in the middle of those reported.
fn flag_rate(study: &Study) -> f64 {
    let mut rates = study.audit.false_positive_rates.clone();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(0.01)
}

pub(super) fn risk_table(
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
    // A record that was never recognised is at no risk that this attack shows.
    let mut records: Vec<RecordRisk> = risks
        .iter()
        .filter(|r| r.times_member > 0 && r.times_recognised > 0)
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
