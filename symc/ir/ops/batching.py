"""Batching of each op over one more leading axis, for some of its operands or all (what ``vmap`` is made of).

Most ops say it with their traits and the names of their attributes: an ``axis`` moves up by one, a ``shape`` gains the
batch size in front. The few that need more have a function here; an op defined elsewhere puts one in
``facts.batch``. Every function takes the value, its operands (batched ones with the extra axis first), which of them
are batched, and the batch size.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from symc.errors import SymcError
from symc.ir import location
from symc.ir.dim import Size
from symc.ir.op import Op, splat
from symc.ir.ops.arithmetic import maximum, minimum
from symc.ir.ops.dynamic_slice import dynamic_slice, dynamic_update_slice
from symc.ir.ops.elementwise import spread
from symc.ir.ops.gemm import combine, gemm, parts, product_of
from symc.ir.ops.index import gather, scatter
from symc.ir.ops.kernel import bounded, check_index
from symc.ir.ops.leaf import get, iota, scalar, size
from symc.ir.ops.linalg import dot, free_axes
from symc.ir.ops.logic import where
from symc.ir.ops.shape import broadcast, pad, transpose
from symc.ir.value import Value, first_line, make

Flags = Sequence[bool]
Batch = Callable[[Value, Sequence[Value], Flags, Size], Value]


def batch_value(v: Value, operands: Sequence[Value], flags: Flags, n: Size) -> Value:
    """``v`` over a leading axis of size ``n``, when the operands flagged have that axis (at least one of them)."""
    rule = v.op.facts.batch or _RULES.get(v.op)
    if rule is None and not v.regions and has_rule(v.op, v.attrs):
        rule = _regular
    if rule is None:
        raise SymcError(
            f"vmap: {v.op.name} has no batching rule",
            values=[(f"operand {k}", o.type, first_line(o)) for k, o in enumerate(v.operands)],
            where=location.in_order(location.noted(v)),
            help='state one in facts.batch of its record',
        )
    return rule(v, operands, flags, n)


def has_rule(op: Op, attrs: Collection[str] = ()) -> bool:
    """True if values of an op, with attributes of these names, can be batched."""
    return op.facts.batch is not None or op in _RULES or bool(op.traits & _REGULAR) or "axis" in attrs


# --- ops whose attributes say it all ----------------------------------------------------------------------------------

_REGULAR = frozenset({"elementwise", "movement", "reduction"})


def _up(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + 1 for a in axes)


#: What an attribute of a regular op becomes, by the attribute's name.
_ATTRS: dict[str, Callable] = {
    "axis": lambda axis, n: axis + 1,
    "axes": lambda axes, n: _up(axes),
    "perm": lambda perm, n: (0, *_up(perm)),
    "shape": lambda shape, n: (n, *shape),
    "size": lambda size, n: (n, *size) if isinstance(size, tuple) else size,  # of a window; of an axis
    "start": lambda start, n: (0, *start),
    "step": lambda step, n: (1, *step),
    "low": lambda low, n: (0, *low),
    "high": lambda high, n: (0, *high),
    "interior": lambda gap, n: (0, *gap),
}


def _regular(v: Value, operands: Sequence[Value], flags: Flags, n: Size) -> Value:
    placed = "elementwise" not in v.op.traits  # an elementwise op has no axes, whatever its attributes are called
    attrs = {name: _ATTRS[name](entry, n) if placed and name in _ATTRS else entry for name, entry in v.attrs.items()}
    return v.op(*[spread(o, f, n) for o, f in zip(operands, flags, strict=True)], **attrs)


# --- ops that need more -----------------------------------------------------------------------------------------------


def _broadcast(v: Value, operands: Sequence[Value], flags: Flags, n: Size) -> Value:
    return broadcast(operands[0], axes=(0, *_up(v.attrs["axes"])), shape=(n, *v.shape))


def _pad(v: Value, operands: Sequence[Value], flags: Flags, n: Size) -> Value:
    """A fill that differs between entries is put in with a mask."""
    x, fill = operands
    widths = {k: (0, *v.attrs[k]) for k in ("low", "high", "interior")}
    if not flags[1]:
        return pad(x, fill, **widths)
    x = spread(x, flags[0], n)
    outside = pad(splat(False, x.type.with_dtype("bool")), scalar(True, "bool"), **widths)
    return where(outside, broadcast(fill, axes=(0,), shape=(n, *v.shape)), pad(x, scalar(0, x.dtype), **widths))


def _dot(v: Value, operands: Sequence[Value], flags: Flags, n: Size) -> Value:
    """Two batched operands share a batch axis; one alone has one more free axis, which then moves to the front."""
    (a, b), contract, batch = operands, v.attrs["contract"], v.attrs["batch"]
    left, right = (_up if f else tuple for f in flags)
    contract, batch = (left(contract[0]), right(contract[1])), (left(batch[0]), right(batch[1]))
    if all(flags):
        return dot(a, b, contract=contract, batch=((0, *batch[0]), (0, *batch[1])))
    out = dot(a, b, contract=contract, batch=batch)
    at = len(batch[0]) + (0 if flags[0] else len(free_axes(a, contract[0], batch[0])))
    return transpose(out, perm=(at, *[i for i in range(out.ndim) if i != at])) if at else out


def _gemm(v: Value, operands: Sequence[Value], flags: Flags, n: Size) -> Value:
    """The sum that it is, over the batch axis; `blas` makes gemms again where that is good."""
    product, pair = product_of(v), list(operands[:2])
    for k, full in enumerate(product.operands):
        if full is not v.operands[k]:  # the same in every entry of the gemm's own batch
            lead = full.ndim - v.operands[k].ndim
            axes = tuple(range(lead, full.ndim))
            pair[k] = (broadcast(pair[k], axes=(0, *_up(axes)), shape=(n, *full.shape)) if flags[k]
                       else broadcast(pair[k], axes=axes, shape=full.shape))
    inner = _dot(product, pair, flags[:2], n) if any(flags[:2]) else product
    given = parts(v, [x if name in v.attrs["times"] else spread(x, f, n)
                      for name, x, f in zip(parts(v), operands, flags, strict=True)])
    return combine(v, spread(inner, any(flags[:2]), n), given)


def _entry(like: Value) -> Value:
    """The number of the batch entry, in the shape and dtype of batched indices."""
    return iota(shape=like.shape, axis=0, dtype=like.dtype)


def _gather(v: Value, operands: Sequence[Value], flags: Flags, n: Size) -> Value:
    x, *indices = operands
    axes = v.attrs["axes"]
    indices = [spread(i, f, n) for i, f in zip(indices, flags[1:], strict=True)]
    if not flags[0]:
        return gather(x, *indices, axes=axes)
    return gather(x, _entry(indices[0]), *indices, axes=(0, *_up(axes)))


def _scatter(v: Value, operands: Sequence[Value], flags: Flags, n: Size) -> Value:
    x, updates, *indices = [spread(o, f, n) for o, f in zip(operands, flags, strict=True)]
    return scatter(x, updates, _entry(indices[0]), *indices, axes=(0, *_up(v.attrs["axes"])), mode=v.attrs["mode"])


def _window(starts: Sequence[Value], flags: Flags, shape: Sequence[Size], window: Sequence[Size],
            n: Size) -> list[Value]:
    """Index arrays of shape (n, *window), one an axis, for windows with one start an entry, moved so that they fit."""
    full = (n, *window)
    out = []
    for a, (s, f) in enumerate(zip(starts, flags, strict=True)):
        first = maximum(minimum(s, broadcast(size(value=shape[a] - window[a]), axes=(), shape=s.shape)), 0)
        first = broadcast(first, axes=(0,) if f else (), shape=full)
        out.append(first + iota(shape=full, axis=a + 1, dtype=s.dtype))
    return out


def _dynamic_slice(v: Value, operands: Sequence[Value], flags: Flags, n: Size) -> Value:
    x, *starts = operands
    if not any(flags[1:]):
        return dynamic_slice(x, scalar(0, "i64"), *starts, size=(n, *v.shape))
    shape = v.operands[0].shape
    places = _window(starts, flags[1:], shape, v.shape, n)
    if flags[0]:
        places = [_entry(places[0]), *places]
    return gather(x, *places, axes=tuple(range(x.ndim)))


def _dynamic_update_slice(v: Value, operands: Sequence[Value], flags: Flags, n: Size) -> Value:
    x, update = (spread(o, f, n) for o, f in zip(operands[:2], flags[:2], strict=True))
    starts = operands[2:]
    if not any(flags[2:]):
        return dynamic_update_slice(x, update, scalar(0, "i64"), *starts)
    places = _window(starts, flags[2:], v.shape, v.operands[1].shape, n)
    return scatter(x, update, _entry(places[0]), *places, axes=tuple(range(x.ndim)), mode="set")


def _same(v: Value, operands: Sequence[Value], flags: Flags, n: Size) -> Value:
    return make(v.op, operands, v.attrs)


_RULES: dict[Op, Batch] = {
    broadcast: _broadcast,
    pad: _pad,
    dot: _dot,
    gemm: _gemm,
    gather: _gather,
    scatter: _scatter,
    dynamic_slice: _dynamic_slice,
    dynamic_update_slice: _dynamic_update_slice,
    get: _same,
    check_index: _same,
    bounded: _same,
}  # fmt: skip
