"""Memory of an emulated device: a part of the host's address space with gaps between what is allocated.

An address is that of the bytes themselves. Checked memory has a shadow (native/shadow.h) that knows of each byte
whether it is allocated and written; given back, it is not used again for a while, so that who still has its address is
found out.
"""

from __future__ import annotations

import bisect
import ctypes
import weakref
from collections import deque

import numpy as np

from symc.runtime.cuda.device import ALIGN
from symc.runtime.emulator import native
from symc.runtime.emulator.errors import EmulationError

#: Bytes that were given back and wait; blocks of so many bytes and more give their pages to the system meanwhile.
QUARANTINE, LARGE = 1 << 26, 1 << 20
#: Blocks of so many bytes and more are not filled with nans at first; pages that nobody touches cost nothing then.
HUGE = 1 << 28


class EmulatedMemory:
    """A block; given back when this object goes."""

    __slots__ = ("__weakref__", "_finalizer", "address", "nbytes")

    def __init__(self, heap: Heap, address: int, nbytes: int):
        self.address, self.nbytes = address, nbytes
        self._finalizer = weakref.finalize(self, heap.given_back, address)
        self._finalizer.atexit = False


class Heap:
    """The memory of one device. ``idle()``: whether nothing is left to do that may touch memory."""

    def __init__(self, total_bytes: int, checked: bool):
        self.total_bytes, self.used_bytes, self.checked = total_bytes, 0, checked
        # Twice as much address space as memory: what waits in quarantine is not counted.
        runtime = native.runtime()
        self.size = 2 * total_bytes
        self.base = runtime.symc_reserve(self.size)
        if not self.base:
            raise MemoryError(f"no address space for an emulated device of {total_bytes} bytes")
        weakref.finalize(self, runtime.symc_unreserve, self.base, self.size).atexit = False
        self._next = -(-self.base // ALIGN) * ALIGN + ALIGN
        self._starts: list[int] = []
        self._sizes: dict[int, int] = {}
        self._spare: dict[int, list[int]] = {}
        self._waiting: deque[int] = deque()  # given back, may still be touched by what was asked for before
        self._quarantine: deque[tuple[int, int]] = deque()
        self._quarantined = 0
        self.lazy = False  # whether work is pending
        self.region = runtime.symc_region_new(self.base, self.size) if checked else None
        if self.region is not None:
            weakref.finalize(self, runtime.symc_region_delete, self.region).atexit = False

    # -- blocks

    def alloc(self, nbytes: int) -> EmulatedMemory:
        nbytes = max(1, nbytes)
        if self.used_bytes + nbytes > self.total_bytes:
            raise MemoryError(f"{nbytes} bytes do not fit into the emulated device: {self.used_bytes} of "
                              f"{self.total_bytes} are in use")
        room = _room(nbytes)
        spare = self._spare.get(room)
        if spare:
            address = spare.pop()
        else:
            address = self._next
            if address + room + ALIGN > self.base + self.size:
                raise MemoryError("the emulated device has no addresses left")
            self._next = address + room + ALIGN
        bisect.insort(self._starts, address)
        self._sizes[address] = nbytes
        self.used_bytes += nbytes
        if self.region is not None:
            if nbytes < HUGE:
                ctypes.memset(address, 0xFF, nbytes)
            self.mark(address, nbytes, native.UNWRITTEN)
        return EmulatedMemory(self, address, nbytes)

    def given_back(self, address: int) -> None:
        """The owner of a block is gone. What was asked for before that may still be pending, and use it."""
        self._waiting.append(address)
        if not self.lazy:
            self.release()

    def release(self) -> None:
        """Nothing is pending: blocks whose owners are gone are gone."""
        while self._waiting:
            address = self._waiting.popleft()
            nbytes = self._sizes.pop(address)
            del self._starts[bisect.bisect_left(self._starts, address)]
            self.used_bytes -= nbytes
            room = _room(nbytes)
            if self.region is None:
                self._spare.setdefault(room, []).append(address)
                continue
            self.mark(address, nbytes, native.FREED)
            if nbytes < LARGE:
                ctypes.memset(address, 0xFF, nbytes)
            else:
                native.runtime().symc_empty(address, nbytes)
            self._quarantine.append((address, room))
            self._quarantined += room
        while self._quarantined > QUARANTINE:
            address, room = self._quarantine.popleft()
            self._quarantined -= room
            self._spare.setdefault(room, []).append(address)

    def block_of(self, address: int) -> tuple[int, int] | None:
        """Start and size of the block that has this address; None: no block has."""
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        start = self._starts[at]
        nbytes = self._sizes[start]
        return (start, nbytes) if address < start + nbytes else None

    def require(self, address: int, nbytes: int, what: str) -> None:
        """Raise where a range is not inside of one block that is allocated."""
        if not nbytes:
            return
        found = self.block_of(address)
        if found is None:
            gone = any(a <= address < a + room for a, room in self._quarantine)
            raise EmulationError("FREED" if gone else "BOUNDS",
                                 f"{what} names {nbytes} bytes of memory that "
                                 + ("was given back" if gone else "is not allocated on this device"))
        if found[0] in self._waiting:
            raise EmulationError("FREED", f"{what} names {nbytes} bytes of memory that was given back")
        start, size = found
        if address + nbytes > start + size:
            raise EmulationError("BOUNDS",
                                 f"{what} names {nbytes} bytes at byte {address - start} of a block of {size}")

    # -- what is known of bytes

    def mark(self, address: int, nbytes: int, state: int) -> None:
        if self.region is not None and nbytes:
            native.runtime().symc_region_mark(self.region, address, nbytes, state)

    def require_written(self, address: int, nbytes: int, what: str) -> None:
        """Raise where bytes are read that nobody has written."""
        if self.region is None or not nbytes:
            return
        bad = native.runtime().symc_region_unwritten(self.region, address, nbytes)
        if bad:
            raise EmulationError("UNWRITTEN",
                                 f"{what} reads byte {bad - address} of {nbytes}, which nobody has written")

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy bytes, and whether each is written."""
        ctypes.memmove(target, source, nbytes)
        if self.region is not None and nbytes:
            native.runtime().symc_region_copy(self.region, target, source, nbytes)


class PinnedMemory:
    """Memory of the host that the device can reach."""

    def __init__(self) -> None:
        self._ranges: dict[int, int] = {}

    def make(self, nbytes: int) -> np.ndarray:
        array = np.zeros(max(1, nbytes), np.uint8)
        start = array.ctypes.data
        self._ranges[start] = array.nbytes
        weakref.finalize(array, self._ranges.pop, start, None).atexit = False
        return array[:nbytes]

    def has(self, array: np.ndarray) -> bool:
        start = array.ctypes.data
        return any(a <= start and start + array.nbytes <= a + n for a, n in self._ranges.items())


def _room(nbytes: int) -> int:
    """Bytes of address space for a block; few different ones, so that a block fits where another was."""
    step = ALIGN
    while step * 16 < nbytes:
        step *= 2
    return -(-nbytes // step) * step


def host_bytes(array: np.ndarray) -> tuple[int, int]:
    """Address and size of an array of the host, which must be contiguous."""
    if not array.flags.c_contiguous:
        raise EmulationError("LAUNCH", "an array that is copied to or from a device must be contiguous")
    return array.ctypes.data, array.nbytes
