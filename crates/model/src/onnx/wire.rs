//! The part of `onnx.proto` that is read and written, by the field numbers of the public schema (ONNX 1.23, IR 14). Fields
//! not named here are skipped.
use prost::bytes::Bytes;

/// A model.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Model {
    #[prost(int64, tag = "1")]
    pub(super) ir_version: i64,
    #[prost(string, tag = "2")]
    pub(super) producer_name: String,
    #[prost(message, optional, tag = "7")]
    pub(super) graph: Option<Graph>,
    #[prost(message, repeated, tag = "8")]
    pub(super) opset_import: Vec<OperatorSet>,
    #[prost(message, repeated, tag = "25")]
    pub(super) functions: Vec<Empty>,
}
/// Something of which only its presence is known.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(super) struct Empty {}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct OperatorSet {
    #[prost(string, tag = "1")]
    pub(super) domain: String,
    #[prost(int64, tag = "2")]
    pub(super) version: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Graph {
    #[prost(message, repeated, tag = "1")]
    pub(super) node: Vec<Node>,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "5")]
    pub(super) initializer: Vec<Tensor>,
    #[prost(message, repeated, tag = "11")]
    pub(super) input: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "12")]
    pub(super) output: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "15")]
    pub(super) sparse_initializer: Vec<Empty>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Node {
    #[prost(string, repeated, tag = "1")]
    pub(super) input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(super) output: Vec<String>,
    #[prost(string, tag = "3")]
    pub(super) name: String,
    #[prost(string, tag = "4")]
    pub(super) op_type: String,
    #[prost(message, repeated, tag = "5")]
    pub(super) attribute: Vec<Attribute>,
    #[prost(string, tag = "7")]
    pub(super) domain: String,
}

/// Values are `None` where they are not in the file, so that a 0 is written.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(float, optional, tag = "2")]
    pub(super) f: Option<f32>,
    #[prost(int64, optional, tag = "3")]
    pub(super) i: Option<i64>,
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub(super) s: Option<Bytes>,
    #[prost(message, optional, boxed, tag = "5")]
    pub(super) t: Option<Box<Tensor>>,
    #[prost(float, repeated, packed = "false", tag = "7")]
    pub(super) floats: Vec<f32>,
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub(super) ints: Vec<i64>,
    #[prost(int32, tag = "20")]
    pub(super) kind: i32,
}
/// `AttributeProto.AttributeType`.
pub(super) mod attribute_kind {
    pub(in crate::onnx) const FLOAT: i32 = 1;
    pub(in crate::onnx) const INT: i32 = 2;
    pub(in crate::onnx) const STRING: i32 = 3;
    pub(in crate::onnx) const TENSOR: i32 = 4;
    pub(in crate::onnx) const FLOATS: i32 = 6;
    pub(in crate::onnx) const INTS: i32 = 7;
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Tensor {
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub(super) dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub(super) data_type: i32,
    #[prost(message, optional, tag = "3")]
    pub(super) segment: Option<Empty>,
    #[prost(float, repeated, tag = "4")]
    pub(super) float_data: Vec<f32>,
    #[prost(int32, repeated, tag = "5")]
    pub(super) int32_data: Vec<i32>,
    #[prost(int64, repeated, tag = "7")]
    pub(super) int64_data: Vec<i64>,
    #[prost(string, tag = "8")]
    pub(super) name: String,
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub(super) raw_data: Option<Bytes>,
    #[prost(message, repeated, tag = "13")]
    pub(super) external_data: Vec<Entry>,
    #[prost(int32, tag = "14")]
    pub(super) data_location: i32,
}
/// `TensorProto.DataType`, and what a number of it is called.
pub(super) mod data_type {
    pub(in crate::onnx) const FLOAT: i32 = 1;
    pub(in crate::onnx) const UINT8: i32 = 2;
    pub(in crate::onnx) const INT8: i32 = 3;
    pub(in crate::onnx) const UINT16: i32 = 4;
    pub(in crate::onnx) const INT16: i32 = 5;
    pub(in crate::onnx) const INT32: i32 = 6;
    pub(in crate::onnx) const INT64: i32 = 7;
    pub(in crate::onnx) const BOOL: i32 = 9;
    pub(in crate::onnx) const FLOAT16: i32 = 10;
    pub(in crate::onnx) const BFLOAT16: i32 = 16;

    /// Whether its numbers are computed with, in single precision.
    pub(in crate::onnx) fn is_float(kind: i64) -> bool {
        [FLOAT, FLOAT16, BFLOAT16].iter().any(|float| i64::from(*float) == kind)
    }

    pub(in crate::onnx) fn name(kind: i64) -> String {
        match kind {
            1 => "float32",
            2 => "uint8",
            3 => "int8",
            4 => "uint16",
            5 => "int16",
            6 => "int32",
            7 => "int64",
            8 => "string",
            9 => "bool",
            10 => "float16",
            11 => "float64",
            16 => "bfloat16",
            other => return format!("number kind {other}"),
        }
        .to_owned()
    }
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct Entry {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct ValueInfo {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) kind: Option<Type>,
}
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct Type {
    #[prost(message, optional, tag = "1")]
    pub(super) tensor_type: Option<TensorType>,
}
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct TensorType {
    #[prost(int32, tag = "1")]
    pub(super) elem_type: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) shape: Option<Shape>,
}
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct Shape {
    #[prost(message, repeated, tag = "1")]
    pub(super) dim: Vec<Dimension>,
}
/// A number or a name, or neither: unknown.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct Dimension {
    #[prost(int64, optional, tag = "1")]
    pub(super) dim_value: Option<i64>,
    #[prost(string, optional, tag = "2")]
    pub(super) dim_param: Option<String>,
}
