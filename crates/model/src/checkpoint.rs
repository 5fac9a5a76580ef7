//! Networks as bytes: a version, the layers, the parameters, a digest of it all.
use crate::{Activation, Error, Graph, Layer, Linear};

const MAGIC: &[u8; 16] = b"dosimeter net 1\n";
const DIGEST: usize = 32;

impl Graph {
    /// The network as bytes, little-endian: `"dosimeter net 1\n"`, number of layers (u32), each layer (kind u8, then
    /// two u32), parameters (f32), BLAKE3 of everything before it. Equal networks give equal bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend((self.layers().len() as u32).to_le_bytes());
        for layer in self.layers() {
            let (kind, a, b) = match *layer {
                Layer::Linear(Linear { inputs, outputs }) => (0_u8, inputs as u32, outputs as u32),
                Layer::Activation(Activation::Tanh) => (1, 0, 0),
                Layer::Activation(Activation::Relu) => (2, 0, 0),
                Layer::Activation(Activation::LeakyRelu { slope }) => (3, slope.to_bits(), 0),
                Layer::Activation(Activation::Sigmoid) => (4, 0, 0),
                Layer::Activation(Activation::Softmax) => (5, 0, 0),
            };
            bytes.push(kind);
            bytes.extend(a.to_le_bytes());
            bytes.extend(b.to_le_bytes());
        }
        bytes.extend(self.parameters().iter().flat_map(|p| p.to_le_bytes()));
        let digest = blake3::hash(&bytes);
        bytes.extend(digest.as_bytes());
        bytes
    }

    /// The network written by [`Graph::to_bytes`], bit for bit.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] for anything else: another version, a wrong length, a digest that does not match.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let wrong = |what| Error::Checkpoint { what };
        let (content, digest) = bytes
            .len()
            .checked_sub(DIGEST)
            .map(|at| bytes.split_at(at))
            .ok_or(wrong("shorter than its digest"))?;
        let rest =
            content.strip_prefix(MAGIC).ok_or(wrong("it starts otherwise than version 1"))?;
        if blake3::hash(content).as_bytes() != digest {
            return Err(wrong("the digest does not match the content"));
        }
        let mut rest = rest;
        let mut take = |count: usize| {
            let (head, tail) = rest.split_at_checked(count)?;
            rest = tail;
            Some(head)
        };
        let word = |bytes: Option<&[u8]>| {
            bytes
                .and_then(|b| b.try_into().ok())
                .map(u32::from_le_bytes)
                .ok_or(wrong("it ends early"))
        };
        let count = word(take(4))?;
        let mut layers = Vec::new();
        for _ in 0..count {
            let kind = take(1).ok_or(wrong("it ends early"))?[0];
            let (a, b) = (word(take(4))?, word(take(4))?);
            layers.push(match kind {
                0 => Layer::Linear(Linear { inputs: a as usize, outputs: b as usize }),
                1 => Layer::Activation(Activation::Tanh),
                2 => Layer::Activation(Activation::Relu),
                3 => Layer::Activation(Activation::LeakyRelu { slope: f32::from_bits(a) }),
                4 => Layer::Activation(Activation::Sigmoid),
                5 => Layer::Activation(Activation::Softmax),
                _ => return Err(wrong("it has an unknown kind of layer")),
            });
        }
        let needed: u128 = layers
            .iter()
            .map(|layer| match layer {
                Layer::Linear(l) => (l.inputs as u128 + 1) * l.outputs as u128,
                Layer::Activation(_) => 0,
            })
            .sum();
        if needed * 4 != rest.len() as u128 {
            return Err(wrong("it has another number of parameters than its layers"));
        }
        let mut graph = Self::new(layers)?;
        for (parameter, bytes) in graph.parameters_mut().iter_mut().zip(rest.as_chunks::<4>().0) {
            *parameter = f32::from_le_bytes(*bytes);
        }
        Ok(graph)
    }
}
