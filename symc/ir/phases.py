"""Phases that compiling spends its time on, each inside of another or not, noted where somebody keeps a record.

A function that is a phase is declared so, ``@phase("plan")``; that costs nothing to speak of where nobody records.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

from symc.ir.record import dataclass

P = ParamSpec("P")
R = TypeVar("R")

#: How many phases a record keeps.
MOST = 50_000


@dataclass(frozen=True)
class Phase:
    """``name`` of ``what`` (a pass, a kernel; what the phase around it is of, if it does not say), from ``begin`` to
    ``end`` in seconds of the clock ``perf_counter``. ``own``: what the phases inside of it leave of that."""

    name: str
    what: str
    begin: float
    end: float
    own: float


class Record:
    """The phases of one function, in the sequence in which they ended."""

    def __init__(self) -> None:
        self.phases: list[Phase] = []
        self._inside: list[float] = [0.0]  # for each phase that has not ended, what those in it took
        self._of: list[str] = [""]  # and what it is of
        self.watch: Callable[[str, str], None] | None = None  # is told the start of each

    def run(self, name: str, what: str, body: Callable[[], R]) -> R:
        """``body()``, as a phase."""
        begin = time.perf_counter()
        self._of.append(what or self._of[-1])
        self._inside.append(0.0)
        if self.watch is not None:
            self.watch(name, self._of[-1])
        try:
            return body()
        finally:
            end = time.perf_counter()
            within, of = self._inside.pop(), self._of.pop()
            self._inside[-1] += end - begin
            if len(self.phases) < MOST:
                self.phases.append(Phase(name, of, begin, end, end - begin - within))


_now: ContextVar[Record | None] = ContextVar("symc_phases", default=None)


@contextmanager
def recording(record: Record | None) -> Iterator[None]:
    """Phases are noted there."""
    token = _now.set(record)
    try:
        yield
    finally:
        _now.reset(token)


def current() -> Record | None:
    """The record in which phases are noted now."""
    return _now.get()


def phase(name: str, what: Callable[..., str] | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare a function to be a phase. ``what``: of its arguments, what it is done to."""

    def declare(f: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(f)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            record = _now.get()
            if record is None:
                return f(*args, **kwargs)
            return record.run(name, what(*args, **kwargs) if what is not None else "", lambda: f(*args, **kwargs))

        return run

    return declare


def totals(phases: Sequence[Phase]) -> dict[tuple[str, str], tuple[float, int]]:
    """Seconds of each phase in all, without those inside of it, and its number of times: by name and what."""
    found: dict[tuple[str, str], tuple[float, int]] = {}
    for p in phases:
        seconds, count = found.get((p.name, p.what), (0.0, 0))
        found[p.name, p.what] = seconds + p.own, count + 1
    return found
