"""Statistics and differences: averages, medians, quantiles, covariances, finite differences, interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.errors import ShapeError
from symc.ir.dim import known_equal
from symc.numpy_api.convert import as_tensor
from symc.numpy_api.manipulation import normal_axes, normal_axis
from symc.numpy_api.promotion import rows
from symc.public import API, public
from symc.tensor import Tensor


@public(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    """The mean, or with weights the weighted mean."""
    t = as_tensor(a)
    if weights is None:
        out = API["mean"](t, axis, keepdims=keepdims)
        total: Any = API["full_like"](out, API["size"](t) if axis is None else _count(t, axis))
    else:
        w = as_tensor(weights)
        if w.ndim == 1 and t.ndim > 1 and isinstance(axis, int):
            place = normal_axis(axis, t.ndim, "average", t)
            w = API["reshape"](w, (1,) * place + (-1,) + (1,) * (t.ndim - 1 - place))
        product = API["multiply"](t, w)
        total = API["sum"](API["broadcast_to"](w, product.shape), axis, keepdims=keepdims)
        out = API["divide"](API["sum"](product, axis, keepdims=keepdims), total)
    return (out, total) if returned else out


def _count(t: Tensor, axis: Any) -> Any:
    n: Any = 1
    for a in normal_axes(axis, t.ndim, "average", t):
        n = n * t.shape[a]
    return n


def _in_line(a: Any, axis: Any) -> tuple[Tensor, int, tuple[int, ...]]:
    """The value with the axes to reduce made one last axis; its size; those axes."""
    t = as_tensor(a)
    axes = normal_axes(axis, t.ndim, "median", t)
    rest = [i for i in range(t.ndim) if i not in axes]
    flat = API["reshape"](API["transpose"](t, (*rest, *axes)), (*[t.shape[i] for i in rest], _count(t, axes)))
    n = flat.shape[-1]
    if not isinstance(n, int):
        raise ShapeError("a quantile along an axis of unknown size is not available", values=rows([t]),
                         help="declare the size of the axis, or use sc.sort and indexing")
    if n == 0:
        raise ShapeError("a quantile of no elements has no value", values=rows([t]))
    return flat, n, axes


@public(np.median)
def median(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Tensor:
    """The middle element, or the mean of the two in the middle."""
    return quantile(a, 0.5, axis, keepdims=keepdims)


@public(np.percentile)
def percentile(a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Tensor:
    """The q-th percentiles."""
    return quantile(a, np.asarray(q) / 100, axis, method=method, keepdims=keepdims)


@public(np.quantile)
def quantile(a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Tensor:
    """The q-th quantiles, q constant; nan where there is a nan. Methods: linear, lower, higher, nearest, midpoint."""
    flat, n, axes = _in_line(a, axis)
    if flat.dtype.kind not in "f":
        flat = API["astype"](flat, API["divide"](flat, 1).dtype)
    line = API["sort"](flat, -1)
    missing = API["isnan"](API["getitem"](line, (Ellipsis, -1)))
    points = np.asarray(q, dtype=float)
    if points.size and (points.min() < 0 or points.max() > 1):
        raise ShapeError("quantiles lie between 0 and 1")

    def one(p: float) -> Tensor:
        place = p * (n - 1)
        low = int(np.floor(place))
        high = min(low + 1, n - 1)
        part = {
            "linear": place - low,
            "lower": 0.0,
            "higher": float(place > low),
            "nearest": float(np.round(place) - low),
            "midpoint": 0.5 if place > low else 0.0,
        }[method]
        x, y = API["getitem"](line, (Ellipsis, low)), API["getitem"](line, (Ellipsis, high))
        value = (
            x if part == 0 else y if part == 1 else API["add"](API["multiply"](x, 1 - part), API["multiply"](y, part))
        )
        value = API["where"](missing, np.nan, value)
        return API["expand_dims"](value, axes) if keepdims else value

    results = [one(float(p)) for p in points.ravel()]
    if not points.ndim:
        return results[0]
    return API["reshape"](API["stack"](results), (*points.shape, *results[0].shape))


@public(np.cov)
def cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None) -> Tensor:
    """The covariance matrix of variables in rows (columns, if not ``rowvar``)."""
    x = API["atleast_2d"](m)
    x = x if rowvar or as_tensor(m).ndim < 2 else API["transpose"](x)
    if y is not None:
        other = API["atleast_2d"](y)
        x = API["concatenate"]([x, other if rowvar or as_tensor(y).ndim < 2 else API["transpose"](other)])
    d = API["subtract"](x, API["mean"](x, 1, keepdims=True))
    n = x.shape[1] - ((0 if bias else 1) if ddof is None else ddof)
    return API["squeeze"](API["divide"](API["matmul"](d, API["conjugate"](API["transpose"](d))), n))


@public(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Tensor:
    """The correlation matrix of variables in rows."""
    c = cov(x, y, rowvar)
    if not c.ndim:
        return API["divide"](c, c)
    spread = API["sqrt"](API["real"](API["diagonal"](c)))
    return API["divide"](API["divide"](c, API["expand_dims"](spread, 1)), spread)


# --- differences ------------------------------------------------------------------------------------------------------


@public(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Differences of neighbours along ``axis``, n times."""
    t = as_tensor(a)
    axis = normal_axis(axis, t.ndim, "diff", t)
    ends = [_end(e, t, axis) for e in (prepend, append)]
    pieces = [p for p in (ends[0], t, ends[1]) if p is not None]
    t = API["concatenate"](pieces, axis) if len(pieces) > 1 else t
    if n < 0:
        raise ShapeError(f"diff: n must not be negative, it is {n}")
    for _ in range(n):
        later, earlier = (API["getitem"](t, (slice(None),) * axis + (s,)) for s in (slice(1, None), slice(None, -1)))
        t = API["not_equal" if t.dtype.kind == "b" else "subtract"](later, earlier)
    return t


