# mypy: ignore-errors
"""Random numbers as scalar functions for kernels: the algorithms of ``symc.ir.ops.random_reference``, bit for bit.

Where a reference works on arrays with masks, a loop here returns as soon as an attempt succeeds. What has no loop with
an exit vectorizes. Imported only when a kernel is compiled (it imports numba).
"""

from __future__ import annotations

import math

from numba import njit, types
from numba.extending import overload

from symc.ir.ops import random_reference as reference
from symc.runtime.numba_llvm import OPTIONS, f32, f64, floor, fold_add, i64, inlined, like, u32, u64
from symc.runtime.numba_math import exp, expm1, log
from symc.runtime.numba_special import digamma

MASK, HALF, ONE = u64(0xFFFFFFFF), u64(32), u64(1)
MULTIPLIER0, MULTIPLIER1 = map(u64, reference.MULTIPLIERS)
WEYL0, WEYL1 = map(u64, reference.WEYL)
OWN, SCRAMBLE, ATTEMPTS = u64(reference.OWN), u64(reference.SCRAMBLE), reference.ATTEMPTS
A64, B64, C64, D64, E64, F64 = reference.NORMAL64
A32, B32, C32, D32 = (tuple(map(f32, t)) for t in reference.NORMAL32)
NODES, WEIGHTS = reference.legendre()
DEPTH, TERMS, COUNT = reference.DEPTH, reference.TERMS, reference.NODES
TWO_PI = 2 * math.pi


def called(function):
    """Compile a helper once, and call it from kernels: for what is too large to be inlined."""
    return njit(function, nogil=True, error_model="numpy", fastmath={"contract"})


# --- blocks -----------------------------------------------------------------------------------------------------------


@inlined
def philox_block(key, stream, counter):
    c0, c1, c2, c3 = counter & MASK, counter >> HALF, stream & MASK, stream >> HALF
    k0, k1 = key & MASK, key >> HALF
    for _ in range(10):
        p0, p1 = MULTIPLIER0 * c0, MULTIPLIER1 * c2
        c0, c1, c2, c3 = (p1 >> HALF) ^ c1 ^ k0, p1 & MASK, (p0 >> HALF) ^ c3 ^ k1, p0 & MASK
        k0, k1 = (k0 + WEYL0) & MASK, (k1 + WEYL1) & MASK
    return c0, c1, c2, c3


@inlined
def philox64(key, stream, index):
    a, b, c, d = philox_block(key, stream, index >> ONE)
    return ((d << HALF) | c) if index & ONE else ((b << HALF) | a)


@inlined
def philox32(key, stream, index):
    a, b, c, d = philox_block(key, stream, index >> u64(2))
    low, high = (b if index & ONE else a), (d if index & ONE else c)
    return u32(high if index & u64(2) else low)


@inlined
def own_words(bits, attempt):
    if attempt == 0:
        return bits, bits * SCRAMBLE
    a, b, c, d = philox_block(bits, OWN, u64(attempt))
    return (b << HALF) | a, (d << HALF) | c


# --- bits to numbers --------------------------------------------------------------------------------------------------


def unit_uniform(bits):
    """[0, 1); typed by the overload below."""


def unit_exponential(bits):
    """An exponential number; typed by the overload below."""


def unit_normal(bits):
    """A normal number; typed by the overload below."""


def _uniform64(bits):
    return f64(i64(bits >> u64(11))) * 1.1102230246251565e-16


def _uniform32(bits):
    return f32(bits >> u32(8)) * f32(5.9604644775390625e-08)


@inlined
def open_uniform(bits):
    return (f64(i64(bits >> u64(12))) + 0.5) * 2.220446049250313e-16


@inlined
def exponential(t, low):
    """-log1p(-t) if ``low`` else -log(t), with one logarithm."""
    u = like(t, 1) - t
    a = u if low else t
    lost = ((u - like(t, 1)) + t) / a
    return (lost if low else like(t, 0)) - log(a)


@inlined
def tail64(bits):
    """The smaller of bits and ~bits, as a float, and which it is."""
    low = bits < u64(0x8000000000000000)
    return f64(i64(bits if low else ~bits)), low


