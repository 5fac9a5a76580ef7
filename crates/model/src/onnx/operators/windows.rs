//! Operators that slide a window over one or two axes.
use super::one;
use super::weighted::expect_biases;
use crate::layers::{Convolution, Layer, Pool, Pooling, Reduce, Reduction, Window};
use crate::onnx::call::Call;
use crate::onnx::import::{Flow, Known};

type Outputs = Result<Vec<Known>, String>;

/// Longest side of a window, longest step, most padding.
const LONGEST: i64 = 1 << 12;

/// An attribute with one number for each axis.
fn sides(
    call: &mut Call<'_, '_>,
    name: &str,
    axes: usize,
    least: i64,
) -> Result<Option<Vec<usize>>, String> {
    let Some(numbers) = call.attributes.ints(name)? else { return Ok(None) };
    let side = |n: &i64| {
        usize::try_from(*n).ok().filter(|_| (least..=LONGEST).contains(n)).ok_or_else(|| {
            format!("its {name} has {n}, not a number between {least} and {LONGEST}")
        })
    };
    if numbers.len() != axes {
        return Err(format!("its {name} has {} numbers for {axes}", numbers.len()));
    }
    numbers.iter().map(side).collect::<Result<_, _>>().map(Some)
}

/// A window over the axes behind the channels; `kernel`: its sides if the weights say them.
fn window(
    call: &mut Call<'_, '_>,
    flow: &Flow,
    kernel: Option<&[usize]>,
) -> Result<Window, String> {
    let spatial = flow.dims.get(1..).unwrap_or_default();
    let axes = spatial.len();
    if !(1..=2).contains(&axes) {
        return Err(format!(
            "records of shape {:?} do not have one or two axes behind channels",
            flow.dims
        ));
    }
    let stated = sides(call, "kernel_shape", axes, 1)?;
    let kernel = match (kernel, stated) {
        (Some(kernel), Some(stated)) if kernel != stated => {
            return Err(format!("its kernel_shape is {stated:?}, that of its weights {kernel:?}"));
        }
        (Some(kernel), _) => kernel.to_vec(),
        (None, Some(stated)) => stated,
        (None, None) => return Err("its kernel_shape is missing".into()),
    };
    let strides = sides(call, "strides", axes, 1)?.unwrap_or_else(|| vec![1; axes]);
    let dilations = sides(call, "dilations", axes, 1)?.unwrap_or_else(|| vec![1; axes]);
    let pads = sides(call, "pads", 2 * axes, 0)?;
    let mode = call.attributes.text("auto_pad")?.unwrap_or_else(|| "NOTSET".to_owned());
    let pads = match mode.as_str() {
        "NOTSET" | "" => pads.unwrap_or_else(|| vec![0; 2 * axes]),
        "VALID" => vec![0; 2 * axes],
        "SAME_UPPER" | "SAME_LOWER" => {
            let mut pads = vec![0; 2 * axes];
            for axis in 0..axes {
                let reach = (kernel[axis] - 1) * dilations[axis] + 1;
                let windows = spatial[axis].div_ceil(strides[axis]);
                let all = ((windows - 1) * strides[axis] + reach).saturating_sub(spatial[axis]);
                let less = all / 2;
                let (before, after) =
                    if mode == "SAME_UPPER" { (less, all - less) } else { (all - less, less) };
                (pads[axis], pads[axes + axis]) = (before, after);
            }
            pads
        }
        other => return Err(format!("its auto_pad {other:?} is not known")),
    };
    let mut window =
        Window { kernel: [1; 2], stride: [1; 2], dilation: [1; 2], before: [0; 2], after: [0; 2] };
    for axis in 0..axes {
        let to = axis + 2 - axes;
        window.kernel[to] = kernel[axis];
        window.stride[to] = strides[axis];
        window.dilation[to] = dilations[axis];
        window.before[to] = pads[axis];
        window.after[to] = pads[axes + axis];
    }
    Ok(window)
}

/// With one window more along an axis where numbers are left over, unless it would begin in the padding behind.
fn rounded_up(mut window: Window, spatial: &[usize]) -> Window {
    for (axis, size) in spatial.iter().enumerate() {
        let to = axis + 2 - spatial.len();
        let reach = (window.kernel[to] - 1) * window.dilation[to] + 1;
        // Where the last window begins that would begin before it has to end.
        let room = (size + window.before[to] + window.after[to]).saturating_sub(reach);
        let missing = room.next_multiple_of(window.stride[to]) - room;
        if missing > 0 && room + missing < size + window.before[to] {
            window.after[to] += missing;
        }
    }
    window
}

