"""Sums over the processes, in flat buckets: after a step, or by a thread while the backward pass runs."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence

import numpy as np

from symc.dist.comm import Comm
from symc.ir.traverse import postorder
from symc.ir.value import Value

#: Floats are added up in buckets of about so many bytes.
BUCKET = 4 << 20


def buckets_of(values: Sequence[Value], which: Sequence[int]) -> list[list[int]]:
    """Groups of values of one dtype, by their indices: first what a step can have first, which is the gradients of the
    last layers. The same on all ranks."""
    depth: dict[Value, int] = {}
    for v in postorder([values[k] for k in which]):
        depth[v] = 1 + max((depth[o] for o in v.operands), default=0)
    found: list[list[int]] = []
    filled = 0
    for k in sorted(which, key=lambda k: (depth[values[k]], k)):
        size = values[k].type.size
        n = size * values[k].dtype.itemsize if isinstance(size, int) else 0
        if not found or filled + n > BUCKET or values[found[-1][0]].dtype != values[k].dtype:
            found.append([])
            filled = 0
        found[-1].append(k)
        filled += n
    return found


def packed(arrays: Sequence[np.ndarray], weight: float, flat: np.ndarray | None) -> np.ndarray:
    """Arrays one after another, times ``weight``; in ``flat``, if they fit."""
    count = sum(a.size for a in arrays)
    if flat is None or flat.size != count:
        flat = np.empty(count, arrays[0].dtype)
    at = 0
    for a in arrays:
        np.multiply(a.reshape(-1), flat.dtype.type(weight), out=flat[at : at + a.size])
        at += a.size
    return flat


def unpacked(flat: np.ndarray, shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    """The arrays as views."""
    ends = np.cumsum([0, *map(np.prod, shapes)]).astype(int)
    return [flat[a:b].reshape(s) for a, b, s in zip(ends, ends[1:], shapes, strict=False)]


class Sums(threading.Thread):
    """All-reduces of buckets in the order in which they are given, beside whatever else runs."""

    def __init__(self, comm: Comm):
        super().__init__(name="symc-sums", daemon=True)
        self._comm = comm
        self._given: queue.SimpleQueue[np.ndarray | None] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        while (flat := self._given.get()) is not None:
            try:
                self._comm.allreduce(flat)
            except BaseException as e:  # whatever it is, the step that waits raises it
                self._error = e
                return

    def add(self, flat: np.ndarray | None) -> None:
        """One more; None: there are no more."""
        self._given.put(flat)

    def wait(self) -> None:
        """Return when all have been added up."""
        self.add(None)
        self.join()
        if self._error is not None:
            raise self._error
