"""Memory of one call of a plan, and the run of its code there.

A frame serves calls of any sizes, one at a time: a call writes where its arrays are, and makes two native calls. The
first looks at the arrays, and computes what depends on their sizes when these are others than before; the second runs.
"""

from __future__ import annotations

import math
from _thread import get_ident
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from symc.errors import InternalError
from symc.runtime.cpu.calls import Calls, left
from symc.runtime.cpu.executable import Executable
from symc.runtime.cpu.large_results import LARGE, LargeResult
from symc.runtime.cpu.lowered import Lowered
from symc.runtime.cpu.native.float_state import WATCH
from symc.runtime.cpu.native.instructions import GROW, NOT_ARRAY, REFUSED, Word

if TYPE_CHECKING:
    from symc.runtime.cpu.timing import Event, Laps, StepTime


class Refused(Exception):
    """The arrays of a call have sizes that the code is not for. Whoever knows the signature says why."""


class Frame:
    """The code of a plan, and an arena, which grows as calls need it."""

    def __init__(self, lowered: Lowered, threads: int = 1, state: int = 0):
        self.lowered = lowered
        self._executable = Executable(lowered.template, threads, state)
        self.words = self._executable.words
        self._calls = Calls(lowered.steps, lowered.names, self.words)
        self._python, self._copied = lowered.python, lowered.copied
        self._large = [LargeResult(f.dtype) for f in lowered.fresh]

    @property
    def address(self) -> int:
        """Address of the code."""
        return self._executable.address

    @property
    def functions(self) -> list[int]:
        return self._executable.functions

    def grow(self) -> None:
        """For an entry, which raises nothing: what comes up here is raised by the call in Python that follows."""
        try:
            self._executable.grow()
        except MemoryError:  # that call will see
            raise
        except BaseException as e:
            left[get_ident()] = e
            raise

    def run(self, arrays: Sequence[np.ndarray], out: Sequence[np.ndarray | None] | None,
            cells: Sequence[Any] = ()) -> list[np.ndarray]:
        """Outputs, then the arrays that hold new states, which ``cells`` have from the end of the run on.

        Raises Refused, and MemoryError; nothing has run then.
        """
        used = list(arrays)
        for k in self._copied if cells else ():
            used[k] = used[k].copy()
        if self._prepare(used) == NOT_ARRAY:  # a NumPy scalar, or a subclass
            used = [np.asarray(a) for a in used]
            self._prepare(used)
        words, k = self.words, self.lowered.first + len(used)
        for array in self._made(out):
            used.append(array)
            words[k] = id(array)
            k += 1
        found = self._found(used)
        status = self._call(used, cells, found)
        if status:
            raise InternalError(f"the interpreter of plans stopped with {status}")
        return found

    def _prepare(self, used: Sequence[np.ndarray]) -> int:
        while (status := self._look(used)) == GROW:  # for the pool, then for the arena
            self._executable.grow()
        if status == REFUSED:
            raise Refused
        return status

    def _look(self, used: Sequence[np.ndarray]) -> int:
        """Look at the arguments, whose words are addresses of objects before, and of data after it."""
        words, k = self.words, self.lowered.first
        for array in used:
            words[k] = id(array)
            k += 1
        return self._executable.prepare()

    def _made(self, out: Sequence[np.ndarray | None] | None) -> list[np.ndarray]:
        """The arrays that a call makes, or is given to write into."""
        words, made = self.words, []
        large = words[Word.LARGE]
        for k, fresh in enumerate(self.lowered.fresh):
            array = out[fresh.output] if out is not None and fresh.output is not None else None
            if array is None:
                shape = tuple(words[fresh.dims : fresh.dims + fresh.ndim].tolist())
                nbytes = math.prod(shape) * fresh.dtype.itemsize if large else 0
                try:
                    array = self._large[k].make(shape, nbytes) if nbytes >= LARGE else np.empty(shape, fresh.dtype)
                except ValueError:  # NumPy has no arrays of so many bytes
                    raise Refused from None
            made.append(array if type(array) is np.ndarray else np.asarray(array))
        return made

    def _found(self, used: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results of a run that is to come, as they are seen."""
        found = []
        for k, dims, ndim in self.lowered.returned:
            array, shape = used[k], tuple(self.words[dims : dims + ndim].tolist())
            found.append(array if array.shape == shape else array.reshape(shape))
        return found

    def _call(self, used: Sequence[np.ndarray], cells: Sequence[Any], found: Sequence[np.ndarray]) -> int:
        states = found[len(found) - len(cells) :]
        if not self._python:
            return self._executable.run(cells, states)
        calls = self._calls
        calls.begin((used, self._executable.arena))
        try:
            status = self._executable.run(cells, states)
            if status > 0:
                calls.raise_error()
            return status
        finally:
            calls.end()


class TimedFrame(Frame):
    """A frame whose code has a lap of the clock after every step."""

    def __init__(self, lowered: Lowered, laps: Laps, threads: int = 1, state: int = 0):
        super().__init__(lowered, threads, state or WATCH)
        self._laps = laps

    def times(self, *calls: Sequence[np.ndarray], log: bool = False) -> list[StepTime]:
        """Times of the steps in runs with these arrays, all in all. Taking the time is not counted. ``log``: for
        ``events``."""
        self._laps.reset(self.words, log)
        for arrays in calls:
            self.run(arrays, None)
        return self._laps.times(self.words)

    def met_denormals(self) -> bool:
        """True if a run had denormal numbers among its operands, and did not make zeros of them."""
        return self.words[Word.MET] != 0

    def events(self) -> list[Event]:
        """Log of the last run of ``times``."""
        return self._laps.events(self.words)
