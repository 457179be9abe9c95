"""Random bodies of loops, nested in one another, and Python loops that mean the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import symc as sc

Recipe = list[tuple]
OPS = ("add", "mul", "sin", "tanh", "dot", "choose", "roll", "total", "bell", "pick", "norm")
NESTED = ("scan", "while", "cond", "switch")


class Loops:
    """Loops as symc has them."""

    scan = staticmethod(sc.scan)
    cond = staticmethod(sc.cond)
    switch = staticmethod(sc.switch)

    def __init__(self, max_steps: int | None = None):
        self._max_steps = max_steps

    def while_loop(self, cond, body, init):
        return sc.while_loop(cond, body, init, max_steps=self._max_steps)


class Unrolled:
    """The same loops as ordinary expressions: written out step by step, choices by ``where``."""

    LIMIT = 4

    @staticmethod
    def scan(step, init, xs, reverse=False):
        n = int(xs.value.shape[0])
        carry, ys = init, {}
        for t in reversed(range(n)) if reverse else range(n):
            carry, ys[t] = step(carry, xs[t])
        return carry, sc.stack([ys[t] for t in range(n)])

    @classmethod
    def while_loop(cls, cond, body, init):
        going, carry = sc.asarray(True), init
        for _ in range(cls.LIMIT):
            going = going & cond(carry)
            carry = tuple(sc.where(going, new, old) for new, old in zip(body(carry), carry, strict=True))
        return carry

    @staticmethod
    def cond(pred, yes, no, *operands):
        return tuple(sc.where(pred, a, b) for a, b in zip(yes(*operands), no(*operands), strict=True))

    @staticmethod
    def switch(index, branches, *operands):
        results = [b(*operands) for b in branches]
        out = results[-1]
        for k in range(len(results) - 2, -1, -1):
            out = tuple(sc.where(index <= k, a, b) for a, b in zip(results[k], out, strict=True))
        return out


def recipe(rng: np.random.Generator, inner: Sequence[str] = (), steps: int = 5) -> Recipe:
    """A random body. ``inner``: the loop to put into it, the loop to put into that one, and so on."""
    out: Recipe = [(str(rng.choice(OPS)), int(rng.integers(8)), int(rng.integers(8))) for _ in range(steps)]
    if inner:
        bodies = [recipe(rng, inner[1:], 3) for _ in range({"cond": 2, "switch": 3}.get(inner[0], 1))]
        out.insert(int(rng.integers(len(out))), (inner[0], int(rng.integers(4)), int(rng.integers(4)), bodies))
    return out


def run(loops: Any, body: Recipe, pool: list, w: Any, index: Any) -> tuple:
    """Two vectors, made of those in ``pool`` as a recipe says. ``index`` is an integer from 0 to 2."""
    pool = list(pool)
    for name, i, j, *bodies in body:
        x, y = pool[i % len(pool)], pool[j % len(pool)]
        if bodies:
            pool += _nested(loops, name, bodies[0], x, y, w, index)
        else:
            pool.append(_op(name, x, y, w, index))
    return pool[-1], pool[-2]


def _op(name: str, x: Any, y: Any, w: Any, index: Any) -> Any:
    if name == "add":
        return 0.7 * x + y
    if name == "mul":
        return x * y
    if name in ("sin", "tanh"):
        return getattr(sc, name)(x + 0.1 * y)
    if name == "dot":
        return sc.tanh(x @ w) + 0.1 * y
    if name == "choose":
        return sc.where(x > y, x, 0.5 * y)
    if name == "roll":
        return sc.concatenate([x[1:], y[:1]])
    if name == "total":
        return x * sc.tanh(y.sum())
    if name == "bell":
        return sc.exp(-x * x) - y
    if name == "norm":
        return x / (1 + (y * y).sum())
    return w[index] * x + w.T[index] * 0.3


def _nested(loops: Any, name: str, bodies: Sequence[Recipe], x: Any, y: Any, w: Any, index: Any) -> list:
    if name == "scan":
        def step(carry, row):
            h, k = carry
            a, b = run(loops, bodies[0], [h, row, y], w, (k + index) % 3)
            return (sc.tanh(a), k + 1), b

        (h, _), ys = loops.scan(step, (x, sc.asarray(0)), w * sc.sin(y), reverse=len(bodies[0]) % 2 == 1)
        return [h, ys.sum(0) * 0.3]
    if name == "while":
        def advance(carry):
            k, h, g = carry
            a, b = run(loops, bodies[0], [h, g, y], w, (k + index) % 3)
            return k + 1, sc.tanh(a), sc.tanh(b)

        out = loops.while_loop(lambda c: (c[0] < 3) & ((c[1] * c[1]).sum() < 2.5), advance, (sc.asarray(0), x, y))
        return list(out[1:])
    branches = [lambda a, b, body=body: run(loops, body, [a, b], w, index) for body in bodies]
    if name == "cond":
        return list(loops.cond(x.sum() > y.sum(), *branches, x, y))
    return list(loops.switch(index, branches, x, y))
