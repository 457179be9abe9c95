"""Padding: a value with more elements around it."""

from __future__ import annotations

from typing import Any

import numpy as np

from symc.errors import ShapeError
from symc.ir.dim import Size, known_equal
from symc.ir.op import lookup
from symc.ir.ops.ensure import at_least
from symc.ir.ops.shape import slice_along
from symc.ir.size_extremes import minimum
from symc.ir.value import Value
from symc.numpy_api.joining import repeat
from symc.numpy_api.manipulation import normal_axis
from symc.numpy_api.promotion import rows
from symc.tensors.convert import as_tensor, placed
from symc.tensors.public import API, public
from symc.tensors.sizes import as_size, holds_entries, user_size
from symc.tensors.tensor import Tensor

#: Modes of a statistic, and the function of each.
STATISTICS = {"maximum": "max", "minimum": "min", "mean": "mean", "median": "median"}
#: Modes, and the keyword that each takes.
MODES = {"constant": "constant_values", "edge": "", "reflect": "reflect_type", "symmetric": "reflect_type", "wrap": "",
         "linear_ramp": "end_values", **dict.fromkeys(STATISTICS, "stat_length"), "empty": ""}


def _pairs(given: Any, ndim: int, name: str) -> list[tuple[Any, Any]]:
    """NumPy's forms of a pad width: one number, one pair, or a pair an axis."""
    if not holds_entries(given):
        return [(given, given)] * ndim
    nested = [*map(holds_entries, given)]
    if len(given) == 1 and not (nested[0] and len(given[0]) > 2):
        return _pairs(given[0], ndim, name)
    if len(given) == 2 and not any(nested):
        return [(given[0], given[1])] * ndim
    if len(given) != ndim or any(n and len(e) not in (1, 2) for e, n in zip(given, nested, strict=True)):
        raise ShapeError(
            f"{name}: {len(given)} pairs for {ndim} axes", help="give one number, one pair, or a pair an axis"
        )
    return [(e[0], e[-1]) if n else (e, e) for e, n in zip(given, nested, strict=True)]


@public(np.pad)
def pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = None, end_values: Any = None,
        stat_length: Any = None, reflect_type: str | None = None) -> Tensor:
    """The value with more elements around it, by any of NumPy's modes but functions.

    ``mode``: constant, edge, reflect, symmetric, wrap, linear_ramp, maximum, minimum, mean, median or empty (zeros).
    """
    t = as_tensor(array)
    widths = [(as_size(a, "pad: a width"), as_size(b, "pad: a width")) for a, b in _widths(pad_width, t)]
    if any(isinstance(w, int) and w < 0 for pair in widths for w in pair):
        raise ShapeError("pad: a width is negative", values=rows([t]), help="a slice removes elements")
    if mode not in MODES:
        raise ShapeError(f"pad: there is no mode {mode!r}", help="modes: " + ", ".join(MODES))
    more = _of_mode(t, mode, {"constant_values": constant_values, "end_values": end_values, "stat_length": stat_length,
                              "reflect_type": reflect_type})
    if mode in ("constant", "empty"):
        return _pad_constant(t, widths, 0 if more is None else more)
    for axis, (low, high) in enumerate(widths):
        n = t.value.shape[axis]
        if known_equal(n, 0) is True and (low != 0 or high != 0):
            raise ShapeError(f"pad: mode {mode!r} has nothing to repeat on the empty axis {axis}")
        if low == 0 and high == 0:
            continue
        t = Tensor(at_least(t.value, axis, 1))
        if mode == "linear_ramp":
            t = _pad_ramp(t, axis, low, high, more[axis])
        elif mode in STATISTICS:
            t = _pad_statistic(t, axis, low, high, mode, more[axis])
        elif more == "odd" or _far(n, (low, high), mode):
            t = _pad_far(t, axis, low, high, mode, more == "odd")
        else:
            t = Tensor(_pad_axis(t.value, axis, low, high, mode))
    return t


def _of_mode(t: Tensor, mode: str, given: dict[str, Any]) -> Any:
    """The one keyword that a mode takes, by axis if it is numbers. Raises ShapeError for others."""
    wrong = [n for n, x in given.items() if x is not None and n != MODES[mode]]
    if wrong:
        takes = [m for m, n in MODES.items() if n == wrong[0]]
        raise ShapeError(f"pad: {wrong[0]} with mode {mode!r}", values=rows([t]),
                         help=f"only mode={' or '.join(map(repr, takes))} takes them")
    more = given[MODES[mode]] if MODES[mode] else None
    if mode == "linear_ramp":
        more = _pairs(0 if more is None else more, t.ndim, "pad")
    elif mode in STATISTICS:
        more = _pairs(more, t.ndim, "pad")
    if MODES[mode] == "reflect_type" and more not in (None, "even", "odd"):
        raise ShapeError(f"pad: reflect_type is 'even' or 'odd', not {more!r}", values=rows([t]))
    return more


