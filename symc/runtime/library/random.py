# mypy: ignore-errors
"""Random bits and numbers as scalar functions for kernels: ``symc.ir.ops.random_reference``, bit for bit.

So sums and products are those of the reference, in its order, and rounded where it rounds: ``fma`` is one operation
there too, and ``times`` a product that is not contracted with the sum it is a part of, as other kernels' are. They
have no branches, so that the loops around them vectorize; ``library.draws`` has those that do.
"""

from __future__ import annotations

import math

from symc.codegen.language.helpers import by_width, inlined, rarely
from symc.codegen.language.names import (
    bits32,
    bits64,
    f32,
    f64,
    float32_of,
    float64_of,
    fma,
    fused_horner,
    i32,
    i64,
    like,
    times,
    u32,
    u64,
)
from symc.ir.ops import random_reference as reference
from symc.runtime.library.math import MAGIC64, log

MASK, HALF, ONE = u64(0xFFFFFFFF), u64(32), u64(1)
MULTIPLIER0, MULTIPLIER1 = map(u64, reference.MULTIPLIERS)
WEYL0, WEYL1 = map(u64, reference.WEYL)
OWN, SCRAMBLE, ATTEMPTS = u64(reference.OWN), u64(reference.SCRAMBLE), reference.ATTEMPTS
A64, B64, C64, D64, E64, F64 = reference.NORMAL64
LOG64, LN2_64 = reference.LOG64, reference.LN2_64
LOG32, LN2_32 = (tuple(map(f32, t)) for t in (reference.LOG32, reference.LN2_32))
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


@inlined
def _unit_uniform64(bits):
    return f64(i64(bits >> u64(11))) * 1.1102230246251565e-16


@inlined
def _unit_uniform32(bits):
    return f32(bits >> u32(8)) * f32(5.9604644775390625e-08)


@inlined
def open_uniform(bits):
    return (f64(i64(bits >> u64(12))) + 0.5) * 2.220446049250313e-16


@inlined
def _log_share64(x):
    """log(x) for positive normal numbers, as the reference computes it."""
    b = bits64(x) + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD)  # so that the exponent field counts from sqrt(1/2)
    f = float64_of((b & 0x000FFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD) - 1.0
    k = float64_of(((b >> 52) - 1023) + 0x4338000000000000) - MAGIC64
    s = f / (2.0 + f)
    z = s * s
    r = fused_horner(z, LOG64)
    h = times(f * 0.5, f)
    t = s * fma(r, z, h)
    return k * LN2_64[0] - ((h - fma(k, LN2_64[1], t)) - f)


@inlined
def _log_share32(x):
    b = i32(bits32(x) + (0x3F800000 - 0x3F3504F3))
    f = float32_of(i32((b & 0x007FFFFF) + 0x3F3504F3)) - f32(1.0)
    k = f32(i32((b >> 23) - 127))
    r = fused_horner(f, LOG32)
    z = f * f
    t = f * z * r
    return k * LN2_32[0] - ((z * f32(0.5) - fma(k, LN2_32[1], t)) - f)


@inlined
def exponential(t, low):
    """-log1p(-t) if ``low`` else -log(t), with one logarithm."""
    u = like(t, 1) - t
    a = u if low else t
    lost = ((u - like(t, 1)) + t) / a
    return (lost if low else like(t, 0)) - log_share(a)


@inlined
def tail64(bits):
    """The smaller of bits and ~bits, as a float, and which it is."""
    low = bits < u64(0x8000000000000000)
    return f64(i64(bits if low else ~bits)), low


@inlined
def tail32(bits):
    low = bits < u32(0x80000000)
    return u32(bits if low else ~bits), low


@inlined
def _unit_exponential64(bits):
    tail, low = tail64(bits)
    return exponential((tail + 0.5) * 5.421010862427522e-20, low)


@inlined
def _unit_exponential32(bits):
    tail, low = tail32(bits)
    return exponential((f32(tail) + f32(0.5)) * f32(2.3283064365386963e-10), low)


@inlined
def _unit_gumbel64(bits):
    return -log_share(unit_exponential(bits))


@inlined
def _unit_gumbel32(bits):
    return -log_share(unit_exponential(bits))


@inlined
def middle64(q):
    """For q up to 0.425: numerator and denominator of z with P(0 < Z < z) = q."""
    r = fma(-q, q, 0.180625)
    n = fused_horner(r, A64)
    d = fused_horner(r, B64)
    return q * n, d


@rarely
def far64(s):
    r = s - 5.0
    n = fused_horner(r, E64)
    d = fused_horner(r, F64)
    return n / d


@inlined
def normal_tail64(q, s):
    """z with P(Z > z) = p = 1/2 - q, given s = sqrt(-log(p))."""
    n, d = middle64(q)
    r = s - 1.6
    m = fused_horner(r, C64)
    e = fused_horner(r, D64)
    middle = q <= 0.425
    z = (n if middle else m) / (d if middle else e)
    return far64(s) if s > 5.0 else z


@inlined
def normal_tail32(q, s):
    r = fma(-q, q, f32(0.180625))
    n = fused_horner(r, A32)
    d = fused_horner(r, B32)
    r = s - f32(1.6)
    m = fused_horner(r, C32)
    e = fused_horner(r, D32)
    middle = q <= f32(0.425)
    return (q * n if middle else m) / (d if middle else e)


@inlined
def _unit_normal64(bits):
    tail, low = tail64(bits)
    rest = f64(i64(u64(0x7FFFFFFFFFFFFFFF) - (bits if low else ~bits)))
    s = math.sqrt(-log_share((tail + 0.5) * 5.421010862427522e-20))
    z = normal_tail64((rest + 0.5) * 5.421010862427522e-20, s)
    return -z if low else z


@inlined
def _unit_normal32(bits):
    tail, low = tail32(bits)
    scale = f32(2.3283064365386963e-10)
    s = f32(math.sqrt(-log_share((f32(tail) + f32(0.5)) * scale)))
    z = normal_tail32((f32(u32(u32(0x7FFFFFFF) - tail)) + f32(0.5)) * scale, s)
    return -z if low else z


unit_uniform = by_width(_unit_uniform32, _unit_uniform64)  # [0, 1)
unit_exponential = by_width(_unit_exponential32, _unit_exponential64)  # an exponential number
unit_gumbel = by_width(_unit_gumbel32, _unit_gumbel64)  # a Gumbel number
unit_normal = by_width(_unit_normal32, _unit_normal64)  # a normal number
log_share = by_width(_log_share32, _log_share64)  # the same of either width


@inlined
def normal_inverse(p):
    x = f64(p)
    low = x if x < 0.5 else 1.0 - x
    z = normal_tail64(0.5 - low, math.sqrt(-log(low)))
    z = -z if x < 0.5 else z
    end = math.nan if low != 0.0 else (-math.inf if x == 0.0 else math.inf)
    return like(p, z if low > 0.0 else end)


@inlined
def wide_product(x, y):
    a, b, c, d = x >> HALF, x & MASK, y >> HALF, y & MASK
    middle = a * d + ((b * d) >> HALF)
    other = b * c + (middle & MASK)
    return a * c + (middle >> HALF) + (other >> HALF), x * y
