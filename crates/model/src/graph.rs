//! Layers wired into a graph, over one slice of parameters.
use crate::kernels::Limits;
use crate::layers::{Layer, Misfit};
use crate::{Error, RECORD_BLOCK};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// A value in a graph: its input, or the output of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Value(usize);
impl Value {
    /// What the graph reads.
    pub const INPUT: Self = Self(0);
    /// Position: 0 is the input, `i + 1` the output of layer `i`.
    #[must_use]
    pub const fn position(self) -> usize {
        self.0
    }
}

/// A layer and the values it reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// What is computed.
    pub layer: Layer,
    /// From what, each made before.
    pub inputs: Vec<Value>,
}

/// A function from the numbers of one record to the numbers of one record, by layers that read the outputs of layers
/// before them. Its output is that of the last layer; for classifiers these are logits: softmax and sigmoid belong to
/// the [`Loss`](crate::Loss).
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    pub(crate) wiring: Arc<Wiring>,
    parameters: Vec<f32>,
}

/// Everything about a graph but its parameters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wiring {
    pub(crate) nodes: Vec<Node>,
    /// Of one record, for each value.
    pub(crate) shapes: Vec<Vec<usize>>,
    /// Where each node's parameters lie.
    pub(crate) parameters: Vec<Range<usize>>,
    pub(crate) layout: Layout,
}

/// Where values lie while a block of records passes through.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Layout {
    /// For each value; `None`: in the rows given to the graph.
    pub(crate) places: Vec<Option<usize>>,
    /// Numbers per record in each place.
    pub(crate) widths: Vec<usize>,
    /// Where each place lies in a pass without gradients, in which values that nobody is still to read make room for others:
    /// what is used again and again stays in the caches.
    pub(crate) slots: Vec<usize>,
    /// Numbers per record in each slot.
    pub(crate) slot_widths: Vec<usize>,
    /// Whether a node overwrites what it read.
    pub(crate) in_place: Vec<bool>,
    /// To what each node clips its outputs as it writes them, for nodes in place behind it.
    pub(crate) limits: Vec<Limits>,
    /// Whether the node before has done its work so.
    pub(crate) done_before: Vec<bool>,
    /// Whether a value depends on parameters, so that gradients pass through it.
    pub(crate) depends: Vec<bool>,
    /// Records at once: so many that they stay in the caches, at most [`RECORD_BLOCK`], which it divides.
    pub(crate) block: usize,
}

/// Most parameters of a graph: 2 GiB of them.
pub const MOST_PARAMETERS: usize = 1 << 29;

/// Numbers held for a block of records, values and gradients together; more records than fit are not taken at once.
const BLOCK_NUMBERS: usize = 1 << 24;

/// Most records in a block if a whole [`RECORD_BLOCK`] does not fit: no slower then, and threads have more to share.
const LARGE_RECORDS: usize = 32;