def _widths(given: Any, t: Tensor) -> list[tuple[Any, Any]]:
    if not isinstance(given, dict):
        return _pairs(given, t.ndim, "pad")
    by_axis = {normal_axis(a, t.ndim, "pad", t): _pairs(w, 1, "pad")[0] for a, w in given.items()}
    return [by_axis.get(a, (0, 0)) for a in range(t.ndim)]


def _far(n: Size, widths: tuple[Size, Size], mode: str) -> bool:
    """True if an axis whose size is known is repeated more than once."""
    return mode != "edge" and isinstance(n, int) and any(
        isinstance(w, int) and w > n - (mode == "reflect") for w in widths)


def _joined(t: Tensor, axis: int, low: Size, high: Size, before: Tensor, after: Tensor) -> Tensor:
    kept = [p for p, w in ((before, low), (t, 1), (after, high)) if w != 0]
    return API["concatenate"](kept, axis)


def _pad_ramp(t: Tensor, axis: int, low: Size, high: Size, ends: tuple[Any, Any]) -> Tensor:
    """Evenly spaced numbers from the ends given up to the edges."""
    def ramp(end: Any, place: int, width: Size) -> Tensor:
        edge = API["take"](t, place, axis)
        return API["linspace"](Tensor(placed(end, t.dtype, "pad")), edge, user_size(width), endpoint=False,
                               dtype=t.dtype, axis=axis)
    return _joined(t, axis, low, high, ramp(ends[0], 0, low), API["flip"](ramp(ends[1], -1, high), axis))


def _pad_statistic(t: Tensor, axis: int, low: Size, high: Size, mode: str, lengths: tuple[Any, Any]) -> Tensor:
    """A statistic of the elements at each end (of all, where no length is given)."""
    n = t.value.shape[axis]

    def statistic(length: Any, last: bool, width: Size) -> Tensor:
        size = n if length is None else minimum(as_size(length, "pad: stat_length"), n)
        if isinstance(size, int) and (size < 0 or size == 0 and mode in ("maximum", "minimum")):
            raise ShapeError(f"pad: mode {mode!r} of stat_length {length} elements has no value", values=rows([t]))
        chosen = Tensor(slice_along(t.value, axis, n - size if last else 0, size))
        found = API[STATISTICS[mode]](chosen, axis, keepdims=True)
        found = API["astype"](API["round"](found) if t.dtype.kind in "iu" and found.dtype.kind == "f" else found,
                              t.dtype)
        return repeat(found, user_size(width), axis)

    return _joined(t, axis, low, high, statistic(lengths[0], False, low), statistic(lengths[1], True, high))


def _pad_far(t: Tensor, axis: int, low: Size, high: Size, mode: str, odd: bool) -> Tensor:
    """Repetitions of any number, each reflected if the one before is not; ``odd``: about the values at the edges."""
    n = t.shape[axis]
    period = n if mode in ("symmetric", "wrap") else API["maximum"](n - 1, 1)
    k = API["arange"](user_size(-low), n + user_size(high))
    turn, place = API["floor_divide"](k, period), API["remainder"](k, period)
    if mode == "wrap":
        return API["take"](t, place, axis)
    back = API["remainder"](turn, 2)
    out = API["take"](t, API["where"](API["equal"](back, 1), n - 1 - place, place), axis)
    if not odd:
        return out
    shape = (-1,) + (1,) * (t.ndim - 1 - axis)
    work = np.dtype(np.int64) if t.dtype.kind == "b" else t.dtype
    back, turn = (API["astype"](API["reshape"](x, shape), work) for x in (back, API["floor_divide"](turn, 2)))
    first, last, out = (API["astype"](x, work) for x in (API["take"](t, [0], axis), API["take"](t, [-1], axis), out))
    out = out + 2 * back * (last - out) + 2 * turn * (last - first)
    return API["astype"](out, t.dtype)


def _pad_constant(t: Tensor, widths: list[tuple[Size, Size]], fill: Any) -> Tensor:
    v = t.value
    if not holds_entries(fill):
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
    if mode == "edge":
        pieces = [
            repeat(Tensor(slice_along(v, axis, 0, 1)), user_size(low), axis).value,
            v,
            repeat(Tensor(slice_along(v, axis, n - 1, 1)), user_size(high), axis).value,
        ]
    else:
        if isinstance(n, int) and not (isinstance(low, int) and isinstance(high, int)):
            raise ShapeError(f"pad: mode {mode!r} takes widths that are known on an axis of size {n}")
        skip = 1 if mode == "reflect" else 0
        if mode == "wrap":
            pieces = [slice_along(v, axis, n - low, low), v, slice_along(v, axis, 0, high)]
        else:
            pieces = [slice_along(v, axis, low - 1 + skip, low, -1), v, slice_along(v, axis, n - 1 - skip, high, -1)]
    kept = [p for p, w in zip(pieces, (low, 1, high), strict=True) if w != 0]
    return kept[0] if len(kept) == 1 else lookup("concat")(*kept, axis=axis)
