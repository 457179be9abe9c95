# mypy: ignore-errors
"""Powers and roots, branch-free, in f32 and f64 (the style of ``library.math``): pow, exp2, log2, log10, cbrt, hypot.

pow: log(x) in two numbers (s = (m-1)/(m+1) and its rounding error, the terms 2s and 2/3 s**3 in two parts, the rest
an own minimax polynomial; f32: to base 2), times y, and exp of both parts. Operands or results that are subnormal,
infinite or nan, the C library computes: a side that loops vectorize around. exp2: own minimax polynomial in the
fraction, degree 11 (f32: 7). cbrt: a polynomial for m**(-1/3), and one step from there: no division.

Errors in ulp, f64 / f32 (measured, and held by a test): pow 1.4 / 1.7, exp2 1.0 / 1.0, log2 1.7 / 1.7, log10 1.6 / 2.2,
cbrt 1.1 / 1.2, hypot 1.1 / 1.1.
"""

from __future__ import annotations

import math

from symc.codegen.language.helpers import both, by_width, inlined, rarely
from symc.codegen.language.names import (
    INF,
    NAN,
    bits32,
    bits64,
    copysign,
    f32,
    f64,
    float32_of,
    float64_of,
    floor,
    fma,
    horner,
    i32,
)
from symc.runtime.library.math import (
    LN2_HI64,
    LN2_LO64,
    MAGIC32,
    MAGIC64,
    at_least,
    at_most,
    log_at_edges,
    log_terms,
    mantissa,
    power_series64,
)

LOG2E_LOW64, LOG2E_LOW32 = 2.0355273740931033e-17, f32(1.925963e-08)
LOG10E64, LOG10E_LOW64 = 0.4342944819032518, 1.098319650216765e-17
LOG10E32, LOG10E_LOW32 = f32(0.43429448), f32(7.0e-09)
LOG10_2_64, LOG10_2_LOW64 = 0.30102999566395283, 2.8363394551044964e-14
LOG10_2_32, LOG10_2_LOW32 = f32(0.30102539), f32(4.6050390e-06)
#: Squares of numbers between them neither overflow nor lose digits.
FAR64, FAR32, NEAR64, NEAR32 = 1e300, f32(1e38), 1e-280, f32(1e-28)


@rarely
def edge_pow64(x, y):
    return math.pow(x, y)


@rarely
def edge_pow32(x, y):
    return f32(math.pow(x, y))


