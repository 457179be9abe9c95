"""Derivatives of loops and branches: equal to those of the same loop written out, in every mode and order."""

from __future__ import annotations

import importlib
import itertools
import time
from collections import Counter

import numpy as np
import pytest

import symc as sc
from symc.grad import connected
from symc.grad.residuals import recompute_everything
from symc.ir.function import Input, function
from symc.ir.traverse import every_value, postorder
from symc.ir.types import TensorType
from symc.opt import UNFUSED, optimize
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


# --- sizes, directions, what is there and what is not -----------------------------------------------------------------


def rnn(h0, xs, w, u, b, **options):
    return sc.scan(lambda h, x: ((n := sc.tanh(x @ w + h @ u + b)), n * n), h0, xs, **options)


def rnn_inputs(length="t"):
    shapes = {"h0": (3,), "xs": (length, 2), "w": (2, 3), "u": (3, 3), "b": (3,)}
    return [sc.input(n, "float64", s) for n, s in shapes.items()]


def rnn_arrays(length):
    return [RNG.normal(size=s) for s in [(3,), (length, 2), (2, 3), (3, 3), (3,)]]


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
    final, ys = rnn(h0, xs, w, u, b)
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


# --- how the loops of a derivative look -------------------------------------------------------------------------------


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


def test_a_captured_weight_is_accumulated_outside():
    inputs = rnn_inputs()
    final, _ = rnn(*inputs)
    w, u, b = sc.grad(final.sum(), inputs[2:])
    backward = [v for v in loops(w, u, b) if v.attrs["reverse"]]
    assert len(set(backward)) == 1
    assert backward[0].attrs["carry"] == 1  # the cotangent of h; no sums
    assert ops(backward[0])["dot"] == 1  # of the cotangent of h; the gradients of weights are not there
    assert w.value.op.name == u.value.op.name == "dot"
    assert w.value.attrs["contract"] == ((0,), (0,))  # time
    assert b.value.op.name == "sum" and b.value.attrs["axes"] == (0,)


def test_a_batch_is_contracted_together_with_time():
    h0, xs = sc.input("h0", "float64", ("b", 3)), sc.input("xs", "float64", ("t", "b", 2))
    w, u = sc.input("w", "float64", (2, 3)), sc.input("u", "float64", (3, 3))
    h, _ = sc.scan(lambda h, x: (sc.tanh(x @ w - h @ u), None), h0, xs)
    gw, gu = sc.grad(h.sum(), [w, u])
    assert gw.value.attrs["contract"] == ((0, 1), (0, 1))
    text = [v.op.name for v in postorder([gu.value])]
    assert text.count("scan") == 2


def test_an_embedding_is_scattered_once():
    table, idx = sc.input("table", "float64", (7, 3)), sc.input("idx", "int64", ("t", 2))
    _, ys = sc.scan(lambda c, i: (c, sc.tanh(table[i])), sc.asarray(0.0), idx)
    g = sc.grad((ys * ys).sum(), table)
    assert [ops(v)["scatter"] for v in loops(g)] == [0] * len(loops(g))
    assert g.value.op.name == "scatter"
    places = np.array([[0, 3], [3, 6], [3, 3]])
    x = RNG.normal(size=(7, 3))
    want = sc.grad((sc.tanh(table[places]) ** 2).sum(), table)
    close([values(g, [table, idx], [x, places])], [values(want, [table], [x])])


def test_a_row_of_a_captured_value():
    x, k = sc.input("x", "float64", (100,)), sc.input("k", "int64", ("t",))
    _, ys = sc.scan(lambda c, i: (c, sc.sin(x[i])), sc.asarray(0.0), k)
    g = sc.grad(ys.sum(), x)
    np.testing.assert_allclose(values(g, [x, k], [np.zeros(100), [3, 5, 3]])[[3, 4, 5]], [2, 0, 1])


def test_elementwise_sums_are_carried():
    x, w = sc.input("x", "float64", (3,)), sc.input("w", "float64", (3,))
    h, _ = sc.scan(lambda h, _: (sc.sin(h * w), None), x, length=4)
    backward = loops(sc.grad(h.sum(), w))[-1]
    assert backward.attrs["carry"] == 2  # the cotangent of h and the gradient by w
    assert len(backward.regions[0].results) == 2


def test_cheap_values_are_computed_again_and_expensive_ones_saved():
    h0, w = sc.input("h0", "float64", (3,)), sc.input("w", "float64", (3, 3))

    def step(h, _):
        a = h * 2 + 1  # cheap
        b = sc.exp(a @ w)  # expensive
        c = b * b + a  # cheap
        return sc.where(c > 1, c, b * 0.5), None

    final = sc.scan(step, h0, length=5)[0].sum()
    forward, backward = [v for v in loops(sc.grad(final, h0)) if v.op.name == "scan"]
    # exp is saved, and the mask, which is narrower than the h that it could be computed again from
    assert sorted(str(v.dtype) for v in forward.regions[0].results) == ["bool", "float64", "float64"]
    names = ops(backward)
    assert names["exp"] == 0 and names["dot"] == 1 and names["mul"] + names["mulz"] > 0


