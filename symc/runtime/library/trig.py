# mypy: ignore-errors
"""Sine, cosine and tangent, in f32 and f64, that vectorize (the style of ``library.math``).

abs(x) = k * pi/2 + r by fused products with pi/2 in three parts (Cody and Waite). The first is exact, the second rounds
once, the third is added last: r is right to half a unit also where it is near 0. The low bits of k choose the
polynomial, sine or cosine, and the sign; what sin, cos and tan of one number share is one computation in a kernel.
Beyond 2**30 (f32: 100,000) k is no longer exact, and the C library computes the element: a side that loops vectorize
around. Coefficients: own minimax fits.

Errors in ulp, f64 / f32 (measured, and held by a test): sin, cos 1.5 / 1.6, tan 3.1 / 3.1.
"""

from __future__ import annotations

import math

from symc.codegen.language.helpers import both, inlined, rarely
from symc.codegen.language.names import bits32, bits64, f32, float64_of, fma, horner
from symc.runtime.library.math import MAGIC32, MAGIC64

FAR64, FAR32 = 2.0**30, f32(1e5)
SIGN64, SIGN32, TOP64, TOP32 = -(2**63), -(2**31), 63, 31


@rarely
def far_sin64(x):
    return math.sin(x)


@rarely
def far_cos64(x):
    return math.cos(x)


@rarely
def far_tan64(x):
    return math.tan(x)


@rarely
def far_sin32(x):
    return f32(math.sin(x))


@rarely
def far_cos32(x):
    return f32(math.cos(x))


@rarely
def far_tan32(x):
    return f32(math.tan(x))


@inlined
def quarters64(a):
    """The quarter turns next to a >= 0, in the low bits of an integer, and the sine and cosine of the rest."""
    shifted = a * 0.6366197723675814 + MAGIC64
    k = shifted - MAGIC64
    r = fma(-k, 6.123233995736766e-17, fma(-k, 1.5707963267948966, a))
    low = k * 1.4973849048591698e-33
    z = r * r
    p = horner(z, 1.5889680893521498e-10, -2.5050636018005998e-08, 2.7557312918276535e-06, -0.00019841269827603448,
               0.008333333333319703, -0.1666666666666662)
    q = horner(z, -1.1354079904349514e-11, 2.0875615445278593e-09, -2.755731355773254e-07, 2.4801587286730506e-05,
               -0.0013888888888869723, 0.041666666666666574, -0.5)
    return bits64(shifted), r + fma(r * z, p, low), 1.0 + z * q


@inlined
def quarters32(a):
    shifted = a * f32(0.63661975) + MAGIC32
    k = shifted - MAGIC32
    r = fma(-k, f32(-4.371139e-08), fma(-k, f32(1.5707964), a))
    low = k * f32(1.7151245e-15)
    z = r * r
    p = horner(z, f32(-0.00019505144), f32(0.008332093), f32(-0.16666654))
    q = horner(z, f32(2.4412078e-05), f32(-0.001388713), f32(0.04166664), f32(-0.5))
    return bits32(shifted), r + fma(r * z, p, low), f32(1.0) + z * q


@both
def sin(x):
    """The sine."""
    a = abs(x)
    k, s, c = quarters64(a)
    y = c if k & 1 != 0 else s
    y = float64_of(bits64(y) ^ (((k << TOP64 - 1) ^ bits64(x)) & SIGN64))
    return far_sin64(x) if a >= FAR64 else y


@both
def cos(x):
    """The cosine."""
    a = abs(x)
    k, s, c = quarters64(a)
    y = s if k & 1 != 0 else c
    y = float64_of(bits64(y) ^ (((k + 1) << TOP64 - 1) & SIGN64))
    return far_cos64(x) if a >= FAR64 else y


@both
def tan(x):
    """The tangent."""
    a = abs(x)
    k, s, c = quarters64(a)
    y = (c if k & 1 != 0 else s) / (s if k & 1 != 0 else c)
    y = float64_of(bits64(y) ^ (((k << TOP64) ^ bits64(x)) & SIGN64))
    return far_tan64(x) if a >= FAR64 else y
