"""Times of the steps of a plan: laps of a clock that the native interpreter reads after each step.

A timed frame is one whose code has a LAP after every step; other frames know nothing of it. A lap costs about as much
as reading the clock, which is measured and taken off; what is left of a run is never less than a tick. Where the clock
shows tens of ticks at once, the time of a step of a few nanoseconds is right in the sum of many runs only.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symc.ir.function import Function
from symc.ir.plan import Plan, Step
from symc.ir.record import dataclass
from symc.runtime.cpu.executor import Code
from symc.runtime.cpu.native.instructions import NEVER, Lap, Op, Word

#: How many laps a log has room for.
MOST_LOGGED = 20_000
#: How often nothing is timed, in a row and how many times over, to know what that costs.
CALIBRATIONS = 32


@dataclass(frozen=True)
class StepTime:
    """A step of a plan, or of the body of a loop or branch ``depth`` deep: how often it ran, how long all in all. The
    time of a loop or branch is what its steps leave of it."""

    function: Function
    step: Step
    depth: int
    runs: int
    seconds: float


@dataclass(frozen=True)
class Event:
    """One run of a step: the ``index`` of its StepTime, and when it began and ended, in seconds from the start of the
    run. A loop or branch lasts as long as what it runs."""

    index: int
    begin: float
    end: float


@dataclass(frozen=True)
class Timer:
    """Something that times steps: ``times(arrays, ..., log=)`` in runs with these arrays, ``events()`` after one that
    was logged, ``met_denormals()`` after any. Donated arrays and states are written as in any run."""

    times: Callable[..., list[StepTime]]
    events: Callable[[], list[Event]]
    met_denormals: Callable[[], bool] = bool


@dataclass(frozen=True)
class _Timed:
    plan: Plan
    step: Step
    depth: int
    slot: int


class Laps:
    """The laps of a frame's code. ``top``: how many steps are in no loop or branch; these are logged in any case."""

    def __init__(self, code: Code, top: int):
        self._code, self._steps = code, list[_Timed]()
        self._inside, self._all = MOST_LOGGED, MOST_LOGGED + top + 1
        self._log: np.ndarray = np.empty((self._all, 2), np.int64)
        self._start = code.slots([0] * len(Lap))

    def start(self) -> None:
        """Code for the start of the first step."""
        self._code.emit(Op.LAP, self._start, self._all)

    def note(self, plan: Plan, step: Step, depth: int) -> int:
        """The number of a step whose laps follow."""
        self._steps.append(_Timed(plan, step, depth, self._code.slots([0] * len(Lap))))
        return len(self._steps) - 1

    def lap(self, number: int) -> None:
        """Code for the end of a step."""
        timed = self._steps[number]
        self._code.emit(Op.LAP, timed.slot, self._inside if timed.depth else self._all)

    def reset(self, words: Any, log: bool) -> None:
        """Before runs."""
        for slot in (self._start, *[t.slot for t in self._steps]):
            words[slot + Lap.RUNS], words[slot + Lap.TICKS], words[slot + Lap.LEAST] = 0, 0, NEVER
        words[Word.LOGGED], words[Word.LOG] = 0 if log else NEVER, self._log.ctypes.data

    def log(self, k: int, slot: int, now: int) -> None:
        """Entry ``k`` of the log, for a clock that the native interpreter cannot read."""
        self._log[k] = slot, now

    def times(self, words: Any, of: Clock | None = None) -> list[StepTime]:
        """After runs: every step, those of loops and branches before these, in the sequence of the plan."""
        now = of or clock()
        found = []
        for t in self._steps:
            runs, ticks = words[t.slot + Lap.RUNS], words[t.slot + Lap.TICKS]
            seconds = max(ticks - runs * now.lap, runs) * now.tick
            found.append(StepTime(t.plan.function, t.step, t.depth, runs, seconds))
        return found

    def events(self, words: Any, of: Clock | None = None) -> list[Event]:
        """After a run that was logged: what ran when, as far as there was room in the log."""
        tick, index = (of or clock()).tick, {t.slot: k for k, t in enumerate(self._steps)}
        entries: Sequence[tuple[int, int]] = self._log[: words[Word.LOGGED]].tolist()
        start = last = entries[0][1]
        open_: list[tuple[int, int]] = []  # begin and depth of runs whose loop or branch has not ended
        found = []
        for slot, now in entries[1:]:
            depth, begin = self._steps[index[slot]].depth, last
            while open_ and open_[-1][1] > depth:
                begin = open_.pop()[0]
            open_.append((begin, depth))
            found.append(Event(index[slot], (begin - start) * tick, (now - start) * tick))
            last = now
        return sorted(found, key=lambda e: (e.begin, -e.end))


@dataclass(frozen=True)
class Clock:
    """Length of a tick of the clock, in seconds, and ticks that a lap takes that times nothing."""

    tick: float
    lap: float


@functools.cache
def clock() -> Clock:
    """The clock of this machine, compared with that of the system."""
    code = Code()
    first, lap = code.slots([0] * len(Lap)), code.slots([0] * len(Lap))
    code.emit(Op.LAP, first, 0)
    for _ in range(CALIBRATIONS):
        code.emit(Op.LAP, lap, 0)
    executable = code.finish()

    def read() -> Iterator[tuple[float, float, int]]:
        for _ in range(CALIBRATIONS):
            executable.words[lap + Lap.TICKS] = 0
            before = time.perf_counter()
            executable.run()
            after = time.perf_counter()
            costs.append(executable.words[lap + Lap.TICKS] / CALIBRATIONS)
            yield after - before, (before + after) / 2, executable.words[Word.CLOCK]

    costs: list[float] = []
    _, start, a = min(read())
    while time.perf_counter() < start + 0.005:
        pass
    _, end, b = min(read())
    return Clock((end - start) / max(b - a, 1), min(costs))
