//! The kernels of the sums: rows scaled and multiplied a block at a time.
//!
//! Every sum is one of rounded products in the order of the rows, whatever instructions the processor has: it depends neither on the
//! machine nor on how rows are put into blocks.
use super::bounds::{Bounds, Clipped, Interval, Missing};
use pulp::Arch;

/// Numbers that are treated together.
pub(super) const LANES: usize = 8;
/// Rows of a sum that are treated together: as many vectors as there are registers for.
const ROWS: usize = 4;
/// Numbers of a block: few, so that its rows are scaled while the next ones come from the memory.
const BLOCK: usize = 512;

/// Length of a row of so many numbers with its target behind them, filled up with zeros.
pub(super) const fn stride(dimension: usize) -> usize {
    (dimension + 1).next_multiple_of(LANES)
}
/// Rows of a block.
pub(super) const fn block_rows(dimension: usize) -> usize {
    let rows = BLOCK / stride(dimension);
    if rows < 16 { 16 } else { rows }
}

/// Bounds number by number, so that a row is scaled [`LANES`] numbers at a time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scale {
    features: usize,
    dimension: usize,
    low: Vec<f64>,
    high: Vec<f64>,
    middle: Vec<f64>,
    /// One over half the room between the bounds.
    factor: Vec<f64>,
    /// One over the radius.
    shrink: f64,
    target: Interval,
    cuts: bool,
    missing: Missing,
}
impl Scale {
    pub(super) fn new(bounds: &Bounds) -> Self {
        let dimension = bounds.dimension();
        let mut scale = Self {
            features: bounds.features.len(),
            dimension,
            low: vec![0.0; stride(dimension)],
            high: vec![0.0; stride(dimension)],
            middle: vec![0.0; stride(dimension)],
            factor: vec![0.0; stride(dimension)],
            shrink: bounds.row_radius().recip(),
            target: bounds.target,
            cuts: bounds.radius.is_some(),
            missing: bounds.missing,
        };
        for (at, interval) in bounds.features.iter().enumerate() {
            (scale.low[at], scale.high[at]) = (interval.low(), interval.high());
            (scale.middle[at], scale.factor[at]) = (interval.middle(), interval.half().recip());
        }
        // The constant is a 1 like one of the row.
        for at in bounds.features.len()..dimension {
            (scale.low[at], scale.high[at], scale.factor[at]) = (1.0, 1.0, 1.0);
        }
        scale
    }
    pub(super) const fn features(&self) -> usize {
        self.features
    }
    pub(super) const fn dimension(&self) -> usize {
        self.dimension
    }
    /// Scales a row into `out`, `[stride]`, its target behind it; else says which number is neither finite nor a missing one that counts
    /// as the middle: a feature, or `None` for the target. The length of the scaled row is at most 1.
    pub(super) fn row(
        &self,
        features: &[f64],
        target: f64,
        out: &mut [f64],
        clipped: &mut Clipped,
    ) -> Result<(), Option<usize>> {
        let mut moved = vec![[0; LANES]; stride(self.dimension) / LANES];
        let mut padded = vec![0.0; stride(self.dimension)];
        padded[..self.features].copy_from_slice(features);
        let mut odd = [0.0; LANES];
        self.scale_numbers(&padded, out, &mut moved, &mut odd);
        if odd.iter().any(|x| x.is_nan()) || !target.is_finite() {
            return self.odd_row(features, target, out, clipped);
        }
        clipped.features += moved.as_flattened()[..self.features].iter().sum::<u64>();
        self.finish_row(target, out, clipped);
        Ok(())
    }
    /// Every number of `from`, `[at least stride]`, into `[-1, 1]` and over the radius, the constant and zeros behind the features. Counts
    /// by place how many had to be moved into their bounds; `odd` becomes NaN where one is not finite, also behind the row.
    #[inline(always)]
    fn scale_numbers(
        &self,
        from: &[f64],
        out: &mut [f64],
        moved: &mut [[u64; LANES]],
        odd: &mut [f64; LANES],
    ) {
        const fn chunks(numbers: &[f64]) -> &[[f64; LANES]] {
            numbers.as_chunks().0
        }
        let bounds = chunks(&self.low).iter().zip(chunks(&self.high));
        let scales = chunks(&self.middle).iter().zip(chunks(&self.factor));
        let numbers = chunks(from).iter().zip(out.as_chunks_mut().0).zip(moved);
        for ((((x, out), moved), (low, high)), (middle, factor)) in numbers.zip(bounds).zip(scales)
        {
            // One step for all lanes after the other, so that each is one instruction.
            let mut y = *x;
            for lane in 0..LANES {
                y[lane] = if y[lane] < low[lane] { low[lane] } else { y[lane] };
            }
            for lane in 0..LANES {
                y[lane] = if y[lane] > high[lane] { high[lane] } else { y[lane] };
            }
            for lane in 0..LANES {
                moved[lane] += u64::from(y[lane].to_bits() != x[lane].to_bits());
            }
            for lane in 0..LANES {
                // 0 times a number is NaN if it is not finite.
                odd[lane] += 0.0 * x[lane];
            }
            for lane in 0..LANES {
                y[lane] = (y[lane] - middle[lane]) * factor[lane];
            }
            for y in &mut y {
                *y = if *y < -1.0 { -1.0 } else { *y };
            }
            for y in &mut y {
                *y = if *y > 1.0 { 1.0 } else { *y };
            }
            for y in &mut y {
                *y *= self.shrink;
            }
            *out = y;
        }
    }
    /// Cuts a row off at length 1 and puts its target behind it.
    #[inline(always)]
    fn finish_row(&self, target: f64, row: &mut [f64], clipped: &mut Clipped) {
        let mut squares = [0.0; LANES];
        for row in row.as_chunks::<LANES>().0 {
            for lane in 0..LANES {
                squares[lane] += row[lane] * row[lane];
            }
        }
        let [a, b, c, d, e, f, g, h] = squares;
        let square = ((a + e) + (c + g)) + ((b + f) + (d + h));
        if square > 1.0 {
            self.cut_off(square, row, clipped);
        }
        clipped.targets += u64::from(!self.target.holds(target));
        row[self.dimension] = self.target.unit(target);
    }
    /// Rare, and slow: kept from being worked out for every row.
    #[cold]
    #[inline(never)]
    fn cut_off(&self, square: f64, row: &mut [f64], clipped: &mut Clipped) {
        // The root of the dimension is exceeded by rounding alone.
        clipped.rows += u64::from(self.cuts);
        let length = square.sqrt() * (1.0 + 1e-15);
        row.iter_mut().for_each(|x| *x /= length);
    }
    #[cold]
    fn odd_row(
        &self,
        features: &[f64],
        target: f64,
        out: &mut [f64],
        clipped: &mut Clipped,
    ) -> Result<(), Option<usize>> {
        let missing = |x: f64| self.missing == Missing::Middle && x.is_nan();
        let middle = |(at, x): (usize, &f64)| if missing(*x) { self.middle[at] } else { *x };
        let filled: Vec<f64> = features.iter().enumerate().map(middle).collect();
        match filled.iter().position(|x| !x.is_finite()) {
            None if target.is_finite() => {
                clipped.missing += features.iter().filter(|x| missing(**x)).count() as u64;
                self.row(&filled, target, out, clipped)
            }
            wrong => Err(wrong),
        }
    }
}

