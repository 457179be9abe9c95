"""Everyday programs of users of each kind, as they are written with NumPy: one case a program of `benchmarks/everyday`.

Nothing is prepared for a compiler: the function that NumPy runs is the one that JAX and symc get.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.everyday import ALL, TOLERANCES, load_all
from benchmarks.workload import Array, Case, Run, Workload

PROGRAMS = load_all()
WORKLOAD: Workload[Case] = Workload("everyday", "short functions of arrays, as users of each kind write them")
WORKLOAD.add(*(
    Case(p.name, p.dtype, TOLERANCES[p.dtype], skip=tuple(set(ALL) - set(p.peers))) for p in PROGRAMS.values()
))  # fmt: skip


@WORKLOAD.inputs
def inputs(case: Case) -> list[Array]:
    return PROGRAMS[case.name].arguments()


@WORKLOAD.reference
def reference(case: Case, *arrays: Array) -> Any:
    return PROGRAMS[case.name].function(np, *arrays)


@WORKLOAD.peer("numpy")
def numpy_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    return functools.partial(PROGRAMS[run.case.name].function, np)


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Case], *arrays: Any) -> Callable[..., Any]:
    import jax

    return jax.jit(functools.partial(PROGRAMS[run.case.name].function, jax.numpy))


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Case], *arrays: Array) -> Callable[..., Any]:
    import symc as sc

    return sc.jit(functools.partial(PROGRAMS[run.case.name].function, sc), threads=run.threads)
