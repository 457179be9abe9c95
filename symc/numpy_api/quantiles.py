"""Quantiles, percentiles and medians by all of NumPy's methods, along axes of any sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symc.errors import DTypeError, ShapeError, SymbolicValueError
from symc.numpy_api.manipulation import normal_axes
from symc.numpy_api.promotion import rows
from symc.tensors.convert import as_tensor
from symc.tensors.public import API, public
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


def _points(q: Any, top: int, name: str) -> tuple[Points, bool]:
    """Constant points between 0 and 1, given up to ``top``; ``True`` if they promote like a Python number."""
    if isinstance(q, Tensor) and q.value.op.name == "constant":
        q = q.value.attrs["value"].data
    if API["ndim"](q) and not isinstance(q, np.ndarray) and any(isinstance(i, Tensor) for i in q) or isinstance(
        q, Tensor
    ):
        given = q if isinstance(q, Tensor) else as_tensor(q)
        raise SymbolicValueError(f"{name}: the points q must be constant", values=rows([given]),
                                 help="sc.sort(x) and an index give an element whose place is data")
    points = np.asarray(q) if top == 1 else np.true_divide(q, top)
    if points.size and not (points.min() >= 0 and points.max() <= 1):
        raise ShapeError(f"{name}: the points lie between 0 and {top}, not {q}")
    return points, type(q) in (int, float)


@public(np.median)
def median(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Tensor:
    """The middle element, or the mean of the two in the middle."""
    return _quantile(a, np.asarray(0.5), axis, "linear", keepdims, True)


@public(np.percentile)
def percentile(a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Tensor:
    """The q-th percentiles; as ``quantile``, with q up to 100."""
    points, weak = _points(q, 100, "percentile")
    return _quantile(a, points, axis, method, keepdims, weak)


@public(np.quantile)
def quantile(a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Tensor:
    """The q-th quantiles by any of NumPy's methods, q constant; nan where there is a nan."""
    points, weak = _points(q, 1, "quantile")
    return _quantile(a, points, axis, method, keepdims, weak)


def _quantile(a: Any, q: Points, axis: Any, method: str, keepdims: bool, weak: bool) -> Tensor:
    if method not in METHODS:
        raise ShapeError(f"quantile: there is no method {method!r}", help="methods: " + ", ".join(METHODS))
    flat, n, axes = _in_line(a, axis)
    line = API["sort"](flat, -1)
    nan = API["isnan"](API["getitem"](line, (Ellipsis, -1))) if line.dtype.kind == "f" else None

    def element(k: Any) -> Tensor:
        inside: Any = np.clip(k, 0, n - 1)
        place = API["astype"](inside, np.int64) if isinstance(inside, Tensor) else int(inside)
        return API["getitem"](line, (Ellipsis, place))

    def one(p: Any) -> Tensor:
        place = (_STEPS.get(method) or _PLACES[method])(n, p)
        whole = method in _STEPS or method == "linear" and p.dtype.kind in "iu"
        value = element(place) if whole else _between(element, place, n, method, weak)
        if nan is not None:
            value = API["where"](nan, np.nan, value)
        return API["expand_dims"](value, axes) if keepdims else value

    results = [one(p) for p in q.ravel()]
    if not q.ndim:
        return results[0]
    if not results:
        return API["zeros"]((0, *API["getitem"](line, (Ellipsis, 0)).shape), line.dtype)
    return API["reshape"](API["stack"](results), (*q.shape, *results[0].shape))


def _between(element: Callable[[Any], Tensor], place: Any, n: Any, method: str, weak: bool) -> Any:
    """The value at a place between two elements. Of two infinities of one sign it is that infinity."""
    low = np.floor(place)
    part = place - low
    if isinstance(place, Tensor):
        if method == "averaged_inverted_cdf":
            part = np.where(part == 0, np.float64(0.5), np.float64(1))
        part = np.where((place >= 0) & (place < n - 1), part, 0.0)
        x, y = element(low) * 1.0, element(low + (part != 0)) * 1.0
        part = part.astype(x.dtype) if weak else part
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
