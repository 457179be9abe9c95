"""Derivatives of loops and branches: equal to those of the same loop written out, in every mode and order."""

from __future__ import annotations

import importlib
import itertools

import numpy as np
import pytest

import symc as sc
from symc.ir.traverse import postorder
from symc.ir.types import TensorType
from tests.grad.control_cases import RNG, Program, close, every, loops, rnn, rnn_arrays, rnn_inputs, values
from tests.grad.control_fuzz import NESTED, Loops, Unrolled

# --- fuzzed bodies against Python loops -------------------------------------------------------------------------------


NESTS = [(), *((n,) for n in NESTED), *itertools.product(NESTED, NESTED)]


@pytest.mark.parametrize("seed, inner", [(k * 100 + k % 2, n) for k, n in enumerate(NESTS)])
def test_agrees_with_python_loops(seed, inner):
    p = Program(seed, inner)
    got = values(p.derivatives(Loops(max_steps=5 if seed % 3 else None)), p.inputs, p.arrays)
    want = values(p.derivatives(Unrolled()), p.inputs, p.arrays)
    close(got, want)


# --- sizes, directions, what is there and what is not -----------------------------------------------------------------


def unrolled_rnn(n, inputs, reverse=False):
    h0, xs, w, u, b = inputs
    h, total = h0, sc.asarray(0.0)
    for t in reversed(range(n)) if reverse else range(n):
        h = sc.tanh(xs[t] @ w + h @ u + b)
        total = total + (h * h * (t + 1)).sum()
    return (h**3).sum() + total


@pytest.mark.parametrize("reverse", [False, True])
def test_one_derivative_serves_every_length(reverse):
    inputs = rnn_inputs()
    final, ys = rnn(*inputs, reverse=reverse)
    weights = sc.arange(ys.shape[0]) + 1.0
    cost = (final**3).sum() + (ys.sum(1) * weights).sum()
    f = sc.compile(sc.grad(cost, inputs), inputs, mode="reference")
    for n in (0, 1, 2, 5):
        arrays, fixed = rnn_arrays(n), rnn_inputs(n)
        want = sc.grad(unrolled_rnn(n, fixed, reverse), fixed, disconnected="zero")
        close(f(*arrays), values(want, fixed, arrays))


def test_finite_differences():
    def cost(h0, xs, w):
        def step(c, x):
            inner, _ = sc.scan(lambda g, row: (sc.sin(g @ w) + row, None), c, sc.stack([x, 2 * x]))
            return sc.cond(inner.sum() > 0.3, lambda: inner * 0.5, lambda: inner + c), inner.sum()

        h, ys = sc.scan(step, h0, xs)
        h = sc.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, sc.tanh(s[1] @ w)), (sc.asarray(0), h))[1]
        return (h * h).sum() + (ys * ys).sum()

    sc.verify_grad(cost, [RNG.normal(size=2), RNG.normal(size=(3, 2)), RNG.normal(size=(2, 2))])


def test_results_that_do_not_matter_cost_nothing():
    h0, xs, w, u, b = rnn_inputs()
    final, _ = rnn(h0, xs, w, u, b)
    (g,) = [v for v in loops(sc.grad(final.sum(), h0)) if v.attrs["reverse"]]
    assert g.attrs["carry"] == 1 and g.attrs["xs"] == 1  # the cotangent; what tanh gave
    assert len(g.regions[0].results) == 1


def test_integer_carries_and_rows():
    x, idx = sc.input("x", "float64", (3,)), sc.input("idx", "int64", ("t",))
    table = sc.input("table", "float64", (5, 3))

    def step(c, i):
        h, k = c
        return (sc.tanh(h + table[i]) * (k + 1), (k + i) % 3), k

    (h, k), ys = sc.scan(step, (x, sc.asarray(0)), idx)
    got = values(sc.grad(h.sum() + k + ys.sum(), [x, table]), [x, idx, table],
                 arrays := [RNG.normal(size=3), np.array([1, 4, 1, 0]), RNG.normal(size=(5, 3))])
    y, n = x, 0
    for i in arrays[1]:
        y, n = sc.tanh(y + table[int(i)]) * (n + 1), (n + int(i)) % 3
    close(got, values(sc.grad(y.sum(), [x, table]), [x, table], [arrays[0], arrays[2]]))


