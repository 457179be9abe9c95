"""Concatenation of many operands by placement: each is copied into its part of the result, row by row.

A kernel that chooses among few operands takes in what they are made of (``symc.opt.fusion.kernel_ops``). With many it
would grow with their number; copies do not, need no compiling, and their sizes may be anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from symc.ir.dim import product
from symc.ir.ops.shape import concat
from symc.ir.value import Value
from symc.runtime.cpu.lowering import Lowering
from symc.runtime.cpu.native.instructions import Op


def lower(lowering: Lowering, v: Value, reads: Sequence[int], writes: Sequence[int]) -> bool:
    """The code of a concatenation."""
    if v.op is not concat:
        return False
    axis, number = v.attrs["axis"], lowering.number
    rows = number(product(v.shape[:axis]))
    parts = [number(product(o.shape[axis:]) * o.dtype.itemsize) for o in v.operands]
    to, *sources = own = [lowering.code.slot() for _ in range(1 + len(parts))]

    def emit() -> None:
        for mine, slot in zip(own, [writes[0], *reads], strict=True):
            lowering.code.emit(Op.MOVE, mine, slot, 0)
        with lowering.repeat(rows):
            for source, nbytes in zip(sources, parts, strict=True):
                lowering.copy(to, source, nbytes)
                lowering.code.emit(Op.MOVE, source, source, nbytes)
                lowering.code.emit(Op.MOVE, to, to, nbytes)

    lowering.if_any(rows, emit)
    return True
