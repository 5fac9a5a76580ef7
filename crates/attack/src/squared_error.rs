//! Membership in the rows of a regression, from the squared error.
use crate::Error;
use dosimeter_audit::{Evidence, Roc};
use dosimeter_data::regression::RegressionTable;

/// Rows that the model was fitted to against rows that it was not, each scored by its negated squared error: the smaller the error, the
/// likelier a member (Yeom, Giacomelli, Fredrikson & Jha, CSF 2018, for the squared loss).
///
/// # Errors
/// [`Error::Audit`] if one of the tables is empty or an error is not finite.
pub fn membership(
    fitted: &RegressionTable,
    held_out: &RegressionTable,
    model: &dyn Fn(&[f64]) -> f64,
) -> Result<Roc, Error> {
    let scores: Vec<f64> =
        fitted.rows().chain(held_out.rows()).map(|(x, y)| -(model(x) - y).powi(2)).collect();
    let member: Vec<bool> = (0..scores.len()).map(|i| i < fitted.len()).collect();
    Ok(Roc::of(&Evidence::from_arrays(&scores, &member)?)?)
}