def test_narrow_values_are_preferred():
    x = sc.input("x", "float64", (1000,))
    h, _ = sc.scan(lambda h, r: (h * r.sum(), None), sc.asarray(1.0), sc.stack([x, x * 2]))
    forward = loops(sc.grad(h, x))[0]
    saved = forward.regions[0].results[1:]
    assert {v.type.size for v in saved} == {1}


def test_everything_can_be_computed_again_from_the_carry():
    inputs = rnn_inputs()
    with recompute_everything():
        final, _ = rnn(*inputs)
        g = sc.grad(final.sum(), inputs)
    forward, backward = loops(*g)
    assert len(forward.regions[0].results) == 2 + 1  # the scan's own, and the carry before every step
    assert ops(backward)["tanh"] == 1
    arrays = rnn_arrays(4)
    close(values(g, inputs, arrays), values(sc.grad(final.sum(), inputs), inputs, arrays))


def test_effects_take_place_once(capsys):
    x = sc.input("x", "float64", ())
    h, _ = sc.scan(lambda h, _: (sc.debug.print(sc.sin(h), "h = {}"), None), x, length=2)
    f = sc.compile([h, sc.grad(h, x), sc.jvp(h, x, 1.0)], [x], mode="reference")
    f(0.5)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_forward_mode_carries_only_what_moves():
    h0, xs, w, u, b = rnn_inputs()

    def step(c, x):
        h, count, far = c
        return (sc.tanh(h @ u), count + 1, far * 2), far

    (h, _, _), far = sc.scan(step, (h0, sc.asarray(0), sc.asarray(1.0)), xs)
    (tangent,) = loops(sc.jvp(h, h0, np.ones(3)))
    assert tangent.attrs["carry"] == 2 and tangent.attrs["xs"] == 0  # h and its tangent
    with pytest.raises(sc.GradientError, match="only through scan"):
        sc.jvp(far, h0, np.ones(3), disconnected="raise")


# --- connection -------------------------------------------------------------------------------------------------------


def test_a_carry_through_which_nothing_flows_is_disconnected():
    x, y = sc.input("x", "float64", ()), sc.input("y", "float64", ("t",))
    (a, b), _ = sc.scan(lambda c, r: ((c[0] * r, r * 2), None), (x, x), y)
    fixed = sc.input("fixed", "float64", (4,))
    (_, d), _ = sc.scan(lambda c, r: ((c[0] * r, r * 2), None), (x, x), fixed)
    assert connected([a.value, b.value], [x.value, y.value]) == [True, True]
    assert connected([b.value], [x.value]) == [True]  # no step at all gives x
    assert connected([d.value], [x.value, fixed.value]) == [False, True]
    with pytest.raises(sc.GradientError, match="only through scan"):
        sc.grad(d, x)


def test_where_a_derivative_stops_is_told_with_the_line():
    x, y = sc.input("x", "float64", (3,)), sc.input("y", "float64", (3,))

    def step(c, t):
        k = (x * t).astype("int64")  # it stops here
        return (c[1] * 1.0, c[1] + k), c[0]

    (a, _), ys = sc.scan(step, (sc.zeros(3), sc.zeros(3, "int64")), y)
    for result in (a, ys):
        with pytest.raises(sc.GradientError) as e:
            sc.grad(result.sum(), x)
        assert "only through cast" in str(e.value) and "# it stops here" in str(e.value)


def test_lines_of_derivatives_inside_loops():
    x = sc.input("x", "float64", (3,))
    h, _ = sc.scan(lambda h, _: (sc.sin(h), None), x, length=3)  # the line
    text = sc.compile(sc.grad(h.sum(), x), [x], mode="reference").dump(stage="input")
    inside = [line for line in text.splitlines() if " mul " in line or " cos " in line]
    assert inside and all("gradient of test_control_grad.py" in line for line in inside)


# --- size and time ----------------------------------------------------------------------------------------------------


def test_nests_grow_linearly():
    x, w = sc.input("x", "float64", (4,)), sc.input("w", "float64", (4, 4))

    def nest(depth):
        def body(h, r):
            return (sc.tanh(h @ w + r) if depth == 0 else sc.scan(nest(depth - 1), h, w * r)[0]), None

        return body

    sizes = [len(every(sc.grad(sc.scan(nest(d), x, w)[0].sum(), w))) for d in range(6)]
    steps = np.diff(sizes)
    assert max(steps) <= 1.5 * min(steps)


