//! Elementwise functions, compiled for several instruction sets and dispatched at run time.
//!
//! `exp` and its relatives are computed here, not by the platform's library, so that they vectorise and give the
//! same bits everywhere. NaN stays NaN.
use pulp::Arch;

/// `e^x - 1` for `|x| <= 88`, and `2^n` of its range reduction: returns `(m, s)` with `e^x - 1 = s m + (s - 1)`.
///
/// `x = n ln 2 + r`, `|r| <= ln(2)/2`; `m = e^r - 1` by its Taylor polynomial of degree 8, whose remainder there is
/// below 3e-10 relative, far under half a unit in the last place.
#[inline(always)]
fn reduced_exp(x: f32) -> (f32, f32) {
    const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23: adding it rounds to an integer in the low bits
    const LN_2_HIGH: f32 = 0.693_359_4; // exact in 10 bits, so n * LN_2_HIGH is exact
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2_HIGH, x));
    let mut tail = 1.0 / 40_320.0;
    tail = r.mul_add(tail, 1.0 / 5_040.0);
    tail = r.mul_add(tail, 1.0 / 720.0);
    tail = r.mul_add(tail, 1.0 / 120.0);
    tail = r.mul_add(tail, 1.0 / 24.0);
    tail = r.mul_add(tail, 1.0 / 6.0);
    tail = r.mul_add(tail, 0.5);
    let m = (r * r).mul_add(tail, r);
    let exponent =
        (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32).wrapping_add(127);
    (m, f32::from_bits((exponent << 23) as u32))
}

/// `x` limited to `[-limit, limit]`; NaN stays NaN (unlike `f32::clamp` via `min` and `max` instructions).
#[inline(always)]
fn limit(x: f32, limit: f32) -> f32 {
    let x = if x > limit { limit } else { x };
    if x < -limit { -limit } else { x }
}

/// `e^x`, for `|x| <= 87`.
#[inline(always)]
pub(crate) fn exp_of(x: f32) -> f32 {
    // e^-87 = 1.6e-38 is the least normal result; smaller arguments give that instead of a subnormal or 0.
    let (m, s) = reduced_exp(limit(x, 87.0));
    s.mul_add(m, s)
}

#[inline(always)]
pub(crate) fn sigmoid_of(x: f32) -> f32 {
    1.0 / (1.0 + exp_of(-x))
}

#[inline(always)]
fn tanh_of(x: f32) -> f32 {
    // tanh(9.1) rounds to 1. With t = e^2x - 1: tanh = t / (t + 2), free of cancellation for either sign.
    let (m, s) = reduced_exp(2.0 * limit(x, 9.1));
    let t = s.mul_add(m, s - 1.0);
    t / (t + 2.0)
}

/// `x = f(x)` for each. The closure must give its captures away: one that could be called twice is called through a shim,
/// which is compiled without the vector instructions. The same holds wherever [`Arch`] is used.
#[inline(always)]
fn map(values: &mut [f32], f: impl Fn(f32) -> f32) {
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            for x in values {
                *x = f(*x);
            }
        },
    );
}

/// `x = f(x, y)` for each pair.
#[inline(always)]
fn map_with(values: &mut [f32], others: &[f32], f: impl Fn(f32, f32) -> f32) {
    assert_eq!(values.len(), others.len());
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let values = values;
            for (x, y) in values.iter_mut().zip(others) {
                *x = f(*x, *y);
            }
        },
    );
}

/// A choice without a branch: written with `if`, stores become conditional, which costs a misprediction or a slow masked
/// store for every other number of random sign.
#[inline(always)]
fn select(condition: bool, yes: f32, no: f32) -> f32 {
    let mask = u32::from(condition).wrapping_neg();
    f32::from_bits((yes.to_bits() & mask) | (no.to_bits() & !mask))
}

/// `x = tanh(x)`, error below 2 units in the last place.
pub fn tanh(values: &mut [f32]) {
    map(values, tanh_of);
}

