//! Another shape for the same numbers.
use super::{Misfit, Operation, Read, Scratch, only};
use crate::kernels::Write;
use serde::{Deserialize, Serialize};

/// The record's numbers in the same order under another shape. It costs nothing: no number is copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reshape {
    /// Of one record's output.
    pub shape: Vec<usize>,
}
impl Operation for Reshape {
    fn output_shape(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, Misfit> {
        let count = |shape: &[usize]| shape.iter().try_fold(1_usize, |n, s| n.checked_mul(*s));
        let input = only(inputs)?;
        if count(input) == count(&self.shape) {
            Ok(self.shape.clone())
        } else {
            Err(Misfit::new(format!("as many numbers as {:?} has", self.shape)))
        }
    }
    // The graph gives output and input one place in memory, so there is nothing to do.
    fn forward(&self, _: &Read<'_>, _: &mut [f32], _: &mut Scratch) {}
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
}
