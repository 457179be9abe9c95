"""Kernels as machine code: one compile for each distinct source in a process, by the first backend that knows it.

A kernel becomes a native function ``void entry(int64 *args)``: ``args`` holds the sizes, then the addresses of
operands and results, then that of the byte that says of a kernel with checks whether it failed. Pointers are declared
`noalias` (a buffer that is written in place is read at the same index first; see ``symc.codegen.inplace``), errors
follow NumPy (no zero-division check, which would block vectorization), and of fast math only contraction is on.

``llvm_compile`` writes LLVM from the text of a kernel, without Numba; ``numba_compile`` compiles the same text with
Numba, and knows complex numbers and a user's functions too.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from symc.codegen.cpu.render import Source
from symc.codegen.cpu.text import Unsupported
from symc.ir.locks import new_lock
from symc.ir.record import dataclass
from symc.runtime import machine_code

_lock = new_lock()
_compiled: dict[tuple, Kernel] = {}
_backend: str | None = None

ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@dataclass(frozen=True, eq=False)
class Kernel:
    """Native code of one source. ``call(address of args)`` runs it without the GIL."""

    name: str
    source: Source
    backend: str
    address: int
    call: Any
    library: Any = None  # keeps the machine code alive


def compile_count() -> int:
    """How many kernels this process has compiled."""
    return len(_compiled)


@contextmanager
def only(backend: str) -> Iterator[None]:
    """Compile with this backend alone, "llvm" or "numba": for tests that compare them."""
    global _backend
    before, _backend = _backend, backend
    try:
        yield
    finally:
        _backend = before


def compile_kernel(source: Source, name: str) -> Kernel:
    """The kernel for a source: compiled at most once."""
    key = (_backend, source.text, source.arrays)
    with _lock:
        kernel = _compiled.get(key)
        if kernel is None:
            kernel = _compiled[key] = _compile(source, name)
        return kernel


def _compile(source: Source, name: str) -> Kernel:
    if _backend != "numba":
        try:
            address = machine_code.compile_text(source)
            return Kernel(name, source, "llvm", address, ENTRY(address))
        except Unsupported:
            if _backend == "llvm":
                raise
    from symc.runtime.compilers import numba_compile

    library, entry = numba_compile.compile_text(source, name)
    return Kernel(name, source, "numba", entry, ENTRY(entry), library)
