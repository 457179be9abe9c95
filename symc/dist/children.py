"""Processes of this machine that run what they are sent: started anew, never forked, without the caller's script.

What is sent is pickled, by cloudpickle where it is installed. A child ends when its parent does.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, Pipe
from typing import Any

from symc.errors import InputError, SymcError
from symc.runtime.threads import SHARE, VARIABLE, processors

_CODE = "import sys; sys.path[:] = {path!r}; from symc.dist.children import serve; serve({fd})"


def dumps(item: Any) -> bytes:
    """A pickle. Raises InputError for what cannot travel."""
    try:
        from cloudpickle import dumps as by_value
    except ImportError:
        by_value = pickle.dumps
    try:
        return by_value(item)  # type: ignore[no-any-return]
    except SymcError:
        raise
    except Exception as e:  # whatever an object does when it is pickled
        raise InputError(f"{item!r:.60} cannot be sent to another process: {e}",
                         help="functions of modules can; with cloudpickle installed others too") from e


def share(of: int) -> dict[str, str]:
    """The environment by which each of so many processes of this machine is told its number of threads."""
    given = os.environ.get(VARIABLE) or os.environ.get(SHARE) or str(max(1, processors() // of))
    return {SHARE: given}


class Child:
    """A process. ``env``: variables that it has besides."""

    def __init__(self, env: Mapping[str, str]):
        self.connection, theirs = Pipe()
        with theirs:
            code = _CODE.format(path=sys.path, fd=theirs.fileno())
            self.process = subprocess.Popen([sys.executable, "-c", code], pass_fds=[theirs.fileno()],
                                            stdin=subprocess.DEVNULL, env={**os.environ, **env})

    def send(self, f: Callable[..., Any], *args: Any) -> None:
        """Have the child call a function."""
        with contextlib.suppress(BrokenPipeError):  # it is dead, as ``result`` will say
            self.connection.send_bytes(dumps((f, args)))

    def result(self) -> Any:
        """The result of the call, or its error. Raises EOFError if the process died."""
        try:
            fine, value = pickle.loads(self.connection.recv_bytes())
        except ConnectionResetError:
            raise EOFError from None
        if not fine:
            raise value
        return value

    def end(self, now: bool = False) -> int:
        """End the process, when it has answered or ``now``; its exit status."""
        self.connection.close()
        if now:
            self.process.kill()
        return self.process.wait()


def serve(fd: int) -> None:
    """Run what is sent until the parent is gone."""
    connection = Connection(fd)
    while True:
        try:
            data = connection.recv_bytes()
        except (EOFError, OSError):
            return
        try:
            f, args = pickle.loads(data)
            answer = dumps((True, f(*args)))
        except Exception as e:
            answer = _failure(e)
        connection.send_bytes(answer)


def _failure(e: Exception) -> bytes:
    """An error as it travels: itself, if it comes back as what it is."""
    with contextlib.suppress(Exception):
        data = pickle.dumps((False, e))
        if isinstance(pickle.loads(data)[1], type(e)) and str(pickle.loads(data)[1]) == str(e):
            return data
    return pickle.dumps((False, RuntimeError("".join(traceback.format_exception(e)[-3:]).strip())))
