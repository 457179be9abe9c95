# mypy: ignore-errors
"""Functions of complex numbers from real ones, with the edge cases of C's Annex G.

exp, log, sqrt, sinh and cosh have no branches: loops vectorize around them, with errors of at most 3 ulp of each part.
The others are for where no C library is, which kernels of the CPU call. Everything is computed in double precision, by
the real and imaginary part; functions that are one another turned by a right angle (sin and sinh, atan and atanh) share
their formula. Inverse functions are Kahan's, in which nothing cancels.
"""

from __future__ import annotations

import math

from symc.codegen.language.helpers import inlined, rarely
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
    large, off = x > 709.0, not is_finite(y)
    e, scale = exp(x - 700.0 if large else x), E_700 if large else 1.0
    re, im = e * cos(y) * scale, e * sin(y) * scale
    im = y if y == 0.0 else im
    none = x == -INF
    re = (0.0 if none else (x if x == INF else NAN)) if off else re
    return re, (0.0 if none else NAN) if off else im


@inlined
def log_parts(x, y):
    a, b = abs(x), abs(y)
    high, low = (a if a > b else b), (b if a > b else a)
    huge = high > 1e300
    scale, more = 0.25 if huge else 1.0, 2.0 * LOG_2 if huge else 0.0
    r = hypot(scale * x, scale * y)
    s, t = high * high, low * low
    d = s - 1.0
    off = (d + t) + ((s - (d + 1.0)) + (fma(high, high, -s) + fma(low, low, -t)))
    near = high < 1.5 and r > 0.6
    return 0.5 * log1p(off if near else 0.0) if near else log(r) + more, atan2(y, x)


@inlined
def sqrt_parts(x, y):
    size = abs(x) if abs(x) > abs(y) else abs(y)
    huge, tiny = size > 1e300, size < 1e-280
    scale, back = 0.25 if huge else (2.0**108 if tiny else 1.0), 2.0 if huge else (2.0**-54 if tiny else 1.0)
    u, v = x * scale, y * scale
    t = math.sqrt((abs(u) + hypot(u, v)) * 0.5)
    other = 0.0 if t == 0.0 else abs(v) / (2.0 * t)
    re, im = (t if u >= 0.0 else other) * back, (other if u >= 0.0 else t) * back
    re = abs(y - y) if x == -INF else (x if x == INF else re)
    im = INF if x == -INF else (abs(y - y) if x == INF else im)
    far = abs(y) == INF
    return INF if far else re, copysign(INF if far else im, y)


@rarely
def beyond(x, turned):
    """sinh(x) times a number, of which the first may overflow and the product not."""
    return copysign(exp(abs(x) - 700.0) * 0.5, x) * turned * E_700


@inlined
def sinh_parts(x, y):
    off = not is_finite(y)
    a, c, s = abs(x), cos(y), sin(y)
    re = beyond(x, c) if a > 709.0 else sinh(x) * c
    im = beyond(a, s) if a > 709.0 else cosh(x) * s
    im = y if y == 0.0 else im
    return (x if x == 0.0 or a == INF else NAN) if off else re, NAN if off else im


@inlined
def cosh_parts(x, y):
    off = not is_finite(y)
    a, c, s = abs(x), cos(y), sin(y)
    re = beyond(a, c) if a > 709.0 else cosh(x) * c
    im = beyond(x, s) if a > 709.0 else sinh(x) * s
    im = (y if x != x else copysign(1.0, x) * y) if y == 0.0 else im
    return (a if a == INF else NAN) if off else re, (0.0 if x == 0.0 else NAN) if off else im


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
