"""Checker of the order of what a device was asked for: for each byte, who wrote and read it last, and who knows of
that.

Each stream counts its works and knows, of every stream, how many works are before what it does next (a vector clock).
Two works that touch the same byte, one of them writing, must be in order; if not, that is an error whether or not it
would have gone well this time.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable

from symc.ir.record import dataclass
from symc.runtime.cuda.device import Span
from symc.runtime.emulator.errors import EmulationError

Clock = dict[int, int]


def join(into: Clock, other: Clock) -> None:
    """Let ``into`` know what ``other`` knows."""
    for stream, count in other.items():
        if into.get(stream, 0) < count:
            into[stream] = count


@dataclass(frozen=True)
class Past:
    """A work that touched memory."""

    stream: int
    count: int
    name: str


class _Segment:
    __slots__ = ("end", "readers", "writer")

    def __init__(self, end: int, writer: Past | None, readers: dict[int, Past]):
        self.end, self.writer, self.readers = end, writer, readers


class History:
    """Record of who touched which bytes last."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._segments: list[_Segment] = []

    def add(self, now: Past, clock: Clock, reads: Iterable[Span], writes: Iterable[Span]) -> None:
        """Note a work. ``clock``: what it knows. Raises where it is not in order with an earlier one."""
        for start, nbytes in reads:
            for segment in self._between(start, start + nbytes):
                self._compare(now, clock, segment.writer, "reads", "writes")
                segment.readers[now.stream] = now
        for start, nbytes in writes:
            for segment in self._between(start, start + nbytes):
                self._compare(now, clock, segment.writer, "writes", "writes")
                for reader in segment.readers.values():
                    self._compare(now, clock, reader, "writes", "reads")
                segment.writer, segment.readers = now, {}

    def forget(self) -> None:
        """Everything so far is before everything to come."""
        self._starts, self._segments = [], []

    @staticmethod
    def _compare(now: Past, clock: Clock, past: Past | None, does: str, did: str) -> None:
        if past is None or past.stream == now.stream or clock.get(past.stream, 0) >= past.count:
            return
        raise EmulationError("ORDER", f"{now.name} on stream {now.stream} {does} memory that {past.name} on stream "
                                      f"{past.stream} {did}, and nothing orders the two",
                             help="record an event after the first on its stream, and let the other stream wait for it")

    def _between(self, lo: int, hi: int) -> list[_Segment]:
        """The segments of a range; ends fall on bounds, and gaps are filled."""
        if hi <= lo:
            return []
        self._cut(lo)
        self._cut(hi)
        i = bisect.bisect_left(self._starts, lo)
        at = lo
        while at < hi:
            if i < len(self._starts) and self._starts[i] == at:
                at = self._segments[i].end
            else:
                end = min(hi, self._starts[i]) if i < len(self._starts) else hi
                self._starts.insert(i, at)
                self._segments.insert(i, _Segment(end, None, {}))
                at = end
            i += 1
        return self._segments[bisect.bisect_left(self._starts, lo) : i]

    def _cut(self, at: int) -> None:
        i = bisect.bisect_left(self._starts, at) - 1
        if i >= 0 and self._starts[i] < at < self._segments[i].end:
            old = self._segments[i]
            self._starts.insert(i + 1, at)
            self._segments.insert(i + 1, _Segment(old.end, old.writer, dict(old.readers)))
            old.end = at
