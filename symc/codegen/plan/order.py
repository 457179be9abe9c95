"""The sequence of steps: few live bytes at any time.

Exact for small functions; otherwise the best of a few linear-time candidates, of which the order of the program itself
is one. Sizes are compared at nominal numbers, so that the choice is the same in every process and for every call.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Sequence

from symc.codegen.plan.cells import Work, waits
from symc.codegen.plan.overwrite import Placer, placements

#: Up to this many steps every sequence is considered.
EXACT = 14
#: The part of the least peak, one in so many, that a sequence may take more which writes all states in place that can
#: be: a fresh array for a state is memory too, which is cleared and mapped in every call.
TOLERATED = 10


def order(w: Work, exact: int = EXACT) -> list[int]:
    """A sequence of the steps of ``w``. Its peak is never above that of the steps as they are numbered."""
    placer = Placer(w)
    numbers = w.numbers()
    program = list(range(len(w.values)))
    free, late = Edges(w), update_edges(w, placer)

    def sequences(edges: Edges) -> list[tuple[int, list[int]]]:
        found = [topological(edges, program) if edges.any else program]
        found.append(greedy(w, edges, numbers))
        return [(peak(w, c, placer, numbers), c) for c in found]

    every = sequences(free)
    least, best = min(every, key=lambda c: c[0])
    in_place = min(sequences(late), key=lambda c: c[0]) if late.any else None
    if in_place is not None and in_place[0] <= least:
        least, best = in_place
    if len(program) <= exact:
        found = exact_order(w, placer, numbers, least)
        if found is not None:
            least, best = peak(w, found, placer, numbers), found
    if in_place is not None and in_place[0] <= min(every[0][0], least + least // TOLERATED):
        return in_place[1]
    return best


def peak(w: Work, sequence: Sequence[int], placer: Placer | None = None, numbers: Sequence[int] | None = None) -> int:
    """The most bytes (at nominal sizes) live at once, without inputs, states and constants."""
    return max(curve(w, sequence, placer or Placer(w), numbers or w.numbers(), w.scratch()), default=0)


def curve(w: Work, sequence: Sequence[int], placer: Placer, numbers: Sequence[int],
          scratch: Sequence[int]) -> list[int]:
    """The bytes live while each step of the sequence runs, without inputs, states and constants.

    ``numbers``: bytes of every cell, ``scratch``: what every step needs for itself.
    """
    placed = placements(w, sequence, placer)
    left = [len(r) for r in w.readers]
    own = [0 if c in w.leaves else n for c, n in enumerate(numbers)]  # 0 in borrowed memory
    live, out = 0, []
    for s in sequence:
        for c, over in zip(w.writes[s], placed[s], strict=True):
            if over is None:
                live += own[c]
            else:
                own[c], own[over] = own[over], 0
        out.append(live + scratch[s])
        for c in dict.fromkeys(w.reads[s]):
            left[c] -= 1
        for c in {*w.reads[s], *w.writes[s]}:
            if left[c] == 0 and c not in placer.results:
                live, own[c] = live - own[c], 0
    return out


class Edges:
    """Order between steps besides the data: readers of a state before the step that writes over it, effects in
    their order, what a second computation waits for."""

    def __init__(self, w: Work):
        self.n = len(w.values)
        self.data: list[list[int]] = [[] for _ in range(self.n)]
        for c, m in enumerate(w.maker):
            if m >= 0:
                self.data[m].extend(w.readers[c])
        self.extra: dict[int, list[int]] = {}
        for first, second in [*itertools.pairwise(w.effects), *waits(w)]:
            self.extra.setdefault(first, []).append(second)
        self.borrowing: set[int] = set()  # cells that will be written over a state

    def after(self, s: int) -> Iterable[int]:
        return [*(self.data[s] if s < self.n else ()), *self.extra.get(s, ())]

    @property
    def any(self) -> bool:
        return bool(self.borrowing)

    def add(self, before: Iterable[int], s: int, c: int) -> None:
        self.borrowing.add(c)
        for b in before:
            self.extra.setdefault(b, []).append(s)

    def reach(self, s: int, wanted: set[int], budget: int) -> tuple[bool, int]:
        """True if ``s`` leads to any of ``wanted``, or the budget of visits runs out; and what is left of it."""
        seen, stack = {s}, [s]
        while stack:
            for t in self.after(stack.pop()):
                budget -= 1
                if t in wanted or budget < 0:
                    return True, budget
                if t not in seen:
                    seen.add(t)
                    stack.append(t)
        return False, budget


def update_edges(w: Work, placer: Placer) -> Edges:
    """Put the writing of each state after the reading of its old value and after everything that may fail.

    A state for which the program does not admit that is left out; it gets a fresh buffer.
    """
    edges = Edges(w)
    barrier = edges.n  # stands for "nothing can fail any more"
    if w.targets:
        for s in sorted(w.fallible):
            edges.extra.setdefault(s, []).append(barrier)
    budget = 4 * edges.n + 10_000
    for c, state in w.targets.items():
        s = w.maker[c]
        before = [t for t in w.readers[state] if t != s]
        if s in w.fallible or not placer.fits(s, state, w.writes[s].index(c), c):
            continue
        blocked, budget = edges.reach(s, {*before, barrier}, budget)
        if not blocked:
            edges.add([*before, barrier], s, c)
    return edges


def _counts(edges: Edges) -> list[int]:
    """The number of steps that each step (and the barrier) waits for."""
    counts = [0] * (edges.n + 1)
    for s in range(edges.n + 1):
        for t in edges.after(s):
            counts[t] += 1
    return counts


def topological(edges: Edges, priority: Sequence[int]) -> list[int]:
    """The sequence that follows ``priority`` (a permutation) as closely as the edges allow."""
    rank = [0] * (edges.n + 1)
    for k, s in enumerate(priority):
        rank[s] = k
    rank[edges.n] = -1
    counts = _counts(edges)
    ready = [(rank[s], s) for s in range(edges.n + 1) if counts[s] == 0]
    heapq.heapify(ready)
    out = []
    while ready:
        _, s = heapq.heappop(ready)
        if s < edges.n:
            out.append(s)
        for t in edges.after(s):
            counts[t] -= 1
            if counts[t] == 0:
                heapq.heappush(ready, (rank[t], t))
    return out


def greedy(w: Work, edges: Edges, numbers: Sequence[int]) -> list[int]:
    """Always the step that adds least: bytes it writes less bytes that die with it; then the first in the program."""
    results = set(w.results)
    frees = [0 if c in w.leaves or c in results else n for c, n in enumerate(numbers)]
    left = [len(r) for r in w.readers]
    last = [sum(r) for r in w.readers]  # when one reader is left, it is this sum
    adds = [sum(numbers[c] for c in writes if c not in edges.borrowing) for writes in w.writes]
    for c, n in enumerate(left):
        if n == 1:
            adds[last[c]] -= frees[c]
    counts = _counts(edges)
    adds.append(0)
    ready = [(adds[s], s) for s in range(edges.n + 1) if counts[s] == 0]
    heapq.heapify(ready)
    out, done = [], [False] * (edges.n + 1)
    while ready:
        weight, s = heapq.heappop(ready)
        if done[s] or weight != adds[s]:
            continue  # a newer entry has its present weight
        done[s] = True
        if s < edges.n:
            out.append(s)
            for c in dict.fromkeys(w.reads[s]):
                left[c], last[c] = left[c] - 1, last[c] - s
                if left[c] == 1:
                    adds[last[c]] -= frees[c]
                    if counts[last[c]] == 0 and not done[last[c]]:
                        heapq.heappush(ready, (adds[last[c]], last[c]))
        for t in edges.after(s):
            counts[t] -= 1
            if counts[t] == 0:
                heapq.heappush(ready, (adds[t], t))
    return out


# --- the best order ---------------------------------------------------------------------------------------------------
#
# The best sequence of a few steps, found by looking at sets of finished steps, those with the lowest peak first.

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
