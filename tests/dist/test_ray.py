"""Compiled functions as arguments of Ray's tasks; where Ray is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import symc as sc

if importlib.util.find_spec("ray") is None:
    pytest.skip("Ray is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 << 20, log_to_driver=False)
    yield ray
    ray.shutdown()


def test_functions_travel(ray: Any) -> None:
    x, w = sc.vector("x"), sc.shared(np.ones(3), "w")
    f = sc.compile([sc.tanh(x * w).sum(), sc.grad(sc.tanh(x * w).sum(), x)], [x])
    step = sc.compile((x * w).sum(), [x], updates={w: w + x})
    a = np.arange(3.0)
    call = ray.remote(lambda f, a: f(a))
    for got in ray.get([call.remote(f, a) for _ in range(8)]):
        assert [g.tobytes() for g in got] == [g.tobytes() for g in f(a)]
    assert ray.get(call.remote(step, a)) == 3 and step.shared["w"].get_value()[1] == 1  # a copy there, unchanged here


def test_actors_keep_states(ray: Any) -> None:
    x, total = sc.scalar("x"), sc.shared(0.0, "total")
    add = sc.compile(total + x, [x], updates={total: total + x})

    @ray.remote
    class Counter:
        def __init__(self, f: Any):
            self.f = f

        def add(self, k: float) -> float:
            return float(self.f(k))

    counter = Counter.remote(add)
    assert ray.get([counter.add.remote(k) for k in (1.0, 2.0, 3.0)]) == [1.0, 3.0, 6.0]
