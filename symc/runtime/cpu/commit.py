"""Replaces the arrays of states as one operation, which no signal comes into.

Python handles signals where its interpreter runs bytecode: between two instructions, in whatever function that is. What
functions written in C call one after the other has no such place. So a run that writes states in place, and the
replacement of all others after it, are items of one iterator that C consumes: the handler of a signal (and with it
KeyboardInterrupt) comes before all of it or after.
"""

from __future__ import annotations

from _thread import RLock
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, compress, repeat
from operator import add, attrgetter, is_not, or_, setitem
from typing import Any

_RLOCK: Any = RLock
_borrowed, _running, _pending = attrgetter("borrowed"), attrgetter("running"), attrgetter("pending")
_version = attrgetter("version")


def replace_arrays(cells: Sequence[Any], arrays: Sequence[Any]) -> None:
    """Let ``array`` of all cells be these."""
    any(map(setattr, cells, repeat("array"), arrays))


def count_changes(cells: Sequence[Any]) -> None:
    """Let all cells have another version."""
    any(map(setattr, cells, repeat("version"), map(add, map(_version, cells), repeat(1))))


def run_and_replace(run: Callable[[int], int], address: int, cells: Sequence[Any], arrays: Sequence[Any]) -> int:
    """``run(address)``, and, if that is 0, ``replace_arrays``. ``run`` is no Python function."""
    return next(filter(None, chain(map(run, (address,)), map(setattr, cells, repeat("array"), arrays))), 0)


def holding(locks: Sequence[Any], marked: list[Any]) -> tuple[Iterator[None], Iterator[None]]:
    """Iterators that take several reentrant locks, and give back those that were taken, after the marks on states. Each
    is consumed by one call of C, so that it is known at any time which are held, whatever is raised:

        taking, giving = holding(locks, marked)
        try:
            any(taking)
            mark(marked, ...)
            ...
        finally:
            any(giving)
    """
    held = [False] * len(locks)  # set when `acquire` has returned, and only then; nothing here takes memory
    taking = map(setitem, repeat(held), range(len(locks)), map(_RLOCK.acquire, locks))
    unmarking = map(setattr, marked, repeat("running"), repeat(None))
    return taking, chain(unmarking, _watching(marked), map(_RLOCK.release, compress(locks, held)))


def _watching(cells: Sequence[Any]) -> Iterator[None]:
    watched = map(or_, map(_borrowed, cells), map(is_not, map(_running, cells), repeat(None)))
    return map(setattr, cells, repeat("watched"), map(or_, watched, map(is_not, map(_pending, cells), repeat(None))))


def watch(cells: Sequence[Any]) -> None:
    """Let native code leave those of the states to Python that somebody outside holds or uses, or will use first."""
    any(_watching(cells))


def mark(marked: list[Any], cells: Sequence[Any], name: str) -> None:
    """Note on states whose locks are held which call uses them, until they are given back."""
    for cell in cells:
        cell.disclaim()
    marked += cells
    any(chain(map(setattr, marked, repeat("running"), repeat(name)),
              map(setattr, marked, repeat("watched"), repeat(True))))


def snapshot(cells: Sequence[Any]) -> list[Any]:
    """Copies of the arrays of several states as they are between two calls: no thread changes one meanwhile."""
    for c in cells:
        c.settle()
    taking, giving = holding([c.lock for c in sorted(cells, key=lambda c: c.serial)], [])
    try:
        any(taking)
        for c in cells:
            c.disclaim()
        return [c.get(False) for c in cells]
    finally:
        any(giving)


def some_run(cells: Sequence[Any]) -> bool:
    """True if a call that uses one of these states is under way (in this thread, which has their locks)."""
    return any(map(_running, cells))


def some_wait(cells: Sequence[Any]) -> bool:
    """True if a call that was pushed and uses one of these states has not been waited for."""
    return any(map(_pending, cells))
