//! The small matrices that take tiles there and back.

/// Channels, or kernels, that are transformed side by side: the numbers of a register.
pub(super) const LANES: usize = 16;
/// One number each of so many channels.
pub(super) type Vector = [f32; LANES];
pub(super) const ZERO: Vector = [0.0; LANES];

/// A matrix `[TO, FROM]`, known when compiled: its zeros and ones cost nothing.
pub(super) trait Map<const FROM: usize, const TO: usize> {
    const MATRIX: [[f32; FROM]; TO];
}

/// `B^T`: numbers that are read.
pub(super) struct Input;
/// `G`: kernels.
pub(super) struct Kernel;
/// `A^T`: numbers that are written.
pub(super) struct Output;
/// A transpose: the gradient of the map.
pub(super) struct Transposed<M>(M);

impl<const FROM: usize, const TO: usize, M: Map<FROM, TO>> Map<TO, FROM> for Transposed<M> {
    const MATRIX: [[f32; TO]; FROM] = {
        let mut out = [[0.0; TO]; FROM];
        let mut i = 0;
        while i < TO {
            let mut j = 0;
            while j < FROM {
                out[j][i] = M::MATRIX[i][j];
                j += 1;
            }
            i += 1;
        }
        out
    };
}

/// The points of tiles of 6 x 6 besides infinity. Rounding errors are 1.9 times those of the sum itself with windows of 3 x 3 and 1.6
/// times with 5 x 5; with 1 and 2, as often printed, 4.1 and 3.3 times (`bench/check/rounding_of_tiles.py`).
const POINTS: [f32; 5] = [0.0, NEAR, -NEAR, FAR, -FAR];
const NEAR: f32 = 0.75;
const FAR: f32 = 1.5;
const NEAR_2: f32 = NEAR * NEAR;
const FAR_2: f32 = FAR * FAR;

impl Map<4, 4> for Input {
    const MATRIX: [[f32; 4]; 4] =
        [[1.0, 0.0, -1.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, -1.0, 1.0, 0.0], [0.0, 1.0, 0.0, -1.0]];
}
impl Map<3, 4> for Kernel {
    const MATRIX: [[f32; 3]; 4] =
        [[1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]];
}
impl Map<4, 2> for Output {
    const MATRIX: [[f32; 4]; 2] = [[1.0, 1.0, 1.0, 0.0], [0.0, 1.0, -1.0, -1.0]];
}

/// In each row the polynomial that is 0 at all other points, from the constant on; in the last one that is 0 at all.
impl Map<6, 6> for Input {
    const MATRIX: [[f32; 6]; 6] = [
        [NEAR_2 * FAR_2, 0.0, -(NEAR_2 + FAR_2), 0.0, 1.0, 0.0],
        [0.0, -NEAR * FAR_2, -FAR_2, NEAR, 1.0, 0.0],
        [0.0, NEAR * FAR_2, -FAR_2, -NEAR, 1.0, 0.0],
        [0.0, -NEAR_2 * FAR, -NEAR_2, FAR, 1.0, 0.0],
        [0.0, NEAR_2 * FAR, -NEAR_2, -FAR, 1.0, 0.0],
        [0.0, NEAR_2 * FAR_2, 0.0, -(NEAR_2 + FAR_2), 0.0, 1.0],
    ];
}
/// Powers of each point over what its polynomial is there; of infinity the last.
impl<const TAPS: usize> Map<TAPS, 6> for Kernel {
    const MATRIX: [[f32; TAPS]; 6] = {
        let mut out = [[0.0; TAPS]; 6];
        out[5][TAPS - 1] = 1.0;
        let mut i = 0;
        while i < POINTS.len() {
            let (mut scale, mut k) = (1.0, 0);
            while k < POINTS.len() {
                if k != i {
                    scale /= POINTS[i] - POINTS[k];
                }
                k += 1;
            }
            let mut j = 0;
            while j < TAPS {
                out[i][j] = scale;
                scale *= POINTS[i];
                j += 1;
            }
            i += 1;
        }
        out
    };
}
/// Powers of the points; of infinity the last.
impl<const OUT: usize> Map<6, OUT> for Output {
    const MATRIX: [[f32; 6]; OUT] = {
        let mut out = [[0.0; 6]; OUT];
        out[OUT - 1][5] = 1.0;
        let mut j = 0;
        while j < POINTS.len() {
            let (mut power, mut i) = (1.0, 0);
            while i < OUT {
                out[i][j] = power;
                power *= POINTS[j];
                i += 1;
            }
            j += 1;
        }
        out
    };
}

