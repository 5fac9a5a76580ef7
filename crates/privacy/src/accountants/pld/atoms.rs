//! A few hundred points that stand for the law of the loss: for choosing tilt, grid and window, never for the answer.
use crate::accountants::releases::{Release, sampled_loss};

/// Losses in ascending order with the logarithms of their probabilities.
///
/// For Gaussian noise these are the nodes of the trapezoid rule, which converges exponentially here, so moments are
/// good to about 1e-10 relative.
#[derive(Debug, Clone)]
pub(crate) struct Atoms {
    loss: Vec<f64>,
    log_mass: Vec<f64>,
}

impl Atoms {
    /// `reversed`: the record is missing from the distribution that the loss is drawn from.
    pub(crate) fn of(release: Release, reversed: bool) -> Self {
        // (loss, log probability with the record, log probability without)
        let mut points: Vec<(f64, f64, f64)> = Vec::new();
        let normal =
            |s: f64, step: f64| (step / (2.0 * std::f64::consts::PI).sqrt()).ln() - 0.5 * s * s;
        match release {
            Release::Gaussian { mu } => {
                for (s, step) in nodes(mu, 0.0, mu) {
                    points.push((mu * s - 0.5 * mu * mu, normal(s - mu, step), normal(s, step)));
                }
            }
            Release::SampledGaussian { rate, mu } => {
                for (s, step) in nodes(mu, 0.0, mu) {
                    let without = normal(s, step);
                    let loss = sampled_loss(rate, mu * s - 0.5 * mu * mu);
                    points.push((loss, without + loss, without));
                }
            }
            Release::ReplacedGaussian { rate, mu } => {
                for (s, step) in nodes(mu, -mu, mu) {
                    let high = sampled_loss(rate, mu * s - 0.5 * mu * mu);
                    let low = sampled_loss(rate, -mu * s - 0.5 * mu * mu);
                    let middle = normal(s, step);
                    points.push((high - low, middle + high, middle + low));
                }
            }
            Release::Laplace { epsilon } => laplace_points(epsilon, &mut points),
            Release::SampledLaplace { rate, epsilon } => {
                laplace_points(epsilon, &mut points);
                for point in &mut points {
                    let loss = sampled_loss(rate, point.0);
                    *point = (loss, point.2 + loss, point.2);
                }
            }
            Release::Response { epsilon, categories } => {
                let log_total = (f64::from(categories - 1) * (-epsilon).exp()).ln_1p();
                let (keep, lie) = (-log_total, -log_total - epsilon);
                points.push((-epsilon, lie, keep));
                if categories > 2 {
                    let others = f64::from(categories - 2).ln() + lie;
                    points.push((0.0, others, others));
                }
                points.push((epsilon, keep, lie));
            }
        }
        if reversed {
            points.reverse();
        }
        let (mut loss, mut log_mass) =
            (Vec::with_capacity(points.len()), Vec::with_capacity(points.len()));
        for (l, with, without) in points {
            loss.push(if reversed { -l } else { l });
            log_mass.push(if reversed { without } else { with });
        }
        Self { loss, log_mass }
    }

    /// `ln E[e^(tilt * loss)]`.
    pub(crate) fn log_moment(&self, tilt: f64) -> f64 {
        let exponents = || self.loss.iter().zip(&self.log_mass).map(|(l, m)| tilt * l + m);
        let largest = exponents().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = exponents().map(|e| e - largest).filter(|e| *e > -46.0).map(f64::exp).sum();
        largest + sum.ln()
    }

    /// Mean and variance of the loss under the tilted law.
    pub(super) fn tilted_moments(&self, tilt: f64) -> (f64, f64) {
        let norm = self.log_moment(tilt);
        let weights =
            || self.loss.iter().zip(&self.log_mass).map(|(l, m)| (*l, (tilt * l + m - norm).exp()));
        let mean: f64 = weights().map(|(l, w)| l * w).sum();
        let variance = weights().map(|(l, w)| (l - mean) * (l - mean) * w).sum();
        (mean, variance)
    }

    /// Drops the highest losses, together at most `mass` probability: the caller counts them as infinite.
    pub(super) fn truncate(&mut self, mass: f64) {
        let mut above = 0.0;
        while let (Some(&top), true) = (self.log_mass.last(), self.loss.len() > 1) {
            above += top.exp();
            if above > mass {
                break;
            }
            self.loss.pop();
            self.log_mass.pop();
        }
    }

