//! What an operator is called with, and what it may ask of it.
use super::import::{Builder, Flow, Known, floats, graph_shape, integers};
use super::operators::Operator;
use super::shown;
use super::tensor::{Floats, Integers, Size, Tensor};
use super::wire::{self, attribute_kind};
use crate::layers::{Layer, Reshape};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Attributes not asked for yet: one that nobody asks for is refused.
pub(super) struct Attributes<'m>(BTreeMap<&'m str, &'m wire::Attribute>);
impl<'m> Attributes<'m> {
    pub(super) fn new(node: &'m wire::Node) -> Result<Self, String> {
        let mut all = BTreeMap::new();
        for attribute in &node.attribute {
            if all.insert(attribute.name.as_str(), attribute).is_some() {
                return Err(format!("it has two attributes {:?}", shown(&attribute.name)));
            }
        }
        Ok(Self(all))
    }
    /// Old files leave the kind out.
    fn take(&mut self, name: &str, kind: i32) -> Result<Option<&'m wire::Attribute>, String> {
        match self.0.remove(name) {
            Some(a) if a.kind != 0 && a.kind != kind => {
                Err(format!("its attribute {name} is of kind {}, not {kind}", a.kind))
            }
            other => Ok(other),
        }
    }
    pub(super) fn int(&mut self, name: &str) -> Result<Option<i64>, String> {
        Ok(self.take(name, attribute_kind::INT)?.map(|a| a.i.unwrap_or(0)))
    }
    pub(super) fn float(&mut self, name: &str) -> Result<Option<f32>, String> {
        let number = self.take(name, attribute_kind::FLOAT)?.map(|a| a.f.unwrap_or(0.0));
        match number {
            Some(number) if number.is_nan() => Err(format!("its attribute {name} is NaN")),
            number => Ok(number),
        }
    }
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, String> {
        let text = self.take(name, attribute_kind::STRING)?;
        let text = text.map(|a| a.s.as_deref().unwrap_or_default());
        Ok(text.map(|bytes| shown(&String::from_utf8_lossy(bytes))))
    }
    pub(super) fn ints(&mut self, name: &str) -> Result<Option<&'m [i64]>, String> {
        Ok(self.take(name, attribute_kind::INTS)?.map(|a| a.ints.as_slice()))
    }
    pub(super) fn floats(&mut self, name: &str) -> Result<Option<&'m [f32]>, String> {
        Ok(self.take(name, attribute_kind::FLOATS)?.map(|a| a.floats.as_slice()))
    }
    pub(super) fn tensor(&mut self, name: &str) -> Result<Option<&'m wire::Tensor>, String> {
        Ok(self.take(name, attribute_kind::TENSOR)?.and_then(|a| a.t.as_deref()))
    }
    /// Ignored: it changes nothing that is computed.
    pub(super) fn ignore(&mut self, name: &str) {
        self.0.remove(name);
    }
    fn finish(&self) -> Result<(), String> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(format!("its attribute {:?} is not known", shown(name))),
        }
    }
}

/// One node with what it reads.
pub(super) struct Call<'b, 'm> {
    pub(super) builder: &'b mut Builder,
    pub(super) node: &'m wire::Node,
    /// `None`: left out.
    pub(super) inputs: Vec<Option<Known>>,
    pub(super) attributes: Attributes<'m>,
    /// How often each value of the model is read.
    pub(super) uses: &'b HashMap<&'m str, usize>,
    /// The constant that is added to its output, if nothing else is done with it.
    pub(super) added: Option<&'m wire::Tensor>,
}

