# mypy: ignore-errors
"""Draws that need more than one formula, as scalar functions for kernels: ``symc.ir.ops.draw_reference``.

Where the reference works on arrays with masks, a loop here returns as soon as an attempt succeeds. Whole numbers are
the same, floats up to the last places of logarithms.
"""

from __future__ import annotations

import math

from symc.codegen.language.helpers import called, inlined, rarely
from symc.codegen.language.names import f64, floor, i64, like, u64
from symc.runtime.library.math import exp, log
from symc.runtime.library.random import (
    ATTEMPTS,
    ONE,
    log_share,
    middle64,
    normal_tail64,
    open_uniform,
    own_words,
    tail64,
    unit_exponential,
    unit_normal,
    unit_uniform,
    wide_product,
)

TWO_PI = 2 * math.pi


# --- whole numbers below a limit --------------------------------------------------------------------------------------


@called
def below_again(bits, limit):
    high, low = wide_product(bits, limit)
    threshold = (~limit + ONE) % limit
    for attempt in range(1, ATTEMPTS):
        if low >= threshold:
            break
        high, low = wide_product(own_words(bits, attempt)[0], limit)
    return high


@inlined
def below(bits, limit):
    if limit == u64(0):
        return bits
    high, low = wide_product(bits, limit)
    return below_again(bits, limit) if low < limit else high


# --- gamma ------------------------------------------------------------------------------------------------------------


@inlined
def normal_by_branch(bits):
    """As unit_normal, for code that does not vectorize: only the polynomials that are needed."""
    tail, low = tail64(bits)
    q = (f64(i64(u64(0x7FFFFFFFFFFFFFFF) - (bits if low else ~bits))) + 0.5) * 5.421010862427522e-20
    if q <= 0.425:
        n, d = middle64(q)
        z = n / d
    else:
        z = normal_tail64(q, math.sqrt(-log_share((tail + 0.5) * 5.421010862427522e-20)))
    return -z if low else z


@called
def gamma_ratio(bits, a):
    """v of the first attempt that is accepted, for shape a >= 1; the draw is (a - 1/3) v. nan if none is."""
    d = a - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    for attempt in range(ATTEMPTS):
        first, second = own_words(bits, attempt)
        z = normal_by_branch(first)
        v = 1.0 + z * c
        v = v * v * v
        if v > 0.0:
            u = open_uniform(second)
            if u < 1.0 - 0.0331 * (z * z) * (z * z) or log(u) < 0.5 * z * z + d * ((1.0 - v) + log(v)):
                return v
    return math.nan


@inlined
def boost(bits):
    return unit_exponential(own_words(bits, ATTEMPTS)[0])


@rarely
def far_gamma_log(bits, a):
    if not 0.0 < a < math.inf:
        return -math.inf if a == 0.0 else math.nan
    if a < 1.0:
        return log(a + 1.0 - 1.0 / 3.0) + log(gamma_ratio(bits, a + 1.0)) - boost(bits) / a
    return log(a - 1.0 / 3.0) + log(gamma_ratio(bits, a))


@rarely
def far_gamma_number(bits, a):
    if not 0.0 < a < math.inf:
        return 0.0 if a == 0.0 else math.nan
    if a < 1.0:
        return (a + 1.0 - 1.0 / 3.0) * gamma_ratio(bits, a + 1.0) * exp(-boost(bits) / a)
    return (a - 1.0 / 3.0) * gamma_ratio(bits, a)


@inlined
def first_ratio(bits, a):
    """a - 1/3 for a, or a + 1 if that is less than 1, v of the first attempt, and whether it is accepted, as most are.
    Nothing branches, so that loops vectorize; of an a that is a number LLVM computes what it needs."""
    d = (a + 1.0 if a < 1.0 else a) - 1.0 / 3.0
    first, second = own_words(bits, 0)
    z = unit_normal(first)
    v = 1.0 + z * (1.0 / math.sqrt(9.0 * d))
    v = v * v * v
    w = v if v > 0.0 else 1.0
    u = open_uniform(second)
    likely = u < 1.0 - 0.0331 * (z * z) * (z * z) or log(u) < 0.5 * z * z + d * ((1.0 - w) + log(w))
    return d, w, a > 0.0 and a < math.inf and v > 0.0 and likely


@inlined
def gamma_log(bits, a):
    d, v, accepted = first_ratio(bits, a)
    found = log(d) + log(v) - (boost(bits) / a if a < 1.0 else 0.0)
    return far_gamma_log(bits, a) if not accepted else found


@inlined
def gamma_number(bits, a):
    d, v, accepted = first_ratio(bits, a)
    found = d * v * (exp(-boost(bits) / a) if a < 1.0 else 1.0)
    return far_gamma_number(bits, a) if not accepted else found


@inlined
def log_gamma_draw(bits, alpha):
    return like(alpha, gamma_log(bits, f64(alpha)))


@inlined
def gamma_draw(bits, alpha):
    return like(alpha, gamma_number(bits, f64(alpha)))


