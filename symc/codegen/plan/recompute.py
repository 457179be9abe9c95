"""Choice of values to compute a second time so that a sequence of steps holds fewer bytes. Integers only.

A sequence is *cut* at the step where most bytes are held. What was computed before the cut and is read after it is
either kept, or computed again when it is first needed after the cut, from what is kept; once computed again it stays
until its last use. So a choice is a set of cells to keep, and every step runs at most twice.

Three numbers make such a set (``Choice``), and the search is over them:

* ``dear``: steps that cost more than this for a byte that they save are not computed again.
* ``segment``: the steps before the cut are divided so that about this many bytes are computed again at a time; at each
  division, a place within reach that few bytes cross, what crosses is kept (Chen et al. 2016: for a chain of n steps
  segments of sqrt(n) hold 2 sqrt(n) values). What was made after the last division is kept too: it is needed first.
* ``until``: only steps before this position are computed again. They are the ones whose results are held longest.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from symc.codegen.plan.cells import Work, link
from symc.codegen.plan.order import curve, topological, update_edges
from symc.codegen.plan.overwrite import Placer
from symc.ir.ops.effect import has_effect
from symc.ir.record import dataclass, field

ALL = math.inf


class Choice(NamedTuple):
    """Choice of what is computed again: see the head of this file."""

    segment: float = ALL
    dear: float = ALL
    until: float = ALL


@dataclass(frozen=True)
class Emit:
    """Step ``step`` of the old sequence in the new one: cells read and written, and which results are written at all.

    ``again``: it runs for the second time.
    """

    step: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    results: tuple[int, ...]
    again: bool = False


@dataclass
class Draft:
    """A new sequence. Cells below ``len(w.types)`` are the old ones, the others second computations of ``origin``."""

    emits: list[Emit]
    origin: list[int]
    price: float  # nanoseconds more than the old sequence
    most: int = 0  # bytes live at its fullest step


@dataclass
class Cut:
    """A sequence of the steps of ``w``, cut at its fullest step.

    ``numbers``/``scratch``: bytes of cells and of steps. ``costs``: of steps. ``partial``: steps that can leave out
    results.
    """

    w: Work
    sequence: Sequence[int]
    numbers: list[int]
    scratch: list[int]
    costs: list[float]
    partial: Collection[int]
    most: int = 0
    at: int = 0
    early: dict[int, int] = field(default_factory=dict)  # step -> position, up to the cut
    held: dict[int, list[int]] = field(default_factory=dict)  # step -> its cells that are held over the cut
    dear: dict[int, float] = field(default_factory=dict)  # step -> what a byte of them costs to compute again

    def __post_init__(self) -> None:
        levels = curve(self.w, self.sequence, Placer(self.w), self.numbers, self.scratch)
        self.most = max(levels, default=0)
        self.at = levels.index(self.most) if levels else 0
        self.early = {s: k for k, s in enumerate(self.sequence[: self.at + 1])}
        self.later = list(self.sequence[self.at + 1 :])
        self.fixed = {*self.w.leaves, *self.w.results}
        wanted = {c for s in self.later for c in self.w.reads[s]}
        for s in self.early:
            cells = [c for c in self.w.writes[s] if c in wanted and c not in self.fixed]
            if cells:
                self.held[s] = cells
        self._weigh()

    def _weigh(self) -> None:
        """Cost of a step with everything that must run for it and is not held."""
        whole: dict[int, float] = {}
        for s in self.early:
            makers = {self.w.maker[c] for c in self.w.reads[s] if c not in self.fixed and self._is_early(c)}
            whole[s] = min(1e30, self.costs[s] + sum(whole[m] for m in makers if m not in self.held))
            if s in self.held:
                size = sum(self.numbers[c] for c in self.held[s])
                self.dear[s] = whole[s] / size if size and self.can(s) else ALL

    def can(self, s: int) -> bool:
        """True if step ``s`` can run twice."""
        w = self.w
        return bool(w.reads[s]) and s not in w.copies and not has_effect(w.values[s])

    def _is_early(self, c: int) -> bool:
        return self.w.maker[c] in self.early

    # --- from a choice to what is kept --------------------------------------------------------------------------------

    def kept(self, choice: Choice) -> set[int]:
        """The cells to keep over the cut."""
        keep = {c for s, cells in self.held.items() for c in cells
                if self.dear[s] > choice.dear or self.dear[s] == ALL or self.early[s] >= choice.until}
        again, wanted = self._closure(keep)
        ends: dict[int, int] = {}  # cell -> the last position that reads it when it is computed again
        for s in again:
            for c in self.w.reads[s]:
                if c not in keep and c not in self.fixed and self._is_early(c):
                    ends[c] = max(ends.get(c, -1), self.early[s])
        walls = self._divide(sorted(self.early[s] for s in again), wanted, ends, choice.segment)
        last = walls[-1] if walls else -1
        if choice.until == ALL:  # what was made last is needed first
            keep.update(c for s, cells in self.held.items() if self.early[s] > last for c in cells)
        for c, end in ends.items():
            start = self.early[self.w.maker[c]]
            k = bisect.bisect_left(walls, start)
            if k < len(walls) and walls[k] < end:
                keep.add(c)
        return keep

    def _divide(self, positions: Sequence[int], wanted: set[int], ends: dict[int, int], segment: float) -> list[int]:
        """Positions after which the steps that run again are divided."""
        change: dict[int, int] = {}
        for c, end in ends.items():
            start = self.early[self.w.maker[c]]
            change[start] = change.get(start, 0) + self.numbers[c]
            change[end] = change.get(end, 0) - self.numbers[c]
        walls: list[int] = []
        crossing = total = 0
        recent: list[tuple[int, int, int]] = []  # (bytes that cross, bytes of the segment up to here, position)
        for p in positions:
            crossing += change.get(p, 0)
            total += sum(self.numbers[c] for c in self.w.writes[self.sequence[p]] if c in wanted)
            recent.append((crossing, total, p))
            if crossing == 0 or total > segment:
                near = [r for r in recent if 2 * r[1] > total] if crossing else recent[-1:]
                _, done, wall = min(near, key=lambda r: (r[0], -r[1]))
                walls.append(wall)
                recent = [(x, t - done, q) for x, t, q in recent if q > wall]
                total -= done
        return walls[:-1] if walls and walls[-1] == positions[-1] else walls

    def _closure(self, keep: set[int]) -> tuple[list[int], set[int]]:
        """The steps that run again when only ``keep`` is kept, and the cells wanted of them. What cannot run again is
        kept."""
        w = self.w
        again: dict[int, None] = {}
        wanted: set[int] = set()
        stack = [c for s in self.later for c in w.reads[s]]
        while stack:
            c = stack.pop()
            if c in wanted or c in keep or c in self.fixed or not self._is_early(c):
                continue
            s = w.maker[c]
            if not self.can(s):
                keep.add(c)
                continue
            wanted.add(c)
            if s not in again:
                again[s] = None
                stack.extend(w.reads[s])
        return list(again), wanted

    # --- from what is kept to a sequence ------------------------------------------------------------------------------

    def draft(self, choice: Choice) -> Draft:
        """The sequence that a choice gives, with its price and its fullest step."""
        w, keep = self.w, self.kept(choice)
        again, wanted = self._closure(keep)
        needed = self._needed(again, wanted)
        emits: list[Emit] = []
        for s in self.early:
            results = self._results(s, needed)
            if results or not w.writes[s] or has_effect(w.values[s]):
                results = results or tuple(range(len(w.writes[s])))
                emits.append(Emit(s, w.reads[s], tuple(w.writes[s][r] for r in results), results))
        saved = sum(self.costs[s] for s in self.early) - sum(self.costs[e.step] for e in emits)
        out = Draft(emits, list(range(len(w.types))), sum(self.costs[s] for s in again) - saved)
        self._late(out, wanted)
        out.emits, out.most = self._settled(out)
        return out

    def _needed(self, again: Sequence[int], wanted: set[int]) -> set[int]:
        """The cells that must be written before the cut."""
        w = self.w
        needed = set(w.results)
        for s in (*self.later, *again):
            needed.update(c for c in w.reads[s] if c not in wanted)
            needed.update(w.after.get(s, ()))
        for s in reversed(self.early):
            if not needed.isdisjoint(w.writes[s]) or has_effect(w.values[s]):
                needed.update((*w.reads[s], *w.after.get(s, ())))
        return needed

    def _results(self, s: int, cells: Collection[int]) -> tuple[int, ...]:
        found = tuple(r for r, c in enumerate(self.w.writes[s]) if c in cells)
        return tuple(range(len(self.w.writes[s]))) if found and s not in self.partial else found

    def _late(self, out: Draft, wanted: set[int]) -> None:
        """The steps after the cut; before each one, what it reads is computed again where it is gone."""
        w = self.w
        now: dict[int, int] = {}  # cell -> the cell of its second computation
        for s in self.later:
            stack = [(m, False) for m in self._gone(s, wanted, now)]
            while stack:
                m, ready = stack.pop()
                if all(c in now for c in w.writes[m] if c in wanted):
                    continue
                if not ready:
                    stack.append((m, True))
                    stack.extend((n, False) for n in reversed(self._gone(m, wanted, now)))
                    continue
                results = self._results(m, wanted)
                reads = tuple(now.get(c, c) for c in w.reads[m])
                writes = tuple(range(len(out.origin), len(out.origin) + len(results)))
                out.origin.extend(w.writes[m][r] for r in results)
                made = zip((w.writes[m][r] for r in results), writes, strict=True)
                now.update((c, new) for c, new in made if c in wanted)
                out.emits.append(Emit(m, reads, writes, results, True))
            reads = tuple(now.get(c, c) for c in w.reads[s])
            out.emits.append(Emit(s, reads, w.writes[s], tuple(range(len(w.writes[s])))))

    def _gone(self, s: int, wanted: set[int], now: dict[int, int]) -> list[int]:
        """The steps that must run again before ``s``."""
        return list(dict.fromkeys(self.w.maker[c] for c in self.w.reads[s] if c in wanted and c not in now))

    def _settled(self, d: Draft) -> tuple[list[Emit], int]:
        """States are written after their last reading; and the bytes at the fullest step."""
        w = self.work(d)
        placer = Placer(w)
        numbers = [self.numbers[c] for c in d.origin]
        scratch = [self.scratch[e.step] for e in d.emits]
        program = list(range(len(d.emits)))
        orders = [program]
        if w.targets:
            orders.append(topological(update_edges(w, placer), program))
        found = [(max(curve(w, o, placer, numbers, scratch), default=0), k) for k, o in enumerate(orders)]
        most, best = min(found)
        return [d.emits[s] for s in orders[best]], most

    def work(self, d: Draft) -> Work:
        """The steps of a draft as ``Work``, numbered in its order."""
        w = self.w
        old: dict[int, list[int]] = {}
        out = Work(w.function, types=[w.types[c] for c in d.origin], leaves=w.leaves, inputs=w.inputs,
                   results=w.results, targets=w.targets, owned=w.owned)
        for k, e in enumerate(d.emits):
            old.setdefault(e.step, []).append(k)
            out.values.append(w.values[e.step])
            out.reads.append(e.reads)
            out.writes.append(e.writes)
            place = {r: j for j, r in enumerate(e.results)}
            out.pairs.append(tuple((o, place[r]) for o, r in w.pairs[e.step] if r in place))
            if e.step in w.nests:
                out.nests[k] = w.nests[e.step]
            if e.step in w.after:
                out.after[k] = w.after[e.step]
        out.copies = {k for s in w.copies for k in old.get(s, ())}
        out.fallible = {k for s in w.fallible for k in old.get(s, ())}
        out.effects = [k for s in w.effects for k in old.get(s, ())]
        link(out)
        return out


# --- the search -------------------------------------------------------------------------------------------------------

#: How many sizes of segments are tried, after how many that fit no more are, and how often an interval is halved.
SEGMENTS, ENOUGH, HALVINGS = 12, 4, 5


def choose(cut: Cut, target: int) -> Draft:
    """The cheapest draft found that holds at most ``target`` bytes, or the one that holds fewest."""
    total = sum(cut.numbers[c] for cells in cut.held.values() for c in cells)
    least = max(1, min((cut.numbers[c] for cells in cut.held.values() for c in cells), default=1))
    ratio = max(2.0, total / least) ** (1 / SEGMENTS)
    tried: list[tuple[Draft, Choice]] = []
    fitting: list[tuple[Draft, Choice]] = []
    for size in [ALL, *[least * ratio**k for k in reversed(range(SEGMENTS))], 0.0]:  # wide ones compute less again
        choice = Choice(size)
        tried.append((cut.draft(choice), choice))
        fitting += tried[-1:] if tried[-1][0].most <= target else []
        if len(fitting) == ENOUGH:
            break
    dears = sorted({d for d in cut.dear.values() if d < ALL})
    if not fitting:
        return min((d for d, _ in tried), key=lambda d: (d.most, d.price))
    fitting.sort(key=lambda found: (found[0].price, found[0].most))
    lowest = min(fitting, key=lambda found: found[0].most)
    best = fitting[0][0]
    for choice in dict.fromkeys(c for _, c in (fitting[0], lowest)):
        choice = _smallest(cut, target, [choice._replace(dear=d) for d in dears], choice)
        ends = sorted(cut.early[s] + 1 for s in cut.held)
        choice = _smallest(cut, target, [choice._replace(until=e) for e in ends], choice)
        best = min(best, cut.draft(choice), key=lambda d: d.price if d.most <= target else ALL)
    return best


def _smallest(cut: Cut, target: int, choices: Sequence[Choice], known: Choice) -> Choice:
    """The first of ``choices``, which compute more and more again, that fits; ``known``, which does, if none does."""
    low, high = 0, len(choices)  # choices[high] is known to fit
    for _ in range(HALVINGS):
        if low < high:
            middle = (low + high) // 2
            if cut.draft(choices[middle]).most <= target:
                known, high = choices[middle], middle
            else:
                low = middle + 1
    return known


__all__ = ["ALL", "Choice", "Cut", "Draft", "Emit", "choose"]
