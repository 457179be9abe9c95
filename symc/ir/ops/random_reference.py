"""Random numbers in NumPy: the meaning of the ops in `random`. Backends must give the same bits.

Philox4x32-10 (J. Salmon and others, Parallel random numbers: as easy as 1, 2, 3, SC 2011) maps a counter of 128 bits
and a key of 64 bits to 128 bits; for a fixed key it is a bijection. Everything else is made of such blocks: there is no
state. A draw that may need several attempts (gamma, poisson, binomial) makes the first from its 64 random bits, and
reads the blocks of a stream of its own, whose key they are, for the others.

Decisions (accept, compare) are made in float64 whatever the dtype, from formulas that do not cancel, so that two
implementations whose logarithms differ in the last place decide alike.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

MASK = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL = 0x9E3779B9, 0xBB67AE85
#: The upper half of the counters that an element's own stream uses.
OWN = 0x5DEECE66D1CE4E5B
#: A multiplier with a good lattice: G. Steele and S. Vigna (2021).
SCRAMBLE = 0xD1342543DE82EF95
#: Attempts before a rejection sampler gives nan or -1; each succeeds with probability above 0.7.
ATTEMPTS = 256

Array = np.ndarray


def philox(key: Array, stream: Array, counter: Array) -> tuple[Array, Array, Array, Array]:
    """One block: four words of 32 bits, as uint64. The 128-bit counter is (counter, stream), low half first."""
    c0, c1, c2, c3 = counter & MASK, counter >> HALF, stream & MASK, stream >> HALF
    k0, k1 = key & MASK, key >> HALF
    with np.errstate(over="ignore"):
        for _ in range(10):
            p0, p1 = MULTIPLIERS[0] * c0, MULTIPLIERS[1] * c2
            c0, c1, c2, c3 = (p1 >> HALF) ^ c1 ^ k0, p1 & MASK, (p0 >> HALF) ^ c3 ^ k1, p0 & MASK
            k0, k1 = (k0 + np.uint64(WEYL[0])) & MASK, (k1 + np.uint64(WEYL[1])) & MASK
    return c0, c1, c2, c3


def philox64(key: Array, stream: Array, index: Array) -> Array:
    """64 bits: half ``index % 2`` of block ``index // 2``."""
    a, b, c, d = philox(key, stream, index >> np.uint64(1))
    return np.where(index & np.uint64(1) == 1, (d << HALF) | c, (b << HALF) | a)


def philox32(key: Array, stream: Array, index: Array) -> Array:
    """32 bits: word ``index % 4`` of block ``index // 4``."""
    words = philox(key, stream, index >> np.uint64(2))
    return np.choose((index & np.uint64(3)).astype(np.intp), words).astype(np.uint32)


def own_words(bits: Array, attempt: int) -> tuple[Array, Array]:
    """Two numbers of 64 bits for one attempt: first the bits and their product with a constant, which is a lattice of
    2**64 points in the plane, then the blocks of the stream whose key is ``bits``."""
    if attempt == 0:
        with np.errstate(over="ignore"):
            return bits, bits * np.uint64(SCRAMBLE)
    a, b, c, d = philox(bits, np.full_like(bits, OWN), np.full_like(bits, attempt))
    return (b << HALF) | a, (d << HALF) | c


# --- bits to numbers --------------------------------------------------------------------------------------------------


def unit_uniform(bits: Array) -> Array:
    """[0, 1): a multiple of 2**-53 from 64 bits, of 2**-24 from 32."""
    if bits.dtype.itemsize == 8:
        return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return (bits >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def open_uniform(bits: Array) -> Array:
    """(0, 1), both ends excluded: an odd multiple of 2**-53."""
    return ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def unit_exponential(bits: Array) -> Array:
    """-log(1 - u), where u has all bits; small numbers come from log1p, large ones from the small 1 - u."""
    f, width = _float_of(bits)
    tail = np.minimum(bits, ~bits)
    t = (tail.astype(f) + f(0.5)) * f(2.0**-width)
    return np.where(tail == bits, -np.log1p(-t), -np.log(t))


def unit_normal(bits: Array) -> Array:
    """The inverse distribution function at (bits + 1/2) / 2**width: |z| up to 9.1 from 64 bits, 6.3 from 32."""
    f, width = _float_of(bits)
    half = bits.dtype.type(1 << (width - 1))
    tail = np.minimum(bits, ~bits)
    p = (tail.astype(f) + f(0.5)) * f(2.0**-width)
    q = ((half - bits.dtype.type(1) - tail).astype(f) + f(0.5)) * f(2.0**-width)
    z = normal_tail(p, q)
    return np.where(tail == bits, -z, z)


def _float_of(bits: Array) -> tuple[type, int]:
    return (np.float64, 64) if bits.dtype.itemsize == 8 else (np.float32, 32)


#: M. J. Wichura, Algorithm AS 241 (1988): numerators and denominators near the middle, in the tail, far out.
NORMAL64 = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
     4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
     1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
     2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15),
)  # fmt: skip
#: The same in single precision; 32 bits do not reach far out.
NORMAL32 = (
    (3.3871327179e0, 5.0434271938e1, 1.5929113202e2, 5.9109374720e1),
    (1.0, 1.7895169469e1, 7.8757757664e1, 6.7187563600e1),
    (1.4234372777e0, 2.7568153900e0, 1.3067284816e0, 1.7023821103e-1),
    (1.0, 7.3700164250e-1, 1.2021132975e-1),
)


