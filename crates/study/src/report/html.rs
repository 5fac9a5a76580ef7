//! The page: one HTML file without scripts and without anything from a network.
use super::number::{self, count, estimate, share, short, signed, significant};
use super::reading::{attack_title, sentences};
use super::{
    Arm, AttackSummary, CandidateLaw, CheckKind, EpsilonUpper, Error, MembershipLaw, Missing,
    Origin, Outcome, PhiDefinition, PhiValue, Report, RiskTable, Severity, Timings, Verdict,
    figures, finite, reconstructions,
};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The report as one self-contained page; `timings` are shown when they are given.
///
/// The page has no script, so what is printed and archived is what was seen.
///
/// # Errors
/// [`Error::NotFinite`] if a number is NaN or infinite.
pub fn page(report: &Report, timings: Option<&Timings>) -> Result<String, Error> {
    finite::check(report)?;
    if let Some(timings) = timings {
        finite::check(timings)?;
    }
    Ok(document(report, timings).into_string())
}

/// A heading, its anchor and what is under it; nothing if there is nothing to show.
struct Section {
    id: &'static str,
    title: &'static str,
    body: Markup,
}

/// What every page begins with: it holds all it needs and asks nothing of a network.
pub(super) fn head(name: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:";
            title { (name) " \u{2013} Dosimeter report" }
            link rel="icon" href="data:,";
            style { (PreEscaped(include_str!("style.css"))) }
        }
    }
}

fn document(report: &Report, timings: Option<&Timings>) -> Markup {
    let sections = sections(report, timings);
    let (d, s) = (&report.dataset, &report.study);
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(&s.name))
            body {
                main {
                    @if report.origin == Origin::Fixture {
                        p.banner role="note" { strong { "Invented numbers." } " This page was made from a fixture, to show and test the layout. Nothing on it was measured." }
                    }
                    header {
                        p.eyebrow { "Dosimeter " (report.provenance.version) " \u{b7} differential privacy, proved and measured" }
                        h1 { (s.name) }
                        p.facts {
                            (d.name) ": " (count(d.records)) " records, " (count(d.width.into())) " features, " (d.classes) " classes. "
                            @if let Some(text) = &s.description { (text) }
                        }
                    }
                    section aria-label="Summary" {
                        ul.lead { @for sentence in sentences(report) { li { (sentence) } } }
                    }
                    nav aria-label="Contents" { @for section in &sections { a href={ "#" (section.id) } { (section.title) } } }
                    @for section in &sections {
                        section id=(section.id) { h2 { (section.title) } (section.body) }
                    }
                    footer {
                        p { "Epsilon is in nats. Intervals are named with the number or in the table head. \u{201c}Consistent\u{201d} says that measurement and proof do not contradict each other; it does not say that a model may be released." }
                    }
                }
            }
        }
    }
}

