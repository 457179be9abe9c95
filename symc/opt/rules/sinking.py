"""Sinking: movements go past elementwise ops and reductions, towards the results, to where they cost nothing.

A broadcast below the work means that the work is done on the small operand; a transpose or reshape goes on until it
meets its inverse, or a product that absorbs it. All exact but where a sum changes its order.
"""

from __future__ import annotations

from collections.abc import Sequence

from symc.ir.dim import Size, product
from symc.ir.op import lookup
from symc.ir.ops.arithmetic import div, mul, mulz, neg
from symc.ir.ops.leaf import constant
from symc.ir.ops.reduce import COMBINING, sum_
from symc.ir.ops.shape import broadcast, reshape, transpose
from symc.ir.text import splat_of
from symc.ir.value import Value, make
from symc.opt.empty import factor_of_sum, soon_infinite
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import leaf
from symc.opt.engine.terms import everywhere, size_like
from symc.opt.facts.forms import common_axes, unit_axes


def _exp(x: Value) -> Value:
    return lookup("exp")(x)


# --- movements that sink below elementwise ops ------------------------------------------------------------------------


def _movers(v: Value, op_name: str) -> list[Value] | None:
    """The operands that are not one number everywhere, if all of them are made by this op."""
    if "elementwise" not in v.op.traits or v.regions or not v.operands:
        return None
    moved = [o for o in v.operands if not _one_number(o, op_name)]
    return moved if moved and all(o.op.name == op_name for o in moved) else None


def _one_number(o: Value, op_name: str) -> bool:
    """A splat; or any scalar that is repeated, which other movements than repeating leave as it is."""
    return splat_of(o) is not None or op_name != "broadcast" and everywhere(o) is not None


def _apply(v: Value, op_name: str, inner: Sequence[Value], shape: Sequence[Size]) -> Value:
    """The op of ``v`` on what its other operands become; what is one number everywhere gets the shape."""
    new = iter(inner)
    return make(v.op, [splat_again(o, shape) if _one_number(o, op_name) else next(new) for o in v.operands], v.attrs)


def splat_again(v: Value, shape: Sequence[Size]) -> Value:
    """A splat, or a repeated scalar, in another shape."""
    number = v if v.op is constant else v.operands[0]
    return broadcast(number, axes=(), shape=tuple(shape)) if shape else number


@rewrite(
    exact=True,
    trait="elementwise",
    needs=["broadcast"],
    equation="f(broadcast(x), broadcast(y)) -> broadcast(f(x, y))",
    examples=lambda: [
        (lambda b, c: b * 2 + c)(
            broadcast(leaf(3), axes=(1,), shape=(2, 3)), broadcast(leaf(), axes=(), shape=(2, 3))
        )
    ],
)
def elementwise_of_broadcasts(v: Value) -> Value | None:
    """Axes along which every operand repeats are inserted after the work, not before."""
    moved = _movers(v, "broadcast")
    if moved is None:
        return None
    axes = tuple(sorted({a for o in moved for a in o.attrs["axes"]}))
    if len(axes) == v.ndim:
        return None
    shape = tuple(v.shape[a] for a in axes)
    inner = [
        broadcast(o.operands[0], axes=tuple(axes.index(a) for a in o.attrs["axes"]), shape=shape)
        if o.operands[0].ndim < len(axes)
        else o.operands[0]
        for o in moved
    ]
    return broadcast(_apply(v, "broadcast", inner, shape), axes=axes, shape=v.shape)


@rewrite(
    exact=True,
    trait="elementwise",
    needs=["transpose"],
    equation="f(transpose(x), transpose(y)) -> transpose(f(x, y))",
    examples=lambda: [
        _exp(transpose(leaf(2, 3), perm=(1, 0))),
        transpose(leaf(2, 3), perm=(1, 0)) / broadcast(leaf(), axes=(), shape=(3, 2)),
    ],
)
def elementwise_of_transposes(v: Value) -> Value | None:
    """Transposes move on until they meet their inverse, or a product that absorbs them."""
    moved = _movers(v, "transpose")
    if moved is None or any(o.attrs["perm"] != moved[0].attrs["perm"] for o in moved):
        return None
    inner = _apply(v, "transpose", [o.operands[0] for o in moved], moved[0].operands[0].shape)
    return transpose(inner, perm=moved[0].attrs["perm"])


@rewrite(
    exact=True,
    trait="elementwise",
    needs=["reshape"],
    equation="f(reshape(x), reshape(y)) -> reshape(f(x, y))",
    examples=lambda: [
        _exp(reshape(leaf(2, 3), shape=(6,))),
        reshape(leaf(2, 3), shape=(6,)) / broadcast(leaf(), axes=(), shape=(6,)),
    ],
)
def elementwise_of_reshapes(v: Value) -> Value | None:
    """Reshapes move on until they meet another."""
    moved = _movers(v, "reshape")
    if moved is None or any(o.operands[0].shape != moved[0].operands[0].shape for o in moved):
        return None
    return reshape(_apply(v, "reshape", [o.operands[0] for o in moved], moved[0].operands[0].shape), shape=v.shape)


# --- reductions of movements ------------------------------------------------------------------------------------------

FOLDS = tuple(COMBINING)


