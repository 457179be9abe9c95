"""Calls in the background: ``f.push(x)`` returns at once what will have the results.

Threads of the process run them, in the order of their dependencies: a call comes after those pushed before it that use
a state which it uses, that write memory which it reads or writes (``donate=``, ``out=``), or whose results it is given.
Others may overlap. Whoever reads or sets a state, or calls a function that uses it, waits for what was pushed before,
so a program means what it would mean if every ``push`` were a call; only errors come later.

A call that follows a failed one is not run, until somebody has met the failure: in ``wait()``, ``result()``, or where
one of its states is used next.
"""

from __future__ import annotations

import _thread
import atexit
import contextvars
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symc.errors import ExecutionError, SymcError
from symc.ir.location import Loc
from symc.ir.locks import new_lock
from symc.runtime.cpu.commit import watch
from symc.runtime.threads import processors
from symc.tensors.callsite import asked_at, caller
from symc.tensors.pytree import flatten, unflatten

__all__ = ["PushedCall", "Turns", "push"]

#: How many calls may wait: who pushes one more waits for the oldest.
MOST = 64

_lock = new_lock()
_ready: queue.SimpleQueue[PushedCall] = queue.SimpleQueue()
_pending: dict[PushedCall, None] = {}  # in order
_failed: dict[PushedCall, None] = {}  # those whose errors nobody has met
_workers: set[int] = set()  # idents of threads, each from when it has begun
_started = 0  # how many there will be


