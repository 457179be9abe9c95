"""Sections of a plan as code of the native interpreter: steps that threads run at the same time, where that pays.

The code of the sections stands in the sequence of the plan; one thread runs through it. Each has workspaces of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from symc.codegen.plan.durations import Durations, durations
from symc.ir.dim import Size
from symc.ir.plan import Plan
from symc.ir.size_extremes import maximum
from symc.ir.size_values import names
from symc.runtime.cpu.arithmetic import Test, both, less
from symc.runtime.cpu.calls import ReferenceStep
from symc.runtime.cpu.executor import Label
from symc.runtime.cpu.lowering import Lowering, Slots
from symc.runtime.cpu.native.instructions import Op


def sections(lowering: Lowering, plan: Plan, group: Sequence[int], slots: Slots) -> None:
    """The code of a group of sections. Not at the same time: what runs in Python, or looks for signals by itself."""
    code, targets, after = lowering.code, [Label() for _ in group[1:]], Label()
    python, polls = len(lowering.steps), lowering.polls
    lowering.polls = False
    decided = code.sections(targets, after)
    for target, begin, end in zip(targets, group, group[1:], strict=False):
        code.place(target)
        taken = len(lowering.workspaces)
        for at in range(begin, end):
            lowering.one(plan, at, slots)
        lowering.reserved = _most(lowering.reserved, lowering.workspaces[taken:])
        code.emit(Op.JOIN)
    code.place(after)
    lowering.reserved = 0
    steps = lowering.steps[python:]
    if not lowering.polls and not any(isinstance(s, ReferenceStep) and not s.rare for s in steps):
        code.pay(decided, pays(durations(plan, group), frozenset(code.sizes.names)))
    lowering.polls = lowering.polls or polls


def _most(least: Size, sizes: Sequence[Size]) -> Size:
    """The largest of sizes of which each is at least the first."""
    for n in sizes:
        least = maximum(least, n)
    return least


def pays(found: Durations, known: frozenset[str]) -> Test:
    """1 where sections at the same time take less time. ``known``: the sizes that are known of a call."""
    if not all(names(t) <= known for t in (found.alone, found.together)):
        return 0
    return both(less(found.together * 5, found.alone * 4), less(found.together + found.least_gain, found.alone))
