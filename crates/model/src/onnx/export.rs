//! From a graph to a model.
use super::Error;
use super::wire::{self, attribute_kind, data_type};
use crate::layers::{
    Activation, Affine, Arithmetic, Arrange, Elementwise, Fill, Layer, Pool, Reduction, Window,
};
use crate::{Graph, Value};
use prost::Message;

/// The graph as an ONNX model: one input, `input`, and one output, `output`, with records along the first axis, of which
/// there may be any number. [`super::read_bytes`] gives the same graph, save that a softmax over several axes comes back
/// with the reshapes around it that ONNX needs.
///
/// Opset 17, or the first that has what the layers need; the matching format version.
///
/// # Errors
/// [`Error::Layer`] if a parameter is not finite or ONNX has no operator for a layer; [`Error::Model`] beyond 2 GiB.
pub fn write(graph: &Graph) -> Result<Vec<u8>, Error> {
    let mut writer = Writer { graph, opset: opset_for(graph), model: wire::Graph::default() };
    if graph.nodes().is_empty() {
        writer.node("Identity", &[writer.name(0)], writer.name(0) + "_unchanged", vec![]);
    }
    for layer in 0..graph.nodes().len() {
        writer.layer(layer).map_err(|what| Error::Layer { layer, what })?;
    }
    let Writer { opset, model: mut written, .. } = writer;
    written.name = "dosimeter".into();
    written.input = vec![value_info("input", graph.shape(Value::INPUT))];
    written.output = vec![value_info("output", graph.shape(graph.output()))];
    if let Some(last) = written.node.last_mut() {
        last.output = vec!["output".into()];
    }
    let model = wire::Model {
        ir_version: if opset > 18 { 10 } else { 8 },
        producer_name: "dosimeter".into(),
        graph: Some(written),
        opset_import: vec![wire::OperatorSet { domain: String::new(), version: opset }],
        functions: Vec::new(),
    };
    if i32::try_from(model.encoded_len()).is_err() {
        return Err(Error::Model { what: "it would be longer than 2 GiB".into() });
    }
    Ok(model.encode_to_vec())
}

fn opset_for(graph: &Graph) -> i64 {
    let needed = |layer: &Layer| match layer {
        Layer::Normalization(n) if n.affine == Affine::Channel && n.groups != n.channels => 21,
        Layer::Pooling(p) if p.pool != Pool::Max && p.window.dilation != [1; 2] => 19,
        _ => 17,
    };
    graph.nodes().iter().map(|n| needed(&n.layer)).max().unwrap_or(17)
}

fn value_info(name: &str, shape: &[usize]) -> wire::ValueInfo {
    let records = wire::Dimension { dim_value: None, dim_param: Some("batch".into()) };
    let fixed = |d: &usize| wire::Dimension { dim_value: Some(*d as i64), dim_param: None };
    let dim = std::iter::once(records).chain(shape.iter().map(fixed)).collect();
    let tensor = wire::TensorType { elem_type: data_type::FLOAT, shape: Some(wire::Shape { dim }) };
    wire::ValueInfo { name: name.into(), kind: Some(wire::Type { tensor_type: Some(tensor) }) }
}

fn int(name: &str, number: i64) -> wire::Attribute {
    let (name, kind) = (name.into(), attribute_kind::INT);
    wire::Attribute { name, i: Some(number), kind, ..Default::default() }
}
fn float(name: &str, number: f32) -> wire::Attribute {
    let (name, kind) = (name.into(), attribute_kind::FLOAT);
    wire::Attribute { name, f: Some(number), kind, ..Default::default() }
}
fn text(name: &str, text: &'static str) -> wire::Attribute {
    let (name, kind) = (name.into(), attribute_kind::STRING);
    let s = Some(prost::bytes::Bytes::from_static(text.as_bytes()));
    wire::Attribute { name, s, kind, ..Default::default() }
}
fn ints(name: &str, numbers: impl IntoIterator<Item = usize>) -> wire::Attribute {
    let (name, kind) = (name.into(), attribute_kind::INTS);
    let ints = numbers.into_iter().map(|n| n as i64).collect();
    wire::Attribute { name, ints, kind, ..Default::default() }
}

