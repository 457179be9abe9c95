"""Where the user's code is: the first frame outside the package, found when a public function is called."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from symc.ir import location
from symc.ir.location import Loc

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_inside: dict[str, bool] = {}


def _is_inside(filename: str) -> bool:
    """Frames of symc itself, and of what Python puts between (contextlib, functools, dataclasses)."""
    found = _inside.get(filename)
    if found is None:
        standard = os.path.basename(filename) in ("contextlib.py", "functools.py", "dataclasses.py")
        found = _inside[filename] = standard or os.path.abspath(filename).startswith(_PACKAGE)
    return found


def caller() -> Loc:
    """The user's line that is being executed."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_inside(frame.f_code.co_filename):
        frame = frame.f_back
    return Loc(frame.f_code.co_filename, frame.f_lineno)


@contextmanager
def user_code() -> Iterator[None]:
    """Around a call back into the user's code: lines inside it are noted for themselves again."""
    with location.at(()):
        yield
