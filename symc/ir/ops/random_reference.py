"""Random numbers in NumPy: the meaning of the ops in `random`. Backends must give the same bits.

Philox4x32-10 (J. Salmon and others, Parallel random numbers: as easy as 1, 2, 3, SC 2011) maps a counter of 128 bits
and a key of 64 bits to 128 bits; for a fixed key it is a bijection. Everything else is made of such blocks: there is no
state. A draw that may need several attempts (gamma, poisson, binomial) makes the first from its 64 random bits, and
reads the blocks of a stream of its own, whose key they are, for the others.
"""

from __future__ import annotations

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
