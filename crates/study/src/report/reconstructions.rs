//! The section of the page that shows images of records, where a study asks for it.
use super::html::boxed;
use super::number::{count, short, significant};
use super::{Estimate, Report};
use maud::{Markup, html};

/// The error of each arm and, below, its pictures.
pub(super) fn section(report: &Report) -> Markup {
    let table = html! {
        table {
            @if let Some(i) = report.reconstructions.first().and_then(|r| r.gain.interval.as_ref()) {
                caption {
                    "Mean squared error of a pixel, full brightness is 1, and the same as a peak signal-to-noise ratio; mean over "
                    (count(report.reconstructions.first().map_or(0, |r| r.images.into()))) " members of the first repeat, "
                    (short(100.0 * i.confidence)) " % interval, " (i.method) "."
                }
            }
            thead { tr {
                th scope="col" { "Setting" } th.n scope="col" { "Randomized," br; "as it is" } th.n scope="col" { "Brought back" }
                th.n scope="col" { "Mean image" br; "(null)" } th.n scope="col" { "Null less" br; "brought back" }
            } }
            tbody {
                @for r in &report.reconstructions {
                    tr {
                        th scope="row" { (r.setting) }
                        @for error in [&r.randomized_error, &r.reconstructed_error, &r.null_error] { td.n { (cell(error)) span.small { (decibels(error.value)) } } }
                        td.n { (cell(&r.gain)) }
                    }
                }
            }
        }
    };
    let first = report.reconstructions.first();
    html! {
        p.hint {
            "Whoever collects randomized images knows how they were made. Here he also has " (count(first.map_or(0, |r| r.fitted_on.into())))
            " images of the shadow pool, none of them a candidate, and brings each randomized image back by the " (first.map_or("", |r| r.method.as_str()))
            ". What comes back beyond the mean of his images, the null, was given away. A better attacker may see more; the ceiling is the proved epsilon."
        }
        (boxed("Error of images brought back", &table))
        @for r in &report.reconstructions {
            h3 { (r.setting) }
            div.panels.faces {
                figure { (picture(&r.mean_image, "mean of the attacker's images")) figcaption { "Mean image" span.small { "the null" } } }
                @for p in &r.pictures {
                    @let record = format!("record {}, class {}", p.record, p.label);
                    figure {
                        (picture(&p.original, &format!("{record}, as it is")))
                        (picture(&p.randomized, &format!("{record}, randomized")))
                        (picture(&p.reconstructed, &format!("{record}, brought back")))
                        figcaption { "Record " (p.record) span.small { "as it is, randomized, brought back" } }
                    }
                }
            }
        }
    }
}

fn cell(e: &Estimate) -> Markup {
    html! { (significant(e.value)) @if let Some(i) = &e.interval { span.small { (significant(i.low)) " to " (significant(i.high)) } } }
}

/// The ratio of a mean squared error, where there is one.
fn decibels(error: f64) -> String {
    if error > 0.0 { format!("{:.1} dB", -10.0 * error.log10()) } else { "exact".to_owned() }
}

fn picture(png: &str, alt: &str) -> Markup {
    html! { img src={ "data:image/png;base64," (png) } alt=(alt); }
}
