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
