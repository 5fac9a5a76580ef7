//! Least squares in a ball, solved to the last digits.
use super::statistics::Statistics;
use nalgebra::{DMatrix, DVector, SymmetricEigen};

/// `w' A w - 2 b . w`, with the eigenvectors of `A` at hand: one decomposition for every ridge and every ball.
#[derive(Debug, Clone)]
pub struct Quadratic {
    vectors: DMatrix<f64>,
    values: DVector<f64>,
    /// `b` along the eigenvectors.
    along: DVector<f64>,
}

/// Eigenvalues below this share of the largest count as 0, and nothing moves along them.
const NOTHING: f64 = 1e-14;

impl Quadratic {
    /// `a` is symmetric.
    #[must_use]
    pub fn new(a: DMatrix<f64>, b: &DVector<f64>) -> Self {
        let SymmetricEigen { eigenvectors: vectors, eigenvalues: values } = a.symmetric_eigen();
        let along = vectors.tr_mul(b);
        Self { vectors, values, along }
    }
    /// The mean squared error but for a constant: `A` and `b` are sums over the rows divided by their number.
    #[must_use]
    pub fn mean_squared_error(statistics: &Statistics) -> Self {
        let n = (statistics.rows.max(1)) as f64;
        Self::new(statistics.gram() / n, &(statistics.moments() / n))
    }
    /// The smallest eigenvalue.
    #[must_use]
    pub fn least_eigenvalue(&self) -> f64 {
        self.values.min()
    }
    /// Where `w' A w - 2 b . w + ridge |w|^2` is smallest; the shortest such vector if there are several. Directions without
    /// curvature or with a negative one count as flat.
    #[must_use]
    pub fn minimizer(&self, ridge: f64) -> DVector<f64> {
        &self.vectors * self.coordinates(ridge)
    }
    /// The same within the ball `|w| <= radius`. The length is the radius to one part in 10^14 where the ball matters.
    ///
    /// `|w(mu)|` falls in `mu`, and `1 / |w(mu)|` is concave, so Newton's method on it comes from the left and never overshoots
    /// (Moré and Sorensen 1983).
    #[must_use]
    pub fn minimizer_in_ball(&self, ridge: f64, radius: f64) -> DVector<f64> {
        let mut shift = ridge;
        let mut coordinates = self.coordinates(shift);
        let mut length = coordinates.norm();
        for _ in 0..200 {
            if length <= radius * (1.0 + 1e-14) {
                break;
            }
            let slope: f64 = coordinates
                .iter()
                .zip(&self.values)
                .filter(|(w, _)| **w != 0.0)
                .map(|(w, value)| w * w / (value + shift))
                .sum();
            let next = shift + (length / radius - 1.0) * length * length / slope;
            if next <= shift {
                break;
            }
            shift = next;
            coordinates = self.coordinates(shift);
            length = coordinates.norm();
        }
        if length > radius {
            coordinates *= radius / length;
        }
        &self.vectors * coordinates
    }
    fn coordinates(&self, ridge: f64) -> DVector<f64> {
        let least = NOTHING * (self.values.amax() + ridge);
        self.along.zip_map(&self.values, |along, value| {
            let curvature = value + ridge;
            if curvature > least { along / curvature } else { 0.0 }
        })
    }
}

/// Ordinary least squares, not private: the shortest of the vectors of least squared error.
#[must_use]
pub fn least_squares(statistics: &Statistics) -> DVector<f64> {
    Quadratic::mean_squared_error(statistics).minimizer(0.0)
}

/// Where `mean (w . x - y)^2 + lambda / 2 |w|^2` is smallest within `|w| <= radius`: the `w*` of rls-out (Wu et al.,
/// arXiv:1512.06388, Algorithm 4), not private.
#[must_use]
pub fn ball_constrained_ridge(statistics: &Statistics, lambda: f64, radius: f64) -> DVector<f64> {
    Quadratic::mean_squared_error(statistics).minimizer_in_ball(0.5 * lambda, radius)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_dimension_is_solved_by_hand() {
        // Mean of x^2: 0.5, of x y: 0.4; (0.5 + lambda / 2) w = 0.4.
        let mut statistics = Statistics::new(1);
        statistics.add(&[1.0], 0.8);
        statistics.add(&[0.0], 1.0);
        let w = |lambda, radius| ball_constrained_ridge(&statistics, lambda, radius)[0];
        assert!((w(0.0, 9.0) - 0.8).abs() < 1e-15);
        assert!((w(0.6, 9.0) - 0.5).abs() < 1e-15);
        assert!((w(0.6, 0.25) - 0.25).abs() < 1e-15);
        assert!((least_squares(&statistics)[0] - 0.8).abs() < 1e-15);
    }

    #[test]
    fn flat_directions_are_not_moved_along() {
        // Two equal columns: the shortest solution shares the weight.
        let mut statistics = Statistics::new(2);
        for (x, y) in [(0.5, 0.5), (0.25, 0.25), (-0.5, -0.5)] {
            statistics.add(&[x, x], y);
        }
        let w = least_squares(&statistics);
        assert!((w[0] - 0.5).abs() < 1e-12 && (w[1] - 0.5).abs() < 1e-12, "{w}");
        assert_eq!(least_squares(&Statistics::new(2)).as_slice(), [0.0, 0.0]);
    }
}
