# mypy: ignore-errors
"""Complex numbers inside kernels, with NumPy's edge cases: quotients, powers, and functions made of those of
``complex_parts``. Everything is computed in double precision.
"""

from __future__ import annotations

import math

from symc.codegen.language.helpers import inlined
from symc.codegen.language.names import INF, NAN, c128, f64, floor, like
from symc.runtime.library.complex_parts import _cpow, c_exp, c_log
from symc.runtime.library.power import hypot

LN2, LOG2E, LOG10E = math.log(2), 1 / math.log(2), 1 / math.log(10)


@inlined
def c_exp2(z):
    return like(z, c_exp(c128(complex(f64(z.real) * LN2, f64(z.imag) * LN2))))


@inlined
def c_log2(z):
    w = c_log(c128(z))
    return like(z, complex(w.real * LOG2E, w.imag * LOG2E))


@inlined
def c_log10(z):
    w = c_log(c128(z))
    return like(z, complex(w.real * LOG10E, w.imag * LOG10E))


@inlined
def c_log1p(z):
    re, im = f64(z.real) + 1.0, f64(z.imag)
    return like(z, complex(math.log(math.hypot(re, im)), math.atan2(im, re)))


@inlined
def c_expm1(z):
    re, im = f64(z.real), f64(z.imag)
    half = math.sin(im / 2)
    return like(z, complex(math.expm1(re) * math.cos(im) - 2 * half * half, math.exp(re) * math.sin(im)))


@inlined
def c_abs(z):
    return like(z.real, hypot(f64(z.real), f64(z.imag)))


@inlined
def c_div(x, y):
    """NumPy's quotient, after Smith: the larger part of y is divided by first."""
    a, b, c, d = f64(x.real), f64(x.imag), f64(y.real), f64(y.imag)
    if abs(c) >= abs(d):
        if c == 0 and d == 0:
            return like(x, complex(a / abs(c), b / abs(c)))
        ratio = d / c
        scale = 1.0 / (c + d * ratio)
        return like(x, complex((a + b * ratio) * scale, (b - a * ratio) * scale))
    ratio = c / d
    scale = 1.0 / (c * ratio + d)
    return like(x, complex((a * ratio + b) * scale, (b * ratio - a) * scale))


@inlined
def c_pow(x, y):
    """NumPy's power: small whole exponents multiply."""
    a, b = c128(x), c128(y)
    if b == 0:
        return like(x, complex(1.0, 0.0))
    if a == 0:
        return like(x, complex(0.0, 0.0) if b.real > 0 else complex(NAN, NAN))
    if b.imag != 0 or b.real != floor(b.real) or abs(b.real) >= 100:
        return like(x, _cpow(a, b))
    if b.real == 1:
        return like(x, a)
    if b.real == 2:
        return like(x, a * a)
    if b.real == 3:
        return like(x, a * a * a)
    n = int(abs(b.real))
    out = c128(complex(1.0, 0.0))
    while n > 0:
        if n & 1:
            out = out * a
        a = a * a
        n >>= 1
    return like(x, out) if b.real > 0 else like(x, c_div(c128(complex(1.0, 0.0)), out))


@inlined
def c_sign(z):
    re, im = f64(z.real), f64(z.imag)
    size = math.hypot(re, im)
    if size == 0:
        return like(z, complex(0.0, 0.0))
    if size == INF:
        if abs(re) == INF:
            return like(z, complex(NAN, NAN) if abs(im) == INF else complex(math.copysign(1.0, re), 0.0))
        return like(z, complex(0.0, math.copysign(1.0, im)))
    return like(z, complex(re / size, im / size))


@inlined
def c_isnan(z):
    return z.real != z.real or z.imag != z.imag


@inlined
def c_isinf(z):
    return abs(z.real) == INF or abs(z.imag) == INF


@inlined
def c_isfinite(z):
    return abs(z.real) < INF and abs(z.imag) < INF
