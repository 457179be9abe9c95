"""Compile time against the size of the program: derivatives of derivatives, unrolled determinants, unrolled loops.

``python -m benchmarks.growth`` prints a row for each size: the CPU seconds from the formula to the first result of
symc, JAX and CasADi (tracing, differentiating, compiling, one call), each in a process of its own with nothing on disk,
imports of the libraries not counted. ``-c derivative`` takes one kind, ``-p symc`` one peer; after ``--seconds`` of
CPU time a peer is given up.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import venvs

PEERS = ("symc", "jax", "casadi")
SIZES = {"derivative": (1, 2, 3, 4, 5, 6, 7), "determinant": (3, 4, 5, 6, 7), "chain": (100, 1_000, 10_000, 100_000)}
#: How a process ends whose CPU time is over.
XCPU = signal.SIGXCPU
#: What sizes count.
UNITS = {"derivative": "order", "determinant": "rows", "chain": "steps"}


def derivative(xp: Any, gradient: Callable[[Any], Any], order: int) -> Any:
    """The derivative of that order of sin(x) exp(x) / (1 + x^2)."""
    def f(x: Any) -> Any:
        return xp.sin(x) * xp.exp(x) / (1 + x * x)

    for _ in range(order):
        f = gradient(f)
    return f


def determinant(rows: int) -> Callable[[Any], Any]:
    """The determinant of a matrix by minors of its last rows, each computed once."""
    def f(x: Any) -> Any:
        minors: dict[tuple[int, ...], Any] = {(): 1.0}
        for row in reversed(range(rows)):
            taken: dict[tuple[int, ...], Any] = {}
            for columns, minor in minors.items():
                for c in set(range(rows)) - set(columns):
                    wider = tuple(sorted((*columns, c)))
                    term = x[row * rows + c] * minor * (-1.0) ** wider.index(c)
                    taken[wider] = taken[wider] + term if wider in taken else term
            minors = taken
        return minors[tuple(range(rows))]

    return f


def chain(xp: Any, steps: int) -> Callable[[Any], Any]:
    """A loop of Python's that nothing rolls up."""
    def f(x: Any) -> Any:
        for _ in range(steps):
            x = xp.tanh(1.01 * x + 0.5)
        return x

    return f


def program(kind: str, size: int, xp: Any, gradient: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return derivative(xp, gradient, size) if kind == "derivative" else determinant(size) if kind == "determinant" \
        else chain(xp, size)


def argument(kind: str, size: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=size * size if kind == "determinant" else 10)


def with_symc(kind: str, size: int, x: np.ndarray) -> Any:
    import symc as sc

    start = time.process_time()
    symbol = sc.input("x", "float64", shape=x.shape if kind == "determinant" else ("n",))
    f = program(kind, size, sc, lambda f: lambda x: sc.grad(sc.sum(f(x)), x))
    sc.compile(f(symbol), [symbol])(x)
    return start


def with_jax(kind: str, size: int, x: np.ndarray) -> Any:
    import jax

    jax.config.update("jax_enable_x64", True)
    data = jax.block_until_ready(jax.device_put(x))
    start = time.process_time()
    f = program(kind, size, jax.numpy, lambda f: jax.grad(lambda x: f(x).sum()))
    jax.block_until_ready(jax.jit(f)(data))
    return start


def with_casadi(kind: str, size: int, x: np.ndarray) -> Any:
    """Interpreted: CasADi compiles nothing unless it is given a C compiler."""
    import casadi

    start = time.process_time()
    symbol = casadi.SX.sym("x", x.size)
    f = program(kind, size, casadi, lambda f: lambda x: casadi.gradient(casadi.sum1(f(x)), x))
    casadi.Function("f", [symbol], [f(symbol)])(x)
    return start


def measured(peer: str, kind: str, size: int, seconds: int) -> str:
    """The cell of a table: CPU seconds of a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "SYMC_CACHE_DIR": folder, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "benchmarks.growth", "--one", peer, kind, str(size)]
        done = subprocess.run([*command, "--seconds", str(seconds)], env=environment, cwd=venvs.REPOSITORY,
                              capture_output=True, text=True)
    return done.stdout.strip() if not done.returncode else f"> {seconds}" if done.returncode == -XCPU else "failed"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("-c", "--case", choices=SIZES)
    parser.add_argument("-p", "--peer", choices=PEERS)
    parser.add_argument("--seconds", type=int, default=120, help="of CPU time that a peer has for a row (default 120)")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        peer, kind, size = given.one[0], given.one[1], int(given.one[2])
        resource.setrlimit(resource.RLIMIT_CPU, (given.seconds, given.seconds + 5))
        sys.setrecursionlimit(1_000_000)  # of tracing in peers
        x = argument(kind, size)
        start = {"symc": with_symc, "jax": with_jax, "casadi": with_casadi}[peer](kind, size, x)
        print(f"{time.process_time() - start:.2f}")
        return
    peers = (given.peer,) if given.peer else PEERS
    print(f"| CPU seconds to the first result | {' | '.join(peers)} |\n|---{'|---' * len(peers)}|")
    for kind in (given.case,) if given.case else SIZES:
        for size in SIZES[kind]:
            row = [measured(peer, kind, size, given.seconds) for peer in peers]
            print(f"| {kind}, {UNITS[kind]} {size:,} | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
