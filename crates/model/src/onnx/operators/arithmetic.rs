//! Functions of numbers.
use super::one;
use crate::layers::{
    Activation, Arithmetic, Combine, CombineConstant, Elementwise, Layer, LocalResponse, Reduce,
    Reduction, Softmax,
};
use crate::onnx::call::Call;
use crate::onnx::import::{Biases, Flow, Known, graph_shape, integers};
use crate::onnx::tensor::{Floats, Integers, Size, Tensor};
use std::rc::Rc;

type Outputs = Result<Vec<Known>, String>;

fn unary(call: &mut Call<'_, '_>, layer: Layer) -> Outputs {
    call.at_most(1)?;
    keep_dims(call, layer)
}
/// A layer whose output has the shape of its first input.
fn keep_dims(call: &mut Call<'_, '_>, layer: Layer) -> Outputs {
    let input = call.input(0)?;
    let output = call.apply(layer, std::slice::from_ref(&input))?;
    Ok(one(with_dims(output, input.dims())))
}
/// Axes are those of the model, where the graph has one more for a number without any.
fn with_dims(known: Known, dims: Vec<usize>) -> Known {
    match known {
        Known::Flow(flow) => Known::Flow(Flow { dims, ..flow }),
        Known::Tensor(Tensor::Floats(tensor)) => {
            crate::onnx::import::floats(dims, tensor.values.clone())
        }
        other => other,
    }
}

pub(super) fn relu(call: &mut Call<'_, '_>) -> Outputs {
    unary(call, Layer::Activation(Activation::Relu))
}
pub(super) fn sigmoid(call: &mut Call<'_, '_>) -> Outputs {
    unary(call, Layer::Activation(Activation::Sigmoid))
}
pub(super) fn tanh(call: &mut Call<'_, '_>) -> Outputs {
    unary(call, Layer::Activation(Activation::Tanh))
}
pub(super) fn leaky_relu(call: &mut Call<'_, '_>) -> Outputs {
    let slope = call.attributes.float("alpha")?.unwrap_or(0.01);
    if !(slope > 0.0 && slope.is_finite()) {
        return Err(format!("its alpha is {slope}, not a finite number above 0"));
    }
    unary(call, Layer::Activation(Activation::LeakyRelu { slope }))
}
pub(super) fn absolute(call: &mut Call<'_, '_>) -> Outputs {
    unary(call, Layer::Elementwise(Elementwise::Absolute))
}
pub(super) fn exp(call: &mut Call<'_, '_>) -> Outputs {
    unary(call, Layer::Elementwise(Elementwise::Exponential))
}
pub(super) fn log(call: &mut Call<'_, '_>) -> Outputs {
    unary(call, Layer::Elementwise(Elementwise::Logarithm))
}
pub(super) fn sqrt(call: &mut Call<'_, '_>) -> Outputs {
    unary(call, Layer::Elementwise(Elementwise::SquareRoot))
}
pub(super) fn softplus(call: &mut Call<'_, '_>) -> Outputs {
    unary(call, Layer::Elementwise(Elementwise::Softplus))
}
pub(super) fn hard_swish(call: &mut Call<'_, '_>) -> Outputs {
    unary(call, Layer::Elementwise(Elementwise::HardSwish))
}
pub(super) fn elu(call: &mut Call<'_, '_>) -> Outputs {
    let scale = finite("alpha", call.attributes.float("alpha")?.unwrap_or(1.0))?;
    unary(call, Layer::Elementwise(Elementwise::Elu { scale }))
}
pub(super) fn hard_sigmoid(call: &mut Call<'_, '_>) -> Outputs {
    let slope = finite("alpha", call.attributes.float("alpha")?.unwrap_or(0.2))?;
    let offset = finite("beta", call.attributes.float("beta")?.unwrap_or(0.5))?;
    unary(call, Layer::Elementwise(Elementwise::HardSigmoid { slope, offset }))
}
fn finite(name: &str, number: f32) -> Result<f32, String> {
    if number.is_finite() { Ok(number) } else { Err(format!("its {name} is {number}")) }
}

