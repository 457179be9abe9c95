"""``sc.function_op``: blocks compute what the function does, print by name, and differentiate as they say."""

from __future__ import annotations

import contextlib
import io
import re

import numpy as np
import pytest

import symc as sc
from symc.ir.ops.call import rules

MODES = ["reference", "default", "fast_compile", "debug"]


@sc.function_op
def layer(x, w, act="tanh"):
    return getattr(sc, act)(x @ w)


@sc.function_op(opaque=True)
def softmax(x):
    e = sc.exp(x - x.max())
    return e / e.sum(), sc.log(sc.sum(sc.exp(x)))


@pytest.mark.parametrize("mode", MODES)
def test_a_block_is_its_function(mode):
    x, w = sc.input("x", "float64", ("n", 3)), sc.input("w", "float64", (3, 2))
    f = sc.compile([layer(x, w), layer(x, w, act="sin"), sc.grad(layer(x, w).sum(), w)], [x, w], mode=mode)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(4, 3)), rng.normal(size=(3, 2))
    tanh, sin, slope = f(a, b)
    np.testing.assert_allclose(tanh, np.tanh(a @ b), rtol=1e-13)
    np.testing.assert_allclose(sin, np.sin(a @ b), rtol=1e-13)
    np.testing.assert_allclose(slope, a.T @ (1 - np.tanh(a @ b) ** 2), rtol=1e-12)


def test_it_is_named_in_the_input_and_gone_afterwards():
    x, w = sc.matrix("x"), sc.matrix("w")
    f = sc.compile(layer(x, w) + 1)
    assert 'call %x, %w' in f.dump("input") and 'name = "layer"' in f.dump("input")
    assert "call" not in f.dump("inline")
    plain = sc.compile(sc.tanh(x @ w) + 1, [x, w])
    assert f.dump("inline").count("=") == plain.dump("inline").count("=")


def test_lines_of_the_function_are_kept():
    x, w = sc.matrix("x"), sc.matrix("w")
    f = sc.compile(layer(x, w))
    line = layer.__wrapped__.__code__.co_firstlineno + 2
    for stage in ("input", "inline"):
        assert re.search(rf"dot .*test_function_op\.py:{line}\b", f.dump(stage))


def test_opaque_blocks_stay_until_kernels_are_made():
    v = sc.vector("v")
    p, total = softmax(sc.log(v))
    f = sc.compile([p * total, sc.grad(total, v)], [v])
    assert 'name = "softmax", opaque = true' in f.dump("simplify")
    assert 'name = "gradient of softmax"' in f.dump("simplify")
    assert "logsumexp" in f.dump("simplify"), "formulas inside become stable"
    assert "call" not in f.plan
    a = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(f(a)[0], a / a.sum() * np.log(a.sum()))
    np.testing.assert_allclose(f(a)[1], 1 / a.sum() * np.ones(3))
    crossing = sc.function_op(lambda x: sc.exp(x), opaque=True, name="exp_")(sc.log(v))
    assert "log" in sc.compile(crossing).dump("simplify"), "no rule looks across the border"
    assert "log" not in sc.compile(sc.exp(sc.log(v))).dump("simplify")


@pytest.mark.parametrize("opaque", [False, True])
def test_derivatives_of_every_order_and_mode(opaque):
    block = sc.function_op(lambda x, y: (sc.sin(x) * y, sc.exp(x)), opaque=opaque, name="pair")
    rng = np.random.default_rng(1)
    sc.verify_grad(lambda x, y: block(x, y), [rng.normal(size=3), rng.normal(size=3)])
    x = sc.vector("x")
    f = sc.compile(sc.grad(sc.grad(block(x, x)[0].sum(), x).sum(), x), [x])
    a = rng.normal(size=3)
    np.testing.assert_allclose(f(a), 2 * np.cos(a) - a * np.sin(a), rtol=1e-12)


def test_nests_and_what_is_not_a_tensor():
    @sc.function_op
    def apply(parameters, x, how, *, times=1):
        return {"out": (x @ parameters["w"] + parameters["b"]) * times, "how": x if how == "x" else x * 2}

    x = sc.matrix("x")
    out = apply({"w": np.eye(2), "b": 1.0}, x, "x", times=3)
    got = sc.compile(out, [x])(np.ones((1, 2)))
    assert got["out"].tolist() == [[6, 6]] and got["how"].tolist() == [[1, 1]]


