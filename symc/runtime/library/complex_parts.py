# mypy: ignore-errors
"""Functions of complex numbers from real ones, with the edge cases of C's Annex G: for where no C library is.

Kernels of the CPU call the C library instead (``library.complex``, which comes after this module). Everything is
computed in double precision, by the real and imaginary part; functions that are one another turned by a right angle
(sin and sinh, atan and atanh) share their formula. Inverse functions are Kahan's, in which nothing cancels.
"""

from __future__ import annotations

import math

from symc.codegen.language.helpers import inlined
from symc.codegen.language.names import INF, NAN, c128, copysign, f64, fma, like
from symc.runtime.library.angles import atan2
from symc.runtime.library.hyperbolic import asinh, cosh, sinh
from symc.runtime.library.math import exp, log, log1p
from symc.runtime.library.power import hypot
from symc.runtime.library.trig import cos, sin, tan

HALF_TURN, QUARTER_TURN, LOG_2 = 3.141592653589793, 1.5707963267948966, 0.6931471805599453
E_700 = 1.0142320547350045e304  # exp(700)


@inlined
def is_finite(x):
    return abs(x) < INF


@inlined
def exp_parts(x, y):
    if y == 0.0:
        return exp(x), y
    if not is_finite(y):
        if x == -INF:
            return 0.0, 0.0
        return (INF if x == INF else NAN), NAN
    large = x > 709.0
    e = exp(x - 700.0 if large else x)
    scale = E_700 if large else 1.0
    return e * cos(y) * scale, e * sin(y) * scale


@inlined
def log_parts(x, y):
    a, b = abs(x), abs(y)
    high, low = (a if a > b else b), (b if a > b else a)
    angle = atan2(y, x)
    if high > 1e300:
        return log(hypot(0.25 * x, 0.25 * y)) + 2.0 * LOG_2, angle
    r = hypot(x, y)
    if high < 1.5 and r > 0.6:
        s, t = high * high, low * low
        off = ((s - 1.0) + t) + (fma(high, high, -s) + fma(low, low, -t))
        return 0.5 * log1p(off), angle
    return log(r), angle


@inlined
def sqrt_parts(x, y):
    if x == 0.0 and y == 0.0:
        return 0.0, y
    if abs(y) == INF:
        return INF, y
    if x == INF:
        return x, copysign(y - y, y)
    if x == -INF:
        return abs(y - y), copysign(INF, y)
    size = abs(x) if abs(x) > abs(y) else abs(y)
    scale = 0.25 if size > 1e300 else (2.0**108 if size < 1e-280 else 1.0)
    back = 2.0 if size > 1e300 else (2.0**-54 if size < 1e-280 else 1.0)
    u, v = x * scale, y * scale
    t = math.sqrt((abs(u) + hypot(u, v)) * 0.5)
    other = abs(v) / (2.0 * t)
    if u >= 0.0:
        return t * back, copysign(other * back, y)
    return other * back, copysign(t * back, y)


@inlined
def sinh_parts(x, y):
    if y == 0.0:
        return sinh(x), y
    if not is_finite(y):
        return (x if x == 0.0 or abs(x) == INF else NAN), NAN
    if abs(x) > 709.0:
        e = exp(abs(x) - 700.0) * 0.5
        return copysign(e, x) * cos(y) * E_700, e * sin(y) * E_700
    return sinh(x) * cos(y), cosh(x) * sin(y)


@inlined
def cosh_parts(x, y):
    if y == 0.0:
        return cosh(x), (y if x != x else copysign(1.0, x) * y)
    if not is_finite(y):
        return (INF if abs(x) == INF else NAN), (0.0 if x == 0.0 else NAN)
    if abs(x) > 709.0:
        e = exp(abs(x) - 700.0) * 0.5
        return e * cos(y) * E_700, copysign(e, x) * sin(y) * E_700
    return cosh(x) * cos(y), sinh(x) * sin(y)


@inlined
def tanh_parts(x, y):
    if x != x:
        return x, (y if y == 0.0 else NAN)
    if not is_finite(y):
        if abs(x) == INF:
            return copysign(1.0, x), 0.0
        return (x if x == 0.0 else NAN), NAN
    if abs(x) > 22.0:
        return copysign(1.0, x), 4.0 * sin(y) * cos(y) * exp(-2.0 * abs(x))
    t, s = tan(y), sinh(x)
    beta = 1.0 + t * t
    d = 1.0 + beta * s * s
    return beta * math.sqrt(1.0 + s * s) * s / d, t / d


