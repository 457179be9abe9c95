"""Tracebacks as users see them: frames of symc itself are left out, in plain Python, in IPython and in pytest.

``symc.config.full_traceback`` (``SYMC_FULL_TRACEBACK=1``) shows them all; errors of symc itself always have them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_PYTHON = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
#: A frame's code is the user's, symc's, or of another package or Python itself.
USER, OWN, PACKAGE = range(3)
#: Kinds of files that were asked for.
KINDS: dict[str, int] = {}


def kind_of(filename: str) -> int:
    """The kind of the frames of a file."""
    kind = KINDS.get(filename)
    if kind is None:
        path = os.path.abspath(filename)
        packaged = filename.startswith(("<frozen", "<__array")) or path.startswith(_PYTHON) \
            or any(folder in path for folder in _INSTALLED)
        kind = KINDS[filename] = OWN if path.startswith(_PACKAGE) else PACKAGE if packaged else USER
    return kind


class Switch:
    """``full()`` is true where all frames are shown; the settings put it here."""

    full: Callable[[], Any] = staticmethod(bool)


def hides(e: BaseException | None) -> bool:
    """True if the frames of symc say nothing to who meets this error: it was raised for the user, or comes out of a
    function of the user, or no more than the arguments of a call are wrong."""
    if e is None or Switch.full():
        return False
    told = getattr(e, "of_user", None)
    if told is not None:
        return told
    code = None
    trace = e.__traceback__
    while trace is not None:
        code, trace = trace.tb_frame.f_code, trace.tb_next
    return code is not None and (kind_of(code.co_filename) != OWN or code.co_qualname == "located.<locals>.call")


def of_user(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of symc and what it calls and is called by; as it is, if it has no others."""
    kept: list[TracebackType] = []
    between: list[TracebackType] = []  # frames that are no user's, since the last of the user
    at = trace
    while at is not None:
        between.append(at)
        if kind_of(at.tb_frame.f_code.co_filename) == USER or at.tb_next is None:
            own = any(kind_of(b.tb_frame.f_code.co_filename) == OWN for b in between)
            kept += [b for b in between if not own or kind_of(b.tb_frame.f_code.co_filename) == USER]
            between = []
        at = at.tb_next
    made: TracebackType | None = None
    for entry in reversed(kept):
        made = TracebackType(made, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return made if kept else trace


def trim(e: BaseException) -> None:
    """Leave the frames of symc out of an error's traceback, and of those of the errors behind it."""
    prepare()
    seen = set()
    while e is not None and id(e) not in seen:
        seen.add(id(e))
        if hides(e):
            e.__traceback__ = of_user(e.__traceback__)
        e = e.__cause__ or e.__context__  # type: ignore[assignment]


_before: Callable[..., Any] | None = None
_marked = 0


def prepare() -> None:
    """Have Python and pytest show tracebacks without frames of symc, from the first error on."""
    global _before, _marked
    if _before is None and sys.excepthook is sys.__excepthook__:
        _before, sys.excepthook = sys.excepthook, _hook
    if len(sys.modules) != _marked:
        _marked = len(sys.modules)
        for name, module in list(sys.modules.items()):
            if name.startswith("symc.") or name == "symc":
                module.__dict__["__tracebackhide__"] = _hidden  # pytest asks the globals of a frame


def _hook(kind: type[BaseException], e: BaseException, trace: TracebackType | None) -> None:
    trim(e)
    sys.__excepthook__(kind, e, e.__traceback__)


def _hidden(excinfo: Any) -> bool:
    return excinfo is not None and hides(excinfo.value)
