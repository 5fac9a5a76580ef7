//! Composition of many releases.
use super::atoms::Atoms;
use super::lattice::Lattice;
use crate::Epsilon;
use crate::accountants::releases::Release;
use realfft::RealFftPlanner;
use realfft::num_complex::Complex64;
use std::cell::RefCell;

/// Relative excess of epsilon that each stage of the composition may cause.
const TOLERANCE: f64 = 4e-5;
/// The same for the first pass, whose grid is five times as coarse: it finds tilt and slope for the pass that counts, and
/// often shows by itself that this direction is not the one that decides.
const SCOUTING: f64 = 1e-3;
/// Transforms up to this length need no second stage.
const ONE_STAGE: f64 = 32_768.0;
/// Longest transform: bounds memory to about 50 MB whatever is asked. Beyond, the grid gets coarser: looser, still a bound.
const LONGEST: f64 = 1_048_576.0;
/// Tilted mass that may lie outside a window, relative to what decides.
const OUTSIDE: f64 = 1e-12;
/// Plain mass above a window that may be added to delta, relative to delta.
const ADDED: f64 = 1e-5;

/// Candidates for the tilt: eight to the decade.
fn tilts() -> impl Iterator<Item = f64> {
    (-16..=48_i32).map(|k| 10.0_f64.powf(f64::from(k) / 8.0))
}

/// Epsilon of all releases in one direction at `delta` in `(0, 1)`.
/// Nothing at or below `floor` is of interest: then `floor` comes back.
pub(super) fn epsilon(list: &[(Release, u64)], reversed: bool, delta: f64, floor: f64) -> f64 {
    let mut plan = Plan::new(list, reversed, delta);
    // The Rényi bound alone may settle it.
    if plan.proved <= floor {
        return floor;
    }
    let proved = plan.proved;
    let mut best = f64::INFINITY;
    plan.tolerance = SCOUTING;
    if let Some((found, slope)) = plan.compose().map(|l| l.epsilon(plan.tilt, delta)) {
        // A bound like every other: below the other direction's epsilon, nothing more is to be known.
        if found <= floor {
            return floor;
        }
        if found.is_finite() {
            best = found;
            plan.tilt = plan.saddle(best.max(1e-12));
            (plan.guess, plan.slope) = (best.max(1e-12), slope);
        }
    }
    plan.tolerance = TOLERANCE;
    for _ in 0..6 {
        let Some(lattice) = plan.compose() else { break };
        let (found, slope) = lattice.epsilon(plan.tilt, delta);
        // Each pass is a bound of its own. The next one is better if the guesses behind this one were far off: the excess
        // of a stage is count (slope + 1) step^2 / 12, and rounding errors are small only near the loss that the tilt aims at.
        let gain = best - found;
        best = best.min(found);
        let tilt = plan.saddle(best.max(1e-12));
        let step_is_fine = found / (slope + 1.0) >= 0.6 * plan.guess / (plan.slope + 1.0);
        let tilt_is_near = tilt <= 1.5 * plan.tilt && plan.tilt <= 1.5 * tilt;
        if best == 0.0 || (step_is_fine && tilt_is_near) || gain < 1e-5 * best {
            break;
        }
        if best.is_finite() {
            plan.guess = best.max(1e-12);
            plan.slope = slope;
        }
        plan.tilt = tilt;
    }
    // Where numbers leave the range of `f64` the Rényi bound is left.
    best.min(proved)
}

/// Delta of all releases in one direction at each of `epsilons`.
pub(super) fn profile(list: &[(Release, u64)], reversed: bool, epsilons: &[Epsilon]) -> Vec<f64> {
    let mut plan = Plan::new(list, reversed, 1e-3);
    // A small tilt serves all epsilons alike; the window then holds all but 1e-12.
    plan.tilt = 1e-3;
    let lattice = plan.compose();
    epsilons
        .iter()
        .map(|e| match &lattice {
            Some(lattice) if !e.is_unbounded() => lattice.delta(plan.tilt, e.get()).min(1.0),
            Some(_) => 0.0,
            None => 1.0,
        })
        .collect()
}

/// Where a sum lies.
#[derive(Debug, Clone, Copy)]
struct Window {
    low: f64,
    high: f64,
    /// Extra tilt at which Chernoff's bound on what lies above is small.
    exponent: f64,
    /// Logarithm of what the bound should come to.
    log_plain: f64,
}
impl Window {
    fn width(self) -> f64 {
        self.high - self.low
    }
}

