//! Operators about shapes and kinds of numbers.
use super::one;
use crate::onnx::call::{Call, axis_of};
use crate::onnx::import::{Known, floats, integers};
use crate::onnx::tensor::{Size, Tensor, dims_of};
use crate::onnx::wire::data_type;

type Outputs = Result<Vec<Known>, String>;

pub(super) fn identity(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(1)?;
    call.input(0).map(one)
}
/// Nothing is dropped at inference.
pub(super) fn dropout(call: &mut Call<'_, '_>) -> Outputs {
    call.attributes.ignore("ratio");
    call.attributes.ignore("seed");
    if call.optional(2).is_some() {
        let training = call.integers(2)?;
        if training.values.iter().any(|t| *t != Size::Number(0)) {
            return Err("it is in training mode; export the model for inference".into());
        }
    }
    call.input(0).map(one)
}

pub(super) fn constant(call: &mut Call<'_, '_>) -> Outputs {
    let attributes = &mut call.attributes;
    if let Some(tensor) = attributes.tensor("value")? {
        let tensor = Tensor::decode(tensor, &call.builder.folder).map_err(|e| e.to_string())?;
        return Ok(one(Known::Tensor(tensor)));
    }
    if let Some(number) = attributes.float("value_float")? {
        return Ok(one(floats(Vec::new(), vec![number])));
    }
    if let Some(numbers) = attributes.floats("value_floats")? {
        return Ok(one(floats(vec![numbers.len()], numbers.to_vec())));
    }
    if let Some(number) = attributes.int("value_int")? {
        return Ok(one(integers(Vec::new(), vec![Size::Number(number)])));
    }
    if let Some(numbers) = attributes.ints("value_ints")? {
        let values = numbers.iter().map(|n| Size::Number(*n)).collect();
        return Ok(one(integers(vec![numbers.len()], values)));
    }
    Err("it has none of the values value, value_float(s), value_int(s)".into())
}

pub(super) fn constant_of_shape(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(1)?;
    let shape = call.integers(0)?.numbers()?;
    let (dims, count) = dims_of(&shape)?;
    call.builder.spend(count)?;
    let value = match call.attributes.tensor("value")? {
        None => return Ok(one(floats(dims, vec![0.0; count]))),
        Some(tensor) => Tensor::decode(tensor, &call.builder.folder).map_err(|e| e.to_string())?,
    };
    match value {
        Tensor::Floats(tensor) if tensor.values.len() == 1 => {
            Ok(one(floats(dims, vec![tensor.values[0]; count])))
        }
        Tensor::Integers(tensor) if tensor.values.len() == 1 => {
            Ok(one(integers(dims, vec![tensor.values[0]; count])))
        }
        _ => Err("its value is not one number".into()),
    }
}

pub(super) fn cast(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(1)?;
    call.attributes.ignore("saturate");
    call.attributes.ignore("round_mode");
    let to = call.attributes.int("to")?.ok_or("it does not say to which kind")?;
    let input = call.input(0)?;
    let float = data_type::is_float(to);
    match &input {
        Known::Flow(_) | Known::Tensor(Tensor::Floats(_)) if float => Ok(one(input)),
        Known::Tensor(Tensor::Integers(tensor)) if float => {
            let numbers = tensor.numbers()?;
            call.builder.spend(numbers.len())?;
            let numbers = numbers.iter().map(|n| *n as f32).collect();
            Ok(one(floats(tensor.dims.clone(), numbers)))
        }
        Known::Tensor(Tensor::Integers(_)) if to == i64::from(data_type::INT64) => Ok(one(input)),
        Known::Tensor(Tensor::Integers(tensor)) if to == i64::from(data_type::INT32) => {
            let fits = |size: &Size| match size {
                Size::Number(n) | Size::Records(n) => i32::try_from(*n).is_ok(),
            };
            if tensor.values.iter().all(fits) {
                Ok(one(input))
            } else {
                Err("a number does not fit 32 bits".into())
            }
        }
        Known::Tensor(Tensor::Floats(tensor))
            if to == i64::from(data_type::INT64) || to == i64::from(data_type::INT32) =>
        {
            call.builder.spend(tensor.values.len())?;
            if tensor.values.iter().any(|x| x.is_nan() || x.abs() > 1e9) {
                return Err("a number is beyond a thousand million, or none".into());
            }
            let numbers = tensor.values.iter().map(|x| Size::Number(*x as i64)).collect();
            Ok(one(integers(tensor.dims.clone(), numbers)))
        }
        _ => Err(format!("it gives {}; float32 is computed with", data_type::name(to))),
    }
}

pub(super) fn shape(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(1)?;
    let input = call.input(0)?;
    let rank = input.rank();
    let start = call.attributes.int("start")?.unwrap_or(0);
    let end = call.attributes.int("end")?;
    let size = i64::try_from(rank).map_err(|_| "too many axes")?;
    let limit = |at: i64| {
        let at = if at < 0 { at.saturating_add(size) } else { at };
        usize::try_from(at.clamp(0, size)).unwrap_or(0)
    };
    let (start, end) = (limit(start), end.map_or(rank, limit));
    let records = std::iter::repeat_n(call.builder.records_size(), input.outer_axes());
    let dims = input.dims();
    let dims = dims.iter().map(|d| i64::try_from(*d).map(Size::Number));
    let mut sizes: Vec<Size> = records.collect();
    sizes.extend(dims.collect::<Result<Vec<_>, _>>().map_err(|_| "an axis is too long")?);
    let sizes = sizes.get(start..end).unwrap_or_default().to_vec();
    Ok(one(integers(vec![sizes.len()], sizes)))
}

