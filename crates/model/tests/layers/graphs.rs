//! Graph convolutions and sort pooling by their definition, on matrices. A record is a list of numbers here: how many nodes, the
//! feature of each, and the adjacency matrix.
use dosimeter_model::{GraphConvolutions, GraphRows};

/// Kept nodes fewer and more than the graphs have, one convolution and several.
pub(crate) fn layers() -> Vec<(&'static str, GraphConvolutions)> {
    let layer = |channels: &[usize], nodes| GraphConvolutions {
        features: 6,
        channels: channels.to_vec(),
        nodes,
    };
    vec![
        ("graph convolutions", layer(&[3, 2, 4, 1], 4)),
        ("one graph convolution, few nodes", layer(&[3], 2)),
        ("graph convolutions, many nodes", layer(&[3, 5], 9)),
    ]
}

const NODES: [usize; 5] = [6, 1, 3, 8, 5];

/// Graph `i`: nodes alone, a single node, and a cycle of equal nodes, whose order no number decides.
pub(crate) fn record(i: usize, features: usize, uniform: &mut dyn FnMut() -> f32) -> Vec<f32> {
    let nodes = NODES[i];
    let cycle = i == 4;
    let mut record = vec![nodes as f32];
    let mut feature = || ((uniform() + 1.0) / 2.0 * (features - 1) as f32).floor();
    let first = feature();
    record.extend((0..nodes).map(|_| if cycle { first } else { feature() }));
    let mut matrix = vec![0.0; nodes * nodes];
    for a in 0..nodes {
        for b in 0..a {
            let joined = if cycle { a - b == 1 || a - b == nodes - 1 } else { uniform() < 0.1 };
            // The last node stands alone.
            let edge = f32::from(u8::from(joined && (cycle || a + 1 < nodes)));
            (matrix[a * nodes + b], matrix[b * nodes + a]) = (edge, edge);
        }
    }
    record.extend(matrix);
    record
}
/// Gives the nodes of record `only` the feature, which no other record keeps.
pub(crate) fn set_feature(records: &mut [Vec<f32>], feature: usize, only: usize) {
    for (i, record) in records.iter_mut().enumerate() {
        let nodes = record[0] as usize;
        for x in &mut record[1..=nodes] {
            if i == only {
                *x = feature as f32;
            } else if *x as usize == feature {
                *x = 0.0;
            }
        }
    }
}

/// The same graph, its nodes numbered backwards.
pub(crate) fn turned(record: &[f32]) -> Vec<f32> {
    let nodes = record[0] as usize;
    let mut turned = record.to_vec();
    turned[1..=nodes].reverse();
    turned[1 + nodes..].reverse();
    turned
}

/// The same graphs as lists.
pub(crate) struct Lists {
    first_node: Vec<usize>,
    first_neighbour: Vec<usize>,
    neighbours: Vec<u32>,
    features: Vec<u32>,
}
impl Lists {
    pub(crate) fn new(records: &[Vec<f32>]) -> Self {
        let (mut first_node, mut first_neighbour) = (vec![0], vec![0]);
        let (mut neighbours, mut features) = (vec![], vec![]);
        for record in records {
            let nodes = record[0] as usize;
            features.extend(record[1..=nodes].iter().map(|f| *f as u32));
            for row in record[1 + nodes..].chunks_exact(nodes) {
                neighbours.extend((0..nodes as u32).filter(|n| row[*n as usize] > 0.5));
                first_neighbour.push(neighbours.len());
            }
            first_node.push(features.len());
        }
        Self { first_node, first_neighbour, neighbours, features }
    }
    pub(crate) fn rows(&self, features: usize) -> GraphRows<'_> {
        let Self { first_node, first_neighbour, neighbours, .. } = self;
        GraphRows::new(features, first_node, first_neighbour, neighbours, &self.features).unwrap()
    }
}

/// `[a x inner] x [inner x b]`, by three loops.
fn product(a: &[f64], b: &[f64], rows: usize, inner: usize) -> Vec<f64> {
    let columns = b.len() / inner;
    let sum = |i: usize, j: usize| (0..inner).map(|k| a[i * inner + k] * b[k * columns + j]).sum();
    (0..rows * columns).map(|at| sum(at / columns, at % columns)).collect()
}

pub(crate) fn oracle(
    layer: &GraphConvolutions,
    mut parameters: &[f64],
    record: &[f64],
) -> Vec<f64> {
    let nodes = record[0] as usize;
    let mut x = vec![0.0; nodes * layer.features];
    for (node, feature) in record[1..=nodes].iter().enumerate() {
        x[node * layer.features + *feature as usize] = 1.0;
    }
    let mut adjacency = record[1 + nodes..].to_vec();
    (0..nodes).for_each(|node| adjacency[node * nodes + node] += 1.0);
    let (mut inputs, mut all) = (layer.features, vec![vec![]; nodes]);
    for &outputs in &layer.channels {
        let (weights, rest) = parameters.split_at(inputs * outputs);
        let (biases, rest) = rest.split_at(outputs);
        parameters = rest;
        let mixed = product(&adjacency, &product(&x, weights, nodes, inputs), nodes, nodes);
        x = (0..nodes * outputs)
            .map(|at| {
                let node = at / outputs;
                let degree: f64 = adjacency[node * nodes..(node + 1) * nodes].iter().sum();
                ((mixed[at] + biases[at % outputs]) / degree).tanh()
            })
            .collect();
        for (node, row) in all.iter_mut().enumerate() {
            row.extend_from_slice(&x[node * outputs..(node + 1) * outputs]);
        }
        inputs = outputs;
    }
    all.sort_by(|a: &Vec<f64>, b| {
        let pairs = b.iter().rev().zip(a.iter().rev());
        let key = |x: &f64| (x * 65_536.0).round() as i64;
        pairs
            .map(|(b, a)| key(b).cmp(&key(a)))
            .find(|o| o.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let mut out = all.concat();
    out.resize(layer.nodes * layer.total_channels(), 0.0);
    out
}
