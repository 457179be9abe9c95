# mypy: ignore-errors
"""Hyperbolic functions and their inverses, branch-free, in f32 and f64 (the style of ``library.math``; tanh is there).

sinh: an own minimax polynomial for abs(x) < 1, else (exp(x) - exp(-x)) / 2, halved before it can overflow. The inverse
functions: k * ln(2) + 2 atanh(s), an odd own minimax polynomial in s. One division gives s: (m - 1) / (m + 1) for the
mantissa m of what the logarithm would be of, or what that is near 0 (a / (1 + sqrt(1 + a**2)) for asinh).

Errors in ulp, f64 / f32 (measured, and held by a test): sinh 1.8 / 1.8, cosh 1.8 / 1.8, asinh 2.6 / 2.7,
acosh 2.6 / 2.6, atanh 1.7 / 1.8.
"""

from __future__ import annotations

import math

from symc.codegen.language.helpers import both, by_width, inlined
from symc.codegen.language.names import (
    INF,
    NAN,
    bits32,
    bits64,
    copysign,
    f32,
    float32_of,
    float64_of,
    fma,
    horner,
    i32,
)
from symc.runtime.library.math import (
    LN2_HI32,
    LN2_HI64,
    LN2_LO32,
    LN2_LO64,
    MAGIC64,
    at_most,
    mantissa,
    split,
)

#: Beyond, half of exp is infinite; below, asinh(x) is x.
TWICE64, TWICE32, TINY64, TINY32 = 712.0, f32(91.0), 1e-300, f32(1e-35)


@inlined
def _sinh64(x):
    size = abs(x)
    q, a, b = split(at_most(size, TWICE64))
    half = (1.0 + q) * a * (0.5 * b)
    z = x * x
    p = horner(z, 7.77714572117127e-13, 1.6056643408848743e-10, 2.5052131170959552e-08, 2.755731910587716e-06,
               0.00019841269841595473, 0.00833333333333291, 0.16666666666666669)
    return x + x * (z * p) if size < 1.0 else copysign(half - 0.25 / half, x)


@inlined
def _sinh32(x):
    size = abs(x)
    q, a, b = split(at_most(size, TWICE32))
    half = (f32(1.0) + q) * a * (f32(0.5) * b)
    z = x * x
    p = horner(z, f32(2.7822114e-06), f32(0.00019842896), f32(0.0083333105), f32(0.16666667))
    return x + x * (z * p) if size < f32(1.0) else copysign(half - f32(0.25) / half, x)


@both
def cosh(x):
    """The hyperbolic cosine."""
    q, a, b = split(at_most(abs(x), TWICE64))
    half = (1.0 + q) * a * (0.5 * b)
    return half + 0.25 / half


sinh = by_width(_sinh32, _sinh64)  # the hyperbolic sine


@inlined
def area64(k, s):
    """k * ln(2) + 2 atanh(s) for abs(s) < 0.273."""
    z = s * s
    p = horner(z, 0.07662317702474483, 0.054512816731356446, 0.0670713277752734, 0.07690108846965382,
               0.09090979555560853, 0.11111109826978215, 0.1428571429773629, 0.19999999999952903, 0.333333333333334)
    t = s + s
    return k * LN2_HI64 + (t + (t * (z * p) + k * LN2_LO64))


@inlined
def area32(k, s):
    """k * ln(2) + 2 atanh(s) for abs(s) < 0.273."""
    z = s * s
    p = horner(z, f32(0.12945753), f32(0.14167005), f32(0.2000297), f32(0.3333331))
    t = s + s
    return k * LN2_HI32 + (t + (t * (z * p) + k * LN2_LO32))


@both
def asinh(x):
    """The inverse hyperbolic sine."""
    a = abs(x)
    large, near = a > 1e9, a < 0.5625
    w = math.sqrt(a * a + 1.0)
    k, f = mantissa(a if large else a + w)
    k = 0.0 if near else (k + 1.0 if large else k)
    y = area64(k, (a if near else f) / (1.0 + w if near else 2.0 + f))
    return copysign(y, x) if a < INF and a > TINY64 else x


@both
def acosh(x):
    """The inverse hyperbolic cosine."""
    large, near = x > 1e9, x < 1.157
    t = x - 1.0
    w = math.sqrt(t * (x + 1.0))
    k, f = mantissa(x if large else x + w)
    k = 0.0 if near else (k + 1.0 if large else k)
    y = area64(k, (w if near else f) / ((1.0 + x) if near else 2.0 + f))
    y = NAN if x < 1.0 else y
    return y if x < INF else x


@inlined
def _atanh64(x):
    """log(r), r = (1 + a) / (1 - a) = 2**k * m: k is read off the bits, m is between 2/3 and 3/2. Up to 1/2 the terms
    of (m - 1) / (m + 1) are rounded once; above, 1 - a is exact."""
    a = abs(x)
    k = ((bits64(1.0 + a) - bits64(1.0 - a)) + 0x0008000000000000) >> 52
    p = float64_of((k + 1023) << 52)
    above, below, high = 1.0 + a, 1.0 - a, a > 0.5
    top = fma(-p, below, above) if high else fma(a, 1.0 + p, 1.0 - p)
    s = top / (fma(p, below, above) if high else fma(a, 1.0 - p, 1.0 + p))
    y = 0.5 * area64(float64_of(k + 0x4338000000000000) - MAGIC64, s)
    return copysign(y if a < 1.0 else (INF if a == 1.0 else NAN), x)


@inlined
def _atanh32(x):
    a = abs(x)
    k = i32((i32(bits32(f32(1.0) + a) - bits32(f32(1.0) - a)) + 0x00400000) >> 23)
    p = float32_of(i32((k + 127) << 23))
    above, below, high = f32(1.0) + a, f32(1.0) - a, a > f32(0.5)
    top = fma(-p, below, above) if high else fma(a, f32(1.0) + p, f32(1.0) - p)
    s = top / (fma(p, below, above) if high else fma(a, f32(1.0) - p, f32(1.0) + p))
    y = f32(0.5) * area32(f32(k), s)
    return copysign(y if a < f32(1.0) else (f32(INF) if a == f32(1.0) else f32(NAN)), x)


atanh = by_width(_atanh32, _atanh64)  # the inverse hyperbolic tangent
