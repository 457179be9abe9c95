"""Hidden states of a compiled function: what depends on its states alone, and is computed again when one has changed.

A cell counts its changes (``Cell.version``): by ``set_value``, and by every call of a function that updates it. What
was computed for other counts is not used. A cell whose array somebody else holds too (``borrow=True``) may change
without being counted: what is made of it is computed in every call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symc.runtime.cpu.commit import replace_arrays
from symc.runtime.with_prologue import WithPrologue
from symc.tensors.state import Cell


class Hidden:
    """The storage of a hidden state. The locks of the states it is made of guard it."""

    __slots__ = ("array",)
    watched = False  # as states are; nobody outside has it

    def __init__(self) -> None:
        self.array: Any = None


class Prologue:
    """The hidden states of a program for some cells. It is asked with the locks of all cells held."""

    def __init__(self, program: WithPrologue, cells: Sequence[Cell]):
        self._program, self.cells = program, tuple(cells)
        self.hidden: tuple[Hidden, ...] = ()
        self.versions: tuple[int, ...] | None = None
        self.times_computed = 0
        #: Told after each call in Python which versions of ``cells`` the hidden states are of.
        self.told: Callable[[tuple[int, ...] | None], None] | None = None

    def arrays(self, arrays: Sequence[Any], sizes: Any) -> list[Any]:
        """The arrays of hidden states in a call with these arrays."""
        versions = tuple([c.counted() for c in self.cells])
        if versions != self.versions:
            self.versions = None
            made = self._program.made(arrays, sizes)
            self.times_computed += 1
            if not self.hidden:
                self.hidden = tuple([Hidden() for _ in made])
            replace_arrays(self.hidden, made)
            if not any(c.borrowed for c in self.cells):
                self.versions = versions
        if self.told is not None:
            self.told(self.versions)
        return [h.array for h in self.hidden]
