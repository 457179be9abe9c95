"""Locations of values: the user's source lines, kept beside values and never inside their identity.

While a user builds a graph, the line is *in force* (``at``), and every value made meanwhile notes it. The graph of a
finished ``Function`` carries its own copy (``Function.hints``); rewrites and derivatives merge the sets.
"""

from __future__ import annotations

import linecache
import re
import sys
import weakref
from _thread import allocate_lock
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

#: Scopes in force: name, and the number of the user's frames around the ``with``.
Scopes = tuple[tuple[str, int], ...]
_table: weakref.WeakValueDictionary[tuple, Loc] = weakref.WeakValueDictionary()
_interning = allocate_lock()
#: More callers than this are neither kept nor read.
DEEPEST = 16


class Loc:
    """A user's line and what called it: interned, compared by identity.

    ``role`` is ``""`` for the line itself, or how a value derives from it ("gradient of"). ``function``: the user's
    function that the line is in, ``outer``: the line that called it, ``at``: the place in the bytecode, ``called``: the
    public function called there, ``scopes``: those of ``sc.scope`` around it, each with the number of frames outside.
    """

    __slots__ = ("__weakref__", "at", "called", "file", "function", "line", "outer", "role", "scopes")
    file: str
    line: int
    role: str
    function: str
    outer: Loc | None
    at: int
    called: str
    scopes: Scopes

    def __new__(cls, file: str, line: int, role: str = "", function: str = "", outer: Loc | None = None, at: int = -1,
                called: str = "", scopes: Scopes = ()) -> Loc:
        key = (file, line, role, function, outer, at, called, scopes)
        with _interning:
            found = _table.get(key)
            if found is None:
                found = object.__new__(cls)
                (found.file, found.line, found.role, found.function, found.outer, found.at, found.called,
                 found.scopes) = key
                _table[key] = found
        return found

    def __reduce__(self) -> tuple:
        return Loc, self.key

    @property
    def key(self) -> tuple:
        """The fields."""
        return (self.file, self.line, self.role, self.function, self.outer, self.at, self.called, self.scopes)

    @property
    def text(self) -> str:
        """The source line, if its file can be read."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def stack(self) -> list[Loc]:
        """The line and its callers, the innermost first."""
        found = [self]
        while (outer := found[-1].outer) is not None:
            found.append(outer)
        return found

    @property
    def frames(self) -> list[tuple[str, Loc | None]]:
        """Names of scopes and of functions from the outermost on; functions with their line."""
        out: list[tuple[str, Loc | None]] = []
        scopes = list(self.scopes)
        for depth, loc in enumerate(reversed(self.stack)):
            out += [(name, None) for name, d in scopes if d <= depth]
            scopes = [(name, d) for name, d in scopes if d > depth]
            out.append((loc.function, loc))
        return out + [(name, None) for name, _ in scopes]

    @property
    def path(self) -> str:
        """Scopes and functions from the first scope on, or the functions below the first; joined by "/"."""
        named = [(name, loc) for name, loc in self.frames[0 if self.scopes else 1 :] if name]
        first = next((k for k, (_, loc) in enumerate(named) if loc is None), 0)
        return "/".join(name for name, _ in named[first:])

    def derived(self, role: str) -> Loc:
        return self if self.role else self.with_role(role)

    def with_role(self, role: str) -> Loc:
        """The line in another role."""
        return Loc(self.file, self.line, role, *self.key[3:])

    def __str__(self) -> str:
        """Such as "gradient of encoder/layer2 model.py:12"; the path where there are scopes."""
        path = self.path + " " if self.scopes else ""
        return f"{self.role + ' ' if self.role else ''}{path}{short(self.file, self.line)}"

    def __repr__(self) -> str:
        return f"Loc({str(self)!r})"

    def _order(self) -> list[tuple]:
        return [(x.file, x.line, x.role, x.scopes, x.at, x.called, x.function) for x in self.stack]


def short(file: str, line: int) -> str:
    """A line by the last name of its file, or by the cell of a notebook: "model.py:12", "In[3], line 2"."""
    cell = re.match(r"<ipython-input-(\d+)", file)
    number = cell[1] if cell else _cells().get(file)
    if number is not None:
        return f"In[{number}], line {line}"
    return f"{file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{line}"


def _cells() -> dict[str, int]:
    """The numbers of IPython's cells by what Python calls their files."""
    found = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(getattr(found, "compile", None), "_filename_map", {})


def brief(locs: Iterable[Loc]) -> str:
    """Lines as text, each once."""
    return ", ".join(dict.fromkeys(map(str, in_order(locs))))


_scopes: ContextVar[Scopes] = ContextVar("symc_scopes", default=())


def scopes() -> Scopes:
    """The scopes in force."""
    return _scopes.get()


@contextmanager
def scoped(name: str, depth: int) -> Iterator[None]:
    """Name what is built inside, ``depth`` frames of the user deep."""
    token = _scopes.set((*_scopes.get(), (name, depth)))
    try:
        yield
    finally:
        _scopes.reset(token)


Locs = frozenset[Loc]
Lines = dict[Any, Locs]  # of values
Inside = dict[Any, Lines]  # the lines of the values in regions
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


def add_lines(lines: Lines, value: Any, locs: Locs) -> None:
    """Add lines to those of a value."""
    if locs:
        lines[value] = lines.get(value, NOWHERE) | locs


def merge_lines(known: Lines, lines: Lines) -> None:
    """Add the lines of values to what is known of them."""
    for v, locs in lines.items():
        add_lines(known, v, locs)


def carrying(source: Lines, target: Lines) -> Callable[[Any, Any], None]:
    """Hook for what rebuilds values: the lines that the old one has in ``source`` are the new one's in ``target``."""

    def carry(old: Any, new: Any) -> None:
        add_lines(target, new, source.get(old, NOWHERE))

    return carry


def merge_inside(known: Inside, notes: Inside) -> None:
    """Add the lines in regions to what is known of them."""
    for region, lines in notes.items():
        merge_lines(known.setdefault(region, {}), lines)


def move(old: Any, new: Any) -> None:
    """Gives what replaces ``old`` its lines, inside too."""
    locs = noted(old)
    if locs:
        note(new, locs)
    if old.regions and old is not new:
        note_inside(new, inside(old))


def in_order(locs: Iterable[Loc]) -> list[Loc]:
    """A stable order for printing."""
    return sorted(locs, key=Loc._order)
