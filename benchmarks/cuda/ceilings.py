"""Ceilings of a GPU, measured in the same run: bytes copied and numbers multiplied in a second, launches.

``python -m benchmarks.cuda.ceilings`` prints JSON. Bandwidth counts what is read and what is written.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from typing import Any

import numpy as np

from benchmarks.cuda.cases import random
from benchmarks.cuda.peers import Symc
from symc.runtime.cuda.device import Product, Signature

LAUNCHES = 1000
NOTHING = 'extern "C" __global__ __launch_bounds__(32) void nothing(float *x) { if (threadIdx.x == 99) x[0] = 0.0f; }'


def main(full: bool) -> dict[str, Any]:
    peer = Symc()
    p = peer.device.properties
    found: dict[str, Any] = {"name": p.name, "arch": p.arch, "multiprocessors": p.multiprocessors,
                             "l2_bytes": p.l2_bytes, "total_bytes": p.total_bytes}
    found["copy_bytes_s"] = copied(peer, 2**30 if full else 2**12)
    for dtype, compute in (("float32", "highest"), ("float32", "tf32"), ("float32", "bf16"), ("float16", "highest"),
                           ("float64", "highest")):
        found[f"product {dtype} {compute} flop_s"] = multiplied(peer, 8192 if full else 32, dtype, compute)
    found.update(launched(peer, LAUNCHES if full else 10))
    return found


def median(peer: Symc, work: Any, times: int = 7) -> float:
    work()
    return max(statistics.median(peer.seconds(work) for _ in range(times)), 1e-9)


def copied(peer: Symc, nbytes: int) -> float:
    device, stream = peer.device, peer.context.stream
    x = peer.put(random((nbytes // 4,)))
    to = device.alloc(nbytes)

    def work() -> None:
        for _ in range(10):
            device.copy(to.address, x.address, nbytes, stream)

    return 2 * 10 * nbytes / median(peer, work)


def multiplied(peer: Symc, n: int, dtype: str, compute: str) -> float:
    """Random numbers: a GPU that multiplies zeros takes less power and runs faster."""
    device, stream = peer.device, peer.context.stream
    a, b = (peer.put(random((n, n), dtype, k)) for k in range(2))
    c = device.alloc(a.nbytes)
    p = Product(False, False, n, n, n, 1.0, 0.0, n, n, n, 0, 0, 0, 1, np.dtype(dtype), compute)
    times = 5

    def work() -> None:
        for _ in range(times):
            device.product(p, a.address, b.address, c.address, stream)

    return times * 2.0 * n**3 / median(peer, work)


def launched(peer: Symc, count: int) -> dict[str, float]:
    """Seconds for one launch of a kernel that does nothing: of the host, of the device, and as a node of a graph."""
    device, stream = peer.device, peer.context.stream
    kernel = device.load(NOTHING, [Signature("nothing", (8,))])["nothing"]
    x = peer.put(np.zeros(8, np.float32))
    cell = np.array([x.address], np.int64)
    pointer = np.array([cell.ctypes.data], np.int64)
    span = [(x.address, x.nbytes)]

    def work() -> None:
        for _ in range(count):
            device.launch(kernel, (1, 1, 1), 32, 0, pointer.ctypes.data, stream, span, span)

    eager = median(peer, work) / count
    start = time.perf_counter()
    work()
    host = (time.perf_counter() - start) / count
    peer.wait()
    device.begin_capture(stream)
    work()
    graph = device.end_capture(stream)
    node = median(peer, lambda: device.run_graph(graph, stream)) / count
    start = time.perf_counter()
    for _ in range(10):
        device.run_graph(graph, stream)
    replay = (time.perf_counter() - start) / 10
    peer.wait()
    return {"launch_s": eager, "launch_host_s": host, "node_s": node, "replay_host_s": replay}


if __name__ == "__main__":
    print(json.dumps(main("--tiny" not in sys.argv and not os.environ.get("SYMC_CUDA"))))
