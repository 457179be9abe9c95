"""Spelling of ops in StableHLO: the table of all that have a form there; others are made of these. A form is that for
sizes that are numbers, or its relative for sizes that are computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symc.export.parts import IDENTITIES, first_place, has_no_nan, is_promised, parts_of, running_sum
from symc.export.stablehlo_loops import array_attr, axes_attr, cond, gathered, scan, while_
from symc.export.stablehlo_module import Module, is_static
from symc.ir.op import Fold, lookup, splat
from symc.ir.ops.compare import ne
from symc.ir.ops.control import BOOL
from symc.ir.ops.index import SCATTER_MODES
from symc.ir.ops.leaf import iota
from symc.ir.ops.reduce import identity
from symc.ir.ops.shape import slice_
from symc.ir.size_extremes import maximum, minimum
from symc.ir.traverse import close_over
from symc.ir.types import DTYPES, TensorType, TupleType
from symc.ir.value import Value, fresh_input

Form = Callable[[Module, Value], Any]
I64 = DTYPES["i64"]


def spelled(m: Module, v: Value) -> Any:
    """The name of a value; None for one to be taken apart."""
    name = v.op.name
    if name in PLAIN:
        return m.simple(PLAIN[name], m.names(v), v.type)
    if name in _COMPARISONS:
        x, y = m.names(v)
        return m.less(x, y, v.operands[0].type, _COMPARISONS[name])  # type: ignore[arg-type]
    if name in GENERAL:
        what, attrs = GENERAL[name]
        return m.op(what, m.names(v), m.operands(v), v.type, attrs(v) if attrs is not None else "")
    if name in FORMS:
        return FORMS[name](m, v)
    return _fold(m, v) if isinstance(v.op.lowering, Fold) else None


def _identity(m: Module, v: Value) -> str:
    (x,) = v.operands
    sizes = [[n if isinstance(n, int) else None for n in o.shape] for o in (x, v)]
    return m.known[x] if sizes[0] == sizes[1] else m.reshaped(m.known[x], x.type, v.type)  # type: ignore[arg-type]


# --- elements ---------------------------------------------------------------------------------------------------------


def _iota(m: Module, v: Value) -> str:
    if v.dtype.kind == "b":
        return m.value(lookup("cast")(iota(**{**v.attrs, "dtype": DTYPES["i32"]}), dtype=v.dtype))
    return m.sized("iota", v, [v.shape], kept=f"iota_dimension = {v.attrs['axis']} : i64")


def _cast(m: Module, v: Value) -> str:
    (x,) = v.operands
    if v.dtype.kind == "b" and x.dtype.kind != "b":
        return m.value(ne(x, 0))
    return m.op("convert", m.names(v), m.operands(v), v.type)


def _quotient(name: str) -> Form:
    """Quotients of floats that the target has, and of integers where the divisor is promised to be fine."""
    def form(m: Module, v: Value) -> str | None:
        fine = name == "remainder" if v.dtype.kind == "f" else is_promised(v.operands[1])
        return m.simple(name, m.names(v), v.type) if fine else None

    return form


def _signless(otherwise: Callable[[Value], Value]) -> Form:
    """Forms that unsigned integers do not have."""
    def form(m: Module, v: Value) -> str:
        (x,) = v.operands
        return m.simple(v.op.name, m.names(v), v.type) if x.dtype.kind != "u" else m.value(otherwise(x))

    return form


def _shift(name: str) -> Form:
    def form(m: Module, v: Value) -> str | None:
        return m.simple(name, m.names(v), v.type) if parts_of(v) is None else None

    return form


# --- movements --------------------------------------------------------------------------------------------------------


def _broadcast(m: Module, v: Value) -> str:
    return m.sized("broadcast_in_dim", v, [v.shape], kept=f"broadcast_dimensions = {array_attr(v.attrs['axes'])}")


def _reshape(m: Module, v: Value) -> str:
    return m.sized("reshape", v, [v.shape])


def _slice(m: Module, v: Value) -> str:
    """Slices that walk down are taken upwards, then turned. Ends are in order, and inside, where nothing is taken."""
    (x,), a = v.operands, v.attrs
    step = tuple(map(abs, a["step"]))
    low = tuple(s + (n - 1) * min(d, 0) for s, n, d in zip(a["start"], v.shape, a["step"], strict=True))
    low = tuple(s if isinstance(n, int) and n else maximum(0, minimum(s, m))
                for s, n, m in zip(low, v.shape, x.shape, strict=True))
    down = [k for k, d in enumerate(a["step"]) if d < 0]
    if down:
        up = m.value(slice_(x, start=low, size=v.shape, step=step))
        return m.op("reverse", [up], [v.type], v.type, f"dimensions = {array_attr(down)}")
    end = tuple(s + n * d - (d - 1) * minimum(n, 1) for s, n, d in zip(low, v.shape, step, strict=True))
    attrs = f"start_indices = {array_attr(low)}, limit_indices = {array_attr(end)}, strides = {array_attr(step)}"
    return m.sized("slice", v, [low, end, step], attrs, "real_dynamic_slice", is_fixed=is_static(x.shape))


def _pad(m: Module, v: Value) -> str:
    low, high, inner = (v.attrs[k] for k in ("low", "high", "interior"))
    return m.sized("pad", v, [low, high, inner], f"edge_padding_low = {array_attr(low)}, edge_padding_high = "
                   f"{array_attr(high)}, interior_padding = {array_attr(inner)}")


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
        if kind is None:
            return [b], [t]
        params = [fresh_input(t), fresh_input(t)]
        return m.within(close_over(params, [lookup(kind)(*params)]), [a, b]), [t]

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
    lines = m.body_lines([(a, t), (b, t), (c, p), (d, p)], lambda: ([m.less(a, b, t)], [BOOL]))
    return m.op("sort", [m.known[x], m.value(place)], [x.type, place.type], TupleType([x.type, place.type]),
                f"dimension = {axis} : i64, is_stable = true", [lines])[1]


def _dot(v: Value) -> str:
    (left, right), (a, b) = v.attrs["contract"], v.attrs["batch"]
    return (f"dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = {axes_attr(a)}, "
            f"rhs_batching_dimensions = {axes_attr(b)}, lhs_contracting_dimensions = {axes_attr(left)}, "
            f"rhs_contracting_dimensions = {axes_attr(right)}>, "
            "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]")


def _conv(v: Value) -> str:
    a, k = v.attrs, len(v.attrs["stride"])
    space = ", ".join(map(str, range(k)))
    return (f"batch_group_count = 1 : i64, feature_group_count = {a['groups']} : i64, dimension_numbers = "
            f"#stablehlo.conv<[b, f, {space}]x[o, i, {space}]->[b, f, {space}]>, "
            f"window_strides = {array_attr(a['stride'])}, rhs_dilation = {array_attr(a['dilation'])}")


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

#: Ops that are one op with attributes.
GENERAL: dict[str, tuple[str, Callable[[Value], str] | None]] = {
    "isfinite": ("is_finite", None), "where": ("select", None), "dot": ("dot_general", _dot),
    "conv": ("convolution", _conv),
    "transpose": ("transpose", lambda v: f"permutation = {array_attr(v.attrs['perm'])}"),
    "concat": ("concatenate", lambda v: f"dimension = {v.attrs['axis']} : i64"),
}

FORMS: dict[str, Form] = {
    "constant": lambda m, v: m.constant(v.attrs["value"].data), "iota": _iota, "cast": _cast,
    "size": lambda m, v: m.reshaped(m.dim(v.attrs["value"]), TensorType("i64", (1,)), v.type),
    "abs": _signless(lambda x: x), "sign": _signless(lambda x: lookup("minimum")(x, 1)),
    "fmod": _quotient("remainder"), "floordiv": _quotient("divide"), "pow": lambda m, v: m.simple(
        "power", m.names(v), v.type), "shl": _shift("shift_left"), "shr": _shift("shift_right_logical"),
    **dict.fromkeys(IDENTITIES, _identity),
    "broadcast": _broadcast, "reshape": _reshape, "slice": _slice, "pad": _pad, "gather": _gather, "scatter": _scatter,
    "argmax": _argmax, "argmin": _argmax, "argsort": _argsort, "cumsum": lambda m, v: m.value(running_sum(v)),
    "scan": scan, "while": while_, "cond": cond,
}  # fmt: skip
