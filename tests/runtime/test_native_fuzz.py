"""Random programs of updates, running sums, sorting, gathers and elementwise ops, native against the reference."""

from __future__ import annotations

import numpy as np
import pytest

from symc.codegen.plan.check_plan import check_plan
from symc.codegen.plan.planner import make_plan
from symc.ir.dim import size_name
from symc.ir.function import Function, Input, function
from symc.ir.op import lookup
from symc.ir.ops.kernel import check_index
from symc.ir.reference import evaluate_function
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input
from symc.opt import optimize
from symc.opt.fusion.fuse import fuse
from symc.runtime.cpu.program import load

N = size_name("n")


class Grower:
    """A function grown value by value; every value is f64 of shape (n, 3), (n,) or (3,), or an index."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        types = [TensorType("f64", (N, 3)), TensorType("f64", (N, 3)), TensorType("f64", (N,)), TensorType("f64", (3,)),
                 TensorType("i64", (N,)), TensorType("i64", ())]
        self.inputs = [fresh_input(t) for t in types]
        self.pool: list[Value] = list(self.inputs[:4])
        self.rows: list[Value] = [check_index(self.inputs[4], size=N)]
        self.place = self.inputs[5]

    def pick(self, ndim: int | None = None, like: Value | None = None) -> Value:
        fits = [v for v in self.pool if (ndim is None or v.ndim == ndim) and (like is None or v.type is like.type)]
        k = len(fits)
        return fits[int(self.rng.integers(max(0, k - 4), k))] if self.rng.random() < 0.7 else fits[
            int(self.rng.integers(k))]

    def step(self) -> None:
        steps = [self.pointwise, self.pointwise, self.pointwise, self.scatter, self.scatter, self.gather, self.running,
                 self.sort, self.window, self.fold, self.spread, self.order]
        self.pool.append(steps[int(self.rng.integers(len(steps)))]())

    def pointwise(self) -> Value:
        x = self.pick()
        name = str(self.rng.choice(["add", "mul", "sub", "maximum", "sin", "neg"]))
        return lookup(name)(x) if name in ("sin", "neg") else lookup(name)(x, self.pick(like=x))

    def scatter(self) -> Value:
        x = self.pick(int(self.rng.integers(1, 3)))
        if x.shape[0] is not N:
            x = self.pick(2)
        rows = self.rows[int(self.rng.integers(len(self.rows)))]
        into = x if self.rng.random() < 0.7 else x * 0.0
        mode = str(self.rng.choice(["set", "add", "mul", "max"]))
        return lookup("scatter")(into, self.pick(like=x), rows, axes=(0,), mode=mode)

    def gather(self) -> Value:
        return lookup("gather")(self.pick(2), self.rows[int(self.rng.integers(len(self.rows)))], axes=(0,))

    def running(self) -> Value:
        x = self.pick()
        given = dict(axis=int(self.rng.integers(x.ndim)), reverse=bool(self.rng.random() < 0.5))
        if self.rng.random() < 0.3:
            return lookup("linrec")(lookup("sin")(x), self.pick(like=x), **given)
        return lookup(str(self.rng.choice(["cumsum", "cumprod"])))(lookup("sin")(x), **given)

    def sort(self) -> Value:
        return lookup("sort")(self.pick(2), axis=1)

    def order(self) -> Value:
        x = self.pick(2)
        along = lookup("iota")(shape=(N, 3), axis=0, dtype=np.dtype("i8"))
        return lookup("gather")(x, along, lookup("argsort")(self.pick(like=x), axis=1), axes=(0, 1))

    def window(self) -> Value:
        x = self.pick(2)
        zero = lookup("size")(value=0)
        if self.rng.random() < 0.5:
            return lookup("dynamic_slice")(x, self.place, zero, size=(N, 3))
        row = lookup("reshape")(self.last_row(), shape=(1, 3))
        return lookup("dynamic_update_slice")(x, row, self.place, zero)

    def last_row(self) -> Value:
        return next(v for v in reversed(self.pool) if v.shape == (3,))

    def fold(self) -> Value:
        return lookup("sum")(self.pick(2), axes=(int(self.rng.integers(2)),))

    def spread(self) -> Value:
        x = self.pick(1)
        return lookup("broadcast")(x, axes=(1 if x.shape == (3,) else 0,), shape=(N, 3))

    def function(self, steps: int) -> Function:
        for _ in range(steps):
            self.step()
        inputs = [(v, Input(f"x{k}", v.type)) for k, v in enumerate(self.inputs)]
        return function("fuzz", inputs, list(dict.fromkeys(self.pool[4:][-3:])))


def arrays_for(n: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [*[rng.uniform(-1, 1, s) for s in ((n, 3), (n, 3), (n,), (3,))], rng.integers(0, max(n, 1), n),
            np.array(rng.integers(-2, 9))]


@pytest.mark.parametrize("seed", range(12))
def test_native_results_are_the_references(seed):
    f = Grower(seed).function(14)
    donated = frozenset({0, 2}) if seed % 2 else frozenset()
    for g in (fuse(f), optimize(f, strict=True, verify=True).function):
        plan = make_plan(g, donated)
        check_plan(plan)
        program = load(plan)
        for n in (5, 1, 9):
            arrays = arrays_for(n, seed)
            want = evaluate_function(f, arrays)
            got = program.run([a.copy() for a in arrays], {"n": n})
            for a, b in zip(got, want, strict=True):
                assert a.dtype == b.dtype and a.shape == b.shape
                np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-7 * max(1.0, float(np.abs(b).max(initial=0))))
