"""Row reductions: a stabilized softmax, which needs a maximum, a sum and a scaling of every row."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.kit import prange
from benchmarks.workload import Array, Case, Run, Workload

ROWS, COLUMNS = 4096, 1024
WORKLOAD: Workload[Case] = Workload("softmax", f"softmax of the rows of a {ROWS} x {COLUMNS} matrix")
WORKLOAD.add(Case(f"{ROWS}x{COLUMNS}-f32", "float32", 2e-6, units=ROWS * COLUMNS))


@WORKLOAD.inputs
def inputs(case: Case) -> list[Array]:
    return [np.random.default_rng(0).normal(0, 2, (ROWS, COLUMNS)).astype(case.dtype)]


def formula(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@WORKLOAD.reference
def reference(case: Case, x: Array) -> Array:
    return formula(x)


@WORKLOAD.peer("numpy")
def numpy_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    return formula


def kernel(x: Array) -> Array:
    real = x.dtype.type
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        top = x[i, 0]
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        total = real(0)
        for j in range(x.shape[1]):
            out[i, j] = math.exp(x[i, j] - top)
            total += out[i, j]
        scale = real(1) / total
        for j in range(x.shape[1]):
            out[i, j] *= scale
    return out


@WORKLOAD.peer("numba")
def numba_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    return kit.jit(run, kernel)


@WORKLOAD.peer("numexpr")
def numexpr_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    """numexpr for the elementwise parts; its reductions cannot feed an expression, so NumPy does those."""
    import numexpr

    def softmax(x: Array) -> Array:
        powers = numexpr.evaluate("exp(x - top)", {"x": x, "top": x.max(axis=1, keepdims=True)})
        return numexpr.evaluate("p / total", {"p": powers, "total": powers.sum(axis=1, keepdims=True)}, out=powers)

    return softmax


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Case], x: Any) -> Callable[..., Any]:
    import jax

    return jax.jit(lambda x: jax.nn.softmax(x, axis=1))


@WORKLOAD.peer("torch", "torch.compile")
def torch_builder(run: Run[Case], x: Any) -> Callable[..., Any]:
    import torch

    return kit.torch_function(run, lambda x: torch.softmax(x, 1))


@WORKLOAD.peer("pytensor", "pytensor-c")
def pytensor_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    import pytensor.tensor as pt

    symbols = kit.pytensor_inputs([x])
    return kit.pytensor_function(run, symbols, pt.special.softmax(symbols[0], axis=1))


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    """The same NumPy formula, traced: NumPy's functions work on symbolic values."""
    import symc as sc

    symbols = kit.symc_inputs([x])
    return sc.compile(formula(*symbols), symbols, threads=run.threads)
