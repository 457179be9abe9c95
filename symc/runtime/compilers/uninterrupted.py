"""Compilers where no handler of a signal comes in between.

A handler that raises (Ctrl-C) inside of Numba may leave its tables half made, and inside of llvmlite its lock taken;
every later compile then fails or waits. Handlers run in the main thread: so that only waits, and when it is interrupted
the compiler ends by itself.

(``concurrent.futures`` would do, but imports ``logging``: 6 ms of a warm start.)
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def uninterrupted(f: Callable[P, R]) -> Callable[P, R]:
    """``f``, in a thread of its own where the main one calls it."""

    @functools.wraps(f)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if threading.current_thread() is not threading.main_thread():
            return f(*args, **kwargs)
        results: list[R] = []
        errors: list[BaseException] = []
        done, context = threading.Event(), copy_context()

        def run() -> None:
            try:
                results.append(context.run(f, *args, **kwargs))
            except BaseException as e:
                errors.append(e)
            finally:
                done.set()

        threading.Thread(target=run, name="symc: compiler").start()
        done.wait()
        if errors:
            raise errors.pop()  # which keeps this frame, so the frame does not keep it
        return results.pop()

    return call
