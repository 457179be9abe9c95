"""Random numbers in NumPy: the meaning of the ops in `random`. Backends must give the same bits.

Philox4x32-10 (J. Salmon and others, Parallel random numbers: as easy as 1, 2, 3, SC 2011) maps a counter of 128 bits
and a key of 64 bits to 128 bits; for a fixed key it is a bijection. Everything else is made of such blocks: there is no
state. A draw that may need several attempts (gamma, poisson, binomial) makes the first from its 64 random bits, and
reads the blocks of a stream of its own, whose key they are, for the others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

MASK = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL = 0x9E3779B9, 0xBB67AE85
#: The upper half of the counters that an element's own stream uses.
OWN = 0x5DEECE66D1CE4E5B
#: A multiplier with a good lattice: G. Steele and S. Vigna (2021).
SCRAMBLE = 0xD1342543DE82EF95
#: Attempts before a rejection sampler gives up, with nan or -1; each succeeds with probability above 0.7.
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


#: How many elements are computed at a time: so many arrays of them stay in the cache.
PIECE = 4096


def in_pieces(f: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function of bits that takes many steps, for arrays of any shape."""

    @functools.wraps(f)
    def run(bits: Array) -> Array:
        flat = bits.reshape(-1)
        out: Array = np.empty(bits.size, _float_of(bits)[0])
        for k in range(0, bits.size, PIECE):
            out[k : k + PIECE] = f(flat[k : k + PIECE])
        return out.reshape(bits.shape)

    return run


def fma(x: Array, y: Array, z: Array | float) -> Array:
    """x * y + z, rounded once, as the instruction of that name: which NumPy has not, and kernels are made of.

    For numbers whose products and errors are in range. In double precision after S. Boldo and G. Melquiond (2008): the
    exact result is a sum of three numbers, of which the two small ones are added with rounding to odd.
    """
    if x.dtype == np.float32:
        return odd_sum(x.astype(np.float64) * y, np.asarray(z, np.float32).astype(np.float64)).astype(np.float32)
    product, rest = _two_product(x, y)
    above, small = two_sum(rest, z)
    top, less = two_sum(product, above)
    return top + odd_sum(small, less)


def two_sum(x: Array, y: Array | float) -> tuple[Array, Array]:
    """x + y rounded, and what was lost."""
    s = x + y
    t = s - x
    return s, (x - (s - t)) + (y - t)


def odd_sum(x: Array, y: Array | float) -> Array:
    """x + y, where inexact that neighbour whose last bit is set: rounded once more, it is what rounding once gives."""
    s, lost = two_sum(x, y)
    bits = s.view(np.int64)
    wrong = np.flatnonzero((lost != 0) & (bits & 1 == 0))
    bits[wrong] += np.where((lost[wrong] > 0) == (s[wrong] > 0), 1, -1)
    return s


def _two_product(x: Array, y: Array) -> tuple[Array, Array]:
    """x * y rounded, and what was lost (T. Dekker, 1971)."""
    p = x * y
    (a, b), (c, d) = _halves(x), _halves(y)
    return p, ((a * c - p) + a * d + b * c) + b * d


def _halves(x: Array) -> tuple[Array, Array]:
    t = x * 134217729.0
    high = t - (t - x)
    return high, x - high


#: Coefficients of logarithms: of fdlibm (e_log.c) and Cephes (logf); ln(2) in two parts, of which the first is short.
LOG64 = (6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
         1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01)
LOG32 = (3.3333331174e-1, -2.4999993993e-1, 2.0000714765e-1, -1.6668057665e-1, 1.4249322787e-1, -1.2420140846e-1,
         1.1676998740e-1, -1.1514610310e-1, 7.0376836292e-2)
LN2_64 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
LN2_32 = 0.693359375, -2.12194440e-4


