"""Slices: they rise towards the leaves, so that only what is read is computed, and merge with other slices there.

A slice of a value that others read as a whole stays where it is. Windows whose place is data, and gathers, are in
``indexing``; what writes is in ``writes``.
"""

from __future__ import annotations

from collections.abc import Sequence

from symc.ir.dim import Size, known_nonnegative
from symc.ir.ops.dynamic_slice import dynamic_slice
from symc.ir.ops.shape import broadcast, concat, inverse_permutation, reshape, slice_, slice_along, transpose
from symc.ir.value import Value
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import index, leaf
from symc.opt.facts.forms import common_axes, unit_axes

WINDOW = ("start", "size", "step")


def row(x: Value, k: int = 1) -> Value:
    """Row ``k`` of x, its axis kept."""
    return slice_along(x, 0, k, 1)


def is_whole(v: Value, axis: int) -> bool:
    """True if a slice takes all along ``axis``, in order."""
    a = v.attrs
    return a["start"][axis] == 0 and a["step"][axis] == 1 and a["size"][axis] == v.operands[0].shape[axis]


def window_over(v: Value, axes: Sequence[int | None], shape: Sequence[Size]) -> dict:
    """The window of ``v`` for a value of ``shape`` whose axis i is axis ``axes[i]`` of what is sliced; None: whole."""
    whole = ([0] * len(shape), shape, [1] * len(shape))
    return {
        k: tuple(w[i] if a is None else v.attrs[k][a] for i, a in enumerate(axes))
        for k, w in zip(WINDOW, whole, strict=True)
    }


# --- slices of movements ----------------------------------------------------------------------------------------------


def _window(v: Value, x: Value, axes: Sequence[int]) -> Value:
    """The window ``v`` of ``x``, whose axis i is axis ``axes[i]`` of what is sliced."""
    if v.op is slice_:
        return slice_(x, **window_over(v, axes, x.shape))
    return dynamic_slice(x, *[v.operands[1 + a] for a in axes], size=tuple(v.shape[a] for a in axes))


@rewrite(
    "slice",
    "dynamic_slice",
    exact=True,
    needs=["broadcast"],
    equation="slice(broadcast(x)) -> broadcast(slice(x)); so for dynamic_slice",
    examples=lambda: [
        slice_(broadcast(leaf(3), axes=(1,), shape=(4, 3)), start=(1, 1), size=(2, 2), step=(1, 1)),
        dynamic_slice(broadcast(leaf(9), axes=(1,), shape=(4, 9)), index(), index(), size=(2, 3)),
    ],
)
def window_of_broadcast(v: Value) -> Value | None:
    """Only what is read is repeated."""
    x = v.operands[0]
    if x.op is not broadcast:
        return None
    return broadcast(_window(v, x.operands[0], x.attrs["axes"]), axes=x.attrs["axes"], shape=v.shape)


@rewrite(
    "slice",
    "dynamic_slice",
    exact=True,
    needs=["transpose"],
    equation="slice(transpose(x)) -> transpose(slice(x)); so for dynamic_slice",
    examples=lambda: [
        slice_(transpose(leaf(3, 4), perm=(1, 0)), start=(1, 0), size=(2, 3), step=(1, 1)),
        dynamic_slice(transpose(leaf(9, 4), perm=(1, 0)), index(), index(), size=(2, 3)),
    ],
)
def window_of_transpose(v: Value) -> Value | None:
    """Only what is read is moved."""
    x = v.operands[0]
    if x.op is not transpose:
        return None
    return transpose(_window(v, x.operands[0], inverse_permutation(x.attrs["perm"])), perm=x.attrs["perm"])


