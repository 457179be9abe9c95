"""Pooling: the greatest element, or the sum, of each window over the last axes, and what their derivatives are made of.

Windows are those of `windows`; attributes are the same. The derivative of a maximum goes to one element, the first of
equals in row-major order (as PyTorch has it), also where they are nan: `pool_index` says which, as its number in the
window; `pool_take` and its transpose `pool_put` read and write there.

Small windows are written out: the elements with one number in every window are a strided slice, so a maximum of windows
is a few maxima of slices, which fuse with what is around them and vectorize.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from symc.errors import DTypeError, ShapeError
from symc.ir.dim import Size
from symc.ir.dtypes import ARITHMETIC
from symc.ir.facts import Facts
from symc.ir.op import Custom, Decompose, Linear, Op, register, splat
from symc.ir.ops.arithmetic import add
from symc.ir.ops.cast import cast
from symc.ir.ops.compare import eq, gt, le
from symc.ir.ops.elementwise import batch_leading, check_kind
from symc.ir.ops.leaf import iota, scalar
from symc.ir.ops.logic import and_, not_, where
from symc.ir.ops.reduce import argmax, max_, sum_
from symc.ir.ops.shape import broadcast, pad, reshape
from symc.ir.ops.windows import WRITTEN_OUT, Steps, add_windows, counts, last_fit, slices, window_attrs, windows
from symc.ir.types import DTYPES, TensorType
from symc.ir.value import Value

INDEX = DTYPES["i32"]

# --- types ------------------------------------------------------------------------------------------------------------


def _pooled(name: str, t: TensorType, kinds: str, window: Steps, stride: Steps, dilation: Steps) -> TensorType:
    check_kind(name, t, kinds)
    lead = t.ndim - len(window)
    if lead < 0:
        raise ShapeError(f"{name}: {t} has fewer than {len(window)} axes")
    return t.with_shape((*t.shape[:lead], *counts(name, t.shape[lead:], window, stride, dilation)))


def _unpooled(name: str, t: TensorType, size: tuple[Size, ...], steps: dict) -> TensorType:
    whole = t.with_shape((*t.shape[: t.ndim - len(size)], *size))
    want = _pooled(name, whole, "biuf", **steps)
    if want.shape != t.shape:
        raise ShapeError(f"{name}: one for each window of {whole} is {want}, not {t}")
    return whole


def _indexed(name: str, index: TensorType, t: TensorType) -> TensorType:
    """The type of what has one number for each window."""
    if index.dtype != INDEX:
        raise DTypeError(f"{name}: the numbers of elements are {index}, not {INDEX}")
    if index.shape != t.shape:
        raise ShapeError(f"{name}: {index} has no number for each element of {t}")
    return t


# --- elements of windows ----------------------------------------------------------------------------------------------


def _is_small(v: Value) -> bool:
    return int(np.prod(v.attrs["window"])) <= WRITTEN_OUT


def _middle(v: Value, x: Value) -> tuple[int, ...]:
    """The axes of a window in ``windows(x)``."""
    return tuple(range(x.ndim - len(v.attrs["window"]), x.ndim))


def _same(v: Value, n: float) -> Value:
    return splat(n, v.type)


def _apart(v: Value) -> bool:
    """Windows tile the axes: no element is in two, and none lies between."""
    a = v.attrs
    return a["stride"] == a["window"] and all(d == 1 or k == 1 for d, k in zip(a["dilation"], a["window"], strict=True))


def _spread(x: Value, v: Value, pick: Value | None) -> Value:
    """The sum, over windows, of ``x`` in each of its elements, or only in that with the number ``pick``."""
    window, m = v.attrs["window"], len(v.attrs["window"])
    lead = x.ndim - m
    tile = _apart(v)
    shape: list[Size] = list(x.shape[:lead])
    # the axes of windows, and of a window: side by side where windows tile, else as `windows` has them
    outer = [lead + 2 * i if tile else lead + m + i for i in range(m)]
    inner = [lead + 2 * i + 1 if tile else lead + i for i in range(m)]
    place = {**dict(zip(outer, x.shape[lead:], strict=True)), **dict(zip(inner, window, strict=True))}
    shape += [place[a] for a in sorted(place)]
    axes = (*range(lead), *outer)
    full = broadcast(x, axes=axes, shape=tuple(shape))
    if pick is not None:
        own = _number_in_window(window, inner, tuple(shape))
        here = eq(broadcast(pick, axes=axes, shape=tuple(shape)), own)
        full = where(here, full, _same(full, 0))
    whole = (*x.shape[:lead], *v.attrs["size"])
    if not tile:
        return add_windows(splat(0, TensorType(x.dtype, whole)), full, **window_attrs(v))
    covered = tuple(n * k for n, k in zip(x.shape[lead:], window, strict=True))
    flat = reshape(full, shape=(*x.shape[:lead], *covered))
    rest = tuple(n - c for n, c in zip(v.attrs["size"], covered, strict=True))
    if all(r == 0 for r in rest):
        return flat
    none = (0,) * x.ndim
    return pad(flat, scalar(0, x.dtype), low=none, high=(*[0] * lead, *rest), interior=none)


def _number_in_window(window: Steps, inner: Sequence[int], shape: tuple[Size, ...]) -> Value:
    """The row-major number of an element of a window."""
    total: Value | None = None
    for k, axis in zip(window, inner, strict=True):
        i = iota(shape=shape, axis=axis, dtype=INDEX)
        total = i if total is None else total * k + i
    assert total is not None
    return total


# --- the greatest element ---------------------------------------------------------------------------------------------


def _greatest(v: Value) -> tuple[Value, Value]:
    """The greatest element of each window, and its number: one after another is compared with the best before."""
    (x,) = v.operands
    best, *rest = slices(x, **window_attrs(v))
    place = splat(0, TensorType(INDEX, best.shape))
    for k, y in enumerate(rest, 1):
        better = gt(y, best)
        if x.dtype.kind == "f":  # no nan is greater than another, and no number is greater than a nan
            better = and_(not_(le(y, best)), eq(best, best))
        place = where(better, splat(k, place.type), place)
        best = where(better, y, best)
    return best, place


def _max_parts(v: Value) -> Value:
    (x,) = v.operands
    return _greatest(v)[0] if _is_small(v) else max_(windows(x, **window_attrs(v)), axes=_middle(v, x))


def _index_parts(v: Value) -> Value:
    (x,), m = v.operands, len(v.attrs["window"])
    if _is_small(v):
        return _greatest(v)[1]
    found, lead = windows(x, **window_attrs(v)), x.ndim - m
    flat = reshape(found, shape=(*x.shape[:lead], int(np.prod(v.attrs["window"])), *found.shape[lead + m :]))
    return cast(argmax(flat, axes=(lead,)), dtype=INDEX)


def _take_parts(v: Value) -> Value:
    x, index = v.operands
    out: Value | None = None
    for k, y in enumerate(slices(x, **window_attrs(v))):
        out = y if out is None else where(eq(index, _same(index, k)), y, out)
    assert out is not None
    return out


def _flat_windows(x: np.ndarray, window: Steps, stride: Steps, dilation: Steps) -> np.ndarray:
    """[..., *windows, element]"""
    found, m = windows.reference(x, window, stride, dilation), len(window)
    lead = x.ndim - m
    found = np.moveaxis(found, tuple(range(lead, lead + m)), tuple(range(-m, 0)))
    return found.reshape(*found.shape[: found.ndim - m], int(np.prod(window)))


def _put_reference(g, index, size, window, stride, dilation):
    m = len(window)
    lead = g.ndim - m
    y = np.where(np.arange(int(np.prod(window))) == index[..., None], g[..., None], np.zeros((), g.dtype))
    y = y.reshape(*g.shape, *window)
    y = np.moveaxis(y, tuple(range(-m, 0)), tuple(range(lead, lead + m)))
    return add_windows.reference(np.zeros((*g.shape[:lead], *size), g.dtype), y, window, stride, dilation)


def _take_reference(x, index, **steps):
    return np.take_along_axis(_flat_windows(x, **steps), index[..., None].astype("i8"), -1)[..., 0]


# --- samples ----------------------------------------------------------------------------------------------------------

_CASES = (((2, 2), (2, 2), (1, 1)), ((3, 2), (1, 2), (1, 1)), ((2, 3), (2, 1), (2, 1)), ((2,), (2,), (1,)),
          ((1, 1), (1, 2), (1, 1)), ((5, 7), (1, 1), (1, 1)))


def _arrays(kinds: str) -> Iterator[tuple[np.ndarray, dict]]:
    rng = np.random.default_rng(3)
    for dtype in ARITHMETIC:
        if dtype.kind in kinds:
            for window, stride, dilation in _CASES if dtype == np.float64 else _CASES[:2]:
                x = (rng.integers(0, 5, (2, 5, 7)) - (0 if dtype.kind in "bu" else 2)).astype(dtype)
                yield x, dict(window=window, stride=stride, dilation=dilation)
    x = np.array([[1, np.nan, 2, -np.inf], [np.nan, 3, -np.inf, -np.inf]])
    yield x, dict(window=(1, 2), stride=(1, 1), dilation=(1, 1))
    yield np.empty((0, 2, 3)), dict(window=(2, 2), stride=(2, 2), dilation=(1, 1))


def _samples(pick: Callable[..., tuple], kinds: str = "biuf") -> Callable[[], Iterator[tuple[tuple, dict]]]:
    def samples() -> Iterator[tuple[tuple, dict]]:
        rng = np.random.default_rng(4)
        for x, steps in _arrays(kinds):
            flat = _flat_windows(x, **steps)
            index = rng.integers(0, flat.shape[-1], flat.shape[:-1]).astype(INDEX)
            operands, more = pick(x, index, flat[..., 0])
            yield operands, dict(more, **steps)

    return samples


# --- the ops ----------------------------------------------------------------------------------------------------------


def _with_size(op_samples: Callable[..., tuple]) -> Callable[[], Iterator[tuple[tuple, dict]]]:
    """Samples of an op whose attribute ``size`` is that of the array."""
    def samples() -> Iterator[tuple[tuple, dict]]:
        arrays = (x for x, _ in _arrays("iuf"))
        for x, (operands, attrs) in zip(arrays, _samples(lambda x, i, g: (op_samples(i, g), {}), "iuf")(), strict=True):
            yield operands, dict(attrs, size=x.shape[x.ndim - len(attrs["window"]) :])

    return samples


def _whole(v: Value, x: Value) -> dict:
    return {**window_attrs(v), "size": x.shape[x.ndim - len(v.attrs["window"]) :]}


pool_put: Op = register(Op(
    "pool_put",
    lambda g, index, size, **steps: _unpooled("pool_put", _indexed("pool_put", index, g), size, steps),
    _put_reference,
    Linear(lambda g, v: (pool_take(g, v.operands[1], **window_attrs(v)), None), (0,)),
    Decompose(lambda v: _spread(v.operands[0], v, v.operands[1])), frozenset(),
    _with_size(lambda i, g: (g, i)),
    "Zeros, and the sum of what comes to the element with a given number in each window: the transpose of `pool_take`.",
    Facts(batch=batch_leading),
))  # fmt: skip

pool_take: Op = register(Op(
    "pool_take",
    lambda x, index, **steps: _indexed("pool_take", index, _pooled("pool_take", x, "biuf", **steps)),
    _take_reference,
    Linear(lambda g, v: (pool_put(g, v.operands[1], **_whole(v, v.operands[0])), None), (0,)),
    Decompose(_take_parts), frozenset({"selects"}), _samples(lambda x, i, g: ((x, i), {})),
    "From each window, the element with a given number (row-major).",
    Facts(batch=batch_leading, fits=last_fit),
))  # fmt: skip

pool_index = register(Op(
    "pool_index", lambda x, **steps: _pooled("pool_index", x, "biuf", **steps).with_dtype(INDEX),
    lambda x, **steps: np.argmax(_flat_windows(x, **steps), axis=-1).astype(INDEX),
    None, Decompose(_index_parts), frozenset(), _samples(lambda x, i, g: ((x,), {})),
    "The number (row-major, i32) of the greatest element of each window: the first of equals, and the first nan.",
    Facts(batch=batch_leading, fits=last_fit),
))  # fmt: skip


def _first(v: Value) -> Value:
    return pool_index(v.operands[0], **window_attrs(v))


max_pool = register(Op(
    "max_pool", lambda x, **steps: _pooled("max_pool", x, "biuf", **steps),
    lambda x, **steps: np.max(_flat_windows(x, **steps), axis=-1),
    Custom(lambda t, v: pool_take(t[0], _first(v), **window_attrs(v)),
           lambda g, v: (pool_put(g, _first(v), **_whole(v, v.operands[0])),)),
    Decompose(_max_parts), frozenset({"selects"}), _samples(lambda x, i, g: ((x,), {})),
    "The greatest element of each window over the last axes. Its derivative goes to the first of equals.",
    Facts(batch=batch_leading, fits=last_fit),
))  # fmt: skip


def _sum_parts(v: Value) -> Value:
    (x,) = v.operands
    if not _is_small(v):
        return sum_(windows(x, **window_attrs(v)), axes=_middle(v, x))
    first, *rest = slices(x, **window_attrs(v))
    for y in rest:
        first = add(first, y)
    return first


sum_pool_input: Op = register(Op(
    "sum_pool_input", lambda g, size, **steps: _unpooled("sum_pool_input", g, size, steps),
    lambda g, size, window, stride, dilation: add_windows.reference(
        np.zeros((*g.shape[: g.ndim - len(size)], *size), g.dtype),
        np.broadcast_to(g.reshape(*g.shape[: g.ndim - len(size)], *[1] * len(size), *g.shape[g.ndim - len(size) :]),
                        (*g.shape[: g.ndim - len(size)], *window, *g.shape[g.ndim - len(size) :])),
        window, stride, dilation),
    Linear(lambda g, v: (sum_pool(g, **window_attrs(v)),)),
    Decompose(lambda v: _spread(v.operands[0], v, None)), frozenset(), _with_size(lambda i, g: (g,)),
    "For each element, the sum of what comes to the windows it is in: the transpose of `sum_pool`.",
    Facts(batch=batch_leading),
))  # fmt: skip

sum_pool: Op = register(Op(
    "sum_pool", lambda x, **steps: _pooled("sum_pool", x, "iuf", **steps),
    lambda x, **steps: np.sum(_flat_windows(x, **steps), axis=-1, dtype=x.dtype),
    Linear(lambda g, v: (sum_pool_input(g, **_whole(v, v.operands[0])),)),
    Decompose(_sum_parts), frozenset(), _samples(lambda x, i, g: ((x,), {}), "iuf"),
    "The sum of each window over the last axes.",
    Facts(batch=batch_leading, fits=last_fit),
))  # fmt: skip
