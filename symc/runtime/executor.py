"""Code for the native interpreter: data words, instructions and labels, put together into one array that runs.

What the instructions do is in ``symc.runtime.native.executor_ir``; which ones a plan needs, in ``symc.runtime.lower``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symc.runtime.native.executor_ir import ARITIES, NEVER, Lap, Op, Word, executor

__all__ = ["NEVER", "Code", "Executable", "Label", "Lap", "Op", "Word"]


class Label:
    """A place in the code that jumps name before it is known."""

    def __init__(self) -> None:
        self.at = -1


class Code:
    """A program being written. Slots are indices of data words; what is not a word of its own is put in ``blocks``."""

    def __init__(self) -> None:
        self.data: list[int] = [0] * len(Word)
        self.data[Word.LEFT] = NEVER
        self.words: list[int | Label] = []
        self.kept: list[Any] = []  # memory that addresses in the code point to

    def slot(self, value: int = 0) -> int:
        """A new word of data."""
        self.data.append(value)
        return len(self.data) - 1

    def slots(self, values: Sequence[int]) -> int:
        """The first of several words in a row."""
        first = len(self.data)
        self.data.extend(values)
        return first

    def emit(self, op: int, *operands: int | Label) -> None:
        """Add an instruction."""
        self.words.append(int(op))
        self.words.extend(operands)

    def call(self, entry: int, slots: Sequence[int]) -> None:
        """Call a routine that takes the addresses in these slots."""
        assert len(slots) in ARITIES
        self.emit(Op.CALL + len(slots), entry, *slots)

    def launch(self, entry: int, numbers: Sequence[int], slots: Sequence[int]) -> None:
        """Call a kernel on numbers, then the addresses in these slots."""
        first = self.slots([*numbers, *[0] * len(slots)])
        self.emit(Op.LAUNCH, entry, first, first + len(numbers), len(slots), *slots)

    def label(self) -> Label:
        """A label for this place."""
        return self.place(Label())

    def place(self, label: Label) -> Label:
        """Let a label be this place."""
        label.at = len(self.words)
        return label

    def finish(self) -> Executable:
        """What runs."""
        self.emit(Op.HALT)
        start = len(self.data)
        memory = np.empty(start + len(self.words), np.int64)
        memory[:start] = self.data
        memory[Word.CODE] = start
        memory[start:] = [w.at if isinstance(w, Label) else w for w in self.words]
        return Executable(memory, self.kept)


class Executable:
    """Code in memory. ``words[slot]`` may be read and written between runs; one run at a time."""

    __slots__ = ("_kept", "_memory", "_run", "address", "words")

    def __init__(self, memory: np.ndarray, kept: list[Any]):
        self._memory, self._kept, self._run = memory, kept, executor()
        self.address = memory.ctypes.data
        self.words = memory.data  # a memoryview: single words are read and written faster than through the array

    def run(self) -> int:
        """0, or the number with which an instruction stopped it."""
        return self._run(self.address)
