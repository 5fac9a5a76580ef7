//! The numeric primitives, in one place: matrix product, row sums over set bits, elementwise functions, reductions.
//!
//! The instruction set is chosen at run time ([`kernel_name`] says which). Every reduction has a fixed order that
//! depends on lengths only, so for a given kernel choice the numbers are the same on every machine and for any
//! number of threads. The elementwise functions and reductions written here give the same bits on every
//! instruction set, because their lanes are explicit and every fused multiply-add is a real one; the matrix
//! product may differ between instruction sets in the last bits.
mod elementwise;
mod product;
mod reduction;
mod row_sum;

pub use elementwise::{
    axpy, leaky_relu, leaky_relu_gradient, relu, relu_gradient, scale, sigmoid, sigmoid_gradient,
    softmax_rows, tanh, tanh_gradient,
};
pub use product::{LONGEST_SUM, Matrix, Write, matmul};
pub use reduction::{dot, squared_norm, sum_rows};
pub use row_sum::{RowLists, sum_listed_rows};

/// The kernels in use: the matrix product's and the elementwise functions' instruction sets.
///
/// Goes into provenance: results are bit-identical between two runs that name the same kernels.
#[must_use]
pub fn kernel_name() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        // The first choice repeats what `gemm` 0.19 looks for, the second what `pulp` 0.22 does.
        let product = if std::is_x86_feature_detected!("avx512f") {
            "avx512f"
        } else if std::is_x86_feature_detected!("fma") {
            "fma"
        } else {
            "scalar"
        };
        match product {
            "avx512f" => "gemm-0.19/avx512f",
            "fma" => "gemm-0.19/fma",
            _ => "gemm-0.19/scalar",
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
