"""Running a compiled function on a clock: times of every step, and what each step does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symc.codegen.kernel.names import kernel_name
from symc.codegen.plan.amounts import amount
from symc.ir.location import brief
from symc.ir.plan import Step
from symc.runtime.cpu.timing import StepTime
from symc.tools.profiling.lines import Shares
from symc.tools.profiling.report import Measured, Profile, ProfileRow

#: A run is this many seconds long, if it can be made so of this many calls.
ENOUGH, MOST_CALLS = 1e-4, 100


def profile(name: str, program: Any, arrays: Sequence[np.ndarray], sizes: Mapping[str, int], repeat: int,
            shares: Shares, phases: Sequence[Any]) -> Profile:
    """The best time of every step in ``repeat`` runs, after one that does not count and before one that is traced. What
    takes next to no time runs many times for each."""
    timer = program.timer(sizes)
    once = timer.times(_copied(arrays))
    often = max(1, min(MOST_CALLS, int(ENOUGH / max(sum(t.seconds for t in once), 1e-9))))
    runs = [timer.times(*[_copied(arrays) for _ in range(often)]) for _ in range(repeat)]
    once = timer.times(_copied(arrays), log=True)
    rows, threads = [], getattr(program, "threads", 1)
    inside: list[str] = []  # the loops and branches around a step
    for k, t in enumerate(once):
        label = " in ".join([step_label(t.step), *reversed(inside[: t.depth])])
        inside[t.depth :] = [step_label(t.step)]
        lines = brief(t.function.locations(t.step.value))
        seconds = min(r[k].seconds for r in runs) / often
        rows.append(ProfileRow(label, seconds, lines, _measured(t, sizes, shares, threads)))
    limits = None
    if hasattr(program, "context"):  # of a device
        from symc.tools.profiling.device_limits import device_limits

        limits = device_limits(program.context)
    return Profile(rows, name, [(e.index, e.begin, e.end) for e in timer.events()], phases, limits,
                   getattr(timer, "met_denormals", bool)())


def _copied(arrays: Sequence[Any]) -> list[Any]:
    """For one run, which may write over them."""
    return [a.copy() for a in arrays]


def _measured(t: StepTime, sizes: Mapping[str, int], shares: Shares, threads: int) -> Measured:
    a, parts = amount(t.step, sizes), shares.of(t.function, t.step, sizes)
    dtypes = [x.dtype for v in (*t.step.value.operands, t.step.value) for x in v.types if x.dtype.kind in "fc"]
    widest = max(dtypes, key=lambda d: d.char not in "fF", default=np.dtype("f8"))
    return Measured(t.step.kind, t.depth, t.runs, t.runs * a.read, t.runs * a.written, t.runs * a.flops, widest,
                    threads, parts)


def step_label(step: Step) -> str:
    """A word for what a step does: the name of its kernel or op."""
    if step.kind == "launch":
        return kernel_name(step.value)
    return "copy" if step.kind == "copy" else step.value.op.name
