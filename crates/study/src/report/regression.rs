//! The page of a study of regression.
use super::figure::{Axis, Panel, Shape, key};
use super::html::head;
use super::number::{count, share, significant};
use crate::regression::{Cell, Measured, RegressionReport};
use dosimeter_train::regression::{Claim, regression};
use maud::{DOCTYPE, Markup, html};

/// How the series of a panel look; a panel has at most so many.
const LOOKS: [(&str, Shape); 4] = [
    ("k-central", Shape::Circle),
    ("k-local", Shape::Square),
    ("k-clip-only", Shape::Diamond),
    ("k-no-dp", Shape::Triangle),
];

/// Mechanisms that are shown together.
const FAMILIES: [(&str, &[&str]); 4] = [
    ("today's", &["ada_ssp", "gradient_descent", "objective_perturbation", "tukey_em"]),
    ("output perturbation", &["output_perturbation", "rls_out", "rls_out_oracle", "tuned"]),
    (
        "functional mechanism",
        &["functional_mechanism", "functional_mechanism_published", "functional_mechanism_program"],
    ),
    ("selection as in the paper, unsound", &["tuned_paper_mean", "tuned_paper_sum"]),
];

type Value = fn(&Cell) -> Option<Measured>;

/// One figure: a measure over epsilon or over the share of the data, a panel per family.
struct Figure<'a> {
    title: &'a str,
    y: &'static str,
    value: Value,
    /// Levels drawn across, with their words.
    levels: Vec<(f64, &'static str)>,
    /// Over the share of the data instead of epsilon.
    over_share: bool,
}

/// One self-contained page without scripts.
pub(crate) fn regression_page(report: &RegressionReport) -> String {
    let all = Figure {
        title: "Error over epsilon",
        y: "mean squared error",
        value: |c| c.error,
        levels: error_levels(report),
        over_share: false,
    };
    let mut figures = vec![all];
    if let Some(b) = &report.baselines {
        let mut levels = vec![
            (b.prior.mean, "prior"),
            (b.without_model.mean, "other attributes"),
            (b.ideal.mean, "ideal"),
        ];
        let plain = report.cells.iter().find(|c| c.mechanism == "least_squares" && c.share >= 1.0);
        levels.extend(plain.and_then(|c| c.inversion).map(|m| (m.mean, "no noise")));
        figures.push(Figure {
            title: "Inversion accuracy over epsilon, held-out rows",
            y: "attribute guessed right",
            value: |c| c.inversion,
            levels,
            over_share: false,
        });
    }
    if report.fixed_mg.is_some() {
        let risks: [(&str, Value); 3] = [
            ("Relative risk of death over epsilon", |c| c.risks.map(|r| r.mortality)),
            ("Relative risk of a major bleeding over epsilon", |c| c.risks.map(|r| r.haemorrhage)),
            ("Relative risk of a stroke over epsilon", |c| c.risks.map(|r| r.stroke)),
        ];
        for (title, value) in risks {
            let levels = vec![(1.0, "fixed dose")];
            figures.push(Figure { title, y: "relative risk", value, levels, over_share: false });
        }
    }
    if report.cells.iter().any(|c| c.share < 1.0) {
        let levels = error_levels(report);
        let (value, over_share): (Value, bool) = (|c| c.error, true);
        let title = "Error over the share of the data";
        figures.push(Figure { title, y: "mean squared error", value, levels, over_share });
        if report.baselines.is_some() {
            let (title, y) =
                ("Inversion accuracy over the share of the data", "attribute guessed right");
            let value: Value = |c| c.inversion;
            figures.push(Figure { title, y, value, levels: Vec::new(), over_share });
        }
    }
    let terms = format!(
        "Every epsilon is asked for; the table has the proved one (epsilon_upper: pld, replacing one record, delta {}, unit record). Points are means over {} draws, each a split and noise of its own, bars their {} % intervals.",
        significant(report.delta),
        report.draws,
        significant(100.0 * report.confidence)
    );
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(&report.name))
            body { main {
                header {
                    p.eyebrow { "Dosimeter " (env!("CARGO_PKG_VERSION")) " \u{b7} private linear regression" }
                    h1 { (report.name) }
                    p.facts {
                        (report.table) ": " (count(report.rows as u64)) " rows, " (report.features) " features, to predict the " (report.target) ". "
                        (count(report.fitted as u64)) " rows are fitted in a draw, " (count(report.judged as u64)) " others judged. "
                        @if let Some(text) = &report.description { (text) }
                    }
                }
                section aria-label="Summary" { ul.lead { @for line in sentences(report) { li { (line) } } } }
                p.small { (terms) }
                @for figure in &figures { (draw(report, figure)) }
                h2 id="mechanisms" { "Mechanisms" }
                (mechanisms(report))
                h2 id="numbers" { "Numbers" }
                (numbers(report))
            } }
        }
    }
    .into_string()
}

