"""Discrete distributions in standard form. The formulas are those of Johnson, Kemp and Kotz, *Univariate Discrete
Distributions*, in the parametrisation of scipy.stats. Binomial coefficients are beta functions, which keep their digits
for large counts."""

from __future__ import annotations

from typing import Any

from symc import numpy_api as xp
from symc import random
from symc import special as S
from symc.stats.core import INF
from symc.stats.kinds import Discrete
from symc.stats.search import rejection
from symc.transforms.control import fori_loop

TWO = (0.0, 1.0)
COUNTS = (0.0, INF)


def discrete(name: str, doc: str, support: Any, shapes: dict[str, str], *, inside: Any = None, valid: Any = None,
             **formulas: Any) -> Discrete:
    return Discrete(name, doc, shapes, support, inside, valid, True, False, formulas)


def _log_choose(n: Any, k: Any) -> Any:
    return -xp.log1p(n) - S.betaln(n - k + 1, k + 1)


def _summed(logpmf: Any, ends: Any) -> dict[str, Any]:
    """cdf and sf as sums of probabilities, for distributions of few numbers."""

    def total(first: Any, last: Any, *p: Any) -> Any:
        steps = xp.asarray(xp.max(xp.where(last >= first, last - first, -1.0)), dtype="int64") + 1
        zero = 0 * (first + last)

        def add(i: Any, sum_: Any) -> Any:
            k = first + i.astype(zero.dtype)
            ok = k <= last
            return sum_ + xp.where(ok, xp.exp(logpmf(xp.where(ok, k, first), *p)), 0.0)

        return fori_loop(0, steps, add, zero)

    return {"cdf": lambda k, *p: xp.minimum(total(ends(*p)[0], k, *p), 1.0),
            "sf": lambda k, *p: xp.minimum(total(k + 1, ends(*p)[1], *p), 1.0)}


bernoulli = discrete(
    "bernoulli", "1 with probability p, and else 0.", TWO, {"p": "probability"},
    logpmf=lambda k, p: S.xlogy(k, p) + S.xlog1py(1 - k, -p), cdf=lambda k, p: 1 - p + 0 * k, sf=lambda k, p: p + 0 * k,
    ppf=lambda q, p: (q > 1 - p).astype(q.dtype), isf=lambda q, p: (q < p).astype(q.dtype),
    entropy=lambda p: S.entr(p) + S.entr(1 - p), mean=lambda p: p, var=lambda p: p * (1 - p),
    draw=lambda key, n, d, p: random.bernoulli(key, p, n))

binom = discrete(
    "binom", "Successes in n trials of probability p.", lambda n, p: (0.0 * n, n), {"n": "count", "p": "probability"},
    logpmf=lambda k, n, p: _log_choose(n, k) + S.xlogy(k, p) + S.xlog1py(n - k, -p),
    cdf=lambda k, n, p: S.betaincc(k + 1, n - k, p), sf=lambda k, n, p: S.betainc(k + 1, n - k, p),
    mean=lambda n, p: n * p, var=lambda n, p: n * p * (1 - p),
    draw=lambda key, m, d, n, p: random.binomial(key, n, p, m))

nbinom = discrete(
    "nbinom", "Failures before success number n in trials of probability p.", COUNTS, {"n": "positive", "p": "chance"},
    logpmf=lambda k, n, p: -S.betaln(n, k + 1) - xp.log(n + k) + n * xp.log(p) + S.xlog1py(k, -p),
    cdf=lambda k, n, p: S.betainc(n, k + 1, p), sf=lambda k, n, p: S.betaincc(n, k + 1, p),
    mean=lambda n, p: n * (1 - p) / p, var=lambda n, p: n * (1 - p) / p**2,
    draw=lambda key, m, d, n, p: random.negative_binomial(key, n, p, m))

poisson = discrete(
    "poisson", "Events of which mu are expected.", COUNTS, {"mu": "nonnegative"},
    logpmf=lambda k, mu: S.xlogy(k, mu) - S.gammaln(k + 1) - mu,
    cdf=lambda k, mu: S.gammaincc(k + 1, mu), sf=lambda k, mu: S.gammainc(k + 1, mu),
    mean=lambda mu: mu, var=lambda mu: mu, draw=lambda key, n, d, mu: random.poisson(key, mu, n))

geom = discrete(
    "geom", "Trials of probability p up to the first success.", (1.0, INF), {"p": "chance"},
    logpmf=lambda k, p: S.xlog1py(k - 1, -p) + xp.log(p), logsf=lambda k, p: S.xlog1py(k, -p),
    entropy=lambda p: S.entr(p) / p + S.entr(1 - p) / p, mean=lambda p: 1 / p, var=lambda p: (1 - p) / p**2,
    draw=lambda key, n, d, p: random.geometric(key, p, n))


def _betabinom_logpmf(k: Any, n: Any, a: Any, b: Any) -> Any:
    return _log_choose(n, k) + S.betaln(k + a, n - k + b) - S.betaln(a, b)


def _betabinom_draw(key: Any, m: Any, d: Any, n: Any, a: Any, b: Any) -> Any:
    first, second = random.split(key)
    return random.binomial(second, n, random.beta(first, a, b, m, "float64"), m)


betabinom = discrete(
    "betabinom", "Successes in n trials of a probability that has the beta distribution.",
    lambda n, a, b: (0.0 * n, n), {"n": "count", "a": "positive", "b": "positive"}, logpmf=_betabinom_logpmf,
    **_summed(_betabinom_logpmf, lambda n, a, b: (0.0 * n, n)), mean=lambda n, a, b: n * a / (a + b),
    var=lambda n, a, b: n * a * b * (a + b + n) / ((a + b) ** 2 * (a + b + 1)), draw=_betabinom_draw)


