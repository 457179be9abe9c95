"""Communication between the processes of a training run: one small interface, whoever carries the bytes.

``rank`` of ``size``; ``allreduce`` adds up, with the same bits on all ranks; ``allgather`` joins rows; ``bcast`` sends
those of rank 0. All ranks make the same calls in the same order.
"""

from __future__ import annotations

import os
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

import numpy as np

from symc.dist.sources import needed
from symc.errors import ExecutionError, InputError
from symc.runtime.threads import SHARE, VARIABLE, processors

#: What a process is told that was started by ``symc launch``: the folder of the job, its rank, how many there are.
FOLDER, RANK, RANKS = "SYMC_JOB", "SYMC_RANK", "SYMC_RANKS"
#: By which a process knows that an mpiexec has started it.
OF_MPI = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
#: The most bytes of a rank that are in shared memory at a time, and how long ranks wait for each other at the start.
PIECE, START = 1 << 24, 300.0


class Comm:
    """One process alone, and the interface of all others. ``beside``: a thread may make all calls of a while beside
    the one that computes."""

    rank, size, beside = 0, 1, False

    def allreduce(self, a: np.ndarray) -> None:
        """Replace a contiguous array by the sum of those of all ranks."""

    def allgather(self, a: np.ndarray) -> np.ndarray:
        """Rows of all ranks, in the order of the ranks, which may have different numbers of them."""
        return a

    def bcast(self, a: np.ndarray) -> None:
        """Replace a contiguous array by that of rank 0, which alone has rows to give."""
        a[...] = self.allgather(a.reshape(-1)[: a.size if self.rank == 0 else 0]).reshape(a.shape)

    def close(self) -> None:
        """Leave the others."""


