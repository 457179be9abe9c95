"""Vector math in float32: gelu, then tanh times the logistic function of it: erf, tanh and exp of every element.

numexpr is absent: it has no erf.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.kit import prange
from benchmarks.workload import Array, Built, Case, Run, Workload

SIZE = 1_000_000
HALF_ROOT = math.sqrt(0.5)
WORKLOAD: Workload[Case] = Workload("activations", "tanh(g) * sigmoid(g) of g = gelu(x), a million elements")
WORKLOAD.add(Case("f32", "float32", 3e-6, units=SIZE, large=True))


def formula(m: Any, x: Any) -> Any:
    g = 0.5 * x * (1.0 + m.erf(x * HALF_ROOT))
    return m.tanh(g) * (1.0 / (1.0 + m.exp(-g)))


def numpy_math() -> SimpleNamespace:
    from scipy.special import erf

    return SimpleNamespace(exp=np.exp, tanh=np.tanh, erf=erf)


@WORKLOAD.inputs
def inputs(case: Case) -> list[Array]:
    return [np.random.default_rng(0).standard_normal(SIZE).astype(case.dtype)]


@WORKLOAD.reference
def reference(case: Case, x: Array) -> Array:
    return formula(numpy_math(), x)


@WORKLOAD.peer("numpy")
def numpy_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    m = numpy_math()
    return lambda x: formula(m, x)


def kernel(x: Array) -> Array:
    real = x.dtype.type
    out = np.empty_like(x)
    for i in prange(x.size):
        g = real(0.5) * x[i] * (real(1) + math.erf(x[i] * real(HALF_ROOT)))
        out[i] = math.tanh(g) * (real(1) / (real(1) + math.exp(-g)))
    return out


@WORKLOAD.peer("numba")
def numba_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    return kit.jit(run, kernel)


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Case], x: Any) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    m = SimpleNamespace(exp=jnp.exp, tanh=jnp.tanh, erf=jax.scipy.special.erf)
    return jax.jit(lambda x: formula(m, x))


@WORKLOAD.peer("torch", "torch.compile")
def torch_builder(run: Run[Case], x: Any) -> Callable[..., Any]:
    import torch

    return kit.torch_function(run, lambda x: formula(torch, x))


@WORKLOAD.peer("drjit")
def drjit_builder(run: Run[Case], *arrays: Array) -> Built:
    import drjit

    return kit.drjit_map(run, lambda *arrays: formula(drjit, *arrays), arrays)


@WORKLOAD.peer("halide")
def halide_builder(run: Run[Case], *arrays: Array) -> Built:
    import halide

    return kit.halide_map(run, lambda *arrays: formula(halide, *arrays), arrays)


@WORKLOAD.peer("pytensor", "pytensor-c")
def pytensor_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    import pytensor.tensor as pt

    symbols = kit.pytensor_inputs([x])
    return kit.pytensor_function(run, symbols, formula(pt, *symbols))


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    import symc as sc

    m = SimpleNamespace(exp=sc.exp, tanh=sc.tanh, erf=sc.special.erf)
    symbols = kit.symc_inputs([x])
    return sc.compile(formula(m, *symbols), symbols, threads=run.threads)
