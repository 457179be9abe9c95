"""Derivatives of loops and branches: equal to those of the same loop written out, in every mode and order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import symc as sc
from tests.control_fuzz import NESTED, Loops, Unrolled, recipe, run

RNG = np.random.default_rng(7)


def values(outputs, inputs, arrays):
    """Numbers for a nest of outputs."""
    return sc.compile(outputs, inputs, mode="reference")(*arrays)


def close(got, want, **tolerance):
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_allclose(a, b, **{"rtol": 1e-8, "atol": 1e-10, **tolerance}, err_msg=f"result {k}")


# --- fuzzed bodies against Python loops -------------------------------------------------------------------------------


class Program:
    """A scan over a random body: a cost, its inputs, and numbers for them."""

    def __init__(self, seed: int, inner: tuple[str, ...], steps: int = 3):
        rng = np.random.default_rng(seed)
        self.body, self.reverse = recipe(rng, inner), bool(seed % 2)
        shapes = {"h": (3,), "xs": (steps, 3), "w": (3, 3), "u": (3,)}
        self.inputs = [sc.input(n, "float64", s) for n, s in shapes.items()]
        self.arrays = [rng.normal(size=s) * 0.7 for s in shapes.values()]
        self.moves = [rng.normal(size=s) for s in shapes.values()]
        self.weights = [rng.normal(size=3), rng.normal(size=(steps, 3))]

    def cost(self, loops, inputs=None):
        h0, xs, w, u = inputs or self.inputs

        def step(carry, x):
            h, k = carry
            a, b = run(loops, self.body, [h, x, u], w, k % 3)
            return (0.5 * h + sc.sin(a), k + 1), b

        (h, _), ys = loops.scan(step, (h0, sc.asarray(0)), xs, reverse=self.reverse)
        return (h * self.weights[0]).sum() + (ys * self.weights[1]).sum()

    def derivatives(self, loops):
        """Gradient, tangent, Hessian times a direction, and the same by reverse over reverse."""
        y = self.cost(loops)
        gradient = sc.grad(y, self.inputs, disconnected="zero")
        slope = sum((g * m).sum() for g, m in zip(gradient, self.moves, strict=True))
        return [y, *gradient, sc.jvp(y, self.inputs, self.moves),
                *sc.hvp(y, self.inputs, self.moves, disconnected="zero"),
                *sc.grad(slope, self.inputs, disconnected="zero")]


NESTS = [(), *((n,) for n in NESTED), *itertools.product(NESTED, NESTED)]


@pytest.mark.parametrize("seed, inner", [(k * 100 + j, n) for k, n in enumerate(NESTS) for j in range(2)])
def test_agrees_with_python_loops(seed, inner):
    p = Program(seed, inner)
    got = values(p.derivatives(Loops(max_steps=5 if seed % 3 else None)), p.inputs, p.arrays)
    want = values(p.derivatives(Unrolled()), p.inputs, p.arrays)
    close(got, want)
