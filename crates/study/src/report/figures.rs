//! The figures of a report.
use super::figure::{Axis, Panel, Shape, key, tenth};
use super::number::{at_least, at_most, share, short};
use super::reading::{attack_title, ends};
use super::{
    Arm, ArmKind, AttackSummary, CandidateLaw, Knot, Phi, PhiDefinition, PhiValue, Report,
    RiskTable, Verdict,
};
use dosimeter_privacy::{Delta, Epsilon, Relation, ceiling::tpr_ceiling};
use maud::{Markup, html};

/// Style class and shape of a kind of arm.
const fn look(kind: ArmKind) -> (&'static str, Shape) {
    match kind {
        ArmKind::NoDp => ("k-no-dp", Shape::Diamond),
        ArmKind::ClipOnly => ("k-clip-only", Shape::Triangle),
        ArmKind::Central => ("k-central", Shape::Circle),
        ArmKind::Local => ("k-local", Shape::Square),
    }
}
const NOISY: [ArmKind; 2] = [ArmKind::Central, ArmKind::Local];

/// Finite headline epsilon of an arm.
fn proved(arm: &Arm) -> Option<f64> {
    arm.headline().map(|u| u.value).filter(|e| !e.is_unbounded()).map(|e| e.get())
}

/// Arms of one kind with a finite epsilon, most noise first.
fn ladder(report: &Report, kind: ArmKind) -> Vec<(f64, &Arm)> {
    let mut arms: Vec<(f64, &Arm)> = report
        .arms
        .iter()
        .filter(|a| a.kind == kind)
        .filter_map(|a| proved(a).map(|e| (e, a)))
        .collect();
    arms.sort_by(|a, b| a.0.total_cmp(&b.0));
    arms
}

/// The attacks of a study: name and law, in order of first appearance.
pub(super) fn attacks(report: &Report) -> Vec<&AttackSummary> {
    let mut out: Vec<&AttackSummary> = Vec::new();
    for attack in report.arms.iter().flat_map(|a| &a.attacks) {
        if !out.iter().any(|o| same(o, attack)) {
            out.push(attack);
        }
    }
    out
}
fn same(a: &AttackSummary, b: &AttackSummary) -> bool {
    a.attack == b.attack && a.candidate_law == b.candidate_law
}
fn of<'a>(arm: &'a Arm, attack: &AttackSummary) -> Option<&'a AttackSummary> {
    arm.attacks.iter().find(|a| same(a, attack))
}

fn kinds_legend(report: &Report) -> Markup {
    let kinds = [ArmKind::NoDp, ArmKind::ClipOnly, ArmKind::Central, ArmKind::Local];
    html! {
        ul.legend {
            @for kind in kinds.into_iter().filter(|k| report.arms.iter().any(|a| a.kind == *k)) {
                @let (class, shape) = look(kind);
                li { (key(Some(shape), class)) (kind.title()) }
            }
        }
    }
}

