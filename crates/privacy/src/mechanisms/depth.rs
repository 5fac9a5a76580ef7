//! A point that lies deep among others, chosen privately.
use super::stable::float_only;
use super::{Description, Mechanism};
use crate::noise::double;
use crate::{Delta, Epsilon, Error, Event, NoiseRng, OutOfRange, Relation};

pub(super) const TUKEY_DEPTH: Description = Description {
    name: "tukey_depth",
    summary: "chooses a point at random, the likelier the deeper it lies among the given ones, if enough of them agree",
    input: "points of which each was made from records of its own",
    source: "Amin, Joseph, Ribero & Vassilvitskii, ICLR 2023, arXiv:2208.07353",
};

/// Points of which one record replaced replaces one: each was made from records that no other point has seen, and who has seen which
/// depends on no record.
#[derive(Debug, Clone, PartialEq)]
pub struct Points {
    dimension: usize,
    /// Point after point.
    coordinates: Vec<f64>,
}
impl Points {
    /// Of `coordinates`, point after point.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for dimension 0 or coordinates that are not whole points, [`Error::NotFinite`].
    pub fn new(dimension: usize, coordinates: Vec<f64>) -> Result<Self, Error> {
        if dimension == 0 || !coordinates.len().is_multiple_of(dimension) {
            let (what, needed) = ("dimension", "above 0, and points whole");
            return Err(OutOfRange { what, needed, got: dimension as f64 }.into());
        }
        match coordinates.iter().position(|x| !x.is_finite()) {
            Some(position) => {
                Err(Error::NotFinite { position, value: coordinates[position] as f32 })
            }
            None => Ok(Self { dimension, coordinates }),
        }
    }
    /// How many.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.coordinates.len() / self.dimension
    }
    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.coordinates.is_empty()
    }
}

/// Chooses a point of density proportional to `exp(epsilon / 4 depth)` among those of depth at least a quarter of the points', where the
/// depth of a point is the least number of given points on either side of it along any axis. `(epsilon, delta)`-DP when one record is
/// replaced.
///
/// Half of epsilon is for the test that the regions around that depth are alike for all tables nearby; where the noisy answer is no, the
/// output is `None`, and epsilon is spent.
///
/// # Guarantee
/// `V_i` is the volume of the points of depth at least `i`. Replacing a given point moves every depth by at most 1. Among tables with
/// `e^(-epsilon g / 4) V_(t - k - 2) <= delta / (1 + e^(epsilon / 2)) V_(t + k + g + 1)` for some `g >= 0`, the choice is
/// `(epsilon / 2, delta)`-indistinguishable for each table within `k` replacements and each neighbour of it; the largest such `k`, or
/// -1, moves by at most 1, and is compared after Laplace noise with what noise alone exceeds with probability `delta`. The source has
/// neighbours of another kind and slightly other constants.
///
/// There is no exact sampler.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TukeyDepth {
    /// Loss, nats.
    pub epsilon: Epsilon,
    /// Failure probability, above 0.
    pub delta: Delta,
}

/// Equal coordinates are set apart by so much: of points, not of records, and not to be seen.
const APART: f64 = 1e-10;

impl Mechanism for TukeyDepth {
    type Input = Points;
    type Output = Option<Vec<f64>>;
    fn event(&self) -> Event {
        Event::Approximate { epsilon: self.epsilon, delta: self.delta }.under(Relation::ReplaceOne)
    }
    fn sample(&self, input: Points, rng: &mut NoiseRng) -> Result<Option<Vec<f64>>, Error> {
        let (half, delta) = (0.5 * self.epsilon.get(), self.delta.get());
        for (what, got) in [("epsilon", half), ("delta", delta)] {
            if !(got.is_normal() && got.recip().is_finite()) {
                return Err(OutOfRange { what, needed: "finite and above 0", got }.into());
            }
        }
        float_only("tukey_depth", rng)?;
        let regions = Regions::of(&input, rng);
        let least = regions.given / 4;
        let alike = match regions.distance_to_unlike(least, half, delta) {
            Some(k) => k as f64,
            None => -1.0,
        };
        let noisy = alike + double::laplace(rng) / half;
        if noisy < -(2.0 * delta).ln() / half {
            return Ok(None);
        }
        Ok(regions.choose(least.max(1), half, rng))
    }
}

