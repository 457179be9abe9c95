"""Facts of functions of one number, and of random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symc.ir.facts import Between, Monotone
from symc.ir.value import Value
from symc.opt.facts.fact import UNKNOWN, Fact, transfer
from symc.opt.facts.transfer.ends import INF, ends, rounded

#: Units in the last place that a library function may be off.
SLACK = 8


@transfer("values")
def _of_values(v: Value, given: list[Fact]) -> Fact:
    """The fact that the record states of the values of a function."""
    values = v.op.facts.values
    if v.dtype.kind != "f" or values is None:
        return UNKNOWN
    return _monotone(v.dtype, values, given[0]) if isinstance(values, Monotone) else _between(values, given)


def _monotone(dtype: np.dtype, m: Monotone, x: Fact) -> Fact:
    a, b = ends(x)
    low = _near(dtype, m.f, max(a, m.domain[0]), -INF) if b >= m.domain[0] else None
    high = _near(dtype, m.f, min(b, m.domain[1]), INF) if a <= m.domain[1] else None
    low = m.image[0] if low is None else max(low, m.image[0])
    high = m.image[1] if high is None else min(high, m.image[1])
    return Fact(low, high, x.nan or a < m.domain[0] or b > m.domain[1], True, x.zero if m.zero else True)


def _between(b: Between, given: list[Fact]) -> Fact:
    nan = any(f.nan or (b.of_inf and f.inf) for f in given)
    return Fact(b.low, b.high, nan, math.isinf(b.low) or math.isinf(b.high), b.zero)


def _near(dtype: np.dtype, f: Callable[[Any], Any], x: float, towards: float) -> float | None:
    """f(x), moved a few units outwards, as a library may be off: not where 0 and 1 meet, nor to or from infinity."""
    with np.errstate(all="ignore"):
        out = float(f(np.float64(x)))
        if out != out:
            return None
        if math.isinf(out) or (x in (0, 1) and out in (0, 1)):
            return out
        unit = float(np.spacing(dtype.type(abs(out))))
    return out + math.copysign(SLACK * max(unit, float(np.finfo(dtype).tiny)), towards)


@transfer("sqrt")
def _sqrt(v: Value, given: list[Fact]) -> Fact:
    (x,) = given
    if v.dtype.kind != "f":
        return UNKNOWN
    a, b = ends(x)
    low = rounded(v.dtype, lambda p, _: np.sqrt(p), max(a, 0.0), 0)
    high = rounded(v.dtype, lambda p, _: np.sqrt(p), max(b, 0.0), 0)
    return Fact(low, high, x.nan or a < 0, x.inf, x.zero, False)


@transfer("log1mexp")
def _log1mexp(v: Value, given: list[Fact]) -> Fact:
    (x,) = given
    return Fact(None, 0.0, x.nan or ends(x)[1] > 0)


@transfer("acos")
def _acos(v: Value, given: list[Fact]) -> Fact:
    if v.dtype.kind != "f":
        return UNKNOWN
    low, high = ends(given[0])
    return Fact(0.0, 3.15, given[0].nan or low < -1 or high > 1, False)


@transfer("logaddexp")
def _logaddexp(v: Value, given: list[Fact]) -> Fact:
    x, y = given
    low = max(ends(x)[0], ends(y)[0])
    low = low - SLACK * float(np.spacing(v.dtype.type(abs(low)))) if math.isfinite(low) else low
    return Fact(low, None, x.nan or y.nan)


@transfer("floor", "ceil", "trunc", "rint")
def _round(v: Value, given: list[Fact]) -> Fact:
    (x,) = given
    f = v.op.facts.numpy
    assert f is not None
    low, high = ends(x)
    return Fact(float(f(low)), float(f(high)), x.nan, x.inf, x.zero if x.integer else True, True)
