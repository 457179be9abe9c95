"""Ranks that the caller starts itself: ``dist.local(n)``, processes of this machine that follow rank 0, the caller."""

from __future__ import annotations

import shutil
import weakref
from typing import Any

import numpy as np

from symc.dist.children import Child, share
from symc.dist.comm import Comm, Shared, job_folder, joined
from symc.errors import ExecutionError, InputError
from symc.tensors.sizes import whole

_members: dict[str, Any] = {}


class Group(Comm):
    """The caller, which is rank 0, and processes that do with their copy of an object what the caller does with it.

    They are started when the object is first used, from what it is then.
    """

    beside = True

    def __init__(self, size: int):
        self.size = size
        self._children: list[Child] = []
        self._own: Shared | None = None

    def start(self, member: Any) -> None:
        """Send the object; ``member.comm`` is then that of each process."""
        folder = job_folder()
        self._children = [Child(share(self.size)) for _ in range(1, self.size)]
        self._finish = weakref.finalize(self, _end, self._children, folder)
        for rank, child in enumerate(self._children, 1):
            child.send(_join, folder, rank, self.size, member)
        self._own = Shared(folder, 0, self.size)
        for child in self._children:
            child.result()

    def follow(self, method: str, *args: Any) -> Any:
        """Call a method of the object in all processes; gives the own result."""
        for child in self._children:
            child.send(_do, method, args)
        own = error = None
        try:
            own = getattr(_members[""], method)(*args)
        except Exception as e:
            error = e
        for rank, child in enumerate(self._children, 1):
            try:
                child.result()
            except EOFError:
                self.close()
                raise ExecutionError(f"rank {rank} of {self.size} died", help="start again, from the checkpoint") from (
                    error)
            except Exception as e:
                if error is None or isinstance(error, ExecutionError) and "is gone" in str(error):
                    error = e
        if error is not None:
            self.close()
            raise error
        return own

    def allreduce(self, a: np.ndarray) -> None:
        self._ranks.allreduce(a)

    def allgather(self, a: np.ndarray) -> np.ndarray:
        return self._ranks.allgather(a)

    @property
    def _ranks(self) -> Shared:
        if self._own is None:
            raise InputError("the processes of dist.local are not there: they start with DataParallel, and end with it")
        return self._own

    def close(self) -> None:
        if self._own is not None:
            self._own.close()
            self._finish()
            self._own, self._children = None, []


def _end(children: list[Child], folder: str) -> None:
    for child in children:
        child.end(now=True)
    shutil.rmtree(folder, ignore_errors=True)


def _join(folder: str, rank: int, size: int, member: Any) -> None:
    member.comm = Shared(folder, rank, size)
    _members[""] = member


def _do(method: str, args: tuple[Any, ...]) -> None:
    getattr(_members[""], method)(*args)


def local(n: int | None = None) -> Comm:
    """``n`` processes of this machine, which share memory; no MPI is needed.

    In a job of ``python -m symc launch -n N`` its processes. Else the caller is rank 0, and the others are started by
    ``DataParallel``; they follow what the caller does with it, so the script goes on as it would alone.
    """
    job = joined()
    if job is not None:
        if n not in (None, job.size):
            raise InputError(f"dist.local({n}) in a job of {job.size} processes", help="dist.local(), or dist.world()")
        return job
    if n is None:
        raise InputError("dist.local: how many processes?",
                         help="dist.local(2); or python -m symc launch -n 2 train.py")
    if (count := whole(n) or 0) < 1:
        raise InputError(f"dist.local: {n!r} processes", help="dist.local(2)")
    return Group(count) if count > 1 else Comm()
