# mypy: ignore-errors
"""Integers divided downwards in f64, of whose quotients there are vectors; processors have none of integers.

Integers of less than 2**51 are the last bits of their sum with 1.5 * 2**52, both ways. The quotient of two, rounded and
then rounded down, may be one too great, never too small; the remainder is exact, and tells by its sign.
"""

from __future__ import annotations

from symc.codegen.language.helpers import inlined, rarely
from symc.codegen.language.names import bits64, float64_of, floor, fma, i64, wrap_add, wrap_sub


@rarely
def far_int_mod(x, y):
    return i64(0) if y == 0 or y == -1 else x % y


@rarely
def far_int_floordiv(x, y):
    return i64(0) if y == 0 else (-x if y == -1 else x // y)


@inlined
def _float(x):
    return float64_of(wrap_add(x, 4843621399236968448)) - 6755399441055744.0


@inlined
def _integer(x):
    return wrap_sub(bits64(x + 6755399441055744.0), 4843621399236968448)


@inlined
def _is_far(a, b):
    return not (abs(a) < 2251799813685248.0 and abs(b) < 2251799813685248.0 and b != 0.0)


@inlined
def near_int_mod(x, y):
    a, b = _float(x), _float(y)
    r = fma(-floor(a / b), b, a)
    found = _integer(r + (b if r != 0.0 and (r < 0.0) != (b < 0.0) else 0.0))
    return far_int_mod(x, y) if _is_far(a, b) else found


@inlined
def near_int_floordiv(x, y):
    a, b = _float(x), _float(y)
    q = floor(a / b)
    r = fma(-q, b, a)
    found = _integer(q - (1.0 if r != 0.0 and (r < 0.0) != (b < 0.0) else 0.0))
    return far_int_floordiv(x, y) if _is_far(a, b) else found
