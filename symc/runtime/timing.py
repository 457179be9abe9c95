"""How long the steps of a plan take: laps of a clock that the native interpreter reads after each step.

A timed frame is one whose code has a LAP after every step; other frames know nothing of it. A lap costs about as much
as reading the clock, which is measured in the same run and taken off; what is left is never less than a tick.
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
from symc.runtime.executor import NEVER, Code, Lap, Op, Word

#: How many laps a log has room for.
MOST_LOGGED = 20_000
#: How often nothing is timed before a run.
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
    """Something that times steps: ``times(arrays, log)`` in a run, ``events()`` after one that was logged. Donated
    arrays and states are written as in any run."""

    times: Callable[..., list[StepTime]]
    events: Callable[[], list[Event]]


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
        self._nothing = code.slots([0] * len(Lap))

    def start(self) -> None:
        """Code that times nothing, to know what that costs; the last of these laps says in the log when it starts."""
        for k in range(CALIBRATIONS):
            self._code.emit(Op.LAP, self._nothing, self._all if k == CALIBRATIONS - 1 else 0)

    def note(self, plan: Plan, step: Step, depth: int) -> int:
        """The number of a step whose laps follow."""
        self._steps.append(_Timed(plan, step, depth, self._code.slots([0] * len(Lap))))
        return len(self._steps) - 1

    def lap(self, number: int) -> None:
        """Code for the end of a step."""
        timed = self._steps[number]
        self._code.emit(Op.LAP, timed.slot, self._inside if timed.depth else self._all)

    def reset(self, words: Any, log: bool) -> None:
        """Before a run."""
        for slot in (self._nothing, *[t.slot for t in self._steps]):
            words[slot + Lap.RUNS], words[slot + Lap.TICKS], words[slot + Lap.LEAST] = 0, 0, NEVER
        words[Word.LOGGED], words[Word.LOG] = 0 if log else NEVER, self._log.ctypes.data

    def times(self, words: Any) -> list[StepTime]:
        """After a run: every step, those of loops and branches after them, in the sequence of the plan."""
        tick, cost = tick_seconds(), words[self._nothing + Lap.LEAST]
        found = []
        for t in self._steps:
            runs, ticks = words[t.slot + Lap.RUNS], words[t.slot + Lap.TICKS]
            own = max(ticks - runs * cost, 1) if runs else 0
            found.append(StepTime(t.plan.function, t.step, t.depth, runs, own * tick))
        return found

    def events(self, words: Any) -> list[Event]:
        """After a run that was logged: what ran when, as far as there was room in the log."""
        tick, index = tick_seconds(), {t.slot: k for k, t in enumerate(self._steps)}
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


@functools.cache
def tick_seconds() -> float:
    """How long a tick of the clock is."""
    code = Code()
    lap = code.slots([0] * len(Lap))
    code.emit(Op.LAP, lap, 0)
    executable = code.finish()

    def read() -> Iterator[tuple[float, float, int]]:
        for _ in range(8):
            before = time.perf_counter()
            executable.run()
            after = time.perf_counter()
            yield after - before, (before + after) / 2, executable.words[Word.CLOCK]

    _, first, a = min(read())
    while time.perf_counter() < first + 0.005:
        pass
    _, second, b = min(read())
    return (second - first) / max(b - a, 1)
