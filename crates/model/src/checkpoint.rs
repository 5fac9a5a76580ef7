//! Networks as bytes: a version, the wiring, the parameters, a digest of it all.
use crate::{Error, Graph, Node, Value};
use serde::{Deserialize, Serialize};

const MAGIC: &[u8; 16] = b"dosimeter net 2\n";
const DIGEST: usize = 32;

/// A graph but for its parameters.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    input: Vec<usize>,
    nodes: Vec<Node>,
}

impl Graph {
    /// The network as bytes, little-endian: `"dosimeter net 2\n"`, length of the header (u32), the header (JSON: shape of
    /// the input, layers and what they read), parameters (f32), BLAKE3 of everything before it. Equal networks give
    /// equal bytes.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if a setting of a layer is not finite.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let header =
            Header { input: self.shape(Value::INPUT).to_vec(), nodes: self.nodes().to_vec() };
        let wrong = Error::Checkpoint { what: "a layer cannot be written" };
        let header = serde_json::to_vec(&header).map_err(|_| wrong.clone())?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(u32::try_from(header.len()).map_err(|_| wrong)?.to_le_bytes());
        bytes.extend(header);
        bytes.extend(self.parameters().iter().flat_map(|p| p.to_le_bytes()));
        let digest = blake3::hash(&bytes);
        bytes.extend(digest.as_bytes());
        Ok(bytes)
    }

    /// The network written by [`Graph::to_bytes`], bit for bit.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] for anything else: another version, a wrong length, a digest that does not match.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let wrong = |what| Error::Checkpoint { what };
        let early = wrong("it ends early");
        let (content, digest) = bytes
            .len()
            .checked_sub(DIGEST)
            .map(|at| bytes.split_at(at))
            .ok_or(wrong("shorter than its digest"))?;
        let rest =
            content.strip_prefix(MAGIC).ok_or(wrong("it starts otherwise than version 2"))?;
        if blake3::hash(content).as_bytes() != digest {
            return Err(wrong("the digest does not match the content"));
        }
        let (length, rest) = rest.split_first_chunk::<4>().ok_or(early.clone())?;
        let (header, rest) =
            rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or(early)?;
        let header: Header =
            serde_json::from_slice(header).map_err(|_| wrong("its header is not one"))?;
        // Parameters are counted before any room is made for them.
        let count = |node: &Node| node.layer.parameter_count();
        let needed = header.nodes.iter().try_fold(0_usize, |n, node| n.checked_add(count(node)));
        if needed.and_then(|n| n.checked_mul(4)) != Some(rest.len()) {
            return Err(wrong("it has another number of parameters than its layers"));
        }
        let mut graph = Self::of_input(&header.input)?;
        for node in header.nodes {
            graph.push(node.layer, &node.inputs)?;
        }
        graph.lay_out();
        for (parameter, bytes) in graph.parameters_mut().iter_mut().zip(rest.as_chunks::<4>().0) {
            *parameter = f32::from_le_bytes(*bytes);
        }
        Ok(graph)
    }
}
