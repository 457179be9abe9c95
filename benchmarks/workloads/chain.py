"""Fusion: ten cheap elementwise operations, which cost one pass over memory when fused and ten when not.

At ten million elements memory decides, at ten thousand arithmetic and the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.kit import prange
from benchmarks.workload import Array, Built, Case, Run, Workload

WORKLOAD: Workload[Case] = Workload("chain", "a polynomial: a chain of ten elementwise operations")
WORKLOAD.add(
    Case("1e7-f64", "float64", 1e-13, units=10**7, large=True),
    Case("1e7-f32", "float32", 2e-6, units=10**7, large=True),
    Case("1e4-f64", "float64", 1e-13, units=10**4),
)


def formula(x: Any) -> Any:
    """Five multiplications and five additions; no common subexpression, nothing for algebra to shorten."""
    return ((((x * 2.0 + 1.0) * x - 3.0) * x + 0.5) * x - 1.5) * x + 0.25


@WORKLOAD.inputs
def inputs(case: Case) -> list[Array]:
    return [np.random.default_rng(0).uniform(-1.2, 1.2, case.units).astype(case.dtype)]


@WORKLOAD.reference
def reference(case: Case, x: Array) -> Array:
    return formula(x)


@WORKLOAD.peer("numpy")
def numpy_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    return formula


def kernel(x: Array) -> Array:
    real = x.dtype.type
    out = np.empty_like(x)
    for i in prange(x.size):
        v = x[i]
        v = (((v * real(2.0) + real(1.0)) * v - real(3.0)) * v + real(0.5)) * v - real(1.5)
        out[i] = v * x[i] + real(0.25)
    return out


@WORKLOAD.peer("numba")
def numba_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    return kit.jit(run, kernel)


@WORKLOAD.peer("numexpr")
def numexpr_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    import numexpr

    values = dict(zip("abcdef", np.array([2.0, 1.0, 3.0, 0.5, 1.5, 0.25], run.case.dtype)))
    return lambda x: numexpr.evaluate("((((x*a + b)*x - c)*x + d)*x - e)*x + f", {"x": x, **values})


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Case], x: Any) -> Callable[..., Any]:
    import jax

    return jax.jit(formula)


@WORKLOAD.peer("torch", "torch.compile")
def torch_builder(run: Run[Case], x: Any) -> Callable[..., Any]:
    return kit.torch_function(run, formula)


@WORKLOAD.peer("drjit")
def drjit_builder(run: Run[Case], x: Array) -> Built:
    return kit.drjit_map(run, formula, [x])


@WORKLOAD.peer("halide")
def halide_builder(run: Run[Case], x: Array) -> Built:
    return kit.halide_map(run, formula, [x])


@WORKLOAD.peer("pytensor", "pytensor-c")
def pytensor_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    symbols = kit.pytensor_inputs([x])
    return kit.pytensor_function(run, symbols, formula(*symbols))


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    import symc as sc

    symbols = kit.symc_inputs([x])
    return sc.compile(formula(*symbols), symbols, threads=run.threads)
