//! Values with a known sensitivity, and values that have been released.
use crate::{Error, OutOfRange};

/// A vector to which one record contributes at most `clipping_norm` in L2.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounded {
    values: Vec<f32>,
    clipping_norm: f64,
}

/// A vector to which one record contributes at most `clipping_norm` in L1.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundedL1 {
    values: Vec<f32>,
    clipping_norm: f64,
}

/// A vector to which one record contributes at most `clipping_norm` in L2, made part by part while it is released: what
/// is used up part by part need not lie in memory as a whole.
pub struct BoundedInParts<'a> {
    clipping_norm: f64,
    longest: usize,
    next: &'a mut dyn FnMut(&mut [f32]) -> usize,
    memory: &'a mut Vec<f32>,
}
impl std::fmt::Debug for BoundedInParts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BoundedInParts")
            .field("clipping_norm", &self.clipping_norm)
            .field("longest", &self.longest)
            .finish_non_exhaustive()
    }
}

fn checked(values: &[f32], clipping_norm: f64) -> Result<(), Error> {
    checked_norm(clipping_norm)?;
    finite(values, 0)
}

fn checked_norm(clipping_norm: f64) -> Result<(), Error> {
    if clipping_norm > 0.0 && clipping_norm.is_finite() {
        return Ok(());
    }
    let (what, needed) = ("clipping norm", "finite and above 0");
    Err(OutOfRange { what, needed, got: clipping_norm }.into())
}

/// Names the first number that is not finite, `start` positions further on.
fn finite(values: &[f32], start: usize) -> Result<(), Error> {
    // Comparing exponents as integers vectorises on every processor; the search runs only when it must name the culprit.
    const EXPONENT: u32 = 0x7F80_0000;
    let not_finite =
        values.iter().fold(0_u32, |any, v| any | u32::from(v.to_bits() & EXPONENT == EXPONENT));
    if not_finite != 0
        && let Some(position) = values.iter().position(|v| !v.is_finite())
    {
        return Err(Error::NotFinite { position: start + position, value: values[position] });
    }
    Ok(())
}

/// Scales so that `norm(values) <= bound` holds for the rounded result as well.
fn shrink(values: &mut [f32], bound: f64, norm: impl Fn(&[f32]) -> f64) {
    let mut given = norm(values);
    let mut slack = 1.0;
    while given > bound {
        let factor = bound / given * slack;
        for v in values.iter_mut() {
            *v = (f64::from(*v) * factor) as f32;
        }
        given = norm(values);
        // f32 rounding may leave the norm one part in 10^7 above the bound: aim lower and once more.
        slack = 1.0 - 1e-7;
    }
}

impl Bounded {
    /// Clips one record's vector to L2 norm at most `clipping_norm`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a clipping norm that is not finite and above 0, [`Error::NotFinite`] for NaN or
    /// infinity in `values`.
    pub fn clip(mut values: Vec<f32>, clipping_norm: f64) -> Result<Self, Error> {
        checked(&values, clipping_norm)?;
        shrink(&mut values, clipping_norm, |v| {
            v.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt()
        });
        Ok(Self { values, clipping_norm })
    }
    /// A sum of per-record vectors, each already scaled to at most `clipping_norm` by the caller.
    ///
    /// The bound is the caller's promise: this is the line to read when asking whether clipping is right. It is a bound
    /// in real numbers; the order in which 32-bit sums are rounded may differ between neighbours.
    ///
    /// # Errors
    /// As [`Bounded::clip`].
    pub fn from_clipped_sum(values: Vec<f32>, clipping_norm: f64) -> Result<Self, Error> {
        checked(&values, clipping_norm)?;
        Ok(Self { values, clipping_norm })
    }
    /// The bound on one record's contribution in L2.
    #[must_use]
    pub const fn clipping_norm(&self) -> f64 {
        self.clipping_norm
    }
    /// Number of coordinates.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.values.len()
    }
    /// Whether there are no coordinates.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
    pub(crate) fn into_values(self) -> Vec<f32> {
        self.values
    }
}

