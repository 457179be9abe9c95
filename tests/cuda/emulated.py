"""Runs CUDA C++ on the emulated device, for tests of the emulator itself."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from symc.runtime.cuda.device import Signature
from symc.runtime.emulator import EmulatedDevice

#: Marks tests that run kernels.
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="the emulated device needs g++")


class Bench:
    """A device, a stream, and arrays on it."""

    def __init__(self, **options):
        self.device = EmulatedDevice(**options)
        self.stream = self.device.stream()
        self.blocks = []

    def put(self, array) -> int:
        array = np.ascontiguousarray(array)
        address = self.room(array.nbytes)
        self.device.upload(address, array, self.stream)
        return address

    def room(self, nbytes: int) -> int:
        self.blocks.append(self.device.alloc(nbytes))
        return self.blocks[-1].address

    def get(self, address: int, like) -> np.ndarray:
        out = np.empty_like(like)
        self.device.download(out, address, self.stream)
        self.device.synchronize(self.stream)
        return out

    def kernel(self, text: str, name: str, *arguments, entries=()):
        """``arguments``: what it will be called with; an int is an address, the rest are numbers of NumPy. ``entries``:
        all kernels of the text, if they are several that are called alike."""
        widths = tuple(8 if isinstance(a, int) else a.itemsize for a in arguments)
        return self.device.load(text, [Signature(n, widths) for n in entries or [name]])[name]

    def launch(self, kernel, *arguments, grid=(1, 1, 1), block=128, shared=0, reads=(), writes=(), stream=None):
        cells = np.zeros(len(arguments), np.uint64)
        pointers = np.zeros(len(arguments), np.uint64)
        for i, a in enumerate(arguments):
            data = np.asarray(a, np.uint64 if isinstance(a, int) else a.dtype).tobytes()
            cells[i : i + 1].view(np.uint8)[: len(data)] = np.frombuffer(data, np.uint8)
            pointers[i] = cells[i:].ctypes.data
        grid = (grid, 1, 1) if isinstance(grid, int) else grid
        self.device.launch(kernel, grid, block, shared, pointers.ctypes.data, stream or self.stream, reads, writes)


def run(text: str, name: str, arguments, *, grid=1, block=128, shared=0, declared=True, entries=(),
        **options) -> list[np.ndarray]:
    """Run one kernel and give back the arrays that it writes.

    ``arguments``: numbers, and pairs of an array and how it is used: "r", "w" (its numbers are not sent), "rw".
    """
    on = Bench(**options)
    given, reads, writes, out = [], [], [], []
    for a in arguments:
        if not isinstance(a, tuple):
            given.append(a)
            continue
        array, use = a
        given.append(on.put(array) if "r" in use else on.room(array.nbytes))
        span = (given[-1], array.nbytes)
        reads += [span] if "r" in use else []
        writes += [span] if "w" in use else []
        out += [(given[-1], array)] if "w" in use else []
    kernel = on.kernel(text, name, *given, entries=entries)
    spans = {"reads": reads, "writes": writes} if declared else {}
    on.launch(kernel, *given, grid=grid, block=block, shared=shared, **spans)
    return [on.get(address, array) for address, array in out]
