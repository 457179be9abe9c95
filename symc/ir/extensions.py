"""Notes whether users have changed symc in this process: with rules and passes of their own, or by taking some out.

What a process keeps on disk for others is what symc alone makes of a program.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

PACKAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")  # no other that begins with the same letters
_changed: set[tuple[str, str]] = set()  # kind ("rule", "pass") and name
#: Called before anything is changed.
before_change: list[Callable[[], None]] = []


def note(kind: str, name: str, file: str = "") -> None:
    """A rule or pass will be added, defined in ``file``."""
    if not file.startswith(PACKAGE):
        for call in () if _changed else before_change:
            call()
        _changed.add((kind, name))


def note_removal(kind: str, name: str) -> None:
    """A rule or pass will be taken out: all is as it came then, or one of symc's own is missing."""
    if (kind, name) in _changed:
        _changed.remove((kind, name))
    else:
        note(kind, name)


def noted(kind: str) -> set[str]:
    """The names of what differs now."""
    return {name for k, name in _changed if k == kind}


def restore(kind: str, names: set[str]) -> None:
    """No others than these differ any more."""
    _changed.difference_update([(k, name) for k, name in _changed if k == kind and name not in names])


def file_of(f: Callable[..., Any]) -> str:
    """File in which a function is defined; "" for what is no plain function."""
    f = innermost(f)
    return f.__code__.co_filename if hasattr(f, "__code__") else ""


def innermost(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function that others were wrapped around."""
    while hasattr(f, "__wrapped__"):
        f = f.__wrapped__
    return f


def changed() -> bool:
    """True if anything is not as it came."""
    return bool(_changed)
