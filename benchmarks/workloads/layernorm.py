"""Reductions in both directions: layer normalization, and its gradients for a given gradient of the result."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.workload import Array, Built, Case, Run, Workload

ROWS, COLUMNS, EPSILON = 4096, 1024, 1e-5
WORKLOAD: Workload[Case] = Workload("layernorm", f"layer normalization of {ROWS} x {COLUMNS}, forward and backward")
WORKLOAD.add(Case("f32", "float32", 2e-5, units=ROWS * COLUMNS, large=True))


@WORKLOAD.inputs
def inputs(case: Case) -> list[Array]:
    """Rows, scale, offset, and the gradient of the result."""
    random = np.random.default_rng(0)
    arrays = [random.normal(0, 2, (ROWS, COLUMNS)), random.uniform(0.5, 1.5, COLUMNS),
              random.standard_normal(COLUMNS), random.standard_normal((ROWS, COLUMNS))]  # fmt: skip
    return [a.astype(case.dtype) for a in arrays]


def forward(m: Any, x: Any, scale: Any, offset: Any) -> Any:
    d = x - x.mean(1, keepdims=True)
    return d / m.sqrt((d * d).mean(1, keepdims=True) + EPSILON) * scale + offset


def by_hand(x: Array, scale: Array, offset: Array, dy: Array) -> tuple[Array, ...]:
    d = x - x.mean(1, keepdims=True)
    inverse = 1 / np.sqrt((d * d).mean(1, keepdims=True) + EPSILON)
    normal = d * inverse
    dn = dy * scale
    dx = inverse * (dn - dn.mean(1, keepdims=True) - normal * (dn * normal).mean(1, keepdims=True))
    return normal * scale + offset, dx, (dy * normal).sum(0), dy.sum(0)


@WORKLOAD.reference
def reference(case: Case, *arrays: Array) -> tuple[Array, ...]:
    return by_hand(*arrays)


@WORKLOAD.peer("numpy")
def numpy_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    return by_hand


def kernel(x: Array, scale: Array, offset: Array, dy: Array) -> tuple[Array, ...]:
    real = x.dtype.type
    y, dx, dscale, doffset = np.empty_like(x), np.empty_like(x), np.zeros_like(scale), np.zeros_like(scale)
    share = real(1) / real(x.shape[1])
    for i in range(x.shape[0]):
        total, squares, a, b = real(0), real(0), real(0), real(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        mean = total * share
        for j in range(x.shape[1]):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        inverse = real(1) / real(math.sqrt(squares * share + real(EPSILON)))
        for j in range(x.shape[1]):
            normal, up = (x[i, j] - mean) * inverse, dy[i, j]
            y[i, j] = normal * scale[j] + offset[j]
            dscale[j] += up * normal
            doffset[j] += up
            a += up * scale[j]
            b += up * scale[j] * normal
        a, b = a * share, b * share
        for j in range(x.shape[1]):
            dx[i, j] = inverse * (dy[i, j] * scale[j] - a - (x[i, j] - mean) * inverse * b)
    return y, dx, dscale, doffset


@WORKLOAD.peer("numba")
def numba_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    return kit.jit(run, kernel)


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Case], *arrays: Any) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def both(x: Any, scale: Any, offset: Any, dy: Any) -> Any:
        y, backward = jax.vjp(lambda *p: forward(jnp, *p), x, scale, offset)
        return y, *backward(dy)

    return jax.jit(both)


@WORKLOAD.peer("torch", "torch.compile")
def torch_builder(run: Run[Case], *arrays: Any) -> Built:
    """The library's own layer_norm."""
    import torch

    normalize = kit.torch_function(
        run, lambda x, scale, offset: torch.nn.functional.layer_norm(x, (COLUMNS,), scale, offset, EPSILON)
    )
    leaves = [a.requires_grad_(True) for a in arrays[:3]]

    def both(dy: Any) -> Any:
        y = normalize(*leaves)
        return y, *torch.autograd.grad(y, leaves, dy)

    return Built(both, [arrays[3]])


@WORKLOAD.peer("pytensor", "pytensor-c")
def pytensor_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    import pytensor
    import pytensor.tensor as pt

    x, scale, offset, dy = kit.pytensor_inputs(arrays)
    d = x - x.mean(1, keepdims=True, dtype="float32")
    y = d / pt.sqrt((d * d).mean(1, keepdims=True, dtype="float32") + np.float32(EPSILON)) * scale + offset
    gradients = pytensor.grad(None, [x, scale, offset], known_grads={y: dy})
    return kit.pytensor_function(run, [x, scale, offset, dy], [y, *gradients])


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    import symc as sc

    x, scale, offset, dy = symbols = kit.symc_inputs(arrays)
    y = forward(sc, x, scale, offset)
    return sc.compile([y, *sc.vjp(y, [x, scale, offset], dy)], symbols, threads=run.threads)
