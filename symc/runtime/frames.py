"""The frames of a program: for each combination of sizes, code that is made once and memory for calls at a time."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from symc.runtime.frame import Frame
from symc.runtime.lowered import Lowered

#: For how many combinations of sizes a program keeps prepared frames.
MOST_SIZES = 64
Sizes = Mapping[str, int]


class Frames(ABC):
    """Runs what ``lower`` gives for the sizes of a call. Concurrent calls never share memory, and repeated calls
    allocate only results. ``threads``: how many a call may use."""

    def __init__(self, threads: int = 1):
        self.threads = threads
        self._lowered: dict[tuple, Lowered] = {}
        self._pools: dict[tuple, list[Frame]] = {}
        self._lock = threading.Lock()

    @abstractmethod
    def lower(self, sizes: Sizes) -> Lowered:
        """The code for some sizes."""

    def run(
        self, arrays: Sequence[np.ndarray], sizes: Sizes, out: Sequence[np.ndarray | None] | None = None
    ) -> list[np.ndarray]:
        """Results (outputs, then the arrays that hold updated states) for contiguous aligned arrays of the input types.

        ``out[k]``: an array to write output k into. States are written in place where the plan says so.
        """
        pool, frame = self._taken(sizes)
        try:
            return frame.run(arrays, out)
        except KeyboardInterrupt:
            pool = []  # where it was is not known: the frame is not used again
            raise
        finally:
            pool.append(frame)

    def lend(self, sizes: Sizes) -> Frame:
        """A frame that no run will use: whoever has it may."""
        return self._taken(sizes)[1]

    def _taken(self, sizes: Sizes) -> tuple[list[Frame], Frame]:
        """A frame, and the pool to put it back into."""
        key = tuple(sizes.values())
        pool = self._pools.get(key)
        if pool is None:
            pool = self._new_pool(key, sizes)
        try:
            return pool, pool.pop()
        except IndexError:  # the first call, or every frame is in use by other threads
            lowered = self._lowered.get(key)
            return pool, Frame(self.lower(sizes) if lowered is None else lowered, self.threads)

    def _new_pool(self, key: tuple, sizes: Sizes) -> list[Frame]:
        with self._lock:
            if key in self._pools:
                return self._pools[key]
            if len(self._pools) >= MOST_SIZES:  # each holds an arena
                self._pools.clear()
                self._lowered.clear()
            self._lowered[key] = self.lower(sizes)
            return self._pools.setdefault(key, [])