/// The boxes of points of some depth or more.
struct Regions {
    given: usize,
    /// The given coordinates along each axis, ascending.
    sorted: Vec<Vec<f64>>,
    /// Logarithm of the volume of each box, from depth 1.
    log_volumes: Vec<f64>,
}
impl Regions {
    fn of(points: &Points, rng: &mut NoiseRng) -> Self {
        let given = points.len();
        let mut sorted: Vec<Vec<f64>> = (0..points.dimension)
            .map(|axis| {
                let along = points.coordinates.iter().skip(axis).step_by(points.dimension);
                along.map(|x| x + APART * double::uniform(rng)).collect()
            })
            .collect();
        sorted.iter_mut().for_each(|axis| axis.sort_unstable_by(f64::total_cmp));
        let mut regions = Self { given, sorted, log_volumes: Vec::new() };
        let volumes =
            (1..=given / 2).map(|depth| regions.sides(depth).map(|(a, b)| (b - a).ln()).sum());
        regions.log_volumes = volumes.collect();
        regions
    }
    /// The box of depth `depth` or more, from 1.
    fn sides(&self, depth: usize) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.sorted.iter().map(move |along| (along[depth - 1], along[self.given - depth]))
    }
    /// Infinite for depth 0, minus infinity for depths that no point has.
    fn log_volume(&self, depth: usize) -> f64 {
        match depth {
            0 => f64::INFINITY,
            depth => self.log_volumes.get(depth - 1).copied().unwrap_or(f64::NEG_INFINITY),
        }
    }
    /// Largest `k` for which all tables within `k` replacements choose alike; see [`TukeyDepth`].
    fn distance_to_unlike(&self, least: usize, epsilon: f64, delta: f64) -> Option<usize> {
        let threshold = delta.ln() - epsilon.exp().ln_1p();
        let alike = |k: usize| {
            let outer = self.log_volume(least - k - 2);
            let inner = least + k + 1..=self.log_volumes.len();
            inner.enumerate().any(|(g, depth)| {
                outer - self.log_volume(depth) - 0.5 * epsilon * g as f64 <= threshold
            })
        };
        // It holds for all smaller ones too.
        (0..least.saturating_sub(2)).take_while(|k| alike(*k)).last()
    }
    /// A point of depth at least `least`.
    fn choose(&self, least: usize, epsilon: f64, rng: &mut NoiseRng) -> Option<Vec<f64>> {
        let mut best: Option<(f64, usize)> = None;
        for depth in least..=self.log_volumes.len() {
            let (outer, inner) = (self.log_volume(depth), self.log_volume(depth + 1));
            let log_shell = outer + (-(inner - outer).exp_m1()).ln();
            // The least of exponential numbers over their rates is drawn with probability proportional to the rate.
            let time =
                double::exponential(rng).ln() - (0.5 * epsilon).mul_add(depth as f64, log_shell);
            if time < best.map_or(f64::INFINITY, |b| b.0) {
                best = Some((time, depth));
            }
        }
        let (_, depth) = best?;
        let outer: Vec<_> = self.sides(depth).collect();
        if depth == self.log_volumes.len() {
            return Some(outer.iter().map(|side| within(*side, rng)).collect());
        }
        let inner: Vec<_> = self.sides(depth + 1).collect();
        Some(in_shell(&outer, &inner, rng))
    }
}

fn within((low, high): (f64, f64), rng: &mut NoiseRng) -> f64 {
    double::uniform(rng).mul_add(high - low, low)
}