def test_captured_values_are_operands():
    w = sc.shared(np.arange(3.0), "w")
    x = sc.vector("x")
    outside = x * 2

    @sc.function_op
    def f(v):
        return v * w + outside

    y = f(x)
    assert len(y.value.operands) == 3
    g = sc.compile([y, sc.grad(y.sum(), w)], [x])
    got = g(np.ones(3))
    assert got[0].tolist() == [2, 3, 4] and got[1].tolist() == [1, 1, 1]


# --- derivatives of their own -----------------------------------------------------------------------------------------


def clipped(**rule):
    @sc.function_op(**rule)
    def clipped(x, low):
        return sc.maximum(x, low)

    return clipped


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rule", [
    {"vjp": lambda g, x, low: (g * 7, None)}, {"jvp": lambda t, x, low: t[0] * 7},
    {"vjp": lambda g, x, low: (g * 7, None), "jvp": lambda t, x, low: t[0] * 7},
], ids=["vjp", "jvp", "both"])  # fmt: skip
def test_the_derivative_is_the_one_that_is_given(rule, mode):
    c, x = clipped(**rule), sc.vector("x")
    y = c(x * 2, 0.5)
    f = sc.compile([y, sc.grad(y.sum(), x), sc.jvp(y, x, sc.ones_like(x))], [x], mode=mode)
    got = f([0.0, 1.0])
    assert [g.tolist() for g in got] == [[0.5, 2.0], [14, 14], [14, 14]]


@pytest.mark.parametrize("given", ["vjp", "jvp"])
def test_rules_batch(given):
    rule = {"vjp": lambda g, x, w: (g * 3 * w, sc.sum(g * x) * 5 + 0 * w)} if given == "vjp" else {
        "jvp": lambda t, x, w: t[0] * 3 * w + 5 * t[1] * x}  # fmt: skip

    @sc.function_op(**rule)
    def scaled(x, w):
        return x * w

    x, w = sc.matrix("x"), sc.scalar("w")
    a, k = np.arange(1.0, 7.0).reshape(2, 3), 2.0
    rows = sc.vmap(scaled, (0, None))(x, w)
    nested = sc.vmap(sc.vmap(scaled, (0, None)), (0, None))(x, w)
    each = sc.vmap(lambda r, s: sc.grad(scaled(r, s).sum(), [r, s]), (0, None))(x, w)
    f = sc.compile([rows, sc.grad(rows.sum(), [x, w]), sc.grad(nested.sum(), [x, w]), each,
                    sc.jvp(rows, [x, w], [sc.ones_like(x), sc.ones_like(w)])], [x, w])  # fmt: skip
    value, whole, twice, per_row, moved = f(a, k)
    np.testing.assert_array_equal(value, a * k)
    for got in (whole, twice):
        np.testing.assert_allclose(got[0], np.full((2, 3), 3 * k))
        np.testing.assert_allclose(got[1], 5 * a.sum())
    np.testing.assert_allclose(per_row[0], np.full((2, 3), 3 * k))
    np.testing.assert_allclose(per_row[1], 5 * a.sum(1))
    np.testing.assert_allclose(moved, 3 * k + 5 * a)


def test_a_stable_derivative_of_a_derivative():
    """The textbook case: log(1 + exp(x)), whose rule calls the function itself."""

    @sc.function_op(vjp=lambda g, x: g * (1 - sc.exp(-log_of_sum(x))))
    def log_of_sum(x):
        return sc.log(1 + sc.exp(x))

    sc.verify_grad(log_of_sum, [np.linspace(-3, 3, 5)])
    x = sc.scalar("x")
    f = sc.compile(sc.grad(sc.grad(log_of_sum(x), x), x), [x])
    np.testing.assert_allclose(f(0.0), 0.25, rtol=1e-12)


def test_rules_of_nests():
    @sc.function_op(vjp=lambda g, p, k: ({"a": g["y"] * 2, "b": None}, None))
    def f(p, k):
        return {"y": p["a"] * p["b"], "n": sc.asarray(k)}

    a, b = sc.vector("a"), sc.vector("b")
    out = f({"a": a, "b": b}, 3)
    got = sc.compile([out, sc.grad(out["y"].sum(), [a, b])], [a, b])([1.0], [5.0])
    assert got[0]["y"].tolist() == [5] and got[0]["n"] == 3
    assert [g.tolist() for g in got[1]] == [[2], [0]]


