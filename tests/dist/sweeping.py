"""Functions that the tests of sweeps send to other processes, and a driver that is killed."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import symc as sc


def squared(a: float, b: int = 1) -> Any:
    if a == 13:
        raise ValueError("13 is not liked")
    return {"sum": a * a + b, "pid": os.getpid()}


def deadly(a: float) -> float:
    """Ends its process at one point."""
    if a == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return a


def deadly_later(a: float) -> float:
    """The same, not so soon that Dask takes the process for one that could not start, which it does not replace."""
    time.sleep(a == 2)
    return deadly(a)


def dies_once(a: float, mark: str) -> float:
    if a == 1 and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return a


def slow(a: float) -> float:
    time.sleep(0.05)
    return a * 2


if __name__ == "__main__":
    sc.dist.sweep(slow, over={"a": range(40)}, store=sys.argv[1])
