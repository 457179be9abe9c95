"""Memory traffic of launches, and its pieces: facts on which speed depends, and that need no GPU."""

from __future__ import annotations

from collections.abc import Sequence

from symc.ir.record import dataclass
from symc.runtime.cuda.device import Span
from symc.runtime.emulator import native
from symc.runtime.emulator.kernels import LaunchShape

#: Widths of accesses in bytes, as counters have them; the last one is of all others.
WIDTHS = (1, 2, 4, 8, 16, 0)


@dataclass(frozen=True)
class LaunchTraffic:
    """One launch. ``loads``, ``stores``: how many accesses to device memory there were of each width in bytes (0: of
    another one); ``read``, ``written``: bytes of each range that was declared; ``efficiency``: bytes that instructions
    of warps needed, of those that the 32-byte sectors have that they asked for; ``bank_conflicts``: how many more
    turns shared memory took than instructions."""

    kernel: str
    shape: LaunchShape
    loads: dict[int, int]
    stores: dict[int, int]
    bytes_read: int
    bytes_written: int
    read: dict[Span, int]
    written: dict[Span, int]
    atomics: int
    efficiency: float
    shared_loads: int
    shared_stores: int
    bank_conflicts: int


def traffic_of(name: str, shape: LaunchShape, t: native.Traffic, rows: Sequence[native.Span]) -> LaunchTraffic:
    """Traffic that the runtime has counted."""
    return LaunchTraffic(
        name, shape, {w: n for w, n in zip(WIDTHS, t.loads) if n}, {w: n for w, n in zip(WIDTHS, t.stores) if n},
        t.bytes_read, t.bytes_written, {(r.start, r.bytes): r.bytes_read for r in rows if r.reads},
        {(r.start, r.bytes): r.bytes_written for r in rows if r.writes}, t.atomics,
        t.sector_bytes / (32 * t.sectors) if t.sectors else 1.0, t.shared_loads, t.shared_stores, t.bank_conflicts)
