"""Cuts of a large group of elementwise values into several kernels.

Between two kernels values lie in memory: each is an array that is written and read. Within one they are registers, or
lie in the first cache. But a processor looks ahead a few hundred instructions: it computes several elements of a short
chain at a time, and waits for each step of one that is long and serial (1,200 products and sums, 1e5 f64: 9 ms as 18
kernels, 31 ms as 3). And large kernels take long to compile. So pieces are taken one after another, each so long that
it costs least for each of its values: equal steps of a long chain become equal kernels, cut where few arrays cross, and
a wide formula with its gradient stays whole.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

from symc.ir.value import Value

#: A kernel of so many values, one after the other, costs as much as moving ``WAITING`` arrays; twice that with twice as
#: many values, or with twice as long a chain among them.
USUAL, WAITING = 64, 3
#: How many arrays a kernel moves at full speed. Large ones begin at the same place of a page, and share the same 12 to
#: 16 lines of a cache: what took 66 ms as one kernel of 81 arrays took 15 ms as 15 kernels of 193 in all.
STREAMS = 16
#: The most values of a kernel.
MOST = 512


def cut(members: Sequence[Value], sources: Callable[[Value], Sequence[Value]], needed: Container[Value],
        ) -> list[Sequence[Value]]:
    """The pieces of a group. ``needed``: what is read outside of the group."""
    reads = {v: sources(v) for v in members}
    members = list(_Order(members, reads, needed).found)
    last = {s: v for v in members for s in reads[v]}  # who reads a value last
    pieces: list[Sequence[Value]] = []
    start = 0
    while start < len(members):
        end = _end(members, start, reads, last, needed)
        pieces.append(members[start:end])
        start = end
    return pieces


class _Order:
    """A sequence of the values of a group in which few wait for others: what is made of most comes first, what is made
    of little just before it is read, and what takes the place of an operand that nothing else will read, at once."""

    def __init__(self, members: Sequence[Value], sources: Mapping[Value, Sequence[Value]], needed: Container[Value]):
        self.found: dict[Value, None] = {}
        self._needed = needed
        own = set(members)
        self._reads = {v: [s for s in sources[v] if s in own] for v in members}
        self._readers: dict[Value, dict[Value, None]] = {v: {} for v in members}  # those that are not yet found
        height: dict[Value, int] = {}
        for v, reads in self._reads.items():
            height[v] = 1 + max((height[s] for s in reads), default=0)
            reads.sort(key=height.__getitem__)
            for s in reads:
                self._readers[s][v] = None
        pending = [(v, False) for v in reversed(members) if not self._readers[v]]
        while pending:
            v, ready = pending.pop()
            if v not in self.found:
                if ready:
                    self._take(v)
                else:
                    pending.append((v, True))
                    pending += [(s, False) for s in self._reads[v] if s not in self.found]

    def _take(self, v: Value) -> None:
        taken = [v]
        while taken:
            v = taken.pop()
            if v not in self.found:
                self.found[v] = None
                for s in self._reads[v]:
                    self._readers[s].pop(v, None)
                last = [s for s in self._reads[v] if len(self._readers[s]) == 1]
                taken += [r for s in (*last, v) for r in self._readers[s] if self._frees(r)]

    def _frees(self, r: Value) -> bool:
        return all(s in self.found for s in self._reads[r]) and any(
            len(self._readers[s]) == 1 and s not in self._needed for s in self._reads[r])


def _end(members: Sequence[Value], start: int, sources: Mapping[Value, Sequence[Value]], last: dict[Value, Value],
         needed: Container[Value]) -> int:
    """The end of the piece that begins at ``start``."""
    depth: dict[Value, int] = {}
    read: set[Value] = set()
    written, longest, best, end = 0, 0, float("inf"), start
    for k, v in enumerate(members[start : start + MOST], 1):
        below = 0
        for s in sources[v]:
            if s not in depth:
                read.add(s)
                continue
            if depth[s] > below:
                below = depth[s]
            if last[s] is v and s not in needed:
                written -= 1
        depth[v] = 1 + below
        if below >= longest:
            longest = 1 + below
        written += v in last or v in needed
        arrays = len(read) + written
        moving = arrays + (arrays - STREAMS) ** 2 / 8 if arrays > STREAMS else arrays
        cost = (moving + WAITING * (k / USUAL) * (longest / USUAL)) / k
        if cost <= best:
            best, end = cost, start + k
    return end
