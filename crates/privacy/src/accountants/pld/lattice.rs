//! Losses on a grid: connect the dots.
use super::atoms::Atoms;
use super::pair;
use crate::accountants::releases::Release;

/// Cells of so many steps are used where the tilted law has at most so much mass beyond.
const WIDE_CELLS: [(i64, f64); 2] = [(64, 1e-8), (8, 1e-5)];

/// A tilted law on the grid `step * (first + i)`, and what has no finite loss.
///
/// The probability of grid point `i` is `mass[i] * e^(log_norm - tilt * loss)`; `mass` sums to about 1.
#[derive(Debug, Clone)]
pub(super) struct Lattice {
    pub(super) step: f64,
    pub(super) first: i64,
    pub(super) mass: Vec<f64>,
    pub(super) log_norm: f64,
    /// Probability (not tilted) of an infinite loss.
    pub(super) infinity: f64,
}

impl Lattice {
    /// One release on a grid from about `low` to about `high`.
    ///
    /// The mass of each cell goes to its ends so that its probability under both distributions is kept. The profile is
    /// then exact at grid points and linear in `e^epsilon` between, which is above the true, convex one. Mass below the
    /// grid moves up to its first point; mass above it goes to the last point and infinity.
    pub(super) fn of(
        release: Release,
        reversed: bool,
        step: f64,
        (low, high): (f64, f64),
        tilt: f64,
        atoms: &Atoms,
    ) -> Self {
        let log_norm = atoms.log_moment(tilt);
        // In the tails wider cells do: their excess grows with the square of the width times the tilted mass in them.
        let wide = WIDE_CELLS.map(|(cells, mass)| {
            (cells, atoms.support(tilt, mass).0, atoms.upper_support(tilt, mass))
        });
        let first = (low / step).floor() as i64;
        let last = ((high / step).ceil() as i64).max(first + 1);
        let cells = (last - first) as usize;
        let mut plain = vec![0.0; cells + 1];
        let at = |k: i64| k as f64 * step;
        // Steps that the cell from `k` (in forward losses) takes, at most up to `end`.
        let cell_width = |k: i64, end: i64| {
            let fits = wide.iter().find(|&&(cells, low, high)| {
                let (a, b) = if reversed { (-(k + cells), -k) } else { (k, k + cells) };
                at(b) <= low || at(a) >= high
            });
            fits.map_or(1, |&(cells, ..)| cells).min(end - k)
        };
        let infinity;
        if reversed {
            // The loss changes sign and the two probabilities their place: the dots stay where they are.
            let (bottom, top) = (-last, -first);
            let mut from = pair::boundary(release, at(bottom));
            let (p, q) = pair::below(release, from);
            // Forward losses below the grid are reversed losses above it.
            let kept = (p * at(last).exp()).min(q);
            plain[cells] += kept;
            infinity = q - kept;
            let mut k = bottom;
            while k < top {
                let width = cell_width(k, top);
                let to = pair::boundary(release, at(k + width));
                let cell = pair::cell(release, at(k), from, to);
                let upper = (cell.excess / -(-at(width)).exp_m1()).clamp(0.0, cell.p);
                // Probability without the record of the two ends.
                let upper_q = (upper * (-at(k + width)).exp()).min(cell.q);
                let end = (-(k + width) - first) as usize;
                plain[end] += upper_q;
                plain[end + width as usize] += cell.q - upper_q;
                from = to;
                k += width;
            }
            plain[0] += pair::above(release, from).1;
        } else {
            let mut from = pair::boundary(release, at(first));
            plain[0] += pair::below(release, from).0;
            let mut k = first;
            while k < last {
                let width = cell_width(k, last);
                let to = pair::boundary(release, at(k + width));
                let cell = pair::cell(release, at(k), from, to);
                let upper = (cell.excess / -(-at(width)).exp_m1()).clamp(0.0, cell.p);
                let i = (k - first) as usize;
                plain[i] += cell.p - upper;
                plain[i + width as usize] += upper;
                from = to;
                k += width;
            }
            let (p, q) = pair::above(release, from);
            let kept = (q * at(last).exp()).min(p);
            plain[cells] += kept;
            infinity = p - kept;
        }
        for (i, mass) in plain.iter_mut().enumerate() {
            if *mass > 0.0 {
                let exponent = tilt * at(first + i as i64) - log_norm;
                *mass = if exponent < 600.0 {
                    *mass * exponent.exp()
                } else {
                    (mass.ln() + exponent).exp()
                };
            }
        }
        let mut lattice = Self { step, first, mass: plain, log_norm, infinity };
        lattice.normalise();
        lattice
    }