/// One row per arm: measured, proved and claimed on one logarithmic line.
pub(super) fn claimed_proved_measured(report: &Report) -> Markup {
    const END: f64 = 388.0;
    const ROW: f64 = 24.0;
    let longest = report.arms.iter().map(|arm| arm.setting.chars().count()).max().unwrap_or(0);
    // The letters of a label are about 6 wide.
    let label = 6.3f64.mul_add(longest as f64, 14.0).clamp(112.0, 230.0);
    let values = report.arms.iter().flat_map(|arm| {
        let lower = arm.strongest().and_then(AttackSummary::lower).map(|l| l.value.get());
        let claim = arm.epsilon_claimed.as_ref().map(|c| c.value.get());
        [proved(arm), lower, claim].into_iter().flatten().filter(|x| *x > 0.0 && x.is_finite())
    });
    let (low, high) = values.fold((0.1f64, 10.0f64), |(l, h), x| (l.min(x), h.max(x)));
    let axis = Axis::decades("", low.max(1e-3), high);
    let x = |value: f64| {
        let (from, to) = (axis.low.log10(), axis.high.log10());
        let share = ((value.max(axis.low).log10() - from) / (to - from)).clamp(0.0, 1.0);
        (END - 14.0 - label).mul_add(share, label)
    };
    let height = ROW.mul_add(report.arms.len() as f64, 50.0);
    let bottom = height - 42.0;
    let description = "One row per setting on a logarithmic axis of epsilon: a bar from the measured lower bound to the proved upper bound. The table above holds the same numbers.";
    html! {
        figure.rows {
            figcaption { "The true privacy loss of a setting lies between measured and proved" }
            ul.legend {
                li { svg.key viewBox="0 0 30 14" aria-hidden="true" { g class="k-central" { rect.range x="3" y="3" width="24" height="8" {} line.stop x1="3" x2="3" y1="1" y2="13" {} line.stop x1="27" x2="27" y1="1" y2="13" {} } } "measured to proved" }
                li { svg.key viewBox="0 0 30 14" aria-hidden="true" { g class="k-none k-no-dp" { line.stop x1="3" x2="3" y1="1" y2="13" {} polygon.mark points="18,2 27,7 18,12" {} } } "nothing proved" }
                @if report.arms.iter().any(|a| a.epsilon_claimed.is_some()) {
                    li { svg.key viewBox="0 0 30 14" aria-hidden="true" { line.claim x1="15" x2="15" y1="0" y2="14" {} } "claimed" }
                }
            }
            svg viewBox={ "0 0 400 " (height) } role="img" aria-label=(description) {
                desc { (description) }
                @for (i, value) in axis.ticks().into_iter().enumerate() {
                    line.grid x1=(tenth(x(value))) x2=(tenth(x(value))) y1="4" y2=(bottom) {}
                    text.tick x=(tenth(x(value))) y=(bottom + 15.0) text-anchor="middle" {
                        @if i == 0 { "\u{2264}\u{2009}" } (axis.tick_label(value))
                    }
                }
                line.axis x1=(label) x2=(END) y1=(bottom) y2=(bottom) {}
                text.name x=(f64::midpoint(label, END)) y=(height - 8.0) text-anchor="middle" { "epsilon (nats, logarithmic)" }
                @for (i, arm) in report.arms.iter().enumerate() {
                    @let y = ROW.mul_add(i as f64, 18.0);
                    @let measured = arm.strongest().and_then(AttackSummary::lower).map(|l| l.value);
                    @let upper = proved(arm);
                    @let from = x(measured.map_or(0.0, Epsilon::get));
                    @let to = upper.map_or(END - 14.0, x);
                    @let wrong = arm.verdict() == Verdict::Violated;
                    @let class = if wrong { "ceiling" } else { look(arm.kind).0 };
                    @let open = arm.headline().is_some_and(|u| u.relation == Relation::Local) || upper.is_none();
                    g class=(class) {
                        title {
                            (arm.setting) ": measured " (measured.map_or_else(|| "nothing".to_owned(), |l| format!("at least {}", at_least(l))))
                            ", proved " (arm.headline().filter(|u| !u.value.is_unbounded()).map_or_else(|| "nothing".to_owned(), |u| format!("at most {}", at_most(u.value)))) ", " (arm.verdict().title())
                        }
                        text.row x=(label - 8.0) y=(y + 4.0) text-anchor="end" { (arm.setting) }
                        rect class={ "range" @if open { " open" } } x=(tenth(from.min(to))) y=(y - 5.0) width=(tenth((to - from).abs())) height="10" {}
                        line.stop x1=(tenth(from)) x2=(tenth(from)) y1=(y - 7.0) y2=(y + 7.0) {}
                        @if upper.is_some() {
                            line.stop x1=(tenth(to)) x2=(tenth(to)) y1=(y - 7.0) y2=(y + 7.0) {}
                        } @else {
                            polygon.mark points={ (tenth(to)) "," (y - 5.0) " " (tenth(to + 9.0)) "," (y) " " (tenth(to)) "," (y + 5.0) } {}
                        }
                        @if let Some(claim) = arm.epsilon_claimed.as_ref().filter(|c| !c.value.is_unbounded()) {
                            line.claim x1=(tenth(x(claim.value.get()))) x2=(tenth(x(claim.value.get()))) y1=(y - 10.0) y2=(y + 10.0) {}
                        }
                    }
                }
            }
        }
    }
}

