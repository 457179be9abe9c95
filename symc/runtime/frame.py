"""Memory and code of one call of a plan at given sizes.

A frame is prepared once and used by one call at a time: a call writes where its arrays are, and makes one native call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from symc.errors import InternalError
from symc.ir.dim import evaluate
from symc.ir.plan import Plan
from symc.ir.types import concrete_shape
from symc.runtime.calls import Calls, Refusal
from symc.runtime.executor import Code, Op
from symc.runtime.lower import Launches, Lowering, Required
from symc.runtime.native.executor_ir import NOT_ARRAY
from symc.runtime.timing import Event, Laps, StepTime

ALIGN = 64


@dataclass(frozen=True)
class Interface:
    """How native code runs a frame: the address of its code; its first slot; which arguments are put into the slots
    from there on; for each array that is made (outputs, then new arrays of states) its slot, counted from there, its
    shape and dtype; for each state that is updated the index of its new array, -1 where it is written in place.
    ``arena``: bytes."""

    address: int
    first: int
    given: tuple[int, ...]
    made: tuple[tuple[int, tuple[int, ...]], ...]
    dtypes: tuple[np.dtype, ...]
    updated: tuple[int, ...]
    arena: int


class Frame:
    """An arena and the code of a plan. ``timed``: see ``times``."""

    def __init__(
        self, plan: Plan, launches: Launches, required: Required, sizes: Mapping[str, int], timed: bool = False
    ):
        arena = evaluate(plan.arena, sizes)
        raw = np.empty(arena + ALIGN, np.uint8)
        start = -raw.ctypes.data % ALIGN
        self._arena = raw[start : start + arena]
        self._code = Code()
        self._calls = Calls(sizes, self._arena, self._code)
        self._interface(plan, sizes)
        self._laps = Laps(self._code, len(plan.steps)) if timed else None
        lowering = Lowering(launches, required, sizes, self._code, self._calls, laps=self._laps)
        for name, buffer in plan.buffers.items():
            if buffer.kind == "constant":
                assert buffer.value is not None
                self._slots[name] = lowering.constant(buffer.value)
        lowering.temps(plan, self._slots, lowering.at(self._arena.ctypes.data))
        if self._laps is not None:
            self._laps.start()
        lowering.whole(plan, self._slots)
        self._executable = self._code.finish()
        self._words = self._calls.words = self._executable.words
        self._loops = any(s.kind == "control" for s in plan.steps)
        self._python = self._loops or len(self._calls.steps) > 1  # a loop has pulses

    def _interface(self, plan: Plan, sizes: Mapping[str, int]) -> None:
        """Slots for arguments and results, in a row. A call puts the array objects there, the code finds their data."""
        given: list[tuple[str, int]] = []
        fresh: list[tuple[str, tuple[int, ...], np.dtype, int | None]] = []
        outputs = plan.results[: len(plan.function.outputs)]
        self._updates = list(plan.function.updates)
        for name, b in plan.buffers.items():
            if b.kind in ("input", "state"):
                assert b.value is not None
                given.append((name, b.value.attrs["index"]))
            elif b.kind == "result":
                t = plan.types[name]
                fresh.append(
                    (name, concrete_shape(t.shape, sizes), t.dtype, outputs.index(name) if name in outputs else None)
                )
        names = [g[0] for g in given] + [f[0] for f in fresh]
        self._first = self._code.slots([0] * len(names))
        self._slots = {name: self._first + k for k, name in enumerate(names)}
        self._code.emit(Op.OPEN, self._first, len(names), id(np.ndarray))
        self._given = [index for _, index in given]
        self._fresh = [f[1:] for f in fresh]
        self._returned = [
            (names.index(name), concrete_shape(v.shape, sizes))
            for name, v in zip(plan.results, plan.function.body.results, strict=True)
        ]

    def run(self, arrays: Sequence[np.ndarray], out: Sequence[np.ndarray | None] | None) -> list[np.ndarray]:
        """Outputs, then the arrays that hold new states."""
        used: list[np.ndarray] = [arrays[index] for index in self._given]
        for shape, dtype, o in self._fresh:
            array = out[o] if out is not None and o is not None else None
            used.append(np.empty(shape, dtype) if array is None else array)
        status = self._call(used)
        if status == NOT_ARRAY:  # a NumPy scalar, or a subclass
            used = [np.asarray(a) for a in used]
            status = self._call(used)
        if status:
            raise InternalError(f"the interpreter of plans stopped with {status}")
        found = []
        for k, shape in self._returned:
            array = used[k]
            found.append(array if array.shape == shape else array.reshape(shape))
        return found

    def interface(self) -> Interface | None:
        """None where a run needs Python: for steps (a refusal aside, which stops a run that writes no state), for
        signals in loops, for results that are not all fresh arrays of their own."""
        steps, given = self._calls.steps[1:], len(self._given)
        if self._loops or not all(isinstance(s, Refusal) for s in steps) or (steps and self._updates):
            return None
        outputs = len(self._returned) - len(self._updates)
        made, updated = list(self._returned[:outputs]), []
        for (k, shape), state in zip(self._returned[outputs:], self._updates, strict=True):
            in_place = k < given and self._given[k] == state
            updated.append(-1 if in_place else len(made))
            if not in_place:
                made.append((k, shape))
        if sorted(k for k, _ in made) != list(range(given, given + len(self._fresh))):
            return None
        dtypes = tuple(self._fresh[k - given][1] for k, _ in made)
        address, arena = self._executable.address, self._arena.nbytes
        return Interface(address, self._first, tuple(self._given), tuple(made), dtypes, tuple(updated), arena)

    def _call(self, used: Sequence[np.ndarray]) -> int:
        words, k = self._words, self._first
        for array in used:
            words[k] = id(array)
            k += 1
        if not self._python:
            return self._executable.run()
        calls = self._calls
        calls.begin(used)
        try:
            status = self._executable.run()
            if status > 0:
                calls.raise_error()
            return status
        finally:
            calls.end()

    def times(self, arrays: Sequence[np.ndarray], log: bool = False) -> list[StepTime]:
        """How long the steps of a timed frame take in one run. Taking the time is not counted. ``log``: for ``events``.
        """
        assert self._laps is not None
        self._laps.reset(self._words, log)
        self.run(arrays, None)
        return self._laps.times(self._words)

    def events(self) -> list[Event]:
        """What the last run of ``times`` logged."""
        assert self._laps is not None
        return self._laps.events(self._words)
