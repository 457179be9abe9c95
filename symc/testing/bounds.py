"""Arrays that end where a process may touch no memory: reading or writing past one ends the process."""

from __future__ import annotations

import ctypes
import mmap
import os

import numpy as np

_NOBODY = 0


def at_the_end(a: np.ndarray) -> np.ndarray:
    """A copy of an array in pages of its own, in C order, the last byte before a page without any rights.

    >>> at_the_end(np.arange(3)).sum()
    np.int64(3)
    """
    if os.name == "nt":  # where pages are protected otherwise
        return np.array(a, order="C")
    body = -(-max(a.nbytes, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = np.frombuffer(mmap.mmap(-1, body + mmap.PAGESIZE), np.uint8)
    if ctypes.CDLL(None).mprotect(ctypes.c_void_p(pages.ctypes.data + body), ctypes.c_size_t(mmap.PAGESIZE), _NOBODY):
        raise OSError("mprotect")
    made = pages[body - a.nbytes : body].view(a.dtype).reshape(a.shape)
    made[...] = a
    return made
