# mypy: ignore-errors
"""Functions that vectorize: exp, log, expm1, log1p, tanh, sigmoid, softplus, logaddexp, log1mexp in f32 and f64.

Branch-free, so that LLVM widens the loop around them. exp: x = k*ln2 + r (Cody and Waite, two-part ln2), a polynomial
in r, times 2**k in two steps so that neither overflows early nor loses denormals: of the two one is a constant, chosen
by the sign of x, or known (``exp_nonpositive``). log: x = 2**e * m with m in [sqrt(1/2), sqrt(2)), log(m) = 2 atanh(s)
with s = (m-1)/(m+1). Adding MAGIC rounds to an integer that stands in the low bits. Coefficients: own minimax fits for
exp (degree 11, f32: 6), Cephes' expf (expm1) and logf, fdlibm's log (e_log.c). Long polynomials are summed in even and
odd powers apart: half as long a chain for the processor to wait for. Bounds are written so that nan passes (one
instruction on x86, as ``llvm.maximum`` is not). Powers, roots, angles and the error function have files of their own,
in the same style.

Errors in ulp, f64 / f32 (measured, and held by a test): exp 1.0 / 0.9, log 0.8 / 0.8, expm1 1.8 / 1.4, log1p 1.3 / 1.4,
tanh 2.5 / 2.3, sigmoid 2.2 / 2.3, softplus 1.8 / 1.9.
"""

from __future__ import annotations

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
    from_half,
    horner,
    i32,
    i64,
    like,
    maximum,
    to_half,
    u16,
    u64,
)

MAGIC64, MAGIC32 = 1.5 * 2.0**52, f32(1.5 * 2.0**23)
_EXP64 = (0.5, 0.16666666666666674, 0.04166666666662401, 0.00833333333332213, 0.001388888891726687,
          0.00019841269886737675, 2.4801521216839093e-05, 2.7557242224644745e-06, 2.7620125079787717e-07,
          2.5110080298887808e-08)
_LOG64 = (6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
          1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01)
LN2_HI64, LN2_LO64 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
LN2_HI32, LN2_LO32 = f32(0.693359375), f32(-2.12194440e-4)
#: Of the format: bias of exponents, bits of mantissas, the least positive number, and one whose square is 0.
BIAS64, BIAS32, PLACES64, PLACES32 = 1023.0, f32(127.0), 52, 23
FIRST64, FIRST32, TINY64, TINY32 = 5e-324, f32(1e-45), 1e-300, f32(1e-35)
#: The greatest exponent and that of 1/2, as they are kept; the least number that is kept so, and how smaller ones are
#: lifted.
WIDEST64, WIDEST32, HALF64, HALF32 = 2047, 255, 1022, 126
NORMAL64, NORMAL32, LIFT64, LIFT32 = 2.0**-1022, f32(2.0**-126), 2.0**54, f32(2.0**25)
LIFTED64, LIFTED32 = 54, 25
#: Bounds beyond which exp is 0, exp is infinite, exp(-x) adds nothing to 1, and tanh is 1. The first is where the power
#: of two that depends on x is 0: in a sum LLVM takes the constant one out, and what is left would not vanish.
LEAST64, LEAST32, MOST64, MOST32 = -1064.0, f32(-132.4), 710.0, f32(89.0)
ALL_LOST64, ALL_LOST32, EVEN64, EVEN32 = -40.0, f32(-18.0), 22.0, f32(10.0)
#: Parts of a power of two that is no normal number: what is multiplied last, where x is negative and where it is not,
#: and MAGIC for the exponent of the other part.
DOWN64, UP64, DOWN32, UP32 = 2.0**-512, 2.0**512, f32(2.0**-64), f32(2.0**64)
RAISED64, LOWERED64 = 1.5 * 2.0**52 + 1023.0 + 512.0, 1.5 * 2.0**52 + 1023.0 - 512.0
RAISED32, LOWERED32 = f32(1.5 * 2.0**23 + 127.0 + 64.0), f32(1.5 * 2.0**23 + 127.0 - 64.0)


@inlined
def at_least(x, low):
    """The greater one; nan if x is (one instruction on x86, as the builtin maximum is not)."""
    return low if low > x else x


@inlined
def at_most(x, high):
    return high if high < x else x


@both
def split(x):
    """q, a, b with exp(x) = (1 + q) * a * b: a and b are powers of two, q is exp(r) - 1 for the rest r of x."""
    k = (x * 1.4426950408889634 + MAGIC64) - MAGIC64
    return scaled(k, (x - k * LN2_HI64) - k * LN2_LO64)


@inlined
def split64_twice(x, low):
    """The same for x + low, of which low is a correction."""
    k = (x * 1.4426950408889634 + MAGIC64) - MAGIC64
    return scaled(k, ((x - k * LN2_HI64) - k * LN2_LO64) + low)


