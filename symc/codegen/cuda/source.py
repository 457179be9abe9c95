"""CUDA source of one kernel: text, and how it is launched. Data only."""

from __future__ import annotations

import numpy as np

from symc.ir.dim import Size
from symc.ir.record import dataclass

#: How many threads a block has at most, and how many of them run in step.
MOST_THREADS, WARP = 1024, 32


@dataclass(frozen=True)
class Argument:
    """One parameter of an entry.

    ``kind``: "operand" or "result" (the address of array ``index``), "scratch" (that of scratch memory ``index``),
    "failed" (that of an int that is set to 1 where the reference raises), "size" (the number ``size``, as the index
    type of the source).
    """

    kind: str
    index: int = 0
    size: Size = 0


@dataclass(frozen=True)
class Entry:
    """One ``__global__`` function. ``grid``: blocks along x, y, z (no launch where one is 0); ``block``: threads along
    x, a multiple of a warp; ``shared``: bytes of dynamic shared memory; ``again``: operands that it reads more than
    once, and how often (-1: all others)."""

    name: str
    arguments: tuple[Argument, ...]
    grid: tuple[Size, Size, Size]
    block: int
    shared: Size = 0
    again: tuple[tuple[int, Size], ...] = ()


@dataclass(frozen=True)
class CudaSource:
    """The text of the entries that compute one kernel, launched in their order, one after the other.

    ``text``: CUDA C++ without the prelude and without helpers; ``helpers``: the functions of
    ``symc.runtime.library`` that it calls. ``scratch``: bytes of memory that the entries share and nobody else reads;
    what is in it at first is not known. ``wide``: whether indices and sizes are 64 bits wide.
    """

    text: str
    helpers: tuple[str, ...]
    entries: tuple[Entry, ...]
    operands: tuple[np.dtype, ...]
    results: tuple[np.dtype, ...]
    scratch: tuple[Size, ...] = ()
    fails: bool = False
    wide: bool = False

    @property
    def index(self) -> str:
        """The type of sizes and indices, as the prelude calls it."""
        return "i64" if self.wide else "i32"
