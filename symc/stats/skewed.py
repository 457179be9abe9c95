"""The skew normal distribution function, without cancellation in its thin tail.

For h > 0 and a > 0 the thin tail is ``P(X < -h) = (1 / pi) * integral from a to infinity of exp(-h**2 (1 + t**2) / 2) /
(1 + t**2)``, the part of Owen's integral that T(h, a) leaves out. Where h * a > 1 it is computed as that integral, else
as the difference ``ndtr(-h) - 2 T(h, a)``, of which not many digits are lost then. The thick tail is the rest of
``2 ndtr(-h)``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symc import numpy_api as xp
from symc import special as S

#: Points and weights of Gauss and Legendre on [0, 1].
_AT, _WEIGHT = ((v + k) / 2 for v, k in zip(np.polynomial.legendre.leggauss(24), (1, 0), strict=True))
#: Where an integrand is 1e-16 of its greatest.
_ENOUGH = 37.0
#: From here on Owen's function and the tail of the normal distribution have no quotient but by their logarithms.
_FAR = 5.0


def logcdf(x: Any, a: Any) -> Any:
    """The logarithm of the distribution function; that of the rest is ``logcdf(-x, -a)``."""
    x, a = xp.broadcast_arrays(x, a)
    left, ends = x < 0, xp.isinf(x)
    x = xp.where(ends, -1.0, x)
    thin = xp.where(left, a > 0, a < 0)
    h, s = xp.abs(x), xp.minimum(xp.abs(a), float(np.sqrt(np.finfo(x.dtype).max)))
    steep, far = h * s > 1, h > _FAR
    normal = S.log_ndtr(-h)
    log_rest, by_logarithms = _integrals(h, s, steep, far, normal)
    near = ~steep & ~far
    y, slope = xp.where(near, h, 0.0), xp.where(near, s, 0.0)
    share = xp.where(near, 2 * S.owens_t(y, slope) / S.ndtr(-y), by_logarithms)
    apart = xp.where(steep, xp.exp(xp.minimum(log_rest - normal, 0.0)), 1 - share)
    tail = xp.where(thin & steep, log_rest, normal + xp.log(xp.where(thin, xp.where(steep, 1.0, apart), 2 - apart)))
    tail = xp.where(ends & ~xp.isnan(a), -np.inf, tail)
    return xp.where(left, tail, S.log1mexp(xp.where(left, -1.0, xp.minimum(tail, 0.0))))


def _integrals(h: Any, s: Any, steep: Any, far: Any, normal: Any) -> tuple[Any, Any]:
    """The logarithm of the thin tail, where it is ``steep``; and 2 T(h, s) / ndtr(-h) where it is not, but ``far``: of
    each place one is wanted, and both are integrals of exp(-c u - d u**2) / (1 + (p + q u)**2)."""
    b = h * s
    square = xp.where(steep, b * b, 1.0)
    slope = xp.where(steep | far, s, 0.0)
    end = xp.where(steep, 2 * _ENOUGH / (1 + xp.sqrt(1 + 2 * _ENOUGH / square)), 1.0)
    c = xp.where(steep, xp.ones_like(h), 0.0)
    d = xp.where(steep, 0.5 / square, xp.where(far, b * b / 2, 0.0))
    p, q = xp.where(steep, s, 0.0), slope / square
    dtype = np.dtype(end.dtype)
    wide, c, d, p, q = (xp.expand_dims(v, -1) for v in (end, c, d, p, q))
    u = wide * _AT.astype(dtype)
    found = end * xp.sum(_WEIGHT.astype(dtype) / (1 + (p + q * u) ** 2) * xp.exp(-c * u - d * u * u), axis=-1)
    inside = xp.where(steep, found / (xp.where(steep, h, 1.0) * xp.where(steep, b, 1.0)), 1.0)
    log_rest = xp.where(steep, -(h * h + square) / 2 + xp.log(inside) - math.log(math.pi), -1.0)
    quotient = xp.exp(-xp.where(far, h * h / 2 + normal, 0.0))
    return log_rest, slope / math.pi * xp.where(steep, 0.0, found) * quotient
