//! What the numbers of a report say, in sentences; and the choices that the page and the sentences share.
use super::difference::Differences;
use super::number::{at_most, count, estimate, share, short};
use super::{
    AccessLevel, Arm, ArmKind, AttackSummary, CandidateLaw, EpsilonLower, EpsilonUpper, Estimate,
    MembershipLaw, Outcome, Report, Severity, TprAt, Verdict,
};

impl Arm {
    /// The proved bound to show first.
    #[must_use]
    pub fn headline(&self) -> Option<&EpsilonUpper> {
        self.epsilon_upper.first()
    }

    /// The attack with the largest measured bound, then the largest AUC, among those whose candidates come from one law.
    #[must_use]
    pub fn strongest(&self) -> Option<&AttackSummary> {
        let rank = |a: &AttackSummary| (a.lower().map_or(0.0, |l| l.value.get()), a.auc.value);
        self.attacks.iter().filter(|a| a.candidate_law == CandidateLaw::SameLaw).max_by(|a, b| {
            let (a, b) = (rank(a), rank(b));
            a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
        })
    }

    /// The worst verdict over the attacks; inconclusive if there is none.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let verdicts = || self.attacks.iter().map(|a| a.verdict.verdict);
        // A measured bound that is consistent says more than one that is not there.
        match verdicts().max() {
            Some(Verdict::Violated) => Verdict::Violated,
            _ if verdicts().any(|v| v == Verdict::Consistent) => Verdict::Consistent,
            _ => Verdict::Inconclusive,
        }
    }
}
impl AttackSummary {
    /// The measured bound to show first.
    #[must_use]
    pub fn lower(&self) -> Option<&EpsilonLower> {
        self.epsilon_lower.first()
    }
    /// Whether the AUC's interval holds 0.5 or lies below it. Without an interval nothing can be said.
    fn is_at_chance(&self) -> bool {
        self.auc.interval.as_ref().is_some_and(|i| i.low <= 0.5)
    }
    /// The smallest false-positive rate that the number of non-members can resolve.
    pub(super) fn finest(&self) -> Option<&TprAt> {
        self.tpr_at.iter().filter(|t| !t.below_resolution).min_by(|a, b| a.fpr.total_cmp(&b.fpr))
    }
}

/// A name for reading: registry names are for files.
pub(super) fn attack_title(attack: &AttackSummary) -> String {
    let access = match attack.access {
        AccessLevel::BlackBox => "black-box",
        AccessLevel::WhiteBox => "white-box",
    };
    let law = match attack.candidate_law {
        CandidateLaw::SameLaw => "",
        CandidateLaw::TestLaw => ", non-members from the test law",
    };
    let name = attack.attack.replace('_', "-");
    if name == access { format!("{name}{law}") } else { format!("{name} ({access}){law}") }
}

/// The first lines of the page. Every sentence is computed; none says that something is safe.
#[must_use]
pub fn sentences(report: &Report) -> Vec<String> {
    let mut out = vec![against_proof(report)];
    out.extend(missing(report));
    out.extend(checks(report));
    out.push(scope(report));
    out.extend(without_protection(report));
    let mut differences = Differences::default();
    out.extend(clipping(report, &mut differences));
    out.extend(first_at_chance(report, &mut differences));
    out.extend(differences.sentence());
    out.extend(doubts(report));
    out.push(
        "An attack that finds nothing is no proof: a stronger one may exist. Only a proved bound limits every attack."
            .to_owned(),
    );
    out
}

fn missing(report: &Report) -> Vec<String> {
    let line =
        |m: &super::Missing| format!("{} has no result: {}: {}.", m.setting, m.task, m.reason);
    report.missing.iter().map(line).collect()
}

