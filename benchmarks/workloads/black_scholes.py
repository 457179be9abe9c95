"""Vector math: Black-Scholes option prices, dominated by log, exp, sqrt and erf.

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
RATE, VOLATILITY, HALF_ROOT = 0.02, 0.3, math.sqrt(0.5)
WORKLOAD: Workload[Case] = Workload("black_scholes", "Black-Scholes calls and puts, a million options")
WORKLOAD.add(
    Case("f32", "float32", 3e-6, units=SIZE, large=True),
    Case("f64", "float64", 1e-12, units=SIZE, large=True),
)


def formula(m: Any, spot: Any, strike: Any, years: Any) -> tuple[Any, Any]:
    """Prices in any array library: ``m`` has exp, log, sqrt and erf. Python constants leave float32 as it is."""
    spread = m.sqrt(years) * VOLATILITY
    d1 = (m.log(spot / strike) + (RATE + VOLATILITY * VOLATILITY / 2) * years) / spread
    d2 = d1 - spread
    discounted = strike * m.exp(-RATE * years)
    call = spot * (0.5 + 0.5 * m.erf(d1 * HALF_ROOT)) - discounted * (0.5 + 0.5 * m.erf(d2 * HALF_ROOT))
    return call, call - spot + discounted


def numpy_math() -> SimpleNamespace:
    from scipy.special import erf

    return SimpleNamespace(exp=np.exp, log=np.log, sqrt=np.sqrt, erf=erf)


@WORKLOAD.inputs
def inputs(case: Case) -> list[Array]:
    random = np.random.default_rng(0)
    return [random.uniform(low, high, SIZE).astype(case.dtype) for low, high in ((10, 50), (10, 50), (1, 2))]


@WORKLOAD.reference
def reference(case: Case, *arrays: Array) -> tuple[Array, Array]:
    return formula(numpy_math(), *arrays)


@WORKLOAD.peer("numpy")
def numpy_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    m = numpy_math()
    return lambda *arrays: formula(m, *arrays)


def kernel(spot: Array, strike: Array, years: Array) -> tuple[Array, Array]:
    real = spot.dtype.type
    half, root, rate, volatility = real(0.5), real(HALF_ROOT), real(RATE), real(VOLATILITY)
    drift = real(RATE + VOLATILITY * VOLATILITY / 2)
    calls, puts = np.empty_like(spot), np.empty_like(spot)
    for i in prange(spot.size):
        spread = math.sqrt(years[i]) * volatility
        d1 = (math.log(spot[i] / strike[i]) + drift * years[i]) / spread
        discounted = strike[i] * math.exp(-rate * years[i])
        upper = half + half * math.erf(d1 * root)
        call = spot[i] * upper - discounted * (half + half * math.erf((d1 - spread) * root))
        calls[i] = call
        puts[i] = call - spot[i] + discounted
    return calls, puts


@WORKLOAD.peer("numba")
def numba_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    return kit.jit(run, kernel)


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Case], *arrays: Any) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    m = SimpleNamespace(exp=jnp.exp, log=jnp.log, sqrt=jnp.sqrt, erf=jax.scipy.special.erf)
    return jax.jit(lambda *arrays: formula(m, *arrays))


@WORKLOAD.peer("torch", "torch.compile")
def torch_builder(run: Run[Case], *arrays: Any) -> Callable[..., Any]:
    import torch

    return kit.torch_function(run, lambda *arrays: formula(torch, *arrays))


@WORKLOAD.peer("drjit")
def drjit_builder(run: Run[Case], *arrays: Array) -> Built:
    import drjit

    return kit.drjit_map(run, lambda *arrays: formula(drjit, *arrays), arrays)


@WORKLOAD.peer("halide")
def halide_builder(run: Run[Case], *arrays: Array) -> Built:
    import halide

    return kit.halide_map(run, lambda *arrays: formula(halide, *arrays), arrays)


@WORKLOAD.peer("pytensor", "pytensor-c")
def pytensor_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    import pytensor.tensor as pt

    symbols = kit.pytensor_inputs(arrays)
    return kit.pytensor_function(run, symbols, list(formula(pt, *symbols)))


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    import symc as sc

    m = SimpleNamespace(exp=sc.exp, log=sc.log, sqrt=sc.sqrt, erf=sc.special.erf)
    symbols = kit.symc_inputs(arrays)
    return sc.compile(formula(m, *symbols), symbols, threads=run.threads)
