//! Windows that slide over planes: what convolutions and pooling share.
use super::Misfit;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A window that slides over each channel. `[height, width]` each; a signal of one dimension is an image of height 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Numbers it covers.
    pub kernel: [usize; 2],
    /// Steps between windows.
    pub stride: [usize; 2],
    /// Steps between the numbers covered.
    pub dilation: [usize; 2],
    /// Rows and columns added before the first: top, left.
    pub before: [usize; 2],
    /// Rows and columns added behind the last: bottom, right.
    pub after: [usize; 2],
}

/// Numbers of a row that are copied together.
const SHORT: usize = 16;

/// A window on planes of one size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plane {
    /// Height and width of the input.
    pub(crate) input: [usize; 2],
    /// Height and width of the output.
    pub(crate) output: [usize; 2],
}
impl Plane {
    pub(crate) const fn area(&self) -> usize {
        self.input[0] * self.input[1]
    }
    pub(crate) const fn places(&self) -> usize {
        self.output[0] * self.output[1]
    }
}

impl Window {
    /// A square kernel moved step by step, padded so that the output has the input's size if the kernel is odd.
    #[must_use]
    pub const fn same(kernel: usize) -> Self {
        let pad = [(kernel - 1) / 2; 2];
        let rest = [kernel / 2; 2];
        Self { kernel: [kernel; 2], stride: [1; 2], dilation: [1; 2], before: pad, after: rest }
    }
    /// A square kernel moved by its own size: windows next to each other.
    #[must_use]
    pub const fn tiles(size: usize) -> Self {
        let (none, size) = ([0; 2], [size; 2]);
        Self { kernel: size, stride: size, dilation: [1; 2], before: none, after: none }
    }
    /// Whether the output is the input: one number at every place.
    pub(crate) fn is_identity(&self) -> bool {
        self.kernel == [1; 2]
            && self.stride == [1; 2]
            && self.before == [0; 2]
            && self.after == [0; 2]
    }
    /// Windows along one axis of `size` numbers; `None` if the window does not fit or has a side of 0.
    fn windows(&self, axis: usize, size: usize) -> Option<usize> {
        let (kernel, stride) = (self.kernel[axis], self.stride[axis]);
        let reach = self.dilation[axis].checked_mul(kernel.checked_sub(1)?)?.checked_add(1)?;
        let padded = size.checked_add(self.before[axis])?.checked_add(self.after[axis])?;
        if stride == 0 || self.dilation[axis] == 0 {
            return None;
        }
        Some(padded.checked_sub(reach)? / stride + 1)
    }
    /// Shape of the output with so many channels.
    ///
    /// # Errors
    /// [`Misfit`] if `shape` is not `[channels, height, width]` or `[channels, length]`, or no window fits.
    pub(crate) fn output_shape(
        &self,
        shape: &[usize],
        channels: usize,
    ) -> Result<Vec<usize>, Misfit> {
        let none = || {
            Misfit::new(format!(
                "[channels, height, width] with room for a {} by {} window",
                self.kernel[0], self.kernel[1]
            ))
        };
        match *shape {
            [_, length] => {
                let flat = self.windows(0, 1).ok_or_else(none)?;
                let width = self.windows(1, length).ok_or_else(none)?;
                if flat == 1 { Ok(vec![channels, width]) } else { Err(none()) }
            }
            [_, height, width] => {
                let height = self.windows(0, height).ok_or_else(none)?;
                Ok(vec![channels, height, self.windows(1, width).ok_or_else(none)?])
            }
            _ => Err(none()),
        }
    }
    /// Of a shape that [`Self::output_shape`] has taken.
    pub(crate) fn plane(&self, shape: &[usize]) -> Plane {
        let input = match *shape {
            [_, height, width] => [height, width],
            [_, length] => [1, length],
            _ => [1, 1],
        };
        let windows = |axis: usize| self.windows(axis, input[axis]).unwrap_or(1);
        Plane { input, output: [windows(0), windows(1)] }
    }
    /// The numbers of a window in order: position, row, column.
    pub(crate) fn for_each_tap(&self, mut what: impl FnMut(usize, usize, usize)) {
        for ky in 0..self.kernel[0] {
            for kx in 0..self.kernel[1] {
                what(ky * self.kernel[1] + kx, ky, kx);
            }
        }
    }
    /// The windows along an axis whose number `k` lies inside, and the position of that number in the first of them.
    pub(crate) fn inside(&self, plane: Plane, axis: usize, k: usize) -> (Range<usize>, usize) {
        let (stride, offset) = (self.stride[axis], k * self.dilation[axis]);
        let (size, windows) = (plane.input[axis], plane.output[axis]);
        let first = self.before[axis].saturating_sub(offset).div_ceil(stride);
        // Window w reads w * stride + offset - before, which must be below the size.
        let end = (size + self.before[axis]).saturating_sub(offset).div_ceil(stride).min(windows);
        let first = first.min(end);
        (first..end, (first * stride + offset).saturating_sub(self.before[axis]))
    }
    /// Number `(ky, kx)` of every window of one plane; 0 where it lies in the padding.
    pub(crate) fn gather(
        &self,
        plane: Plane,
        ky: usize,
        kx: usize,
        input: &[f32],
        out: &mut [f32],
    ) {
        let width = plane.output[1];
        let ((rows, y), (columns, x)) = (self.inside(plane, 0, ky), self.inside(plane, 1, kx));
        out[..rows.start * width].fill(0.0);
        for (i, row) in rows.clone().enumerate() {
            let from = (y + i * self.stride[0]) * plane.input[1] + x;
            let [start, end] = [columns.start, columns.end].map(|column| row * width + column);
            // A row may be all padding, with nothing to read.
            if start < end {
                let from = &input[from..];
                // Short rows are copied with a few numbers behind them, which those of the next row replace.
                if self.stride[1] == 1
                    && end - start <= SHORT
                    && let Some(from) = from.first_chunk::<SHORT>()
                    && let Some(out) = out[start..].first_chunk_mut()
                {
                    *out = *from;
                } else {
                    every(self.stride[1], from, &mut out[start..end]);
                }
            }
            out[row * width..start].fill(0.0);
            out[end..(row + 1) * width].fill(0.0);
        }
        out[rows.end * width..].fill(0.0);
    }
    /// Adds to the numbers that [`Self::gather`] reads.
    pub(crate) fn scatter(
        &self,
        plane: Plane,
        ky: usize,
        kx: usize,
        from: &[f32],
        out: &mut [f32],
    ) {
        let width = plane.output[1];
        let ((rows, y), (columns, x)) = (self.inside(plane, 0, ky), self.inside(plane, 1, kx));
        for (i, row) in rows.enumerate() {
            let to = (y + i * self.stride[0]) * plane.input[1] + x;
            let from = &from[row * width..(row + 1) * width][columns.clone()];
            if from.is_empty() {
                continue;
            }
            if self.stride[1] == 1 {
                for (o, f) in out[to..to + from.len()].iter_mut().zip(from) {
                    *o += f;
                }
            } else {
                for (o, f) in out[to..].iter_mut().step_by(self.stride[1]).zip(from) {
                    *o += f;
                }
            }
        }
    }
}

/// Every `step`-th number to `out`, as many as there are.
#[inline(always)]
pub(super) fn every(step: usize, from: &[f32], out: &mut [f32]) {
    match step {
        1 => out.copy_from_slice(&from[..out.len()]),
        // In pairs, which are taken apart many at a time.
        2 => {
            let (pairs, last) = from.as_chunks::<2>();
            for (out, pair) in out.iter_mut().zip(pairs) {
                *out = pair[0];
            }
            if let ([last], Some(out)) = (last, out.get_mut(pairs.len())) {
                *out = *last;
            }
        }
        _ => {
            for (out, x) in out.iter_mut().zip(from.iter().step_by(step)) {
                *out = *x;
            }
        }
    }
}