impl<'a> BoundedInParts<'a> {
    /// A sum of per-record vectors, each already scaled to at most `clipping_norm` by the caller; the promise is the one
    /// of [`Bounded::from_clipped_sum`].
    ///
    /// `next` writes the next numbers to the front of a slice of `longest` and returns how many, 0 after the last;
    /// `memory` is working memory, kept for the next time.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a clipping norm that is not finite and above 0.
    pub fn from_clipped_sum(
        clipping_norm: f64,
        longest: usize,
        next: &'a mut dyn FnMut(&mut [f32]) -> usize,
        memory: &'a mut Vec<f32>,
    ) -> Result<Self, Error> {
        checked_norm(clipping_norm)?;
        Ok(Self { clipping_norm, longest, next, memory })
    }
    pub(crate) const fn clipping_norm(&self) -> f64 {
        self.clipping_norm
    }
    /// Calls `each(values)` with one run of the vector's numbers after the other; all but the last have a multiple of
    /// `step` numbers.
    ///
    /// # Errors
    /// [`Error::NotFinite`] for NaN or infinity: runs before it have been seen.
    pub(crate) fn for_each_run(
        self,
        step: usize,
        mut each: impl FnMut(&mut [f32]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Self { longest, next, memory, .. } = self;
        let (mut start, mut kept) = (0, 0);
        loop {
            if memory.len() < kept + longest {
                memory.resize(kept + longest, 0.0);
            }
            let length = next(&mut memory[kept..kept + longest]).min(longest);
            let filled = kept + length;
            finite(&memory[kept..filled], start + kept)?;
            let ready = if length == 0 { filled } else { filled / step * step };
            if ready > 0 {
                each(&mut memory[..ready])?;
            }
            if length == 0 {
                return Ok(());
            }
            memory.copy_within(ready..filled, 0);
            start += ready;
            kept = filled - ready;
        }
    }
}

impl BoundedL1 {
    /// Clips one record's vector to L1 norm at most `clipping_norm`.
    ///
    /// # Errors
    /// As [`Bounded::clip`].
    pub fn clip(mut values: Vec<f32>, clipping_norm: f64) -> Result<Self, Error> {
        checked(&values, clipping_norm)?;
        shrink(&mut values, clipping_norm, |v| v.iter().map(|&x| f64::from(x).abs()).sum());
        Ok(Self { values, clipping_norm })
    }
    /// The bound on one record's contribution in L1.
    #[must_use]
    pub const fn clipping_norm(&self) -> f64 {
        self.clipping_norm
    }
    pub(crate) fn into_values(self) -> Vec<f32> {
        self.values
    }
}

/// A value that has passed through a mechanism. Free to post-process, store and send.
///
/// Only a [`Ledger`](crate::Ledger) makes one, so it cannot be forged:
///
/// ```compile_fail,E0423
/// let free = dosimeter_privacy::Released(vec![0.0_f32]);
/// ```
///
/// nor taken from a value that only claims to be bounded:
///
/// ```compile_fail,E0277
/// let bounded = dosimeter_privacy::Bounded::clip(vec![0.0], 1.0).unwrap();
/// let free: dosimeter_privacy::Released<Vec<f32>> = bounded.into();
/// ```
///
/// nor put together by deserialising or by default:
///
/// ```compile_fail,E0277
/// let free: dosimeter_privacy::Released<Vec<f32>> = Default::default();
/// ```
///
/// A bounded value, in turn, cannot be read without paying:
///
/// ```compile_fail,E0624
/// let bounded = dosimeter_privacy::Bounded::clip(vec![0.0], 1.0).unwrap();
/// let raw = bounded.into_values();
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Released<T>(pub(crate) T);
impl<T> Released<T> {
    /// Takes the value out.
    pub fn into_inner(self) -> T {
        self.0
    }
    /// Reads the value.
    pub const fn get(&self) -> &T {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clipping_keeps_short_vectors_and_scales_long_ones() {
        assert_eq!(Bounded::clip(vec![0.3, 0.39], 0.5).unwrap().into_values(), [0.3, 0.39]);
        let clipped = Bounded::clip(vec![3.0, 4.0], 1.0).unwrap().into_values();
        assert!((clipped[0] - 0.6).abs() < 1e-6 && (clipped[1] - 0.8).abs() < 1e-6);
        assert_eq!(BoundedL1::clip(vec![3.0, -1.0], 2.0).unwrap().into_values(), [1.5, -0.5]);
    }

    #[test]
    fn sizes_are_those_of_the_vector() {
        let (none, three) = (Bounded::clip(vec![], 1.0), Bounded::clip(vec![0.0; 3], 1.0));
        let sizes = [none, three].map(|b| b.map(|b| (b.len(), b.is_empty())).unwrap());
        assert_eq!(sizes, [(0, true), (3, false)]);
    }

    #[test]
    fn not_a_number_is_refused_with_its_position() {
        // Two of them: what counts how many bits are set must not take an even number for none.
        let nan = Bounded::from_clipped_sum(vec![0.3, f32::NAN, f32::NAN], 1.0);
        assert!(matches!(nan, Err(Error::NotFinite { position: 1, .. })));
        let infinite = Bounded::clip(vec![f32::INFINITY], 1.0);
        assert!(matches!(infinite, Err(Error::NotFinite { position: 0, .. })));
        for norm in [f64::NAN, 0.0, -1.0, f64::INFINITY] {
            assert!(matches!(Bounded::clip(vec![0.0], norm), Err(Error::OutOfRange(_))));
        }
    }
}
