//! A fixed number of nodes from any number.

/// On what grid numbers in [-1, 1] are compared: 0 and the limits of tanh are in the middle of a step.
///
/// Nodes that differ in what is two edges away can have the same last channel whatever the weights. Compared to the last bit, the order of
/// summation would decide which comes first, and with it how nodes are numbered and which processor is used.
fn step(x: f32) -> i32 {
    (x * 65_536.0).round() as i32
}

/// What every node has: of each convolution its channels, all nodes of the first before those of the second.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeChannels<'a> {
    pub(super) nodes: usize,
    /// Of each convolution.
    pub(super) channels: &'a [usize],
}
impl NodeChannels<'_> {
    /// Channels of a node.
    fn total(&self) -> usize {
        self.channels.iter().sum()
    }
    /// For each convolution, where the channels of `node` lie, and where they stand in a row of all channels.
    fn places(&self, node: usize) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        self.channels.iter().scan(0, move |before, channels| {
            let at = self.nodes * *before + node * channels;
            *before += channels;
            Some((at, *before - channels, *channels))
        })
    }

    /// Nodes by their last channel, the largest first; among equal ones by the channel before, and so on; then by their number.
    pub(super) fn order(&self, values: &[f32], order: &mut Vec<u32>) {
        order.clear();
        order.extend(0..self.nodes as u32);
        let compare = |a: &u32, b: &u32| {
            let (a, b) = (*a as usize, *b as usize);
            let mut end = values.len();
            for channels in self.channels.iter().rev() {
                let start = end - self.nodes * channels;
                let row = |node: usize| &values[start + node * channels..][..*channels];
                for (a, b) in row(a).iter().zip(row(b)).rev() {
                    let order = step(*b).cmp(&step(*a));
                    if order.is_ne() {
                        return order;
                    }
                }
                end = start;
            }
            a.cmp(&b)
        };
        order.sort_unstable_by(compare);
    }
    /// Writes the rows of the first nodes in `order`; where there are fewer than `out` has room for, zeros follow.
    pub(super) fn gather(&self, values: &[f32], order: &[u32], out: &mut [f32]) {
        let total = self.total();
        let kept = order.len().min(out.len() / total);
        let (rows, padding) = out.split_at_mut(kept * total);
        for (row, node) in rows.chunks_exact_mut(total).zip(order) {
            for (from, to, channels) in self.places(*node as usize) {
                row[to..to + channels].copy_from_slice(&values[from..from + channels]);
            }
        }
        padding.fill(0.0);
    }
    /// The way back: overwrites `out`, which is zero for nodes that were not kept.
    pub(super) fn scatter(&self, gradient: &[f32], order: &[u32], out: &mut [f32]) {
        out.fill(0.0);
        for (row, node) in gradient.chunks_exact(self.total()).zip(order) {
            for (to, from, channels) in self.places(*node as usize) {
                out[to..to + channels].copy_from_slice(&row[from..from + channels]);
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these values are copied")]
mod tests {
    use super::*;

    /// Four nodes with two and one channels. Node 1 has the largest last channel; 0 and 3 are equal there and in the channel before,
    /// and told apart by the first; 2 is the smallest.
    #[test]
    fn nodes_are_sorted_by_the_last_channel_and_ties_by_those_before() {
        let channels = NodeChannels { nodes: 4, channels: &[2, 1] };
        let values = [1.0, 5.0, 2.0, 0.0, 3.0, 9.0, 4.0, 5.0, 0.5, 0.9, -0.5, 0.5];
        let mut order = vec![7];
        channels.order(&values, &mut order);
        assert_eq!(order, [1, 3, 0, 2]);
        let mut out = [f32::NAN; 9];
        channels.gather(&values, &order, &mut out);
        assert_eq!(out, [2.0, 0.0, 0.9, 4.0, 5.0, 0.5, 1.0, 5.0, 0.5]);
        let mut padded = [f32::NAN; 15];
        channels.gather(&values, &order, &mut padded);
        assert_eq!(padded[9..], [3.0, 9.0, -0.5, 0.0, 0.0, 0.0]);
        let gradient: Vec<f32> = (1_u8..=9).map(f32::from).collect();
        let mut back = [f32::NAN; 12];
        channels.scatter(&gradient, &order, &mut back);
        assert_eq!(back, [7.0, 8.0, 1.0, 2.0, 0.0, 0.0, 4.0, 5.0, 9.0, 3.0, 0.0, 6.0]);
    }
    #[test]
    fn equal_nodes_stay_in_their_order_and_no_number_is_lost() {
        let channels = NodeChannels { nodes: 3, channels: &[1] };
        let mut order = vec![];
        channels.order(&[-0.25, -0.250_001, f32::NAN], &mut order);
        assert_eq!(order, [2, 0, 1]);
        NodeChannels { nodes: 0, ..channels }.order(&[], &mut order);
        assert!(order.is_empty());
    }
}
