"""A program that runs each op's NumPy reference: no kernels, no plan, always right, and open to a debugger.

It has the interface of ``symc.runtime.program.Program``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.errors import ExecutionError, SymcError
from symc.ir.dim import Dim
from symc.ir.function import Function
from symc.ir.reference import run_region
from symc.ir.text import print_function
from symc.ir.types import TensorType
from symc.ir.value import Value

Observer = Callable[[Value, Any, list[Any]], None]


class _Step:
    """One value: where its operands are in the frame, and which of them it uses last."""

    __slots__ = ("attrs", "fixed", "last", "slots", "value")

    def __init__(self, value: Value, slots: list[int]):
        self.value, self.slots = value, slots
        self.last: list[int] = []
        self.fixed = not value.regions and not any(map(_has_size, value.attrs.values()))
        self.attrs = value.attrs.concrete({}) if self.fixed else {}


def _has_size(attr: Any) -> bool:
    if isinstance(attr, tuple):
        return any(map(_has_size, attr))
    return isinstance(attr, Dim | TensorType)


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

    def run(self, arrays: Sequence[np.ndarray], sizes: Mapping[str, int], out: Sequence[np.ndarray | None] | None = None, *,
            observe: Observer | None = None) -> list[np.ndarray]:
        """Outputs, then new states: fresh arrays, except those written into ``out``.

        ``observe(value, result, operands)`` is called after every op, in order.
        """
        frame: list[Any] = [*arrays, *[None] * (self._size - len(arrays))]
        with np.errstate(all="ignore"):
            for at, step in enumerate(self._steps, self._first):
                frame[at] = self._apply(step, [frame[k] for k in step.slots], sizes)
                if observe is not None:
                    observe(step.value, frame[at], [frame[k] for k in step.slots])
                for k in step.last:
                    if k >= self._first:
                        frame[k] = None
        return self._deliver([frame[k] for k in self._results], arrays, out)

    def _apply(self, step: _Step, operands: list[Any], sizes: Mapping[str, int]) -> Any:
        v = step.value
        attrs = step.attrs
        if not step.fixed:
            attrs = v.attrs.concrete(sizes)
            if v.regions:
                attrs["regions"] = [lambda *xs, r=r: run_region(r, xs, sizes) for r in v.regions]
        try:
            return v.op.reference(*operands, **attrs)
        except SymcError as e:
            e.attach(_rows(v, operands), self.function.locations(v))
            raise
        except MemoryError as e:
            e.add_note(f"in {v.op.name} : {v.type}, {', '.join(map(str, self.function.locations(v)))}")
            raise
        except Exception as e:  # NumPy's own: say which op of the user's program it was
            raise ExecutionError(f"{v.op.name}: {e}", values=_rows(v, operands), where=self.function.locations(v)) from e

    def _deliver(self, results: list[Any], arrays: Sequence[np.ndarray], out: Sequence[np.ndarray | None] | None) -> list[np.ndarray]:
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


def _rows(v: Value, operands: Sequence[Any]) -> list[tuple[str, Any, Any]]:
    return [(f"operand {i}", f"{o.type}, given {np.shape(a)}", None) for i, (o, a) in enumerate(zip(v.operands, operands, strict=True))]
