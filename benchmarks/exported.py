"""Functions as exported libraries beside the same functions in symc, in turns, each call on the same arrays.

    OPENBLAS_NUM_THREADS=1 SYMC_NUM_THREADS=1 python -m benchmarks.exported
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import symc as sc

Arrays = list[np.ndarray]


def mlp_step(dtype: str = "float32") -> Any:
    """A training step of a network with one hidden layer, whose weights are states."""
    rng = np.random.default_rng(0)
    w1, w2 = [sc.shared((rng.normal(size=s) / s[0] ** 0.5).astype(dtype), n)
              for n, s in (("w1", (64, 128)), ("w2", (128, 10)))]
    b1 = sc.shared(np.zeros(128, dtype), "b1")
    x, y = sc.input("x", dtype, ("n", 64)), sc.input("y", dtype, ("n", 10))
    loss = sc.mean(sc.logsumexp(sc.relu(x @ w1 + b1) @ w2, axis=1) - sc.sum(y * (sc.relu(x @ w1 + b1) @ w2), axis=1))
    states = [w1, w2, b1]
    grads = sc.grad(loss, states)
    updates = {w: w - 0.1 * g for w, g in zip(states, grads, strict=True)}
    return sc.compile(loss, [x, y], updates=updates, name="mlp_step")


def mlp_arrays(n: int, rng: np.random.Generator) -> Arrays:
    return [rng.normal(size=(n, 64)).astype("f4"), np.eye(10, dtype="f4")[rng.integers(0, 10, n)]]


def lstm(hidden: int = 16, inputs: int = 8) -> Any:
    """An LSTM over the rows of a batch of sequences, and the gradient of a loss of its outputs."""
    rng = np.random.default_rng(1)
    w, u = [sc.shared(rng.normal(size=(k, 4 * hidden)) / k**0.5, n) for n, k in (("w", inputs), ("u", hidden))]
    xs = sc.input("xs", "float64", ("steps", "batch", inputs))

    def cell(carry: Any, x: Any) -> Any:
        h, c = carry
        z = x @ w + h @ u
        i, f, o, g = [z[:, k * hidden : (k + 1) * hidden] for k in range(4)]
        c = sc.sigmoid(f) * c + sc.sigmoid(i) * sc.tanh(g)
        h = sc.sigmoid(o) * sc.tanh(c)
        return (h, c), h

    zero = sc.zeros((xs.shape[1], hidden))
    (_, c), ys = sc.scan(cell, (zero, zero), xs)
    return sc.compile({"ys": ys, "c": c, "grads": sc.grad(sc.sum(ys**2), [w, u])}, [xs], name="lstm")


def lstm_arrays(n: int, rng: np.random.Generator) -> Arrays:
    return [rng.normal(size=(n, 4, 8))]


def attention() -> Any:
    """Softmax attention of some heads."""
    q, k, v = [sc.input(n, "float32", ("heads", "n", "d")) for n in "qkv"]
    scores = q @ k.mT / sc.sqrt(sc.asarray(q.shape[2], "float32"))
    return sc.compile(sc.softmax(scores, axis=-1) @ v, [q, k, v], name="attention")


def attention_arrays(n: int, rng: np.random.Generator) -> Arrays:
    return [rng.normal(size=(4, n, 32)).astype("f4") for _ in range(3)]


def kalman() -> Any:
    """A Kalman filter: means, covariances and the log likelihood, by Cholesky factors."""
    f, q = [sc.input(n, "float64", ("n", "n")) for n in "fq"]
    h, r = sc.input("h", "float64", ("m", "n")), sc.input("r", "float64", ("m", "m"))
    zs, mean = sc.input("zs", "float64", ("steps", "m")), sc.input("mean", "float64", ("n",))
    cov = sc.input("cov", "float64", ("n", "n"))

    def step(carry: Any, z: Any) -> Any:
        m, p = f @ carry[0], f @ carry[1] @ f.T + q
        s = h @ p @ h.T + r
        gain = sc.linalg.solve(s, h @ p).T
        white = sc.linalg.solve_triangular(factor := sc.linalg.cholesky(s), z - h @ m, lower=True)
        fit = -0.5 * sc.sum(white**2) - sc.sum(sc.log(sc.diagonal(factor)))
        return (m + gain @ (z - h @ m), p - gain @ h @ p), fit

    (mean_, cov_), fits = sc.scan(step, (mean, cov), zs)
    return sc.compile((mean_, cov_, sc.sum(fits)), [f, h, q, r, zs, mean, cov], name="kalman")


def kalman_arrays(n: int, rng: np.random.Generator) -> Arrays:
    return [0.5 * rng.normal(size=(4, 4)), rng.normal(size=(2, 4)), np.eye(4), np.eye(2), rng.normal(size=(n, 2)),
            np.zeros(4), np.eye(4)]


def log_density() -> Any:
    """The log density of a regression with unknown scale, and its gradient."""
    beta, log_scale = sc.input("beta", "float64", ("k",)), sc.input("log_scale", "float64", ())
    x, y = sc.input("x", "float64", ("n", "k")), sc.input("y", "float64", ("n",))
    value = (sc.sum(sc.stats.norm.logpdf(beta, 0.0, 5.0)) + sc.stats.gamma.logpdf(sc.exp(log_scale), 2.0) + log_scale
             + sc.sum(sc.stats.norm.logpdf(y, x @ beta, sc.exp(log_scale))))
    return sc.compile([value, sc.grad(value, [beta, log_scale])], [beta, log_scale, x, y], name="log_density")


def log_density_arrays(n: int, rng: np.random.Generator) -> Arrays:
    return [rng.normal(size=5), np.asarray(0.3), rng.normal(size=(n, 5)), rng.normal(size=n)]


Program = tuple[Callable[[], Any], Callable[[int, np.random.Generator], Arrays]]
#: Programs with the arrays of a call of a given length; the lengths that are measured.
PROGRAMS: dict[str, Program] = {
    "mlp_step": (mlp_step, mlp_arrays), "lstm": (lstm, lstm_arrays), "attention": (attention, attention_arrays),
    "kalman": (kalman, kalman_arrays), "log_density": (log_density, log_density_arrays)}
LENGTHS = {"mlp_step": (128,), "lstm": (100,), "attention": (128, 512), "kalman": (200,),
           "log_density": (1000, 100_000)}


def imported(path: str) -> Any:
    """The module of an exported library."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def best(functions: Sequence[Callable[..., Any]], args: Arrays, seconds: float = 2.0) -> list[float]:
    """The least time of each function, in us; they take turns."""
    times: list[list[float]] = [[] for _ in functions]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 20:
        for kept, f in zip(times, functions, strict=True):
            start = time.perf_counter()
            for _ in range(5):
                f(*args)
            kept.append((time.perf_counter() - start) / 5)
    return [min(t) * 1e6 for t in times]


