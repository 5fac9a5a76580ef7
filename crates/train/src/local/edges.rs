//! Edges of graphs, randomized.
use crate::Error;
use dosimeter_data::graphs::{Graph, GraphRecords};
use dosimeter_data::{Dataset, Inputs};
use dosimeter_privacy::mechanisms::BinaryRandomizedResponse;
use dosimeter_privacy::{Epsilon, Event, Ledger, NoiseRng, Unit};
use rand_core::Rng;

/// Randomized response on who is connected to whom: every pair of nodes of a graph is asked once, keeps its answer with
/// probability `e^epsilon / (1 + e^epsilon)`, and both its nodes get the same one. Afterwards every node that is alone gets an edge to another node,
/// each as likely.
///
/// The number of nodes, tags and the class of a graph stay as they are and count as public. Of a sparse graph hardly anything
/// stays: `n (n - 1) / 2` pairs answer, so about `n^2 / (2 (1 + e^epsilon))` edges appear that were not there
/// ([`Self::expect`]).
///
/// # Source
/// Warner, *Randomized Response*, JASA 1965, on the upper triangle of the adjacency matrix; edges for nodes alone as in Bernau et al.,
/// arXiv:1912.11328, who leave open which.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EdgeRandomizedResponse {
    /// Loss of one pair of nodes, nats; above 0.
    pub epsilon: Epsilon,
}

/// Most pairs of nodes of one graph, which are held as bits: 512 MiB of them, 92,682 nodes.
const MOST_PAIRS: u64 = 1 << 32;
/// Most edges expected of all graphs, which stand in the lists of both ends: 4 GiB.
const MOST_EDGES: f64 = (1 << 29) as f64;

/// What randomizing does to the number of edges.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExpectedEdges {
    /// Pairs of nodes of the same graph, over all graphs.
    pub pairs: u64,
    /// Pairs of the largest graph.
    pub most_pairs: u64,
    /// Edges there are. Private: for studies of data that are known.
    pub before: u64,
    /// Edges to be expected, before nodes alone get one.
    pub after: f64,
}
impl ExpectedEdges {
    /// Share of the pairs that are edges, before and after.
    #[must_use]
    pub fn densities(&self) -> [f64; 2] {
        let pairs = self.pairs.max(1) as f64;
        [self.before as f64 / pairs, self.after / pairs]
    }
}

