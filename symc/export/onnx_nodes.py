"""Meaning of ONNX's operators: the table, and those that are neither layers nor loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from symc import numpy_api as xp
from symc.errors import InputError
from symc.export.onnx_layers import (
    axis_of,
    batch_norm,
    conv,
    conv_transpose,
    gemm,
    if_node,
    instance_norm,
    layer_norm,
    loop_node,
    lstm,
    op_on,
    over_axes,
    pool,
    scan_node,
)
from symc.export.onnx_node import Node, Operators, Sizes
from symc.export.onnx_ops import PLAIN
from symc.export.onnx_sizes import OF_SIZES, filled
from symc.ir.op import lookup
from symc.ir.types import DTYPE_NAMES
from symc.nn import windows
from symc.tensors.sizes import as_size
from symc.tensors.tensor import Tensor

# --- elements ---------------------------------------------------------------------------------------------------------

#: The operators that ``f.to_onnx`` writes as they are; but quotients of integers, extremes and remainders differ.
_ELEMENTWISE = {op: lookup(name) for name, op in PLAIN.items()
                if op not in ("Div", "Max", "Min", "IsInf", "Neg", "Pow")}


def _div(node: Node, a: Tensor, b: Tensor) -> Tensor:
    if a.dtype.kind == "f":
        return a / b
    q, r = a // b, a % b
    return q if a.dtype.kind == "u" else xp.where((r != 0) & ((a < 0) != (b < 0)), q + 1, q)


def _isinf(node: Node, x: Tensor) -> Tensor:
    kept = x > 0 if not node.get("detect_negative", 1) else x < 0 if not node.get("detect_positive", 1) else True
    return xp.isinf(x) & kept


def _dtype(node: Node) -> np.dtype:
    dtype = node.graph.onnx.helper.tensor_dtype_to_np_dtype(node.get("to", 1))
    if dtype not in DTYPE_NAMES:
        raise InputError(f"there is no dtype {dtype} in symc")
    return dtype


def _clip(node: Node, x: Tensor, low: Any = None, high: Any = None) -> Tensor:
    x = x if low is None else xp.maximum(x, low)
    return x if high is None else xp.minimum(x, high)


def _gelu(node: Node, x: Tensor) -> Tensor:
    if node.get("approximate", "none") == "tanh":
        return 0.5 * x * (1 + xp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + op_on("erf", x * math.sqrt(0.5)))


# --- reductions -------------------------------------------------------------------------------------------------------


def _reduction(f: Callable[..., Any]) -> Callable[..., Any]:
    def run(node: Node, x: Tensor, *_: Any) -> Tensor:
        axes = node.numbers(1, "axes") or (() if node.get("noop_with_empty_axes", 0) else range(x.ndim))
        y = f(x, tuple(sorted(a % x.ndim for a in axes)), bool(node.get("keepdims", 1)))
        return y.astype(x.dtype)

    return run


def _place(f: Callable[..., Any]) -> Callable[..., Any]:
    def run(node: Node, x: Tensor) -> Tensor:
        axis = axis_of(node, x)
        last = node.get("select_last_index", 0)
        k = f(xp.flip(x, axis) if last else x, axis=axis, keepdims=bool(node.get("keepdims", 1)))
        return (x.shape[axis] - 1 - k if last else k).astype("int64")

    return run


def _topk(node: Node, x: Tensor, _: Any) -> tuple[Tensor, Tensor]:
    axis, k = axis_of(node, x, -1), node.numbers(1)[0]
    if node.get("largest", 1):
        order = xp.flip(x.shape[axis] - 1 - xp.argsort(xp.flip(x, axis), axis, stable=True), axis)
    else:
        order = xp.argsort(x, axis, stable=True)
    order = order[(slice(None),) * axis + (slice(0, k),)]
    return xp.take_along_axis(x, order, axis), order


def _cumsum(node: Node, x: Tensor, axis: Any) -> Tensor:
    (a,) = node.numbers(1)
    back = bool(node.get("reverse", 0))
    y = op_on("cumsum", x, axis=a % x.ndim, reverse=back)
    return y - x if node.get("exclusive", 0) else y


# --- movements --------------------------------------------------------------------------------------------------------


def _reshape(node: Node, x: Tensor, _: Any) -> Tensor:
    shape = node.numbers(1)
    zero = bool(node.get("allowzero", 0))
    return x.reshape(tuple(x.shape[k] if isinstance(n, int) and n == 0 and not zero else n
                           for k, n in enumerate(shape)))


def _squeeze(node: Node, x: Tensor, _: Any = None) -> Tensor:
    axes = node.numbers(1, "axes")
    return x.squeeze() if axes is None else x.squeeze(tuple(axes))


def _expand(node: Node, x: Tensor, _: Any) -> Tensor:
    shape = node.numbers(1)
    lead = (1,) * max(0, x.ndim - len(shape))
    shape = [*lead, *shape]
    own = [1] * (len(shape) - x.ndim) + list(x.shape)
    return xp.broadcast_to(x, tuple(o if isinstance(s, int) and s == 1 else s for s, o in zip(shape, own, strict=True)))


def _slice(node: Node, x: Tensor, *_: Any) -> Tensor:
    starts, ends = node.numbers(1, "starts"), node.numbers(2, "ends")
    axes = node.numbers(3, "axes", range(len(starts)))
    at: list[Any] = [slice(None)] * x.ndim
    for s, e, a, k in zip(starts, ends, axes, node.numbers(4, "steps", [1] * len(starts)), strict=True):
        huge = isinstance(e, int) and abs(e) >= 2**31 - 1
        at[a % x.ndim] = slice(s, None if huge and (e > 0) == (k > 0) else e, k)
    return x[tuple(at)]


def _split(node: Node, x: Tensor, _: Any = None) -> tuple[Tensor, ...]:
    axis, k = axis_of(node, x), len(node.proto.output)
    parts = node.numbers(1, "split")
    if parts is None:
        whole = -(-x.shape[axis] // k)
        parts = [*[whole] * (k - 1), x.shape[axis] - whole * (k - 1)]
    at, out = 0, []
    for n in parts:
        out.append(x[(slice(None),) * axis + (slice(at, at + n),)])
        at = at + n
    return tuple(out)


def _pad(node: Node, x: Tensor, *_: Any) -> Tensor:
    pads, mode, n = node.numbers(1, "pads"), node.get("mode", "constant"), x.ndim
    axes = node.numbers(3, default=range(n))
    widths: list[Any] = [(0, 0)] * n
    for k, a in enumerate(axes):
        widths[a % n] = pads[k], pads[k + len(axes)]
    cut = tuple(slice(max(0, -a) if isinstance(a, int) else 0, -max(0, -b) or None if isinstance(b, int) else None)
                for a, b in widths)
    widths = [tuple(max(0, w) if isinstance(w, int) else w for w in pair) for pair in widths]
    x = x[cut] if n else x
    if mode != "constant":
        return xp.pad(x, widths, mode={"reflect": "reflect", "edge": "edge", "wrap": "wrap"}[mode])
    fill = node.inputs[2] if len(node.inputs) > 2 and node.inputs[2] is not None else node.get("value", 0)
    number = node.graph.tensor(fill).astype(x.dtype).reshape(())
    low, high = zip(*widths, strict=True) if n else ((), ())
    return Tensor(lookup("pad")(x.value, number.value, low=tuple(map(as_size, low)), high=tuple(map(as_size, high)),
                                interior=(0,) * n))


def _flatten(node: Node, x: Tensor) -> Tensor:
    a = node.get("axis", 1)
    a = a + x.ndim if a < 0 else a
    return x.reshape((math.prod(x.shape[:a]), math.prod(x.shape[a:])))


def _gather_elements(node: Node, x: Tensor, i: Tensor) -> Tensor:
    return xp.take_along_axis(x, i, axis_of(node, x))


def _nd(node: Node, x: Tensor, i: Tensor) -> tuple[Any, ...]:
    if node.get("batch_dims", 0) or not isinstance(i.shape[-1], int):
        raise InputError("batches of index arrays are not read")
    return tuple(i[..., k] for k in range(i.shape[-1]))


def _put(node: Node, x: Tensor, at: Any, u: Tensor) -> Tensor:
    how = {"none": "set", "add": "add", "mul": "multiply", "max": "max", "min": "min"}[node.get("reduction", "none")]
    return getattr(x.at[at], how)(u)


def _scatter_elements(node: Node, x: Tensor, i: Tensor, u: Tensor) -> Tensor:
    axis = axis_of(node, x)
    own = [xp.arange(n).reshape((1,) * a + (-1,) + (1,) * (x.ndim - a - 1)) for a, n in enumerate(i.shape)]
    own[axis] = i
    return _put(node, x, tuple(own), u)


def _one_hot(node: Node, i: Tensor, _: Any, values: Tensor) -> Tensor:
    (depth,), axis = node.numbers(1), node.get("axis", -1)
    axis = axis + i.ndim + 1 if axis < 0 else axis
    i = xp.where(i < 0, i + depth, i)
    row = xp.arange(depth).reshape((1,) * axis + (-1,) + (1,) * (i.ndim - axis))
    return xp.where(xp.expand_dims(i, axis) == row, values[1], values[0])


def _trilu(node: Node, x: Tensor, k: Any = None) -> Tensor:
    n = node.numbers(1)[0] if k is not None else 0
    return xp.triu(x, n) if node.get("upper", 1) else xp.tril(x, n)


def _range(node: Node, *_: Any) -> Any:
    if not all(isinstance(x, np.ndarray) for x in node.inputs):
        raise InputError("a Range whose ends are data is not read")
    start, limit, step = (np.asarray(x).item() for x in node.inputs)
    return np.arange(start, limit, step).astype(np.asarray(node.inputs[0]).dtype)


def _constant_of_shape(node: Node, _: Any) -> Any:
    return filled(node, Sizes(node.numbers(0)))


def _shape(node: Node, _: Any) -> Sizes:
    shape = list(node.graph.tensor(node.inputs[0]).shape)
    return Sizes(shape[slice(node.get("start"), node.get("end"))])


# --- the table --------------------------------------------------------------------------------------------------------


def _constant(node: Node) -> Any:
    for name, kind in (("value_int", np.int64), ("value_ints", np.int64), ("value_float", np.float32),
                       ("value_floats", np.float32)):
        if name in node.attrs:
            return np.asarray(node.get(name), kind)
    return node.graph.array(node.attrs["value"].t)


def _fold(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda node, *xs: reduce(f, xs)


def _sum_of(f: Callable[[Tensor], Any], g: Callable[[Any], Any] = lambda y: y) -> Callable[..., Any]:
    return _reduction(lambda x, axes, keep: g(xp.sum(f(x), axis=axes, keepdims=keep)))


def _along(name: str) -> Callable[..., Any]:
    return lambda node, x: op_on(name, x, axes=(axis_of(node, x, -1),))


def _relu(x: Tensor) -> Tensor:
    return xp.maximum(x, 0)


#: Operators that see what is a number, or a size, as it is.
_RAW = frozenset(["Shape", "Size", "Loop"])
_GENERAL: dict[str, Callable[..., Any]] = {
    "Constant": _constant, "Shape": _shape,
    "Size": lambda node, x: Sizes([math.prod(node.graph.tensor(x).shape)], True),
    "Identity": lambda node, x: x, "Dropout": lambda node, x, *_: (x, xp.ones(x.shape, bool)),
    "Add": _fold(xp.add), "Sub": _fold(xp.subtract), "Mul": _fold(xp.multiply), "Div": _div,
    "Max": _fold(xp.maximum), "Min": _fold(xp.minimum), "Sum": _fold(xp.add),
    "Mean": lambda node, *xs: reduce(xp.add, xs) / len(xs), "Neg": lambda node, x: -x,
    "Mod": lambda node, a, b: xp.fmod(a, b) if node.get("fmod", 0) else a % b,
    "Pow": lambda node, a, b: xp.power(a, b.astype(a.dtype)).astype(a.dtype), "Reciprocal": lambda node, x: 1 / x,
    "And": _fold(xp.logical_and), "Or": _fold(xp.logical_or), "Xor": _fold(xp.logical_xor),
    "Not": lambda node, x: ~x, "BitwiseAnd": _fold(xp.bitwise_and), "BitwiseOr": _fold(xp.bitwise_or),
    "BitwiseXor": _fold(xp.bitwise_xor), "BitwiseNot": lambda node, x: ~x,
    "BitShift": lambda node, a, b: a << b if node.get("direction") == "LEFT" else a >> b,
    "Where": lambda node, c, x, y: xp.where(c, x, y), "IsInf": _isinf, "Sign": lambda node, x: xp.sign(x),
    "Cast": lambda node, x: x.astype(_dtype(node)), "CastLike": lambda node, x, y: x.astype(y.dtype),
    "Clip": _clip, "Relu": lambda node, x: _relu(x), "Gelu": _gelu,
    "LeakyRelu": lambda node, x: xp.where(x < 0, x * node.get("alpha", 0.01), x),
    "PRelu": lambda node, x, slope: xp.where(x < 0, x * slope, x),
    "Elu": lambda node, x: xp.where(x < 0, node.get("alpha", 1.0) * xp.expm1(xp.minimum(x, 0)), x),
    "Softplus": lambda node, x: op_on("softplus", x), "Softsign": lambda node, x: x / (1 + abs(x)),
    "HardSigmoid": lambda node, x: xp.clip(node.get("alpha", 0.2) * x + node.get("beta", 0.5), 0, 1),
    "HardSwish": lambda node, x: x * xp.clip(x / 6 + 0.5, 0, 1),
    "Softmax": _along("softmax"), "LogSoftmax": _along("log_softmax"),
    "ReduceSum": _sum_of(lambda x: x), "ReduceSumSquare": _sum_of(lambda x: x * x), "ReduceL1": _sum_of(abs),
    "ReduceL2": _sum_of(lambda x: x * x, xp.sqrt), "ReduceLogSum": _sum_of(lambda x: x, xp.log),
    "ReduceLogSumExp": _reduction(lambda x, axes, keep: xp.log(xp.sum(xp.exp(x), axis=axes, keepdims=keep))),
    "ReduceMean": _reduction(lambda x, axes, keep: xp.mean(x, axis=axes, keepdims=keep)),
    "ReduceProd": _reduction(lambda x, axes, keep: xp.prod(x, axis=axes, keepdims=keep)),
    "ReduceMax": _reduction(lambda x, axes, keep: xp.max(x, axis=axes, keepdims=keep)),
    "ReduceMin": _reduction(lambda x, axes, keep: xp.min(x, axis=axes, keepdims=keep)),
    "ArgMax": _place(xp.argmax), "ArgMin": _place(xp.argmin), "TopK": _topk, "CumSum": _cumsum,
    "MatMul": lambda node, a, b: a @ b, "Gemm": gemm,
    "Einsum": lambda node, *xs: xp.einsum(node.get("equation"), *xs),
    "Reshape": _reshape, "Flatten": _flatten, "Squeeze": _squeeze, "Expand": _expand, "Slice": _slice, "Split": _split,
    "Unsqueeze": lambda node, x, *_: xp.expand_dims(x, tuple(node.numbers(1, "axes"))),
    "Transpose": lambda node, x: xp.transpose(x, node.get("perm")),
    "Concat": lambda node, *xs: xp.concatenate(xs, axis_of(node, xs[0])),
    "Tile": lambda node, x, _: xp.tile(x, tuple(node.numbers(1))), "Pad": _pad,
    "Gather": lambda node, x, i: xp.take(x, i, axis=axis_of(node, x)), "GatherElements": _gather_elements,
    "GatherND": lambda node, x, i: x[_nd(node, x, i)],
    "ScatterND": lambda node, x, i, u: _put(node, x, _nd(node, x, i), u), "ScatterElements": _scatter_elements,
    "OneHot": _one_hot, "Trilu": _trilu, "Range": _range, "ConstantOfShape": _constant_of_shape,
    "Conv": conv, "ConvTranspose": conv_transpose, "MaxPool": pool(windows.max_pool),
    "AveragePool": pool(windows.avg_pool, count_include_pad=lambda node: bool(node.get("count_include_pad", 0))),
    "GlobalAveragePool": lambda node, x: over_axes(x, xp.mean),
    "GlobalMaxPool": lambda node, x: over_axes(x, xp.max),
    "BatchNormalization": batch_norm, "LayerNormalization": layer_norm, "InstanceNormalization": instance_norm,
    "LSTM": lstm, "If": if_node, "Scan": scan_node, "Loop": loop_node,
}  # fmt: skip
OPERATORS = Operators(_ELEMENTWISE, OF_SIZES, _GENERAL, _RAW)
