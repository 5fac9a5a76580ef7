//! Local response normalization.
use super::combine::{rows, rows_mut};
use super::{Misfit, Operation, Read, Scratch, only};
use crate::kernels::Write;
use serde::{Deserialize, Serialize};

/// `x_c / (bias + alpha / size sum_d x_d^2)^beta` over the `size` channels `d` around `c`. Channels are the first
/// axis.
///
/// # Source
/// Krizhevsky et al., *`ImageNet` Classification with Deep Convolutional Neural Networks*, NIPS 2012, section 3.3; the
/// division by `size` is ONNX's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalResponse {
    /// Channels in a sum, an odd number.
    pub size: usize,
    /// Of the mean square.
    pub alpha: f32,
    /// The exponent.
    pub beta: f32,
    /// Above 0.
    pub bias: f32,
}

impl Operation for LocalResponse {
    fn output_shape(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, Misfit> {
        if self.size.is_multiple_of(2) || self.bias <= 0.0 || self.bias.is_nan() {
            return Err(Misfit::new("an odd size and a bias above 0"));
        }
        only(inputs).map(<[_]>::to_vec)
    }
    fn forward(&self, read: &Read<'_>, output: &mut [f32], scratch: &mut Scratch) {
        let scales = &mut scratch.columns;
        for (out, x) in rows_mut(output, read.records).zip(rows(read.inputs[0], read.records)) {
            self.scales(x, read.shapes[0][0], scales);
            for ((out, x), scale) in out.iter_mut().zip(x).zip(scales.iter()) {
                *out = x * libm::powf(*scale, -self.beta);
            }
        }
    }
    /// With `s` the sums that are raised to `-beta`: `g_c s_c^-beta - 2 alpha beta / size x_c sum_d g_d x_d
    /// s_d^(-beta - 1)`, over the channels `d` around which `c` lies.
    fn input_gradient(
        &self,
        read: &Read<'_>,
        _: usize,
        gradient: &[f32],
        out: &mut [f32],
        write: Write,
        scratch: &mut Scratch,
    ) {
        if write == Write::Overwrite {
            out.fill(0.0);
        }
        let channels = read.shapes[0][0];
        let factor = 2.0 * self.alpha * self.beta / self.size as f32;
        let (scales, terms) = (&mut scratch.columns, &mut scratch.products);
        let records = rows(read.inputs[0], read.records).zip(rows(gradient, read.records));
        for (out, (x, g)) in rows_mut(out, read.records).zip(records) {
            self.scales(x, channels, scales);
            terms.clear();
            terms.extend(x.iter().zip(g).zip(scales.iter_mut()).map(|((x, g), scale)| {
                let power = libm::powf(*scale, -self.beta);
                let term = g * x * power / *scale;
                *scale = power;
                term
            }));
            let inner = x.len() / channels;
            for c in 0..channels {
                let around = self.around(c, channels);
                for i in 0..inner {
                    let sum: f32 = around.clone().map(|d| terms[d * inner + i]).sum();
                    let at = c * inner + i;
                    out[at] += (factor * x[at]).mul_add(-sum, g[at] * scales[at]);
                }
            }
        }
    }
}
impl LocalResponse {
    /// The channels around `c`, which are also those that `c` is around of.
    fn around(self, c: usize, channels: usize) -> std::ops::Range<usize> {
        let reach = self.size / 2;
        c.saturating_sub(reach)..c.saturating_add(reach + 1).min(channels)
    }
    fn scales(self, x: &[f32], channels: usize, out: &mut Vec<f32>) {
        let inner = x.len() / channels;
        out.clear();
        for c in 0..channels {
            let around = self.around(c, channels);
            out.extend((0..inner).map(|i| {
                let squares: f32 = around.clone().map(|d| x[d * inner + i].powi(2)).sum();
                (self.alpha / self.size as f32).mul_add(squares, self.bias)
            }));
        }
    }
}
