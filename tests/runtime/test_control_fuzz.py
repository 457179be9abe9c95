"""Random loops and branches, nested, agree with their references: as kernels, and as steps of the plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import symc as sc
from symc.codegen.plan.check_plan import check_plan
from symc.opt import DEFAULT

Rng = np.random.Generator
W = np.linspace(-0.4, 0.5, 9).reshape(3, 3)


def choose(rng: Rng, pool: Sequence[Any]) -> Any:
    return pool[rng.integers(len(pool))]


def expression(rng: Rng, pool: Sequence[Any]) -> Any:
    """A vector of three, made of others."""
    a, b = choose(rng, pool), choose(rng, pool)
    forms: list[Callable[[], Any]] = [
        lambda: a,
        lambda: a + b,
        lambda: a * 0.5 - b * 0.25,
        lambda: W @ a,
        lambda: sc.tanh(a) * b,
        lambda: a * 0.5 + sc.sum(b) * 0.1,
        lambda: sc.tanh(W @ a + b),
    ]
    return choose(rng, forms)()


def body(rng: Rng, pool: Sequence[Any], results: int, levels: int) -> list[Any]:
    """Values of a body; some are what it was given. Loops and branches inside, up to ``levels`` deep."""
    pool = list(pool)
    for _ in range(rng.integers(0, 4)):
        pool.append(expression(rng, pool))
    if levels and rng.random() < 0.7:
        pool += choose(rng, [scan, while_loop, cond])(rng, pool, levels - 1)
    return [choose(rng, pool) for _ in range(results)]


def again(rng: Rng) -> Callable[[], Rng]:
    """The same random numbers each time: a body may be traced twice."""
    seed = int(rng.integers(1 << 30))
    return lambda: np.random.default_rng(seed)


def some(rng: Rng, pool: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(choose(rng, pool) for _ in range(rng.integers(1, 4)))


def scan(rng: Rng, pool: Sequence[Any], levels: int) -> list[Any]:
    init, fresh = some(rng, pool), again(rng)

    def step(carry: Any, x: Any) -> Any:
        new = body(fresh(), [*carry, *pool, sc.zeros(3) + x], len(init) + 2, levels)
        return tuple(new[: len(init)]), tuple(new[len(init) :])

    carry, ys = sc.scan(step, init, choose(rng, pool), reverse=bool(rng.integers(2)))
    return [*carry, *[y.sum(axis=0) for y in ys], *[y[0] for y in ys]]


def while_loop(rng: Rng, pool: Sequence[Any], levels: int) -> list[Any]:
    init, fresh, steps, least = some(rng, pool), again(rng), int(rng.integers(0, 4)), float(rng.normal()) * 2
    return list(sc.while_loop(
        lambda c: sc.logical_and(c[1] < steps, sc.sum(c[0][0]) > least),
        lambda c: (tuple(body(fresh(), [*c[0], *pool], len(init), levels)), c[1] + 1),
        (init, 0),
    )[0])


def cond(rng: Rng, pool: Sequence[Any], levels: int) -> list[Any]:
    def branch(fresh: Callable[[], Rng]) -> Callable[..., Any]:
        return lambda *given: tuple(body(fresh(), [*given, *pool], 2, levels))

    return list(sc.cond(sc.sum(choose(rng, pool)) > 0, branch(again(rng)), branch(again(rng)), *some(rng, pool)))


@pytest.mark.parametrize("seed", range(16))
def test_random_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    h, x = [sc.vector(f"h{k}") for k in range(3)], sc.matrix("x")
    pool = [sc.zeros(3) + v for v in h]
    carries, ys, fresh = int(rng.integers(1, 5)), int(rng.integers(0, 4)), again(rng)

    def step(carry: Any, row: Any) -> Any:
        new = body(fresh(), [*carry, row, pool[0]], carries + ys, 1 + (seed % 4 == 0))
        return tuple(new[:carries]), tuple(new[carries:])

    init = tuple(choose(rng, pool if seed % 3 else h) for _ in range(carries))
    carry, stacks = sc.scan(step, init, x, reverse=bool(rng.integers(2)))
    outputs = [*carry, *stacks, pool[0] + 1]
    f = sc.compile(outputs, [*h, x], pipeline=DEFAULT + ",-small_loops" if seed % 2 else None)
    g = sc.compile(outputs, [*h, x], mode="reference")
    check_plan(f._compilation.plan)
    for n in (0, 1, 2, 3, 6):
        arrays = [*[rng.normal(size=3) * 0.5 for _ in h], rng.normal(size=(n, 3)) * 0.5]
        want = g(*arrays)
        for _ in range(2):
            for a, b in zip(f(*arrays), want, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
