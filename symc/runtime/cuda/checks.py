"""Assertions on a device: a kernel looks at the condition and raises a flag, which who waits for the results sees.

The message says which assertion it was and not where it failed, or with which values: that is the CPU's to say.
"""

from __future__ import annotations

from collections.abc import Sequence

from symc.codegen.kernel.source import Form
from symc.errors import AssertError
from symc.ir.ops.arithmetic import sub
from symc.ir.ops.cast import cast
from symc.ir.ops.effect import after, assert_op
from symc.ir.ops.elementwise import like
from symc.ir.ops.kernel import check_index
from symc.ir.plan import Plan
from symc.ir.traverse import close_over
from symc.ir.types import DTYPES
from symc.ir.value import Value, fresh_input
from symc.runtime.cuda.actions import CopyAction, Failure
from symc.runtime.cuda.lowering import DeviceLowering, Loaded


def is_check(v: Value) -> bool:
    """True if an op is its first operand, after the others or if a condition holds."""
    return v.op in (assert_op, after)


def form_of(v: Value) -> Form | None:
    """The kernel that looks at a condition: 1 minus it is an index into one element where it holds."""
    if v.op is after:
        return None
    condition = fresh_input(v.operands[1].type)
    number = cast(condition, dtype=DTYPES["i64"])
    return close_over([condition], [check_index(sub(like(number, 1), number), size=1)]), ()


def lower_check(lowering: DeviceLowering, plan: Plan, v: Value, reads: Sequence[int], writes: Sequence[int],
                kernel: Loaded | None) -> None:
    """Look at the condition, and hand on the array."""
    if kernel is not None:
        elements = lowering.number(v.operands[1].type.size)
        what = f"assert_: {v.attrs['message'] or 'the condition does not hold'}"
        failure = Failure(tuple(plan.function.locations(v)), AssertError, what, "the CPU says where, with the values")
        made = [(lowering.memory(8 * elements), 8 * elements)]
        lowering.kernel(plan, v, kernel, [(reads[1], elements)], made, failure)
    nbytes = lowering.number(v.type.nbytes)
    if nbytes and writes[0] != reads[0]:
        lowering.do(CopyAction(writes[0], reads[0], nbytes, lowering.lane))
