"""Continuous distributions in standard form. The formulas are those of Johnson, Kotz and Balakrishnan, *Continuous
Univariate Distributions*, in the parametrisation of scipy.stats; where a function has a form that keeps its digits in a
tail, it is that one. A distribution is one record; what it does not state is derived (``core.DERIVED``)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symc import numpy_api as xp
from symc import random
from symc import special as S
from symc.stats.core import INF, NAN, mixed, times
from symc.stats.kinds import Continuous
from symc.stats.search import rejection

EULER, PI = float(np.euler_gamma), math.pi
LOG_2, LOG_PI, HALF_LOG_2PI = math.log(2), math.log(math.pi), 0.5 * math.log(2 * math.pi)
ROOT_2, ROOT_2_PI = math.sqrt(2), math.sqrt(2 / math.pi)
POSITIVE = (0.0, INF)


def continuous(name: str, doc: str, support: Any = None, *, inside: Any = None, valid: Any = None, closed: bool = True,
               symmetric: bool = False, shapes: dict[str, str] | None = None, **formulas: Any) -> Continuous:
    return Continuous(name, doc, shapes or {}, support, inside, valid, closed, symmetric, formulas)


# --- gamma and beta -----------------------------------------------------------------------------------------------

gamma = continuous(
    "gamma", "The gamma distribution with shape a.", POSITIVE, shapes={"a": "positive"},
    logpdf=lambda x, a: S.xlogy(a - 1, x) - x - S.gammaln(a),
    cdf=lambda x, a: S.gammainc(a, x), sf=lambda x, a: S.gammaincc(a, x),
    ppf=lambda q, a: S.gammaincinv(a, q), isf=lambda q, a: S.gammainccinv(a, q),
    entropy=lambda a: S.digamma(a) * (1 - a) + a + S.gammaln(a), mean=lambda a: a, var=lambda a: a,
    draw=lambda key, n, d, a: random.gamma(key, a, n, d))

invgamma = continuous(
    "invgamma", "The reciprocal of a gamma number.", POSITIVE, shapes={"a": "positive"}, closed=False,
    logpdf=lambda x, a: -(a + 1) * xp.log(x) - S.gammaln(a) - 1 / x,
    cdf=lambda x, a: S.gammaincc(a, 1 / x), sf=lambda x, a: S.gammainc(a, 1 / x),
    ppf=lambda q, a: 1 / S.gammainccinv(a, q), isf=lambda q, a: 1 / S.gammaincinv(a, q),
    entropy=lambda a: a + S.gammaln(a) - (1 + a) * S.digamma(a), mean=lambda a: _above(a, 1, lambda a: 1 / (a - 1)),
    var=lambda a: _above(a, 2, lambda a: 1 / ((a - 1) ** 2 * (a - 2))),
    draw=lambda key, n, d, a: xp.exp(-random.loggamma(key, a, n, d)))

chi2 = continuous(
    "chi2", "The sum of df squares of normal numbers.", POSITIVE, shapes={"df": "positive"},
    logpdf=lambda x, df: S.xlogy(df / 2 - 1, x) - x / 2 - S.gammaln(df / 2) - LOG_2 / 2 * df,
    cdf=lambda x, df: S.gammainc(df / 2, x / 2), sf=lambda x, df: S.gammaincc(df / 2, x / 2),
    ppf=lambda q, df: 2 * S.gammaincinv(df / 2, q), isf=lambda q, df: 2 * S.gammainccinv(df / 2, q),
    entropy=lambda df: df / 2 + LOG_2 + S.gammaln(df / 2) + (1 - df / 2) * S.digamma(df / 2),
    mean=lambda df: df, var=lambda df: 2 * df, draw=lambda key, n, d, df: random.chisquare(key, df, n, d))

maxwell = continuous(
    "maxwell", "The length of a vector of three normal numbers.", POSITIVE,
    logpdf=lambda x: math.log(ROOT_2_PI) + 2 * xp.log(x) - x * x / 2,
    cdf=lambda x: S.gammainc(1.5, x * x / 2), sf=lambda x: S.gammaincc(1.5, x * x / 2),
    ppf=lambda q: xp.sqrt(2 * S.gammaincinv(1.5, q)), isf=lambda q: xp.sqrt(2 * S.gammainccinv(1.5, q)),
    entropy=lambda: EULER + HALF_LOG_2PI - 0.5, mean=lambda: 2 * ROOT_2_PI, var=lambda: 3 - 8 / PI, draw=random.maxwell)

#: The logarithm of an x below which an incomplete beta function is its leading term in all digits.
_FAR = -40.0


def _beta_end(a: Any, b: Any, q: Any) -> tuple[Any, Any]:
    """The logarithm of ``betaincinv(a, b, q)`` where it is next to 0, and where that is: SciPy's may be nan there."""
    power = (xp.log(q) + xp.log(a) + S.betaln(a, b)) / a
    far = (power + xp.log1p(b) < _FAR) & (q > 0)
    return xp.where(far, power, 0.0), far


