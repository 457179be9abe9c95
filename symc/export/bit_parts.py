"""Bits in terms of simpler ops: shifts by any number of places, and those of random numbers."""

from __future__ import annotations

from symc.ir.ops.assume import assume
from symc.ir.ops.cast import cast
from symc.ir.ops.compare import eq, ge, lt
from symc.ir.ops.elementwise import like
from symc.ir.ops.logic import and_, or_, shl, shr, where, xor
from symc.ir.ops.random_reference import MULTIPLIERS, WEYL
from symc.ir.types import DTYPES
from symc.ir.value import Value


def shift(v: Value) -> Value | None:
    """Shifts of signed integers by those of unsigned ones, whose number of places is in range."""
    x, y = v.operands
    bits, signed = 8 * x.dtype.itemsize, x.dtype.kind == "i"
    if y.op is assume:
        return None
    far = or_(lt(y, 0), ge(y, bits)) if signed else ge(y, bits)
    u = DTYPES[f"u{bits}"]
    near = assume(cast(where(far, like(y, 0), y), dtype=u), low=0)
    if v.op is shl or not signed:
        moved = v.op(cast(x, dtype=u), near)
        return where(far, like(x, 0), cast(moved, dtype=x.dtype) if signed else moved)
    mask = where(lt(x, 0), like(x, -1), like(x, 0))
    moved = cast(shr(cast(xor(x, mask), dtype=u), near), dtype=x.dtype)
    return xor(where(far, like(x, 0), moved), mask)


def _philox(key: Value, stream: Value, counter: Value) -> list[Value]:
    """The four words of a block, as u64: ``symc.ir.ops.random_reference.philox`` in ops."""
    mask, half = like(key, 0xFFFFFFFF), like(key, 32)
    c0, c1, c2, c3 = and_(counter, mask), shr(counter, half), and_(stream, mask), shr(stream, half)
    k0, k1 = and_(key, mask), shr(key, half)
    for _ in range(10):
        p0, p1 = like(c0, MULTIPLIERS[0]) * c0, like(c2, MULTIPLIERS[1]) * c2
        c0, c1 = xor(xor(shr(p1, half), c1), k0), and_(p1, mask)
        c2, c3 = xor(xor(shr(p0, half), c3), k1), and_(p0, mask)
        k0, k1 = and_(k0 + like(k0, WEYL[0]), mask), and_(k1 + like(k1, WEYL[1]), mask)
    return [c0, c1, c2, c3]


def philox64(v: Value) -> Value:
    key, stream, index = v.operands
    a, b, c, d = _philox(key, stream, shr(index, like(index, 1)))
    odd = eq(and_(index, like(index, 1)), 1)
    high, low = where(odd, d, b), where(odd, c, a)
    return or_(shl(high, like(high, 32)), low)


def philox32(v: Value) -> Value:
    key, stream, index = v.operands
    words = _philox(key, stream, shr(index, like(index, 2)))
    k = and_(index, like(index, 3))
    out = words[3]
    for j in (2, 1, 0):
        out = where(eq(k, j), words[j], out)
    return cast(out, dtype=DTYPES["u32"])


def unit_uniform(v: Value) -> Value:
    (bits,), digits = v.operands, 53 if v.dtype.itemsize == 8 else 24
    return cast(shr(bits, like(bits, 8 * bits.dtype.itemsize - digits)), dtype=v.dtype) * 2.0**-digits
