//! Two reports side by side: what is the same, what moved, and whether it moved beyond its intervals.
use super::reading::ends;
use super::{Arm, AttackSummary, CandidateLaw, Error, Estimate, Report, Verdict, finite, number};
use dosimeter_privacy::Epsilon;
use schemars::JsonSchema;
use serde::Serialize;

/// What differs between two reports; `before` and `after` are the reader's order, no judgement.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// Names of the two studies.
    pub studies: [String; 2],
    /// The loaded data are the same.
    pub same_data: bool,
    /// The checked studies are the same.
    pub same_study: bool,
    /// The kernels are the same; if not, last digits differ for that reason alone.
    pub same_kernel: bool,
    /// Settings that both reports have, in the order of the first.
    pub settings: Vec<SettingChange>,
    /// Settings of the first report only.
    pub only_before: Vec<String>,
    /// Settings of the second report only.
    pub only_after: Vec<String>,
    /// Settings that have no result in one of the two or in both, and why.
    pub missing: Vec<MissingChange>,
}

/// A setting that a training ran away from, in at least one of two reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MissingChange {
    /// Its label.
    pub setting: String,
    /// Why it has no result in the first report, `None` if it has one or is not there.
    pub before: Option<String>,
    /// As `before`, for the second.
    pub after: Option<String>,
}

/// One setting in both reports.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SettingChange {
    /// Its label.
    pub setting: String,
    /// Verdicts.
    pub verdict: [Verdict; 2],
    /// Headline proved epsilon with its conditions, `None` if a report has none.
    pub epsilon_upper: [Option<super::EpsilonUpper>; 2],
    /// Measured epsilon of the strongest attack.
    pub epsilon_lower: [Option<super::EpsilonLower>; 2],
    /// Proved numbers may be compared: same delta, relation and unit.
    pub upper_comparable: bool,
    /// Test accuracy.
    pub test_accuracy: Change,
    /// AUC per attack that both have.
    pub auc: Vec<AttackChange>,
}

/// AUC of one attack in both reports.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AttackChange {
    /// Registry name.
    pub attack: String,
    /// Law of the non-members.
    pub candidate_law: CandidateLaw,
    /// The AUC.
    pub auc: Change,
}

/// One figure in both reports.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// In the first report.
    pub before: f64,
    /// In the second.
    pub after: f64,
    /// `after - before`.
    pub difference: f64,
    /// The two intervals do not overlap; `None` if one is missing. Overlap does not show that nothing changed.
    pub intervals_apart: Option<bool>,
}
impl Change {
    fn of(before: &Estimate, after: &Estimate) -> Self {
        let intervals_apart = ends(before).zip(ends(after)).map(|(b, a)| b.1 < a.0 || a.1 < b.0);
        Self {
            before: before.value,
            after: after.value,
            difference: after.value - before.value,
            intervals_apart,
        }
    }
}

/// Compares two reports by the labels of their settings.
#[must_use]
pub fn compare(before: &Report, after: &Report) -> Comparison {
    let find = |report: &'_ Report, setting: &str| {
        report.arms.iter().any(|a| a.setting == setting)
            || report.missing.iter().any(|m| m.setting == setting)
    };
    let missing = |a: &Report, b: &Report| {
        a.arms.iter().map(|x| x.setting.clone()).filter(|s| !find(b, s)).collect()
    };
    let settings = before
        .arms
        .iter()
        .filter_map(|b| after.arms.iter().find(|a| a.setting == b.setting).map(|a| change(b, a)))
        .collect();
    Comparison {
        studies: [before.study.name.clone(), after.study.name.clone()],
        same_data: before.dataset.fingerprint == after.dataset.fingerprint,
        same_study: before.provenance.study_digest == after.provenance.study_digest,
        same_kernel: before.provenance.kernel == after.provenance.kernel,
        settings,
        only_before: missing(before, after),
        only_after: missing(after, before),
        missing: without_result(before, after),
    }
}

fn without_result(before: &Report, after: &Report) -> Vec<MissingChange> {
    let why = |report: &Report, setting: &str| {
        let found = report.missing.iter().find(|m| m.setting == setting);
        found.map(|m| format!("{}: {}", m.task, m.reason))
    };
    let mut settings: Vec<&str> = Vec::new();
    for lost in before.missing.iter().chain(&after.missing) {
        if !settings.contains(&lost.setting.as_str()) {
            settings.push(&lost.setting);
        }
    }
    settings
        .into_iter()
        .map(|setting| MissingChange {
            setting: setting.to_owned(),
            before: why(before, setting),
            after: why(after, setting),
        })
        .collect()
}