@both
def scaled(k, r):
    half = k * 0.5 + (MAGIC64 + BIAS64)
    rest = (k - (half - (MAGIC64 + BIAS64))) + (MAGIC64 + BIAS64)
    return r + (r * r) * power_series64(r), float64_of(bits64(half) << PLACES64), float64_of(bits64(rest) << PLACES64)


@inlined
def power_series64(r):
    """(exp(r) - 1 - r) / r**2 for abs(r) <= ln(2) / 2."""
    z = r * r
    even = horner(z, _EXP64[8], _EXP64[6], _EXP64[4], _EXP64[2])
    odd = horner(z, _EXP64[9], _EXP64[7], _EXP64[5], _EXP64[3], _EXP64[1])
    return (even * z + 0.5) + odd * r


@inlined
def power_series32(r):
    """The same in single precision."""
    p = horner(r, f32(1.9875691500e-4), f32(1.3981999507e-3), f32(8.3334519073e-3), f32(4.1665795894e-2),
               f32(1.6666665459e-1))
    return p * r + f32(5.0000001201e-1)


@inlined
def near_exp64(r):
    """exp(r) for abs(r) <= ln(2) / 2."""
    return (power_series64(r) * r + 1.0) * r + 1.0


@inlined
def near_series32(r):
    """(exp(r) - 1 - r) / r**2, for errors relative to exp(r)."""
    return horner(r, f32(0.001383873), f32(0.008369208), f32(0.041668106), f32(0.16666517), f32(0.49999994))


@inlined
def near_exp32(r):
    return (near_series32(r) * r + f32(1.0)) * r + f32(1.0)


@both
def exp(x):
    """e**x"""
    x = at_most(at_least(x, LEAST64), MOST64)
    small = bits64(x) < 0
    magic = RAISED64 if small else LOWERED64
    lifted = x * 1.4426950408889634 + magic
    k = lifted - magic
    y = near_exp64((x - k * LN2_HI64) - k * LN2_LO64) * float64_of(bits64(lifted) << PLACES64)
    return y * (DOWN64 if small else UP64)


@both
def exp_nonpositive(x):
    """e**x for x <= 0"""
    x = at_least(x, LEAST64)
    lifted = x * 1.4426950408889634 + RAISED64
    k = lifted - RAISED64
    y = near_exp64((x - k * LN2_HI64) - k * LN2_LO64) * float64_of(bits64(lifted) << PLACES64)
    return y * DOWN64


@both
def expm1(x):
    """exp(x) - 1, accurate near 0"""
    q, a, b = split(at_most(at_least(x, ALL_LOST64), MOST64))
    return x if x == 0.0 else (q * a + (a - 1.0 / b)) * b


@inlined
def mantissa64(x):
    """x = 2**k * m for x > 0, with m between sqrt(1/2) and sqrt(2): k, m - 1."""
    tiny = x < 2.2250738585072014e-308
    a = x * 18014398509481984.0 if tiny else x
    b = bits64(a) + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD)  # so that the exponent field counts from sqrt(1/2)
    m = float64_of((b & 0x000FFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD)
    k = float64_of(i64(u64(b) >> 52) + (0x4338000000000000 - 1023)) - MAGIC64
    return k - (54.0 if tiny else 0.0), m - 1.0


@inlined
def mantissa32(x):
    tiny = x < f32(1.17549435e-38)
    a = x * f32(33554432.0) if tiny else x
    b = i32(bits32(a) - 0x3F3504F3)
    m = float32_of(i32((b & 0x007FFFFF) + 0x3F3504F3))
    return f32(i32(b >> 23)) - (f32(25.0) if tiny else f32(0.0)), m - f32(1.0)


mantissa = by_width(mantissa32, mantissa64)


@inlined
def log_terms64(f):
    """h, t with log(1 + f) = f - (h - t), for f of ``mantissa64``."""
    s = f / (2.0 + f)
    z = s * s
    r = _LOG64[6]
    r = _LOG64[5] + z * r
    r = _LOG64[4] + z * r
    r = _LOG64[3] + z * r
    r = _LOG64[2] + z * r
    r = _LOG64[1] + z * r
    r = z * (_LOG64[0] + z * r)
    h = 0.5 * f * f
    return h, s * (h + r)


@inlined
def log_series32(f):
    """(log(1 + f) - f + f**2 / 2) / f**3"""
    z = f * f
    even = horner(z, f32(7.0376836292e-2), f32(1.1676998740e-1), f32(1.4249322787e-1), f32(2.0000714765e-1),
                  f32(3.3333331174e-1))
    odd = horner(z, f32(-1.1514610310e-1), f32(-1.2420140846e-1), f32(-1.6668057665e-1), f32(-2.4999993993e-1))
    return even + odd * f


@inlined
def log_terms32(f):
    p = log_series32(f)
    z = f * f
    return f32(0.5) * z, (f * z) * p


log_terms = by_width(log_terms32, log_terms64)


@both
def log_parts(x):
    """log(x) for x > 0, and what was lost in rounding it: of two parts the first is exact, and the greater one or 0."""
    k, f = mantissa(x)
    h, t = log_terms(f)
    a, b = k * LN2_HI64, (h - (t + k * LN2_LO64)) - f
    y = a - b
    return y, (a - y) - b


@inlined
def log_of64(k, f):
    """log(2**k * (1 + f))"""
    h, t = log_terms64(f)
    return k * LN2_HI64 + (f - (h - (t + k * LN2_LO64)))


@inlined
def log_of32(k, f):
    p = log_series32(f)
    z = f * f
    t = (f * p) * z + k * LN2_LO32
    return k * LN2_HI32 + (f + (t - f32(0.5) * z))


@inlined
def log_at_edges(x, y):
    """y, the logarithm of x to any base, where x > 0 is finite."""
    y = y if x > 0 else (-like(x, INF) if x == 0 else like(x, NAN))
    return y if x < like(x, INF) else x


@both
def log(x):
    """The natural logarithm."""
    k, f = mantissa(x)
    y = (log_of64(k, f) + (0.0 if x < INF else x)) - (INF if x == 0.0 else 0.0)
    return NAN if x < 0.0 else y


@inlined
def _log1p_finite64(x):
    """1 + x = 2**k * m with m as in ``mantissa64``, and m - 1 = (2**-k - 1) + 2**-k x, rounded once."""
    e = i64(u64(bits64(1.0 + x) + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD)) >> 52)
    scale = float64_of((2048 - e) << 52)  # 4 * 2**-k, which is no subnormal number
    return log_of64(float64_of((e - 1023) + 0x4338000000000000) - MAGIC64, (x * 0.25) * scale + (scale * 0.25 - 1.0))


