# mypy: ignore-errors
"""Inverse trigonometric functions, branch-free, f32 and f64 (the style of ``library.math``): atan, atan2, asin, acos.

atan: of min / max of the operands (1 / x above 1), an own minimax polynomial of degree 20 in the square on [0, 1]
(f32: 9). asin and acos: for abs(x) > 1/2 through asin(sqrt((1 - x) / 2)), degree 12 in the square on [0, 1/4]
(f32: 5).

Errors in ulp, f64 / f32 (measured, and held by a test): atan 1.5 / 1.5, atan2 2.0 / 0.6, asin 2.0 / 2.0,
acos 1.5 / 1.5.
"""

from __future__ import annotations

import math

from symc.runtime.compilers.numba_primitives import INF, bits64, copysign, f32, f64, inlined
from symc.runtime.compilers.numba_primitives import by_width as _by_width

PI, PI_LOW = 3.141592653589793, 1.2246467991473532e-16
HALF_PI, HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17


def atan(x):
    """The inverse tangent; typed by the overload below."""


def atan2(x, y):
    """The angle of the point (y, x); typed by the overload below."""


def asin(x):
    """The inverse sine; typed by the overload below."""


def acos(x):
    """The inverse cosine; typed by the overload below."""


@inlined
def arc64(t):
    """atan(t) - t for 0 <= t <= 1."""
    z = t * t
    p = 1.3242530711261378e-05
    p = p * z + -0.00015229337647601387
    p = p * z + 0.0008317386468357312
    p = p * z + -0.0028855459202895032
    p = p * z + 0.007196660619976113
    p = p * z + -0.01389932610599481
    p = p * z + 0.021982078090527272
    p = p * z + -0.02990051047557702
    p = p * z + 0.036639207487503815
    p = p * z + -0.04219023722922127
    p = p * z + 0.04722257711656241
    p = p * z + -0.0525349924144307
    p = p * z + 0.05880523746206737
    p = p * z + -0.06666403484324718
    p = p * z + 0.07692279791141751
    p = p * z + -0.09090907001441195
    p = p * z + 0.11111111007115715
    p = p * z + -0.14285714282584866
    p = p * z + 0.1999999999995175
    p = p * z + -0.3333333333333307
    return t * (z * p)


@inlined
def arc32(t):
    z = t * t
    p = f32(-0.0017835993)
    p = p * z + f32(0.010871448)
    p = p * z + f32(-0.031100929)
    p = p * z + f32(0.057884272)
    p = p * z + f32(-0.08399419)
    p = p * z + f32(0.10950902)
    p = p * z + f32(-0.14264017)
    p = p * z + f32(0.1999853)
    p = p * z + f32(-0.333333)
    return t * (z * p)


def _atan64(x):
    a = abs(x)
    t = 1.0 / a if a > 1.0 else a
    off = arc64(t)
    return copysign(HALF_PI - (t + (off - HALF_PI_LOW)) if a > 1.0 else t + off, x)


def _atan32(x):
    a = abs(x)
    t = f32(1.0) / a if a > f32(1.0) else a
    off = arc32(t)
    y = f32(HALF_PI) - (t + (off - f32(-4.371139e-08))) if a > f32(1.0) else t + off
    return copysign(y, x)


def _atan2_64(x, y):
    a, b = abs(x), abs(y)
    steep = a > b
    low, high = (b if steep else a), (a if steep else b)
    t = low / high
    t = 0.0 if low == 0.0 else (1.0 if low == INF else t)
    off = arc64(t)
    angle = HALF_PI - (t + (off - HALF_PI_LOW)) if steep else t + off
    angle = (PI - (angle - PI_LOW)) if bits64(y) < 0 else angle
    return copysign(angle, x) if a == a and b == b else x + y


@inlined
def _in_double(x, y):
    return atan2(f64(x), f64(y))


def _atan2_32(x, y):
    return f32(_in_double(x, y))


@inlined
def arcsine64(z):
    """(asin(s) - s) / (s * z) for z = s * s up to 1/4."""
    p = 0.03190895431565523
    p = p * z + -0.016219312164274975
    p = p * z + 0.019525056888220076
    p = p * z + 0.00652916567288879
    p = p * z + 0.012168933540888173
    p = p * z + 0.013885277989287698
    p = p * z + 0.017359700471391442
    p = p * z + 0.022371758332906107
    p = p * z + 0.030381959125185563
    p = p * z + 0.04464285682862587
    p = p * z + 0.07500000000336603
    p = p * z + 0.1666666666666541
    return p


def _asin64(x):
    a = abs(x)
    far = a > 0.5
    z = (1.0 - a) * 0.5 if far else x * x
    s = math.sqrt(z) if far else a
    off = s * (z * arcsine64(z))
    return copysign(HALF_PI - (2.0 * s + (2.0 * off - HALF_PI_LOW)) if far else s + off, x)


def _acos64(x):
    a = abs(x)
    far = a > 0.5
    z = (1.0 - a) * 0.5 if far else x * x
    s = math.sqrt(z) if far else x
    off = s * (z * arcsine64(z))
    twice = 2.0 * s + 2.0 * off
    wide = PI - (2.0 * s + (2.0 * off - PI_LOW)) if x < 0.0 else twice
    return wide if far else HALF_PI - (s + (off - HALF_PI_LOW))


@inlined
def arcsine32(z):
    p = f32(0.0421588)
    p = p * z + f32(0.024184862)
    p = p * z + f32(0.04546908)
    p = p * z + f32(0.0749531)
    p = p * z + f32(0.16666752)
    return p


def _asin32(x):
    a = abs(x)
    far = a > f32(0.5)
    z = (f32(1.0) - a) * f32(0.5) if far else x * x
    s = math.sqrt(z) if far else a
    off = s * (z * arcsine32(z))
    y = f32(HALF_PI) - (f32(2.0) * s + (f32(2.0) * off - f32(-4.371139e-08))) if far else s + off
    return copysign(y, x)


def _acos32(x):
    a = abs(x)
    far = a > f32(0.5)
    z = (f32(1.0) - a) * f32(0.5) if far else x * x
    s = math.sqrt(z) if far else x
    off = s * (z * arcsine32(z))
    twice = f32(2.0) * s + f32(2.0) * off
    wide = f32(PI) - (f32(2.0) * s + (f32(2.0) * off - f32(-8.742278e-08))) if x < f32(0.0) else twice
    return wide if far else f32(HALF_PI) - (s + (off - f32(-4.371139e-08)))


_by_width(atan, _atan32, _atan64)
_by_width(atan2, _atan2_32, _atan2_64, 2)
_by_width(asin, _asin32, _asin64)
_by_width(acos, _acos32, _acos64)
