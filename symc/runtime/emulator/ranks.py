"""Emulated devices that work together: collective operations as NCCL has them (runtime/cuda/nccl.py), in one process.

A collective operation is done when every rank has come to it: whoever waits for one rank runs what the others have to
do before. Calls of all ranks must be the same in the same order; several ranks of one thread make theirs inside
``grouped``. Sums are added in the order of ranks.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from symc.errors import DTypeError
from symc.ir.locks import new_lock
from symc.ir.record import dataclass
from symc.runtime.cuda.device import Span
from symc.runtime.emulator import native
from symc.runtime.emulator.errors import EmulationError
from symc.runtime.emulator.streams import Pending, Work

#: How long a rank waits for another one, in seconds.
PATIENCE = 100.0
_KINDS: dict[str, Callable[..., np.ndarray]] = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum}
_groups = threading.local()


class Emulated(Protocol):
    """A device, as far as its ranks know it."""

    streams: Any
    heap: Any


@dataclass(frozen=True)
class Call:
    """Collective call that all ranks must ask for alike. ``root``: a rank, of a broadcast; ``kind``: of a reduction."""

    name: str
    count: int
    dtype: np.dtype
    kind: str = ""
    root: int = 0

    def __str__(self) -> str:
        return f"{self.name}({self.count} x {self.dtype}" + (f", {self.kind})" if self.kind else f", root {self.root})")


class _Round:
    """One collective operation: who has asked for it, and who has come to it."""

    def __init__(self) -> None:
        self.parts: dict[int, _Part] = {}
        self.arrived: set[int] = set()
        self.done = False


class _Part:
    """Part of one rank in a round."""

    def __init__(self, group: _Group, round_: _Round, rank: int, call: Call, target: int, source: int):
        self.group, self.round, self.rank, self.call = group, round_, rank, call
        self.target, self.source = target, source
        self.pending: Pending | None = None
        self.thread, self.grouped = threading.get_ident(), bool(getattr(_groups, "open", 0))

    def run(self) -> None:
        self.group.arrive(self)


class _Group:
    """The ranks of one communicator."""

    def __init__(self, devices: Sequence[Emulated]):
        self.devices = tuple(devices)
        self.lock = new_lock()
        self.changed = threading.Condition(self.lock)
        self.rounds: dict[int, _Round] = {}
        self.made = [0] * len(devices)  # how many calls each rank has made
        for device in devices:
            device.streams.lock = self.lock

    def part(self, rank: int, call: Call, target: int, source: int) -> _Part:
        """A rank asks for its next operation."""
        with self.lock:
            number = self.made[rank]
            self.made[rank] += 1
            round_ = self.rounds.setdefault(number, _Round())
            made = _Part(self, round_, rank, call, target, source)
            for other in round_.parts.values():
                if other.call != call:
                    raise EmulationError("ORDER", f"rank {rank} asks for {call} where rank {other.rank} asks for "
                                                  f"{other.call}")
                if other.thread == made.thread and not (other.grouped and made.grouped):
                    raise EmulationError("ORDER", f"one thread asks for {call} of ranks {other.rank} and {rank} one "
                                                  "after the other: the first may wait for the second for ever",
                                         help="make the calls of all ranks of a thread inside grouped()")
            round_.parts[rank] = made
            if len(round_.parts) == len(self.devices):
                del self.rounds[number]
            self.changed.notify_all()
            return made

    def arrive(self, part: _Part) -> None:
        """A rank has done all that is before: run what the others have to do, and then the operation."""
        with self.lock:
            round_ = part.round
            round_.arrived.add(part.rank)
            self.changed.notify_all()
            for rank, device in enumerate(self.devices):
                if not self.changed.wait_for(lambda r=rank: r in round_.parts, PATIENCE):  # type: ignore[misc]
                    raise EmulationError("ORDER", f"rank {part.rank} waits for rank {rank}, which does not ask for "
                                                  f"{part.call}")
                other = round_.parts[rank]
                if rank in round_.arrived or round_.done:
                    continue
                if device.streams.lazy and other.pending is not None:
                    device.streams.drain([other.pending])
                round_.arrived.add(rank)  # what is not lazy has done what is before
            if not round_.done:
                round_.done = True
                _perform(self.devices, [round_.parts[r] for r in range(len(self.devices))])


class EmulatedCommunicator:
    """One rank. Streams that it is given are of its own device."""

    def __init__(self, group: _Group, rank: int):
        self._group, self.rank, self.size = group, rank, len(group.devices)
        self.device = group.devices[rank]

    def all_reduce(self, target: int, source: int, count: int, dtype: np.dtype, kind: str, stream: Any) -> None:
        if dtype.kind not in "iufc" or (dtype.kind == "c" and kind != "add"):
            raise DTypeError(f"numbers of dtype {dtype} cannot be reduced by {kind!r}")
        if kind not in _KINDS:
            raise EmulationError("LAUNCH", f"{kind!r} is no reduction; there are {', '.join(_KINDS)}")
        n = count * dtype.itemsize
        self._ask(Call("all_reduce", count, dtype, kind), target, source, n, n, stream)

    def broadcast(self, target: int, source: int, count: int, dtype: np.dtype, root: int, stream: Any) -> None:
        n = count * dtype.itemsize
        self._ask(Call("broadcast", count, dtype, root=root), target, source, n, n if self.rank == root else 0, stream)

    def all_gather(self, target: int, source: int, count: int, dtype: np.dtype, stream: Any) -> None:
        n = count * dtype.itemsize
        if source != target + self.rank * n and source < target + self.size * n and target < source + n:
            raise EmulationError("LAUNCH", "the source of a gather overlaps its target, and is not this rank's part")
        self._ask(Call("all_gather", count, dtype), target, source, self.size * n, n, stream)

    def _ask(self, call: Call, target: int, source: int, written: int, read: int, stream: Any) -> None:
        reads: tuple[Span, ...] = ((source, read),) if read else ()
        for start, nbytes in (*reads, (target, written)):
            self.device.heap.require(start, nbytes, str(call))
        if source != target and call.name != "all_gather" and target < source + read and source < target + written:
            raise EmulationError("LAUNCH", f"the source of {call} overlaps its target, and is not the same")
        work = Work(str(call), lambda: None, reads, ((target, written),), ("library_calls", 1),
                    functools.partial(self._group.part, self.rank, call, target, source))
        if getattr(_groups, "open", 0) and stream.capture is None and not self.device.streams.lazy:
            _groups.calls.append((self.device, stream, work))
        else:
            self.device.streams.submit(stream, work)


def communicators(devices: Sequence[Emulated]) -> list[EmulatedCommunicator]:
    """A rank for each of several devices of this process."""
    group = _Group(devices)
    return [EmulatedCommunicator(group, rank) for rank in range(len(devices))]


@contextmanager
def grouped() -> Iterator[None]:
    """The calls made meanwhile belong together: none waits for another."""
    outer = getattr(_groups, "open", 0)
    if not outer:
        _groups.calls = []
    _groups.open = outer + 1
    try:
        yield
        if not outer:
            _start_together(_groups.calls)
    finally:
        _groups.open = outer


def _start_together(calls: list[tuple[Emulated, Any, Work]]) -> None:
    """Give works to devices that do each at once: all are known before the first is done."""
    parts = [work.part() if work.part is not None else None for _, _, work in calls]
    for (device, stream, work), part in zip(calls, parts):
        if part is not None:
            device.streams.submit(stream, Work(work.name, part.run, work.reads, work.writes, work.count))


def _perform(devices: Sequence[Emulated], parts: Sequence[_Part]) -> None:
    call = parts[0].call
    n = call.count * call.dtype.itemsize
    sources = range(len(parts)) if call.name != "broadcast" else [call.root]
    given = {}
    for rank in sources:
        devices[rank].heap.require_written(parts[rank].source, n, f"{call} on rank {rank}")
        given[rank] = ctypes.string_at(parts[rank].source, n)
    if call.name == "all_reduce":
        result = _reduced([np.frombuffer(given[rank], call.dtype) for rank in sources], call.kind)
    else:
        result = b"".join(given.values())
    for rank, part in enumerate(parts):
        ctypes.memmove(part.target, result, len(result))
        devices[rank].heap.mark(part.target, len(result), native.WRITTEN)


def _reduced(arrays: Sequence[np.ndarray], kind: str) -> bytes:
    with np.errstate(all="ignore"):
        return functools.reduce(_KINDS[kind], arrays).tobytes()
