"""Meaning of ONNX's operators: the graph of a model, run on symbolic values, node by node.

Shapes are lists of sizes (``Sizes``) as long as nodes only compute with sizes; everything else is a tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from symc import numpy_api as xp
from symc.errors import InputError, SymcError
from symc.export.onnx_file import onnx_package
from symc.export.onnx_ops import PLAIN
from symc.ir.op import lookup
from symc.ir.types import DTYPE_NAMES
from symc.nn import windows
from symc.tensors.convert import as_tensor
from symc.tensors.sizes import as_size, user_size
from symc.tensors.tensor import Tensor
from symc.transforms.control import cond, scan, while_loop


class Sizes(list):
    """Integers that are sizes, along an axis, or one scalar."""

    def __init__(self, items: Sequence[Any], scalar: bool = False):
        super().__init__(items)
        self.scalar = scalar


class Graph:
    """The nodes of one model."""

    def __init__(self, model: Any, where: str):
        self.where, self.onnx = where, onnx_package()

    def array(self, t: Any) -> np.ndarray:
        """A stored array, of a dtype that symc knows."""
        a = self.onnx.numpy_helper.to_array(t)
        if a.dtype not in DTYPE_NAMES:
            raise InputError(f"{self.where}: the array {t.name!r} has the dtype {a.dtype}")
        return a

    def tensor(self, x: Any) -> Tensor:
        """Sizes and arrays as data."""
        if isinstance(x, Sizes):
            parts = [as_tensor(s).astype("int64") for s in x]
            return parts[0] if x.scalar else xp.stack(parts) if parts else as_tensor(np.zeros(0, np.int64))
        return as_tensor(x)

    def run(self, graph: Any, values: Mapping[str, Any]) -> list[Any]:
        """The results of a graph; ``values`` are those around it."""
        known = {**values, **{t.name: self.array(t) for t in graph.initializer if t.name not in values}}
        for node in graph.node:
            at = Node(self, node, known)
            try:
                results = at.run()
            except SymcError as e:
                e.attach([(f"node {node.name or node.output[0]!r} ({node.op_type}) of {self.where}", None, None)], ())
                raise
            known.update(zip(node.output, results, strict=False))
        return [known[o.name] for o in graph.output]


class Node:
    """One node: its attributes, and its inputs as tensors or as numbers."""

    def __init__(self, graph: Graph, proto: Any, known: Mapping[str, Any]):
        self.graph, self.proto, self.known = graph, proto, known
        self.attrs = {a.name: a for a in proto.attribute}
        self.inputs = [known[n] if n else None for n in proto.input]

    def run(self) -> Sequence[Any]:
        """The results."""
        name = self.proto.op_type
        domain = self.proto.domain not in ("", "ai.onnx")
        if domain or name not in NODES and name not in _ELEMENTWISE:
            whole = f"{self.proto.domain}.{name}" if domain else name
            raise InputError(f"{self.graph.where}: node {self.proto.name or self.proto.output[0]!r} has the operator "
                             f"{whole}, which symc does not read",
                             help="docs/exporting.md says which it reads")
        out: Any = None
        if name in OF_SIZES:
            sizes = [self.sizes(k) for k in range(len(self.inputs))]
            if all(s is not None for s in sizes):
                out = OF_SIZES[name](self, *sizes)
        if out is None and name in _ELEMENTWISE:
            out = Tensor(_ELEMENTWISE[name](*[t.value for t in self.alike()]))
        elif out is None:
            out = NODES[name](self, *[None if x is None else x if name in RAW else self.graph.tensor(x)
                                      for x in self.inputs])
        return out if isinstance(out, tuple) else (out,)

    def alike(self) -> list[Tensor]:
        """The inputs in one shape."""
        return list(xp.broadcast_arrays(*[self.graph.tensor(x) for x in self.inputs]))

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute."""
        if name not in self.attrs:
            return default
        found = self.graph.onnx.helper.get_attribute_value(self.attrs[name])
        return found.decode() if isinstance(found, bytes) else found

    def sizes(self, k: int) -> Sizes | None:
        """Input k as sizes, if it is numbers, or made of sizes alone."""
        x = self.inputs[k] if k < len(self.inputs) else None
        if isinstance(x, np.ndarray) and x.ndim < 2 and x.dtype == np.int64 and x.size < 1000:
            return Sizes([int(n) for n in x.ravel()], x.ndim == 0)
        return x if isinstance(x, Sizes) else None

    def numbers(self, k: int, name: str = "", default: Any = None) -> Any:
        """Input k, or the attribute that had its place in older models, as a list of sizes."""
        if k >= len(self.inputs) or self.inputs[k] is None:
            return list(self.get(name, default)) if self.get(name, default) is not None else None
        found = self.sizes(k)
        if found is not None:
            return list(found)
        x = self.graph.tensor(self.inputs[k]).reshape(-1)
        if not isinstance(x.shape[0], int):
            raise InputError("numbers that are data say sizes, and how many there are is not known")
        return [user_size(as_size(x[i])) for i in range(x.shape[0])]

    def body(self, name: str) -> Any:
        return self.attrs[name].g


