"""How the derivatives of loops look: what is saved, what is summed outside, how large they are, where they stop."""

from __future__ import annotations

import importlib
import time
from collections import Counter

import numpy as np
import pytest

import symc as sc
from symc.grad import connected
from symc.grad.while_loop import SLOTS
from symc.ir.function import Input, function
from symc.ir.traverse import every_value, postorder
from symc.ir.types import TensorType
from symc.opt import UNFUSED, optimize
from tests.grad.control_cases import RNG, Program, close, every, loops, ops, rnn, rnn_inputs, values
from tests.grad.control_fuzz import Loops, Unrolled

# --- how the loops of a derivative look -------------------------------------------------------------------------------


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


def test_one_value_is_saved_for_all_that_is_cheap_to_compute_from_it():
    x = sc.input("x", "float64", (3,))

    def step(h, _):
        return sc.sin(h) + (h - 3) * (h * h + 1) * (2 - h), None

    forward, backward = loops(sc.grad(sc.scan(step, x, length=3)[0].sum(), x))
    kept = forward.regions[0].results[1:]
    assert sorted(v.op.name for v in kept) == ["cos", "param"]
    assert ops(backward)["mul"] > 3


def test_cotangents_that_are_the_same_in_every_step_are_no_rows():
    x, xs = sc.input("x", "float64", (3,)), sc.input("xs", "float64", ("t", 3))
    _, ys = sc.scan(lambda h, r: (sc.sin(h), h * r), x, xs)
    *_, backward = loops(sc.grad(ys.sum(), x))
    assert backward.attrs["xs"] == 2  # cos(h) and r
    *_, backward = loops(sc.grad((ys * ys).sum(), x))
    assert backward.attrs["xs"] == 3


def test_narrow_values_are_preferred():
    x = sc.input("x", "float64", (1000,))
    h, _ = sc.scan(lambda h, r: (h * r.sum(), None), sc.asarray(1.0), sc.stack([x, x * 2]))
    forward = loops(sc.grad(h, x))[0]
    saved = forward.regions[0].results[1:]
    assert {v.type.size for v in saved} == {1}


def test_effects_take_place_once(capsys):
    x = sc.input("x", "float64", ())
    h, _ = sc.scan(lambda h, _: (sc.debug.print(sc.sin(h), "h = {}"), None), x, length=2)
    f = sc.compile([h, sc.grad(h, x), sc.jvp(h, x, 1.0)], [x], mode="reference")
    f(0.5)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_forward_mode_carries_only_what_moves():
    h0, xs, _, u, _ = rnn_inputs()

    def step(c, x):
        h, count, far = c
        return (sc.tanh(h @ u), count + 1, far * 2), far

    (h, _, _), far = sc.scan(step, (h0, sc.asarray(0), sc.asarray(1.0)), xs)
    (tangent,) = loops(sc.jvp(h, h0, np.ones(3)))
    assert tangent.attrs["carry"] == 2 and tangent.attrs["xs"] == 0  # h and its tangent
    with pytest.raises(sc.GradientError, match="the result is not made of"):
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
    with pytest.raises(sc.GradientError, match="the result is not made of"):
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
    assert inside and all("gradient of test_control_grad_form.py" in line for line in inside)


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
        for _ in range(600):
            h = sc.sin(h * 1.1)
        return h, None

    start = time.process_time()
    g = sc.grad(sc.scan(step, x, length=2)[0], x)
    assert time.process_time() - start < 4
    y = x
    for _ in range(1200):
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


@pytest.mark.parametrize(("depth", "order"), [(1, 1), (1, 2), (1, 3), (2, 2)])
def test_places_of_a_loop_without_a_bound_are_not_kept_for_every_step_of_another(depth, order):
    x, k = sc.input("x", "float64", (3,)), sc.scalar("k", "int64")

    def gradient(**bound):
        f = sc.tanh
        for _ in range(depth):
            f = (lambda inner: lambda x: sc.while_loop(
                lambda c: c[0] < k, lambda c: (c[0] + 1, inner(c[1]) + 0.1 * x), (0, x), **bound)[1])(f)
        y = f(x).sum()
        for _ in range(order):
            y = sc.grad(y, x).sum()
        return y

    y = gradient()
    assert max(t.shape.count(SLOTS) for v in every(y) if isinstance(t := v.type, TensorType)) == 1
    if order < 3:
        got, want = (sc.compile(g, [x, k], mode="reference")([0.5, -1.0, 0.2], 2) for g in (y, gradient(max_steps=2)))
        np.testing.assert_allclose(got, want, rtol=1e-12)


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


def test_what_is_made_of_a_cotangent_is_not_computed_forwards():
    x, w = sc.input("x", "float64", (3,)), sc.input("w", "float64", (3,))
    _, ys = sc.scan(lambda h, _: (sc.sin(h), sc.tanh(h * w)), x, length=4)
    c = sc.input("c", "float64", (3,))
    forward, backward = loops(*sc.grad((ys * c).sum(), [x, w]))  # the cotangent of every row is c
    assert c.value not in postorder([forward])
    assert c.value in postorder(backward.operands)


def test_loops_that_only_look_alike():
    """A loop that extends another may still depend on it."""
    p = Program(1417, ("cond", "scan"))
    close(values(p.derivatives(Loops(max_steps=5)), p.inputs, p.arrays),
          values(p.derivatives(Unrolled()), p.inputs, p.arrays))
    x = sc.input("x", "float64", (3,))
    a, _ = sc.scan(lambda h, _: (sc.sin(h), None), x, length=2)
    b, ys = sc.scan(lambda h, _: (sc.sin(h), sc.sin(h) * a), x, length=2)
    g = sc.grad((b * ys).sum(), x)
    h = sc.sin(x)
    k = sc.sin(h)
    close([values(g, [x], [np.ones(3)])], [values(sc.grad((k * (h + k) * k).sum(), x), [x], [np.ones(3)])])


def test_bodies_too_large_to_cut(monkeypatch):
    monkeypatch.setattr(importlib.import_module("symc.grad.residuals"), "LIMIT", 3)
    p = Program(4, ("scan",))
    close(values(p.derivatives(Loops()), p.inputs, p.arrays), values(p.derivatives(Unrolled()), p.inputs, p.arrays))
