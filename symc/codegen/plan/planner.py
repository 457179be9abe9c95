"""Planning: from a Function to a Plan, which says when every value is computed and where it lies.

``order`` (when) -> ``bufferize`` (over what) -> ``assign_arena`` (where). ``check_plan`` proves the outcome. Loops and
branches are steps with plans of their own inside (``nested``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symc.codegen.plan.bufferize import bufferize
from symc.codegen.plan.cells import Nest, Work, may_fail, work_of
from symc.codegen.plan.inplace import Pairs, inplace_pairs
from symc.codegen.plan.nested import nest
from symc.codegen.plan.order import order
from symc.codegen.plan.reuse import assign_arena
from symc.ir.function import Function
from symc.ir.garbage import no_collections
from symc.ir.phases import phase
from symc.ir.plan import Plan
from symc.ir.record import dataclass, field
from symc.ir.value import Value


@phase("plan")
@no_collections()
def make_plan(f: Function, donated: frozenset[int] = frozenset(), reuse: bool = True,
              inplace: Callable[[Value], Pairs] = inplace_pairs, fails: Callable[[Value], bool] = may_fail,
              lanes: int = 1, sections: bool = False) -> Plan:
    """The plan of a function.

    ``donated``: indices of the inputs whose arrays may be overwritten. ``reuse=False``: every value has memory of its
    own, for comparison. ``inplace``: which operand a result may be written over. ``fails``: which values can raise
    while they are computed; no state is written over before the last of them. ``lanes``: how many streams the device
    has; steps that may run side by side then share no memory. ``sections``: threads may run steps at the same time.
    """
    planner = Planner(reuse, inplace, fails)
    w = planner.work(f, donated)
    sequence = order(w)
    if lanes > 1:
        from symc.codegen.plan.lanes import packed_in_lanes

        laned = packed_in_lanes(bufferize(w, sequence, reuse, hosted=False), lanes, reuse, fails)
        if laned is not None:
            return laned
    plan = planner.finish(w, sequence)
    if sections and len(plan.steps) > 1:
        from symc.codegen.plan.sections import with_sections

        return with_sections(plan, lambda: bufferize(w, sequence, reuse, hosted=False), fails)
    return plan


@dataclass
class Planner:
    """The parts of ``make_plan``, for who chooses the sequence of steps."""

    reuse: bool = True
    inplace: Callable[[Value], Pairs] = inplace_pairs
    fails: Callable[[Value], bool] = may_fail
    nests: dict[tuple, Nest] = field(default_factory=dict)  # equal loops are planned once

    def work(self, f: Function, donated: frozenset[int]) -> Work:
        """The steps of a function."""
        return work_of(f, self.inplace, self.fails, donated, lambda v: self.nest(v, f, 0))

    def nest(self, v: Value, f: Function, depth: int) -> Nest:
        key = (v.op, v.attrs, v.regions, depth)
        if key not in self.nests:
            self.nests[key] = nest(v, f, depth, lambda body: self.body(body, depth + 1))
        return self.nests[key]

    def body(self, f: Function, depth: int) -> Plan:
        """The plan of a region. A loop that fails leaves nothing that anyone sees: its states may be written at once.
        """
        w = work_of(f, self.inplace, lambda v: False, nest=lambda v: self.nest(v, f, depth), depth=depth)
        return self.finish(w, order(w))

    def finish(self, w: Work, sequence: Sequence[int]) -> Plan:
        """The plan that runs the steps in this sequence."""
        return assign_arena(bufferize(w, sequence, self.reuse), self.reuse)