/// `gradient *= 1 - y^2`, where `y = tanh(x)`.
///
/// # Panics
/// If the lengths differ; so do the other gradients and [`axpy`].
pub fn tanh_gradient(gradient: &mut [f32], outputs: &[f32]) {
    map_with(
        gradient,
        outputs,
        #[inline(always)]
        |g, y| g * y.mul_add(-y, 1.0),
    );
}

/// `x = 1 / (1 + e^-x)`.
pub fn sigmoid(values: &mut [f32]) {
    map(values, sigmoid_of);
}

/// `gradient *= y (1 - y)`, where `y = sigmoid(x)`.
pub fn sigmoid_gradient(gradient: &mut [f32], outputs: &[f32]) {
    map_with(
        gradient,
        outputs,
        #[inline(always)]
        |g, y| g * (y * (1.0 - y)),
    );
}

/// `x = max(x, 0)`; NaN stays NaN.
pub fn relu(values: &mut [f32]) {
    map(
        values,
        #[inline(always)]
        |x| select(x < 0.0, 0.0, x),
    );
}

/// `gradient = 0` where the output is not above 0.
pub fn relu_gradient(gradient: &mut [f32], outputs: &[f32]) {
    map_with(
        gradient,
        outputs,
        #[inline(always)]
        |g, y| select(y <= 0.0, 0.0, g),
    );
}

/// `x = slope x` where `x < 0`.
pub fn leaky_relu(values: &mut [f32], slope: f32) {
    map(
        values,
        #[inline(always)]
        move |x| select(x < 0.0, slope * x, x),
    );
}

/// `gradient *= slope` where the output is not above 0 (`slope > 0`, so the output has the sign of the input).
pub fn leaky_relu_gradient(gradient: &mut [f32], outputs: &[f32], slope: f32) {
    map_with(
        gradient,
        outputs,
        #[inline(always)]
        move |g, y| select(y <= 0.0, slope * g, g),
    );
}

/// `x = factor x`.
pub fn scale(values: &mut [f32], factor: f32) {
    map(
        values,
        #[inline(always)]
        move |x| x * factor,
    );
}

/// `x = factor x`, and 0 where that is below the normal numbers (1.2e-38): beyond rounding by 2^-24 relative, nothing
/// grows.
pub fn scale_down(values: &mut [f32], factor: f32) {
    map(
        values,
        #[inline(always)]
        move |x| {
            let y = x * factor;
            select(y.abs() < f32::MIN_POSITIVE, 0.0, y)
        },
    );
}

/// `out += factor values`.
pub fn axpy(out: &mut [f32], factor: f32, values: &[f32]) {
    map_with(
        out,
        values,
        #[inline(always)]
        move |o, x| x.mul_add(factor, o),
    );
}

/// `out = factor x + constant`.
///
/// # Panics
/// If the lengths differ.
pub fn affine(values: &[f32], factor: f32, constant: f32, out: &mut [f32]) {
    map_with(
        out,
        values,
        #[inline(always)]
        move |_, x| x.mul_add(factor, constant),
    );
}

/// `out += factor x + other_factor y + constant`.
///
/// # Panics
/// If the lengths differ.
pub fn add_affine(
    values: &[f32],
    factor: f32,
    others: &[f32],
    other_factor: f32,
    constant: f32,
    out: &mut [f32],
) {
    assert!(values.len() == out.len() && others.len() == out.len());
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let out = out;
            for ((o, x), y) in out.iter_mut().zip(values).zip(others) {
                *o += x.mul_add(factor, y.mul_add(other_factor, constant));
            }
        },
    );
}

const LANES: usize = 16;

#[inline(always)]
fn softmax_row(row: &mut [f32]) -> (f32, f32) {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (whole, rest) = row.as_chunks::<LANES>();
    for chunk in whole {
        for (l, x) in lanes.iter_mut().zip(chunk) {
            *l = if *x > *l { *x } else { *l };
        }
    }
    let mut largest = f32::NEG_INFINITY;
    for x in lanes.iter().chain(rest) {
        largest = if *x > largest { *x } else { largest };
    }
    let mut sums = [0.0_f32; LANES];
    let (whole, rest) = row.as_chunks_mut::<LANES>();
    for chunk in whole {
        for (s, x) in sums.iter_mut().zip(chunk) {
            *x = exp_of(*x - largest);
            *s += *x;
        }
    }
    let mut sum: f32 = sums.iter().sum();
    for x in rest {
        *x = exp_of(*x - largest);
        sum += *x;
    }
    let inverse = 1.0 / sum;
    for x in row {
        *x *= inverse;
    }
    (largest, sum)
}

