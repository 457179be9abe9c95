"""Random programs of movements, look-ups and updates: the optimizer keeps what they compute, and their gradients."""

import numpy as np
import pytest

import symc as sc
from symc.errors import SymcError
from symc.ir.reference import evaluate_function
from symc.opt import optimize

pytestmark = pytest.mark.long

BATCH = 25


class Program:
    """A pool of values that grows by one random op after another."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        n = "n" if self.rng.random() < 0.5 else 5
        self.inputs = [sc.input("x", "float64", shape=(n, 4)), sc.input("y", "float64", shape=(n, 4)),
                       sc.input("v", "float64", shape=(4,)), sc.input("i", "int64", shape=(3,)),
                       sc.input("k", "int64", shape=()), sc.input("c", "bool", shape=(4,))]
        normal, whole = self.rng.normal, self.rng.integers
        self.arrays = [normal(size=(5, 4)), normal(size=(5, 4)), normal(size=4),
                       whole(-4, 4, 3), np.array(whole(-4, 4)), self.rng.random(4) < 0.5]  # fmt: skip
        self.pool = list(self.inputs[:3])

    def pick(self, ndim=None):
        found = [t for t in self.pool if ndim is None or t.ndim == ndim] or self.inputs[:2]
        return found[self.rng.integers(len(found))]

    def step(self):
        name = self.rng.choice(STEPS)
        try:
            made = getattr(self, name)()
        except (SymcError, ValueError, IndexError):
            return  # shapes that do not fit
        if all(not isinstance(s, int) or 0 < s < 40 for s in made.shape) and made.ndim <= 3:
            self.pool.append(made)

    def index(self):
        x, (i, k) = self.pick(), self.inputs[3:5]
        slices = [slice(1, None), slice(None, None, -1), slice(None, -1), slice(0, 3), slice(1, 4, 2)]
        return x[[*slices, 0, -1, i, k, None, sc.arange(1, 3), np.array([2, 0, 0])][self.rng.integers(12)]]

    def column(self):
        x, (i, k) = self.pick(2), self.inputs[3:5]
        return x[:, [slice(1, 3), slice(None, None, -1), 1, i, k, slice(0, 2)][self.rng.integers(6)]]

    def both(self):
        x, (i, k) = self.pick(2), self.inputs[3:5]
        places = [(i, i), (k, slice(1, 3)), (k, k), (sc.arange(2), sc.arange(2)), (slice(1, 3), i)]
        return x[places[self.rng.integers(5)]]

    def put(self):
        x, (i, k) = self.pick(), self.inputs[3:5]
        place = [i, k, slice(1, 3), 0, sc.arange(1, 4), np.array([1, 3])][self.rng.integers(6)]
        u = [1.5, x[place] * 2, self.pick(x.ndim)[place], x[place]][self.rng.integers(4)]
        base = [x, sc.zeros(x.shape)][self.rng.integers(2)]
        return getattr(base.at[place], ["set", "add", "set", "multiply"][self.rng.integers(4)])(u)

    def move(self):
        x = self.pick()
        return [lambda: x.T, lambda: sc.flip(x), lambda: sc.roll(x, 1), lambda: x[..., None] * sc.ones(3),
                lambda: x.reshape(-1), lambda: sc.pad(x, 1), lambda: sc.tile(x, 2), lambda: sc.repeat(x, 2)][
            self.rng.integers(8)]()  # fmt: skip

    def join(self):
        x, y = self.pick(), self.pick()
        return [lambda: sc.concatenate([x, y]), lambda: sc.stack([x, x * 2]), lambda: sc.concatenate([x[:2], x[2:]]),
                lambda: sc.concatenate([x[1:], y[:1]])][self.rng.integers(4)]()  # fmt: skip

    def work(self):
        x, y = self.pick(), self.pick()
        return [lambda: sc.sin(x), lambda: x + y, lambda: x * y, lambda: x - y, lambda: sc.where(x > 0, x, y),
                lambda: sc.where(self.inputs[5], x, y), lambda: sc.where(x > y, sc.cos(x), sc.cos(y))][
            self.rng.integers(7)]()  # fmt: skip

    def reduce(self):
        x = self.pick()
        axis = int(self.rng.integers(x.ndim)) if x.ndim else None
        return [sc.sum, sc.max, sc.cumsum, sc.sort, sc.mean][self.rng.integers(5)](x, axis=axis)

    def product(self):
        x, y = self.pick(2), self.pick(2)
        return [lambda: x @ y.T, lambda: x.T @ y, lambda: x @ self.inputs[2]][self.rng.integers(3)]()


STEPS = ["index", "index", "column", "both", "put", "put", "move", "join", "work", "work", "reduce", "product"]


def check(last, p):
    try:
        slope = sc.grad(sum(sc.sum(sc.sin(t)) for t in last), p.inputs[0], disconnected="zero")
        f = sc.compile([*last, slope], p.inputs, mode="reference")._compilation.stages["input"]
        wanted = evaluate_function(f, p.arrays)
    except SymcError:
        return 0  # sizes that do not fit
    if any(isinstance(n, int) and n != m for i, a in zip(f.inputs, p.arrays, strict=True)
           for n, m in zip(i.type.shape, a.shape, strict=True)):  # fmt: skip
        return 0  # a size turned out to be another number
    out = optimize(f, strict=True, verify=True)
    before = None
    for name, stage in out.stages.items():
        if stage.body is before:
            continue  # the pass changed nothing
        before = stage.body
        for a, b in zip(evaluate_function(stage, p.arrays), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8, err_msg=f"{name}:\n{f}\n{stage}")
    return sum(r.name != "canonicalize" and r.fired for r in out.report)


@pytest.mark.parametrize("batch", range(4))
def test_random_programs_mean_the_same_after_every_pass(batch):
    fired = 0
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        p = Program(seed)
        for _ in range(12):
            p.step()
        fired += check(p.pool[-3:], p)
    assert fired > BATCH
