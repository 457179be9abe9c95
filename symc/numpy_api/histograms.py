"""Histograms: how many elements lie between edges, which are given or evenly spaced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.errors import DTypeError, InputError, ShapeError
from symc.ir.dim import known_equal
from symc.numpy_api.promotion import common_dtype, of_shape, rows, same_dtype
from symc.numpy_api.selection import must_hold
from symc.tensors.convert import as_tensor, inexact_dtype
from symc.tensors.public import API, public
from symc.tensors.sizes import as_size, known_number, user_size
from symc.tensors.tensor import Tensor


def _ends(t: Tensor, limits: Any, name: str) -> tuple[Any, Any]:
    """The first and last edge: those given, or the least and greatest element."""
    if limits is not None:
        low, high = limits
        if not isinstance(low, Tensor) and not isinstance(high, Tensor):
            if not (np.isfinite(low) and np.isfinite(high)) or low > high:
                raise InputError(f"{name}: a range goes from a number to a greater one, not from {low} to {high}")
            return (low - 0.5, high + 0.5) if low == high else (low, high)
    elif known_equal(t.value.type.size, 0) is True:
        return 0, 1
    else:
        low, high = API["min"](t), API["max"](t)
    point = API["equal"](low, high)
    return API["where"](point, low - 0.5, low), API["where"](point, high + 0.5, high)


def _count(bins: Any, name: str) -> Any:
    """The number of bins, or None where edges are given."""
    if API["ndim"](bins):
        return None
    count = as_size(bins, f"{name}: the number of bins")
    if isinstance(count, int) and count < 1:
        raise InputError(f"{name}: {count} bins; at least one is needed")
    return count


def _doane(x: Tensor, n: Any, extent: Any) -> Any:
    deviation = API["subtract"](x, API["mean"](x))
    sigma = API["std"](x)
    skew = API["abs"](API["mean"]((deviation / API["where"](sigma > 0, sigma, 1.0)) ** 3))
    error = API["sqrt"](6.0 * (n - 2) / ((n + 1.0) * (n + 3)))
    error = API["where"](n > 2, error, 1.0)
    width = extent / (1.0 + API["log2"](n) + API["log2"](1.0 + skew / error))
    return API["where"](API["logical_and"](sigma > 0, n > 2), width, 0.0)


def _fd(x: Tensor, n: Any) -> Any:
    high, low = API["percentile"](x, [75, 25])
    return 2.0 * (high - low) * n ** (-1.0 / 3.0)


def _auto(x: Tensor, n: Any, extent: Any) -> Any:
    return API["minimum"](API["maximum"](_fd(x, n), RULES["sqrt"](x, n, extent) / 2), RULES["sturges"](x, n, extent))


#: The widths of bins by the rules of NumPy: of the values, their number, and how far they extend.
RULES: dict[str, Callable[[Tensor, Any, Any], Any]] = {
    "sqrt": lambda x, n, extent: extent / API["sqrt"](n),
    "sturges": lambda x, n, extent: extent / (API["log2"](n) + 1.0),
    "rice": lambda x, n, extent: extent / (2.0 * n ** (1.0 / 3)),
    "scott": lambda x, n, extent: (24.0 * np.pi**0.5 / n) ** (1.0 / 3.0) * API["std"](x),
    "fd": lambda x, n, extent: _fd(x, n), "doane": _doane, "auto": _auto,
}  # fmt: skip


def _by_rule(t: Tensor, rule: str, limits: Any, weights: Any, name: str) -> Tensor:
    """The number of bins by a rule: a size that is data."""
    if rule not in RULES:
        raise InputError(f"{name}: bins={rule!r} is no rule that is known", help=f"one of {', '.join(RULES)}")
    if weights is not None:
        raise InputError(f"{name}: rules for the number of bins take no weights", help="give a number of bins")
    low, high = _ends(t, limits, name)
    if limits is not None:
        t = API["getitem"](t, API["logical_and"](t >= low, t <= high))
    if known_equal(t.value.type.size, 0) is True:
        return as_tensor(1)
    n = API["astype"](t.shape[0], np.float64)
    wide = API["astype"](t, np.float64) if t.dtype.kind in "iu" else t
    width = RULES[rule](t, n, API["astype"](API["max"](wide) - API["min"](wide), np.float64))
    width = API["maximum"](width, 1) if t.dtype.kind in "iu" else width
    length = API["subtract"](API["astype"](high, np.float64), API["astype"](low, np.float64))
    count = API["ceil"](length / API["where"](width > 0, width, 1.0))
    return API["astype"](API["where"](width > 0, count, 1.0), np.int64)


def _edges(t: Tensor, bins: Any, limits: Any, name: str, weights: Any = None) -> tuple[Tensor, Tensor]:
    """The edges of the bins, and 0, or an error in the call where they are not finite."""
    if isinstance(bins, str):
        bins = _by_rule(API["ravel"](t), bins, limits, weights, name)
    count = _count(bins, name)
    if count is None:
        edges = as_tensor(bins)
        if edges.ndim != 1:
            raise ShapeError(f"{name}: edges are a vector, not of {edges.ndim} axes", values=rows([edges]))
        data = edges.value.data
        if data is not None and (data[1:] < data[:-1]).any():
            raise InputError(f"{name}: edges do not increase", values=rows([edges]))
        return edges, as_tensor(0)
    low, high = _ends(t, limits, name)
    dtype = inexact_dtype(common_dtype([as_tensor(low), as_tensor(high), t]))
    edges = API["linspace"](low, high, user_size(count + 1), dtype=dtype)
    finite = API["isfinite"](API["add"](API["getitem"](edges, 0), API["getitem"](edges, -1)))
    return edges, must_hold(finite, f"{name}: edges are finite")


def _places(t: Tensor, edges: Tensor) -> Tensor:
    """The bin of each element, from 1 on: 0 below all, the number of edges above. The last edge belongs to its bin."""
    place = API["searchsorted"](edges, t, "right")
    return API["subtract"](place, API["astype"](API["equal"](t, API["getitem"](edges, -1)), place.dtype))


def _weights_of(weights: Any, t: Tensor, name: str) -> Tensor | None:
    if weights is None:
        return None
    return API["ravel"](of_shape(as_tensor(weights), t.value.shape, f"{name}: what weighs the values"))


def _numbers(a: Any) -> Tensor:
    t = as_tensor(a)
    if t.dtype.kind == "c":
        raise DTypeError("a histogram is not defined for complex numbers", values=rows([t]))
    return API["astype"](t, np.uint8) if t.dtype.kind == "b" else t


@public(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Tensor:
    """The edges of the bins of ``histogram``, also by rules such as "auto", whose number of bins is data."""
    t = _numbers(a)
    _weights_of(weights, t, "histogram_bin_edges")
    edges, fine = _edges(t, bins, range, "histogram_bin_edges", weights)
    return edges if not isinstance(bins, str) and API["ndim"](bins) else (
        API["add"](edges, API["astype"](fine, edges.dtype)))


@public(np.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None,
              weights: Any = None) -> tuple[Tensor, Tensor]:
    """(counts, edges): how many elements lie in each of so many bins, or between edges; the sum of their weights.

    ``density``: divided by the widths of the bins, and by the sum. ``bins``: a rule such as "auto", too.
    """
    t = _numbers(a)
    w = _weights_of(weights, t, "histogram")
    t = API["ravel"](t)
    edges, fine = _edges(t, bins, range, "histogram", weights)
    number = edges.shape[0]
    ones = API["ones"](t.shape, np.int64) if w is None else w
    counts = API["zeros"](number + 1, ones.dtype).at[API["add"](_places(t, edges), fine)].add(ones)
    counts = API["getitem"](counts, slice(1, number))
    return _density(counts, [edges]) if density else counts, edges


@public(np.histogramdd)
def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None,
                weights: Any = None) -> tuple[Tensor, tuple[Tensor, ...]]:
    """(counts, edges) for points, which are rows of a matrix or one vector for each coordinate; ``bins`` as well."""
    points = list(sample) if isinstance(sample, list | tuple) else None
    if points is None:
        t = as_tensor(sample)
        t = API["transpose"](API["atleast_2d"](t)) if t.ndim < 2 else t
        columns = known_number(t.value.shape[1]) if t.ndim == 2 else None
        if columns is None:
            raise ShapeError("histogramdd: points are rows of a matrix with a known number of columns",
                             values=rows([t]))
        points = [API["getitem"](t, (slice(None), k)) for k in np.arange(columns)]
    points = same_dtype([_numbers(p) for p in points], "histogramdd")
    if any(p.ndim != 1 for p in points):
        raise ShapeError("histogramdd: the coordinates of points are vectors", values=rows(points))
    each = list(bins) if isinstance(bins, Sequence) and not isinstance(bins, str) or API["ndim"](bins) else None
    if each is not None and len(each) != len(points):
        raise InputError(f"histogramdd: {len(each)} numbers of bins for {len(points)} coordinates")
    limits = [None] * len(points) if range is None else list(range)
    if len(limits) != len(points):
        raise InputError(f"histogramdd: {len(limits)} ranges for {len(points)} coordinates")
    w = _weights_of(weights, points[0], "histogramdd")
    place: Any = as_tensor(0)
    edges, sizes = [], []
    for p, b, limit in zip(points, [bins] * len(points) if each is None else each, limits, strict=True):
        found, fine = _edges(p, b, limit, "histogramdd")
        place = API["add"](API["multiply"](place, found.shape[0] + 1), API["add"](_places(p, found), fine))
        edges.append(found)
        sizes.append(found.shape[0] + 1)
    ones = API["ones"](points[0].shape, np.float64) if w is None else API["astype"](w, np.float64)
    total: Any = 1
    for n in sizes:
        total = total * n
    counts = API["reshape"](API["zeros"](total, np.float64).at[place].add(ones), tuple(sizes))
    counts = API["getitem"](counts, tuple(slice(1, n - 1) for n in sizes))
    return _density(counts, edges) if density else counts, tuple(edges)


def _density(counts: Tensor, edges: Sequence[Tensor]) -> Tensor:
    """Divided by the widths of the bins, and by the sum."""
    out = API["divide"](counts, API["sum"](counts))
    for k, found in enumerate(edges):
        shape = (1,) * k + (-1,) + (1,) * (len(edges) - 1 - k)
        out = API["divide"](out, API["reshape"](API["astype"](API["diff"](found), np.float64), shape))
    return out


@public(np.histogram2d)
def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None,
                weights: Any = None) -> tuple[Tensor, Tensor, Tensor]:
    """(counts, edges of x, edges of y) for the points (x, y). ``bins``: one for both, or a pair."""
    a, b = as_tensor(x), as_tensor(y)
    if known_equal(a.value.type.size, b.value.type.size) is False:
        raise ShapeError("histogram2d: x and y have different lengths", values=rows([a, b]))
    if API["ndim"](bins) if not isinstance(bins, list | tuple) else len(bins) != 2:
        bins = [bins, bins] if isinstance(bins,
            list | tuple) or as_tensor(bins).shape[0] != 2 else list(as_tensor(bins))
    counts, (first, second) = histogramdd([a, b], bins, range, density, weights)
    return counts, first, second
