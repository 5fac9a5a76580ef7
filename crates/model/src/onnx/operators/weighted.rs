//! Operators with weights that training moves.
use super::one;
use crate::layers::{
    Affine, Arrange, BatchNormalization, Convolution, Layer, Linear, Normalization, Reshape, Window,
};
use crate::onnx::call::Call;
use crate::onnx::import::{Biases, Flow, Known};
use crate::onnx::tensor::Floats;

type Outputs = Result<Vec<Known>, String>;

/// Weights `[inputs, outputs]`, or transposed.
fn linear(
    call: &mut Call<'_, '_>,
    input: &Flow,
    weights: &Floats,
    transposed: bool,
    factor: f32,
    biases: &[f32],
) -> Result<Flow, String> {
    let &[rows, columns] = weights.dims.as_slice() else {
        return Err(format!("its weights have shape {:?}, not two axes", weights.dims));
    };
    let (inputs, outputs) = if transposed { (columns, rows) } else { (rows, columns) };
    if input.dims.len() != 1 {
        return Err(format!(
            "it multiplies records of shape {:?}; only records of one axis are",
            input.dims
        ));
    }
    let mut parameters = if transposed {
        let mut parameters = Vec::with_capacity(weights.values.len() + outputs);
        for i in 0..inputs {
            parameters.extend((0..outputs).map(|o| weights.values[o * inputs + i]));
        }
        parameters
    } else {
        weights.values.clone()
    };
    if factor.to_bits() != 1.0_f32.to_bits() {
        for weight in &mut parameters {
            *weight *= factor;
        }
    }
    if biases.is_empty() {
        parameters.resize(parameters.len() + outputs, 0.0);
    } else {
        parameters.extend_from_slice(biases);
    }
    call.builder.add(Layer::Linear(Linear { inputs, outputs }), &[input.value], &parameters)
}

pub(super) fn gemm(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(3)?;
    let input = call.flow(0)?;
    let weights = call.floats(1)?;
    let alpha = call.attributes.float("alpha")?.unwrap_or(1.0);
    let beta = call.attributes.float("beta")?.unwrap_or(1.0);
    if call.attributes.int("transA")?.unwrap_or(0) != 0 {
        return Err("it transposes the records".into());
    }
    let transposed = call.attributes.int("transB")?.unwrap_or(0) != 0;
    let outputs = match weights.dims.as_slice() {
        [rows, _] if transposed => *rows,
        [_, columns] => *columns,
        other => return Err(format!("its weights have shape {other:?}, not two axes")),
    };
    let mut biases = Vec::new();
    if let Some(tensor) = call.optional_floats(2)? {
        let (last, outer) = tensor.dims.split_last().map_or((1, &[][..]), |(l, o)| (*l, o));
        if outer.len() > 1 || outer.iter().any(|d| *d != 1) || (last != 1 && last != outputs) {
            return Err(format!("its biases have shape {:?}, not [{outputs}]", tensor.dims));
        }
        call.builder.spend(outputs)?;
        biases.extend(tensor.values.iter().cycle().take(outputs));
        if beta.to_bits() != 1.0_f32.to_bits() {
            for bias in &mut biases {
                *bias *= beta;
            }
        }
    }
    let output = linear(call, &input, &weights, transposed, alpha, &biases)?;
    Ok(one(Known::Flow(output)))
}

pub(super) fn mat_mul(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(2)?;
    let (input, weights) = (call.flow(0)?, call.floats(1)?);
    if input.dims.len() > 1 {
        return by_places(call, &input, &weights);
    }
    let output = linear(call, &input, &weights, false, 1.0, &[])?;
    expect_biases(call, output.dims[0], 0);
    Ok(one(Known::Flow(output)))
}
/// The last `outputs` parameters are biases, one for each place of an axis; what is added to the node's output and nothing else
/// reads goes there.
pub(super) fn expect_biases(call: &mut Call<'_, '_>, outputs: usize, axes_behind: usize) {
    if call.uses(0) == 1
        && let Some(name) = call.node.output.first()
    {
        let end = call.builder.graph.parameters().len();
        let biases = Biases { range: end - outputs..end, axes_behind };
        call.builder.without_bias.insert(name.clone(), biases);
    }
}

/// The last of several axes multiplied by weights: one weighted sum at every place of the others, so a convolution with a
/// window of one place.
fn by_places(call: &mut Call<'_, '_>, input: &Flow, weights: &Floats) -> Outputs {
    let Some((&channels, outer)) = input.dims.split_last() else {
        return Err("its input has no axes".into());
    };
    let &[inputs, outputs] = weights.dims.as_slice() else {
        return Err(format!("its weights have shape {:?}, not two axes", weights.dims));
    };
    if inputs != channels {
        return Err(format!(
            "its weights of shape [{inputs}, {outputs}] do not take records of shape {:?}",
            input.dims
        ));
    }
    let places = outer.iter().product();
    let by_output = (0..outputs).flat_map(|o| (0..inputs).map(move |i| i * outputs + o));
    let mut parameters: Vec<f32> = by_output.map(|i| weights.values[i]).collect();
    parameters.resize(parameters.len() + outputs, 0.0);
    let window = Window::tiles(1);
    let swapped = || Layer::Arrange(Arrange::Transpose { axes: vec![1, 0] });
    let layers = [
        (Layer::Reshape(Reshape { shape: vec![places, inputs] }), &[][..]),
        (swapped(), &[]),
        (
            Layer::Convolution(Convolution {
                channels: inputs,
                outputs,
                groups: 1,
                window,
                bias: true,
            }),
            &parameters,
        ),
        (swapped(), &[]),
        (Layer::Reshape(Reshape { shape: [outer, &[outputs]].concat() }), &[]),
    ];
    let flow = in_turn(call, input.clone(), layers)?;
    expect_biases(call, outputs, 0);
    Ok(one(Known::Flow(flow)))
}

