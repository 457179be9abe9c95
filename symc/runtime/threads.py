"""Number of threads that a call may use, where it does not say so."""

from __future__ import annotations

import functools
import os

from symc.errors import InputError
from symc.runtime.cpu.native.pool_ir import MOST_THREADS

#: The environment variable that says how many.
VARIABLE = "SYMC_NUM_THREADS"


def threads_of(threads: int | None) -> int:
    """The number asked for; else what the variable says; else one for each processor that this process may use."""
    if threads is None:
        text = os.environ.get(VARIABLE, "").strip()
        if text and not (text.isdigit() and int(text)):
            raise InputError(f"{VARIABLE}: {text!r} is not a number of threads", help=f"{VARIABLE}=4")
        threads = int(text) if text else processors()
    return min(threads, MOST_THREADS)


def processors() -> int:
    """The number of processors that this process may use: those it is bound to, or fewer if its group has less time."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(bound, _quota() or bound))


@functools.cache
def _quota() -> int | None:
    """The number of processors whose time Linux gives the group of this process, as in containers."""
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as f:
            quota, period = f.read().split()
        return max(1, round(int(quota) / int(period)))
    except (OSError, ValueError):  # no such file, or no limit
        return None
