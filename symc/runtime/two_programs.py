"""A program in two: what is kept between calls is computed by the first, and given to the second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.runtime.frames import Frames, Sizes


class TwoPrograms:
    """``rest``, with what ``first`` computes of the arrays numbered ``reads``, whose sizes have the ``names``. Whoever
    calls it may keep what ``known`` gives (``symc.keeping``)."""

    def __init__(self, first: Frames, rest: Frames, reads: Sequence[int], names: Sequence[str]):
        self.first, self.rest, self.reads, self.names = first, rest, tuple(reads), tuple(names)

    def known(self, arrays: Sequence[np.ndarray], sizes: Sizes) -> list[np.ndarray]:
        """What is kept, for the states among the arrays of a call."""
        return self.first.run([arrays[k] for k in self.reads], {n: sizes[n] for n in self.names})

    def run(self, arrays: Sequence[np.ndarray], sizes: Sizes, out: Sequence[np.ndarray | None] | None = None,
            cells: Sequence[Any] = (), known: Sequence[np.ndarray] | None = None) -> list[np.ndarray]:
        """As ``Frames.run``; ``known``: what is kept, if it is."""
        return self.rest.run([*arrays, *(self.known(arrays, sizes) if known is None else known)], sizes, out,
                             cells)