fn change(before: &Arm, after: &Arm) -> SettingChange {
    let upper = [before.headline().cloned(), after.headline().cloned()];
    let lower = |arm: &Arm| arm.strongest().and_then(AttackSummary::lower).cloned();
    let upper_comparable = match &upper {
        [Some(b), Some(a)] => {
            b.delta.total_cmp(&a.delta).is_eq() && b.relation == a.relation && b.unit == a.unit
        }
        _ => false,
    };
    let auc = before
        .attacks
        .iter()
        .filter_map(|b| {
            let same =
                |a: &&AttackSummary| a.attack == b.attack && a.candidate_law == b.candidate_law;
            after.attacks.iter().find(same).map(|a| AttackChange {
                attack: b.attack.clone(),
                candidate_law: b.candidate_law,
                auc: Change::of(&b.auc, &a.auc),
            })
        })
        .collect();
    SettingChange {
        setting: before.setting.clone(),
        verdict: [before.verdict(), after.verdict()],
        epsilon_lower: [lower(before), lower(after)],
        epsilon_upper: upper,
        upper_comparable,
        test_accuracy: Change::of(&before.test_accuracy, &after.test_accuracy),
        auc,
    }
}

impl Comparison {
    /// Pretty JSON that ends in a newline.
    ///
    /// # Errors
    /// [`Error::NotFinite`] with the path of the first NaN or infinity.
    pub fn to_json(&self) -> Result<String, Error> {
        finite::check(self)?;
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// A table for a terminal. `*` marks intervals that do not overlap.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut lines = vec![format!("before: {}   after: {}", self.studies[0], self.studies[1])];
        for (same, what) in
            [(self.same_data, "data"), (self.same_study, "studies"), (self.same_kernel, "kernels")]
        {
            if !same {
                lines.push(format!("the {what} differ"));
            }
        }
        lines.push(String::new());
        for s in &self.settings {
            lines.push(s.setting.clone());
            let [before, after] = s.verdict;
            let arrow = if before == after {
                before.title().to_owned()
            } else {
                format!("{} -> {}  (changed)", before.title(), after.title())
            };
            lines.push(format!("  {:<28} {arrow}", "verdict"));
            let upper = s
                .epsilon_upper
                .each_ref()
                .map(|u| bound(u.as_ref().map(|u| u.value), number::at_most));
            let note = if s.upper_comparable { "" } else { "  (delta, relation or unit differ)" };
            lines.push(format!("  {:<28} {} -> {}{note}", "proved epsilon", upper[0], upper[1]));
            let lower = s
                .epsilon_lower
                .each_ref()
                .map(|l| bound(l.as_ref().map(|l| l.value), number::at_least));
            lines.push(format!("  {:<28} {} -> {}", "measured epsilon", lower[0], lower[1]));
            lines.push(row("test accuracy", &s.test_accuracy));
            for a in &s.auc {
                let law = match a.candidate_law {
                    CandidateLaw::SameLaw => "",
                    CandidateLaw::TestLaw => " (test law)",
                };
                lines.push(row(&format!("AUC {}{law}", a.attack), &a.auc));
            }
        }
        for (names, which) in [(&self.only_before, "first"), (&self.only_after, "second")] {
            if !names.is_empty() {
                lines.push(format!("only in the {which} report: {}", names.join(", ")));
            }
        }
        for lost in &self.missing {
            for (why, which) in [(&lost.before, "first"), (&lost.after, "second")] {
                if let Some(why) = why {
                    lines.push(format!(
                        "no result of {} in the {which} report: {why}",
                        lost.setting
                    ));
                }
            }
        }
        lines.push(String::new());
        lines.push("* the intervals do not overlap".to_owned());
        lines.join("\n").replace('\u{2212}', "-") + "\n"
    }
}

fn bound(value: Option<Epsilon>, written: fn(Epsilon) -> String) -> String {
    value.map_or_else(|| "none".to_owned(), written)
}

fn row(name: &str, c: &Change) -> String {
    let mark = if c.intervals_apart == Some(true) { " *" } else { "" };
    format!(
        "  {name:<28} {} -> {}  {}{mark}",
        number::share(c.before),
        number::share(c.after),
        number::signed(c.difference)
    )
}
