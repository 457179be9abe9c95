"""Ranges of the numbers that an integer value can hold, from its record and its operands.

Facts only; what they are good for (index checks that are not needed) is in ``symc.opt.facts.bounds``.
"""

from __future__ import annotations

from collections.abc import Callable

from symc.ir.op import picks
from symc.ir.ranges import UNKNOWN, Range, hull
from symc.ir.types import TensorType
from symc.ir.value import Value


def range_of(v: Value, known: Callable[[Value], Range]) -> Range:
    """The range of a value, given those of its operands."""
    if not isinstance(v.type, TensorType) or v.dtype.kind not in "iu":
        return UNKNOWN
    if v.op.facts.range is not None:
        return v.op.facts.range(v, [known(o) for o in v.operands])
    if "positions" in v.op.traits:  # argsort, argmax, ...: where along an axis of the operand
        axis = v.attrs["axis"] if "axis" in v.attrs else v.attrs["axes"][0]
        return 0, v.operands[0].shape[axis] - 1
    count = picks(v.op)
    return hull([known(o) for o in v.operands[:count]]) if count else UNKNOWN
