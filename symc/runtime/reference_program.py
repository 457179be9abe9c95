"""A program that runs each op's NumPy reference: no kernels, no plan, always right, and open to a debugger.

It has the interface of ``symc.runtime.cpu.program.Program``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.ir.function import Function
from symc.ir.plan import Step
from symc.ir.record import replace
from symc.ir.reference import Within, apply, schedule
from symc.ir.text import print_function
from symc.ir.types import TupleType
from symc.ir.value import Value
from symc.runtime.cpu.commit import replace_arrays
from symc.runtime.cpu.timing import Event, StepTime, Timer

Observer = Callable[[Value, Any, list[Any]], None]


class ReferenceProgram:
    """A function ready to run by its references. Safe to run from several threads."""

    kernels: tuple = ()

    def __init__(self, function: Function):
        self.function = function
        self._schedule = schedule(function.params, function.body.results)

    @property
    def source(self) -> str:
        """The code that is run: the function, op by op."""
        return "// every op by its NumPy reference\n" + print_function(self.function)

    def run(
        self,
        arrays: Sequence[np.ndarray],
        sizes: Mapping[str, int],
        out: Sequence[np.ndarray | None] | None = None,
        cells: Sequence[Any] = (),
        *,
        observe: Observer | None = None,
        within: Within | None = None,
    ) -> list[np.ndarray]:
        """Outputs, then new states, which ``cells`` have in the end: fresh arrays, except those written into ``out``.

        ``observe(value, result, operands)`` is called after every op, in order; ``within`` after every op of a body.
        """

        def step(v: Value, operands: list[Any]) -> Any:
            result = self.compute(v, operands, sizes, within)
            if observe is not None:
                observe(v, result, operands)
            return result

        with np.errstate(all="ignore"):
            results = self.deliver(self._schedule.run(arrays, step), arrays, out)
        replace_arrays(cells, results[len(results) - len(cells) :])
        return results

    def compute(self, v: Value, operands: list[Any], sizes: Mapping[str, int], within: Within | None = None) -> Any:
        """The result of one op. A backend that has code for some ops overrides it."""
        return apply(v, operands, sizes, False, self.function.hints, self.function.inside, within)

    def timer(self, sizes: Mapping[str, int]) -> Timer:
        """Timer of every op."""
        events: list[Event] = []

        def times(*calls: Sequence[np.ndarray], log: bool = False) -> list[StepTime]:
            runs = [one(arrays) for arrays in calls]
            return [replace(ts[0], seconds=sum(t.seconds for t in ts)) for ts in zip(*runs)]

        def one(arrays: Sequence[np.ndarray]) -> list[StepTime]:
            found: list[StepTime] = []
            events.clear()
            start = last = time.perf_counter()

            def note(v: Value, result: Any, operands: list[Any]) -> None:
                nonlocal last
                now = time.perf_counter()
                found.append(StepTime(self.function, _as_step(v), 0, 1, now - last))
                events.append(Event(len(events), last - start, now - start))
                last = time.perf_counter()

            self.run(arrays, sizes, observe=note)
            return found

        return Timer(times, lambda: list(events))

    def deliver(
        self, results: list[Any], arrays: Sequence[np.ndarray], out: Sequence[np.ndarray | None] | None
    ) -> list[np.ndarray]:
        """Results as arrays of their own: an op's reference may return a view or an operand itself."""
        taken = {id(a) for a in arrays}
        done: list[np.ndarray] = []
        for k, result in enumerate(results):
            a = np.asarray(result)
            if out is not None and k < len(out) and out[k] is not None:
                np.copyto(out[k], a)  # type: ignore[arg-type]
                a = out[k]  # type: ignore[assignment]
            elif id(a) in taken or not a.flags.owndata or not a.flags.carray:
                a = np.array(a, order="C", copy=True)
            taken.add(id(a))
            done.append(a)
        return done


def _as_step(v: Value) -> Step:
    """An op as a step of a plan, each operand in memory of its own."""
    places = {o: str(k) for k, o in enumerate(v.operands)}
    count = len(v.type.items) if isinstance(v.type, TupleType) else 1
    return Step("control" if v.regions else "call", v, tuple(places[o] for o in v.operands),
                tuple(f"result {k}" for k in range(count)))