@inlined
def tail32(bits):
    low = bits < u32(0x80000000)
    return u32(bits if low else ~bits), low


def _exponential64(bits):
    tail, low = tail64(bits)
    return exponential((tail + 0.5) * 5.421010862427522e-20, low)


def _exponential32(bits):
    tail, low = tail32(bits)
    return exponential((f32(tail) + f32(0.5)) * f32(2.3283064365386963e-10), low)


@inlined
def middle_above(r):
    x = ((A64[7] * r + A64[6]) * r + A64[5]) * r + A64[4]
    return (((x * r + A64[3]) * r + A64[2]) * r + A64[1]) * r + A64[0]


@inlined
def middle_under(r):
    x = ((B64[7] * r + B64[6]) * r + B64[5]) * r + B64[4]
    return (((x * r + B64[3]) * r + B64[2]) * r + B64[1]) * r + 1.0


@inlined
def normal_tail64(p, q):
    """z with P(Z > z) = p = 1/2 - q. Both ranges of the tail share one evaluation, so that nothing jumps."""
    r = 0.180625 - q * q
    n, d = middle_above(r), middle_under(r)
    s = math.sqrt(-log(p))
    far = s > 5.0
    r = s - (5.0 if far else 1.6)
    m = E64[7] if far else C64[7]
    m = m * r + (E64[6] if far else C64[6])
    m = m * r + (E64[5] if far else C64[5])
    m = m * r + (E64[4] if far else C64[4])
    m = m * r + (E64[3] if far else C64[3])
    m = m * r + (E64[2] if far else C64[2])
    m = m * r + (E64[1] if far else C64[1])
    m = m * r + (E64[0] if far else C64[0])
    e = F64[7] if far else D64[7]
    e = e * r + (F64[6] if far else D64[6])
    e = e * r + (F64[5] if far else D64[5])
    e = e * r + (F64[4] if far else D64[4])
    e = e * r + (F64[3] if far else D64[3])
    e = e * r + (F64[2] if far else D64[2])
    e = e * r + (F64[1] if far else D64[1])
    e = e * r + 1.0
    middle = q <= 0.425
    return (q * n if middle else m) / (d if middle else e)


@inlined
def normal_tail32(p, q):
    r = f32(0.180625) - q * q
    n = ((A32[3] * r + A32[2]) * r + A32[1]) * r + A32[0]
    d = ((B32[3] * r + B32[2]) * r + B32[1]) * r + f32(1.0)
    r = f32(math.sqrt(-log(p))) - f32(1.6)
    m = ((C32[3] * r + C32[2]) * r + C32[1]) * r + C32[0]
    e = (D32[2] * r + D32[1]) * r + f32(1.0)
    middle = q <= f32(0.425)
    return (q * n if middle else m) / (d if middle else e)


def _normal64(bits):
    tail, low = tail64(bits)
    rest = f64(i64(u64(0x7FFFFFFFFFFFFFFF) - (bits if low else ~bits)))
    z = normal_tail64((tail + 0.5) * 5.421010862427522e-20, (rest + 0.5) * 5.421010862427522e-20)
    return -z if low else z


def _normal32(bits):
    tail, low = tail32(bits)
    scale = f32(2.3283064365386963e-10)
    z = normal_tail32((f32(tail) + f32(0.5)) * scale, (f32(u32(u32(0x7FFFFFFF) - tail)) + f32(0.5)) * scale)
    return -z if low else z


def _by_width(stub, narrow, wide):
    @overload(stub, jit_options=OPTIONS)
    def choose(bits):
        return narrow if bits == types.uint32 else wide


_by_width(unit_uniform, _uniform32, _uniform64)
_by_width(unit_exponential, _exponential32, _exponential64)
_by_width(unit_normal, _normal32, _normal64)


@inlined
def normal_inverse(p):
    x = f64(p)
    low = x if x < 0.5 else 1.0 - x
    z = normal_tail64(low, 0.5 - low)
    z = -z if x < 0.5 else z
    end = math.nan if low != 0.0 else (-math.inf if x == 0.0 else math.inf)
    return like(p, z if low > 0.0 else end)