struct Part {
    release: Release,
    count: u64,
    atoms: Atoms,
}

/// What is to be composed, and the choices made for it.
struct Plan {
    parts: Vec<Part>,
    reversed: bool,
    delta: f64,
    /// Exponent of the tilt; near the slope of `-ln delta` over epsilon.
    tilt: f64,
    /// What epsilon is about.
    guess: f64,
    /// Rényi's bound on epsilon: loose, but it always exists.
    proved: f64,
    /// What `-d ln delta / d epsilon` is about.
    slope: f64,
    /// Relative excess of epsilon that each stage may cause.
    tolerance: f64,
}

impl Plan {
    fn new(list: &[(Release, u64)], reversed: bool, delta: f64) -> Self {
        let total: f64 = list.iter().map(|(_, n)| *n as f64).sum();
        let parts: Vec<Part> = list
            .iter()
            .map(|&(release, count)| {
                let mut atoms = Atoms::of(release, reversed);
                atoms.truncate(ADDED * delta / total);
                Part { release, count, atoms }
            })
            .collect();
        let (guess, tolerance) = (f64::INFINITY, TOLERANCE);
        let mut plan =
            Self { parts, reversed, delta, tilt: 1.0, guess, proved: guess, slope: 1.0, tolerance };
        // The Rényi bound and its order: delta <= M(t) e^(-t epsilon) t^t / (1 + t)^(1 + t).
        for t in tilts() {
            let moment = plan.log_moment(t);
            let bound = (moment - delta.ln() + t * t.ln() - (1.0 + t) * t.ln_1p()) / t;
            if bound < plan.guess {
                (plan.guess, plan.tilt) = (bound, t);
                // Room for what truncation leaves out (far below 1e-4 of delta) and for the rounding of the moment.
                plan.proved = bound + (1.1e-4 + 1e-6 * moment.abs()) / t;
            }
        }
        plan.guess = plan.guess.max(1e-9);
        plan.slope = plan.tilt;
        plan
    }

    /// The tilt that makes `epsilon` the mean of the composed law, or nearly.
    fn saddle(&self, epsilon: f64) -> f64 {
        let height = |t: f64| self.log_moment(t) - t * epsilon;
        tilts()
            .map(|t| (t, height(t)))
            .fold((1.0, f64::INFINITY), |a, b| if b.1 < a.1 { b } else { a })
            .0
    }

    fn log_moment(&self, tilt: f64) -> f64 {
        self.parts.iter().map(|p| p.count as f64 * p.atoms.log_moment(tilt)).sum()
    }

    /// Largest grid step whose excess over `count` releases is within tolerance.
    fn step(&self, count: f64) -> f64 {
        (12.0 * self.tolerance * self.guess / (count * (self.slope + 1.0))).sqrt()
    }

    /// The composed law, or `None` if numbers leave the range of `f64`.
    fn compose(&mut self) -> Option<Lattice> {
        if !self.guess.is_finite() || !self.tilt.is_finite() {
            return None;
        }
        let total: f64 = self.parts.iter().map(|p| p.count as f64).sum();
        let all: Vec<(&Atoms, f64)> =
            self.parts.iter().map(|p| (&p.atoms, p.count as f64)).collect();
        let window = self.window(&all, 1.0);
        if !window.width().is_finite() {
            return None;
        }
        if let Some(step) = self.common_step() {
            // Randomized response at one epsilon lives on a grid of its own.
            let lattices = self.lattices(step, total)?;
            let parts: Vec<(&Lattice, u64)> =
                lattices.iter().zip(&self.parts).map(|(l, p)| (l, p.count)).collect();
            return convolve(&parts, self.tilt, window);
        }
        let step = self.step(total);
        if window.width() / step <= ONE_STAGE {
            let step = self.align(step);
            let lattices = self.lattices(step, total)?;
            let parts: Vec<(&Lattice, u64)> =
                lattices.iter().zip(&self.parts).map(|(l, p)| (l, p.count)).collect();
            return convolve(&parts, self.tilt, window);
        }
        self.two_stages(window, total)
    }

