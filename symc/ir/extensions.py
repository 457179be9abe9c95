"""Whether users have changed symc in this process: with rules and passes of their own, or by taking some out.

What a process keeps on disk for others is what symc alone makes of a program.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

PACKAGE = os.path.dirname(os.path.dirname(__file__))
_changed: list[str] = []


def note(name: str, file: str = "") -> None:
    """A rule or pass was added, defined in ``file``, or taken out."""
    if not file.startswith(PACKAGE):
        _changed.append(name)


def file_of(f: Callable[..., Any]) -> str:
    """Where a function is defined; "" for what is no plain function."""
    while not hasattr(f, "__code__") and hasattr(f, "__wrapped__"):
        f = f.__wrapped__
    return f.__code__.co_filename if hasattr(f, "__code__") else ""


def changed() -> bool:
    """Whether anything is not as it came."""
    return bool(_changed)