@inlined
def wide_product(x, y):
    a, b, c, d = x >> HALF, x & MASK, y >> HALF, y & MASK
    middle = a * d + ((b * d) >> HALF)
    other = b * c + (middle & MASK)
    return a * c + (middle >> HALF) + (other >> HALF), x * y


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
        r = 0.180625 - q * q
        z = q * middle_above(r) / middle_under(r)
    else:
        z = normal_tail64((tail + 0.5) * 5.421010862427522e-20, q)
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
    return exponential_called(own_words(bits, ATTEMPTS)[0])


exponential_called = inlined(_exponential64)


@called
def gamma_log(bits, a):
    if not 0.0 < a < math.inf:
        return -math.inf if a == 0.0 else math.nan
    if a < 1.0:
        return log(a + 1.0 - 1.0 / 3.0) + log(gamma_ratio(bits, a + 1.0)) - boost(bits) / a
    return log(a - 1.0 / 3.0) + log(gamma_ratio(bits, a))


@called
def gamma_number(bits, a):
    if not 0.0 < a < math.inf:
        return 0.0 if a == 0.0 else math.nan
    if a < 1.0:
        return (a + 1.0 - 1.0 / 3.0) * gamma_ratio(bits, a + 1.0) * exp(-boost(bits) / a)
    return (a - 1.0 / 3.0) * gamma_ratio(bits, a)


@inlined
def log_gamma_draw(bits, alpha):
    return like(alpha, gamma_log(bits, f64(alpha)))


@inlined
def gamma_draw(bits, alpha):
    return like(alpha, gamma_number(bits, f64(alpha)))


@called
def slope(a, y):
    """-(m_1 + (y - digamma(a)) m_0); see gamma_moment and gamma_slope in the reference."""
    if not 1e-300 < a < math.inf or not y < math.inf:
        return math.nan
    if y == -math.inf:
        return math.inf
    x = math.exp(y)
    gap = y - digamma(a)
    if x <= 1.0 and x <= a:
        total, term = 0.0, math.exp(x)
        for j in range(TERMS):
            part = term / (a + j)
            total += part * (gap - 1.0 / (a + j))
            term *= -x / (j + 1)
        return -total
    sign = -1.0 if x <= a else 1.0
    away = abs(a - x)
    w = sign * (2.0 * DEPTH / (away + math.sqrt(away * away + 2.0 * x * DEPTH)))
    for _ in range(6):
        w = w - (a * w - x * math.expm1(w) + DEPTH) / (a - x * math.exp(w))
    total = 0.0
    for k in range(COUNT):
        v = w * NODES[k]
        total = fold_add(total, WEIGHTS[k] * (v + gap) * exp(a * v - x * expm1(v)))
    return w * total


@inlined
def gamma_slope(alpha, y):
    return like(alpha, slope(f64(alpha), f64(y)))


@called
def wald_number(bits, m, s):
    if not (m > 0.0 and s > 0.0):
        return math.nan
    first, second = own_words(bits, 0)
    z = normal_by_branch(first)
    w = m * z * z / (2.0 * s)
    r = 1.0 / (1.0 + w + math.sqrt(w * (2.0 + w)))
    return m * (r if _uniform64_called(second) * (1.0 + r) <= 1.0 else 1.0 / r)


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
    u, v = _uniform64_called(first) - 0.5, open_uniform(second)
    us = 0.5 - abs(u)
    return floor((2.0 * a / us + b) * u + centre), us, v, a / (us * us) + b, v > us


_uniform64_called = inlined(_uniform64)


@called
def poisson_count(bits, m):
    if not 0.0 <= m <= 1e18:
        return -1
    if m < 10.0:
        rest, mass, k = _uniform64_called(own_words(bits, 0)[0]), math.exp(-m), 0
        while rest >= mass and mass > 0.0 and k < 999:
            k += 1
            rest -= mass
            mass *= m / k
        return k
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
    rest, mass, k = _uniform64_called(own_words(bits, 0)[0]), math.exp(n * math.log1p(-q)), 0
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


