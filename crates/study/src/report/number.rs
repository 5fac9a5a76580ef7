//! Numbers as people read them.
use super::{EpsilonLower, EpsilonUpper, Estimate};
use dosimeter_privacy::Epsilon;

/// A share in `[0, 1]`, three decimals, a true minus sign.
pub(super) fn share(x: f64) -> String {
    format!("{x:.3}").replace('-', "\u{2212}")
}

/// A difference of shares, with its sign.
pub(super) fn signed(x: f64) -> String {
    format!("{x:+.3}").replace('-', "\u{2212}")
}

/// Three significant digits, never scientific between 0.001 and 99999.
pub(super) fn significant(x: f64) -> String {
    written(x, f64::round)
}

/// A proved bound: rounded up, so that what is printed holds too.
pub(super) fn at_most(x: Epsilon) -> String {
    if x.is_unbounded() { "unbounded".into() } else { written(x.get(), up) }
}

/// A measured bound: rounded down, so that what is printed was measured.
pub(super) fn at_least(x: Epsilon) -> String {
    if x.is_unbounded() { "unbounded".into() } else { written(x.get(), down) }
}

/// From here on a number has no decimals that matter, and soon more digits than a line.
const HUGE: f64 = 1e9;

/// A number as people write it, exactly, and never with hundreds of digits.
#[must_use]
pub fn plain(x: f64) -> String {
    if x == 0.0 || (1e-4..1e6).contains(&x.abs()) { x.to_string() } else { format!("{x:e}") }
}

/// A proved bound with three decimals, as lines of text show it: rounded up.
#[must_use]
pub fn thousandths_up(x: f64) -> String {
    if x >= HUGE { plain(x) } else { format!("{:.3}", up(x * 1e3) / 1e3) }
}

/// A measured bound with three decimals: rounded down.
#[must_use]
pub fn thousandths_down(x: f64) -> String {
    if x >= HUGE { plain(x) } else { format!("{:.3}", down(x * 1e3) / 1e3) }
}

/// Which way a number goes as it loses digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// What is proved: what is written holds too.
    Up,
    /// What is measured: what is written was measured too.
    Down,
    /// What is an estimate.
    Nearest,
}

/// A number that a sentence compares: `least` decimals, or as many more as it takes until what is written keeps or breaks
/// `condition` as the number itself does.
pub(crate) fn told(
    x: f64,
    least: usize,
    rounding: Rounding,
    condition: impl Fn(f64) -> bool,
) -> String {
    // The tables forgive more; here so much may decide.
    const FORGIVEN: f64 = 1e-12;
    if !x.is_finite() {
        return "unbounded".to_owned();
    }
    if x.abs() < HUGE {
        for decimals in least..=9 {
            let scale = (0..decimals).fold(1.0, |scale, _| 10.0 * scale);
            let shown = match rounding {
                Rounding::Up => (x * scale * (1.0 - FORGIVEN)).ceil(),
                Rounding::Down => (x * scale * (1.0 + FORGIVEN)).floor(),
                Rounding::Nearest => (x * scale).round(),
            } / scale;
            if condition(shown) == condition(x) {
                return format!("{shown:.decimals$}");
            }
        }
    }
    plain(x)
}

/// Up to a whole number, forgiving one part in 10^9: 300 in floating point is 300.
fn up(x: f64) -> f64 {
    (x * (1.0 - 1e-9)).ceil()
}

fn down(x: f64) -> f64 {
    (x * (1.0 + 1e-9)).floor()
}

fn written(x: f64, whole: fn(f64) -> f64) -> String {
    let size = x.abs();
    let text = if size == 0.0 {
        "0".to_owned()
    } else if (1e-3..1e5).contains(&size) {
        let decimals: usize = match size {
            100.0.. => 0,
            10.0.. => 1,
            1.0.. => 2,
            _ => 3,
        };
        let scale = [1.0, 10.0, 100.0, 1000.0][decimals];
        format!("{:.decimals$}", whole(x * scale) / scale)
    } else {
        let scale = 10f64.powf(size.log10().floor() - 1.0);
        format!("{:.1e}", whole(x / scale) * scale)
    };
    text.replace('-', "\u{2212}")
}

/// `delta` and false-positive rates: as short as they can be written.
pub(super) fn short(x: f64) -> String {
    if x != 0.0 && x.abs() < 1e-3 {
        // A tenth of 1e-5 has 17 digits in floating point.
        let x: f64 = format!("{x:.12e}").parse().unwrap_or(x);
        format!("{x:e}").replace('-', "\u{2212}")
    } else {
        x.to_string()
    }
}