impl EdgeRandomizedResponse {
    /// Randomizes every graph on its own.
    ///
    /// # Guarantee
    /// The ledger is that of the graph with the **most pairs** of nodes, as a whole: its unit is the feature vector, the relation is Local, its
    /// epsilon the sum over its pairs. What the same noise guarantees for a single edge says [`Self::for_an_edge`]. Classes, tags
    /// and numbers of nodes are **not** randomized. Edges for nodes alone depend on what was released and on fresh randomness only: they cost
    /// nothing.
    ///
    /// Takes time and memory linear in the pairs of a graph (64 at a time, an eighth of a byte each) and in the edges that come out. Skipping from one flip to
    /// the next would save time for large sparse graphs at a large epsilon, but needs chances `(1 - p)^k` that are no multiples of 2^-64.
    ///
    /// # Errors
    /// As [`Self::expect`]; [`Error::NoRecords`] for no graphs; [`Error::Privacy`] if the generator fails.
    pub fn randomize(
        &self,
        dataset: &Dataset,
        rng: &mut NoiseRng,
    ) -> Result<(Dataset, Ledger), Error> {
        self.expect(dataset)?;
        let records = graphs_of(dataset)?;
        let (mut largest, mut failed) = (None, None);
        let randomized = records.set().with_edges(|graph, edges| {
            if failed.is_some() {
                return;
            }
            match self.randomize_graph(graph, edges, rng) {
                Err(error) => failed = Some(error),
                Ok(ledger) => {
                    let pairs = pairs(graph.nodes());
                    if largest.as_ref().is_none_or(|(most, _)| pairs > *most) {
                        largest = Some((pairs, ledger));
                    }
                }
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let inputs = randomized.and_then(|set| records.with_edges_of(set));
        let inputs = inputs.map_err(|_| Error::Column {
            column: dataset.name.clone(),
            what: "edges that do not fit its graphs came out",
        })?;
        let mut made = dataset.clone();
        made.name = format!("{}, edges randomized", dataset.name);
        made.inputs = Inputs::Graphs(inputs);
        largest.map(|(_, ledger)| (made, ledger)).ok_or(Error::NoRecords)
    }
    fn randomize_graph(
        &self,
        graph: Graph<'_>,
        edges: &mut Vec<(u32, u32)>,
        rng: &mut NoiseRng,
    ) -> Result<Ledger, Error> {
        let mut ledger = Ledger::new(Unit::FeatureVector);
        let pairs = pairs(graph.nodes());
        if pairs > 0 {
            let mechanism =
                BinaryRandomizedResponse { epsilon: self.epsilon, bits: pairs as usize };
            let answers = ledger.release(&mechanism, upper_triangle(graph), rng)?;
            edges_of(answers.get(), graph.nodes(), edges);
            join_nodes_alone(graph.nodes(), edges, rng);
        }
        Ok(ledger)
    }
    /// What the noise guarantees for one pair of nodes: whether or not there is an edge, all others alike.
    #[must_use]
    pub fn for_an_edge(&self) -> Ledger {
        let mut ledger = Ledger::new(Unit::Edge);
        ledger.record(Event::RandomizedResponse { epsilon: self.epsilon, categories: 2 }, 1);
        ledger
    }
    /// Pairs and edges before and after.
    ///
    /// # Errors
    /// [`Error::Column`] for data without graphs; [`Error::Recipe`] for a graph of too many nodes, an epsilon of 0 (then nothing of the graph is left), or where so
    /// many edges are to be expected that they would take more than 4 GiB.
    pub fn expect(&self, dataset: &Dataset) -> Result<ExpectedEdges, Error> {
        let records = graphs_of(dataset)?;
        let epsilon = self.epsilon.get();
        if !(epsilon > 0.0 && epsilon.is_finite()) {
            let (what, needed) = ("the epsilon of an edge", "finite and above 0");
            return Err(Error::Recipe { what, needed, got: epsilon });
        }
        let of_graphs = || records.set().graphs().map(|graph| pairs(graph.nodes()));
        let most_pairs = of_graphs().max().unwrap_or(0);
        if most_pairs > MOST_PAIRS {
            let (what, needed) = ("pairs of nodes of a graph", "at most 2^32 (92,682 nodes)");
            return Err(Error::Recipe { what, needed, got: most_pairs as f64 });
        }
        let (pairs, before) =
            (of_graphs().fold(0, u64::saturating_add), records.set().edges() as u64);
        let flip = BinaryRandomizedResponse { epsilon: self.epsilon, bits: 0 }.flip_probability();
        let others = pairs.saturating_sub(before) as f64;
        let after = (before as f64).mul_add(1.0 - flip, others * flip);
        if after > MOST_EDGES {
            let what = "edges to be expected after randomized response";
            return Err(Error::Recipe { what, needed: "at most 2^29 (4 GiB)", got: after });
        }
        Ok(ExpectedEdges { pairs, most_pairs, before, after })
    }
}

fn graphs_of(dataset: &Dataset) -> Result<&GraphRecords, Error> {
    dataset.graphs().ok_or_else(|| {
        let column = dataset.columns.first().map_or_else(String::new, |c| c.name.clone());
        Error::Column { column, what: "edge randomized response needs graphs" }
    })
}
const fn pairs(nodes: usize) -> u64 {
    nodes as u64 * (nodes as u64).saturating_sub(1) / 2
}
/// Number of the pair `(a, a + 1)` among those with `a` below.
const fn first_pair(a: usize, nodes: usize) -> usize {
    a * (2 * nodes - a - 1) / 2
}

/// A bit for each pair `(a, b)`, `a < b`, in order.
fn upper_triangle(graph: Graph<'_>) -> Vec<u64> {
    let nodes = graph.nodes();
    let mut words = vec![0; (pairs(nodes) as usize).div_ceil(64)];
    for a in 0..nodes {
        let above = graph.neighbours(a).iter().filter(|b| **b as usize > a);
        for pair in above.map(|b| first_pair(a, nodes) + *b as usize - a - 1) {
            words[pair / 64] |= 1 << (pair % 64);
        }
    }
    words
}
/// The pairs whose bits are set, in order.
fn edges_of(words: &[u64], nodes: usize, edges: &mut Vec<(u32, u32)>) {
    let (mut a, mut first, mut end) = (0, 0, nodes - 1);
    for (i, word) in words.iter().enumerate() {
        let mut rest = *word;
        while rest != 0 {
            let pair = i * 64 + rest.trailing_zeros() as usize;
            rest &= rest - 1;
            while pair >= end {
                a += 1;
                (first, end) = (end, end + nodes - 1 - a);
            }
            edges.push((a as u32, (pair - first + a + 1) as u32));
        }
    }
}
/// Gives every node without an edge one to another node, and sorts the edges. The multiply-shift draw is off uniform by less than 2^-32.
fn join_nodes_alone(nodes: usize, edges: &mut Vec<(u32, u32)>, rng: &mut NoiseRng) {
    let mut alone = vec![true; nodes];
    for (a, b) in &*edges {
        alone[*a as usize] = false;
        alone[*b as usize] = false;
    }
    let before = edges.len();
    for node in 0..nodes {
        if alone[node] {
            let other = ((u128::from(rng.next_u64()) * (nodes as u128 - 1)) >> 64) as usize;
            let other = other + usize::from(other >= node);
            (alone[node], alone[other]) = (false, false);
            edges.push((node.min(other) as u32, node.max(other) as u32));
        }
    }
    if edges.len() > before {
        edges.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five nodes: pairs 01 02 03 04 12 13 14 23 24 34.
    #[test]
    fn pairs_are_counted_row_by_row() {
        assert_eq!([0, 1, 2, 5].map(pairs), [0, 0, 1, 10]);
        assert_eq!([0, 1, 2, 3].map(|a| first_pair(a, 5)), [0, 4, 7, 9]);
        let mut edges = vec![];
        edges_of(&[0b10_0101_1001], 5, &mut edges);
        assert_eq!(edges, [(0, 1), (0, 4), (1, 2), (1, 4), (3, 4)]);
        // Of 12 nodes the 66th pair is the first of the second word.
        edges.clear();
        edges_of(&[0, 0b10], 12, &mut edges);
        assert_eq!(edges, [(10, 11)]);
    }
    #[test]
    fn nodes_alone_are_joined_to_another_and_two_to_each_other() {
        let mut rng = NoiseRng::replayable([1; 32]);
        let mut edges = vec![];
        join_nodes_alone(2, &mut edges, &mut rng);
        assert_eq!(edges, [(0, 1)]);
        edges.clear();
        join_nodes_alone(1, &mut vec![(0, 0)], &mut rng);
        // The partner of the node alone is each of the three others 1000 times of 3000, give or take five deviations of 26.
        let mut counts = [0_i32; 4];
        for _ in 0..3000 {
            let mut edges = vec![(0, 1), (1, 3)];
            join_nodes_alone(4, &mut edges, &mut rng);
            assert_eq!(edges.len(), 3);
            let (a, b) = edges.iter().copied().find(|(a, b)| *a == 2 || *b == 2).unwrap();
            counts[(a + b - 2) as usize] += 1;
            assert!(edges.is_sorted());
        }
        assert_eq!(counts[2], 0);
        assert!([0, 1, 3].iter().all(|i| (counts[*i] - 1000).abs() < 130), "{counts:?}");
    }
}
