//! Graph convolutions and sort pooling: from a graph of any size to a fixed number of rows.
mod convolution;
mod embedding;
mod sort_pooling;

use super::{Kept, Misfit, Operation, Read, Scratch, only};
use crate::kernels::{self, Matrix, NeighbourLists, Write};
use serde::{Deserialize, Serialize};
use sort_pooling::NodeChannels;
use std::ops::Range;

/// Graph convolutions one behind the other, their outputs side by side, and of those the rows of the first `nodes` nodes.
///
/// Each convolution gives `Y = tanh(D^-1 ((A + I) X W + b))`, where `A` says who is connected to whom and `D` is each node's degree
/// and 1 more; the first one's `X` is the one-hot features. Nodes are sorted by the last channel, the largest first; among equal ones (on a
/// grid of 2^-16) by the channel before, and so on. Where a graph has fewer nodes, zeros follow.
///
/// Reads the graph's input, which must be graphs ([`Rows::Graphs`](crate::Rows::Graphs)) of shape `[features]`; gives
/// `[1, nodes * channels]`, node after node. Parameters lie convolution after convolution: weights row-major
/// `[channels before, channels]`, then biases `[channels]`.
///
/// # Source
/// Zhang, Cui, Neumann and Chen, *An End-to-End Deep Learning Architecture for Graph Classification*, AAAI 2018, sections on graph
/// convolution layers and the `SortPooling` layer; the bias stands where the authors' code has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphConvolutions {
    /// One-hot features of a node.
    pub features: usize,
    /// Channels of each convolution.
    pub channels: Vec<usize>,
    /// Nodes kept.
    pub nodes: usize,
}

/// Memory for one graph at a time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Buffers {
    /// Of every convolution `[nodes, channels]`, one after the other.
    outputs: Vec<f32>,
    /// Gradients with respect to them.
    gradients: Vec<f32>,
    /// One convolution's `X W`, or the gradient with respect to it.
    rows: Vec<f32>,
    /// Nodes as they are pooled.
    order: Vec<u32>,
    /// Nodes by feature.
    by_feature: Vec<u32>,
}

/// One of the convolutions.
#[derive(Debug, Clone)]
struct Part {
    inputs: usize,
    outputs: usize,
    /// Channels of all convolutions before it.
    before: usize,
    weights: Range<usize>,
    biases: Range<usize>,
}

