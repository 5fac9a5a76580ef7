//! Operators that put numbers elsewhere.
use super::one;
use crate::layers::{Arrange, Concatenate, Cut, Fill, Layer};
use crate::onnx::call::{Call, axis_of};
use crate::onnx::import::Known;

type Outputs = Result<Vec<Known>, String>;

pub(super) fn transpose(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(1)?;
    let input = call.input(0)?;
    let rank = input.rank();
    let axes: Vec<usize> = match call.attributes.ints("perm")? {
        None => (0..rank).rev().collect(),
        Some(axes) => {
            let axes: Option<Vec<usize>> = axes.iter().map(|a| usize::try_from(*a).ok()).collect();
            axes.filter(|a| a.len() == rank)
                .ok_or_else(|| format!("its perm does not name {rank} axes"))?
        }
    };
    let outer = input.outer_axes();
    if axes.iter().take(outer).ne(&[0][..outer]) {
        return Err("it moves the first axis, that of records".into());
    }
    let axes: Option<Vec<usize>> = axes[outer..].iter().map(|a| a.checked_sub(outer)).collect();
    let axes = axes.ok_or("its perm names an axis twice")?;
    if axes.is_empty() {
        return Ok(one(input));
    }
    call.arrange(Layer::Arrange(Arrange::Transpose { axes }), &[input]).map(one)
}

pub(super) fn concat(call: &mut Call<'_, '_>) -> Outputs {
    let inputs: Vec<Known> =
        (0..call.inputs.len()).map(|i| call.input(i)).collect::<Result<_, _>>()?;
    let first = inputs.first().ok_or("it has no input")?;
    let axis = call.attributes.int("axis")?.ok_or("its axis is missing")?;
    let axis = first.inner_axis(axis)?;
    if inputs.iter().any(|i| i.outer_axes() != first.outer_axes()) {
        return Err("it joins values that depend on the record and constants".into());
    }
    call.arrange(Layer::Concatenate(Concatenate { axis }), &inputs).map(one)
}

pub(super) fn slice(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(if call.opset() < 10 { 1 } else { 5 })?;
    let input = call.input(0)?;
    let starts = call.setting("starts", 1, 10)?.ok_or("its starts are missing")?;
    let ends = call.setting("ends", 2, 10)?.ok_or("its ends are missing")?;
    let axes = call.setting("axes", 3, 10)?;
    let steps = if call.opset() < 10 { None } else { call.setting("steps", 4, 10)? };
    let axes = axes.unwrap_or_else(|| (0..).take(starts.len()).collect());
    let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
    if ends.len() != starts.len() || axes.len() != starts.len() || steps.len() != starts.len() {
        return Err("it has not as many starts, ends, axes and steps".into());
    }
    let dims = input.dims();
    let mut cuts = Vec::with_capacity(starts.len());
    for (((start, end), axis), step) in starts.iter().zip(&ends).zip(&axes).zip(&steps) {
        let Some(axis) = input.axis(*axis)? else {
            if *start == 0 && *end == i64::MAX && *step == 1 {
                continue;
            }
            return Err("it takes some records and leaves others out".into());
        };
        cuts.push(cut(axis, dims[axis], *start, *end, *step)?);
    }
    if cuts.is_empty() {
        return Ok(one(input));
    }
    call.arrange(Layer::Arrange(Arrange::Slice { cuts }), &[input]).map(one)
}
/// Ends are counted from the back if negative, and limited to the axis.
fn cut(axis: usize, length: usize, start: i64, end: i64, step: i64) -> Result<Cut, String> {
    let size = i64::try_from(length).map_err(|_| "an axis is too long")?;
    let from_front = |at: i64| if at < 0 { at.saturating_add(size) } else { at };
    let (start, end) = (from_front(start), from_front(end));
    let (start, end) = match step {
        0 => return Err("a step is 0".into()),
        1.. => (start.clamp(0, size), end.clamp(0, size)),
        _ => (start.clamp(0, size - 1), end.clamp(-1, size - 1)),
    };
    let distance = if step > 0 { end - start } else { start - end };
    if distance <= 0 {
        return Err(format!("it takes nothing of axis {axis}, which has {length} places"));
    }
    let count = (distance - 1) / step.saturating_abs() + 1;
    let to_usize = |n: i64| usize::try_from(n).map_err(|_| "an axis is too long".to_owned());
    Ok(Cut { axis, start: to_usize(start)?, step, count: to_usize(count)? })
}

