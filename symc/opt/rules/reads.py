"""Reads: what is computed and then read in part is computed for that part alone.

A value that others read as a whole stays as it is: its parts would be computed twice. Slices of movements are in
``slices``; gathers, and windows whose place is data, in ``indexing``.
"""

from __future__ import annotations

import numpy as np

from symc.ir.dim import Size, known_nonnegative
from symc.ir.op import Sorting, lookup
from symc.ir.ops.dynamic_slice import dynamic_update_slice
from symc.ir.ops.index import gather
from symc.ir.ops.leaf import get, scalar
from symc.ir.ops.linalg import dot, free_axes
from symc.ir.ops.reduce import sum_
from symc.ir.ops.shape import flip, slice_, slice_along
from symc.ir.ops.sort import FEW, from_the_end, sorted_places, top_places
from symc.ir.size_extremes import greatest
from symc.ir.types import TensorType
from symc.ir.value import Value, make
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import example, leaf, leaves
from symc.opt.engine.rule import works_once
from symc.opt.facts.forms import steps_of
from symc.opt.rules.slices import is_whole, row, window_over


def lines_of(x: Value) -> tuple[int, ...] | None:
    """The axes along which an op with one array operand works; along the others it does the same for every index."""
    if len(x.operands) != 1 or x.regions or not isinstance(x.type, TensorType) or "movement" in x.op.traits:
        return None
    if "reduction" in x.op.traits:
        return x.attrs["axes"]
    if x.op is get or x.shape != x.operands[0].shape or "elementwise" in x.op.traits:
        return None
    if "axis" in x.attrs:
        return (x.attrs["axis"],)
    return x.attrs.get("axes")


def window_starts(w: Value) -> list[Size] | None:
    """The start of the window of a dynamic update or slice, if it is known and nothing needs to be moved."""
    window = w.operands[1].shape if w.op is dynamic_update_slice else w.shape
    starts = w.operands[2:] if w.op is dynamic_update_slice else w.operands[1:]
    found = [steps_of(s) for s in starts]
    places: list[Size] = []
    for s, n, k in zip(found, w.operands[0].shape, window, strict=True):
        if n == k:
            places.append(0)
            continue
        if s is None or not known_nonnegative(s.start) or not known_nonnegative(n - k - s.start):
            return None
        places.append(s.start)
    return places


# --- slices of computations -------------------------------------------------------------------------------------------


@rewrite(
    "slice",
    exact=True,
    equation="slice(f(x, y)) -> f(slice(x), slice(y))",
    examples=lambda: [slice_(lookup("exp")(leaf(9)), start=(1,), size=(4,), step=(2,))],
)
def slice_of_elementwise(v: Value, context) -> Value | None:
    """Only what is read is computed (where nothing else reads the rest)."""
    (x,), a = v.operands, v.attrs
    if not works_once(x, context):
        return None
    return make(x.op, [slice_(o, **a) for o in x.operands], x.attrs)


@rewrite(
    "slice",
    equation="slice(sum(x, a)) -> sum(slice(x), a); softmax, cumsum, sort along other axes as well",
    examples=lambda: [
        row(sum_(leaf(3, 4), axes=(1,))),
        row(lookup("sort")(leaf(3, 4), axis=1)),
        row(lookup("logsumexp")(leaf(3, 2, 4), axes=(2,))),
    ],
)
def slice_of_lines(v: Value, context) -> Value | None:
    """Only the lines that are read are worked on."""
    (x,) = v.operands
    axes = lines_of(x)
    if axes is None or not (context.single_use(x) or context.sliced_apart(x)):
        return None
    source = x.operands[0]
    reduced = "reduction" in x.op.traits
    if not reduced and not all(is_whole(v, a) for a in axes):
        return None
    kept = [a for a in range(source.ndim) if a not in axes] if reduced else list(range(source.ndim))
    places = [kept.index(a) if a in kept else None for a in range(source.ndim)]
    window = window_over(v, places, source.shape)
    if all(s == n for s, n in zip(window["size"], source.shape, strict=True)):
        return None  # a flip reads everything
    return make(x.op, [slice_(source, **window)], x.attrs)


@rewrite(
    "slice",
    exact=True,
    equation="slice(argsort(x)) -> places of the few least, or greatest, elements of each line; so for sort",
    examples=lambda: [
        slice_along(lookup("argsort")(leaf(3, 40), axis=1), 1, 0, 5),
        slice_along(lookup("argsort")(leaf(40), axis=0), 0, 39, 3, -1),
        slice_along(lookup("sort")(leaf(40, 2), axis=0), 0, 2, 2, 4),
        slice_along(lookup("sort")(leaf(3, 40), axis=1), 1, 36, 4),
    ],
    misses=lambda: [slice_along(lookup("sort")(leaf(90), axis=0), 0, 40, 3)],
)
def ends_of_sorted(v: Value, context) -> Value | None:
    """Neighbours and the best of many: a few are kept in order while lines are read, instead of sorting all."""
    (x,) = v.operands
    if not isinstance(x.op.lowering, Sorting) or not context.single_use(x) or x.operands[0].dtype == np.float16:
        return None
    (source,), axis = x.operands, x.attrs["axis"]
    n, start, count, step = x.shape[axis], *(v.attrs[a][axis] for a in ("start", "size", "step"))
    if count == 0:
        return None
    ends = start, start + (count - 1) * step
    low, high = ends if step > 0 else ends[::-1]
    if few(high + 1, n):
        places = slice_along(top_places(source, axis=axis, k=high + 1, least=True), axis, start, count, step)
    elif few(n - low, n):  # of equals the last come last: from the end on, the first
        top = top_places(flip(source, (axis,)), axis=axis, k=n - low)
        places = from_the_end(slice_along(top, axis, n - 1 - start, count, -step), n)
    else:
        return None
    found = places if x.op.lowering.places else sorted_places(source, places, axis)
    start, whole, step = (tuple(own if k == axis else given for k, given in enumerate(v.attrs[a]))
                          for a, own in (("start", 0), ("size", count), ("step", 1)))
    return slice_(found, start=start, size=whole, step=step)