# --- sizes ------------------------------------------------------------------------------------------------------------


def _pairwise(f: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def run(node: Node, a: Sizes, b: Sizes) -> Sizes:
        n = max(len(a), len(b))
        one = lambda s: [s[0]] * n if len(s) == 1 else s
        return Sizes([f(x, y) for x, y in zip(one(a), one(b), strict=True)], a.scalar and b.scalar)

    return run


def _truncated(a: Any, b: Any) -> Any:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if isinstance(a, int) and isinstance(b, int) else a // b


def _extreme(f: Callable[..., Any], a: Any, b: Any) -> Any:
    return user_size(as_size(f(a, b)))


def _shape(node: Node, _: Any) -> Sizes:
    shape = list(node.graph.tensor(node.inputs[0]).shape)
    return Sizes(shape[slice(node.get("start"), node.get("end"))])


def _same(node: Node, *sizes: Sizes) -> Sizes:
    return sizes[0]


def _take_sizes(node: Node, data: Sizes, index: Sizes) -> Sizes | None:
    return Sizes([data[i] for i in index], index.scalar) if all(isinstance(i, int) for i in index) else None


def _slice_sizes(node: Node, data: Sizes, *rest: Sizes) -> Sizes | None:
    numbers = [r[0] for r in rest]
    if not all(isinstance(n, int) for n in numbers):
        return None
    start, end, step = numbers[0], numbers[1], numbers[3] if len(numbers) > 3 else 1
    return Sizes(data[start:end:step] if step > 0 or end > -(2**62) else data[start::step])


def _filled(node: Node, shape: Sizes) -> Any:
    value = node.graph.array(node.attrs["value"].t) if "value" in node.attrs else np.zeros(1, np.float32)
    if len(shape) == 1 and isinstance(shape[0], int) and value.dtype.kind in "iu":
        return Sizes([int(value.ravel()[0])] * shape[0])
    return xp.full(tuple(shape), value.ravel()[0], value.dtype)


def _arange(node: Node, start: Sizes, limit: Sizes, step: Sizes) -> Any:
    if all(isinstance(s[0], int) for s in (start, limit, step)):
        return np.arange(start[0], limit[0], step[0])
    return xp.arange(start[0], limit[0], step[0], dtype="int64")


def _range(node: Node, *_: Any) -> Any:
    if not all(isinstance(x, np.ndarray) for x in node.inputs):
        raise InputError("a Range whose ends are data is not read")
    start, limit, step = map(np.asarray, node.inputs)
    return np.arange(start[()], limit[()], step[()], dtype=start.dtype)


def _constant_of_shape(node: Node, _: Any) -> Any:
    return _filled(node, Sizes(node.numbers(0)))


#: What is computed with sizes; None where it is not, as these are data.
OF_SIZES: dict[str, Callable[..., Any]] = {
    "Add": _pairwise(lambda a, b: a + b), "Sub": _pairwise(lambda a, b: a - b), "Mul": _pairwise(lambda a, b: a * b),
    "Div": _pairwise(_truncated), "Mod": _pairwise(lambda a, b: a % b),
    "Min": _pairwise(lambda a, b: _extreme(xp.minimum, a, b)),
    "Max": _pairwise(lambda a, b: _extreme(xp.maximum, a, b)),
    "Concat": lambda node, *xs: Sizes([s for x in xs for s in x]),
    "Squeeze": lambda node, x, *_: Sizes(x, True), "Unsqueeze": lambda node, x, *_: Sizes(x) if x.scalar else None,
    "Identity": _same, "Cast": lambda node, x: x if node.get("to") == 7 else None,
    "Reshape": lambda node, x, shape: Sizes(x, not shape) if len(x) == 1 and len(shape) < 2 else None,
    "Gather": _take_sizes, "Slice": _slice_sizes, "ConstantOfShape": _filled, "Range": _arange,
}  # fmt: skip

# --- elements ---------------------------------------------------------------------------------------------------------

#: The operators that ``f.to_onnx`` writes as they are; but quotients of integers, extremes and remainders differ.
_ELEMENTWISE = {op: lookup(name) for name, op in PLAIN.items() if op not in ("Div", "Max", "Min", "IsInf", "Neg")}


def _div(node: Node, a: Tensor, b: Tensor) -> Tensor:
    if a.dtype.kind == "f":
        return a / b
    q, r = a // b, a % b
    return q if a.dtype.kind == "u" else xp.where((r != 0) & ((a < 0) != (b < 0)), q + 1, q)


def _isinf(node: Node, x: Tensor) -> Tensor:
    kept = x > 0 if not node.get("detect_negative", 1) else x < 0 if not node.get("detect_positive", 1) else True
    return xp.isinf(x) & kept


def _dtype(node: Node, name: str = "to") -> np.dtype:
    dtype = node.graph.onnx.helper.tensor_dtype_to_np_dtype(node.get(name, 1))
    if dtype not in DTYPE_NAMES:
        raise InputError(f"there is no dtype {dtype} in symc")
    return dtype


def _clip(node: Node, x: Tensor, low: Any = None, high: Any = None) -> Tensor:
    x = x if low is None else xp.maximum(x, low)
    return x if high is None else xp.minimum(x, high)


def _gelu(node: Node, x: Tensor) -> Tensor:
    if node.get("approximate", "none") == "tanh":
        return 0.5 * x * (1 + xp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + _op("erf", x * math.sqrt(0.5)))


def _op(name: str, x: Tensor, **attrs: Any) -> Tensor:
    return Tensor(lookup(name)(x.value, **attrs))


def _axis(node: Node, x: Tensor, default: int = 0, name: str = "axis") -> int:
    k = node.get(name, default)
    if not -x.ndim <= k < max(x.ndim, 1):
        raise InputError(f"the axis {k} is none of {x.ndim}")
    return k % x.ndim if x.ndim else 0


# --- reductions -------------------------------------------------------------------------------------------------------


def _reduction(f: Callable[..., Any]) -> Callable[..., Any]:
    def run(node: Node, x: Tensor, *_: Any) -> Tensor:
        axes = node.numbers(1, "axes")
        if not axes:
            if node.get("noop_with_empty_axes", 0):
                return x
            axes = range(x.ndim)
        y = f(x, tuple(sorted(a % x.ndim for a in axes)), bool(node.get("keepdims", 1)))
        return y.astype(x.dtype)

    return run


def _place(f: Callable[..., Any]) -> Callable[..., Any]:
    def run(node: Node, x: Tensor) -> Tensor:
        axis = _axis(node, x)
        last = node.get("select_last_index", 0)
        k = f(xp.flip(x, axis) if last else x, axis=axis, keepdims=bool(node.get("keepdims", 1)))
        return (x.shape[axis] - 1 - k if last else k).astype("int64")

    return run


def _topk(node: Node, x: Tensor, _: Any) -> tuple[Tensor, Tensor]:
    axis, k = _axis(node, x, -1), node.numbers(1)[0]
    if node.get("largest", 1):
        order = xp.flip(x.shape[axis] - 1 - xp.argsort(xp.flip(x, axis), axis, stable=True), axis)
    else:
        order = xp.argsort(x, axis, stable=True)
    order = order[(slice(None),) * axis + (slice(0, k),)]
    return xp.take_along_axis(x, order, axis), order


def _cumsum(node: Node, x: Tensor, axis: Any) -> Tensor:
    (a,) = node.numbers(1)
    back = bool(node.get("reverse", 0))
    y = _op("cumsum", x, axis=a % x.ndim, reverse=back)
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
    axis, k = _axis(node, x), len(node.proto.output)
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
    return xp.take_along_axis(x, i, _axis(node, x))


def _nd(node: Node, x: Tensor, i: Tensor) -> tuple[Any, ...]:
    if node.get("batch_dims", 0) or not isinstance(i.shape[-1], int):
        raise InputError("batches of index arrays are not read")
    return tuple(i[..., k] for k in range(i.shape[-1]))


def _put(node: Node, x: Tensor, at: Any, u: Tensor) -> Tensor:
    how = {"none": "set", "add": "add", "mul": "multiply", "max": "max", "min": "min"}[node.get("reduction", "none")]
    return getattr(x.at[at], how)(u)


def _scatter_elements(node: Node, x: Tensor, i: Tensor, u: Tensor) -> Tensor:
    axis = _axis(node, x)
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


# --- layers -----------------------------------------------------------------------------------------------------------


def _gemm(node: Node, a: Tensor, b: Tensor, c: Any = None) -> Tensor:
    y = (a.T if node.get("transA", 0) else a) @ (b.T if node.get("transB", 0) else b)
    y = y if node.get("alpha", 1.0) == 1 else y * node.get("alpha")
    return y if c is None else y + c * node.get("beta", 1.0) if node.get("beta", 1.0) != 1 else y + c


def _steps(node: Node, x: Tensor) -> dict[str, Any]:
    """Strides, dilations and padding as symc says them."""
    m, how = x.ndim - 2, node.get("auto_pad", "NOTSET")
    pads = node.get("pads", [0] * 2 * m)
    if how == "SAME_LOWER" or node.get("ceil_mode", 0):
        raise InputError("auto_pad SAME_LOWER, and windows that reach beyond the end (ceil_mode), are not read")
    padding: Any = {"SAME_UPPER": "same", "VALID": "valid"}.get(how, list(zip(pads[:m], pads[m:], strict=True)))
    return dict(stride=tuple(node.get("strides", [1] * m)), dilation=tuple(node.get("dilations", [1] * m)),
                padding=padding)


def _conv(node: Node, x: Tensor, w: Tensor, bias: Any = None) -> Tensor:
    return windows.conv(x, w, bias, groups=node.get("group", 1), **_steps(node, x))


def _conv_transpose(node: Node, x: Tensor, w: Tensor, bias: Any = None) -> Tensor:
    if "output_shape" in node.attrs or node.get("auto_pad", "NOTSET") != "NOTSET":
        raise InputError("output_shape and auto_pad of ConvTranspose are not read")
    steps = _steps(node, x)
    padding = steps.pop("padding")
    m, more = x.ndim - 2, node.get("output_padding", [0] * (x.ndim - 2))
    y = windows.conv_transpose(x, w, None, groups=node.get("group", 1), output_padding=tuple(more), **steps)
    y = y[(slice(None), slice(None), *[slice(a, n - b) for (a, b), n in zip(padding, y.shape[2:], strict=True)])]
    return y if bias is None else y + bias.reshape((-1,) + (1,) * m)


def _pool(f: Callable[..., Any], **more: Callable[[Node], Any]) -> Callable[..., Any]:
    def run(node: Node, x: Tensor) -> Tensor:
        if len(node.proto.output) > 1:
            raise InputError("the places of maxima are not read")
        steps = _steps(node, x)
        if f is windows.avg_pool and set(steps.pop("dilation")) != {1}:
            raise InputError("dilations of averages are not read")
        return f(x, tuple(node.get("kernel_shape")), **steps, **{k: v(node) for k, v in more.items()})

    return run


def _over_axes(x: Tensor, f: Callable[..., Any], first: int = 2) -> Tensor:
    return f(x, axis=tuple(range(first, x.ndim)), keepdims=True)


def _columns(t: Tensor, x: Tensor) -> Tensor:
    """One number for each channel."""
    return t.reshape((-1,) + (1,) * (x.ndim - 2))


def _batch_norm(node: Node, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor) -> Tensor:
    if node.get("training_mode", 0):
        raise InputError("training_mode of BatchNormalization is not read")
    s, b, m, v = (_columns(t, x) for t in (scale, bias, mean, var))
    return (x - m) / xp.sqrt(v + node.get("epsilon", 1e-5)) * s + b


def _normalized(x: Tensor, axes: tuple[int, ...], eps: float) -> Tensor:
    d = x - x.mean(axis=axes, keepdims=True)
    return d / xp.sqrt((d * d).mean(axis=axes, keepdims=True) + eps)


def _layer_norm(node: Node, x: Tensor, scale: Tensor, bias: Any = None) -> Tensor:
    y = _normalized(x, tuple(range(_axis(node, x, -1), x.ndim)), node.get("epsilon", 1e-5)) * scale
    return y if bias is None else y + bias


def _instance_norm(node: Node, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    y = _normalized(x, tuple(range(2, x.ndim)), node.get("epsilon", 1e-5))
    return y * _columns(scale, x) + _columns(bias, x)


def _lstm(node: Node, x: Tensor, w: Tensor, r: Tensor, b: Any = None, lengths: Any = None, h: Any = None,
          c: Any = None, peep: Any = None) -> tuple[Tensor, ...]:
    """One direction, with the usual functions. Gates are in the order input, output, forget, cell."""
    own = {"hidden_size", "direction", "layout"}
    if set(node.attrs) - own or node.get("direction", "forward") != "forward" or node.get("layout", 0) or (
            lengths is not None or peep is not None):
        raise InputError("of LSTM, one direction forward with the usual functions is read")
    n = node.get("hidden_size")
    zeros = xp.zeros((x.shape[1], n), x.dtype)
    start = [zeros if s is None else s[0] for s in (h, c)]
    bias = 0 if b is None else b[0, : 4 * n] + b[0, 4 * n :]

    def step(carry: Any, row: Any) -> Any:
        gates = row @ w[0].T + carry[0] @ r[0].T + bias
        i, o, f = (_op("sigmoid", gates[:, k * n : (k + 1) * n]) for k in range(3))
        cell = f * carry[1] + i * xp.tanh(gates[:, 3 * n :])
        hidden = o * xp.tanh(cell)
        return [hidden, cell], hidden

    (last, cell), ys = scan(step, start, x)
    return ys[:, None], last[None], cell[None]


# --- loops and branches -----------------------------------------------------------------------------------------------


def _if(node: Node, test: Tensor) -> Any:
    bodies = [node.body("then_branch"), node.body("else_branch")]
    run = lambda g: lambda: [node.graph.tensor(r) for r in node.graph.run(g, node.known)]
    return tuple(cond(test.reshape(()), *map(run, bodies)))


def _scan(node: Node, *xs: Tensor) -> Any:
    body, rows = node.body("body"), node.get("num_scan_inputs")
    m, names = len(xs) - rows, [i.name for i in body.input]
    back_in = node.get("scan_input_directions", [0] * rows)
    ys = len(body.output) - m
    back_out = node.get("scan_output_directions", [0] * ys)
    if {*node.get("scan_input_axes", [0]), *node.get("scan_output_axes", [0])} != {0}:
        raise InputError("a Scan over other axes than the first is not read")
    reverse = set(back_in) == {1} and set(back_out) <= {1}

    def step(carry: Any, row: Any) -> Any:
        found = node.graph.run(body, {**node.known, **dict(zip(names, [*carry, *row], strict=True))})
        tensors = [node.graph.tensor(r) for r in found]
        return tensors[:m], tensors[m:]

    turned = [xp.flip(x, 0) if d and not reverse else x for x, d in zip(xs[m:], back_in, strict=True)]
    last, out = scan(step, list(xs[:m]), turned, reverse=reverse)
    return (*last, *[xp.flip(y, 0) if d and not reverse else y for y, d in zip(out, back_out, strict=True)])


def _loop(node: Node, most: Any, test: Any, *xs: Any) -> Any:
    """A count of steps is a scan; a condition is a while loop, which stacks nothing."""
    body = node.body("body")
    step_name, test_name, *names = [i.name for i in body.input]
    tensors = [node.graph.tensor(x) for x in xs]
    m = len(xs)

    def run(k: Any, going: Any, carry: Sequence[Any]) -> list[Any]:
        known = {**node.known, step_name: k, test_name: going, **dict(zip(names, carry, strict=True))}
        return [node.graph.tensor(r) for r in node.graph.run(body, known)]

    always = (test is None or isinstance(test, np.ndarray) and bool(test)) and _goes_on(body, test_name)
    limit = None if most is None else node.numbers(0)[0]
    if always and limit is not None:
        last, ys = scan(lambda c, k: (lambda out: (out[1 : m + 1], out[m + 1 :]))(run(k, True, c)), tensors,
                        xp.arange(limit, dtype="int64"))
        return (*last, *ys)
    if len(body.output) > m + 1:
        raise InputError("a Loop with a condition that stacks values is not read")
    start = [as_tensor(np.int64(0)), as_tensor(True if test is None else test).reshape(()), *tensors]

    def step(state: Any) -> Any:
        out = run(state[0], state[1], state[2:])
        return [state[0] + 1, out[0].reshape(()), *out[1:]]

    found = while_loop(lambda s: s[1], step, start, max_steps=limit)
    return tuple(found[2:])


def _goes_on(body: Any, test: str) -> bool:
    """True if a body gives its condition back, or a constant that is true."""
    made = {o: n for n in body.node for o in n.output}
    constants = {t.name: t for t in body.initializer}
    name = body.output[0].name
    while name in made and made[name].op_type == "Identity":
        name = made[name].input[0]
    if name in made and made[name].op_type == "Constant":
        return any(a.HasField("t") and bool(onnx_package().numpy_helper.to_array(a.t)) for a in made[name].attribute)
    return name == test or name in constants and bool(onnx_package().numpy_helper.to_array(constants[name]))


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
    return lambda node, x: _op(name, x, axes=(_axis(node, x, -1),))


def _relu(x: Tensor) -> Tensor:
    return xp.maximum(x, 0)


#: Operators that see what is a number, or a size, as it is.
RAW = frozenset(["Shape", "Size", "Loop"])
NODES: dict[str, Callable[..., Any]] = {
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
    "Softplus": lambda node, x: _op("softplus", x), "Softsign": lambda node, x: x / (1 + abs(x)),
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
    "MatMul": lambda node, a, b: a @ b, "Gemm": _gemm,
    "Einsum": lambda node, *xs: xp.einsum(node.get("equation"), *xs),
    "Reshape": _reshape, "Flatten": _flatten, "Squeeze": _squeeze, "Expand": _expand, "Slice": _slice, "Split": _split,
    "Unsqueeze": lambda node, x, *_: xp.expand_dims(x, tuple(node.numbers(1, "axes"))),
    "Transpose": lambda node, x: xp.transpose(x, node.get("perm")),
    "Concat": lambda node, *xs: xp.concatenate(xs, _axis(node, xs[0])),
    "Tile": lambda node, x, _: xp.tile(x, tuple(node.numbers(1))), "Pad": _pad,
    "Gather": lambda node, x, i: xp.take(x, i, axis=_axis(node, x)), "GatherElements": _gather_elements,
    "GatherND": lambda node, x, i: x[_nd(node, x, i)],
    "ScatterND": lambda node, x, i, u: _put(node, x, _nd(node, x, i), u), "ScatterElements": _scatter_elements,
    "OneHot": _one_hot, "Trilu": _trilu, "Range": _range, "ConstantOfShape": _constant_of_shape,
    "Conv": _conv, "ConvTranspose": _conv_transpose, "MaxPool": _pool(windows.max_pool),
    "AveragePool": _pool(windows.avg_pool, count_include_pad=lambda node: bool(node.get("count_include_pad", 0))),
    "GlobalAveragePool": lambda node, x: _over_axes(x, xp.mean),
    "GlobalMaxPool": lambda node, x: _over_axes(x, xp.max),
    "BatchNormalization": _batch_norm, "LayerNormalization": _layer_norm, "InstanceNormalization": _instance_norm,
    "LSTM": _lstm, "If": _if, "Scan": _scan, "Loop": _loop,
}  # fmt: skip
