"""Streams, events and graphs of an emulated device.

Checked, a work runs when somebody waits for it, and works that nothing orders run in an order that a seed decides; each
is compared with all before it when it is asked for (order.py). Else every work runs at once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from symc.ir.locks import new_lock
from symc.ir.record import dataclass
from symc.runtime.cuda.device import Counters, Span
from symc.runtime.emulator.errors import EmulationError
from symc.runtime.emulator.memory import Heap
from symc.runtime.emulator.race_check import Clock, History, Past, join

#: So many works wait at most; a device would have done some of them by now.
MOST_PENDING = 1024


@dataclass(frozen=True)
class Work:
    """Something that a stream does. ``count``: the field of Counters that it adds to, and how much. ``part``: what is
    told of each time that a stream is given this (ranks.py); it runs then, instead of ``run``."""

    name: str
    run: Callable[[], None]
    reads: tuple[Span, ...] = ()
    writes: tuple[Span, ...] = ()
    count: tuple[str, int] | None = None
    part: Callable[[], Part] | None = None


class Part(Protocol):
    """One time that a work is given to a stream. ``pending``: what waits to run it."""

    pending: Pending | None

    def run(self) -> None: ...


class Pending:
    """A work that has not run. ``after``: what must run before."""

    __slots__ = ("after", "done", "number", "run")

    def __init__(self, number: int, run: Callable[[], None], after: list[Pending]):
        self.number, self.run, self.after, self.done = number, run, after, False


class EmulatedStream:
    """A queue of work. ``tail``: what of it and of what it waits for has not run."""

    def __init__(self, handle: int):
        self.handle = handle
        self.count, self.clock = 0, Clock()
        self.tail: list[Pending] = []
        self.capture: Capture | None = None


class EmulatedEvent:
    """A point in a stream."""

    def __init__(self) -> None:
        self.clock: Clock | None = None
        self.tail: list[Pending] = []
        self.capture: Capture | None = None
        self.happened: float | None = None


class Capture:
    """Works that streams were given while one of them was captured, and how their streams are ordered."""

    def __init__(self, origin: EmulatedStream):
        self.origin = origin
        self.streams = [origin]
        self.steps: list[tuple[str, int, object]] = []  # ("work", stream, Work), ("record" or "wait", stream, event)
        self.seen: list[set[int]] = [set()]  # for each stream the steps that are before what it is given next
        self.recorded: dict[int, tuple[EmulatedEvent, set[int]]] = {}

    def add(self, stream: EmulatedStream, work: Work) -> None:
        at = self.streams.index(stream)
        self.seen[at].add(len(self.steps))
        self.steps.append(("work", at, work))

    def record(self, event: EmulatedEvent, stream: EmulatedStream) -> None:
        at = self.streams.index(stream)
        self.steps.append(("record", at, event))
        event.capture, event.clock, event.tail, event.happened = self, None, [], None
        self.recorded[id(event)] = (event, set(self.seen[at]))

    def wait(self, stream: EmulatedStream, event: EmulatedEvent) -> None:
        if stream not in self.streams:
            self.streams.append(stream)
            self.seen.append(set())
            stream.capture = self
        at = self.streams.index(stream)
        self.steps.append(("wait", at, event))
        self.seen[at] |= self.recorded[id(event)][1]


class EmulatedGraph:
    """Work that was captured. ``nodes``: how many works."""

    def __init__(self, capture: Capture):
        self.steps, self.streams = tuple(capture.steps), len(capture.streams)
        self.nodes = sum(kind == "work" for kind, _, _ in self.steps)


class Streams:
    """All streams of a device. ``seed`` decides in what order works run that nothing orders."""

    def __init__(self, lazy: bool, seed: int, heap: Heap):
        self.counters, self.lazy, self.heap = Counters(), lazy, heap
        self._random = random.Random(seed)
        self.lock = new_lock()  # ranks of one communicator have one: each may run what others have to do
        self._history, self._host = History(), Clock()
        self._handles = 0
        self._numbers = 0
        self.pending: dict[int, Pending] = {}
        self.captured: Capture | None = None
        self._counts = Clock()  # works of each stream

    def stream(self) -> EmulatedStream:
        self._handles += 1
        return EmulatedStream(self._handles)

    # -- work

    def submit(self, stream: EmulatedStream, work: Work) -> None:
        if stream.capture is not None:
            stream.capture.add(stream, work)
        else:
            self._issue(stream, work)

    def _issue(self, stream: EmulatedStream, work: Work) -> None:
        if work.count is not None:
            field, n = work.count
            setattr(self.counters, field, getattr(self.counters, field) + n)
        part = work.part() if work.part is not None else None
        run = work.run if part is None else part.run
        if not self.lazy:
            run()
            return
        with self.lock:
            self._check_work(work)
            stream.count += 1
            join(stream.clock, self._host)
            self._history.add(Past(stream.handle, stream.count, work.name), stream.clock, work.reads, work.writes)
            stream.clock[stream.handle] = self._counts[stream.handle] = stream.count
            pending = self._append(stream, run)
            if part is not None:
                part.pending = pending
            if len(self.pending) > MOST_PENDING:
                self.drain_all()

    def _check_work(self, work: Work) -> None:
        """Raise where a work names memory that is not there."""
        for start, nbytes in (*work.reads, *work.writes):
            if self.heap.base <= start < self.heap.base + self.heap.size:
                self.heap.require(start, nbytes, work.name)

    def _append(self, stream: EmulatedStream, run: Callable[[], None]) -> Pending:
        self._numbers += 1
        pending = Pending(self._numbers, run, [p for p in stream.tail if not p.done])
        self.pending[pending.number] = pending
        self.heap.lazy = True
        stream.tail = [pending]
        return pending

    # -- order

    def event(self) -> EmulatedEvent:
        return EmulatedEvent()

    def record(self, event: Any, stream: Any) -> None:
        if stream.capture is not None:
            stream.capture.record(event, stream)
            return
        event.capture, event.happened = None, None
        if not self.lazy:
            event.clock, event.happened = {}, time.perf_counter()
            return
        event.clock = dict(stream.clock)

        def happen() -> None:
            event.happened = time.perf_counter()

        with self.lock:
            self._append(stream, happen)
            event.tail = list(stream.tail)

    def wait(self, stream: Any, event: Any) -> None:
        if event.capture is not None and event.capture is self.captured:
            if stream.capture is not None and stream.capture is not event.capture:
                raise EmulationError("CAPTURE", "a stream of one capture waits for an event of another")
            self.captured.wait(stream, event)
            return
        if event.capture is not None:
            raise EmulationError("CAPTURE", "a stream waits for an event of a capture that has ended")
        if stream.capture is not None:
            raise EmulationError("CAPTURE", "a stream that is captured waits for an event from outside of it")
        if event.clock is None:
            return  # never recorded: nothing to wait for, as in CUDA
        join(stream.clock, event.clock)
        stream.tail = [p for p in [*stream.tail, *event.tail] if not p.done]

    def synchronize(self, stream: Any) -> None:
        """Run what the stream was given, and what that is after."""
        self.reach(stream)
        self.counters.syncs += 1

    def reach(self, what: Any) -> None:
        """Run what an event, or all of a stream, is after."""
        if self.captured is not None:
            raise EmulationError("CAPTURE", "the host waits for a stream while work is captured")
        join(self._host, what.clock or {})
        self.drain(what.tail)

    def drain(self, wanted: Sequence[Pending]) -> None:
        """Run works and all that they are after, in a random order of those that there are."""
        with self.lock:
            self._drain(wanted)

    def _drain(self, wanted: Sequence[Pending]) -> None:
        todo: dict[int, Pending] = {}
        stack = [p for p in wanted if not p.done]
        while stack:
            p = stack.pop()
            if p.number not in todo:
                todo[p.number] = p
                stack += [q for q in p.after if not q.done]
        missing = {n: sum(not q.done for q in p.after) for n, p in todo.items()}
        followers: dict[int, list[Pending]] = {}
        for _, p in sorted(todo.items()):
            for q in p.after:
                if not q.done:
                    followers.setdefault(q.number, []).append(p)
        ready = [p for n, p in sorted(todo.items()) if not missing[n]]
        while ready:
            p = ready.pop(self._random.randrange(len(ready)))
            if not p.done:  # a collective operation may have asked for it meanwhile
                self._run(p)
            for q in followers.get(p.number, ()):
                missing[q.number] -= 1
                if not missing[q.number]:
                    ready.append(q)
        if not self.pending:
            if all(self._host.get(s, 0) >= n for s, n in self._counts.items()):
                self._history.forget()
            self._idle()

    def _run(self, p: Pending) -> None:
        p.done, p.after = True, []
        self.pending.pop(p.number, None)
        try:
            p.run()
        except BaseException:
            # What was to come after is lost with it, as on a device that has failed.
            for other in self.pending.values():
                other.done, other.after = True, []
            self.pending.clear()
            self._history.forget()
            self._idle()
            raise

    def drain_all(self) -> None:
        """Run everything, without anybody's waiting for it."""
        self.drain(list(self.pending.values()))

    def _idle(self) -> None:
        self.heap.lazy = False
        self.heap.release()

    # -- graphs

    @property
    def capturing(self) -> bool:
        return self.captured is not None

    def begin_capture(self, stream: Any) -> None:
        if self.captured is not None:
            raise EmulationError("CAPTURE", "a capture begins while another one is under way")
        self.captured = stream.capture = Capture(stream)

    def end_capture(self, stream: Any) -> EmulatedGraph:
        capture = self.captured
        if capture is None or capture.origin is not stream:
            raise EmulationError("CAPTURE", "a capture ends on a stream on which none has begun")
        self.captured = None
        for s in capture.streams:
            s.capture = None
        works = {i for i, (kind, _, _) in enumerate(capture.steps) if kind == "work"}
        lost = sorted(works - capture.seen[0])
        if lost:
            _, at, work = capture.steps[lost[0]]
            name = work.name if isinstance(work, Work) else ""
            raise EmulationError("CAPTURE", f"{name} was captured on stream {capture.streams[at].handle}, which does "
                                            "not join the stream of the capture",
                                 help="record an event after it, and let the captured stream wait for it")
        return EmulatedGraph(capture)

    def replay(self, graph: EmulatedGraph, stream: EmulatedStream) -> None:
        """Give everything that was captured to this stream and to new ones beside it."""
        if stream.capture is not None:
            raise EmulationError("CAPTURE", "a graph runs on a stream that is captured")
        self.counters.graph_launches += 1
        # A stream of the capture does nothing before it waits for an event of it, so a new one starts with nothing.
        streams = [stream, *(self.stream() for _ in range(graph.streams - 1))]
        events: dict[int, EmulatedEvent] = {}
        for kind, at, what in graph.steps:
            if isinstance(what, Work):
                self._issue(streams[at], what)
            elif kind == "record":
                events[id(what)] = EmulatedEvent()
                self.record(events[id(what)], streams[at])
            else:
                self.wait(streams[at], events[id(what)])
        for s in streams[1:]:
            self._counts.pop(s.handle, None)  # joined by now: who knows of this stream knows of them

    def forbid_in_capture(self, what: str) -> None:
        if self.captured is not None:
            raise EmulationError("CAPTURE", f"{what} while work is captured")