fn sections(report: &Report, timings: Option<&Timings>) -> Vec<Section> {
    let section = |id, title, body| Some(Section { id, title, body });
    [
        section("verdicts", "Claimed, proved, measured", verdicts(report)),
        (!report.checks.is_empty())
            .then(|| checks(report))
            .and_then(|b| section("checks", "Limits and claims", b)),
        (!report.notes.is_empty())
            .then(|| notes(report))
            .and_then(|b| section("notes", "Notes on these numbers", b)),
        figures::over_epsilon(report).and_then(|figure| {
            section("epsilon", "Accuracy, attacks and trade-off over epsilon", html! {
                p.hint { "Bars are the intervals of the tables. Central and local epsilon speak of different things (relation and unit are in the table above), so equal positions on the axis are not equal protection. Phi above 1: the attack lost a larger share of its advantage than the model of its accuracy. Undefined and degenerate values are not drawn; phi is undefined where the attack without DP is not told from guessing, since then there was nothing to protect." }
                (figure)
            })
        }),
        section("roc", "ROC curves", html! {
            p.hint { "Mean over repeats. The logarithmic axes show the few members that are found almost without false alarms, which the area hides." }
            (figures::roc_by_attack(report))
        }),
        figures::roc_under_ceiling(report).and_then(|figure| {
            section("ceiling", "Attacks under the ceiling of the guarantee", html! {
                p.hint { "A guarantee for adding or removing a record limits the ROC curve of every attack. A curve above the line, beyond chance, contradicts the guarantee. Local arms guarantee something else (any two values of one record), so no line is drawn for them." }
                (figure)
            })
        }),
        section("scatter", "Attack against accuracy", html! {
            p.hint { "Upper left is better: accurate, and members are not recognised. Lines join the settings of one kind in the order of their epsilon." }
            (figures::scatter(report))
        }),
        figures::confidence(report)
            .and_then(|figure| section("confidence", "Confidence of members and non-members", figure)),
        (!report.risk.is_empty())
            .then(|| risk(report))
            .and_then(|b| section("risk", "Records at risk", b)),
        (!report.reconstructions.is_empty())
            .then(|| reconstructions::section(report))
            .and_then(|b| section("images", "Images, randomized and brought back", b)),
        section("tables", "Attack results", tables(report)),
        section("checks-of-the-audit", "Checks of the audit itself", self_checks(report)),
        section("repeats", "Every trained target", repeats(report)),
        section("provenance", "Provenance", provenance(report, timings)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A table in a box that scrolls by itself, reachable by keyboard.
pub(super) fn boxed(label: &str, table: &Markup) -> Markup {
    html! { div class="box sticky" tabindex="0" role="region" aria-label=(label) { (table) } }
}

fn verdict(v: Verdict) -> Markup {
    let sign = match v {
        Verdict::Consistent => "\u{2264}",
        Verdict::Inconclusive => "?",
        Verdict::Violated => ">",
    };
    html! { span class={ "verdict " (v.title()) } { b aria-hidden="true" { (sign) } (v.title()) } }
}

fn upper(u: &EpsilonUpper) -> Markup {
    html! {
        (number::at_most(u.value))
        @if !u.value.is_unbounded() { span.small { "delta " (short(u.delta)) } span.small { (number::relation(u.relation)) } }
    }
}

/// The conditions of every number in a table, each said once with the settings it is about.
fn conditions(report: &Report) -> Markup {
    html! { ul.terms { @for line in condition_lines(report) { li { (line) } } } }
}
/// Side, delta, relation, unit and accountant of the epsilons of all settings, as lines of text.
#[must_use]
pub fn condition_lines(report: &Report) -> Vec<String> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    let mut add = |terms: String, setting| match groups.iter_mut().find(|g| g.0 == terms) {
        Some((_, settings)) => settings.push(setting),
        None => groups.push((terms, vec![setting])),
    };
    for arm in &report.arms {
        for u in arm.headline().into_iter().filter(|u| !u.value.is_unbounded()) {
            add(said("Proved", &number::terms(u), &u.caveats), arm.setting.as_str());
        }
    }
    for arm in &report.arms {
        for u in arm.epsilon_claimed.iter() {
            add(said("Claimed", &number::terms(u), &u.caveats), arm.setting.as_str());
        }
        if let Some(l) = arm.strongest().and_then(AttackSummary::lower) {
            add(said("Measured", &number::terms_lower(l), &l.caveats), arm.setting.as_str());
        }
    }
    let line = |(terms, settings): &(String, Vec<&str>)| {
        // A setting without a result has neither.
        let all = settings.len() == report.arms.len() && report.missing.is_empty();
        format!("{terms} ({})", if all { "all settings".to_owned() } else { settings.join(", ") })
    };
    groups.iter().map(line).collect()
}
fn said(word: &str, terms: &str, caveats: &[String]) -> String {
    let mut text = format!("{word}: {terms}");
    for caveat in caveats {
        text += "; ";
        text += caveat;
    }
    text
}

fn verdicts(report: &Report) -> Markup {
    let claims = report.arms.iter().any(|a| a.epsilon_claimed.is_some());
    let row = |arm: &Arm| {
        let attack = arm.strongest();
        let reason = attack.map(|a| a.verdict.reason.as_str()).unwrap_or_default();
        let worst = arm.attacks.iter().find(|a| a.verdict.verdict == Verdict::Violated);
        html! {
            tr {
                th scope="row" { (arm.setting) span.small { (arm.kind.title()) } }
                td { (verdict(arm.verdict())) }
                @if claims { td.n { @match &arm.epsilon_claimed { Some(c) => (upper(c)), None => "\u{2013}" } } }
                td.n { @match arm.headline() { Some(u) => (upper(u)), None => "\u{2013}" } }
                td.n {
                    @match attack.and_then(AttackSummary::lower) { Some(l) => (number::at_least(l.value)), None => "no bound holds" }
                    @if let Some(a) = attack { span.small { (a.attack) } }
                }
                td.n { (share(arm.test_accuracy.value)) @if let Some(i) = &arm.test_accuracy.interval { span.small { (share(i.low)) "\u{2013}" (share(i.high)) } } }
                td.wide { (worst.map_or(reason, |w| w.verdict.reason.as_str())) }
            }
        }
    };
    let table = html! {
        table {
            caption { "The strongest attack of each setting against what is proved. Verdict: \u{2264} consistent (a violation was within reach and none was found), ? inconclusive (nothing follows), > violated." }
            thead { tr {
                th scope="col" { "Setting" } th scope="col" { "Verdict" }
                @if claims { th.n scope="col" { "Claimed" br; "epsilon \u{2264}" } }
                th.n scope="col" { "Proved" br; "epsilon \u{2264}" } th.n scope="col" { "Measured" br; "epsilon \u{2265}" }
                th.n scope="col" { "Test" br; "accuracy" } th scope="col" { "Why" }
            } }
            tbody {
                @for arm in &report.arms { (row(arm)) }
                @for m in &report.missing {
                    tr {
                        th scope="row" { (m.setting) span.small { (m.kind.title()) } }
                        td colspan=(if claims { 5 } else { 4 }) { "no result" }
                        td.wide { (m.task) ": " (m.reason) }
                    }
                }
            }
        }
    };
    html! {
        (boxed("Claimed, proved and measured epsilon of each setting", &table))
        (conditions(report))
        (figures::claimed_proved_measured(report))
        p.small { "A fainter bar: proof and measurement speak of different relations or nothing is proved, so the ends are not two bounds on one number." }
    }
}

fn checks(report: &Report) -> Markup {
    let table = html! {
        table {
            thead { tr { th scope="col" { "Statement" } th scope="col" { "Outcome" } th scope="col" { "Setting" } th scope="col" { "Numbers" } } }
            tbody {
                @for check in &report.checks {
                    @let (word, class, sign) = match check.outcome {
                        Outcome::Held => ("held", "held", "\u{2264}"),
                        Outcome::Violated => ("violated", "violated", ">"),
                        Outcome::Inconclusive => ("inconclusive", "inconclusive", "?"),
                    };
                    tr {
                        th scope="row" { (check.statement) span.small { (match check.kind { CheckKind::Limit => "limit", CheckKind::Claim => "claim" }) } }
                        td { span class={ "verdict " (class) } { b aria-hidden="true" { (sign) } (word) } }
                        td { (check.setting.as_deref().unwrap_or("all")) }
                        td.wide { (check.reason) }
                    }
                }
            }
        }
    };
    html! { p.hint { "From the study file. A violated one makes the command leave with exit code 3." } (boxed("Limits and claims", &table)) }
}

fn notes(report: &Report) -> Markup {
    let mut notes: Vec<_> = report.notes.iter().collect();
    notes.sort_by_key(|n| std::cmp::Reverse(n.severity));
    html! {
        ul.notes {
            @for note in notes {
                @let (word, class) = match note.severity {
                    Severity::Info => ("Note", "info"),
                    Severity::Caution => ("Caution", "caution"),
                    Severity::Invalid => ("Do not use", "invalid"),
                };
                li class=(class) { strong { (word) @if let Some(setting) = &note.setting { ", " (setting) } ". " } (note.text) }
            }
        }
    }
}

fn risk(report: &Report) -> Markup {
    let table = |(i, t): (usize, &RiskTable)| {
        let body = html! {
            table {
                thead { tr {
                    th scope="col" { "Record" } th.n scope="col" { "Label" } th.n scope="col" { "Flagged as member" br; "when it was one" }
                    th.n scope="col" { "Flagged" br; "when it was not" } th.n scope="col" { "Mean rank among" br; "non-members" }
                } }
                tbody {
                    @for r in &t.records {
                        tr {
                            th scope="row" { (r.record) } td.n { (r.label) }
                            td.n { (r.flagged_in) " of " (r.member_in) } td.n { (r.wrongly_flagged_in) " of " (r.non_member_in) } td.n { (format!("{:.4}", r.mean_rank)) }
                        }
                    }
                }
            }
        };
        let name = format!("{}, {}", t.setting, t.attack);
        html! {
            @match t.records.len() {
                0 => p { (name) ": no member was flagged in any repeat." },
                1 => details open[i == 0] { summary { (name) ": the one record that was flagged" } (boxed(&name, &body)) },
                many => details open[i == 0] { summary { (name) ": the " (many) " records most at risk" } (boxed(&name, &body)) },
            }
        }
    };
    // One picture per setting, of its strongest attack; the lists below hold all.
    let strongest = |t: &&RiskTable| {
        let arm = report.arms.iter().find(|a| a.setting == t.setting);
        arm.and_then(Arm::strongest).is_none_or(|a| a.attack == t.attack)
    };
    let pictured: Vec<&RiskTable> = report.risk.iter().filter(strongest).collect();
    let rates: Vec<f64> = report.risk.iter().map(|t| t.flag_fpr).collect();
    let rate = rates.first().copied().unwrap_or_default();
    html! {
        p.hint {
            "A member is flagged when its score passes the threshold at which a share of " (short(rate)) " of the non-members is flagged. "
            "A record found in most repeats is exposed by what it is, not by the luck of one training. Record numbers are positions in the data set as loaded, from 0."
        }
        div.panels { @for t in pictured { (figures::stability(t)) } }
        @for pair in report.risk.iter().enumerate() { (table(pair)) }
    }
}

fn phi(attack: &AttackSummary, definition: PhiDefinition) -> Markup {
    html! {
        @match attack.phi.iter().find(|p| p.definition == definition).map(|p| &p.value) {
            None => "\u{2013}",
            Some(PhiValue::Defined { value, interval, no_interval }) => {
                (significant(*value))
                @if let Some(i) = interval { span.small { (significant(i.low)) "\u{2013}" (significant(i.high)) } }
                @else if let Some(why) = no_interval { span.small.why { "no interval: " (why) } }
            },
            Some(PhiValue::Degenerate { value, reason }) => { (significant(*value)) span.small.why { "degenerate: " (reason) } },
            Some(PhiValue::Undefined { reason }) => { "undefined" span.small.why { (reason) } },
        }
    }
}

fn tables(report: &Report) -> Markup {
    html! {
        @for attack in figures::attacks(report) {
            @let rows: Vec<(&Arm, &AttackSummary)> = report.arms.iter()
                .filter_map(|arm| arm.attacks.iter().find(|a| a.attack == attack.attack && a.candidate_law == attack.candidate_law).map(|a| (arm, a)))
                .collect();
            h3 { (attack_title(attack)) }
            (boxed(&attack_title(attack), &results(&rows, &report.missing)))
        }
        details { summary { "Every proved bound: each delta, relation and accountant" } (boxed("Every proved bound", &every_upper(report))) }
        details { summary { "Every measured bound, with its caveats" } (boxed("Every measured bound", &every_lower(report))) }
        h3 { "What a flag is worth" }
        (boxed("Share of flagged records that are members", &flags(report)))
    }
}

fn results(rows: &[(&Arm, &AttackSummary)], missing: &[Missing]) -> Markup {
    let rates: Vec<f64> =
        rows.first().map(|(_, a)| a.tpr_at.iter().map(|t| t.fpr).collect()).unwrap_or_default();
    let interval = rows.iter().find_map(|(_, a)| a.auc.interval.as_ref());
    let rate_interval =
        rows.iter().flat_map(|(_, a)| &a.tpr_at).find_map(|t| t.tpr.interval.as_ref());
    html! {
        table {
            caption {
                @if let Some(i) = interval { "AUC and average precision: " (short(100.0 * i.confidence)) " % interval, " (i.method) ". " }
                @if let Some(i) = rate_interval { "True-positive rates: " (short(100.0 * i.confidence)) " % interval, " (i.method) "." }
            }
            thead { tr {
                th scope="col" { "Setting" } th.n scope="col" { "AUC" } th.n scope="col" { "Average" br; "precision" }
                @for rate in &rates { th.n scope="col" { "TPR at" br; "FPR " (short(*rate)) } }
                th.n scope="col" { "Measured" br; "epsilon \u{2265}" } th scope="col" { "Verdict" }
                th.n scope="col" { "Phi" br; "(paper)" } th.n scope="col" { "Phi" br; "(patent)" }
            } }
            tbody {
                @for (arm, attack) in rows {
                    tr {
                        th scope="row" { (arm.setting) }
                        td.n { (cell(&attack.auc)) } td.n { (cell(&attack.average_precision)) }
                        @for rate in &rates {
                            td.n {
                                @match attack.tpr_at.iter().find(|t| t.fpr.total_cmp(rate).is_eq()) {
                                    None => "\u{2013}",
                                    Some(t) if t.below_resolution => { "\u{2013}" span.small { "below resolution" } },
                                    Some(t) => (cell(&t.tpr)),
                                }
                            }
                        }
                        td.n { @match attack.lower() { Some(l) => { (number::at_least(l.value)) @if !l.caveats.is_empty() { span.small { "with caveats" } } }, None => "no bound holds" } }
                        td { (verdict(attack.verdict.verdict)) }
                        td.n { (phi(attack, PhiDefinition::Paper)) } td.n { (phi(attack, PhiDefinition::Patent)) }
                    }
                }
                @for m in missing { tr { th scope="row" { (m.setting) } td colspan=(6 + rates.len()) { "no result" } } }
            }
        }
    }
}

fn every_upper(report: &Report) -> Markup {
    html! {
        table {
            thead { tr {
                th scope="col" { "Setting" } th.n scope="col" { "Proved" br; "epsilon \u{2264}" } th.n scope="col" { "Delta" }
                th scope="col" { "Relation" } th scope="col" { "Unit" } th scope="col" { "Accountant" } th scope="col" { "Caveats" }
            } }
            tbody {
                @for arm in &report.arms {
                    @for u in &arm.epsilon_upper {
                        tr {
                            th scope="row" { (arm.setting) } td.n { (number::at_most(u.value)) } td.n { (short(u.delta)) }
                            td { (number::relation(u.relation)) } td { (number::unit(u.unit)) } td { (u.accountant) } td.wide { (u.caveats.join("; ")) }
                        }
                    }
                }
            }
        }
    }
}

fn every_lower(report: &Report) -> Markup {
    html! {
        table {
            thead { tr {
                th scope="col" { "Setting" } th scope="col" { "Attack" } th.n scope="col" { "Measured" br; "epsilon \u{2265}" } th.n scope="col" { "Delta" }
                th scope="col" { "Relation" } th scope="col" { "Bound" } th.n scope="col" { "Confidence" } th scope="col" { "Caveats" }
            } }
            tbody {
                @for arm in &report.arms {
                    @for attack in &arm.attacks {
                        @for l in &attack.epsilon_lower {
                            tr {
                                th scope="row" { (arm.setting) } td { (attack_title(attack)) } td.n { (number::at_least(l.value)) } td.n { (short(l.delta)) }
                                td { (number::relation(l.relation)) } td { (l.bound) } td.n { (short(l.confidence)) } td.wide { (l.caveats.join("; ")) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn cell(e: &super::Estimate) -> Markup {
    html! { (share(e.value)) @if let Some(i) = &e.interval { span.small { (share(i.low)) "\u{2013}" (share(i.high)) } } }
}

/// Precision of a flag at three priors: half of the candidates being members is an attacker's best case.
fn flags(report: &Report) -> Markup {
    const PRIORS: [f64; 3] = [0.5, 0.1, 0.01];
    let worth = |tpr: f64, fpr: f64, prior: f64| {
        let flagged = tpr.mul_add(prior, fpr * (1.0 - prior));
        // Where nobody is flagged there is no share of the flagged.
        if tpr > 0.0 { share(tpr * prior / flagged) } else { "\u{2013}".into() }
    };
    let rows: Vec<_> = report
        .arms
        .iter()
        .filter_map(|arm| arm.strongest().and_then(|a| a.finest().map(|t| (arm, a, t))))
        .collect();
    html! {
        table {
            caption { "Share of flagged records that are members, for the strongest attack at the smallest false-positive rate that the data resolve, if 50 %, 10 % or 1 % of the people the attacker looks at were in the training set." }
            thead { tr {
                th scope="col" { "Setting" } th scope="col" { "Attack" } th.n scope="col" { "FPR" } th.n scope="col" { "TPR" }
                @for prior in PRIORS { th.n scope="col" { "prior" br; (short(100.0 * prior)) " %" } }
            } }
            tbody {
                @for (arm, attack, at) in rows {
                    tr {
                        th scope="row" { (arm.setting) } td { (attack.attack) } td.n { (short(at.fpr)) } td.n { (share(at.tpr.value)) }
                        @for prior in PRIORS { td.n { (worth(at.tpr.value, at.fpr, prior)) } }
                    }
                }
            }
        }
    }
}

fn self_checks(report: &Report) -> Markup {
    let law = |l: CandidateLaw| match l {
        CandidateLaw::SameLaw => "same law",
        CandidateLaw::TestLaw => "test law",
    };
    let table = html! {
        table {
            caption { "Worst over the repeats. Null: membership shuffled, the bound must stay at 0. Blind: a classifier that never sees the model. Shadows: target's test accuracy less theirs." }
            thead { tr {
                th scope="col" { "Setting" } th.n scope="col" { "Null: shuffles with" br; "a bound above 0" } th scope="col" { "Null" br; "self-check" }
                th.n scope="col" { "Blind baseline" br; "AUC" } th scope="col" { "Members separable" br; "without the model" }
                th.n scope="col" { "Shadows:" br; "accuracy gap" } th scope="col" { "Shadows mimic" br; "the target" }
            } }
            tbody {
                @for arm in &report.arms {
                    @let nulls: Vec<_> = arm.repeats.iter().flat_map(|r| &r.attacks).filter_map(|a| a.null_check.as_ref()).collect();
                    @let worst = nulls.iter().max_by_key(|n| n.above_zero);
                    @let blind = arm.repeats.iter().flat_map(|r| &r.blind).max_by(|a, b| a.auc.value.total_cmp(&b.auc.value));
                    @let gap = arm.repeats.iter().filter_map(|r| r.mimicry.as_ref()).max_by(|a, b| a.test_accuracy_gap.abs().total_cmp(&b.test_accuracy_gap.abs()));
                    @let problems: Vec<&String> = arm.repeats.iter().filter_map(|r| r.mimicry.as_ref()).flat_map(|m| &m.problems).collect();
                    tr {
                        th scope="row" { (arm.setting) }
                        td.n { @match worst { Some(n) => { (n.above_zero) " of " (n.shuffles) span.small { "at most " (n.allowed) } }, None => "\u{2013}" } }
                        td { @if nulls.is_empty() { "not run" } @else if nulls.iter().all(|n| n.passed) { "passed" } @else { strong.violated { "failed" } } }
                        td.n { @match blind { Some(b) => { (cell(&b.auc)) span.small { (law(b.candidate_law)) } }, None => "\u{2013}" } }
                        td { @match blind { Some(_) if arm.repeats.iter().flat_map(|r| &r.blind).any(|b| b.separable) => strong.violated { "yes" }, Some(_) => "no", None => "not run" } }
                        td.n { @match gap { Some(m) => { (signed(m.test_accuracy_gap)) span.small { (m.shadows) " shadows" } }, None => "\u{2013}" } }
                        td.wide { @match gap { None => "no shadows", Some(_) if problems.is_empty() => "no problem found", Some(_) => { @for p in &problems { (p) br; } } } }
                    }
                }
            }
        }
    };
    boxed("Checks of the audit itself", &table)
}

fn repeats(report: &Report) -> Markup {
    let table = |arm: &Arm| {
        let body = html! {
            table {
                thead { tr {
                    th scope="col" { "Repeat" } th scope="col" { "Seed" } th.n scope="col" { "Members" } th.n scope="col" { "Steps" }
                    th.n scope="col" { "Proved" br; "epsilon \u{2264}" } th.n scope="col" { "Train" br; "accuracy" } th.n scope="col" { "Test" br; "accuracy" }
                    @if let Some(r) = arm.repeats.first() { @for a in &r.attacks { th.n scope="col" { (a.attack) br; "AUC" } } }
                } }
                tbody {
                    @for r in &arm.repeats {
                        tr {
                            th scope="row" { (r.repeat) } td { code { (r.seed) } } td.n { (count(r.members.into())) } td.n { (count(r.steps)) }
                            td.n { (r.epsilon_upper.first().map_or_else(String::new, |u| number::at_most(u.value))) }
                            td.n { (share(r.train_accuracy)) } td.n { (share(r.test_accuracy)) }
                            @for a in &r.attacks { td.n { (share(a.auc.value)) } }
                        }
                    }
                }
            }
        };
        html! { details { summary { (arm.setting) ": train accuracy " (estimate(&arm.train_accuracy)) ", test accuracy " (estimate(&arm.test_accuracy)) } (boxed(&arm.setting, &body)) } }
    };
    let method = report.arms.iter().find_map(|a| a.test_accuracy.interval.as_ref());
    html! {
        @if let Some(i) = method { p.hint { "Intervals: " (short(100.0 * i.confidence)) " %, " (i.method) "." } }
        @for arm in &report.arms { (table(arm)) }
    }
}

fn provenance(report: &Report, timings: Option<&Timings>) -> Markup {
    let (p, d) = (&report.provenance, &report.dataset);
    let membership = match report.study.membership {
        MembershipLaw::FairCoins => "one fair coin per candidate (what the one-run bound assumes)",
        MembershipLaw::FixedHalf => {
            "exactly half of the candidates (the one-run bound does not hold)"
        }
    };
    let noise = html! {
        table {
            thead { tr { th scope="col" { "Setting" } th scope="col" { "Mechanism" } th scope="col" { "Randomness" } th scope="col" { "Sampler" } } }
            tbody { @for n in &p.noise { tr { th scope="row" { (n.setting) } td { (n.mechanism) } td { (n.generator) } td { (n.sampler) } } } }
        }
    };
    let recipes = html! {
        table {
            thead { tr { th scope="col" { "Setting" } th scope="col" { "Recipe" } th scope="col" { "Digest" } } }
            tbody { @for r in &p.recipes { tr { th scope="row" { (r.setting) } td.wide { (r.text) } td { code { (r.digest) } } } } }
        }
    };
    let artifacts = html! {
        table {
            thead { tr { th scope="col" { "Task" } th scope="col" { "Id" } th scope="col" { "Digest of the result" } } }
            tbody { @for a in &p.artifacts { tr { th scope="row" { (a.task) } td { code { (a.id) } } td { code { (a.digest) } } } } }
        }
    };
    html! {
        p { "This command makes the same " code { "report.json" } " again, byte for byte, with the same kernel:" }
        pre tabindex="0" { code { (p.command) } }
        dl {
            dt { "Study digest" } dd { code { (p.study_digest) } }
            dt { "Data fingerprint" } dd { code { (d.fingerprint) } }
            dt { "Root seed" } dd { code { (p.seed) } }
            dt { "Split" } dd { (count(d.candidates.into())) " candidates, " (count(d.test.into())) " test records, shadow pool of " (count(d.shadow_pool)) }
            dt { "Membership" } dd { (membership) }
            dt { "Version" } dd { (p.version) ", report format " (report.format_version) }
            dt { "Kernel, platform" } dd { (p.kernel) ", " (p.platform) }
            @if let Some(t) = timings {
                dt { "Wall time" } dd {
                    (significant(t.wall_seconds)) " s on " (t.threads) " threads"
                    @for s in &t.stages { "; " (s.name) ": " (s.tasks) " done, " (s.reused) " reused, " (significant(s.seconds)) " s" }
                }
            }
        }
        @if !p.noise.is_empty() { h3 { "Noise" } (boxed("Noise of each setting", &noise)) }
        @if !p.recipes.is_empty() { h3 { "Recipes" } (boxed("Training recipe of each setting", &recipes)) }
        @if !p.artifacts.is_empty() { details { summary { (p.artifacts.len()) " artifacts with their digests" } (boxed("Artifacts", &artifacts)) } }
    }
}