@inlined
def _log1p_finite32(x):
    e = i32(i32(bits32(f32(1.0) + x) + (0x3F800000 - 0x3F3504F3)) >> 23)
    scale = float32_of(i32((256 - e) << 23))
    return log_of32(f32(i32(e - 127)), (x * f32(0.25)) * scale + (scale * f32(0.25) - f32(1.0)))


@both
def log1p(x):
    """log(1 + x), accurate near 0"""
    return x if abs(x) < TINY64 else log_at_edges(1.0 + x, log1p_finite(x))


log1p_finite = by_width(_log1p_finite32, _log1p_finite64)  # the same for a finite x > -1, or nan


@both
def nextafter(x, y):
    """The number next to x on the way to y: away from 0 the bits of a number count up."""
    moved = float64_of(bits64(x) + (1 if (y > x) == (x > 0.0) else -1))
    moved = copysign(FIRST64, y) if x == 0.0 else moved
    return (y if x == y else moved) if x == x and y == y else x + y


@both
def exponent(x):
    """e of x = m * 2**e with m in [0.5, 1)"""
    small = abs(x) < NORMAL64
    b = bits64(x * LIFT64 if small else x)
    e = ((b >> PLACES64) & WIDEST64) - (HALF64 + (LIFTED64 if small else 0))
    return like(x, e if x != 0.0 and abs(x) < INF else 0)


@both
def significand(x):
    """m of x = m * 2**e with m in [0.5, 1)"""
    b = bits64(x * LIFT64 if abs(x) < NORMAL64 else x)
    m = float64_of((b & ~(WIDEST64 << PLACES64)) | (HALF64 << PLACES64))
    return m if x != 0.0 and abs(x) < INF else x


@inlined
def next_half(x, y):
    """The same in half precision, of numbers that are computed in single."""
    moved = from_half(u16(i64(to_half(x)) + (1 if (y > x) == (x > f32(0.0)) else -1)))
    moved = copysign(f32(5.9604644775390625e-08), y) if x == f32(0.0) else moved
    return (y if x == y else moved) if x == x and y == y else x + y


@both
def tanh(x):
    """The hyperbolic tangent."""
    a = at_most(abs(x), EVEN64)
    k = (a * 2.8853900817779268 + MAGIC64) - MAGIC64
    r = (2.0 * a - k * LN2_HI64) - k * LN2_LO64
    s = float64_of(bits64(k + (MAGIC64 + BIAS64)) << PLACES64)
    t = (r + (r * r) * power_series64(r)) * s + (s - 1.0)
    return copysign(t / (t + 2.0), x)


@inlined
def sigmoid(x):
    e = exp_nonpositive(-abs(x))
    return (like(x, 1) if x >= 0 else e) / (like(x, 1) + e)


@inlined
def softplus(x):
    return maximum(x, like(x, 0)) + log1p_finite(exp_nonpositive(-abs(x)))


@inlined
def logaddexp(x, y):
    if x == y:
        return x + like(x, 0.6931471805599453)
    return (x if x > y else y) + log1p_finite(exp_nonpositive(-abs(x - y))) if x == x and y == y else x + y


@inlined
def log1mexp(x):
    return log(-expm1(x)) if x > like(x, -0.6931471805599453) else log1p(-exp(x))
