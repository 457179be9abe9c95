"""Replaces the arrays of states as one operation, which no signal comes into.

Python handles signals where its interpreter runs bytecode: between two instructions, in whatever function that is. What
functions written in C call one after the other has no such place. So a run that writes states in place, and the
replacement of all others after it, are items of one iterator that C consumes: the handler of a signal (and with it
KeyboardInterrupt) comes before all of it or after.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, compress, repeat
from operator import attrgetter, setitem
from typing import Any

_RLOCK: Any = type(threading.RLock())


def replace_arrays(cells: Sequence[Any], arrays: Sequence[Any]) -> None:
    """Let ``array`` of all cells be these."""
    any(map(setattr, cells, repeat("array"), arrays))


def run_and_replace(run: Callable[[int], int], address: int, cells: Sequence[Any], arrays: Sequence[Any]) -> int:
    """``run(address)``, and, if that is 0, ``replace_arrays``. ``run`` is no Python function."""
    return next(filter(None, chain(map(run, (address,)), map(setattr, cells, repeat("array"), arrays))), 0)


class Held:
    """Several locks, and marks of states. ``take`` and ``release`` are one operation each, so that it is known at any
    time which are held:

        held = Held(locks)
        try:
            held.take()
            ...
        finally:
            held.release()
    """

    __slots__ = ("_marked", "release", "take")

    def __init__(self, locks: Sequence[Any]):
        self._marked: list[Any] = []
        held = [False] * len(locks)  # set when `acquire` has returned, and only then; nothing here takes memory
        noted = map(setitem, repeat(held), range(len(locks)), map(_RLOCK.acquire, locks))
        self.take: Callable[[], Any] = partial(any, noted)
        unmarked = chain(map(setattr, self._marked, repeat("running"), repeat(None)),
                         map(setattr, self._marked, repeat("watched"), map(attrgetter("borrowed"), self._marked)))
        self.release: Callable[[], Any] = partial(any, chain(unmarked, map(_RLOCK.release, compress(locks, held))))

    def mark(self, cells: Sequence[Any], name: str) -> None:
        """Note on states whose locks are held which call uses them, until ``release``."""
        self._marked += cells
        any(chain(map(setattr, self._marked, repeat("running"), repeat(name)),
                  map(setattr, self._marked, repeat("watched"), repeat(True))))