impl Call<'_, '_> {
    pub(super) fn run(mut self, operator: &Operator) -> Result<Vec<Known>, String> {
        let outputs = (operator.run)(&mut self)?;
        self.attributes.finish()?;
        Ok(outputs)
    }
    pub(super) const fn opset(&self) -> i64 {
        self.builder.opset
    }
    /// How often one of its outputs is read.
    pub(super) fn uses(&self, output: usize) -> usize {
        let name = self.node.output.get(output);
        name.and_then(|name| self.uses.get(name.as_str())).copied().unwrap_or(0)
    }
    /// So many inputs at most, for operators whose inputs are all read.
    pub(super) fn at_most(&self, inputs: usize) -> Result<(), String> {
        match self.inputs.iter().skip(inputs).flatten().count() {
            0 => Ok(()),
            _ => Err(format!("it has {} inputs, more than {inputs}", self.inputs.len())),
        }
    }
    pub(super) fn optional(&self, i: usize) -> Option<Known> {
        self.inputs.get(i).cloned().flatten()
    }
    pub(super) fn input(&self, i: usize) -> Result<Known, String> {
        self.optional(i).ok_or_else(|| format!("its input {i} is missing"))
    }
    /// An input that depends on the record.
    pub(super) fn flow(&self, i: usize) -> Result<Flow, String> {
        match self.input(i)? {
            Known::Flow(flow) => Ok(flow),
            Known::Tensor(_) => Err(format!("its input {i} does not depend on the record")),
        }
    }
    /// Numbers that do not depend on the record.
    pub(super) fn floats(&self, i: usize) -> Result<Rc<Floats>, String> {
        match self.input(i)? {
            Known::Tensor(Tensor::Floats(tensor)) => Ok(tensor),
            Known::Tensor(Tensor::Integers(_)) => {
                Err(format!("its input {i} holds whole numbers, not float32"))
            }
            Known::Flow(_) => {
                Err(format!("its input {i} depends on the record; constants are taken"))
            }
        }
    }
    pub(super) fn optional_floats(&self, i: usize) -> Result<Option<Rc<Floats>>, String> {
        self.optional(i).map(|_| self.floats(i)).transpose()
    }
    /// One number.
    pub(super) fn optional_number(&self, i: usize) -> Result<Option<f32>, String> {
        let Some(tensor) = self.optional_floats(i)? else { return Ok(None) };
        match tensor.values.as_slice() {
            [number] if !number.is_nan() => Ok(Some(*number)),
            [_] => Err(format!("its input {i} is NaN")),
            several => Err(format!("its input {i} has {} numbers, not one", several.len())),
        }
    }
    pub(super) fn integers(&self, i: usize) -> Result<Rc<Integers>, String> {
        match self.input(i)? {
            Known::Tensor(Tensor::Integers(tensor)) => Ok(tensor),
            Known::Tensor(Tensor::Floats(_)) => {
                Err(format!("its input {i} holds float32, not whole numbers"))
            }
            Known::Flow(_) => {
                Err(format!("its input {i} depends on the record; constants are taken"))
            }
        }
    }
    /// Whole numbers that are an attribute in old opsets and an input from `since` on.
    pub(super) fn setting(
        &mut self,
        name: &str,
        i: usize,
        since: i64,
    ) -> Result<Option<Vec<i64>>, String> {
        if self.opset() < since {
            return Ok(self.attributes.ints(name)?.map(<[i64]>::to_vec));
        }
        if self.optional(i).is_none() {
            return Ok(None);
        }
        let numbers = self.integers(i)?.numbers();
        numbers.map(Some).map_err(|what| format!("its input {i}: {what}"))
    }