pub(super) fn clip(call: &mut Call<'_, '_>) -> Outputs {
    let (low, high) = if call.opset() < 11 {
        call.at_most(1)?;
        (call.attributes.float("min")?, call.attributes.float("max")?)
    } else {
        call.at_most(3)?;
        (call.optional_number(1)?, call.optional_number(2)?)
    };
    // The largest number is how old models say that there is no limit; it changes nothing either way.
    let (low, high) = (low.filter(|l| l.is_finite()), high.filter(|h| h.is_finite()));
    keep_dims(call, Layer::Elementwise(Elementwise::Clip { low, high }))
}

pub(super) fn softmax(call: &mut Call<'_, '_>) -> Outputs {
    any_softmax(call, false)
}
pub(super) fn log_softmax(call: &mut Call<'_, '_>) -> Outputs {
    any_softmax(call, true)
}
fn any_softmax(call: &mut Call<'_, '_>, logarithm: bool) -> Outputs {
    call.at_most(1)?;
    let input = call.input(0)?;
    let dims = input.dims();
    let old = call.opset() < 13;
    let axis = call.attributes.int("axis")?.unwrap_or(if old { 1 } else { -1 });
    let axis = input.inner_axis(axis)?;
    let numbers: usize = dims[axis..].iter().product();
    let flat = if old && numbers > dims[axis] {
        // Old ones sum over all axes from the given one on.
        let mut shape = dims[..axis].to_vec();
        shape.push(numbers);
        call.reshape(&input, shape)?
    } else {
        input
    };
    let whole = flat.outer_axes() == 1 && flat.dims().len() == 1 && !logarithm;
    let layer = if whole {
        Layer::Activation(Activation::Softmax)
    } else {
        Layer::Softmax(Softmax { axis, logarithm })
    };
    let output = call.apply(layer, &[flat])?;
    if output.dims() == dims { Ok(one(output)) } else { call.reshape(&output, dims).map(one) }
}

pub(super) fn local_response(call: &mut Call<'_, '_>) -> Outputs {
    call.flow(0)?;
    let size = call.attributes.int("size")?.unwrap_or(0);
    let size = usize::try_from(size).ok().filter(|s| (1..1 << 24).contains(s));
    let layer = LocalResponse {
        size: size.ok_or("its size is not above 0")?,
        alpha: finite("alpha", call.attributes.float("alpha")?.unwrap_or(1e-4))?,
        beta: finite("beta", call.attributes.float("beta")?.unwrap_or(0.75))?,
        bias: finite("bias", call.attributes.float("bias")?.unwrap_or(1.0))?,
    };
    unary(call, Layer::LocalResponse(layer))
}

pub(super) fn reduce_mean(call: &mut Call<'_, '_>) -> Outputs {
    reduce(call, Reduction::Mean, 18)
}
pub(super) fn reduce_sum(call: &mut Call<'_, '_>) -> Outputs {
    reduce(call, Reduction::Sum, 13)
}
fn reduce(call: &mut Call<'_, '_>, reduction: Reduction, since: i64) -> Outputs {
    call.at_most(if call.opset() < since { 1 } else { 2 })?;
    let input = call.input(0)?;
    let axes = call.setting("axes", 1, since)?.unwrap_or_default();
    let keep = call.attributes.int("keepdims")?.unwrap_or(1) != 0;
    let none_if_empty = call.attributes.int("noop_with_empty_axes")?.unwrap_or(0) != 0;
    if axes.is_empty() && none_if_empty {
        return Ok(one(input));
    }
    let all = 0..i64::try_from(input.rank()).map_err(|_| "too many axes")?;
    let axes = if axes.is_empty() { all.collect() } else { axes };
    let mut inner = axes.iter().map(|a| input.inner_axis(*a)).collect::<Result<Vec<_>, _>>()?;
    inner.sort_unstable();
    inner.dedup();
    let mut dims = input.dims();
    let layer = Layer::Reduce(Reduce { reduction, axes: inner.clone() });
    if inner.is_empty() {
        return Ok(one(input));
    }
    let output = call.apply(layer, &[input])?;
    if keep {
        return Ok(one(output));
    }
    for axis in inner.iter().rev() {
        dims.remove(*axis);
    }
    call.reshape(&output, dims).map(one)
}