type Point = (f64, Option<(f64, f64)>);
fn phi_of(attack: &AttackSummary) -> Option<Point> {
    let paper = |p: &&Phi| p.definition == PhiDefinition::Paper;
    match &attack.phi.iter().find(paper)?.value {
        PhiValue::Defined { value, interval, .. } => {
            Some((*value, interval.as_ref().map(|i| (i.low, i.high))))
        }
        _ => None,
    }
}

/// Why phi of a setting has no value, if it has none and is asked for.
fn undefined_phi(attack: &AttackSummary) -> Option<&str> {
    match &attack.phi.iter().find(|p| p.definition == PhiDefinition::Paper)?.value {
        PhiValue::Undefined { reason } => Some(reason),
        _ => None,
    }
}

/// Test accuracy, AUC of each attack and phi over the proved epsilon.
pub(super) fn over_epsilon(report: &Report) -> Option<Markup> {
    let all = || NOISY.into_iter().flat_map(|k| ladder(report, k));
    let (low, high) = all()
        .map(|(e, _)| e)
        .filter(|e| *e > 0.0)
        .fold((f64::INFINITY, 0f64), |(l, h), e| (l.min(e), h.max(e)));
    if !low.is_finite() {
        return None;
    }
    let x = Axis::decades("proved epsilon (nats, logarithmic)", low, high);
    let draw = |mut panel: Panel, value: &dyn Fn(&Arm) -> Option<Point>| {
        for kind in NOISY {
            let (class, shape) = look(kind);
            let points: Vec<(f64, &Arm, Point)> = ladder(report, kind)
                .into_iter()
                .filter_map(|(e, arm)| value(arm).map(|v| (e, arm, v)))
                .collect();
            let line: Vec<(f64, f64)> = points.iter().map(|(e, _, v)| (*e, v.0)).collect();
            if line.len() > 1 {
                panel.curve(&line, &format!("{class} thin"), kind.title());
            }
            for (e, arm, (y, interval)) in points {
                let proved = arm.headline().map_or_else(String::new, |u| at_most(u.value));
                let tip = format!("{}: epsilon {proved}, {}", arm.setting, share(y));
                panel.point((e, y), [None, interval], shape, class, &tip);
            }
        }
        panel.draw()
    };
    let original = report.arms.iter().find(|a| a.kind == ArmKind::NoDp);
    let describe = |what: &str| {
        format!(
            "{what} against the proved epsilon, one series for central and one for local DP; the tables hold the numbers."
        )
    };
    let accuracy = {
        let mut panel = Panel::new(
            "Test accuracy".into(),
            describe("Test accuracy"),
            x,
            Axis::linear("test accuracy", 0.0, 1.0),
        );
        panel.level(report.dataset.majority_rate, "", "most frequent class");
        if let Some(arm) = original {
            panel.level(arm.test_accuracy.value, "original", "no DP");
        }
        draw(panel, &|arm| Some((arm.test_accuracy.value, ends(&arm.test_accuracy))))
    };
    let attacks = attacks(report);
    let auc = |attack: &&AttackSummary| {
        let title = format!("AUC, {}", attack_title(attack));
        let lowest = report
            .arms
            .iter()
            .filter_map(|a| of(a, attack))
            .map(|a| ends(&a.auc).map_or(a.auc.value, |e| e.0))
            .fold(0.4, f64::min);
        let bottom = ((lowest * 10.0).floor() / 10.0).max(0.0);
        let mut panel =
            Panel::new(title.clone(), describe(&title), x, Axis::linear("AUC", bottom, 1.0));
        panel.level(0.5, "", "guessing");
        if let Some(attack) = original.and_then(|o| of(o, attack)) {
            panel.level(attack.auc.value, "original", "no DP");
        }
        draw(panel, &|arm| of(arm, attack).map(|a| (a.auc.value, ends(&a.auc))))
    };
    let phi = |attack: &&AttackSummary| {
        let title = format!("phi, {}", attack_title(attack));
        let y = Axis::linear("phi (relative gain over relative loss)", 0.0, 2.0);
        let mut panel = Panel::new(title.clone(), describe(&title), x, y);
        panel.level(1.0, "", "gain equals loss");
        draw(panel, &|arm| of(arm, attack).and_then(phi_of))
    };
    let has_phi = |a: &&AttackSummary| {
        report.arms.iter().any(|arm| of(arm, a).is_some_and(|x| phi_of(x).is_some()))
    };
    // Of an attack without a single value of phi the reason is said: an empty place would be a riddle.
    let not_drawn: Vec<(String, &str)> = attacks
        .iter()
        .filter(|a| !has_phi(a))
        .filter_map(|a| {
            let reason = report.arms.iter().filter_map(|arm| of(arm, a)).find_map(undefined_phi);
            reason.map(|reason| (attack_title(a), reason))
        })
        .collect();
    Some(html! {
        (kinds_legend(report))
        @for (attack, reason) in &not_drawn { p.hint { "Phi of " (attack) " is not drawn: " (reason) "." } }
        div.panels {
            (accuracy)
            @for attack in &attacks { (auc(attack)) }
            @for attack in attacks.iter().filter(|a| has_phi(a)) { (phi(attack)) }
        }
    })
}

