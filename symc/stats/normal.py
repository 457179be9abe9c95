"""The normal distribution and what is made of it, in standard form; as in ``continuous``."""

from __future__ import annotations

import math
from typing import Any

from symc import numpy_api as xp
from symc import random
from symc import special as S
from symc.stats import skewed
from symc.stats.continuous import HALF_LOG_2PI, LOG_2, PI, POSITIVE, ROOT_2, ROOT_2_PI, continuous
from symc.stats.core import INF, mixed, times

norm = continuous(
    "norm", "The normal distribution.", symmetric=True,
    logpdf=lambda x: -0.5 * x * x - HALF_LOG_2PI, cdf=S.ndtr, logcdf=lambda x: S.log_ndtr(x), ppf=S.ndtri,
    entropy=lambda: HALF_LOG_2PI + 0.5, mean=lambda: 0.0, var=lambda: 1.0, draw=random.normal)

lognorm = continuous(
    "lognorm", "exp of a normal number with standard deviation s.", POSITIVE, shapes={"s": "positive"}, closed=False,
    logpdf=lambda x, s: -xp.log(x) * (xp.log(x) / (2 * s * s) + 1) - xp.log(s) - HALF_LOG_2PI,
    cdf=lambda x, s: S.ndtr(xp.log(x) / s), sf=lambda x, s: S.ndtr(-xp.log(x) / s),
    logcdf=lambda x, s: S.log_ndtr(xp.log(x) / s), logsf=lambda x, s: S.log_ndtr(-xp.log(x) / s),
    ppf=lambda q, s: xp.exp(s * S.ndtri(q)), isf=lambda q, s: xp.exp(-s * S.ndtri(q)),
    entropy=lambda s: HALF_LOG_2PI + 0.5 + xp.log(s), mean=lambda s: xp.exp(s * s / 2),
    var=lambda s: xp.expm1(s * s) * xp.exp(s * s), draw=lambda key, n, d, s: random.lognormal(key, s, n, d))

halfnorm = continuous(
    "halfnorm", "The absolute value of a normal number.", POSITIVE,
    logpdf=lambda x: LOG_2 - HALF_LOG_2PI - 0.5 * x * x, cdf=lambda x: S.erf(x / ROOT_2),
    sf=lambda x: S.erfc(x / ROOT_2),
    logcdf=lambda x: mixed(S.erf(x / ROOT_2), S.erfc(x / ROOT_2)), logsf=lambda x: LOG_2 + S.log_ndtr(-x),
    ppf=lambda q: ROOT_2 * S.erfinv(q), isf=lambda q: -S.ndtri(q / 2), entropy=lambda: 0.5 * math.log(PI / 2) + 0.5,
    mean=lambda: ROOT_2_PI, var=lambda: 1 - 2 / PI, draw=lambda key, n, d: xp.abs(random.normal(key, n, d)))


def _log_mass(a: Any, b: Any) -> Any:
    """log(ndtr(b) - ndtr(a)) for a <= b: by the tails on the side where both are small, or by the middle if near."""
    right, one_sided = a > 0, (a > 0) | (b < 0)
    near = (b - a) * (1 + xp.minimum(xp.abs(a), xp.abs(b))) < 0.01
    w, m = xp.where(near, b - a, 1.0), xp.where(near, a + (b - a) / 2, 0.0)
    bend = ((m * m - 1) / 24 + (m**4 - 6 * m * m + 3) / 1920 * w * w) * w * w
    middle = xp.log(w) - m * m / 2 - HALF_LOG_2PI + xp.log1p(bend)
    a, b = xp.where(right, -b, a), xp.where(right, -a, b)
    tails = one_sided & ~near
    upper, lower = S.log_ndtr(xp.where(tails, b, 0.0)), S.log_ndtr(xp.where(tails, a, -1.0))
    tail = upper + S.log1mexp(lower - upper)
    rest = S.ndtr(xp.where(one_sided, -1.0, a)) + S.ndtr(xp.where(one_sided, -1.0, -b))
    return xp.where(near, middle, xp.where(one_sided, tail, xp.log1p(-rest)))


def _ends(a: Any, b: Any) -> tuple[Any, Any, Any, Any]:
    """The densities at both ends, and these times the ends."""
    mass = _log_mass(a, b)
    pa, pb = (xp.exp(-0.5 * e * e - HALF_LOG_2PI - mass) for e in (a, b))
    ta, tb = (xp.where(xp.isinf(e), 0.0, e) * p for e, p in ((a, pa), (b, pb)))
    return pa, pb, ta, tb


def _truncated_mean(a: Any, b: Any) -> Any:
    pa, pb, _, _ = _ends(a, b)
    return pa - pb


def _truncated_var(a: Any, b: Any) -> Any:
    pa, pb, ta, tb = _ends(a, b)
    return 1 + (ta - tb) - (pa - pb) ** 2


def _truncated_ppf(p: Any, rest: Any, a: Any, b: Any) -> Any:
    """The point with ``p`` of the mass below it and ``rest`` above, by the tail that is the smaller."""
    right = (a >= 0) | (b > 0) & (rest < p)
    edge = xp.where(right, -b, a)
    part = xp.log(xp.where(right, rest, p))
    z = S.ndtri_exp(xp.logaddexp(S.log_ndtr(edge), part + _log_mass(a, b)))
    return xp.clip(xp.where(right, -z, z), a, b)


