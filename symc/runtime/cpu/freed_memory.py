"""Bounds at which the C library gives memory of results that are no longer needed back to the system.

glibc gives freed memory back to the system at bounds that grow with what is freed. With the first ones, after a handful
of results of a megabyte were dropped together, all their pages are taken and cleared again in the next calls, which
costs more than computing them (softmax of 2 MB: 2.1 instead of 0.55 ns an element). The bounds rise when a large block
is freed, in most programs sooner or later; here one is taken and freed, untouched, when the first function is made.
"""

from __future__ import annotations

import ctypes
import functools

#: The largest block whose size glibc takes as a new bound is 32 MiB, with its header.
BLOCK = (32 << 20) - (64 << 10)


@functools.cache
def keep() -> bool:
    """Have glibc keep up to 64 MiB of freed memory; whether that was possible. Bounds that a user has set stay."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return False
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    library.free(library.malloc(BLOCK))
    return True