/// Mean true-positive rate over the repeats at each false-positive rate of a grid fine on both scales.
fn mean_roc(arm: &Arm, attack: &AttackSummary) -> Vec<(f64, f64)> {
    let curves: Vec<&[Knot]> = arm
        .repeats
        .iter()
        .flat_map(|r| &r.attacks)
        .filter(|a| a.attack == attack.attack && a.candidate_law == attack.candidate_law)
        .map(|a| a.roc.as_slice())
        .filter(|roc| roc.len() > 1)
        .collect();
    if curves.is_empty() {
        return Vec::new();
    }
    let mut grid: Vec<f64> = (0..=48).map(|i| 10f64.powf(f64::from(i) / 12.0 - 4.0)).collect();
    grid.extend((0..=40).map(|i| f64::from(i) / 40.0));
    grid.sort_by(f64::total_cmp);
    grid.dedup();
    let mean = |fpr: f64| curves.iter().map(|c| tpr_on(c, fpr)).sum::<f64>() / curves.len() as f64;
    grid.into_iter().map(|fpr| (fpr, mean(fpr))).collect()
}

/// The curve at `fpr`: the top of a vertical piece, else straight between corners.
fn tpr_on(roc: &[Knot], fpr: f64) -> f64 {
    let after = roc.partition_point(|k| k.fpr <= fpr);
    match (after.checked_sub(1).and_then(|i| roc.get(i)), roc.get(after)) {
        (Some(a), Some(b)) => (b.tpr - a.tpr).mul_add((fpr - a.fpr) / (b.fpr - a.fpr), a.tpr),
        (Some(a), None) => a.tpr,
        (None, _) => 0.0,
    }
}

/// The smallest false-positive rate with any meaning for this attack, as the start of a logarithmic axis.
fn resolution(report: &Report, attack: &AttackSummary) -> f64 {
    let most = report
        .arms
        .iter()
        .flat_map(|a| &a.repeats)
        .flat_map(|r| &r.attacks)
        .filter(|a| a.attack == attack.attack)
        .map(|a| a.non_members)
        .max();
    1.0 / f64::from(most.unwrap_or(100).max(10))
}

