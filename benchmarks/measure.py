"""Clocks and memory of the running process."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BATCH_SECONDS = 5e-4
"""Short calls are timed in batches of at least this long, so that reading two clocks does not show."""

_STATUS = Path("/proc/self/status")


class Timer:
    """Times repeated calls of one function, batch by batch."""

    def __init__(self, call: Callable[[], Any], wait: Callable[[Any], None], threads: int) -> None:
        self.call, self.wait, self.threads, self.batch = call, wait, threads, 1
        self.fastest = float("inf")

    def warm_up(self, seconds: float) -> None:
        """Settle caches and choose the batch length. A call that is itself longer than this needs neither.

        Several calls tell that: the second one may still prepare something.
        """
        for _ in range(3):
            self.run(0)
        for _ in range(3):
            if self.fastest > seconds:
                return
            self.batch = max(1, int(BATCH_SECONDS / max(self.fastest, 1e-8)))
            self.run(seconds)

    def run(self, seconds: float) -> tuple[list[float], list[float]]:
        """Wall and CPU seconds a call, one pair a batch, until so much CPU time is used up; at least one.

        With several threads CPU is one mean instead, and the slice ends by the wall clock: the CPU clock hears of other
        threads too late for a short batch.
        """
        wall: list[float] = []
        cpu: list[float] = []
        clock = time.process_time if self.threads == 1 else time.perf_counter
        end = clock() + seconds
        while not wall or clock() < end:
            cpu_start, start = time.process_time(), time.perf_counter()
            for _ in range(self.batch):
                result = self.call()
            self.wait(result)
            cpu.append((time.process_time() - cpu_start) / self.batch)
            wall.append((time.perf_counter() - start) / self.batch)
        self.fastest = min(self.fastest, *wall)
        return wall, cpu if self.threads == 1 else [sum(cpu) / len(cpu)]


class PeakMemory:
    """MiB by which resident memory rises above its level at construction. Linux only; None elsewhere."""

    def __init__(self) -> None:
        self.base = _status_mib("VmRSS")
        if self.base is not None:
            Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark

    def rise(self) -> float | None:
        peak = _status_mib("VmHWM")
        return None if peak is None or self.base is None else peak - self.base


def _status_mib(key: str) -> float | None:
    if not _STATUS.exists():
        return None
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) / 1024
