"""Draws that need more than one formula, in NumPy: gamma, inverse Gaussian, Poisson and binomial numbers.

Decisions (accept, compare) are made in float64 whatever the dtype, from formulas that do not cancel, so that two
implementations whose logarithms differ in the last place decide alike.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from symc.ir.ops.random_reference import (
    ATTEMPTS,
    Array,
    open_uniform,
    own_words,
    unit_exponential,
    unit_normal,
    unit_uniform,
)

# --- gamma ------------------------------------------------------------------------------------------------------------


def _gamma_ratio(bits: Array, a: Array) -> Array:
    """v of the first attempt that is accepted, for shape a >= 1; the draw is (a - 1/3) v. nan if none is.

    G. Marsaglia and W. W. Tsang (2000).
    """
    out = np.full(a.shape, np.nan)
    d = a - 1 / 3
    left = np.flatnonzero((a >= 1) & (a < np.inf))
    for attempt in range(ATTEMPTS):
        if not left.size:
            break
        first, second = own_words(bits[left], attempt)
        z, u, k = unit_normal(first), open_uniform(second), d[left]
        v = 1 + z * (1 / np.sqrt(9 * k))
        v = v * v * v
        with np.errstate(all="ignore"):
            quick = u < 1 - 0.0331 * (z * z) * (z * z)
            good = (v > 0) & (quick | (np.log(u) < 0.5 * z * z + k * ((1 - v) + np.log(v))))
        out[left[good]] = v[good]
        left = left[~good]
    return out


def gamma_draw(bits: Array, alpha: Array, log: bool = False) -> Array:
    """A gamma number with shape alpha and scale 1, or its logarithm.

    For alpha below 1 it is that for alpha + 1, times u**(1 / alpha).
    """
    a = np.asarray(alpha, np.float64)
    raised = np.where(a < 1, a + 1, a)
    v = _gamma_ratio(bits.ravel(), raised.ravel()).reshape(a.shape)
    with np.errstate(all="ignore"):
        boost = np.where(a < 1, unit_exponential(own_words(bits, ATTEMPTS)[0]) / a, 0)
        out = np.log(raised - 1 / 3) + np.log(v) - boost if log else (raised - 1 / 3) * v * np.exp(-boost)
    out = np.where(a > 0, out, np.where(a == 0, -np.inf if log else 0.0, np.nan))
    return out.astype(np.asarray(alpha).dtype)


#: The exponent at which the integrand of `gamma_moment` is negligible, and how many nodes integrate it.
DEPTH, NODES, TERMS = 37.0, 32, 22


@cache
def legendre() -> tuple[Array, Array]:
    """Nodes and weights of Gauss and Legendre on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(NODES)
    return (x + 1) / 2, w / 2


def gamma_moment(alpha: Array, y: Array, power: int) -> Array:
    """m_k = -(integral of w**k exp(alpha w - x (exp(w) - 1)) over w from 0), x = exp(y).

    The integral runs to -infinity for x <= max(alpha, 1), else to infinity. d m_k / d alpha = m_(k+1).
    """
    a, x = np.asarray(alpha, np.float64), np.exp(np.asarray(y, np.float64))
    with np.errstate(all="ignore"):
        end = _end(a, x)
        nodes, weights = legendre()
        w = end[..., None] * nodes
        terms = w**power * np.exp(a[..., None] * w - x[..., None] * np.expm1(w))
        out = np.where(x <= 1, _moment_series(a, x, power), -end * (terms @ weights))
    return np.where((a > 1e-300) & (a < np.inf), out, np.nan).astype(np.asarray(alpha).dtype)


def _moment_series(a: Array, x: Array, power: int) -> Array:
    """The same for x <= 1: exp(-x exp(-v)) as a power series."""
    total, term = np.zeros_like(a), np.exp(x)
    for j in range(TERMS):
        part = term / (a + j)
        for k in range(power):
            part = part * (-(k + 1.0) / (a + j))
        total = total + part
        term = term * (-x / (j + 1))
    return total


def _end(a: Array, x: Array) -> Array:
    """The point where the exponent alpha w - x (exp(w) - 1) is -DEPTH: Newton from the root of its quadratic part."""
    sign = np.where(x <= a, -1.0, 1.0)
    gap = np.abs(a - x)
    w = sign * (2 * DEPTH / (gap + np.sqrt(gap * gap + 2 * x * DEPTH)))
    for _ in range(6):
        w = w - (a * w - x * np.expm1(w) + DEPTH) / (a - x * np.exp(w))
    return w


