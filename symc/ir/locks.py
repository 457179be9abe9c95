"""Locks that a forked process can take.

A child process has the memory of its parent and one thread of it: a lock that another thread held stays taken there,
and what that thread was doing stays half done. So a fork waits a while until nobody holds any of these locks, and
renews those that it did not get.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import time
import weakref
from _thread import RLock
from itertools import compress
from typing import Any

#: How many seconds a fork waits at most for what other threads do under locks.
PATIENCE = 1.0

_numbers = itertools.count()
_locks: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_held: list[Any] = []
#: Taken by a fork before all others, and for a moment by calls before theirs: who makes one call after the other would
#: else have its locks again before a fork that waits for them.
turnstile: Any = RLock()
#: 1 while a fork has it, for native code.
closed = ctypes.c_int64(0)
#: Locks of native code, held for moments alone: a fork takes them last.
native: list[Any] = []
#: The locks that others held when this process was forked.
lost: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> Any:
    """A reentrant lock."""
    lock = RLock()
    _locks[next(_numbers)] = lock
    return lock


def _every() -> list[Any]:
    """All locks, those first that others are taken under, as a rule: what was made last."""
    refs: Any = _locks.valuerefs()
    return [lock for ref in sorted(refs, key=lambda ref: -ref.key) if (lock := ref()) is not None]


def _take_all() -> None:
    end = time.monotonic() + PATIENCE
    closed.value = 1
    for lock in (turnstile, *_every()):
        left = max(0.0, end - time.monotonic())
        _held.extend(compress((lock,), map(lock.acquire, (True,), (left,))))  # no signal comes before it is noted
    for lock in native:
        lock.acquire()


def _give_back() -> None:
    closed.value = 0
    for lock in native:
        lock.release()
    while _held:
        _held.pop().release()


def _renew() -> None:
    _give_back()
    for lock in _every():
        if not lock.acquire(blocking=False):
            lock._at_fork_reinit()
            lost.add(lock)
        else:
            lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take_all, after_in_parent=_give_back, after_in_child=_renew)
