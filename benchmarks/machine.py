"""Facts about the machine and the source that go into every result file."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.venvs import REPOSITORY


def facts() -> dict[str, Any]:
    """The processor, its cores, the system, and the load at the time; names and paths of the machine stay out."""
    return {
        "cpu": _of_cpu("model name") or platform.processor(),
        "vectors": _vectors(),
        "cores": os.cpu_count(),
        "usable_cores": len(usable_cores()),
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.machine()}",
        "libc": " ".join(platform.libc_ver()),
        "load_average": os.getloadavg() if hasattr(os, "getloadavg") else None,
        "revision": _revision(),
    }


def usable_cores() -> list[int]:
    """The cores that this process may run on, or none where the system cannot pin processes."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def _vectors() -> str | None:
    """The widest vectors that the processor has, where the system says so."""
    flags = _of_cpu("flags").split()
    return next((name for name, flag in (("AVX-512", "avx512f"), ("AVX2", "avx2")) if flag in flags), None)


def _of_cpu(key: str) -> str:
    """A line of the first core."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")


def _memory_gib() -> float | None:
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return None
    return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)


def _revision() -> str | None:
    """The commit that was measured; a plus sign says that tracked files differ from it."""
    command = ["git", "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    return run.stdout.strip() if run.returncode == 0 else None