impl Graph {
    /// A graph without layers: it gives back what it reads. All parameters of layers added are 0.
    ///
    /// # Shapes
    /// `input`: of one record, `[numbers]` or `[channels, height, width]`.
    ///
    /// # Errors
    /// [`Error::Shape`] if a dimension is 0 or there are none, or too many numbers to count.
    pub fn of_input(input: &[usize]) -> Result<Self, Error> {
        check_shape(input)?;
        let mut wiring = Wiring {
            nodes: Vec::new(),
            shapes: vec![input.to_vec()],
            parameters: Vec::new(),
            layout: Layout::default(),
        };
        wiring.layout = wiring.lay_out();
        Ok(Self { wiring: Arc::new(wiring), parameters: Vec::new() })
    }
    /// Layers one behind the other.
    ///
    /// # Errors
    /// As [`Self::of_input`] and [`Self::add`].
    pub fn chain(input: &[usize], layers: Vec<Layer>) -> Result<Self, Error> {
        let mut graph = Self::of_input(input)?;
        for layer in layers {
            let last = graph.output();
            graph.push(layer, &[last])?;
        }
        graph.lay_out();
        Ok(graph)
    }
    /// Adds a layer behind the values it reads; its output is the graph's until another layer is added.
    ///
    /// # Errors
    /// [`Error::LayersDoNotFit`] if the layer does not take them; [`Error::Shape`] if it would give nothing;
    /// [`Error::UnknownValue`]; [`Error::TooManyParameters`] above [`MOST_PARAMETERS`].
    pub fn add(&mut self, layer: Layer, inputs: &[Value]) -> Result<Value, Error> {
        let value = self.push(layer, inputs)?;
        self.lay_out();
        Ok(value)
    }
    /// As [`Self::add`], save that the graph cannot be run before [`Self::lay_out`]: laying out takes as long as the graph
    /// is.
    pub(crate) fn push(&mut self, layer: Layer, inputs: &[Value]) -> Result<Value, Error> {
        let wiring = Arc::make_mut(&mut self.wiring);
        let position = wiring.nodes.len();
        if let Some(value) = inputs.iter().find(|v| v.0 > position) {
            return Err(Error::UnknownValue { layer: position, value: value.0 });
        }
        let shapes: Vec<&[usize]> = inputs.iter().map(|v| wiring.shapes[v.0].as_slice()).collect();
        if wiring.mixes_kinds(&layer, inputs) {
            return Err(Misfit::new("graphs: the graph's input, read by such layers alone")
                .at(position, &shapes));
        }
        let operation = layer.operation();
        let shape = operation.output_shape(&shapes).map_err(|m| m.at(position, &shapes))?;
        check_shape(&shape)?;
        let (start, count) = (self.parameters.len(), layer.parameter_count());
        if count > MOST_PARAMETERS - start {
            return Err(Error::TooManyParameters { layer: position, parameters: count });
        }
        wiring.nodes.push(Node { layer, inputs: inputs.to_vec() });
        wiring.shapes.push(shape);
        wiring.parameters.push(start..start + count);
        self.parameters.resize(start + count, 0.0);
        Ok(self.output())
    }
    pub(crate) fn lay_out(&mut self) {
        let wiring = Arc::make_mut(&mut self.wiring);
        wiring.layout = wiring.lay_out();
    }
    /// The layers, each behind those it reads.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.wiring.nodes
    }
    /// What the graph gives.
    #[must_use]
    pub fn output(&self) -> Value {
        Value(self.wiring.nodes.len())
    }
    /// The shape of a value, of one record.
    ///
    /// # Panics
    /// If the value is of another graph.
    #[must_use]
    pub fn shape(&self, value: Value) -> &[usize] {
        &self.wiring.shapes[value.0]
    }
    /// All parameters, layer after layer; each linear layer's weights `[inputs, outputs]`, then its biases.
    #[must_use]
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }
    /// All parameters, to be changed by an optimizer.
    pub fn parameters_mut(&mut self) -> &mut [f32] {
        &mut self.parameters
    }
    /// Where the parameters of layer `i` lie.
    ///
    /// # Panics
    /// If there is no such layer.
    #[must_use]
    pub fn parameters_of(&self, layer: usize) -> Range<usize> {
        self.wiring.parameters[layer].clone()
    }
    /// For each parameter range, whether it holds weights (true) or biases (false), in order.
    pub fn parameter_ranges(&self) -> impl Iterator<Item = (Range<usize>, bool)> + '_ {
        let groups = self.nodes().iter().flat_map(|n| n.layer.operation().parameter_groups());
        groups.scan(0, |start, (count, weights)| {
            let range = *start..*start + count;
            *start = range.end;
            Some((range, weights))
        })
    }
    /// Multiply-adds of one record passing forward through the linear layers and convolutions; all other layers count as 0.
    #[must_use]
    pub fn multiplications(&self) -> u64 {
        let each = self.nodes().iter().enumerate().map(|(i, node)| {
            let terms = match &node.layer {
                Layer::Linear(linear) => linear.inputs,
                Layer::Convolution(convolution) => {
                    convolution.weight_count() / convolution.outputs.max(1)
                }
                _ => 0,
            };
            (self.wiring.width(i + 1) as u64).saturating_mul(terms as u64)
        });
        each.fold(0, u64::saturating_add)
    }
    /// Whether its records are graphs ([`Rows::Graphs`](crate::Rows::Graphs)), not numbers.
    #[must_use]
    pub fn reads_graphs(&self) -> bool {
        self.nodes().iter().any(|node| matches!(node.layer, Layer::GraphConvolutions(_)))
    }
    /// Position of the last linear layer.
    #[must_use]
    pub fn last_linear(&self) -> Option<usize> {
        self.nodes().iter().rposition(|node| matches!(node.layer, Layer::Linear(_)))
    }
    /// Inputs per record.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.wiring.width(0)
    }
    /// Outputs per record.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.wiring.width(self.output().0)
    }
}

impl Wiring {
    /// Whether with this layer the graph's input would be both graphs and numbers, or another value be graphs.
    fn mixes_kinds(&self, layer: &Layer, inputs: &[Value]) -> bool {
        let graphs = |layer: &Layer| matches!(layer, Layer::GraphConvolutions(_));
        let others = self.nodes.iter().filter(|n| n.inputs.contains(&Value::INPUT));
        let input = inputs.contains(&Value::INPUT);
        graphs(layer) && !input
            || input && others.into_iter().any(|n| graphs(&n.layer) != graphs(layer))
    }
    /// Numbers of one record.
    pub(crate) fn width(&self, value: usize) -> usize {
        self.shapes[value].iter().product()
    }
    pub(crate) fn input_shapes(&self, node: usize) -> Vec<&[usize]> {
        self.nodes[node].inputs.iter().map(|v| self.shapes[v.0].as_slice()).collect()
    }
    /// For each value, the one that it is another shape of.
    fn originals(&self) -> Vec<usize> {
        let mut originals = vec![0];
        for (i, node) in self.nodes.iter().enumerate() {
            originals.push(match node.layer {
                Layer::Reshape(_) => originals[node.inputs[0].0],
                _ => i + 1,
            });
        }
        originals
    }

