"""The frames of a program: as many as calls ran at once. Each serves calls of any sizes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.errors import SymcError
from symc.ir.locks import new_lock
from symc.runtime.cpu import freed_memory
from symc.runtime.cpu.frame import Frame, Refused
from symc.runtime.cpu.lowered import Lowered
from symc.runtime.cpu.native.float_state import FLUSH, WATCH

Sizes = Mapping[str, int]


class Frames(ABC):
    """Runs what a plan is lowered to. Concurrent calls never share memory, and repeated calls allocate only results.
    ``threads``: how many a call may use; ``flush``: whether denormal numbers are zeros meanwhile."""

    def __init__(self, threads: int = 1, flush: bool = False):
        freed_memory.keep()
        self.threads, self.state = threads, (WATCH | FLUSH) * flush
        self._lowered: Lowered | None = None
        self._free: list[Frame] = []  # those that no call uses now
        self._lock = new_lock()

    #: Who wants to know what a program is lowered to.
    on_lowered: Callable[[Lowered], None] | None = None

    @abstractmethod
    def lower(self) -> Lowered:
        """The code."""

    @abstractmethod
    def refuse(self, sizes: Sizes) -> None:
        """Raise what is wrong with sizes that were refused."""

    def run(
        self, arrays: Sequence[np.ndarray], sizes: Sizes | None = None,
        out: Sequence[np.ndarray | None] | None = None, cells: Sequence[Any] = (),
    ) -> list[np.ndarray]:
        """Results (outputs, then the arrays that hold updated states) for contiguous aligned arrays of the input types.

        ``out[k]``: an array to write output k into. States are written in place where the plan says so, and at the
        same moment ``cells`` get the arrays of all updated ones. ``sizes`` are found by the code. Where they do not
        agree it raises what is wrong with those that are given, or Refused.
        """
        frame = self.lend()
        try:
            found = frame.run(arrays, out, cells)
        except (SymcError, Refused, MemoryError) as e:
            self.give(frame)
            if isinstance(e, Refused) and sizes is not None:
                self.refuse(sizes)
            raise
        # after any other exception the frame is not used again: where it was is not known
        self.give(frame)
        return found

    def lend(self) -> Frame:
        """A frame that no run will use: whoever has it may."""
        try:
            return self._free.pop()
        except IndexError:  # the first call, or others use them all
            return Frame(self.code, self.threads, self.state)

    def give(self, frame: Frame) -> None:
        """Let runs use it again."""
        self._free.append(frame)

    @property
    def code(self) -> Lowered:
        """The code that frames run, made once."""
        with self._lock:
            if self._lowered is None:
                self._lowered = self.lower()
                if self.on_lowered is not None:
                    self.on_lowered(self._lowered)
            return self._lowered