def test_static_arguments_reach_the_rule():
    @sc.function_op(vjp=lambda g, x, how, *, k: (g * (k if how == "k" else -k), None))
    def f(x, how, *, k):
        return x * 1.0

    x = sc.scalar("x")
    got = sc.compile([sc.grad(f(x, h, k=n), x) for h, n in (("k", 2), ("k", 3), ("other", 2))], [x])(1.0)
    assert [float(g) for g in got] == [2, 3, -2]


def test_what_is_constant_to_derivatives_may_come_from_outside():
    w, x = sc.shared(np.full(2, 3.0), "w"), sc.vector("x")
    fixed, table = sc.stop_gradient(w), sc.asarray([1.0, 2.0])

    @sc.function_op(vjp=lambda g, x: g * 10)
    def f(x):
        return x * fixed * table + sc.stop_gradient(w)

    got = sc.compile([f(x), sc.grad(f(x).sum(), x)], [x])([1.0, 1.0])
    assert [g.tolist() for g in got] == [[6, 9], [10, 10]]


def test_two_functions_of_one_name_keep_their_own_rules():
    def make(k):
        @sc.function_op(vjp=lambda g, x: g * k)
        def twin(x):
            return x + 0.0

        return twin

    first, second, x = make(2), make(3), sc.scalar("x")
    y, z = first(x), second(x)
    got = sc.compile([sc.grad(y, x), sc.grad(z, x)], [x])(1.0)
    assert [float(g) for g in got] == [2, 3]
    assert len([name for name in rules if name.startswith("twin:")]) == 2


def test_in_loops_and_branches():
    c = clipped(vjp=lambda g, x, low: (g * 7, None))
    x, w = sc.vector("x"), sc.scalar("w")
    last, _ = sc.scan(lambda h, r: (c(h * r, 0.0), h), sc.asarray(1.0), x)
    chosen = sc.cond(w > 0, lambda v: c(v, 0.0), lambda v: v * 2, x)
    f = sc.compile([last, chosen], [x, w])
    got = f([2.0, 3.0], 1.0)
    assert got[0] == 6 and got[1].tolist() == [2, 3]
    assert f([2.0, 3.0], -1.0)[1].tolist() == [4, 6]


def test_effects_inside_take_place_once():
    @sc.function_op(opaque=True)
    def loud(x):
        return sc.exp(sc.debug.print(x, "x"))

    x = sc.vector("x")
    f = sc.compile([loud(x), sc.grad(loud(x).sum(), x)], [x])
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        f([1.0])
    assert len(out.getvalue().splitlines()) == 2, "two calls, each once"


def test_text_and_saving(tmp_path):
    x, w = sc.matrix("x"), sc.matrix("w")
    f = sc.compile(layer(x, w), name="saved")
    assert str(sc.parse(f.dump("input"))) == str(sc.parse(str(sc.parse(f.dump("input")))))
    f.save(tmp_path / "f.symc")
    again = sc.load(tmp_path / "f.symc")
    np.testing.assert_array_equal(again(np.ones((2, 2)), np.eye(2)), f(np.ones((2, 2)), np.eye(2)))


@pytest.mark.parametrize(("make", "error", "text"), [
    (lambda x: sc.function_op(lambda v: None, name="f")(x), sc.InputError, "f returns no tensors"),
    (lambda x: sc.function_op(lambda v: "a", name="f")(x), sc.InputError, "result is not a tensor but str 'a'"),
    (lambda x: sc.function_op(x), sc.InputError, "function_op takes a function, not Tensor"),
    (lambda x: sc.function_op(lambda v: v * x, name="f", vjp=lambda g, v: g)(sc.ones(3)), sc.InputError,
     "f has a derivative of its own, and uses a value from outside"),
    (lambda x: sc.function_op(lambda v, k: v, name="f", vjp=lambda g, v: g)(x, k=x), sc.InputError,
     "f: a keyword argument is a symbolic value"),
    (lambda x: sc.grad(sc.function_op(lambda v: v * 1, name="f", vjp=lambda g, v: (g, g))(x).sum(), x),
     sc.GradientError, "f: vjp gives 2 cotangents for 1 arguments"),
    (lambda x: sc.grad(sc.function_op(lambda v: v.sum(), name="f", vjp=lambda g, v: sc.ones((2, 2)))(x), x),
     sc.ShapeError, r"f: f64\[2, 2\] was given where f64\[3\] belongs"),
])  # fmt: skip
def test_mistakes(make, error, text):
    with pytest.raises(error, match=text) as e:
        make(sc.input("x", "float64", (3,)))
    assert "test_function_op.py" in str(e.value)
