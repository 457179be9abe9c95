"""Limits of this machine, measured when somebody asks: bytes copied in a second, from caches and from memory, and
floating-point operations of a matrix product.

Measured in a fraction of a second, once for a processor, and kept on disk with the machine code of kernels. A machine
that is busy measures low: ``machine_limits(again=True)`` measures once more, and the better numbers stay.
"""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from symc.runtime.cache import object_cache
from symc.runtime.cpu.executor import Code
from symc.runtime.cpu.native.instructions import Op

#: The bytes that a measured copy reads and writes, all in all; the last is in no cache.
FOOTPRINTS = (2**15, 2**18, 2**21, 2**24, 2**27)
#: Rows and columns of the matrices that are multiplied: a product that takes less than the time slice of a thread.
ORDER = 256


@dataclass(frozen=True)
class Limits:
    """``copy``: pairs of (bytes in use, bytes a second); ``float32`` and ``float64``: operations a second; ``of``: of
    what."""

    copy: tuple[tuple[int, float], ...]
    float32: float
    float64: float
    of: str = "a thread"

    def bandwidth(self, nbytes: int, threads: int = 1) -> float:
        """Bytes a second for a step that moves ``nbytes``: of the measured copies the smallest of at least that. Every
        thread has caches; memory is as fast for one as for all."""
        return next((rate * threads for size, rate in self.copy[:-1] if nbytes <= size * threads), self.copy[-1][1])

    def arithmetic(self, dtype: np.dtype, threads: int = 1) -> float:
        """Operations a second on numbers of this type."""
        return (self.float32 if dtype.char in "fF" else self.float64) * threads

    def better(self, other: Limits) -> Limits:
        """The greater of each number."""
        copy = tuple((size, max(a, b)) for (size, a), (_, b) in zip(self.copy, other.copy, strict=True))
        return Limits(copy, max(self.float32, other.float32), max(self.float64, other.float64), self.of)

    def __str__(self) -> str:
        cache, memory = self.copy[1][1], self.copy[-1][1]
        return (f"copy {cache / 1e9:.0f} GB/s in cache, {memory / 1e9:.0f} in memory; products "
                f"{self.float32 / 1e9:.0f} GFLOP/s in float32, {self.float64 / 1e9:.0f} in float64; {self.of}")


def machine_limits(again: bool = False) -> Limits:
    """The limits of this machine."""
    if again:
        _kept.cache_clear()
        _keep(measure().better(known) if (known := _read()) is not None else measure())
    return _kept()


@functools.cache
def _kept() -> Limits:
    known = _read()
    if known is None:
        known = measure()
        _keep(known)
    return known


def _name() -> str:
    from llvmlite import binding

    told = [f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith("OPENBLAS_")]  # to use less than there is
    return object_cache.key(["limits", str(FOOTPRINTS), str(ORDER), binding.get_host_cpu_name(), *told])


def _read() -> Limits | None:
    data = object_cache.read_data(_name())
    if data is None:
        return None
    found = json.loads(data)
    return Limits(tuple((size, rate) for size, rate in found["copy"]), found["float32"], found["float64"])


def _keep(limits: Limits) -> None:
    object_cache.write_data(_name(), json.dumps(asdict(limits)).encode())


def measure() -> Limits:
    """The limits, measured now, on the calling thread, by the time that it ran: others may run beside."""
    return Limits(tuple((n, _copy_rate(n)) for n in FOOTPRINTS), _product_rate("float32"), _product_rate("float64"))


def _copy_rate(footprint: int) -> float:
    half = footprint // 2
    a, b = np.ones(half, np.uint8), np.ones(half, np.uint8)
    code, times = Code(), max(1, 2**22 // footprint)
    to, source, counter = code.slot(), code.slot(), code.slot()
    code.emit(Op.SET, counter, times)
    start = code.label()
    code.emit(Op.COPY, to, source, half)
    code.emit(Op.LOOP, counter, start)
    executable = code.finish()
    executable.words[to], executable.words[source] = a.ctypes.data, b.ctypes.data
    best = min(_seconds(executable.run) for _ in range(9))
    return times * footprint / best


def _product_rate(dtype: str) -> float:
    import symc as sc

    x, y = sc.input("x", dtype, (ORDER, ORDER)), sc.input("y", dtype, (ORDER, ORDER))
    program = sc.compile(x @ y, [x, y], mode="default", pipeline="canonicalize,fuse", threads=1)._compilation.program
    ones = np.ones((ORDER, ORDER), dtype)
    best = min(_seconds(lambda: program.run([ones, ones], {})) for _ in range(25))
    return 2 * ORDER**3 / best


def _seconds(run: Callable[[], object]) -> float:
    begin = time.thread_time()
    run()
    return time.thread_time() - begin
