"""Pack temps into one arena: temps that are never alive together share bytes.

Sizes that are numbers are packed by offset. Symbolic sizes are packed into slots, because ``a <= b`` is known for few
pairs of them: a slot is taken by temps whose sizes are equal or known to be smaller, or joined by one ``max``.
"""

from __future__ import annotations

import bisect
import functools
import heapq
from collections.abc import Sequence

from symc.codegen.plan.bufferize import spans
from symc.codegen.plan.cells import nominal
from symc.codegen.plan.compare_sizes import at_least, multiple
from symc.ir.dim import Dim, Size, ceildiv
from symc.ir.plan import Plan
from symc.ir.record import dataclass, field, replace
from symc.ir.size_extremes import maximum

#: Every temp starts at a multiple of this many bytes.
ALIGN = 64
#: Up to this many temps of a kind, the largest-first packing is tried too: it looks at all pairs.
FEW = 500


@dataclass(frozen=True)
class Temp:
    """Memory that is needed from step ``first`` to step ``last``, both included."""

    name: str
    nbytes: Size
    first: int
    last: int


def aligned(nbytes: Size) -> Size:
    """``nbytes`` rounded up to the alignment."""
    return nbytes if multiple(nbytes, ALIGN) else ceildiv(nbytes, ALIGN) * ALIGN


def assign_arena(plan: Plan, share: bool = True) -> Plan:
    """The plan with an offset for every temp and the size of the arena."""
    span = spans(plan.steps)
    temps = [Temp(n, b.nbytes, *span[n]) for n, b in plan.buffers.items() if b.kind == "temp"]
    offsets, size = pack(temps, share)
    return replace(plan, offsets={t.name: offsets[t.name] for t in temps}, arena=size)


def pack(temps: Sequence[Temp], share: bool = True) -> tuple[dict[str, Size], Size]:
    """An offset for every temp and the size of it all; without ``share`` each has bytes of its own."""
    offsets: dict[str, Size] = {}
    size: Size = 0
    if share:
        offsets, size, slots = _shared(temps)
    else:
        slots = [Slot([t.nbytes], [t]) for t in temps]
    known: dict[Size, Size] = {}
    for slot in slots:
        for t in slot.temps:
            offsets[t.name] = size
        capacity = slot.capacity
        size = size + (known[capacity] if capacity in known else known.setdefault(capacity, aligned(capacity)))
    return offsets, size


def _shared(temps: Sequence[Temp]) -> tuple[dict[str, Size], int, list[Slot]]:
    """Offsets and size of a first part of the arena, and the slots after it."""
    fixed = [t for t in temps if isinstance(t.nbytes, int)]
    symbolic = [t for t in temps if isinstance(t.nbytes, Dim)]
    offsets, size = pack_fixed(fixed)
    slots = pack_slots(symbolic)
    if fixed and symbolic and len(temps) <= FEW:  # a slot may serve sizes of both kinds
        mixed = pack_slots(temps)
        if _nominal_total(mixed) < size + _nominal_total(slots):
            return {}, 0, mixed
    return offsets, size, slots


# --- numbers ----------------------------------------------------------------------------------------------------------


def pack_fixed(temps: Sequence[Temp]) -> tuple[dict[str, Size], int]:
    """Offsets and total size for sizes that are numbers."""
    best = _in_time_order(temps)
    if len(temps) <= FEW:
        best = min(best, _largest_first(temps), key=lambda found: found[1])
    return best


def _largest_first(temps: Sequence[Temp]) -> tuple[dict[str, Size], int]:
    """Each temp, the largest first, in the smallest gap between those it is alive with."""
    placed: list[tuple[int, int, Temp]] = []
    total = 0
    for t in sorted(temps, key=lambda t: (-int(t.nbytes), t.first, t.last)):  # type: ignore[arg-type]
        need = int(aligned(t.nbytes))  # type: ignore[arg-type]
        at, best = 0, None
        for start, end, other in placed:  # sorted by start
            if other.first <= t.last and t.first <= other.last:
                if start - at >= need and (best is None or start - at < best[0]):
                    best = (start - at, at)
                at = max(at, end)
        where = best[1] if best else at
        bisect.insort(placed, (where, where + need, t), key=lambda p: p[0])
        total = max(total, where + need)
    return {t.name: start for start, _, t in placed}, total


