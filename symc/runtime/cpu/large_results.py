"""Memory of large results, kept for the next call.

The C library gives blocks beyond a bound back to the system when they are freed (``freed_memory``), and the next result
of that size then waits for pages that the system clears: for an elementwise function of 40 MB that is as long as all
that it computes. So the memory of a large result is kept, once for each result of a function, when nobody has the array
or a view of it any more, and goes with the function. It begins with a line of the cache, for kernels that write whole
lines past it (``compilers/llvm_streams.py``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symc.ir.dtypes import lent, typestr

#: From so many bytes on a result is large: glibc may give it back at once.
LARGE = 8 << 20
#: Bytes of a line of the cache.
LINE = 64
#: Results begin with a page: a little before operands, as other large arrays begin 16 bytes behind one. Loads that
#: follow stores to the same place of another page wait for them.
PAGE = 4096


class _Block:
    """Memory that is lent to one array. ``home``: where it is put when that is gone."""

    __slots__ = ("__array_interface__", "home", "memory")

    def __init__(self, memory: np.ndarray, shape: tuple[int, ...], dtype: np.dtype, home: list[np.ndarray]):
        self.memory, self.home = memory, home
        self.__array_interface__: dict[str, Any] = dict(
            version=3, shape=shape, typestr=typestr(dtype), strides=None,
            data=(-(-memory.ctypes.data // PAGE) * PAGE, False))

    def __del__(self) -> None:
        if not self.home:
            self.home.append(self.memory)


class LargeResult:
    """Makes the arrays of one large result of a function."""

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype
        self._home: list[np.ndarray] = []

    def make(self, shape: tuple[int, ...], nbytes: int) -> np.ndarray:
        """An array whose numbers are not known."""
        try:
            memory = self._home.pop()
        except IndexError:  # the last one is in use
            memory = np.empty(nbytes + PAGE, np.uint8)
        if not nbytes <= memory.nbytes - PAGE <= 2 * nbytes:  # of another size
            memory = np.empty(nbytes + PAGE, np.uint8)
        return lent(_Block(memory, shape, self.dtype, self._home), self.dtype)
