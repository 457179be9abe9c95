"""Sections: which steps of a plan threads may run at the same time.

A group is a stretch of the sequence of steps in which some do not depend on others: sections are what is connected in
it, by ``hazards``. Groups are chosen that save most time at nominal sizes, and in a group the steps of a section are
brought together; whether a group pays at the sizes of a call is decided by the call (``durations``).

What threads use at the same time shares no memory. So the temps of a section are packed by themselves, into memory
that is theirs while the group runs. A plan that would take much more memory, or is not proved, stays as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from symc.codegen.plan.bufferize import host_in_results, spans
from symc.codegen.plan.cells import nominal
from symc.codegen.plan.check_sections import check_sections
from symc.codegen.plan.durations import LAUNCH, divided, duration
from symc.codegen.plan.hazards import predecessors
from symc.codegen.plan.reuse import Temp, pack
from symc.errors import PlanError
from symc.ir.dim import Size
from symc.ir.op import in_python, is_builtin
from symc.ir.ops.effect import has_effect
from symc.ir.ops.loop import is_long
from symc.ir.plan import Plan, Step
from symc.ir.record import dataclass, replace
from symc.ir.traverse import every_value
from symc.ir.value import Value

#: Over how many steps a group extends at most, and how many stretches are looked at.
LONGEST, STRETCHES = 64, 100_000
#: How many sections a group has at most; fewer where more take too much memory.
MOST = (16, 4, 2)
#: How many times as much memory a plan may take with sections.
MEMORY = 1.5
#: Picoseconds that a group saves at least, and the part of its time.
SAVED, PART = LAUNCH, 0.2
#: Up to how many a step is short: no group begins with it.
SHORT = 2_000_000


def with_sections(alternative: Plan, open_: Callable[[], Plan], fails: Callable[[Value], bool]) -> Plan:
    """A plan with sections, made of one without an arena; else the ``alternative``, that plan with one."""
    times = [Times.of(s) for s in alternative.steps]
    if sum(t.alone for t in times) < 2 * SAVED or sum(not t.barrier and t.one >= SHORT for t in times) < 2:
        return alternative
    plan = open_()
    first = Draft(plan, times, predecessors(plan, fails))
    drafts = sorted([first, first.late()], key=lambda d: -d.saved)
    for draft in drafts if drafts[0].saved else ():
        for most in MOST:
            grouped = draft.grouped(most)
            packed = _packed(host_in_results(grouped, _spans(grouped)))
            if _bytes(packed) <= MEMORY * _bytes(alternative) and _is_proved(packed, fails):
                return packed
    return alternative


def _bytes(plan: Plan) -> int:
    return sum(nominal(b.nbytes) for b in plan.buffers.values() if b.kind != "temp") + nominal(plan.arena)


def _is_proved(plan: Plan, fails: Callable[[Value], bool]) -> bool:
    """False for sizes of which it is not known that they lie apart."""
    try:
        check_sections(plan, fails)
    except PlanError:
        return False
    return True


# --- which steps ------------------------------------------------------------------------------------------------------


class Draft:
    """A plan without an arena, with times of its steps and those that come before each; the stretches of steps that are
    groups, and how many picoseconds they save."""

    def __init__(self, plan: Plan, times: Sequence[Times], before: Sequence[Sequence[int]]):
        self.plan, self.times, self.before = plan, times, before
        self.saved, self.stretches = _stretches(times, before)

    def late(self) -> Draft:
        """With short steps as late as may be: what joins long ones is not between these."""
        order: list[int] = []
        done: set[int] = set()
        for last in [k for k, t in enumerate(self.times) if t.one >= SHORT] + list(range(len(self.times))):
            waiting, needed = [last], set[int]()
            while waiting:
                at = waiting.pop()
                if at not in done and at not in needed:
                    needed.add(at)
                    waiting += self.before[at]
            order += sorted(needed)
            done |= needed
        rank = {at: k for k, at in enumerate(order)}
        steps = tuple(self.plan.steps[at] for at in order)
        before = [sorted(rank[b] for b in self.before[at]) for at in order]
        return Draft(replace(self.plan, steps=steps), [self.times[at] for at in order], before)

    def grouped(self, most: int) -> Plan:
        """The plan with groups, their steps in sequence by section."""
        sequence: list[int] = []
        groups = []
        for begin, end in self.stretches:
            sequence += range(len(sequence), begin)
            bounds = [begin]
            for part in _parts(_connected(begin, end, self.before), self.times, most):
                sequence += part
                bounds.append(bounds[-1] + len(part))
            groups.append(tuple(bounds))
        sequence += range(len(sequence), len(self.plan.steps))
        return replace(self.plan, steps=tuple(self.plan.steps[k] for k in sequence), sections=tuple(groups))


@dataclass(frozen=True)
class Times:
    """Durations of a step at nominal sizes: by one thread, and by two if they may divide it. ``barrier``: it is in no
    group."""

    one: int
    alone: int
    barrier: bool

    @staticmethod
    def of(step: Step) -> Times:
        barrier = is_barrier(step)
        one = duration(step)
        return Times(nominal(one), nominal(divided(step, one)), barrier)


def is_barrier(step: Step) -> bool:
    """True for a step that must run alone: it has effects, runs in Python, looks for signals by itself, or calls a
    function of a user, which may know no threads."""
    inside = (v for r in step.value.regions for v in every_value(r))
    return any(has_effect(v) or in_python(v) or is_long(v) or not is_builtin(v.op) for v in (step.value, *inside))


def _stretches(times: Sequence[Times], before: Sequence[Sequence[int]]) -> tuple[float, list[tuple[int, int]]]:
    """The picoseconds that groups save, and where those begin and end that save most."""
    n = len(times)
    longest = max(4, min(LONGEST, STRETCHES // max(n, 1)))
    best: list[tuple[float, int, int]] = [(0.0, n, n)] * (n + 1)  # from a step on: saved, the next group
    for begin in range(n - 1, -1, -1):
        best[begin] = best[begin + 1]
        if times[begin].barrier or times[begin].one < SHORT:  # it may as well come before
            continue
        growing = _Growing(begin, times, before)
        for at in range(begin, min(n, begin + longest)):
            if times[at].barrier:
                break
            growing.add(at)
            saved = growing.saved()
            if saved > 0 and saved + best[at + 1][0] > best[begin][0]:
                best[begin] = (saved + best[at + 1][0], begin, at + 1)
    found, at = [], 0
    while best[at][1] < n:
        found.append(best[at][1:])
        at = best[at][2]
    return best[0][0], found


class _Growing:
    """A stretch of steps that grows at its end, and what is connected in it."""

    def __init__(self, begin: int, times: Sequence[Times], before: Sequence[Sequence[int]]):
        self.begin, self.times, self.before = begin, times, before
        self.parent: list[int] = []
        self.time: list[int] = []
        self.alone = self.total = self.longest = 0

    def root(self, k: int) -> int:
        while self.parent[k] != k:
            self.parent[k] = k = self.parent[self.parent[k]]
        return k

    def add(self, at: int) -> None:
        k = at - self.begin
        self.parent.append(k)
        self.time.append(self.times[at].one)
        for b in self.before[at]:
            if b >= self.begin and (other := self.root(b - self.begin)) != k:
                self.parent[other] = k
                self.time[k] += self.time[other]
        self.alone += self.times[at].alone
        self.total += self.times[at].one
        self.longest = max(self.longest, self.time[k])

    def saved(self) -> float:
        """Picoseconds that are saved, 0 if they are too few."""
        saved = self.alone - max(self.longest, self.total // 2) - LAUNCH
        return saved if saved >= max(SAVED, PART * self.alone) else 0


def _connected(begin: int, end: int, before: Sequence[Sequence[int]]) -> list[list[int]]:
    """The steps of a stretch by what is connected, in the sequence of the first of each."""
    part: dict[int, list[int]] = {}
    for at in range(begin, end):
        mine = [at]
        for other in {id(part[b]): part[b] for b in before[at] if b >= begin}.values():
            mine = [*other, *mine]
        mine.sort()
        for k in mine:
            part[k] = mine
    found = {id(p): p for _, p in sorted(part.items())}
    return list(found.values())


def _parts(connected: list[list[int]], times: Sequence[Times], most: int) -> list[list[int]]:
    """As many sections as there may be: what is connected, the shortest together."""
    def time(part: list[int]) -> int:
        return sum(times[k].one for k in part)

    while len(connected) > most:
        first, second = sorted(sorted(connected, key=time)[:2])
        connected = [p for p in connected if p not in (first, second)]
        connected.append(sorted([*first, *second]))
    return sorted(connected)


# --- memory -----------------------------------------------------------------------------------------------------------


def _spans(plan: Plan) -> dict[str, tuple[int, int]]:
    """First and last position at which each buffer is used, where all of a group is one position."""
    return {n: _widened(plan, *span) for n, span in spans(plan.steps).items()}


def _widened(plan: Plan, first: int, last: int) -> tuple[int, int]:
    for group in plan.sections:
        if group[0] <= first < group[-1]:
            first = group[0]
        if group[0] <= last < group[-1]:
            last = group[-1] - 1
    return first, last


def _packed(plan: Plan) -> Plan:
    """The plan with an arena. The temps that one section alone uses are one temp of the plan."""
    span = spans(plan.steps)
    home: dict[str, tuple[int, int]] = {}  # the section of temps
    for group in plan.sections:
        for part in itertools.pairwise(group):
            home |= {n: part for n, (first, last) in span.items() if part[0] <= first and last < part[1]}
    temps: list[Temp] = []
    own: dict[tuple[int, int], list[Temp]] = {}
    for n, b in plan.buffers.items():
        if b.kind == "temp" and n in home:
            own.setdefault(home[n], []).append(Temp(n, b.nbytes, *span[n]))
        elif b.kind == "temp":
            temps.append(Temp(n, b.nbytes, *_widened(plan, *span[n])))
    inner: dict[str, tuple[Mapping[str, Size], Size]] = {}
    for part, mine in own.items():
        name = f"section {part[0]}"
        inner[name] = pack(mine)
        temps.append(Temp(name, inner[name][1], *_widened(plan, *part)))
    places, arena = pack(temps)
    for name, (offsets, _) in inner.items():
        places |= {n: places[name] + at for n, at in offsets.items()}
    return replace(plan, offsets={n: places[n] for n, b in plan.buffers.items() if b.kind == "temp"}, arena=arena)