fn scope(report: &Report) -> String {
    let (d, arms) = (&report.dataset, report.arms.len());
    let mut attacks: Vec<&str> = Vec::new();
    for attack in report.arms.iter().flat_map(|a| &a.attacks) {
        if !attacks.contains(&attack.attack.as_str()) {
            attacks.push(&attack.attack);
        }
    }
    let law = match report.study.membership {
        MembershipLaw::FairCoins => "each a member by a fair coin",
        MembershipLaw::FixedHalf => "exactly half of them members",
    };
    format!(
        "{arms} {} on {}: about {} training records per model, {} trained {} each, judged by {} ({}) on {} candidates, {law}.",
        plural(arms, "setting"),
        d.name,
        count(d.train.into()),
        report.study.repeats,
        plural(report.study.repeats as usize, "model"),
        if attacks.len() == 1 { "1 attack".into() } else { format!("{} attacks", attacks.len()) },
        attacks.join(", "),
        count(d.candidates.into()),
    )
}

fn against_proof(report: &Report) -> String {
    let violated: Vec<&str> = report
        .arms
        .iter()
        .filter(|a| a.verdict() == Verdict::Violated)
        .map(|a| a.setting.as_str())
        .collect();
    let having = |v: Verdict| report.arms.iter().filter(|a| a.verdict() == v).count();
    if violated.is_empty() {
        let (fine, open) = (having(Verdict::Consistent), having(Verdict::Inconclusive));
        return format!(
            "No measured privacy loss exceeds a proved one: {fine} {} consistent, {open} inconclusive (nothing proved, or too little to decide).",
            plural(fine, "setting")
        );
    }
    format!(
        "In {} the measured privacy loss exceeds the proved one: the claim, the code or an assumption is wrong. Do not rely on {}.",
        violated.join(", "),
        if violated.len() == 1 { "this bound" } else { "these bounds" },
    )
}

fn checks(report: &Report) -> Option<String> {
    if report.checks.is_empty() {
        return None;
    }
    let having = |o: Outcome| report.checks.iter().filter(|c| c.outcome == o).count();
    Some(format!(
        "Limits and claims of the study file: {} held, {} violated, {} undecided.",
        having(Outcome::Held),
        having(Outcome::Violated),
        having(Outcome::Inconclusive),
    ))
}

fn unprotected(report: &Report) -> Option<&Arm> {
    report.arms.iter().find(|a| a.kind == ArmKind::NoDp)
}

fn without_protection(report: &Report) -> Option<String> {
    let arm = unprotected(report)?;
    let attack = arm.strongest()?;
    let mut text = format!(
        "Without DP, test accuracy is {} and the strongest attack, {}, reaches AUC {}",
        share(arm.test_accuracy.value),
        attack_title(attack),
        estimate(&attack.auc),
    );
    if let Some(at) = attack.finest() {
        text += &format!(
            "; at a false-positive rate of {} it finds {} of the members",
            short(at.fpr),
            percent(at.tpr.value)
        );
    }
    Some(text + ".")
}

fn clipping(report: &Report, differences: &mut Differences) -> Option<String> {
    let (original, clip) =
        (unprotected(report)?, report.arms.iter().find(|a| a.kind == ArmKind::ClipOnly)?);
    let before = original.strongest()?;
    let after = clip
        .attacks
        .iter()
        .find(|a| a.attack == before.attack && a.candidate_law == before.candidate_law)?;
    Some(format!(
        "Clipping alone, which proves nothing, changes test accuracy by {} and that attack's AUC by {}: compare noise with this, not only with no DP.",
        differences.of_accuracy(clip, original),
        differences.of_auc((clip, after), (original, before)),
    ))
}

