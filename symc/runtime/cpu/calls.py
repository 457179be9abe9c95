"""Steps that run in Python: ops that have no native code run by their reference, called back from the interpreter.

A long loop calls back too, a few times a second, so that Python can handle signals: Ctrl-C stops it.
"""

from __future__ import annotations

import ctypes
import time
import weakref
from _thread import get_ident
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from symc.ir.dim import Size
from symc.ir.dtypes import lent, typestr
from symc.ir.function import Hints
from symc.ir.record import dataclass
from symc.ir.reference import apply
from symc.ir.size_values import evaluate
from symc.ir.types import TupleType
from symc.ir.value import Value
from symc.runtime.cpu.native.instructions import FAILED, PULSE_STEP, Word

if TYPE_CHECKING:
    from symc.ir.requires import Requirement

_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int64)
#: How many seconds of a loop pass from one look at signals to the next, about.
PULSE = 0.1
#: How many views of memory a frame keeps during a call.
MOST_VIEWS = 256


@dataclass(frozen=True, eq=False)
class Place:
    """An array of a frame: the slot that holds its address, and what lies there."""

    slot: int
    shape: tuple[Size, ...]
    dtype: np.dtype


class _Lent:
    """Memory as NumPy's array interface; keeps what it belongs to alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, address: int, shape: tuple[int, ...], dtype: np.dtype, owner: Any):
        self.owner = owner
        self.__array_interface__ = dict(
            version=3, shape=shape, typestr=typestr(dtype), data=(address, False), strides=None)


class Calls:
    """The Python steps of a frame, by number; the first is ``pulse``. An exception stops the interpreter and is kept
    for ``raise_error``."""

    def __init__(self, steps: Sequence[CallStep], names: Mapping[str, int], words: Any):
        self.steps, self.names, self.words = steps, names, words
        self.error: BaseException | None = None
        self._owner: Any = None
        self._views: dict[tuple, np.ndarray] = {}
        self._interval, self._looked = 16, 0.0
        server = _serve(weakref.ref(self))
        next(server)
        self._callback = _CALLBACK(server.send)
        words[Word.PYTHON] = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        words[Word.LEFT] = self._interval

    def pulse(self) -> None:
        """Signals have been handled on the way here. Say after how many steps of loops to come again."""
        now = time.perf_counter()
        if now - self._looked < PULSE / 2:
            self._interval *= 2
        elif now - self._looked > PULSE * 2 and self._interval > 1:
            self._interval //= 2
        self._looked, self.words[Word.LEFT] = now, self._interval

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes of the run."""
        return {name: self.words[slot] for name, slot in self.names.items()}

    def begin(self, owner: Any) -> None:
        """A run starts. ``owner``: keeps alive what it works on."""
        self._owner = owner
        self._looked, self.words[Word.LEFT] = time.perf_counter(), self._interval

    def end(self) -> None:
        """Let go of the caller's arrays and of results."""
        self._owner = None
        self._views.clear()

    def keep(self, error: BaseException) -> None:
        """Note what stops the run."""
        if self._owner is not None:
            self.error = error
        elif not isinstance(error, _OfAnEntry):
            left[get_ident()] = error

    def raise_error(self) -> None:
        """Raise what stopped the run. What came up outside of any step was a signal."""
        error, self.error = self.error, None
        raise KeyboardInterrupt if error is None else error

    def array(self, place: Place) -> np.ndarray:
        """The array that lies at a place now."""
        address, sizes = self.words[place.slot], self.sizes
        shape = tuple([s if isinstance(s, int) else evaluate(s, sizes) for s in place.shape])
        key = (address, shape, place.dtype)
        view = self._views.get(key)
        if view is None:
            if len(self._views) >= MOST_VIEWS:  # the rows of a loop are views of their own
                self._views.clear()
            view = self._views[key] = lent(_Lent(address, shape, place.dtype, self._owner), place.dtype)
        return view


CallStep = Callable[[Calls], None]


def _serve(me: weakref.ref[Calls]) -> Generator[None, int, None]:
    """Function that the interpreter calls. A generator, because Python handles signals where it is resumed, inside the
    `try`.

    The reference is weak, so that there is no cycle: a frame and its arena go as soon as nobody uses them.
    """
    while True:
        try:
            while True:
                number = yield
                calls = me()
                assert calls is not None
                if calls._owner is None and number != PULSE_STEP:
                    raise _OfAnEntry
                calls.steps[number](calls)
                calls.words[Word.FAILED] = 0
                del calls
        except GeneratorExit:
            return
        except BaseException as e:
            calls = me()
            if calls is not None:
                calls.words[Word.FAILED] = FAILED  # it may be a signal after the step
                calls.keep(e)
            del calls


class _OfAnEntry(Exception):
    """An entry runs: it stops, and the call is made again in Python."""


#: What a signal has raised in an entry, which raises nothing itself, by thread.
left: dict[int, BaseException] = {}


def raise_left() -> None:
    """Raise what an entry has left in this thread."""
    error = left.pop(get_ident(), None)
    if error is not None:
        raise error


@dataclass(frozen=True, eq=False)
class ReferenceStep:
    """An op by its reference. ``rare``: where native code has failed, which a call does not do as a rule."""

    value: Value
    reads: Sequence[Place]
    writes: Sequence[Place]
    hints: Hints
    rare: bool = False

    def __call__(self, calls: Calls) -> None:
        arrays = [calls.array(p) for p in self.reads]
        if self.value.op.name == "sort":  # NumPy sorts where the result lies, without an array of its own
            (out,) = [calls.array(p) for p in self.writes]
            np.copyto(out, arrays[0])
            out.sort(self.value.attrs["axis"], kind="stable")
            return
        with np.errstate(all="ignore"):
            found = apply(self.value, arrays, calls.sizes, False, self.hints)
        results = found if isinstance(self.value.type, TupleType) else (found,)
        for place, x in zip(self.writes, results, strict=True):
            np.copyto(calls.array(place), x, casting="no")


@dataclass(frozen=True, eq=False)
class LateStep:
    """A step that is found when it runs: ``find`` gives all steps of the code, of which it is number ``number``."""

    find: Callable[[], Sequence[CallStep]]
    number: int

    def __call__(self, calls: Calls) -> None:
        self.find()[self.number](calls)


def only_where_native_code_fails(step: CallStep) -> bool:
    """True if a step runs where native code has failed, or something has no value: in no call that succeeds, as a
    rule."""
    return isinstance(step, Refusal | LateStep) or isinstance(step, ReferenceStep) and step.rare


@dataclass(frozen=True, eq=False)
class Refusal:
    """Says that an op has no value at the sizes of the run, or at ``sizes``."""

    requirement: Requirement
    where: Sequence[Any]
    sizes: Mapping[str, int] | None = None

    def __call__(self, calls: Calls | None = None) -> None:
        sizes = self.sizes if calls is None else calls.sizes
        assert sizes is not None
        self.raise_at(sizes)

    def raise_unless(self, sizes: Mapping[str, int]) -> None:
        """Say it if it is so."""
        if not self.requirement.holds(lambda s: evaluate(s, sizes)):
            self.raise_at(sizes)

    def raise_at(self, sizes: Mapping[str, int]) -> None:
        """Say it."""
        error = self.requirement.error(lambda s: evaluate(s, sizes))
        error.attach((), self.where)
        raise error
