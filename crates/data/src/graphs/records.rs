//! Graphs as records of a data set.
use super::GraphSet;
use crate::{Column, ColumnKind, Dataset, Error, Inputs};
use serde::{Deserialize, Serialize};

/// Degrees above this are one feature unless the study says otherwise: the most that the DGCNN code allows for.
pub const MOST_DEGREE: u32 = 2000;
/// Most that a study may ask for.
pub const HIGHEST_MOST_DEGREE: u32 = 1 << 20;

/// What a network is told of a node, one-hot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeFeature {
    /// How many neighbours it has. It follows from the edges, so it is as private as they are.
    Degree,
    /// Its tag in the file.
    Tag,
}

/// What a study says about the features of nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeFeatures {
    /// Left out: the tag if there are at least two different ones, else the degree.
    pub feature: Option<NodeFeature>,
    /// Higher degrees are taken for this one. Left out: one less than the most nodes of a graph, which no degree exceeds, and at most
    /// [`MOST_DEGREE`]; numbers of nodes count as public.
    pub most_degree: Option<u32>,
}

/// Graphs with one feature for each node: what a record is where records are graphs.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphRecords {
    set: GraphSet,
    feature: NodeFeature,
    /// One-hot features: tags, or degrees from 0.
    features: usize,
}
impl GraphRecords {
    /// Chooses features as a study asks.
    ///
    /// # Errors
    /// [`Error::Setting`] for a tag that nodes do not have, or a highest degree out of range or without use.
    pub fn new(set: GraphSet, asked: NodeFeatures) -> Result<Self, Error> {
        let tags = set.tag_names().len();
        let refused = |setting: &str, needs: &str, have: String| Error::Setting {
            setting: setting.to_owned(),
            needs: needs.to_owned(),
            have,
        };
        let feature = asked.feature.unwrap_or(match tags {
            0 | 1 => NodeFeature::Degree,
            _ => NodeFeature::Tag,
        });
        let features = match feature {
            NodeFeature::Tag if tags == 0 => {
                let have = "\"tag\" of nodes without tags".to_owned();
                return Err(refused("node_feature", "\"degree\"", have));
            }
            NodeFeature::Tag => {
                if let Some(most) = asked.most_degree {
                    let needs = "node_feature = \"degree\"";
                    return Err(refused("most_degree", needs, format!("{most} for tags")));
                }
                tags
            }
            NodeFeature::Degree => {
                let largest = set.graphs().map(|graph| graph.nodes()).max().unwrap_or(1);
                let possible = u32::try_from(largest - 1).unwrap_or(u32::MAX);
                let most = asked.most_degree.unwrap_or(possible.clamp(1, MOST_DEGREE));
                if !(1..=HIGHEST_MOST_DEGREE).contains(&most) {
                    let needs = format!("a whole number from 1 to {HIGHEST_MOST_DEGREE}");
                    return Err(refused("most_degree", &needs, most.to_string()));
                }
                most as usize + 1
            }
        };
        Ok(Self { set, feature, features })
    }
    /// The graphs.
    #[must_use]
    pub const fn set(&self) -> &GraphSet {
        &self.set
    }
    /// What a feature is.
    #[must_use]
    pub const fn feature(&self) -> NodeFeature {
        self.feature
    }
    /// Number of one-hot features.
    #[must_use]
    pub const fn features(&self) -> usize {
        self.features
    }
    /// The same features of graphs with the same nodes and other edges. Degrees are those of the new edges.
    ///
    /// # Errors
    /// [`Error::Inconsistent`] if there are not as many graphs and nodes.
    pub fn with_edges_of(&self, set: GraphSet) -> Result<Self, Error> {
        let sizes = |set: &GraphSet| set.graphs().map(|graph| graph.nodes()).collect::<Vec<_>>();
        if sizes(&set) != sizes(&self.set) {
            let (needs, have) = (self.set.nodes() as u64, set.nodes() as u64);
            return Err(Error::Inconsistent { what: "nodes of the graphs", needs, have });
        }
        Ok(Self { set, ..*self })
    }
    /// Feature of each node of graph `i`, below [`Self::features`]; none if there is no such graph.
    pub fn node_features(&self, i: usize) -> impl Iterator<Item = u32> + '_ {
        let most = self.features as u32 - 1;
        self.set.graph(i).into_iter().flat_map(move |graph| {
            (0..graph.nodes()).map(move |node| match self.feature {
                NodeFeature::Degree => (graph.neighbours(node).len() as u32).min(most),
                NodeFeature::Tag => graph.tags[node],
            })
        })
    }
    /// Appends how many nodes of graph `i` have each feature.
    pub(crate) fn append_counts(&self, i: usize, out: &mut Vec<f32>) {
        let first = out.len();
        out.resize(first + self.features, 0.0);
        for feature in self.node_features(i) {
            out[first + feature as usize] += 1.0;
        }
    }
    /// These graphs alone, in this order.
    pub(crate) fn of_graphs(&self, rows: &[usize]) -> Self {
        Self { set: self.set.of_graphs(rows), ..*self }
    }
}

impl Dataset {
    /// A data set of graphs, in one column `graph`.
    ///
    /// # Errors
    /// As [`GraphRecords::new`].
    pub fn from_graphs(set: GraphSet, features: NodeFeatures) -> Result<Self, Error> {
        let (name, labels) = (set.name.clone(), set.labels().to_vec());
        let class_names = set.class_names().to_vec();
        let records = GraphRecords::new(set, features)?;
        let kind = ColumnKind::Graph { features: records.features };
        let column = Column { name: "graph".to_owned(), kind, first_input: 0 };
        Self::from_parts(&name, vec![column], Inputs::Graphs(records), labels, class_names)
    }
    /// The graphs, if records are graphs.
    #[must_use]
    pub const fn graphs(&self) -> Option<&GraphRecords> {
        match &self.inputs {
            Inputs::Graphs(records) => Some(records),
            _ => None,
        }
    }
}
