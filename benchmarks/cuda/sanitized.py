"""Every op, and every case of the benchmark at tiny sizes, by symc alone: what ``compute-sanitizer`` looks at.

Memory is taken from the driver array by array, not from CuPy's pool, in which an access outside of one array may hit
another one unseen.
"""

from __future__ import annotations

import os

import pytest

from benchmarks.cuda.cases import CASES
from benchmarks.cuda.peers import Symc
from benchmarks.cuda.worker import build, check


def main() -> None:
    if not os.environ.get("SYMC_CUDA"):
        import cupy

        cupy.cuda.set_allocator(None)
        os.environ.setdefault("SYMC_DEVICE", "cuda:0")
        assert not pytest.main(["-q", "-p", "no:cacheprovider", "tests/cuda/test_device_ops.py"])
    peer = Symc()
    for name, case in CASES.items():
        error = check(case, peer)
        assert error is None or error <= case.tolerance, f"{name}: {error}"
        if case.step:
            given = [peer.put(a) for a in case.make(case.tiny)]
            function = build(case, peer, given)
            for _ in range(3):  # the second call is captured, the third one runs the graph
                function(*given)
            peer.wait()
        print(name, "ok" if error is None else f"{error:.1e}", flush=True)


if __name__ == "__main__":
    main()
