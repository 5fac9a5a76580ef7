//! From a model to a graph, node by node.
use super::call::{Attributes, Call};
use super::tensor::{Folder, MOST_AXES, Size, Tensor};
use super::wire::{self, data_type};
use super::{Error, Model, NEWEST_OPSET, OLDEST_OPSET, Options, operators, shown};
use crate::layers::{Layer, Read, Scratch};
use crate::{Graph, Value};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

/// What is known of a value of the model.
#[derive(Debug, Clone)]
pub(super) enum Known {
    /// It depends on the record.
    Flow(Flow),
    /// It does not.
    Tensor(Tensor),
}
/// A value that depends on the record: in the model it has shape `[records, dims]`.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    pub(super) value: Value,
    /// Of one record; the graph's shape, except that one number without axes has shape `[1]` there.
    pub(super) dims: Vec<usize>,
}

/// Numbers of one record in a value, and numbers computed while reading, beyond those of the file.
const MOST_NUMBERS: usize = 1 << 28;
const FREE_NUMBERS: u64 = 1 << 20;

/// The graph as far as it is built.
pub(super) struct Builder {
    pub(super) graph: Graph,
    pub(super) names: Vec<String>,
    pub(super) opset: i64,
    pub(super) records: Option<usize>,
    /// Outputs of products and convolutions that have no biases yet and that one node reads.
    pub(super) without_bias: HashMap<String, Biases>,
    pub(super) folder: Folder,
    /// Numbers that may be made while reading, for those in the file, and those made.
    room: u64,
    made: u64,
}

/// Where biases belong that the next node may add.
#[derive(Debug)]
pub(super) struct Biases {
    /// Their place among the parameters.
    pub(super) range: Range<usize>,
    /// Axes behind theirs.
    pub(super) axes_behind: usize,
}

pub(super) fn import(
    model: &wire::Model,
    size: usize,
    folder: Option<&Path>,
    options: &Options,
) -> Result<Model, Error> {
    let wrong = |what: String| Error::Model { what };
    let graph = model.graph.as_ref().ok_or_else(|| wrong("it has no graph".into()))?;
    let opset = opset_of(model)?;
    if !graph.sparse_initializer.is_empty() {
        return Err(wrong("it has sparse tensors; convert it to dense ones".into()));
    }
    let order = Order::of(graph, options)?;
    let (input, records, dims) = input_of(graph, &order, options)?;
    let shape = graph_shape(&dims);
    let mut builder = Builder {
        graph: Graph::of_input(&shape).map_err(|e| wrong(e.to_string()))?,
        names: vec![input.to_owned()],
        opset,
        records,
        without_bias: HashMap::new(),
        folder: Folder::new(folder),
        room: (size as u64).saturating_mul(4).saturating_add(FREE_NUMBERS),
        made: 0,
    };
    let mut known: HashMap<&str, Known> = HashMap::new();
    known.insert(input, Known::Flow(Flow { value: Value::INPUT, dims }));
    let tensors: HashMap<&str, &wire::Tensor> =
        graph.initializer.iter().map(|t| (t.name.as_str(), t)).collect();
    for position in &order.nodes {
        let node = &graph.node[*position];
        let fail = |what: String| Error::Node {
            node: shown(if node.name.is_empty() { first_output(node) } else { &node.name }),
            operator: shown(&node.op_type),
            opset,
            what,
        };
        let mut inputs = Vec::with_capacity(node.input.len());
        for name in &node.input {
            let tensor = tensors.get(name.as_str());
            if let Some(message) = tensor
                && !known.contains_key(name.as_str())
            {
                known.insert(name, Known::Tensor(Tensor::decode(message, &builder.folder)?));
            }
            if name.is_empty() {
                inputs.push(None);
                continue;
            }
            let value = known.get(name.as_str()).cloned();
            let missing =
                || fail(format!("it reads {:?}, which no node before it makes", shown(name)));
            inputs.push(Some(value.ok_or_else(missing)?));
        }
        if !node.domain.is_empty() && node.domain != "ai.onnx" {
            let domain = shown(&node.domain);
            return Err(fail(format!(
                "operators of {domain:?} are not known; export with ONNX's own"
            )));
        }
        let operator = operators::find(&node.op_type).ok_or_else(|| {
            fail("this operator is not known; a value before it can be taken as the output".into())
        })?;
        let call = Call {
            builder: &mut builder,
            node,
            inputs,
            attributes: Attributes::new(node).map_err(&fail)?,
            uses: &order.uses,
            added: order.added_next(graph, node).and_then(|name| tensors.get(name).copied()),
        };
        let outputs = call.run(operator).map_err(&fail)?;
        for (name, value) in node.output.iter().zip(outputs.iter()) {
            if let Known::Flow(flow) = value {
                builder.name(flow.value, name);
            }
            known.insert(name, value.clone());
        }
        // Only what the operator gives can be read.
        for name in node.output.iter().skip(outputs.len()) {
            if order.uses.contains_key(name.as_str()) {
                return Err(fail(format!(
                    "its output {:?} is only known in training",
                    shown(name)
                )));
            }
        }
    }
    let last = known.get(order.output);
    let Some(Known::Flow(flow)) = last else {
        return Err(wrong(format!(
            "its output {:?} does not depend on its input",
            shown(order.output)
        )));
    };
    if flow.value != builder.graph.output() {
        return Err(wrong(format!("its output {:?} is not computed last", shown(order.output))));
    }
    let Builder { mut graph, names, .. } = builder;
    graph.lay_out();
    Ok(Model { graph, names, opset, producer: shown(&model.producer_name), records })
}

