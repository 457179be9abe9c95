"""The frames of a program: code for each combination of sizes, made once, and memory for as many calls as run at once.

Calls that follow one another share one arena, whatever sizes they come with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.errors import SymcError
from symc.ir.locks import new_lock
from symc.runtime import freed_memory
from symc.runtime.executor import aligned
from symc.runtime.frame import Frame
from symc.runtime.lowered import Lowered

#: For how many combinations of sizes a program keeps code, and a chain of calls frames.
MOST_SIZES = 64
Sizes = Mapping[str, int]


class Chain:
    """The memory of calls that follow one another: one arena, as large as the largest of them needs, and the frames of
    the sizes that they came with, all in this arena."""

    def __init__(self) -> None:
        self._arena = aligned(0)
        self._frames: dict[tuple, Frame] = {}

    def frame(self, key: tuple) -> Frame | None:
        return self._frames.get(key)

    def only(self, key: tuple) -> Frame | None:
        """The frame for these sizes, if it is the only one."""
        return self._frames.get(key) if len(self._frames) == 1 else None

    def add(self, key: tuple, lowered: Lowered, threads: int) -> Frame:
        """A frame for sizes that are new."""
        if lowered.arena > self._arena.nbytes or len(self._frames) >= MOST_SIZES:
            self._frames.clear()
        if lowered.arena > self._arena.nbytes:
            self._arena = aligned(0)  # the old one goes before the new one is made
            self._arena = aligned(lowered.arena)
        frame = self._frames[key] = Frame(lowered, threads, self._arena)
        return frame


class Frames(ABC):
    """Runs what ``lower`` gives for the sizes of a call. Concurrent calls never share memory, and repeated calls
    allocate only results. ``threads``: how many a call may use."""

    def __init__(self, threads: int = 1):
        freed_memory.keep()
        self.threads = threads
        self._lowered: dict[tuple, Lowered] = {}
        self._chains: list[Chain] = []  # those that no call uses now; there are as many as calls ran at once
        self._lock = new_lock()

    #: Who wants to know what a program is lowered to.
    on_lowered: Callable[[Lowered], None] | None = None

    @abstractmethod
    def lower(self, sizes: Sizes) -> Lowered:
        """The code for some sizes."""

    def run(
        self, arrays: Sequence[np.ndarray], sizes: Sizes, out: Sequence[np.ndarray | None] | None = None,
        cells: Sequence[Any] = (),
    ) -> list[np.ndarray]:
        """Results (outputs, then the arrays that hold updated states) for contiguous aligned arrays of the input types.

        ``out[k]``: an array to write output k into. States are written in place where the plan says so, and at the
        same moment ``cells`` get the arrays of all updated ones.
        """
        key, chains = tuple(sizes.values()), self._chains
        try:
            chain = chains.pop()
        except IndexError:  # the first call, or others use them all
            chain = Chain()
        try:
            frame = chain.frame(key) or chain.add(key, self.code(sizes), self.threads)
            return frame.run(arrays, out, cells)
        except SymcError:
            raise
        except BaseException:
            chains = []  # where it was is not known: the frame is not used again
            raise
        finally:
            chains.append(chain)

    def lend(self, sizes: Sizes) -> Frame:
        """A frame that no run will use: whoever has it may. That of a chain, if nothing else needs its arena."""
        lowered = self.code(sizes)
        try:
            chain = self._chains.pop()
        except IndexError:
            return Frame(lowered, self.threads)
        frame = chain.only(tuple(sizes.values()))
        if frame is None:
            self._chains.append(chain)
        return frame or Frame(lowered, self.threads)

    def code(self, sizes: Sizes) -> Lowered:
        """What frames for these sizes run, made once."""
        key = tuple(sizes.values())
        with self._lock:
            lowered = self._lowered.get(key)
            if lowered is None:
                if len(self._lowered) >= MOST_SIZES:
                    self._lowered.clear()
                lowered = self._lowered[key] = self.lower(sizes)
            return lowered
