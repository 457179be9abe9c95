"""The clock that times steps: what a timed frame counts and logs, and what it leaves alone."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import symc as sc
from symc.opt import DEFAULT
from symc.runtime.cpu.executor import Code
from symc.runtime.cpu.frame import TimedFrame
from symc.runtime.cpu.native.instructions import Lap, Op, Word
from symc.runtime.cpu.timing import MOST_LOGGED, clock
from symc.tools.inspection import bound


def compiled(outputs: Any, inputs: Sequence[Any]) -> Any:
    """A function whose loops are steps of the plan, small ones too."""
    return sc.compile(outputs, list(inputs), pipeline=DEFAULT + ",-small_loops")


def timed(f: Any, *arrays: np.ndarray) -> tuple[TimedFrame, list[np.ndarray]]:
    """A timed frame of a function, and the arrays to run it on."""
    given, sizes = bound(f, arrays, {})
    program = f._compilation.program
    return program.timer(sizes), given


def test_a_tick_is_as_long_as_the_systems_clock_says() -> None:
    code = Code()
    lap = code.slots([0] * len(Lap))
    code.emit(Op.LAP, lap, 0)
    executable = code.finish()
    executable.run()
    begin, first = time.perf_counter(), executable.words[Word.CLOCK]
    time.sleep(0.02)
    executable.run()
    ticks, seconds = executable.words[Word.CLOCK] - first, time.perf_counter() - begin
    assert 0.5 < ticks * clock().tick / seconds < 2
    assert executable.words[lap + Lap.RUNS] == 2
    assert executable.words[lap + Lap.LEAST] <= executable.words[lap + Lap.TICKS]


def test_every_step_that_runs_takes_time_and_the_others_none() -> None:
    x, n = sc.vector("x"), sc.scalar("n", dtype="int64")
    y = sc.cond(n > 0, lambda v: sc.cumsum(v) * 2, lambda v: sc.sort(v) - 1, x)
    frame, given = timed(compiled(y + x, [x, n]), np.ones(3), np.int64(1))
    times = frame.times(given)
    assert {t.runs for t in times} == {0, 1}
    assert all((t.seconds > 0) == (t.runs > 0) for t in times)
    again = frame.times(given)
    assert [t.runs for t in again] == [t.runs for t in times]


def test_a_log_nests_what_loops_run_in_the_loops() -> None:
    h, x = sc.vector("h"), sc.matrix("x")
    step = lambda c, row: (sc.sort(sc.cumsum(c) * 0.1) + row, None)
    frame, given = timed(compiled(sc.scan(step, h, x)[0] * 2, [h, x]), np.ones(4), np.ones((7, 4)))
    times = frame.times(given, log=True)
    events = frame.events()
    counts = [sum(e.index == k for e in events) for k in range(len(times))]
    assert counts == [t.runs for t in times] and 7 in counts
    (loop,) = [e for e in events if times[e.index].step.kind == "control"]
    assert all(loop.begin <= e.begin <= e.end <= loop.end for e in events if times[e.index].depth == 1)
    assert all(e.begin >= loop.end or e.end <= loop.begin for e in events
               if times[e.index].depth == 0 and e is not loop)
    frame.times(given)
    assert frame.words[Word.LOGGED] > MOST_LOGGED  # nothing is logged when nobody asks


def test_a_full_log_keeps_what_is_outside_of_loops() -> None:
    h, x = sc.vector("h"), sc.matrix("x")
    step = lambda c, row: (sc.sort(sc.cumsum(c) * 0.1) + row, None)
    frame, given = timed(compiled(sc.scan(step, h, x)[0] * 2, [h, x]), np.ones(1), np.ones((MOST_LOGGED, 1)))
    times = frame.times(given, log=True)
    events = frame.events()
    assert len(events) < sum(t.runs for t in times)
    assert {e.index for e in events if times[e.index].depth == 0} == {k for k, t in enumerate(times) if not t.depth}


def test_code_that_is_not_timed_reads_no_clock() -> None:
    x = sc.vector("x")
    f = compiled(sc.sort(sc.exp(x)) * 2, [x])
    program = f._compilation.program
    given, _ = bound(f, (np.ones(3),), {})
    frame = program.lend()
    frame.run(given, None)
    assert frame.words[Word.CLOCK] == 0