/// Layers behind one another, without reshapes to the shape that is there.
fn in_turn<'a>(
    call: &mut Call<'_, '_>,
    mut flow: Flow,
    layers: impl IntoIterator<Item = (Layer, &'a [f32])>,
) -> Result<Flow, String> {
    for (layer, parameters) in layers {
        if !matches!(&layer, Layer::Reshape(reshape) if reshape.shape == flow.dims) {
            flow = call.builder.add(layer, &[flow.value], parameters)?;
        }
    }
    Ok(flow)
}

/// Scales and shifts behind each other.
fn scales_and_shifts(call: &Call<'_, '_>, count: usize) -> Result<Vec<f32>, String> {
    let mut all = Vec::with_capacity(2 * count);
    for (i, what) in [(1, "scales"), (2, "shifts")] {
        match call.optional_floats(i)? {
            Some(tensor) if tensor.values.len() == count => all.extend_from_slice(&tensor.values),
            Some(tensor) => {
                return Err(format!("it has {} {what} for {count}", tensor.values.len()));
            }
            // Layer normalization alone may leave its shifts out.
            None if what == "shifts" => all.resize(2 * count, 0.0),
            None => return Err(format!("its {what} are missing")),
        }
    }
    Ok(all)
}
fn channels(flow: &Flow) -> Result<usize, String> {
    flow.dims.first().copied().ok_or_else(|| "its input has no channels".to_owned())
}

pub(super) fn batch_normalization(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(5)?;
    call.attributes.ignore("momentum");
    if call.attributes.int("training_mode")?.unwrap_or(0) != 0 {
        return Err("it is in training mode; export the model for inference".into());
    }
    let stabilizer = call.attributes.float("epsilon")?.unwrap_or(1e-5);
    let input = call.flow(0)?;
    let channels = channels(&input)?;
    let mut parameters = Vec::with_capacity(4 * channels);
    for i in 1..5 {
        let tensor = call.floats(i)?;
        if tensor.values.len() != channels {
            return Err(format!(
                "its input {i} has {} numbers for {channels} channels",
                tensor.values.len()
            ));
        }
        parameters.extend_from_slice(&tensor.values);
    }
    let layer = Layer::BatchNormalization(BatchNormalization { channels, stabilizer });
    call.builder.add(layer, &[input.value], &parameters).map(|f| one(Known::Flow(f)))
}

pub(super) fn instance_normalization(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(3)?;
    let stabilizer = call.attributes.float("epsilon")?.unwrap_or(1e-5);
    let input = call.flow(0)?;
    let channels = channels(&input)?;
    normalization(call, &input, channels, channels, stabilizer)
}

pub(super) fn group_normalization(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(3)?;
    let stabilizer = call.attributes.float("epsilon")?.unwrap_or(1e-5);
    if call.attributes.int("stash_type")?.unwrap_or(1) != 1 {
        return Err("its stash_type is not float32".into());
    }
    let groups = call.attributes.int("num_groups")?.unwrap_or(0);
    let groups =
        usize::try_from(groups).ok().filter(|g| *g > 0).ok_or("its num_groups is not above 0")?;
    let input = call.flow(0)?;
    let channels = channels(&input)?;
    if call.opset() < 21 && groups != channels {
        return Err(
            "before opset 21 it has one scale for a group, not for a channel; convert it".into()
        );
    }
    normalization(call, &input, channels, groups, stabilizer)
}
fn normalization(
    call: &mut Call<'_, '_>,
    input: &Flow,
    channels: usize,
    groups: usize,
    stabilizer: f32,
) -> Outputs {
    let parameters = scales_and_shifts(call, channels)?;
    let layer = Normalization { channels, groups, affine: Affine::Channel, stabilizer };
    let output = call.builder.add(Layer::Normalization(layer), &[input.value], &parameters)?;
    Ok(one(Known::Flow(output)))
}

pub(super) fn layer_normalization(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(3)?;
    let stabilizer = call.attributes.float("epsilon")?.unwrap_or(1e-5);
    if call.attributes.int("stash_type")?.unwrap_or(1) != 1 {
        return Err("its stash_type is not float32".into());
    }
    let axis = call.attributes.int("axis")?.unwrap_or(-1);
    let flow = call.flow(0)?;
    let axis = Known::Flow(flow.clone()).inner_axis(axis)?;
    let (outer, inner) = flow.dims.split_at(axis);
    let (groups, numbers) = (outer.iter().product(), inner.iter().product());
    let parameters = scales_and_shifts(call, numbers)?;
    let affine = Affine::Element { numbers };
    if groups == 1 {
        let layer = Normalization { channels: flow.dims[0], groups, affine, stabilizer };
        let output = call.builder.add(Layer::Normalization(layer), &[flow.value], &parameters)?;
        return Ok(one(Known::Flow(output)));
    }
    // The axes before `axis` made one, that of the groups.
    let layer = Normalization { channels: groups, groups, affine, stabilizer };
    let layers = [
        (Layer::Reshape(Reshape { shape: vec![groups, numbers] }), &[][..]),
        (Layer::Normalization(layer), &parameters),
        (Layer::Reshape(Reshape { shape: flow.dims.clone() }), &[]),
    ];
    in_turn(call, flow, layers).map(|flow| one(Known::Flow(flow)))
}