def _beta_ppf(a: Any, b: Any, q: Any) -> Any:
    power, far = _beta_end(a, b, q)
    return xp.where(far, xp.exp(power), S.betaincinv(a, b, xp.where(far, 0.5, q)))


def _beta_isf(a: Any, b: Any, q: Any) -> Any:
    power, far = _beta_end(b, a, q)
    return xp.where(far, -xp.expm1(power), S.betainccinv(a, b, xp.where(far, 0.5, q)))


beta = continuous(
    "beta", "The beta distribution with shapes a and b.", (0.0, 1.0), shapes={"a": "positive", "b": "positive"},
    logpdf=lambda x, a, b: S.xlog1py(b - 1, -x) + S.xlogy(a - 1, x) - S.betaln(a, b),
    cdf=lambda x, a, b: S.betainc(a, b, x), sf=lambda x, a, b: S.betaincc(a, b, x),
    ppf=lambda q, a, b: _beta_ppf(a, b, q), isf=lambda q, a, b: _beta_isf(a, b, q),
    entropy=lambda a, b: (S.betaln(a, b) - (a - 1) * S.digamma(a) - (b - 1) * S.digamma(b)
                          + (a + b - 2) * S.digamma(a + b)),
    mean=lambda a, b: a / (a + b), var=lambda a, b: a * b / ((a + b) ** 2 * (a + b + 1)),
    draw=lambda key, n, d, a, b: random.beta(key, a, b, n, d))


def _f_entropy(m: Any, n: Any) -> Any:
    a, b = m / 2, n / 2
    return xp.log(n / m) + S.betaln(a, b) + (1 - a) * S.digamma(a) - (1 + b) * S.digamma(b) + (a + b) * S.digamma(a + b)


f = continuous(
    "f", "The quotient of two chi-square numbers, each by its degrees of freedom.", POSITIVE,
    shapes={"dfn": "positive", "dfd": "positive"},
    logpdf=lambda x, m, n: (m / 2 * xp.log(m / n) + S.xlogy(m / 2 - 1, x) - (m + n) / 2 * xp.log1p(m / n * x)
                            - S.betaln(m / 2, n / 2)),
    cdf=lambda x, m, n: S.betainc(m / 2, n / 2, m * x / (n + m * x)),
    sf=lambda x, m, n: S.betainc(n / 2, m / 2, n / (n + m * x)),
    ppf=lambda q, m, n: n / m * _beta_ppf(m / 2, n / 2, q) / _beta_isf(n / 2, m / 2, q),
    isf=lambda q, m, n: n / m * _beta_isf(m / 2, n / 2, q) / _beta_ppf(n / 2, m / 2, q),
    entropy=_f_entropy, mean=lambda m, n: _above(n, 2, lambda n: n / (n - 2)),
    var=lambda m, n: _above(n, 4, lambda n: 2 * n * n * (m + n - 2) / (m * (n - 2) ** 2 * (n - 4))),
    draw=lambda key, k, d, m, n: random.f(key, m, n, k, d))


def _above(p: Any, bound: float, f: Any) -> Any:
    """f of the parameters above ``bound``, infinity of others."""
    ok = p > bound
    return xp.where(ok, f(xp.where(ok, p, bound + 1)), INF)