@called
def wald_number(bits, m, s):
    if not (m > 0.0 and s > 0.0):
        return math.nan
    first, second = own_words(bits, 0)
    z = normal_by_branch(first)
    w = m * z * z / (2.0 * s)
    r = 1.0 / (1.0 + w + math.sqrt(w * (2.0 + w)))
    return m * (r if unit_uniform(second) * (1.0 + r) <= 1.0 else 1.0 / r)


@inlined
def wald_draw(bits, mean, scale):
    return like(mean, wald_number(bits, f64(mean), f64(scale)))


# --- counts -----------------------------------------------------------------------------------------------------------


@inlined
def stirling_error(k):
    shift = 0.0
    while k < 11.0:
        shift += (k + 0.5) * math.log1p(1.0 / k) - 1.0
        k += 1.0
    r = 1.0 / (k * k)
    return shift + (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 * r) * r) * r) * r) / k


@inlined
def deviance(x, m):
    v = (x - m) / (x + m)
    if abs(v) >= 0.1:
        return x * math.log(x / m) + (m - x)
    r = v * v
    series = 0.0
    for j in range(9, 0, -1):
        series = (series + 1.0 / (2 * j + 1)) * r
    return (x - m) * v + 2.0 * x * v * series


@inlined
def poisson_log_mass(k, rate):
    return -rate if k == 0.0 else -0.5 * math.log(TWO_PI * k) - stirling_error(k) - deviance(k, rate)


@inlined
def binomial_log_mass(k, n, p):
    if k == 0.0:
        return n * math.log1p(-p)
    if k == n:
        return n * math.log(p)
    rest = n - k
    return (0.5 * math.log(n / (TWO_PI * k * rest)) + stirling_error(n) - stirling_error(k) - stirling_error(rest)
            - deviance(k, n * p) - deviance(rest, n * (1.0 - p)))


@inlined
def attempt_count(bits, attempt, a, b, centre):
    """One attempt of transformed rejection: k, us, v and the width of the hat there."""
    first, second = own_words(bits, attempt)
    u, v = unit_uniform(first) - 0.5, open_uniform(second)
    us = 0.5 - abs(u)
    return floor((2.0 * a / us + b) * u + centre), us, v, a / (us * us) + b, v > us


@called
def poisson_count(bits, m):
    if not 0.0 <= m <= 1e18:
        return -1
    if m < 10.0:
        rest, mass, count = unit_uniform(own_words(bits, 0)[0]), math.exp(-m), 0
        while rest >= mass and mass > 0.0 and count < 999:
            count += 1
            rest -= mass
            mass *= m / count
        return count
    b = 0.931 + 2.53 * math.sqrt(m)
    a = -0.059 + 0.02483 * b
    log_hat = math.log(1.1239 + 1.1328 / (b - 3.4))
    fast = 0.9277 - 3.6224 / (b - 2.0)
    for attempt in range(ATTEMPTS):
        k, us, v, width, above = attempt_count(bits, attempt, a, b, m + 0.43)
        if us >= 0.07 and v <= fast:
            return int(k)
        if not 0.0 <= k < math.inf or (us < 0.013 and above):
            continue
        if math.log(v) + log_hat - math.log(width) <= poisson_log_mass(k, m):
            return int(k)
    return -1


@called
def binomial_count(bits, n, p):
    if not (0.0 <= n <= 9007199254740992.0 and floor(n) == n and 0.0 <= p <= 1.0):
        return -1
    flipped = p > 0.5
    q = 1.0 - p if flipped else p
    k = binomial_few(bits, n, q) if n * q < 10.0 else binomial_many(bits, n, q)
    return int(n) - k if flipped and k >= 0 else k


@inlined
def binomial_few(bits, n, q):
    rest, mass, k = unit_uniform(own_words(bits, 0)[0]), math.exp(n * math.log1p(-q)), 0
    ratio = q / (1.0 - q)
    while rest >= mass and mass > 0.0 and k < 999:
        k += 1
        rest -= mass
        mass *= max(n - k + 1.0, 0.0) / k * ratio
    return min(k, int(n))


@inlined
def binomial_many(bits, n, q):
    spread = math.sqrt(n * q * (1.0 - q))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * q
    log_hat = math.log((2.83 + 5.1 / b) * spread)
    fast = 0.92 - 4.2 / b
    top = binomial_log_mass(floor((n + 1.0) * q), n, q)
    for attempt in range(ATTEMPTS):
        k, us, v, width, above = attempt_count(bits, attempt, a, b, n * q + 0.5)
        if us >= 0.07 and v <= fast:
            return int(k)
        if not 0.0 <= k <= n or (us < 0.013 and above):
            continue
        if math.log(v) + log_hat - math.log(width) <= binomial_log_mass(k, n, q) - top:
            return int(k)
    return -1


@inlined
def poisson_draw(bits, rate):
    return i64(poisson_count(bits, f64(rate)))


@inlined
def binomial_draw(bits, n, p):
    return i64(binomial_count(bits, f64(n), f64(p)))