/// For each kind of DP, the setting of the highest accuracy under which every attack is at chance.
fn first_at_chance(report: &Report, differences: &mut Differences) -> Vec<String> {
    let original = unprotected(report);
    [ArmKind::Central, ArmKind::Local]
        .into_iter()
        .filter_map(|kind| {
            let arms: Vec<&Arm> = report.arms.iter().filter(|a| a.kind == kind).collect();
            if arms.is_empty() || arms.iter().any(|a| a.attacks.iter().any(|x| x.auc.interval.is_none())) {
                return None;
            }
            let quiet = |a: &&&Arm| {
                a.attacks.iter().filter(|x| x.candidate_law == CandidateLaw::SameLaw).all(AttackSummary::is_at_chance)
            };
            let best = arms
                .iter()
                .filter(quiet)
                // Of equals the one that proves most.
                .max_by(|a, b| {
                    let proved = |a: &Arm| a.headline().map_or(f64::INFINITY, |u| u.value.get());
                    let accuracy = a.test_accuracy.value.total_cmp(&b.test_accuracy.value);
                    accuracy.then(proved(b).total_cmp(&proved(a)))
                });
            Some(match best {
                None => format!("No {} setting brings every attack down to guessing.", kind.title()),
                Some(arm) => {
                    let proved = arm.headline().map_or_else(String::new, |u| {
                        format!(" (proved epsilon {} at delta {}, {})", at_most(u.value), short(u.delta), super::number::relation(u.relation))
                    });
                    let cost = original.map_or_else(String::new, |o| {
                        format!(", {} against no DP", differences.of_accuracy(arm, o))
                    });
                    format!(
                        "Among {} settings, {}{proved} keeps the most accuracy while no attack of this study is told from guessing: test accuracy {}{cost}{}.",
                        kind.title(),
                        arm.setting,
                        share(arm.test_accuracy.value),
                        beside_guessing(report, arm),
                    )
                }
            })
        })
        .collect()
}

/// What to know of an accuracy that may be that of always answering the most frequent class.
fn beside_guessing(report: &Report, arm: &Arm) -> String {
    let floor = report.dataset.majority_rate;
    let least = ends(&arm.test_accuracy).map_or(arm.test_accuracy.value, |(low, _)| low);
    if least > floor {
        return String::new();
    }
    format!(", which is not told from always answering the most frequent class, {}", share(floor))
}

/// What weakens the figures.
fn doubts(report: &Report) -> Vec<String> {
    let mut out = Vec::new();
    let repeats = || report.arms.iter().flat_map(|a| &a.repeats);
    let separable = repeats()
        .flat_map(|r| &r.blind)
        .filter(|b| b.separable && b.candidate_law == CandidateLaw::SameLaw)
        .count();
    if separable > 0 {
        out.push(format!(
            "Members can be told from non-members without the model in {separable} {}: there, attack figures overstate what the model gives away.",
            plural(separable, "repeat")
        ));
    }
    let failed = repeats()
        .flat_map(|r| &r.attacks)
        .filter(|a| a.null_check.as_ref().is_some_and(|n| !n.passed))
        .count();
    if failed > 0 {
        out.push(format!(
            "{failed} null self-{} failed: with shuffled membership the bound still showed a loss. Those bounds are not to be used.",
            plural(failed, "check")
        ));
    }
    let unlike =
        repeats().filter(|r| r.mimicry.as_ref().is_some_and(|m| !m.problems.is_empty())).count();
    if unlike > 0 {
        out.push(format!(
            "In {unlike} {} the shadow models do not mimic the target: the shadow-model attack may be weaker than it could be.",
            plural(unlike, "repeat")
        ));
    }
    let serious = report.notes.iter().filter(|n| n.severity >= Severity::Caution).count();
    if serious > 0 {
        out.push(format!(
            "{serious} {} below {} these numbers.",
            plural(serious, "note"),
            if serious == 1 { "qualifies" } else { "qualify" }
        ));
    }
    out
}

fn percent(x: f64) -> String {
    format!("{:.1}\u{a0}%", 100.0 * x)
}
fn plural(n: usize, word: &str) -> String {
    if n == 1 { word.into() } else { format!("{word}s") }
}

/// `low..high` of an estimate.
pub(super) fn ends(e: &Estimate) -> Option<(f64, f64)> {
    e.interval.as_ref().map(|i| (i.low, i.high))
}
