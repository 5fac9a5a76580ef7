//! Guessing without the model.
use super::Marginal;
use crate::Error;
use dosimeter_data::regression::RegressionTable;
use nalgebra::{Cholesky, DMatrix, DVector};

/// Linear discriminant analysis (Fisher 1936): the most likely value of an attribute if the other numbers of a record are Gaussian with a
/// covariance that all values share. What a guesser reaches with records of others and no model; with the response among the numbers, what
/// one reaches to whom the response is told ("ideal" in Fredrikson et al. 2014).
#[derive(Debug, Clone, PartialEq)]
pub struct Discriminant {
    columns: Vec<usize>,
    with_response: bool,
    /// Per value: constant and weights; `None` where no record had it.
    scores: Vec<Option<(f64, DVector<f64>)>>,
}

/// Added to each variance, as a share of the mean one: numbers that do not vary, or follow from others, do no harm.
const RIDGE: f64 = 1e-6;

impl Discriminant {
    /// From a table of other people's records. All columns are read but those of `target` and of `unknown` attributes.
    ///
    /// # Errors
    /// [`Error::Setting`] if no row has a value of the attribute, or all rows have the same numbers.
    pub fn fit(
        table: &RegressionTable,
        target: &Marginal,
        unknown: &[Marginal],
        with_response: bool,
    ) -> Result<Self, Error> {
        let hidden = |c: &usize| unknown.iter().chain([target]).any(|m| m.columns().contains(c));
        let columns: Vec<usize> = (0..table.layout.width()).filter(|c| !hidden(c)).collect();
        let mut model = Self { columns, with_response, scores: Vec::new() };
        let d = model.columns.len() + usize::from(with_response);
        let mut sums = vec![(0.0, DVector::zeros(d)); target.len()];
        let labelled: Vec<(usize, DVector<f64>)> = table
            .rows()
            .filter_map(|(x, y)| Some((target.value_of(x)?, model.numbers(x, y))))
            .collect();
        for (value, numbers) in &labelled {
            sums[*value].0 += 1.0;
            sums[*value].1 += numbers;
        }
        let means: Vec<Option<DVector<f64>>> =
            sums.iter().map(|(n, sum)| (*n > 0.0).then(|| sum / *n)).collect();
        let mut scatter = DMatrix::zeros(d, d);
        for (value, numbers) in &labelled {
            if let Some(mean) = &means[*value] {
                let off = numbers - mean;
                scatter.ger(1.0, &off, &off, 1.0);
            }
        }
        let n = labelled.len() as f64;
        scatter /= n.max(1.0);
        let mean_variance = scatter.trace() / (d as f64).max(1.0);
        let ridge = RIDGE.mul_add(mean_variance, f64::MIN_POSITIVE);
        scatter += DMatrix::identity(d, d) * ridge;
        let factors = Cholesky::new(scatter).ok_or(Error::Setting {
            attack: "discriminant",
            field: "rows with a value of the attribute",
            needed: "several, with numbers that differ",
            have: n,
        })?;
        model.scores = means
            .iter()
            .zip(&sums)
            .map(|(mean, (count, _))| {
                mean.as_ref().map(|mean| {
                    let weights = factors.solve(mean);
                    (0.5f64.mul_add(-weights.dot(mean), (count / n).ln()), weights)
                })
            })
            .collect();
        Ok(model)
    }
    fn numbers(&self, features: &[f64], response: f64) -> DVector<f64> {
        let known = self.columns.iter().map(|c| features[*c]);
        let response = self.with_response.then_some(response);
        let numbers: Vec<f64> = known.chain(response).collect();
        DVector::from_vec(numbers)
    }
    /// The place of the most likely value; the first of equals.
    #[must_use]
    pub fn guess(&self, features: &[f64], response: f64) -> Option<usize> {
        let numbers = self.numbers(features, response);
        let mut best: Option<(f64, usize)> = None;
        for (value, score) in self.scores.iter().enumerate() {
            if let Some((constant, weights)) = score {
                let score = constant + weights.dot(&numbers);
                if score > best.map_or(f64::NEG_INFINITY, |b| b.0) {
                    best = Some((score, value));
                }
            }
        }
        best.map(|b| b.1)
    }
}
