"""Logic: conditions that are known, and comparisons of differences. Both exact: there is nothing to round.

What is left of two conditions in one kernel is its compiler's: to LLVM and NVRTC they are bits.
"""

from __future__ import annotations

from symc.ir.op import splat
from symc.ir.ops.compare import gt, lt
from symc.ir.ops.logic import and_, or_
from symc.ir.text import splat_of
from symc.ir.value import Value, make
from symc.opt.engine.declare import rewrite
from symc.opt.engine.examples import leaves
from symc.opt.engine.terms import is_number


@rewrite(
    "and",
    "or",
    exact=True,
    kinds="b",
    needs=["#"],
    equation="c & true -> c; c & false -> false; c | true -> true; c | false -> c",
    examples=lambda: [op(c, splat(k, c.type)) for c in leaves(1, {0: "bool"}) for op in (and_, or_) for k in (0, 1)],
    written=lambda sc: (lambda c: [c & sc.ones(3, bool), c | sc.zeros(3, bool)])(sc.input("c", "bool", shape=(3,))),
)
def condition_and_number(v: Value) -> Value | None:
    """A condition that is known."""
    for c, other in (v.operands, v.operands[::-1]):
        number = splat_of(other)
        if number is not None:
            return c if bool(number) == (v.op is and_) else other
    return None



@rewrite(
    "lt",
    "gt",
    exact=True,
    kinds="f",
    needs=["#", "sub"],
    equation="x - y < 0 -> x < y; x - y > 0 -> x > y",
    examples=lambda: [make(op, ((d := x - y), splat(0, d.type))) for op in (lt, gt) for x, y in [leaves(2, {}, (3,))]],
)
def compared_difference(v: Value) -> Value | None:
    """The sign of a difference is exact, also where it overflows or is denormal; equal infinities are in no order."""
    d, zero = v.operands
    if not is_number(zero, 0):
        return None
    if d.op.name == "sub":
        return make(v.op, d.operands)
    number = splat_of(d.operands[1]) if d.op.name == "add" else None
    return None if number is None else make(v.op, (d.operands[0], splat((-number)[()], d.type)))
