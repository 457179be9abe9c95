"""Concatenations: parts that belong together are one part, and what repeats is repeated, not copied."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symc.ir.op import lookup, splat
from symc.ir.ops.reduce import COMBINING, sum_
from symc.ir.ops.shape import broadcast, concat, reshape, slice_, slice_along
from symc.ir.text import splat_of
from symc.ir.types import TensorType
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import example, leaf, leaves
from symc.opt.facts.forms import unit_axes

#: A concatenation of concatenations is opened up to this many parts.
MOST_PARTS = 64


@rewrite(
    "concat",
    exact=True,
    equation="concat(x) -> x",
    examples=lambda: [concat(leaf(4), axis=0)],
    misses=lambda: [concat(leaf(4), leaf(3), axis=0)],
    arises="of parts that other rules join",
)
def concat_of_one(v: Value) -> Value | None:
    """One part, or parts of which some have no elements."""
    full = [o for o in v.operands if o.shape[v.attrs["axis"]] != 0]
    if len(full) == len(v.operands) > 1 or not full:
        return None
    return full[0] if len(full) == 1 else concat(*full, axis=v.attrs["axis"])


@rewrite(
    "concat",
    exact=True,
    needs=["concat"],
    equation="concat(concat(x, y), z) -> concat(x, y, z)",
    examples=lambda: [concat(concat(leaf(2), leaf(3), axis=0), leaf(4), axis=0)],
)
def concat_of_concat(v: Value, context) -> Value | None:
    """Every part is put in its place once."""
    axis = v.attrs["axis"]
    parts: list[Value] = []
    for o in v.operands:
        opened = o.op is concat and o.attrs["axis"] == axis and context.single_use(o)
        parts += o.operands if opened else [o]
    return concat(*parts, axis=axis) if len(v.operands) < len(parts) <= MOST_PARTS else None


def _joined(v: Value, same: Callable[[Value, Value], bool], join: Callable[[Sequence[Value]], Value]) -> Value | None:
    """``v`` with runs of neighbours that belong together joined."""
    runs: list[list[Value]] = []
    for o in v.operands:
        if runs and same(runs[-1][-1], o):
            runs[-1].append(o)
        else:
            runs.append([o])
    if len(runs) == len(v.operands):
        return None
    return concat(*[join(run) if len(run) > 1 else run[0] for run in runs], axis=v.attrs["axis"])


@rewrite(
    "concat",
    exact=True,
    needs=["slice"],
    equation="concat(x[:3], x[3:5]) -> x[:5]",
    examples=lambda: [
        (lambda x: concat(slice_along(x, 0, 0, 3), slice_along(x, 0, 3, 2), axis=0))(leaf(9, 2)),
        (lambda x, y: concat(y, slice_along(x, 0, 2, 3), slice_along(x, 0, 5, 2), axis=0))(leaf(9), leaf(2)),
    ],
)
def concat_of_adjacent_slices(v: Value) -> Value | None:
    """An array that was taken apart is put together without moving anything."""
    axis = v.attrs["axis"]

    def follows(x: Value, y: Value) -> bool:
        if x.op is not slice_ or y.op is not slice_ or x.operands[0] is not y.operands[0]:
            return False
        a, b = x.attrs, y.attrs
        for k in range(v.ndim):
            if k != axis and any(a[name][k] != b[name][k] for name in ("start", "size", "step")):
                return False
        step = a["step"][axis]
        return step == b["step"][axis] and b["start"][axis] == a["start"][axis] + a["size"][axis] * step

    def whole(run: Sequence[Value]) -> Value:
        total = sum((x.shape[axis] for x in run[1:]), run[0].shape[axis])
        size = tuple(total if k == axis else s for k, s in enumerate(run[0].shape))
        return slice_(run[0].operands[0], start=run[0].attrs["start"], size=size, step=run[0].attrs["step"])

    return _joined(v, follows, whole)


@rewrite(
    "concat",
    exact=True,
    needs=["broadcast"],
    equation="concat(broadcast(x), broadcast(x)) -> broadcast(x) where the joined axis is inserted",
    examples=lambda: [
        (lambda x: concat(broadcast(x, axes=(1,), shape=(2, 3)), broadcast(x, axes=(1,), shape=(4, 3)), axis=0))(
            leaf(3)
        ),
        concat(splat(2.0, TensorType("f64", (2,))), splat(2.0, TensorType("f64", (3,))), leaf(4), axis=0),
    ],
    written=lambda sc: sc.concatenate([sc.ones(2), sc.ones(3), sc.input("x", "float64", shape=(4,))]),
)
def concat_of_repeated(v: Value) -> Value | None:
    """More of the same."""
    axis = v.attrs["axis"]

    def alike(x: Value, y: Value) -> bool:
        same = x.op is y.op is broadcast and x.operands[0] is y.operands[0]
        return same and x.attrs["axes"] == y.attrs["axes"] and axis not in x.attrs["axes"]

    def more(run: Sequence[Value]) -> Value:
        total = sum((x.shape[axis] for x in run[1:]), run[0].shape[axis])
        shape = tuple(total if k == axis else s for k, s in enumerate(run[0].shape))
        return broadcast(run[0].operands[0], axes=run[0].attrs["axes"], shape=shape)

    return _joined(v, alike, more)


@rewrite(
    "concat",
    exact=True,
    equation="concat(x, x) -> broadcast(x) where x has size 1",
    examples=lambda: [(lambda x: concat(x, x, x, axis=0))(leaf(1, 3))],
)
def concat_of_equal_units(v: Value) -> Value | None:
    """One row, several times."""
    x, axis = v.operands[0], v.attrs["axis"]
    if x.shape[axis] != 1 or len(v.operands) < 2 or any(o is not x for o in v.operands):
        return None
    kept = tuple(a for a in range(v.ndim) if a != axis)
    return broadcast(reshape(x, shape=tuple(x.shape[a] for a in kept)), axes=kept, shape=v.shape)


@rewrite(
    "concat",
    exact=True,
    needs=["broadcast"],
    equation="concat(broadcast(x), broadcast(y)) -> broadcast(concat(x, y)) where another axis is inserted",
    examples=lambda: [
        concat(broadcast(leaf(3), axes=(1,), shape=(4, 3)), broadcast(leaf(2), axes=(1,), shape=(4, 2)), axis=1)
    ],
)
def concat_of_broadcasts(v: Value) -> Value | None:
    """The small parts are joined, and then repeated."""
    axis = v.attrs["axis"]
    moved = [o for o in v.operands if splat_of(o) is None]
    if not moved or len(v.operands) < 2 or any(o.op is not broadcast for o in moved):
        return None
    axes = moved[0].attrs["axes"]
    if axis not in axes or len(axes) == v.ndim or any(o.attrs["axes"] != axes for o in moved):
        return None
    inner = [o.operands[0] if splat_of(o) is None else _smaller(o, axes) for o in v.operands]
    return broadcast(concat(*inner, axis=axes.index(axis)), axes=axes, shape=v.shape)


def _smaller(number: Value, axes: Sequence[int]) -> Value:
    """A splat over some of its axes."""
    return broadcast(number.operands[0], axes=(), shape=tuple(number.shape[a] for a in axes))


@rewrite(
    "concat",
    exact=True,
    needs=["reshape"],
    equation="concat(reshape(x), reshape(y)) -> reshape(concat(x, y)) where axes of size 1 come and go",
    examples=lambda: [concat(reshape(leaf(3), shape=(1, 3)), reshape(leaf(2), shape=(1, 2)), axis=1)],
)
def concat_of_reshapes(v: Value) -> Value | None:
    """Axes of size 1 wait until the parts are together."""
    axis, first = v.attrs["axis"], v.operands[0]
    if len(v.operands) < 2 or any(o.op is not reshape for o in v.operands):
        return None
    places = [unit_axes(o) for o in v.operands]
    if places[0] is None or any(p != places[0] for p in places):
        return None
    sources = [o.operands[0] for o in v.operands]
    back = {b: a for a, b in places[0].items()}
    if axis not in back or any(len(s.shape) != len(sources[0].shape) for s in sources):
        return None
    return reshape(concat(*sources, axis=back[axis]), shape=v.shape) if first.ndim else None


@rewrite(
    *COMBINING,
    needs=["concat"],
    equation="sum(stack(x, y), 0) -> x + y",
    examples=lambda: [
        example(lambda x, y, z: sum_(concat(x, y, z, axis=0), axes=(0,)), leaves(3, {}, (1, 4))),
        example(lambda x, y: lookup("max")(concat(x, y, axis=1), axes=(0, 1)), leaves(2, {}, (3, 1))),
    ],
)
def reduce_of_stack(v: Value) -> Value | None:
    """Parts of size 1 are added up where they are, not put side by side first."""
    (c,), axes = v.operands, v.attrs["axes"]
    if c.op is not concat or c.attrs["axis"] not in axes:
        return None
    axis = c.attrs["axis"]
    if any(o.shape[axis] != 1 for o in c.operands) or not 1 < len(c.operands) <= MOST_PARTS:
        return None
    shape = tuple(s for a, s in enumerate(c.shape) if a != axis)
    total = reshape(c.operands[0], shape=shape)
    for o in c.operands[1:]:
        total = COMBINING[v.op.name](total, reshape(o, shape=shape))
    left = tuple(a - (a > axis) for a in axes if a != axis)
    return v.op(total, axes=left) if left else total
