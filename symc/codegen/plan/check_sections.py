"""Prove that sections may run at the same time: what one writes no other uses, and they are in no order."""

from __future__ import annotations

from collections.abc import Callable

from symc.codegen.plan.cells import may_fail
from symc.codegen.plan.hazards import sequences, uses
from symc.codegen.plan.overlap import overlaps
from symc.errors import PlanError
from symc.ir.plan import Plan
from symc.ir.value import Value


def check_sections(plan: Plan, fails: Callable[[Value], bool] = may_fail) -> None:
    """Raise PlanError for groups that are no stretches of steps; for two uses of one memory by two sections of a group,
    one of them a write; and where effects, or a step that may fail and one that writes over a state, are in two."""
    if not plan.sections:
        return
    _check_bounds(plan)
    section = {at: (g, k) for g, group in enumerate(plan.sections) for k in range(len(group) - 1)
               for at in range(group[k], group[k + 1])}
    shared = overlaps(plan)
    for group in plan.sections:
        used: dict[str, list[tuple[int, bool]]] = {}
        for at in range(group[0], group[-1]):
            for name, writes in uses(plan.steps[at]):
                for other in sorted(shared[name]):
                    for before, wrote in used.get(other, ()):
                        if (writes or wrote) and section[before] != section[at]:
                            raise _bug(plan, before, at, f"%{other}" if other == name else f"%{other} and %{name}")
            for name, writes in uses(plan.steps[at]):
                used.setdefault(name, []).append((at, writes))
    for before, at in sequences(plan, fails):
        if before in section and at in section and section[before][0] == section[at][0] and (
                section[before] != section[at]):
            raise PlanError(f"plan @{plan.function.name}: step {before} must come before step {at}, but they are in "
                            "sections that run at the same time")


def _check_bounds(plan: Plan) -> None:
    last = 0
    for group in plan.sections:
        if len(group) < 3 or group[0] < last or list(group) != sorted(set(group)) or group[-1] > len(plan.steps):
            raise PlanError(f"plan @{plan.function.name}: {group} are no sections of its {len(plan.steps)} steps")
        last = group[-1]


def _bug(plan: Plan, before: int, at: int, what: str) -> PlanError:
    return PlanError(f"plan @{plan.function.name}: steps {before} and {at} use {what}, one writes, and they are in "
                     "sections that run at the same time")
