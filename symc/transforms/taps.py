"""``taps``: a state of which the step of a scan sees several past values. Sugar: the scan carries each value itself.

A value that moves up by one place in every step costs nothing: the plan exchanges addresses. What a step reads of its
rows around the present one needs no taps: slices of an array are rows too (``xs=(x[:-1], x[1:])``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symc.errors import DTypeError, InputError, ShapeError
from symc.ir.dim import known_equal
from symc.tensors import pytree as nest
from symc.tensors.convert import as_tensor, convert
from symc.tensors.public import API, public
from symc.tensors.tensor import Tensor

Step = Callable[[Any, Any], Any]


class Taps:
    """A leaf of ``init``: the first past values, oldest first, and which of them the step sees."""

    def __init__(self, rows: Sequence[Tensor], offsets: tuple[int, ...]):
        self.rows, self.offsets = rows, offsets

    def __repr__(self) -> str:
        return f"taps(..., {self.offsets})"


@public()
def taps(history: Any, offsets: Sequence[int]) -> Taps:
    """A state in ``init`` of ``sc.scan`` of which the step sees the values of several steps back.

    ``history``: an array whose last rows are the values before the first step, the latest at the end. ``offsets``: how
    far back, (-2, -1) for the last but one and the last. In this place the step gets the tuple of the values at the
    offsets and returns the one new value; scan returns the last ``-min(offsets)`` values as an array, a history to go
    on from.
    Raises InputError for offsets that are no negative integers, ShapeError if the history has too few rows.

    >>> step = lambda past, _: (past[0] + past[1], past[1])
    >>> sc.compile(sc.scan(step, sc.taps([0, 1], (-2, -1)), length=8)[1])()
    array([ 1,  1,  2,  3,  5,  8, 13, 21])
    """
    if not isinstance(offsets, tuple | list) or not offsets or not all(_is_past(k) for k in offsets):
        raise InputError(f"taps: offsets must be negative integers in a tuple, not {offsets!r}",
                         help="(-2, -1) for the last but one and the last value; of rows of xs take slices: "
                              "xs=(x[:-1], x[1:])")
    values, deep = API["asarray"](history), -min(offsets)
    if values.ndim == 0:
        raise ShapeError("taps: the history is a scalar; it has no rows", values=[values.describe("history")])
    n = values.value.shape[0]
    if isinstance(n, int) and n < deep:
        raise ShapeError(f"taps: the history has {n} rows, offset {-deep} needs {deep}",
                         values=[values.describe("history")])
    return Taps([values[k] for k in range(-deep, 0)], tuple(int(k) for k in offsets))


def _is_past(k: Any) -> bool:
    return hasattr(k, "__index__") and not isinstance(k, Tensor | bool) and int(k) < 0


def has_taps(init: Any) -> bool:
    """True if a leaf of the nest is ``taps``."""
    return any(isinstance(x, Taps) for x in nest.flatten(init)[0])


def without_taps(step: Step, init: Any) -> tuple[Step, Any, Callable[[Any], Any]]:
    """The same scan with each past value a carry: step and init for it, and what makes histories of its last carry."""
    leaves, structure = nest.flatten(init)
    paths = structure.paths()

    def plain(state: Any, x: Any) -> Any:
        seen = [tuple(old[k] for k in start.offsets) if isinstance(start, Taps) else old
                for old, start in zip(state, leaves, strict=True)]
        out = step(nest.unflatten(structure, seen), x)
        if not isinstance(out, tuple | list) or len(out) != 2:
            return out  # scan says what is wrong
        new = nest.match(structure, out[0], "scan: the new carry")
        moved = [(*old[1:], _like(value, old[-1], path)) if isinstance(start, Taps) else value
                 for value, old, start, path in zip(new, state, leaves, paths, strict=True)]
        return moved, out[1]

    def histories(final: Any) -> Any:
        return nest.unflatten(structure, [API["stack"](last, 0) if isinstance(start, Taps) else last
                                          for last, start in zip(final, leaves, strict=True)])

    return plain, [list(start.rows) if isinstance(start, Taps) else start for start in leaves], histories


def _like(new: Any, old: Tensor, path: str) -> Tensor:
    """The new value of a state in the type of the old ones."""
    if nest.flatten(new)[1].kind != "leaf":
        raise InputError(f"scan: the step must return one new value for taps in the carry{path}, not {_said(new)}",
                         help="it gets a tuple of past values and returns the value that comes after them")
    t = as_tensor(new)
    rows = [old.describe("a past value"), t.describe("the new one")]
    if t.ndim != old.ndim or any(known_equal(a, b) is False
                                 for a, b in zip(t.value.shape, old.value.shape, strict=True)):
        raise ShapeError(f"scan: the history of the carry{path} has other shapes than the new value", values=rows)
    number = t.weak and t.dtype.kind <= old.dtype.kind
    if t.dtype != old.dtype and not number:
        raise DTypeError(f"scan: the history of the carry{path} is {old.dtype}, the new value {t.dtype}", values=rows,
                         help=f"convert one of them: .astype({str(old.dtype)!r}) of the new value, "
                              f"or a history of {t.dtype}")
    return Tensor(convert(t.value, old.dtype))


def _said(item: Any) -> str:
    return f"a {type(item).__name__} of {nest.flatten(item)[1].count}"