fn error_levels(report: &RegressionReport) -> Vec<(f64, &'static str)> {
    let plain = report.cells.iter().find(|c| c.mechanism == "least_squares" && c.share >= 1.0);
    let plain = plain.and_then(|c| c.error).map(|m| (m.mean, "no noise"));
    std::iter::once((report.variance.mean, "mean of the targets")).chain(plain).collect()
}

/// What the numbers say, most important first.
fn sentences(report: &RegressionReport) -> Vec<String> {
    let mut out = Vec::new();
    let sound = |c: &&Cell| {
        c.share >= 1.0 && matches!(c.claim, Claim::Pure | Claim::Approximate) && c.error.is_some()
    };
    let error = |c: &Cell| c.error.map_or(f64::INFINITY, |m| m.mean);
    let mut epsilons: Vec<f64> =
        report.cells.iter().filter(sound).filter_map(|c| c.epsilon).collect();
    epsilons.sort_unstable_by(f64::total_cmp);
    epsilons.dedup();
    for epsilon in epsilons {
        let at = report.cells.iter().filter(sound).filter(|c| c.epsilon == Some(epsilon));
        if let Some(best) = at.min_by(|a, b| error(a).total_cmp(&error(b))) {
            let better =
                if error(best) < report.variance.mean { "" } else { ", no better than no model" };
            out.push(format!(
                "At epsilon {} the best sound mechanism is {}: mean squared error {} (no model {}){better}.",
                significant(epsilon),
                best.mechanism,
                significant(error(best)),
                significant(report.variance.mean)
            ));
        }
    }
    if let (Some(b), Some(attribute)) = (&report.baselines, &report.attribute) {
        out.push(format!(
            "{attribute} is guessed right without a model in {} (prior) or {} (other attributes) of the rows, and in {} by one who knows the response too.",
            share(b.prior.mean),
            share(b.without_model.mean),
            share(b.ideal.mean)
        ));
    }
    out
}

fn draw(report: &RegressionReport, figure: &Figure<'_>) -> Markup {
    let on_axis = |c: &Cell| {
        let alone = report.cells.iter().any(|o| o.mechanism == c.mechanism && o.share < 1.0);
        if figure.over_share {
            let at = report.cells.iter().find(|o| o.share < 1.0 && o.epsilon.is_some());
            (alone && c.epsilon == at.and_then(|o| o.epsilon)).then_some(c.share)
        } else {
            c.epsilon.filter(|_| c.share >= 1.0)
        }
    };
    let points: Vec<(&Cell, f64, Measured)> =
        report.cells.iter().filter_map(|c| Some((c, on_axis(c)?, (figure.value)(c)?))).collect();
    if points.is_empty() {
        return html! {};
    }
    // Heavy tails would flatten the rest: the axis ends at four times the highest level, and what is above stays on its edge.
    let levels = figure.levels.iter().map(|l| l.0);
    let (mut low, mut high) =
        levels.fold((f64::INFINITY, 0.0_f64), |(l, h), x| (l.min(x), h.max(x)));
    let highest = points.iter().map(|p| p.2.mean).fold(0.0, f64::max);
    low = points.iter().map(|p| p.2.mean).fold(low, f64::min) * 0.9;
    high = if figure.y == "mean squared error" {
        highest.min(4.0 * high.max(low))
    } else {
        highest.max(high)
    } * 1.05;
    let x = if figure.over_share {
        Axis::linear("share of the data", 0.0, 1.0)
    } else {
        let all = || points.iter().map(|p| p.1);
        let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
        Axis::decades("epsilon (nats, logarithmic)", least, most)
    };
    let id = figure.title.to_lowercase().replace([' ', ','], "-");
    html! {
        h2 id=(id) { (figure.title) }
        div.panels {
            @for (family, names) in FAMILIES {
                @if points.iter().any(|p| names.contains(&p.0.mechanism.as_str())) {
                    div {
                        (panel(figure, family, names, &points, x, (low, high)))
                        p.small {
                            @for (name, (class, shape)) in names.iter().zip(LOOKS) {
                                (key(Some(shape), class)) " " (*name) " "
                            }
                        }
                    }
                }
            }
        }
    }
}