fn roc_axes(log: bool, finest: f64) -> (Axis, Axis) {
    let (x, y) = ("false-positive rate", "true-positive rate");
    if log {
        (Axis::decades(x, finest.max(1e-4), 1.0), Axis::decades(y, finest.max(1e-4), 1.0))
    } else {
        (Axis::linear(x, 0.0, 1.0), Axis::linear(y, 0.0, 1.0))
    }
}
fn chance(log: bool, finest: f64) -> Vec<(f64, f64)> {
    let low = if log { 10f64.powf(finest.max(1e-4).log10().floor()) } else { 0.0 };
    vec![(low, low), (1.0, 1.0)]
}
fn visible(curve: &[(f64, f64)], log: bool, finest: f64) -> Vec<(f64, f64)> {
    let low = 10f64.powf(finest.max(1e-4).log10().floor()) * 0.999;
    curve.iter().copied().filter(|p| !log || (p.0 >= low && p.1 >= low)).collect()
}

/// For each attack: every setting, linear and logarithmic, central and local apart.
pub(super) fn roc_by_attack(report: &Report) -> Markup {
    let reference: Vec<&Arm> = report
        .arms
        .iter()
        .filter(|a| matches!(a.kind, ArmKind::NoDp | ArmKind::ClipOnly))
        .collect();
    let group = |attack: &AttackSummary, kind: ArmKind| {
        let mut arms = ladder(report, kind);
        arms.reverse();
        if arms.is_empty() && kind == ArmKind::Local {
            return html! {};
        }
        let mut lines: Vec<(String, &Arm)> =
            reference.iter().map(|a| (look(a.kind).0.to_owned(), *a)).collect();
        let step = |i: usize| (i * 4 / arms.len().saturating_sub(1).max(1)).min(4) + 1;
        lines.extend(
            arms.iter()
                .enumerate()
                .map(|(i, (_, a))| (format!("{} s{}", look(kind).0, step(i)), *a)),
        );
        let finest = resolution(report, attack);
        let panel = |log: bool| {
            let (x, y) = roc_axes(log, finest);
            let scale = if log { "logarithmic" } else { "linear" };
            let title = format!("{}, {scale}", kind.title());
            let description = format!(
                "ROC curves of {} for no DP and every {} setting, mean over repeats, {scale} axes.",
                attack_title(attack),
                kind.title()
            );
            let mut panel = Panel::new(title, description, x, y);
            panel.curve(&chance(log, finest), "chance", "guessing");
            for (class, arm) in &lines {
                let curve = visible(&mean_roc(arm, attack), log, finest);
                let auc = of(arm, attack).map_or_else(String::new, |a| share(a.auc.value));
                panel.curve(&curve, class, &format!("{}: AUC {auc}", arm.setting));
            }
            panel.draw()
        };
        html! {
            ul.legend {
                @for (class, arm) in &lines { li { (key(None, class)) (arm.setting) } }
                li { (key(None, "chance")) "guessing" }
            }
            div class="panels two" { (panel(false)) (panel(true)) }
        }
    };
    html! {
        @for attack in attacks(report) {
            h3 { (attack_title(attack)) }
            @for kind in NOISY { (group(attack, kind)) }
        }
    }
}

