"""Lanes: which steps of a plan a device with several streams may run side by side.

The sequence of the steps stays; each gets a lane, which runs its steps in that sequence, and waits for others. A list
assignment, with a clock for every lane: a step goes on in the lane in which what it needs was computed last, unless it
could start much earlier elsewhere. Waits are then exactly those of ``hazards`` that no other order implies.

Lanes are only used where they make the estimated time shorter. What they cannot do is run at once what fills the device
alone, so the estimate has steps of that kind wait for each other. Loops and branches are single steps; all that is
inside runs on the lane of the step. Where the host looks at numbers to know what comes next, that is lane 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from symc.codegen.plan.amounts import amount
from symc.codegen.plan.cells import NOMINAL, may_fail
from symc.codegen.plan.check_lanes import clocks
from symc.codegen.plan.gemm import is_product
from symc.codegen.plan.hazards import predecessors
from symc.codegen.plan.reuse import Temp, pack
from symc.ir.dim import Size
from symc.ir.plan import Plan, Step
from symc.ir.record import dataclass, replace
from symc.ir.size_values import evaluate
from symc.ir.types import TensorType
from symc.ir.value import Value

#: Estimates for a large GPU: nanoseconds of the smallest step and of a wait between lanes; bytes and operations in a
#: nanosecond; elements that fill it, of a product and of anything else. Only ratios matter, in order of magnitude.
FLOOR, WAIT = 2000.0, 1000.0
BANDWIDTH, RATE = 4000.0, 50_000.0
FULL_PRODUCT, FULL = 1 << 18, 1 << 20
#: A step goes to another lane only if it starts so much earlier there, and takes so long with what follows it; lanes
#: are used only if they gain so much in all, and this part of the time.
EARLIER, WORTH, GAIN = 2000.0, 4000.0, 0.02
#: How often a while loop is taken to run.
TURNS = 16


class _Nominal(dict):
    """The number that stands for every size that is not given."""

    def __missing__(self, name: str) -> int:
        return NOMINAL


def with_lanes(plan: Plan, lanes: int, sizes: Mapping[str, int] | None = None,
               fails: Callable[[Value], bool] = may_fail) -> Plan:
    """A finished plan with up to so many lanes. ``sizes``: what to estimate with; ``fails``: which values can raise.

    What lies in the same part of the arena stays in order, so a plan that was packed for one lane often has little to
    gain: ``make_plan(f, lanes=...)`` assigns lanes first and packs what may be alive together apart.
    """
    before = predecessors(plan, fails)
    chosen = assigned(plan.steps, before, lanes, sizes or {})
    return replace(plan, steps=_waiting(plan.steps, before, chosen))


def packed_in_lanes(plan: Plan, lanes: int, share: bool = True,
                    fails: Callable[[Value], bool] = may_fail) -> Plan | None:
    """A plan without an arena, with lanes and then with one; None where one lane is as good.

    The temps of each lane have a part of the arena of their own, packed as for a single lane; so memory is taken again
    only where the lanes are in order anyway.
    """
    laned = with_lanes(plan, lanes, fails=fails)
    if not any(s.lane for s in laned.steps):
        return None
    offsets: dict[str, Size] = {}
    size: Size = 0
    for group in _groups(laned):
        places, more = pack(group, share)
        offsets |= {n: size + at for n, at in places.items()}
        size = size + more
    laned = replace(laned, offsets={n: offsets[n] for n, b in plan.buffers.items() if b.kind == "temp"}, arena=size)
    return replace(laned, steps=_waiting(laned.steps, predecessors(laned, fails), [s.lane for s in laned.steps]))


# --- how long steps take ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Load:
    """Nanoseconds that a step takes, and whether it fills the device."""

    time: float
    full: bool


def load_of(step: Step, sizes: Mapping[str, int]) -> Load:
    """An estimate. A small product takes as long as one that fills the device: it runs on a part of it."""
    if step.kind == "control":
        bodies = [sum(load_of(s, sizes).time for s in b.steps) for b in step.bodies]
        if step.value.op.name == "cond":
            return Load(FLOOR + max(bodies), False)
        turns = TURNS if step.value.op.name == "while" else evaluate(step.value.attrs["length"], sizes)
        return Load(FLOOR + turns * sum(bodies), False)
    found = amount(step, sizes)
    product = is_product(step.value)
    # as many threads as the result of a product has elements, each with a whole sum; else one for every element
    arrays = list(step.value.types) if product else [
        *step.value.types, *(o.type for o in step.value.operands if isinstance(o.type, TensorType))]
    share = max(evaluate(t.size, sizes) for t in arrays) / (FULL_PRODUCT if product else FULL)
    busy = found.flops / RATE / (min(share, 1.0) if product and share else 1.0)
    return Load(FLOOR + max((found.read + found.written) / BANDWIDTH, busy), share >= 1.0)


# --- which lane -------------------------------------------------------------------------------------------------------


def assigned(steps: Sequence[Step], before: Sequence[Sequence[int]], lanes: int, sizes: Mapping[str, int]) -> list[int]:
    """The lane of every step; all 0 where more lanes gain nothing."""
    if lanes < 2 or len(steps) < 3:
        return [0] * len(steps)
    numbers = _Nominal(sizes)
    known: dict[tuple, Load] = {}
    loads = []
    for s in steps:
        key = (s.value, s.kind, s.reads if set(s.reads) & set(s.writes) else ())
        loads.append(known[key] if key in known else known.setdefault(key, load_of(s, numbers)))
    clock = _Clock(loads, before, lanes, [_asks(s) for s in steps])
    for at in range(len(steps)):
        clock.put(at)
    alone = sum(x.time for x in loads)
    return clock.lane if alone - max(clock.finish) >= max(WORTH, GAIN * alone) else [0] * len(steps)


def _asks(step: Step) -> bool:
    """True if the host has to know what is computed, to go on."""
    return step.kind == "control" and (
        step.value.op.name in ("while", "cond") or any(_asks(s) for b in step.bodies for s in b.steps))


class _Clock:
    """Times at which every step starts and ends if each lane does one thing at a time."""

    def __init__(self, loads: Sequence[Load], before: Sequence[Sequence[int]], lanes: int, asking: Sequence[bool]):
        self.loads, self.before, self.asking = loads, before, asking
        self.chain = _chains(loads, before)
        self.lane: list[int] = []
        self.finish: list[float] = []
        self.free = [0.0] * lanes  # when each lane has done all it has
        self.last = [-1] * lanes  # the last step of each lane
        self.used = 1
        self.filled = 0.0  # when the last step is over that fills the device

    def start(self, at: int, lane: int) -> float:
        ready = [self.finish[b] + (WAIT if self.lane[b] != lane else 0.0) for b in self.before[at]]
        return max([self.free[lane], *ready, self.filled if self.loads[at].full else 0.0])

    def home(self, at: int) -> int:
        """The lane to go on in: one that ends with something that the step needs, best that which ends last."""
        ends = [b for b in self.before[at] if self.last[self.lane[b]] == b]
        found = ends or self.before[at]
        return self.lane[max(found, key=lambda b: (self.finish[b], -b))] if found else 0

    def put(self, at: int) -> None:
        lane = 0 if self.asking[at] else self.home(at)
        begin = self.start(at, lane)
        if self.chain[at] >= WORTH and not self.asking[at]:
            others = range(min(self.used + 1, len(self.free)))
            first, other = min((self.start(at, k), k) for k in others)
            if begin - first >= EARLIER:
                lane, begin = other, first
        self.used = max(self.used, lane + 1)
        self.lane.append(lane)
        self.finish.append(begin + self.loads[at].time)
        self.free[lane], self.last[lane] = self.finish[at], at
        if self.loads[at].full:
            self.filled = self.finish[at]


def _chains(loads: Sequence[Load], before: Sequence[Sequence[int]]) -> list[float]:
    """Time of each step with the longest chain of those after it that need nothing else that it did not."""
    out = [x.time for x in loads]
    for at in range(len(loads) - 1, -1, -1):
        b = before[at][-1] if before[at] else -1
        if b >= 0 and set(before[at][:-1]) <= set(before[b]):
            out[b] = max(out[b], loads[b].time + out[at])
    return out


# --- waits ------------------------------------------------------------------------------------------------------------


def _waiting(steps: Sequence[Step], before: Sequence[Sequence[int]], lanes: Sequence[int]) -> tuple[Step, ...]:
    """The steps on their lanes, each waiting for no more than it must."""
    done: list[dict[int, int]] = []  # by step: the last step of each lane that has finished when it has
    now: dict[int, dict[int, int]] = {}
    out = []
    for at, (step, lane) in enumerate(zip(steps, lanes, strict=True)):
        clock = dict(now.get(lane, {}))
        waits = []
        for b in reversed(before[at]):  # what comes before another one is implied by it
            if clock.get(lanes[b], -1) < b:
                waits.append(b)
                for other, last in done[b].items():
                    clock[other] = max(clock.get(other, -1), last)
        clock[lane] = at
        done.append(clock)
        now[lane] = clock
        out.append(replace(step, lane=lane, waits=tuple(reversed(waits))))
    return tuple(out)


# --- memory -----------------------------------------------------------------------------------------------------------


def _groups(plan: Plan) -> list[list[Temp]]:
    """The temps by the lane that writes them first. A temp is needed until a step of this lane comes after all uses of
    it: what starts there finds the bytes free, whatever the other lanes are at."""
    used: dict[str, dict[int, int]] = {}  # by temp and lane: the last step that uses it
    first: dict[str, int] = {}
    mine: dict[int, list[int]] = {}
    for at, step in enumerate(plan.steps):
        mine.setdefault(step.lane, []).append(at)
        for n in (*step.reads, *step.writes, *((step.scratch,) if step.scratch is not None else ())):
            if plan.buffers[n].kind == "temp":
                first.setdefault(n, at)
                used.setdefault(n, {})[step.lane] = at
    known = clocks(plan)
    groups: dict[int, list[Temp]] = {lane: [] for lane in sorted(mine)}
    for n, at in first.items():
        lane = plan.steps[at].lane
        last = _needed(known, mine[lane], lane, used[n])
        groups[lane].append(Temp(n, plan.buffers[n].nbytes, at, last))
    return list(groups.values())


def _needed(known: Sequence[Mapping[int, int]], mine: Sequence[int], lane: int, uses: Mapping[int, int]) -> int:
    """The last step of a lane that is not known to come after these uses, the last of each lane."""
    low, high = 0, len(mine)  # what a lane knows grows: look for the first of its steps that knows of all
    while low < high:
        middle = (low + high) // 2
        clock = {**known[mine[middle]], lane: mine[middle] - 1}
        if all(clock.get(other, -1) >= use for other, use in uses.items()):
            high = middle
        else:
            low = middle + 1
    return mine[low - 1]
