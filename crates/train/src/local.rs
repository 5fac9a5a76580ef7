//! Local differential privacy: records are randomized before anything else sees them.
use crate::Error;
use dosimeter_data::Dataset;
use dosimeter_privacy::{Epsilon, Ledger, NoiseRng};

/// Randomizes every record's features on its own.
///
/// # Errors
/// [`Error::Column`] for a column that does not fit its inputs.
pub fn randomize(
    _dataset: &Dataset,
    _epsilon_per_feature: Epsilon,
    _rng: &mut NoiseRng,
) -> Result<(Dataset, Ledger), Error> {
    todo!()
}
