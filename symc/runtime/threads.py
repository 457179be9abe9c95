"""Number of threads that a call may use, where it does not say so."""

from __future__ import annotations

import functools
import os

from symc.runtime.cpu.native.pool_words import MOST_THREADS
from symc.settings import config, variable

VARIABLE = variable("threads")
#: The one by which joblib, Dask and others tell their workers, among which they divide the processors.
SHARE = "OMP_NUM_THREADS"


def threads_of(threads: int | None) -> int:
    """The number asked for; else what the setting says; else one for each processor that this process may use, but no
    more than its share."""
    if threads is None:
        threads = config.threads or min(processors(), _share() or MOST_THREADS)
    return min(threads, MOST_THREADS)


def processors() -> int:
    """The number of processors that this process may use: those it is bound to, or fewer if its group has less time."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(bound, _quota() or bound))


def _share() -> int | None:
    """The number of threads that those who started this process give it; None if they do not say."""
    first = os.environ.get(SHARE, "").partition(",")[0].strip()  # a list is of nested levels
    return int(first) or None if first.isdecimal() else None


@functools.cache
def _quota() -> int | None:
    """The number of processors whose time Linux gives the group of this process, as in containers."""
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as f:
            quota, period = f.read().split()
        return max(1, round(int(quota) / int(period)))
    except (OSError, ValueError):  # no such file, or no limit
        return None
