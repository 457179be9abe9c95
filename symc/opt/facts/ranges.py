"""What numbers an integer value can hold: a least and a greatest one, which may be formulas of sizes.

Facts only; what they are good for (index checks that are not needed) is in ``symc.opt.facts.bounds``. None is "not
known". Ranges of arithmetic are of i64, whose ends no size comes near.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from symc.ir.dim import Dim, Size, if_any, known_nonnegative
from symc.ir.ops.index import wrapped_index
from symc.ir.types import DTYPES, TensorType
from symc.ir.value import Value

#: The least and the greatest number.
Range = tuple[Size | None, Size | None]
UNKNOWN: Range = (None, None)


def range_of(v: Value, known: Callable[[Value], Range]) -> Range:
    """The range of a value, given those of its operands."""
    if not isinstance(v.type, TensorType) or v.dtype.kind not in "iu":
        return UNKNOWN
    if v.op.name in _SIMPLE:
        return _SIMPLE[v.op.name](v, [known(o) for o in v.operands])
    if v.op.name in _ARITHMETIC:
        found = _ARITHMETIC[v.op.name](v, [known(o) for o in v.operands])
        return _unwrapped(v.dtype, found) if v.op.name in _WRAPS else found
    if v.op.facts.range is not None:
        return v.op.facts.range(v)
    if "positions" in v.op.traits:  # argsort, argmax, ...: where along an axis of the operand
        axis = v.attrs["axis"] if "axis" in v.attrs else v.attrs["axes"][0]
        return 0, v.operands[0].shape[axis] - 1
    if "movement" in v.op.traits or v.op.name in _PICKS:
        return _hull([known(o) for o in v.operands if isinstance(o.type, TensorType) and o.dtype == v.dtype]
                     if v.op.name in ("concat", "pad") else [known(v.operands[0])])
    return UNKNOWN


def _unwrapped(dtype: np.dtype, found: Range) -> Range:
    """A range of sums and the like, if they cannot have wrapped around: formulas of sizes do not, in i64."""
    return found if all(_fits(end, dtype) for end in found) else UNKNOWN


def _fits(end: Size | None, dtype: np.dtype) -> bool:
    if isinstance(end, Dim):
        return dtype == DTYPES["i64"] and all(abs(factor) < MOST for _, factor in end.terms)
    return end is not None and bool(np.iinfo(dtype).min <= end <= np.iinfo(dtype).max)


#: Sizes times less than this are far from the ends of i64.
MOST = 2**16
_WRAPS = {"add", "sub", "mul", "neg"}


#: Ops whose elements are all elements of the first operand.
_PICKS = {"gather", "dynamic_slice", "sort", "max", "min", "stop_gradient"}


def _constant(v: Value, _: list[Range]) -> Range:
    data = v.attrs["value"].data
    return (int(data.min()), int(data.max())) if data.size else (0, 0)


def _cast(v: Value, given: list[Range]) -> Range:
    """To a dtype that holds every number of the operand's: a narrower one would wrap around."""
    source = v.operands[0].dtype
    if source.kind == "b":
        return 0, 1
    return given[0] if source.kind in "iu" and np.can_cast(source, v.dtype, "safe") else UNKNOWN


_SIMPLE: dict[str, Callable[[Value, list[Range]], Range]] = {
    "constant": _constant,
    "size": lambda v, _: (v.attrs["value"], v.attrs["value"]),
    "iota": lambda v, _: (0, if_any(v.shape[v.attrs["axis"]]) - 1) if v.dtype == DTYPES["i64"] else UNKNOWN,
    "cast": _cast,
    "check_index": lambda v, _: (0, v.attrs["size"] - 1),
    "bounded": lambda v, _: (0, v.attrs["size"] - 1),
}


def _not_below(a: Size | None, b: Size | None) -> bool:
    return a is not None and b is not None and known_nonnegative(a - b)


def _hull(ranges: Sequence[Range]) -> Range:
    low, high = ranges[0]
    for a, b in ranges[1:]:
        low = low if _not_below(a, low) else a if _not_below(low, a) else None
        high = high if _not_below(high, b) else b if _not_below(b, high) else None
    return low, high


def _plus(a: Size | None, b: Size | None) -> Size | None:
    return None if a is None or b is None else a + b


def _minus(a: Size | None, b: Size | None) -> Size | None:
    return None if a is None or b is None else a - b


def _times(v: Value, given: list[Range]) -> Range:
    (a, b), (c, d) = given
    if not (_not_below(a, 0) and _not_below(c, 0)):
        return UNKNOWN
    return 0, None if b is None or d is None else b * d


def _least(v: Value, given: list[Range]) -> Range:
    (_, b), (_, d) = given
    return _hull(given)[0], d if b is None or _not_below(b, d) else b


def _greatest(v: Value, given: list[Range]) -> Range:
    (a, _), (c, _) = given
    return c if a is None or _not_below(c, a) else a, _hull(given)[1]


def _remainder(v: Value, given: list[Range]) -> Range:
    low, high = given[1]
    return (0, _minus(high, 1)) if _not_below(low, 1) else UNKNOWN


def _quotient(v: Value, given: list[Range]) -> Range:
    (a, b), (c, _) = given
    if not _not_below(a, 0) or c is None or not _not_below(c, 1):
        return UNKNOWN
    if isinstance(b, int) and isinstance(c, int):
        return 0, b // c
    return 0, 0 if _not_below(c, None if b is None else b + 1) else b


def _masked(v: Value, given: list[Range]) -> Range:
    found = next((r for r in given if _not_below(r[0], 0)), None)
    return UNKNOWN if found is None else (0, found[1])


def _chosen(v: Value, given: list[Range]) -> Range:
    wrapped = wrapped_index(v)
    if wrapped is None:
        return _hull(given[1:])
    low, high = given[2]
    if _not_below(low, 0):
        return low, high
    size = _minus(given[1][0], low)  # of the axis: what is added to a negative index
    if low is None or size is None:
        return UNKNOWN
    if not _not_below(low + size, 0) and not (high is not None and _not_below(low + size, high - low)):
        return UNKNOWN  # (where there are elements at all, the least is not above the greatest)
    return 0, _hull([(0, high), (0, size - 1)])[1]


_ARITHMETIC: dict[str, Callable[[Value, list[Range]], Range]] = {
    "add": lambda v, g: (_plus(g[0][0], g[1][0]), _plus(g[0][1], g[1][1])),
    "sub": lambda v, g: (_minus(g[0][0], g[1][1]), _minus(g[0][1], g[1][0])),
    "neg": lambda v, g: (_minus(0, g[0][1]), _minus(0, g[0][0])),
    "mul": _times,
    "minimum": _least,
    "maximum": _greatest,
    "mod": _remainder,
    "floordiv": _quotient,
    "and": _masked,
    "where": _chosen,
}
