"""Call sites in the user's code: the first frame outside the package, found when a public function is called.

And which run of a traced function is in force: the arrays made there are written to there (``numpy_api/aliasing.py``).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from symc.ir import location
from symc.ir.location import Loc

if TYPE_CHECKING:
    from symc.tensors.tracing import Trace

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_SPARSE = f"{os.sep}scipy{os.sep}sparse{os.sep}"
_inside: dict[str, bool] = {}


def is_inside(filename: str) -> bool:
    """Frames of symc itself, and of what stands between: contextlib, functools, dataclasses, SciPy's sparse matrices.
    """
    found = _inside.get(filename)
    if found is None:
        standard = os.path.basename(filename) in ("contextlib.py", "functools.py", "dataclasses.py")
        found = _inside[filename] = standard or _SPARSE in filename or os.path.abspath(filename).startswith(_PACKAGE)
    return found


def caller() -> Loc:
    """The user's line that is being executed."""
    frame = sys._getframe(1)
    while is_inside(frame.f_code.co_filename):
        if frame.f_back is None:  # a thread of symc
            return _asked.get() or Loc(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return Loc(frame.f_code.co_filename, frame.f_lineno)


def of_scipy_sparse() -> bool:
    """True if a sparse matrix of SciPy's called what is running: for the array of an operand."""
    frame = sys._getframe(1)
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE):
        frame = frame.f_back
    return _SPARSE in frame.f_code.co_filename


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
    """Around a call back into the user's code: lines inside it are noted for themselves again, and in a trace arrays
    that were made outside of it are not written to."""
    with location.at(()), scope():
        yield