    /// Highest loss that is left.
    pub(super) fn largest(&self) -> f64 {
        self.loss.last().copied().unwrap_or(0.0)
    }

    /// The loss below which the tilted law has at most `mass`, and the highest loss that is left.
    pub(super) fn support(&self, tilt: f64, mass: f64) -> (f64, f64) {
        let norm = self.log_moment(tilt);
        let last = self.loss.len() - 1;
        let (mut low, mut below) = (0, 0.0);
        while low < last {
            below += (tilt * self.loss[low] + self.log_mass[low] - norm).exp();
            if below > mass {
                break;
            }
            low += 1;
        }
        // A node stands for half a step on either side: take in the next one.
        (self.loss[low.saturating_sub(1)], self.loss[last])
    }
}

impl Atoms {
    /// The loss above which the tilted law has at most `mass`.
    pub(super) fn upper_support(&self, tilt: f64, mass: f64) -> f64 {
        let norm = self.log_moment(tilt);
        let mut above = 0.0;
        for (i, (loss, log_mass)) in self.loss.iter().zip(&self.log_mass).enumerate().rev() {
            above += (tilt * loss + log_mass - norm).exp();
            if above > mass {
                // A node stands for half a step on either side: take in the next one.
                return self.loss[(i + 1).min(self.loss.len() - 1)];
            }
        }
        self.largest()
    }
}

/// Trapezoid nodes around the bells at `first..=last`, 38 standard deviations to each side: `(node, step)`.
fn nodes(mu: f64, first: f64, last: f64) -> impl Iterator<Item = (f64, f64)> {
    // Singularities of the integrand lie pi / mu off the axis.
    let step = (0.5 / mu).clamp(0.02, 0.25).max((last - first + 76.0) / 8000.0);
    let count = ((last - first + 76.0) / step) as u32;
    (0..=count).map(move |i| (first - 38.0 + step * f64::from(i), step))
}

