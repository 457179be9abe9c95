"""What a compiled function keeps between calls, and when it must be computed again.

A cell counts its changes (``Cell.version``): by ``set_value``, and by every call of a function that updates it. What
was computed for other counts is not used. A cell whose array somebody else holds too (``borrow=True``) may change
without being counted: what is made of it is computed in every call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from symc.state import Cell

if TYPE_CHECKING:
    from symc.runtime.two_programs import TwoPrograms


class Keeping:
    """A program and what it keeps for some cells. It is called with the locks of all cells held."""

    def __init__(self, program: TwoPrograms, cells: Sequence[Cell]):
        self._program, self._cells = program, tuple(cells)
        self._versions: tuple[int, ...] | None = None
        self._known: list[np.ndarray] = []
        self.times_computed = 0

    def run(self, arrays: Sequence[np.ndarray], sizes: Mapping[str, int] | None, out: Any = None,
            cells: Sequence[Any] = ()) -> list[np.ndarray]:
        """As ``Program.run``."""
        versions = tuple([c.version for c in self._cells])
        if versions != self._versions:
            self._versions = None
            self._known = self._program.known(arrays, sizes)
            self.times_computed += 1
            if not any(c.borrowed for c in self._cells):
                self._versions = versions
        return self._program.run(arrays, sizes, out, cells, self._known)
