# mypy: ignore-errors
"""Integers divided downwards in f64, of whose quotients there are vectors; processors have none of integers.

Integers of less than 2**51 are the last bits of their sum with 1.5 * 2**52, both ways. Those of less than 2**50 are
multiplied by a reciprocal, which for one divisor of many is computed once: what comes out is within 1/4 of the
quotient, the integer nearest to it within 3/4, and the remainder is exact and tells by its sign. Of short ones the
quotient of floats, rounded and then rounded down, may be one too great, never too small.
"""

from __future__ import annotations

from symc.codegen.language.helpers import inlined, rarely
from symc.codegen.language.names import bits64, float64_of, floor, fma, i32, i64, like, wrap_add, wrap_sub


@rarely
def far_int_mod(x, y):
    if y == 0 or y == -1:
        return i64(0)
    return i64(x % y)


@rarely
def far_int_floordiv(x, y):
    if y == 0:
        return i64(0)
    if y == -1:
        return i64(wrap_sub(0, x))
    return i64(x // y)


@inlined
def _float(x):
    return float64_of(wrap_add(x, 4843621399236968448)) - 6755399441055744.0


@inlined
def _integer(x):
    return wrap_sub(bits64(x + 6755399441055744.0), 4843621399236968448)


@inlined
def _is_far(a, b):
    return not (abs(a) < 1125899906842624.0 and abs(b) < 1125899906842624.0 and b != 0.0)


@inlined
def _nearest(a, b):
    """The integer nearest to a / b within 3/4, and a less it times b: of the sign of neither."""
    q = fma(a, 1.0 / b, 6755399441055744.0) - 6755399441055744.0
    return q, fma(-q, b, a)


@inlined
def near_int_mod(x, y):
    """Remainder of integers of less than 2**50, downwards."""
    b = _float(y)
    c = abs(b)
    _, r = _nearest(-_float(x) if b < 0.0 else _float(x), c)
    r = r + c if r < 0.0 else r
    return like(x, 0) if b == 0.0 else like(x, _integer(-r if b < 0.0 else r))


@inlined
def near_int_floordiv(x, y):
    b = _float(y)
    q, r = _nearest(-_float(x) if b < 0.0 else _float(x), abs(b))
    return like(x, 0) if b == 0.0 else like(x, _integer(q - 1.0 if r < 0.0 else q))


@inlined
def any_int_mod(x, y):
    return far_int_mod(x, y) if _is_far(_float(x), _float(y)) else near_int_mod(x, y)


@inlined
def any_int_floordiv(x, y):
    return far_int_floordiv(x, y) if _is_far(_float(x), _float(y)) else near_int_floordiv(x, y)


@rarely
def far_short_mod(x, y):
    if y == 0:
        return i32(0)
    return i32(i64(x) % i64(y))


@rarely
def far_short_floordiv(x, y):
    if y == 0:
        return i32(0)
    return i32(i64(x) // i64(y))


@inlined
def short_int_mod(x, y, a, b):
    """The same for integers of at most 32 bits, which are a and b as floats."""
    t = a / b
    r = fma(-floor(t), b, a)
    found = i32(r + (b if r != like(b, 0) and (r < like(b, 0)) != (b < like(b, 0)) else like(b, 0)))
    return far_short_mod(x, y) if not (abs(t) < 2147483648.0) else found


@inlined
def short_int_floordiv(x, y, a, b):
    t = a / b
    q = floor(t)
    r = fma(-q, b, a)
    found = i32(q - (like(b, 1) if r != like(b, 0) and (r < like(b, 0)) != (b < like(b, 0)) else like(b, 0)))
    return far_short_floordiv(x, y) if not (abs(t) < 2147483648.0) else found
