"""Row reductions: a stabilized softmax, which needs a maximum, a sum and a scaling of every row."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.kit import prange
from benchmarks.workload import Array, Case, Run, Workload


@dataclass(frozen=True)
class Matrix(Case):
    rows: int = 0
    columns: int = 0


WORKLOAD: Workload[Matrix] = Workload("softmax", "softmax of the rows of a matrix")
WORKLOAD.add(
    Matrix("4096x1024-f32", "float32", 2e-6, units=4096 * 1024, large=True, rows=4096, columns=1024),
    Matrix("20x10-f32", "float32", 2e-6, rows=20, columns=10),
)


@WORKLOAD.inputs
def inputs(case: Matrix) -> list[Array]:
    return [np.random.default_rng(0).normal(0, 2, (case.rows, case.columns)).astype(case.dtype)]


def formula(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@WORKLOAD.reference
def reference(case: Matrix, x: Array) -> Array:
    return formula(x)


@WORKLOAD.peer("numpy")
def numpy_builder(run: Run[Matrix], x: Array) -> Callable[..., Any]:
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
def numba_builder(run: Run[Matrix], x: Array) -> Callable[..., Any]:
    return kit.jit(run, kernel)


@WORKLOAD.peer("numexpr")
def numexpr_builder(run: Run[Matrix], x: Array) -> Callable[..., Any]:
    """numexpr for the elementwise parts; its reductions cannot feed an expression, so NumPy does those."""
    import numexpr

    def softmax(x: Array) -> Array:
        powers = numexpr.evaluate("exp(x - top)", {"x": x, "top": x.max(axis=1, keepdims=True)})
        return numexpr.evaluate("p / total", {"p": powers, "total": powers.sum(axis=1, keepdims=True)}, out=powers)

    return softmax


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Matrix], x: Any) -> Callable[..., Any]:
    import jax

    return jax.jit(lambda x: jax.nn.softmax(x, axis=1))


@WORKLOAD.peer("torch", "torch.compile")
def torch_builder(run: Run[Matrix], x: Any) -> Callable[..., Any]:
    import torch

    return kit.torch_function(run, lambda x: torch.softmax(x, 1))


@WORKLOAD.peer("pytensor", "pytensor-c")
def pytensor_builder(run: Run[Matrix], x: Array) -> Callable[..., Any]:
    import pytensor.tensor as pt

    symbols = kit.pytensor_inputs([x])
    return kit.pytensor_function(run, symbols, pt.special.softmax(symbols[0], axis=1))


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Matrix], x: Array) -> Callable[..., Any]:
    """The same NumPy formula, traced: NumPy's functions work on symbolic values."""
    import symc as sc

    symbols = kit.symc_inputs([x])
    return sc.compile(formula(*symbols), symbols, threads=run.threads)