def log_share(x: Array) -> Array:
    """log(x) for positive normal numbers, of operations that round in one way only: it is the same everywhere."""
    if x.dtype == np.float64:
        b = x.view(np.int64) + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
        f: Array = ((b & 0x000FFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD).view(np.float64) - 1.0
        k: Array = ((b >> 52) - 1023).astype(np.float64)
        s = f / (2.0 + f)
        z = s * s
        h = f * 0.5 * f
        t = s * fma(horner(LOG64, z), z, h)
    else:
        b = x.view(np.int32) + np.int32(0x3F800000 - 0x3F3504F3)
        f = ((b & np.int32(0x007FFFFF)) + np.int32(0x3F3504F3)).view(np.float32) - np.float32(1)
        k = ((b >> np.int32(23)) - np.int32(127)).astype(np.float32)
        z = f * f
        h = z * np.float32(0.5)
        t = f * z * horner(LOG32, f)
    high, low = LN2_64 if x.dtype == np.float64 else LN2_32
    return k * x.dtype.type(high) - ((h - fma(k, np.full_like(k, low), t)) - f)


@in_pieces
def unit_exponential(bits: Array) -> Array:
    """-log(1 - u), where u has all bits; small numbers come from what 1 - t loses, large ones from the small 1 - u."""
    f, width = _float_of(bits)
    tail = np.minimum(bits, ~bits)
    t = (tail.astype(f) + f(0.5)) * f(2.0**-width)
    u = f(1) - t
    a = np.where(tail == bits, u, t)
    lost = ((u - f(1)) + t) / a
    return np.where(tail == bits, lost, f(0)) - log_share(a)


@in_pieces
def unit_gumbel(bits: Array) -> Array:
    """-log(-log(1 - u)), where u has all bits; so decreasing in them."""
    return -log_share(unit_exponential(bits))


@in_pieces
def unit_normal(bits: Array) -> Array:
    """The inverse distribution function at (bits + 1/2) / 2**width: |z| up to 9.1 from 64 bits, 6.3 from 32."""
    f, width = _float_of(bits)
    half = bits.dtype.type(1 << (width - 1))
    tail = np.minimum(bits, ~bits)
    p = (tail.astype(f) + f(0.5)) * f(2.0**-width)
    q = ((half - bits.dtype.type(1) - tail).astype(f) + f(0.5)) * f(2.0**-width)
    z = np.empty_like(q)
    near = q <= f(0.425)
    z[near], z[~near] = normal_middle(q[near]), normal_tail(np.sqrt(-log_share(p[~near])))
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
    """The polynomial with these coefficients, that of x**0 first, each step rounded once."""
    out = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        out = fma(out, x, c)
    return out


def normal_middle(q: Array) -> Array:
    """z with P(0 < Z < z) = q, for q up to 0.425."""
    table = NORMAL64 if q.dtype == np.float64 else NORMAL32
    r = fma(-q, q, 0.180625)
    return q * horner(table[0], r) / horner(table[1], r)


def normal_tail(s: Array) -> Array:
    """z with P(Z > z) = p, given s = sqrt(-log(p)), for p up to 0.075."""
    table, f = NORMAL64 if s.dtype == np.float64 else NORMAL32, s.dtype.type
    z = horner(table[2], s - f(1.6)) / horner(table[3], s - f(1.6))
    far = s > 5
    if len(table) > 4 and far.any():
        z[far] = horner(table[4], s[far] - f(5)) / horner(table[5], s[far] - f(5))
    return z


def normal_inverse(p: Array) -> Array:
    """z with P(Z <= z) = p; accurate for small p, not for p near 1 (nothing is: use -normal_inverse(1 - p))."""
    with np.errstate(all="ignore"):
        low = np.minimum(p, 1 - p).astype(np.float64)
        near = 0.5 - low <= 0.425
        z = np.empty_like(low)
        z[near], z[~near] = normal_middle(0.5 - low[near]), normal_tail(np.sqrt(-np.log(low[~near])))
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
