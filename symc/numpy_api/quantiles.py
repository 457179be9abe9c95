"""Quantiles, percentiles and medians by all of NumPy's methods, along axes of any sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symc.errors import DTypeError, InputError, ShapeError
from symc.numpy_api.manipulation import normal_axes
from symc.numpy_api.promotion import no_out, rows
from symc.numpy_api.selection import must_hold
from symc.numpy_api.statistics import aligned_weights
from symc.tensors.convert import as_tensor
from symc.tensors.public import API, called, public
from symc.tensors.tensor import Tensor

Points = np.ndarray


def _fit(alpha: float, beta: float) -> Callable[[int, Points], Points]:
    """The place of a quantile in the sorted sample, after Hyndman and Fan."""
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


def _step(place: Points, stays: Callable[[Points], Points]) -> Points:
    """The element at or after a place: where ``stays`` holds the one at it."""
    low = np.floor(place)
    return np.maximum(np.where(stays(place), low, low + 1), 0)


#: Methods whose place is that of one element.
_STEPS: dict[str, Callable[[int, Points], Points]] = {
    "lower": lambda n, q: np.floor((n - 1) * q),
    "higher": lambda n, q: np.ceil((n - 1) * q),
    "nearest": lambda n, q: np.around((n - 1) * q),
    "inverted_cdf": lambda n, q: _step(n * q - 1, lambda p: p % 1 == 0),
    "closest_observation": lambda n, q: _step(n * q - 1.5, lambda p: p % 2 == 1),
}
#: Methods that may fall between two elements.
_PLACES: dict[str, Callable[[int, Points], Points]] = {
    "linear": lambda n, q: (n - 1) * q,
    "midpoint": lambda n, q: 0.5 * (np.floor((n - 1) * q) + np.ceil((n - 1) * q)),
    "averaged_inverted_cdf": lambda n, q: n * q - 1,
    "interpolated_inverted_cdf": _fit(0, 1),
    "hazen": _fit(0.5, 0.5),
    "weibull": _fit(0, 0),
    "median_unbiased": _fit(1 / 3, 1 / 3),
    "normal_unbiased": _fit(3 / 8, 3 / 8),
}
METHODS = (*_PLACES, *_STEPS)


def _in_line(a: Any, axis: Any) -> tuple[Tensor, Any, tuple[int, ...]]:
    """The value with the axes to reduce made one last axis; its size, as a value where it is not known; those axes."""
    t = as_tensor(a)
    if t.dtype.kind == "c":
        raise DTypeError("a quantile is not defined for complex numbers", values=rows([t]))
    axes = normal_axes(axis, t.ndim, "quantile", t)
    rest = [i for i in range(t.ndim) if i not in axes]
    count: Any = 1
    for i in axes:
        count = count * t.shape[i]
    flat = API["reshape"](API["transpose"](t, (*rest, *axes)), (*[t.shape[i] for i in rest], count))
    n = flat.shape[-1]
    if not isinstance(n, int):
        return flat, API["astype"](as_tensor(n), np.float64), axes
    if n == 0:
        raise ShapeError("a quantile of no elements has no value", values=rows([t]))
    return flat, n, axes


def _points(q: Any, top: int, name: str) -> tuple[Any, bool]:
    """Points between 0 and 1, given up to ``top``; ``True`` if they promote like a Python number.

    Points that are data are a tensor, which a call checks.
    """
    if isinstance(q, Tensor) and q.value.data is not None:
        q = q.value.data
    if isinstance(q, Tensor) or isinstance(q, list | tuple) and any(isinstance(i, Tensor) for i in q):
        t = as_tensor(q)
        if t.dtype.kind == "c":
            raise DTypeError(f"{name}: points are real numbers, not {t.dtype}", values=rows([t]))
        t = API["astype"](t, np.int64) if t.dtype.kind == "b" else t
        return (t if top == 1 else API["divide"](t, float(top))), False
    points = np.asarray(q) if top == 1 else np.true_divide(q, top)
    if points.size and not (points.min() >= 0 and points.max() <= 1):
        raise ShapeError(f"{name}: the points lie between 0 and {top}, not {q}")
    return points, type(q) in (int, float)


def _public(name: str, top: int, skip: bool, doc: str) -> Callable[..., Tensor]:
    def call(a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
             keepdims: bool = False, *, weights: Any = None) -> Tensor:
        no_out(out, name)
        points, weak = _points(q, top, name)
        return _quantile(name, a, points, axis, method, keepdims, weak, weights, skip)
    return public(getattr(np, name))(called(call, name, doc))


quantile = _public("quantile", 1, False, "The q-th quantiles by any of NumPy's methods, also weighted ones; nan where "
                   "there is a nan.")
percentile = _public("percentile", 100, False, "The q-th percentiles; as ``quantile``, with q up to 100.")
nanquantile = _public("nanquantile", 1, True, "The q-th quantiles of the elements that are not nan; nan if there are "
                      "none.")
nanpercentile = _public("nanpercentile", 100, True, "The q-th percentiles of the elements that are not nan.")


def _median(name: str, skip: bool, doc: str) -> Callable[..., Tensor]:
    def call(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False,
             keepdims: bool = False) -> Tensor:
        no_out(out, name)
        return _quantile(name, a, np.asarray(0.5), axis, "linear", keepdims, True, None, skip)
    return public(getattr(np, name))(called(call, name, doc))


median = _median("median", False, "The middle element, or the mean of the two in the middle.")
nanmedian = _median("nanmedian", True, "The median of the elements that are not nan; nan if there are none.")


def _quantile(name: str, a: Any, q: Any, axis: Any, method: str, keepdims: bool, weak: bool, weights: Any,
              skip: bool) -> Tensor:
    if method not in METHODS:
        raise ShapeError(f"{name}: there is no method {method!r}", help="methods: " + ", ".join(METHODS))
    if weights is not None and method != "inverted_cdf":
        raise InputError(f"{name}: weights with method {method!r}", help="method='inverted_cdf' takes them")
    flat, n, axes = _in_line(a, axis)
    q_shape = q.shape
    q = API["ravel"](q) if isinstance(q, Tensor) and q.ndim else q
    one = _weighted(name, a, weights, flat, n, axis, skip) if weights is not None else _plain(
        flat, n, method, weak, skip)
    if isinstance(q, Tensor):
        out = one(q)
        out = API["reshape"](API["moveaxis"](out, -1, 0), (*q_shape, *out.shape[:-1])) if q_shape else out
    elif not q.ndim:
        out = one(q[()])
    elif q.size:
        results = [one(p) for p in q.ravel()]
        out = API["reshape"](API["stack"](results), (*q_shape, *results[0].shape))
    else:
        out = API["zeros"]((*q_shape, *flat.shape[:-1]), flat.dtype)
    return API["expand_dims"](out, tuple(len(q_shape) + i for i in axes)) if keepdims else out


def _valid(p: Any) -> Any:
    """0 for points between 0 and 1; for others an error in the call."""
    if not isinstance(p, Tensor):
        return 0
    inside = API["logical_and"](API["greater_equal"](p, 0), API["less_equal"](p, 1))
    return must_hold(inside, "the points q of quantiles lie between 0 and 1")


def _beside(x: Any, p: Any) -> Any:
    """A number of each line, in line with several points that are data."""
    return API["expand_dims"](x, -1) if isinstance(x, Tensor) and x.ndim and isinstance(p, Tensor) and p.ndim else x


def _plain(flat: Tensor, n: Any, method: str, weak: bool, skip: bool) -> Callable[[Any], Tensor]:
    """The quantile at a point (for a tensor of points along a new last axis)."""
    line = API["sort"](flat, -1)
    nan = None
    if line.dtype.kind == "f" and skip:
        n = API["sum"](API["logical_not"](API["isnan"](line)), -1, dtype=np.float64)
        nan = API["equal"](n, 0)
    elif line.dtype.kind == "f":
        nan = API["isnan"](API["getitem"](line, (Ellipsis, -1)))

    def one(p: Any) -> Tensor:
        count = _beside(n, p)
        several = isinstance(p, Tensor) and p.ndim

        def element(k: Any) -> Tensor:
            inside: Any = np.clip(k, 0, np.maximum(count - 1, 0)) + _valid(p)
            if not isinstance(inside, Tensor):
                return API["getitem"](line, (Ellipsis, int(inside)))
            place = API["astype"](inside, np.int64)
            if line.ndim == 1 or not isinstance(count, Tensor) or not count.ndim:
                return API["getitem"](line, (Ellipsis, place))
            found = API["take_along_axis"](line, place if several else API["expand_dims"](place, -1), -1)
            return found if several else API["squeeze"](found, -1)

        place = (_STEPS.get(method) or _PLACES[method])(count, p)
        whole = method in _STEPS or method == "linear" and p.dtype.kind in "iu"
        value = element(place) if whole else _between(element, place, count, method, weak)
        return value if nan is None else API["where"](_beside(nan, p), np.nan, value)

    return one


def _weighted(name: str, a: Any, weights: Any, flat: Tensor, n: Any, axis: Any, skip: bool) -> Callable[[Any], Tensor]:
    """As ``_plain``, by the first element up to which the weights are the share p of all."""
    t = as_tensor(a)
    w = API["broadcast_to"](aligned_weights(name, weights, t, axis), t.shape)
    w = API["astype"](_in_line(w, axis)[0], np.float64)
    if w.value.data is not None and (w.value.data < 0).any():
        raise InputError(f"{name}: a weight is negative", values=rows([w]))
    missing = API["isnan"](flat)
    w = API["where"](missing, 0.0, w) if skip else w
    order = API["argsort"](flat, -1)
    line, w = API["take_along_axis"](flat, order, -1), API["take_along_axis"](w, order, -1)
    share = API["cumsum"](w, -1)
    total = API["expand_dims"](API["getitem"](share, (Ellipsis, -1)), -1)
    good = API["logical_and"](API["all"](API["greater_equal"](w, 0), -1, keepdims=True), API["isfinite"](total / total))
    none = API["all"](missing, -1, keepdims=True) if skip else False
    checked = must_hold(API["logical_or"](good, none), "weights are not negative and have a sum other than 0")
    share = API["divide"](share, total)

    def one(p: Any) -> Tensor:
        points = p if isinstance(p, Tensor) and p.ndim else API["expand_dims"](p, 0)
        ends = API["astype"](share, p.dtype) if p.dtype.kind == "f" else share
        ends = API["where"](API["equal"](ends, 0), -1, ends)  # what has no weight is never taken
        below = API["less"](API["expand_dims"](ends, -1), points)
        place = API["minimum"](API["sum"](below, -2), API["astype"](as_tensor(n), np.int64) - 1)
        out = API["take_along_axis"](line, place + checked + _valid(p), -1)
        if flat.dtype.kind == "f":
            out = API["where"](none if skip else API["any"](missing, -1, keepdims=True), np.nan, out)
        return out if isinstance(p, Tensor) and p.ndim else API["squeeze"](out, -1)

    return one


def _between(element: Callable[[Any], Tensor], place: Any, n: Any, method: str, weak: bool) -> Any:
    """The value at a place between two elements. Of two infinities of one sign it is that infinity."""
    low = np.floor(place)
    part = place - low
    if isinstance(place, Tensor):
        if method == "averaged_inverted_cdf":
            part = np.where(part == 0, 0.5, 1.0).astype(place.dtype)
        part = np.where((place >= 0) & (place < n - 1), part, 0.0)
        x, y = (element(k) * (1.0 if weak else 1) for k in (low, low + (part != 0)))
        part = part.astype(x.dtype if weak else API["result_type"](x, part))
        return np.where(part == 0, x, np.where(part == 1, y, x * (1 - part) + y * part))
    if method == "averaged_inverted_cdf":
        part = type(place)(0.5 if part == 0 else 1)
    if not 0 <= place < n - 1:
        part = type(place)(0)
    x, y = element(low), element(low + (part != 0))
    share: Any = float(part) if weak else part
    if part in (0, 1):  # in the dtype of a mean, without a 0 that an infinity would make a nan
        return API["multiply"](y if part else x, 1.0 if weak else type(part)(1))
    return API["add"](API["multiply"](x, 1 - share), API["multiply"](y, share))
