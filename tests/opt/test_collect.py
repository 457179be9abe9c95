"""Sums, products, powers and reductions: what users write ends as what they would have written with more time."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.driver.build import build
from symc.ir.reference import evaluate_function
from symc.opt import UNFUSED, optimize
from symc.opt.engine.provenance import expression
from symc.tensors.callsite import caller


def optimized(y, inputs, extra=""):
    f = build([y], inputs, None, None, (), "f", caller()).function
    return f, optimize(f, UNFUSED.removesuffix(",hoist_movements") + extra, strict=True, verify=True).function


X = [sc.vector(name, shape=(4,)) for name in "xyz"]
A, B, V = sc.matrix("a", shape=(4, 4)), sc.matrix("b", shape=(4, 4)), sc.vector("v", shape=(4,))
BIG = [sc.matrix(name, shape=(64, 64)) for name in "pqr"]

#: (name, what users write, inputs, ops of the result in order, what the pipeline is asked for)
FORMS = [
    ("numbers of a sum", lambda x, y, z: x + 2 + y + 3, X, ["add", "add"], ""),
    ("numbers of a product", lambda x, y, z: 2 * x / 4, X, ["mul"], ""),
    ("numbers around a quotient", lambda x, y, z: 3 / x * 7, X, ["div"], ""),
    ("like terms", lambda x, y, z: 3 * x + y + 2 * x, X, ["mul", "add"], ""),
    ("like terms that leave one", lambda x, y, z: 3 * x - 2 * x, X, [], ""),
    ("a common factor", lambda x, y, z: x * z + y * z, X, ["add", "mul"], ""),
    ("a common factor with signs", lambda x, y, z: x * z - z * y, X, ["sub", "mul"], ""),
    ("a common divisor", lambda x, y, z: x / z + y / z, X, ["add", "div"], ""),
    ("a common array", lambda p, q, r: p @ q + p @ r, BIG, ["add", "dot"], ""),
    ("a term that cancels", lambda x, y, z: x + y - x, X, [], ",+nan-unsafe"),
    ("a factor that cancels", lambda x, y, z: x * y / x, X, [], ",+nan-unsafe"),
    ("a quotient of a product", lambda x, y, z: x / (x * y), X, ["div"], ",+nan-unsafe"),
    ("a quotient in a product", lambda x, y, z: x * (y / x + z), X, ["mul", "add"], ",+nan-unsafe"),
    ("difference of squares", lambda x, y, z: x * x - y**2, X, ["add", "sub", "mul"], ""),
    ("one minus a square", lambda x, y, z: 1 - x**2, X, ["add", "sub", "mul"], ""),
    ("fifth power", lambda x, y, z: x**5, X, ["mul", "mul", "mul"], ""),
    ("power of a half", lambda x, y, z: x**0.5, X, ["sqrt"], ""),
    ("power of three halves", lambda x, y, z: x**1.5, X, ["eq", "where", "sqrt", "mul"], ""),
    ("power of minus a half", lambda x, y, z: x**-0.5, X, ["eq", "where", "sqrt", "div", "abs"], ""),
    ("power of two", lambda x, y, z: 2.0**x, X, ["exp2"], ""),
    ("exponentials", lambda x, y, z: sc.exp(x) * sc.exp(y) / sc.exp(z), X, ["add", "sub", "exp"], ""),
    ("square of an exponential", lambda x, y, z: sc.exp(x) * y * sc.exp(x + y), X, ["mul", "add", "exp", "mul"], ""),
    ("a scaled sum", lambda a, b, v: (a * v[0]).sum(), [A, B, V], ["slice", "reshape", "sum", "mul"], ""),
    ("a sum of sums", lambda a, b, v: a.sum(0).sum(), [A, B, V], ["sum"], ""),
    ("a mean of means", lambda a, b, v: a.mean(1).mean(), [A, B, V], ["sum", "mul"], ""),
    ("a sum of a broadcast", lambda a, b, v: sc.broadcast_to(v, (3, 4)).sum(), [A, B, V], ["sum", "mul"], ""),
    ("the greatest of negated", lambda a, b, v: -sc.max(-a), [A, B, V], ["min"], ""),
    ("the greater of negated", lambda x, y, z: -sc.maximum(-x, -y), X, ["minimum"], ""),
    ("the greatest of greatest", lambda a, b, v: a.max(0).max(), [A, B, V], ["max"], ""),
    ("two bounds", lambda x, y, z: sc.maximum(sc.maximum(x, 1), 2), X, ["maximum"], ""),
    ("a sum of a concatenation", lambda x, y, z: sc.concatenate([x, y]).sum(), X, ["sum", "sum", "add"], ""),
    ("the end of a running sum", lambda x, y, z: sc.cumsum(x)[-1], X, ["sum"], ""),
    ("a scalar in a product", lambda p, q, r: (p * 2.0) @ (q * 3.0), BIG, ["dot", "mul"], ""),
    ("signs in a product", lambda p, q, r: -p @ -q, BIG, ["dot"], ""),
    ("a product spelled with a sum", lambda p, q, r: (p[:, :, None] * q[None]).sum(1), BIG, ["dot"], ""),
    ("a matrix and a row", lambda p, q, r: (p * q[0]).sum(1), BIG, ["slice", "reshape", "broadcast", "mul", "sum"], ""),
    ("squares of all pairs", lambda p, q, r: ((p[None] * q[:, None]) ** 2).sum((1, 2)), BIG,
     ["mul", "mul", "mul", "sum", "sum"], ""),
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=[f[0] for f in FORMS])
def test_forms(form):
    _, fn, inputs, ops, extra = form
    f, g = optimized(fn(*inputs), inputs, extra)
    made = [v.op.name for v in g.values() if v.operands and v.op.name not in ("broadcast",)]
    assert sorted(made) == sorted(o for o in ops if o != "broadcast"), expression(g.body.results[0], 9)
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.5, 2, i.type.shape) for i in f.inputs]
    np.testing.assert_allclose(evaluate_function(g, arrays)[0], evaluate_function(f, arrays)[0], rtol=1e-10)


def test_what_might_be_infinite_does_not_cancel():
    x, y, _ = X
    for form in (x + y - x, x * y / x):
        _, g = optimized(form, [x, y])
        with np.errstate(all="ignore"):
            assert np.isnan(evaluate_function(g, [np.full(4, np.inf), np.ones(4)])[0]).all()


def test_what_is_known_to_be_finite_cancels():
    x, y, _ = X
    u = sc.assume(x, finite=True, nonzero=True)
    for form in (u + y - u, u * y / u, u * (y / u)):
        _, g = optimized(form, [x, y])
        assert g.body.results[0].op.name == "param"


def test_powers_at_the_ends_are_those_of_numpy():
    """Roots of -0.0 and -inf are -0.0 and nan, and their powers are not."""
    x = sc.vector("x", shape=(6,))
    edges = np.array([-0.0, 0.0, 4.0, np.inf, -np.inf, -1.0])
    for p in (1.5, 2.5, -0.5, -1.5, -2.5, 1 / 3):
        _, g = optimized(x**p, [x])
        with np.errstate(all="ignore"):
            got, want = evaluate_function(g, [edges])[0], edges**p
        np.testing.assert_allclose(got, want, rtol=1e-15, err_msg=str(p))
        np.testing.assert_array_equal(np.signbit(got[:5]), np.signbit(want[:5]), err_msg=str(p))
    _, g = optimized((x * x + 1) ** -0.5, [x])
    assert "abs" not in [v.op.name for v in g.values()]


def test_what_others_read_is_not_computed_twice():
    x, y, z = X
    p, q = x * z, y * z
    f = build([p + q, p, q], X, None, None, (), "f", caller()).function
    g = optimize(f, UNFUSED).function
    assert sum(v.op.name == "mul" for v in g.values()) == 2


def test_second_derivatives_share_factors():
    """a * x - a * y arises in derivatives of gates."""
    x, y, z = X
    cost = (sc.tanh(x * y) * sc.sigmoid(z)).sum()
    second = sc.hvp(cost, x, np.ones(4))
    f, g = optimized(second, X)
    arrays = [np.linspace(-1, 1, 4), np.linspace(0.5, 2, 4), np.linspace(-2, 2, 4)]
    np.testing.assert_allclose(evaluate_function(g, arrays)[0], evaluate_function(f, arrays)[0], rtol=1e-12)
