"""Spelling of ops in ONNX: the table of all that have a form there; others are made of these."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

import numpy as np

from symc.export.onnx_graph import I64, WIDE, Graph
from symc.export.onnx_loops import cond, conv, conv_filter, conv_input, max_pool, scan, while_
from symc.export.parts import IDENTITIES, has_no_nan, is_promised, parts_of, safe_divisor, widened
from symc.ir.dim import Size
from symc.ir.ops.compare import isnan
from symc.ir.ops.leaf import scalar
from symc.ir.ops.linalg import free_axes
from symc.ir.ops.reduce import all_, any_
from symc.ir.ops.shape import broadcast, pad, transpose
from symc.ir.types import DTYPES
from symc.ir.value import Value

Form = Callable[[Graph, Value], Any]


def spelled(g: Graph, v: Value) -> Any:
    """The name of a value; None for one to be taken apart."""
    name = v.op.name
    if name in OF_ANY_DTYPE:
        return OF_ANY_DTYPE[name](g, v)
    wide = widened(v, WIDE | U64 if name in OF_BITS else WIDE)
    if wide is not None:
        return g.value(wide)
    if name in PLAIN:
        return g.add(PLAIN[name], *_aligned(g, v))
    return FORMS[name](g, v) if name in FORMS else None


def _aligned(g: Graph, v: Value) -> list[str]:
    """Names of operands of an elementwise op: what is repeated is left to the op, unless all of them are."""
    repeated = [o.op is broadcast for o in v.operands]
    if all(repeated):
        k = max(range(len(repeated)), key=lambda i: v.operands[i].operands[0].ndim)
        repeated[k] = False
    return [_unrepeated(g, o) if r else g.known[o] for o, r in zip(v.operands, repeated, strict=True)]


def _unrepeated(g: Graph, o: Value) -> str:
    """A repeated value with axes of size 1 where it is repeated, but in front."""
    (x,), axes = o.operands, o.attrs["axes"]
    inner = g.value(x)
    if not axes or list(axes) == list(range(o.ndim - len(axes), o.ndim)):
        return inner
    return g.add("Unsqueeze", inner, g.ints(*[a - axes[0] for a in range(axes[0], o.ndim) if a not in axes]))


# --- leaves and elements ----------------------------------------------------------------------------------------------


def _iota(g: Graph, v: Value) -> str:
    axis, shape = v.attrs["axis"], v.shape
    row = g.add("Range", g.constant(0, I64), g.scalar(g.dim(shape[axis])), g.constant(1, I64))
    row = row if v.dtype == I64 else g.cast(row, v.dtype)
    if len(shape) == 1:
        return row
    if axis + 1 < len(shape):
        row = g.add("Unsqueeze", row, g.ints(*range(1, len(shape) - axis)))
    return g.add("Expand", row, g.shape(shape))


def _cast(g: Graph, v: Value) -> str:
    return g.cast(g.known[v.operands[0]], v.dtype)


def _logic(of_bool: str, of_bits: str) -> Form:
    return lambda g, v: g.add(of_bool if v.dtype.kind == "b" else of_bits, *_aligned(g, v))


def _where(g: Graph, v: Value) -> str:
    if v.dtype.kind == "b":
        c, x, y = g.names(v)
        return g.add("Or", g.add("And", c, x), g.add("And", g.add("Not", c), y))
    c, x, y = _aligned(g, v)
    wide = (WIDE | U64).get(v.dtype)
    if wide is None:
        return g.add("Where", c, x, y)
    return g.cast(g.add("Where", c, g.cast(x, wide), g.cast(y, wide)), v.dtype)


def _quotient(op: str, has_floats: bool = False, **attrs: Any) -> Form:
    """Quotients of floats that engines have, and of integers where the divisor is promised to be fine."""
    def form(g: Graph, v: Value) -> str | None:
        fine = has_floats if v.dtype.kind == "f" else is_promised(v.operands[1])
        return g.add(op, *g.names(v), **attrs) if fine else None

    return form


def _mod(g: Graph, v: Value) -> str | None:
    x, y = v.operands
    return g.add("Mod", g.known[x], g.value(safe_divisor(y)[0]), fmod=0) if v.dtype.kind != "f" else None


def _shift(way: str) -> Form:
    return lambda g, v: g.add("BitShift", *g.names(v), direction=way) if parts_of(v) is None else None


def _sign(g: Graph, v: Value) -> str:
    (x,) = g.names(v)
    return g.add("Sign", x) if v.dtype.kind != "f" else (
        g.add("Where", g.add("IsNaN", x), x, g.add("Sign", x)))


# --- movements --------------------------------------------------------------------------------------------------------


def _broadcast(g: Graph, v: Value) -> str:
    return g.add("Expand", _unrepeated(g, v), g.shape(v.shape))


def _reshape(g: Graph, v: Value) -> str:
    return g.add("Reshape", *g.names(v), g.shape(v.shape), allowzero=1)


def _slice(g: Graph, v: Value) -> str:
    """Slices that walk down are taken upwards, then turned: ends below 0 would count from the other side."""
    x, a = g.known[v.operands[0]], v.attrs
    axes = [k for k, (n, s, d) in enumerate(zip(v.operands[0].shape, v.shape, a["step"], strict=True))
            if not (d == 1 and n == s)]
    if not axes:
        return x
    step = [abs(a["step"][k]) for k in axes]
    low: list[Size] = [a["start"][k] + (v.shape[k] - 1) * min(a["step"][k], 0) for k in axes]
    x = g.add("Slice", x, g.shape(low), g.shape([s + v.shape[k] * d for s, k, d in zip(low, axes, step, strict=True)]),
              g.ints(*axes), g.ints(*step))
    down = [k for k in axes if a["step"][k] < 0]
    if down:
        last = np.iinfo(np.int64).min
        x = g.add("Slice", x, g.ints(*[-1] * len(down)), g.ints(*[last] * len(down)), g.ints(*down),
                  g.ints(*[-1] * len(down)))
    return x


def _pad(g: Graph, v: Value) -> str | None:
    if any(v.attrs["interior"]):
        return None
    x, fill = g.names(v)
    return g.add("Pad", x, g.shape((*v.attrs["low"], *v.attrs["high"])), fill)


def _indices(g: Graph, names: list[Value]) -> list[str]:
    return [g.known[i] if i.dtype == I64 else g.cast(g.known[i], I64) for i in names]


def _fronted(axes: tuple[int, ...], ndim: int) -> list[int]:
    return [*axes, *[a for a in range(ndim) if a not in axes]]


def _turned(g: Graph, x: str, perm: list[int]) -> str:
    return x if perm == sorted(perm) else g.add("Transpose", x, perm=perm)


def _stacked(g: Graph, indices: list[Value]) -> str:
    """Index arrays side by side along a last axis."""
    last = g.ints(indices[0].ndim)
    return g.add("Concat", *[g.add("Unsqueeze", i, last) for i in _indices(g, indices)], axis=indices[0].ndim)


def _gather(g: Graph, v: Value) -> str:
    x, *indices = v.operands
    axes = v.attrs["axes"]
    data = _turned(g, g.known[x], _fronted(axes, x.ndim))
    if len(axes) == 1:
        return g.add("Gather", data, *_indices(g, indices), axis=0)
    return g.add("GatherND", data, _stacked(g, indices))


def _scatter(g: Graph, v: Value) -> str | None:
    if parts_of(v) is not None:
        return None
    x, u, *indices = v.operands
    perm = _fronted(v.attrs["axes"], x.ndim)
    how = {} if v.attrs["mode"] == "set" else {"reduction": v.attrs["mode"]}
    out = g.add("ScatterND", _turned(g, g.known[x], perm), _stacked(g, indices), g.known[u], **how)
    return _turned(g, out, [perm.index(a) for a in range(x.ndim)])


# --- reductions and products ------------------------------------------------------------------------------------------


def _fold(op: str) -> Form:
    def form(g: Graph, v: Value) -> str:
        axes = v.attrs["axes"]
        if not axes:
            return g.known[v.operands[0]]
        return g.add(op, *g.names(v), g.ints(*axes), keepdims=0)

    return form


def _extreme(op: str) -> Form:
    """The extremum, and nan of floats with a nan, which engines may lose."""
    def form(g: Graph, v: Value) -> str:
        (x,), axes = v.operands, v.attrs["axes"]
        out = _fold(op)(g, v)
        if has_no_nan(x) or not axes:
            return out
        return g.add("Where", g.value(any_(isnan(x), axes=axes)), g.constant(np.nan, v.dtype), out)

    return form


def _sup(g: Graph, v: Value) -> str:
    """The lowest number is put in front of what may be empty."""
    (x,), axes = v.operands, v.attrs["axes"]
    if x.op is pad or all(isinstance(x.shape[a], int) and x.shape[a] for a in axes):
        return _extreme("ReduceMax")(g, v)
    one, none = tuple(int(a in axes) for a in range(x.ndim)), (0,) * x.ndim
    return g.value(v.op(pad(x, scalar(-np.inf, x.dtype), low=one, high=none, interior=none), axes=axes))


def _any(g: Graph, v: Value) -> str:
    """Count of what is true, or, for all, of what is not."""
    (x,), axes, of_all = g.names(v), v.attrs["axes"], v.op is all_
    if not axes:
        return x
    n = g.add("ReduceSum", g.cast(g.add("Not", x) if of_all else x, I64), g.ints(*axes), keepdims=0)
    return g.add("Equal" if of_all else "Greater", n, g.constant(0, I64))


def _place(op: str) -> Form:
    def form(g: Graph, v: Value) -> str | None:
        (x,) = v.operands
        return g.add(op, *g.names(v), axis=v.attrs["axes"][0], keepdims=0) if has_no_nan(x) else None

    return form


def _argsort(g: Graph, v: Value) -> str | None:
    x, axis = v.operands[0], v.attrs["axis"]
    if not has_no_nan(x):
        return None
    return g.add("TopK", g.known[x], g.dim(x.shape[axis]), axis=axis, largest=0, sorted=1, results=2)[1]


def _cumsum(g: Graph, v: Value) -> str:
    return g.add("CumSum", *g.names(v), g.constant(v.attrs["axis"], I64), reverse=int(v.attrs["reverse"]))


def _softmax(g: Graph, v: Value) -> str | None:
    """Along one axis. (Its logarithm is made of parts: engines make numbers of a nan.)"""
    axes = v.attrs["axes"]
    return g.add("Softmax", *g.names(v), axis=axes[0]) if len(axes) == 1 else None


def _dot(g: Graph, v: Value) -> str:
    a, b = v.operands
    contract, batch = v.attrs["contract"], v.attrs["batch"]
    free = [free_axes(x, contract[k], batch[k]) for k, x in enumerate((a, b))]
    x, y = g.names(v)
    count = [len(axes) for axes in free]
    if len(contract[0]) == 1 and not batch[0] and sorted(count) == [0, 1]:
        k = count.index(1)  # the matrix; no engine is given its transpose, which some take for that of the vector
        if (a, b)[k].op is not transpose:
            return g.add("MatMul", *((x, y) if k == 0 else (y, x))[:: 1 if free[k] == (0,) else -1])
    elif len(contract[0]) == 1 and count == [1, 1]:
        x = _turned(g, x, [*batch[0], *free[0], *contract[0]])
        y = _turned(g, y, [*batch[1], *contract[1], *free[1]])
        return g.add("MatMul", x, y)
    letters = string.ascii_letters
    left, right = letters[: a.ndim], list(letters[a.ndim : a.ndim + b.ndim])
    for i, j in zip(contract[0] + batch[0], contract[1] + batch[1], strict=True):
        right[j] = left[i]
    out = [left[i] for i in batch[0] + free[0]] + [right[j] for j in free[1]]
    return g.add("Einsum", x, y, equation=f"{left},{''.join(right)}->{''.join(out)}")


# --- the table --------------------------------------------------------------------------------------------------------

#: What u64 numbers are computed in where only bits count, as few engines know u64; and the ops of which that holds.
U64 = {DTYPES["u64"]: I64}
OF_BITS = frozenset(["add", "sub", "mul", "neg", "eq", "ne", "sum", "prod", "cumsum", "dot"])
#: Ops whose operands ONNX takes as they are, repeating those of size 1.
PLAIN = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "neg": "Neg", "abs": "Abs", "maximum": "Max",
    "minimum": "Min", "eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual",
    "isnan": "IsNaN", "isinf": "IsInf", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos",
    "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "tanh": "Tanh",
    "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh", "erf": "Erf", "sigmoid": "Sigmoid", "floor": "Floor",
    "ceil": "Ceil", "rint": "Round", "pow": "Pow",
}  # fmt: skip

#: Forms for every dtype.
OF_ANY_DTYPE: dict[str, Form] = {
    "constant": lambda g, v: g.constant(v.attrs["value"].data),
    "iota": _iota,
    "size": lambda g, v: g.scalar(g.dim(v.attrs["value"])),
    "cast": _cast,
    "and": _logic("And", "BitwiseAnd"), "or": _logic("Or", "BitwiseOr"), "xor": _logic("Xor", "BitwiseXor"),
    "not": _logic("Not", "BitwiseNot"),
    "where": _where,
    **dict.fromkeys(IDENTITIES, lambda g, v: g.known[v.operands[0]]),
    "broadcast": _broadcast, "reshape": _reshape, "slice": _slice, "gather": _gather,
    "transpose": lambda g, v: _turned(g, g.known[v.operands[0]], list(v.attrs["perm"])),
    "concat": lambda g, v: g.add("Concat", *g.names(v), axis=v.attrs["axis"]),
    "any": _any, "all": _any,
    "scan": scan, "while": while_, "cond": cond,
}  # fmt: skip

#: Forms for the dtypes in which engines compute.
FORMS: dict[str, Form] = {
    "sign": _sign, "mod": _mod, "fmod": _quotient("Mod", has_floats=True, fmod=1), "floordiv": _quotient("Div"),
    "shl": _shift("LEFT"), "shr": _shift("RIGHT"),
    "pad": _pad, "scatter": _scatter,
    "sum": _fold("ReduceSum"), "prod": _fold("ReduceProd"), "max": _extreme("ReduceMax"), "min": _extreme("ReduceMin"),
    "sup": _sup, "argmax": _place("ArgMax"), "argmin": _place("ArgMin"), "argsort": _argsort, "cumsum": _cumsum,
    "softmax": _softmax, "dot": _dot,
    "conv": conv, "conv_input": conv_input, "conv_filter": conv_filter, "max_pool": max_pool,
}  # fmt: skip