pub(super) fn split(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(if call.opset() < 13 { 1 } else { 2 })?;
    let input = call.input(0)?;
    let axis = call.attributes.int("axis")?.unwrap_or(0);
    let axis = input.inner_axis(axis)?;
    let length = *input.dims().get(axis).ok_or("its axis is missing")?;
    let outputs = call.node.output.len();
    let parts = call.attributes.int("num_outputs")?;
    let lengths = match call.setting("split", 1, 13)? {
        Some(lengths) => {
            let lengths: Option<Vec<usize>> =
                lengths.iter().map(|l| usize::try_from(*l).ok()).collect();
            lengths.ok_or("a part has a negative length")?
        }
        None => {
            if parts.is_some_and(|p| usize::try_from(p) != Ok(outputs)) {
                return Err(format!("it has {outputs} outputs, num_outputs says otherwise"));
            }
            let each = length.div_ceil(outputs.max(1));
            (0..outputs).map(|i| each.min(length.saturating_sub(i * each))).collect()
        }
    };
    let whole = lengths.iter().try_fold(0_usize, |n, l| n.checked_add(*l));
    if lengths.len() != outputs || whole != Some(length) {
        return Err(format!("its {outputs} parts do not make up {length} places"));
    }
    let mut start = 0;
    let mut values = Vec::with_capacity(outputs);
    for (output, count) in lengths.into_iter().enumerate() {
        if call.uses(output) == 0 {
            // Nobody looks at it.
            values.push(input.clone());
            start += count;
            continue;
        }
        let cuts = vec![Cut { axis, start, step: 1, count }];
        start += count;
        let layer = Layer::Arrange(Arrange::Slice { cuts });
        values.push(call.arrange(layer, std::slice::from_ref(&input))?);
    }
    Ok(values)
}

pub(super) fn gather(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(2)?;
    let input = call.input(0)?;
    let axis = call.attributes.int("axis")?.unwrap_or(0);
    let axis = input.inner_axis(axis)?;
    let dims = input.dims();
    let length = *dims.get(axis).ok_or("its input has no axes")?;
    let places = call.integers(1)?;
    let indices = places.numbers().map_err(|what| format!("its indices: {what}"))?;
    let indices: Vec<usize> = indices
        .iter()
        .map(|i| axis_of(*i, length).map_err(|_| format!("it has no place {i} among {length}")))
        .collect::<Result<_, _>>()?;
    let mut shape = dims[..axis].to_vec();
    shape.extend(&places.dims);
    shape.extend(&dims[axis + 1..]);
    let output = call.arrange(Layer::Arrange(Arrange::Gather { axis, indices }), &[input])?;
    if places.dims.len() == 1 { Ok(one(output)) } else { call.reshape(&output, shape).map(one) }
}

pub(super) fn pad(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(if call.opset() < 11 { 1 } else { 4 })?;
    let input = call.input(0)?;
    let mode = call.attributes.text("mode")?;
    let pads = call.setting("pads", 1, 11)?.ok_or("its pads are missing")?;
    let value =
        if call.opset() < 11 { call.attributes.float("value")? } else { call.optional_number(2)? };
    let axes = if call.opset() < 18 { None } else { call.setting("axes", 3, 18)? };
    let rank = input.rank();
    let axes = axes.unwrap_or_else(|| (0..).take(rank).collect());
    if pads.len() != 2 * axes.len() {
        return Err(format!("it has {} pads for {} axes", pads.len(), axes.len()));
    }
    let fill = match mode.as_deref().unwrap_or("constant") {
        "constant" => Fill::Constant(value.unwrap_or(0.0)),
        "edge" => Fill::Edge,
        "reflect" => Fill::Reflect,
        other => return Err(format!("its mode {other:?} is not known")),
    };
    if let Fill::Constant(number) = fill
        && !number.is_finite()
    {
        return Err(format!("it fills in {number}, not a finite number"));
    }
    let inner = input.dims().len();
    let (mut before, mut after) = (vec![0; inner], vec![0; inner]);
    for (i, axis) in axes.iter().enumerate() {
        let ends = (pads[i], pads[axes.len() + i]);
        match input.axis(*axis)? {
            Some(axis) => (before[axis], after[axis]) = ends,
            None if ends == (0, 0) => {}
            None => return Err("it pads the first axis, that of records".into()),
        }
    }
    call.apply(Layer::Arrange(Arrange::Pad { before, after, fill }), &[input]).map(one)
}
