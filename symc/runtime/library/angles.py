# mypy: ignore-errors
"""Inverse trigonometric functions, branch-free, f32 and f64 (the style of ``library.math``): atan, atan2, asin, acos.

atan(y / x): of min / max of the operands, and above tan(pi/8) by the tangent of the angle to pi/4, for which the
quotient needs no further division; an own minimax polynomial of degree 9 in the square on [0, 0.172] (f32: 4). asin and
acos: for abs(x) > 1/2 through asin(sqrt((1 - x) / 2)), degree 12 in the square on [0, 1/4] (f32: 5).

Errors in ulp, f64 / f32 (measured, and held by a test): atan 1.5 / 2.0, atan2 2.0 / 2.0, asin 2.0 / 2.0,
acos 1.5 / 1.5.
"""

from __future__ import annotations

import math

from symc.codegen.language.helpers import both, inlined
from symc.codegen.language.names import INF, bits64, copysign, f32, horner

PI, PI_LOW64, PI_LOW32 = 3.141592653589793, 1.2246467991473532e-16, f32(-8.742278e-08)
HALF_PI, HALF_PI_LOW64, HALF_PI_LOW32 = 1.5707963267948966, 6.123233995736766e-17, f32(-4.371139e-08)
QUARTER_PI_LOW64, QUARTER_PI_LOW32 = 3.061616997868383e-17, f32(-2.1855694e-08)
LARGE64, LARGE32 = 1e300, f32(1e37)


@inlined
def arc64(t):
    """atan(t) - t for abs(t) <= tan(pi/8)."""
    z = t * t
    p = horner(z, 0.02126125477335471, -0.04359296949940671, 0.05692641747075436, -0.0664114774880084,
               0.07690072229373944, -0.09090782758177705, 0.11111106671475725, -0.14285714195773266, 0.19999999999096,
               -0.33333333333330184)
    return t * (z * p)


@inlined
def arc32(t):
    """atan(t) - t for abs(t) <= tan(pi/8)."""
    z = t * t
    p = horner(z, f32(-0.06120405), f32(0.10612761), f32(-0.14246537), f32(0.19998667), f32(-0.3333332))
    return t * (z * p)


@both
def angle_of(t, far):
    """pi/4 (if ``far``) and atan(t)."""
    return (t + (arc64(t) + (QUARTER_PI_LOW64 if far else 0.0))) + (0.7853981633974483 if far else 0.0)


@both
def atan(x):
    """The inverse tangent."""
    a = abs(x)
    steep = a > 1.0
    low, high = (1.0 if steep else a), (a if steep else 1.0)
    far = low > 0.41421356237309503 * high
    y = angle_of((low - (high if far else 0.0)) / (high + (low if far else 0.0)), far)
    return copysign(HALF_PI - (y - HALF_PI_LOW64) if steep else y, x)


@both
def atan2(x, y):
    """The angle of the point (y, x)."""
    a, b = abs(x), abs(y)
    steep = a > b
    low, high = (b if steep else a), (a if steep else b)
    far = low > 0.41421356237309503 * high or low == INF
    scale = 0.25 if high > LARGE64 else 1.0
    t = (scale * low - (scale * high if far else 0.0)) / (scale * high + (scale * low if far else 0.0))
    angle = angle_of(0.0 if low == 0.0 or low == INF else t, far)
    angle = HALF_PI - (angle - HALF_PI_LOW64) if steep else angle
    angle = (PI - (angle - PI_LOW64)) if bits64(y) < 0 else angle
    return copysign(angle, x) if a == a and b == b else x + y


@inlined
def arcsine64(z):
    """(asin(s) - s) / (s * z) for z = s * s up to 1/4."""
    return horner(z, 0.03190895431565523, -0.016219312164274975, 0.019525056888220076, 0.00652916567288879,
                  0.012168933540888173, 0.013885277989287698, 0.017359700471391442, 0.022371758332906107,
                  0.030381959125185563, 0.04464285682862587, 0.07500000000336603, 0.1666666666666541)


@inlined
def arcsine32(z):
    return horner(z, f32(0.0421588), f32(0.024184862), f32(0.04546908), f32(0.0749531), f32(0.16666752))


@both
def asin(x):
    """The inverse sine."""
    a = abs(x)
    far = a > 0.5
    z = (1.0 - a) * 0.5 if far else x * x
    s = math.sqrt(z) if far else a
    off = s * (z * arcsine64(z))
    return copysign(HALF_PI - (2.0 * s + (2.0 * off - HALF_PI_LOW64)) if far else s + off, x)


@both
def acos(x):
    """The inverse cosine."""
    a = abs(x)
    far = a > 0.5
    z = (1.0 - a) * 0.5 if far else x * x
    s = math.sqrt(z) if far else x
    off = s * (z * arcsine64(z))
    twice = 2.0 * s + 2.0 * off
    wide = PI - (2.0 * s + (2.0 * off - PI_LOW64)) if x < 0.0 else twice
    return wide if far else HALF_PI - (s + (off - HALF_PI_LOW64))
