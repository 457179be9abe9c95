"""Ranges of integer values: what the records of ops say of them (see ``ranges``), and what dtypes do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from symc.ir.op import picks
from symc.ir.ranges import UNKNOWN, Range, hull
from symc.ir.types import TensorType
from symc.ir.value import Value

#: How far back the range of an integer is looked for while a graph is built.
FAR = 12


def range_of(v: Value, known: Callable[[Value], Range]) -> Range:
    """The range of a value, given those of its operands."""
    if not isinstance(v.type, TensorType) or v.dtype.kind not in "iu":
        return UNKNOWN
    return in_dtype(v.dtype, _by_record(v, known))


def _by_record(v: Value, known: Callable[[Value], Range]) -> Range:
    if v.op.facts.range is not None:
        return v.op.facts.range(v, [known(o) for o in v.operands])
    if "positions" in v.op.traits:  # argsort, argmax, ...: where along an axis of the operand
        axis = v.attrs["axis"] if "axis" in v.attrs else v.attrs["axes"][0]
        return 0, v.operands[0].shape[axis] - 1
    count = picks(v.op)
    return hull([known(o) for o in v.operands[:count]]) if count else UNKNOWN


def in_dtype(dtype: np.dtype, found: Range) -> Range:
    """A range, with the ends of a dtype of few bits where others are not known."""
    low, high = found
    if dtype.kind == "u" and low is None:
        low = 0
    if dtype.itemsize < 8:
        ends = np.iinfo(dtype)
        low, high = int(ends.min) if low is None else low, int(ends.max) if high is None else high
    return low, high


def range_by_records(v: Value) -> Range:
    """The range of an integer value, by the ops that made it and by its dtype, which no analysis has looked at."""
    found: dict[Value, Range] = {}

    def known(v: Value, far: int) -> Range:
        if v not in found:
            found[v] = range_of(v, lambda o: known(o, far - 1) if far else UNKNOWN)
        return found[v]

    return known(v, FAR)