def _hypergeom_logpmf(k: Any, M: Any, n: Any, N: Any) -> Any:
    return _log_choose(n, k) + _log_choose(M - n, N - k) - _log_choose(M, N)


def _hypergeom_ends(M: Any, n: Any, N: Any) -> tuple[Any, Any]:
    return xp.maximum(N - (M - n), 0.0), xp.minimum(n, N)


hypergeom = discrete(
    "hypergeom", "How many of the N that are drawn are among n of all M, without replacement.", _hypergeom_ends,
    {"M": "count", "n": "count", "N": "count"}, valid=lambda M, n, N: (n <= M) & (N <= M), logpmf=_hypergeom_logpmf,
    **_summed(_hypergeom_logpmf, _hypergeom_ends), mean=lambda M, n, N: n * N / M,
    var=lambda M, n, N: n * N / M * ((M - n) / M) * ((M - N) / (M - 1)))

randint = discrete(
    "randint", "Whole numbers from low up to, not including, high, each equally likely.",
    lambda low, high: (low, high - 1), {"low": "any", "high": "any"}, valid=lambda low, high: low < high,
    logpmf=lambda k, low, high: -xp.log(high - low) + 0 * k, cdf=lambda k, low, high: (k + 1 - low) / (high - low),
    sf=lambda k, low, high: (high - 1 - k) / (high - low), entropy=lambda low, high: xp.log(high - low),
    mean=lambda low, high: (low + high - 1) / 2, var=lambda low, high: ((high - low) ** 2 - 1) / 12,
    draw=lambda key, n, d, low, high: random.integers(key, low.astype("int64"), high.astype("int64"), n))


def _zipf_draw(key: Any, n: Any, d: Any, a: Any) -> Any:
    """Devroye's rejection from powers of uniform numbers."""
    b = 2 ** (a - 1)

    def propose(key: Any) -> tuple[Any, Any]:
        keys = random.split(key)
        u, v = (1 - random.uniform(keys[i], n, d) for i in range(2))
        x = xp.floor(u ** (-1 / (a - 1)))
        t = (1 + 1 / x) ** (a - 1)
        return x, (v * x * (t - 1) / (b - 1) <= t / b) & (x < 2.0**62)

    return rejection(key, n, d, propose)


def _zipf_moment(order: int, a: Any) -> Any:
    ok = a > order + 1
    safe = xp.where(ok, a, order + 2.0)
    return xp.where(ok, S.zeta(safe - order, 1.0) / S.zeta(safe, 1.0), INF)


def _zipf_var(a: Any) -> Any:
    ok = a > 3
    safe = xp.where(ok, a, 4.0)
    return xp.where(ok, _zipf_moment(2, safe) - _zipf_moment(1, safe) ** 2, INF)


zipf = discrete(
    "zipf", "Numbers from 1 on, with probabilities proportional to k**-a.", (1.0, INF), {"a": "positive"},
    valid=lambda a: a > 1, logpmf=lambda k, a: -a * xp.log(k) - xp.log(S.zeta(a, 1.0)),
    cdf=lambda k, a: 1 - S.zeta(a, k + 1) / S.zeta(a, 1.0), sf=lambda k, a: S.zeta(a, k + 1) / S.zeta(a, 1.0),
    mean=lambda a: _zipf_moment(1, a), var=_zipf_var, draw=_zipf_draw)


def _dlaplace_tail(m: Any, a: Any) -> Any:
    """The probability of numbers from m on, for m above 0."""
    return xp.exp(-a * m) / (1 + xp.exp(-a))


def _dlaplace_cdf(k: Any, a: Any) -> Any:
    up = k >= 0
    return xp.where(up, 1 - _dlaplace_tail(xp.where(up, k + 1, 1.0), a), _dlaplace_tail(xp.where(up, 1.0, -k), a))


def _dlaplace_ppf(q: Any, a: Any) -> Any:
    scaled = 1 + xp.exp(-a)
    near = xp.where(q < 1 / scaled, xp.log(q * scaled) / a, -xp.log((1 - q) * scaled) / a - 1)
    k = xp.ceil(near)
    return xp.where(_dlaplace_cdf(k - 1, a) >= q, k - 1, xp.where(_dlaplace_cdf(k, a) >= q, k, k + 1))


def _dlaplace_draw(key: Any, n: Any, d: Any, a: Any) -> Any:
    first, second = random.split(key)
    p = -xp.expm1(-a)
    return random.geometric(first, p, n) - random.geometric(second, p, n)


dlaplace = discrete(
    "dlaplace", "Whole numbers with probabilities proportional to exp(-a * abs(k)).", (-INF, INF), {"a": "positive"},
    logpmf=lambda k, a: xp.log(xp.tanh(a / 2)) - a * xp.abs(k), cdf=_dlaplace_cdf,
    sf=lambda k, a: _dlaplace_cdf(-k - 1, a),
    ppf=_dlaplace_ppf, isf=lambda q, a: -_dlaplace_ppf(q, a), entropy=lambda a: a / xp.sinh(a) - xp.log(xp.tanh(a / 2)),
    mean=lambda a: 0.0, var=lambda a: 2 * xp.exp(-a) / xp.expm1(-a) ** 2, draw=_dlaplace_draw)
