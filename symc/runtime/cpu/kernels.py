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
import weakref
from collections import OrderedDict

from symc.codegen.cpu.render import Source
from symc.codegen.language.syntax import Unsupported
from symc.ir.locks import new_lock
from symc.ir.record import dataclass
from symc.runtime.cache import machine_code

#: How many kernels stay that no function launches any more, for functions to come.
MOST = 256

_lock = new_lock()
_compiled: weakref.WeakValueDictionary[tuple, Kernel] = weakref.WeakValueDictionary()
_last: OrderedDict[tuple, Kernel] = OrderedDict()  # in the sequence in which they were asked for
_of_numba: list[Kernel] = []  # for good: Numba frees no code
_count = 0

ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@dataclass(frozen=True, eq=False)
class Kernel:
    """Native code of one source, at an address: a ``Symbol``, which keeps it, or Numba's. ``backend``: the compiler
    that made it."""

    name: str
    source: Source
    backend: str
    address: int

    def call(self, address: int) -> None:
        """Run it on the args that are there, without the GIL."""
        ENTRY(self.address)(address)


def compile_count() -> int:
    """The number of kernels that this process has compiled, or found on disk."""
    return _count


def compile_kernel(source: Source, name: str, backend: str = "llvm") -> Kernel:
    """The kernel for a source, compiled by "llvm" or "numba" unless there is one; by Numba where LLVM's text cannot say
    it."""
    global _count
    key = (backend, source.text, source.arrays)
    with _lock:
        kernel = _compiled.get(key)
        if kernel is None:
            kernel = _compiled[key] = _compile(source, name, backend)
            _count += 1
        _last[key] = kernel
        _last.move_to_end(key)
        if len(_last) > MOST:
            _last.popitem(last=False)
        return kernel


def _compile(source: Source, name: str, backend: str) -> Kernel:
    if backend == "llvm":
        try:
            return Kernel(name, source, "llvm", machine_code.compile_text(source))
        except Unsupported:
            pass
    from symc.runtime.compilers import numba_compile

    kernel = Kernel(name, source, "numba", numba_compile.compile_text(source, name))
    _of_numba.append(kernel)
    return kernel
