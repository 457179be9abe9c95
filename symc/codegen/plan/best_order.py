"""The best sequence of a few steps, found by looking at sets of finished steps, those with the lowest peak first."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence

from symc.codegen.plan.cells import Work, waits
from symc.codegen.plan.overwrite import Placer

State = tuple[int, frozenset[int]]  # finished steps as bits, live cells that lie in borrowed memory


def exact_order(w: Work, placer: Placer, numbers: Sequence[int], bound: int) -> list[int] | None:
    """A sequence whose peak is the least of all, or None when that least is ``bound``, which the caller has reached."""
    floor = _floor(w, placer, numbers)
    if bound <= floor:
        return None
    search = _Search(w, placer, numbers)
    start: State = (0, frozenset())
    came: dict[State, tuple[State, int]] = {}
    heap = [(floor, len(w.values), 0, start, 0, start, -1)]
    count = 0
    while heap:
        worst, togo, _, state, live, parent, step = heapq.heappop(heap)
        if state in came:
            continue
        came[state] = (parent, step)
        if togo == 0:
            return _path(came, state)
        for s in search.ready(state[0]):
            most, after, following = search.run(s, state, live)
            if max(most, worst) < bound and following not in came:
                count += 1
                heapq.heappush(heap, (max(most, worst), togo - 1, count, following, after, state, s))
    return None


def _path(came: dict[State, tuple[State, int]], state: State) -> list[int]:
    out: list[int] = []
    while came[state][1] >= 0:
        state, s = came[state]
        out.append(s)
    return out[::-1]


def _floor(w: Work, placer: Placer, numbers: Sequence[int]) -> int:
    """Bytes that no sequence can do without: what is returned, and what one step reads and writes at least."""
    most = sum(numbers[c] for c in dict.fromkeys(w.results) if c not in w.leaves and c not in w.targets)
    scratch = w.scratch()
    for s, reads in enumerate(w.reads):
        read = sum(numbers[c] for c in dict.fromkeys(reads) if c not in w.leaves)
        over = {r for _, r in w.pairs[s]}
        written = sum(numbers[c] for r, c in enumerate(w.writes[s]) if r not in over and c not in w.targets)
        # cells in donated memory weigh nothing, so what a step reads counts only when no input is donated
        most = max(most, written + scratch[s] + (0 if w.owned or w.targets else read))
    return most


class _Search:
    def __init__(self, w: Work, placer: Placer, numbers: Sequence[int]):
        self.w, self.placer, self.numbers = w, placer, numbers
        self.readers = [sum(1 << s for s in r) for r in w.readers]
        self.needs = [sum({1 << w.maker[c] for c in reads if w.maker[c] >= 0}) for reads in w.reads]
        for before, s in [*itertools.pairwise(w.effects), *waits(w)]:
            self.needs[s] |= 1 << before
        self.scratch = w.scratch()
        self.fallible = sum(1 << s for s in w.fallible)

    def ready(self, done: int) -> list[int]:
        return [s for s, needs in enumerate(self.needs) if not done >> s & 1 and needs & ~done == 0]

    def run(self, s: int, state: State, live: int) -> tuple[int, int, State]:
        """Peak while step ``s`` runs, live bytes after it, and the state after it."""
        w, (done, lent) = self.w, state
        bit = 1 << s

        def dies(c: int) -> bool:
            return self.readers[c] & ~done & ~bit == 0

        placed = self.placer.place(s, dies, self.fallible & ~done == 0, lent)
        borrowed = set(lent)
        live += sum(self.numbers[c] for c, over in zip(w.writes[s], placed, strict=True) if over is None)
        most = live + self.scratch[s]
        for c, over in zip(w.writes[s], placed, strict=True):
            if over is not None and (over in w.leaves or over in lent):
                borrowed.add(c)
        for c in {*w.reads[s], *w.writes[s]}:
            if dies(c) and c not in self.placer.results and c not in w.leaves and c not in placed:
                if c in borrowed:
                    borrowed.discard(c)
                else:
                    live -= self.numbers[c]
        # a cell that was written over hands its bytes on
        return most, live, (done | bit, frozenset(borrowed - {o for o in placed if o is not None}))