/// The map along one axis. Lane by lane on the outside, which is how the loops become instructions on whole registers.
#[inline(always)]
fn along<M: Map<FROM, TO>, const FROM: usize, const TO: usize>(
    from: [&Vector; FROM],
    to: &mut [Vector; TO],
) {
    for lane in 0..LANES {
        for (out, factors) in to.iter_mut().zip(&M::MATRIX) {
            let (mut sum, mut first) = (0.0, true);
            for (factor, numbers) in factors.iter().zip(&from) {
                if *factor != 0.0 {
                    let x = numbers[lane];
                    sum = if first { factor * x } else { factor.mul_add(x, sum) };
                    first = false;
                }
            }
            out[lane] = sum;
        }
    }
}

/// The map along both axes, `M x M^T`: from numbers by row and column to numbers, row after row.
#[inline(always)]
pub(super) fn both<'a, M: Map<FROM, TO>, const FROM: usize, const TO: usize>(
    number: impl Fn(usize, usize) -> &'a Vector,
    mut each: impl FnMut(usize, &Vector),
) {
    let mut rows = [[ZERO; TO]; FROM];
    for (r, out) in rows.iter_mut().enumerate() {
        let mut from = [&ZERO; FROM];
        for (c, from) in from.iter_mut().enumerate() {
            *from = number(r, c);
        }
        along::<M, FROM, TO>(from, out);
    }
    for c in 0..TO {
        let mut from = [&ZERO; FROM];
        for (from, row) in from.iter_mut().zip(&rows) {
            *from = &row[c];
        }
        let mut to = [ZERO; TO];
        along::<M, FROM, TO>(from, &mut to);
        for (r, numbers) in to.iter().enumerate() {
            each(r * TO + c, numbers);
        }
    }
}

/// Exchanges rows and columns: four times, the upper half of the rows is shuffled into the lower one.
#[inline(always)]
pub(super) fn transpose(from: [&Vector; LANES], to: &mut [Vector; LANES]) {
    let mut shuffled = [ZERO; LANES];
    shuffle(from, &mut shuffled);
    shuffle(shuffled.each_ref(), to);
    shuffle(to.each_ref(), &mut shuffled);
    shuffle(shuffled.each_ref(), to);
}
#[inline(always)]
fn shuffle(rows: [&Vector; LANES], out: &mut [Vector; LANES]) {
    const HALF: usize = LANES / 2;
    for i in 0..HALF {
        let (upper, lower) = (rows[i], rows[i + HALF]);
        for k in 0..HALF {
            out[2 * i][2 * k] = upper[k];
            out[2 * i][2 * k + 1] = lower[k];
            out[2 * i + 1][2 * k] = upper[k + HALF];
            out[2 * i + 1][2 * k + 1] = lower[k + HALF];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Along one axis: the outputs are the sums of a window over the inputs.
    fn sums_over_windows<const TAPS: usize, const OUT: usize, const ALL: usize>()
    where
        Input: Map<ALL, ALL>,
        Kernel: Map<TAPS, ALL>,
        Output: Map<ALL, OUT>,
    {
        for input in 0..ALL {
            for tap in 0..TAPS {
                for output in 0..OUT {
                    let sum: f32 = (0..ALL)
                        .map(|k| {
                            <Output as Map<ALL, OUT>>::MATRIX[output][k]
                                * <Kernel as Map<TAPS, ALL>>::MATRIX[k][tap]
                                * <Input as Map<ALL, ALL>>::MATRIX[k][input]
                        })
                        .sum();
                    let right = f32::from(u8::from(input == output + tap));
                    assert!((sum - right).abs() < 1e-6, "{input} {tap} {output}: {sum}");
                }
            }
        }
    }
    #[test]
    fn the_maps_together_are_a_sum_over_windows() {
        sums_over_windows::<3, 2, 4>();
        sums_over_windows::<3, 4, 6>();
        sums_over_windows::<5, 2, 6>();
    }

    #[test]
    fn rows_become_columns() {
        let rows: [Vector; LANES] =
            std::array::from_fn(|r| std::array::from_fn(|c| (r * LANES + c) as f32));
        let mut columns = [ZERO; LANES];
        transpose(rows.each_ref(), &mut columns);
        for (c, column) in columns.iter().enumerate() {
            for (r, x) in column.iter().enumerate() {
                assert!((x - (r * LANES + c) as f32).abs() < 0.5);
            }
        }
    }
}
