"""Reductions of a matrix: logsumexp of its rows, their mean and variance, and its sum over the first axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.kit import prange
from benchmarks.workload import Array, Case, Run, Workload

ROWS, COLUMNS = 4096, 1024


@dataclass(frozen=True)
class Reduction(Case):
    kind: str = ""


WORKLOAD: Workload[Reduction] = Workload("reductions", f"reductions of a {ROWS} x {COLUMNS} matrix, float32")
WORKLOAD.add(*(Reduction(kind, "float32", 2e-5, units=ROWS * COLUMNS, large=True, kind=kind)
               for kind in ("logsumexp", "mean_variance", "sum_axis0")))  # fmt: skip


@WORKLOAD.inputs
def inputs(case: Reduction) -> list[Array]:
    return [np.random.default_rng(0).normal(0, 2, (ROWS, COLUMNS)).astype(case.dtype)]


def logsumexp(x: Array) -> Array:
    top = x.max(axis=1, keepdims=True)
    return np.log(np.exp(x - top).sum(axis=1)) + top[:, 0]


FORMULAS: dict[str, Callable[[Any], Any]] = {
    "logsumexp": logsumexp,
    "mean_variance": lambda x: [x.mean(axis=1), x.var(axis=1)],
    "sum_axis0": lambda x: x.sum(axis=0),
}


@WORKLOAD.reference
def reference(case: Reduction, x: Array) -> Any:
    return FORMULAS[case.kind](x)


@WORKLOAD.peer("numpy")
def numpy_builder(run: Run[Reduction], x: Array) -> Callable[..., Any]:
    return FORMULAS[run.case.kind]


def logsumexp_kernel(x: Array) -> Array:
    out = np.empty(x.shape[0], x.dtype)
    for i in prange(x.shape[0]):
        top, total = x[i, 0], x.dtype.type(0)
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        for j in range(x.shape[1]):
            total += math.exp(x[i, j] - top)
        out[i] = math.log(total) + top
    return out


def mean_variance_kernel(x: Array) -> tuple[Array, Array]:
    real = x.dtype.type
    means, variances, scale = np.empty(x.shape[0], x.dtype), np.empty(x.shape[0], x.dtype), real(1) / real(x.shape[1])
    for i in prange(x.shape[0]):
        total, squares = real(0), real(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        mean = total * scale
        for j in range(x.shape[1]):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        means[i], variances[i] = mean, squares * scale
    return means, variances


def sum_axis0_kernel(x: Array) -> Array:
    out = np.zeros(x.shape[1], x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[j] += x[i, j]
    return out


@WORKLOAD.peer("numba")
def numba_builder(run: Run[Reduction], x: Array) -> Callable[..., Any]:
    kernels = {"logsumexp": logsumexp_kernel, "mean_variance": mean_variance_kernel, "sum_axis0": sum_axis0_kernel}
    return kit.jit(run, kernels[run.case.kind])


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Reduction], x: Any) -> Callable[..., Any]:
    import jax

    return jax.jit((FORMULAS | {"logsumexp": lambda x: jax.nn.logsumexp(x, 1)})[run.case.kind])


@WORKLOAD.peer("torch", "torch.compile")
def torch_builder(run: Run[Reduction], x: Any) -> Callable[..., Any]:
    import torch

    formulas: dict[str, Callable[[Any], Any]] = {
        "logsumexp": lambda x: torch.logsumexp(x, 1),
        "mean_variance": lambda x: (x.mean(1), x.var(1, correction=0)),
        "sum_axis0": lambda x: x.sum(0),
    }
    return kit.torch_function(run, formulas[run.case.kind])


@WORKLOAD.peer("pytensor", "pytensor-c")
def pytensor_builder(run: Run[Reduction], x: Array) -> Callable[..., Any]:
    import pytensor.tensor as pt

    symbols = kit.pytensor_inputs([x])
    formulas: dict[str, Callable[[Any], Any]] = {
        "logsumexp": lambda x: pt.logsumexp(x, axis=1),
        "mean_variance": lambda x: [x.mean(1, dtype="float32"), x.var(1)],
        "sum_axis0": lambda x: x.sum(0),
    }
    return kit.pytensor_function(run, symbols, formulas[run.case.kind](*symbols))


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Reduction], x: Array) -> Callable[..., Any]:
    """The NumPy formulas, traced."""
    import symc as sc

    symbols = kit.symc_inputs([x])
    return sc.compile(FORMULAS[run.case.kind](*symbols), symbols, threads=run.threads)