/// Scales rows into `out`, `[rows, stride]`, up to the first that is refused: its place, and as [`Scale::row`]. There may be more features
/// than those of the targets; `moved` is room that is kept.
pub(super) fn scale_rows(
    scale: &Scale,
    features: &[f64],
    targets: &[f64],
    out: &mut [f64],
    moved: &mut Vec<[u64; LANES]>,
    clipped: &mut Clipped,
) -> Result<(), (usize, Option<usize>)> {
    let stride = stride(scale.dimension);
    moved.clear();
    moved.resize(stride / LANES, [0; LANES]);
    let (mut odd, counted) = ([0.0; LANES], moved.as_mut_slice());
    let (before, now, places) = (*clipped, &mut *clipped, &mut odd);
    let rows = &mut *out;
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let (rows, counted, now, places) = (rows, counted, now, places);
            for ((at, target), out) in targets.iter().enumerate().zip(rows.chunks_exact_mut(stride))
            {
                let row = &features[at * scale.features..];
                if row.len() < stride {
                    // The last row of all has nothing behind it.
                    let mut padded = vec![0.0; stride];
                    padded[..scale.features].copy_from_slice(&row[..scale.features]);
                    scale.scale_numbers(&padded, out, counted, places);
                } else {
                    scale.scale_numbers(row, out, counted, places);
                }
                scale.finish_row(*target, out, now);
            }
        },
    );
    if !odd.iter().any(|x| x.is_nan()) && targets.iter().all(|y| y.is_finite()) {
        clipped.features += moved.as_flattened()[..scale.features].iter().sum::<u64>();
        return Ok(());
    }
    *clipped = before;
    for (at, (target, out)) in targets.iter().zip(out.chunks_exact_mut(stride)).enumerate() {
        let features = &features[at * scale.features..][..scale.features];
        scale.row(features, *target, out, clipped).map_err(|wrong| (at, wrong))?;
    }
    Ok(())
}

