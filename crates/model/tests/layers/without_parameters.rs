//! Layers without parameters: their definitions, place by place, and graphs that have them in the middle.
use dosimeter_model::{
    Activation, Arithmetic, Arrange, Combine, CombineConstant, Concatenate, Cut, Elementwise, Fill,
    Graph, Layer, Linear, LocalResponse, Reduce, Reduction, Reshape, Softmax, Value,
};

/// Shape and numbers of one record.
pub(crate) type Input<'a> = (&'a [usize], &'a [f64]);

/// All places of a shape in order.
fn places(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for length in shape {
        all = all
            .iter()
            .flat_map(|place| (0..*length).map(|i| [place.as_slice(), &[i]].concat()))
            .collect();
    }
    all
}
/// The number at a place; an axis of length 1 is repeated.
fn at((shape, values): Input<'_>, place: &[usize]) -> f64 {
    let flat = shape
        .iter()
        .zip(place)
        .fold(0, |sum, (length, i)| sum * length + if *length == 1 { 0 } else { *i });
    values[flat]
}

/// What a layer gives, by its definition; `None` for layers with parameters.
pub(crate) fn oracle(layer: &Layer, inputs: &[Input<'_>], shape: &[usize]) -> Option<Vec<f64>> {
    let (input_shape, x) = inputs[0];
    let each = |f: &dyn Fn(f64) -> f64| Some(x.iter().map(|x| f(*x)).collect());
    let by_place = |f: &dyn Fn(&[usize]) -> f64| Some(places(shape).iter().map(|p| f(p)).collect());
    match layer {
        Layer::Elementwise(function) => each(&|x| match *function {
            Elementwise::Clip { low, high } => {
                let high = high.map_or(f64::INFINITY, f64::from);
                x.max(low.map_or(f64::NEG_INFINITY, f64::from)).min(high)
            }
            Elementwise::HardSigmoid { slope, offset } => {
                (f64::from(slope) * x + f64::from(offset)).clamp(0.0, 1.0)
            }
            Elementwise::HardSwish => x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
            Elementwise::Elu { scale } => {
                if x > 0.0 {
                    x
                } else {
                    f64::from(scale) * x.exp_m1()
                }
            }
            Elementwise::Softplus => x.exp().ln_1p(),
            Elementwise::Absolute => x.abs(),
            Elementwise::Exponential => x.exp(),
            Elementwise::Logarithm => x.ln(),
            Elementwise::SquareRoot => x.sqrt(),
            other => panic!("no oracle for {other:?}"),
        }),
        Layer::Combine(c) => {
            by_place(&|p| arithmetic(c.operation, at(inputs[0], p), at(inputs[1], p)))
        }
        Layer::CombineConstant(c) => by_place(&|p| {
            let constants: Vec<f64> = c.constants.iter().map(|c| f64::from(*c)).collect();
            let (a, b) = (at(inputs[0], p), at((&c.shape, &constants), p));
            if c.constant_first {
                arithmetic(c.operation, b, a)
            } else {
                arithmetic(c.operation, a, b)
            }
        }),
        Layer::Arrange(Arrange::Transpose { axes }) => by_place(&|p| {
            let mut from = vec![0; p.len()];
            for (i, axis) in axes.iter().enumerate() {
                from[*axis] = p[i];
            }
            at(inputs[0], &from)
        }),
        Layer::Arrange(Arrange::Slice { cuts }) => by_place(&|p| {
            let mut from = p.to_vec();
            for cut in cuts {
                from[cut.axis] = (cut.start as i64 + p[cut.axis] as i64 * cut.step) as usize;
            }
            at(inputs[0], &from)
        }),
        Layer::Arrange(Arrange::Gather { axis, indices }) => by_place(&|p| {
            let mut from = p.to_vec();
            from[*axis] = indices[p[*axis]];
            at(inputs[0], &from)
        }),
        Layer::Arrange(Arrange::Pad { before, fill, .. }) => by_place(&|p| {
            let mut from = p.to_vec();
            for (i, from) in from.iter_mut().enumerate() {
                let (place, last) = (*from as i64 - before[i], input_shape[i] as i64 - 1);
                *from = match fill {
                    Fill::Constant(number) if place < 0 || place > last => {
                        return f64::from(*number);
                    }
                    Fill::Reflect if place > last => 2 * last - place,
                    Fill::Reflect => place.abs(),
                    _ => place.clamp(0, last),
                } as usize;
            }
            at(inputs[0], &from)
        }),
        Layer::Concatenate(c) => by_place(&|p| {
            let mut from = p.to_vec();
            for input in inputs {
                if from[c.axis] < input.0[c.axis] {
                    return at(*input, &from);
                }
                from[c.axis] -= input.0[c.axis];
            }
            panic!("beyond the last input")
        }),
        Layer::Reduce(r) => by_place(&|p| {
            let along = |q: &[usize]| (0..p.len()).all(|i| r.axes.contains(&i) || q[i] == p[i]);
            let numbers = places(input_shape).into_iter().filter(|q| along(q));
            let numbers: Vec<f64> = numbers.map(|q| at(inputs[0], &q)).collect();
            let sum: f64 = numbers.iter().sum();
            if r.reduction == Reduction::Mean { sum / numbers.len() as f64 } else { sum }
        }),
        Layer::Softmax(s) => by_place(&|p| {
            let sum: f64 = (0..input_shape[s.axis])
                .map(|i| {
                    let mut place = p.to_vec();
                    place[s.axis] = i;
                    at(inputs[0], &place).exp()
                })
                .sum();
            let probability = at(inputs[0], p).exp() / sum;
            if s.logarithm { probability.ln() } else { probability }
        }),
        Layer::LocalResponse(l) => by_place(&|p| {
            let reach = l.size as i64 / 2;
            let squares: f64 = (0..input_shape[0])
                .filter(|c| (*c as i64 - p[0] as i64).abs() <= reach)
                .map(|c| at(inputs[0], &[&[c], &p[1..]].concat()).powi(2))
                .sum();
            let scale = f64::from(l.bias) + f64::from(l.alpha) / l.size as f64 * squares;
            at(inputs[0], p) / scale.powf(f64::from(l.beta))
        }),
        _ => None,
    }
}

fn arithmetic(operation: Arithmetic, a: f64, b: f64) -> f64 {
    match operation {
        Arithmetic::Add => a + b,
        Arithmetic::Subtract => a - b,
        Arithmetic::Multiply => a * b,
        Arithmetic::Divide => a / b,
    }
}

/// Between a linear layer that makes `[2, 3, 4]` and one that reads what `layers` makes of it.
fn between(layers: impl FnOnce(&mut Graph, Value) -> Value) -> Graph {
    let mut graph = Graph::of_input(&[2]).unwrap();
    graph.add(Layer::Linear(Linear { inputs: 2, outputs: 24 }), &[Value::INPUT]).unwrap();
    let made = graph.output();
    let image = graph.add(Layer::Reshape(Reshape { shape: vec![2, 3, 4] }), &[made]).unwrap();
    let last = layers(&mut graph, image);
    let width = graph.outputs();
    let flat = graph.add(Layer::Reshape(Reshape { shape: vec![width] }), &[last]).unwrap();
    graph.add(Layer::Linear(Linear { inputs: width, outputs: 3 }), &[flat]).unwrap();
    graph
}

pub(crate) fn cases() -> Vec<(&'static str, Graph)> {
    let one = |layer: Layer| between(|graph, image| graph.add(layer, &[image]).unwrap());
    let function = |function| one(Layer::Elementwise(function));
    // Logarithms and roots are of numbers above 0.
    let of_positive = |function| {
        between(|graph, image| {
            let sigmoid = graph.add(Layer::Activation(Activation::Sigmoid), &[image]).unwrap();
            graph.add(Layer::Elementwise(function), &[sigmoid]).unwrap()
        })
    };
    let arrange = |arrange| one(Layer::Arrange(arrange));
    let reduce =
        |reduction, axes: &[usize]| Layer::Reduce(Reduce { reduction, axes: axes.to_vec() });
    let mut cases = vec![
        ("clip", function(Elementwise::Clip { low: Some(-0.4), high: Some(0.3) })),
        ("clip above", function(Elementwise::Clip { low: None, high: Some(0.1) })),
        ("hard sigmoid", function(Elementwise::HardSigmoid { slope: 0.7, offset: 0.4 })),
        ("hard swish", function(Elementwise::HardSwish)),
        ("elu", function(Elementwise::Elu { scale: 0.8 })),
        ("softplus", function(Elementwise::Softplus)),
        ("absolute", function(Elementwise::Absolute)),
        ("exponential", function(Elementwise::Exponential)),
        ("logarithm", of_positive(Elementwise::Logarithm)),
        ("square root", of_positive(Elementwise::SquareRoot)),
        ("transpose", arrange(Arrange::Transpose { axes: vec![2, 0, 1] })),
        ("transpose in front", arrange(Arrange::Transpose { axes: vec![1, 0, 2] })),
        (
            "slice",
            arrange(Arrange::Slice {
                cuts: vec![
                    Cut { axis: 2, start: 3, step: -2, count: 2 },
                    Cut { axis: 0, start: 1, step: 1, count: 1 },
                ],
            }),
        ),
        ("gather", arrange(Arrange::Gather { axis: 1, indices: vec![2, 0, 2, 1] })),
        (
            "reflect",
            arrange(Arrange::Pad {
                before: vec![1, 2, 0],
                after: vec![0, 1, 3],
                fill: Fill::Reflect,
            }),
        ),
        (
            "edge",
            arrange(Arrange::Pad {
                before: vec![0, 3, -1],
                after: vec![2, 0, 1],
                fill: Fill::Edge,
            }),
        ),
        (
            "pad",
            arrange(Arrange::Pad {
                before: vec![0, 1, -1],
                after: vec![1, -1, 2],
                fill: Fill::Constant(0.5),
            }),
        ),
        ("mean", one(reduce(Reduction::Mean, &[1, 2]))),
        ("sum", one(reduce(Reduction::Sum, &[0, 2]))),
        ("sum in the middle", one(reduce(Reduction::Sum, &[1]))),
        ("softmax", one(Layer::Softmax(Softmax { axis: 1, logarithm: false }))),
        ("log-softmax", one(Layer::Softmax(Softmax { axis: 0, logarithm: true }))),
        ("log-softmax at the end", one(Layer::Softmax(Softmax { axis: 2, logarithm: true }))),
        (
            "local response",
            one(Layer::LocalResponse(LocalResponse { size: 3, alpha: 2.0, beta: 0.7, bias: 1.5 })),
        ),
        (
            "concatenate",
            between(|graph, image| {
                let cut =
                    Arrange::Slice { cuts: vec![Cut { axis: 1, start: 1, step: 1, count: 1 }] };
                let part = graph.add(Layer::Arrange(cut), &[image]).unwrap();
                let layer = Layer::Concatenate(Concatenate { axis: 1 });
                graph.add(layer, &[image, part, image]).unwrap()
            }),
        ),
    ];
    for operation in
        [Arithmetic::Add, Arithmetic::Subtract, Arithmetic::Multiply, Arithmetic::Divide]
    {
        // Divisors away from 0; each side is the smaller one once.
        for (name, axes, swapped) in [
            ("equal", &[][..], false),
            ("channels", &[1, 2], false),
            ("columns", &[0, 1], true),
            ("rows", &[0, 2], false),
        ] {
            cases.push((
                name,
                between(|graph, image| {
                    let mut add = |layer, inputs: &[Value]| graph.add(layer, inputs).unwrap();
                    let sigmoid = add(Layer::Activation(Activation::Sigmoid), &[image]);
                    let few = add(reduce(Reduction::Mean, axes), &[sigmoid]);
                    let sides = if swapped { [few, sigmoid] } else { [sigmoid, few] };
                    add(Layer::Combine(Combine { operation }), &sides)
                }),
            ));
        }
        for (constant_first, shape) in [(true, vec![2, 1, 4]), (false, vec![1, 3, 1])] {
            let constants = (1..).take(shape.iter().product()).map(|c| c as f32 / 4.0).collect();
            let layer = CombineConstant { operation, constant_first, shape, constants };
            cases.push((
                "constant",
                between(|graph, image| {
                    let sigmoid =
                        graph.add(Layer::Activation(Activation::Sigmoid), &[image]).unwrap();
                    graph.add(Layer::CombineConstant(layer), &[sigmoid]).unwrap()
                }),
            ));
        }
    }
    cases
}

/// Layers that do not take `[2, 3, 4]`.
pub(crate) fn misfits() -> Vec<Layer> {
    let cut =
        |axis, start, step, count| Arrange::Slice { cuts: vec![Cut { axis, start, step, count }] };
    let pad = |before: [i64; 3], after: [i64; 3], fill| Arrange::Pad {
        before: before.to_vec(),
        after: after.to_vec(),
        fill,
    };
    let zero = Fill::Constant(0.0);
    let arrangements = [
        Arrange::Transpose { axes: vec![0, 1] },
        Arrange::Transpose { axes: vec![0, 1, 1] },
        Arrange::Transpose { axes: vec![0, 1, 3] },
        cut(3, 0, 1, 1),
        cut(2, 4, 1, 1),
        cut(2, 1, 1, 4),
        cut(2, 1, -1, 3),
        cut(2, 0, 0, 1),
        cut(2, 0, 1, 0),
        cut(2, 0, i64::MAX, 3),
        Arrange::Slice { cuts: vec![Cut { axis: 0, start: 0, step: 1, count: 1 }; 2] },
        pad([0, -3, 0], [0; 3], zero),
        pad([0, -3, 0], [0, 1, 0], zero),
        pad([0; 3], [i64::MAX; 3], zero),
        pad([i64::MIN, 0, 0], [0; 3], zero),
        pad([2, 0, 0], [0; 3], Fill::Reflect),
        Arrange::Pad { before: vec![0], after: vec![0], fill: zero },
        Arrange::Gather { axis: 0, indices: vec![2] },
        Arrange::Gather { axis: 3, indices: vec![0] },
        Arrange::Gather { axis: 0, indices: vec![] },
    ];
    let reduce = |axes| Layer::Reduce(Reduce { reduction: Reduction::Sum, axes });
    let constant = |shape: &[usize], constants: usize| {
        Layer::CombineConstant(CombineConstant {
            operation: Arithmetic::Add,
            constant_first: false,
            shape: shape.to_vec(),
            constants: vec![0.0; constants],
        })
    };
    let local =
        |size, bias| Layer::LocalResponse(LocalResponse { size, alpha: 1.0, beta: 1.0, bias });
    let mut all: Vec<Layer> = arrangements.into_iter().map(Layer::Arrange).collect();
    all.extend([
        reduce(vec![3]),
        reduce(vec![1, 0]),
        reduce(vec![1, 1]),
        constant(&[4], 4),
        constant(&[1, 2, 1], 2),
        constant(&[1, 3, 1], 2),
        Layer::Combine(Combine { operation: Arithmetic::Add }),
        Layer::Concatenate(Concatenate { axis: 3 }),
        Layer::Softmax(Softmax { axis: 3, logarithm: false }),
        local(2, 1.0),
        local(3, 0.0),
        local(3, f32::NAN),
        Layer::Elementwise(Elementwise::Clip { low: Some(1.0), high: Some(0.0) }),
    ]);
    all
}
