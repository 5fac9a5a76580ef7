//! Layers that put a record's numbers elsewhere: none is changed, some may be left out, repeated or filled in.
use super::combine::{rows, rows_mut};
use super::{Misfit, Operation, Read, Scratch, only};
use crate::kernels::{self, Write};
use serde::{Deserialize, Serialize};

/// An arrangement of one value's numbers. Axes are those of one record's shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Arrange {
    /// Axes in another order.
    Transpose {
        /// For each axis of the output, that of the input.
        axes: Vec<usize>,
    },
    /// Every so many numbers along some axes.
    Slice {
        /// At most one for an axis.
        cuts: Vec<Cut>,
    },
    /// More numbers, or fewer, at the ends of the axes.
    Pad {
        /// For each axis, how many are put before the first; taken away if negative.
        before: Vec<i64>,
        /// For each axis, how many are put behind the last; taken away if negative.
        after: Vec<i64>,
        /// Which.
        fill: Fill,
    },
    /// Chosen places along one axis.
    Gather {
        /// Which axis.
        axis: usize,
        /// Its places, in the order of the output.
        indices: Vec<usize>,
    },
}

/// Places `start`, `start + step`, ... along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// Which axis.
    pub axis: usize,
    /// The first place.
    pub start: usize,
    /// Not 0; negative: backwards.
    pub step: i64,
    /// How many places.
    pub count: usize,
}

/// What stands beyond the ends of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fill {
    /// One number.
    Constant(f32),
    /// The number at the end.
    Edge,
    /// The numbers before the end, backwards, without that at the end.
    Reflect,
}

/// For each axis of an output, the place along an axis of the input; `None`: filled.
type Places = Vec<Option<usize>>;

impl Arrange {
    /// The shape of the output, if there is one.
    fn shape(&self, shape: &[usize]) -> Option<Vec<usize>> {
        let mut lengths = shape.to_vec();
        match self {
            Self::Transpose { axes } => {
                let mut sorted = axes.clone();
                sorted.sort_unstable();
                if !sorted.into_iter().eq(0..shape.len()) {
                    return None;
                }
                lengths = axes.iter().map(|axis| shape[*axis]).collect();
            }
            Self::Slice { cuts } => {
                let mut seen = vec![false; shape.len()];
                for cut in cuts {
                    if std::mem::replace(seen.get_mut(cut.axis)?, true) || cut.step == 0 {
                        return None;
                    }
                    let length = i64::try_from(shape[cut.axis]).ok()?;
                    let reach = i64::try_from(cut.count).ok()?.checked_sub(1)?;
                    let start = i64::try_from(cut.start).ok()?;
                    let end = reach.checked_mul(cut.step)?.checked_add(start)?;
                    if cut.count == 0 || start >= length || !(0..length).contains(&end) {
                        return None;
                    }
                    lengths[cut.axis] = cut.count;
                }
            }
            Self::Pad { before, after, fill } => {
                if before.len() != shape.len() || after.len() != shape.len() {
                    return None;
                }
                for (length, (before, after)) in lengths.iter_mut().zip(before.iter().zip(after)) {
                    let old = i64::try_from(*length).ok()?;
                    if *fill == Fill::Reflect && (*before >= old || *after >= old) {
                        return None;
                    }
                    // What is taken away at one end was there.
                    let kept = |end: &i64| end.checked_add(old).filter(|n| *n > 0);
                    kept(before)?;
                    let new = before.checked_add(kept(after)?).filter(|n| *n > 0)?;
                    before.checked_neg()?;
                    *length = usize::try_from(new).ok()?;
                }
            }
            Self::Gather { axis, indices } => {
                let length = lengths.get_mut(*axis)?;
                if indices.iter().any(|i| *i >= *length) {
                    return None;
                }
                *length = indices.len();
            }
        }
        Some(lengths)
    }
    /// For each axis of the output, the axis of the input it comes from and the places along it.
    fn places(&self, shape: &[usize]) -> Vec<(usize, Places)> {
        let whole = |axis: usize| (axis, (0..shape[axis]).map(Some).collect());
        let mut places: Vec<(usize, Places)> = match self {
            Self::Transpose { axes } => return axes.iter().map(|axis| whole(*axis)).collect(),
            Self::Pad { before, after, fill } => {
                let ends = before.iter().zip(after).zip(shape);
                let along = |(axis, ((before, after), length)): (usize, ((&i64, &i64), &usize))| {
                    let length = *length as i64;
                    let reach = length - 1;
                    let place = |i: i64| match fill {
                        _ if (0..length).contains(&i) => usize::try_from(i).ok(),
                        Fill::Constant(_) => None,
                        Fill::Edge => usize::try_from(i.clamp(0, reach)).ok(),
                        Fill::Reflect => {
                            usize::try_from(if i < 0 { -i } else { 2 * reach - i }).ok()
                        }
                    };
                    (axis, (-before..length + after).map(place).collect())
                };
                return ends.enumerate().map(along).collect();
            }
            Self::Slice { .. } | Self::Gather { .. } => (0..shape.len()).map(whole).collect(),
        };
        match self {
            Self::Slice { cuts } => {
                for cut in cuts {
                    let place = |i| usize::try_from(cut.start as i64 + i as i64 * cut.step).ok();
                    places[cut.axis].1 = (0..cut.count).map(place).collect();
                }
            }
            Self::Gather { axis, indices } => {
                places[*axis].1 = indices.iter().copied().map(Some).collect();
            }
            _ => {}
        }
        places
    }
    /// Where stretches of equal length in the output come from, in order, and that length; `None`: filled.
    fn stretches(&self, shape: &[usize]) -> (Places, usize) {
        let places = self.places(shape);
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis];
        }
        // The last axes stay together as long as they are whole and in their order.
        let (mut length, mut outer) = (1, places.len());
        while let Some((axis, along)) = outer.checked_sub(1).map(|last| &places[last])
            && *axis == outer - 1
            && along.len() == shape[*axis]
            && along.iter().enumerate().all(|(i, p)| *p == Some(i))
        {
            length *= along.len();
            outer -= 1;
        }
        let mut from = vec![Some(0)];
        for (axis, along) in &places[..outer] {
            let stride = strides[*axis];
            let next = from.iter().flat_map(|base: &Option<usize>| {
                along.iter().map(move |place| Some((*base)? + (*place)? * stride))
            });
            from = next.collect();
        }
        (from, length)
    }
}