    pub(super) fn normalise(&mut self) {
        let sum: f64 = self.mass.iter().sum();
        self.log_norm += sum.ln();
        let factor = sum.recip();
        self.mass.iter_mut().for_each(|m| *m *= factor);
    }

    /// The same law on a grid `ratio` times as coarse, by the same rule.
    pub(super) fn coarsen(&self, ratio: i64, tilt: f64) -> Self {
        let step = self.step * ratio as f64;
        let first = self.first.div_euclid(ratio);
        let last = (self.first + self.mass.len() as i64 - 1).div_euclid(ratio) + 1;
        let mut mass = vec![0.0; (last - first + 1) as usize];
        let shrink = -(-step).exp_m1();
        // What goes to the lower and the upper end, by the distance from the lower one.
        let shares: Vec<(f64, f64)> = (0..ratio)
            .map(|fine| {
                let above = self.step * fine as f64;
                let upper = (-(-above).exp_m1() / shrink).min(1.0);
                ((1.0 - upper) * (-tilt * above).exp(), upper * (tilt * (step - above)).exp())
            })
            .collect();
        let (mut k, mut fine) = (0, self.first.rem_euclid(ratio) as usize);
        for &m in &self.mass {
            let (lower, upper) = shares[fine];
            mass[k] += m * lower;
            mass[k + 1] += m * upper;
            fine += 1;
            if fine == shares.len() {
                (k, fine) = (k + 1, 0);
            }
        }
        let mut coarse =
            Self { step, first, mass, log_norm: self.log_norm, infinity: self.infinity };
        coarse.normalise();
        coarse
    }

    /// `ln E[e^((tilt + extra) * loss)]` of the finite part, from the tilted masses.
    pub(super) fn log_moment(&self, extra: f64) -> f64 {
        let reference = extra * self.step * (self.first + self.mass.len() as i64 / 2) as f64;
        let mut sum = 0.0;
        for (i, m) in self.mass.iter().enumerate() {
            if *m > 0.0 {
                sum += m * (extra * self.step * (self.first + i as i64) as f64 - reference).exp();
            }
        }
        self.log_norm + reference + sum.ln()
    }

    /// Smallest `epsilon >= 0` at which the profile is at most `delta`, and the slope `-d ln delta / d epsilon` there.
    pub(super) fn epsilon(&self, tilt: f64, delta: f64) -> (f64, f64) {
        // In units of delta: nothing underflows where it matters.
        let target = 1.0 - 1e-7 - self.infinity / delta;
        if target <= 0.0 || target.is_nan() {
            return (f64::INFINITY, tilt.max(1.0));
        }
        let log_unit = self.log_norm - delta.ln();
        let decay = (-self.step).exp();
        let rise = -(-self.step).exp_m1();
        let (mut profile, mut weight) = (0.0, 0.0);
        let loss = |i: usize| (self.first + i as i64) as f64 * self.step;
        for i in (0..self.mass.len()).rev() {
            // `profile` at loss(i), `weight` = sum over higher losses l of p(l) e^(loss(i) - l).
            if profile > target {
                break;
            }
            let here = loss(i);
            let mass = if self.mass[i] > 0.0 {
                (self.mass[i].ln() + log_unit - tilt * here).exp()
            } else {
                0.0
            };
            let next_profile = profile + rise * (weight + mass);
            if next_profile >= target || i == 0 {
                // Between loss(i) - step and loss(i) the profile is linear in e^epsilon.
                let total = weight + mass;
                let up = (target - profile) / total;
                // profile(e) = profile + total (1 - e^(e - here))
                let epsilon = if up >= 1.0 { f64::NEG_INFINITY } else { here + (-up).ln_1p() };
                // Below the grid nothing is known.
                let epsilon = epsilon.max(loss(0)).max(0.0);
                return (epsilon, total * (epsilon - here).exp() / target);
            }
            profile = next_profile;
            weight = (weight + mass) * decay;
            if here <= 0.0 {
                return (0.0, weight / target.max(profile));
            }
        }
        (loss(0).max(0.0), tilt.max(1.0))
    }

    /// The profile at `epsilon`.
    pub(super) fn delta(&self, tilt: f64, epsilon: f64) -> f64 {
        let mut delta = self.infinity;
        for (i, &m) in self.mass.iter().enumerate().rev() {
            let loss = (self.first + i as i64) as f64 * self.step;
            if loss <= epsilon {
                break;
            }
            if m > 0.0 {
                delta += (m.ln() + self.log_norm - tilt * loss).exp() * -(epsilon - loss).exp_m1();
            }
        }
        delta
    }
}