class Shared(Comm):
    """Processes of one machine: numbers in shared memory, and a socket by which they wait for each other.

    Each rank adds up a part of the numbers, in the order of the ranks, for all: so the bits are the same. Of two sets
    of slots one is read while the other is written.
    """

    beside = True

    def __init__(self, folder: str, rank: int, size: int):
        self.rank, self.size, self._turn = rank, size, 0
        self._others: dict[int, Connection] = {}
        own = np.memmap(os.path.join(folder, f"slots{rank}"), np.uint8, "w+", shape=(2, PIECE))
        address = os.path.join(folder, "socket")
        if rank == 0:
            with Listener(address, "AF_UNIX", backlog=size) as door:
                for _ in range(size - 1):
                    other: Any = door.accept()
                    self._others[other.recv()] = other
        else:
            self._others[0] = other = _connected(address)
            other.send(rank)
        self._exchange(0)
        self._slots = [own if r == rank else np.memmap(os.path.join(folder, f"slots{r}"), np.uint8, "r+",
                                                       shape=(2, PIECE)) for r in range(size)]

    def _exchange(self, number: int) -> tuple[int, ...]:
        """Wait until all ranks are here; the numbers that they bring."""
        at, mine = 0, struct.pack("q", number)
        try:
            if self.rank:
                self._others[0].send_bytes(mine)
                return struct.unpack(f"{self.size}q", self._others[0].recv_bytes())
            told = [mine]
            for at in range(1, self.size):
                told.append(self._others[at].recv_bytes())
            for at in range(1, self.size):
                self._others[at].send_bytes(b"".join(told))
            return struct.unpack(f"{self.size}q", b"".join(told))
        except (EOFError, OSError):
            raise ExecutionError(f"rank {at} of {self.size} is gone, and rank {self.rank} waited for it",
                                 help="its own error is the reason; start again, from the checkpoint if there is one"
                                 ) from None

    def _views(self, dtype: np.dtype, count: int) -> list[np.ndarray]:
        """The slots of all ranks for the next turn."""
        self._turn = 1 - self._turn
        return [s[self._turn, : count * dtype.itemsize].view(dtype) for s in self._slots]

    def allreduce(self, a: np.ndarray) -> None:
        flat, most = a.reshape(-1), PIECE // a.itemsize
        for begin in range(0, flat.size, most):
            part = flat[begin : begin + most]
            slots = self._views(part.dtype, part.size)
            slots[self.rank][:] = part
            self._exchange(0)
            edges = [part.size * r // self.size for r in range(self.size + 1)]
            mine = slice(edges[self.rank], edges[self.rank + 1])
            total = slots[0][mine].copy()
            for s in slots[1:]:
                total += s[mine]
            slots[self.rank][mine] = total
            self._exchange(0)
            for s, low, high in zip(slots, edges, edges[1:], strict=False):
                part[low:high] = s[low:high]

    def allgather(self, a: np.ndarray) -> np.ndarray:
        data = np.ascontiguousarray(a).view(np.uint8).reshape(-1) if a.size else np.empty(0, np.uint8)
        sizes = self._exchange(data.size)
        out = [np.empty(n, np.uint8) for n in sizes]
        for begin in range(0, max(sizes), PIECE):
            slots = self._views(data.dtype, PIECE)
            part = data[begin : begin + PIECE]
            slots[self.rank][: part.size] = part
            self._exchange(0)
            for o, s in zip(out, slots, strict=True):
                o[begin : begin + PIECE] = s[: max(0, min(PIECE, o.size - begin))]
        return np.concatenate(out).view(a.dtype).reshape(-1, *a.shape[1:])

    def close(self) -> None:
        for other in self._others.values():
            other.close()


def _connected(address: str) -> Connection:
    end = time.monotonic() + START
    while True:
        try:
            return Client(address, "AF_UNIX")  # type: ignore[return-value]
        except (FileNotFoundError, ConnectionRefusedError):
            if time.monotonic() > end:
                raise ExecutionError(f"rank 0 did not come within {START:.0f} s") from None
            time.sleep(0.005)


class MPI(Comm):
    """Processes that an mpiexec has started. An error of one of them ends the job."""

    def __init__(self) -> None:
        self._mpi = needed("mpi4py.MPI", "mpi", "dist.mpi")
        self._comm = self._mpi.COMM_WORLD
        self.rank, self.size = self._comm.Get_rank(), self._comm.Get_size()
        self.beside = self._mpi.Query_thread() >= self._mpi.THREAD_SERIALIZED
        if self.size > 1:
            here = self._comm.Split_type(self._mpi.COMM_TYPE_SHARED)
            _take_share(here.Get_size())
            here.Free()
            sys.excepthook = _ending(sys.excepthook, self._comm)

    def allreduce(self, a: np.ndarray) -> None:
        self._comm.Allreduce(self._mpi.IN_PLACE, a)

    def allgather(self, a: np.ndarray) -> np.ndarray:
        data = np.ascontiguousarray(a)
        counts = self._comm.allgather(data.nbytes)
        out = np.empty(sum(counts), np.uint8)
        self._comm.Allgatherv(data.reshape(-1).view(np.uint8), [out, counts, None, self._mpi.BYTE])
        return out.view(a.dtype).reshape(-1, *a.shape[1:])


class NCCL(Comm):
    """Processes with a GPU each: numbers go by way of CuPy's ``NCCLBackend``, which is given."""

    def __init__(self, backend: Any, rank: int, size: int, arrays: Any = None):
        self._backend, self.rank, self.size = backend, rank, size
        self._cupy = arrays or needed("cupy", "cuda", "dist.nccl")

    def allreduce(self, a: np.ndarray) -> None:
        there = self._cupy.asarray(a)
        self._backend.all_reduce(there, there, "sum")
        a[...] = there.get()

    def allgather(self, a: np.ndarray) -> np.ndarray:
        rows = self._cupy.zeros(self.size, np.int64)
        self._backend.all_gather(self._cupy.asarray(np.array([len(a)])), rows, 1)
        counts = rows.get()
        padded = np.zeros((int(counts.max()), *a.shape[1:]), a.dtype)
        padded[: len(a)] = a
        out = self._cupy.zeros((self.size, *padded.shape), a.dtype)
        self._backend.all_gather(self._cupy.asarray(padded), out, padded.size)
        return np.concatenate([part[:n] for part, n in zip(out.get(), counts, strict=True)])

    def bcast(self, a: np.ndarray) -> None:
        there = self._cupy.asarray(a)
        self._backend.broadcast(there, 0)
        a[...] = there.get()


def _take_share(ranks: int) -> None:
    """Calls use as many threads as each rank of this machine has processors, unless something says otherwise."""
    if VARIABLE not in os.environ:
        os.environ.setdefault(SHARE, str(max(1, processors() // ranks)))


def _ending(before: Callable[..., Any], comm: Any) -> Callable[..., None]:
    def ended(*error: Any) -> None:
        before(*error)
        sys.stderr.flush()
        comm.Abort(1)

    return ended


_here: dict[str, Comm] = {}


def mpi() -> Comm:
    """The processes that ``mpiexec`` has started (mpi4py, ``pip install 'symc[mpi]'``)."""
    if "mpi" not in _here:
        _here["mpi"] = MPI()
    return _here["mpi"]


def nccl(host: str = "127.0.0.1", port: int = 13333, rank: int | None = None, size: int | None = None) -> Comm:
    """Processes with a GPU each, by NCCL (CuPy). Rank and size are those of ``symc launch`` or ``mpiexec``."""
    backend = needed("cupyx.distributed", "cuda-multi", "dist.nccl").NCCLBackend
    rank, size = (rank, size) if rank is not None and size is not None else _started_as()
    return NCCL(backend(size, rank, host, port), rank, size)


def _started_as() -> tuple[int, int]:
    if RANKS in os.environ:
        return int(os.environ[RANK]), int(os.environ[RANKS])
    ranks = mpi() if any(n in os.environ for n in OF_MPI) else Comm()
    return ranks.rank, ranks.size


def joined() -> Comm | None:
    """The processes that ``symc launch`` has started, if it has started this one."""
    if RANKS not in os.environ:
        return None
    if "job" not in _here:
        rank, size = _started_as()
        _here["job"] = Shared(os.environ[FOLDER], rank, size) if size > 1 else Comm()
    return _here["job"]


def world() -> Comm:
    """The processes of this run: those of ``symc launch``, of ``mpiexec``, or this one alone."""
    return joined() or (mpi() if any(n in os.environ for n in OF_MPI) else Comm())


def job_folder() -> str:
    """A new folder for the ranks of a job, in memory where there is such a file system."""
    memory = "/dev/shm"
    return tempfile.mkdtemp(prefix="symc-", dir=memory if os.access(memory, os.W_OK) else None)


def checked(comm: Any) -> Comm:
    """A communicator. Raises InputError for what is none."""
    if not isinstance(comm, Comm):
        raise InputError(f"DataParallel: comm= is {comm!r:.40}", help="sc.dist.world(), .mpi(), .local(n)")
    return comm
