"""Changing shapes: softmax of 20 matrices. One call is all 20, one build all the compiling that they cause."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.workload import Array, Case, Run, Workload
from benchmarks.workloads.softmax import formula, kernel

WORKLOAD: Workload[Case] = Workload("many_shapes", "softmax of the rows of 20 matrices, each of another shape")
WORKLOAD.add(Case("20-f32", "float32", 2e-5))


@WORKLOAD.inputs
def inputs(case: Case) -> list[Array]:
    random = np.random.default_rng(0)
    shapes = [(int(random.integers(10, 400)), int(random.integers(10, 1000))) for _ in range(20)]
    return [random.standard_normal(shape).astype(case.dtype) for shape in shapes]


def each(function: Callable[[Any], Any]) -> Callable[..., list[Any]]:
    return lambda *arrays: [function(a) for a in arrays]


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

    return each(jax.jit(lambda x: jax.nn.softmax(x, axis=1)))


@WORKLOAD.peer("torch", "torch.compile")
def torch_builder(run: Run[Case], *arrays: Any) -> Callable[..., Any]:
    import torch

    return each(kit.torch_function(run, lambda x: torch.softmax(x, 1)))


@WORKLOAD.peer("pytensor", "pytensor-c")
def pytensor_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    import pytensor.tensor as pt

    symbols = kit.pytensor_inputs(arrays[:1])
    return each(kit.pytensor_function(run, symbols, pt.special.softmax(symbols[0], axis=1)))


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    """The NumPy formula, traced once for all shapes."""
    import symc as sc

    symbols = kit.symc_inputs(arrays[:1])
    return each(sc.compile(formula(*symbols), symbols, threads=run.threads))