/// A point of the box `outer` and not of the box `inner`. The shell is cut into one slab per axis: within `inner` along the axes before,
/// outside of it along this one.
fn in_shell(outer: &[(f64, f64)], inner: &[(f64, f64)], rng: &mut NoiseRng) -> Vec<f64> {
    let mut slabs = Vec::with_capacity(outer.len());
    let (mut before, mut all) = (1.0, 0.0);
    for ((low, high), (a, b)) in outer.iter().zip(inner) {
        let kept = (b - a) / (high - low);
        all += before * (1.0 - kept);
        slabs.push(all);
        before *= kept;
    }
    let drawn = all * double::uniform(rng);
    let axis = slabs.iter().position(|end| drawn < *end).unwrap_or(0);
    outer
        .iter()
        .zip(inner)
        .enumerate()
        .map(|(i, (&(low, high), &(a, b)))| match i.cmp(&axis) {
            std::cmp::Ordering::Less => within((a, b), rng),
            std::cmp::Ordering::Greater => within((low, high), rng),
            std::cmp::Ordering::Equal => {
                let position = double::uniform(rng) * ((a - low) + (high - b));
                if position < a - low { low + position } else { b + (position - (a - low)) }
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth_mechanism(epsilon: f64, delta: f64) -> TukeyDepth {
        TukeyDepth { epsilon: Epsilon::new(epsilon).unwrap(), delta: Delta::new(delta).unwrap() }
    }
    /// `given` points around (1, -2), far apart by `spread`.
    fn around(given: usize, spread: f64, rng: &mut NoiseRng) -> Points {
        let coordinates =
            (0..2 * given).map(|i| [1.0, -2.0][i % 2] + spread * double::gaussian(rng)).collect();
        Points::new(2, coordinates).unwrap()
    }

    #[test]
    fn agreeing_points_give_one_among_them_and_few_or_strewn_ones_none() {
        let mut rng = NoiseRng::experiment([1; 32]);
        for _ in 0..50 {
            let points = around(1000, 0.1, &mut rng);
            let chosen = depth_mechanism(1.0, 1e-6).sample(points, &mut rng).unwrap().unwrap();
            assert!((chosen[0] - 1.0).abs() < 0.1 && (chosen[1] + 2.0).abs() < 0.1, "{chosen:?}");
        }
        for given in [0, 1, 2, 7, 40] {
            let points = around(given, 0.1, &mut rng);
            assert_eq!(depth_mechanism(1.0, 1e-6).sample(points, &mut rng), Ok(None));
        }
        // All at one place are set apart, and found.
        let same = Points::new(2, vec![0.5; 2000]).unwrap();
        let chosen = depth_mechanism(1.0, 1e-6).sample(same, &mut rng).unwrap().unwrap();
        assert!(chosen.iter().all(|x| (x - 0.5).abs() < 1e-9));
    }

    /// Volumes by hand: 8 points at 0..8 along one axis have boxes [0, 7], [1, 6], [2, 5], [3, 4]. With least depth 4 / 2 = 2 nothing can
    /// be tested; with 16 points, least 4 and epsilon so large that the deepest counts alone, k is as in the formula.
    #[test]
    fn regions_and_their_distance_are_those_worked_by_hand() {
        let mut rng = NoiseRng::experiment([2; 32]);
        let line = |n: usize| Points::new(1, (0..n).map(|i| i as f64).collect()).unwrap();
        let regions = Regions::of(&line(8), &mut rng);
        for (log_volume, wanted) in regions.log_volumes.iter().zip([7.0_f64, 5.0, 3.0, 1.0]) {
            assert!((log_volume.exp() - wanted).abs() < 1e-8);
        }
        assert_eq!(regions.distance_to_unlike(2, 5.0, 0.1), None);
        let regions = Regions::of(&line(16), &mut rng);
        // V_i = 17 - 2 i. k = 0: V_2 = 13 over V_8 = 1 at g = 3 is 13 e^(-3 epsilon / 2); k = 1: V_1 = 15, depth 8 at g = 2: 15 e^-epsilon.
        // At epsilon 12, delta 0.1 the threshold is ln 0.1 - 12 = -14.3: ln 13 - 18 = -15.4 is below, ln 15 - 12 = -9.3 is not.
        assert_eq!(regions.distance_to_unlike(4, 12.0, 0.1), Some(0));
        assert_eq!(regions.distance_to_unlike(4, 12.0, 1e-3), None);
        // The threshold -2.4 - epsilon can never be passed by the k = 1 terms: e^-epsilon 15 > e^-epsilon delta.
        assert_eq!(regions.distance_to_unlike(4, 40.0, 0.1), Some(0));
    }

    /// The densities of depths on a line are those of the formula; 20,000 draws, each share within 5 of its deviations (a false alarm
    /// once in 10^5).
    #[test]
    fn chosen_depths_have_their_probabilities() {
        let mut rng = NoiseRng::experiment([3; 32]);
        let points = Points::new(1, [0.0, 1.0, 3.0, 3.5, 6.0, 10.0].to_vec()).unwrap();
        let regions = Regions::of(&points, &mut rng);
        // Boxes [0, 10], [1, 6], [3, 3.5]: shells 5, 4.5, 0.5.
        let epsilon = 1.2_f64;
        let weights: Vec<f64> = [(5.0, 1.0), (4.5, 2.0), (0.5, 3.0)]
            .iter()
            .map(|(shell, depth)| shell * (0.5 * epsilon * depth).exp())
            .collect();
        let all: f64 = weights.iter().sum();
        let draws = 20_000;
        let mut counts = [0.0; 3];
        for _ in 0..draws {
            let x = regions.choose(1, epsilon, &mut rng).unwrap()[0];
            let depth = if (3.0..3.5).contains(&x) {
                3
            } else if (1.0..6.0).contains(&x) {
                2
            } else {
                1
            };
            counts[depth - 1] += 1.0;
        }
        for (count, weight) in counts.iter().zip(&weights) {
            let (p, n) = (weight / all, f64::from(draws));
            assert!((count / n - p).abs() < 5.0 * (p * (1.0 - p) / n).sqrt(), "{counts:?} {p}");
        }
    }

    #[test]
    fn shells_are_filled_evenly() {
        let mut rng = NoiseRng::experiment([4; 32]);
        let (outer, inner) = ([(0.0, 4.0), (0.0, 2.0)], [(1.0, 2.0), (0.5, 1.5)]);
        // Of the area 8 - 1 = 7, 1 x 1 lies below inner's first coordinate and left of 1: by quarters of the first axis 2, 1, 2, 2.
        let mut counts = [0.0; 4];
        let draws = 20_000;
        for _ in 0..draws {
            let p = in_shell(&outer, &inner, &mut rng);
            assert!(!((1.0..2.0).contains(&p[0]) && (0.5..1.5).contains(&p[1])), "{p:?}");
            counts[p[0] as usize] += 1.0;
        }
        for (count, area) in counts.iter().zip([2.0, 1.0, 2.0, 2.0]) {
            let p: f64 = area / 7.0;
            let n = f64::from(draws);
            assert!((count / n - p).abs() < 5.0 * (p * (1.0 - p) / n).sqrt(), "{counts:?}");
        }
    }

    #[test]
    fn what_has_no_budget_or_no_dimension_is_refused() {
        let mut rng = NoiseRng::experiment([5; 32]);
        for (epsilon, delta) in [(0.0, 1e-6), (1.0, 0.0)] {
            let points = around(100, 0.1, &mut rng);
            assert!(depth_mechanism(epsilon, delta).sample(points, &mut rng).is_err());
        }
        assert!(Points::new(0, vec![]).is_err());
        assert!(Points::new(2, vec![1.0; 3]).is_err());
        assert!(Points::new(1, vec![f64::NAN]).is_err());
    }
}