    /// First each release `f` times on a grid fine enough for the whole, then the results on a grid fine enough for the
    /// few that are left: the law of a sum of `f` is `sqrt(f)` times as wide.
    fn two_stages(&mut self, window: Window, total: f64) -> Option<Lattice> {
        let mut fine = self.step(total);
        let mut groups = Vec::new();
        let mut widest = 0.0_f64;
        for part in &self.parts {
            let group = if part.count < 16 { 1 } else { (part.count as f64).sqrt().round() as u64 };
            let times = part.count / group;
            let inner = self.window(&[(&part.atoms, group as f64)], times as f64);
            widest = widest.max(inner.width());
            groups.push((group, times, part.count % group, inner));
        }
        if widest / fine > LONGEST {
            fine = widest / LONGEST;
        }
        let left: u64 = groups.iter().map(|(_, times, rest, _)| times + rest).sum();
        // A whole multiple: few distances between the two grids, so few exponentials.
        let ratio = (self.step(left as f64) / fine).floor().max(1.0);
        let ratio = ratio.max((window.width() / LONGEST / fine).ceil());
        if ratio >= 1e12 {
            return None;
        }
        let (coarse, ratio) = (fine * ratio, ratio as i64);
        let mut lattices = Vec::new();
        for (part, &(group, times, rest, inner)) in self.parts.iter().zip(&groups) {
            if group == 1 {
                lattices.push((self.lattice(part, coarse, total)?, times));
                continue;
            }
            let one = self.lattice(part, fine, total)?;
            let many = convolve(&[(&one, group)], self.tilt, inner)?;
            lattices.push((many.coarsen(ratio, self.tilt), times));
            if rest > 0 {
                lattices.push((one.coarsen(ratio, self.tilt), rest));
            }
        }
        let parts: Vec<(&Lattice, u64)> = lattices.iter().map(|(l, n)| (l, *n)).collect();
        convolve(&parts, self.tilt, window)
    }

    /// The grid step shared by all releases if each has losses -e, 0 and e only.
    fn common_step(&self) -> Option<f64> {
        let mut steps = self.parts.iter().map(|p| match p.release {
            Release::Response { epsilon, .. } => Some(epsilon),
            _ => None,
        });
        let first = steps.next().flatten()?;
        steps.all(|s| s.is_some_and(|s| s.total_cmp(&first).is_eq())).then_some(first)
    }

    /// A step at most `step` that puts the largest loss of a bounded release on the grid: its point mass then stays whole.
    fn align(&self, step: f64) -> f64 {
        let bounded = self.parts.iter().map(|p| p.release.pure_epsilon()).find(|e| e.is_finite());
        bounded.map_or(step, |largest| largest / (largest / step).ceil())
    }

    fn lattices(&self, step: f64, total: f64) -> Option<Vec<Lattice>> {
        self.parts.iter().map(|part| self.lattice(part, step, total)).collect()
    }

    fn lattice(&self, part: &Part, step: f64, total: f64) -> Option<Lattice> {
        let (low, high) = part.atoms.support(self.tilt, OUTSIDE / total);
        let cells = (high - low) / step;
        if cells.is_nan() || cells >= 64.0 * LONGEST || !(high / step).is_finite() {
            return None;
        }
        let (tilt, range) = (self.tilt, (low, high));
        let lattice = Lattice::of(part.release, self.reversed, step, range, tilt, &part.atoms);
        lattice.log_norm.is_finite().then_some(lattice)
    }

    /// Where the sum of `parts` lies, but for the tolerated masses, when it will be repeated `repeated` times. Chernoff.
    fn window(&self, parts: &[(&Atoms, f64)], repeated: f64) -> Window {
        let moment = |t: f64| parts.iter().map(|(a, n)| n * a.log_moment(t)).sum::<f64>();
        let here = moment(self.tilt);
        let (mut mean, mut variance) = (0.0, 0.0);
        for (atoms, count) in parts {
            let (m, v) = atoms.tilted_moments(self.tilt);
            mean += count * m;
            variance += count * v;
        }
        let depth = (repeated / OUTSIDE).ln();
        let log_plain = (ADDED * self.delta / repeated).ln();
        let start = (2.0 * depth / variance.max(1e-300)).sqrt();
        let (mut low, mut high, mut exponent) = (f64::NEG_INFINITY, f64::INFINITY, start);
        for k in -3..=14_i32 {
            let t = start * 2.0_f64.powf(-0.5 * f64::from(k));
            let up = moment(self.tilt + t);
            let tilted = (up - here + depth) / t;
            let plain = (up - log_plain) / (self.tilt + t);
            if tilted.max(plain) < high {
                (high, exponent) = (tilted.max(plain), t);
            }
            low = low.max((here - moment(self.tilt - t) - depth) / t);
        }
        // Bounded releases end where they end.
        high = high.min(parts.iter().map(|(a, n)| n * a.largest()).sum());
        Window { low: low.min(mean), high: high.max(mean), exponent, log_plain }
    }
}

