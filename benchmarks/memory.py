"""Memory of the backward pass against its time: long chains and loops under ``max_bytes``.

``python -m benchmarks.memory`` prints, for each program, how many bytes its plan takes and how long a call takes, whole
and within budgets. CPU time of one thread; whole and small take turns, so that noise falls on both.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

STEPS = 1000
Program = tuple[list[Any], Any, list[np.ndarray]]


def products(size: int, rows: int) -> Program:
    """``h = tanh(h @ w)``, with the gradient by the first h and by w."""
    import symc as sc

    x = h = sc.input("x", "float64", shape=(rows, size))
    w = sc.input("w", "float64", shape=(size, size))
    for _ in range(STEPS):
        h = sc.tanh(h @ w)
    random = np.random.default_rng(0)
    data = [random.normal(size=(rows, size)), random.normal(size=(size, size)) / size**0.5]
    return [x, w], sc.grad(sc.sum(h), [x, w]), data


def logistic(size: int) -> Program:
    """``h = 3.7 h (1 - h)``: arithmetic alone, on vectors that leave the cache."""
    import symc as sc

    x = h = sc.input("x", "float64", shape=(size,))
    for _ in range(STEPS):
        h = 3.7 * h * (1 - h)
    return [x], [sc.grad(sc.sum(h), x)], [np.random.default_rng(0).uniform(0.1, 0.9, size)]


def elementwise(size: int) -> Program:
    """``h = tanh(1.01 h + 0.5)``: nearly all time is in the forward pass, so twice that is nearly twice the time."""
    import symc as sc

    x = h = sc.input("x", "float64", shape=(size,))
    for _ in range(STEPS):
        h = sc.tanh(h * 1.01 + 0.5)
    return [x], [sc.grad(sc.sum(h), x)], [np.random.default_rng(0).normal(size=size)]


def loop(size: int, rows: int) -> Program:
    """The chain of products as a scan, with a row added in every step."""
    import symc as sc

    x = sc.input("x", "float64", shape=(STEPS, rows, size))
    h = sc.input("h", "float64", shape=(rows, size))
    w = sc.input("w", "float64", shape=(size, size))
    last, _ = sc.scan(lambda h, r: (sc.tanh(h @ w + r), None), h, x)
    random = np.random.default_rng(0)
    data = [random.normal(size=s) for s in ((STEPS, rows, size), (rows, size), (size, size))]
    data[2] /= size**0.5
    return [x, h, w], sc.grad(sc.sum(last), [h, w]), data


def best(calls: Sequence[Callable[[], Any]], rounds: int = 7) -> list[float]:
    """The least CPU seconds of each call; they take turns."""
    least = [float("inf")] * len(calls)
    for _ in range(rounds):
        for k, call in enumerate(calls):
            start = time.process_time()
            call()
            least[k] = min(least[k], time.process_time() - start)
    return least


def report(name: str, program: Program, shares: Sequence[float]) -> None:
    """A row for the whole program and for every share of its memory."""
    import symc as sc

    inputs, outputs, data = program
    whole = sc.compile(outputs, inputs)
    functions, notes = [whole], ["whole"]
    for share in shares:
        start = time.perf_counter()
        functions.append(sc.compile(outputs, inputs, max_bytes=int(whole.memory() * share)))
        notes.append(f"{share:.0%}, compiled in {time.perf_counter() - start:.1f} s")
    for f in functions:
        f(*data)
    seconds = best([lambda f=f: f(*data) for f in functions])
    for f, note, s in zip(functions, notes, seconds, strict=True):
        print(f"{name:28} {f.memory() / 1e6:10.2f} MB  {s * 1e3:9.2f} ms  {s / seconds[0]:5.2f}x  {note}", flush=True)


def main() -> None:
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    report("products, 64 x 64", products(64, 64), (0.5, 0.1))
    report("products, 16 x 128", products(128, 16), (0.5, 0.1))
    report("arithmetic, 100,000", logistic(100_000), (0.5, 0.1))
    report("tanh, 20,000", elementwise(20_000), (0.5, 0.1))
    report("loop of products, 16 x 128", loop(128, 16), (0.5, 0.36))


if __name__ == "__main__":
    main()