/// Adds the products of every two numbers of a row to `sums`, `[stride, stride]`, row after row of `rows`, `[rows, stride]`. What stands
/// more than [`LANES`] below the diagonal is left out.
pub(super) fn add_products(sums: &mut [f64], rows: &[f64], stride: usize) {
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let sums = sums;
            for i in (0..stride).step_by(ROWS) {
                for j in (i / LANES * LANES..stride).step_by(LANES) {
                    tile(sums, rows, stride, i, j);
                }
            }
        },
    );
}
#[inline(always)]
fn tile(sums: &mut [f64], rows: &[f64], stride: usize, i: usize, j: usize) {
    let mut tile = [[0.0; LANES]; ROWS];
    for (k, tile) in tile.iter_mut().enumerate() {
        tile.copy_from_slice(&sums[(i + k) * stride + j..][..LANES]);
    }
    for row in rows.chunks_exact(stride) {
        let (mut a, mut b) = ([0.0; ROWS], [0.0; LANES]);
        a.copy_from_slice(&row[i..i + ROWS]);
        b.copy_from_slice(&row[j..j + LANES]);
        for k in 0..ROWS {
            for lane in 0..LANES {
                tile[k][lane] += a[k] * b[lane];
            }
        }
    }
    for (k, tile) in tile.iter().enumerate() {
        sums[(i + k) * stride + j..][..LANES].copy_from_slice(tile);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_added_in_the_order_of_the_rows_to_the_last_bit() {
        for dimension in [1, 6, 7, 8, 15, 16, 40] {
            let stride = stride(dimension);
            let mut state = 1_u64;
            let mut number = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
            };
            let rows: Vec<f64> = (0..300 * stride).map(|_| number()).collect();
            let mut sums = vec![0.0; stride * stride];
            // In blocks of any size.
            let (first, rest) = rows.split_at(7 * stride);
            add_products(&mut sums, first, stride);
            add_products(&mut sums, rest, stride);
            for i in 0..stride {
                for j in i..stride {
                    let products = rows.chunks_exact(stride).map(|row| row[i] * row[j]);
                    let expected = products.fold(0.0_f64, |sum, product| sum + product);
                    assert_eq!(sums[i * stride + j].to_bits(), expected.to_bits(), "{i} {j}");
                }
            }
        }
    }
}