/// Whole numbers with narrow spaces, which do not break, between thousands.
pub(super) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// `0.861 (0.848 to 0.874)`.
pub(super) fn estimate(x: &Estimate) -> String {
    match &x.interval {
        Some(i) => format!("{} ({} to {})", share(x.value), share(i.low), share(i.high)),
        None => share(x.value),
    }
}

/// The conditions under which a proved number is one.
pub(crate) fn terms(u: &EpsilonUpper) -> String {
    format!(
        "delta {}, {}, per {}, {}",
        short(u.delta),
        relation(u.relation),
        unit(u.unit),
        u.accountant
    )
}

/// Likewise for a measured one.
pub(crate) fn terms_lower(l: &EpsilonLower) -> String {
    format!(
        "delta {}, {}, per {}, {}, {} % confidence",
        short(l.delta),
        relation(l.relation),
        unit(l.unit),
        l.bound,
        short(100.0 * l.confidence)
    )
}

pub(super) const fn relation(r: dosimeter_privacy::Relation) -> &'static str {
    match r {
        dosimeter_privacy::Relation::AddRemove => "add-remove",
        dosimeter_privacy::Relation::ReplaceOne => "replace-one",
        dosimeter_privacy::Relation::Local => "local",
    }
}
pub(super) fn unit(u: dosimeter_privacy::Unit) -> String {
    match u {
        dosimeter_privacy::Unit::Record => "record".to_owned(),
        dosimeter_privacy::Unit::FeatureVector => "feature vector".to_owned(),
        dosimeter_privacy::Unit::Edge => "edge".to_owned(),
        dosimeter_privacy::Unit::Pixels(1) => "pixel".to_owned(),
        dosimeter_privacy::Unit::Pixels(many) => format!("{many} pixels"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits_and_a_true_minus() {
        let cases = [
            (0.0, "0"),
            (0.0452, "0.045"),
            (4.5449, "4.54"),
            (87.75, "87.8"),
            (1800.0, "1800"),
            (1.5e7, "1.5e7"),
            (-0.25, "\u{2212}0.250"),
        ];
        for (x, text) in cases {
            assert_eq!(significant(x), text);
        }
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(count(999), "999");
        assert_eq!(short(1e-5), "1e\u{2212}5");
        assert_eq!(short(0.01), "0.01");
    }

    #[test]
    fn no_number_takes_more_than_a_line() {
        for (x, exact, up, down) in [
            (0.0, "0", "0.000", "0.000"),
            (0.5, "0.5", "0.500", "0.500"),
            (999_999.5, "999999.5", "999999.500", "999999.500"),
            (1e300, "1e300", "1e300", "1e300"),
            (1e-300, "1e-300", "0.001", "0.000"),
        ] {
            assert_eq!(
                [plain(x), thousandths_up(x), thousandths_down(x)],
                [exact, up, down],
                "{x:e}"
            );
        }
    }

    #[test]
    fn a_number_that_is_compared_keeps_its_side_and_has_the_digits_that_show_it() {
        for (x, rounding, limit, text) in [
            (0.986_45, Rounding::Up, 0.9864, "0.9865"),
            (0.986_45, Rounding::Up, 0.986_45, "0.98645"),
            (0.986_449_9, Rounding::Up, 0.986_45, "0.98645"),
            (0.986_45, Rounding::Down, 0.9864, "0.98645"),
            (0.986_45, Rounding::Down, 2.0, "0.9864"),
            (0.5, Rounding::Nearest, 0.5, "0.5000"),
            (0.700_01, Rounding::Nearest, 0.7, "0.70001"),
            (6.000_000_001, Rounding::Up, 6.0, "6.0001"),
            (6.000_000_001, Rounding::Down, 6.0, "6.000000001"),
            (1e-300, Rounding::Down, 0.0, "1e-300"),
            (f64::INFINITY, Rounding::Up, 1.0, "unbounded"),
        ] {
            assert_eq!(told(x, 4, rounding, |y| y > limit), text, "{x} {rounding:?} {limit}");
        }
    }

    #[test]
    fn what_is_proved_is_rounded_up_and_what_is_measured_down() {
        for (x, most, least) in [
            (0.3165, "0.317", "0.316"),
            (0.349, "0.349", "0.349"),
            (4.1441, "4.15", "4.14"),
            (69.299, "69.3", "69.2"),
            (300.0, "300", "300"),
            (1.23e-5, "1.3e\u{2212}5", "1.2e\u{2212}5"),
            (0.0, "0", "0"),
        ] {
            let epsilon = Epsilon::new(x).unwrap();
            assert_eq!(
                (at_most(epsilon).as_str(), at_least(epsilon).as_str()),
                (most, least),
                "{x}"
            );
        }
        assert_eq!(at_most(Epsilon::UNBOUNDED), "unbounded");
    }
}
