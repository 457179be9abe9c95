"""Memory of one call of a plan at given sizes, and the run of its code there.

A frame is prepared once and used by one call at a time: a call writes where its arrays are, and makes one native call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from symc.errors import InternalError
from symc.runtime.calls import Calls
from symc.runtime.executor import Executable, aligned
from symc.runtime.large_results import LARGE, LargeResult
from symc.runtime.lowered import Lowered
from symc.runtime.native.executor_ir import NOT_ARRAY

if TYPE_CHECKING:
    from symc.runtime.timing import Event, Laps, StepTime


class Frame:
    """An arena (of its own, if none is given), and the code of a plan with its addresses."""

    def __init__(self, lowered: Lowered, threads: int = 1, arena: np.ndarray | None = None):
        self.lowered = lowered
        self._arena = arena = aligned(lowered.arena) if arena is None else arena
        self._executable = Executable(lowered.template, arena.ctypes.data, threads)
        self.words = self._executable.words
        self._calls = Calls(lowered.steps, lowered.sizes, arena, self.words)
        self._python, self._copied = lowered.python, lowered.copied
        self._large = {k: LargeResult(f.shape, f.dtype, f.nbytes)
                       for k, f in enumerate(lowered.fresh) if f.nbytes >= LARGE}

    @property
    def address(self) -> int:
        """Of the code."""
        return self._executable.address

    def run(self, arrays: Sequence[np.ndarray], out: Sequence[np.ndarray | None] | None,
            cells: Sequence[Any] = ()) -> list[np.ndarray]:
        """Outputs, then the arrays that hold new states, which ``cells`` have from the end of the run on."""
        used: list[np.ndarray] = [arrays[index] for index in self.lowered.given]
        for k in self._copied if cells else ():
            used[k] = used[k].copy()
        for k, fresh in enumerate(self.lowered.fresh):
            array = out[fresh.output] if out is not None and fresh.output is not None else None
            if array is None:
                array = self._large[k].make() if k in self._large else np.empty(fresh.shape, fresh.dtype)
            used.append(array)
        found = self._found(used)
        status = self._call(used, cells, found)
        if status == NOT_ARRAY:  # a NumPy scalar, or a subclass
            used = [np.asarray(a) for a in used]
            found = self._found(used)
            status = self._call(used, cells, found)
        if status:
            raise InternalError(f"the interpreter of plans stopped with {status}")
        return found

    def _found(self, used: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results of a run that is to come, as they are seen."""
        found = []
        for k, shape in self.lowered.returned:
            array = used[k]
            found.append(array if array.shape == shape else array.reshape(shape))
        return found

    def _call(self, used: Sequence[np.ndarray], cells: Sequence[Any], found: Sequence[np.ndarray]) -> int:
        words, k = self.words, self.lowered.first
        for array in used:
            words[k] = id(array)
            k += 1
        states = found[len(found) - len(cells) :]
        if not self._python:
            return self._executable.run(cells, states)
        calls = self._calls
        calls.begin(used)
        try:
            status = self._executable.run(cells, states)
            if status > 0:
                calls.raise_error()
            return status
        finally:
            calls.end()


class TimedFrame(Frame):
    """A frame whose code has a lap of the clock after every step."""

    def __init__(self, lowered: Lowered, laps: Laps, threads: int = 1):
        super().__init__(lowered, threads)
        self._laps = laps

    def times(self, *calls: Sequence[np.ndarray], log: bool = False) -> list[StepTime]:
        """How long the steps take in runs with these arrays, all in all. Taking the time is not counted. ``log``: for
        ``events``."""
        self._laps.reset(self.words, log)
        for arrays in calls:
            self.run(arrays, None)
        return self._laps.times(self.words)

    def events(self) -> list[Event]:
        """What the last run of ``times`` logged."""
        return self._laps.events(self.words)