pub(super) fn conv(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(3)?;
    let (input, weights) = (call.flow(0)?, call.floats(1)?);
    let biases = call.optional_floats(2)?;
    let groups = call.attributes.int("group")?.unwrap_or(1);
    let groups =
        usize::try_from(groups).ok().filter(|g| *g > 0).ok_or("its group is not above 0")?;
    let &[outputs, per_group, ref kernel @ ..] = weights.dims.as_slice() else {
        return Err(format!("its weights have shape {:?}", weights.dims));
    };
    if kernel.len() + 1 != input.dims.len()
        || kernel.iter().any(|k| !(1..=LONGEST as usize).contains(k))
    {
        return Err(format!(
            "its weights of shape {:?} do not slide over records of shape {:?}",
            weights.dims, input.dims
        ));
    }
    let window = window(call, &input, Some(kernel))?;
    let channels = per_group.checked_mul(groups).ok_or("too many channels")?;
    // Some exporters add biases in a node of their own.
    let numbers = |dims: &[i64]| dims.iter().try_fold(1_i64, |n, d| n.checked_mul(*d));
    let added = call.added.filter(|t| numbers(&t.dims) == Some(outputs as i64)).is_some();
    let bias = biases.is_some() || added;
    let layer = Convolution { channels, outputs, groups, window, bias };
    let mut parameters = weights.values.clone();
    match &biases {
        Some(biases) if biases.values.len() != outputs => {
            let biases = biases.values.len();
            return Err(format!("its bias has {biases} numbers, its weights {outputs} outputs"));
        }
        Some(biases) => parameters.extend_from_slice(&biases.values),
        None if added => parameters.resize(parameters.len() + outputs, 0.0),
        None => {}
    }
    let output = call.builder.add(Layer::Convolution(layer), &[input.value], &parameters)?;
    if biases.is_none() && added {
        expect_biases(call, outputs, output.dims.len() - 1);
    }
    Ok(one(Known::Flow(output)))
}

fn pool(call: &mut Call<'_, '_>, pool: Pool) -> Outputs {
    call.at_most(1)?;
    let input = call.flow(0)?;
    let round_up = call.attributes.int("ceil_mode")?.unwrap_or(0) != 0;
    let rounded_down = window(call, &input, None)?;
    let spatial = input.dims.get(1..).unwrap_or_default();
    let window = if round_up { rounded_up(rounded_down, spatial) } else { rounded_down };
    if pool == Pool::AverageWithPadding && window != rounded_down {
        return Err("runtimes differ in what ceil_mode with count_include_pad means".into());
    }
    let output = call.apply(Layer::Pooling(Pooling { pool, window }), &[Known::Flow(input)])?;
    Ok(one(output))
}
pub(super) fn max_pool(call: &mut Call<'_, '_>) -> Outputs {
    // The order of positions, which are not given.
    call.attributes.ignore("storage_order");
    pool(call, Pool::Max)
}
pub(super) fn average_pool(call: &mut Call<'_, '_>) -> Outputs {
    let with_padding = call.attributes.int("count_include_pad")?.unwrap_or(0) != 0;
    pool(call, if with_padding { Pool::AverageWithPadding } else { Pool::Average })
}
pub(super) fn global_average_pool(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(1)?;
    let input = call.flow(0)?;
    if input.dims.len() < 2 {
        return Err(format!("records of shape {:?} have no axes behind channels", input.dims));
    }
    let axes = (1..input.dims.len()).collect();
    let layer = Layer::Reduce(Reduce { reduction: Reduction::Mean, axes });
    call.apply(layer, &[Known::Flow(input)]).map(one)
}
pub(super) fn global_max_pool(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(1)?;
    let input = call.flow(0)?;
    let kernel = match input.dims.as_slice() {
        [_, length] => [1, *length],
        [_, height, width] => [*height, *width],
        other => {
            return Err(format!(
                "records of shape {other:?} do not have one or two axes behind channels"
            ));
        }
    };
    let (none, one_by_one) = ([0; 2], [1; 2]);
    let window =
        Window { kernel, stride: one_by_one, dilation: one_by_one, before: none, after: none };
    let layer = Layer::Pooling(Pooling { pool: Pool::Max, window });
    call.apply(layer, &[Known::Flow(input)]).map(one)
}
