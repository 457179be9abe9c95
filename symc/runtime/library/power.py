# mypy: ignore-errors
"""Powers and roots, branch-free, in f32 and f64 (the style of ``library.math``): pow, exp2, log2, log10, cbrt, hypot.

pow in f64: log(x) in two doubles (s = (m-1)/(m+1) and its rounding error, the terms 2s and 2/3 s**3 in two parts, the
rest a polynomial of degree 6, own minimax fit), times y, and exp of both parts; in f32: through f64. exp2: own minimax
polynomial in the fraction, degree 11 (f32: 7). cbrt: a polynomial for the start, two steps of Halley's (f32: one).

Errors in ulp, f64 / f32 (measured, and held by a test): pow 1.3 / 0.6, exp2 1.0 / 1.0, log2 1.7 / 1.7, log10 1.6 / 2.2,
cbrt 0.8 / 1.2, hypot 1.1 / 0.6.
"""

from __future__ import annotations

import math

from symc.runtime.compilers.numba_primitives import (
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
    i32,
    inlined,
)
from symc.runtime.compilers.numba_primitives import by_width as _by_width
from symc.runtime.library.math import (
    LN2_HI64,
    LN2_LO64,
    MAGIC32,
    MAGIC64,
    at_least,
    at_most,
    log,
    split64,
    split64_twice,
)


def pow(x, y):
    """x**y; typed by the overload below."""


def exp2(x):
    """2**x; typed by the overload below."""


def log2(x):
    """The logarithm to base 2; typed by the overload below."""


def log10(x):
    """The logarithm to base 10; typed by the overload below."""


def cbrt(x):
    """The cube root; typed by the overload below."""


def hypot(x, y):
    """sqrt(x**2 + y**2) without overflow on the way; typed by the overload below."""


