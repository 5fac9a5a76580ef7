//! Vectors of double precision that move little when one record is replaced: minimizers and statistics.
use crate::{Error, OutOfRange};

/// A vector that moves by at most `sensitivity` in L2 when one record is replaced by another: l2-RO stable at that rate, in the words
/// of Wu et al. (arXiv:1512.06388). The number of records is public.
#[derive(Debug, Clone, PartialEq)]
pub struct Stable(Moving);

/// As [`Stable`], in L1.
#[derive(Debug, Clone, PartialEq)]
pub struct StableL1(Moving);

/// What each of several choices costs; one record replaced moves no cost by more than `sensitivity`.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs(Moving);

#[derive(Debug, Clone, PartialEq)]
struct Moving {
    values: Vec<f64>,
    sensitivity: f64,
}
impl Moving {
    fn new(values: Vec<f64>, sensitivity: f64) -> Result<Self, Error> {
        if !(sensitivity > 0.0 && sensitivity.is_finite()) {
            let (what, needed) = ("sensitivity", "finite and above 0");
            return Err(OutOfRange { what, needed, got: sensitivity }.into());
        }
        match values.iter().position(|v| !v.is_finite()) {
            Some(position) => Err(Error::NotFinite { position, value: values[position] as f32 }),
            None => Ok(Self { values, sensitivity }),
        }
    }
}

macro_rules! stable {
    ($type:ident) => {
        impl $type {
            /// The bound is the caller's promise, from a theorem: this is the line to read when asking whether it holds.
            ///
            /// # Errors
            /// [`Error::OutOfRange`] for a sensitivity that is not finite and above 0, [`Error::NotFinite`] for NaN or
            /// infinity in `values`.
            pub fn new(values: Vec<f64>, sensitivity: f64) -> Result<Self, Error> {
                Moving::new(values, sensitivity).map(Self)
            }
            /// How far one record moves it.
            #[must_use]
            pub const fn sensitivity(&self) -> f64 {
                self.0.sensitivity
            }
            /// Number of coordinates.
            #[must_use]
            pub const fn len(&self) -> usize {
                self.0.values.len()
            }
            /// Whether there are no coordinates.
            #[must_use]
            pub const fn is_empty(&self) -> bool {
                self.0.values.is_empty()
            }
            pub(crate) fn into_values(self) -> Vec<f64> {
                self.0.values
            }
        }
    };
}
stable!(Stable);
stable!(StableL1);
stable!(Costs);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_sensitivity_or_is_not_finite_is_refused() {
        assert_eq!(Stable::new(vec![1.0, 2.0], 0.5).unwrap().len(), 2);
        assert!(StableL1::new(vec![], 0.5).unwrap().is_empty());
        for sensitivity in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(Costs::new(vec![0.0], sensitivity), Err(Error::OutOfRange(_))));
        }
        let refused = Stable::new(vec![0.0, f64::NAN], 1.0);
        assert!(matches!(refused, Err(Error::NotFinite { position: 1, .. })));
    }
}
