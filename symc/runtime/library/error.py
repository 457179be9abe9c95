# mypy: ignore-errors
"""The error function, its complement and its inverse, branch-free, in f32 and f64 (the style of ``library.math``).

f64: erf(x) = -expm1(-x Q(x)), where x Q(x) = -log(erfc(x)) is smooth, so that one polynomial of degree 23 serves all of
[0, 5.92]. erfc(x) = exp(-x**2) P(t) / (1 + 2x) with t = (x - 4) / (x + 4), degree 22 on [0, 27.3], and 1 - erf by
Taylor's series for abs(x) < 1/2; for f32 exp(-x**2) P(x) / Q(x), degrees 4 and 5 on [0, 10.2], whose coefficients are
all positive, their last bits chosen by search. x**2 is taken in two parts, the second of which corrects the
exponential. erf in f32: degree 8 on [0, 3.93].
Coefficients: own minimax fits (Remez's exchange), weighted for the relative error.

erfinv(x) = x P(w), w = -log(1 - x**2): a polynomial in w up to 6.25 (f32: 5), above in sqrt(w); in f64, where that is
abs(x) > 0.999, by a side that loops vectorize around.

Errors in ulp, f64 / f32 (measured, and held by a test): erf 2.4 / 3.0, erfc 3.1 / 3.8, erfcx 5.5 / 0.6,
erfinv 2.6 / 2.9.
"""

from __future__ import annotations

import math

from symc.codegen.language.helpers import by_width, inlined, rarely
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
    fma,
    horner,
    i32,
    like,
)
from symc.runtime.library.math import (
    DOWN32,
    DOWN64,
    LN2_HI64,
    LN2_LO64,
    MAGIC32,
    MAGIC64,
    RAISED32,
    RAISED64,
    at_most,
    log,
    near_series32,
    power_series64,
    split64_twice,
)


@inlined
def _erf64(x):
    a = at_most(abs(x), 5.93)
    z = a * a
    even = horner(z, 1.6148828519349403e-13, 4.3018066904690214e-11, 2.3605201887764024e-09, 3.4584830977248666e-08,
                  -1.1709039115410259e-08, -2.0371923002608347e-06, 3.1696644945072974e-06, 6.442046667997797e-05,
                  -0.0005901324311632303, -0.00020919485396157157, 0.10277260330131524, 1.1283791670955126)
    odd = horner(z, -3.592225844293322e-15, -3.364370320955044e-12, -3.7607249112765294e-10, -1.0773360858629836e-08,
                 -6.573332845244009e-08, 5.706345146427353e-07, 3.1329680065737036e-06, -2.957566038530993e-05,
                 2.5904502561349976e-05, 0.0016962076701119765, -0.019128446993090995, 0.6366197723675909)
    p = even + a * odd
    y = -(a * p)
    lifted = y * 1.4426950408889634 + (MAGIC64 + 1023.0)
    k = lifted - (MAGIC64 + 1023.0)
    r = (y - k * LN2_HI64) - k * LN2_LO64
    s = float64_of(bits64(lifted) << 52)
    q = r + (r * r) * power_series64(r)
    return copysign((1.0 - s) - q * s, x)


@inlined
def erfcx_near64(a):
    """exp(a**2) erfc(a) for a from 0 to 27.5."""
    t = (a - 4.0) / (a + 4.0)
    p = horner(t, -1.8000823524822058e-09, -1.3649740391876405e-08, -7.842061072301638e-09, 1.1515954988503164e-07,
               6.288802093703342e-08, -8.34765151154397e-07, 3.0127373953645975e-07, 5.717497836777853e-06,
               -1.1224821854531571e-05, -2.4402953551309234e-05, 0.00015062229034119902, -0.00019925557963358125,
               -0.0007577733614802615, 0.005031969770626181, -0.016197734054711112, 0.03716751556069995,
               -0.06633036581203985, 0.09373283499691457, -0.10103906603632351, 0.06809705425473354,
               0.015379652102620139, -0.13962111684056286, 1.2329951186255526)
    return p / fma(2.0, a, 1.0)


@inlined
def erfcx(x):
    """exp(x**2) erfc(x), computed in f64: above 27 by the asymptotic series, below 0 by reflection."""
    y = f64(x)
    a = at_most(abs(y), 27.5)
    square = a * a
    q, s1, s2 = split64_twice(square, fma(a, a, -square))
    near = erfcx_near64(a)
    w = 1.0 / y
    z = w * w * 0.5
    series = 1.0 - z * (1.0 - z * (3.0 - z * (15.0 - z * (105.0 - z * (945.0 - z * 10395.0)))))
    far = 0.5641895835477563 * w * series
    right = far if y > 27.0 else near
    return like(x, 2.0 * ((1.0 + q) * s1 * s2) - near if y < 0.0 else right)


@inlined
def _erfc64(x):
    a = at_most(abs(x), 27.5)
    square = a * a
    lifted = square * -1.4426950408889634 + RAISED64
    k = lifted - RAISED64
    r = ((-square - k * LN2_HI64) - k * LN2_LO64) - fma(a, a, -square)
    q = r + (r * r) * power_series64(r)
    p = erfcx_near64(a)
    y = (p + p * q) * float64_of(bits64(lifted) << 52) * DOWN64
    z = x * x
    near = horner(z, -1.2290555301717926e-09, 1.4807192815879218e-08, -1.6365844691234924e-07, 1.6462114365889246e-06,
                  -1.492565035840625e-05, 0.00012055332981789664, -0.0008548327023450852, 0.005223977625442188,
                  -0.026866170645131252, 0.11283791670955126, -0.37612638903183754, 1.1283791670955126)
    y = y if x > 0.0 else 2.0 - y
    return 1.0 - x * near if a < 0.5 else y