pub(super) fn neg(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(1)?;
    let input = call.input(0)?;
    let minus = Floats { dims: vec![1; input.dims().len()], values: vec![-1.0] };
    let minus = match &input {
        Known::Tensor(Tensor::Integers(_)) => integers(Vec::new(), vec![Size::Number(-1)]),
        _ => Known::Tensor(Tensor::Floats(Rc::new(minus))),
    };
    combine(call, Arithmetic::Multiply, &input, &minus).map(one)
}
pub(super) fn add(call: &mut Call<'_, '_>) -> Outputs {
    call.at_most(2)?;
    for (product, bias) in [(0, 1), (1, 0)] {
        if let Some(output) = add_bias(call, product, bias)? {
            return Ok(one(output));
        }
    }
    both(call, Arithmetic::Add)
}
pub(super) fn sub(call: &mut Call<'_, '_>) -> Outputs {
    both(call, Arithmetic::Subtract)
}
pub(super) fn mul(call: &mut Call<'_, '_>) -> Outputs {
    both(call, Arithmetic::Multiply)
}
pub(super) fn div(call: &mut Call<'_, '_>) -> Outputs {
    both(call, Arithmetic::Divide)
}
fn both(call: &mut Call<'_, '_>, operation: Arithmetic) -> Outputs {
    call.at_most(2)?;
    let (a, b) = (call.input(0)?, call.input(1)?);
    combine(call, operation, &a, &b).map(one)
}

/// Constants added to a matrix product or a convolution are its biases.
fn add_bias(call: &mut Call<'_, '_>, product: usize, bias: usize) -> Result<Option<Known>, String> {
    let name = call.node.input.get(product).map(String::as_str).unwrap_or_default();
    let (Known::Flow(flow), Known::Tensor(Tensor::Floats(tensor))) =
        (call.input(product)?, call.input(bias)?)
    else {
        return Ok(None);
    };
    let Some(Biases { range, axes_behind }) = call.builder.without_bias.get(name) else {
        return Ok(None);
    };
    // One for each place of their axis, the same along all others, those of records included.
    let of_axis = |(from_the_end, length): (usize, &usize)| {
        *length == if from_the_end == *axes_behind { range.len() } else { 1 }
    };
    if tensor.dims.len() <= *axes_behind
        || tensor.dims.len() > flow.dims.len() + 1
        || !tensor.dims.iter().rev().enumerate().all(of_axis)
    {
        return Ok(None);
    }
    let range = range.clone();
    call.builder.without_bias.remove(name);
    if tensor.values.iter().any(|b| !b.is_finite()) {
        return Err("a bias is not a finite number".into());
    }
    call.builder.graph.parameters_mut()[range].copy_from_slice(&tensor.values);
    Ok(Some(Known::Flow(flow)))
}

fn combine(
    call: &mut Call<'_, '_>,
    operation: Arithmetic,
    a: &Known,
    b: &Known,
) -> Result<Known, String> {
    match (a, b) {
        (Known::Tensor(Tensor::Integers(a)), Known::Tensor(Tensor::Integers(b))) => {
            sizes(call, operation, a, b)
        }
        (Known::Tensor(Tensor::Floats(a)), Known::Tensor(Tensor::Floats(b))) => {
            let rank = a.dims.len().max(b.dims.len());
            let dims = [padded(&a.dims, rank), padded(&b.dims, rank)];
            let layer = Layer::Combine(Combine { operation });
            let inputs = [(dims[0].as_slice(), a.values.as_slice()), (&dims[1], &b.values)];
            let (shape, values) = call.builder.compute(&layer, &inputs)?;
            let shape = if rank == 0 { Vec::new() } else { shape };
            Ok(crate::onnx::import::floats(shape, values))
        }
        (Known::Flow(left), Known::Flow(right)) => {
            if left.dims.len() != right.dims.len() {
                return Err(format!(
                    "records of shape {:?} and {:?} do not have as many axes",
                    left.dims, right.dims
                ));
            }
            let layer = Layer::Combine(Combine { operation });
            let output = call.apply(layer, &[a.clone(), b.clone()])?;
            Ok(if left.dims.is_empty() { with_dims(output, Vec::new()) } else { output })
        }
        (Known::Flow(flow), Known::Tensor(Tensor::Floats(tensor))) => {
            with_constant(call, operation, flow, tensor, false)
        }
        (Known::Tensor(Tensor::Floats(tensor)), Known::Flow(flow)) => {
            with_constant(call, operation, flow, tensor, true)
        }
        _ => Err("it mixes float32 and whole numbers".into()),
    }
}