thread_local! {
    static PLANNER: RefCell<RealFftPlanner<f64>> = RefCell::new(RealFftPlanner::new());
}

/// Smallest even product of a power of two and 1, 3, 5 or 9 that is at least `least`.
fn transform_length(least: usize) -> usize {
    let power = least.max(32).next_power_of_two();
    let shorter = [power / 16 * 9, power / 8 * 5, power / 4 * 3];
    shorter.into_iter().find(|length| *length >= least).unwrap_or(power)
}

/// The law of `count` copies of each lattice, all added up; grids must be equal.
///
/// The transform is as long as the window: what lies outside wraps around to the wrong loss. From below that is an
/// addition. From above it is an addition too, and the mass it should have been is bounded and put at infinity.
fn convolve(parts: &[(&Lattice, u64)], tilt: f64, window: Window) -> Option<Lattice> {
    let step = parts.first()?.0.step;
    let low = (window.low / step).floor();
    let least = (window.high / step).ceil() - low + 2.0;
    if least.is_nan() || least > 4.0 * LONGEST || low.abs() > 1e15 {
        return None;
    }
    let length = transform_length(least as usize);
    let low = low as i64;
    let (forward, inverse) =
        PLANNER.with_borrow_mut(|p| (p.plan_fft_forward(length), p.plan_fft_inverse(length)));
    let mut spectrum = vec![Complex64::new(1.0, 0.0); length / 2 + 1];
    let mut buffer = vec![0.0; length];
    let mut transformed = forward.make_output_vec();
    let mut scratch = forward.make_scratch_vec();
    let (mut log_norm, mut infinity, mut plain_top) = (0.0, 0.0, f64::INFINITY);
    for (lattice, count) in parts {
        buffer.fill(0.0);
        let start = lattice.first.rem_euclid(length as i64) as usize;
        for (i, m) in lattice.mass.iter().enumerate() {
            buffer[(start + i) % length] += m;
        }
        forward.process_with_scratch(&mut buffer, &mut transformed, &mut scratch).ok()?;
        for (total, value) in spectrum.iter_mut().zip(&transformed) {
            *total *= power(*value, *count);
        }
        log_norm += *count as f64 * lattice.log_norm;
        infinity += *count as f64 * lattice.infinity;
    }
    // The transform of a real law is real at both ends; rounding may say otherwise.
    let end = spectrum.len() - 1;
    spectrum[0].im = 0.0;
    if length.is_multiple_of(2) {
        spectrum[end].im = 0.0;
    }
    // |X|^(n - 1) is at most |X|^(n / 2) for n >= 2.
    let size = 2.0 * spectrum.iter().map(|v| v.norm_sqr().sqrt().sqrt()).sum::<f64>();
    let mut scratch = inverse.make_scratch_vec();
    inverse.process_with_scratch(&mut spectrum, &mut buffer, &mut scratch).ok()?;
    let scale = (length as f64).recip();
    let start = low.rem_euclid(length as i64) as usize;
    // Rounding: each value of a transform is taken to be good to a few units in the last place of the largest, a power multiplies
    // relative errors by its exponent. Added to every point, so that what is lost in noise is never missed.
    let copies: f64 = parts.iter().map(|(_, n)| *n as f64).sum();
    let noise = 4e-16 * copies * scale * size;
    let mut mass = Vec::with_capacity(length);
    for value in buffer[start..].iter().chain(&buffer[..start]) {
        mass.push((value * scale).max(0.0) + noise);
    }
    // What lies at or above low + length steps has wrapped around: bound it by Chernoff on the very lattices used.
    let top = (low + length as i64) as f64 * step;
    let highest: i128 = parts
        .iter()
        .map(|(l, n)| i128::from(*n) * (i128::from(l.first) + l.mass.len() as i128 - 1))
        .sum();
    if highest < i128::from(low) + length as i128 {
        plain_top = f64::NEG_INFINITY;
    } else {
        for factor in [1.0, 0.7, 1.4, 0.5, 2.0] {
            let extra = factor * window.exponent;
            let exponent: f64 = parts.iter().map(|(l, n)| *n as f64 * l.log_moment(extra)).sum();
            plain_top = plain_top.min(exponent - (tilt + extra) * top);
            if plain_top <= window.log_plain {
                break;
            }
        }
    }
    infinity += plain_top.exp();
    let mut lattice = Lattice { step, first: low, mass, log_norm, infinity };
    lattice.normalise();
    (lattice.log_norm.is_finite() && lattice.infinity.is_finite()).then_some(lattice)
}

