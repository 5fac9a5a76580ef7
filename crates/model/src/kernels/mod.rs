//! The numeric primitives, in one place: matrix product, row sums over set bits, elementwise functions, reductions.
//!
//! The instruction set is chosen at run time ([`kernel_name`] says which). Every reduction has a fixed order that
//! depends on lengths only, so for a given kernel choice the numbers are the same on every machine and for any
//! number of threads. The elementwise functions and reductions written here give the same bits on every
//! instruction set, because their lanes are explicit and every fused multiply-add is a real one; the matrix
//! product may differ between instruction sets in the last bits.
mod elementwise;
mod finish;
mod gram;
mod neighbour_sum;
mod product;
mod reduction;
mod row_sum;

pub use elementwise::{
    add_affine, affine, axpy, leaky_relu, leaky_relu_gradient, relu, relu_gradient, scale,
    scale_down, sigmoid, sigmoid_gradient, softmax_rows, tanh, tanh_gradient,
};
pub(crate) use elementwise::{exp_of, sigmoid_of};
pub(crate) use finish::{Finish, finish_row};
pub use finish::{Limits, clip, clip_gradient};
pub(crate) use gram::Gram;
pub use neighbour_sum::{NeighbourLists, sum_neighbours};
pub use product::{LONGEST_SUM, Matrix, Write, matmul};
pub(crate) use product::{equal_tiles, matmul_finished};
pub(crate) use reduction::{add_sums, sums_and_dots};
pub use reduction::{dot, squared_norm, sum, sum_of, sum_rows};
pub use row_sum::{RowLists, expand_bits, sum_listed_rows, transpose_bits};

/// The matrix product in use, the one primitive whose last bits depend on the instruction set.
///
/// Goes into provenance: two runs that name the same kernel give the same bits.
#[must_use]
pub fn kernel_name() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        // What `gemm` 0.19 looks for, in its order.
        if std::is_x86_feature_detected!("avx512f") {
            "gemm-0.19/avx512f"
        } else if std::is_x86_feature_detected!("fma") {
            "gemm-0.19/fma"
        } else {
            "gemm-0.19/scalar"
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        "gemm-0.19/neon"
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        "gemm-0.19/scalar"
    }
}
