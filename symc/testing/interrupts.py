"""Signals at every point where Python handles them, one after the other, and what must hold after each.

Python handles signals between instructions and inside some functions of C. A handler that is a function of C, and trips
its own signal again, is called at every such point once, and counts them; at the point that is asked for it trips
SIGINT, whose handler raises KeyboardInterrupt at the next one.
"""

from __future__ import annotations

import ctypes
import signal
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

import symc as sc

_COUNTING = int(signal.SIGUSR1)
#: More points than a call of native code has.
MANY = 20_000


class Alarm(Exception):
    """Exception that a handler of a program's own may raise."""


def alarm(number: int, frame: Any) -> None:
    raise Alarm(number)


@contextmanager
def at_point(n: int, handler: Any = signal.default_int_handler) -> Iterator[list[int]]:
    """Run what is inside with a signal at its ``n``-th point. The list is no longer than ``_COUNTING`` + 1 when it
    came."""
    # the handler takes the item at the number of the signal and trips it: itself, in the end the other one
    todo = [0] * _COUNTING + [_COUNTING] * n + [int(signal.SIGINT)]
    trip: Any = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(
        ("PyErr_SetInterruptEx", ctypes.pythonapi))
    trip.argtypes = [types.SimpleNamespace(from_param=todo.pop), ctypes.py_object]
    before = [(s, signal.signal(s, h)) for s, h in ((_COUNTING, trip), (signal.SIGINT, handler))]
    hook, sys.unraisablehook = sys.unraisablehook, lambda what: None  # Python drops what is raised in a callback
    try:
        signal.raise_signal(_COUNTING)
        yield todo
    finally:
        todo[_COUNTING + 1 :] = [0]  # no signal: it trips no more
        todo[_COUNTING] = 0
        for s, h in before:
            signal.signal(s, h)
        sys.unraisablehook = hook


def interrupted(f: Callable[[], Any], n: int, handler: Any = signal.default_int_handler) -> bool | None:
    """True if a signal at point ``n`` stopped ``f``; None if it has no so many points."""
    try:
        with at_point(n, handler) as todo:
            f()
            ended = len(todo) > _COUNTING + 1
    except (KeyboardInterrupt, Alarm):
        return True
    return None if ended else False


def count_points(f: Callable[[], Any], most: int = MANY) -> int:
    """The number of points of ``f``, or ``most``: there it is stopped."""
    with suppress(KeyboardInterrupt), at_point(most) as left:
        f()
        return most - max(0, len(left) - _COUNTING - 1)
    return most


def digest(states: Sequence[sc.SharedVariable]) -> tuple[bytes, ...]:
    return tuple([np.asarray(s.get_value()).tobytes() for s in states])


def check_atomic(
    f: Callable[[], Any], states: Sequence[sc.SharedVariable], points: Iterable[int] = range(MANY),
    handler: Any = signal.default_int_handler,
) -> tuple[int, int]:
    """Interrupt ``f`` at the points given, as far as it has them: ``states`` are old or all new, and nothing is left
    locked. How often they were old and new."""
    start = [s.get_value() for s in states]
    old = digest(states)
    f()
    new = digest(states)
    counts = [0, 0]
    for n in points:
        for s, value in zip(states, start, strict=True):
            s.set_value(value)
        stopped = interrupted(f, n, handler)
        now = digest(states)
        assert now in (old, new), f"torn at point {n}: {[a == b for a, b in zip(now, old, strict=True)]} are old"
        assert stopped or now == new, f"an interrupt at point {n} was lost"
        assert not any(s.cell.lock._is_owned() for s in states), f"locked at point {n}"
        counts[now == new] += 1
        if stopped is None:
            break
    for s, value in zip(states, start, strict=True):
        s.set_value(value)
    f()
    assert digest(states) == new
    return counts[0], counts[1]
