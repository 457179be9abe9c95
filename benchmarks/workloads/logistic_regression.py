"""Products with a vector: the loss of a logistic regression and its gradient. One pass over the rows would do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.workload import Array, Case, Run, Workload

ROWS, COLUMNS, PENALTY = 10_000, 784, 1e-4
WORKLOAD: Workload[Case] = Workload(
    "logistic_regression", f"loss and gradient of a logistic regression, {ROWS} x {COLUMNS}"
)
WORKLOAD.add(Case("f32", "float32", 5e-5, units=ROWS, large=True))


@WORKLOAD.inputs
def inputs(case: Case) -> list[Array]:
    """Weights, rows, labels."""
    random = np.random.default_rng(0)
    arrays = [random.normal(0, 0.05, COLUMNS), random.standard_normal((ROWS, COLUMNS)), random.integers(0, 2, ROWS)]
    return [a.astype(case.dtype) for a in arrays]


def formula(m: Any, softplus: Callable[[Any], Any], w: Any, x: Any, y: Any) -> Any:
    z = x @ w
    return (softplus(z) - y * z).mean() + PENALTY / 2 * (w * w).sum()


def by_hand(w: Array, x: Array, y: Array) -> tuple[Array, Array]:
    z = x @ w
    e = np.exp(-np.abs(z))
    value = (np.maximum(z, 0) + np.log1p(e) - y * z).mean() + PENALTY / 2 * (w @ w)
    p = np.where(z >= 0, 1, e) / (1 + e)
    return value, x.T @ ((p - y) / w.dtype.type(len(y))) + w.dtype.type(PENALTY) * w


@WORKLOAD.reference
def reference(case: Case, *arrays: Array) -> tuple[Array, Array]:
    return by_hand(*arrays)


@WORKLOAD.peer("numpy")
def numpy_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    return by_hand


def kernel(w: Array, x: Array, y: Array) -> tuple[float, Array]:
    """A row is used for its product and for the gradient while it is in cache."""
    real = w.dtype.type
    gradient, value, squares, share = np.zeros_like(w), real(0), real(0), real(1) / real(x.shape[0])
    for i in range(x.shape[0]):
        z = real(0)
        for j in range(x.shape[1]):
            z += x[i, j] * w[j]
        e = math.exp(-abs(z))
        value += max(z, real(0)) + real(math.log1p(e)) - y[i] * z
        slope = ((real(1) if z >= 0 else e) / (real(1) + e) - y[i]) * share
        for j in range(x.shape[1]):
            gradient[j] += slope * x[i, j]
    for j in range(w.size):
        squares += w[j] * w[j]
        gradient[j] += real(PENALTY) * w[j]
    return value * share + real(PENALTY / 2) * squares, gradient


@WORKLOAD.peer("numba")
def numba_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    return kit.jit(run, kernel)


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Case], *arrays: Any) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    return jax.jit(jax.value_and_grad(lambda w, x, y: formula(jnp, jax.nn.softplus, w, x, y)))


@WORKLOAD.peer("autograd")
def autograd_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    import autograd
    import autograd.numpy as anp

    return autograd.value_and_grad(lambda w, x, y: formula(anp, lambda z: anp.logaddexp(0, z), w, x, y))


@WORKLOAD.peer("torch", "torch.compile")
def torch_builder(run: Run[Case], w: Any, x: Any, y: Any) -> Callable[..., Any]:
    import torch

    return kit.torch_value_and_grad(
        run, lambda w, x, y: formula(torch, torch.nn.functional.softplus, w, x, y), [w]
    )


@WORKLOAD.peer("pytensor", "pytensor-c")
def pytensor_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    import pytensor
    import pytensor.tensor as pt

    w, x, y = kit.pytensor_inputs(arrays)
    z = x @ w
    value = (pt.softplus(z) - y * z).mean(dtype="float32") + np.float32(PENALTY / 2) * (w * w).sum(dtype="float32")
    return kit.pytensor_function(run, [w, x, y], [value, pytensor.grad(value, w)])


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    import symc as sc

    w, x, y = symbols = kit.symc_inputs(arrays)
    value = formula(sc, sc.softplus, w, x, y)
    return sc.compile([value, sc.grad(value, w)], symbols, threads=run.threads)