struct Writer<'g> {
    graph: &'g Graph,
    opset: i64,
    model: wire::Graph,
}
impl Writer<'_> {
    fn name(&self, value: usize) -> String {
        value.checked_sub(1).map_or_else(|| "input".into(), |layer| format!("layer_{layer}"))
    }
    fn node(
        &mut self,
        operator: &str,
        inputs: &[String],
        output: String,
        attribute: Vec<wire::Attribute>,
    ) {
        self.model.node.push(wire::Node {
            input: inputs.to_vec(),
            name: output.clone(),
            output: vec![output],
            op_type: operator.into(),
            attribute,
            domain: String::new(),
        });
    }
    fn tensor(&mut self, name: String, dims: Vec<i64>, data_type: i32, raw: Vec<u8>) -> String {
        self.model.initializer.push(wire::Tensor {
            dims,
            data_type,
            name: name.clone(),
            raw_data: Some(raw.into()),
            ..Default::default()
        });
        name
    }
    fn floats(&mut self, name: String, dims: &[usize], values: &[f32]) -> Result<String, String> {
        if let Some(bad) = values.iter().find(|v| !v.is_finite()) {
            return Err(format!("it holds {bad}, not a finite number"));
        }
        let dims = dims.iter().map(|d| *d as i64).collect();
        let raw = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Ok(self.tensor(name, dims, data_type::FLOAT, raw))
    }
    fn integers(&mut self, name: String, values: impl Iterator<Item = i64>) -> String {
        let raw: Vec<u8> = values.flat_map(i64::to_le_bytes).collect();
        self.tensor(name, vec![raw.len() as i64 / 8], data_type::INT64, raw)
    }
    /// `[records, shape]`.
    fn reshape(&mut self, input: &str, output: String, shape: &[usize]) {
        let wanted = std::iter::once(0).chain(shape.iter().map(|d| *d as i64));
        let wanted = self.integers(format!("{output}_shape"), wanted);
        self.node("Reshape", &[input.to_owned(), wanted], output, vec![]);
    }

    fn layer(&mut self, layer: usize) -> Result<(), String> {
        let graph = self.graph;
        let node = &graph.nodes()[layer];
        let mut inputs: Vec<String> = node.inputs.iter().map(|v| self.name(v.position())).collect();
        let output = self.name(layer + 1);
        let read = |i: usize| node.inputs.get(i).map(|v| graph.shape(*v)).unwrap_or_default();
        let parameters = &graph.parameters()[graph.parameters_of(layer)];
        let part = |what: &str| format!("layer_{layer}_{what}");
        let (operator, attributes) = match &node.layer {
            Layer::Linear(linear) => {
                let (weights, biases) = parameters.split_at(linear.inputs * linear.outputs);
                let dims = [linear.inputs, linear.outputs];
                inputs.push(self.floats(part("weights"), &dims, weights)?);
                inputs.push(self.floats(part("biases"), &dims[1..], biases)?);
                ("Gemm", vec![])
            }
            Layer::Activation(Activation::Softmax) if read(0).len() > 1 => {
                let flat = part("flat");
                self.reshape(&inputs[0], flat.clone(), &[read(0).iter().product()]);
                self.node("Softmax", &[flat], part("softmax"), vec![int("axis", 1)]);
                self.reshape(&part("softmax"), output, read(0));
                return Ok(());
            }
            Layer::Activation(activation) => match *activation {
                Activation::Tanh => ("Tanh", vec![]),
                Activation::Relu => ("Relu", vec![]),
                Activation::LeakyRelu { slope } => ("LeakyRelu", vec![float("alpha", slope)]),
                Activation::Sigmoid => ("Sigmoid", vec![]),
                Activation::Softmax => ("Softmax", vec![int("axis", 1)]),
            },
            Layer::Elementwise(function) => match *function {
                Elementwise::Clip { low, high } => {
                    for (limit, what) in [(low, "low"), (high, "high")] {
                        inputs.push(match limit {
                            Some(limit) => self.floats(part(what), &[], &[limit])?,
                            None => String::new(),
                        });
                    }
                    ("Clip", vec![])
                }
                Elementwise::HardSigmoid { slope, offset } => {
                    ("HardSigmoid", vec![float("alpha", slope), float("beta", offset)])
                }
                Elementwise::HardSwish => ("HardSwish", vec![]),
                Elementwise::Elu { scale } => ("Elu", vec![float("alpha", scale)]),
                Elementwise::Softplus => ("Softplus", vec![]),
                Elementwise::Absolute => ("Abs", vec![]),
                Elementwise::Exponential => ("Exp", vec![]),
                Elementwise::Logarithm => ("Log", vec![]),
                Elementwise::SquareRoot => ("Sqrt", vec![]),
            },
            Layer::Combine(combine) => (arithmetic(combine.operation), vec![]),
            Layer::CombineConstant(combine) => {
                let dims: Vec<usize> = std::iter::once(1).chain(combine.shape.clone()).collect();
                let constants = self.floats(part("constants"), &dims, &combine.constants)?;
                inputs.insert(usize::from(!combine.constant_first), constants);
                (arithmetic(combine.operation), vec![])
            }
            Layer::Arrange(arrange) => self.arrange(layer, arrange, read(0), &mut inputs)?,
            Layer::Concatenate(concatenate) => {
                ("Concat", vec![int("axis", concatenate.axis as i64 + 1)])
            }
            Layer::Reduce(reduce) => {
                let axes: Vec<usize> = reduce.axes.iter().map(|a| a + 1).collect();
                let sum = reduce.reduction == Reduction::Sum;
                let mut attributes = vec![int("keepdims", 1)];
                if axes.is_empty() {
                    return Err("it reduces no axis".into());
                }
                if sum || self.opset >= 18 {
                    let axes = axes.iter().map(|a| *a as i64);
                    inputs.push(self.integers(part("axes"), axes));
                } else {
                    attributes.push(ints("axes", axes));
                }
                (if sum { "ReduceSum" } else { "ReduceMean" }, attributes)
            }
            Layer::Softmax(softmax) => {
                let operator = if softmax.logarithm { "LogSoftmax" } else { "Softmax" };
                (operator, vec![int("axis", softmax.axis as i64 + 1)])
            }
            Layer::LocalResponse(layer) => (
                "LRN",
                vec![
                    int("size", layer.size as i64),
                    float("alpha", layer.alpha),
                    float("beta", layer.beta),
                    float("bias", layer.bias),
                ],
            ),
            Layer::Reshape(reshape) => {
                self.reshape(&inputs[0], output, &reshape.shape);
                return Ok(());
            }
            Layer::Convolution(layer) => {
                let (kernel, mut attributes) = window(&layer.window, read(0).len())?;
                attributes.push(int("group", layer.groups as i64));
                let mut dims = vec![layer.outputs, layer.channels / layer.groups];
                dims.extend(kernel);
                let (weights, biases) = parameters.split_at(layer.weight_count());
                inputs.push(self.floats(part("weights"), &dims, weights)?);
                if layer.bias {
                    inputs.push(self.floats(part("biases"), &dims[..1], biases)?);
                }
                ("Conv", attributes)
            }
            Layer::Pooling(layer) => {
                let (_, mut attributes) = window(&layer.window, read(0).len())?;
                if self.opset < 19 && layer.pool != Pool::Max {
                    attributes.retain(|a| a.name != "dilations");
                }
                if layer.pool == Pool::AverageWithPadding {
                    attributes.push(int("count_include_pad", 1));
                }
                (if layer.pool == Pool::Max { "MaxPool" } else { "AveragePool" }, attributes)
            }
            Layer::Normalization(layer) => {
                let (scales, shifts) = parameters.split_at(parameters.len() / 2);
                let (operator, attribute) = match layer.affine {
                    Affine::Element { .. } => {
                        ("LayerNormalization", int("axis", if layer.groups == 1 { 1 } else { 2 }))
                    }
                    Affine::Channel if layer.groups == layer.channels => {
                        ("InstanceNormalization", float("epsilon", layer.stabilizer))
                    }
                    Affine::Channel => {
                        ("GroupNormalization", int("num_groups", layer.groups as i64))
                    }
                };
                let dims = match layer.affine {
                    Affine::Element { .. } if layer.groups == 1 => read(0).to_vec(),
                    Affine::Element { .. } => read(0)[1..].to_vec(),
                    Affine::Channel => vec![layer.channels],
                };
                inputs.push(self.floats(part("scales"), &dims, scales)?);
                inputs.push(self.floats(part("shifts"), &dims, shifts)?);
                let mut attributes = vec![attribute];
                if attributes[0].name != "epsilon" {
                    attributes.push(float("epsilon", layer.stabilizer));
                }
                (operator, attributes)
            }
            Layer::BatchNormalization(layer) => {
                let names = ["scales", "shifts", "means", "variances"];
                for (what, values) in names.iter().zip(parameters.chunks_exact(layer.channels)) {
                    inputs.push(self.floats(part(what), &[layer.channels], values)?);
                }
                ("BatchNormalization", vec![float("epsilon", layer.stabilizer)])
            }
            Layer::GraphConvolutions(_) => {
                return Err(
                    "graph convolutions read lists of neighbours, for which ONNX has no form; \
                            keep the network as a checkpoint"
                        .into(),
                );
            }
        };
        self.node(operator, &inputs, output, attributes);
        Ok(())
    }

    fn arrange(
        &mut self,
        layer: usize,
        arrange: &Arrange,
        shape: &[usize],
        inputs: &mut Vec<String>,
    ) -> Result<(&'static str, Vec<wire::Attribute>), String> {
        let part = |what: &str| format!("layer_{layer}_{what}");
        Ok(match arrange {
            Arrange::Transpose { axes } => {
                let axes = std::iter::once(0).chain(axes.iter().map(|a| a + 1));
                ("Transpose", vec![ints("perm", axes)])
            }
            Arrange::Slice { cuts } => {
                let starts = cuts.iter().map(|c| c.start as i64);
                // One before the first place cannot be said but as a number far below.
                let end = |start: usize, step: i64, count: usize| {
                    let end = start as i64 + step * count as i64;
                    if end < 0 { i64::MIN } else { end }
                };
                let ends = cuts.iter().map(|c| end(c.start, c.step, c.count));
                let axes = cuts.iter().map(|c| c.axis as i64 + 1);
                let steps = cuts.iter().map(|c| c.step);
                inputs.push(self.integers(part("starts"), starts));
                inputs.push(self.integers(part("ends"), ends));
                inputs.push(self.integers(part("axes"), axes));
                inputs.push(self.integers(part("steps"), steps));
                ("Slice", vec![])
            }
            Arrange::Pad { before, after, fill } => {
                let none = std::iter::once(&0);
                let pads = none.clone().chain(before).chain(none).chain(after).copied();
                debug_assert_eq!(before.len(), shape.len());
                inputs.push(self.integers(part("pads"), pads));
                let mode = match fill {
                    Fill::Constant(number) => {
                        inputs.push(self.floats(part("fill"), &[], &[*number])?);
                        "constant"
                    }
                    Fill::Edge => "edge",
                    Fill::Reflect => "reflect",
                };
                ("Pad", vec![text("mode", mode)])
            }
            Arrange::Gather { axis, indices } => {
                let indices = indices.iter().map(|i| *i as i64);
                inputs.push(self.integers(part("indices"), indices));
                ("Gather", vec![int("axis", *axis as i64 + 1)])
            }
        })
    }
}

const fn arithmetic(operation: Arithmetic) -> &'static str {
    match operation {
        Arithmetic::Add => "Add",
        Arithmetic::Subtract => "Sub",
        Arithmetic::Multiply => "Mul",
        Arithmetic::Divide => "Div",
    }
}

/// Sides of the window and the attributes that describe it, on records with so many axes.
fn window(window: &Window, rank: usize) -> Result<(Vec<usize>, Vec<wire::Attribute>), String> {
    let Window { kernel, stride, dilation, before, after } = window;
    let first = 3_usize.saturating_sub(rank);
    if first > 0 && (kernel[0], stride[0], dilation[0], before[0], after[0]) != (1, 1, 1, 0, 0) {
        return Err("on a signal of one dimension its window is higher than 1".into());
    }
    let sides = |values: &[usize; 2]| values.iter().copied().skip(first).collect::<Vec<_>>();
    let pads = sides(before).into_iter().chain(sides(after));
    let attributes = vec![
        ints("kernel_shape", sides(kernel)),
        ints("strides", sides(stride)),
        ints("dilations", sides(dilation)),
        ints("pads", pads),
    ];
    Ok((sides(kernel), attributes))
}