def _log1p_square(u: Any) -> Any:
    """log(1 + u*u), without overflow."""
    large = xp.abs(u) > 1
    v = xp.where(large, 1 / xp.where(large, u, 1.0), u)
    return xp.log1p(v * v) + xp.where(large, 2 * xp.log(xp.abs(xp.where(large, u, 1.0))), 0.0)


def _t_constant(df: Any) -> Any:
    """log(df / 2 beta(df / 2, 1/2)): what a power of df / (df + x**2) is divided by, far out."""
    return xp.log(df) - LOG_2 + S.betaln(df / 2, 0.5)


def _t_logcdf(x: Any, df: Any) -> Any:
    power = -_log1p_square(x / xp.sqrt(df))
    far = (x < 0) & (power < _FAR)
    near = xp.where(far, -1.0, x)
    return xp.where(far, df / 2 * power - LOG_2 - _t_constant(df), mixed(S.stdtr(df, near), S.stdtr(df, -near)))


def _t_ppf(q: Any, df: Any) -> Any:
    """SciPy's ``stdtrit`` gives infinities of the wrong sign for the least probabilities."""
    p = xp.minimum(q, 1 - q)
    power = (xp.log(2 * p) + _t_constant(df)) * 2 / df
    far = (power < _FAR) & (p > 0)
    x = xp.sqrt(df) * xp.exp(-xp.where(far, power, 0.0) / 2)
    return xp.where(far, xp.where(q < 0.5, -x, x), S.stdtrit(df, xp.where(far, 0.5, q)))


t = continuous(
    "t", "Student's t distribution.", shapes={"df": "positive"}, symmetric=True,
    logpdf=lambda x, df: -S.betaln(df / 2, 0.5) - 0.5 * xp.log(df) - (df + 1) / 2 * _log1p_square(x / xp.sqrt(df)),
    cdf=lambda x, df: S.stdtr(df, x), logcdf=_t_logcdf, ppf=_t_ppf,
    entropy=lambda df: ((df + 1) / 2 * (S.digamma((df + 1) / 2) - S.digamma(df / 2)) + 0.5 * xp.log(df)
                        + S.betaln(df / 2, 0.5)),
    mean=lambda df: _above(df, 1, lambda df: 0 * df),
    var=lambda df: xp.where(df > 1, _above(df, 2, lambda df: df / (df - 2)), NAN),
    draw=lambda key, n, d, df: random.t(key, df, n, d))

# --- location and scale alone -------------------------------------------------------------------------------------


def _cauchy_ppf(q: Any) -> Any:
    p = xp.minimum(q, 1 - q)
    far = p < 0.25
    x = xp.where(far, 1 / xp.tan(PI * xp.where(far, p, 0.25)), xp.tan(PI * (0.5 - xp.where(far, 0.25, p))))
    return xp.where(q < 0.5, -x, x)


cauchy = continuous(
    "cauchy", "The Cauchy distribution.", symmetric=True,
    logpdf=lambda x: -LOG_PI - _log1p_square(x), cdf=lambda x: xp.arctan2(1.0, -x) / PI,
    ppf=_cauchy_ppf, entropy=lambda: math.log(4 * PI), mean=lambda: NAN, var=lambda: NAN,
    draw=random.cauchy)

halfcauchy = continuous(
    "halfcauchy", "The absolute value of a Cauchy number.", POSITIVE,
    logpdf=lambda x: LOG_2 - LOG_PI - _log1p_square(x), cdf=lambda x: 2 / PI * xp.arctan(x),
    sf=lambda x: 2 / PI * xp.arctan2(1.0, x), ppf=lambda q: xp.tan(PI / 2 * q), isf=lambda q: 1 / xp.tan(PI / 2 * q),
    entropy=lambda: math.log(2 * PI), mean=lambda: INF, var=lambda: INF,
    draw=lambda key, n, d: xp.abs(random.cauchy(key, n, d)))

