"""Limits of a CUDA device, measured on it when somebody asks: bytes copied and operations of products in a second."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from symc.runtime.cuda.device import Product
from symc.runtime.cuda.devices import Context
from symc.tools.profiling.limits import Limits

#: The bytes that a measured copy reads and writes, all in all; the last is in no cache.
FOOTPRINTS = (2**20, 2**24, 2**28)
#: Rows and columns of the matrices that are multiplied, and how often each thing is done in a row.
ORDER, TIMES = 2048, 10
_known: dict[str, Limits] = {}


def device_limits(where: Context) -> Limits:
    """The limits of a device, measured once in a process."""
    with where.lock:
        if where.name not in _known:
            copies = tuple((n, _copy_rate(where, n)) for n in FOOTPRINTS)
            _known[where.name] = Limits(copies, _product_rate(where, "f4"), _product_rate(where, "f8"), "in all")
        return _known[where.name]


def _seconds(where: Context, run: Callable[[], None]) -> float:
    """The time of one of several in a row, the best of three rows after one that does not count."""
    device, stream, found = where.device, where.stream, []
    run()
    for _ in range(3):
        start, end = device.event(), device.event()
        device.record(start, stream)
        for _ in range(TIMES):
            run()
        device.record(end, stream)
        device.synchronize(stream)
        found.append(device.elapsed(start, end) / 1e3 / TIMES)
    return max(min(found), 1e-9)


def _copy_rate(where: Context, footprint: int) -> float:
    half = footprint // 2
    a, b = where.device.alloc(half), where.device.alloc(half)
    where.device.fill(b.address, 0, half, where.stream)
    return footprint / _seconds(where, lambda: where.device.copy(a.address, b.address, half, where.stream))


def _product_rate(where: Context, dtype: str) -> float:
    n = ORDER if not where.device.checked else ORDER // 16
    a, b, c = (where.device.alloc(n * n * np.dtype(dtype).itemsize) for _ in range(3))
    for m in (a, b):
        where.device.fill(m.address, 0, m.nbytes, where.stream)
    p = Product(False, False, n, n, n, 1.0, 0.0, n, n, n, 0, 0, 0, 1, np.dtype(dtype))
    return 2 * n**3 / _seconds(where, lambda: where.device.product(p, a.address, b.address, c.address, where.stream))