def _pow64(x, y):
    size = abs(x)
    tiny = size < 2.2250738585072014e-308
    a = size * 18014398509481984.0 if tiny else size
    b = bits64(a) + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
    m = float64_of((b & 0x000FFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD)
    k = (float64_of(((b >> 52) - 1023) + 0x4338000000000000) - MAGIC64) - (54.0 if tiny else 0.0)
    f = m - 1.0
    d = m + 1.0
    inverse = 1.0 / d
    s = f * inverse
    s_low = (fma(-s, d, f) - s * (m - (d - 1.0))) * inverse
    z = s * s
    z_low = fma(s, s, -z) + 2.0 * s * s_low
    p = 0.1319749425927343
    p = p * z + 0.13256697632905018
    p = p * z + 0.15386762240296295
    p = p * z + 0.18181784266265294
    p = p * z + 0.22222222521007287
    p = p * z + 0.28571428570093893
    p = (p * z + 0.40000000000002267) * z
    c = 0.6666666666666666 + p
    c_low = (0.6666666666666666 - c) + p + 3.700743415417188e-17
    q = z * c
    q_low = fma(z, c, -q) + (z * c_low + z_low * c)
    t = s * q
    t_low = fma(s, q, -t) + (s * q_low + s_low * q)
    u = k * LN2_HI64
    v = u + 2.0 * s
    v_low = (u - v) + 2.0 * s
    w = v + t
    low = ((v - w) + t) + (v_low + (t_low + 2.0 * s_low + k * LN2_LO64))
    high = w + low
    low = (w - high) + low
    high = high if size > 0.0 and size < INF else (-INF if size == 0.0 else INF)
    e = y * high
    e_low = fma(y, high, -e) + y * low
    e_low = e_low if abs(e) < 750.0 else 0.0
    r, a1, a2 = split64_twice(at_most(at_least(e, -746.0), 710.0), e_low)
    result = (1.0 + r) * a1 * a2
    whole = floor(y) == y
    result = result if whole or x >= 0.0 or size == INF or size == 0.0 else NAN
    result = 1.0 if size == 1.0 and abs(y) == INF else result
    result = copysign(result, x) if whole and floor(y * 0.5) != y * 0.5 else result
    result = result if x == x and y == y else NAN
    return 1.0 if y == 0.0 or x == 1.0 else result


def _pow32(x, y):
    size = abs(f64(x))
    r, a, b = split64(at_most(at_least(f64(y) * log(size), -746.0), 710.0))
    result = f32((1.0 + r) * a * b)
    whole = floor(y) == y
    result = result if whole or x >= f32(0.0) or size == INF or size == 0.0 else f32(NAN)
    result = f32(1.0) if size == 1.0 and abs(f64(y)) == INF else result
    result = copysign(result, x) if whole and floor(y * f32(0.5)) != y * f32(0.5) else result
    result = result if x == x and y == y else f32(NAN)
    return f32(1.0) if y == f32(0.0) or x == f32(1.0) else result


def _exp2_64(x):
    x = at_most(at_least(x, -1080.0), 1025.0)
    k = (x + MAGIC64) - MAGIC64
    r = x - k
    p = 4.495000713058741e-10
    p = p * r + 7.074395445990706e-09
    p = p * r + 1.0177796886887905e-07
    p = p * r + 1.3215431509470148e-06
    p = p * r + 1.5252734458233918e-05
    p = p * r + 0.0001540353046503013
    p = p * r + 0.001333355814578573
    p = p * r + 0.009618129107587688
    p = p * r + 0.055504108664824046
    p = p * r + 0.24022650695910147
    p = p * r + 0.6931471805599453
    half = k * 0.5 + (MAGIC64 + 1023.0)
    rest = (k - (half - (MAGIC64 + 1023.0))) + (MAGIC64 + 1023.0)
    return (1.0 + r * p) * float64_of(bits64(half) << 52) * float64_of(bits64(rest) << 52)


def _exp2_32(x):
    x = at_most(at_least(x, f32(-152.0)), f32(129.0))
    k = (x + MAGIC32) - MAGIC32
    r = x - k
    p = f32(1.4698299e-05)
    p = p * r + f32(0.00015452791)
    p = p * r + f32(0.0013336608)
    p = p * r + f32(0.009618086)
    p = p * r + f32(0.05550406)
    p = p * r + f32(0.2402265)
    p = p * r + f32(0.6931472)
    half = k * f32(0.5) + (MAGIC32 + f32(127.0))
    rest = (k - (half - (MAGIC32 + f32(127.0)))) + (MAGIC32 + f32(127.0))
    scale, again = float32_of(i32(bits32(half) << 23)), float32_of(i32(bits32(rest) << 23))
    return (f32(1.0) + r * p) * scale * again


@inlined
def _parts64(x):
    """x = 2**k * m, m in [sqrt(1/2), sqrt(2))."""
    tiny = x < 2.2250738585072014e-308
    a = x * 18014398509481984.0 if tiny else x
    b = bits64(a) + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
    m = float64_of((b & 0x000FFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD)
    k = (float64_of(((b >> 52) - 1023) + 0x4338000000000000) - MAGIC64) - (54.0 if tiny else 0.0)
    return k, m


def _log2_64(x):
    """The exponent, and the logarithm of the mantissa: whole for powers of two."""
    k, m = _parts64(x)
    y = log(m)
    y = k + fma(y, 1.4426950408889634, y * 2.0355273740931033e-17)
    y = y if x > 0.0 else (-INF if x == 0.0 else NAN)
    return y if x < INF else x


def _log10_64(x):
    k, m = _parts64(x)
    y = log(m)
    y = k * 0.30102999566395283 + fma(y, 0.4342944819032518, y * 1.098319650216765e-17 + k * 2.8363394551044964e-14)
    y = y if x > 0.0 else (-INF if x == 0.0 else NAN)
    return y if x < INF else x


def _log2_32(x):
    tiny = x < f32(1.17549435e-38)
    a = x * f32(33554432.0) if tiny else x
    b = i32(bits32(a) + (0x3F800000 - 0x3F3504F3))
    m = float32_of(i32((b & 0x007FFFFF) + 0x3F3504F3))
    k = f32(i32((b >> 23) - 127)) - (f32(25.0) if tiny else f32(0.0))
    y = log(m)
    y = k + fma(y, f32(1.44269504), y * f32(1.925963e-08))
    y = y if x > f32(0.0) else (f32(-INF) if x == f32(0.0) else f32(NAN))
    return y if x < f32(INF) else x


def _log10_32(x):
    tiny = x < f32(1.17549435e-38)
    a = x * f32(33554432.0) if tiny else x
    b = i32(bits32(a) + (0x3F800000 - 0x3F3504F3))
    m = float32_of(i32((b & 0x007FFFFF) + 0x3F3504F3))
    k = f32(i32((b >> 23) - 127)) - (f32(25.0) if tiny else f32(0.0))
    y = log(m)
    y = k * f32(0.30102539) + fma(y, f32(0.43429448), y * f32(7.0e-09) + k * f32(4.6050390e-06))
    y = y if x > f32(0.0) else (f32(-INF) if x == f32(0.0) else f32(NAN))
    return y if x < f32(INF) else x


def _cbrt64(x):
    size = abs(x)
    tiny = size < 2.2250738585072014e-308
    a = size * 18014398509481984.0 if tiny else size
    b = bits64(a)
    e = float64_of(((b >> 52) - 1023) + 0x4338000000000000) - MAGIC64
    third = (e * 0.3333333333333333 + MAGIC64) - MAGIC64
    left = e - 3.0 * third
    m = float64_of((b & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000) * float64_of(bits64(left + (MAGIC64 + 1023.0)) << 52)
    y = -0.005579084734462989
    y = y * m + 0.061763271749552345
    y = y * m + -0.26903133535753204
    y = y * m + 0.717073064251341
    y = y * m + 0.49620625180762035
    cube = y * y * y
    y = y * (cube + 2.0 * m) / (2.0 * cube + m)
    square = y * y
    off = fma(square, y, -m) + fma(y, y, -square) * y
    y = y - y * off / (2.0 * square * y + m)
    y = y * float64_of(bits64((third - (18.0 if tiny else 0.0)) + (MAGIC64 + 1023.0)) << 52)
    return copysign(y, x) if size > 0.0 and size < INF else x


def _cbrt32(x):
    size = abs(x)
    tiny = size < f32(1.17549435e-38)
    a = size * f32(16777216.0) if tiny else size
    b = bits32(a)
    e = f32(i32((b >> 23) - 127))
    third = (e * f32(0.33333334) + MAGIC32) - MAGIC32
    left = e - f32(3.0) * third
    m = float32_of(i32((b & 0x007FFFFF) | 0x3F800000)) * float32_of(i32(bits32(left + (MAGIC32 + f32(127.0))) << 23))
    y = f32(-0.005579084734462989)
    y = y * m + f32(0.061763271749552345)
    y = y * m + f32(-0.26903133535753204)
    y = y * m + f32(0.717073064251341)
    y = y * m + f32(0.49620625180762035)
    cube = y * y * y
    y = y - y * (cube - m) / (f32(2.0) * cube + m)
    y = y * float32_of(i32(bits32((third - (f32(8.0) if tiny else f32(0.0))) + (MAGIC32 + f32(127.0))) << 23))
    return copysign(y, x) if size > f32(0.0) and size < f32(INF) else x


def _hypot64(x, y):
    a, b = abs(x), abs(y)
    high, low = (a if a > b else b), (b if a > b else a)
    over, under = high > 1e150, low < 1e-140
    scale = 2.0**-600 if over else (2.0**600 if under and high < 1e150 * 2.0**-600 else 1.0)
    back = 2.0**600 if over else (2.0**-600 if under and high < 1e150 * 2.0**-600 else 1.0)
    h, s = high * scale, low * scale
    r = math.sqrt(h * h + s * s) * back
    r = r if a == a and b == b else NAN
    return INF if a == INF or b == INF else r


def _hypot32(x, y):
    a, b = f64(x), f64(y)
    r = f32(math.sqrt(a * a + b * b))
    return f32(INF) if abs(x) == f32(INF) or abs(y) == f32(INF) else r


_by_width(pow, _pow32, _pow64, 2)
_by_width(exp2, _exp2_32, _exp2_64)
_by_width(log2, _log2_32, _log2_64)
_by_width(log10, _log10_32, _log10_64)
_by_width(cbrt, _cbrt32, _cbrt64)
_by_width(hypot, _hypot32, _hypot64, 2)
