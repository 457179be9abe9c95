"""Where values come from: the user's source lines, kept beside values and never inside their identity.

While a user builds a graph, the line is *in force* (``at``), and every value made meanwhile notes it. The graph of a
finished ``Function`` carries its own copy (``Function.hints``); rewrites and derivatives merge the sets.
"""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from symc.ir.value import Value


class Loc(NamedTuple):
    """A user's line. ``role`` is ``""`` for the line itself, or how a value derives from it ("gradient of")."""

    file: str
    line: int
    role: str = ""

    @property
    def text(self) -> str:
        """The source line, if its file can be read."""
        return linecache.getline(self.file, self.line).strip()

    def derived(self, role: str) -> Loc:
        return self if self.role else self._replace(role=role)

    def __str__(self) -> str:
        short = self.file.replace("\\", "/").rsplit("/", 1)[-1]
        return f"{self.role + ' ' if self.role else ''}{short}:{self.line}"


Locs = frozenset[Loc]
NOWHERE: Locs = frozenset()

_here: ContextVar[Locs] = ContextVar("symc_location", default=NOWHERE)
_noted: weakref.WeakKeyDictionary[Value, Locs] = weakref.WeakKeyDictionary()


def here() -> Locs:
    """The lines in force."""
    return _here.get()


@contextmanager
def at(locs: Iterable[Loc]) -> Iterator[None]:
    """Put lines in force; values made inside note them."""
    token = _here.set(frozenset(locs))
    try:
        yield
    finally:
        _here.reset(token)


def note(value: Value, locs: Locs) -> None:
    """Add lines to what is known about a value that is still being built on."""
    known = _noted.get(value)
    if known is None:
        _noted[value] = locs
    elif not locs <= known:
        _noted[value] = known | locs


def noted(value: Value) -> Locs:
    """The lines noted for a value."""
    return _noted.get(value, NOWHERE)


def in_order(locs: Iterable[Loc]) -> list[Loc]:
    """A stable order for printing."""
    return sorted(locs)
