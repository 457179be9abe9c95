"""The native thread pool of this process: its words, and the functions that use them, see ``pool_functions``."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

from symc.ir import locks
from symc.runtime.cache.machine_code import load_module
from symc.runtime.cpu.native.pool_words import FUNCTIONS, LIBC, LINE, Pool


@functools.cache
def address() -> int:
    """Address of the pool, with its functions; 0 where there are no POSIX threads."""
    if not available():
        return 0
    found = load_module("pool", _text, 0)  # the least code: what matters is how long it takes to be made
    for word, name in FUNCTIONS.items():
        words()[word] = found(name)
    locks.native.append(_BlasLock())
    return ctypes.addressof(words())


class _BlasLock:
    """The lock under which BLAS is told its number of threads. A fork must not come meanwhile: the library's own lock
    would stay taken in the child for good."""

    taken = 0

    def acquire(self) -> None:
        self.taken = words()[Pool.PID] == os.getpid() and self._address()
        if self.taken:
            ctypes.CDLL(None).pthread_mutex_lock(ctypes.c_void_p(self.taken))

    def release(self) -> None:
        if self.taken:
            ctypes.CDLL(None).pthread_mutex_unlock(ctypes.c_void_p(self.taken))
        self.taken = 0

    @staticmethod
    def _address() -> int:
        return ctypes.addressof(words()) + 8 * Pool.BLAS_LOCK


def counted(word: int) -> int:
    """A word of the pool, such as how many launches it has had."""
    return words()[word]


def available() -> bool:
    """True if there are POSIX threads here."""
    try:
        libc = ctypes.CDLL(None)
        return all(hasattr(libc, name) for name in LIBC)
    except (OSError, TypeError):
        return False


@functools.cache
def words() -> Any:
    """The pool of this process. It is never given back: threads may look at it until the process has ended."""
    allocate = ctypes.CDLL(None).calloc
    allocate.restype, allocate.argtypes = ctypes.c_void_p, (ctypes.c_size_t, ctypes.c_size_t)
    start = allocate(Pool.ROWS + LINE, 8)
    if not start:
        raise MemoryError("no memory for a pool of threads")
    return (ctypes.c_int64 * Pool.ROWS).from_address(-(-start // (8 * LINE)) * 8 * LINE)


def _text() -> str:
    from symc.runtime.compilers import llvm_natives
    from symc.runtime.cpu.native import pool_functions

    return llvm_natives.text(pool_functions.texts())
