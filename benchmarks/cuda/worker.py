"""One peer on one case, in a process of its own: ``python -m benchmarks.cuda.worker JOB``; the last line is JSON.

``seconds``: of the device for one call, the median of slices of many calls on buffers that take turns, so that what a
call reads is not in the cache. ``host``: what a call costs the caller while the device has nothing to catch up with.
``first``: seconds from the formula to the first result, with empty caches. ``error``: of tiny sizes, as a part of the
largest number.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from benchmarks.cuda.cases import CASES, Case
from benchmarks.cuda.peers import PEERS, Peer, numpy_words

#: Bytes that buffers have together where a cache of the GPU is not to help, and the most buffers of one call.
TOGETHER, MOST = 2**28, 4
SLICES = 7


def main(job: dict[str, Any]) -> dict[str, Any]:
    case, peer = CASES[job["case"]], PEERS[job["peer"]]()
    found: dict[str, Any] = {"version": versions(peer)}
    found.update(measure(case, peer, case.make(case.full if job["full"] else case.tiny), job["replays"]))
    found["error"] = check(case, peer)  # afterwards: what was measured was the first thing this process built
    return found


def versions(peer: Peer) -> str:
    out = []
    for name in peer.modules:
        try:
            out.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            out.append(name)
    return ", ".join(out)


def build(case: Case, peer: Peer, arrays: Sequence[Any]) -> Callable[..., Any]:
    return peer.steps[case.step](case, arrays) if case.step else peer.build(case, arrays)


def check(case: Case, peer: Peer) -> float | None:
    """The error at tiny sizes, of cases that have a reference."""
    if case.step:
        return None
    arrays = case.make(case.tiny)
    given = [peer.put(a) for a in arrays]
    got = build(case, peer, given)(*given)
    wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays]
    want = case.reference(*wide) if case.reference else case.formula(numpy_words(), *wide)  # type: ignore[misc]
    pairs = zip(_several(got), _several(want), strict=True)
    return max(float(np.abs(peer.get(g).astype(np.float64) - w).max() / np.abs(w).max()) for g, w in pairs)


def _several(x: Any) -> Sequence[Any]:
    return x if isinstance(x, tuple | list) else (x,)


def measure(case: Case, peer: Peer, arrays: Sequence[np.ndarray], replays: int) -> dict[str, Any]:
    given = [peer.put(a) for a in arrays]
    peer.wait()
    start = time.perf_counter()
    function = build(case, peer, given)
    peer.get(_several(function(*given))[0])
    first = time.perf_counter() - start
    nbytes = sum(a.nbytes for a in arrays)
    count = 1 if case.step == "training" else max(1, min(MOST, -(-TOGETHER // nbytes)))
    calls = [peer.fixed(function, given)]
    calls += [peer.fixed(function, [peer.put(a) for a in arrays]) for _ in range(count - 1)]
    rounds = max(1, -(-replays // count))

    def work() -> None:
        for _ in range(rounds):
            for call in calls:
                call()

    work()
    peer.wait()
    slices = [peer.seconds(work) / (rounds * count) for _ in range(SLICES)]
    start = time.perf_counter()
    work()
    host = (time.perf_counter() - start) / (rounds * count)
    peer.wait()
    return {"seconds": statistics.median(slices), "least": min(slices), "host": host,
            "first": first - slices[-1], "buffers": count}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
