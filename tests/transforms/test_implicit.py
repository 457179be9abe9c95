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


def test_a_system_that_is_not_symmetric_is_solved_transposed_too():
    """Forward with the Jacobian J of the system, reverse with its transpose, for a solver that is given by hand."""
    j, a = np.array([[2.0, 1.0, 0.0], [0.0, 3.0, -1.0], [0.5, 0.0, 1.5]]), sc.input("a", "float64", (3,))

    def tangent_solve(g, y):
        columns = [g(sc.asarray(e)) for e in np.eye(3)]
        return sc.linalg.solve(sc.stack(columns, axis=1), y)

    x = sc.custom_root(lambda x: sc.asarray(j) @ x + x**3 / 3 - a, sc.zeros(3),
                       lambda f, x: _by_newton(f, x, tangent_solve), tangent_solve)
    weights, direction = np.array([1.0, -2.0, 0.5]), np.array([0.3, 1.0, -1.0])
    results = [x, sc.grad(sc.sum(x * weights), a), sc.jvp(x, a, direction)]
    x_, back, forth = sc.compile(results, [a], mode="default")(np.array([0.4, -0.7, 1.1]))
    whole = j + np.diag(x_**2)
    np.testing.assert_allclose(j @ x_ + x_**3 / 3, [0.4, -0.7, 1.1], rtol=1e-12)
    np.testing.assert_allclose(back, np.linalg.solve(whole.T, weights), rtol=1e-9)
    np.testing.assert_allclose(forth, np.linalg.solve(whole, direction), rtol=1e-9)


def _by_newton(f, x, tangent_solve):
    for _ in range(8):
        at = x
        x = x - tangent_solve(lambda u, at=at: sc.jvp(f(at), at, u), f(at))
    return x


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


# --- what has no answer -----------------------------------------------------------------------------------------------


def fixed(c):
    """The x with c x + 1 = x: no contraction for c of 1 and more."""
    return sc.custom_fixed_point(lambda x: c * x + 1, 0.5, max_steps=60)


def stuck(c):
    """A search for the root of c that stays where it is."""
    return sc.custom_root(lambda x: x * x - c, 2.0, lambda f, x: 1 * x)


def flat(c):
    """The root of c, of which the Jacobian is 0 at 0."""
    return sc.custom_root(lambda x: x * x - c, 1.0, lambda f, x: sc.sqrt(c))


def approximate(c):
    return sc.custom_root(lambda x: x * x - c, 2.0, lambda f, x: 1 * x, tolerance=None)


ALONE = {"alone": lambda g, a: g(a[0]), "scan": lambda g, a: sc.scan(lambda s, c: (s + g(c), None), 0.0, a)[0],
         "vmap": lambda g, a: sc.sum(sc.vmap(g)(a)),
         "branch": lambda g, a: sc.cond(a[0] > 0, g, lambda c: c, a[0]),
         "loop": lambda g, a: sc.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, s[1] + g(a[0])), (0, 0.0))[1]}
MOVED = {"value": lambda y, a: y, "gradient": sc.grad, "tangent": lambda y, a: sc.jvp(y, a, sc.ones_like(a))}


@pytest.mark.parametrize("mode", ["default", "reference"])
@pytest.mark.parametrize("where", ALONE)
@pytest.mark.parametrize("what", MOVED)
def test_what_has_no_answer_raises(mode, where, what):
    a = sc.vector("a")
    for g, good, bad, derivative in ((fixed, 0.5, 1.5, False), (stuck, 4.0, 2.0, False), (flat, 2.0, 0.0, True)):
        y = MOVED[what](ALONE[where](g, a), a)
        if where == "branch" and derivative or where == "loop" and what == "gradient":
            continue  # the other branch is taken; the length of the loop is not known
        f = sc.compile(y, [a], mode=mode)
        assert np.isfinite(f(np.array([good, good]))).all()
        if derivative and what == "value":
            assert f(np.array([bad, bad])) == 0
            continue
        with pytest.raises(sc.ConvergenceError, match=r"no answer was found[^\n]*\n *residual = "):
            f(np.array([bad, bad]))
        assert np.isfinite(f(np.array([good, good]))).all()


def test_debug_mode_raises_too():
    c = sc.scalar("c")
    f = sc.compile([fixed(c), sc.grad(fixed(c), c)], mode="debug")
    assert np.isfinite(f(0.1)).all()
    with pytest.raises(sc.ConvergenceError):
        f(1.5)


def test_the_error_says_where_and_how_far():
    a = sc.vector("a")
    f = sc.compile(sc.vmap(lambda c: sc.custom_fixed_point(lambda x: c - x, 1.0, max_steps=20))(a))
    with pytest.raises(sc.ConvergenceError) as e:
        f(np.array([2.0, 2.0, 7.0]))
    assert "custom_fixed_point for entry [2]: no answer was found after 21 steps" in str(e.value)
    assert "residual = " in str(e.value) and "test_implicit.py" in str(e.value)
    assert isinstance(e.value, RuntimeError)
    assert f(np.zeros(0)).shape == (0,)


def test_a_nan_is_no_answer():
    c = sc.scalar("c")
    for y in (fixed(c), stuck(c)):
        with pytest.raises(sc.ConvergenceError, match="nan"):
            sc.compile(y)(np.nan)


def test_an_approximate_root_can_be_asked_for():
    c = sc.scalar("c")
    f = sc.compile([approximate(c), sc.grad(approximate(c), c)])
    np.testing.assert_allclose(f(3.0), [2.0, 0.25])


def test_states_are_as_they_were_when_a_check_in_a_loop_fails():
    """The body of a loop that became a kernel can fail too: no state is written over before it has succeeded."""
    a, i, c = sc.vector("a"), sc.input("i", "int64", ("k",)), sc.vector("c")
    for search, bad in ((lambda: sc.scan(lambda s, k: (s + a[k], None), 0.0, i)[0], ([0.0], [0, 9], [0.5])),
                        (lambda: sc.scan(lambda s, r: (s + fixed(r), None), 0.0, c)[0], ([0.0], [0], [0.5, 2.0]))):
        v, w = sc.shared(np.zeros(1000)), sc.shared(np.zeros(()))
        f = sc.compile([], [a, i, c], updates={v: v + 1, w: w + search()})
        good = np.zeros(1), np.zeros(1, "i8"), np.full(1, 0.5)
        f(*good)
        before = w.get_value()
        for _ in range(3):
            with pytest.raises(sc.SymcError):
                f(*map(np.array, bad))
            assert (v.get_value() == 1).all() and w.get_value() == before
        f(*good)
        assert (v.get_value() == 2).all()
