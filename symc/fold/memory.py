"""Memory of a program: arrays that grow with minibatches, and the table of their addresses that scripts refer to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symc.errors import InternalError, MemoryBudgetError
from symc.fold.native import address
from symc.fold.schedule import Schedule
from symc.runtime.cpu.executable import aligned
from symc.tensors.callsite import caller

#: Words of the table.
WORDS = 1 << 14
#: How many rows of an array a schedule needs.
Rows = Callable[[Schedule], int]


class Buffer:
    """An array with a row for each of something. ``base``: its place in the table of addresses."""

    __slots__ = ("array", "base", "dtype", "rows", "shape")

    def __init__(self, base: int, dtype: Any, shape: tuple[int, ...], rows: Rows):
        self.base, self.dtype, self.shape, self.rows = base, np.dtype(dtype), shape, rows
        self.array = np.empty((0, *shape), self.dtype)

    @property
    def row_bytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


class Memory:
    """The table of bases, and the buffers that it points to. Base 0 is 0."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit  # of bytes
        self._bases = np.zeros(WORDS, np.int64)  # it never moves
        self.address = address(self._bases)
        self._used = 1
        self.cells: dict[Any, int] = {}
        self._held: list[Any] = []
        self.hidden: dict[Any, list[int]] = {}  # of functions that keep something of states: its words
        self._buffers: dict[Any, Buffer] = {}
        self._words: dict[Any, tuple[int, Callable[[Schedule], np.ndarray], Rows]] = {}

    def word(self) -> int:
        """A word of the table for whoever sets it."""
        if self._used == WORDS:
            raise InternalError("too many buffers in one program")
        self._used += 1
        return self._used - 1

    def buffer(self, key: Any, dtype: Any, shape: tuple[int, ...], rows: Rows) -> Buffer:
        """The buffer of this name, made at first sight. Raises InternalError if its rows are others."""
        if key not in self._buffers:
            self._buffers[key] = Buffer(self.word(), dtype, shape, rows)
        found = self._buffers[key]
        if (found.dtype, found.shape) != (np.dtype(dtype), shape):
            raise InternalError(f"rows of {key} are {found.dtype}{list(found.shape)}, not {dtype}{list(shape)}")
        return found

    def word_for(self, key: Any, array: Callable[[Schedule], np.ndarray], first: Rows) -> None:
        """A word that points into an array of schedules."""
        if key not in self._words:
            self._words[key] = self.word(), array, first

    def __getitem__(self, key: Any) -> Any:
        """The buffer of a name, or its word in the table if it is of schedules."""
        return self._buffers[key] if key in self._buffers else self._words[key][0]

    def fit(self, s: Schedule, kept: bool) -> None:
        """Let every buffer be large enough for a schedule, and hold what it holds if that is to be kept."""
        if self.limit is not None:
            self._bound(s, kept, self.limit)
        for b in self._buffers.values():
            n = b.rows(s)
            if n > len(b.array) or not self._bases[b.base]:
                rows, old = n + (n // 4 + 1 if self.limit is None else 0 if n else 1), b.array
                raw = aligned(rows * max(b.row_bytes, 1))
                self._bases[b.base] = 0  # until both are there: Ctrl-C may come between
                b.array = raw[: rows * b.row_bytes].view(b.dtype).reshape(rows, *b.shape)
                if kept:
                    b.array[: len(old)] = old
                self._bases[b.base] = address(raw)
        places: dict[int, int] = {}
        for word, array, first in self._words.values():
            a = array(s)
            if id(a) not in places:
                places[id(a)] = address(a)
            self._bases[word] = places[id(a)] + 8 * first(s)

    def needed(self, s: Schedule, kept: bool = False) -> int:
        """The bytes that a schedule needs, with what is ``kept`` of arrays that are larger."""
        return sum(max(b.rows(s), len(b.array) if kept else 0) * b.row_bytes for b in self._buffers.values())

    def _bound(self, s: Schedule, kept: bool, limit: int) -> None:
        """Raise MemoryBudgetError for a schedule that needs more; let go of arrays that leave too little."""
        if self.needed(s, kept) > limit:
            raise MemoryBudgetError(f"this graph needs {self.needed(s, kept)} bytes, max_arena_bytes is {limit}",
                                    where=[caller()], help="fewer examples at once, or smaller ones")
        if self.needed(s, True) > limit:
            for b in self._buffers.values():
                b.array = b.array[:0]

    def object(self, cell: Any) -> int:
        """The word that holds the array object of a state."""
        if cell not in self.cells:
            self.cells[cell] = self.word()
        return self.cells[cell]

    def hold(self) -> None:
        """Let the table have the arrays of states, and what functions have made of them."""
        held = [c.host() for c in self.cells]
        for array, base in zip(held, self.cells.values()):
            self._bases[base] = id(array)
        for function, bases in self.hidden.items():
            calling = function._call_path
            states = [c.array for c in calling._cells]
            made = calling.prologue.arrays([None] * (len(calling._built.function.inputs) - len(states)) + states, None)
            held += made
            self._bases[bases] = [id(array) for array in made]
        self._held = held

    def set(self, base: int, value: int) -> None:
        self._bases[base] = value

    def get(self, base: int) -> int:
        return int(self._bases[base])

    @property
    def nbytes(self) -> int:
        return sum(b.array.nbytes for b in self._buffers.values())
