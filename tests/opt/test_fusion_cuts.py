"""Where large elementwise formulas are cut into kernels: by arrays that cross, not by a number of values."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.driver.build import build
from symc.ir.reference import evaluate_function
from symc.ir.traverse import postorder
from symc.opt import optimize
from symc.opt.fusion.cuts import MOST
from symc.tensors.callsite import caller

pytestmark = pytest.mark.long

N = 1000


def equation_of_state() -> tuple[list, list]:
    """48 terms, with the gradient by both variables."""
    rng = np.random.default_rng(5)
    d, t = sc.vector("d"), sc.vector("t")
    a = 0.0
    for n in rng.normal(size=48):
        i, j, k = (int(p) for p in rng.integers((1, -4, 0), (9, 40, 5)))
        a = a + n * d**i * t ** (j / 4) * (sc.exp(-d**k) if k else 1.0)
    return [a, *sc.grad(sc.sum(a), [d, t])], [d, t]


def test_a_wide_formula_and_its_gradient_stay_together():
    outputs, inputs = equation_of_state()
    f = sc.compile(outputs, inputs)
    data = [np.random.default_rng(k).uniform(0.2, 1.5, N) for k in (0, 1)]
    moved = sum(row.moved for row in f.profile(*data)) / data[0].nbytes
    assert sum(k.launches for k in f.kernels) <= 3 and moved <= 60  # cut at 64 values: 11 kernels, 506 arrays
    for got, want in zip(f(*data), sc.compile(outputs, inputs, mode="reference")(*data), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11)


def test_a_long_chain_with_gradient_keeps_one_array_a_step():
    x = sc.vector("x")
    h = x
    for _ in range(600):
        h = sc.tanh(h * 1.01 + 0.5)
    f = sc.compile([h, sc.grad(sc.sum(h), [x])[0]], [x])
    data = np.linspace(-1, 1, N)
    assert sum(row.moved for row in f.profile(data)) / data.nbytes <= 1300  # written once, read once
    assert len(f.kernels) <= 8  # equal steps are equal kernels


def test_a_serial_chain_is_cut_although_one_array_crosses():
    """A processor computes several elements of a short chain at a time."""
    x = sc.vector("x")
    h = x
    for k in range(400):
        h = h * x * 0.9 + 1.0 / (k + 1)
    f = sc.compile(h, [x])
    assert 12 <= sum(k.launches for k in f.kernels) <= 20


def test_sums_along_a_loop_are_added_where_their_terms_are():
    x, w = sc.vector("x"), sc.vector("w")
    h = x
    for _ in range(200):
        h = sc.tanh(h * w + x)
    f = sc.compile([h, *sc.grad(sc.sum(h), [x, w])], [x, w])
    data = [np.linspace(-1, 1, N)] * 2
    assert sum(row.moved for row in f.profile(*data)) / data[0].nbytes <= 500  # 1010 with the cut at 64


def test_a_kernel_reads_few_arrays_where_many_are_combined():
    xs = [sc.vector(f"x{k}") for k in range(40)]
    y = sum(sc.tanh(x * (1 + k)) * xs[(k * 7) % 40] for k, x in enumerate(xs))
    f = sc.compile([y, *sc.grad(sc.sum(y), xs)], xs)
    assert all(len(k.source.split(":")[0].split(",")) <= 60 for k in f.kernels)  # not the 81 that there are


@pytest.mark.parametrize("seed", range(8))
def test_random_formulas_are_what_they_were(seed: int):
    """Wide and narrow graphs, with results in the middle, folds and rows: kernels in an order in which each finds what
    it reads, none with more values than there may be."""
    rng = np.random.default_rng(seed)
    x = sc.matrix("x")
    values = [x, x * 0.5, sc.sum(x, axis=1, keepdims=True) + 0.0 * x]
    span = int(rng.integers(2, 60))
    for _ in range(int(rng.integers(150, 700))):
        a, b = (values[int(k)] for k in rng.integers(max(0, len(values) - span), len(values), 2))
        kind = int(rng.integers(7 if seed % 2 else 6))
        values.append([a + b, a * b * 0.5, sc.tanh(a), a - b * 0.3, sc.sin(b), sc.where(a > b, a, b),
                       sc.max(a, axis=1, keepdims=True) - b][kind])
    chosen = [values[int(k)] for k in rng.integers(0, len(values), 3)]
    outputs = [*chosen, sum(values[-span:]), sc.sum(values[-1])]
    data = rng.normal(size=(3, 5))
    source = build(outputs, [x], None, None, (), "f", caller()).function
    final = optimize(source, "canonicalize,simplify,fuse").function
    kernels = [v for v in final.values() if v.op.name == "fused"]
    assert kernels and all(len(postorder(k.regions[0].results)) <= 2 * MOST for k in kernels)
    for got, want in zip(evaluate_function(final, [data]), evaluate_function(source, [data]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-9)
