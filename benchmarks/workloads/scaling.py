"""Growth of symc's own work with the graph: building, differentiating and optimizing a long chain.

One call is one such compilation without native code, so the steady columns are optimization times and the time per
step says whether they grow linearly.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.workload import Array, Built, Case, Run, Workload


@dataclass(frozen=True)
class Chain(Case):
    steps: int = 0


WORKLOAD: Workload[Chain] = Workload("scaling", "optimizing h = tanh(1.01*h + 0.5), repeated, with its gradient")
WORKLOAD.add(*(Chain(f"steps{n:04d}", "float64", 1e-9, units=n, steps=n) for n in (100, 400, 1600, 6400)))


@WORKLOAD.inputs
def inputs(case: Chain) -> list[Array]:
    return [np.linspace(-1, 1, 8)]


@WORKLOAD.reference
def reference(case: Chain, x: Array) -> list[Array]:
    h, slope = x, np.ones_like(x)
    for _ in range(case.steps):
        h = np.tanh(1.01 * h + 0.5)
        slope = slope * 1.01 * (1 - h * h)
    return [h.sum(), slope]


def optimize(sc: Any, outputs: Any, symbols: Any) -> Any:
    """The entry of symc that optimizes a graph and stops before native code."""
    from symc.opt import DEFAULT

    return sc.compile(outputs, symbols, mode="reference", pipeline=DEFAULT)


@WORKLOAD.peer("symc")
def symc_builder(run: Run[Chain], x: Array) -> Built:
    """Each call names its input anew, so that no memory of an earlier call's graph can help."""
    import symc as sc

    numbers = itertools.count()

    def build() -> Any:
        h = symbol = sc.input(f"x{next(numbers)}", "float64", shape=("n",))
        for _ in range(run.case.steps):
            h = sc.tanh(h * 1.01 + 0.5)
        cost = h.sum()
        return optimize(sc, [cost, sc.grad(cost, symbol)], [symbol])

    return Built(build, [], lambda function: function(x))