def horner(coefficients: tuple[float, ...], x: Array) -> Array:
    """The polynomial with these coefficients, that of x**0 first."""
    out = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        out = out * x + x.dtype.type(c)
    return out


def normal_tail(p: Array, q: Array) -> Array:
    """z with P(Z > z) = p, for p = 1/2 - q at most 1/2."""
    table = NORMAL64 if p.dtype == np.float64 else NORMAL32
    f = p.dtype.type
    with np.errstate(all="ignore"):
        r = f(0.180625) - q * q
        middle = q * (horner(table[0], r) / horner(table[1], r))
        r = np.sqrt(-np.log(p))
        tail = horner(table[2], r - f(1.6)) / horner(table[3], r - f(1.6))
        if len(table) > 4:
            tail = np.where(r <= 5, tail, horner(table[4], r - f(5)) / horner(table[5], r - f(5)))
        return np.where(q <= f(0.425), middle, tail)


def normal_inverse(p: Array) -> Array:
    """z with P(Z <= z) = p; accurate for small p, not for p near 1 (nothing is: use -normal_inverse(1 - p))."""
    with np.errstate(all="ignore"):
        low = np.minimum(p, 1 - p).astype(np.float64)
        z = normal_tail(low, 0.5 - low)
        z = np.where(p < 0.5, -z, z)
        z = np.where(low > 0, z, np.where(low < 0, np.nan, np.where(p == 0, -np.inf, np.inf)))
        return np.where(np.isnan(p), np.nan, z).astype(p.dtype)


def below(bits: Array, range_: Array) -> Array:
    """An integer in [0, range), each equally likely; range 0 stands for 2**64. D. Lemire (2019)."""
    high, low = wide_product(bits, range_)
    with np.errstate(all="ignore"):
        threshold = np.where(range_ == 0, range_, (~range_ + np.uint64(1)) % np.where(range_ == 0, 1, range_))
    high = np.where(range_ == 0, bits, high)
    for attempt in range(1, ATTEMPTS):
        again = low < threshold
        if not again.any():
            break
        new_high, new_low = wide_product(own_words(bits, attempt)[0], range_)
        high, low = np.where(again, new_high, high), np.where(again, new_low, low)
    return high


def wide_product(x: Array, y: Array) -> tuple[Array, Array]:
    """The upper and the lower 64 bits of x * y."""
    a, b, c, d = x >> HALF, x & MASK, y >> HALF, y & MASK
    with np.errstate(over="ignore"):
        middle = a * d + ((b * d) >> HALF)
        other = b * c + (middle & MASK)
        return a * c + (middle >> HALF) + (other >> HALF), x * y


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
DEPTH, NODES, TERMS = 40.0, 40, 22


@cache
def legendre() -> tuple[Array, Array]:
    """Nodes and weights of Gauss and Legendre on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(NODES)
    return (x + 1) / 2, w / 2


def gamma_moment(alpha: Array, y: Array, power: int) -> Array:
    """m_k = -(integral of w**k exp(alpha w - x (exp(w) - 1)) over w from 0), x = exp(y).

    The integral runs to -infinity for x <= alpha, else to infinity. d m_k / d alpha = m_(k+1).
    """
    a, x = np.asarray(alpha, np.float64), np.exp(np.asarray(y, np.float64))
    with np.errstate(all="ignore"):
        end = _end(a, x)
        nodes, weights = legendre()
        w = end[..., None] * nodes
        terms = w**power * np.exp(a[..., None] * w - x[..., None] * np.expm1(w))
        out = np.where((x <= 1) & (x <= a), _moment_series(a, x, power), -end * (terms @ weights))
    return np.where((a > 1e-300) & (a < np.inf), out, np.nan).astype(np.asarray(alpha).dtype)


def _moment_series(a: Array, x: Array, power: int) -> Array:
    """The same for small x <= alpha: exp(-x exp(-v)) as a power series."""
    total, term = np.zeros_like(a), np.exp(x)
    for j in range(TERMS):
        part = term / (a + j)
        for k in range(power):
            part = part * (-(k + 1.0) / (a + j))
        total = total + part
        term = term * (-x / (j + 1))
    return total


def _end(a: Array, x: Array) -> Array:
    """Where the exponent alpha w - x (exp(w) - 1) is -DEPTH: Newton from the root of its quadratic part."""
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