fn first_output(node: &wire::Node) -> &str {
    node.output.first().map_or("", String::as_str)
}

/// A shape of the model as one of the graph.
pub(super) fn graph_shape(dims: &[usize]) -> Vec<usize> {
    if dims.is_empty() { vec![1] } else { dims.to_vec() }
}

fn opset_of(model: &wire::Model) -> Result<i64, Error> {
    let wrong = |what: String| Err(Error::Model { what });
    let mut ours =
        model.opset_import.iter().filter(|o| o.domain.is_empty() || o.domain == "ai.onnx");
    match (ours.next(), ours.next()) {
        (Some(set), None) if (OLDEST_OPSET..=NEWEST_OPSET).contains(&set.version) => {
            Ok(set.version)
        }
        (Some(set), None) => wrong(format!(
            "it uses opset {}; {OLDEST_OPSET} to {NEWEST_OPSET} are read: convert it, or export it anew",
            set.version
        )),
        (None, _) => wrong("it does not say which opset it uses".into()),
        (Some(_), Some(_)) => wrong("it names two opsets".into()),
    }
}

/// What is to be computed.
struct Order<'m> {
    output: &'m str,
    /// Positions of the nodes that the output depends on, as in the file.
    nodes: Vec<usize>,
    /// How often each value is read; the output once more.
    uses: HashMap<&'m str, usize>,
    /// A node that reads each value.
    readers: HashMap<&'m str, usize>,
}
impl<'m> Order<'m> {
    fn of(graph: &'m wire::Graph, options: &Options) -> Result<Self, Error> {
        let wrong = |what: String| Err(Error::Model { what });
        let mut makers: HashMap<&str, Option<usize>> = HashMap::new();
        let initializers: HashSet<&str> =
            graph.initializer.iter().map(|t| t.name.as_str()).collect();
        let made_once = graph.initializer.iter().map(|t| (t.name.as_str(), None));
        // Old models list their tensors among the inputs too.
        let inputs = graph.input.iter().map(|i| (i.name.as_str(), None));
        let inputs = inputs.filter(|(name, _)| !initializers.contains(name));
        let outputs = graph.node.iter().enumerate();
        let outputs =
            outputs.flat_map(|(i, n)| n.output.iter().map(move |o| (o.as_str(), Some(i))));
        for (name, maker) in made_once.chain(inputs).chain(outputs) {
            if name.is_empty() && maker.is_some() {
                continue;
            }
            if makers.insert(name, maker).is_some() {
                return wrong(format!("two values are called {:?}", shown(name)));
            }
        }
        let names: Vec<&str> = graph.output.iter().map(|o| o.name.as_str()).collect();
        let output = match (&options.output, names.as_slice()) {
            (Some(wanted), _) => match makers.get_key_value(wanted.as_str()) {
                Some((name, _)) => *name,
                None => return wrong(format!("it has no value {wanted:?}")),
            },
            (None, [only]) => only,
            (None, []) => return wrong("it has no output".into()),
            (None, several) => {
                let some: Vec<String> = several.iter().take(8).map(|n| shown(n)).collect();
                return wrong(format!(
                    "it has {} outputs, {some:?}: say which one is wanted",
                    several.len()
                ));
            }
        };
        let mut needed = vec![false; graph.node.len()];
        let mut open: Vec<usize> = makers.get(output).copied().flatten().into_iter().collect();
        let mut uses = HashMap::from([(output, 1)]);
        let mut readers = HashMap::new();
        while let Some(position) = open.pop() {
            if std::mem::replace(&mut needed[position], true) {
                continue;
            }
            for name in &graph.node[position].input {
                *uses.entry(name.as_str()).or_insert(0) += 1;
                readers.insert(name.as_str(), position);
                open.extend(makers.get(name.as_str()).copied().flatten());
            }
        }
        let nodes = (0..needed.len()).filter(|i| needed[*i]).collect();
        Ok(Self { output, nodes, uses, readers })
    }
    /// What is added to the output of a node, if nothing else is done with it.
    fn added_next(&self, graph: &'m wire::Graph, node: &wire::Node) -> Option<&'m str> {
        let output = first_output(node);
        let reader = &graph.node[*self.readers.get(output)?];
        let only = self.uses.get(output) == Some(&1) && reader.op_type == "Add";
        let mut others = reader.input.iter().filter(|name| *name != output);
        others.next().filter(|_| only).map(String::as_str)
    }
}

/// The input's name, the number of records it is made for, and the shape of one.
fn input_of<'m>(
    graph: &'m wire::Graph,
    order: &Order<'m>,
    options: &Options,
) -> Result<(&'m str, Option<usize>, Vec<usize>), Error> {
    let wrong = |what: String| Err(Error::Model { what });
    let tensors: HashSet<&str> = graph.initializer.iter().map(|t| t.name.as_str()).collect();
    let open = |i: &&wire::ValueInfo| {
        !tensors.contains(i.name.as_str()) && order.uses.contains_key(i.name.as_str())
    };
    let mut inputs = graph.input.iter().filter(open);
    let input = match (inputs.next(), inputs.next()) {
        (Some(input), None) => input,
        (None, _) => return wrong("its output does not depend on its input".into()),
        (Some(a), Some(b)) => {
            let (a, b) = (shown(&a.name), shown(&b.name));
            return wrong(format!("its output depends on several inputs, {a:?} and {b:?}"));
        }
    };
    let name = shown(&input.name);
    let tensor = input.kind.as_ref().and_then(|t| t.tensor_type.as_ref());
    let Some(tensor) = tensor else {
        return wrong(format!("its input {name:?} is no tensor"));
    };
    if !data_type::is_float(tensor.elem_type.into()) {
        let kind = data_type::name(tensor.elem_type.into());
        return wrong(format!("its input {name:?} takes {kind}, not float32"));
    }
    let Some((first, rest)) = tensor.shape.as_ref().and_then(|s| s.dim.split_first()) else {
        return wrong(format!("its input {name:?} has no axis for records, or no shape at all"));
    };
    if rest.len() >= MOST_AXES {
        return wrong(format!("its input {name:?} has more than {MOST_AXES} axes"));
    }
    let length =
        |d: &wire::Dimension| d.dim_value.and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0);
    if first.dim_value.is_some_and(|n| n < 0)
        || rest.iter().any(|d| d.dim_value.is_some_and(|n| n < 0))
    {
        return wrong(format!("its input {name:?} has an axis of negative length"));
    }
    let stated: Vec<Option<usize>> = rest.iter().map(length).collect();
    let dims = match &options.input {
        Some(dims) => {
            let fit =
                |(stated, given): (&Option<usize>, &usize)| stated.is_none_or(|s| s == *given);
            if dims.len() != stated.len() || !stated.iter().zip(dims).all(fit) {
                return wrong(format!(
                    "its input {name:?} takes records of shape {}, not {dims:?}",
                    dashes(&stated)
                ));
            }
            dims.clone()
        }
        None => match stated.iter().copied().collect::<Option<Vec<usize>>>() {
            Some(dims) => dims,
            None => {
                return wrong(format!(
                    "its input {name:?} leaves the shape of a record open, {}: say which is wanted",
                    dashes(&stated)
                ));
            }
        },
    };
    Ok((&input.name, length(first), dims))
}