/// For each arm with a bound on adding or removing a record: its attacks under the largest ROC any attack can have.
pub(super) fn roc_under_ceiling(report: &Report) -> Option<Markup> {
    let arms: Vec<(&Arm, &super::EpsilonUpper)> = report
        .arms
        .iter()
        .filter_map(|a| a.headline().map(|u| (a, u)))
        .filter(|(_, u)| !u.value.is_unbounded() && u.relation == Relation::AddRemove)
        .collect();
    if arms.is_empty() {
        return None;
    }
    let attacks: Vec<&AttackSummary> =
        attacks(report).into_iter().filter(|a| a.candidate_law == CandidateLaw::SameLaw).collect();
    let finest = attacks.iter().map(|a| resolution(report, a)).fold(0.1, f64::min);
    let panel = |(arm, upper): &(&Arm, &super::EpsilonUpper)| {
        let (x, y) = roc_axes(true, finest);
        let title = format!(
            "{}: epsilon {}, delta {}",
            arm.setting,
            at_most(upper.value),
            short(upper.delta)
        );
        let description = format!(
            "ROC curves of every attack on {} on logarithmic axes, below the ceiling that epsilon {} and delta {} put on any attack.",
            arm.setting,
            at_most(upper.value),
            short(upper.delta)
        );
        let mut panel = Panel::new(title, description, x, y);
        if let Ok(delta) = Delta::new(upper.delta) {
            let start = x.low.log10();
            let ceiling: Vec<(f64, f64)> = (0..=60)
                .map(|i| 10f64.powf(start * (1.0 - f64::from(i) / 60.0)))
                .map(|fpr| (fpr, tpr_ceiling(upper.value, delta, fpr)))
                .collect();
            panel.curve(&ceiling, "ceiling", "no attack can be above this line");
        }
        panel.curve(&chance(true, finest), "chance", "guessing");
        for (i, attack) in attacks.iter().enumerate() {
            let curve = visible(&mean_roc(arm, attack), true, finest);
            panel.curve(&curve, &format!("a{}", i % 5), &attack_title(attack));
        }
        panel.draw()
    };
    Some(html! {
        ul.legend {
            @for (i, attack) in attacks.iter().enumerate() { li { (key(None, &format!("a{}", i % 5))) (attack_title(attack)) } }
            li { (key(None, "ceiling")) "ceiling for any attack" }
            li { (key(None, "chance")) "guessing" }
        }
        div.panels { @for arm in &arms { (panel(arm)) } }
    })
}

/// AUC against test accuracy.
pub(super) fn scatter(report: &Report) -> Markup {
    let panel = |attack: &&AttackSummary| {
        let title = attack_title(attack);
        let description = format!(
            "Each setting as a point: AUC of {} to the right, test accuracy up. Upper left is better: accurate and not recognisable.",
            attack_title(attack)
        );
        let lowest = report
            .arms
            .iter()
            .filter_map(|a| of(a, attack))
            .map(|a| ends(&a.auc).map_or(a.auc.value, |e| e.0))
            .fold(0.5, f64::min);
        let x = Axis::linear("AUC of the attack", (lowest * 10.0).floor() / 10.0, 1.0);
        let mut panel = Panel::new(title, description, x, Axis::linear("test accuracy", 0.0, 1.0));
        for kind in NOISY {
            let line: Vec<(f64, f64)> = ladder(report, kind)
                .into_iter()
                .filter_map(|(_, a)| of(a, attack).map(|x| (x.auc.value, a.test_accuracy.value)))
                .collect();
            if line.len() > 1 {
                panel.curve(&line, &format!("{} thin", look(kind).0), kind.title());
            }
        }
        for arm in &report.arms {
            let Some(x) = of(arm, attack) else { continue };
            let (class, shape) = look(arm.kind);
            let at = (x.auc.value, arm.test_accuracy.value);
            let tip =
                format!("{}: AUC {}, test accuracy {}", arm.setting, share(at.0), share(at.1));
            panel.point(at, [ends(&x.auc), ends(&arm.test_accuracy)], shape, class, &tip);
            if matches!(arm.kind, ArmKind::NoDp | ArmKind::ClipOnly) {
                panel.word(at, 0.0, 17.0, "middle", &arm.setting);
            }
        }
        panel.draw()
    };
    html! { (kinds_legend(report)) div.panels { @for attack in &attacks(report) { (panel(attack)) } } }
}

