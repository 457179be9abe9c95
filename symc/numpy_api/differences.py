"""Differences and integrals along axes, and interpolation between points."""

from __future__ import annotations

from typing import Any

import numpy as np

from symc.errors import DTypeError, InputError, ShapeError
from symc.ir.dim import known_equal
from symc.ir.ops.ensure import at_least, ensured
from symc.ir.ops.kernel import bounded
from symc.numpy_api.joining import within
from symc.numpy_api.manipulation import normal_axes, normal_axis
from symc.numpy_api.promotion import check_times, common_dtype, rows
from symc.tensors.convert import as_tensor, default_float
from symc.tensors.public import API, public
from symc.tensors.sizes import integer
from symc.tensors.tensor import Tensor


@public(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Differences of neighbours along ``axis``, n times."""
    t = as_tensor(a)
    axis = normal_axis(axis, t.ndim, "diff", t)
    if (n := integer(n, "diff: n")) == 0:
        return t
    ends = [_end(e, t, axis) for e in (prepend, append)]
    pieces = [p for p in (ends[0], t, ends[1]) if p is not None]
    t = API["concatenate"](pieces, axis) if len(pieces) > 1 else t
    if n < 0:
        raise ShapeError(f"diff: n must not be negative, it is {n}")
    check_times(n, "diff: n")
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
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """Differences of neighbours of the raveled value, between what ``to_begin`` and ``to_end`` hold."""
    t = API["ravel"](ary)
    between = API["subtract"](API["getitem"](t, slice(1, None)), API["getitem"](t, slice(None, -1)))
    ends = [e if e is None else API["ravel"](within(as_tensor(e), t.dtype, "same_kind", "ediff1d"))
            for e in (to_begin, to_end)]
    return API["concatenate"]([e for e in (ends[0], between, ends[1]) if e is not None])


@public(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Central differences inside, one-sided ones at the ends; a tuple for several axes.

    One spacing for all axes, or for each axis a spacing or a vector of positions.
    """
    t = as_tensor(f)
    t = t if t.dtype.kind in "fc" else API["astype"](t, default_float())
    axes = normal_axes(axis, t.ndim, "gradient", t)
    steps = [as_tensor(s) for s in varargs or (1.0,)]
    if len(steps) == 1 and not steps[0].ndim:
        steps *= len(axes)
    if len(steps) != len(axes):
        raise InputError(
            f"gradient: {len(varargs)} spacings for {len(axes)} axes", values=rows([t, *steps]),
            help="give one number, or for each axis a number or a vector of positions",
        )
    if edge_order not in (1, 2):
        raise ShapeError(f"gradient: edge_order is 1 or 2, not {edge_order!r}")
    for a in axes:
        t = Tensor(at_least(t.value, a, edge_order + 1))
    out = [_gradient_along(t, a, _spacing(s, t, a), edge_order) for a, s in zip(axes, steps, strict=True)]
    return out[0] if len(out) == 1 else tuple(out)


def _spacing(step: Tensor, t: Tensor, axis: int) -> Tensor:
    """A number, or the distances of neighbouring positions, in line with an axis of ``t``."""
    if not step.ndim:
        return step
    if step.ndim != 1 or known_equal(step.value.shape[0], t.value.shape[axis]) is False:
        raise ShapeError(f"gradient: positions are a vector of the size of axis {axis}", values=rows([t, step]))
    step = step if step.dtype.kind in "fc" else API["astype"](step, default_float())  # no differences of unsigned ones
    return API["reshape"](diff(step), (-1,) + (1,) * (t.ndim - 1 - axis))


def _gradient_along(t: Tensor, axis: int, h: Tensor, edge_order: int) -> Tensor:
    def at(x: Tensor, first: Any, last: Any) -> Tensor:
        return API["getitem"](x, (slice(None),) * (axis - t.ndim + x.ndim) + (slice(first, last),))

    slopes = API["divide"](API["subtract"](at(t, 1, None), at(t, None, -1)), h)
    if not h.ndim:
        inside = API["divide"](API["subtract"](at(t, 2, None), at(t, None, -2)), API["multiply"](2.0, h))
        shares: list[Any] = [0.5, 0.5]
    else:  # the derivative of the parabola through three points is a mean of the slopes beside its middle
        before, after = at(h, None, -1), at(h, 1, None)
        both = API["add"](before, after)
        left, right = API["divide"](after, both), API["divide"](before, both)
        inside = API["add"](API["multiply"](left, at(slopes, None, -1)), API["multiply"](right, at(slopes, 1, None)))
        shares = [at(right, None, 1), at(left, -1, None)]
    ends = [at(slopes, None, 1), at(slopes, -1, None)]
    if edge_order == 2:
        nexts = [at(slopes, 1, 2), at(slopes, -2, -1)]
        ends = [
            API["add"](s, API["multiply"](part, API["subtract"](s, other)))
            for s, other, part in zip(ends, nexts, shares, strict=True)
        ]
    return API["astype"](API["concatenate"]([ends[0], inside, ends[1]], axis), t.dtype)


@public(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """The integral along ``axis`` by the trapezoidal rule."""
    t, along = as_tensor(y), axis  # which may name another axis of what is stretched over more of them
    axis = normal_axis(along, t.ndim, "trapezoid", t)
    head = (slice(None),) * axis
    sums = API["add"](API["getitem"](t, (*head, slice(1, None))), API["getitem"](t, (*head, slice(None, -1))))
    if x is not None:
        points = as_tensor(x)
        dx = diff(points, axis=along if points.ndim > 1 else -1)
        if points.ndim == 1:
            dx = API["reshape"](dx, (-1,) + (1,) * (t.ndim - 1 - axis))
    return API["sum"](API["divide"](API["multiply"](dx, sums), 2.0), along)


@public(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Tensor:
    """Values between the points (xp, fp), xp increasing; outside the first and last, or ``left`` and ``right``.

    With a ``period``, xp is taken modulo it, in any order. All is done in the default float.
    """
    x, xp, fp = as_tensor(x), as_tensor(xp), as_tensor(fp)
    if xp.ndim != 1 or fp.ndim != 1 or known_equal(xp.value.shape[0], fp.value.shape[0]) is False:
        raise ShapeError("interp: xp and fp must be vectors of one length", values=rows([x, xp, fp]))
    if known_equal(xp.value.shape[0], 0) is True:
        raise ShapeError("interp: there are no points", values=rows([x, xp, fp]))
    if "c" in x.dtype.kind + xp.dtype.kind:
        raise DTypeError("interp: x and xp must be real", values=rows([x, xp, fp]))
    real = common_dtype([API["zeros"](()), x, xp, API["real"](fp)])
    x, xp = API["astype"](x, real), API["astype"](xp, real)
    if fp.value.shape != xp.value.shape:
        fp = Tensor(ensured(fp.value, xp.value.shape))
    fp = API["astype"](fp, np.result_type(real, np.complex64) if fp.dtype.kind == "c" else real)
    if period is not None:
        x, xp, fp = _periodic(x, xp, fp, period)
        left = right = None
    if fp.dtype.kind == "c":
        def part(name: str) -> Tensor:
            return _interpolated(x, xp, *(v if v is None else API[name](v) for v in (fp, left, right)))

        return API["make_complex"](part("real"), part("imag"))
    return _interpolated(x, xp, fp, left, right)


def _interpolated(x: Tensor, xp: Tensor, fp: Any, left: Any, right: Any) -> Tensor:
    """Real values at ``x``: between the points, and outside of them."""
    first, last = API["getitem"](fp, 0), API["getitem"](fp, -1)
    out = first if known_equal(xp.value.shape[0], 1) is True else _between(x, xp, fp)
    out = API["where"](API["less"](x, API["getitem"](xp, 0)), first if left is None else left, out)
    return API["where"](API["greater"](x, API["getitem"](xp, -1)), last if right is None else right, out)


def _periodic(x: Tensor, xp: Tensor, fp: Tensor, period: Any) -> tuple[Tensor, Tensor, Tensor]:
    """One period, sorted, with a point of the neighbouring ones at each end."""
    if API["ndim"](period):
        raise ShapeError("interp: the period is one number")
    if not isinstance(period, Tensor) and period == 0:
        raise ShapeError("interp: the period must not be 0")
    p = API["abs"](API["astype"](as_tensor(period), xp.dtype))
    x, xp = API["remainder"](x, p), API["remainder"](xp, p)
    order = API["argsort"](xp)
    xp, fp = API["take"](xp, order), API["take"](fp, order)
    ends = slice(-1, None), slice(0, 1)
    before, after = API["subtract"](API["getitem"](xp, ends[0]), p), API["add"](API["getitem"](xp, ends[1]), p)
    return (
        x,
        API["concatenate"]([before, xp, after]),
        API["concatenate"]([API["getitem"](fp, ends[0]), fp, API["getitem"](fp, ends[1])]),
    )


def _between(x: Tensor, xp: Tensor, fp: Tensor) -> Tensor:
    """Interpolation from the point before, or where that is not a number, from the point after or at a point."""
    n, points = xp.value.shape[0], xp.shape[0]
    place = API["subtract"](API["searchsorted"](xp, x, "right"), 1)
    before = Tensor(bounded(API["clip"](place, 0, API["maximum"](points - 2, 0)).value, size=n))
    after = Tensor(bounded(API["minimum"](API["add"](before, 1), points - 1).value, size=n))
    (x0, x1), (y0, y1) = ([API["take"](a, i) for i in (before, after)] for a in (xp, fp))
    slope = API["divide"](API["subtract"](y1, y0), API["subtract"](x1, x0))
    out = API["add"](API["multiply"](slope, API["subtract"](x, x0)), y0)
    other = API["add"](API["multiply"](slope, API["subtract"](x, x1)), y1)
    flat = API["where"](API["equal"](y0, y1), y0, other)
    found = API["where"](API["isnan"](other), flat, other)
    found = API["where"](API["equal"](x, x1), y1, API["where"](API["equal"](x, x0), y0, found))
    # xp is nan only where x is: an infinity at a point, or beside one
    return API["where"](API["logical_and"](API["isnan"](out), API["logical_not"](API["isnan"](x))), found, out)
