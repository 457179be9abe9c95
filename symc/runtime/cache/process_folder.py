"""Folders of a process: for what must be a file while it is loaded."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile


def process_folder(name: str) -> str:
    """The folder of this process for files of a kind, which goes with it. A process that was forked has its own."""
    return _made(name, os.getpid())


@functools.cache
def _made(name: str, process: int) -> str:
    place = tempfile.mkdtemp(prefix=f"symc-{name}-")
    atexit.register(_remove, place, process)
    return place


def _remove(place: str, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(place, ignore_errors=True)