class _FreeList:
    """Free blocks below ``top``: by size for the best fit, by either end to join neighbours."""

    def __init__(self) -> None:
        self.blocks: list[tuple[int, int]] = []  # (size, start), sorted
        self.starts: dict[int, int] = {}  # start -> size
        self.ends: dict[int, int] = {}  # end -> start
        self.top = 0

    def _drop(self, start: int) -> int:
        size = self.starts.pop(start)
        del self.ends[start + size]
        del self.blocks[bisect.bisect_left(self.blocks, (size, start))]
        return size

    def release(self, start: int, size: int) -> None:
        if size == 0:
            return
        if start + size in self.starts:
            size += self._drop(start + size)
        if start in self.ends:
            start = self.ends[start]
            size += self._drop(start)
        self.starts[start], self.ends[start + size] = size, start
        bisect.insort(self.blocks, (size, start))

    def take(self, size: int) -> int:
        k = bisect.bisect_left(self.blocks, (size, -1))
        if k < len(self.blocks):
            start = self.blocks[k][1]
        else:  # grow; a free block at the top is the first part of it
            start = self.ends.get(self.top, self.top)
            if start == self.top or size == 0:
                self.top += size
                return self.top - size
            self.release(self.top, size - (self.top - start))
            self.top = start + size
        block = self._drop(start)
        self.release(start + size, block - size)
        return start


def _in_time_order(temps: Sequence[Temp]) -> tuple[dict[str, Size], int]:
    """Each temp, the first needed first, in the smallest free block."""
    free = _FreeList()
    ends: list[tuple[int, int, int]] = []
    offsets: dict[str, Size] = {}
    for t in sorted(temps, key=lambda t: (t.first, -int(t.nbytes), t.last)):  # type: ignore[arg-type]
        while ends and ends[0][0] < t.first:
            _, start, size = heapq.heappop(ends)
            free.release(start, size)
        size = int(aligned(t.nbytes))  # type: ignore[arg-type]
        start = free.take(size)
        offsets[t.name] = start
        heapq.heappush(ends, (t.last, start, size))
    return offsets, free.top


# --- slots ------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Slot:
    """A stretch of the arena; its temps take turns. Its capacity is the larger of one or two ``parts``."""

    parts: list[Size]
    temps: list[Temp] = field(default_factory=list)

    @property
    def capacity(self) -> Size:
        return functools.reduce(maximum, self.parts)

    def fit(self, size: Size) -> tuple[int, int] | None:
        """Rank of this place for a temp of ``size``, less is better; None when it must not."""
        if size in self.parts:
            return 0, 0
        waste = max(map(nominal, self.parts)) - nominal(size)
        if any(at_least(p, size) for p in self.parts):
            return 1, waste
        if any(at_least(size, p) for p in self.parts):
            return 2, -waste
        return None if len(self.parts) > 1 else (3, abs(waste))

    def put(self, t: Temp) -> None:
        if not any(at_least(p, t.nbytes) for p in self.parts):
            self.parts = [p for p in self.parts if not at_least(t.nbytes, p)] + [t.nbytes]
        self.temps.append(t)


def pack_slots(temps: Sequence[Temp]) -> list[Slot]:
    """Slots for temps of any sizes."""
    found = _slots_in_time_order(temps)
    if len(temps) <= FEW:
        found = min(found, _slots_largest_first(temps), key=_nominal_total)
    return found


def _nominal_total(slots: Sequence[Slot]) -> int:
    return sum(max(map(nominal, s.parts)) for s in slots)


def _slots_in_time_order(temps: Sequence[Temp]) -> list[Slot]:
    slots: list[Slot] = []
    free: dict[tuple[Size, ...], list[int]] = {}  # parts -> slots, a heap
    busy: list[tuple[int, int]] = []
    for t in sorted(temps, key=lambda t: (t.first, t.last)):
        while busy and busy[0][0] < t.first:
            k = heapq.heappop(busy)[1]
            heapq.heappush(free.setdefault(tuple(slots[k].parts), []), k)
        found = _best_free(slots, free, t.nbytes)
        k = len(slots) if found is None else found
        if found is None:
            slots.append(Slot([t.nbytes]))
        slots[k].put(t)
        heapq.heappush(busy, (t.last, k))
    return slots


def _best_free(slots: list[Slot], free: dict[tuple[Size, ...], list[int]], size: Size) -> int | None:
    """Take the free slot that fits best."""
    parts: tuple[Size, ...] | None = (size,)
    if parts not in free:
        ranked = [(fit, heap[0], p) for p, heap in free.items() if (fit := slots[heap[0]].fit(size)) is not None]
        parts = min(ranked, key=lambda r: r[:2])[2] if ranked else None
    if parts is None:
        return None
    k = heapq.heappop(free[parts])
    if not free[parts]:
        del free[parts]
    return k


def _slots_largest_first(temps: Sequence[Temp]) -> list[Slot]:
    slots: list[Slot] = []
    for t in sorted(temps, key=lambda t: (-nominal(t.nbytes), t.first, t.last)):
        fits = [(fit, k) for k, s in enumerate(slots)
                if all(o.last < t.first or t.last < o.first for o in s.temps) and (fit := s.fit(t.nbytes)) is not None]
        if not fits:
            slots.append(Slot([t.nbytes]))
        slots[min(fits)[1] if fits else -1].put(t)
    return slots