    /// Adds a layer behind the given values, or computes it if they do not depend on the record.
    pub(super) fn apply(&mut self, layer: Layer, inputs: &[Known]) -> Result<Known, String> {
        let mut values = Vec::with_capacity(inputs.len());
        let mut constants: Vec<Rc<Floats>> = Vec::with_capacity(inputs.len());
        for input in inputs {
            match input {
                Known::Flow(flow) => values.push(flow.value),
                Known::Tensor(Tensor::Floats(tensor)) => constants.push(Rc::clone(tensor)),
                Known::Tensor(Tensor::Integers(_)) => {
                    return Err("it is given whole numbers, not float32".into());
                }
            }
        }
        if constants.is_empty() {
            return self.builder.add(layer, &values, &[]).map(Known::Flow);
        }
        if !values.is_empty() {
            return Err("it takes values that depend on the record together with constants".into());
        }
        let constants: Vec<(&[usize], &[f32])> =
            constants.iter().map(|t| (t.dims.as_slice(), t.values.as_slice())).collect();
        let (dims, values) = self.builder.compute(&layer, &constants)?;
        Ok(floats(dims, values))
    }
    /// As [`Self::apply`] for layers that move numbers without changing them: whole numbers too.
    pub(super) fn arrange(&mut self, layer: Layer, inputs: &[Known]) -> Result<Known, String> {
        let tensors: Option<Vec<Rc<Integers>>> = inputs
            .iter()
            .map(|input| match input {
                Known::Tensor(Tensor::Integers(tensor)) => Some(Rc::clone(tensor)),
                _ => None,
            })
            .collect();
        let Some(tensors) = tensors.filter(|t| !t.is_empty()) else {
            return self.apply(layer, inputs);
        };
        // Where each number goes is seen by moving their positions, which are exact as numbers up to 2^24.
        let numbers: Vec<Size> = tensors.iter().flat_map(|t| t.values.iter().copied()).collect();
        if numbers.len() >= 1 << 24 {
            return Err("it moves too many whole numbers".into());
        }
        let mut first = 0;
        let mut positions: Vec<Vec<f32>> = Vec::new();
        for tensor in &tensors {
            let end = first + tensor.values.len();
            positions.push((first..end).map(|i| i as f32).collect());
            first = end;
        }
        let constants: Vec<(&[usize], &[f32])> = tensors
            .iter()
            .zip(&positions)
            .map(|(t, p)| (t.dims.as_slice(), p.as_slice()))
            .collect();
        let (dims, moved) = self.builder.compute(&layer, &constants)?;
        let number = |at: &f32| numbers.get(*at as usize).copied().unwrap_or(Size::Number(0));
        Ok(integers(dims, moved.iter().map(number).collect()))
    }
    /// The same numbers under another shape: of one record, or of a constant.
    pub(super) fn reshape(&mut self, input: &Known, dims: Vec<usize>) -> Result<Known, String> {
        let count = |dims: &[usize]| dims.iter().try_fold(1_usize, |n, s| n.checked_mul(*s));
        let before = input.dims();
        if count(&before) != count(&dims) {
            return Err(format!("{before:?} has another number of numbers than {dims:?}"));
        }
        match input {
            Known::Flow(_) => {
                let layer = Layer::Reshape(Reshape { shape: graph_shape(&dims) });
                let Known::Flow(flow) = self.apply(layer, std::slice::from_ref(input))? else {
                    return Err("it lost the record".into());
                };
                Ok(Known::Flow(Flow { dims, ..flow }))
            }
            Known::Tensor(Tensor::Floats(tensor)) => {
                self.builder.spend(tensor.values.len())?;
                Ok(floats(dims, tensor.values.clone()))
            }
            Known::Tensor(Tensor::Integers(tensor)) => {
                self.builder.spend(tensor.values.len())?;
                Ok(integers(dims, tensor.values.clone()))
            }
        }
    }
}

impl Known {
    /// Lengths of the axes, without that of records.
    pub(super) fn dims(&self) -> Vec<usize> {
        match self {
            Self::Flow(flow) => flow.dims.clone(),
            Self::Tensor(Tensor::Floats(tensor)) => tensor.dims.clone(),
            Self::Tensor(Tensor::Integers(tensor)) => tensor.dims.clone(),
        }
    }
    /// Axes of the model before those of [`Self::dims`]: that of records.
    pub(super) const fn outer_axes(&self) -> usize {
        match self {
            Self::Flow(_) => 1,
            Self::Tensor(_) => 0,
        }
    }
    /// Axes in the model.
    pub(super) fn rank(&self) -> usize {
        self.outer_axes() + self.dims().len()
    }
    /// The place of an axis of the model among [`Self::dims`]; `None`: it is that of records.
    pub(super) fn axis(&self, axis: i64) -> Result<Option<usize>, String> {
        let rank = self.rank();
        axis_of(axis, rank).map(|axis| axis.checked_sub(self.outer_axes()))
    }
    /// As [`Self::axis`], which must not be that of records.
    pub(super) fn inner_axis(&self, axis: i64) -> Result<usize, String> {
        self.axis(axis)?.ok_or_else(|| {
            "it works along the first axis, that of records: each must be computed by itself"
                .to_owned()
        })
    }
}

/// An axis counted from the front, or from the back if negative.
pub(super) fn axis_of(axis: i64, rank: usize) -> Result<usize, String> {
    let length = i64::try_from(rank).unwrap_or(i64::MAX);
    let axis_or = if axis < 0 { axis.checked_add(length) } else { Some(axis) };
    axis_or
        .and_then(|a| usize::try_from(a).ok())
        .filter(|a| *a < rank)
        .ok_or_else(|| format!("it has no axis {axis} among {rank}"))
}
