"""Shapes: movements that cancel and merge (how they move past computations is in ``sinking``).

Broadcasts sink below elementwise ops (towards the results), so that work is done on the small operand and no broadcast
is written out; transposes and reshapes sink likewise until they meet their inverse or a product that absorbs them;
slices rise towards the leaves, so that only what is read is computed. All exact but where a sum changes its order.
"""

from __future__ import annotations

from symc.ir.op import splat
from symc.ir.ops.ensure import ensure_shape
from symc.ir.ops.reduce import sum_
from symc.ir.ops.shape import broadcast, inverse_permutation, pad, reshape, slice_, transpose
from symc.ir.text import splat_of
from symc.ir.types import TensorType
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import leaf
from symc.opt.engine.terms import everywhere
from symc.opt.facts.forms import common_axes, unit_axes

# --- movements that move nothing --------------------------------------------------------------------------------------


@rewrite(
    "reshape",
    "ensure_shape",
    "transpose",
    "broadcast",
    "slice",
    "pad",
    exact=True,
    equation="reshape(x, shape of x) -> x; so for transpose, broadcast, slice and pad",
    examples=lambda: [
        reshape(leaf(2, 3), shape=(2, 3)),
        ensure_shape(leaf(2), shape=(2,)),
        transpose(leaf(2, 3), perm=(0, 1)),
        broadcast(leaf(2, 3), axes=(0, 1), shape=(2, 3)),
        slice_(leaf(4), start=(0,), size=(4,), step=(1,)),
        pad(leaf(4), splat(0, TensorType("f64")), low=(0,), high=(0,), interior=(0,)),
    ],
    misses=lambda: [slice_(leaf(4), start=(3,), size=(4,), step=(-1,)), transpose(leaf(2, 2), perm=(1, 0))],
    arises="other rules and derivatives; the front end makes none",
)
def nothing_moved(v: Value) -> Value | None:
    """All of it, in order: there is nothing to move."""
    x, n = v.operands[0], v.ndim
    if v.type is not x.type:
        return None
    still = {"perm": tuple(range(n)), "step": (1,) * n}
    places = dict.fromkeys(("start", "low", "high", "interior"), (0,) * n)
    return x if all(a == {**still, **places}.get(k, a) for k, a in v.attrs.items()) else None


@rewrite(
    "sum",
    "prod",
    "max",
    "min",
    "any",
    "all",
    "sup",
    tags=["signed-zero"],
    equation="sum(x, ()) -> x",
    examples=lambda: [sum_(leaf(2), axes=())],
    misses=lambda: [sum_(leaf(2), axes=(0,))],
)
def reduce_nothing(v: Value) -> Value | None:
    """No axis is reduced (NumPy's sum of -0.0 alone is 0.0)."""
    return v.operands[0] if not v.attrs["axes"] else None


@rewrite(
    "sum",
    "prod",
    "max",
    "min",
    "any",
    "all",
    exact=True,
    equation="sum(x, axes of size 1) -> reshape(x)",
    examples=lambda: [sum_(leaf(2, 1), axes=(1,))],
)
def reduce_units(v: Value) -> Value | None:
    """One element along an axis is its own sum."""
    (x,), axes = v.operands, v.attrs["axes"]
    units = tuple(a for a in axes if x.shape[a] == 1)
    if not units:
        return None
    kept = [a for a in range(x.ndim) if a not in units]
    return v.op(
        reshape(x, shape=tuple(x.shape[a] for a in kept)), axes=tuple(kept.index(a) for a in axes if a not in units)
    )


# --- movements that merge ---------------------------------------------------------------------------------------------


@rewrite(
    "reshape",
    "transpose",
    "broadcast",
    "slice",
    exact=True,
    equation="reshape(reshape(x, a), b) -> reshape(x, b); so for transpose, broadcast and slice",
    examples=lambda: [
        reshape(reshape(leaf(2, 6), shape=(3, 4)), shape=(12,)),
        transpose(transpose(leaf(2, 3, 4), perm=(1, 2, 0)), perm=(1, 0, 2)),
        broadcast(broadcast(leaf(3), axes=(1,), shape=(2, 3)), axes=(0, 2), shape=(2, 4, 3)),
        slice_(slice_(leaf(9), start=(1,), size=(4,), step=(2,)), start=(3,), size=(3,), step=(-1,)),
    ],
    misses=lambda: [reshape(transpose(leaf(2, 6), perm=(1, 0)), shape=(12,))],
)
def moved_twice(v: Value) -> Value | None:
    """One movement for two: the last shape, one order of the axes, all axes inserted at once, a window of a window."""
    (x,), a = v.operands, v.attrs
    if x.op is not v.op:
        return None
    (y,), b = x.operands, x.attrs
    if v.op is reshape:
        return reshape(y, shape=v.shape)
    if v.op is transpose:
        return transpose(y, perm=tuple(b["perm"][p] for p in a["perm"]))
    if v.op is broadcast:
        return broadcast(y, axes=tuple(a["axes"][k] for k in b["axes"]), shape=v.shape)
    start = tuple(p + q * d for p, q, d in zip(b["start"], a["start"], b["step"], strict=True))
    return slice_(y, start=start, size=v.shape, step=tuple(d * e for d, e in zip(b["step"], a["step"], strict=True)))


