"""Writes onnx_operators.json: small ONNX models, an input, and what ONNX Runtime makes of it; and models to be refused.

    pip install onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
    python golden/onnx_operators.py
"""
import json
import pathlib

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(7)
cases = []


def numbers(*shape):
    return np.round(random.normal(size=shape), 2).astype(np.float32)


def positive(*shape):
    return np.round(0.5 + random.random(shape), 2).astype(np.float32)


def node(operator, inputs, outputs, **attributes):
    return helper.make_node(operator, inputs.split(" ") if inputs else [], outputs.split(), **attributes)


def model(nodes, record, tensors, opset, batch, outputs, kind=TensorProto.FLOAT):
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("x", kind, [batch, *record])],
        [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in tensors.items()],
    )
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=4 if opset < 10 else 8 if opset < 19 else 10)


def case(name, nodes, record, opset=17, batch="N", make=numbers, **tensors):
    made = model(nodes, record, tensors, opset, batch, ["y"])
    x = make(batch if isinstance(batch, int) else 3, *record)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    (y,) = session.run(["y"], {"x": x})
    cases.append({
        "name": f"{name} opset {opset}",
        "model": made.SerializeToString().hex(),
        "x": [float(f"{v:.7g}") for v in x.ravel()],
        "y": [float(f"{v:.7g}") for v in y.ravel()],
    })


def refuse(name, error, nodes, record=(4,), opset=17, batch="N", kind=TensorProto.FLOAT, outputs=("y",), **tensors):
    made = model(nodes, record, tensors, opset, batch, outputs, kind)
    cases.append({"name": name, "model": made.SerializeToString().hex(), "error": error})


i64 = lambda *v: np.array(v, dtype=np.int64)
f32 = lambda *v: np.array(v, dtype=np.float32)
scalar = lambda v: np.array(v, dtype=np.float32)

