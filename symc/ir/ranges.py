"""Ranges of integers: a least and a greatest number, which may be formulas of sizes. None is "not known".

Ranges of arithmetic are of i64, whose ends no size comes near. The record of an op says which of these functions its
range is; each takes the value and the ranges of its operands.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symc.ir.dim import Dim, Size, known_nonnegative
from symc.ir.size_extremes import if_any
from symc.ir.types import DTYPES
from symc.ir.value import Value

#: The least and the greatest number.
Range = tuple[Size | None, Size | None]
Given = Sequence[Range]
UNKNOWN: Range = (None, None)
#: All operands (see ``Facts.picks``).
ALL = 2**31


def unwrapped(dtype: np.dtype, found: Range) -> Range:
    """A range of sums and the like, if they cannot have wrapped around: formulas of sizes do not, in i64."""
    return found if all(_fits(end, dtype) for end in found) else UNKNOWN


def _fits(end: Size | None, dtype: np.dtype) -> bool:
    if isinstance(end, Dim):
        return dtype == DTYPES["i64"] and all(abs(factor) < MOST for _, factor in end.terms)
    return end is not None and bool(np.iinfo(dtype).min <= end <= np.iinfo(dtype).max)


#: Sizes times less than this are far from the ends of i64.
MOST = 2**16


def of_size(v: Value, _: Given) -> Range:
    return v.attrs["value"], v.attrs["value"]


def of_index(v: Value, _: Given) -> Range:
    return 0, v.attrs["size"] - 1


def of_iota(v: Value, _: Given) -> Range:
    return (0, if_any(v.shape[v.attrs["axis"]]) - 1) if v.dtype == DTYPES["i64"] else UNKNOWN


def of_constant(v: Value, _: Given) -> Range:
    data = v.attrs["value"].data
    return (int(data.min()), int(data.max())) if data.size else (0, 0)


def of_cast(v: Value, given: Given) -> Range:
    """Range of a cast to a dtype that holds every number of the operand's: a narrower one would wrap around."""
    source = v.operands[0].dtype
    if source.kind == "b":
        return 0, 1
    return given[0] if source.kind in "iu" and np.can_cast(source, v.dtype, "safe") else UNKNOWN


def not_below(a: Size | None, b: Size | None) -> bool:
    return a is not None and b is not None and known_nonnegative(a - b)


def hull(ranges: Given) -> Range:
    low, high = ranges[0]
    for a, b in ranges[1:]:
        low = low if not_below(a, low) else a if not_below(low, a) else None
        high = high if not_below(high, b) else b if not_below(b, high) else None
    return low, high


def plus(a: Size | None, b: Size | None) -> Size | None:
    return None if a is None or b is None else a + b


def minus(a: Size | None, b: Size | None) -> Size | None:
    return None if a is None or b is None else a - b


def products(v: Value, given: Given) -> Range:
    (a, b), (c, d) = given
    if not (not_below(a, 0) and not_below(c, 0)):
        return UNKNOWN
    return unwrapped(v.dtype, (0, None if b is None or d is None else b * d))


def least(v: Value, given: Given) -> Range:
    (_, b), (_, d) = given
    return hull(given)[0], d if b is None or not_below(b, d) else b


def greatest(v: Value, given: Given) -> Range:
    (a, _), (c, _) = given
    return c if a is None or not_below(c, a) else a, hull(given)[1]


def remainders(v: Value, given: Given) -> Range:
    low, high = given[1]
    return (0, minus(high, 1)) if not_below(low, 1) else (0, high) if not_below(low, 0) else UNKNOWN  # by 0: 0


def quotients(v: Value, given: Given) -> Range:
    (a, b), (c, _) = given
    if not not_below(a, 0) or c is None or not not_below(c, 1):
        return UNKNOWN
    if isinstance(b, int) and isinstance(c, int):
        return 0, b // c
    return 0, 0 if not_below(c, None if b is None else b + 1) else b


def masked(v: Value, given: Given) -> Range:
    """Range of x & y: no more than either that is not negative."""
    found = [high for low, high in given if not_below(low, 0)]
    known = [high for high in found if high is not None]
    high = known[0] if known else None
    for other in known[1:]:
        high = other if not_below(high, other) else high
    return (0, high) if found else UNKNOWN


def joined(v: Value, given: Given) -> Range:
    """Range of x | y and of x ^ y: no bit above those of either."""
    (a, b), (c, d) = given
    if not (not_below(a, 0) and not_below(c, 0)):
        return UNKNOWN
    return 0, 2 ** max(b, d).bit_length() - 1 if isinstance(b, int) and isinstance(d, int) else None


def shifted_up(v: Value, given: Given) -> Range:
    """Range of x << y, of x that is not negative and a number y of bits that x has."""
    (_, high), (bits, _) = given
    if not _moves_by_number(v, given) or not isinstance(high, int):
        return UNKNOWN
    return unwrapped(v.dtype, (0, high << bits))  # type: ignore[operator]


def shifted_down(v: Value, given: Given) -> Range:
    """Range of x >> y, of x that is not negative."""
    (low, high), (bits, _) = given
    if _moves_by_number(v, given) and isinstance(high, int):
        return 0, high >> bits  # type: ignore[operator]
    return (0, None) if not_below(low, 0) else UNKNOWN


def _moves_by_number(v: Value, given: Given) -> bool:
    (low, _), (bits, most) = given
    return bits == most and isinstance(bits, int) and 0 <= bits < 8 * v.dtype.itemsize and not_below(low, 0)


def sums(v: Value, given: Given) -> Range:
    (a, b), (c, d) = given
    return unwrapped(v.dtype, (plus(a, c), plus(b, d)))


def differences(v: Value, given: Given) -> Range:
    (a, b), (c, d) = given
    return unwrapped(v.dtype, (minus(a, d), minus(b, c)))


def negatives(v: Value, given: Given) -> Range:
    ((a, b),) = given
    return unwrapped(v.dtype, (minus(0, b), minus(0, a)))


def chosen(v: Value, given: Given) -> Range:
    wrapped = wrapped_index(v)
    if wrapped is None:
        return hull(given[1:])
    low, high = given[2]
    if not_below(low, 0):
        return low, high
    size = minus(given[1][0], low)  # of the axis: what is added to a negative index
    if low is None or size is None:
        return UNKNOWN
    if not not_below(low + size, 0) and not (high is not None and not_below(low + size, high - low)):
        return UNKNOWN  # (where there are elements at all, the least is not above the greatest)
    return 0, hull([(0, high), (0, size - 1)])[1]


def wrapped_index(v: Value) -> Value | None:
    """The index x that v wraps around, if v is ``where(x < 0, x + n, x)``: NumPy's negative indices."""
    if v.op.name != "where":
        return None
    test, moved, x = v.operands
    below = test.op.name == "lt" and test.operands[0] is x and _is_zero(test.operands[1])
    return x if below and moved.op.name == "add" and x in moved.operands else None


def _is_zero(v: Value) -> bool:
    while v.op.name == "broadcast":
        v = v.operands[0]
    return v.data is not None and not v.shape and not v.data
