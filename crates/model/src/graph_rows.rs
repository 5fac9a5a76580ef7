//! Graphs as records of a network.
use crate::Error;
use crate::kernels::NeighbourLists;

/// Undirected graphs, each a record, with one of `features` one-hot features for each node (its degree, or a tag).
///
/// All of them share their lists: those of a set of graphs can be used as they lie, and a block of records is a part of `first_node`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GraphRows<'a> {
    features: usize,
    first_node: &'a [usize],
    first_neighbour: &'a [usize],
    neighbours: &'a [u32],
    node_features: &'a [u32],
}

impl<'a> GraphRows<'a> {
    /// Graphs from their lists.
    ///
    /// Every edge must stand in the lists of both its ends: gradients are computed from that, and it is not checked.
    ///
    /// # Shapes
    /// `first_node`: first node of each graph in `first_neighbour` and `node_features`, and the end of the last: `graphs + 1` numbers;
    /// `first_neighbour`: first neighbour of each node in `neighbours`, and the end of the last: `nodes + 1` numbers; `neighbours` are
    /// numbered within their graph; `node_features` are below `features`.
    ///
    /// # Errors
    /// [`Error::Graphs`] if they are not so. It takes a look at every node and neighbour.
    pub fn new(
        features: usize,
        first_node: &'a [usize],
        first_neighbour: &'a [usize],
        neighbours: &'a [u32],
        node_features: &'a [u32],
    ) -> Result<Self, Error> {
        let wrong = |record, what| Err(Error::Graphs { record, what });
        let Some(nodes) = first_neighbour.len().checked_sub(1) else {
            return wrong(0, "there is no end of the last node's neighbours");
        };
        if first_node.is_empty() {
            return wrong(0, "there is no end of the last graph");
        }
        if node_features.len() != nodes {
            return wrong(0, "there is not one feature for each node");
        }
        for (record, ends) in first_node.windows(2).enumerate() {
            let (first, end) = (ends[0], ends[1]);
            if first > end || end > nodes {
                return wrong(record, "its nodes end before they begin, or beyond the last node");
            }
            if node_features[first..end].iter().any(|f| *f as usize >= features) {
                return wrong(record, "a node has a feature beyond the number of features");
            }
            let starts = &first_neighbour[first..=end];
            if !starts.is_sorted() || starts[end - first] > neighbours.len() {
                return wrong(
                    record,
                    "a list of neighbours ends before it begins, or beyond the last",
                );
            }
            let lists = &neighbours[starts[0]..starts[end - first]];
            let highest = lists.iter().fold(0, |highest, n| highest.max(*n));
            if !lists.is_empty() && highest as usize >= end - first {
                return wrong(record, "a neighbour is none of its nodes");
            }
        }
        Ok(Self { features, first_node, first_neighbour, neighbours, node_features })
    }
    /// One-hot features of a node.
    #[must_use]
    pub const fn features(&self) -> usize {
        self.features
    }
    /// Number of graphs.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.first_node.len() - 1
    }
    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Neighbours and features of the nodes of graph `i`.
    pub(crate) fn graph(&self, i: usize) -> (NeighbourLists<'a>, &'a [u32]) {
        let (first, end) = (self.first_node[i], self.first_node[i + 1]);
        let lists = NeighbourLists::new(&self.first_neighbour[first..=end], self.neighbours);
        (lists, &self.node_features[first..end])
    }
    /// Neighbours and features of every graph.
    pub(crate) fn graphs(self) -> impl Iterator<Item = (NeighbourLists<'a>, &'a [u32])> {
        (0..self.len()).map(move |i| self.graph(i))
    }
    /// Graphs `start..start + length`.
    pub(crate) fn block(self, start: usize, length: usize) -> Self {
        Self { first_node: &self.first_node[start..=start + length], ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_do_not_fit_are_refused_by_record() {
        let (nodes, lists, neighbours, features) = ([0, 2, 3], [0, 1, 2, 2], [1, 0], [0, 1, 1]);
        let rows = GraphRows::new(2, &nodes, &lists, &neighbours, &features).unwrap();
        assert_eq!((rows.len(), rows.graph(1).1), (2, &[1][..]));
        assert_eq!(rows.block(1, 1).graph(0).0.nodes(), 1);
        let refused = |rows: Result<GraphRows<'_>, Error>, in_record: usize| {
            assert!(
                matches!(rows, Err(Error::Graphs { record, .. }) if record == in_record),
                "{rows:?}"
            );
        };
        refused(GraphRows::new(1, &nodes, &lists, &neighbours, &features), 0);
        refused(GraphRows::new(2, &nodes, &lists, &[1, 2], &features), 0);
        refused(GraphRows::new(2, &nodes, &lists, &[1], &features), 0);
        refused(GraphRows::new(2, &nodes, &[0, 1, 2, 1], &neighbours, &features), 1);
        refused(GraphRows::new(2, &[0, 2, 4], &lists, &neighbours, &features), 1);
        refused(GraphRows::new(2, &[0, 2, 1], &lists, &neighbours, &features), 1);
        refused(GraphRows::new(2, &nodes, &lists, &neighbours, &[0, 1]), 0);
        refused(GraphRows::new(2, &[], &lists, &neighbours, &features), 0);
        refused(GraphRows::new(2, &[0], &[], &[], &[]), 0);
    }
}