def test_complex_carries():
    z, w = sc.input("z", "complex128", (2,)), sc.input("w", "complex128", (2, 2))
    arrays = [RNG.normal(size=s) + 1j * RNG.normal(size=s) for s in [(2,), (2, 2)]]
    def cost(h):
        return (sc.abs(h) ** 2).sum()

    scanned = cost(sc.scan(lambda h, _: (h @ w * 0.5 + sc.sin(h), None), z, length=3)[0])
    h = z
    for _ in range(3):
        h = h @ w * 0.5 + sc.sin(h)
    close(values(sc.grad(scanned, [z, w]), [z, w], arrays), values(sc.grad(cost(h), [z, w]), [z, w], arrays))


def test_several_loops_share_a_weight():
    x, w = sc.input("x", "float64", (3,)), sc.input("w", "float64", (3, 3))
    a, _ = sc.scan(lambda h, _: (sc.tanh(h @ w), None), x, length=3)
    b, _ = sc.scan(lambda h, _: (sc.sin(h @ w.T) * a, None), a, length=2)
    h = x
    for _ in range(3):
        h = sc.tanh(h @ w)
    k = h
    for _ in range(2):
        k = sc.sin(k @ w.T) * h
    arrays = [RNG.normal(size=3), RNG.normal(size=(3, 3))]
    close(values(sc.grad(b.sum(), [x, w]), [x, w], arrays), values(sc.grad(k.sum(), [x, w]), [x, w], arrays))


def test_zero_stays_zero_in_loops():
    x = sc.input("x", "float64", (4,))
    _, ys = sc.scan(lambda c, v: (c, sc.where(v > 0, sc.log(v), 0.0)), sc.asarray(0.0), x)
    np.testing.assert_array_equal(values(sc.grad(ys.sum(), x), [x], [[0.0, 1, 2, -1]]), [0, 1, 0.5, 0])
    y = sc.cond(x[0] > 5, lambda: sc.log(x), lambda: sc.where(x > 0, sc.log(x), x))
    np.testing.assert_array_equal(values(sc.grad(y.sum(), x), [x], [[0.0, 1, 2, -1]]), [1, 1, 0.5, 1])


# --- while ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def few_slots(monkeypatch):
    monkeypatch.setattr(importlib.import_module("symc.grad.while_loop"), "SLOTS", 3)


def newton(x, a, n, max_steps=None):
    def body(s):
        return s[0] + 1, sc.sin(s[1]) * a + 0.1 * s[1]

    return sc.while_loop(lambda s: s[0] < n, body, (sc.asarray(0), x), max_steps=max_steps)[1]


@pytest.mark.parametrize("max_steps", [None, 60])
@pytest.mark.usefixtures("few_slots")
def test_while_of_any_number_of_steps(max_steps):
    x, a, n = sc.input("x", "float64", (2,)), sc.input("a", "float64", (2,)), sc.input("n", "int64", ())
    y = newton(x, a, n, max_steps)
    v = np.array([0.3, -1.1])
    cost = (y * y).sum()
    g = sc.grad(cost, [x, a])
    f = sc.compile([*g, sc.hvp(cost, a, v), *sc.grad((g[0] * v).sum(), [x, a])], [x, a, n], mode="reference")
    arrays = [RNG.normal(size=2), RNG.normal(size=2)]
    for steps in (0, 1, 3, 9, 10, 28, 41):  # 3 slots of 3 slots keep 9 steps
        z = x
        for _ in range(steps):
            z = sc.sin(z) * a + 0.1 * z
        c = (z * z).sum()
        h = sc.grad(c, [x, a], disconnected="zero")
        want = [*h, sc.hvp(c, a, v, disconnected="zero"), *sc.grad((h[0] * v).sum(), [x, a], disconnected="zero")]
        close(f(*arrays, steps), values(want, [x, a], arrays))


