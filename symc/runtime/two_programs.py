"""A program in two: what is kept between calls is computed by the first, and given to the second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.runtime.frames import Frames, Sizes


class TwoPrograms:
    """``rest``, with what ``first`` computes of the arrays numbered ``reads``. Whoever calls it may keep what ``known``
    gives (``symc.keeping``)."""

    def __init__(self, first: Frames, rest: Frames, reads: Sequence[int]):
        self.first, self.rest, self.reads = first, rest, tuple(reads)

    def refuse(self, sizes: Sizes) -> None:
        """As ``Frames.refuse``."""
        self.first.refuse(sizes)
        self.rest.refuse(sizes)

    def known(self, arrays: Sequence[np.ndarray], sizes: Sizes | None = None) -> list[np.ndarray]:
        """What is kept, for the states among the arrays of a call."""
        return self.first.run([arrays[k] for k in self.reads], sizes)

    def run(self, arrays: Sequence[np.ndarray], sizes: Sizes | None = None,
            out: Sequence[np.ndarray | None] | None = None, cells: Sequence[Any] = (),
            known: Sequence[np.ndarray] | None = None) -> list[np.ndarray]:
        """As ``Frames.run``; ``known``: what is kept, if it is."""
        return self.rest.run([*arrays, *(self.known(arrays, sizes) if known is None else known)], sizes, out,
                             cells)