laplace = continuous(
    "laplace", "The Laplace distribution, exponential to both sides.", symmetric=True,
    logpdf=lambda x: -xp.abs(x) - LOG_2,
    logcdf=lambda x: xp.where(x < 0, x - LOG_2, xp.log1p(-0.5 * xp.exp(-xp.where(x < 0, 0.0, x)))),
    ppf=lambda q: xp.where(q < 0.5, xp.log(2 * q), -xp.log(2 * (1 - q))),
    entropy=lambda: LOG_2 + 1, mean=lambda: 0.0, var=lambda: 2.0, draw=random.laplace)

logistic = continuous(
    "logistic", "The logistic distribution.", symmetric=True,
    logpdf=lambda x: -S.softplus(x) - S.softplus(-x), logcdf=lambda x: -S.softplus(-x), ppf=S.logit,
    entropy=lambda: 2.0, mean=lambda: 0.0, var=lambda: PI**2 / 3, draw=random.logistic)


def _log_missed(x: Any) -> Any:
    """log(1 - exp(-exp(-x))), which is -x far to the right."""
    far = x > 37
    return xp.where(far, -x, S.log1mexp(-xp.exp(-xp.where(far, 0.0, x))))


gumbel_r = continuous(
    "gumbel_r", "The Gumbel distribution of greatest values.", (-INF, INF),
    logpdf=lambda x: -x - xp.exp(-x), logcdf=lambda x: -xp.exp(-x), logsf=_log_missed, logppf=lambda v: -xp.log(-v),
    entropy=lambda: EULER + 1, mean=lambda: EULER, var=lambda: PI**2 / 6, draw=random.gumbel)

gumbel_l = continuous(
    "gumbel_l", "The Gumbel distribution of least values.", (-INF, INF),
    logpdf=lambda x: x - xp.exp(x), logsf=lambda x: -xp.exp(x), logcdf=lambda x: _log_missed(-x),
    logisf=lambda v: xp.log(-v),
    entropy=lambda: EULER + 1, mean=lambda: -EULER, var=lambda: PI**2 / 6,
    draw=lambda key, n, d: -random.gumbel(key, n, d))

expon = continuous(
    "expon", "The exponential distribution.", POSITIVE, logpdf=lambda x: -x, logsf=lambda x: -x, logisf=lambda v: -v,
    entropy=lambda: 1.0, mean=lambda: 1.0, var=lambda: 1.0)

rayleigh = continuous(
    "rayleigh", "The length of a vector of two normal numbers.", POSITIVE,
    logpdf=lambda x: xp.log(x) - x * x / 2, logsf=lambda x: -x * x / 2, logisf=lambda v: xp.sqrt(-2 * v),
    entropy=lambda: EULER / 2 + 1 - LOG_2 / 2, mean=lambda: math.sqrt(PI / 2), var=lambda: 2 - PI / 2)

uniform = continuous(
    "uniform", "From loc to loc + scale, each number equally likely.", (0.0, 1.0),
    logpdf=lambda x: 0.0 * x, cdf=lambda x: x, sf=lambda x: 1 - x, ppf=lambda q: q,
    entropy=lambda: 0.0, mean=lambda: 0.5, var=lambda: 1 / 12, draw=random.uniform)

# --- powers, extremes and other shapes --------------------------------------------------------------------------------

pareto = continuous(
    "pareto", "Numbers above 1 with sf = x**-b.", (1.0, INF), shapes={"b": "positive"},
    logpdf=lambda x, b: xp.log(b) - (b + 1) * xp.log(x), logsf=lambda x, b: -b * xp.log(x),
    logisf=lambda v, b: xp.exp(-v / b), entropy=lambda b: 1 + 1 / b - xp.log(b),
    mean=lambda b: _above(b, 1, lambda b: b / (b - 1)),
    var=lambda b: _above(b, 2, lambda b: b / ((b - 1) ** 2 * (b - 2))))

weibull_min = continuous(
    "weibull_min", "Powers 1 / c of exponential numbers.", POSITIVE, shapes={"c": "positive"},
    logpdf=lambda x, c: xp.log(c) + S.xlogy(c - 1, x) - x**c, logsf=lambda x, c: -(x**c),
    logisf=lambda v, c: (-v) ** (1 / c), entropy=lambda c: EULER * (1 - 1 / c) - xp.log(c) + 1,
    mean=lambda c: xp.exp(S.gammaln(1 + 1 / c)),
    var=lambda c: xp.exp(S.gammaln(1 + 2 / c)) - xp.exp(2 * S.gammaln(1 + 1 / c)))

