"""Version of machine code and recordings on disk, beside what they are made of: sources, libraries, processor.

Files are told apart by size and time of change, as Python tells whether its own caches are stale: reading them all
would take longer than running most functions.
"""

from __future__ import annotations

import functools
import os
import platform
import sys
from importlib.machinery import PathFinder

import numpy as np

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
#: What a library's version is told by.
LIBRARIES = {"llvmlite": "_version.py", "scipy": "version.py"}


#: Folders whose files decide what becomes of a closed function. (All else of symc makes functions, or looks at them.)
FOLDERS = ("ir", "grad", "opt", "codegen", "runtime", "tensors", "driver")
#: Folders whose files decide about machine code beside its text.
COMPILERS = ("runtime", "codegen/language", "ir/ops")


@functools.cache
def of_compilers() -> str:
    """Key of what decides about machine code beside its text: compilers, what kernels call, LLVM, the processor."""
    folders = tuple(os.path.join(PACKAGE, f, "") for f in COMPILERS)
    return "\n".join([*(f for f in _files() if f.startswith(folders)), *_others()])


@functools.cache
def of_everything() -> str:
    """Version of what turns a program into machine code."""
    return "\n".join([*_files(), np.__version__, *_others()])


@functools.cache
def _others() -> list[str]:
    return [*map(_library, LIBRARIES), *_machine()]


@functools.cache
def _files() -> list[str]:
    """The sources, each with its size and time."""
    found: list[str] = []
    pending = [os.path.join(PACKAGE, f) for f in FOLDERS]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for e in entries:
                if e.name.endswith(".py"):
                    s = e.stat()
                    found.append(f"{e.path} {s.st_size} {s.st_mtime_ns}")
                elif e.name != "__pycache__" and e.is_dir():
                    pending.append(e.path)
    return sorted(found)


def _library(name: str) -> str:
    """A library, by where it is and when it was put there; it is not imported."""
    spec = PathFinder.find_spec(name)
    if spec is None or spec.origin is None:
        return f"no {name}"
    path = os.path.join(os.path.dirname(spec.origin), LIBRARIES[name])
    s = os.stat(path if os.path.exists(path) else spec.origin)
    return f"{spec.origin} {s.st_size} {s.st_mtime_ns}"


def _machine() -> list[str]:
    """The interpreter, whose objects some code reads, and the processor."""
    return [str(sys.implementation.cache_tag), getattr(sys, "abiflags", ""), platform.machine(), _processor()]


def _processor() -> str:
    """The model and what it can do, as the kernel says; as LLVM says where the kernel does not."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
            first = f.read(1 << 14).partition("\n\n")[0]
    except OSError:
        from llvmlite import binding

        return f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"
    told = [line for line in first.splitlines() if line.startswith(("vendor_id", "cpu family", "model", "stepping",
                                                                    "flags", "Features", "CPU "))]
    return "\n".join(told)
