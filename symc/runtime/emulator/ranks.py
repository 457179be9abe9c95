"""Emulated devices that work together: collective operations as NCCL has them (runtime/cuda/nccl.py), in one process.

A collective operation is done when every rank has come to it: whoever waits for one rank runs what the others have to
do before. Calls of all ranks must be the same in the same order, made by a thread for each. Sums are added in the order
of ranks.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.errors import DTypeError
from symc.ir.locks import new_lock
from symc.ir.record import dataclass
from symc.runtime.emulator import native
from symc.runtime.emulator.errors import EmulationError
from symc.runtime.emulator.streams import Pending, Streams, Work

#: How long a rank waits for another one, in seconds.
PATIENCE = 100.0
_KINDS: dict[str, Callable[..., np.ndarray]] = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum}


@dataclass(frozen=True)
class Call:
    """Reduction that all ranks must ask for alike."""

    count: int
    dtype: np.dtype
    kind: str

    def __str__(self) -> str:
        return f"all_reduce({self.count} x {self.dtype}, {self.kind})"


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
        self.thread = threading.current_thread()

    def run(self) -> None:
        self.group.arrive(self)


class _Group:
    """The ranks of one communicator."""

    def __init__(self, devices: Sequence[Streams]):
        self.devices = tuple(devices)
        self.lock = new_lock()
        self.changed = threading.Condition(self.lock)
        self.rounds: dict[int, _Round] = {}
        self.made = [0] * len(devices)  # how many calls each rank has made
        for device in devices:
            device.lock = self.lock

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
                if other.thread == made.thread:
                    raise EmulationError("ORDER", f"one thread asks for {call} of ranks {other.rank} and {rank} one "
                                                  "after the other: the first may wait for the second for ever",
                                         help="each rank has a thread of its own")
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
                if device.lazy and other.pending is not None:
                    device.drain([other.pending])
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
        n, call = count * dtype.itemsize, Call(count, dtype, kind)
        for start in (source, target):
            self.device.heap.require(start, n, str(call))
        if source != target and target < source + n and source < target + n:
            raise EmulationError("LAUNCH", f"the source of {call} overlaps its target, and is not the same")
        part = functools.partial(self._group.part, self.rank, call, target, source)
        work = Work(str(call), lambda: None, ((source, n),), ((target, n),), ("library_calls", 1), part)
        self.device.submit(stream, work)


def communicators(devices: Sequence[Streams]) -> list[EmulatedCommunicator]:
    """A rank for each of several devices of this process."""
    group = _Group(devices)
    return [EmulatedCommunicator(group, rank) for rank in range(len(devices))]


def _perform(devices: Sequence[Streams], parts: Sequence[_Part]) -> None:
    call = parts[0].call
    n = call.count * call.dtype.itemsize
    given = []
    for rank, part in enumerate(parts):
        devices[rank].heap.require_written(part.source, n, f"{call} on rank {rank}")
        given.append(np.frombuffer(ctypes.string_at(part.source, n), call.dtype))
    with np.errstate(all="ignore"):
        result = functools.reduce(_KINDS[call.kind], given).tobytes()
    for rank, part in enumerate(parts):
        ctypes.memmove(part.target, result, n)
        devices[rank].heap.mark(part.target, n, native.WRITTEN)
