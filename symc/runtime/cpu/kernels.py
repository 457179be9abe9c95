"""Kernels as machine code: one compile for each distinct source in a process, by each compiler that is asked for it.

A kernel becomes a native function ``void entry(int64 *args)``: ``args`` holds the sizes, then the addresses of
operands and results, then that of the byte that says of a kernel with checks whether it failed. Pointers are declared
`noalias` (a buffer that is written in place is read at the same index first; see ``symc.codegen.plan.inplace``), errors
follow NumPy (no zero-division check, which would block vectorization), and of fast math only contraction is on.

``llvm_compile`` writes LLVM from the text of a kernel, without Numba; ``numba_compile`` compiles the same text with
Numba, and knows a user's functions too: it serves what the first does not know.
"""

from __future__ import annotations

import ctypes
from typing import Any

from symc.codegen.cpu.render import Source
from symc.codegen.language.syntax import Unsupported
from symc.ir.locks import new_lock
from symc.ir.record import dataclass
from symc.runtime.cache import machine_code

_lock = new_lock()
_compiled: dict[tuple, Kernel] = {}

ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@dataclass(frozen=True, eq=False)
class Kernel:
    """Native code of one source. ``backend``: the compiler that made it. ``call(address of args)`` runs it without the
    GIL."""

    name: str
    source: Source
    backend: str
    address: int
    call: Any
    library: Any = None  # keeps the machine code alive


def compile_count() -> int:
    """The number of kernels that this process has compiled."""
    return len(_compiled)


def compile_kernel(source: Source, name: str, backend: str = "llvm") -> Kernel:
    """The kernel for a source, compiled at most once by "llvm" or "numba"; by Numba where LLVM's text cannot say it."""
    key = (backend, source.text, source.arrays)
    with _lock:
        kernel = _compiled.get(key)
        if kernel is None:
            kernel = _compiled[key] = _compile(source, name, backend)
        return kernel


def _compile(source: Source, name: str, backend: str) -> Kernel:
    if backend == "llvm":
        try:
            address = machine_code.compile_text(source)
            return Kernel(name, source, "llvm", address, ENTRY(address))
        except Unsupported:
            pass
    from symc.runtime.compilers import numba_compile

    library, entry = numba_compile.compile_text(source, name)
    return Kernel(name, source, "numba", entry, ENTRY(entry), library)
