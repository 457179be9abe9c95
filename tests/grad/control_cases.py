"""What the tests of derivatives of loops share."""

from __future__ import annotations

from collections import Counter

import numpy as np

import symc as sc
from symc.ir.traverse import every_value, postorder
from tests.grad.control_fuzz import recipe, run

RNG = np.random.default_rng(7)


def every(*outputs):
    """All values of graphs, those in regions too."""
    out = dict.fromkeys(postorder([o.value for o in outputs]))
    for r in dict.fromkeys(r for v in list(out) for r in v.regions):
        out.update(dict.fromkeys(every_value(r)))
    return list(out)


def loops(*outputs):
    """The control ops of graphs, operands first."""
    return [v for v in postorder([o.value for o in outputs]) if v.regions]


def ops(v):
    return Counter(o.op.name for o in postorder(v.regions[-1].results))


def values(outputs, inputs, arrays):
    """Numbers for a nest of outputs."""
    return sc.compile(outputs, inputs, mode="reference")(*arrays)


def close(got, want, **tolerance):
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_allclose(a, b, **{"rtol": 1e-8, "atol": 1e-10, **tolerance}, err_msg=f"result {k}")


def rnn(h0, xs, w, u, b, **options):
    return sc.scan(lambda h, x: ((n := sc.tanh(x @ w + h @ u + b)), n * n), h0, xs, **options)


def rnn_inputs(length="t"):
    shapes = {"h0": (3,), "xs": (length, 2), "w": (2, 3), "u": (3, 3), "b": (3,)}
    return [sc.input(n, "float64", s) for n, s in shapes.items()]


def rnn_arrays(length):
    return [RNG.normal(size=s) for s in [(3,), (length, 2), (2, 3), (3, 3), (3,)]]


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
