"""Call sites in the user's code: the first frame outside the package, found when a public function is called.

And which run of a traced function is in force: the arrays made there are written to there (``numpy_api/aliasing.py``).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from symc.errors import InputError, SymcError
from symc.ir import location
from symc.ir.location import Loc
from symc.tensors.draws import draws_are_told
from symc.tracebacks import KINDS, OWN, PACKAGE, USER, kind_of

if TYPE_CHECKING:
    from symc.tensors.tracing import Trace

#: Libraries whose arrays call functions of their operands.
SPARSE, MASKED, PANDAS, XARRAY = tuple(
    os.sep + os.path.join(*p.split("."), "") for p in ("scipy.sparse", "numpy.ma", "pandas", "xarray"))
#: So many frames of other packages in a row end a stack: what runs the user's program is no part of it.
FAR = 8
#: Lines by the places in the bytecode, as found by ``caller``; each entry keeps its code objects alive.
_sites: dict[tuple, tuple[Loc, list[CodeType]]] = {}
MOST_SITES = 20_000


def is_inside(filename: str) -> bool:
    """True for frames of symc itself, and of what stands between: Python and other packages."""
    return kind_of(filename) != USER


def caller(called: str = "") -> Loc:
    """The user's line that is being executed, with those that called it. ``called``: the public function's name.

    Every call of a public function pays for this, so the frames are only counted here and made lines of once.
    """
    frame: FrameType | None = sys._getframe(1)
    key: list[Any] = [location.scopes(), called]
    codes: list[CodeType] = []
    far = 0
    while frame is not None:
        code = frame.f_code
        kind = KINDS.get(code.co_filename)
        if kind is None:
            kind = kind_of(code.co_filename)
        if not kind:
            key += id(code), frame.f_lasti
            codes.append(code)
            if len(codes) == location.DEEPEST:
                break
            far = 0
        elif codes and kind == PACKAGE:
            far += 1
            if far > FAR:
                break
        frame = frame.f_back
    if not codes:
        return _asked.get() or _outside()
    place = tuple(key)
    found = _sites.get(place)
    if found is None:
        if len(_sites) >= MOST_SITES:
            _sites.clear()
        found = _sites[place] = _made(place, codes), codes
    return found[0]


@contextmanager
def at_caller() -> Iterator[None]:
    """Errors inside have the user's line, if they have none."""
    try:
        yield
    except SymcError as e:
        e.attach((), (caller(),))
        raise


def _made(place: tuple, codes: list[CodeType]) -> Loc:
    loc: Loc | None = None
    for k in reversed(range(len(codes))):
        code, at = codes[k], place[2 * k + 3]
        lines = (line for begin, end, line in code.co_lines() if begin <= at < end)
        inner = (place[1], place[0]) if k == 0 else ("", ())
        loc = Loc(code.co_filename, next(lines, None) or code.co_firstlineno, "", _name(code), loc, at, *inner)
    assert loc is not None
    return loc


def _name(code: CodeType) -> str:
    """A function as a part of a path: of a special method the class; "" for a module and what has no name."""
    name = code.co_name
    if name.startswith("__") and "." in code.co_qualname:
        return code.co_qualname.split(".")[-2]
    return "" if name.startswith("<") else name


def _outside() -> Loc:
    """The first line outside of symc, where a package alone runs it; a thread of symc has none."""
    frame = sys._getframe(1)
    while kind_of(frame.f_code.co_filename) == OWN and frame.f_back is not None:
        frame = frame.f_back
    return Loc(frame.f_code.co_filename, frame.f_lineno)


@contextmanager
def scope_named(name: str) -> Iterator[None]:
    """Names what is built inside: a part of the path of every value, for dumps, traces, profiles and errors.

    Scopes nest, and take the names of the user's functions between them: "encoder/layer2/attention".
    """
    if not isinstance(name, str) or not name.strip("/ "):
        raise InputError(f"a scope's name is a string, not {name!r:.40}", where=[caller()],
                         help='with sc.scope("encoder"): ...')
    with location.scoped(name.strip("/"), len(caller().stack)):
        yield


def asking(*places: str) -> bool:
    """True if a file of one of these libraries called what is running: for the array of an operand."""
    frame = sys._getframe(1)
    while frame.f_back is not None and kind_of(frame.f_code.co_filename) == OWN:
        frame = frame.f_back
    return any(p in frame.f_code.co_filename for p in places)


_asked: ContextVar[Loc | None] = ContextVar("symc_asked", default=None)


@contextmanager
def asked_at(loc: Loc) -> Iterator[None]:
    """Around what a thread of symc does because of the user's line ``loc``."""
    token = _asked.set(loc)
    try:
        yield
    finally:
        _asked.reset(token)


class Scope:
    """The run of one function of the user: where arrays are made. ``outer``: the run that it is in."""

    __slots__ = ("outer", "trace")

    def __init__(self, trace: Trace, outer: Scope | None):
        self.trace, self.outer = trace, outer


_active: ContextVar[Scope | None] = ContextVar("symc_scope", default=None)


def active() -> Scope | None:
    """The scope in force; None outside of traces."""
    return _active.get()


@contextmanager
def scope(trace: Trace | None = None) -> Iterator[Scope | None]:
    """A scope of a trace, by default of the one in force, if any is."""
    outer = _active.get()
    new = Scope(trace, None) if trace is not None else None if outer is None else Scope(outer.trace, outer)
    token = _active.set(new)
    try:
        yield new
    finally:
        _active.reset(token)


@contextmanager
def no_scope() -> Iterator[None]:
    """Outside of all traces."""
    token = _active.set(None)
    try:
        yield
    finally:
        _active.reset(token)


@contextmanager
def user_code() -> Iterator[None]:
    """Around a call back into the user's code: lines inside it are noted for themselves again, in a trace arrays that
    were made outside of it are not written to, and random numbers that become constants are told."""
    with location.at(()), scope(), draws_are_told():
        yield
