"""Prove happens-before: what one lane writes and another uses is ordered by waits, and what else has an order."""

from __future__ import annotations

from collections.abc import Callable

from symc.codegen.plan.cells import may_fail
from symc.codegen.plan.hazards import sequences, uses
from symc.codegen.plan.overlap import overlaps
from symc.errors import PlanError
from symc.ir.plan import Plan
from symc.ir.value import Value


def check_lanes(plan: Plan, fails: Callable[[Value], bool] = may_fail) -> None:
    """Raise PlanError for two uses of one memory, one of them a write, in different lanes without a wait between; and
    where effects, or a step that may fail and one that writes over a state, are in no order."""
    for at, step in enumerate(plan.steps):
        for w in step.waits:
            if not 0 <= w < at:
                raise PlanError(f"plan @{plan.function.name}: step {at} waits for step {w}, not an earlier one")
    if len({s.lane for s in plan.steps}) < 2:
        return
    known = clocks(plan)
    shared = overlaps(plan)
    used: dict[str, list[tuple[int, bool]]] = {}  # by buffer: the steps that used it, and whether they wrote
    for at, step in enumerate(plan.steps):
        mine = uses(step)
        for name, writes in mine:
            for other in sorted(shared[name]):
                for before, wrote in used.get(other, ()):
                    if (writes or wrote) and not _ordered(plan, known, before, at):
                        raise PlanError(f"{_unordered(plan, before, at, f'uses %{name}')}, which uses %{other}")
        for name, writes in mine:
            for other in shared[name] if writes else ():
                if shared[other] <= shared[name]:  # what follows this step follows those uses, which it follows
                    used.pop(other, None)
            used.setdefault(name, []).append((at, writes))
    for before, at in sequences(plan, fails):
        if not _ordered(plan, known, before, at):
            raise PlanError(f"{_unordered(plan, before, at, 'runs')}, which must come first")


def _ordered(plan: Plan, known: list[dict[int, int]], before: int, at: int) -> bool:
    return known[at].get(plan.steps[before].lane, -1) >= before


def _unordered(plan: Plan, before: int, at: int, does: str) -> str:
    return (f"plan @{plan.function.name}: step {at} (lane {plan.steps[at].lane}) {does} without waiting for "
            f"step {before} (lane {plan.steps[before].lane})")


def clocks(plan: Plan) -> list[dict[int, int]]:
    """For every step and lane: the last step of the lane known to have finished before the step starts."""
    out: list[dict[int, int]] = []
    now: dict[int, dict[int, int]] = {}
    for at, step in enumerate(plan.steps):
        clock = dict(now.get(step.lane, {}))
        for w in step.waits:
            for lane, done in {**out[w], plan.steps[w].lane: w}.items():
                clock[lane] = max(clock.get(lane, -1), done)
        out.append(clock)
        now[step.lane] = {**clock, step.lane: at}
    return out
