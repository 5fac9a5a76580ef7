//! Sums over the neighbours of each node of a graph: a product with a sparse matrix of zeros and ones.
use super::Write;
use super::row_sum::columns;
use pulp::Arch;

/// Who is connected to whom in one graph. Whoever makes one has checked it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeighbourLists<'a> {
    /// Where each node's list begins and the last one ends: `nodes + 1` numbers.
    starts: &'a [usize],
    /// Lists of many graphs, within which `starts` count.
    neighbours: &'a [u32],
}
impl<'a> NeighbourLists<'a> {
    /// Lists that begin at `starts[node]` of `neighbours` and end at `starts[node + 1]`.
    ///
    /// # Panics
    /// If `starts` is empty; its functions, if a list does not lie in `neighbours`.
    #[must_use]
    pub fn new(starts: &'a [usize], neighbours: &'a [u32]) -> Self {
        assert!(!starts.is_empty(), "a start for each node, and an end");
        Self { starts, neighbours }
    }
    /// Number of nodes.
    #[must_use]
    pub const fn nodes(&self) -> usize {
        self.starts.len() - 1
    }
    /// Neighbours of a node.
    #[must_use]
    pub fn of(&self, node: usize) -> &'a [u32] {
        &self.neighbours[self.starts[node]..self.starts[node + 1]]
    }
    /// Number of neighbours of each node.
    pub fn degrees(&self) -> impl Iterator<Item = usize> + 'a {
        self.starts.windows(2).map(|ends| ends[1] - ends[0])
    }
}

/// `out[v] = rows[v] + sum of rows[u] over the neighbours u of v`: `(A + I) rows`, in the order of the lists. Rows are `width` numbers,
/// kept in registers while a list is walked.
///
/// # Panics
/// If `rows` or `out` is not a row for each node, or a neighbour is none of the nodes.
pub fn sum_neighbours(lists: NeighbourLists<'_>, rows: &[f32], width: usize, out: &mut [f32]) {
    assert!(rows.len() == lists.nodes() * width && out.len() == rows.len(), "a row for each node");
    if width == 0 {
        return;
    }
    out.copy_from_slice(rows);
    Arch::new().dispatch(
        #[inline(always)]
        move || {
            let out = out;
            for (node, out) in out.chunks_exact_mut(width).enumerate() {
                columns(lists.of(node), rows, width, 0, out, Write::Accumulate);
            }
        },
    );
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these values are exact")]
mod tests {
    use super::*;

    /// A path 0 - 1 - 2 and a node alone, behind another graph's lists: (A + I) x by hand, for widths that take every tile.
    #[test]
    fn sums_are_those_of_a_path_worked_by_hand() {
        let (starts, neighbours) = ([2, 3, 5, 6, 6], [7, 7, 1, 0, 2, 1]);
        let lists = NeighbourLists::new(&starts, &neighbours);
        assert_eq!(lists.degrees().collect::<Vec<_>>(), [1, 2, 1, 0]);
        for width in [1, 3, 32, 97, 100] {
            let rows: Vec<f32> =
                (0..4 * width).map(|i| (i / width * 10 + i % width) as f32).collect();
            let mut out = vec![f32::NAN; rows.len()];
            sum_neighbours(lists, &rows, width, &mut out);
            for c in 0..width {
                let x = |node: usize| rows[node * width + c];
                let right = [x(0) + x(1), x(0) + x(1) + x(2), x(1) + x(2), x(3)];
                for (node, right) in right.into_iter().enumerate() {
                    assert_eq!(out[node * width + c], right, "width {width}");
                }
            }
        }
    }
}
