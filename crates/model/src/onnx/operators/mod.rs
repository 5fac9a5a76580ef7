//! Every operator that is read.
mod arithmetic;
mod arrangement;
mod shape;
mod weighted;
mod windows;

use super::call::Call;
use super::import::Known;

/// How one operator becomes layers.
pub(super) struct Operator {
    /// In ONNX.
    name: &'static str,
    /// Adds its layers, or computes it.
    pub(super) run: fn(&mut Call<'_, '_>) -> Result<Vec<Known>, String>,
}

/// Every operator. Adding one: its function in a file of this folder, its line here.
const OPERATORS: &[Operator] = &[
    Operator { name: "Abs", run: arithmetic::absolute },
    Operator { name: "Add", run: arithmetic::add },
    Operator { name: "AveragePool", run: windows::average_pool },
    Operator { name: "BatchNormalization", run: weighted::batch_normalization },
    Operator { name: "Cast", run: shape::cast },
    Operator { name: "Clip", run: arithmetic::clip },
    Operator { name: "Concat", run: arrangement::concat },
    Operator { name: "Constant", run: shape::constant },
    Operator { name: "ConstantOfShape", run: shape::constant_of_shape },
    Operator { name: "Conv", run: windows::conv },
    Operator { name: "Div", run: arithmetic::div },
    Operator { name: "Dropout", run: shape::dropout },
    Operator { name: "Elu", run: arithmetic::elu },
    Operator { name: "Exp", run: arithmetic::exp },
    Operator { name: "Flatten", run: shape::flatten },
    Operator { name: "Gather", run: arrangement::gather },
    Operator { name: "Gemm", run: weighted::gemm },
    Operator { name: "GlobalAveragePool", run: windows::global_average_pool },
    Operator { name: "GlobalMaxPool", run: windows::global_max_pool },
    Operator { name: "GroupNormalization", run: weighted::group_normalization },
    Operator { name: "HardSigmoid", run: arithmetic::hard_sigmoid },
    Operator { name: "HardSwish", run: arithmetic::hard_swish },
    Operator { name: "Identity", run: shape::identity },
    Operator { name: "InstanceNormalization", run: weighted::instance_normalization },
    Operator { name: "LRN", run: arithmetic::local_response },
    Operator { name: "LayerNormalization", run: weighted::layer_normalization },
    Operator { name: "LeakyRelu", run: arithmetic::leaky_relu },
    Operator { name: "Log", run: arithmetic::log },
    Operator { name: "LogSoftmax", run: arithmetic::log_softmax },
    Operator { name: "MatMul", run: weighted::mat_mul },
    Operator { name: "MaxPool", run: windows::max_pool },
    Operator { name: "Mul", run: arithmetic::mul },
    Operator { name: "Neg", run: arithmetic::neg },
    Operator { name: "Pad", run: arrangement::pad },
    Operator { name: "ReduceMean", run: arithmetic::reduce_mean },
    Operator { name: "ReduceSum", run: arithmetic::reduce_sum },
    Operator { name: "Relu", run: arithmetic::relu },
    Operator { name: "Reshape", run: shape::reshape },
    Operator { name: "Shape", run: shape::shape },
    Operator { name: "Sigmoid", run: arithmetic::sigmoid },
    Operator { name: "Slice", run: arrangement::slice },
    Operator { name: "Softmax", run: arithmetic::softmax },
    Operator { name: "Softplus", run: arithmetic::softplus },
    Operator { name: "Split", run: arrangement::split },
    Operator { name: "Sqrt", run: arithmetic::sqrt },
    Operator { name: "Squeeze", run: shape::squeeze },
    Operator { name: "Sub", run: arithmetic::sub },
    Operator { name: "Tanh", run: arithmetic::tanh },
    Operator { name: "Transpose", run: arrangement::transpose },
    Operator { name: "Unsqueeze", run: shape::unsqueeze },
];

/// Names of all operators that are read, in order.
pub fn names() -> impl Iterator<Item = &'static str> {
    OPERATORS.iter().map(|o| o.name)
}

pub(super) fn find(name: &str) -> Option<&'static Operator> {
    OPERATORS.binary_search_by(|o| o.name.cmp(name)).ok().map(|i| &OPERATORS[i])
}

/// The only output.
fn one(value: Known) -> Vec<Known> {
    vec![value]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_in_order_so_that_each_is_found() {
        assert!(OPERATORS.is_sorted_by(|a, b| a.name < b.name));
    }
}
