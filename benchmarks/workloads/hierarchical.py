"""Small arrays, many operations: log density and gradient of a hierarchical regression, as samplers evaluate it.

Slopes and intercepts of 85 groups, not centred, half-normal scales. The position is the argument; data is fixed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.workload import Array, Built, Case, Run, Workload

OBSERVATIONS, GROUPS = 1000, 85
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
WORKLOAD: Workload[Case] = Workload(
    "hierarchical", f"log density and gradient of a regression, {OBSERVATIONS} rows, {GROUPS} groups"
)
WORKLOAD.add(Case("f64", "float64", 1e-11, units=OBSERVATIONS))


@WORKLOAD.inputs
def inputs(case: Case) -> list[Array]:
    """Position, group of each row, its feature, its observation."""
    random = np.random.default_rng(0)
    position = random.standard_normal(5 + 2 * GROUPS) * 0.3
    group = np.sort(random.integers(0, GROUPS, OBSERVATIONS))
    feature = random.integers(0, 2, OBSERVATIONS).astype("float64")
    return [position, group, feature, random.standard_normal(OBSERVATIONS)]


def log_density(m: Any, q: Any, group: Any, feature: Any, y: Any) -> Any:
    mean_a, log_scale_a, mean_b, log_scale_b, log_scale_y = (q[i] for i in range(5))
    raw_a, raw_b = q[5 : 5 + GROUPS], q[5 + GROUPS :]
    scale_a, scale_b, scale_y = m.exp(log_scale_a), m.exp(log_scale_b), m.exp(log_scale_y)

    def normal(x: Any, scale: float) -> Any:
        return -0.5 * (x / scale) ** 2 - math.log(scale) - HALF_LOG_2PI

    total = normal(mean_a, 10.0) + normal(mean_b, 10.0)
    for scale, log_scale in ((scale_a, log_scale_a), (scale_b, log_scale_b), (scale_y, log_scale_y)):
        total = total + normal(scale, 5.0) + math.log(2.0) + log_scale
    total = total + normal(raw_a, 1.0).sum() + normal(raw_b, 1.0).sum()
    a, b = mean_a + scale_a * raw_a, mean_b + scale_b * raw_b
    expected = a[group] + b[group] * feature
    return total + (-0.5 * ((y - expected) / scale_y) ** 2 - log_scale_y - HALF_LOG_2PI).sum()


def constant_part() -> float:
    scales = 3 * (math.log(2) - math.log(5) - HALF_LOG_2PI)
    return -2 * (math.log(10) + HALF_LOG_2PI) + scales - 2 * GROUPS * HALF_LOG_2PI


def by_hand(q: Array, group: Array, feature: Array, y: Array) -> tuple[float, Array]:
    mean_a, log_a, mean_b, log_b, log_y = q[:5]
    raw_a, raw_b, n = q[5 : 5 + GROUPS], q[5 + GROUPS :], len(y)
    sa, sb, sy = math.exp(log_a), math.exp(log_b), math.exp(log_y)
    e = (y - (mean_a + sa * raw_a)[group] - (mean_b + sb * raw_b)[group] * feature) / sy
    value = -(mean_a**2 + mean_b**2) / 200 - (sa**2 + sb**2 + sy**2) / 50 + log_a + log_b + log_y + constant_part()
    value += -0.5 * (raw_a @ raw_a + raw_b @ raw_b) - 0.5 * (e @ e) - n * (log_y + HALF_LOG_2PI)
    ga = np.bincount(group, e / sy, minlength=GROUPS)
    gb = np.bincount(group, e / sy * feature, minlength=GROUPS)
    gradient = np.empty_like(q)
    gradient[0], gradient[2] = ga.sum() - mean_a / 100, gb.sum() - mean_b / 100
    gradient[1], gradient[3] = sa * (ga @ raw_a) + 1 - sa**2 / 25, sb * (gb @ raw_b) + 1 - sb**2 / 25
    gradient[4] = e @ e - n + 1 - sy**2 / 25
    gradient[5 : 5 + GROUPS], gradient[5 + GROUPS :] = sa * ga - raw_a, sb * gb - raw_b
    return value, gradient


@WORKLOAD.reference
def reference(case: Case, *arrays: Array) -> tuple[float, Array]:
    return by_hand(*arrays)


@WORKLOAD.peer("numpy")
def numpy_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    return by_hand


CONSTANT = constant_part()


def kernel(q: Array, group: Array, feature: Array, y: Array) -> tuple[float, Array]:
    g, n = (q.size - 5) // 2, y.size
    gradient = np.zeros_like(q)
    sa, sb, sy = math.exp(q[1]), math.exp(q[3]), math.exp(q[4])
    inverse, errors, squares = 1 / sy, 0.0, 0.0
    for i in range(n):
        k = group[i]
        e = (y[i] - (q[0] + sa * q[5 + k]) - (q[2] + sb * q[5 + g + k]) * feature[i]) * inverse
        errors += e * e
        gradient[5 + k] += e * inverse
        gradient[5 + g + k] += e * inverse * feature[i]
    for k in range(g):
        ra, rb, ga, gb = q[5 + k], q[5 + g + k], gradient[5 + k], gradient[5 + g + k]
        squares += ra * ra + rb * rb
        gradient[0] += ga
        gradient[2] += gb
        gradient[1] += ga * ra * sa
        gradient[3] += gb * rb * sb
        gradient[5 + k], gradient[5 + g + k] = sa * ga - ra, sb * gb - rb
    gradient[0] -= q[0] / 100
    gradient[2] -= q[2] / 100
    gradient[1] += 1 - sa * sa / 25
    gradient[3] += 1 - sb * sb / 25
    gradient[4] = errors - n + 1 - sy * sy / 25
    value = -(q[0] * q[0] + q[2] * q[2]) / 200 - (sa * sa + sb * sb + sy * sy) / 50 + q[1] + q[3] + q[4] + CONSTANT
    return value - 0.5 * squares - 0.5 * errors - n * (q[4] + HALF_LOG_2PI), gradient


@WORKLOAD.peer("numba")
def numba_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    return kit.jit(run, kernel)


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Case], q: Any, group: Any, feature: Any, y: Any) -> Built:
    import jax
    import jax.numpy as jnp

    return Built(jax.jit(jax.value_and_grad(lambda q: log_density(jnp, q, group, feature, y))), [q])


@WORKLOAD.peer("torch", "torch.compile")
def torch_builder(run: Run[Case], q: Any, group: Any, feature: Any, y: Any) -> Built:
    import torch

    return Built(kit.torch_value_and_grad(run, lambda q: log_density(torch, q, group, feature, y), [q]), [q])


@WORKLOAD.peer("autograd")
def autograd_builder(run: Run[Case], q: Array, group: Array, feature: Array, y: Array) -> Built:
    import autograd
    import autograd.numpy as anp

    return Built(autograd.value_and_grad(lambda q: log_density(anp, q, group, feature, y)), [q])


@WORKLOAD.peer("casadi", "casadi-buffer")
def casadi_builder(run: Run[Case], q: Array, group: Array, feature: Array, y: Array) -> Built:
    import casadi

    symbol = casadi.MX.sym("q", len(q))
    raw_a, raw_b, rows = symbol[5 : 5 + GROUPS], symbol[5 + GROUPS :], [int(i) for i in group]
    sa, sb, sy = casadi.exp(symbol[1]), casadi.exp(symbol[3]), casadi.exp(symbol[4])
    expected = (symbol[0] + sa * raw_a)[rows] + (symbol[2] + sb * raw_b)[rows] * casadi.DM(feature)
    value = -(symbol[0] ** 2 + symbol[2] ** 2) / 200 - (sa**2 + sb**2 + sy**2) / 50 + CONSTANT
    value += symbol[1] + symbol[3] + symbol[4] - 0.5 * (casadi.sumsqr(raw_a) + casadi.sumsqr(raw_b))
    value += -0.5 * casadi.sumsqr((casadi.DM(y) - expected) / sy) - len(y) * (symbol[4] + HALF_LOG_2PI)
    return kit.casadi_built(run, [symbol], [value, casadi.gradient(value, symbol)], [q], [(), q.shape])


@WORKLOAD.peer("pytensor", "pytensor-c")
def pytensor_builder(run: Run[Case], q: Array, group: Array, feature: Array, y: Array) -> Built:
    import pytensor
    import pytensor.tensor as pt

    symbol = pt.tensor("q", dtype="float64", shape=q.shape)
    value = log_density(pt, symbol, pt.constant(group), pt.constant(feature), pt.constant(y))
    return Built(kit.pytensor_function(run, [symbol], [value, pytensor.grad(value, symbol)]), [q])


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Case], q: Array, group: Array, feature: Array, y: Array) -> Built:
    import symc as sc

    symbol = sc.input("q", "float64", q.shape)
    value = log_density(sc, symbol, group, feature, y)
    return Built(sc.compile([value, sc.grad(value, symbol)], [symbol], threads=run.threads), [q])
