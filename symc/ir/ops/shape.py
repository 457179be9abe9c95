"""Ops that move elements without computing: broadcast, reshape, transpose, slice, pad, concat.

There is one spelling for each movement: `broadcast` only inserts axes (a size-1 axis is first removed by `reshape`),
flips are slices with a negative step, stacking is a concat of reshapes, repeats are reshapes of broadcasts.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from symc.errors import IndexingError, InternalError, ShapeError
from symc.ir import ranges
from symc.ir.dim import Size, known_equal, product
from symc.ir.facts import Facts
from symc.ir.op import Element, Linear, Op, View, lookup, register
from symc.ir.ops.leaf import scalar
from symc.ir.size_extremes import maximum, minimum
from symc.ir.types import TensorType
from symc.ir.value import Value

Shape = tuple[Size, ...]


# --- broadcast --------------------------------------------------------------------------------------------------------


def _broadcast_infer(t: TensorType, axes: tuple[int, ...], shape: Shape) -> TensorType:
    if len(axes) != t.ndim or list(axes) != sorted(set(axes)) or any(not 0 <= a < len(shape) for a in axes):
        raise InternalError(f"broadcast: axes {axes} do not place the axes of {t} in {shape}")
    for i, a in enumerate(axes):
        if t.shape[i] != shape[a]:
            raise ShapeError(f"broadcast: axis {i} has size {t.shape[i]}, the result wants {shape[a]}")
    return t.with_shape(shape)


def _broadcast_reference(x, axes, shape):
    return np.array(np.broadcast_to(x.reshape([shape[a] if a in axes else 1 for a in range(len(shape))]), shape))


def _broadcast_transpose(g, v):
    axes = v.attrs["axes"]
    return (lookup("sum")(g, axes=tuple(a for a in range(v.ndim) if a not in axes)),)


broadcast = register(Op(
    "broadcast", _broadcast_infer, _broadcast_reference, Linear(_broadcast_transpose),
    Element(lambda v, index, at: at(0, [index[a] for a in v.attrs["axes"]])),
    frozenset({"movement"}),
    lambda: iter([((np.arange(3.0),), dict(axes=(1,), shape=(2, 3))), ((np.float32(2),), dict(axes=(), shape=(2, 2))),
                  ((np.ones((2, 0)),), dict(axes=(0, 2), shape=(2, 3, 0)))]),
    "Insert axes: operand axis i becomes result axis `axes[i]`; elements repeat along the others.",
))  # fmt: skip


# --- reshape ----------------------------------------------------------------------------------------------------------


def _reshape_infer(t: TensorType, shape: Shape) -> TensorType:
    if known_equal(t.size, product(shape)) is not True:
        want = f"shape ({', '.join(map(str, shape))}) has {product(shape)}"
        raise ShapeError(f"reshape: {t} has {t.size} elements, {want}")
    return t.with_shape(shape)


def _reshape_element(v: Value, index, at):
    source = v.operands[0]
    kept = _match_axes(source.shape, v.shape)
    if kept is not None:
        zero = scalar(0, "i64")
        return at(0, [zero if k is None else index[k] for k in kept])
    return at(0, delinearize(linearize(index, v.shape), source.shape))


def _match_axes(source: Shape, target: Shape) -> list[int | None] | None:
    """For each source axis the equal target axis (None for size 1), if the reshape only adds or drops size-1 axes."""
    wide = [a for a, s in enumerate(target) if s != 1]
    if [target[a] for a in wide] != [s for s in source if s != 1]:
        return None
    places = iter(wide)
    return [None if s == 1 else next(places) for s in source]


def linearize(index, shape: Shape) -> Value:
    """Row-major position of an index (i64 scalars)."""
    from symc.ir.ops.leaf import size

    position: Value | None = None
    for i, s in zip(index, shape, strict=True):
        position = i if position is None else position * size(value=s) + i
    return scalar(0, "i64") if position is None else position


def delinearize(position: Value, shape: Shape) -> list[Value]:
    """The index at a row-major position."""
    from symc.ir.op import lookup
    from symc.ir.ops.leaf import size

    out: list[Value] = []
    for axis in range(len(shape) - 1, -1, -1):
        if axis == 0:
            out.append(position)
        else:
            extent = size(value=shape[axis])
            out.append(lookup("mod")(position, extent))
            position = lookup("floordiv")(position, extent)
    return out[::-1]


reshape: Op = register(Op(
    "reshape", _reshape_infer, lambda x, shape: np.array(x).reshape(shape),
    Linear(lambda g, v: (reshape(g, shape=v.operands[0].shape),)), View(),
    frozenset({"movement"}),
    lambda: iter([((np.arange(6.0),), dict(shape=(2, 3))), ((np.arange(3),), dict(shape=(1, 3, 1))),
                  ((np.ones(()),), dict(shape=(1,))),
                  ((np.ones((0, 3)),), dict(shape=(3, 0)))]),
    "The same elements in row-major order, in another shape.",
    Facts(element=_reshape_element),
))  # fmt: skip


def in_shape(x: Value, shape: Sequence[Size]) -> Value:
    """Reshapes a value that has another shape."""
    return x if x.shape == tuple(shape) else reshape(x, shape=tuple(shape))


# --- transpose --------------------------------------------------------------------------------------------------------


def _transpose_infer(t: TensorType, perm: tuple[int, ...]) -> TensorType:
    if sorted(perm) != list(range(t.ndim)):
        raise ShapeError(f"transpose: {perm} is not a permutation of the {t.ndim} axes of {t}")
    return t.with_shape([t.shape[p] for p in perm])


def inverse_permutation(perm: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(perm.index(i) for i in range(len(perm)))


transpose: Op = register(Op(
    "transpose", _transpose_infer,
    lambda x, perm: np.ascontiguousarray(np.transpose(x, perm)).reshape([x.shape[p] for p in perm]),
    Linear(lambda g, v: (transpose(g, perm=inverse_permutation(v.attrs["perm"])),)),
    Element(lambda v, index, at: at(0, [index[p] for p in inverse_permutation(v.attrs["perm"])])),
    frozenset({"movement"}),
    lambda: iter([((np.arange(6.0).reshape(2, 3),), dict(perm=(1, 0))),
                  ((np.arange(24.0).reshape(2, 3, 4),), dict(perm=(2, 0, 1)))]),
    "Result axis i is operand axis `perm[i]`.",
))  # fmt: skip


def in_order(x: Value, perm: Sequence[int]) -> Value:
    """Transposes a value whose axes are in another order."""
    return x if tuple(perm) == tuple(range(x.ndim)) else transpose(x, perm=tuple(perm))


# --- slice ------------------------------------------------------------------------------------------------------------


OUTSIDE = "x[k] needs an axis of more than k elements, x[-k] of at least k"


def _slice_infer(t: TensorType, start: Shape, size: Shape, step: tuple[int, ...]) -> TensorType:
    """Element i along an axis is operand element start + i*step; the front end has put all of them in bounds."""
    if not len(start) == len(size) == len(step) == t.ndim or 0 in step:
        raise InternalError(f"slice: start {start}, size {size}, step {step} do not fit {t}")
    for n, a, s, d in zip(t.shape, start, size, step, strict=True):
        if not isinstance(n, int) or not isinstance(a, int) or not isinstance(s, int) or s == 0:
            continue
        if not (0 <= a < n and 0 <= a + (s - 1) * d < n):
            raise IndexingError(f"slice: start {a}, {s} elements with step {d} leave the axis of size {n}")
    return t.with_shape(size)


def _slice_reference(x, start, size, step):
    for n, a, s, d in zip(x.shape, start, size, step, strict=True):
        if 0 not in size and not (0 <= a < n and 0 <= a + (s - 1) * d < n):
            raise IndexingError(f"slice: {s} elements from {a} on leave an axis of size {n}", help=OUTSIDE)
    return x[np.ix_(*[a + np.arange(s) * d for a, s, d in zip(start, size, step, strict=True)])] if x.ndim else x.copy()


def _slice_transpose(g, v):
    a, s, d = v.attrs["start"], v.attrs["size"], v.attrs["step"]
    x = v.operands[0]
    if all(k == 1 for k in d):
        return (pad(g, scalar(0, g.dtype), low=a, high=tuple(n - i - k for n, i, k in zip(x.shape, a, s, strict=True)),
                    interior=(0,) * x.ndim),)
    flips = tuple(-1 if k < 0 else 1 for k in d)
    if -1 in flips:
        g = flip(g, tuple(i for i, k in enumerate(flips) if k < 0))
    first = tuple(i + (k - 1) * q if q < 0 else i for i, k, q in zip(a, s, d, strict=True))
    inner = tuple(abs(q) - 1 for q in d)
    extent = tuple(_interior_size(k, q) for k, q in zip(s, inner, strict=True))
    high = tuple(n - i - e for n, i, e in zip(x.shape, first, extent, strict=True))
    return (pad(g, scalar(0, g.dtype), low=first, high=high, interior=inner),)


def _slice_element(v: Value, index, at):
    from symc.ir.ops.leaf import size as size_value

    axes = zip(index, v.attrs["start"], v.attrs["step"], strict=True)
    return at(0, [_affine(i, d, a, size_value) for i, a, d in axes])


def _affine(i: Value, d: int, a: Size, size_value) -> Value:
    scaled = i if d == 1 else i * d
    return scaled if a == 0 else scaled + (a if isinstance(a, int) else size_value(value=a))


slice_ = register(Op(
    "slice", _slice_infer, _slice_reference, Linear(_slice_transpose), Element(_slice_element),
    frozenset({"movement", "selects"}),
    lambda: iter([((np.arange(7.0),), dict(start=(1,), size=(3,), step=(2,))),
                  ((np.arange(7.0),), dict(start=(6,), size=(4,), step=(-2,))),
                  ((np.arange(12.0).reshape(3, 4),), dict(start=(0, 1), size=(3, 2), step=(1, 1))),
                  ((np.arange(3.0),), dict(start=(3,), size=(0,), step=(1,)))]),
    "Along each axis `size` elements from `start` on, `step` apart (negative steps walk down).",
    defaults={"step": lambda *types: (1,) * types[0].ndim},
))  # fmt: skip


def _fits(v: Value):
    """The first and the last element along every axis are there."""
    count = product(v.shape)
    a = v.attrs
    for n, start, size, step in zip(v.operands[0].shape, a["start"], a["size"], a["step"], strict=True):
        for end in (start, start + (size - 1) * step):
            yield end, count
            yield n - 1 - end, count


def _least(v: Value):
    """A known number of elements is there, whatever the length of an axis."""
    for n, start, size, step in zip(v.operands[0].shape, v.attrs["start"], v.shape, v.attrs["step"], strict=True):
        if isinstance(n, int) or not isinstance(size, int) or size == 0:
            continue
        ends = (start, start + (size - 1) * step)
        for spare in (x for end in ends for x in (end, n - 1 - end)):
            yield (n, n - spare, "index") if isinstance(n - spare, int) else (spare, 0, "index")


slice_.facts.requires, slice_.facts.least = _fits, _least


def slice_along(x: Value, axis: int, start: Size, size: Size, step: int = 1) -> Value:
    """``size`` elements along one axis, from ``start`` on."""
    if (start, size, step) == (0, x.shape[axis], 1):
        return x
    return slice_(x, start=tuple(start if a == axis else 0 for a in range(x.ndim)),
                  size=tuple(size if a == axis else n for a, n in enumerate(x.shape)),
                  step=tuple(step if a == axis else 1 for a in range(x.ndim)))


def flip(x: Value, axes: tuple[int, ...]) -> Value:
    """Reverse the order along `axes`."""
    n = x.shape
    return slice_(x, start=tuple(n[a] - 1 if a in axes else 0 for a in range(x.ndim)), size=n,
                  step=tuple(-1 if a in axes else 1 for a in range(x.ndim)))


def rolled(x: Value, axis: int, shift: Size) -> Value:
    """Elements moved along an axis; those that leave one end enter at the other."""
    n, back = x.shape[axis], isinstance(shift, int) and shift < 0
    k = -1 * shift if back else shift
    k = minimum(k, n) if k in (1, 2) else k % maximum(n, 1)  # an axis of 1 cannot tell, an empty one has no places
    if known_equal(k, 0) is True or known_equal(k, n) is True:
        return x
    first = k if back else n - k
    return concat(slice_along(x, axis, first, n - first), slice_along(x, axis, 0, first), axis=axis)


# --- pad --------------------------------------------------------------------------------------------------------------


def _interior_size(n: Size, gap: int) -> Size:
    """Extent of n elements with `gap` fillers between neighbours; (n - 1) * (gap + 1) + 1, and 0 for none."""
    return n if gap == 0 else maximum((n - 1) * (gap + 1) + 1, 0)


def _pad_infer(t: TensorType, fill: TensorType, low: Shape, high: Shape, interior: tuple[int, ...]) -> TensorType:
    if fill is not TensorType(t.dtype, ()) or not len(low) == len(high) == len(interior) == t.ndim:
        raise InternalError(f"pad: fill {fill}, low {low}, high {high}, interior {interior} do not fit {t}")
    return t.with_shape([a + _interior_size(n, k) + b for n, a, b, k in zip(t.shape, low, high, interior, strict=True)])


def _pad_reference(x, fill, low, high, interior):
    shape = [a + (n if k == 0 else max((n - 1) * (k + 1) + 1, 0)) + b
             for n, a, b, k in zip(x.shape, low, high, interior, strict=True)]
    out = np.full(shape, fill, x.dtype)
    if x.size:
        out[tuple(slice(a, a + (n - 1) * (k + 1) + 1, k + 1)
                  for n, a, k in zip(x.shape, low, interior, strict=True))] = x
    return out


def _pad_transpose(g, v):
    x = v.operands[0]
    inside = slice_(g, start=v.attrs["low"], size=x.shape, step=tuple(k + 1 for k in v.attrs["interior"]))
    every = tuple(range(v.ndim))
    total = lookup("sum")
    return inside, total(g, axes=every) - total(inside, axes=every)


def _pad_element(v: Value, index, at):
    from symc.ir.op import lookup
    from symc.ir.ops.leaf import size as size_value

    op = lookup
    inside: Value | None = None
    places = []
    for i, n, low, high, gap in zip(index, v.operands[0].shape, *[v.attrs[k] for k in ("low", "high", "interior")],
                                    strict=True):
        if low == 0 == high and not gap:
            places.append(i)
            continue
        p = i - size_value(value=low)
        tests = [op("ge")(p, 0)]
        if gap:
            tests.append(op("eq")(op("mod")(p, gap + 1), 0))
            p = op("floordiv")(p, gap + 1)
        tests.append(op("lt")(p, size_value(value=n)))
        for t in tests:
            inside = t if inside is None else op("and")(inside, t)
        places.append(op("maximum")(op("minimum")(p, size_value(value=n - 1)), 0))
    if inside is None:
        return at(0, places)
    return op("where")(inside, at(0, places), at(1, []))


pad = register(Op(
    "pad", _pad_infer, _pad_reference, Linear(_pad_transpose), Element(_pad_element),
    frozenset({"movement"}),
    lambda: iter([((np.arange(3.0), np.float64(7)), dict(low=(1,), high=(2,), interior=(0,))),
                  ((np.arange(3.0), np.float64(0)), dict(low=(0,), high=(1,), interior=(1,))),
                  ((np.ones((2, 0)), np.float64(0)), dict(low=(1, 1), high=(0, 0), interior=(0, 0)))]),
    "Surround (and, with `interior`, interleave) the elements with the scalar in the second operand.",
    facts=Facts(picks=2),
    defaults={"interior": lambda *types: (0,) * types[0].ndim},
))  # fmt: skip


# --- concat -----------------------------------------------------------------------------------------------------------


def _concat_infer(*types: TensorType, axis: int) -> TensorType:
    first = types[0]
    for t in types[1:]:
        if t.dtype != first.dtype or t.ndim != first.ndim:
            raise ShapeError(f"concat: {t} does not continue {first}")
        for a in range(first.ndim):
            if a != axis and t.shape[a] != first.shape[a]:
                raise ShapeError(f"concat: axis {a} differs: {t} after {first}")
    total: Size = 0
    for t in types:
        total = total + t.shape[axis]
    return first.with_shape([total if a == axis else s for a, s in enumerate(first.shape)])


def _concat_transpose(g, v):
    axis = v.attrs["axis"]
    out, at = [], 0
    for o in v.operands:
        out.append(slice_along(g, axis, at, o.shape[axis]))
        at = at + o.shape[axis]
    return out


def _concat_element(v: Value, index, at):
    from symc.ir.op import lookup
    from symc.ir.ops.leaf import size as size_value

    axis = v.attrs["axis"]
    ends: list[Size] = list(itertools.accumulate((o.shape[axis] for o in v.operands), lambda a, b: a + b))
    out: Value | None = None
    for k in range(len(v.operands) - 1, -1, -1):
        start = ends[k - 1] if k else 0
        place = index[axis] if start == 0 else index[axis] - size_value(value=start)
        place = lookup("maximum")(lookup("minimum")(place, size_value(value=v.operands[k].shape[axis] - 1)), 0)
        element = at(k, [place if a == axis else i for a, i in enumerate(index)])
        before = lookup("lt")(index[axis], size_value(value=ends[k]))
        out = element if out is None else lookup("where")(before, element, out)
    assert out is not None
    return out


concat = register(Op(
    "concat", _concat_infer, lambda *xs, axis: np.concatenate(xs, axis), Linear(_concat_transpose),
    Element(_concat_element), frozenset({"movement"}),
    lambda: iter([((np.arange(3.0), np.arange(2.0)), dict(axis=0)),
                  ((np.ones((2, 1)), np.zeros((2, 0)), np.ones((2, 3))), dict(axis=1))]),
    "The operands one after another along `axis`.", facts=Facts(picks=ranges.ALL),
))  # fmt: skip


broadcast.facts.in_logs = broadcast

