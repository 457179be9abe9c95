"""Spelling of ops in StableHLO: the table of all that have a form there; others are made of these. A form is that for
sizes that are numbers, or its relative for sizes that are computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.export.parts import (
    first_place,
    has_no_nan,
    parts_of,
    running_sum,
    safe_divisor,
)
from symc.export.stablehlo_loops import array_attr, axes_attr, cond, gathered, is_static, names_of, scan, while_
from symc.export.stablehlo_module import Module, mlir_type
from symc.ir.op import Fold, lookup, splat
from symc.ir.ops.arithmetic import fmod, neg
from symc.ir.ops.compare import eq, lt, ne
from symc.ir.ops.control import BOOL
from symc.ir.ops.index import SCATTER_MODES
from symc.ir.ops.leaf import iota
from symc.ir.ops.logic import and_, where
from symc.ir.ops.reduce import identity
from symc.ir.ops.shape import slice_
from symc.ir.types import DTYPES, TensorType, TupleType
from symc.ir.value import Value

Form = Callable[[Module, Value], Any]
I64 = DTYPES["i64"]


def spelled(m: Module, v: Value) -> Any:
    """The name of a value; None for one to be taken apart."""
    for o in (v, *v.operands):
        if isinstance(o.type, TensorType) and o.dtype.kind == "c":
            raise m.refused("complex numbers", help="export the real and imaginary parts")
    name = v.op.name
    if name in PLAIN:
        return m.simple(PLAIN[name], names_of(m, v), v.type)
    if name in _COMPARISONS:
        return _compare(m, v, _COMPARISONS[name])
    return FORMS[name](m, v) if name in FORMS else None


def _types(v: Value) -> list[Any]:
    return [o.type for o in v.operands]


def _shape_type(v: Value) -> TensorType:
    return TensorType("i64", (v.ndim,))


def _identity(m: Module, v: Value) -> str:
    x, sizes = v.operands[0], [[n if isinstance(n, int) else None for n in o.shape] for o in (v.operands[0], v)]
    if sizes[0] == sizes[1]:
        return m.known[x]
    return m.op("dynamic_reshape", [m.known[x], m.shape(v.shape)], [x.type, _shape_type(v)], v.type)


# --- elements ---------------------------------------------------------------------------------------------------------


def _constant(m: Module, v: Value) -> str:
    return m.constant(v.attrs["value"].data)


def _iota(m: Module, v: Value) -> str:
    attr = f"iota_dimension = {v.attrs['axis']} : i64"
    t = v.type if v.dtype.kind != "b" else v.type.with_dtype("i32")
    out = m.op("iota", [], [], t, attr) if is_static(v.shape) else (
        m.op("dynamic_iota", [m.shape(v.shape)], [_shape_type(v)], t, attr))
    return out if t is v.type else m.op("convert", [out], [t], v.type)


def _size(m: Module, v: Value) -> str:
    return m.op("reshape", [m.dim(v.attrs["value"])], [TensorType("i64", (1,))], v.type)


def _compare(m: Module, v: Value, how: str) -> str:
    x, y = names_of(m, v)
    out, kind = m.fresh(), {"f": "FLOAT", "i": "SIGNED"}.get(v.operands[0].dtype.kind, "UNSIGNED")
    a, b = mlir_type(v.operands[0].type), mlir_type(v.type)
    m.line(f"{out} = stablehlo.compare {how}, {x}, {y}, {kind} : ({a}, {a}) -> {b}")
    return out


def _cast(m: Module, v: Value) -> str:
    (x,) = v.operands
    if v.dtype.kind == "b" and x.dtype.kind != "b":
        return m.value(ne(x, 0))
    return m.op("convert", names_of(m, v), _types(v), v.type)


def _isnan(m: Module, v: Value) -> str:
    return m.value(ne(v.operands[0], v.operands[0]))


def _isinf(m: Module, v: Value) -> str:
    return m.value(eq(lookup("abs")(v.operands[0]), np.inf))


def _isfinite(m: Module, v: Value) -> str:
    return m.op("is_finite", names_of(m, v), _types(v), v.type)


def _trunc(m: Module, v: Value) -> str:
    (x,) = v.operands
    return m.value(where(lt(x, 0), lookup("ceil")(x), lookup("floor")(x)))


def _pow(m: Module, v: Value) -> str:
    if v.dtype.kind != "f":
        raise m.refused("powers of integers", help="cast to float64, or multiply")
    return m.simple("power", names_of(m, v), v.type)


def _fmod(m: Module, v: Value) -> str:
    x, y = v.operands
    y = y if v.dtype.kind == "f" else safe_divisor(y)[0]
    return m.simple("remainder", [m.known[x], m.value(y)], v.type)


def _mod(m: Module, v: Value) -> str | None:
    if v.dtype.kind == "f":
        return None
    r, y = fmod(*v.operands), v.operands[1]
    return m.value(r if v.dtype.kind == "u" else where(and_(ne(r, 0), ne(lt(r, 0), lt(y, 0))), r + y, r))


def _floordiv(m: Module, v: Value) -> str | None:
    x, y = v.operands
    if v.dtype.kind == "f":
        return None
    d, odd = safe_divisor(y)
    q = m.simple("divide", [m.known[x], m.value(d)], v.type)
    if v.dtype.kind == "i":
        r = fmod(x, d)
        down = and_(ne(r, 0), ne(lt(r, 0), lt(d, 0)))
        q = m.simple("add", [q, m.value(where(down, splat(-1, v.type), splat(0, v.type)))], v.type)
        q = _select(m, odd, q, m.value(neg(x)), v.type)
    return _select(m, eq(y, 0), q, m.value(splat(0, v.type)), v.type)


def _select(m: Module, c: Value, otherwise: str, then: str, t: Any) -> str:
    return m.op("select", [m.value(c), then, otherwise], [c.type, t, t], t)


def _signless(otherwise: Callable[[Value], Value]) -> Form:
    """Forms that unsigned integers do not have."""
    def form(m: Module, v: Value) -> str:
        (x,) = v.operands
        return m.simple(v.op.name, names_of(m, v), v.type) if x.dtype.kind != "u" else m.value(otherwise(x))

    return form


def _shift(name: str) -> Form:
    def form(m: Module, v: Value) -> str | None:
        return m.simple(name, names_of(m, v), v.type) if parts_of(v) is None else None

    return form


def _where(m: Module, v: Value) -> str:
    return m.op("select", names_of(m, v), _types(v), v.type)


# --- movements --------------------------------------------------------------------------------------------------------


def _broadcast(m: Module, v: Value) -> str:
    attr = f"broadcast_dimensions = {array_attr(v.attrs['axes'])}"
    if is_static(v.shape):
        return m.op("broadcast_in_dim", names_of(m, v), _types(v), v.type, attr)
    sized = [*_types(v), _shape_type(v)]
    return m.op("dynamic_broadcast_in_dim", [*names_of(m, v), m.shape(v.shape)], sized, v.type, attr)


def _reshape(m: Module, v: Value) -> str:
    if is_static(v.shape):
        return m.op("reshape", names_of(m, v), _types(v), v.type)
    return m.op("dynamic_reshape", [*names_of(m, v), m.shape(v.shape)], [*_types(v), _shape_type(v)], v.type)


def _transpose(m: Module, v: Value) -> str:
    return m.op("transpose", names_of(m, v), _types(v), v.type, f"permutation = {array_attr(v.attrs['perm'])}")


def _slice(m: Module, v: Value) -> str:
    """Slices that walk down are taken upwards, then turned."""
    (x,), a = v.operands, v.attrs
    step = tuple(map(abs, a["step"]))
    low = tuple(s + (n - 1) * d if d < 0 else s for s, n, d in zip(a["start"], v.shape, a["step"], strict=True))
    down = [k for k, d in enumerate(a["step"]) if d < 0]
    if down:
        up = m.value(slice_(x, start=low, size=v.shape, step=step))
        return m.op("reverse", [up], [v.type], v.type, f"dimensions = {array_attr(down)}")
    end = tuple(s + (n - 1) * d + 1 if n != 0 else s for s, n, d in zip(low, v.shape, step, strict=True))
    if is_static(low, end, x.shape):
        attrs = f"start_indices = {array_attr(low)}, limit_indices = {array_attr(end)}, strides = {array_attr(step)}"
        return m.op("slice", names_of(m, v), _types(v), v.type, attrs)
    ends = [m.shape(low), m.shape(end), m.shape(step)]
    return m.op("real_dynamic_slice", [m.known[x], *ends], [x.type, *[_shape_type(v)] * 3], v.type)


def _pad(m: Module, v: Value) -> str:
    low, high, inner = (v.attrs[k] for k in ("low", "high", "interior"))
    if is_static(low, high, v.shape):
        attrs = (f"edge_padding_low = {array_attr(low)}, edge_padding_high = {array_attr(high)}, "
                 f"interior_padding = {array_attr(inner)}")
        return m.op("pad", names_of(m, v), _types(v), v.type, attrs)
    widths = [m.shape(low), m.shape(high), m.shape(inner)]
    return m.op("dynamic_pad", [*names_of(m, v), *widths], [*_types(v), *[_shape_type(v)] * 3], v.type)


def _concat(m: Module, v: Value) -> str:
    return m.op("concatenate", names_of(m, v), _types(v), v.type, f"dimension = {v.attrs['axis']} : i64")


def _stacked(m: Module, indices: Sequence[Value]) -> tuple[str, TensorType]:
    """Index arrays side by side along a last axis, and their type."""
    concat, cast, reshape = lookup("concat"), lookup("cast"), lookup("reshape")
    parts = [reshape(cast(i, dtype=I64), shape=(*i.shape, 1)) for i in indices]
    out = concat(*parts, axis=indices[0].ndim) if len(parts) > 1 else parts[0]
    return m.value(out), out.type


def _gather(m: Module, v: Value) -> str:
    x, *indices = v.operands
    if 0 in x.shape:
        return m.value(splat(0, v.type))
    return gathered(m, m.known[x], x.type, *_stacked(m, indices), v.attrs["axes"], v.type)


def _scatter(m: Module, v: Value) -> str | None:
    if parts_of(v) is not None:
        return None
    x, u, *indices = v.operands
    axes, depth, mode = v.attrs["axes"], indices[0].ndim, v.attrs["mode"]
    at, t = _stacked(m, indices)
    how = (f"scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = {axes_attr(range(depth, u.ndim))}, "
           f"inserted_window_dims = {axes_attr(axes)}, scatter_dims_to_operand_dims = {axes_attr(axes)}, "
           f"index_vector_dim = {depth}>, indices_are_sorted = false, unique_indices = false")
    body = _combiner(m, None if mode == "set" else SCATTER_MODES[mode], v.dtype)
    return m.op("scatter", [m.known[x], at, m.known[u]], [x.type, t, u.type], v.type, how, [body])


# --- reductions, sorts, products --------------------------------------------------------------------------------------


def _combiner(m: Module, kind: str | None, dtype: Any) -> list[str]:
    """The region that combines two numbers; without a kind it takes the second."""
    t = TensorType(dtype, ())
    a, b = m.fresh(), m.fresh()

    def make() -> Any:
        return [b if kind is None else m.simple(PLAIN[kind], [a, b], t)], [t]

    return m.body_lines([(a, t), (b, t)], make)


def _fold(m: Module, v: Value) -> str:
    (x,), lowering = v.operands, v.op.lowering
    assert isinstance(lowering, Fold)
    kind = lowering.kind
    if not v.attrs["axes"]:
        return m.known[x]
    start = m.constant(identity(kind, x.dtype))
    t = TensorType(x.dtype, ())
    return m.op("reduce", [m.known[x], start], [x.type, t], v.type, f"dimensions = {array_attr(v.attrs['axes'])}",
                [_combiner(m, kind, x.dtype)])


def _argmax(m: Module, v: Value) -> str | None:
    return m.value(first_place(v)) if has_no_nan(v.operands[0]) else None


def _argsort(m: Module, v: Value) -> str | None:
    (x,), axis = v.operands, v.attrs["axis"]
    if not has_no_nan(x):
        return None
    place = iota(shape=x.shape, axis=axis, dtype=I64)
    t, p = TensorType(x.dtype, ()), TensorType("i64", ())
    a, b, c, d = (m.fresh() for _ in range(4))

    def make() -> Any:
        out, kind = m.fresh(), {"f": "FLOAT", "i": "SIGNED"}.get(x.dtype.kind, "UNSIGNED")
        m.line(f"{out} = stablehlo.compare LT, {a}, {b}, {kind} : ({mlir_type(t)}, {mlir_type(t)}) -> tensor<i1>")
        return [out], [BOOL]

    lines = m.body_lines([(a, t), (b, t), (c, p), (d, p)], make)
    return m.op("sort", [m.known[x], m.value(place)], [x.type, place.type], TupleType([x.type, place.type]),
                f"dimension = {axis} : i64, is_stable = true", [lines])[1]


def _dot(m: Module, v: Value) -> str:
    (left, right), (a, b) = v.attrs["contract"], v.attrs["batch"]
    attrs = (f"dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = {axes_attr(a)}, "
             f"rhs_batching_dimensions = {axes_attr(b)}, lhs_contracting_dimensions = {axes_attr(left)}, "
             f"rhs_contracting_dimensions = {axes_attr(right)}>, "
             "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]")
    return m.op("dot_general", names_of(m, v), _types(v), v.type, attrs)


def _conv(m: Module, v: Value) -> str:
    a, k = v.attrs, len(v.attrs["stride"])
    space = ", ".join(map(str, range(k)))
    attrs = (f"batch_group_count = 1 : i64, feature_group_count = {a['groups']} : i64, dimension_numbers = "
             f"#stablehlo.conv<[b, f, {space}]x[o, i, {space}]->[b, f, {space}]>, "
             f"window_strides = {array_attr(a['stride'])}, rhs_dilation = {array_attr(a['dilation'])}")
    return m.op("convolution", names_of(m, v), _types(v), v.type, attrs)


# --- the table --------------------------------------------------------------------------------------------------------

#: Ops whose operands and result have one type.
PLAIN = {
    "add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "neg": "negate",
    "maximum": "maximum", "minimum": "minimum", "exp": "exponential", "log": "log", "sqrt": "sqrt", "sin": "sine",
    "cos": "cosine", "tan": "tan", "tanh": "tanh", "sigmoid": "logistic", "cbrt": "cbrt", "atan2": "atan2",
    "expm1": "exponential_minus_one", "log1p": "log_plus_one", "floor": "floor", "ceil": "ceil",
    "rint": "round_nearest_even", "and": "and", "or": "or", "xor": "xor", "not": "not",
    **{name: f"chlo.{name}" for name in ("asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erf",
                                         "erfc", "lgamma")}, "erfinv": "chlo.erf_inv",
}  # fmt: skip
_COMPARISONS = {"eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE"}

FORMS: dict[str, Form] = {
    "constant": _constant, "iota": _iota, "size": _size, "cast": _cast,
    "abs": _signless(lambda x: x), "sign": _signless(lambda x: lookup("minimum")(x, 1)),
    "isnan": _isnan, "isinf": _isinf, "isfinite": _isfinite, "trunc": _trunc, "pow": _pow, "fmod": _fmod, "mod": _mod,
    "floordiv": _floordiv, "shl": _shift("shift_left"), "shr": _shift("shift_right_logical"), "where": _where,
    **dict.fromkeys(["all_reduce", "assume", "ensure_shape", "grad_clip", "grad_scale", "stop_gradient"], _identity),
    "broadcast": _broadcast, "reshape": _reshape, "transpose": _transpose, "slice": _slice, "pad": _pad,
    "concat": _concat, "gather": _gather, "scatter": _scatter,
    **dict.fromkeys(["sum", "prod", "max", "min", "sup", "any", "all"], _fold),
    "argmax": _argmax, "argmin": _argmax, "argsort": _argsort,
    "cumsum": lambda m, v: m.value(running_sum(v)), "dot": _dot, "conv": _conv,
    "scan": scan, "while": while_, "cond": cond,
}  # fmt: skip
