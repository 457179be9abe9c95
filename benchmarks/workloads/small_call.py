"""Call overhead: so little arithmetic that a call costs what the library puts around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.workload import Array, Built, Case, Run, Workload

WORKLOAD: Workload[Case] = Workload("small_call", "sum(x*y + 1) of ten elements")
WORKLOAD.add(Case("n10-f64", "float64", 1e-12))
SIZE = 10


def formula(x: Any, y: Any) -> Any:
    return (x * y + 1).sum()


@WORKLOAD.inputs
def inputs(case: Case) -> list[Array]:
    random = np.random.default_rng(0)
    return [random.standard_normal(SIZE) for _ in range(2)]


@WORKLOAD.reference
def reference(case: Case, x: Array, y: Array) -> Array:
    return formula(x, y)


@WORKLOAD.peer("numpy")
def numpy_builder(run: Run[Case], x: Array, y: Array) -> Callable[..., Any]:
    return formula


def kernel(x: Array, y: Array) -> float:
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i] + 1
    return total


@WORKLOAD.peer("numba")
def numba_builder(run: Run[Case], x: Array, y: Array) -> Callable[..., Any]:
    return kit.jit(run, kernel)


@WORKLOAD.peer("numexpr")
def numexpr_builder(run: Run[Case], x: Array, y: Array) -> Callable[..., Any]:
    import numexpr

    return lambda x, y: numexpr.evaluate("sum(x*y + 1)", {"x": x, "y": y})


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Case], x: Any, y: Any) -> Callable[..., Any]:
    import jax

    return jax.jit(formula)


@WORKLOAD.peer("torch", "torch.compile")
def torch_builder(run: Run[Case], x: Any, y: Any) -> Callable[..., Any]:
    return kit.torch_function(run, formula)


@WORKLOAD.peer("pytensor", "pytensor-c")
def pytensor_builder(run: Run[Case], x: Array, y: Array) -> Callable[..., Any]:
    symbols = kit.pytensor_inputs([x, y])
    return kit.pytensor_function(run, symbols, formula(*symbols))


@WORKLOAD.peer("casadi", "casadi-buffer")
def casadi_builder(run: Run[Case], x: Array, y: Array) -> Built:
    import casadi

    symbols = [casadi.SX.sym(name, SIZE) for name in "xy"]
    return kit.casadi_built(run, symbols, [casadi.sum1(symbols[0] * symbols[1] + 1)], [x, y], [()])


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Case], x: Array, y: Array) -> Callable[..., Any]:
    import symc as sc

    symbols = kit.symc_inputs([x, y])
    return sc.compile(formula(*symbols), symbols, threads=run.threads)