@rewrite(
    "slice",
    exact=True,
    needs=["reshape"],
    equation="slice(reshape(x)) -> reshape(slice(x)) where the sliced axes are axes of x",
    examples=lambda: [
        slice_(reshape(leaf(3, 4), shape=(3, 1, 4)), start=(1, 0, 2), size=(2, 1, 2), step=(1, 1, 1)),
        row(reshape(leaf(3, 4), shape=(3, 2, 2))),
    ],
)
def slice_of_reshape(v: Value) -> Value | None:
    """Only what is read is moved; slices of slices then meet."""
    (x,) = v.operands
    if x.op is not reshape:
        return None
    source = x.operands[0]
    units = unit_axes(x)
    places = {b: a for a, b in units.items()} if units is not None else common_axes(source.shape, x.shape)
    for a in range(x.ndim):
        if a not in places and not is_whole(v, a):
            return None
    back = {a: b for b, a in places.items()}
    window = window_over(v, [back.get(a) for a in range(source.ndim)], source.shape)
    return reshape(slice_(source, **window), shape=v.shape)


@rewrite(
    "slice",
    exact=True,
    needs=["concat"],
    equation="slice(concat(x, y)) -> concat(slice(x), slice(y)) of the parts that it reads",
    examples=lambda: [
        slice_(concat(leaf(3), leaf(4), axis=0), start=(4,), size=(2,), step=(1,)),
        slice_(concat(leaf(3), leaf(4), leaf(2), axis=0), start=(5,), size=(4,), step=(-1,)),
        slice_(concat(leaf(2, 3), leaf(2, 3), axis=0), start=(0, 1), size=(4, 1), step=(1, 1)),
    ],
)
def slice_of_concat(v: Value) -> Value | None:
    """Parts of which nothing is read are not made; a window inside one part is a window of that part."""
    (x,), a = v.operands, v.attrs
    if x.op is not concat:
        return None
    axis = x.attrs["axis"]
    if is_whole(v, axis):
        others = window_over(v, [None if k == axis else k for k in range(v.ndim)], x.shape)
        return concat(*[slice_(p, **_along(others, axis, 0, p.shape[axis], 1)) for p in x.operands], axis=axis)
    start, step = a["start"][axis], a["step"][axis]
    ends = (start, start + (v.shape[axis] - 1) * step)
    low, high = ends if step > 0 else ends[::-1]
    at: Size = 0
    for part in x.operands:
        if known_nonnegative(low - at) and known_nonnegative(at + part.shape[axis] - 1 - high):
            return slice_(part, **_along(a, axis, start - at, v.shape[axis], step))
        at = at + part.shape[axis]
    return _pieces(v, x, axis) if abs(step) == 1 else None


def _along(window, axis: int, start: Size, size: Size, step: int) -> dict:
    """The window with other entries along one axis."""
    new = {"start": start, "size": size, "step": step}
    return {k: tuple(new[k] if i == axis else s for i, s in enumerate(window[k])) for k in WINDOW}


def _pieces(v: Value, x: Value, axis: int) -> Value | None:
    """The slices of several parts one after another; all ends must be numbers, or compare for all sizes."""
    a, step = v.attrs, v.attrs["step"][axis]
    start = a["start"][axis] if step > 0 else a["start"][axis] - v.shape[axis] + 1
    stop = start + v.shape[axis]
    pieces: list[Value] = []
    at: Size = 0
    for part in x.operands:
        end = at + part.shape[axis]
        if not known_nonnegative(start - end) and not known_nonnegative(at - stop):
            if known_nonnegative(start - at):
                first: Size = start - at
            elif known_nonnegative(at - start):
                first = 0
            else:
                return None
            if known_nonnegative(end - stop):
                last: Size = stop - at
            elif known_nonnegative(stop - end):
                last = part.shape[axis]
            else:
                return None
            begin = first if step > 0 else last - 1
            pieces.append(slice_(part, **_along(a, axis, begin, last - first, step)))
        at = end
    if not pieces or len(pieces) == len(x.operands) and all(p.type is o.type for p, o in zip(pieces, x.operands)):
        return None
    return concat(*pieces[::step], axis=axis)
