"""Prove happens-before: what one lane writes and another uses is ordered by waits."""

from __future__ import annotations

from symc.codegen.compare import at_least
from symc.errors import PlanError
from symc.ir.plan import Plan


def check_lanes(plan: Plan) -> None:
    """Raise PlanError for two uses of one memory, one of them a write, in different lanes without a wait between."""
    for at, step in enumerate(plan.steps):
        for w in step.waits:
            if not 0 <= w < at:
                raise PlanError(f"plan @{plan.function.name}: step {at} waits for step {w}, not an earlier one")
    if len({s.lane for s in plan.steps}) < 2:
        return
    clocks = _clocks(plan)
    uses: list[tuple[int, str, bool]] = []
    for at, step in enumerate(plan.steps):
        mine = [(n, False) for n in step.reads] + [(n, True) for n in step.writes]
        mine += [(step.scratch, True)] if step.scratch is not None else []
        for name, writes in mine:
            for before, other, wrote in uses:
                ordered = clocks[at].get(plan.steps[before].lane, -1) >= before
                if (writes or wrote) and not ordered and _overlap(plan, name, other):
                    raise PlanError(f"plan @{plan.function.name}: step {at} (lane {step.lane}) uses %{name} without "
                                    f"waiting for step {before} (lane {plan.steps[before].lane}), which uses %{other}")
        uses += [(at, n, w) for n, w in mine]


def _clocks(plan: Plan) -> list[dict[int, int]]:
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


def _overlap(plan: Plan, a: str, b: str) -> bool:
    if a == b:
        return True
    if a not in plan.offsets or b not in plan.offsets:
        return False
    first, second = plan.offsets[a], plan.offsets[b]
    apart = at_least(second, first + plan.buffers[a].nbytes) or at_least(first, second + plan.buffers[b].nbytes)
    return not apart
