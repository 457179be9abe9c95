# mypy: ignore-errors
"""Scalar functions with the edge cases of NumPy's.

Every function keeps the dtype of its operand: `like` makes constants of it, since a bare 1.0 would widen float32.
"""

from __future__ import annotations

import math

from symc.codegen.language.helpers import by_width, inlined, rarely
from symc.codegen.language.names import (
    INF,
    bits,
    bits32,
    bits64,
    copysign,
    f32,
    f64,
    float32_of,
    floor,
    fma,
    fmod,
    from_half,
    i32,
    like,
    to_half,
    to_int,
    trunc,
    u16,
    wrap_sub,
)


@inlined
def zero(x):
    return like(x, 0)


@inlined
def inf(x):
    return like(x, INF)


@inlined
def sign(x):
    return like(x, 1) if x > 0 else (like(x, -1) if x < 0 else x + zero(x))


@inlined
def fmax(x, y):
    return y if x != x else (x if y != y or x >= y else y)


@inlined
def fmin(x, y):
    return y if x != x else (x if y != y or x <= y else y)


@inlined
def sorts_before(x, y):
    return x < y or (y != y and x == x)


@rarely
def far_remainder(x, y):
    return fmod(x, y)


@inlined
def _signed_remainder(x, y, far):
    """The remainder with the sign of x: x - q * y is a multiple of y's last place and at most y, so it is a float. The
    quotient, rounded, may be one too great, but never too small."""
    t = x / y
    r = fma(-trunc(t), y, x)
    r = copysign(r + copysign(y, x) if r * copysign(like(x, 1), x) < 0 else r, x)
    return far_remainder(x, y) if not (abs(t) < far and abs(y) < INF) else r


@inlined
def _signed_remainder64(x, y):
    return _signed_remainder(x, y, 4503599627370496.0)


@inlined
def _signed_remainder32(x, y):
    return _signed_remainder(x, y, like(x, 8388608.0))


signed_remainder = by_width(_signed_remainder32, _signed_remainder64)


@inlined
def mod(x, y):
    r = signed_remainder(x, y)
    if r != 0:
        return r + y if (y < 0) != (r < 0) else r
    return math.copysign(zero(x), y) if r == 0 else r


@inlined
def floordiv(x, y):
    if y == 0:
        return x / y
    r = signed_remainder(x, y)
    q = (x - r) / y
    if r != 0 and (y < 0) != (r < 0):
        q = q - like(x, 1)
    if q == 0:
        return math.copysign(zero(x), x / y)
    f = floor(q)
    return f + like(x, 1) if q - f > 0.5 else f


@rarely
def far_to_i32(x):
    return i32(to_int(x))


@inlined
def to_i32(x):
    """The 32 lowest bits of ``to_int``: of this width there are vectors."""
    return far_to_i32(x) if not (abs(x) < 2147483648.0) else i32(x)


@rarely
def far_to_i64(x):
    return to_int(x)


@inlined
def to_i64(x):
    """``to_int`` by the sum with 1.5 * 2**52, whose last bits are the number."""
    y = f64(x)
    near = wrap_sub(bits64(trunc(y) + 6755399441055744.0), 4843621399236968448)
    return far_to_i64(y) if not (abs(y) < 2251799813685248.0) else near


@inlined
def int_floordiv(x, y):
    if y == 0:
        return like(x, 0)
    if y == like(y, -1) and y < 0:
        return like(x, -x)
    return like(x, x // y)


@inlined
def int_mod(x, y):
    if y == 0 or (y == like(y, -1) and y < 0):
        return like(x, 0)
    return like(x, x % y)


@inlined
def int_fmod(x, y):
    r = int_mod(x, y)
    return like(x, r - y) if r != 0 and (x < 0) != (y < 0) else r


@inlined
def gcd(x, y):
    while y != 0:
        r = int_mod(x, y)
        x = y
        y = r
    return like(x, -x) if x < 0 else x


@rarely
def any_int_pow(x, y):
    if y < 0:
        if x == 1:
            return like(x, 1)
        if x == like(x, -1):
            return like(x, 1) if y % 2 == 0 else x
        return like(x, 0)
    result = like(x, 1)
    while y > 0:
        if y & 1:
            result = like(x, result * x)
        x = like(x, x * x)
        y = like(y, y >> 1)
    return result


@inlined
def int_pow(x, y):
    """Product of squares, without a branch, where the exponent is one of 0 to 63."""
    r = like(x, x if y & 1 else 1)
    x2 = like(x, x * x)
    r = like(x, r * (x2 if y & 2 else 1))
    x4 = like(x, x2 * x2)
    r = like(x, r * (x4 if y & 4 else 1))
    x8 = like(x, x4 * x4)
    r = like(x, r * (x8 if y & 8 else 1))
    x16 = like(x, x8 * x8)
    r = like(x, r * (x16 if y & 16 else 1))
    r = like(x, r * (like(x, x16 * x16) if y & 32 else 1))
    return any_int_pow(x, y) if y < 0 or y > 63 else r


@inlined
def shift_left(x, y):
    return like(x, x << y) if 0 <= y < bits(x) else like(x, 0)


@inlined
def shift_right(x, y):
    return like(x, x >> y) if 0 <= y < bits(x) else (like(x, -1) if x < 0 else like(x, 0))


@inlined
def round_half(x):
    return from_half(to_half(x))


@inlined
def from_bfloat(h):
    """The upper half of a float32, whose lower half is 0."""
    return float32_of(i32(i32(h) << 16))


@inlined
def _near_bfloat(x):
    """Bits of a float32 whose upper half is x rounded to nearest, of ties to even; a nan stays one. All of it has 32
    bits, as LLVM sees."""
    b = bits32(f32(x))
    near = i32(b + 32767 + ((b >> 16) & 1))
    return near if x == x else i32(b | 4194304)


@inlined
def to_bfloat(x):
    return u16(_near_bfloat(x) >> 16)


@inlined
def round_bfloat(x):
    return float32_of(i32(_near_bfloat(x) & -65536))
