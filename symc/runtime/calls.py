"""Steps that run in Python: ops that have no native code run by their reference, called back from the interpreter."""

from __future__ import annotations

import ctypes
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symc.errors import ShapeError
from symc.ir.function import Hints
from symc.ir.reference import apply
from symc.ir.types import TensorType, TupleType, concrete_shape
from symc.ir.value import Value

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
#: How many views of memory outside of the arena a frame keeps during a call.
MOST_VIEWS = 256


@dataclass(frozen=True, eq=False)
class Place:
    """An array of a frame: the slot that holds its address, and what lies there."""

    slot: int
    shape: tuple[int, ...]
    dtype: np.dtype


class _Lent:
    """Memory as NumPy's array interface; keeps what it belongs to alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, address: int, place: Place, owner: Any):
        self.owner = owner
        self.__array_interface__ = dict(
            version=3, shape=place.shape, typestr=place.dtype.str, data=(address, False), strides=None
        )


class Calls:
    """The Python steps of a frame, by number. An exception stops the interpreter and is kept for ``raise_error``."""

    def __init__(self, sizes: Mapping[str, int], arena: np.ndarray):
        self.sizes, self.arena = sizes, arena
        self.steps: list[Callable[[Calls], None]] = []
        self.words: Any = ()  # of the executable
        self.error: BaseException | None = None
        self.marks: list[float] = []
        self._owner: Any = None
        self._first = arena.ctypes.data
        self._fixed: dict[tuple, np.ndarray] = {}
        self._lent: dict[tuple, np.ndarray] = {}
        me = weakref.ref(self)  # no cycle: a frame and its arena go as soon as nobody uses them

        def call(number: int) -> int:
            calls = me()
            assert calls is not None
            try:
                calls.steps[number](calls)
            except BaseException as e:
                calls.error = e
                return 1
            return 0

        self._callback = _CALLBACK(call)
        self.address = ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def add(self, step: Callable[[Calls], None]) -> int:
        """The number of a step."""
        self.steps.append(step)
        return len(self.steps) - 1

    def place(self, slot: int, t: TensorType) -> Place:
        return Place(slot, concrete_shape(t.shape, self.sizes), t.dtype)

    def begin(self, owner: Any) -> None:
        """A run starts. ``owner``: keeps alive what lies outside of the arena."""
        self._owner = owner

    def end(self) -> None:
        """Let go of the caller's arrays and of results."""
        self._owner = None
        self._lent.clear()

    def raise_error(self) -> None:
        error, self.error = self.error, None
        assert error is not None
        raise error

    def array(self, place: Place) -> np.ndarray:
        """The array that lies at a place now."""
        address = self.words[place.slot]
        inside = 0 <= address - self._first < self.arena.nbytes
        views = self._fixed if inside else self._lent
        key = (address, place.shape, place.dtype)
        view = views.get(key)
        if view is None:
            if len(views) >= MOST_VIEWS:  # the rows of a loop are views of their own
                views.clear()
            view = views[key] = np.asarray(_Lent(address, place, self.arena if inside else self._owner))
        return view


@dataclass(frozen=True, eq=False)
class ReferenceStep:
    """An op by its reference."""

    value: Value
    reads: Sequence[Place]
    writes: Sequence[Place]
    hints: Hints

    def __call__(self, calls: Calls) -> None:
        arrays = [calls.array(p) for p in self.reads]
        with np.errstate(all="ignore"):
            found = apply(self.value, arrays, calls.sizes, False, self.hints)
        results = found if isinstance(self.value.type, TupleType) else (found,)
        for place, x in zip(self.writes, results, strict=True):
            np.copyto(calls.array(place), x, casting="no")


@dataclass(frozen=True, eq=False)
class NoElements:
    """Says that a reduction has no value at these sizes."""

    fold: Value
    where: Sequence[Any]

    def __call__(self, calls: Calls) -> None:
        raise ShapeError(
            f"{self.fold.op.name} of no elements has no value: {self.fold.operands[0].type} over axes "
            f"{self.fold.attrs['axes']}",
            where=self.where,
        )


def mark(calls: Calls) -> None:
    """Note the time."""
    calls.marks.append(time.perf_counter())