@inlined
def asin_parts(x, y):
    if abs(x) == INF or abs(y) == INF:
        return (NAN if x != x or y != y else atan2(x, abs(y))), copysign(INF, y)
    if x != x or y != y:
        return (x if x == 0.0 else NAN), NAN
    a, b = sqrt_parts(1.0 - x, -y)
    c, d = sqrt_parts(1.0 + x, y)
    return atan2(x, a * c - b * d), asinh(a * d - b * c)


@inlined
def acos_parts(x, y):
    if abs(x) == INF or abs(y) == INF:
        return (NAN if x != x or y != y else atan2(abs(y), x)), copysign(INF, -y)
    if x != x or y != y:
        return (QUARTER_TURN if x == 0.0 else NAN), NAN
    a, b = sqrt_parts(1.0 - x, -y)
    c, d = sqrt_parts(1.0 + x, y)
    return 2.0 * atan2(a, c), asinh(c * b - d * a)


@inlined
def atanh_parts(x, y):
    if abs(x) == INF or abs(y) == INF:
        return copysign(0.0, x), (y if y != y else copysign(QUARTER_TURN, y))
    if x != x or y != y:
        return (x if x == 0.0 else NAN), NAN
    a, b = abs(x), abs(y)
    if a > 1e150 or b > 1e150:
        size = hypot(x, y)
        return x / size / size, copysign(QUARTER_TURN, y)
    if a == 1.0 and b < 1e-150:
        far = INF if b == 0.0 else 0.5 * (LOG_2 - log(b))
        return copysign(far, x), (y if b == 0.0 else copysign(0.25 * HALF_TURN, y))
    distance = (1.0 - a) * (1.0 - a) + b * b
    return copysign(0.25 * log1p(4.0 * a / distance), x), 0.5 * atan2(2.0 * y, (1.0 - a) * (1.0 + a) - b * b)


@inlined
def _cpow(z, w):
    u, angle = log_parts(z.real, z.imag)
    re, im = exp_parts(w.real * u - w.imag * angle, w.real * angle + w.imag * u)
    return c128(complex(re, im))


@inlined
def c_exp(z):
    re, im = exp_parts(f64(z.real), f64(z.imag))
    return like(z, complex(re, im))


@inlined
def c_log(z):
    re, im = log_parts(f64(z.real), f64(z.imag))
    return like(z, complex(re, im))


@inlined
def c_sqrt(z):
    re, im = sqrt_parts(f64(z.real), f64(z.imag))
    return like(z, complex(re, im))


@inlined
def c_sinh(z):
    re, im = sinh_parts(f64(z.real), f64(z.imag))
    return like(z, complex(re, im))


@inlined
def c_cosh(z):
    re, im = cosh_parts(f64(z.real), f64(z.imag))
    return like(z, complex(re, im))


@inlined
def c_tanh(z):
    re, im = tanh_parts(f64(z.real), f64(z.imag))
    return like(z, complex(re, im))


@inlined
def c_sin(z):
    im, re = sinh_parts(f64(z.imag), f64(z.real))
    return like(z, complex(re, im))


@inlined
def c_cos(z):
    re, im = cosh_parts(f64(z.imag), f64(z.real))
    return like(z, complex(re, -im))


@inlined
def c_tan(z):
    im, re = tanh_parts(f64(z.imag), f64(z.real))
    return like(z, complex(re, im))


@inlined
def c_asin(z):
    re, im = asin_parts(f64(z.real), f64(z.imag))
    return like(z, complex(re, im))


@inlined
def c_acos(z):
    re, im = acos_parts(f64(z.real), f64(z.imag))
    return like(z, complex(re, im))


@inlined
def c_atanh(z):
    re, im = atanh_parts(f64(z.real), f64(z.imag))
    return like(z, complex(re, im))


@inlined
def c_asinh(z):
    im, re = asin_parts(f64(z.imag), f64(z.real))
    return like(z, complex(re, im))


@inlined
def c_acosh(z):
    im, re = acos_parts(f64(z.real), f64(z.imag))
    return like(z, complex(abs(re), copysign(im, f64(z.imag))))


@inlined
def c_atan(z):
    im, re = atanh_parts(f64(z.imag), f64(z.real))
    return like(z, complex(re, im))