@inlined
def _erf32(x):
    a = at_most(abs(x), f32(3.93))
    p = horner(a, f32(-9.256149e-06), f32(0.000117641015), f32(-0.0006328382), f32(0.0016670327), f32(-0.00016040272),
               f32(-0.01915306), f32(0.10277783), f32(0.6366194), f32(1.1283792))
    y = -(a * p)
    lifted = y * f32(1.44269504) + (MAGIC32 + f32(127.0))
    k = lifted - (MAGIC32 + f32(127.0))
    r = (y - k * f32(0.693359375)) - k * f32(-2.12194440e-4)
    s = float32_of(i32(bits32(lifted) << 23))
    q = r + (r * r) * near_series32(r)
    return copysign((f32(1.0) - s) - q * s, x)


@inlined
def _erfc32(x):
    a = at_most(abs(x), f32(10.2))
    z = a * a
    p = horner(z, f32(0.032892257), f32(0.7325527), f32(1.0))
    p = p + a * horner(z, f32(0.22967228), f32(1.239313))
    d = horner(z, f32(0.40710953), f32(2.4041982), f32(1.0))
    d = d + a * horner(z, f32(0.05829932), f32(1.3271399), f32(2.367693))
    p = p / d
    lifted = z * f32(-1.44269504) + RAISED32
    k = lifted - RAISED32
    r = ((-z - k * f32(0.693359375)) - k * f32(-2.12194440e-4)) - fma(a, a, -z)
    q = r + (r * r) * near_series32(r)
    y = (p + p * q) * float32_of(i32(bits32(lifted) << 23)) * DOWN32
    return f32(2.0) - y if x < f32(0.0) else y


@rarely
def far_erfinv64(x, w):
    """For w > 6.25: abs(x) > 0.999."""
    root = math.sqrt(w)
    if root < 4.0:
        s = root - 3.25
        p = horner(s, -1.6188233503766212e-08, 6.340256273411691e-10, 1.3394468106567598e-07, -2.7118588873816443e-07,
                   -3.026896547148203e-08, 1.4985451383017508e-06, -3.9840751685607665e-06, 2.9258247132645163e-06,
                   1.2464432270899939e-05, -4.7319015786549116e-05, 6.828724900907747e-05, 2.4031263181808443e-05,
                   -0.00035503783085775455, 0.0009532893630689132, -0.0016882755342495191, 0.002491442097018743,
                   -0.0037512085082630213, 0.005370914553570898, 1.0052589676941657, 3.0838856104922208)
        return x * p
    s = root - 5.0
    p = horner(s, 3.8770748447434554e-11, -2.5643978169733174e-11, -4.2123091550104914e-10, 1.5015759787440697e-09,
               -3.4977736042630874e-09, 7.626021344881826e-09, -1.523275042602227e-08, 2.9138769814128317e-08,
               -6.75666556941656e-08, 2.2900938107001637e-07, -9.93026706633577e-07, 4.526061360037325e-06,
               -1.968177104266828e-05, 7.599527719595722e-05, -0.0002150301198102052, -0.00013871931834476218,
               1.010300464864545, 4.849906401408584)
    return x * p if w < INF else copysign(INF, x)


@inlined
def _erfinv64(x):
    w = -log((1.0 - x) * (1.0 + x))
    t = w - 3.125
    z = t * t
    even = horner(z, -1.0090512745287614e-21, 1.1444101314210203e-18, -1.3003904123388615e-16, 6.5946996547083216e-15,
                  -8.117008446570105e-14, -1.297695829783944e-11, 1.0512183984888814e-09, -2.9070382775139717e-08,
                  -1.3654691844342663e-06, 0.00018673420802425576, -0.006033670871427753, 1.6536545626831027)
    odd = horner(z, 3.3757697497987433e-21, -3.575505526329567e-19, 1.5759783510319175e-17, -4.2865493190907e-17,
                 -3.9989781402080665e-14, 2.6303546031959713e-12, -5.4142390154599795e-11, -4.112661977078501e-09,
                 4.234788190760514e-07, -1.3882523395789781e-05, -0.0007407025341539558, 0.24015818242558826)
    p = even + t * odd
    return far_erfinv64(x, w) if w > 6.25 else x * p


@inlined
def _erfinv32(x):
    w = -log((f32(1.0) - x) * (f32(1.0) + x))
    t = w - f32(2.5)
    p = horner(t, f32(-8.791189e-09), f32(2.3233094e-08), f32(4.6617336e-07), f32(-3.4627099e-06), f32(-4.963366e-06),
               f32(0.00021834446), f32(-0.0012527418), f32(-0.004177387), f32(0.24664028), f32(1.5014094))
    s = math.sqrt(w) - f32(3.125)
    q = horner(s, f32(0.00011670962), f32(-0.00017912337), f32(-0.00030302847), f32(0.0013184882), f32(-0.0025315108),
               f32(0.0037781736), f32(-0.005299068), f32(0.0070495293), f32(1.0037186), f32(2.9583201))
    y = x * (p if w < f32(5.0) else q)
    return y if w < f32(INF) else (copysign(f32(INF), x) if abs(x) == f32(1.0) else f32(NAN))


erf = by_width(_erf32, _erf64)  # the error function
erfc = by_width(_erfc32, _erfc64)  # 1 - erf(x), accurate where it is small
erfinv = by_width(_erfinv32, _erfinv64)  # the inverse of erf