    fn lay_out(&self) -> Layout {
        let mut readers = vec![0_usize; self.shapes.len()];
        let originals = self.originals();
        // Whoever asked for the graph's output reads it too.
        readers[originals[self.nodes.len()]] += 1;
        for node in &self.nodes {
            if !matches!(node.layer, Layer::Reshape(_)) {
                for value in &node.inputs {
                    readers[originals[value.0]] += 1;
                }
            }
        }
        let mut layout = Layout { places: vec![None], depends: vec![false], ..Layout::default() };
        for (i, node) in self.nodes.iter().enumerate() {
            let first = node.inputs.first().map_or(0, |v| v.0);
            let original = originals[first];
            let before = original.checked_sub(1).map(|node| &self.nodes[node].layer);
            let in_place = match node.layer {
                Layer::Reshape(_) => true,
                // Its gradient is computed from its outputs; a function behind another function needs both.
                ref layer if layer.works_in_place() => {
                    readers[original] == 1 && before.is_some_and(|layer| !layer.works_in_place())
                }
                _ => false,
            };
            let limits = node.layer.limits().filter(|_| in_place);
            let limited = limits.filter(|_| matches!(before, Some(Layer::Convolution(_))));
            layout.limits.push(Limits::NONE);
            layout.done_before.push(limited.is_some());
            if let Some(limits) = limited {
                layout.limits[original - 1] = limits;
            }
            let place = if in_place {
                layout.places[first]
            } else {
                layout.widths.push(self.width(i + 1));
                Some(layout.widths.len() - 1)
            };
            layout.places.push(place);
            layout.in_place.push(in_place);
            let upstream = node.inputs.iter().any(|v| layout.depends[v.0]);
            layout.depends.push(upstream || !self.parameters[i].is_empty());
        }
        let numbers = self.width(0) + 2 * layout.widths.iter().sum::<usize>();
        layout.block = match BLOCK_NUMBERS / numbers.max(1) {
            RECORD_BLOCK.. => RECORD_BLOCK,
            most => 1 << most.clamp(1, LARGE_RECORDS).ilog2(),
        };
        self.share_memory(&mut layout);
        layout
    }
    /// Gives every place a slot.
    fn share_memory(&self, layout: &mut Layout) {
        let last_linear = self.nodes.iter().rposition(|n| matches!(n.layer, Layer::Linear(_)));
        let read_last = last_linear.map(|node| self.nodes[node].inputs[0].0);
        let kept: Vec<usize> = [Some(self.nodes.len()), read_last].into_iter().flatten().collect();
        // After which node a place is free again.
        let mut end = vec![0; layout.widths.len()];
        for (i, node) in self.nodes.iter().enumerate() {
            for value in node.inputs.iter().map(|v| v.0).chain([i + 1]) {
                if let Some(place) = layout.places[value] {
                    end[place] = i;
                }
            }
        }
        for place in kept.into_iter().filter_map(|value| layout.places[value]) {
            end[place] = usize::MAX;
        }
        let mut ending = vec![Vec::new(); self.nodes.len()];
        for (place, end) in end.iter().enumerate() {
            if let Some(ending) = ending.get_mut(*end) {
                ending.push(place);
            }
        }
        let mut free: Vec<usize> = Vec::new();
        for (i, ending) in ending.iter().enumerate() {
            if let Some(place) = layout.places[i + 1]
                && place == layout.slots.len()
            {
                let width = layout.widths[place];
                // The smallest that is large enough, else the largest.
                let widths = &mut layout.slot_widths;
                let fitness = |slot: usize| match widths[slot] {
                    enough if enough >= width => (0, enough),
                    short => (1, usize::MAX - short),
                };
                let slot = match (0..free.len()).min_by_key(|at| fitness(free[*at])) {
                    Some(at) => free.swap_remove(at),
                    None => {
                        widths.push(width);
                        widths.len() - 1
                    }
                };
                widths[slot] = widths[slot].max(width);
                layout.slots.push(slot);
            }
            free.extend(ending.iter().map(|place| layout.slots[*place]));
        }
    }
}

fn check_shape(shape: &[usize]) -> Result<(), Error> {
    let numbers = shape.iter().try_fold(1_usize, |n, s| n.checked_mul(*s));
    match numbers {
        // Numbers of a block of records are counted in 64 bits.
        Some(1..=0xffff_ffff) if !shape.is_empty() => Ok(()),
        _ => Err(Error::Shape { shape: shape.to_vec() }),
    }
}
