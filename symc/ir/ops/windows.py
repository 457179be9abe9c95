"""Sliding windows over the last axes of an array, and their transpose, which adds windows up where they lie.

Convolution and pooling are made of these two: a convolution is a product with windows (`conv`), pooling a reduction of
them (`pool`). Attributes, one entry an axis of the window: ``window`` its extent, ``stride`` how far the next one is,
``dilation`` how far its own elements are apart. Every window lies inside the array; who wants padding pads first.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from symc.errors import DTypeError, InternalError, ShapeError
from symc.ir.dim import Size, floordiv, known_nonnegative
from symc.ir.dtypes import foreign
from symc.ir.facts import Facts
from symc.ir.op import Element, Linear, Op, Update, register, splat
from symc.ir.ops.elementwise import batch_leading
from symc.ir.ops.shape import pad, reshape, slice_
from symc.ir.types import TensorType
from symc.ir.value import Value

Steps = tuple[int, ...]
Window = tuple[Size, ...]


def span(window: Size, dilation: int) -> Size:
    """From the first to the last element of a window along an axis."""
    return (window - 1) * dilation + 1


def count(n: Size, window: Size, stride: int, dilation: int) -> Size:
    """The number of windows on an axis of n elements."""
    return floordiv(n - span(window, dilation), stride) + 1


def check_steps(name: str, rank: int, **steps: Window) -> None:
    """Each must have one positive number for each of ``rank`` axes. (The sizes of a window may be symbolic.)"""
    for what, given in steps.items():
        if len(given) != rank or any(k < 1 if isinstance(k, int) else what != "window" for k in given):
            raise InternalError(f"{name}: {what} {given} is not {rank} positive numbers")


def counts(name: str, shape: Sequence[Size], window: Window, stride: Steps, dilation: Steps) -> tuple[Size, ...]:
    """The number of windows along each axis of ``shape``, at least one."""
    check_steps(name, len(shape), window=window, stride=stride, dilation=dilation)
    for n, k, d in zip(shape, window, dilation, strict=True):
        if known_nonnegative(span(k, d) - 1 - n):
            raise ShapeError(f"{name}: a window that spans {span(k, d)} elements does not fit an axis of size {n}")
    return tuple(count(n, k, s, d) for n, k, s, d in zip(shape, window, stride, dilation, strict=True))


def fits(v: Value, n: Sequence[Size], window: Window) -> list[tuple[Size, Size]]:
    """The sizes of axes, each with how many elements there must be so that there is a window."""
    return [(size, span(k, d)) for size, k, d in zip(n, window, v.attrs["dilation"], strict=True)]


def last_fit(v: Value) -> list[tuple[Size, Size]]:
    """``fits`` where windows are over the last axes of the first operand: what facts.fits of an op says."""
    window = v.attrs["window"]
    return fits(v, v.operands[0].shape[v.operands[0].ndim - len(window) :], window)


def _infer(t: TensorType, window: Window, stride: Steps, dilation: Steps) -> TensorType:
    lead = t.ndim - len(window)
    if lead < 0:
        raise ShapeError(f"windows: {t} has fewer than {len(window)} axes")
    return t.with_shape((*t.shape[:lead], *window, *counts("windows", t.shape[lead:], window, stride, dilation)))


def _view(x: np.ndarray, window: Steps, stride: Steps, dilation: Steps) -> np.ndarray:
    """A view with the axes of the result, writable where ``x`` is."""
    lead = x.ndim - len(window)
    out = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(x.shape[lead:], window, stride, dilation, strict=True)]
    if min(out) < 1:
        raise ShapeError(f"windows: a window {window}, dilation {dilation}, does not fit an array of shape {x.shape}")
    own = x.strides[lead:]
    steps = [n * d for n, d in zip(own, dilation, strict=True)] + [n * s for n, s in zip(own, stride, strict=True)]
    plain = x if foreign(x.dtype) is None else x.view(f"u{x.itemsize}")  # of which NumPy strides no arrays
    found = np.lib.stride_tricks.as_strided(plain, (*x.shape[:lead], *window, *out), (*x.strides[:lead], *steps))
    return found.view(x.dtype)


def _element(v: Value, index: Sequence[Value], at) -> Value:
    return at(0, _places(v, index))


def _places(v: Value, index: Sequence[Value]) -> list[Value]:
    """Index in the array of an element of a window."""
    a = v.attrs
    m = len(a["window"])
    lead, inner, outer = index[: len(index) - 2 * m], index[len(index) - 2 * m : len(index) - m], index[-m:]
    steps = zip(inner, outer, a["dilation"], a["stride"], strict=True)
    return [*lead, *[_times(i, d) + _times(o, s) for i, o, d, s in steps]]


def _times(i: Value, n: int) -> Value:
    return i if n == 1 else i * n


def slices(x: Value, window: Steps, stride: Steps, dilation: Steps) -> Iterator[Value]:
    """For each element of a window, in row-major order, that of all windows."""
    lead = x.ndim - len(window)
    out = [count(n, k, s, d) for n, k, s, d in zip(x.shape[lead:], window, stride, dilation, strict=True)]
    for at in itertools.product(*map(range, window)):
        yield slice_(x, start=(*[0] * lead, *[i * d for i, d in zip(at, dilation, strict=True)]),
                     size=(*x.shape[:lead], *out), step=(*[1] * lead, *stride))


def window_attrs(v: Value) -> dict:
    """The attributes that say which windows there are."""
    return {name: v.attrs[name] for name in ("window", "stride", "dilation")}


def _transpose(g: Value, v: Value) -> tuple[Value]:
    return (add_windows(splat(0, v.operands[0].type), g, **window_attrs(v)),)


def _samples() -> Iterator[tuple[tuple, dict]]:
    x = np.arange(2 * 5 * 6, dtype="f8").reshape(2, 5, 6)
    for window, stride, dilation in (((2, 3), (1, 1), (1, 1)), ((2, 2), (2, 2), (1, 1)), ((3, 2), (2, 1), (1, 3)),
                                     ((1, 1), (3, 2), (1, 1)), ((2,), (1,), (2,))):
        yield (x,), dict(window=window, stride=stride, dilation=dilation)
    yield (x.astype("f4"),), dict(window=(5, 6), stride=(1, 1), dilation=(1, 1))
    yield (np.arange(7),), dict(window=(3,), stride=(2,), dilation=(1,))
    yield (x[:0],), dict(window=(2, 2), stride=(1, 1), dilation=(1, 1))


def _required(v: Value) -> list[tuple[Size, Size]]:
    return [(n - least, 1) for n, least in last_fit(v)]


windows = register(Op(
    "windows", _infer, lambda x, window, stride, dilation: np.array(_view(x, window, stride, dilation), order="C"),
    Linear(_transpose), Element(_element), frozenset({"movement", "selects"}), _samples,
    "Sliding windows over the last axes: leading axes, then those of a window, then which window.",
    Facts(requires=_required, fits=last_fit),
))  # fmt: skip


def _add_infer(t: TensorType, y: TensorType, **steps: Any) -> TensorType:
    if y.dtype != t.dtype:
        raise DTypeError(f"add_windows: {y} into {t}")
    want = _infer(t, **steps)
    if y.shape != want.shape:
        raise ShapeError(f"add_windows: windows of {t} are {want}, not {y}")
    return t


def _add_reference(x, y, window, stride, dilation):
    out, m = np.array(x), len(window)
    view = _view(out, window, stride, dilation)
    for index in np.ndindex(*window):  # the elements of one window lie apart from those of any other with this index
        at = (slice(None),) * (x.ndim - m) + index
        view[at] += y[at]
    return out


def _add_transpose(g: Value, v: Value) -> tuple[Value, Value]:
    return g, windows(g, **window_attrs(v))


def _add_samples() -> Iterator[tuple[tuple, dict]]:
    rng = np.random.default_rng(0)
    for (x,), steps in _samples():
        shape = _view(x, **steps).shape
        yield (x, rng.integers(-4, 5, shape).astype(x.dtype)), steps


#: Windows of at most this many elements are written out as sums.
WRITTEN_OUT = 32


def _as_sum(v: Value) -> Value | None:
    """The sum that each element gets, gathered: for each element of a window those of all windows, spread out with
    zeros."""
    from symc.ir.ops.arithmetic import add

    x, y = v.operands
    window: Any = v.attrs["window"]
    if not all(isinstance(k, int) for k in window) or math.prod(window) > WRITTEN_OUT:
        return None
    lead, m = x.ndim - len(window), len(window)
    total, zero = x, splat(0, TensorType(y.dtype, ()))
    stride, dilation = v.attrs["stride"], v.attrs["dilation"]
    for at in itertools.product(*map(range, window)):
        part = slice_(y, start=(*[0] * lead, *at, *[0] * m), size=(*y.shape[:lead], *[1] * m, *y.shape[lead + m :]),
                      step=(1,) * y.ndim)
        part = reshape(part, shape=(*y.shape[:lead], *y.shape[lead + m :]))
        low = [i * d for i, d in zip(at, dilation, strict=True)]
        high = [n - i - (k - 1) * s - 1
                for n, i, k, s in zip(x.shape[lead:], low, part.shape[lead:], stride, strict=True)]
        total = add(total, pad(part, zero, low=(*[0] * lead, *low), high=(*[0] * lead, *high),
                               interior=(*[0] * lead, *[s - 1 for s in stride])))
    return total


add_windows = register(Op(
    "add_windows", _add_infer, _add_reference, Linear(_add_transpose),
    Update(lambda v, index, at: _places(v, index), lambda v: "add"), samples=_add_samples,
    doc="The first operand with the windows in the second added where `windows` reads them.",
    facts=Facts(batch=batch_leading, lower_batched=_as_sum, requires=_required, fits=last_fit),
))  # fmt: skip
