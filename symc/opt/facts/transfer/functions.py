"""Facts of functions of one number, and of random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symc.ir.value import Value
from symc.opt.facts.fact import UNKNOWN, Fact, transfer
from symc.opt.facts.transfer.ends import INF, Ends, ends, rounded

#: Units in the last place that a library function may be off.
SLACK = 8


def _monotone(name: str, f: Callable[[Any], Any], domain: Ends = (-INF, INF), image: Ends = (-INF, INF),
              zero: bool = False) -> None:
    """Declare a function that grows: its range is that of the ends, and within ``image``. nan outside of ``domain``.

    ``zero``: it is zero only at zero.
    """

    def fact(v: Value, given: list[Fact]) -> Fact:
        (x,) = given
        if v.dtype.kind != "f":
            return UNKNOWN
        a, b = ends(x)
        low = _near(v.dtype, f, max(a, domain[0]), -INF) if b >= domain[0] else None
        high = _near(v.dtype, f, min(b, domain[1]), INF) if a <= domain[1] else None
        low = image[0] if low is None else max(low, image[0])
        high = image[1] if high is None else min(high, image[1])
        nan = x.nan or a < domain[0] or b > domain[1]
        return Fact(low, high, nan, True, x.zero if zero else True)

    transfer(name)(fact)


def _near(dtype: np.dtype, f: Callable[[Any], Any], x: float, towards: float) -> float | None:
    """f(x), moved a few units outwards, as a library may be off: not where 0 and 1 meet, nor to or from infinity."""
    with np.errstate(all="ignore"):
        out = float(f(x))
        if out != out:
            return None
        if math.isinf(out) or (x in (0, 1) and out in (0, 1)):
            return out
        unit = float(np.spacing(dtype.type(abs(out))))
    return out + math.copysign(SLACK * max(unit, float(np.finfo(dtype).tiny)), towards)


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def _softplus(x: float) -> float:
    return float(np.logaddexp(x, 0.0))


_monotone("exp", np.exp, image=(0.0, INF))
_monotone("exp2", np.exp2, image=(0.0, INF))
_monotone("expm1", np.expm1, image=(-1.0, INF), zero=True)
_monotone("log", np.log, domain=(0.0, INF))
_monotone("log2", np.log2, domain=(0.0, INF))
_monotone("log10", np.log10, domain=(0.0, INF))
_monotone("log1p", np.log1p, domain=(-1.0, INF), zero=True)
_monotone("cbrt", np.cbrt, zero=True)
_monotone("sigmoid", _sigmoid, image=(0.0, 1.0))
_monotone("softplus", _softplus, image=(0.0, INF))
_monotone("tanh", np.tanh, image=(-1.0, 1.0))
_monotone("sinh", np.sinh)
_monotone("asinh", np.arcsinh)
_monotone("atan", np.arctan, image=(-2.0, 2.0))
_monotone("asin", np.arcsin, domain=(-1.0, 1.0), image=(-2.0, 2.0))
_monotone("acosh", np.arccosh, domain=(1.0, INF), image=(0.0, INF))
_monotone("atanh", np.arctanh, domain=(-1.0, 1.0))


@transfer("sqrt")
def _sqrt(v: Value, given: list[Fact]) -> Fact:
    (x,) = given
    if v.dtype.kind != "f":
        return UNKNOWN
    a, b = ends(x)
    low = rounded(v.dtype, lambda p, _: np.sqrt(p), max(a, 0.0), 0)
    high = rounded(v.dtype, lambda p, _: np.sqrt(p), max(b, 0.0), 0)
    return Fact(low, high, x.nan or a < 0, x.inf, x.zero, False)


def _between(low: float, high: float, nan_of_inf: bool = False, zero: bool = True) -> Callable[..., Fact]:
    def fact(v: Value, given: list[Fact]) -> Fact:
        if v.dtype.kind != "f":
            return UNKNOWN
        nan = any(f.nan or (nan_of_inf and f.inf) for f in given)
        return Fact(low, high, nan, math.isinf(low) or math.isinf(high), zero)

    return fact


transfer("sin", "cos")(_between(-1.0, 1.0, True))
transfer("cosh")(_between(1.0, INF, zero=False))
transfer("erf")(_between(-1.0, 1.0))
transfer("erfc")(_between(0.0, 2.0))
transfer("erfcx")(_between(0.0, INF))
transfer("atan2")(_between(-3.15, 3.15))
transfer("trigamma")(_between(0.0, INF))


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
    f = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint}[v.op.name]
    low, high = ends(x)
    return Fact(float(f(low)), float(f(high)), x.nan, x.inf, x.zero if x.integer else True, True)