/// `[3, ?, ?]`.
fn dashes(dims: &[Option<usize>]) -> String {
    let axis = |d: &Option<usize>| d.map_or_else(|| "?".to_owned(), |d| d.to_string());
    format!("[{}]", dims.iter().map(axis).collect::<Vec<_>>().join(", "))
}

impl Builder {
    /// Gives a value the model's name for it, if it is a layer's output and has none of its own yet.
    fn name(&mut self, value: Value, name: &str) {
        let count = self.graph.output().position() + 1;
        self.names.resize(count, String::new());
        let own = &mut self.names[value.position()];
        if own.is_empty() {
            name.clone_into(own);
        }
    }
    /// Adds a layer with its parameters behind values that depend on the record.
    pub(super) fn add(
        &mut self,
        layer: Layer,
        inputs: &[Value],
        parameters: &[f32],
    ) -> Result<Flow, String> {
        if layer.parameter_count() != parameters.len() {
            let needed = layer.parameter_count();
            return Err(format!("it needs {needed} parameters, it has {}", parameters.len()));
        }
        self.spend(parameters.len())?;
        if let Some(at) = parameters.iter().position(|p| !p.is_finite()) {
            return Err(format!("its parameter {at} is {}, not a finite number", parameters[at]));
        }
        let value = self.graph.push(layer, inputs).map_err(|e| match e {
            crate::Error::LayersDoNotFit { needed, got, .. } => {
                format!("it takes {needed}, got {got}")
            }
            other => other.to_string(),
        })?;
        let dims = self.graph.shape(value).to_vec();
        if dims.iter().product::<usize>() > MOST_NUMBERS || dims.len() > MOST_AXES {
            return Err(format!("{dims:?} are too many numbers for one record"));
        }
        let range = self.graph.parameters_of(value.position() - 1);
        self.graph.parameters_mut()[range].copy_from_slice(parameters);
        Ok(Flow { value, dims })
    }
    /// What a layer without parameters makes of constants, each taken as one record.
    pub(super) fn compute(
        &mut self,
        layer: &Layer,
        inputs: &[(&[usize], &[f32])],
    ) -> Result<(Vec<usize>, Vec<f32>), String> {
        let shapes: Vec<Vec<usize>> = inputs.iter().map(|(dims, _)| graph_shape(dims)).collect();
        let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
        let operation = layer.operation();
        let shape = operation.output_shape(&shapes).map_err(|misfit| {
            format!(
                "it takes {}, got {}",
                misfit.needed,
                shapes.iter().map(|s| format!("{s:?}")).collect::<Vec<_>>().join(" and ")
            )
        })?;
        let count = shape.iter().try_fold(1_usize, |n, s| n.checked_mul(*s));
        let count = count.ok_or("too many numbers")?;
        self.spend(count)?;
        let mut output = vec![0.0; count];
        let values: Vec<&[f32]> = inputs.iter().map(|(_, values)| *values).collect();
        if count > 0 && values.iter().all(|v| !v.is_empty()) {
            let inputs = values.as_slice();
            let read = Read { records: 1, parameters: &[], shapes: &shapes, inputs, graphs: None };
            match layer {
                Layer::Reshape(_) => output.copy_from_slice(values[0]),
                layer => layer.operation().forward(&read, &mut output, &mut Scratch::default()),
            }
        }
        Ok((shape, output))
    }
    /// Counts numbers made while reading.
    pub(super) fn spend(&mut self, numbers: usize) -> Result<(), String> {
        self.made = self.made.saturating_add(numbers as u64);
        // A number is 4 bytes or more.
        if self.made > self.room.saturating_add(self.folder.bytes_read()) {
            return Err("what is made of its constants grows out of proportion to the file".into());
        }
        Ok(())
    }
    pub(super) const fn records_size(&self) -> Size {
        Size::Records(1)
    }
}

/// A tensor of numbers computed.
pub(super) fn floats(dims: Vec<usize>, values: Vec<f32>) -> Known {
    Known::Tensor(Tensor::Floats(Rc::new(super::tensor::Floats { dims, values })))
}
pub(super) fn integers(dims: Vec<usize>, values: Vec<Size>) -> Known {
    Known::Tensor(Tensor::Integers(Rc::new(super::tensor::Integers { dims, values })))
}