/// Softmax confidence of members and non-members, one panel per arm that has one, all on one scale.
pub(super) fn confidence(report: &Report) -> Option<Markup> {
    let found: Vec<(&Arm, &super::Histogram)> = report
        .arms
        .iter()
        .flat_map(|a| {
            a.repeats.iter().take(1).flat_map(move |r| r.confidence.iter().map(move |h| (a, h)))
        })
        .filter(|(_, h)| !h.members.is_empty() && h.members.len() == h.non_members.len())
        .collect();
    let shares = |bins: &[u64]| -> Vec<f64> {
        let total = bins.iter().sum::<u64>().max(1) as f64;
        bins.iter().map(|n| *n as f64 / total).collect()
    };
    found.first()?;
    let top = found
        .iter()
        .flat_map(|(_, h)| shares(&h.members).into_iter().chain(shares(&h.non_members)))
        .fold(0.0, f64::max);
    let panel = |(arm, h): &(&Arm, &super::Histogram)| {
        let law = if h.candidate_law == CandidateLaw::TestLaw {
            " (non-members from the test law)"
        } else {
            ""
        };
        // One setting has a panel for each signal: the title tells them apart.
        let title = format!("{}, {}{law}", arm.setting, h.signal);
        let description = format!(
            "Histogram of the softmax confidence {} on {}: filled bars for members, an outline for non-members.",
            h.signal, arm.setting
        );
        let y = Axis::linear("share of the group", 0.0, (top * 10.0).ceil() / 10.0);
        let mut panel =
            Panel::new(title, description, Axis::linear("softmax confidence", 0.0, 1.0), y);
        let (members, others) = (shares(&h.members), shares(&h.non_members));
        let width = 1.0 / members.len() as f64;
        let mut outline = vec![(0.0, 0.0)];
        for (i, (m, o)) in members.iter().zip(&others).enumerate() {
            let (from, to) = (i as f64 * width, (i + 1) as f64 * width);
            let tip = format!(
                "{} to {}: members {}, non-members {}",
                short((from * 1e3).round() / 1e3),
                short((to * 1e3).round() / 1e3),
                share(*m),
                share(*o)
            );
            panel.area((from, 0.0), (to, *m), "members", &tip);
            outline.extend([(from, *o), (to, *o)]);
        }
        outline.push((1.0, 0.0));
        panel.curve(&outline, "k-no-dp", "non-members");
        panel.draw()
    };
    Some(html! {
        p.hint { "Softmax confidence, first repeat, all panels on one scale. Where the outline leaves the bars, an attacker sees the difference." }
        ul.legend {
            li { span.swatch.members {} "members" }
            li { (key(None, "k-no-dp")) "non-members" }
        }
        div.panels { @for pair in &found { (panel(pair)) } }
    })
}

/// How often members are found again in other repeats.
pub(super) fn stability(table: &RiskTable) -> Markup {
    let total = table.flagged_times.iter().sum::<u64>().max(1) as f64;
    let shares: Vec<f64> = table.flagged_times.iter().map(|n| *n as f64 / total).collect();
    let bins = shares.len().max(1) as f64;
    let title = format!("{}, {}", table.setting, table.attack);
    let description = format!(
        "Share of members by the number of repeats in which {} flags them at false-positive rate {}.",
        table.attack,
        short(table.flag_fpr)
    );
    let x = Axis::linear("repeats in which a member is flagged", -0.5, bins - 0.5);
    let mut panel = Panel::new(title, description, x, Axis::linear("share of members", 0.0, 1.0));
    for (k, s) in shares.iter().enumerate() {
        let at = k as f64;
        panel.area(
            (at - 0.4, 0.0),
            (at + 0.4, *s),
            "members",
            &format!("{k} times: {}", share(*s)),
        );
        panel.word((at, *s), 0.0, -4.0, "middle", &share(*s));
    }
    panel.draw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_read_at_the_top_of_its_vertical_pieces_and_straight_between_corners() {
        let knot = |fpr, tpr| Knot { fpr, tpr };
        let roc = [knot(0.0, 0.0), knot(0.0, 0.2), knot(0.5, 0.6), knot(1.0, 1.0)];
        for (fpr, tpr) in [(0.0, 0.2), (0.25, 0.4), (0.5, 0.6), (0.75, 0.8), (1.0, 1.0)] {
            assert!((tpr_on(&roc, fpr) - tpr).abs() < 1e-12, "{fpr}");
        }
    }
}
