"""Running a compiled function on a clock: times of every step, and what each step does."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symc.codegen.amounts import amount
from symc.codegen.names import kernel_name
from symc.ir.plan import Step
from symc.ir.types import TensorType, TupleType
from symc.ir.value import Value
from symc.profiling.lines import Shares
from symc.profiling.report import Measured, Profile, ProfileRow
from symc.runtime.reference_program import ReferenceProgram
from symc.runtime.timing import Event, StepTime, Timer


def profile(name: str, program: Any, arrays: Sequence[np.ndarray], sizes: Mapping[str, int], repeat: int,
            shares: Shares, phases: Sequence[Any]) -> Profile:
    """The best time of every step in ``repeat`` runs, after one that does not count; the last is traced."""
    timer = _reference_timer(program, sizes) if isinstance(program, ReferenceProgram) else program.timer(sizes)
    timer.times([a.copy() for a in arrays])
    runs = [timer.times([a.copy() for a in arrays], k == repeat - 1) for k in range(repeat)]
    rows = []
    inside: list[str] = []  # the loops and branches around a step
    for k, t in enumerate(runs[-1]):
        label = " in ".join([step_label(t.step), *reversed(inside[: t.depth])])
        inside[t.depth :] = [step_label(t.step)]
        lines = ", ".join(map(str, t.function.locations(t.step.value)))
        rows.append(ProfileRow(label, min(r[k].seconds for r in runs), lines, _measured(t, sizes, shares)))
    return Profile(rows, name, [(e.index, e.begin, e.end) for e in timer.events()], phases)


def _measured(t: StepTime, sizes: Mapping[str, int], shares: Shares) -> Measured:
    a, parts = amount(t.step, sizes), shares.of(t.function, t.step, sizes)
    dtypes = [x.dtype for v in (*t.step.value.operands, t.step.value) for x in _types(v) if x.dtype.kind in "fc"]
    widest = max(dtypes, key=lambda d: d.char not in "fF", default=np.dtype("f8"))
    return Measured(t.step.kind, t.depth, t.runs, t.runs * a.read, t.runs * a.written, t.runs * a.flops, widest, parts)


def _types(v: Value) -> tuple[TensorType, ...]:
    return v.type.items if isinstance(v.type, TupleType) else (v.type,)


def step_label(step: Step) -> str:
    """What a step does, in a word: the name of its kernel or op."""
    if step.kind == "launch":
        return kernel_name(step.value)
    return "copy" if step.kind == "copy" else step.value.op.name


def _reference_timer(program: ReferenceProgram, sizes: Mapping[str, int]) -> Timer:
    """For a program that runs op by op."""
    events: list[Event] = []

    def times(arrays: Sequence[np.ndarray], log: bool = False) -> list[StepTime]:
        found: list[StepTime] = []
        events.clear()
        start = last = time.perf_counter()

        def note(v: Value, result: Any, operands: list[Any]) -> None:
            nonlocal last
            now = time.perf_counter()
            found.append(StepTime(program.function, _as_step(v), 0, 1, now - last))
            events.append(Event(len(events), last - start, now - start))
            last = time.perf_counter()

        ReferenceProgram.run(program, arrays, sizes, observe=note)
        return found

    return Timer(times, lambda: list(events))


def _as_step(v: Value) -> Step:
    """An op as a step of a plan, each operand in memory of its own."""
    places = {o: str(k) for k, o in enumerate(v.operands)}
    return Step("control" if v.regions else "call", v, tuple(places[o] for o in v.operands),
                tuple(f"result {k}" for k in range(len(_types(v)))))
