"""Opening files that somebody else may have put there."""

from __future__ import annotations

import os

_WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)


def open_quickly(path: str, flags: int = 0) -> int:
    """A file descriptor for reading. Opening a pipe does not wait for who writes to it; what was opened is for the
    caller to look at."""
    return os.open(path, os.O_RDONLY | _WITHOUT_WAITING | flags)
