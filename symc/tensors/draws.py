"""Warnings of random numbers that are the same in every call: drawn while a function is traced, which makes constants
of them, or by a generator that the function does not advance."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from symc.tracebacks import USER, kind_of

#: The place of NumPy's global generator in its block, from which on nothing was drawn since it was made or seeded.
FRESH = 623
_thread = threading.local()


def _drawn() -> tuple[Any, Any]:
    """Something that changes with each draw from the global generators; None for one that is fresh or not imported."""
    of_numpy, of_python = sys.modules.get("numpy.random"), sys.modules.get("random")
    state = None
    if of_numpy is not None:
        found = of_numpy.get_state(legacy=False)
        place, more = found["state"]["pos"], found["has_gauss"]
        state = (place, more, found["gauss"]) if place < FRESH or more else None
    return state, None if of_python is None else hash(of_python.getstate())


@contextmanager
def draws_are_told() -> Iterator[None]:
    """Around a call of the user's function that is traced; the outermost of several looks."""
    if getattr(_thread, "watches", False):
        yield
        return
    of_numpy, of_python = _drawn()
    _thread.watches = True
    try:
        yield
    finally:
        _thread.watches = False
    now = _drawn()
    if now[0] not in (None, of_numpy) or of_python not in (None, now[1]):
        warnings.warn("random numbers of NumPy or Python were drawn while a function was traced: they are constants, "
                      "the same in every call and step; sc.random.normal(key, shape) and its kin draw new ones, or "
                      "draw outside and give them as an argument", stacklevel=_depth())


def tell_of_standing(name: str, read: Iterable[Any], updated: Iterable[Any]) -> None:
    """Warn of generators among the cells that a function reads, of those that it does not update."""
    for cell in read:
        if cell.draws and not any(cell is other for other in updated):
            warnings.warn(f"{name} draws from the generator {cell.name!r} and does not advance it: every call has the "
                          "same numbers. sc.compile(..., updates=rng.updates()) advances it, a jitted function takes a "
                          "key as an argument; where the same are meant, sc.random.key(seed) says so",
                          stacklevel=_depth())


def _depth() -> int:
    """Frames up to the user's."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and kind_of(frame.f_code.co_filename) != USER:
        frame, depth = frame.f_back, depth + 1
    return depth