@inlined
def log_twice64(x):
    """log(x) of a normal x > 0 in two doubles, right to 2**-63 of it."""
    b = bits64(x) + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
    m = float64_of((b & 0x000FFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD)
    k = float64_of(((b >> 52) - 1023) + 0x4338000000000000) - MAGIC64
    f, d = m - 1.0, m + 1.0
    inverse = 1.0 / d
    s = f * inverse
    s_low = (fma(-s, d, f) - s * (m - (d - 1.0))) * inverse
    z = s * s
    cube = s * z
    cube_low = fma(s, z, -cube) + s * fma(s, s, -z)
    t = cube * 0.6666666666666666
    t_low = fma(cube, 0.6666666666666666, -t) + (cube * 3.700743415417188e-17 + cube_low * 0.6666666666666666)
    p = horner(z, 0.13087229374760115, 0.1326936801413428, 0.1538618422783979, 0.18181797508646172, 0.2222222236297454,
               0.2857142857100265, 0.40000000000000374)
    rest = (cube * z) * p + (t_low + (s_low * (z + z + 2.0) + k * LN2_LO64))
    u = k * LN2_HI64
    v = u + 2.0 * s
    w = v + t
    low = ((v - w) + t) + (((u - v) + 2.0 * s) + rest)
    high = w + low
    return high, (w - high) + low


@inlined
def _pow64(x, y):
    """exp(y log(x)). The C library knows what is subnormal, infinite or nan, and 0 to what is not positive."""
    size = abs(x)
    high, low = log_twice64(size)
    e = y * high
    k = (e * 1.4426950408889634 + MAGIC64) - MAGIC64
    r = ((e - k * LN2_HI64) - k * LN2_LO64) + (fma(y, high, -e) + y * low)
    q = r + (r * r) * power_series64(r)
    result = (1.0 + q) * float64_of(bits64(k + (MAGIC64 + 1023.0)) << 52)
    result = 0.0 if size == 0.0 else result
    whole = floor(y) == y
    result = copysign(result, x) if whole and floor(y * 0.5) != y * 0.5 else result
    result = result if whole or x >= 0.0 else NAN
    usual = size >= 2.2250738585072014e-308 and size < INF and abs(e) < 708.0 or size == 0.0 and y > 0.0
    return edge_pow64(x, y) if not (usual and y < INF) else result


@inlined
def _pow32(x, y):
    """x**y by the logarithm to base 2 in two floats. The edges are those of ``_pow64``."""
    size = abs(x)
    b = i32(bits32(size) + (0x3F800000 - 0x3F3504F3))
    m = float32_of(i32((b & 0x007FFFFF) + 0x3F3504F3))
    k = f32(i32((b >> 23) - 127))
    f, d = m - f32(1.0), m + f32(1.0)
    inverse = f32(1.0) / d
    s = f * inverse
    s_low = (fma(-s, d, f) - s * (m - (d - f32(1.0)))) * inverse
    z = s * s
    p = horner(z, f32(0.33464652), f32(0.41201523), f32(0.5770778), f32(0.9617967))
    t = s * f32(2.88539)
    cube = s * z
    third = cube * p
    low = fma(s, f32(2.88539), -t) + (s_low * (z * f32(2.88539) + f32(2.88539)) + s * f32(3.851926e-08))
    low = low + (fma(cube, p, -third))
    u = k + t
    v = u + third
    low = ((u - v) + third) + (((k - u) + t) + low)
    high = v + low
    low = (v - high) + low
    e = y * high
    k = (e + MAGIC32) - MAGIC32
    r = (e - k) + (fma(y, high, -e) + y * low)
    q = horner(r, f32(0.00015594262), f32(0.0013406632), f32(0.009617695), f32(0.055503108), f32(0.24022652),
               f32(0.69314724))
    result = (f32(1.0) + r * q) * float32_of(i32(bits32(k + (MAGIC32 + f32(127.0))) << 23))
    result = f32(0.0) if size == f32(0.0) else result
    whole = floor(y) == y
    result = copysign(result, x) if whole and floor(y * f32(0.5)) != y * f32(0.5) else result
    result = result if whole or x >= f32(0.0) else f32(NAN)
    usual = size >= f32(1.17549435e-38) and size < f32(INF) and abs(e) < f32(125.0) or size == f32(0.0) and y > f32(0.0)
    return edge_pow32(x, y) if not (usual and y < f32(INF)) else result


@inlined
def times_twice64(x, x_low, y, y_low):
    """A product of numbers in two doubles each."""
    p = x * y
    return p, fma(x, y, -p) + (x * y_low + x_low * y)


@inlined
def times_once64(x, x_low, y):
    p = x * y
    return p, fma(x_low, y, fma(x, y, -p))


@inlined
def square_twice64(x, x_low):
    p = x * x
    return p, fma(x + x, x_low, fma(x, x, -p))


@inlined
def square64(x):
    p = x * x
    return p, fma(x, x, -p)


@inlined
def inverse_twice64(x):
    inverse = 1.0 / x
    return inverse, fma(-x, inverse, 1.0) * inverse


@inlined
def joined64(high, low):
    """One double; what is infinite has no lower part."""
    return copysign(high + low, high) if abs(low) < INF else high


@inlined
def _exp2_64(x):
    x = at_most(at_least(x, -1080.0), 1025.0)
    k = (x + MAGIC64) - MAGIC64
    r = x - k
    p = horner(r, 4.495000713058741e-10, 7.074395445990706e-09, 1.0177796886887905e-07, 1.3215431509470148e-06,
               1.5252734458233918e-05, 0.0001540353046503013, 0.001333355814578573, 0.009618129107587688,
               0.055504108664824046, 0.24022650695910147, 0.6931471805599453)
    half = k * 0.5 + (MAGIC64 + 1023.0)
    rest = (k - (half - (MAGIC64 + 1023.0))) + (MAGIC64 + 1023.0)
    return (1.0 + r * p) * float64_of(bits64(half) << 52) * float64_of(bits64(rest) << 52)


@inlined
def _exp2_32(x):
    x = at_most(at_least(x, f32(-152.0)), f32(129.0))
    k = (x + MAGIC32) - MAGIC32
    r = x - k
    p = horner(r, f32(1.4698299e-05), f32(0.00015452791), f32(0.0013336608), f32(0.009618086), f32(0.05550406),
               f32(0.2402265), f32(0.6931472))
    half = k * f32(0.5) + (MAGIC32 + f32(127.0))
    rest = (k - (half - (MAGIC32 + f32(127.0)))) + (MAGIC32 + f32(127.0))
    scale, again = float32_of(i32(bits32(half) << 23)), float32_of(i32(bits32(rest) << 23))
    return (f32(1.0) + r * p) * scale * again


@both
def log2(x):
    """Logarithm to base 2: the exponent, and the logarithm of the mantissa: whole for powers of two."""
    k, f = mantissa(x)
    h, t = log_terms(f)
    y = f - (h - t)
    return log_at_edges(x, k + fma(y, 1.4426950408889634, y * LOG2E_LOW64))


@both
def log10(x):
    """The logarithm to base 10."""
    k, f = mantissa(x)
    h, t = log_terms(f)
    y = f - (h - t)
    low = fma(y, LOG10E64, y * LOG10E_LOW64 + k * LOG10_2_LOW64)
    return log_at_edges(x, k * LOG10_2_64 + low)


@inlined
def _cbrt64(x):
    size = abs(x)
    tiny = size < 2.2250738585072014e-308
    a = size * 18014398509481984.0 if tiny else size
    b = bits64(a)
    e = float64_of(((b >> 52) - 1023) + 0x4338000000000000) - MAGIC64
    third = (e * 0.3333333333333333 + MAGIC64) - MAGIC64
    left = e - 3.0 * third  # -1, 0 or 1
    one = float64_of((b & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000)
    y = horner(one, 0.010387565081799633, -0.11040113302629677, 0.5019606135215177, -1.273303586897291,
               1.9769274792478386, -1.9853458820833316, 1.8797740518351314)
    y = y * (1.0 if left == 0.0 else (0.7937005259840998 if left > 0.0 else 1.2599210498948732))
    m = one * float64_of(bits64(left + (MAGIC64 + 1023.0)) << 52)
    c = m * (y * y)
    off = fma(-c, y, 1.0)
    c = c + c * off * (off * 0.5555555555555556 + 0.6666666666666666)
    c = c * float64_of(bits64((third - (18.0 if tiny else 0.0)) + (MAGIC64 + 1023.0)) << 52)
    return copysign(c, x) if size > 0.0 and size < INF else x


@inlined
def _cbrt32(x):
    size = abs(x)
    tiny = size < f32(1.17549435e-38)
    a = size * f32(16777216.0) if tiny else size
    b = bits32(a)
    e = f32(i32((b >> 23) - 127))
    third = (e * f32(0.33333334) + MAGIC32) - MAGIC32
    left = e - f32(3.0) * third
    one = float32_of(i32((b & 0x007FFFFF) | 0x3F800000))
    y = horner(one, f32(0.028590675), f32(-0.22123572), f32(0.6954779), f32(-1.1728756), f32(1.6700051))
    y = y * (f32(1.0) if left == f32(0.0) else (f32(0.7937005) if left > f32(0.0) else f32(1.2599211)))
    m = one * float32_of(i32(bits32(left + (MAGIC32 + f32(127.0))) << 23))
    c = m * (y * y)
    off = fma(-c, y, f32(1.0))
    c = c + c * off * (off * f32(0.5555556) + f32(0.6666667))
    c = c * float32_of(i32(bits32((third - (f32(8.0) if tiny else f32(0.0))) + (MAGIC32 + f32(127.0))) << 23))
    return copysign(c, x) if size > f32(0.0) and size < f32(INF) else x


@rarely
def far_hypot64(x, y):
    """Scaled by a power of two where the greater square would leave the range, or the lesser one that matters."""
    a, b = abs(x), abs(y)
    high, low = (a if a > b else b), (b if a > b else a)
    scale = 2.0**-600 if high > 1e150 else (2.0**600 if high < 1e-130 else 1.0)
    back = 2.0**600 if high > 1e150 else (2.0**-600 if high < 1e-130 else 1.0)
    h, s = high * scale, low * scale
    r = math.sqrt(h * h + s * s) * back
    r = r if a == a and b == b else NAN
    return INF if a == INF or b == INF else r


@rarely
def far_hypot32(x, y):
    return f32(far_hypot64(f64(x), f64(y)))


@both
def hypot(x, y):
    """sqrt(x**2 + y**2) without overflow on the way"""
    s = x * x + y * y
    far = not (s < FAR64) or s < NEAR64 and (x != 0.0 or y != 0.0)
    return far_hypot64(x, y) if far else math.sqrt(s)


pow = by_width(_pow32, _pow64)  # x**y
exp2 = by_width(_exp2_32, _exp2_64)  # 2**x
cbrt = by_width(_cbrt32, _cbrt64)  # the cube root