def _end(e: Any, t: Tensor, axis: int) -> Tensor | None:
    if e is None:
        return None
    e = as_tensor(e)
    return API["broadcast_to"](e, tuple(1 if i == axis else s for i, s in enumerate(t.shape))) if not e.ndim else e


@public(np.ediff1d)
def ediff1d(ary: Any) -> Tensor:
    """Differences of neighbours of the raveled value."""
    return diff(API["ravel"](ary))


@public(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Central differences inside, one-sided ones at the ends; a list for several axes. One spacing an axis."""
    t = as_tensor(f)
    t = t if t.dtype.kind in "fc" else API["astype"](t, API["divide"](t, 1).dtype)
    axes = normal_axes(axis, t.ndim, "gradient", t)
    steps: Sequence[Any] = varargs if len(varargs) > 1 else (varargs or (1.0,)) * len(axes)
    if len(steps) != len(axes) or any(np.ndim(s) for s in steps if not isinstance(s, Tensor)):
        raise ShapeError(
            f"gradient: {len(varargs)} spacings for {len(axes)} axes", help="give one number, or one an axis"
        )
    if edge_order not in (1, 2):
        raise ShapeError("gradient: edge_order is 1 or 2")
    out = [_gradient_along(t, a, h, edge_order) for a, h in zip(axes, steps, strict=True)]
    return out[0] if len(out) == 1 else out


def _gradient_along(t: Tensor, axis: int, h: Any, edge_order: int) -> Tensor:
    n = t.shape[axis]
    if isinstance(n, int) and n < edge_order + 1:
        raise ShapeError(f"gradient: axis {axis} needs at least {edge_order + 1} elements", values=rows([t]))

    def at(first: Any, last: Any) -> Tensor:
        return API["getitem"](t, (slice(None),) * axis + (slice(first, last),))

    inside = API["divide"](API["subtract"](at(2, None), at(None, -2)), API["multiply"](2.0, h))
    if edge_order == 1:
        ends = [
            API["divide"](API["subtract"](at(1, 2), at(0, 1)), h),
            API["divide"](API["subtract"](at(-1, None), at(-2, -1)), h),
        ]
    else:
        def edge(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
            outer = API["add"](API["multiply"](1.5, a), API["multiply"](0.5, c))
            return API["divide"](API["subtract"](API["multiply"](2.0, b), outer), h)
        ends = [edge(at(0, 1), at(1, 2), at(2, 3)), API["negative"](edge(at(-1, None), at(-2, -1), at(-3, -2)))]
    return API["concatenate"]([ends[0], inside, ends[1]], axis)


@public(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """The integral along ``axis`` by the trapezoidal rule."""
    t = as_tensor(y)
    axis = normal_axis(axis, t.ndim, "trapezoid", t)
    head = (slice(None),) * axis
    means = API["multiply"](
        API["add"](API["getitem"](t, (*head, slice(1, None))), API["getitem"](t, (*head, slice(None, -1)))), 0.5
    )
    if x is None:
        return API["sum"](API["multiply"](means, dx), axis)
    points = as_tensor(x)
    d = diff(points, axis=axis if points.ndim > 1 else -1)
    if points.ndim == 1:
        d = API["reshape"](d, (-1,) + (1,) * (t.ndim - 1 - axis))
    return API["sum"](API["multiply"](means, d), axis)


@public(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Tensor:
    """Values between the points (xp, fp), xp increasing; outside the first and last, or ``left`` and ``right``."""
    x, xp, fp = as_tensor(x), as_tensor(xp), as_tensor(fp)
    if xp.ndim != 1 or fp.ndim != 1 or known_equal(xp.value.shape[0], fp.value.shape[0]) is False:
        raise ShapeError("interp: xp and fp must be vectors of one length", values=rows([x, xp, fp]))
    i = API["clip"](API["searchsorted"](xp, x, "right"), 1, xp.shape[0] - 1)
    before = API["subtract"](i, 1)
    x0, x1 = API["take"](xp, before), API["take"](xp, i)
    y0, y1 = API["take"](fp, before), API["take"](fp, i)
    out = API["add"](
        y0, API["multiply"](API["divide"](API["subtract"](x, x0), API["subtract"](x1, x0)), API["subtract"](y1, y0))
    )
    out = API["where"](API["less"](x, API["getitem"](xp, 0)), API["getitem"](fp, 0) if left is None else left, out)
    return API["where"](
        API["greater"](x, API["getitem"](xp, -1)), API["getitem"](fp, -1) if right is None else right, out
    )
