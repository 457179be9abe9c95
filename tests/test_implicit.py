"""custom_root and custom_fixed_point: derivatives from the equation, in both modes, twice, and inside loops."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc

REFERENCE = {"mode": "reference"}


def newton(f, start):
    return sc.while_loop(lambda x: abs(f(x)) > 1e-12, lambda x: x - f(x) / (3 * x * x + 1), start, max_steps=60)


def cubic(a):
    """The x with x^3 + x = a."""
    return sc.custom_root(lambda x: x**3 + x - a, sc.ones(()), newton)


def test_root_of_a_number_and_its_derivatives():
    a = sc.input("a", "float64", ())
    x = cubic(a)
    slope = sc.grad(x, a)
    f = sc.compile([x, slope, sc.grad(slope, a), sc.jvp(x, a, 1.0), sc.jvp(slope, a, 1.0)], **REFERENCE)
    for number in (0.3, 2.0, 10.0):
        x_, dx, ddx, tangent, ddx2 = f(number)
        first = 1 / (3 * x_**2 + 1)
        second = -6 * x_ * first**3
        np.testing.assert_allclose([x_**3 + x_, dx, tangent, ddx, ddx2], [number, first, first, second, second],
                                   rtol=1e-9)


def test_derivative_does_not_look_into_the_search():
    """The search has no derivative at all; the equation has."""
    a = sc.input("a", "float64", ("n",))
    x = sc.custom_root(lambda x: x * x - a, a, lambda f, x0: sc.stop_gradient(sc.sqrt(x0)),
                       lambda g, y: y / g(1 + 0 * y))
    f = sc.compile(sc.grad(sc.sum(x), a), **REFERENCE)
    np.testing.assert_allclose(f(np.array([1.0, 4.0])), [0.5, 0.25])


def test_nests_and_captured_values_of_a_system():
    p = sc.input("p", "float64", ())

    def f(s):
        return {"x": s["x"] + s["y"] - p, "y": s["x"] - s["y"] - 2 * p}

    def solve(f, s):
        return {"x": 1.5 * p + 0 * s["x"], "y": -0.5 * p + 0 * s["y"]}

    def tangent_solve(g, y):
        return {"x": (y["x"] + y["y"]) / 2, "y": (y["x"] - y["y"]) / 2}

    s = sc.custom_root(f, {"x": sc.zeros(()), "y": sc.zeros(())}, solve, tangent_solve)
    out = sc.compile([s, sc.grad(s["x"] * s["y"], p), sc.jvp(s["y"], p, 1.0)], **REFERENCE)(2.0)
    np.testing.assert_allclose([out[0]["x"], out[0]["y"], out[1], out[2]], [3, -1, 2 * 2 * 1.5 * -0.5, -0.5])


def test_fixed_point_of_a_layer():
    w, b = sc.input("w", "float64", (3, 3)), sc.input("b", "float64", (3,))
    x = sc.custom_fixed_point(lambda x: sc.tanh(w @ x + b), sc.zeros(3), tolerance=1e-13)
    loss = sc.sum(x * x)
    dw, db = sc.grad(loss, [w, b])
    f = sc.compile([x, dw, db, sc.jvp(x, b, sc.ones(3))], **REFERENCE)
    rng = np.random.default_rng(0)
    w_, b_ = rng.normal(size=(3, 3)) * 0.3, rng.normal(size=3)
    x_, dw_, db_, moved = f(w_, b_)
    np.testing.assert_allclose(np.tanh(w_ @ x_ + b_), x_, rtol=1e-11)
    d = np.diag(1 - x_**2)
    back = np.linalg.solve((np.eye(3) - d @ w_).T, 2 * x_)
    np.testing.assert_allclose(db_, d @ back, rtol=1e-9)
    np.testing.assert_allclose(dw_, np.outer(d @ back, x_), rtol=1e-9)
    np.testing.assert_allclose(moved, np.linalg.solve(np.eye(3) - d @ w_, d @ np.ones(3)), rtol=1e-9)


def test_compiled_and_in_a_loop():
    a = sc.input("a", "float64", ("n",))
    total = sc.scan(lambda s, row: (s + cubic(row), None), 0.0, a)[0]
    found = sc.compile([total, sc.grad(total, a)])(np.array([0.3, 2.0, 10.0]))
    want = sc.compile([total, sc.grad(total, a)], **REFERENCE)(np.array([0.3, 2.0, 10.0]))
    for x, y in zip(found, want, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12)


@pytest.mark.parametrize("mistake, error, text", [
    (lambda a: sc.custom_root(lambda x: x - a, sc.zeros(3), lambda f, x: x), sc.GradientError, "tangent_solve is"),
    (lambda a: sc.custom_root(lambda x: sc.stack([x, a]), sc.zeros(()), lambda f, x: x), sc.ShapeError, "f\\(x\\)"),
    (lambda a: sc.custom_root(lambda x: x - a, 1, lambda f, x: x), sc.GradientError, "only floats"),
    (lambda a: sc.custom_root(lambda x: x - a, sc.zeros(()), lambda f, x: (x, x)), sc.ShapeError, "the answer"),
    (lambda a: sc.custom_fixed_point(lambda x: [x, x], sc.zeros(())), sc.ShapeError, "f\\(x\\)"),
])
def test_mistakes_are_explained(mistake, error, text):
    with pytest.raises(error, match=text):
        mistake(sc.input("a", "float64", ()))
