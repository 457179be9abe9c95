"""Planning: from a Function to a Plan, which says when every value is computed and where it lies.

``order`` (when) -> ``bufferize`` (over what) -> ``assign_arena`` (where). ``check_plan`` proves the outcome.
"""

from __future__ import annotations

from collections.abc import Callable

from symc.codegen.bufferize import bufferize
from symc.codegen.cells import may_fail, work_of
from symc.codegen.check_plan import check_plan
from symc.codegen.inplace import Pairs, inplace_pairs
from symc.codegen.memory import MemoryReport, memory
from symc.codegen.order import order
from symc.codegen.plan_text import print_plan
from symc.codegen.reuse import assign_arena
from symc.ir.function import Function
from symc.ir.plan import Plan
from symc.ir.value import Value

__all__ = ["MemoryReport", "check_plan", "make_plan", "memory", "print_plan"]


def make_plan(f: Function, donated: frozenset[int] = frozenset(), reuse: bool = True,
              inplace: Callable[[Value], Pairs] = inplace_pairs, fails: Callable[[Value], bool] = may_fail) -> Plan:
    """The plan of a function.

    ``donated``: indices of the inputs whose arrays may be overwritten. ``reuse=False``: every value has memory of its
    own, for comparison. ``inplace``: which operand a result may be written over. ``fails``: which values can raise
    while they are computed; no state is written over before the last of them.
    """
    w = work_of(f, inplace, fails, donated)
    return assign_arena(bufferize(w, order(w), reuse), reuse)