@rewrite(
    "sum",
    "max",
    "min",
    "any",
    "all",
    equation="sum(broadcast(x)) -> n * sum(x); max(broadcast(x)) -> max(x)",
    examples=lambda: [
        sum_(broadcast(leaf(3), axes=(1,), shape=(4, 3)), axes=(0, 1)),
        lookup("max")(broadcast(leaf(3), axes=(1,), shape=(4, 3)), axes=(0,)),
    ],
)
def reduce_of_broadcast(v: Value) -> Value | None:
    """Repeated elements are counted, not added up."""
    (b,), axes = v.operands, v.attrs["axes"]
    if b.op is not broadcast:
        return None
    placed = b.attrs["axes"]
    gone = [a for a in axes if a not in placed]
    count = product(b.shape[a] for a in gone)
    if not gone or (v.op is not sum_ and not (isinstance(count, int) and count > 0)):
        return None
    inner = v.op(b.operands[0], axes=tuple(placed.index(a) for a in axes if a in placed))
    kept = [a for a in range(b.ndim) if a not in axes]
    out = broadcast(inner, axes=tuple(kept.index(a) for a in placed if a not in axes), shape=v.shape)
    return times_size(out, count) if v.op is sum_ else out


def times_size(x: Value, count: Size) -> Value:
    """x, ``count`` times; for no elements 0, even if x is infinite."""
    factor = size_like(count, x.type)
    if isinstance(count, int) and count > 0:
        return mul(x, factor)
    return mulz(factor, x) if x.dtype.kind in "fc" else mul(factor, x)


@rewrite(
    *FOLDS,
    equation="sum(transpose(x)) -> transpose(sum(x))",
    examples=lambda: [sum_(transpose(leaf(2, 3), perm=(1, 0)), axes=(0,))],
)
def reduce_of_transpose(v: Value) -> Value | None:
    """Elements that are reduced need not be moved first."""
    (t,), axes = v.operands, v.attrs["axes"]
    if t.op is not transpose:
        return None
    perm = t.attrs["perm"]
    reduced = tuple(sorted(perm[a] for a in axes))
    left = [a for a in range(t.ndim) if a not in reduced]
    out = v.op(t.operands[0], axes=reduced)
    return transpose(out, perm=tuple(left.index(p) for a, p in enumerate(perm) if a not in axes))


@rewrite(
    *FOLDS,
    needs=["reshape"],
    equation="sum(reshape(x)) -> reshape(sum(x)) where whole axes of x are reduced",
    examples=lambda: [
        sum_(reshape(leaf(2, 6), shape=(4, 3)), axes=(0, 1)),
        sum_(reshape(leaf(2, 6), shape=(2, 1, 6)), axes=(0,)),
        sum_(reshape(leaf(4, 2, 6), shape=(4, 12)), axes=(1,)),
    ],
)
def reduce_of_reshape(v: Value) -> Value | None:
    """Elements that are reduced need not be put in another shape first."""
    (r,), axes = v.operands, v.attrs["axes"]
    if r.op is not reshape:
        return None
    x, units = r.operands[0], unit_axes(r)
    if units is not None:
        back = {b: a for a, b in units.items()}
        reduced = [back[a] for a in axes if a in back]
    else:
        places = common_axes(x.shape, r.shape)
        changed = {a for a in range(r.ndim) if a not in places}
        if changed & set(axes) and not changed <= set(axes):
            return None
        source = [a for a in range(x.ndim) if a not in places.values()]
        reduced = [places[a] for a in axes if a in places] + (source if changed <= set(axes) else [])
    return reshape(v.op(x, axes=tuple(sorted(reduced))), shape=v.shape)


@rewrite(
    *FOLDS,
    equation="sum(sum(x, a), b) -> sum(x, a and b)",
    examples=lambda: [sum_(sum_(leaf(2, 3, 4), axes=(1,)), axes=(1,))],
)
def reduce_of_reduce(v: Value, context) -> Value | None:
    """One reduction for two."""
    (x,) = v.operands
    if x.op is not v.op or not context.single_use(x):
        return None
    inner = x.attrs["axes"]
    kept = [a for a in range(x.operands[0].ndim) if a not in inner]
    return v.op(x.operands[0], axes=tuple(sorted((*inner, *[kept[a] for a in v.attrs["axes"]]))))


@rewrite(
    "sum",
    exact=False,  # the sum of nothing is 0.0, and of -0.0 too
    tags=["signed-zero"],
    needs=["neg"],
    equation="sum(-x) -> -sum(x)",
    kinds="fc",
    examples=lambda: [sum_(-leaf(3), axes=(0,))],
)
def sum_of_negated(v: Value) -> Value | None:
    """One sign for many."""
    (x,) = v.operands
    return neg(sum_(x.operands[0], axes=v.attrs["axes"])) if x.op is neg else None


@rewrite(
    "sum",
    equation="sum(x * c) -> sum(x) * c where c does not vary along the axes",
    kinds="fiu",
    examples=lambda: [
        sum_(leaf(2, 3) * broadcast(leaf(2), axes=(0,), shape=(2, 3)), axes=(1,)),
        sum_(leaf(2, 3) * 3, axes=(0, 1)),
    ],
)
def sum_of_scaled(v: Value, context) -> Value | None:
    """One multiplication for many. A sum of no elements stays 0, also if c is infinite."""
    (x,), axes = v.operands, v.attrs["axes"]
    if x.op.name not in ("mul", "div") or not context.single_use(x) or soon_infinite(v.type):
        return None
    kept = [a for a in range(x.ndim) if a not in axes]
    for k in (1, 0) if x.op is mul else (1,):
        factor = x.operands[k]
        if factor.op is broadcast and not set(factor.attrs["axes"]) & set(axes):
            number, count = factor.operands[0], product(x.shape[a] for a in axes)
            number = factor_of_sum(number, count, context.facts, divides=x.op is div)
            small = broadcast(number, axes=tuple(kept.index(a) for a in factor.attrs["axes"]), shape=v.shape)
            return x.op(sum_(x.operands[1 - k], axes=axes), small)
    return None
