"""Overhead of a call that also differentiates: the Rosenbrock function and its gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.workload import Array, Built, Case, Run, Workload

WORKLOAD: Workload[Case] = Workload("rosenbrock", "value and gradient of the Rosenbrock function, float64")
WORKLOAD.add(Case("n10", "float64", 1e-12, units=10), Case("n1000", "float64", 1e-12, units=1000))


def formula(x: Any) -> Any:
    return ((x[1:] - x[:-1] ** 2) ** 2 * 100.0).sum() + ((1.0 - x[:-1]) ** 2).sum()


def by_hand(x: Array) -> tuple[Array, Array]:
    a, b = x[:-1], x[1:]
    u = b - a * a
    gradient = np.zeros_like(x)
    gradient[:-1] = -400 * a * u - 2 * (1 - a)
    gradient[1:] += 200 * u
    return 100 * (u * u).sum() + ((1 - a) ** 2).sum(), gradient


@WORKLOAD.inputs
def inputs(case: Case) -> list[Array]:
    return [np.random.default_rng(0).standard_normal(case.units)]


@WORKLOAD.reference
def reference(case: Case, x: Array) -> tuple[Array, Array]:
    return by_hand(x)


@WORKLOAD.peer("numpy")
def numpy_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    return by_hand


def kernel(x: Array) -> tuple[float, Array]:
    gradient, value = np.zeros_like(x), 0.0
    for i in range(x.size - 1):
        u, v = x[i + 1] - x[i] * x[i], 1 - x[i]
        value += 100 * u * u + v * v
        gradient[i] += -400 * x[i] * u - 2 * v
        gradient[i + 1] += 200 * u
    return value, gradient


@WORKLOAD.peer("numba")
def numba_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    return kit.jit(run, kernel)


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Case], x: Any) -> Callable[..., Any]:
    import jax

    return jax.jit(jax.value_and_grad(formula))


@WORKLOAD.peer("torch", "torch.compile")
def torch_builder(run: Run[Case], x: Any) -> Callable[..., Any]:
    return kit.torch_value_and_grad(run, formula, [x])


@WORKLOAD.peer("autograd")
def autograd_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    import autograd

    return autograd.value_and_grad(formula)


@WORKLOAD.peer("casadi", "casadi-buffer")
def casadi_builder(run: Run[Case], x: Array) -> Built:
    import casadi

    symbol = casadi.SX.sym("x", len(x))
    value = casadi.sum1((symbol[1:] - symbol[:-1] ** 2) ** 2 * 100.0) + casadi.sum1((1 - symbol[:-1]) ** 2)
    outputs = [value, casadi.gradient(value, symbol)]
    return kit.casadi_built(run, [symbol], outputs, [x], [(), x.shape])


@WORKLOAD.peer("pytensor", "pytensor-c")
def pytensor_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    import pytensor

    (symbol,) = kit.pytensor_inputs([x])
    value = formula(symbol)
    return kit.pytensor_function(run, [symbol], [value, pytensor.grad(value, symbol)])


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    import symc as sc

    (symbol,) = kit.symc_inputs([x])
    value = formula(symbol)
    return sc.compile([value, sc.grad(value, symbol)], [symbol], threads=run.threads)