pub(super) fn flatten(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(1)?;
    let input = call.input(0)?;
    let axis = call.attributes.int("axis")?.unwrap_or(1);
    // One behind the last axis is allowed.
    let axis = axis_of(axis, input.rank() + usize::from(axis >= 0))?;
    let dims = input.dims();
    if let Known::Tensor(_) = input {
        let (rows, columns) = dims.split_at(axis);
        let shape = vec![rows.iter().product(), columns.iter().product()];
        return call.reshape(&input, shape).map(one);
    }
    let mixes = || "it joins the axis of records with others".to_owned();
    let inner = axis.checked_sub(1).ok_or_else(mixes)?;
    if dims[..inner].iter().product::<usize>() != 1 {
        return Err(mixes());
    }
    let shape = vec![dims[inner..].iter().product()];
    if shape == dims { Ok(one(input)) } else { call.reshape(&input, shape).map(one) }
}

pub(super) fn squeeze(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(if call.opset() < 13 { 1 } else { 2 })?;
    let input = call.input(0)?;
    let dims = input.dims();
    let axes = match call.setting("axes", 1, 13)? {
        Some(axes) => axes.iter().map(|a| input.inner_axis(*a)).collect::<Result<Vec<_>, _>>()?,
        None if input.outer_axes() == 1 && call.builder.records == Some(1) => {
            return Err("it removes every axis of length 1, that of records too".into());
        }
        None => (0..dims.len()).filter(|a| dims[*a] == 1).collect(),
    };
    if axes.iter().any(|a| dims[*a] != 1) {
        return Err(format!("it removes an axis of {dims:?} that is longer than 1"));
    }
    let left = dims.iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, d)| *d);
    let left: Vec<usize> = left.collect();
    if left == dims { Ok(one(input)) } else { call.reshape(&input, left).map(one) }
}

pub(super) fn unsqueeze(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(if call.opset() < 13 { 1 } else { 2 })?;
    let input = call.input(0)?;
    let axes = call.setting("axes", 1, 13)?.ok_or("its axes are missing")?;
    let rank = input.rank() + axes.len();
    let mut new = vec![false; rank];
    for axis in axes {
        new[axis_of(axis, rank)?] = true;
    }
    let outer = input.outer_axes();
    if new[..outer].contains(&true) {
        return Err("it puts an axis before that of records".into());
    }
    let mut old = input.dims().into_iter();
    let dims: Vec<usize> = new[outer..]
        .iter()
        .map(|new| if *new { Some(1) } else { old.next() })
        .map(|d| d.unwrap_or(1))
        .collect();
    if old.next().is_some() {
        return Err("its axes name one twice".into());
    }
    call.reshape(&input, dims).map(one)
}

pub(super) fn reshape(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(2)?;
    let input = call.input(0)?;
    let zero_is_zero = call.attributes.int("allowzero")?.unwrap_or(0) != 0;
    let wanted = call.integers(1)?;
    if wanted.dims.len() != 1 {
        return Err("its shape is not a list".into());
    }
    let dims = input.dims();
    let outer = input.outer_axes();
    // 0: as it was.
    let mut shape = Vec::with_capacity(wanted.values.len());
    for (i, size) in wanted.values.iter().enumerate() {
        shape.push(match (*size, i.checked_sub(outer)) {
            (Size::Number(0), None) if !zero_is_zero => call.builder.records_size(),
            (Size::Number(0), Some(axis)) if !zero_is_zero => {
                let length =
                    dims.get(axis).ok_or("its shape takes over an axis that is not there")?;
                Size::Number(i64::try_from(*length).map_err(|_| "an axis is too long")?)
            }
            (size, _) => size,
        });
    }
    let numbers =
        dims.iter().try_fold(1_usize, |n, d| n.checked_mul(*d)).ok_or("too many numbers")?;
    if let Known::Tensor(_) = input {
        return call.reshape(&input, inferred(&shape, numbers)?).map(one);
    }
    let mixes = || format!("it spreads records of {dims:?} over several rows or joins them");
    let (first, rest) = shape.split_first().ok_or_else(mixes)?;
    let made_for = call.builder.records.and_then(|n| i64::try_from(n).ok());
    let inner = match first {
        Size::Records(1) => inferred(rest, numbers)?,
        Size::Number(n) if Some(*n) == made_for => inferred(rest, numbers)?,
        // The records are what is left if the others make up a record.
        Size::Number(-1) => {
            if rest.contains(&Size::Number(-1)) {
                return Err("its shape leaves two lengths open".into());
            }
            inferred(rest, numbers).map_err(|_| mixes())?
        }
        _ => return Err(mixes()),
    };
    call.reshape(&input, inner).map(one)
}

/// A shape of so many numbers, in which one length may be left open as -1.
fn inferred(shape: &[Size], numbers: usize) -> Result<Vec<usize>, String> {
    let wrong = || format!("{numbers} numbers do not have the shape wanted");
    let mut known = 1_usize;
    let mut open = None;
    let mut dims = Vec::with_capacity(shape.len());
    for (i, size) in shape.iter().enumerate() {
        let Size::Number(length) = size else {
            return Err("its shape has the number of records behind the first axis".into());
        };
        if *length == -1 {
            if open.replace(i).is_some() {
                return Err("its shape leaves two lengths open".into());
            }
            dims.push(1);
            continue;
        }
        let length = usize::try_from(*length).map_err(|_| wrong())?;
        known = known.checked_mul(length).ok_or_else(wrong)?;
        dims.push(length);
    }
    if let Some(open) = open {
        if known == 0 || !numbers.is_multiple_of(known) {
            return Err(wrong());
        }
        dims[open] = numbers / known;
        known = numbers;
    }
    if known == numbers { Ok(dims) } else { Err(wrong()) }
}