/// `value^count` by squaring; what is below 1e-40 is 0 for our purposes and would be slow as a denormal.
fn power(value: Complex64, mut count: u64) -> Complex64 {
    let (mut result, mut square) = (Complex64::new(1.0, 0.0), value);
    while count > 0 {
        if count & 1 == 1 {
            result *= square;
        }
        count >>= 1;
        square *= square;
        if result.norm_sqr() < 1e-80 || (count > 0 && square.norm_sqr() < 1e-80) {
            return Complex64::new(0.0, 0.0);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The law of `count` copies by plain sums of products of positive numbers: relative error below count * 1e-15 at
    /// every point, however small.
    fn by_products(mass: &[f64], count: u64) -> Vec<f64> {
        let mut total = vec![1.0];
        for _ in 0..count {
            let mut next = vec![0.0; total.len() + mass.len() - 1];
            for (i, a) in total.iter().enumerate() {
                for (j, b) in mass.iter().enumerate() {
                    next[i + j] += a * b;
                }
            }
            total = next;
        }
        total
    }

    #[test]
    fn what_the_transform_loses_to_rounding_is_less_than_what_is_added_to_every_point() {
        // Laws over twelve decades, with and without a long tail, so that most points lie far below the largest.
        for (points, decay) in [(5, 0.3), (40, 0.5), (200, 0.87), (64, 1.0)] {
            for count in [2, 3, 7, 20] {
                let mut one: Vec<f64> = (0..points)
                    .map(|i| f64::powi(decay, i) * (1.0 + 0.5 * f64::from(i % 3)))
                    .collect();
                let sum: f64 = one.iter().sum();
                one.iter_mut().for_each(|m| *m /= sum);
                let exact = by_products(&one, count);
                let (step, tilt) = (0.01, 0.0);
                let lattice = Lattice { step, first: -3, mass: one, log_norm: 0.0, infinity: 0.0 };
                let low = -3.0 * count as f64 * step;
                let high = low + exact.len() as f64 * step;
                let window = Window { low, high, exponent: 1.0, log_plain: 0.0 };
                let got = convolve(&[(&lattice, count)], tilt, window).unwrap();
                let scale = got.log_norm.exp();
                let start = (-3 * count as i64 - got.first) as usize;
                let mut added = 0.0;
                for (i, &wanted) in exact.iter().enumerate() {
                    let found = got.mass[start + i] * scale;
                    assert!(
                        found >= wanted * (1.0 - 1e-13),
                        "{points} {decay} {count}: point {i} has {found}, needs {wanted}"
                    );
                    added += found - wanted;
                }
                // And what is added stays small: the bound is not bought with a useless one.
                assert!(added < 1e-10, "{points} {decay} {count}: {added} added");
                assert!(got.infinity.abs() < 1e-300);
            }
        }
    }

    fn lattice(step: f64, first: i64, plain: &[f64], tilt: f64) -> Lattice {
        let mass = plain.iter().zip(first..).map(|(p, i)| p * (tilt * step * i as f64).exp());
        let mut lattice =
            Lattice { step, first, mass: mass.collect(), log_norm: 0.0, infinity: 0.0 };
        lattice.normalise();
        lattice
    }

    /// Plain probabilities 0.2, 0.5, 0.3 of losses 1, 3/2 and 2 and ten copies, tilted or not; the sum lies between 10 and 20.
    #[test]
    fn the_law_of_a_sum_is_its_plain_convolution_and_what_is_cut_off_is_bounded() {
        let plain = [0.2, 0.5, 0.3];
        let exact = by_products(&plain, 10);
        let above = |epsilon: f64| -> f64 {
            let points = exact.iter().zip(20..);
            points.map(|(p, i)| p * (-(epsilon - 0.5 * f64::from(i)).exp_m1()).max(0.0)).sum()
        };
        for tilt in [0.0, 0.4, 1.5] {
            let one = lattice(0.5, 2, &plain, tilt);
            let window = Window { low: -5.0, high: 21.0, exponent: 0.8, log_plain: -30.0 };
            let sum = convolve(&[(&one, 6), (&one, 4)], tilt, window).unwrap();
            for epsilon in [10.2, 12.0, 15.5, 17.0, 19.5, 19.9] {
                let (got, wanted) = (sum.delta(tilt, epsilon), above(epsilon));
                assert!((got - wanted).abs() <= 1e-10, "{tilt} {epsilon}: {got}, not {wanted}");
            }
            // 32 points from 5/2: the top is 37/2, where Chernoff's bound, and nothing less, is put at infinity.
            let window = Window { low: 2.5, high: 17.0, ..window };
            let cut = convolve(&[(&one, 6), (&one, 4)], tilt, window).unwrap();
            let chernoff = |extra: f64| {
                let t = tilt + extra;
                let moment = 0.2 * t.exp() + 0.5 * (1.5 * t).exp() + 0.3 * (2.0 * t).exp();
                (10.0 * moment.ln() - t * 18.5).exp()
            };
            let bound =
                [0.4, 0.56, 0.8, 1.12, 1.6].into_iter().map(chernoff).fold(f64::INFINITY, f64::min);
            assert!((cut.infinity / bound - 1.0).abs() < 1e-12, "{tilt}: {} {bound}", cut.infinity);
            assert!(exact[17..].iter().sum::<f64>() <= bound, "{tilt}: {bound}");
            for epsilon in [12.0, 15.0, 18.0] {
                let (got, wanted) = (cut.delta(tilt, epsilon), above(epsilon));
                assert!(got >= wanted && got <= wanted + bound + 1e-12, "{tilt}: {got} {wanted}");
            }
            // A bound that is small enough ends the search for a better one: it is the first.
            let easy = Window { log_plain: 9.0, ..window };
            let easy = convolve(&[(&one, 10)], tilt, easy).unwrap();
            assert!((easy.infinity / chernoff(0.8) - 1.0).abs() < 1e-12, "{tilt}");
        }
    }

    /// 403 releases are 20 times 20 and 3, and 5 others are put on the coarse grid at once.
    #[test]
    fn two_stages_give_the_law_of_one() {
        let list = [
            (Release::SampledGaussian { rate: 0.1, mu: 1.0 }, 403),
            (Release::Laplace { epsilon: 0.3 }, 5),
        ];
        let mut plan = Plan::new(&list, false, 1e-6);
        let all: Vec<(&Atoms, f64)> =
            plan.parts.iter().map(|p| (&p.atoms, p.count as f64)).collect();
        let window = plan.window(&all, 1.0);
        let two = plan.two_stages(window, 408.0).unwrap();
        let lattices = plan.lattices(plan.align(0.5 * plan.step(408.0)), 408.0).unwrap();
        let one = convolve(&[(&lattices[0], 403), (&lattices[1], 5)], plan.tilt, window).unwrap();
        for epsilon in [2.0, 5.0, 10.0, 14.0] {
            let (got, wanted) = (two.delta(plan.tilt, epsilon), one.delta(plan.tilt, epsilon));
            assert!((-1e-6..=2e-3).contains(&(got / wanted - 1.0)), "{epsilon}: {got} {wanted}");
        }
    }

    #[test]
    fn infinite_losses_add_up_and_impossible_windows_are_refused() {
        let one = Lattice { infinity: 1e-3, ..lattice(0.5, 0, &[0.6, 0.4], 0.0) };
        let window = Window { low: -1.0, high: 9.0, exponent: 1.0, log_plain: -20.0 };
        let sum = convolve(&[(&one, 3), (&one, 4)], 0.0, window).unwrap();
        assert!((sum.infinity - 7e-3).abs() < 1e-15, "{}", sum.infinity);
        assert_eq!((sum.first, sum.mass.len()), (-2, transform_length(22)));
        for (low, high) in [(0.0, f64::NAN), (0.0, f64::INFINITY), (0.0, 1e7), (1e16, 1e16)] {
            assert!(convolve(&[(&one, 1)], 0.0, Window { low, high, ..window }).is_none());
        }
        assert!(convolve(&[], 0.0, window).is_none());
    }

    #[test]
    fn powers_are_repeated_products_and_vanish_rather_than_underflow() {
        let value = Complex64::new(0.6, -0.7);
        let mut product = Complex64::new(1.0, 0.0);
        for count in 0..40 {
            assert!((power(value, count) - product).norm() < 1e-14, "{count}");
            product *= value;
        }
        for (size, count, kept) in [
            (1e-39, 1, true),
            (1e-41, 1, false),
            (0.1, 39, true),
            (0.1, 41, false),
            (0.5, 140, false),
        ] {
            let power = power(Complex64::new(0.0, size), count);
            assert_eq!(power.norm() > 0.0, kept, "{size}^{count}");
        }
    }

    #[test]
    fn the_shortest_of_the_four_lengths_is_taken() {
        for (least, length) in [
            (1, 18),
            (32, 32),
            (33, 36),
            (36, 36),
            (37, 40),
            (40, 40),
            (41, 48),
            (48, 48),
            (49, 64),
            (64, 64),
            (1100, 1152),
        ] {
            assert_eq!(transform_length(least), length, "{least}");
        }
    }

    fn steps(count: u64) -> Plan {
        Plan::new(&[(Release::Gaussian { mu: 0.1 }, count)], false, 1e-5)
    }

    /// 100 releases of `mu` 0.1 have a normal loss of mean 1/2 and variance 1; tilted by `t` its mean is `t + 1/2`.
    #[test]
    fn a_plan_starts_from_the_renyi_bound() {
        let plan = steps(100);
        for t in [0.1, 1.0, 5.0] {
            assert!((plan.log_moment(t) - 0.5 * t * (t + 1.0)).abs() < 1e-3 * t, "{t}");
        }
        // The tilts are eight to the decade: 10 is one of them.
        assert!((plan.saddle(10.5) - 10.0).abs() < 1e-9, "{}", plan.saddle(10.5));
        let orders: Vec<f64> = tilts().collect();
        assert!((orders[0] - 0.01).abs() < 1e-15 && (orders[64] - 1e6).abs() < 1e-6);
        assert!((orders[24] - 10.0).abs() < 1e-12 && orders.len() == 65);
        // Of (t + 1) / 2 + (-ln delta + t ln t - (1 + t) ln(1 + t)) / t the least over the tilts is the one at 10^(5/8).
        let t = 10.0_f64.powf(0.625);
        let bound = 0.5 * (t + 1.0) + (-1e-5_f64.ln() + t * t.ln() - (1.0 + t) * t.ln_1p()) / t;
        assert!((plan.guess - bound).abs() < 1e-8, "{}, not {bound}", plan.guess);
        assert!((plan.tilt - t).abs() < 1e-12 && (plan.slope - t).abs() < 1e-12);
        let room = (1.1e-4 + 0.5e-6 * t * (t + 1.0)) / t;
        assert!((plan.proved - plan.guess - room).abs() < 1e-9, "{}", plan.proved);
        // Step: sqrt(12 * 4e-5 * guess / (100 (slope + 1))).
        let wanted = (4.8e-6 * plan.guess / (plan.slope + 1.0)).sqrt();
        assert!((plan.step(100.0) / wanted - 1.0).abs() < 1e-12);
    }

    /// Chernoff's bound on a normal law of deviation 1 is `e^(-x^2 / 2)`: 1e-12 is left at 7.4338 deviations.
    #[test]
    fn a_window_ends_where_chernoff_leaves_the_tolerated_mass() {
        let near = |got: f64, wanted: f64| (got - wanted).abs() < 1e-6;
        let mut plan = steps(100);
        for (tilt, repeated) in [(0.5, 1.0), (3.0, 1.0), (3.0, 100.0)] {
            plan.tilt = tilt;
            let window = plan.window(&[(&plan.parts[0].atoms, 100.0)], repeated);
            let reach = (2.0 * (repeated * 1e12_f64).ln()).sqrt();
            assert!(near(window.low, tilt + 0.5 - reach), "{tilt} {window:?}");
            assert!(near(window.high, tilt + 0.5 + reach), "{tilt} {window:?}");
            assert!(near(window.width(), 2.0 * reach) && near(window.exponent, reach));
            assert!(near(window.log_plain, (1e-10 / repeated).ln()));
        }
        // At a delta of 1e-40 the plain mass decides, 1e-45 at (s + 1) / 2 + 103.616 / s, and twice the reach is the best of the tilts.
        plan.delta = 1e-40;
        plan.tilt = 0.5;
        let window = plan.window(&[(&plan.parts[0].atoms, 100.0)], 1.0);
        let s = 0.5 + 2.0 * (2.0 * 1e12_f64.ln()).sqrt();
        assert!(near(window.high, 0.5 * (s + 1.0) - 1e-45_f64.ln() / s), "{window:?}");
        // Ten bounded losses end at their sum.
        let bounded = Plan::new(&[(Release::Laplace { epsilon: 0.01 }, 10)], false, 1e-5);
        let window = bounded.window(&[(&bounded.parts[0].atoms, 10.0)], 1.0);
        assert!(near(window.high, 0.1), "{window:?}");
    }

    #[test]
    fn steps_of_the_grid_meet_the_largest_loss() {
        let plan = |list: &[Release]| {
            let list: Vec<(Release, u64)> = list.iter().map(|&r| (r, 2)).collect();
            Plan::new(&list, false, 1e-5)
        };
        let (gaussian, laplace) =
            (Release::Gaussian { mu: 1.0 }, Release::Laplace { epsilon: 1.0 });
        // A loss of 1 is four steps of 1/4, not 3.33 of 0.3.
        assert!((plan(&[gaussian, laplace]).align(0.3) - 0.25).abs() < 1e-15);
        assert!((plan(&[gaussian]).align(0.3) - 0.3).abs() < 1e-15);
        let response = |epsilon: f64, categories| Release::Response { epsilon, categories };
        let common = |list: &[Release]| plan(list).common_step();
        assert_eq!(common(&[response(0.7, 2), response(0.7, 5)]), Some(0.7));
        assert_eq!(common(&[response(0.7, 2), response(0.8, 2)]), None);
        assert_eq!(common(&[response(0.7, 2), laplace]), None);
    }

    #[test]
    fn a_coarser_grid_is_never_below_the_fine_one() {
        let mass: Vec<f64> =
            (0..100).map(|i| (-0.01 * f64::from((i - 40) * (i - 40))).exp()).collect();
        for tilt in [0.0, 2.0, 10.0] {
            let mut fine = Lattice {
                step: 0.01,
                first: -37,
                mass: mass.clone(),
                log_norm: 0.0,
                infinity: 0.0,
            };
            fine.normalise();
            for ratio in [1, 2, 7, 30] {
                let coarse = fine.coarsen(ratio, tilt);
                for k in -40..70 {
                    let epsilon = 0.01 * f64::from(k);
                    let (low, high) = (fine.delta(tilt, epsilon), coarse.delta(tilt, epsilon));
                    assert!(
                        high >= low * (1.0 - 1e-12) - 1e-18,
                        "{ratio} at {epsilon}: {high} {low}"
                    );
                }
                // Both distributions keep their whole probability.
                let total = |l: &Lattice| {
                    (0..l.mass.len())
                        .map(|i| {
                            let loss = (l.first + i as i64) as f64 * l.step;
                            let p = l.mass[i] * (l.log_norm - tilt * loss).exp();
                            (p, p * (-loss).exp())
                        })
                        .fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
                };
                let ((p, q), (p2, q2)) = (total(&fine), total(&coarse));
                assert!((p / p2 - 1.0).abs() < 1e-12 && (q / q2 - 1.0).abs() < 1e-12, "{ratio}");
            }
        }
    }

    #[test]
    fn transform_lengths_are_even_and_long_enough() {
        for least in (1..5000).chain([65_537, 1_000_000]) {
            let length = transform_length(least);
            assert!(length >= least && length.is_multiple_of(2), "{least}: {length}");
            assert!(least < 32 || (length as f64) < 1.34 * least as f64, "{least}: {length}");
        }
    }
}
