"""Spelling of ops in StableHLO: the table of all that have a form there; others are made of these. A form is that for
sizes that are numbers, or its relative for sizes that are computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from symc.export.parts import (
    first_place,
    has_no_nan,
    parts_of,
    running_sum,
    safe_divisor,
)
from symc.ir.op import lookup, splat
from symc.ir.ops.arithmetic import fmod, neg
from symc.ir.ops.compare import eq, lt, ne
from symc.ir.ops.control import BOOL, COUNT
from symc.ir.ops.index import SCATTER_MODES
from symc.ir.ops.leaf import iota, scalar
from symc.ir.ops.logic import and_, where
from symc.ir.ops.reduce import identity
from symc.ir.ops.shape import slice_
from symc.ir.types import DTYPES, TensorType, TupleType
from symc.ir.value import Value

if TYPE_CHECKING:
    from symc.export.stablehlo import Module

Form = Callable[["Module", Value], Any]
I64 = DTYPES["i64"]


def spelled(m: Module, v: Value) -> Any:
    """The name of a value; None for one to be taken apart."""
    for o in (v, *v.operands):
        if isinstance(o.type, TensorType) and o.dtype.kind == "c":
            raise m.refused("complex numbers", help="export the real and imaginary parts")
    name = v.op.name
    if name in PLAIN:
        return m.simple(PLAIN[name], _names(m, v), v.type)
    if name in _COMPARISONS:
        return _compare(m, v, _COMPARISONS[name])
    return FORMS[name](m, v) if name in FORMS else None


def _names(m: Module, v: Value) -> list[str]:
    return [m.known[o] for o in v.operands]


def _types(v: Value) -> list[Any]:
    return [o.type for o in v.operands]


def _is_static(*shapes: Sequence[Any]) -> bool:
    return all(isinstance(s, int) for shape in shapes for s in shape)


def _list(numbers: Sequence[Any]) -> str:
    return f"array<i64{': ' if numbers else ''}{', '.join(map(str, numbers))}>"


def _axes(numbers: Sequence[int]) -> str:
    return f"[{', '.join(map(str, numbers))}]"


def _shape_type(v: Value) -> TensorType:
    return TensorType("i64", (v.ndim,))


def _identity(m: Module, v: Value) -> str:
    return m.known[v.operands[0]]


# --- elements ---------------------------------------------------------------------------------------------------------


def _constant(m: Module, v: Value) -> str:
    return m.constant(v.attrs["value"].data)


def _iota(m: Module, v: Value) -> str:
    attr = f"iota_dimension = {v.attrs['axis']} : i64"
    t = v.type if v.dtype.kind != "b" else v.type.with_dtype("i32")
    out = m.op("iota", [], [], t, attr) if _is_static(v.shape) else (
        m.op("dynamic_iota", [m.shape(v.shape)], [_shape_type(v)], t, attr))
    return out if t is v.type else m.op("convert", [out], [t], v.type)


def _size(m: Module, v: Value) -> str:
    return m.op("reshape", [m.dim(v.attrs["value"])], [TensorType("i64", (1,))], v.type)


def _compare(m: Module, v: Value, how: str) -> str:
    x, y = _names(m, v)
    out, kind = m.fresh(), {"f": "FLOAT", "i": "SIGNED"}.get(v.operands[0].dtype.kind, "UNSIGNED")
    a, b = m.mlir(v.operands[0].type), m.mlir(v.type)
    m.line(f"{out} = stablehlo.compare {how}, {x}, {y}, {kind} : ({a}, {a}) -> {b}")
    return out


def _cast(m: Module, v: Value) -> str:
    (x,) = v.operands
    if v.dtype.kind == "b" and x.dtype.kind != "b":
        return m.value(ne(x, 0))
    return m.op("convert", _names(m, v), _types(v), v.type)


def _isnan(m: Module, v: Value) -> str:
    return m.value(ne(v.operands[0], v.operands[0]))


def _isinf(m: Module, v: Value) -> str:
    return m.value(eq(lookup("abs")(v.operands[0]), np.inf))


def _isfinite(m: Module, v: Value) -> str:
    return m.op("is_finite", _names(m, v), _types(v), v.type)


def _trunc(m: Module, v: Value) -> str:
    (x,) = v.operands
    return m.value(where(lt(x, 0), lookup("ceil")(x), lookup("floor")(x)))


def _pow(m: Module, v: Value) -> str:
    if v.dtype.kind != "f":
        raise m.refused("powers of integers", help="cast to float64, or multiply")
    return m.simple("power", _names(m, v), v.type)


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


def _shift(name: str) -> Form:
    def form(m: Module, v: Value) -> str | None:
        return m.simple(name, _names(m, v), v.type) if parts_of(v) is None else None

    return form


def _where(m: Module, v: Value) -> str:
    return m.op("select", _names(m, v), _types(v), v.type)


# --- movements --------------------------------------------------------------------------------------------------------


def _broadcast(m: Module, v: Value) -> str:
    attr = f"broadcast_dimensions = {_list(v.attrs['axes'])}"
    if _is_static(v.shape):
        return m.op("broadcast_in_dim", _names(m, v), _types(v), v.type, attr)
    sized = [*_types(v), _shape_type(v)]
    return m.op("dynamic_broadcast_in_dim", [*_names(m, v), m.shape(v.shape)], sized, v.type, attr)


def _reshape(m: Module, v: Value) -> str:
    if _is_static(v.shape):
        return m.op("reshape", _names(m, v), _types(v), v.type)
    return m.op("dynamic_reshape", [*_names(m, v), m.shape(v.shape)], [*_types(v), _shape_type(v)], v.type)


def _transpose(m: Module, v: Value) -> str:
    return m.op("transpose", _names(m, v), _types(v), v.type, f"permutation = {_list(v.attrs['perm'])}")


def _slice(m: Module, v: Value) -> str:
    """What is walked down is taken upwards, then turned."""
    (x,), a = v.operands, v.attrs
    step = tuple(map(abs, a["step"]))
    low = tuple(s + (n - 1) * d if d < 0 else s for s, n, d in zip(a["start"], v.shape, a["step"], strict=True))
    down = [k for k, d in enumerate(a["step"]) if d < 0]
    if down:
        up = m.value(slice_(x, start=low, size=v.shape, step=step))
        return m.op("reverse", [up], [v.type], v.type, f"dimensions = {_list(down)}")
    end = tuple(s + (n - 1) * d + 1 if n != 0 else s for s, n, d in zip(low, v.shape, step, strict=True))
    if _is_static(low, end, x.shape):
        attrs = f"start_indices = {_list(low)}, limit_indices = {_list(end)}, strides = {_list(step)}"
        return m.op("slice", _names(m, v), _types(v), v.type, attrs)
    ends = [m.shape(low), m.shape(end), m.shape(step)]
    return m.op("real_dynamic_slice", [m.known[x], *ends], [x.type, *[_shape_type(v)] * 3], v.type)


def _pad(m: Module, v: Value) -> str:
    low, high, inner = (v.attrs[k] for k in ("low", "high", "interior"))
    if _is_static(low, high, v.shape):
        attrs = (f"edge_padding_low = {_list(low)}, edge_padding_high = {_list(high)}, "
                 f"interior_padding = {_list(inner)}")
        return m.op("pad", _names(m, v), _types(v), v.type, attrs)
    widths = [m.shape(low), m.shape(high), m.shape(inner)]
    return m.op("dynamic_pad", [*_names(m, v), *widths], [*_types(v), *[_shape_type(v)] * 3], v.type)


def _concat(m: Module, v: Value) -> str:
    return m.op("concatenate", _names(m, v), _types(v), v.type, f"dimension = {v.attrs['axis']} : i64")


def _stacked(m: Module, indices: Sequence[Value]) -> tuple[str, TensorType]:
    """Index arrays side by side along a last axis, and their type."""
    concat, cast, reshape = lookup("concat"), lookup("cast"), lookup("reshape")
    parts = [reshape(cast(i, dtype=I64), shape=(*i.shape, 1)) for i in indices]
    out = concat(*parts, axis=indices[0].ndim) if len(parts) > 1 else parts[0]
    return m.value(out), out.type


def _gather(m: Module, v: Value) -> str:
    x, *indices = v.operands
    axes, depth = v.attrs["axes"], indices[0].ndim
    at, t = _stacked(m, indices)
    how = (f"dimension_numbers = #stablehlo.gather<offset_dims = {_axes(range(depth, v.ndim))}, "
           f"collapsed_slice_dims = {_axes(axes)}, start_index_map = {_axes(axes)}, index_vector_dim = {depth}>, "
           "indices_are_sorted = false")
    sizes = [1 if a in axes else s for a, s in enumerate(x.shape)]
    if _is_static(sizes):
        return m.op("gather", [m.known[x], at], [x.type, t], v.type, f"{how}, slice_sizes = {_list(sizes)}")
    given = [x.type, t, TensorType("i64", (x.ndim,))]
    return m.op("dynamic_gather", [m.known[x], at, m.shape(sizes)], given, v.type, how)


def _scatter(m: Module, v: Value) -> str | None:
    if parts_of(v) is not None:
        return None
    x, u, *indices = v.operands
    axes, depth, mode = v.attrs["axes"], indices[0].ndim, v.attrs["mode"]
    at, t = _stacked(m, indices)
    how = (f"scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = {_axes(range(depth, u.ndim))}, "
           f"inserted_window_dims = {_axes(axes)}, scatter_dims_to_operand_dims = {_axes(axes)}, "
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
    (x,), kind = v.operands, v.op.lowering.kind  # type: ignore[union-attr]
    if not v.attrs["axes"]:
        return m.known[x]
    start = m.constant(identity(kind, x.dtype))
    t = TensorType(x.dtype, ())
    return m.op("reduce", [m.known[x], start], [x.type, t], v.type, f"dimensions = {_list(v.attrs['axes'])}",
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
        m.line(f"{out} = stablehlo.compare LT, {a}, {b}, {kind} : ({m.mlir(t)}, {m.mlir(t)}) -> tensor<i1>")
        return [out], [BOOL]

    lines = m.body_lines([(a, t), (b, t), (c, p), (d, p)], make)
    return m.op("sort", [m.known[x], m.value(place)], [x.type, place.type], TupleType([x.type, place.type]),
                f"dimension = {axis} : i64, is_stable = true", [lines])[1]


def _dot(m: Module, v: Value) -> str:
    (left, right), (a, b) = v.attrs["contract"], v.attrs["batch"]
    attrs = (f"dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = {_axes(a)}, "
             f"rhs_batching_dimensions = {_axes(b)}, lhs_contracting_dimensions = {_axes(left)}, "
             f"rhs_contracting_dimensions = {_axes(right)}>, "
             "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]")
    return m.op("dot_general", _names(m, v), _types(v), v.type, attrs)


def _conv(m: Module, v: Value) -> str:
    a, k = v.attrs, len(v.attrs["stride"])
    space = ", ".join(map(str, range(k)))
    attrs = (f"batch_group_count = 1 : i64, feature_group_count = {a['groups']} : i64, dimension_numbers = "
             f"#stablehlo.conv<[b, f, {space}]x[o, i, {space}]->[b, f, {space}]>, "
             f"window_strides = {_list(a['stride'])}, rhs_dilation = {_list(a['dilation'])}")
    return m.op("convolution", _names(m, v), _types(v), v.type, attrs)


# --- loops and branches -----------------------------------------------------------------------------------------------


def _loop(m: Module, starts: Sequence[str], of: Sequence[Any], test: Callable[[list[str]], str],
          step: Callable[[list[str]], list[str]]) -> list[str]:
    """A while loop over values."""
    regions = []
    for make, result in ((lambda names: [test(names)], [BOOL]), (step, of)):
        names = [m.fresh() for _ in of]
        regions.append(m.body_lines(list(zip(names, of, strict=True)), lambda: (make(names), result)))  # noqa: B023
    found = m.op("while", starts, of, TupleType(of), "", regions)
    return found


def _less(m: Module, a: str, b: str) -> str:
    out = m.fresh()
    m.line(f"{out} = stablehlo.compare LT, {a}, {b}, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>")
    return out


def _scan(m: Module, v: Value) -> Any:
    """A while loop with a count; rows are read, and results written, at the place of the step."""
    (region,), a = v.regions, v.attrs
    c, k, n = a["carry"], a["xs"], a["length"]
    names, several = _names(m, v), isinstance(v.type, TupleType)
    results = list(v.type.items) if several else [v.type]
    stacks = results[c:]
    of = [COUNT, *region.params[:c], *stacks]
    starts = [m.value(scalar(0, I64)), *names[:c], *[m.value(splat(0, t)) for t in stacks]]
    end = m.value(lookup("size")(value=n))

    def step(now: list[str]) -> list[str]:
        at = now[0]
        if a["reverse"]:
            last = m.simple("subtract", [end, m.constant(1, I64)], COUNT)
            at = m.simple("subtract", [last, at], COUNT)
        rows = [_row(m, names[c + j], v.operands[c + j].type, region.params[c + j], at) for j in range(k)]
        new = m.within(region, [*now[1 : c + 1], *rows, *names[c + k :]])
        ys = [_put_row(m, old, t, y, at) for old, t, y in zip(now[c + 1 :], stacks, new[c:], strict=True)]
        return [m.simple("add", [now[0], m.constant(1, I64)], COUNT), *new[:c], *ys]

    found = _loop(m, starts, of, lambda now: _less(m, now[0], end), step)[1:]
    return found if several else found[0]


def _row(m: Module, x: str, t: TensorType, row: Any, at: str) -> str:
    """Row ``at`` of an array."""
    where_ = m.op("reshape", [at], [COUNT], TensorType("i64", (1,)))
    how = (f"dimension_numbers = #stablehlo.gather<offset_dims = {_axes(range(row.ndim))}, collapsed_slice_dims = [0], "
           "start_index_map = [0], index_vector_dim = 0>, indices_are_sorted = false")
    sizes = (1, *row.shape)
    if _is_static(sizes):
        return m.op("gather", [x, where_], [t, TensorType("i64", (1,))], row, f"{how}, slice_sizes = {_list(sizes)}")
    return m.op("dynamic_gather", [x, where_, m.shape(sizes)],
                [t, TensorType("i64", (1,)), TensorType("i64", (t.ndim,))], row, how)


def _put_row(m: Module, x: str, t: TensorType, y: str, at: str) -> str:
    """An array with another row ``at``."""
    one, row = TensorType(t.dtype, (1, *t.shape[1:])), TensorType(t.dtype, t.shape[1:])
    if _is_static(one.shape):
        y = m.op("reshape", [y], [row], one)
    else:
        y = m.op("dynamic_reshape", [y, m.shape(one.shape)], [row, TensorType("i64", (t.ndim,))], one)
    zeros = [m.constant(0, I64)] * (t.ndim - 1)
    return m.op("dynamic_update_slice", [x, y, at, *zeros], [t, one, *[COUNT] * t.ndim], t)


def _while(m: Module, v: Value) -> Any:
    test, region = v.regions
    c, limit = v.attrs["carry"], v.attrs["max_steps"]
    names = _names(m, v)
    of = [*region.params[:c], COUNT]

    def going(now: list[str]) -> str:
        out = m.within(test, [*now[:c], *names[c:]])[0]
        if limit is None:
            return out
        return m.simple("and", [out, _less(m, now[c], m.value(lookup("size")(value=limit)))], BOOL)

    def step(now: list[str]) -> list[str]:
        count = m.simple("add", [now[c], m.constant(1, I64)], COUNT)
        return [*m.within(region, [*now[:c], *names[c:]]), count]

    found = _loop(m, [*names[:c], m.value(scalar(0, I64))], of, going, step)
    return found if c else found[0]


def _cond(m: Module, v: Value) -> Any:
    which, *names = _names(m, v)
    results = [r.type for r in v.regions[0].results]
    bodies = [m.body_lines([], lambda: (m.within(r, names), results)) for r in v.regions]  # noqa: B023
    if v.operands[0].type is BOOL:
        found = m.op("if", [which], [BOOL], TupleType(results), "", bodies)
    else:
        low, high = m.constant(0, I64), m.constant(len(bodies) - 1, I64)
        i = m.op("clamp", [low, which, high], [COUNT] * 3, COUNT)
        i32 = TensorType("i32", ())
        found = m.op("case", [m.op("convert", [i], [COUNT], i32)], [i32], TupleType(results), "", bodies)
    return found if isinstance(v.type, TupleType) else found[0]


# --- the table --------------------------------------------------------------------------------------------------------

#: Ops whose operands and result have one type.
PLAIN = {
    "add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "neg": "negate", "abs": "abs",
    "maximum": "maximum", "minimum": "minimum", "exp": "exponential", "log": "log", "sqrt": "sqrt", "sin": "sine",
    "cos": "cosine", "tan": "tan", "tanh": "tanh", "sigmoid": "logistic", "cbrt": "cbrt", "atan2": "atan2",
    "expm1": "exponential_minus_one", "log1p": "log_plus_one", "floor": "floor", "ceil": "ceil", "sign": "sign",
    "rint": "round_nearest_even", "and": "and", "or": "or", "xor": "xor", "not": "not",
    **{name: f"chlo.{name}" for name in ("asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erf",
                                         "erfc", "lgamma", "digamma")}, "erfinv": "chlo.erf_inv",
}  # fmt: skip
_COMPARISONS = {"eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE"}

FORMS: dict[str, Form] = {
    "constant": _constant, "iota": _iota, "size": _size, "cast": _cast,
    "isnan": _isnan, "isinf": _isinf, "isfinite": _isfinite, "trunc": _trunc, "pow": _pow, "fmod": _fmod, "mod": _mod,
    "floordiv": _floordiv, "shl": _shift("shift_left"), "shr": _shift("shift_right_logical"), "where": _where,
    **dict.fromkeys(["all_reduce", "assume", "ensure_shape", "grad_clip", "grad_scale", "stop_gradient"], _identity),
    "broadcast": _broadcast, "reshape": _reshape, "transpose": _transpose, "slice": _slice, "pad": _pad,
    "concat": _concat, "gather": _gather, "scatter": _scatter,
    **dict.fromkeys(["sum", "prod", "max", "min", "sup", "any", "all"], _fold),
    "argmax": _argmax, "argmin": _argmax, "argsort": _argsort,
    "cumsum": lambda m, v: m.value(running_sum(v)), "dot": _dot, "conv": _conv,
    "scan": _scan, "while": _while, "cond": _cond,
}  # fmt: skip
