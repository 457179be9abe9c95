"""A loop of scalars: the Lorenz equations, 1,000 steps of the fourth-order Runge-Kutta method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.workload import Array, Built, Case, Run, Workload

STEPS, H = 1000, 0.005
WORKLOAD: Workload[Case] = Workload("lorenz", f"{STEPS} Runge-Kutta steps of the Lorenz equations")
WORKLOAD.add(Case("rk4-f64", "float64", 1e-6, units=STEPS))

State = tuple[Any, Any, Any]


def slope(s: State) -> State:
    x, y, z = s
    return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z


def moved(s: State, k: State, h: float) -> State:
    return s[0] + h * k[0], s[1] + h * k[1], s[2] + h * k[2]


def rk4(s: State) -> State:
    k1 = slope(s)
    k2 = slope(moved(s, k1, H / 2))
    k3 = slope(moved(s, k2, H / 2))
    k4 = slope(moved(s, k3, H))
    x, y, z = (a + H / 6 * (p + 2 * q + 2 * r + t) for a, p, q, r, t in zip(s, k1, k2, k3, k4))
    return x, y, z


def in_python(x: Array) -> Array:
    s = (x[0], x[1], x[2])
    for _ in range(STEPS):
        s = rk4(s)
    return np.array(s)


@WORKLOAD.inputs
def inputs(case: Case) -> list[Array]:
    return [np.ones(3)]


@WORKLOAD.reference
def reference(case: Case, x: Array) -> Array:
    return in_python(x)


@WORKLOAD.peer("numpy")
def numpy_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    return in_python


def kernel(start: Array) -> Array:
    x, y, z = start[0], start[1], start[2]
    for _ in range(STEPS):
        a, b, c = 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z
        u, v, w = x + H / 2 * a, y + H / 2 * b, z + H / 2 * c
        d, e, f = 10.0 * (v - u), u * (28.0 - w) - v, u * v - 8.0 / 3.0 * w
        u, v, w = x + H / 2 * d, y + H / 2 * e, z + H / 2 * f
        g, h, i = 10.0 * (v - u), u * (28.0 - w) - v, u * v - 8.0 / 3.0 * w
        u, v, w = x + H * g, y + H * h, z + H * i
        j, k, m = 10.0 * (v - u), u * (28.0 - w) - v, u * v - 8.0 / 3.0 * w
        x += H / 6 * (a + 2 * d + 2 * g + j)
        y += H / 6 * (b + 2 * e + 2 * h + k)
        z += H / 6 * (c + 2 * f + 2 * i + m)
    return np.array([x, y, z])


@WORKLOAD.peer("numba")
def numba_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    return kit.jit(run, kernel)


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Case], x: Any) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    return jax.jit(lambda x: jnp.stack(jax.lax.fori_loop(0, STEPS, lambda i, s: rk4(s), (x[0], x[1], x[2]))))


@WORKLOAD.peer("casadi")
def casadi_builder(run: Run[Case], x: Array) -> Built:
    import casadi

    state = casadi.SX.sym("x", 3)
    step = casadi.Function("step", [state], [casadi.vertcat(*rk4((state[0], state[1], state[2])))])
    return Built(step.fold(STEPS), [x], lambda result: np.asarray(result).reshape(3))


@WORKLOAD.peer("pytensor", "pytensor-c")
def pytensor_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    import pytensor
    import pytensor.tensor as pt

    (start,) = kit.pytensor_inputs([x])
    found = pytensor.scan(lambda *s: list(rk4(s)), outputs_info=[start[0], start[1], start[2]], n_steps=STEPS,
                          return_updates=False)
    return kit.pytensor_function(run, [start], pt.stack([v[-1] for v in found]))


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Case], x: Array) -> Callable[..., Any]:
    import symc as sc

    start = sc.input("x", "float64", (3,))
    state = sc.fori_loop(0, STEPS, lambda i, s: rk4(s), (start[0], start[1], start[2]))
    return sc.compile(sc.stack(state), [start], threads=run.threads)