def alone(exported: Any, args: Arrays) -> Callable[..., Any]:
    """The function of C, on the arrays of one call by way of Python."""
    function, given = exported._call, []
    exported._call = lambda *pointers: given.append(pointers) or function(*pointers)
    kept = exported(*args)  # whose memory is written again
    exported._call = function
    return lambda *_: (function(*given[0]), kept)


def measured(name: str, n: int) -> dict[str, float]:
    """Microseconds of a call of a program in symc, as a library, and of its C alone; seconds of the export."""
    rng = np.random.default_rng(2)
    make, arrays = PROGRAMS[name]
    f, args = make(), arrays(n, rng)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        exported = getattr(imported(f.export_library(f"{folder}/{name}")), name)
        took = time.perf_counter() - start
        ours, library, own = best([f, exported, alone(exported, args)], args)
    return {"symc_us": ours, "library_us": library, "c_us": own, "export_s": took}


def main() -> None:
    print(f"{'':24}{'symc us':>10}{'library us':>12}{'C alone us':>12}{'ratio':>8}{'C alone':>9}{'export s':>10}")
    for name, lengths in LENGTHS.items():
        for n in lengths:
            ours, library, own, took = measured(name, n).values()
            print(f"{name + f' n={n}':24}{ours:10.1f}{library:12.1f}{own:12.1f}{library / ours:8.2f}{own / ours:9.2f}"
                  f"{took:10.2f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
