"""One program on several devices: a rank each, with its own part of what is split and a copy of everything else.

All ranks run the same plan, so they ask for the same reductions in the same order; each has a thread, as a rank may
have to wait for the others inside a call. Everything that can go wrong on the host is done for all ranks before the
first of them starts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from symc.errors import InputError
from symc.ir.dim import Size
from symc.ir.locks import new_lock
from symc.ir.plan import Plan
from symc.ir.types import DTYPE_NAMES
from symc.runtime.cpu.commit import replace_arrays
from symc.runtime.cuda.arrays import DeviceArray, Elsewhere, device_array
from symc.runtime.cuda.device import Communicator
from symc.runtime.cuda.devices import Context, context
from symc.runtime.cuda.frame import Frame
from symc.runtime.cuda.program import CudaKernelRecord, CudaProgram, Sizes
from symc.runtime.cuda.replay import Turn

#: Held during a call: devices may be in several groups, and the ranks of two calls must not wait for each other.
_calls = new_lock()


class Group:
    """Devices that work together, as ranks in this order."""

    def __init__(self, contexts: Sequence[Context]):
        self.contexts = tuple(contexts)
        self.name = ", ".join(c.name for c in contexts)
        self.communicators: Sequence[Communicator] = contexts[0].device.ranks([c.device for c in contexts])
        self._threads: list[ThreadPoolExecutor] = []
        self._process = 0  # that the threads are of

    def __len__(self) -> int:
        return len(self.contexts)

    def each(self, work: Callable[[int], None]) -> None:
        """``work(rank)`` on all ranks at once. Raises the error of the first rank that has one."""
        if self._process != os.getpid():
            self._threads = [ThreadPoolExecutor(1, f"symc {c.name}") for c in self.contexts]
            self._process = os.getpid()
        jobs = [t.submit(work, rank) for rank, t in enumerate(self._threads)]
        wait(jobs)
        for job in jobs:
            job.result()


def group(names: Sequence[str]) -> Group:
    """The group of some devices, made once."""
    contexts = tuple(map(context, names))
    with _calls:
        found = contexts[0].groups.get(contexts[1:])
        if found is None:
            found = contexts[0].groups[contexts[1:]] = Group(contexts)
        return found


class RankArrays(Elsewhere):
    """An array on several devices: ``parts`` of it along the first axis, or (not ``split``) the same on each."""

    __slots__ = ("__weakref__", "group", "parts", "split")

    def __init__(self, where: Group, parts: Sequence[DeviceArray], split: bool):
        self.group, self.parts, self.split = where, tuple(parts), split

    @property
    def shape(self) -> tuple[int, ...]:
        first = self.parts[0].shape
        return (first[0] * len(self.parts), *first[1:]) if self.split else first

    @property
    def dtype(self) -> np.dtype:
        return self.parts[0].dtype

    @property
    def nbytes(self) -> int:
        return sum(p.nbytes for p in self.parts)

    @property
    def device(self) -> str:
        return self.group.name

    def __repr__(self) -> str:
        how = "in parts on" if self.split else "on each of"
        return f"RankArrays({DTYPE_NAMES[self.dtype]}[{', '.join(map(str, self.shape))}], {how} {self.device})"

    def numpy(self) -> np.ndarray:
        """A copy on the host. It waits for all devices."""
        if self.split:
            return np.concatenate([p.numpy() for p in self.parts])
        self.block_until_ready()
        return self.parts[0].numpy()

    def block_until_ready(self) -> RankArrays:
        """Wait until it is computed on all devices."""
        for p in self.parts:
            p.block_until_ready()
        return self

    def copy(self) -> RankArrays:
        return RankArrays(self.group, [p.copy() for p in self.parts], self.split)

    def to_device(self, device: str, /, *, stream: Any = None) -> Any:
        """A NumPy array for "cpu", a copy on one device."""
        return self.numpy() if device == "cpu" else device_array(self.numpy(), device)


class HostParts:
    """An array of the host, on its way to several devices: what each is given."""

    __slots__ = ("parts", "shape")

    def __init__(self, array: np.ndarray, ranks: int, split: bool):
        self.shape = array.shape
        n = array.shape[0] // ranks if split else 0
        self.parts = [array[k * n : (k + 1) * n] if split else array for k in range(ranks)]

    def copy(self) -> HostParts:
        return self


def replicated(array: np.ndarray, where: Group) -> RankArrays:
    """A copy of an array of the host on each device."""
    return RankArrays(where, [device_array(array, c) for c in where.contexts], False)


class RanksProgram:
    """A plan on every rank. ``dims``: the sizes of first axes that are parts."""

    def __init__(self, plan: Plan, where: Group, precision: str, dims: frozenset[Size]):
        self.plan, self.group = plan, where
        self.programs = [CudaProgram(plan, c, precision, rank)
                         for c, rank in zip(where.contexts, where.communicators, strict=True)]
        outputs = len(plan.function.outputs)
        self._split = [k < outputs and bool(v.shape) and v.shape[0] in dims
                       for k, v in enumerate(plan.function.body.results)]

    @property
    def source(self) -> str:
        """The CUDA text of every distinct kernel."""
        return self.programs[0].source

    @property
    def kernels(self) -> list[CudaKernelRecord]:
        """One record a distinct kernel, as on each device."""
        return self.programs[0].kernels

    def run(self, arrays: Sequence[Any], sizes: Sizes, out: Any = None, cells: Sequence[Any] = ()) -> list[RankArrays]:
        """As ``CudaProgram.run``, with ``parts`` of all arrays, for the sizes of one rank."""
        with _calls:
            ready = [p.prepare([a.parts[rank] for a in arrays], sizes) for rank, p in enumerate(self.programs)]
            turn = self._turn([used for _, used in ready], ready[0][0])

            def start(rank: int) -> None:
                frame, used = ready[rank]
                with frame.context.lock:
                    frame.run(used, turn)

            self.group.each(start)
        found = zip(*(p.results(*of) for p, of in zip(self.programs, ready, strict=True)), strict=True)
        results = [RankArrays(self.group, parts, split) for parts, split in zip(found, self._split, strict=True)]
        replace_arrays(cells, results[len(results) - len(cells) :])
        return results

    def _turn(self, used: Sequence[Sequence[DeviceArray]], first: Frame) -> Turn | None:
        """The way in which all ranks replay a call: they capture the same ones, as reductions are captured by all."""
        given, inputs = first.lowered.given, first.lowered.inputs
        places = [tuple(a.address for a in parts) for parts in zip(*used, strict=True)]
        return first.replays.turn(places[:given] + places[inputs:], tuple(places[given:inputs]),
                                  lambda: [a.nbytes for a in used[0]])

    def timer(self, sizes: Sizes) -> Any:
        """Steps that wait for other devices have no time of their own."""
        raise InputError(f"a function on {self.group.name} cannot be profiled", help="compile it for one of them")