def gamma_slope(alpha: Array, y: Array) -> Array:
    """dy / d alpha along which the distribution function of y, the logarithm of a gamma variable, stays the same.

    M. Figurnov, S. Mohamed, A. Mnih (2018): -(dF / d alpha) / (dF / dy), here as integrals that do not cancel.
    """
    from scipy.special import digamma

    a, y_ = np.asarray(alpha, np.float64), np.asarray(y, np.float64)
    with np.errstate(all="ignore"):
        out = -(gamma_moment(a, y_, 1) + (y_ - digamma(a)) * gamma_moment(a, y_, 0))
        out = np.where(np.isinf(y_), np.where((y_ < 0) & (a > 1e-300) & (a < np.inf), np.inf, np.nan), out)
    return out.astype(np.asarray(alpha).dtype)


def wald_draw(bits: Array, mean: Array, scale: Array) -> Array:
    """An inverse Gaussian number: J. Michael, W. Schucany, R. Haas (1976), the smaller root without cancellation."""
    m, s = np.asarray(mean, np.float64), np.asarray(scale, np.float64)
    first, second = own_words(bits, 0)
    z = unit_normal(first)
    with np.errstate(all="ignore"):
        w = m * z * z / (2 * s)
        r = 1 / (1 + w + np.sqrt(w * (2 + w)))  # the smaller root, over the mean; the other is 1 / r
        x = m * np.where(unit_uniform(second) * (1 + r) <= 1, r, 1 / r)
    return np.where((m > 0) & (s > 0), x, np.nan).astype(np.asarray(mean).dtype)


# --- counts -----------------------------------------------------------------------------------------------------------


def stirling_error(k: Array) -> Array:
    """log k! - log(sqrt(2 pi k) (k/e)**k) for k >= 1, in float64."""
    shift, x = np.zeros_like(k), k
    for _ in range(10):  # up to 11 by s(x) = s(x + 1) + (x + 1/2) log(1 + 1/x) - 1
        small = x < 11
        safe = np.where(small, np.maximum(x, 1), 11)
        shift = shift + np.where(small, (safe + 0.5) * np.log1p(1 / safe) - 1, 0)
        x = np.where(small, x + 1, x)
    r = 1 / (x * x)
    tail = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 * r) * r) * r) * r) / x
    return shift + tail


def deviance(x: Array, m: Array) -> Array:
    """x log(x / m) + m - x for x > 0, without cancellation where x is near m. C. Loader (2000)."""
    v = (x - m) / (x + m)
    near = np.abs(v) < 0.1
    s, r = np.where(near, v, 0), np.where(near, v * v, 0)
    series = np.zeros_like(s)
    for j in range(9, 0, -1):
        series = (series + 1 / (2 * j + 1)) * r
    close = (x - m) * s + 2 * x * s * series
    return np.where(near, close, x * np.log(x / m) + (m - x))


def poisson_log_mass(k: Array, rate: Array) -> Array:
    """log P(K = k) for k >= 0."""
    n = np.maximum(k, 1)
    return np.where(k == 0, -rate, -0.5 * np.log(2 * np.pi * n) - stirling_error(n) - deviance(n, rate))


def binomial_log_mass(k: Array, n: Array, p: Array) -> Array:
    """log P(K = k) for 0 <= k <= n."""
    a, b = np.maximum(k, 1), np.maximum(n - k, 1)
    middle = (0.5 * np.log(n / (2 * np.pi * a * b)) + stirling_error(n) - stirling_error(a) - stirling_error(b)
              - deviance(a, n * p) - deviance(b, n * (1 - p)))
    return np.where(k == 0, n * np.log1p(-p), np.where(k == n, n * np.log(p), middle))