/// Point masses at both ends and midpoints of equal cells between.
fn laplace_points(epsilon: f64, points: &mut Vec<(f64, f64, f64)>) {
    let half = 0.5_f64.ln();
    points.push((-epsilon, half - epsilon, half));
    let count = 256;
    let width = 2.0 * epsilon / f64::from(count);
    for i in 0..count {
        let loss = -epsilon + width * (f64::from(i) + 0.5);
        // Density of the loss with the record: e^((loss - epsilon) / 2) / 4, without: e^-(loss + epsilon) / 2) / 4.
        let base = (width / 4.0).ln();
        points.push((loss, base + 0.5 * (loss - epsilon), base - 0.5 * (loss + epsilon)));
    }
    points.push((epsilon, half, half - epsilon));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(got: f64, wanted: f64, tolerance: f64) {
        assert!((got - wanted).abs() <= tolerance * wanted.abs().max(1.0), "{got}, not {wanted}");
    }

    /// Tilting a normal law moves it: `ln E[e^(t L)] = t (t + 1) mu^2 / 2`, mean `(t + 1/2) mu^2`, variance `mu^2`.
    #[test]
    fn moments_of_gaussian_noise_are_the_closed_ones() {
        for mu in [0.05, 1.0, 6.0] {
            let atoms = Atoms::of(Release::Gaussian { mu }, false);
            for t in [-0.5, 0.0, 0.7, 3.0] {
                close(atoms.log_moment(t), 0.5 * t * (t + 1.0) * mu * mu, 1e-10);
                let (mean, variance) = atoms.tilted_moments(t);
                close(mean, (t + 0.5) * mu * mu, 1e-10);
                close(variance, mu * mu, 1e-10);
            }
        }
    }

    #[test]
    fn moments_of_the_other_releases_are_the_hand_worked_ones() {
        let two = 2.0_f64.ln();
        // (1 - q + q x)^2 and its cube under the law without the record, where x, x^2, x^3 have means 1, e^(mu^2), e^(3 mu^2).
        let (rate, mu) = (0.2, 1.5);
        let sampled = Atoms::of(Release::SampledGaussian { rate, mu }, false);
        let (square, cube) = ((mu * mu).exp_m1(), (3.0 * mu * mu).exp_m1());
        close(sampled.log_moment(1.0), (rate * rate * square).ln_1p(), 1e-10);
        let third = 3.0 * rate * rate * square + rate.powi(3) * (cube - 3.0 * square);
        close(sampled.log_moment(2.0), third.ln_1p(), 1e-10);
        // Chances 1/2, 1/4, 1/4 against 1/4, 1/2, 1/4, and 3/4, 1/4 against 1/4, 3/4.
        let three = Atoms::of(Release::Response { epsilon: two, categories: 3 }, false);
        close(three.log_moment(1.0), (11.0_f64 / 8.0).ln(), 1e-14);
        close(three.tilted_moments(0.0).0, two / 4.0, 1e-14);
        let bit = Atoms::of(Release::Response { epsilon: 3.0_f64.ln(), categories: 2 }, false);
        close(bit.log_moment(1.0), (7.0_f64 / 3.0).ln(), 1e-14);
        // By 256 cells only: 2/3 2 + 1/3 1/4, and weights 1, 2, 1 over 4 on a sample.
        let laplace = Atoms::of(Release::Laplace { epsilon: two }, false);
        close(laplace.log_moment(1.0), (17.0_f64 / 12.0).ln(), 1e-5);
        let laplace = Atoms::of(Release::SampledLaplace { rate: 0.5, epsilon: two }, false);
        close(laplace.log_moment(1.0), (53.0_f64 / 48.0).ln(), 1e-5);
    }

    /// Both laws are whole, and `E_Q[(Q/P)^t] = E_P[(P/Q)^(-1 - t)]`.
    #[test]
    fn reversing_a_release_swaps_its_two_laws() {
        for release in [
            Release::Gaussian { mu: 0.3 },
            Release::SampledGaussian { rate: 0.1, mu: 2.0 },
            Release::ReplacedGaussian { rate: 0.3, mu: 1.2 },
            Release::Laplace { epsilon: 0.8 },
            Release::SampledLaplace { rate: 0.5, epsilon: 0.8 },
            Release::Response { epsilon: 0.7, categories: 5 },
        ] {
            let (forward, reversed) = (Atoms::of(release, false), Atoms::of(release, true));
            assert!(reversed.loss.is_sorted() && forward.loss.is_sorted(), "{release:?}");
            close(forward.log_moment(0.0), 0.0, 1e-5);
            for t in [-1.0, 0.0, 0.6, 2.0] {
                close(reversed.log_moment(t), forward.log_moment(-1.0 - t), 1e-12);
            }
        }
    }

    /// Probabilities 0.4, 0.3, 0.2, 0.1 of losses 0 to 3; tilted by ln 2 they are 2, 3, 4, 4 of 13.
    #[test]
    fn ends_are_cut_by_their_mass() {
        let atoms = Atoms {
            loss: vec![0.0, 1.0, 2.0, 3.0],
            log_mass: [0.4, 0.3, 0.2, 0.1].map(f64::ln).to_vec(),
        };
        for (mass, largest) in
            [(0.09, 3.0), (0.11, 2.0), (0.29, 2.0), (0.31, 1.0), (0.7, 0.0), (9.0, 0.0)]
        {
            let mut cut = atoms.clone();
            cut.truncate(mass);
            close(cut.largest(), largest, 0.0);
        }
        let two = 2.0_f64.ln();
        // One node further out than the mass says.
        for (tilt, mass, low, high) in [
            (0.0, 0.05, 0.0, 3.0),
            (0.0, 0.35, 0.0, 2.0),
            (0.0, 0.45, 0.0, 2.0),
            (0.0, 0.75, 1.0, 1.0),
            (0.0, 0.95, 2.0, 1.0),
            (two, 0.35, 0.0, 3.0),
            (two, 0.4, 1.0, 3.0),
            (two, 0.65, 1.0, 2.0),
            (two, 0.75, 2.0, 2.0),
            (two, 9.0, 2.0, 3.0),
        ] {
            let (bottom, top) = atoms.support(tilt, mass);
            assert_eq!((bottom, top, atoms.upper_support(tilt, mass)), (low, 3.0, high), "{mass}");
        }
    }
}
