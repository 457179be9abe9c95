"""A loop of pairs: 100 bodies that attract each other, 20 leapfrog steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.kit import prange
from benchmarks.workload import Array, Case, Run, Workload

BODIES, STEPS = 100, 20
H, SOFTENING = 0.01, 0.1
WORKLOAD: Workload[Case] = Workload("nbody", f"{STEPS} leapfrog steps of {BODIES} bodies")
WORKLOAD.add(Case("f64", "float64", 1e-8, units=STEPS * BODIES * BODIES))


@WORKLOAD.inputs
def inputs(case: Case) -> list[Array]:
    """Masses as a column, places, velocities."""
    random = np.random.default_rng(0)
    masses = random.uniform(0.5, 1.5, (BODIES, 1)) / BODIES
    return [masses, random.standard_normal((BODIES, 3)), random.standard_normal((BODIES, 3)) * 0.1]


def acceleration(concatenate: Callable[..., Any], mass: Any, place: Any) -> Any:
    """With everything that the formula says; -1.5 is a power that nobody rewrote by hand."""
    x, y, z = place[:, 0:1], place[:, 1:2], place[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    cubed = (dx * dx + dy * dy + dz * dz + SOFTENING * SOFTENING) ** -1.5
    return concatenate([(d * cubed) @ mass for d in (dx, dy, dz)], 1)


def leap(concatenate: Callable[..., Any], mass: Any, place: Any, velocity: Any, force: Any) -> tuple[Any, Any, Any]:
    velocity = velocity + force * (H / 2)
    place = place + velocity * H
    force = acceleration(concatenate, mass, place)
    return place, velocity + force * (H / 2), force


def in_python(concatenate: Callable[..., Any], mass: Any, place: Any, velocity: Any) -> tuple[Any, Any]:
    force = acceleration(concatenate, mass, place)
    for _ in range(STEPS):
        place, velocity, force = leap(concatenate, mass, place, velocity, force)
    return place, velocity


@WORKLOAD.reference
def reference(case: Case, *arrays: Array) -> tuple[Array, Array]:
    return in_python(np.concatenate, *arrays)


@WORKLOAD.peer("numpy")
def numpy_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    return lambda *arrays: in_python(np.concatenate, *arrays)


def kernel(mass: Array, place: Array, velocity: Array) -> tuple[Array, Array]:
    """Coordinates in rows, one pass over the pairs a step, the power as a square root."""
    p, v = np.ascontiguousarray(place.T), np.ascontiguousarray(velocity.T)
    a = np.empty_like(p)
    for step in range(STEPS + 1):
        if step:
            v += a * (H / 2)
            p += v * H
        for i in prange(mass.shape[0]):
            ax, ay, az = 0.0, 0.0, 0.0
            for j in range(mass.shape[0]):
                dx, dy, dz = p[0, j] - p[0, i], p[1, j] - p[1, i], p[2, j] - p[2, i]
                r = dx * dx + dy * dy + dz * dz + SOFTENING * SOFTENING
                w = mass[j, 0] / (r * math.sqrt(r))
                ax += dx * w
                ay += dy * w
                az += dz * w
            a[0, i], a[1, i], a[2, i] = ax, ay, az
        if step:
            v += a * (H / 2)
    return p.T, v.T


@WORKLOAD.peer("numba")
def numba_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    return kit.jit(run, kernel)


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Case], *arrays: Any) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def run_all(mass: Any, place: Any, velocity: Any) -> Any:
        start = (place, velocity, acceleration(jnp.concatenate, mass, place))
        return jax.lax.fori_loop(0, STEPS, lambda i, s: leap(jnp.concatenate, mass, *s), start)[:2]

    return jax.jit(run_all)


@WORKLOAD.peer("torch")
def torch_builder(run: Run[Case], *arrays: Any) -> Callable[..., Any]:
    import torch

    return lambda *arrays: in_python(torch.cat, *arrays)


@WORKLOAD.peer("pytensor", "pytensor-c")
def pytensor_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    import pytensor
    import pytensor.tensor as pt

    mass, place, velocity = symbols = [pt.tensor(dtype="float64", shape=a.shape) for a in arrays]
    places, velocities, _ = pytensor.scan(
        lambda p, v, a, m: list(leap(pt.concatenate, m, p, v, a)), n_steps=STEPS, non_sequences=[mass],
        outputs_info=[place, velocity, acceleration(pt.concatenate, mass, place)], return_updates=False)  # fmt: skip
    return kit.pytensor_function(run, symbols, [places[-1], velocities[-1]])


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    """The number of bodies stays open."""
    import symc as sc

    mass, place, velocity = symbols = [
        sc.input(name, "float64", ("n", width)) for name, width in (("mass", 1), ("place", 3), ("velocity", 3))
    ]
    start = (place, velocity, acceleration(sc.concatenate, mass, place))
    end = sc.fori_loop(0, STEPS, lambda i, s: leap(sc.concatenate, mass, *s), start)
    return sc.compile(end[:2], symbols, threads=run.threads)
