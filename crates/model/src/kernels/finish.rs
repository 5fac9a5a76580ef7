//! What becomes of numbers on their way from registers to memory: a bias is added and they are clipped, instead of a pass
//! for each later on.
use pulp::Arch;

/// The range to which numbers are clipped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Numbers below become this.
    pub low: f32,
    /// Numbers above become this.
    pub high: f32,
}
impl Limits {
    /// Every number stays as it is.
    pub const NONE: Self = Self { low: f32::NEG_INFINITY, high: f32::INFINITY };

    /// The nearest number within. NaN stays NaN.
    #[inline(always)]
    #[must_use]
    pub fn of(self, x: f32) -> f32 {
        let x = if x < self.low { self.low } else { x };
        if x > self.high { self.high } else { x }
    }
    /// 1 strictly within, else 0: the slope of [`Self::of`], the same for what it reads and what it gives.
    #[inline(always)]
    #[must_use]
    pub fn slope(self, x: f32) -> f32 {
        f32::from(u8::from(x > self.low) & u8::from(x < self.high))
    }
}

/// What becomes of rows of sums.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finish<'a> {
    /// One for each row; none: 0.
    pub(crate) biases: &'a [f32],
    pub(crate) limits: Limits,
}
impl Finish<'_> {
    /// Of row `i`.
    pub(crate) fn bias(&self, row: usize) -> f32 {
        self.biases.get(row).copied().unwrap_or(0.0)
    }
    /// From row `first` on.
    pub(crate) fn from(&self, first: usize) -> Self {
        Self { biases: self.biases.get(first..).unwrap_or_default(), ..*self }
    }
}

/// `x = x` clipped to `limits`.
pub fn clip(values: &mut [f32], limits: Limits) {
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            for x in values {
                *x = limits.of(*x);
            }
        },
    );
}

/// `gradient = 0` where the clipped output lies on a limit.
///
/// # Panics
/// If the lengths differ.
pub fn clip_gradient(gradient: &mut [f32], outputs: &[f32], limits: Limits) {
    assert_eq!(gradient.len(), outputs.len());
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let gradient = gradient;
            for (g, y) in gradient.iter_mut().zip(outputs) {
                // Added to 0, as where gradients are added up: -0 becomes 0.
                *g = g.mul_add(limits.slope(*y), 0.0);
            }
        },
    );
}

/// `out = bias + sum`, clipped, for one row.
///
/// # Panics
/// If the lengths differ.
pub(crate) fn finish_row(sums: &[f32], bias: f32, limits: Limits, out: &mut [f32]) {
    assert_eq!(sums.len(), out.len());
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let out = out;
            for (o, sum) in out.iter_mut().zip(sums) {
                *o = limits.of(bias + sum);
            }
        },
    );
}

/// As [`finish_row`] in place, for the columns from `first` to `end` of rows of `columns` numbers.
pub(crate) fn finish_tile(
    out: &mut [f32],
    columns: usize,
    [first, end]: [usize; 2],
    finish: &Finish<'_>,
) {
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let out = out;
            for (i, row) in out.chunks_exact_mut(columns).enumerate() {
                let bias = finish.bias(i);
                for x in &mut row[first..end] {
                    *x = finish.limits.of(bias + *x);
                }
            }
        },
    );
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these values are exact")]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_clipped_and_nan_stays() {
        let limits = Limits { low: 0.0, high: 6.0 };
        let mut v = [-1.0, 0.0, 3.0, 6.0, 7.0, f32::INFINITY, f32::NAN];
        clip(&mut v, limits);
        assert_eq!(v[..6], [0.0, 0.0, 3.0, 6.0, 6.0, 6.0]);
        assert!(v[6].is_nan());
        let mut g = [1.0; 7];
        clip_gradient(&mut g, &v, limits);
        assert_eq!(g, [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
        let mut all = [f32::NEG_INFINITY, -3.0, f32::INFINITY];
        clip(&mut all, Limits::NONE);
        assert_eq!(all, [f32::NEG_INFINITY, -3.0, f32::INFINITY]);
    }

    #[test]
    fn rows_take_their_biases_and_only_the_columns_asked_for_change() {
        let mut out = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let finish = Finish { biases: &[10.0, -5.0], limits: Limits { low: 0.0, high: 12.5 } };
        finish_tile(&mut out, 3, [1, 3], &finish);
        assert_eq!(out, [1.0, 12.0, 12.5, 4.0, 0.0, 1.0]);
        finish_tile(&mut out, 6, [0, 1], &Finish { biases: &[], ..finish });
        assert_eq!(out[0], 1.0);
    }
}