/// Softmax of each row of `width` numbers; calls `each(row, largest, sum)` with the row's largest number and
/// `sum = sum_j e^(x_j - largest)`, so that `largest + ln(sum)` is its log-sum-exp.
///
/// A row with NaN or an infinity of the wrong sign becomes NaN.
///
/// # Panics
/// If `width` is 0 and there are numbers.
pub fn softmax_rows(values: &mut [f32], width: usize, mut each: impl FnMut(usize, f32, f32)) {
    for (index, row) in values.chunks_exact_mut(width).enumerate() {
        let (largest, sum) = Arch::new().dispatch(
            #[inline(always)]
            move || {
                let row = row;
                softmax_row(row)
            },
        );
        each(index, largest, sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst_error(
        fast: impl Fn(f32) -> f32,
        exact: impl Fn(f64) -> f64,
        from: f32,
        to: f32,
    ) -> f64 {
        let steps = 200_000;
        (0..=steps)
            .map(|i| {
                let x = (to - from).mul_add(i as f32 / steps as f32, from);
                let y = exact(f64::from(x));
                ((f64::from(fast(x)) - y) / y).abs()
            })
            .fold(0.0, f64::max)
    }

    /// One unit in the last place is at most 1.2e-7 relative.
    #[test]
    fn exp_tanh_and_sigmoid_are_right_to_two_units_in_the_last_place() {
        assert!(worst_error(exp_of, f64::exp, -87.0, 87.0) < 2.4e-7);
        assert!(worst_error(tanh_of, f64::tanh, 1e-6, 12.0) < 2.4e-7);
        assert!(worst_error(tanh_of, f64::tanh, -1e-3, -1e-7) < 2.4e-7);
        let one = |x: f32| {
            let mut v = [x];
            sigmoid(&mut v);
            v[0]
        };
        assert!(worst_error(one, |x| 1.0 / (1.0 + (-x).exp()), -80.0, 80.0) < 2.4e-7);
    }

    #[test]
    fn functions_meet_their_limits_and_keep_nan() {
        let mut v = [0.0, 50.0, -50.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
        tanh(&mut v);
        assert_eq!(v[..5], [0.0, 1.0, -1.0, 1.0, -1.0]);
        assert!(v[5].is_nan());
        let mut v = [f32::INFINITY, 3.0, -2.0, f32::NEG_INFINITY, f32::NAN];
        relu(&mut v);
        assert_eq!(v[..4], [f32::INFINITY, 3.0, 0.0, 0.0]);
        assert!(v[4].is_nan());
        let mut v = [1.5e-38, -4.0, f32::NAN];
        scale_down(&mut v, 0.5);
        assert_eq!(v[..2], [0.0, -2.0]);
        assert!(v[2].is_nan());
        let mut v = [0.0, f32::NAN];
        sigmoid(&mut v);
        assert!((v[0] - 0.5).abs() < 1e-7 && v[1].is_nan());
    }

    /// By hand: softmax of (0, ln 3) is (1/4, 3/4); the second row shows that size does not matter.
    #[test]
    fn softmax_is_as_by_hand_even_for_large_logits() {
        let mut v = [0.0, 3_f32.ln(), 1000.0, 1000.0];
        let mut sums = vec![];
        softmax_rows(&mut v, 2, |row, largest, sum| sums.push((row, largest, sum)));
        for (got, right) in v.iter().zip([0.25, 0.75, 0.5, 0.5]) {
            assert!((got - right).abs() < 1e-6);
        }
        assert!((sums[0].2 - 4.0 / 3.0).abs() < 1e-6 && (sums[1].2 - 2.0).abs() < 1e-6);
        let mut v = [f32::NAN, 1.0, 2.0];
        softmax_rows(&mut v, 3, |_, _, _| ());
        assert!(v.iter().all(|x| x.is_nan()));
    }
}
