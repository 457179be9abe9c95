"""Callers at once: eight threads that call one function, as a server does. One call here is 8 x 20 calls.

With one core this shows what a call adds by locking; with more (``-t 2``) whether callers run beside each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from benchmarks import kit
from benchmarks.workload import Array, Built, Case, Run, Workload

CALLERS, CALLS, ROWS, COLUMNS = 8, 20, 64, 256
WORKLOAD: Workload[Case] = Workload("concurrent", f"{CALLERS} threads call tanh(x @ w).sum(1) of {ROWS} x {COLUMNS}")
WORKLOAD.add(Case("8-f32", "float32", 1e-5, units=CALLERS * CALLS))


@WORKLOAD.inputs
def inputs(case: Case) -> list[Array]:
    """The weights, then the rows of each caller."""
    random = np.random.default_rng(0)
    arrays = [random.standard_normal((COLUMNS, COLUMNS)) / 16]
    arrays += [random.standard_normal((ROWS, COLUMNS)) for _ in range(CALLERS)]
    return [a.astype(case.dtype) for a in arrays]


def formula(m: Any, x: Any, w: Any) -> Any:
    return m.tanh(x @ w).sum(1)


@WORKLOAD.reference
def reference(case: Case, w: Array, *rows: Array) -> list[Array]:
    return [formula(np, x, w) for x in rows]


def at_once(run: Run[Case], function: Callable[..., Any], arrays: Sequence[Any]) -> Built:
    """All callers in threads of a pool; a caller's last result is checked."""
    pool = ThreadPoolExecutor(CALLERS)
    w, *rows = arrays

    def caller(x: Any) -> Any:
        for _ in range(CALLS):
            result = function(x, w)
        kit.wait(run.peer, result)
        return result

    return Built(lambda: list(pool.map(caller, rows)), [])


@WORKLOAD.peer("numpy")
def numpy_builder(run: Run[Case], *arrays: Array) -> Built:
    return at_once(run, lambda x, w: formula(np, x, w), arrays)


@WORKLOAD.peer("jax")
def jax_builder(run: Run[Case], *arrays: Any) -> Built:
    import jax
    import jax.numpy as jnp

    return at_once(run, jax.jit(lambda x, w: formula(jnp, x, w)), arrays)


@WORKLOAD.peer("torch", "torch.compile")
def torch_builder(run: Run[Case], *arrays: Any) -> Built:
    import torch

    return at_once(run, kit.torch_function(run, lambda x, w: formula(torch, x, w)), arrays)


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Case], *arrays: Array) -> Built:
    import symc as sc

    x, w = sc.input("x", "float32", ("n", COLUMNS)), sc.input("w", "float32", (COLUMNS, COLUMNS))
    return at_once(run, sc.compile(formula(sc, x, w), [x, w], threads=run.threads), arrays)
