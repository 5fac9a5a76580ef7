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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal::gaussian_log_delta;

    /// Profile of one release with the record against without: closed forms, at any real `epsilon`.
    fn profile(release: Release, epsilon: f64) -> f64 {
        let base = |epsilon: f64, mu: f64| gaussian_log_delta(epsilon, mu).exp();
        match release {
            Release::Gaussian { mu } => base(epsilon, mu),
            Release::SampledGaussian { rate, mu } => {
                let ratio = 1.0 + epsilon.exp_m1() / rate;
                if ratio > 0.0 { rate * base(ratio.ln(), mu) } else { -epsilon.exp_m1() }
            }
            Release::SampledLaplace { rate, epsilon: largest } => {
                let ratio = 1.0 + epsilon.exp_m1() / rate;
                let base = |e: f64| profile(Release::Laplace { epsilon: largest }, e);
                if ratio > 0.0 { rate * base(ratio.ln()) } else { -epsilon.exp_m1() }
            }
            _ if epsilon < 0.0 => -epsilon.exp_m1() + epsilon.exp() * profile(release, -epsilon),
            _ => release.log_delta(epsilon).exp(),
        }
    }

    /// Exact at grid points, also where the grid ends within the law; `1 - e^epsilon + e^epsilon delta(-epsilon)` reversed.
    #[test]
    fn the_profile_at_grid_points_is_the_closed_one_in_both_directions() {
        let two = 2.0_f64.ln();
        let step = two / 50.0;
        for release in [
            Release::Gaussian { mu: 0.8 },
            Release::SampledGaussian { rate: 0.3, mu: 1.5 },
            Release::ReplacedGaussian { rate: 0.3, mu: 1.2 },
            Release::Laplace { epsilon: two },
            Release::SampledLaplace { rate: 0.4, epsilon: two },
            Release::Response { epsilon: two, categories: 5 },
        ] {
            let exact = |reversed: bool, epsilon: f64| {
                if reversed {
                    -epsilon.exp_m1() + epsilon.exp() * profile(release, -epsilon)
                } else {
                    profile(release, epsilon)
                }
            };
            for (reversed, tilt, low, high) in [
                (false, 0.0, -30_i32, 60_i32),
                (false, 1.5, -30, -5),
                (true, 0.0, -30, -5),
                (true, 1.5, -30, 60),
            ] {
                let range = (f64::from(low) * step, f64::from(high) * step);
                let atoms = Atoms::of(release, reversed);
                let lattice = Lattice::of(release, reversed, step, range, tilt, &atoms);
                for k in low..high + 30 {
                    // Above the grid nothing is known but what has no finite loss.
                    let wanted = exact(reversed, f64::from(k.min(high)) * step);
                    let got = lattice.delta(tilt, f64::from(k) * step);
                    assert!(
                        (got - wanted).abs() < 1e-14,
                        "{release:?} {reversed} {tilt} {k}: {got}, not {wanted}"
                    );
                }
                let whole = lattice.delta(tilt, -1e3);
                assert!((whole - 1.0).abs() < 1e-14, "{release:?} {reversed} {tilt}: {whole}");
            }
            let alike = (exact(false, 0.2) - exact(true, 0.2)).abs() < 1e-14;
            assert_eq!(pair::symmetric(release), alike, "{release:?}");
        }
    }

    /// Tilted by 35, a law of unit noise lies around losses of 35.5, where the plain probabilities are below `e^-600`.
    #[test]
    fn a_tilt_into_the_far_tail_keeps_the_profile_there() {
        let release = Release::Gaussian { mu: 1.0 };
        let atoms = Atoms::of(release, false);
        let range = atoms.support(35.0, 1e-14);
        let lattice = Lattice::of(release, false, 0.01, range, 35.0, &atoms);
        for epsilon in [33.0, 35.0, 36.5] {
            let got = lattice.delta(35.0, epsilon).ln();
            let wanted = gaussian_log_delta(epsilon, 1.0);
            assert!((got - wanted).abs() < 1e-2, "{epsilon}: {got}, not {wanted}");
        }
    }

    /// Probabilities 0.2, 0.45, 0.3 of losses 0, ln 2 and 2 ln 2, and 0.05 of an infinite one. By hand the profile is
    /// `0.05 + 0.3 (1 - e^epsilon / 4) + 0.45 (1 - e^epsilon / 2)` up to ln 2 and without the last term above.
    #[test]
    fn epsilon_is_where_the_profile_of_a_law_of_three_losses_comes_down_to_delta() {
        let two = 2.0_f64.ln();
        for tilt in [0.0, 2.0] {
            let mass = vec![0.2, 0.45 * (tilt * two).exp(), 0.3 * (2.0 * tilt * two).exp()];
            let mut law = Lattice { step: two, first: 0, mass, log_norm: 0.0, infinity: 0.05 };
            law.normalise();
            // The moment of what is finite, tilted once more.
            let moment =
                0.2 + 0.45 * 2.0 * (tilt * two).exp() + 0.3 * 4.0 * (2.0 * tilt * two).exp();
            assert!((law.log_moment(1.0) - moment.ln()).abs() < 1e-14, "{tilt}");
            for e in [0.0, 0.3, two, 1.0, 1.3] {
                let (first, second) =
                    ((1.0 - f64::exp(e) / 4.0).max(0.0), (1.0 - f64::exp(e) / 2.0).max(0.0));
                let delta = 0.05 + 0.3 * first + 0.45 * second;
                assert!((law.delta(tilt, e) - delta).abs() < 1e-14, "{tilt} {e}");
                let (epsilon, slope) = law.epsilon(tilt, delta);
                assert!((epsilon - e).abs() < 3e-6, "{tilt}: {epsilon}, not {e}");
                if e > 0.0 && (e - two).abs() > 0.1 {
                    let falls = 0.3 * f64::exp(e) / 4.0
                        + if e < two { 0.45 * f64::exp(e) / 2.0 } else { 0.0 };
                    assert!(
                        (slope * (delta - 0.05) / falls - 1.0).abs() < 1e-5,
                        "{tilt} {e}: {slope}"
                    );
                }
            }
            assert!(
                law.epsilon(tilt, 0.05).0.is_infinite() && law.epsilon(tilt, 0.04).0.is_infinite()
            );
            assert!(law.epsilon(tilt, 0.9).0.abs() < 1e-300);
        }
    }
}