impl Operation for Arrange {
    fn output_shape(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, Misfit> {
        let input = only(inputs)?;
        self.shape(input).ok_or_else(|| {
            Misfit::new(match self {
                Self::Transpose { axes } => format!("{} axes, each named once", axes.len()),
                Self::Slice { .. } => "cuts that stay within axes named once".to_owned(),
                Self::Pad { before, .. } => {
                    format!("{} axes that have numbers left, and enough to reflect", before.len())
                }
                Self::Gather { axis, .. } => format!("an axis {axis} with all places gathered"),
            })
        })
    }
    fn forward(&self, read: &Read<'_>, output: &mut [f32], _: &mut Scratch) {
        let (stretches, length) = self.stretches(read.shapes[0]);
        let fill = match self {
            Self::Pad { fill: Fill::Constant(number), .. } => *number,
            _ => 0.0,
        };
        for (out, x) in rows_mut(output, read.records).zip(rows(read.inputs[0], read.records)) {
            if length == 1 {
                for (out, from) in out.iter_mut().zip(&stretches) {
                    *out = from.map_or(fill, |from| x[from]);
                }
                continue;
            }
            for (out, from) in out.chunks_exact_mut(length).zip(&stretches) {
                match from {
                    Some(from) => out.copy_from_slice(&x[*from..from + length]),
                    None => out.fill(fill),
                }
            }
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
        if write == Write::Overwrite {
            out.fill(0.0);
        }
        let (stretches, length) = self.stretches(read.shapes[0]);
        for (out, g) in rows_mut(out, read.records).zip(rows(gradient, read.records)) {
            for (g, from) in g.chunks_exact(length).zip(&stretches) {
                let Some(from) = *from else { continue };
                for (out, g) in out[from..from + length].iter_mut().zip(g) {
                    *out += g;
                }
            }
        }
    }
}

/// Values behind one another along an axis of one record's shape; their other axes are of equal length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Concatenate {
    /// Which axis.
    pub axis: usize,
}
impl Operation for Concatenate {
    fn output_shape(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, Misfit> {
        let misfit =
            || Misfit::new(format!("inputs of one shape but for axis {}, at least one", self.axis));
        let mut shape = inputs.first().ok_or_else(misfit)?.to_vec();
        if self.axis >= shape.len() {
            return Err(misfit());
        }
        shape[self.axis] = 0;
        for input in inputs {
            let others = |i: usize| i == self.axis || input[i] == shape[i];
            if input.len() != shape.len() || !(0..shape.len()).all(others) {
                return Err(misfit());
            }
            shape[self.axis] = shape[self.axis].checked_add(input[self.axis]).ok_or_else(misfit)?;
        }
        Ok(shape)
    }
    fn forward(&self, read: &Read<'_>, output: &mut [f32], _: &mut Scratch) {
        let whole: usize = self.lengths(read).sum();
        let mut before = 0;
        for (input, length) in read.inputs.iter().zip(self.lengths(read)) {
            for (out, x) in output.chunks_exact_mut(whole).zip(input.chunks_exact(length)) {
                out[before..before + length].copy_from_slice(x);
            }
            before += length;
        }
    }
    fn input_gradient(
        &self,
        read: &Read<'_>,
        which: usize,
        gradient: &[f32],
        out: &mut [f32],
        write: Write,
        _: &mut Scratch,
    ) {
        let whole: usize = self.lengths(read).sum();
        let before: usize = self.lengths(read).take(which).sum();
        let length = self.lengths(read).nth(which).unwrap_or(1);
        for (out, g) in out.chunks_exact_mut(length).zip(gradient.chunks_exact(whole)) {
            let g = &g[before..before + length];
            match write {
                Write::Overwrite => out.copy_from_slice(g),
                Write::Accumulate => kernels::axpy(out, 1.0, g),
            }
        }
    }
}
impl Concatenate {
    /// Numbers of each input that stay together. The axes before are the same for all, and records are one more.
    fn lengths<'a>(&'a self, read: &'a Read<'_>) -> impl Iterator<Item = usize> + 'a {
        read.shapes.iter().map(|shape| shape[self.axis..].iter().product())
    }
}
