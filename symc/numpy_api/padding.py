"""Padding: a value with more elements around it."""

from __future__ import annotations

from typing import Any

import numpy as np

from symc.errors import ShapeError
from symc.ir.dim import Size, known_equal
from symc.ir.op import lookup
from symc.ir.value import Value
from symc.numpy_api.joining import part, repeat
from symc.numpy_api.promotion import rows
from symc.tensors.convert import as_tensor, placed
from symc.tensors.public import public
from symc.tensors.sizes import as_size, user_size
from symc.tensors.tensor import Tensor

#: Modes that repeat elements.
MODES = ("edge", "reflect", "symmetric", "wrap")


def _pairs(given: Any, ndim: int, name: str) -> list[tuple[Any, Any]]:
    """NumPy's forms of a pad width: one number, one pair, or a pair an axis."""
    if not isinstance(given, list | tuple | np.ndarray):
        return [(given, given)] * ndim
    entries = list(given)
    if len(entries) == 1:
        return (
            _pairs(entries[0], ndim, name)
            if not isinstance(entries[0], list | tuple | np.ndarray) or len(entries[0]) == 2
            else _pairs(entries[0][0], ndim, name)
        )
    nested = [isinstance(e, list | tuple | np.ndarray) for e in entries]
    if len(entries) == 2 and not any(nested):
        return [(entries[0], entries[1])] * ndim
    if len(entries) != ndim or any(n and len(e) not in (1, 2) for e, n in zip(entries, nested, strict=True)):
        raise ShapeError(
            f"{name}: {len(entries)} pairs for {ndim} axes", help="give one number, one pair, or a pair an axis"
        )
    return [
        tuple(e) if n and len(e) == 2 else (e[0], e[0]) if n else (e, e) for e, n in zip(entries, nested, strict=True)
    ]  # type: ignore[misc]


@public(np.pad)
def pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = None) -> Tensor:
    """The value with more elements around it. ``mode``: constant, edge, reflect, symmetric or wrap."""
    t = as_tensor(array)
    widths = [(as_size(a, "pad: a width"), as_size(b, "pad: a width")) for a, b in _pairs(pad_width, t.ndim, "pad")]
    if any(isinstance(w, int) and w < 0 for pair in widths for w in pair):
        raise ShapeError("pad: a width is negative", values=rows([t]), help="a slice removes elements")
    if mode == "constant":
        return _pad_constant(t, widths, 0 if constant_values is None else constant_values)
    if constant_values is not None:
        raise ShapeError(f"pad: constant_values with mode {mode!r}", values=rows([t]),
                         help="only mode='constant' takes them")
    if mode not in MODES:
        raise ShapeError(f"pad: there is no mode {mode!r}", help="modes: constant, " + ", ".join(MODES))
    v = t.value
    for axis, (low, high) in enumerate(widths):
        v = _pad_axis(v, axis, low, high, mode)
    return Tensor(v)


def _pad_constant(t: Tensor, widths: list[tuple[Size, Size]], fill: Any) -> Tensor:
    v = t.value
    if not isinstance(fill, list | tuple | np.ndarray):
        scalar_fill = placed(fill, v.dtype, "pad")
        if all(w == 0 for pair in widths for w in pair):
            return t
        return Tensor(
            lookup("pad")(
                v,
                scalar_fill,
                low=tuple(a for a, _ in widths),
                high=tuple(b for _, b in widths),
                interior=(0,) * v.ndim,
            )
        )
    for axis, (pair, fills) in enumerate(zip(widths, _pairs(fill, v.ndim, "pad"), strict=True)):
        for side, (width, number) in enumerate(zip(pair, fills, strict=True)):
            place = tuple(width if i == axis else 0 for i in range(v.ndim))
            zeros = (0,) * v.ndim
            if width != 0:
                low, high = (zeros, place) if side else (place, zeros)
                v = lookup("pad")(v, placed(number, v.dtype, "pad"), low=low, high=high, interior=zeros)
    return Tensor(v)


def _pad_axis(v: Value, axis: int, low: Size, high: Size, mode: str) -> Value:
    n = v.shape[axis]
    if known_equal(n, 0) is True and (low != 0 or high != 0):
        raise ShapeError(f"pad: mode {mode!r} has nothing to repeat on the empty axis {axis}")
    if mode == "edge":
        pieces = [
            repeat(Tensor(part(v, axis, 0, 1)), user_size(low), axis).value,
            v,
            repeat(Tensor(part(v, axis, n - 1, 1)), user_size(high), axis).value,
        ]
    else:
        if isinstance(n, int) and any(not isinstance(w, int) or w > n - (mode == "reflect") for w in (low, high)):
            raise ShapeError(f"pad: mode {mode!r} takes widths up to {n - (mode == 'reflect')} on an axis of size {n}")
        skip = 1 if mode == "reflect" else 0
        if mode == "wrap":
            pieces = [part(v, axis, n - low, low), v, part(v, axis, 0, high)]
        else:
            pieces = [part(v, axis, low - 1 + skip, low, -1), v, part(v, axis, n - 1 - skip, high, -1)]
    kept = [p for p, w in zip(pieces, (low, 1, high), strict=True) if w != 0]
    return kept[0] if len(kept) == 1 else lookup("concat")(*kept, axis=axis)