def test_while_stops_at_max_steps():
    x, a, n = sc.input("x", "float64", (2,)), sc.input("a", "float64", (2,)), sc.input("n", "int64", ())
    for most in (0, 1, 3):
        got = sc.grad(newton(x, a, n, most).sum(), [x, a], disconnected="zero")
        arrays = [np.array([0.3, 0.8]), np.array([0.5, 2.0])]
        want = sc.grad(newton(x, a, n).sum(), [x, a], disconnected="zero")
        close(values(got, [x, a, n], [*arrays, 7]), values(want, [x, a, n], [*arrays, most]))


def test_memory_of_a_while_does_not_depend_on_the_steps():
    x, a, n = sc.input("x", "float64", (2,)), sc.input("a", "float64", (2,)), sc.input("n", "int64", ())
    made = every(sc.grad(newton(x, a, n).sum(), a))
    assert max(v.type.size for v in made if isinstance(v.type, TensorType)) == 64 * 2


def test_linear_while_keeps_no_state():
    x, n = sc.input("x", "float64", (2,)), sc.input("n", "int64", ())
    y = sc.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 1.5), (sc.asarray(0), x), max_steps=9)[1]
    assert not [v for v in every(sc.grad(y.sum(), x)) if v.op.name.startswith("dynamic")]
    np.testing.assert_allclose(values(sc.grad(y.sum(), x), [x, n], [np.zeros(2), 3]), 1.5**3)


# --- cond -------------------------------------------------------------------------------------------------------------


def test_the_derivative_of_a_branch_not_chosen_is_not_computed():
    x, p = sc.input("x", "float64", (2,)), sc.input("p", "bool", ())
    y = sc.cond(p, lambda: (sc.debug.assert_(x * x, False) * 3).sum(), lambda: (x * 5).sum())
    g, t = sc.grad(y, x), sc.jvp(y, x, np.ones(2))
    np.testing.assert_array_equal(values(g, [x, p], [np.ones(2), False]), [5, 5])
    assert values(t, [x, p], [np.ones(2), False]) == 10
    outer = [v for v in postorder([g.value]) if v.op.name == "mul"]
    assert not outer  # the products are in the branches


def test_an_operand_that_one_branch_does_not_use():
    x, y, k = sc.input("x", "float64", ()), sc.input("y", "float64", ()), sc.input("k", "int64", ())
    z = sc.switch(k, [lambda: x * x, lambda: x * y, lambda: sc.sin(y)])
    f = sc.compile([*sc.grad(z, [x, y]), sc.jvp(z, [x, y], [2.0, 3.0])], [x, y, k], mode="reference")
    close(f(3.0, 4.0, 0), [6, 0, 12])
    close(f(3.0, 4.0, 1), [4, 3, 17])
    close(f(3.0, 4.0, 9), [0, np.cos(4), 3 * np.cos(4)])


# --- compiled ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed, inner", [(0, ()), (31, ("scan",)), (42, ("while",)), (53, ("cond",))])
def test_compiled_derivatives_are_the_evaluated_ones(seed, inner):
    p = Program(seed, inner)
    wanted = p.derivatives(Loops(max_steps=5))
    close(sc.compile(wanted, p.inputs)(*p.arrays), values(wanted, p.inputs, p.arrays), rtol=1e-7)


def test_a_result_that_a_loop_makes_of_other_things_is_not_blamed_on_the_loop():
    x, h = sc.input("x", "float64", ("n",)), sc.input("h", "float64", ())
    (a, _), _ = sc.scan(lambda c, v: ((sc.sin(c[0]), c[1] * v), None), (h, h), x)
    with pytest.raises(sc.GradientError, match="the result is not made of %x"):
        sc.grad(a, x)