fn panel(
    figure: &Figure<'_>,
    family: &str,
    names: &[&str],
    points: &[(&Cell, f64, Measured)],
    x: Axis,
    (low, high): (f64, f64),
) -> Markup {
    let mut panel = Panel::new(
        family.to_owned(),
        format!(
            "{}, {family}: one series per mechanism; the table holds the numbers",
            figure.title
        ),
        x,
        Axis::linear(figure.y, low, high),
    );
    for (level, word) in &figure.levels {
        panel.level(*level, "", word);
    }
    for (name, (class, shape)) in names.iter().zip(LOOKS) {
        let mut series: Vec<_> = points.iter().filter(|p| p.0.mechanism == *name).collect();
        series.sort_by(|a, b| a.1.total_cmp(&b.1));
        let line: Vec<(f64, f64)> = series.iter().map(|p| (p.1, p.2.mean)).collect();
        if line.len() > 1 {
            panel.curve(&line, &format!("{class} thin"), name);
        }
        for (_, at, m) in series {
            let tip = format!("{name} at {}: {}", significant(*at), significant(m.mean));
            panel.point((*at, m.mean), [None, Some((m.low, m.high))], shape, class, &tip);
        }
    }
    panel.draw()
}

fn mechanisms(report: &RegressionReport) -> Markup {
    let mut names: Vec<(&str, Claim)> = Vec::new();
    for cell in &report.cells {
        if !names.iter().any(|n| n.0 == cell.mechanism) {
            names.push((&cell.mechanism, cell.claim));
        }
    }
    html! {
        div.box tabindex="0" role="region" aria-label="Mechanisms" { table {
            thead { tr { th { "name" } th { "promise" } th { "what it does" } th { "source" } } }
            tbody { @for (name, claim) in names { tr {
                th scope="row" { (name) }
                td { (claim.name()) span.small { (claim.meaning()) } }
                td.wide { (regression(name).map_or("rls_out with radius and lambda chosen on the judged rows", |r| r.what())) }
                td.wide { (regression(name).map_or("Wu et al., arXiv:1512.06388", |r| r.source())) }
            } } }
        } }
    }
}

fn numbers(report: &RegressionReport) -> Markup {
    let cell = |m: Option<Measured>| {
        html! { td.n {
            @if let Some(m) = m {
                (significant(m.mean)) span.small { (significant(m.low)) " to " (significant(m.high)) }
            } @else { "\u{2013}" }
        } }
    };
    let number = |x: Option<f64>| x.map_or_else(|| "none".to_owned(), significant);
    html! {
        div.box tabindex="0" role="region" aria-label="Numbers" { table {
            caption { "Means with intervals; the error's median beside them, for a few wild draws move the mean. A mechanism that found no agreement released nothing." }
            thead { tr {
                th { "mechanism" } th { "promise" } th.n { "epsilon" } th.n { "epsilon_upper" } th.n { "share" } th.n { "released" }
                th.n { "error" } th.n { "median" } th.n { "inversion" } th.n { "fitted rows" } th.n { "null" } th.n { "AUC" }
                th.n { "death" } th.n { "bleeding" } th.n { "stroke" }
            } }
            tbody { @for c in &report.cells { tr {
                th scope="row" { (c.mechanism) }
                td { (c.claim.name()) }
                td.n { (number(c.epsilon)) }
                td.n { (number(c.epsilon_upper)) }
                td.n { (significant(c.share)) }
                td.n { (c.released) "/" (report.draws) }
                (cell(c.error))
                td.n { (c.error.map_or_else(|| "\u{2013}".to_owned(), |m| significant(m.median))) }
                (cell(c.inversion)) (cell(c.inversion_fitted)) (cell(c.inversion_null)) (cell(c.membership_auc))
                (cell(c.risks.map(|r| r.mortality))) (cell(c.risks.map(|r| r.haemorrhage))) (cell(c.risks.map(|r| r.stroke)))
            } } }
        } }
    }
}