def test_long_loops_and_chains_of_loops_build_fast():
    x, xs, w = sc.input("x", "float64", (4,)), sc.input("xs", "float64", (1000, 4)), sc.input("w", "float64", (4, 4))
    start = time.process_time()
    h = x
    for _ in range(200):
        h, _ = sc.scan(lambda h, r: (sc.tanh(h @ w + r), None), h, xs)
    sc.grad(h.sum(), [x, w, xs])
    assert time.process_time() - start < 5


def test_a_body_of_many_values():
    x = sc.input("x", "float64", ())

    def step(h, _):
        for _ in range(1500):
            h = sc.sin(h * 1.1)
        return h, None

    start = time.process_time()
    g = sc.grad(sc.scan(step, x, length=2)[0], x)
    assert time.process_time() - start < 10
    y = x
    for _ in range(3000):
        y = sc.sin(y * 1.1)
    close([values(g, [x], [0.4])], [values(sc.grad(y, x), [x], [0.4])])


def optimized_size(outputs, inputs):
    """How many values a function has after the default pipeline, before fusion."""
    names = [(i.value, Input(f"x{k}", i.value.type)) for k, i in enumerate(inputs)]
    return len(every_value(optimize(function("f", names, [o.value for o in outputs]), UNFUSED).function.body))


def lstm_cost(h0, xs, w, u, b):
    def step(c, x):
        z = x @ w + c[0] @ u + b
        i, f, o, g = (z[4 * k : 4 * k + 4] for k in range(4))
        cell = sc.special.expit(f) * c[1] + sc.special.expit(i) * sc.tanh(g)
        return ((h := sc.special.expit(o) * sc.tanh(cell)), cell), h

    _, ys = sc.scan(step, (h0, h0), xs)
    return (ys * ys).sum()


def rnn_cost(h0, xs, w, u, b):
    h, ys = sc.scan(lambda h, x: ((n := sc.tanh(x @ w + h @ u + b)), n), h0, xs)
    return h.sum() + (ys * ys).sum()


def map_cost(h0, xs, w, u, b):
    return sc.scan(lambda h, x: (sc.sin(h * b[:4]) + h, None), h0, length=10)[0].sum()


# An LSTM's gradient is very small: of five activations only outputs are read, and no weight is in the loop.
@pytest.mark.parametrize("cost, most", [(rnn_cost, 2.5), (map_cost, 2.5), (lstm_cost, 2.7)])
def test_a_second_gradient_is_not_much_larger(cost, most):
    width = 4 if cost is rnn_cost else 16
    shapes = [(4,), ("t", 3), (3, width), (4, width), (width,)]
    inputs = [sc.input(f"x{k}", "float64", s) for k, s in enumerate(shapes)]
    gradients = sc.grad(cost(*inputs), inputs[2:], disconnected="zero")
    moves = [sc.input(f"v{k}", "float64", g.value.shape) for k, g in enumerate(gradients)]
    slope = sum((g * m).sum() for g, m in zip(gradients, moves, strict=True))
    first = optimized_size(gradients, inputs)
    for second in (sc.grad(slope, inputs[2:], disconnected="zero"), sc.jvp(gradients, inputs[2:], moves)):
        assert optimized_size(second, [*inputs, *moves]) <= most * first


def test_a_second_gradient_goes_back_through_one_loop():
    inputs = rnn_inputs()
    g = sc.grad(rnn_cost(*inputs), inputs[3])
    backward = [v for v in loops(sc.grad((g * g).sum(), inputs[3])) if v.attrs["reverse"]]
    # the first gradient, the same with what is read of it, and one for all that was computed before it
    assert len(backward) == 3


def test_slices_that_make_up_a_whole_mask_nothing():
    x = sc.input("x", "float64", (6,))

    def names(*parts):
        y = sc.sin(x)
        return Counter(v.op.name for v in every(sc.grad(sum((sc.exp(y[p]) * k).sum() for k, p in parts), x)))

    a, b, c = slice(0, 2), slice(2, 5), slice(5, 6)
    whole = names((1.0, a), (2.0, b), (3.0, c))
    assert whole["mulz"] == whole["pad"] == 0 and whole["concat"] == 1
    assert names((1.0, a), (3.0, c))["mulz"] > 0
    assert names((1.0, a), (2.0, slice(3, 6)))["mulz"] > 0


def test_gates_of_a_cell_are_not_masked():
    inputs = [sc.input(f"x{k}", "float64", s) for k, s in enumerate([(4,), ("t", 3), (3, 16), (4, 16), (16,)])]
    assert "mulz" not in {v.op.name for v in every(*sc.grad(lstm_cost(*inputs), inputs[2:]))}


# --- compiled ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed, inner", [(0, ()), (31, ("scan",)), (42, ("while",)), (53, ("cond",))])
def test_compiled_derivatives_are_the_evaluated_ones(seed, inner):
    p = Program(seed, inner)
    wanted = p.derivatives(Loops(max_steps=5))
    close(sc.compile(wanted, p.inputs)(*p.arrays), values(wanted, p.inputs, p.arrays), rtol=1e-7)
