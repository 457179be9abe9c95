"""Sizes that never come twice in a row: a weighted sum of 200 vectors, each of another length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.workload import Array, Case, Run, Workload

WORKLOAD: Workload[Case] = Workload("new_sizes", "sum(exp(x) * y) of 200 pairs of vectors, each of another length")
WORKLOAD.add(Case("200-f64", "float64", 1e-12))
LENGTHS = 200


@WORKLOAD.inputs
def inputs(case: Case) -> list[Array]:
    """The xs, then the ys."""
    random = np.random.default_rng(0)
    lengths = random.permutation(LENGTHS) + 1
    return [random.standard_normal(n).astype(case.dtype) for _ in range(2) for n in lengths]


def each(function: Callable[[Any, Any], Any]) -> Callable[..., list[Any]]:
    return lambda *arrays: [function(x, y) for x, y in zip(arrays[:LENGTHS], arrays[LENGTHS:], strict=True)]


def formula(x: Any, y: Any) -> Any:
    return np.sum(np.exp(x) * y)


def kernel(x: Array, y: Array) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        total += np.exp(x[i]) * y[i]
    return total


@WORKLOAD.reference
def reference(case: Case, *arrays: Array) -> list[Array]:
    return each(formula)(*arrays)


@WORKLOAD.peer("numpy")
def numpy_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    return each(formula)


@WORKLOAD.peer("numba")
def numba_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    return each(kit.jit(run, kernel))


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Case], *arrays: Any) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    return each(jax.jit(lambda x, y: jnp.sum(jnp.exp(x) * y)))


@WORKLOAD.peer("torch", "torch.compile")
def torch_builder(run: Run[Case], *arrays: Any) -> Callable[..., Any]:
    import torch

    return each(kit.torch_function(run, lambda x, y: torch.sum(torch.exp(x) * y)))


@WORKLOAD.peer("pytensor", "pytensor-c")
def pytensor_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    import pytensor.tensor as pt

    x, y = kit.pytensor_inputs([arrays[0], arrays[LENGTHS]])
    return each(kit.pytensor_function(run, [x, y], pt.sum(pt.exp(x) * y)))


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    import symc as sc

    symbols = kit.symc_inputs([arrays[0], arrays[LENGTHS]])
    return each(sc.compile(formula(*symbols), symbols, threads=run.threads))