def _log_span(a: Any, b: Any) -> Any:
    return xp.log1p((b - a) / a)


loguniform = continuous(
    "loguniform", "From a to b, with the logarithm uniform.", lambda a, b: (a, b),
    shapes={"a": "positive", "b": "positive"}, valid=lambda a, b: a < b, inside=lambda a, b: a,
    logpdf=lambda x, a, b: -xp.log(x) - xp.log(_log_span(a, b)), cdf=lambda x, a, b: _log_span(a, x) / _log_span(a, b),
    sf=lambda x, a, b: _log_span(x, b) / _log_span(a, b), ppf=lambda q, a, b: a * xp.exp(q * _log_span(a, b)),
    isf=lambda q, a, b: b * xp.exp(-q * _log_span(a, b)),
    entropy=lambda a, b: 0.5 * (xp.log(a) + xp.log(b)) + xp.log(_log_span(a, b)),
    mean=lambda a, b: (b - a) / _log_span(a, b),
    var=lambda a, b: (b - a) * (b + a) / (2 * _log_span(a, b)) - ((b - a) / _log_span(a, b)) ** 2)


def _triangle(x: Any, c: Any, rising: Any, falling: Any) -> Any:
    """One of two formulas, for c that is not 0 and not 1."""
    up = (x < c) | (c == 1)
    return xp.where(up, rising(xp.where(up, c, 1.0)), falling(xp.where(up, 0.0, c)))


triang = continuous(
    "triang", "From 0 to 1, with a density that rises to its top at c.", (0.0, 1.0), shapes={"c": "probability"},
    logpdf=lambda x, c: LOG_2 + _triangle(x, c, lambda c: xp.log(x / c), lambda c: xp.log((1 - x) / (1 - c))),
    cdf=lambda x, c: _triangle(x, c, lambda c: x * x / c, lambda c: c + (x - c) * (2 - c - x) / (1 - c)),
    sf=lambda x, c: _triangle(x, c, lambda c: 1 - c + (c - x) * (c + x) / c, lambda c: (1 - x) ** 2 / (1 - c)),
    ppf=lambda q, c: xp.where(q < c, xp.sqrt(q * c), 1 - xp.sqrt((1 - q) * (1 - c))),
    isf=lambda q, c: xp.where(q > 1 - c, xp.sqrt((1 - q) * c), 1 - xp.sqrt(q * (1 - c))),
    entropy=lambda c: 0.5 - LOG_2, mean=lambda c: (1 + c) / 3, var=lambda c: (1 - c + c * c) / 18,
    draw=lambda key, n, d, c: random.triangular(key, 0.0, c, 1.0, n, d))


def _series(u: Any, plain: Any, coefficients: list[float]) -> Any:
    """A function that is a power series around 0, where its plain formula cancels."""
    small = xp.abs(u) < 0.03
    v, out = xp.where(small, u, 0.0), 0.0
    for c in reversed(coefficients):
        out = c + v * out
    return xp.where(small, out, plain(xp.where(small, 1.0, u)))


def _log_ratio(u: Any) -> Any:
    """log1p(u) / u."""
    return _series(u, lambda u: xp.log1p(u) / u, [(-1.0) ** k / (k + 1) for k in range(11)])


def _exp_ratio(u: Any) -> Any:
    """expm1(u) / u."""
    return _series(u, lambda u: xp.expm1(u) / u, [1 / math.factorial(k + 1) for k in range(11)])


def _extreme_logpdf(x: Any, c: Any) -> Any:
    w = x * _log_ratio(-c * x)
    return times(c - 1, w) - xp.exp(-w)


ZETA_3 = 1.2020569031595942


