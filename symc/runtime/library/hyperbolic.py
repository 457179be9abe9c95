# mypy: ignore-errors
"""Hyperbolic functions and their inverses, branch-free, in f32 and f64 (the style of ``library.math``; tanh is there).

sinh: an own minimax polynomial for abs(x) < 1, else (exp(x) - exp(-x)) / 2, halved before it can overflow. The inverse
functions: log1p of what keeps small arguments exact.

Errors in ulp, f64 / f32 (measured, and held by a test): sinh 1.8 / 1.8, cosh 1.8 / 1.8, asinh 2.0 / 2.0,
acosh 2.0 / 2.0, atanh 2.2 / 2.2.
"""

from __future__ import annotations

import math

from symc.runtime.compilers.numba_primitives import INF, NAN, copysign, f32, inlined, like
from symc.runtime.compilers.numba_primitives import by_width as _by_width
from symc.runtime.library.math import at_most, log1p_finite, split32, split64


def sinh(x):
    """The hyperbolic sine; typed by the overload below."""


def cosh(x):
    """The hyperbolic cosine; typed by the overload below."""


def _sinh64(x):
    size = abs(x)
    q, a, b = split64(at_most(size, 712.0))
    half = (1.0 + q) * a * (0.5 * b)
    z = x * x
    p = 7.77714572117127e-13
    p = p * z + 1.6056643408848743e-10
    p = p * z + 2.5052131170959552e-08
    p = p * z + 2.755731910587716e-06
    p = p * z + 0.00019841269841595473
    p = p * z + 0.00833333333333291
    p = p * z + 0.16666666666666669
    return x + x * (z * p) if size < 1.0 else copysign(half - 0.25 / half, x)


def _sinh32(x):
    size = abs(x)
    q, a, b = split32(at_most(size, f32(91.0)))
    half = (f32(1.0) + q) * a * (f32(0.5) * b)
    z = x * x
    p = f32(2.7822114e-06)
    p = p * z + f32(0.00019842896)
    p = p * z + f32(0.0083333105)
    p = p * z + f32(0.16666667)
    return x + x * (z * p) if size < f32(1.0) else copysign(half - f32(0.25) / half, x)


def _cosh64(x):
    q, a, b = split64(at_most(abs(x), 712.0))
    half = (1.0 + q) * a * (0.5 * b)
    return half + 0.25 / half


def _cosh32(x):
    q, a, b = split32(at_most(abs(x), f32(91.0)))
    half = (f32(1.0) + q) * a * (f32(0.5) * b)
    return half + f32(0.25) / half


_by_width(sinh, _sinh32, _sinh64)
_by_width(cosh, _cosh32, _cosh64)


@inlined
def asinh(x):
    a = abs(x)
    large = a > like(x, 1e9)
    s = like(x, 1) if large else a
    y = log1p_finite(a - like(x, 1) if large else s + s * s / (like(x, 1) + math.sqrt(s * s + like(x, 1))))
    y = y + (like(x, 0.6931471805599453) if large else like(x, 0))
    return copysign(y, x) if a < like(x, INF) else x


@inlined
def acosh(x):
    large = x > like(x, 1e9)
    t = like(x, 1) if large else x - like(x, 1)
    y = log1p_finite(x - like(x, 1) if large else t + math.sqrt(t + t + t * t))
    y = y + (like(x, 0.6931471805599453) if large else like(x, 0))
    y = like(x, NAN) if x < like(x, 1) else y
    return y if x < like(x, INF) else x


@inlined
def atanh(x):
    a = abs(x)
    one = like(x, 1)
    y = like(x, 0.5) * log1p_finite((a + a) / (one - a))
    return copysign(y if a < one else (like(x, INF) if a == one else like(x, NAN)), x)