/// With axes of length 1 in front.
fn padded(dims: &[usize], rank: usize) -> Vec<usize> {
    let mut padded = vec![1; rank - dims.len()];
    padded.extend_from_slice(dims);
    padded
}

fn with_constant(
    call: &mut Call<'_, '_>,
    operation: Arithmetic,
    flow: &Flow,
    tensor: &Floats,
    constant_first: bool,
) -> Result<Known, String> {
    let rank = flow.dims.len() + 1;
    if tensor.dims.len() > rank {
        return Err(format!(
            "a constant of shape {:?} has more axes than its other input, {rank}",
            tensor.dims
        ));
    }
    let dims = padded(&tensor.dims, rank);
    if dims[0] != 1 {
        return Err(format!(
            "its constant of shape {:?} differs from record to record",
            tensor.dims
        ));
    }
    if let Some(bad) = tensor.values.iter().find(|v| !v.is_finite()) {
        return Err(format!("a constant is {bad}, not a finite number"));
    }
    // Layers hold their own copies.
    call.builder.spend(tensor.values.len())?;
    let layer = Layer::CombineConstant(CombineConstant {
        operation,
        constant_first,
        shape: graph_shape(&dims[1..]),
        constants: tensor.values.clone(),
    });
    let output = call.apply(layer, &[Known::Flow(flow.clone())])?;
    Ok(if rank == 1 { with_dims(output, Vec::new()) } else { output })
}

/// Whole numbers: of equal shape, or one of them a single number.
fn sizes(
    call: &mut Call<'_, '_>,
    operation: Arithmetic,
    a: &Integers,
    b: &Integers,
) -> Result<Known, String> {
    let dims = if b.values.len() == 1 && b.dims.len() <= a.dims.len() || a.dims == b.dims {
        a.dims.clone()
    } else if a.values.len() == 1 && a.dims.len() <= b.dims.len() {
        b.dims.clone()
    } else {
        return Err(format!(
            "whole numbers of shape {:?} and {:?}: not the same, not one",
            a.dims, b.dims
        ));
    };
    let count = if dims == a.dims { a.values.len() } else { b.values.len() };
    call.builder.spend(count)?;
    let at =
        |tensor: &Integers, i: usize| tensor.values[if tensor.values.len() == 1 { 0 } else { i }];
    let values = (0..count).map(|i| size(operation, at(a, i), at(b, i)));
    Ok(integers(dims, values.collect::<Result<_, _>>()?))
}
fn size(operation: Arithmetic, a: Size, b: Size) -> Result<Size, String> {
    use Size::{Number, Records};
    let result = match (operation, a, b) {
        (Arithmetic::Add, Number(a), Number(b)) => a.checked_add(b).map(Number),
        (Arithmetic::Subtract, Number(a), Number(b)) => a.checked_sub(b).map(Number),
        (Arithmetic::Multiply, Number(a), Number(b)) => a.checked_mul(b).map(Number),
        // Whole numbers are divided towards 0.
        (Arithmetic::Divide, Number(a), Number(b)) => a.checked_div(b).map(Number),
        (Arithmetic::Add, Records(a), Records(b)) => a.checked_add(b).map(Records),
        (Arithmetic::Multiply, Records(a), Number(b))
        | (Arithmetic::Multiply, Number(b), Records(a)) => a.checked_mul(b).map(Records),
        (Arithmetic::Divide, Records(a), Number(b)) if b != 0 && a.checked_rem(b) == Some(0) => {
            a.checked_div(b).map(Records)
        }
        (Arithmetic::Divide, Records(a), Records(b)) => a.checked_div(b).map(Number),
        _ => return Err("it computes something from the number of records that is no shape".into()),
    };
    result.ok_or_else(|| "whole numbers overflow".to_owned())
}
