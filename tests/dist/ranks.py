"""A training script that the tests run as several processes: ``python -m tests.dist.ranks comm checkpoint kill``."""

from __future__ import annotations

import os
import signal
import sys
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

import symc as sc

RNG = np.random.default_rng(0)
X = RNG.normal(size=(64, 5))
Y = (X[:, 0] > 0) * 1


def step_of(optimizer: Any = None, **options: Any) -> tuple[Any, Any]:
    """A step of a small network, and its parameters."""
    P = sc.Params(seed=0, dtype="float64")
    x, y = sc.input("x", "float64", shape=("n", 5)), sc.input("y", "int64", shape=("n",))
    h = sc.tanh(x @ P.weight("h", (5, 4)))
    loss = sc.nn.cross_entropy(h @ P.weight("o", (4, 2)), y)
    u = (optimizer or sc.optim.adam(1e-2)).updates(loss, P)
    return sc.compile(u.loss, [x, y], updates=u, name="step", **options), P


def main(kind: str, checkpoint: str, kill: int) -> None:
    comm = {"world": sc.dist.world, "mpi": sc.dist.mpi}[kind]()

    def batches(epoch: int, rng: np.random.Generator) -> Iterator[Any]:
        for k in range(9):
            if comm.rank == 1 and epoch * 9 + k == kill:
                os.kill(os.getpid(), signal.SIGKILL)
            rows = rng.permutation(64)[:16]
            yield X[rows], Y[rows]

    step, P = step_of()
    run = sc.dist.DataParallel(step, comm=comm, overlap=True).fit(batches, epochs=2, checkpoint=checkpoint, every=4)
    digest = zlib.crc32(b"".join(s.get_value().tobytes() for s in P.values()))
    print(f"{comm.rank} {comm.size} {run.losses} {digest}\n", end="", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
