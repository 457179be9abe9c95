# mypy: ignore-errors
"""Random bits and numbers as scalar functions for kernels: ``symc.ir.ops.random_reference``, bit for bit.

They have no branches, so that the loops around them vectorize; ``library.draws`` has those that do. Imported only
when Numba compiles a kernel.
"""

from __future__ import annotations

import math

from numba import types
from numba.extending import overload

from symc.ir.ops import random_reference as reference
from symc.runtime.compilers.numba_primitives import OPTIONS, f32, f64, i64, inlined, like, u32, u64
from symc.runtime.library.math import log

MASK, HALF, ONE = u64(0xFFFFFFFF), u64(32), u64(1)
MULTIPLIER0, MULTIPLIER1 = map(u64, reference.MULTIPLIERS)
WEYL0, WEYL1 = map(u64, reference.WEYL)
OWN, SCRAMBLE, ATTEMPTS = u64(reference.OWN), u64(reference.SCRAMBLE), reference.ATTEMPTS
A64, B64, C64, D64, E64, F64 = reference.NORMAL64
A32, B32, C32, D32 = (tuple(map(f32, t)) for t in reference.NORMAL32)


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