# Functions of single numbers.
for operator in ["Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "Elu", "Softplus", "Abs", "Exp", "Neg", "Identity"]:
    case(operator, [node(operator, "x", "y")], (5,))
case("HardSwish", [node("HardSwish", "x", "y")], (2, 3), make=lambda *s: 3 * numbers(*s))
case("Log", [node("Log", "x", "y")], (4,), make=positive)
case("Sqrt", [node("Sqrt", "x", "y")], (4,), make=positive)
case("HardSigmoid of tf", [node("HardSigmoid", "x", "y", alpha=0.5, beta=0.3)], (4,))
case("LeakyRelu 0.3", [node("LeakyRelu", "x", "y", alpha=0.3)], (4,))
case("Clip", [node("Clip", "x", "y", min=-0.5, max=0.25)], (6,), opset=9)
case("Clip", [node("Clip", "x low high", "y")], (6,), opset=13, low=scalar(-0.5), high=scalar(0.25))
case("Clip above", [node("Clip", "x  high", "y")], (6,), opset=13, high=f32(0.25))
case("Dropout", [node("Dropout", "x", "y mask", ratio=0.5)], (4,), opset=9)
case("Dropout", [node("Dropout", "x ratio training", "y")], (4,), opset=13, ratio=scalar(0.5), training=np.array(False))

# Softmax: before opset 13 over all axes from the given one on.
for opset in [9, 11, 13]:
    case("Softmax", [node("Softmax", "x", "y", axis=1)], (2, 3), opset=opset)
    case("LogSoftmax", [node("LogSoftmax", "x", "y", axis=1)], (2, 3), opset=opset)
    case("Softmax last", [node("Softmax", "x", "y", axis=2)], (2, 3), opset=opset)
case("Softmax default", [node("Softmax", "x", "y")], (2, 3), opset=13)
case("Softmax of logits", [node("Softmax", "x", "y")], (5,), opset=13)
case("LogSoftmax middle", [node("LogSoftmax", "x", "y", axis=-2)], (2, 4, 3), opset=17)

# Two values and constants.
for operator in ["Add", "Sub", "Mul", "Div"]:
    case(f"{operator} of channels", [node(operator, "x c", "y")], (2, 3, 2), c=positive(2, 1, 1))
    case(f"{operator} from a constant", [node(operator, "c x", "y")], (3,), make=positive, c=scalar(2.0))
    case(f"{operator} enlarging", [node(operator, "x c", "y")], (2, 1), c=positive(1, 1, 3))
    case(
        f"{operator} of two values",
        [node("ReduceMean", "x", "m", axes=[2, 3]), node(operator, "x m", "y")],
        (2, 3, 2),
        make=positive,
    )
    case(f"{operator} of itself", [node(operator, "x x", "y")], (3,), make=positive)
case("squeeze and excite", [
    node("GlobalAveragePool", "x", "p"), node("Conv", "p w b", "q"), node("HardSigmoid", "q", "s"),
    node("Mul", "s x", "y"),
], (2, 3, 3), w=numbers(2, 2, 1, 1), b=numbers(2))
case("constants of constants", [
    node("Sub", "a b", "c"), node("Mul", "c c", "d"), node("Transpose", "d", "e", perm=[1, 0]),
    node("Sqrt", "e", "f"), node("Add", "x f", "y"),
], (3, 2), a=numbers(2, 3), b=numbers(2, 1))

# Weights.
case("Gemm", [node("Gemm", "x w b", "y")], (3,), w=numbers(3, 2), b=numbers(2))
case("Gemm scaled", [node("Gemm", "x w b", "y", alpha=0.5, beta=2.0, transB=1)], (3,), w=numbers(2, 3), b=numbers(1, 2))
case("Gemm bare", [node("Gemm", "x w", "y", transB=1)], (3,), opset=11, w=numbers(2, 3))
case("Gemm one bias", [node("Gemm", "x w b", "y")], (3,), opset=9, w=numbers(3, 2), b=scalar(0.5))
case("MatMul", [node("MatMul", "x w", "y")], (3,), w=numbers(3, 2))
case("MatMul Add", [node("MatMul", "x w", "z"), node("Add", "b z", "y")], (3,), w=numbers(3, 2), b=numbers(2))
case("MatMul read twice", [
    node("MatMul", "x w", "z"), node("Add", "z b", "u"), node("Mul", "u z", "y"),
], (3,), w=numbers(3, 2), b=numbers(2))
case("MatMul Add Add", [
    node("MatMul", "x w", "z"), node("Add", "z b", "u"), node("Add", "u b", "y"),
], (3,), w=numbers(3, 2), b=numbers(2))
case("Conv", [node("Conv", "x w b", "y", pads=[1, 0, 0, 2], strides=[2, 1], dilations=[1, 2])], (2, 5, 6), w=numbers(3, 2, 3, 2), b=numbers(3))
case("Conv groups", [node("Conv", "x w", "y", group=2, kernel_shape=[2, 2])], (4, 3, 4), w=numbers(6, 2, 2, 2))
case("Conv one axis", [node("Conv", "x w b", "y", pads=[1, 1], strides=[2])], (2, 7), w=numbers(3, 2, 3), b=numbers(3))
for mode in ["SAME_UPPER", "SAME_LOWER", "VALID"]:
    case(f"Conv {mode}", [node("Conv", "x w", "y", auto_pad=mode, strides=[2, 3])], (1, 6, 7), w=numbers(2, 1, 3, 2))
case("BatchNormalization", [node("BatchNormalization", "x s b m v", "y", epsilon=1e-3)], (2, 3, 2), s=numbers(2), b=numbers(2), m=numbers(2), v=positive(2))
case("BatchNormalization", [node("BatchNormalization", "x s b m v", "y")], (3,), opset=9, s=numbers(3), b=numbers(3), m=numbers(3), v=positive(3))
case("InstanceNormalization", [node("InstanceNormalization", "x s b", "y")], (2, 3, 2), s=numbers(2), b=numbers(2))
case("GroupNormalization", [node("GroupNormalization", "x s b", "y", num_groups=2)], (4, 3, 2), opset=21, s=numbers(4), b=numbers(4))
case("LayerNormalization", [node("LayerNormalization", "x s b", "y", axis=1)], (2, 3), s=numbers(2, 3), b=numbers(2, 3))
case("LayerNormalization bare", [node("LayerNormalization", "x s", "y")], (4,), s=numbers(4))
case("LayerNormalization of parts", [node("LayerNormalization", "x s b", "y")], (2, 3, 4), s=numbers(4), b=numbers(4))
case("LayerNormalization of parts of two axes", [node("LayerNormalization", "x s", "y", axis=2, epsilon=1e-3)], (2, 3, 4), s=numbers(3, 4))
case("MatMul on the last of two axes", [node("MatMul", "x w", "z"), node("Add", "z b", "y")], (2, 3), w=numbers(3, 4), b=numbers(4))
case("MatMul on the last of three axes", [node("MatMul", "x w", "z"), node("Relu", "z", "y")], (2, 3, 2), w=numbers(2, 3))
case("LRN", [node("LRN", "x", "y", size=3, alpha=0.2, beta=0.6, bias=1.5)], (5, 2, 2))

# Windows.
case("MaxPool", [node("MaxPool", "x", "y", kernel_shape=[2, 3], strides=[1, 2], pads=[1, 0, 0, 2])], (2, 4, 5))
case("MaxPool dilated", [node("MaxPool", "x", "y", kernel_shape=[2, 2], dilations=[2, 1])], (1, 4, 4), opset=11)
case("MaxPool rounded up", [node("MaxPool", "x", "y", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)], (1, 5, 3), opset=11)
case("MaxPool one axis", [node("MaxPool", "x", "y", kernel_shape=[2])], (2, 4))
case("AveragePool", [node("AveragePool", "x", "y", kernel_shape=[2, 2], pads=[1, 1, 0, 0])], (2, 3, 3))
case("AveragePool with padding", [node("AveragePool", "x", "y", kernel_shape=[2, 2], pads=[1, 1, 0, 0], count_include_pad=1)], (2, 3, 3))
case("AveragePool rounded up", [node("AveragePool", "x", "y", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)], (1, 5, 3), opset=11)
case("AveragePool SAME_UPPER", [node("AveragePool", "x", "y", kernel_shape=[2, 3], strides=[2, 2], auto_pad="SAME_UPPER")], (1, 5, 4))
case("GlobalAveragePool", [node("GlobalAveragePool", "x", "y")], (2, 3, 2))
case("GlobalMaxPool", [node("GlobalMaxPool", "x", "y")], (2, 3, 2))
case("ReduceMean", [node("ReduceMean", "x", "y", axes=[1, -1], keepdims=0)], (2, 3, 2), opset=13)
case("ReduceMean", [node("ReduceMean", "x a", "y")], (2, 3, 2), opset=18, a=i64(2))
case("ReduceSum", [node("ReduceSum", "x", "y", axes=[2])], (2, 3, 2), opset=9)
case("ReduceSum", [node("ReduceSum", "x a", "y", keepdims=0)], (2, 3, 2), opset=13, a=i64(1, 3))
case("ReduceSum to one number", [node("ReduceSum", "x a", "z", keepdims=0), node("Mul", "z z", "y")], (4,), opset=13, a=i64(1))

# Numbers put elsewhere.
case("Transpose", [node("Transpose", "x", "y", perm=[0, 2, 3, 1])], (2, 3, 4))
case("Concat", [node("Relu", "x", "r"), node("Concat", "x r x", "y", axis=-2)], (2, 3))
case("Pad", [node("Pad", "x", "y", pads=[0, 1, 0, 0, 2, 1], value=0.5)], (2, 3), opset=9)
case("Pad", [node("Pad", "x p v", "y")], (2, 3), opset=13, p=i64(0, 1, 0, 0, 2, 1), v=scalar(0.5))
case("Pad cropping", [node("Pad", "x p", "y")], (2, 4), opset=13, p=i64(0, 1, -1, 0, 0, -2))
case("Pad edge", [node("Pad", "x p", "y", mode="edge")], (2, 3), opset=13, p=i64(0, 1, 2, 0, 2, 1))
case("Pad reflect", [node("Pad", "x p", "y", mode="reflect")], (3, 4), opset=13, p=i64(0, 2, 1, 0, 1, 3))
case("Pad axes", [node("Pad", "x p  a", "y")], (2, 3), opset=18, p=i64(1, 2), a=i64(-1))
case("Slice", [node("Slice", "x", "y", starts=[1, 0], ends=[3, -1], axes=[1, 2])], (4, 3), opset=9)
case("Slice", [node("Slice", "x s e a t", "y")], (5, 4), opset=13, s=i64(-1, 3), e=i64(-100, 0), a=i64(1, 2), t=i64(-2, -1))
case("Slice by default", [node("Slice", "x s e", "y")], (5,), opset=11, s=i64(0, 1), e=i64(2**63 - 1, 4))
case("Split", [node("Split", "x n", "a y", axis=1), ], (5, 2), opset=13, n=i64(2, 3))
case("Split in half", [node("Split", "x", "a b", axis=1), node("Sub", "a b", "y")], (4, 2), opset=13)
case("channel shuffle", [
    node("Reshape", "x s", "a"), node("Transpose", "a", "b", perm=[0, 2, 1, 3, 4]), node("Reshape", "b t", "y"),
], (4, 2, 3), s=i64(-1, 2, 2, 2, 3), t=i64(0, 4, 2, 3))
case("Gather", [node("Gather", "x i", "y", axis=1)], (4, 2), i=i64(3, -4, 1, 1))
case("Gather one", [node("Gather", "x i", "y", axis=2)], (2, 3), i=np.array(-1, dtype=np.int64))
case("Gather a table", [node("Gather", "x i", "y", axis=1)], (4, 2), i=np.array([[0, 1], [2, 0]], dtype=np.int64))

# Shapes.
case("Flatten", [node("Flatten", "x", "y")], (2, 3, 2))
case("Flatten of one", [node("Flatten", "x", "y", axis=2)], (1, 3, 2))
case("Reshape", [node("Reshape", "x s", "y")], (2, 6), s=i64(0, -1, 3))
case("Reshape of rows", [node("Reshape", "x s", "y")], (2, 6), s=i64(-1, 4, 3))
case("Reshape made for one", [node("Reshape", "x s", "y")], (2, 6), batch=1, s=i64(1, -1))
case("Reshape made for four", [node("Reshape", "x s", "y")], (2, 6), batch=4, s=i64(4, 12))
case("Squeeze", [node("Squeeze", "x", "y", axes=[1, 3])], (1, 3, 1), opset=11)
case("Squeeze", [node("Squeeze", "x a", "y")], (1, 3, 1), opset=13, a=i64(-1))
case("Squeeze all", [node("Squeeze", "x", "y")], (1, 3, 1), opset=13)
case("Unsqueeze", [node("Unsqueeze", "x", "y", axes=[1, 3])], (3,), opset=11)
case("Unsqueeze", [node("Unsqueeze", "x a", "y")], (3,), opset=13, a=i64(-1, 1))
case("Cast", [node("Cast", "x", "y", to=TensorProto.FLOAT)], (3,))
case("PyTorch's view", [
    node("Shape", "x", "s"), node("Constant", "", "zero", value=numpy_helper.from_array(np.array(0, dtype=np.int64))),
    node("Gather", "s zero", "n", axis=0), node("Unsqueeze", "n", "u", axes=[0]),
    node("Constant", "", "m", value=numpy_helper.from_array(i64(-1))), node("Concat", "u m", "t", axis=0),
    node("Reshape", "x t", "y"),
], (2, 3), opset=11)
case("Keras's flatten", [
    node("Shape", "x", "s"), node("Cast", "s", "f", to=TensorProto.INT32),
    node("Slice", "f b e", "n"), node("Concat", "n m", "t", axis=0), node("Cast", "t", "u", to=TensorProto.INT64),
    node("Reshape", "x u", "y"),
], (2, 3), opset=12, b=i64(0), e=i64(1), m=np.array([6], dtype=np.int32))
case("a shape computed", [
    node("Shape", "x", "s"), node("Gather", "s i", "c"), node("Mul", "c k", "d"), node("Div", "d l", "e"),
    node("Concat", "o e m", "t", axis=0), node("Reshape", "x t", "y"),
], (4, 3), opset=13, i=i64(1), k=i64(3), l=i64(2), o=i64(0), m=i64(-1))
case("PyTorch's pad", [
    node("ConstantOfShape", "four", "z", value=numpy_helper.from_array(i64(0))), node("Concat", "p z", "q", axis=0),
    node("Reshape", "q two", "r"), node("Slice", "r b e a t", "v"), node("Transpose", "v", "w", perm=[1, 0]),
    node("Reshape", "w one", "f"), node("Cast", "f", "g", to=TensorProto.INT64), node("Pad", "x g", "y"),
], (2, 3, 3), opset=13, four=i64(4), p=i64(1, 0, 2, 1), two=i64(-1, 2), b=i64(-1), e=i64(-2**63), a=i64(0), t=i64(-1), one=i64(-1))
case("Constant numbers", [
    node("Constant", "", "a", value_floats=[1.0, 2.0]), node("Constant", "", "b", value_float=0.5),
    node("Mul", "x a", "c"), node("Add", "c b", "y"),
], (2,), opset=13)

# Models that would mix records or cannot be computed with.
refuse("unknown operator", "node \"y\" (Einsum, opset 17): this operator is not known", [node("Einsum", "x", "y", equation="ij->ij")])
refuse("other domain", "com.microsoft", [helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft")])
refuse("old opset", "it uses opset 8; 9 to", [node("Relu", "x", "y")], opset=8)
refuse("unknown attribute", "its attribute \"sharpness\" is not known", [node("Relu", "x", "y", sharpness=1)])
refuse("training", "it is in training mode", [node("BatchNormalization", "x s b s s", "y m v", training_mode=1)], s=positive(4), b=numbers(4))
refuse("softmax over records", "along the first axis, that of records", [node("Softmax", "x", "y", axis=0)])
refuse("mean over records", "along the first axis, that of records", [node("ReduceMean", "x", "y")])
refuse("transposed records", "it moves the first axis", [node("Transpose", "x", "y", perm=[1, 0])])
refuse("spread records", "it spreads records of [4] over several rows", [node("Reshape", "x s", "y")], s=i64(-1, 2))
refuse("joined records", "it spreads records of [4] over several rows or joins them", [node("Reshape", "x s", "y")], s=i64(1, -1))
refuse("padded records", "it pads the first axis", [node("Pad", "x p", "y")], p=i64(1, 0, 0, 0))
refuse("chosen records", "it takes some records", [node("Slice", "x s e", "y")], s=i64(0), e=i64(2))
refuse("constants by record", "differs from record to record", [node("Add", "x c", "y")], batch=2, c=numbers(2, 4))
refuse("two values multiplied", "its input 1 depends on the record", [node("MatMul", "x x", "y")])
refuse("weights on the last of two axes", "weights of shape [2, 3] do not take records of shape [2, 3]", [node("MatMul", "x w", "y")], record=(2, 3), w=numbers(2, 3))
refuse("not finite", "node \"y\" (MatMul, opset 17): its parameter 0 is NaN", [node("MatMul", "x w", "y")], w=f32(np.nan, 1, 2, 3).reshape(4, 1))
refuse("infinite constant", "a constant is inf", [node("Add", "x c", "y")], c=f32(np.inf))
refuse("whole numbers for weights", "its input 1 holds whole numbers, not float32", [node("MatMul", "x w", "y")], w=np.ones((4, 2), dtype=np.int64))
refuse("double precision", "it holds float64", [node("Add", "x c", "y")], c=np.ones(4, dtype=np.float64))
refuse("texts", "it holds string", [node("Add", "x c", "y")], c=np.array(["a"]))
refuse("an input of bytes", "takes uint8, not float32", [node("Cast", "x", "y", to=1)], kind=TensorProto.UINT8)
refuse("weights of another width", "it takes [3], got [4]", [node("Gemm", "x w", "y")], w=numbers(3, 2))
refuse("defined later", "reads \"z\", which no node before it makes", [node("Relu", "z", "y"), node("Relu", "x", "z")])
refuse("a circle", "reads \"y\", which no node before it makes", [node("Add", "x y", "z"), node("Relu", "z", "y")])
refuse("defined twice", "two values are called \"z\"", [node("Relu", "x", "z"), node("Tanh", "x", "z"), node("Relu", "z", "y")])
refuse("several outputs", "it has 2 outputs, [\"y\", \"z\"]", [node("Relu", "x", "y"), node("Relu", "x", "z")], outputs=("y", "z"))
refuse("no input", "does not depend on its input", [node("Identity", "c", "y")], c=numbers(2))
refuse("grown constants", "grows out of proportion", [node("ConstantOfShape", "s", "c"), node("Add", "x c", "y")], s=i64(1 << 20, 1 << 12))
refuse("copied constants", "grows out of proportion", [
    node("ConstantOfShape", "s", "c0"), *[node("Reshape", f"c{i} s", f"c{i + 1}") for i in range(20)],
    node("MatMul", "x c20", "y"),
], s=i64(1 << 8, 1 << 8))
refuse("grown padding", "too many numbers", [node("Pad", "x p", "y")], p=i64(0, 0, 0, 1 << 31))
refuse("a window beyond", "its kernel_shape has 1000000", [node("MaxPool", "x", "y", kernel_shape=[1000000])], record=(1, 4))
refuse("nothing left", "it takes nothing of axis 0", [node("Slice", "x s e a", "y")], s=i64(3), e=i64(3), a=i64(1))
refuse("two settings open", "leaves two lengths open", [node("Reshape", "x s", "y")], s=i64(0, -1, -1))
refuse("an open shape", "leaves the shape of a record open, [?]", [node("Relu", "x", "y")], record=("width",))

# Biases that an exporter adds in a node of their own, and what only looks like them.
case("Conv Add", [node("Conv", "x w", "z"), node("Add", "z b", "y")], (2, 3, 3), w=numbers(4, 2, 2, 2), b=numbers(1, 4, 1, 1))
case("Conv Add first", [node("Conv", "x w", "z"), node("Add", "b z", "y")], (2, 5), w=numbers(3, 2, 2), b=numbers(3, 1))
case("Conv Add along the width", [node("Conv", "x w", "z"), node("Add", "z b", "y")], (2, 3, 4), w=numbers(3, 2, 1, 2), b=numbers(3))
case("Conv Add, read twice", [
    node("Conv", "x w", "z"), node("Add", "z b", "u"), node("Mul", "u z", "y"),
], (2, 3, 3), w=numbers(4, 2, 2, 2), b=numbers(1, 4, 1, 1))
case("Conv with biases Add", [node("Conv", "x w b", "z"), node("Add", "z c", "y")], (1, 3, 3), w=numbers(2, 1, 2, 2), b=numbers(2), c=numbers(2, 1, 1))

# Half precision, with numbers of which products and sums are exact in it: all is computed in single precision here.
quarters = lambda *shape: (random.integers(-4, 5, size=shape) / 4).astype(np.float16)
exact = lambda *shape: quarters(*shape).astype(np.float32)
case("float16 weights", [
    node("Cast", "x", "h", to=TensorProto.FLOAT16), node("Gemm", "h w b", "z"), node("Cast", "z", "y", to=TensorProto.FLOAT),
], (3,), make=exact, w=quarters(3, 2), b=quarters(2))
case("bfloat16 weights", [
    node("Cast", "w", "v", to=TensorProto.FLOAT), node("MatMul", "x v", "y"),
], (3,), make=exact, w=quarters(3, 2).astype(ml_dtypes.bfloat16))
case("AveragePool rounded up with padding to no effect",
     [node("AveragePool", "x", "y", kernel_shape=[2, 2], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1, count_include_pad=1)],
     (1, 4, 6), opset=11)

# Weights in a file of their own: 4 bytes of something else, then two by two numbers.
made = model([node("MatMul", "x w", "y")], (2,), {"w": f32(1, 2, 3, 4).reshape(2, 2)}, 17, "N", ["y"])
weights = made.graph.initializer[0]
weights.ClearField("raw_data")
weights.data_location = TensorProto.EXTERNAL
for key, value in [("location", "weights.bin"), ("offset", "4"), ("length", "16")]:
    weights.external_data.add(key=key, value=value)
external = made.SerializeToString().hex()
cases.append({"name": "external data", "model": external, "error": "its data lie in another file; read the model from its file"})
names = ["w1", "w2", "w3"]
made = model([node("MatMul", f"{i} {w}", o) for i, w, o in zip(["x", "a", "b"], names, ["a", "b", "y"])], (2,), {}, 17, "N", ["y"])
for name in names:
    made.graph.initializer.add().CopyFrom(weights)
    made.graph.initializer[-1].name = name
cases.append({"name": "shared external data", "model": made.SerializeToString().hex(), "error": "its data lie in another file"})

answer = {
    "provenance": {
        "script": "golden/onnx_operators.py",
        "oracle": f"ONNX Runtime {onnxruntime.__version__} on CPU; models made with onnx {onnx.__version__}",
        "source": "the operators' definitions in ONNX, as the runtime has them",
    },
    "tolerance": 1e-5,
    "cases": cases,
}
lines = ",\n".join(json.dumps(case) for case in answer.pop("cases"))
text = json.dumps(answer, indent=1)[:-2] + ',\n "cases": [\n' + lines + "\n]}\n"
pathlib.Path(__file__).with_suffix(".json").write_text(text)
