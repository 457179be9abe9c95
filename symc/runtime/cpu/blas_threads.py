"""BLAS uses threads of its own, with sums that depend on how many there are. While our code runs, it uses one.

Where BLAS offers no way to tell it (another library than OpenBLAS or MKL), it is left as it is.
"""

from __future__ import annotations

import ctypes
import functools

from symc.runtime.cpu.blas_library import Library, library
from symc.runtime.cpu.native.pool import available, words
from symc.runtime.cpu.native.pool_words import Pool


def to_be_limited() -> bool:
    """True if runs are to limit BLAS: it has several threads, or would have if no run limited it at present. The pool
    is told how."""
    chosen = library()
    places = _places(chosen)
    if places is None:
        return False
    words()[Pool.GET], words()[Pool.SET] = places
    return chosen.threads[0]() > 1 or words()[Pool.BEFORE] > 0  # type: ignore[index]


@functools.cache
def _places(chosen: Library) -> tuple[int, ...] | None:
    """Addresses of the functions that tell and set how many threads it has, if it can be limited."""
    if chosen.threads is None or not available():
        return None
    return tuple(ctypes.cast(f, ctypes.c_void_p).value or 0 for f in chosen.threads)
