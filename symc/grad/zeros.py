"""Zero cotangents stay zero through derivatives that ops state by hand.

``Custom`` facts are written for the honest case. Where a cotangent may be zero because elements were not chosen, what
it is multiplied with may be infinite or nan: then every product, quotient and recurrence that it passes is made one in
which zero wins. (Not products of arrays: those would have to look for infinities first.)
"""

from __future__ import annotations

from collections.abc import Sequence

from symc.ir.op import lookup
from symc.ir.ops.arithmetic import div, mul, mulz
from symc.ir.ops.compare import isfinite
from symc.ir.ops.elementwise import like
from symc.ir.ops.logic import where
from symc.ir.traverse import postorder, rebuild
from symc.ir.value import Value


def zeros_stay(results: Sequence[Value | None], g: Value, v: Value) -> list[Value | None]:
    """Results that a cotangent ``g`` of ``v`` became, with 0 times anything 0 on the way."""
    ends = {g, v, *v.operands}
    carrying = {g}
    done: dict[Value, Value] = {}
    for x in postorder([r for r in results if r is not None], stop=ends.__contains__):
        if x in ends:
            done[x] = x
            continue
        operands = [done[o] for o in x.operands]
        flags = [o in carrying for o in x.operands]
        done[x] = _guarded(x, operands, flags)
        if any(flags):
            carrying.add(x)
    return [None if r is None else done[r] for r in results]


def _guarded(x: Value, operands: list[Value], flags: list[bool]) -> Value:
    """``x`` on new operands, of which those flagged carry the cotangent."""
    if x.op is mul and flags[0] != flags[1]:
        return mulz(*(operands if flags[0] else operands[::-1]))
    if x.op is div and flags == [True, False]:
        return mulz(operands[0], 1 / operands[1])
    if x.op is lookup("linrec") and flags == [False, True]:
        factor = operands[0]
        return x.op(where(isfinite(factor), factor, like(factor, 0)), operands[1], **x.attrs)
    return rebuild(x, operands)
