"""Gathers and windows: indices that count are slices, and look-ups rise towards the leaves, past what is computed.

What a gather reads must lie in memory. So a look-up goes below a computation where no more is computed than before, as
far as sizes tell: ``exp(x)[i]`` for one index, or for as many as there are rows, is ``exp(x[i])``. An index that is
known to be wrong is an error at the line that has it; one of a value that repeats is not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symc.ir.dim import Size, known_nonnegative, product, size_name
from symc.ir.ops.cast import in_dtype
from symc.ir.ops.dynamic_slice import dynamic_slice
from symc.ir.ops.index import gather
from symc.ir.ops.kernel import checked_index
from symc.ir.ops.leaf import iota, scalar
from symc.ir.ops.shape import broadcast, concat, flip, reshape, slice_, transpose
from symc.ir.types import DTYPES
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import index, leaf
from symc.opt.engine.terms import size_like
from symc.opt.facts.forms import Steps, steps_of, unit_axes
from symc.opt.rules.reads import window_starts

I64 = DTYPES["i64"]


def count(n: int, start: int = 0, step: int = 1) -> Value:
    """The numbers from ``start`` on."""
    return iota(shape=(n,), axis=0, dtype=I64) * step + start


def depth_of(v: Value) -> int:
    """The number of leading axes of a gather that come from its index arrays."""
    return v.operands[1].ndim


def other_axes(v: Value) -> list[int]:
    """The axes of what is read that a gather takes whole, in order."""
    return [a for a in range(v.operands[0].ndim) if a not in v.attrs["axes"]]


def reads_no_more(v: Value) -> bool:
    """True if a gather is known to have no more places than the axes it indexes."""
    x, i = v.operands[0], v.operands[1]
    count = product(i.shape)
    return count == 1 or known_nonnegative(product(x.shape[a] for a in v.attrs["axes"]) - count)


# --- indices that count -----------------------------------------------------------------------------------------------


@rewrite(
    "gather",
    exact=True,
    equation="x[[1, 3, 5]] -> x[1:6:2]",
    examples=lambda: [
        gather(leaf(9, 2), count(4, 2), axes=(0,)),
        gather(leaf(3, 9), count(4, 8, -2), axes=(1,)),
        gather(leaf(4, 9), *[broadcast(count(2 + k), axes=(k,), shape=(2, 3)) for k in (0, 1)], axes=(0, 1)),
    ],
    written=lambda sc: sc.input("x", "float64", shape=(9,))[sc.arange(2, 6)],
)
def gather_by_count(v: Value) -> Value | None:
    """Evenly spaced places are a slice, which is no look-up at all."""
    x, *indices = v.operands
    steps = [steps_of(i) for i in indices]
    plan = _slices(v, x, steps)
    if not plan:
        return None
    window, kept = plan
    part = slice_(x, **window)
    axes = v.attrs["axes"]
    if kept:
        return gather(_dropped(part, [a for a in axes if a not in kept]), *[indices[axes.index(a)] for a in kept],
                      axes=_renumbered(kept, [a for a in axes if a not in kept]))  # fmt: skip
    placed = {s.axis: a for s, a in zip(steps, axes, strict=True) if s is not None and s.axis is not None}
    rest = other_axes(v)
    single = [a for a in axes if a not in placed.values()]
    part = transpose(part, perm=(*[placed[p] for p in sorted(placed)], *rest, *single))
    part = reshape(part, shape=part.shape[: len(placed) + len(rest)])
    depth = depth_of(v)
    return broadcast(part, axes=(*sorted(placed), *range(depth, depth + len(rest))), shape=v.shape)


def _slices(v: Value, x: Value, steps: Sequence[Steps | None]) -> tuple[dict, list[int]] | None:
    """The window that the indices which count are, and the indexed axes that remain."""
    shape = v.operands[1].shape
    axes = v.attrs["axes"]
    counting = [s.axis for s in steps if s is not None and s.axis is not None]
    window: dict[str, list[Any]] = {"start": [0] * x.ndim, "size": list(x.shape), "step": [1] * x.ndim}
    kept = []
    alone = all(s is not None for s in steps) and len(set(counting)) == len(counting)
    for s, a in zip(steps, axes, strict=True):
        n: Size = 1 if s is None or s.axis is None else shape[s.axis]
        if s is None or (s.axis is not None and not alone) or not s.within(n, x.shape[a]):
            kept.append(a)
            continue
        for key, entry in zip(window, (s.start, n, s.step or 1), strict=True):
            window[key][a] = entry
    if len(kept) == len(steps) or (kept and any(s is not None and s.axis is not None and a not in kept
                                                for s, a in zip(steps, axes, strict=True))):  # fmt: skip
        return None
    return {k: tuple(w) for k, w in window.items()}, kept


def _dropped(x: Value, axes: Sequence[int]) -> Value:
    """``x`` without some axes of size 1."""
    return reshape(x, shape=tuple(s for a, s in enumerate(x.shape) if a not in axes))


def _renumbered(axes: Sequence[int], gone: Sequence[int]) -> tuple[int, ...]:
    return tuple(a - sum(g < a for g in gone) for a in axes)


# --- gathers of movements ---------------------------------------------------------------------------------------------


@rewrite(
    "gather",
    exact=True,
    needs=["broadcast"],
    equation="broadcast(x)[i] -> broadcast(x[i])",
    examples=lambda: [
        gather(broadcast(leaf(3), axes=(1,), shape=(4, 3)), index(2), axes=(0,)),
        gather(broadcast(leaf(3), axes=(0,), shape=(3, 4)), index(2), axes=(0,)),
    ],
    misses=lambda: [gather(leaf(4, 3), index(2), axes=(0,))],
)
def gather_of_broadcast(v: Value) -> Value | None:
    """A value that repeats along the indexed axis is the same at every index."""
    b, *indices = v.operands
    if b.op is not broadcast:
        return None
    (x,), placed, axes, depth = b.operands, b.attrs["axes"], v.attrs["axes"], depth_of(v)
    rest = {a: depth + k for k, a in enumerate(other_axes(v))}
    inner = [k for k, a in enumerate(placed) if a in axes]
    outer = tuple(rest[a] for a in placed if a in rest)
    if not inner:
        return broadcast(x, axes=outer, shape=v.shape)
    if len(placed) == b.ndim:
        return None
    part = gather(x, *[indices[axes.index(placed[k])] for k in inner], axes=tuple(inner))
    return broadcast(part, axes=(*range(depth), *outer), shape=v.shape)


@rewrite(
    "gather",
    exact=True,
    needs=["transpose"],
    equation="transpose(x)[i] -> transpose(x[:, i])",
    examples=lambda: [
        gather(transpose(leaf(3, 4), perm=(1, 0)), index(2), axes=(0,)),
        gather(transpose(leaf(2, 3, 4), perm=(2, 1, 0)), index(2), index(2), axes=(0, 2)),
    ],
)
def gather_of_transpose(v: Value) -> Value | None:
    """Only what is read is moved; a gather reads memory in any order."""
    t, *indices = v.operands
    if t.op is not transpose:
        return None
    perm, depth = t.attrs["perm"], depth_of(v)
    pairs = sorted((perm[a], k) for k, a in enumerate(v.attrs["axes"]))
    part = gather(t.operands[0], *[indices[k] for _, k in pairs], axes=tuple(a for a, _ in pairs))
    have = [a for a in range(t.ndim) if a not in dict(pairs)]
    want = [perm[a] for a in other_axes(v)]
    return transpose(part, perm=(*range(depth), *[depth + have.index(a) for a in want]))


@rewrite(
    "gather",
    exact=True,
    needs=["reshape"],
    equation="reshape(x)[i] -> reshape(x[i]) where axes of size 1 come and go",
    examples=lambda: [gather(reshape(leaf(4, 3), shape=(4, 1, 3)), index(2), axes=(0,))],
)
def gather_of_reshape(v: Value) -> Value | None:
    """Axes of size 1 wait until what is read is there."""
    r, *indices = v.operands
    if r.op is not reshape or (units := unit_axes(r)) is None:
        return None
    back = {b: a for a, b in units.items()}
    if any(a not in back for a in v.attrs["axes"]):
        return None
    part = gather(r.operands[0], *indices, axes=tuple(back[a] for a in v.attrs["axes"]))
    return reshape(part, shape=v.shape)


@rewrite(
    "gather",
    exact=True,
    needs=["slice"],
    equation="x[a:b][i] -> x[i + a]",
    examples=lambda: [
        gather(slice_(leaf(9, 2), start=(3, 0), size=(4, 2), step=(1, 1)), index(5), axes=(0,)),
        gather(flip(leaf(9), (0,)), index(5), axes=(0,)),
    ],
)
def gather_of_slice(v: Value) -> Value | None:
    """The slice need not lie in memory. Its bounds are those that are checked."""
    s, *indices = v.operands
    if s.op is not slice_ or indices[0].dtype != I64:
        return None
    x, axes, a = s.operands[0], v.attrs["axes"], s.attrs
    if any(s.shape[k] != x.shape[k] or a["step"][k] != 1 or a["start"][k] != 0 for k in other_axes(v)):
        return None
    moved = []
    for i, k in zip(indices, axes, strict=True):
        i = checked_index(i, s, k)
        i = i if a["step"][k] == 1 else i * a["step"][k]
        moved.append(i + size_like(a["start"][k], i.type))
    return gather(x, *moved, axes=axes)


@rewrite(
    "gather",
    exact=True,
    needs=["gather"],
    equation="x[i][j] -> x[i[j]]",
    examples=lambda: [gather(gather(leaf(9, 2), index(5), axes=(0,)), index(3), axes=(0,))],
)
def gather_of_gather(v: Value, context) -> Value | None:
    """Indices are looked up, not rows."""
    g, *indices = v.operands
    if g.op is not gather or not context.single_use(g) or any(a >= depth_of(g) for a in v.attrs["axes"]):
        return None
    x, *inner = g.operands
    return gather(x, *[gather(i, *indices, axes=v.attrs["axes"]) for i in inner], axes=g.attrs["axes"])


@rewrite(
    "gather",
    exact=True,
    needs=["gather"],
    equation="x[i][:, j] -> x[i, j[:, None]], as often as it is read in this way",
    examples=lambda: [
        gather(gather(leaf(9, 8), index(5), axes=(0,)), index(3), axes=(1,)),
        gather(gather(leaf(4, 9, 8), index(5), axes=(1,)), index(3), axes=(2,)),
    ],
    misses=lambda: [gather(gather(leaf(9, 8), index(5), axes=(1,)), index(3), axes=(0,))],
)
def gather_across_gather(v: Value) -> Value | None:
    """Two indices of one look-up: what lies between them needs no memory. The lines that it would have copied are read
    where they are."""
    g, *indices = v.operands
    if g.op is not gather or any(a < depth_of(g) for a in v.attrs["axes"]):
        return None
    x, *inner = g.operands
    depth, rest = depth_of(v), other_axes(g)
    shape = v.shape[: depth + depth_of(g)]
    if any(i.dtype != indices[0].dtype for i in inner):
        return None
    found = {a: _spread(i, depth, shape) for a, i in zip(g.attrs["axes"], inner, strict=True)}
    found |= {rest[a - depth_of(g)]: _spread(i, 0, shape) for a, i in zip(v.attrs["axes"], indices, strict=True)}
    axes = tuple(sorted(found))
    return gather(x, *[found[a] for a in axes], axes=axes)


def _spread(i: Value, first: int, shape: tuple[Size, ...]) -> Value:
    """An index repeated over a shape, of which its axes are those from ``first`` on."""
    return broadcast(i, axes=tuple(range(first, first + i.ndim)), shape=shape) if i.shape != shape else i


@rewrite(
    "gather",
    exact=True,
    needs=["iota"],
    equation="arange(n)[i] -> i",
    examples=lambda: [gather(iota(shape=(size_name("n"), 4), axis=k, dtype=I64), index(3), axes=(0,)) for k in (0, 1)],
    misses=lambda: [gather(leaf(5, 4), index(3), axes=(0,))],
    arises="of unit matrices, masks and ranges of which rows are read",
)
def gather_of_iota(v: Value) -> Value | None:
    """Element i of a count is i."""
    x, *indices = v.operands
    if x.op is not iota:
        return None
    along = x.attrs["axis"]
    if along in v.attrs["axes"]:
        i = checked_index(indices[v.attrs["axes"].index(along)], x, along)
        i = in_dtype(i, v.dtype)
        return broadcast(i, axes=tuple(range(i.ndim)), shape=v.shape)
    return iota(shape=v.shape, axis=depth_of(v) + other_axes(v).index(along), dtype=v.dtype)


@rewrite(
    "gather",
    exact=True,
    needs=["concat"],
    equation="concat(x, y)[i] -> concat(x[i], y[i]) along another axis",
    examples=lambda: [gather(concat(leaf(4, 2), leaf(4, 3), axis=1), index(2), axes=(0,))],
    misses=lambda: [gather(concat(leaf(4, 2), leaf(3, 2), axis=0), index(2), axes=(0,))],
)
def gather_of_concat(v: Value, context) -> Value | None:
    """Only the rows that are read are put side by side."""
    c, *indices = v.operands
    if c.op is not concat or not context.single_use(c) or not reads_no_more(v):
        return None
    if c.attrs["axis"] in v.attrs["axes"]:
        return None
    axis = depth_of(v) + other_axes(v).index(c.attrs["axis"])
    return concat(*[gather(o, *indices, **v.attrs) for o in c.operands], axis=axis)


# --- windows whose place is data --------------------------------------------------------------------------------------


@rewrite(
    "dynamic_slice",
    exact=True,
    equation="dynamic_slice(x, 2, size) -> x[2:2+size]",
    examples=lambda: [
        dynamic_slice(leaf(9), scalar(2, "i64"), size=(3,)),
        dynamic_slice(leaf(9), index(), size=(9,)),
    ],
    written=lambda sc: sc.dynamic_slice(sc.input("x", "float64", shape=(9,)), [2], [3]),
)
def window_at_number(v: Value) -> Value | None:
    """A window at a place that is known is a slice."""
    starts = window_starts(v)
    if starts is None:
        return None
    return slice_(v.operands[0], start=tuple(starts), size=v.shape, step=(1,) * v.ndim)
