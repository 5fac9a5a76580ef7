//! A linear model in the units of the table.
use super::Error;
use super::bounds::{Bounds, Clipped};
use dosimeter_model::{Graph, Layer, Linear};
use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

/// Predicts `intercept + coefficients . features`, all in the units of the table. Features outside their bounds are moved to the nearer
/// end first, as they were for the fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinearModel {
    /// Names of the features, in their order.
    pub features: Vec<String>,
    /// Name of the target.
    pub target: String,
    /// Change of the prediction with each feature.
    pub coefficients: Vec<f64>,
    /// Prediction where all features are 0.
    pub intercept: f64,
    /// Standard deviation that the noise alone gives each coefficient, from released numbers; `None` where the mechanism does not tell.
    /// What the sampling of the rows adds is not in it.
    pub noise_deviations: Option<Vec<f64>>,
    /// The same of the intercept.
    #[serde(default)]
    pub intercept_noise_deviation: Option<f64>,
    /// Public bounds of the fit.
    pub bounds: Bounds,
}
impl LinearModel {
    /// From weights for scaled rows, `[dimension]`.
    pub(super) fn from_weights(
        weights: &DVector<f64>,
        noise_covariance: Option<&DMatrix<f64>>,
        features: Vec<String>,
        target: String,
        bounds: Bounds,
    ) -> Self {
        let (radius, half) = (bounds.row_radius(), bounds.target.half());
        let factors: Vec<f64> =
            bounds.features.iter().map(|b| half / (b.half() * radius)).collect();
        let coefficients: Vec<f64> = weights.iter().zip(&factors).map(|(w, f)| w * f).collect();
        let constant =
            if bounds.intercept { weights[weights.len() - 1] / radius * half } else { 0.0 };
        let centred: f64 =
            coefficients.iter().zip(&bounds.features).map(|(c, b)| c * b.middle()).sum();
        let intercept = bounds.target.middle() + constant - centred;
        // The intercept is the constant's weight less every coefficient at the middle of its bounds.
        let in_intercept = DVector::from_fn(weights.len(), |i, _| match factors.get(i) {
            Some(factor) => -factor * bounds.features[i].middle(),
            None => half / radius,
        });
        let noise_deviations = noise_covariance
            .map(|c| factors.iter().enumerate().map(|(i, f)| c[(i, i)].sqrt() * f.abs()).collect());
        let intercept_noise_deviation =
            noise_covariance.map(|c| (c * &in_intercept).dot(&in_intercept).max(0.0).sqrt());
        Self {
            features,
            target,
            coefficients,
            intercept,
            noise_deviations,
            intercept_noise_deviation,
            bounds,
        }
    }
    /// The prediction for one row; `row` (from 1) is what an error names.
    ///
    /// # Errors
    /// [`Error::Width`], [`Error::NotFinite`].
    pub fn predict(&self, row: u64, features: &[f64]) -> Result<f64, Error> {
        let (bounds, mut clipped) = (&self.bounds, Clipped::default());
        let mut scaled = vec![0.0; bounds.dimension()];
        bounds.scale_features(row, features, &mut scaled, &mut clipped)?;
        let values = features.iter().zip(&bounds.features).map(|(value, interval)| {
            let missing = interval.middle();
            if value.is_nan() { missing } else { value.clamp(interval.low(), interval.high()) }
        });
        let sum: f64 = self.coefficients.iter().zip(values).map(|(c, x)| c * x).sum();
        Ok(self.intercept + sum)
    }
    /// As a network of one linear layer that reads features in the units of the table, for export; it does not move features into
    /// their bounds.
    ///
    /// # Errors
    /// [`Error::Model`] if there are no features.
    pub fn graph(&self) -> Result<Graph, Error> {
        let inputs = self.coefficients.len();
        let layer = Layer::Linear(Linear { inputs, outputs: 1 });
        let mut graph = Graph::chain(&[inputs], vec![layer])?;
        let numbers = self.coefficients.iter().chain([&self.intercept]);
        graph.parameters_mut().iter_mut().zip(numbers).for_each(|(p, x)| *p = *x as f32);
        Ok(graph)
    }
}
