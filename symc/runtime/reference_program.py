"""A program that runs each op's NumPy reference: no kernels, no plan, always right, and open to a debugger.

It has the interface of ``symc.runtime.program.Program``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.ir.function import Function
from symc.ir.reference import apply
from symc.ir.text import print_function
from symc.ir.value import Value

Observer = Callable[[Value, Any, list[Any]], None]


class _Step:
    """One value: where its operands are in the frame, and which of them it uses last."""

    __slots__ = ("last", "slots", "value")

    def __init__(self, value: Value, slots: list[int]):
        self.value, self.slots = value, slots
        self.last: list[int] = []


class ReferenceProgram:
    """A function ready to run by its references. Safe to run from several threads."""

    kernels: tuple = ()

    def __init__(self, function: Function):
        self.function = function
        values = function.values()
        place: dict[Value, int] = {p: k for k, p in enumerate(function.params)}
        self._steps: list[_Step] = []
        for v in values:
            if v not in place:
                place[v] = len(place)
                self._steps.append(_Step(v, [place[o] for o in v.operands]))
        self._results = [place[r] for r in function.body.results]
        self._size = len(place)
        seen = set(self._results)
        for step in reversed(self._steps):
            step.last = [k for k in dict.fromkeys(step.slots) if k not in seen]
            seen.update(step.slots)
        self._first = len(function.inputs)

    @property
    def source(self) -> str:
        """What is run: the function, op by op."""
        return "// every op by its NumPy reference\n" + print_function(self.function)

    def run(
        self,
        arrays: Sequence[np.ndarray],
        sizes: Mapping[str, int],
        out: Sequence[np.ndarray | None] | None = None,
        *,
        observe: Observer | None = None,
    ) -> list[np.ndarray]:
        """Outputs, then new states: fresh arrays, except those written into ``out``.

        ``observe(value, result, operands)`` is called after every op, in order.
        """
        frame: list[Any] = [*arrays, *[None] * (self._size - len(arrays))]
        with np.errstate(all="ignore"):
            for at, step in enumerate(self._steps, self._first):
                operands = [frame[k] for k in step.slots]
                frame[at] = apply(step.value, operands, sizes, False, self.function.hints)
                if observe is not None:
                    observe(step.value, frame[at], operands)
                for k in step.last:
                    if k >= self._first:
                        frame[k] = None
        return self._deliver([frame[k] for k in self._results], arrays, out)

    def _deliver(
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