impl GraphConvolutions {
    /// Channels of a node.
    #[must_use]
    pub fn total_channels(&self) -> usize {
        self.channels.iter().fold(0, |sum: usize, c| sum.saturating_add(*c))
    }
    fn parts(&self) -> Vec<Part> {
        let (mut inputs, mut before, mut start) = (self.features, 0, 0);
        let part = |outputs: &usize| {
            let outputs = *outputs;
            let weights = start..start + inputs * outputs;
            let biases = weights.end..weights.end + outputs;
            let part = Part { inputs, outputs, before, weights, biases };
            (inputs, before, start) = (outputs, before + outputs, part.biases.end);
            part
        };
        self.channels.iter().map(part).collect()
    }
    /// Outputs of every convolution, and the order of the nodes.
    fn convolve(
        &self,
        parts: &[Part],
        (lists, features): (NeighbourLists<'_>, &[u32]),
        parameters: &[f32],
        buffers: &mut Buffers,
    ) {
        let nodes = lists.nodes();
        let Buffers { outputs, rows, order, .. } = buffers;
        outputs.resize(nodes * self.total_channels(), 0.0);
        for part in parts {
            let weights = &parameters[part.weights.clone()];
            let (read, rest) = outputs.split_at_mut(nodes * part.before);
            rows.resize(nodes * part.outputs, 0.0);
            if part.before == 0 {
                embedding::embed(features, weights, part.outputs, rows);
            } else {
                let read = &read[nodes * (part.before - part.inputs)..];
                let read = Matrix::new(read, nodes, part.inputs);
                let weights = Matrix::new(weights, part.inputs, part.outputs);
                kernels::matmul(read, weights, rows, Write::Overwrite);
            }
            let out = &mut rest[..nodes * part.outputs];
            convolution::forward(lists, rows, &parameters[part.biases.clone()], out);
        }
        NodeChannels { nodes, channels: &self.channels }.order(outputs, order);
    }
    /// Appends one record's parameter gradient to `kept`: of the first weights the rows that occur, then all other parameters.
    fn keep_gradient(
        &self,
        parts: &[Part],
        (lists, features): (NeighbourLists<'_>, &[u32]),
        parameters: &[f32],
        gradient: &[f32],
        buffers: &mut Buffers,
        kept: &mut Vec<f32>,
    ) {
        let nodes = lists.nodes();
        self.convolve(parts, (lists, features), parameters, buffers);
        let Buffers { outputs, gradients, rows, order, by_feature } = buffers;
        gradients.resize(outputs.len(), 0.0);
        NodeChannels { nodes, channels: &self.channels }.scatter(gradient, order, gradients);
        let embedded = self.features * self.channels[0];
        let mut dense = vec![0.0; parameters.len() - embedded];
        let within = |range: &Range<usize>| range.start - embedded..range.end - embedded;
        for part in parts.iter().rev() {
            let place = nodes * part.before..nodes * (part.before + part.outputs);
            rows.resize(nodes * part.outputs, 0.0);
            let (below, own) = gradients.split_at_mut(place.start);
            convolution::backward(
                lists,
                &outputs[place.clone()],
                &mut own[..place.len()],
                &mut dense[within(&part.biases)],
                rows,
            );
            if part.before == 0 {
                embedding::gradient_rows(features, rows, part.outputs, by_feature, kept);
                continue;
            }
            let read = nodes * (part.before - part.inputs)..place.start;
            let input = Matrix::new(&outputs[read.clone()], nodes, part.inputs);
            let rows = Matrix::new(rows, nodes, part.outputs);
            let out = &mut dense[within(&part.weights)];
            kernels::matmul(input.transposed(), rows, out, Write::Overwrite);
            let weights = Matrix::new(&parameters[part.weights.clone()], part.inputs, part.outputs);
            kernels::matmul(rows, weights.transposed(), &mut below[read], Write::Accumulate);
        }
        kept.extend_from_slice(&dense);
    }
}

impl Operation for GraphConvolutions {
    fn output_shape(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, Misfit> {
        let numbers = self.nodes.checked_mul(self.total_channels());
        if self.features == 0 || self.channels.is_empty() || self.channels.contains(&0) {
            return Err(Misfit::new("features and channels above 0"));
        }
        if only(inputs)? != [self.features] {
            return Err(Misfit::new(format!("graphs with [{}] features", self.features)));
        }
        Ok(vec![1, numbers.unwrap_or(usize::MAX)])
    }
    fn parameter_groups(&self) -> Vec<(usize, bool)> {
        let mut inputs = self.features;
        let groups = self.channels.iter().flat_map(|&outputs| {
            let weights = inputs.saturating_mul(outputs);
            inputs = outputs;
            [(weights, true), (outputs, false)]
        });
        groups.collect()
    }
    fn forward(&self, read: &Read<'_>, output: &mut [f32], scratch: &mut Scratch) {
        let Some(graphs) = read.graphs else { return };
        let parts = self.parts();
        let width = self.nodes * self.total_channels();
        for (graph, output) in graphs.graphs().zip(output.chunks_exact_mut(width)) {
            self.convolve(&parts, graph, read.parameters, &mut scratch.graph);
            let nodes = NodeChannels { nodes: graph.0.nodes(), channels: &self.channels };
            nodes.gather(&scratch.graph.outputs, &scratch.graph.order, output);
        }
    }
    // The graphs themselves are no numbers that could have a gradient.
    fn input_gradient(
        &self,
        _: &Read<'_>,
        _: usize,
        _: &[f32],
        _: &mut [f32],
        _: Write,
        _: &mut Scratch,
    ) {
    }
    fn keeps_gradients(&self) -> bool {
        true
    }
    fn add_squared_gradient_norms(
        &self,
        read: &Read<'_>,
        gradient: &[f32],
        squared_norms: &mut [f64],
        kept: &mut Kept,
        scratch: &mut Scratch,
    ) {
        let Some(graphs) = read.graphs else { return };
        let parts = self.parts();
        let width = self.nodes * self.total_channels();
        let gradients = gradient.chunks_exact(width);
        let records = graphs.graphs().zip(gradients).zip(squared_norms);
        kept.gradients.clear();
        for (record, ((graph, gradient), norm)) in records.enumerate() {
            let first = kept.gradients.len();
            let (buffers, out) = (&mut scratch.graph, &mut kept.gradients);
            self.keep_gradient(&parts, graph, read.parameters, gradient, buffers, out);
            *norm += kernels::squared_norm(&kept.gradients[first..]);
            kept.records.push(record);
        }
    }
    fn sum_kept(
        &self,
        read: &Read<'_>,
        kept: &Kept,
        coefficients: &[f32],
        out: &mut [f32],
        write: Write,
        scratch: &mut Scratch,
    ) {
        if write == Write::Overwrite {
            out.fill(0.0);
        }
        let Some(graphs) = read.graphs else { return };
        let width = self.channels[0];
        let embedded = self.features * width;
        let mut kept = kept.gradients.as_slice();
        let order = &mut scratch.graph.by_feature;
        for ((_, features), factor) in graphs.graphs().zip(coefficients) {
            let (rows, out) = out.split_at_mut(embedded);
            // A record that counts as zero may hold what is not finite: it is passed over.
            if *factor == 0.0 {
                let distinct = embedding::by_feature(features, order)
                    .chunk_by(|a, b| features[*a as usize] == features[*b as usize]);
                kept = &kept[distinct.count() * width + out.len()..];
                continue;
            }
            kept = embedding::add_rows(features, kept, width, *factor, order, rows);
            let (dense, rest) = kept.split_at(out.len());
            kernels::axpy(out, *factor, dense);
            kept = rest;
        }
    }
}
