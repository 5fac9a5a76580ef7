//! Axes and marks as inline SVG.
//!
//! Small enough to own: colours come from the page's style sheet, so a figure follows the light or dark
//! page and prints in ink; every figure has a title and a description; every mark can carry a tooltip. See
//! `docs/decisions/0006-figures.md` for what was weighed.
use maud::{Markup, html};

/// Size of a panel in its own units. At 360 units, a phone shows it about one to one.
pub(super) const WIDTH: f64 = 360.0;
pub(super) const HEIGHT: f64 = 262.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;

/// One axis: which values it shows and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    pub(super) label: &'static str,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) log: bool,
}
impl Axis {
    pub(super) const fn linear(label: &'static str, low: f64, high: f64) -> Self {
        Self { label, low, high, log: false }
    }
    /// Whole decades around the values; `low` and `high` must be above 0.
    pub(super) fn decades(label: &'static str, low: f64, high: f64) -> Self {
        let bottom = low.log10().floor();
        let top = high.log10().ceil().max(bottom + 1.0);
        Self { label, low: 10f64.powf(bottom), high: 10f64.powf(top), log: true }
    }
    /// Position in `[0, 1]`, held inside.
    fn at(&self, value: f64) -> f64 {
        let place = |x: f64| if self.log { x.max(f64::MIN_POSITIVE).log10() } else { x };
        let share = (place(value) - place(self.low)) / (place(self.high) - place(self.low));
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
    /// At most about six ticks at round numbers.
    pub(super) fn ticks(&self) -> Vec<f64> {
        if self.log {
            let (bottom, top) = (self.low.log10().round() as i32, self.high.log10().round() as i32);
            let step = ((top - bottom - 1) / 6 + 1).max(1);
            return (bottom..=top).step_by(step as usize).map(|e| 10f64.powi(e)).collect();
        }
        let raw = (self.high - self.low) / 5.0;
        let unit = 10f64.powf(raw.log10().floor());
        let step =
            [1.0, 2.0, 2.5, 5.0, 10.0].map(|m| m * unit).into_iter().find(|s| *s >= raw * 0.999);
        let step = step.unwrap_or(unit);
        let (first, last) = ((self.low / step - 1e-9).ceil(), (self.high / step + 1e-9).floor());
        (first as i64..=last as i64).map(|i| i as f64 * step).collect()
    }
    pub(super) fn tick_label(&self, value: f64) -> String {
        if self.log && !(0.000_99..=99_999.0).contains(&value) {
            let exponent = value.log10().round().to_string();
            let raised = |c| match c {
                '-' => '\u{207b}',
                '1' => '\u{b9}',
                '2' => '\u{b2}',
                '3' => '\u{b3}',
                '0' => '\u{2070}',
                d => char::from_u32(0x2070 + d as u32 - '0' as u32).unwrap_or(d),
            };
            return format!("10{}", exponent.chars().map(raised).collect::<String>());
        }
        let rounded = (value * 1e6).round() / 1e6;
        rounded.to_string().replace('-', "\u{2212}")
    }
}

/// A panel: two axes and what is drawn between them.
#[derive(Debug)]
pub(super) struct Panel {
    pub(super) title: String,
    /// What a person who cannot see the figure needs to know.
    pub(super) description: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    marks: Vec<Markup>,
}

/// A shape that tells kinds apart without colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Circle,
    Square,
    Diamond,
    Triangle,
}

impl Panel {
    pub(super) const fn new(title: String, description: String, x: Axis, y: Axis) -> Self {
        Self { title, description, x, y, marks: Vec::new() }
    }
    pub(super) fn px(&self, x: f64) -> f64 {
        (WIDTH - LEFT - RIGHT).mul_add(self.x.at(x), LEFT)
    }
    pub(super) fn py(&self, y: f64) -> f64 {
        (HEIGHT - TOP - BOTTOM).mul_add(1.0 - self.y.at(y), TOP)
    }

    /// A curve through the points, drawn with the style classes.
    pub(super) fn curve(&mut self, points: &[(f64, f64)], class: &str, tip: &str) {
        use std::fmt::Write as _;
        let mut path = String::new();
        let mut last = None;
        for &(x, y) in points {
            let here = (tenth(self.px(x)), tenth(self.py(y)));
            if last.as_ref() != Some(&here) {
                // Writing to a string cannot fail.
                let _ =
                    write!(path, "{}{} {}", if last.is_none() { "M" } else { "L" }, here.0, here.1);
                last = Some(here);
            }
        }
        self.marks.push(html! { path class={ "curve " (class) } d=(path) { title { (tip) } } });
    }

    /// A point with optional intervals on both axes.
    pub(super) fn point(
        &mut self,
        (x, y): (f64, f64),
        [x_interval, y_interval]: [Option<(f64, f64)>; 2],
        shape: Shape,
        class: &str,
        tip: &str,
    ) {
        let (cx, cy) = (self.px(x), self.py(y));
        let bar = |x1: f64, y1: f64, x2: f64, y2: f64| html! { line.bar x1=(tenth(x1)) y1=(tenth(y1)) x2=(tenth(x2)) y2=(tenth(y2)) {} };
        let bars = html! {
            @if let Some((low, high)) = y_interval { (bar(cx, self.py(low), cx, self.py(high))) }
            @if let Some((low, high)) = x_interval { (bar(self.px(low), cy, self.px(high), cy)) }
        };
        self.marks.push(
            html! { g class={ "point " (class) } { title { (tip) } (bars) (mark(shape, cx, cy)) } },
        );
    }

