"""A CUDA device that is emulated on the host: the Device of runtime/cuda/device.py, without a GPU.

Checked (the default), everything that a device forgives by luck is an error: races, reads of what nobody wrote,
accesses outside of what a launch declares, missing barriers and events. Unchecked, it is as fast as a plain emulation
can be, for whole programs.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from symc.runtime.cuda.device import (
    Communicator,
    Copied,
    Factorization,
    Kernel,
    Product,
    Properties,
    Signature,
    Span,
)
from symc.runtime.emulator import kernels, native
from symc.runtime.emulator.emulated_cublas import ProductCall
from symc.runtime.emulator.emulated_cusolver import FactorizationCall
from symc.runtime.emulator.errors import EmulationError
from symc.runtime.emulator.kernels import Arguments, LaunchShape, LaunchTraffic, Module, traffic_of
from symc.runtime.emulator.memory import EmulatedMemory, Heap, PinnedMemory, host_bytes
from symc.runtime.emulator.ranks import communicators
from symc.runtime.emulator.streams import Streams, Work

#: What an H200 has.
ARCH, MULTIPROCESSORS, SHARED_BYTES, L2_BYTES = "sm_90", 132, 232448, 60 * 2**20
#: How much of the host's memory an emulated device uses at most.
TOTAL_BYTES = 32 * 2**30
#: In which order threads and blocks run; any other number is a seed.
FORWARD, BACKWARD = 0, 1


class EmulatedDevice(Streams):
    """Streams, and what they are given. ``checked``: find mistakes; else be quick. ``order``: in which order threads
    and blocks run (FORWARD, BACKWARD or a seed); ``seed``: in which order works of several streams run. ``fused``:
    products and sums of kernels may be contracted, as NVRTC does. Streams, events, graphs and kernels that it is given
    (``Any``) are those it made."""

    dlpack_device = (1, 0)  # its memory is the host's

    def __init__(self, index: int = 0, checked: bool = True, *, order: int = FORWARD, seed: int = 0,
                 fused: bool = False, total_bytes: int = TOTAL_BYTES):
        self.index, self.name, self.checked, self.order, self.fused = index, f"cuda:{index}", checked, order, fused
        self.properties = Properties("emulated device", ARCH, MULTIPROCESSORS, SHARED_BYTES, L2_BYTES, total_bytes)
        super().__init__(checked, seed, Heap(total_bytes, checked))
        self._pinned = PinnedMemory()
        self._modules: dict[str, Module] = {}
        self._records: list[LaunchTraffic] | None = None
        self._sample = 0

    # -- memory

    def alloc(self, nbytes: int) -> EmulatedMemory:
        self.forbid_in_capture("memory is allocated")
        self.counters.allocations += 1
        return self.heap.alloc(nbytes)

    def pinned(self, nbytes: int) -> np.ndarray:
        self.forbid_in_capture("memory is allocated")
        return self._pinned.make(nbytes)

    def upload(self, target: int, source: np.ndarray, stream: Any) -> None:
        address, nbytes = host_bytes(source)
        self.heap.require(target, nbytes, "an upload")
        host: tuple[Span, ...] = ((address, nbytes),)
        if not self._pinned.has(source):
            if nbytes:
                self.forbid_in_capture("memory that is not pinned is copied")
            source, host = (source.copy() if self.lazy else source), ()

        def run() -> None:
            ctypes.memmove(target, source.ctypes.data, nbytes)
            self.heap.mark(target, nbytes, native.WRITTEN)

        self.submit(stream, Work("an upload", run, host, ((target, nbytes),), ("h2d_bytes", nbytes)))

    def download(self, target: np.ndarray, source: int, stream: Any) -> None:
        address, nbytes = host_bytes(target)
        self.heap.require(source, nbytes, "a download")
        if nbytes and not self._pinned.has(target):
            self.forbid_in_capture("memory that is not pinned is copied")
        if self.lazy and stream.capture is None:
            ctypes.memset(address, 0xFF, nbytes)  # who reads it before the stream is synchronized does not see it

        def run() -> None:
            self.heap.require_written(source, nbytes, "a download")
            ctypes.memmove(target.ctypes.data, source, nbytes)

        self.submit(stream, Work("a download", run, ((source, nbytes),), ((address, nbytes),),
                                          ("d2h_bytes", nbytes)))

    def copy(self, target: int, source: int, nbytes: int, stream: Any) -> None:
        self.heap.require(target, nbytes, "a copy")
        self.heap.require(source, nbytes, "a copy")
        if self.checked and target < source + nbytes and source < target + nbytes and nbytes:
            raise EmulationError("LAUNCH", f"a copy of {nbytes} bytes overlaps itself")
        self.submit(stream, Work("a copy", lambda: self.heap.copy(target, source, nbytes),
                                          ((source, nbytes),), ((target, nbytes),), ("d2d_bytes", nbytes)))

    def fill(self, target: int, byte: int, nbytes: int, stream: Any) -> None:
        self.heap.require(target, nbytes, "a fill")

        def run() -> None:
            ctypes.memset(target, byte, nbytes)
            self.heap.mark(target, nbytes, native.WRITTEN)

        self.submit(stream, Work("a fill", run, (), ((target, nbytes),)))

    # -- code

    def load(self, text: str, signatures: Sequence[Signature]) -> dict[str, Kernel]:
        key = "\0".join([text, *(s.name for s in signatures)])
        if key not in self._modules:
            self._modules[key] = Module(text, signatures, self.checked, self.fused)
        return self._modules[key].entries(text, signatures)

    def launch(self, kernel: Any, grid: tuple[int, int, int], block: int, shared: int, arguments: int,
               stream: Any, reads: Sequence[Span] = (), writes: Sequence[Span] = ()) -> None:
        shape = LaunchShape(grid, block, shared)
        kernels.check_launch(kernel, shape, self.properties.shared_bytes)
        given = Arguments(kernel.widths, arguments)
        if self.checked:
            kernels.check_aliases(kernel, given, reads, writes)
        reads, writes = tuple(s for s in reads if s[1]), tuple(s for s in writes if s[1])
        spans = _spans(reads, writes)
        if self.checked and not spans:  # nothing is declared: whatever an argument points into may be touched
            blocks = {b for a in given.pointing().values() if (b := self.heap.block_of(a)) is not None}
            reads = writes = tuple(sorted(blocks))

        def run() -> None:
            moved = native.Traffic() if self._records is not None else None
            rows = kernels.run(kernel, shape, given, self.heap.region, self.order, self._sample, spans, moved)
            if moved is not None and self._records is not None:
                self._records.append(traffic_of(kernel.name, shape, moved, rows[: len(spans)]))

        self.submit(stream, Work(kernel.name, run, reads, writes, ("launches", 1)))

    # -- libraries

    def product(self, p: Product, a: int, b: int, c: int, stream: Any) -> None:
        call = ProductCall(p, a, b, c)
        self.submit(stream, Work("a product", lambda: call.run(self.heap), call.reads, call.writes,
                                          ("library_calls", 1)))

    def factorize(self, f: Factorization, addresses: Sequence[int], stream: Any) -> None:
        self.forbid_in_capture("cuSOLVER is called")
        call = FactorizationCall(f, addresses)
        self.submit(stream, Work("a factorization", lambda: call.run(self.heap), call.reads, call.writes,
                                          ("library_calls", 1)))

    # -- order

    def elapsed(self, start: Any, end: Any) -> float:
        if start.happened is None or end.happened is None:
            raise EmulationError("ORDER", "the time between two events is asked for before both have happened",
                                 help="synchronize the stream first")
        return (end.happened - start.happened) * 1e3

    # -- several devices

    def ranks(self, devices: Sequence[Any]) -> Sequence[Communicator]:
        return communicators(devices)

    # -- graphs

    def run_graph(self, graph: Any, stream: Any, before: Sequence[Copied] = (), after: Sequence[Copied] = ()) -> None:
        for copy in before:
            self.copy(*copy, stream)
        self.replay(graph, stream)
        for copy in after:
            self.copy(*copy, stream)

    # -- what only an emulated device can tell

    @contextlib.contextmanager
    def measuring(self) -> Iterator[list[LaunchTraffic]]:
        """Count what launches move; the list has a record of each that ran, when the block ends."""
        if not self.checked:
            raise EmulationError("LAUNCH", "only a checked device counts what launches move")
        records: list[LaunchTraffic] = []
        with self._meanwhile("_records", records):
            yield records

    @contextlib.contextmanager
    def sampling(self, blocks: int) -> Iterator[None]:
        """Run so many blocks of each launch only, the first and the last among them: for arrays that are so large that
        indices need 64 bits, and that no test could fill. What the other blocks would write is not known afterwards."""
        with self._meanwhile("_sample", blocks):
            yield

    @contextlib.contextmanager
    def _meanwhile(self, name: str, value: Any) -> Iterator[None]:
        """Let all that runs meanwhile see a setting."""
        self.drain_all()
        before = getattr(self, name)
        setattr(self, name, value)
        try:
            yield
            self.drain_all()
        finally:
            setattr(self, name, before)

    def assume_written(self, address: int, nbytes: int) -> None:
        """Let memory count as written; it holds zeros where nobody has written, if it is fresh and large."""
        self.heap.require(address, nbytes, "what is assumed to be written")
        self.heap.mark(address, nbytes, native.WRITTEN)


def _spans(reads: Sequence[Span], writes: Sequence[Span]) -> list[tuple[Span, bool, bool]]:
    """Each declared range once, and whether it may be read and written."""
    kinds: dict[Span, list[bool]] = {}
    for s in reads:
        kinds.setdefault(tuple(s), [False, False])[0] = True  # type: ignore[arg-type]
    for s in writes:
        kinds.setdefault(tuple(s), [False, False])[1] = True  # type: ignore[arg-type]
    return [(s, r, w) for s, (r, w) in kinds.items()]