def _part(low: Any, high: Any, mass: Any, rest: Any) -> Any:
    """The logarithm of the part of a mass that lies between two points, by that of the rest where it is near 1."""
    part = xp.minimum(_log_mass(low, high) - mass, 0.0)
    most = part > -0.5
    return xp.where(most, S.log1mexp(xp.where(most, xp.minimum(_log_mass(*rest) - mass, 0.0), -1.0)), part)


truncnorm = continuous(
    "truncnorm", "A normal number between a and b.", lambda a, b: (a, b), shapes={"a": "any", "b": "any"},
    valid=lambda a, b: a < b, inside=lambda a, b: xp.clip(0.0, a, b),
    logpdf=lambda x, a, b: -0.5 * x * x - HALF_LOG_2PI - _log_mass(a, b),
    logcdf=lambda x, a, b: _part(a, x, _log_mass(a, b), (x, b)),
    logsf=lambda x, a, b: _part(x, b, _log_mass(a, b), (a, x)),
    ppf=lambda q, a, b: _truncated_ppf(q, 1 - q, a, b), isf=lambda q, a, b: _truncated_ppf(1 - q, q, a, b),
    entropy=lambda a, b: HALF_LOG_2PI + 0.5 + _log_mass(a, b) + (_ends(a, b)[2] - _ends(a, b)[3]) / 2,
    mean=_truncated_mean, var=_truncated_var, draw=lambda key, n, d, a, b: random.truncated_normal(key, a, b, n, d))


def _exponential_part(x: Any, K: Any) -> Any:
    return 0.5 / K / K - x / K + S.log_ndtr(x - 1 / K)


def _two(key: Any, n: Any, d: Any, f: Any, g: Any) -> tuple[Any, Any]:
    first, second = random.split(key)
    return f(first, n, d), g(second, n, d)


def _exponnorm_draw(key: Any, n: Any, d: Any, K: Any) -> Any:
    z, e = _two(key, n, d, random.normal, random.exponential)
    return z + K * e


exponnorm = continuous(
    "exponnorm", "A normal number plus an exponential one with mean K.", (-INF, INF), shapes={"K": "positive"},
    logpdf=lambda x, K: _exponential_part(x, K) - xp.log(K),
    cdf=lambda x, K: xp.maximum(S.ndtr(x) - xp.exp(_exponential_part(x, K)), 0.0),
    sf=lambda x, K: S.ndtr(-x) + xp.exp(_exponential_part(x, K)),
    mean=lambda K: K, var=lambda K: 1 + K * K, draw=_exponnorm_draw)


def _skewed(a: Any) -> Any:
    return a / xp.hypot(1.0, a)


def _skewnorm_draw(key: Any, n: Any, d: Any, a: Any) -> Any:
    x, y = _two(key, n, d, random.normal, random.normal)
    return _skewed(a) * xp.abs(x) + y / xp.hypot(1.0, a)


skewnorm = continuous(
    "skewnorm", "The skew normal distribution.", shapes={"a": "any"},
    logpdf=lambda x, a: LOG_2 - HALF_LOG_2PI - 0.5 * x * x + S.log_ndtr(times(a, x)),
    logcdf=skewed.logcdf, logsf=lambda x, a: skewed.logcdf(-x, -a),
    mean=lambda a: ROOT_2_PI * _skewed(a), var=lambda a: 1 - 2 / PI * _skewed(a) ** 2, draw=_skewnorm_draw)

invgauss = continuous(
    "invgauss", "The inverse Gaussian distribution with mean mu and scale 1: first passage times.", POSITIVE,
    shapes={"mu": "positive"}, closed=False, inside=1.0,
    logpdf=lambda x, mu: -HALF_LOG_2PI - 1.5 * xp.log(x) - (x / mu - 1) ** 2 / (2 * x),
    logcdf=lambda x, mu: xp.logaddexp(*_passage(x, mu, 1)),
    logsf=lambda x, mu: _log_difference(*_passage(x, mu, -1)),
    mean=lambda mu: mu, var=lambda mu: mu**3, draw=lambda key, n, d, mu: random.wald(key, mu, n, d))


def _passage(x: Any, mu: Any, sign: int) -> tuple[Any, Any]:
    root = xp.sqrt(x)
    return S.log_ndtr(sign * (x / mu - 1) / root), 2 / mu + S.log_ndtr(-(x / mu + 1) / root)


def _log_difference(a: Any, b: Any) -> Any:
    return a + S.log1mexp(xp.minimum(b - a, 0.0))


_AT_MEAN_1: dict[str, Any] = {name: lambda x, f=invgauss.formulas[name]: f(x, xp.ones_like(x))
                              for name in ("logpdf", "logcdf", "logsf")}
wald = continuous("wald", "invgauss with mean 1.", POSITIVE, closed=False, inside=1.0, mean=lambda: 1.0,
                  var=lambda: 1.0, draw=lambda key, n, d: random.wald(key, 1.0, n, d), **_AT_MEAN_1)
