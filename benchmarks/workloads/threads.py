"""Scaling over threads: one kernel of ten million elements that computes much, and one product, by 1, 2 and 4 threads.

Run it with as many threads as the machine has, ``-t 4`` say: a case uses as many of those as its name says. Here wall
time is what counts. JAX sizes its pool by the processors of the process and is the same in all cases; NumPy computes a
kernel with one thread and a product with all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.kit import prange
from benchmarks.workload import Array, Built, Case, Run, Workload


@dataclass(frozen=True)
class Threads(Case):
    """``threads``: how many a call uses."""

    product: bool = False


SIDE = 1024
WORKLOAD: Workload[Threads] = Workload("threads", "threads: tanh(x) exp(-x x) + log1p(x x) of 1e7, and a product")
WORKLOAD.add(*[Threads(f"kernel-{n}", "float64", 1e-13, units=10**7, large=True, threads=n) for n in (1, 2, 4)])
WORKLOAD.add(*[Threads(f"product-{n}", "float32", 1e-4, threads=n, product=True) for n in (1, 2, 4)])


def formula(m: Any, x: Any) -> Any:
    square = x * x
    return m.tanh(x) * m.exp(-square) + m.log1p(square)


@WORKLOAD.inputs
def inputs(case: Threads) -> list[Array]:
    random = np.random.default_rng(0)
    if case.product:
        return [random.standard_normal((SIDE, SIDE)).astype(case.dtype) for _ in range(2)]
    return [random.uniform(-1.2, 1.2, case.units).astype(case.dtype)]


@WORKLOAD.reference
def reference(case: Threads, *arrays: Array) -> Array:
    return arrays[0] @ arrays[1] if case.product else formula(np, *arrays)


@WORKLOAD.peer("numpy")
def numpy_builder(run: Run[Threads], *arrays: Array) -> Any:
    return np.matmul if run.case.product else lambda x: formula(np, x)


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Threads], *arrays: Any) -> Any:
    import jax
    import jax.numpy as jnp

    return jax.jit(jnp.matmul if run.case.product else lambda x: formula(jnp, x))


@WORKLOAD.peer("torch", "torch.compile")
def torch_builder(run: Run[Threads], *arrays: Any) -> Any:
    import torch

    torch.set_num_threads(run.case.threads)
    return torch.matmul if run.case.product else kit.torch_function(run, lambda x: formula(torch, x))


@WORKLOAD.peer("numba")
def numba_builder(run: Run[Threads], *arrays: Array) -> Any:
    import numba

    if run.case.product:
        return np.matmul
    if run.threads > 1:
        numba.set_num_threads(run.case.threads)
    return kit.jit(run, _loop)


def _loop(x):
    out = np.empty_like(x)
    for i in prange(x.size):
        square = x[i] * x[i]
        out[i] = np.tanh(x[i]) * np.exp(-square) + np.log1p(square)
    return out


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Threads], *arrays: Array) -> Built:
    import symc as sc

    if run.case.product:
        a, b = (sc.input(n, run.case.dtype, (SIDE, SIDE)) for n in "ab")
        return Built(sc.compile(a @ b, [a, b], threads=run.case.threads), arrays)
    x = sc.input("x", run.case.dtype, ("n",))
    return Built(sc.compile(formula(sc, x), [x], threads=run.case.threads), arrays)