def poisson_draw(bits: Array, rate: Array) -> Array:
    """A Poisson count; -1 for a rate that is negative, nan or above 1e18.

    Below 10 by inversion, else by W. Hoermann's transformed rejection (PTRS, 1993).
    """
    m = np.asarray(rate, np.float64)
    out = np.full(m.shape, -1, np.int64)
    small = np.flatnonzero((m >= 0) & (m < 10))
    s = m.ravel()[small]
    out.ravel()[small] = _invert(unit_uniform(own_words(bits.ravel()[small], 0)[0]), np.exp(-s), lambda k: s / k)
    large = np.flatnonzero((m >= 10) & (m <= 1e18))
    m = m.ravel()[large]
    b = 0.931 + 2.53 * np.sqrt(m)
    log_hat = np.log(1.1239 + 1.1328 / (b - 3.4))

    def accept(k: Array, log_v: Array, log_width: Array, i: Array) -> Array:
        return (k >= 0) & (log_v + log_hat[i] - log_width <= poisson_log_mass(k, m[i]))

    out.ravel()[large] = _transformed(bits.ravel()[large], b, -0.059 + 0.02483 * b, m + 0.43,
                                      0.9277 - 3.6224 / (b - 2), accept)
    return out


def binomial_draw(bits: Array, n: Array, p: Array) -> Array:
    """Successes in n trials; -1 where n is negative, no integer or above 2**53, or p is outside [0, 1].

    By inversion where the expected number is below 10, else by W. Hoermann's BTRS (1993).
    """
    n, p = np.asarray(n, np.float64), np.asarray(p, np.float64)
    out = np.full(n.shape, -1, np.int64)
    legal = (n >= 0) & (n <= 2.0**53) & (np.floor(n) == n) & (p >= 0) & (p <= 1)
    flipped = p > 0.5
    q = np.where(flipped, 1 - p, p)
    few = np.flatnonzero(legal & (n * q < 10))
    m, s = n.ravel()[few], q.ravel()[few]
    start = np.exp(m * np.log1p(-s))
    ratio = s / (1 - s)
    counts = _invert(unit_uniform(own_words(bits.ravel()[few], 0)[0]), start,
                     lambda k: np.maximum(m - k + 1, 0) / k * ratio)
    out.ravel()[few] = np.minimum(counts, m.astype(np.int64))
    many = np.flatnonzero(legal & (n * q >= 10))
    m, s = n.ravel()[many], q.ravel()[many]
    spread = np.sqrt(m * s * (1 - s))
    b = 1.15 + 2.53 * spread
    log_hat = np.log((2.83 + 5.1 / b) * spread)
    top = binomial_log_mass(np.floor((m + 1) * s), m, s)

    def accept(k: Array, log_v: Array, log_width: Array, i: Array) -> Array:
        inside = (k >= 0) & (k <= m[i])
        kept = np.where(inside, k, 0)
        return inside & (log_v + log_hat[i] - log_width <= binomial_log_mass(kept, m[i], s[i]) - top[i])

    out.ravel()[many] = _transformed(bits.ravel()[many], b, -0.0873 + 0.0248 * b + 0.01 * s, m * s + 0.5,
                                     0.92 - 4.2 / b, accept)
    return np.where(flipped & (out >= 0), n.astype(np.int64) - out, out)


def _invert(u: Array, start: Array, ratio: Callable[[float], Array]) -> Array:
    """The least k whose distribution function exceeds u; P(k) = P(k - 1) * ratio(k)."""
    k, mass, rest = np.zeros(u.shape, np.int64), start, u
    for step in range(1, 1000):
        more = (rest >= mass) & (mass > 0)
        if not more.any():
            break
        rest = np.where(more, rest - mass, rest)
        k = np.where(more, step, k)
        mass = np.where(more, mass * ratio(float(step)), mass)
    return k


def _transformed(bits: Array, b: Array, a: Array, centre: Array, fast: Array,
                 accept: Callable[[Array, Array, Array, Array], Array]) -> Array:
    """Transformed rejection with squeeze, as PTRS and BTRS share it."""
    out = np.full(bits.shape, -1, np.int64)
    left = np.arange(bits.size)
    for attempt in range(ATTEMPTS):
        if not left.size:
            break
        first, second = own_words(bits[left], attempt)
        u, v = unit_uniform(first) - 0.5, open_uniform(second)
        us = 0.5 - np.abs(u)
        with np.errstate(all="ignore"):
            k = np.floor((2 * a[left] / us + b[left]) * u + centre[left])
            at_once = (us >= 0.07) & (v <= fast[left])
            slow = accept(np.where(np.isfinite(k), k, -1), np.log(v), np.log(a[left] / (us * us) + b[left]), left)
            good = at_once | slow & ~((us < 0.013) & (v > us))
        out[left[good]] = k[good].astype(np.int64)
        left = left[~good]
    return out