def _extreme_moment(c: Any, least: float, plain: Any, *series: float) -> Any:
    """``plain`` of c above ``least``, and a series around 0, where it cancels; below, inf."""
    near = xp.abs(c) < 1e-4
    found = plain(xp.where(near | (c <= least), 1.0, c))
    return xp.where(near, sum(s * c**k for k, s in enumerate(series)), xp.where(c > least, found, INF))


def _extreme_mean(c: Any) -> Any:
    return _extreme_moment(c, -1, lambda c: -xp.expm1(S.gammaln(1 + c)) / c, EULER, -(PI**2 / 12 + EULER**2 / 2),
                           EULER**3 / 6 + EULER * PI**2 / 12 + ZETA_3 / 3)


def _extreme_var(c: Any) -> Any:
    one, two = (lambda c, k=k: S.gammaln(1 + k * c) for k in (1, 2))
    return _extreme_moment(c, -0.5, lambda c: xp.exp(2 * one(c)) * xp.expm1(two(c) - 2 * one(c)) / c**2,
                           PI**2 / 6, -(PI**2 / 3 * EULER + 2 * ZETA_3))


genextreme = continuous(
    "genextreme", "The generalized extreme value distribution; c = 0: gumbel_r.",
    lambda c: (xp.where(c < 0, 1 / xp.where(c < 0, c, -1.0), -INF), xp.where(c > 0, 1 / xp.where(c > 0, c, 1.0), INF)),
    shapes={"c": "any"}, inside=0.0, closed=False, logpdf=_extreme_logpdf,
    logcdf=lambda x, c: -xp.exp(-x * _log_ratio(-c * x)), logsf=lambda x, c: _log_missed(x * _log_ratio(-c * x)),
    logppf=lambda v, c: -xp.log(-v) * _exp_ratio(c * xp.log(-v)), entropy=lambda c: EULER * (1 - c) + 1,
    mean=_extreme_mean, var=_extreme_var)

genpareto = continuous(
    "genpareto", "The generalized Pareto distribution; c = 0: expon.",
    lambda c: (0.0 * c, xp.where(c < 0, -1 / xp.where(c < 0, c, -1.0), INF)), shapes={"c": "any"}, inside=0.0,
    logpdf=lambda x, c: -times(c + 1, x * _log_ratio(c * x)), logsf=lambda x, c: -x * _log_ratio(c * x),
    logisf=lambda v, c: -v * _exp_ratio(-c * v), entropy=lambda c: 1 + c,
    mean=lambda c: xp.where(c < 1, 1 / (1 - xp.where(c < 1, c, 0.0)), INF),
    var=lambda c: xp.where(c < 0.5, 1 / ((1 - c) ** 2 * (1 - 2 * xp.where(c < 0.5, c, 0.0))), INF))


def _vonmises_draw(key: Any, n: Any, d: Any, kappa: Any) -> Any:
    """Best and Fisher's rejection from a wrapped Cauchy distribution."""
    root = 1 + xp.hypot(1.0, 2 * kappa)
    rho = (root - xp.sqrt(2 * root)) / (2 * kappa)
    s = xp.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho * rho) / (2 * rho))

    def propose(key: Any) -> tuple[Any, Any]:
        keys = random.split(key, 3)
        u, v, side = (random.uniform(keys[i], n, d) for i in range(3))
        z = xp.cos(PI * u)
        w = (1 + s * z) / (s + z)
        y = kappa * (s - w)
        ok = (y * (2 - y) - v > 0) | (xp.log(y / v) + 1 - y >= 0)
        return xp.copysign(xp.arccos(xp.clip(w, -1.0, 1.0)), side - 0.5), ok

    return rejection(key, n, d, propose)


vonmises = continuous(
    "vonmises", "The von Mises distribution of angles; samples are between -pi and pi.", shapes={"kappa": "positive"},
    logpdf=lambda x, kappa: -2 * kappa * xp.sin(x / 2) ** 2 - 2 * HALF_LOG_2PI - xp.log(S.i0e(kappa)),
    entropy=lambda kappa: 2 * HALF_LOG_2PI + xp.log(S.i0e(kappa)) + kappa * (1 - S.i1e(kappa) / S.i0e(kappa)),
    mean=lambda kappa: 0.0, draw=_vonmises_draw)
