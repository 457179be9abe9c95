"""Work in a process of its own, so that a crash is seen and said."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from typing import Any

#: What is said of a process that took too long.
ENDLESS = "it did not end"


def in_child(work: Callable[[], Any], seconds: float = 20.0) -> str:
    """Answer of a forked process to ``work``: its result, an exception, or how the process ended."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = str(work())
        except BaseException as e:
            said = f"{type(e).__name__}: {e}"
        os.write(write, said.encode()[:60_000])
        os._exit(0)
    os.close(write)
    try:
        ended = bool(select.select([read], [], [], seconds)[0])
        said = os.read(read, 65_536).decode(errors="replace") if ended else ""
        if not ended:
            os.kill(child, signal.SIGKILL)
    finally:
        os.close(read)
        _, status = os.waitpid(child, 0)
    if not ended:
        return ENDLESS
    return f"it was ended by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else said