    /// A level with a word at its right end.
    pub(super) fn level(&mut self, y: f64, class: &str, word: &str) {
        let at = self.py(y);
        let text_at = if at < TOP + 14.0 { at + 12.0 } else { at - 4.0 };
        self.marks.push(html! {
            line class={ "level " (class) } x1=(LEFT) x2=(WIDTH - RIGHT) y1=(tenth(at)) y2=(tenth(at)) {}
            text.word x=(WIDTH - RIGHT - 2.0) y=(tenth(text_at)) text-anchor="end" { (word) }
        });
    }

    /// A word beside a point.
    pub(super) fn word(&mut self, (x, y): (f64, f64), dx: f64, dy: f64, anchor: &str, word: &str) {
        let (x, y) = (tenth(self.px(x) + dx), tenth(self.py(y) + dy));
        self.marks.push(html! { text.word x=(x) y=(y) text-anchor=(anchor) { (word) } });
    }

    /// A filled box between two corners in data units.
    pub(super) fn area(
        &mut self,
        (x1, y1): (f64, f64),
        (x2, y2): (f64, f64),
        class: &str,
        tip: &str,
    ) {
        let (left, right) = (self.px(x1).min(self.px(x2)), self.px(x1).max(self.px(x2)));
        let (top, bottom) = (self.py(y1).min(self.py(y2)), self.py(y1).max(self.py(y2)));
        self.marks.push(html! {
            rect class=(class) x=(tenth(left)) y=(tenth(top)) width=(tenth(right - left)) height=(tenth(bottom - top)) { title { (tip) } }
        });
    }

    /// The panel with its caption, as a `figure`.
    pub(super) fn draw(self) -> Markup {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let grid = html! {
            @for tick in self.x.ticks() {
                line.grid x1=(tenth(self.px(tick))) x2=(tenth(self.px(tick))) y1=(TOP) y2=(bottom) {}
                text.tick x=(tenth(self.px(tick))) y=(bottom + 14.0) text-anchor="middle" { (self.x.tick_label(tick)) }
            }
            @for tick in self.y.ticks() {
                line.grid x1=(LEFT) x2=(right) y1=(tenth(self.py(tick))) y2=(tenth(self.py(tick))) {}
                text.tick x=(LEFT - 6.0) y=(tenth(self.py(tick) + 3.5)) text-anchor="end" { (self.y.tick_label(tick)) }
            }
        };
        let middle = f64::midpoint(TOP, bottom);
        html! {
            figure.panel {
                figcaption { (self.title) }
                svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label={ (self.title) ". " (self.description) } {
                    desc { (self.description) }
                    (grid)
                    line.axis x1=(LEFT) x2=(right) y1=(bottom) y2=(bottom) {}
                    line.axis x1=(LEFT) x2=(LEFT) y1=(TOP) y2=(bottom) {}
                    text.name x=(f64::midpoint(LEFT, right)) y=(HEIGHT - 8.0) text-anchor="middle" { (self.x.label) }
                    text.name x="11" y=(middle) text-anchor="middle" transform={ "rotate(-90 11 " (middle) ")" } { (self.y.label) }
                    @for mark in &self.marks { (mark) }
                }
            }
        }
    }
}

/// One shape around a centre.
pub(super) fn mark(shape: Shape, x: f64, y: f64) -> Markup {
    match shape {
        Shape::Circle => html! { circle.mark cx=(tenth(x)) cy=(tenth(y)) r="4" {} },
        Shape::Square => {
            html! { rect.mark x=(tenth(x - 3.6)) y=(tenth(y - 3.6)) width="7.2" height="7.2" {} }
        }
        Shape::Diamond => polygon(&[(x, y - 5.2), (x + 5.2, y), (x, y + 5.2), (x - 5.2, y)]),
        Shape::Triangle => polygon(&[(x, y - 5.0), (x + 4.8, y + 3.8), (x - 4.8, y + 3.8)]),
    }
}
fn polygon(corners: &[(f64, f64)]) -> Markup {
    let points: Vec<String> =
        corners.iter().map(|(x, y)| format!("{},{}", tenth(*x), tenth(*y))).collect();
    html! { polygon.mark points=(points.join(" ")) {} }
}

/// A sample of a mark and its curve, for a legend.
pub(super) fn key(shape: Option<Shape>, class: &str) -> Markup {
    html! {
        svg.key viewBox="0 0 30 14" aria-hidden="true" {
            g class={ "point " (class) } {
                path class={ "curve " (class) } d="M2 7H28" {}
                @if let Some(shape) = shape { (mark(shape, 15.0, 7.0)) }
            }
        }
    }
}

/// Coordinates to a tenth of a unit: finer cannot be seen and makes the page larger.
pub(super) fn tenth(x: f64) -> String {
    let rounded = (x * 10.0).round() / 10.0;
    // `-0` would be written otherwise.
    if rounded.abs() < 0.05 { "0".into() } else { rounded.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(Axis::linear("", 0.0, 1.0).ticks().len(), 6);
        let log = Axis::decades("", 0.48, 1800.0);
        assert!((log.low - 0.1).abs() < 1e-12 && (log.high - 1e4).abs() < 1e-8);
        let labels: Vec<String> = log.ticks().into_iter().map(|t| log.tick_label(t)).collect();
        assert_eq!(labels, ["0.1", "1", "10", "100", "1000", "10000"]);
        assert_eq!(log.tick_label(1e-5), "10\u{207b}\u{2075}");
    }

    #[test]
    fn values_outside_an_axis_stay_on_its_edge() {
        let axis = Axis::decades("", 1.0, 100.0);
        for (value, place) in [(0.0, 0.0), (1.0, 0.0), (10.0, 0.5), (1e9, 1.0), (f64::NAN, 0.0)] {
            assert!((axis.at(value) - place).abs() < 1e-12, "{value}");
        }
    }
}
