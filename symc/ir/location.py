"""Locations of values: the user's source lines, kept beside values and never inside their identity.

While a user builds a graph, the line is *in force* (``at``), and every value made meanwhile notes it. The graph of a
finished ``Function`` carries its own copy (``Function.hints``); rewrites and derivatives merge the sets.
"""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple


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
Inside = dict[Any, dict[Any, Locs]]  # the lines of the values in regions
NOWHERE: Locs = frozenset()

_here: ContextVar[Locs] = ContextVar("symc_location", default=NOWHERE)
_noted: weakref.WeakKeyDictionary[Any, Locs] = weakref.WeakKeyDictionary()
#: Of a value with regions: the lines of the values in each region. Those values are shared by all programs that contain
#: the same body, so their lines cannot be kept with them.
_inside: weakref.WeakKeyDictionary[Any, Inside] = weakref.WeakKeyDictionary()


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


def note(value: Any, locs: Locs) -> None:
    """Add lines to what is known about a value that is still being built on."""
    known = _noted.get(value)
    if known is None:
        _noted[value] = locs
    elif not locs <= known:
        _noted[value] = known | locs


def noted(value: Any) -> Locs:
    """The lines noted for a value."""
    return _noted.get(value, NOWHERE)


def inside(value: Any) -> Inside:
    """The lines of the values in the regions of ``value``, nested regions included."""
    return _inside.get(value, {})


def note_inside(value: Any, notes: Inside) -> None:
    """Add lines of values in the regions of ``value``."""
    if notes:
        merge_inside(_inside.setdefault(value, {}), notes)


def merge_inside(known: Inside, notes: Inside) -> None:
    """Add lines to lines."""
    for region, lines in notes.items():
        own = known.setdefault(region, {})
        for v, locs in lines.items():
            own[v] = own.get(v, NOWHERE) | locs


def move(old: Any, new: Any) -> None:
    """Gives what replaces ``old`` its lines, inside too."""
    locs = noted(old)
    if locs:
        note(new, locs)
    if old.regions and old is not new:
        note_inside(new, inside(old))


def in_order(locs: Iterable[Loc]) -> list[Loc]:
    """A stable order for printing."""
    return sorted(locs)