@rewrite(
    "transpose",
    exact=True,
    equation="transpose(x) -> reshape(x) where only size-1 axes move",
    examples=lambda: [transpose(leaf(3, 1), perm=(1, 0))],
    misses=lambda: [transpose(leaf(3, 2), perm=(1, 0))],
)
def transpose_of_units(v: Value) -> Value | None:
    """Moving axes of size 1 moves no element."""
    (x,) = v.operands
    wide = [p for p in v.attrs["perm"] if x.shape[p] != 1]
    return reshape(x, shape=v.shape) if wide == sorted(wide) and len(wide) < v.ndim else None


@rewrite(
    "broadcast",
    exact=True,
    equation="broadcast(x) -> reshape(x) where only size-1 axes are inserted",
    examples=lambda: [broadcast(leaf(3), axes=(1,), shape=(1, 3))],
    misses=lambda: [broadcast(leaf(3), axes=(1,), shape=(2, 3))],
    arises="other rules and derivatives; the front end makes none",
)
def broadcast_of_units(v: Value) -> Value | None:
    """An axis of size 1 repeats nothing. Numbers stay splats."""
    inserted = [s for a, s in enumerate(v.shape) if a not in v.attrs["axes"]]
    if splat_of(v) is not None or any(s != 1 for s in inserted):
        return None
    return reshape(v.operands[0], shape=v.shape)


@rewrite(
    "broadcast",
    exact=True,
    equation="broadcast(reshape(x)) -> broadcast(x) where the reshape inserts size-1 axes",
    examples=lambda: [broadcast(reshape(leaf(3), shape=(3, 1)), axes=(1, 2), shape=(2, 3, 1))],
)
def broadcast_of_expanded(v: Value) -> Value | None:
    """The size-1 axes are inserted with the others."""
    (x,) = v.operands
    if x.op is not reshape:
        return None
    source = x.operands[0]
    wide = [a for a, s in enumerate(x.shape) if s != 1]
    if 1 in source.shape or [x.shape[a] for a in wide] != list(source.shape):
        return None
    return broadcast(source, axes=tuple(v.attrs["axes"][a] for a in wide), shape=v.shape)


@rewrite(
    "reshape",
    exact=True,
    equation="reshape(number) -> number",
    examples=lambda: [reshape(broadcast(leaf(), axes=(), shape=(6,)), shape=(2, 3))],
)
def reshape_of_repeated(v: Value) -> Value | None:
    """One number everywhere, in any shape."""
    number = everywhere(v.operands[0])
    return None if number is None else broadcast(number, axes=(), shape=v.shape)


@rewrite(
    "reshape",
    exact=True,
    needs=["broadcast"],
    equation="reshape(broadcast(x)) -> broadcast(reshape(x)) where repeated axes stay or are all that changes",
    examples=lambda: [
        reshape(broadcast(leaf(3), axes=(1,), shape=(2, 3)), shape=(2, 1, 3)),
        reshape(broadcast(leaf(3), axes=(2,), shape=(2, 5, 3)), shape=(10, 3)),
        reshape(broadcast(leaf(4, 3), axes=(1, 2), shape=(2, 4, 3)), shape=(2, 12)),
    ],
)
def reshape_of_broadcast(v: Value) -> Value | None:
    """Repeated elements are counted in another way, not written out."""
    (b,) = v.operands
    if b.op is not broadcast or not b.attrs["axes"]:
        return None
    (x,), placed = b.operands, b.attrs["axes"]
    units = unit_axes(v)
    if units is not None:
        axes = tuple(units[a] for a in placed if b.shape[a] != 1)
        inner = reshape(x, shape=tuple(n for n in x.shape if n != 1))
        return broadcast(inner, axes=axes, shape=v.shape)
    places = {source: target for target, source in common_axes(b.shape, v.shape).items()}
    changed = [a for a in range(b.ndim) if a not in places]
    new = [a for a in range(v.ndim) if a not in places.values()]
    if not any(a in placed for a in changed):
        return broadcast(x, axes=tuple(places[a] for a in placed), shape=v.shape)
    if all(a in placed for a in changed):
        axes = tuple(sorted((*[places[a] for a in placed if a in places], *new)))
        return broadcast(reshape(x, shape=tuple(v.shape[a] for a in axes)), axes=axes, shape=v.shape)
    return None


@rewrite(
    "transpose",
    exact=True,
    needs=["reshape"],
    equation="transpose(reshape(x)) -> reshape(transpose(x)) where axes of size 1 come and go",
    examples=lambda: [transpose(reshape(leaf(2, 3), shape=(2, 1, 3)), perm=(2, 1, 0))],
)
def transpose_of_reshape(v: Value) -> Value | None:
    """The transpose meets others, and products that absorb it."""
    (r,) = v.operands
    if r.op is not reshape or (units := unit_axes(r)) is None:
        return None
    x = r.operands[0]
    back = {b: a for a, b in units.items()}
    wide = [back[p] for p in v.attrs["perm"] if p in back]
    order = (*wide, *[a for a in range(x.ndim) if a not in wide])
    return reshape(transpose(x, perm=order), shape=v.shape)


@rewrite(
    "transpose",
    exact=True,
    equation="transpose(broadcast(x)) -> broadcast(transpose(x))",
    examples=lambda: [transpose(broadcast(leaf(3), axes=(1,), shape=(2, 3)), perm=(1, 0))],
)
def transpose_of_broadcast(v: Value) -> Value | None:
    """The axes are inserted where they belong."""
    (x,) = v.operands
    if x.op is not broadcast:
        return None
    inverse = inverse_permutation(v.attrs["perm"])
    places = [inverse[a] for a in x.attrs["axes"]]
    order = tuple(sorted(range(len(places)), key=places.__getitem__))
    return broadcast(transpose(x.operands[0], perm=order), axes=tuple(sorted(places)), shape=v.shape)