class PushedCall:
    """A call that was pushed. ``error``: of a failed one; ``cause``: the failed call for which it has not run."""

    def __init__(self, name: str, run: Callable[[], Any], cells: Sequence[Any], writes: Sequence[np.ndarray], loc: Loc):
        self._name, self._run, self._cells, self._writes, self._loc = name, run, cells, writes, loc
        self._finished = threading.Event()
        self._after = 0  # how many calls that it comes after have not finished
        self._before: list[PushedCall] = []
        self._result: Any = None
        self._error: BaseException | None = None
        self._cause: PushedCall | None = None

    def done(self) -> bool:
        """True if the call has finished, or failed."""
        return self._finished.is_set()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the call has finished, and raise what it raised. Raises TimeoutError after ``timeout`` seconds."""
        if not self._finished.wait(timeout):
            raise TimeoutError(f"{self._name} has not finished")
        if self._error is not None:
            self._root._meet()
            raise self._error
        if self._cause is not None:
            root = self._cause
            root._meet()
            raise ExecutionError(f"{self._name} was not run, as {root._name}, which came before it, failed",
                                 values=[("failed", None, root._loc)], where=[self._loc],
                                 help="states are as they were before that call; its error is above") from root._error

    def result(self, timeout: float | None = None) -> Any:
        """The results of the call. Raises what it raised."""
        self.wait(timeout)
        return self._result

    def settle(self, cell: Any) -> None:
        """Wait for the call on behalf of somebody who uses a state of it; calls that were pushed are in order already.
        Raises what nobody has met yet."""
        if threading.get_ident() in _workers:
            return
        self._finished.wait()
        with _lock:
            if cell.pending is self:
                cell.pending = None
                watch([cell])
        if not self._met:
            self.wait()

    def __repr__(self) -> str:
        state = "pushed" if not self.done() else "finished" if self._root._error is None else "failed"
        return f"<{self._name}, {state}, {self._loc}>"

    @property
    def _root(self) -> PushedCall:
        return self._cause or self

    @property
    def _met(self) -> bool:
        """True if it has no error, or somebody has seen it."""
        return self._root._error is None or self._root not in _failed

    def _meet(self) -> None:
        with _lock:
            _failed.pop(self, None)

    def _work(self) -> None:
        """Run, in a thread of ours."""
        try:
            if self._cause is None:
                self._result = self._run()
        except BaseException as e:  # whatever it is, it is raised to who waits
            self._error = e
        self._end()

    def _end(self) -> None:
        """Let those that come after it run."""
        del self._run
        with _lock:
            if self._error is not None:
                _failed[self] = None
            if self._root._error is None:
                for cell in self._cells:
                    if cell.pending is self:
                        cell.pending = None
                watch(self._cells)
            self._cells, self._writes = (), ()
            _pending.pop(self, None)
            for other in self._before:
                other._cause = other._cause or (None if self._met else self._root)
                other._after -= 1
                if not other._after:
                    _ready.put(other)
            self._before = []
            self._finished.set()


class Turns:
    """Lock of memory that calls use and pushed calls too, who are done before a call begins. ``cells``: the states that
    these use. ``gate``: closed while a call runs, that nothing is pushed which it would wait for while it is waited
    for."""

    def __init__(self) -> None:
        self.gate, self._lock = threading.RLock(), threading.RLock()
        self.cells: Sequence[Any] = ()

    def __enter__(self) -> None:
        if threading.get_ident() not in _workers:
            self.gate.acquire()
            try:
                for cell in self.cells:
                    if cell.pending is not None:
                        cell.pending.settle(cell)
            except BaseException:
                self.gate.release()
                raise
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()
        if threading.get_ident() not in _workers:
            self.gate.release()


def push(name: str, call: Callable[..., Any], cells: Sequence[Any], donated: Sequence[Any], args: tuple,
         kwargs: dict[str, Any]) -> PushedCall:
    """``call(*args, **kwargs)`` in the background. ``cells``: states that it uses; ``donated``: arguments that it may
    overwrite. Other arrays are copied now, except those in ``out=``."""
    loc = caller()
    out = kwargs.pop("out", None)
    writes = [a for a in (*donated, *flatten(out)[0]) if isinstance(a, np.ndarray)]
    leaves, nest = flatten((args, kwargs))
    for a in leaves:
        if isinstance(a, np.ndarray):
            for other in _writing(a):
                other._finished.wait()
    leaves = [a if isinstance(a, PushedCall) or any(a is d for d in donated) else _own(a) for a in leaves]
    given = [a for a in leaves if isinstance(a, PushedCall)]
    context = contextvars.copy_context()

    def run() -> Any:
        known = [a.result() if isinstance(a, PushedCall) else a for a in leaves]
        args, kwargs = unflatten(nest, known)
        if out is not None:
            kwargs["out"] = out
        with asked_at(loc):
            return call(*args, **kwargs)

    pushed = PushedCall(name, lambda: context.run(run), cells, writes, loc)
    if threading.get_ident() not in _workers:
        while len(_pending) >= MOST:
            next(iter(list(_pending)))._finished.wait()
    _enqueue(pushed, given)
    return pushed


def _own(a: Any) -> Any:
    """An array that later writing does not reach: a copy of an array, of whatever kind."""
    copy = getattr(a, "copy", None) or getattr(a, "clone", None)
    return copy() if copy is not None else a


def _writing(a: np.ndarray) -> Iterator[PushedCall]:
    """The calls that write memory of an array."""
    for p in list(_pending):
        if any(np.may_share_memory(a, w) for w in p._writes):
            yield p


def _enqueue(pushed: PushedCall, given: Sequence[PushedCall]) -> None:
    global _started
    with _lock:
        after = [*given, *[c.pending for c in pushed._cells if c.pending is not None],
                 *[p for w in pushed._writes for p in _writing(w)]]
        for p in dict.fromkeys(after):
            if not p._finished.is_set():
                p._before.append(pushed)
                pushed._after += 1
            elif not p._met and p not in given:
                pushed._cause = pushed._cause or p._root
        for cell in pushed._cells:
            cell.pending = pushed
        watch(pushed._cells)
        _pending[pushed] = None
        if not pushed._after:
            _ready.put(pushed)
        if _started < min(processors(), len(_pending)):
            _started += 1
            _thread.start_new_thread(_serve, (_ready,))
    for cell in pushed._cells:
        cell.disclaim()


def _serve(ready: queue.SimpleQueue[PushedCall]) -> None:
    """A thread of ours. It is not one of ``threading``, which would wait for it at the end."""
    _workers.add(threading.get_ident())
    while True:
        ready.get()._work()


def _finish() -> None:
    """Wait, at the end of the process, for what was pushed (Ctrl-C ends that), and print the errors nobody has met."""
    for p in list(_pending):
        p._finished.wait()
    for error in [p._error for p in _failed]:
        if error is not None:
            sys.excepthook(type(error), error, error.__traceback__)


def _forked() -> None:
    """State of a child process, which has none of the threads: what was pushed before will not run here."""
    global _ready, _started
    _ready, _started = queue.SimpleQueue(), 0
    _workers.clear()
    for p in list(_pending):
        p._error = SymcError(f"{p._name} was pushed in the process that this one was forked from", where=[p._loc],
                             help="wait for what was pushed before the process is forked")
        _failed[p] = None
        p._before, p._finished = [], threading.Event()  # the lock of the old one may be taken
        p._finished.set()
    _pending.clear()


atexit.register(_finish)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