def few(k: Size, n: Size) -> bool:
    """True for a number of elements that are a quarter of n at most, and so few that they are kept in order."""
    most = greatest(k)
    return most is not None and most <= FEW and (not isinstance(n, int) or 4 * most <= n)


@rewrite(
    "slice",
    needs=["dot"],
    equation="slice(dot(x, y)) -> dot(slice(x), slice(y))",
    examples=lambda: [row(dot(leaf(3, 4), leaf(4, 5), contract=((1,), (0,)), batch=((), ())))],
)
def slice_of_dot(v: Value, context) -> Value | None:
    """Rows and columns that nobody reads are not multiplied."""
    (x,) = v.operands
    if x.op is not dot or not context.single_use(x) or v.type is x.type:  # a flip reads everything
        return None
    contract, batch = x.attrs["contract"], x.attrs["batch"]
    free = [free_axes(o, c, b) for o, c, b in zip(x.operands, contract, batch, strict=True)]
    count = len(batch[0])
    firsts = (count, count + len(free[0]))
    operands = []
    for k, o in enumerate(x.operands):
        places = {**{a: i for i, a in enumerate(batch[k])}, **{a: firsts[k] + i for i, a in enumerate(free[k])}}
        operands.append(slice_(o, **window_over(v, [places.get(a) for a in range(o.ndim)], o.shape)))
    return dot(*operands, contract=contract, batch=batch)


@rewrite(
    "slice",
    exact=True,
    needs=["gather"],
    equation="slice(gather(x, i)) -> gather(slice(x), slice(i))",
    examples=lambda: [
        row(gather(leaf(5, 2), leaves(1, {0: "i64"}, (4,))[0], axes=(0,))),
        slice_(gather(leaf(5, 7), leaves(1, {0: "i64"}, (4,))[0], axes=(0,)), start=(0, 2), size=(4, 3), step=(1, 1)),
    ],
)
def slice_of_gather(v: Value, context) -> Value | None:
    """Only what is read is looked up, of lines as well: a kernel looks up in part of an array where it lies."""
    (x,) = v.operands
    if x.op is not gather or v.type is x.type or not (context.single_use(x) or context.sliced_apart(x)):
        return None
    (source, *indices), axes = x.operands, x.attrs["axes"]
    depth = indices[0].ndim
    if not all(is_whole(v, a) for a in range(depth)):
        window = window_over(v, range(depth), indices[0].shape)
        indices = [slice_(i, **window) for i in indices]
    if not all(is_whole(v, a) for a in range(depth, v.ndim)):
        rest = iter(range(depth, v.ndim))
        places = [None if a in axes else next(rest) for a in range(source.ndim)]
        source = slice_(source, **window_over(v, places, source.shape))
    return gather(source, *indices, axes=axes)


@rewrite(
    "slice",
    exact=True,
    needs=["dynamic_update_slice"],
    equation="slice(x with y at a window) -> slice(y) inside of the window, slice(x) beside it",
    examples=lambda: [
        slice_(dynamic_update_slice(leaf(9), leaf(3), scalar(2, "i64")), start=(k,), size=(2,), step=(1,))
        for k in (3, 0, 6)
    ],
    written=lambda sc: example(
        lambda x, y: x.at[2:5].set(y)[3:5], [sc.input("x", "float64", shape=(n,)) for n in (9, 3)]
    ),
)
def slice_of_update(v: Value) -> Value | None:
    """The elements that are read were just written, or were not touched."""
    (w,) = v.operands
    if w.op is not dynamic_update_slice:
        return None
    x, u, *_ = w.operands
    places = window_starts(w)
    if places is None:
        return None
    inside = True
    start = []
    for k, at in enumerate(places):
        ends = (v.attrs["start"][k], v.attrs["start"][k] + (v.shape[k] - 1) * v.attrs["step"][k])
        low, high = ends if v.attrs["step"][k] > 0 else ends[::-1]
        if known_nonnegative(at - 1 - high) or known_nonnegative(low - at - u.shape[k]):
            return slice_(x, **v.attrs)
        whole = u.shape[k] == x.shape[k]
        inside &= whole or (known_nonnegative(low - at) and known_nonnegative(at + u.shape[k] - 1 - high))
        start.append(ends[0] if whole else ends[0] - at)
    return slice_(u, start=tuple(start), size=v.attrs["size"], step=v.attrs["step"]) if inside else None
