//! Functions of single numbers whose gradients are computed from what they read.
use super::{Misfit, Operation, Read, Scratch, only};
use crate::kernels::{Limits, Write, exp_of, sigmoid_of};
use pulp::Arch;
use serde::{Deserialize, Serialize};

/// A function applied to each of a record's numbers. Where it has no derivative, that on the left or the right
/// which is nearer to 0 is taken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Elementwise {
    /// `min(max(x, low), high)`.
    Clip {
        /// Absent: no limit.
        low: Option<f32>,
        /// Absent: no limit.
        high: Option<f32>,
    },
    /// `min(max(slope x + offset, 0), 1)`.
    HardSigmoid {
        /// Of the part that rises.
        slope: f32,
        /// At 0.
        offset: f32,
    },
    /// `x min(max(x / 6 + 1/2, 0), 1)`.
    HardSwish,
    /// `x`, or `scale (e^x - 1)` below 0.
    Elu {
        /// Below 0 it falls to `-scale`.
        scale: f32,
    },
    /// `ln(1 + e^x)`.
    Softplus,
    /// `|x|`.
    Absolute,
    /// `e^x`, for `|x| <= 87`; beyond that as at 87.
    Exponential,
    /// `ln x`.
    Logarithm,
    /// `sqrt x`.
    SquareRoot,
}

impl Elementwise {
    /// Of a function that only clips.
    pub(crate) fn limits(&self) -> Option<Limits> {
        match *self {
            Self::Clip { low, high } => Some(Limits {
                low: low.unwrap_or(f32::NEG_INFINITY),
                high: high.unwrap_or(f32::INFINITY),
            }),
            _ => None,
        }
    }
}

impl Operation for Elementwise {
    fn output_shape(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, Misfit> {
        if let Self::Clip { low: Some(low), high: Some(high) } = self
            && low > high
        {
            return Err(Misfit::new("a lower limit not above the upper one"));
        }
        only(inputs).map(<[_]>::to_vec)
    }
    fn forward(&self, read: &Read<'_>, output: &mut [f32], _: &mut Scratch) {
        let x = read.inputs[0];
        match *self {
            Self::Clip { .. } => {
                let limits = self.limits().unwrap_or(Limits::NONE);
                each(output, x, move |x| limits.of(x));
            }
            Self::HardSigmoid { slope, offset } => {
                each(output, x, move |x| clip(x.mul_add(slope, offset), 0.0, 1.0));
            }
            Self::HardSwish => each(output, x, |x| x * clip(x.mul_add(SIXTH, 0.5), 0.0, 1.0)),
            Self::Elu { scale } => {
                each(output, x, move |x| if x < 0.0 { scale * (exp_of(x) - 1.0) } else { x });
            }
            // ln(1 + e^-|x|) neither overflows nor vanishes early.
            Self::Softplus => each(output, x, |x| {
                let positive = if x > 0.0 { x } else { 0.0 };
                positive + libm::log1pf(exp_of(-x.abs()))
            }),
            Self::Absolute => each(output, x, f32::abs),
            Self::Exponential => each(output, x, exp_of),
            Self::Logarithm => each(output, x, libm::logf),
            Self::SquareRoot => each(output, x, f32::sqrt),
        }
    }
    fn input_gradient(
        &self,
        read: &Read<'_>,
        _: usize,
        gradient: &[f32],
        out: &mut [f32],
        write: Write,
        _: &mut Scratch,
    ) {
        let slopes = Slopes { x: read.inputs[0], gradient, write };
        match *self {
            Self::Clip { .. } => {
                let limits = self.limits().unwrap_or(Limits::NONE);
                slopes.apply(out, move |x| limits.slope(x));
            }
            Self::HardSigmoid { slope, offset } => {
                slopes.apply(out, move |x| slope * inside(x.mul_add(slope, offset), 0.0, 1.0));
            }
            Self::HardSwish => slopes.apply(out, |x| {
                let rising = inside(x, -3.0, 3.0) * x.mul_add(2.0 * SIXTH, 0.5);
                if x >= 3.0 { 1.0 } else { rising }
            }),
            Self::Elu { scale } => {
                slopes.apply(out, move |x| if x < 0.0 { scale * exp_of(x) } else { 1.0 });
            }
            Self::Softplus => slopes.apply(out, sigmoid_of),
            Self::Absolute => {
                slopes.apply(out, |x| f32::from(i8::from(x > 0.0) - i8::from(x < 0.0)));
            }
            Self::Exponential => slopes.apply(out, |x| inside(x, -87.0, 87.0) * exp_of(x)),
            Self::Logarithm => slopes.apply(out, |x| 1.0 / x),
            Self::SquareRoot => slopes.apply(out, |x| 0.5 / x.sqrt()),
        }
    }
}

const SIXTH: f32 = 1.0 / 6.0;

#[inline(always)]
fn clip(x: f32, low: f32, high: f32) -> f32 {
    Limits { low, high }.of(x)
}
#[inline(always)]
fn inside(x: f32, low: f32, high: f32) -> f32 {
    Limits { low, high }.slope(x)
}
#[inline(always)]
fn each(out: &mut [f32], x: &[f32], f: impl Fn(f32) -> f32) {
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let out = out;
            for (out, x) in out.iter_mut().zip(x) {
                *out = f(*x);
            }
        },
    );
}
struct Slopes<'a> {
    x: &'a [f32],
    gradient: &'a [f32],
    write: Write,
}
impl Slopes<'_> {
    #[inline(always)]
    fn apply(self, out: &mut [f32], slope: impl Fn(f32) -> f32) {
        if self.write == Write::Overwrite {
            out.fill(0.0);
        }
        Arch::new().dispatch(
            #[inline(always)]
            move || {
                let out = out;
                for ((out, x), g) in out.iter_mut().zip(self.x).zip(self.gradient) {
                    *out += g * slope(*x);
                }
            },
        );
    }
}
