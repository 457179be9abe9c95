"""Functions that the tests send to other processes, and what those do with them."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np

import symc as sc
from symc.driver import stages
from symc.runtime.threads import threads_of

A = np.linspace(-2, 2, 7)


@sc.op(derivative=lambda x: -1.0)
def mirrored(x: Any) -> Any:
    return 3 - x


@sc.jit
def jitted(x: Any, k: int = 2) -> Any:
    return sc.linalg.norm(x) * k + mirrored(x)


class Model:
    """A user's own class with parameters."""

    def __init__(self) -> None:
        self.params = sc.Params()
        self.w = self.params("w", (7,), sc.init.ones)

    def __call__(self, x: Any) -> Any:
        return sc.tanh(x * self.w).sum()


def things() -> dict[str, Any]:
    """One of everything that travels, by name. All are called with ``A``."""
    x, v = sc.input("x", "float64", ("n",)), sc.Variable("v")
    w = sc.shared(np.ones(1), "w")
    return {
        "compiled": sc.compile(sc.exp(x).sum(), [x]),
        "own op": sc.compile(sc.grad(mirrored(x * x).sum(), x), [x]),
        "specialized": sc.compile(x[::-1] * 2, [x], specialize={"n": [7, 8]}),
        "of sizes that are data": sc.compile(x[x > 0] * 2, [x]),
        "bounded": sc.compile((x * 2).sum(), [x], max_bytes=("1MB", {"n": 7})),
        "reference": sc.compile(x + 1, [x], mode="reference"),
        "deferred": sc.compile(v * 2 + 1, [v]),
        "jitted": jitted,
        "step": sc.compile(w * x, [x], updates={w: w + 1}),
        "read": sc.compile(w + x, [x]),
    }


def results(found: dict[str, Any]) -> dict[str, bytes]:
    """The bits of one call of each, in order: the step comes before what reads its state."""
    return {name: np.asarray(f(A)).tobytes() for name, f in found.items()}


def report(found: dict[str, Any]) -> tuple[int, dict[str, bytes], Any]:
    """The process, the results and a token."""
    return os.getpid(), results(found), found["compiled"].__dask_tokenize__()


def in_threads(found: dict[str, Any]) -> bool:
    """True if eight threads get the same from a function of a pickle."""
    want, got = results(found)["compiled"], []

    def work() -> None:
        got.append(np.asarray(found["compiled"](A)).tobytes())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return got == [want] * 8


def loaded(path: Any) -> tuple[bytes, int]:
    """The bits of a file's function, and how often the optimizer ran."""
    ran, optimize = [], stages.optimize
    stages.optimize = lambda *args: ran.append(1) or optimize(*args)  # type: ignore[func-returns-value]
    try:
        return np.asarray(sc.load(path)(A)).tobytes(), len(ran)
    finally:
        stages.optimize = optimize


def share() -> int:
    """Number of threads that calls use here."""
    return threads_of(None)
