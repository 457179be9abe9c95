"""Derivatives of whole graphs: orders, modes, connections, kinks, and zeros that stay zero.

Each op's own derivative is tested in test_every_derivative.py, from the registry.
"""

from __future__ import annotations

import dataclasses
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symc as sc
from symc.errors import GradientError, InputError
from symc.grad import connected, disconnection
from symc.grad import jvp as jvp_values
from symc.grad import vjp as vjp_values
from symc.ir import location
from symc.ir.op import lookup, splat
from symc.ir.reference import run_values
from symc.ir.traverse import postorder
from symc.ir.types import TensorType
from symc.ir.value import fresh_input
from symc.tensors import pytree as nest


def number(result, env, sizes=None):
    """A tensor, or a nest of them, as arrays, by the reference evaluator."""
    if isinstance(result, list | tuple):
        return [number(r, env, sizes) for r in result]
    if isinstance(result, dict):
        return {k: number(r, env, sizes) for k, r in result.items()}
    arrays = {x.value: np.asarray(a, x.dtype) for x, a in env.items()}
    return run_values([result.value], arrays, sizes or {}, check=True)[0]


def gradient_at(fn, *points):
    """The gradient of sum(fn) at each point."""
    xs = [sc.input(f"x{k}", np.asarray(p).dtype, np.shape(p)) for k, p in enumerate(points)]
    cost = sc.sum(fn(*xs))
    return number(sc.grad(cost, xs), dict(zip(xs, points, strict=True)))


# --- where a branch is not taken, and other zeros ---------------------------------------------------------------------

INF = np.inf
NAN_SAFE = {
    "log of 0": (lambda x: sc.where(x > 0, sc.log(x), 0.0), [0.0, 2.0], [0.0, 0.5]),
    "log of a negative": (lambda x: sc.where(x > 0, sc.log(x), 0.0), [-1.0, 2.0], [0.0, 0.5]),
    "sqrt of 0": (lambda x: sc.where(x > 0, sc.sqrt(x), 0.0), [0.0, 4.0], [0.0, 0.25]),
    "reciprocal": (lambda x: sc.where(x != 0, 1 / x, 0.0), [0.0, 2.0], [0.0, -0.25]),
    "sinc": (lambda x: sc.where(x != 0, sc.sin(x) / x, 1.0), [0.0], [0.0]),
    "negative power": (lambda x: sc.where(x > 0, x**-0.5, 0.0), [0.0, 1.0], [0.0, -0.5]),
    "exp overflows": (lambda x: sc.where(x < 10, sc.exp(x), 0.0), [1000.0, 0.0], [0.0, 1.0]),
    "entropy": (lambda x: sc.where(x > 0, x * sc.log(x), 0.0), [0.0, 1.0], [0.0, 1.0]),
    "sin of infinity": (lambda x: sc.where(x != 0, sc.sin(1 / x), 0.0), [0.0], [0.0]),
    "tan and exp": (lambda x: sc.where(x < 5, sc.tanh(sc.exp(x) * 0.0 + x), 0.0), [1000.0, 0.0], [0.0, 1.0]),
    "nested": (lambda x: sc.where(x > 1, sc.sqrt(sc.where(x > 0, sc.log(x), 1.0)), 0.0),
               [0.0, 1.0, np.e], [0, 0, 0.5 / np.e]),
    "acos at 1": (lambda x: sc.where(abs(x) < 1, sc.arccos(x), 0.0), [1.0, 0.0], [0.0, -1.0]),
    "root of a difference": (lambda x: sc.where(x > 1, sc.sqrt(x * x - 1), 0.0), [1.0], [0.0]),
    "lgamma": (lambda x: sc.where(x > 0, sc.gammaln(x), 0.0), [0.0, -1.0], [0.0, 0.0]),
    "both branches": (lambda x: sc.where(x > 0, sc.log(x), sc.sqrt(-x)), [4.0, -4.0], [0.25, -0.25]),
    "masked mean": (lambda x: sc.where(x.sum() > 5, x.sum() / (x * 0).sum(), 0.0), [1.0, 2.0], [0.0, 0.0]),
    "minimum of exp": (lambda x: sc.minimum(sc.exp(x), 5.0), [1000.0, 0.0], [0.0, 1.0]),
    "clip of exp": (lambda x: sc.clip(sc.exp(x), 0.0, 5.0), [1000.0, 0.0], [0.0, 1.0]),
    "maximum of log": (lambda x: sc.maximum(sc.log(x), -1.0), [0.0, 1.0], [0.0, 1.0]),
    "max of log": (lambda x: sc.log(x).max(), [0.0, 2.0], [0.0, 0.5]),
    "an element": (lambda x: sc.exp(x)[0], [0.0, 1000.0], [1.0, 0.0]),
    "a slice": (lambda x: (x * sc.log(x))[1:], [0.0, 1.0], [0.0, 1.0]),
    "a gather": (lambda x: sc.exp(x)[np.array([0, 0])], [0.0, 1000.0], [2.0, 0.0]),
    "a set element": (lambda x: sc.log(x).at[0].set(0.0), [0.0, 1.0], [0.0, 1.0]),
    "zero weight": (lambda x: 0.0 * sc.sqrt(x), [0.0, 1.0], [0.0, 0.0]),
    "norm at 0": (lambda x: sc.linalg.norm(x), [0.0, 0.0], [0.0, 0.0]),
    "norm by hand at 0": (lambda x: sc.sqrt((x * x).sum()), [0.0, 0.0], [0.0, 0.0]),
    "hypot at 0": (lambda x: sc.hypot(x, x * 2), [0.0], [0.0]),
    "atan2 at 0": (lambda x: sc.arctan2(x, x * 2), [0.0], [0.0]),
    "power 0": (lambda x: x**0.0, [0.0, 2.0], [0.0, 0.0]),
    "power 1": (lambda x: x**1.0, [0.0], [1.0]),
    "power 2": (lambda x: x**2.0, [0.0, 3.0], [0.0, 6.0]),
    "0 to a power": (lambda y: sc.zeros(2) ** y, [0.0, 2.0], [0.0, 0.0]),
    "product with zeros": (lambda x: x.prod(), [0.0, 2.0, 3.0], [6.0, 0.0, 0.0]),
    "running product": (lambda x: sc.cumprod(x), [0.0, 2.0], [3.0, 0.0]),
    "log of a sum of exp": (lambda x: sc.log(sc.exp(x).sum()), [1000.0, 0.0], [1.0, 0.0]),
    "softplus by hand": (lambda x: sc.log(1 + sc.exp(x)), [1000.0, -1000.0], [1.0, 0.0]),
    "logaddexp of -inf": (lambda x: sc.where(x > -1, x, sc.logaddexp(x, x)), [-INF, 1.0], [1.0, 1.0]),
}


@pytest.mark.parametrize("name", NAN_SAFE)
def test_no_nan_from_what_does_not_matter(name):
    fn, point, expected = NAN_SAFE[name]
    (got,) = gradient_at(fn, np.array(point))
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def test_the_other_factor_of_a_branch_not_taken():
    got = gradient_at(lambda x, y: sc.where(x > 0, y * sc.log(x), 0.0), np.array([0.0, 1.0]), np.array([3.0, 3.0]))
    np.testing.assert_array_equal(got, [[0, 3], [0, 0]])


def test_no_nan_in_second_derivatives():
    x = sc.vector("x", shape=(2,))
    cost = sc.where(x > 0, sc.log(x) * x, 0.0).sum()
    second = sc.hvp(cost, x, np.ones(2))
    np.testing.assert_array_equal(number(second, {x: [0.0, 2.0]}), [0, 0.5])
    twice = sc.grad(sc.grad(cost, x).sum(), x)
    np.testing.assert_array_equal(number(twice, {x: [0.0, 2.0]}), [0, 0.5])


def test_an_honest_infinity_stays():
    assert gradient_at(sc.log, np.array([0.0]))[0] == INF
    assert gradient_at(sc.sqrt, np.array([0.0]))[0] == INF


KINKS = {
    "abs": (abs, 0.0, 0.0),
    "sign": (sc.sign, 0.0, 0.0),
    "floor": (sc.floor, 1.0, 0.0),
    "relu": (lambda x: sc.maximum(x, 0.0), 0.0, 0.5),
    "minimum of equals": (lambda x: sc.minimum(x, x * 1.0), 2.0, 1.0),
    "x mod 1": (lambda x: x % 1.0, 2.0, 1.0),
}


@pytest.mark.parametrize("name", KINKS)
def test_kinks(name):
    fn, point, expected = KINKS[name]
    assert gradient_at(fn, np.float64(point))[0] == expected


def test_max_splits_evenly_between_equals():
    assert gradient_at(lambda x: x.max(), np.array([3.0, 1.0, 3.0]))[0].tolist() == [0.5, 0, 0.5]


# --- orders and modes -------------------------------------------------------------------------------------------------


def test_derivatives_of_derivatives():
    x = sc.scalar("x")
    y = sc.sin(x) * x**3
    for expected in (lambda x: np.cos(x) * x**3 + 3 * x**2 * np.sin(x),
                     lambda x: -np.sin(x) * x**3 + 6 * x**2 * np.cos(x) + 6 * x * np.sin(x),
                     lambda x: -np.cos(x) * x**3 - 9 * x**2 * np.sin(x) + 18 * x * np.cos(x) + 6 * np.sin(x)):
        y = sc.grad(y, x)
        np.testing.assert_allclose(number(y, {x: 0.7}), expected(0.7), rtol=1e-12)


def test_mixed_partials_commute():
    x, y = sc.scalar("x"), sc.scalar("y")
    f = sc.exp(x * y) * sc.sin(x + y * y)
    xy, yx = sc.grad(sc.grad(f, x), y), sc.grad(sc.grad(f, y), x)
    forward = sc.jvp(sc.grad(f, x), y, 1.0)
    at = {x: 0.3, y: -0.8}
    np.testing.assert_allclose(number(xy, at), number(yx, at), rtol=1e-12)
    np.testing.assert_allclose(number(xy, at), number(forward, at), rtol=1e-12)


def test_hessian_is_hvp_is_difference_for_any_size():
    x = sc.vector("x", shape=("n",))
    cost = (sc.exp(x[1:] * x[:-1])).sum() + (x**3).sum()
    at, n = np.array([0.2, -0.5, 0.9]), {"n": 3}
    h = number(sc.hessian(cost, x), {x: at}, n)
    v = np.array([1.0, 2.0, -1.0])
    np.testing.assert_allclose(number(sc.hvp(cost, x, sc.cos(x)), {x: at}, n), h @ np.cos(at), rtol=1e-12)
    np.testing.assert_allclose(h, h.T, rtol=1e-12)
    g = sc.grad(cost, x)
    step = 1e-6
    difference = (number(g, {x: at + step * v}, n) - number(g, {x: at - step * v}, n)) / (2 * step)
    np.testing.assert_allclose(h @ v, difference, rtol=1e-7)


def test_jacobian_modes_agree_and_keep_all_axes():
    x, a = sc.matrix("x", shape=("n", 2)), sc.matrix("a", shape=(4, "n"))
    y = sc.tanh(a @ x)
    env, sizes = {x: np.arange(6.0).reshape(3, 2) / 7, a: np.arange(12.0).reshape(4, 3) / 11}, {"n": 3}
    rev, fwd = (number(sc.jacobian(y, x, mode=m), env, sizes) for m in ("rev", "fwd"))
    assert rev.shape == (4, 2, 3, 2)
    np.testing.assert_allclose(rev, fwd, rtol=1e-12)
    out = np.tanh(env[a] @ env[x])
    np.testing.assert_allclose(rev, np.einsum("ik,ij,jl->ijkl", env[a], 1 - out**2, np.eye(2)), rtol=1e-12)


def test_nests_in_and_out():
    @dataclasses.dataclass
    class Layer:
        w: object
        b: object

    w, b, c = sc.matrix("w", shape=(2, 2)), sc.vector("b", shape=(2,)), sc.scalar("c")
    params = {"layers": [Layer(w, b)], "c": c}
    cost = (w @ b).sum() * c
    g = sc.grad(cost, params)
    at = {w: np.eye(2), b: [1.0, 2.0], c: 3.0}
    assert isinstance(g["layers"][0], Layer)
    assert number(g["c"], at) == 3
    np.testing.assert_array_equal(number(g["layers"][0].b, at), [3, 3])
    h = sc.hessian(cost, {"b": b, "c": c})
    np.testing.assert_array_equal(number(h["b"]["c"], at), [1, 1])
    np.testing.assert_array_equal(number(h["c"]["b"], at), [1, 1])
    np.testing.assert_array_equal(number(h["b"]["b"], at), np.zeros((2, 2)))
    tangents = {"layers": [Layer(w * 0, b * 0 + 1)], "c": 2.0}
    assert number(sc.jvp([cost], params, tangents)[0], at) == 3 * 2 + 3 * 2


def test_an_intermediate_value_can_be_differentiated_by():
    x = sc.scalar("x")
    h = sc.exp(x)
    cost = h * h + x
    g = sc.grad(cost, [x, h])
    at = {x: 0.5}
    np.testing.assert_allclose(number(g[1], at), 2 * np.exp(0.5), rtol=1e-12)
    np.testing.assert_allclose(number(g[0], at), 2 * np.exp(1.0) + 1, rtol=1e-12)  # through h too


def test_stable_formulas_do_not_hide_a_value_in_wrt():
    x = sc.scalar("x")
    h = sc.exp(x)
    y = sc.log(1 + h)  # softplus(x), if nobody asks about h
    np.testing.assert_allclose(number(sc.grad(y, h), {x: 0.5}), 1 / (1 + np.exp(0.5)), rtol=1e-12)
    np.testing.assert_allclose(number(sc.jvp(y, h, 1.0), {x: 0.5}), 1 / (1 + np.exp(0.5)), rtol=1e-12)
    assert number(sc.grad(y, x), {x: 1000.0}) == 1


def test_ir_level_vjp_cuts_at_wrt():
    x = fresh_input(TensorType("f64", ()))
    h = lookup("exp")(x)
    y = h * x
    dx, dh = vjp_values([y], [x, h], [splat(1, y.type)])
    got = run_values([dx, dh], {x: np.float64(0.5)}, {})
    np.testing.assert_allclose(got, [np.exp(0.5), 0.5])


def test_vjp_and_cotangent_weigh_the_outputs():
    x = sc.vector("x", shape=(3,))
    c = np.array([1.0, 2.0, 3.0])
    at = {x: [1.0, 2.0, 3.0]}
    np.testing.assert_array_equal(number(sc.grad(x * x, x, cotangent=c), at), 2 * c * c)
    np.testing.assert_array_equal(number(sc.vjp((x * x, x.sum()), x, (c, 5.0)), at), 2 * c * c + 5)


def test_value_and_grad_of_a_function():
    x, y = sc.scalar("x"), sc.scalar("y")
    value, (gy,) = sc.value_and_grad(lambda x, y: x * y * y, argnums=(1,))(x, y)
    at = {x: 2.0, y: 3.0}
    assert (number(value, at), number(gy, at)) == (18, 12)


@pytest.mark.parametrize("argnums", [0, 1, -1, (0,), (1, 0)])
@pytest.mark.parametrize("what", ["grad", "jacobian", "hessian"])
def test_of_a_function_is_a_function_of_arrays(what, argnums):
    """Equal arrays are two arguments, and an array of the closure is none."""
    transform, a = getattr(sc, what), np.array([2.0, 0.5])

    def cost(x, y):
        return sc.sum(x**3 * y + a * x)

    x, y = sc.vector("x", shape=(2,)), sc.vector("y", shape=(2,))
    wrt = (x, y)[argnums] if isinstance(argnums, int) else tuple((x, y)[k] for k in argnums)
    wanted = sc.compile(transform(cost(x, y), wrt), [x, y])(a, a)
    for found in (transform(cost, argnums)(a, a), sc.jit(transform(cost, argnums=argnums))(a, a)):
        for f, w in zip(nest.flatten(found)[0], nest.flatten(wanted)[0], strict=True):
            np.testing.assert_allclose(f, w)


def test_derivatives_of_functions_nest():
    third = sc.grad(sc.grad(sc.grad(lambda x: x**4)))
    assert float(third(2.0)) == sc.jit(third)(2.0) == 48
    np.testing.assert_allclose(sc.jit(sc.vmap(sc.grad(lambda x: x * x)))(np.arange(3.0)), [0, 2, 4])


@pytest.mark.parametrize("argnums, message", [
    (2, "grad: argnums has 2, and cost was called with 1 arguments"), ("x", "said by number, not 'x'"),
    (sc.scalar("x"), r"said by number, not Tensor\(x"), ((0, 1.0), "said by number")])
def test_arguments_of_a_function_that_are_none(argnums, message):
    def cost(x):
        return x * x

    with pytest.raises(InputError, match=message):
        sc.grad(cost, argnums)(3.0)


def test_a_cost_of_several_values_is_refused():
    with pytest.raises(GradientError, match=r"grad: the cost is a tuple of 2, not one value[\s\S]*name one of them"):
        sc.grad(lambda x: (x * x, x))(3.0)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["add", "sub", "mul", "tanh", "sin", "where", "roll", "dot", "sum", "max"]),
                          st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=12), st.integers(0, 2**31))
def test_vjp_is_the_transpose_of_jvp_on_random_graphs(steps, seed):
    rng = np.random.default_rng(seed)
    xs = [sc.vector(f"x{k}", shape=(4,)) for k in range(2)]
    values = list(xs)
    make = {
        "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
        "tanh": lambda a, b: sc.tanh(a), "sin": lambda a, b: sc.sin(b),
        "where": lambda a, b: sc.where(a > 0.1, a, b), "roll": lambda a, b: sc.roll(a, 1),
        "dot": lambda a, b: (a @ b) * 0.1 + a, "sum": lambda a, b: a.sum() * b, "max": lambda a, b: sc.maximum(a, b),
    }
    for name, i, j in steps:
        values.append(make[name](values[i % len(values)], values[j % len(values)]))
    y = sc.tanh(values[-1] * 0.1)
    points, tangents = ([rng.uniform(-1, 1, 4) for _ in xs] for _ in range(2))
    g = rng.uniform(-1, 1, 4)
    at = dict(zip(xs, points, strict=True))
    moved = number(sc.jvp(y, xs, tangents), at)
    back = number(sc.vjp(y, xs, g, disconnected="zero"), at)
    there = sum(np.sum(b * t) for b, t in zip(back, tangents, strict=True))
    np.testing.assert_allclose(there, np.sum(g * moved), rtol=1e-9, atol=1e-12)


# --- complex ----------------------------------------------------------------------------------------------------------

COMPLEX = {
    "abs squared": lambda z: (z * z.conj()).real,
    "abs": abs,
    "exp": lambda z: sc.exp(z).real,
    "imag": lambda z: (z * z).imag,
    "abs of a product": lambda z: abs(z * z * (1 + 2j)),
    "mixed": lambda z: (z.real * sc.exp(1j * z)).imag,
    "norm": sc.linalg.norm,
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_gradient_is_steepest_ascent(name):
    """Its real and imaginary parts are the derivatives by the real and the imaginary part."""
    fn, z0, h = COMPLEX[name], np.array([0.6 - 0.8j, 1.1 + 0.4j]), 1e-6
    z = sc.input("z", "c128", (2,))
    cost = sc.sum(fn(z))
    got = number(sc.grad(cost, z), {z: z0})
    for k in range(2):
        for unit, part in ((1, got[k].real), (1j, got[k].imag)):
            step = h * unit * np.eye(2)[k]
            difference = (number(cost, {z: z0 + step}) - number(cost, {z: z0 - step})) / (2 * h)
            np.testing.assert_allclose(part, difference, rtol=1e-6, atol=1e-8)


def test_holomorphic_is_the_textbook_derivative():
    z = sc.input("z", "c128", ())
    at = {z: 0.6 - 0.8j}
    expected = 2 * at[z] * np.exp(at[z] ** 2)
    np.testing.assert_allclose(number(sc.grad(sc.exp(z * z), z, holomorphic=True), at), expected)
    for mode in ("rev", "fwd"):
        np.testing.assert_allclose(number(sc.jacobian(sc.exp(z * z), z, mode, holomorphic=True), at), expected)
    with pytest.raises(GradientError, match="cost is complex"):
        sc.grad(sc.exp(z), z)


# --- what is not connected, and other mistakes ------------------------------------------------------------------------


def test_disconnected_says_where():
    x = sc.vector("x", shape=(3,))
    h = sc.exp(x)
    y = sc.stop_gradient(h * 2)  # the end of the path
    with pytest.raises(GradientError) as e:
        sc.grad((y + 1).sum(), x)
    text = str(e.value)
    assert "only through stop_gradient" in text and "%x" in text
    assert "# the end of the path" in text and "h = sc.exp(x)" in text
    assert np.array_equal(number(sc.grad(y.sum(), x, disconnected="zero"), {x: [1.0, 2.0, 3.0]}), np.zeros(3))
    with pytest.warns(sc.DisconnectedWarning, match="stop_gradient"):
        sc.grad(y.sum(), x, disconnected="warn")


def test_disconnection_path_ends_at_the_first_op_without_derivative():
    x = fresh_input(TensorType("f64", (3,)))
    a = lookup("exp")(x)
    b = lookup("argmax")(a, axes=(0,))
    c = lookup("cast")(b, dtype=np.dtype("float64"))
    assert [v for v, _ in disconnection([c], x)] == [x, a, b]
    assert disconnection([a], x) == [] and connected([a], [x]) == [True]
    other = fresh_input(TensorType("f64", ()))
    assert [v for v, _ in disconnection([a], other)] == [other]


def test_a_derivative_that_is_zero_everywhere_is_connected():
    x = sc.scalar("x")
    for y in (sc.floor(x * 2), sc.zero_grad(x * 3), sc.sign(x)):
        assert number(sc.grad(y, x), {x: 0.7}) == 0
        assert number(sc.jvp(y, x, 1.0), {x: 0.7}) == 0


MISTAKES = {
    "cost is not a scalar": (lambda x, n: sc.grad(x * 2, x), r"cost is f64\[3\].*sum it"),
    "integer cost": (lambda x, n: sc.grad(n.sum(), n), "i64"),
    "bool cost": (lambda x, n: sc.grad(sc.all(x > 0), x), "bool"),
    "integer wrt": (lambda x, n: sc.grad((x * n).sum(), n), r"%n : i64\[3\]"),
    "unrelated": (lambda x, n: sc.grad(x.sum(), sc.scalar("other")), "not made of %other"),
    "not symbolic": (lambda x, n: sc.grad(x.sum(), "x"), "wrt is not a symbolic value: str"),
    "a number": (lambda x, n: sc.grad(sc.sum(2.0 * x) * (two := sc.asarray(2.0)), two), "the number 2.0, and equal"),
    "empty wrt": (lambda x, n: sc.grad(x.sum(), []), "wrt is empty"),
    "bad policy": (lambda x, n: sc.grad(x.sum(), x, disconnected="ignore"), "'ignore' is no policy"),
    "bad mode": (lambda x, n: sc.jacobian(x, x, mode="both"), "'both' is no mode"),
    "cotangent shape": (lambda x, n: sc.grad(x, x, cotangent=np.ones(2)), r"cotangent is f64\[2\]"),
    "complex tangent": (lambda x, n: sc.jvp(x, x, 1j * np.ones(3)), "complex"),
    "clip bounds": (lambda x, n: sc.grad_clip(x, 1, 0), "low is 1"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    call, message = MISTAKES[name]
    x, n = sc.vector("x", shape=(3,)), sc.vector("n", "int64", shape=(3,))
    with pytest.raises(GradientError, match=f"(?s){message}") as e:
        call(x, n)
    assert "test_grad.py" in str(e.value)  # the user's line


def test_structures_must_match():
    x = sc.vector("x", shape=(3,))
    with pytest.raises(InputError, match="cotangents must have the structure"):
        sc.vjp((x, x), x, x)


# --- identities -------------------------------------------------------------------------------------------------------


def test_identities_change_the_derivative_alone():
    x = sc.vector("x", shape=(3,))
    at = {x: np.array([-2.0, 0.5, 3.0])}
    for f, factor in ((sc.zero_grad, 0), (sc.reverse_grad, -1), (lambda x: sc.grad_scale(x, 0.25), 0.25)):
        np.testing.assert_array_equal(number(f(x), at), at[x])
        np.testing.assert_array_equal(number(sc.grad((f(x) * x).sum(), x), at), at[x] * (1 + factor))
        np.testing.assert_array_equal(number(sc.jvp(f(x), x, np.ones(3)), at), factor * np.ones(3))
    clipped = sc.grad((sc.grad_clip(x, -1, 1) ** 2).sum(), x)
    np.testing.assert_array_equal(number(clipped, at), [-1, 1, 1])
    both = sc.stop_gradient({"a": x, "b": [x]})
    assert number(both["b"][0], at).tolist() == at[x].tolist()


# --- size and lines ---------------------------------------------------------------------------------------------------


def chain(n):
    x = fresh_input(TensorType("f64", ()))
    h = x
    for _ in range(n):
        h = lookup("log1p")(lookup("expm1")(h))
    return x, h


def test_a_chain_of_50_000_values_under_the_default_recursion_limit():
    assert sys.getrecursionlimit() <= 3000
    x, h = chain(25_000)
    start = time.process_time()
    (g,) = vjp_values([h], [x], [splat(1, h.type)])
    assert time.process_time() - start < 15
    (t,) = jvp_values([h], [x], [splat(1, x.type)])
    got = run_values([g, t], {x: np.float64(0.3)}, {})
    np.testing.assert_allclose(got, [1, 1], rtol=1e-6)


def test_a_gradient_is_a_constant_factor_larger():
    """A value used many times, at every depth: the gradient grows with the graph, not with the number of paths."""
    for n in (50, 200):
        x = fresh_input(TensorType("f64", ()))
        h = x
        for _ in range(n):
            h = lookup("sin")(h * h + x)
        (g,) = vjp_values([h], [x], [splat(1, h.type)])
        assert len(postorder([g])) < 4 * len(postorder([h]))


def test_only_values_on_a_path_are_differentiated():
    x, y = (fresh_input(TensorType("f64", ())) for _ in range(2))
    aside = lookup("exp")(lookup("tan")(y))
    (g,) = vjp_values([aside * x], [x], [splat(1, x.type)])
    assert g is aside


def test_derivatives_know_the_lines_they_come_from():
    x = sc.scalar("x")
    y = sc.tanh(x)
    cost = y * y
    g = sc.grad(cost, x)
    lines = {str(loc) for v in postorder([g.value]) for loc in location.noted(v)}
    first = test_derivatives_know_the_lines_they_come_from.__code__.co_firstlineno
    assert f"gradient of test_grad.py:{first + 2}" in lines
    assert f"gradient of test_grad.py:{first + 3}" in lines


# --- verify_grad ------------------------------------------------------------------------------------------------------


def test_verify_grad_accepts_what_is_right():
    rng = np.random.default_rng(0)
    sc.verify_grad(lambda x, y: sc.sin(x * y).sum() / x, [rng.uniform(1, 2, 3), rng.uniform(1, 2, 3)])
    sc.verify_grad(lambda z: abs(sc.exp(z) * z), [np.array([0.3 - 0.2j, 1j])])
    sc.verify_grad(lambda x, k: x[k], [rng.uniform(size=4), np.array([2, 2, 0])])
    sc.verify_grad(lambda x: {"a": sc.sort(x), "b": (x.max(), x.prod())}, [np.array([0.5, 2.0, 1.0], "float32")])


@pytest.mark.parametrize("mode", ["rev", "fwd"])
def test_verify_grad_rejects_what_is_wrong(mode):
    with pytest.raises(GradientError, match=f"{mode} disagrees"):
        sc.verify_grad(lambda x: sc.grad_scale(sc.exp(x), 2.0), [np.array([1.0, 0.2])], modes=[mode])


def test_verify_grad_rejects_a_wrong_second_derivative():
    def f(x):  # the value and gradient of x**3 / 3, but the gradient's own derivative is doubled
        return x * sc.stop_gradient(x * x) - sc.stop_gradient(x**3 * (2 / 3))

    with pytest.raises(GradientError, match="hvp"):
        sc.verify_grad(f, [np.array([1.0, 0.5])], modes=["hvp"])


def test_verify_grad_rejects_bad_calls():
    with pytest.raises(GradientError, match="no point is a float"):
        sc.verify_grad(lambda x: x, [np.arange(3)])
    with pytest.raises(GradientError, match="mode 'back'"):
        sc.verify_grad(lambda x: x, [np.ones(3)], modes=["back"])


# --- derivatives of derivatives ---------------------------------------------------------------------------------------

NUMBERS = {
    "quotient": (lambda x: sc.sin(x) * sc.exp(x) / (1 + x**2), "sin(x)*exp(x)/(1+x**2)"),
    "nested": (lambda x: sc.exp(sc.sin(x) * sc.log(1 + x * x)), "exp(sin(x)*log(1+x*x))"),
    "powers": (lambda x: sc.sqrt(1 + x**3) * sc.tanh(x), "sqrt(1+x**3)*tanh(x)"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_the_nth_derivative_of_a_number(name):
    """Right, and polynomial in n: the growth from one order to the next gets less. Backwards it is threefold."""
    import mpmath

    f, text = NUMBERS[name]
    x = sc.scalar("x")
    y, sizes = f(x), []
    for order in range(1, 8):
        y = sc.grad(y, x)
        sizes.append(len(list(postorder([y.value]))))
        if order < 6:
            with mpmath.workdps(60):
                names = {n: getattr(mpmath, n) for n in ("sin", "exp", "log", "sqrt", "tanh")}
                want = float(mpmath.diff(lambda t, names=names: eval(text, names, {"x": t}), 0.7, order))
            np.testing.assert_allclose(number([y], {x: 0.7})[0], want, rtol=1e-9)
    assert sizes[-1] < 2.2 * sizes[-2] and sizes[-2] < 2.2 * sizes[-3]


def test_derivatives_of_ones_own_that_go_one_way():
    """An op whose derivative is given backwards, or differs backwards, is not passed forwards."""
    x = sc.scalar("x")
    clipped = sc.grad(3 * sc.grad_clip(x, -1, 1), x)
    assert number([clipped], {x: 0.5})[0] == 1
    block = sc.function_op(lambda t: t * t, vjp=lambda g, t: g * 2 * t + 1)
    assert number([sc.grad(block(x), x)], {x: 0.5})[0] == 2
    op = sc.op(lambda t: np.asarray(t * t), vjp=lambda g, t: g * 2 * t + 1, name="one_way_square")
    assert number([sc.grad(op(x), x)], {x: 0.5})[0] == 2


def test_a_number_goes_through_arrays_backwards():
    x, v = sc.scalar("x"), sc.vector("v", shape=(3,))
    y = sc.sum(sc.sin(x * v)) + sc.where(x > 0, sc.sqrt(x), 0.0) * v[0]
    slopes = [sc.grad(y, x), sc.grad(sc.grad(y, x), x), sc.grad(sc.where(x > 1, sc.sqrt(x - 1), 0.0), x)]
    at = np.array([1.0, 2.0, -0.5])
    got = number(slopes, {x: 0.3, v: at})
    np.testing.assert_allclose(got[0], np.sum(at * np.cos(0.3 * at)) + 0.5 / np.sqrt(0.3), rtol=1e-12)
    np.testing.assert_allclose(got[1], -np.sum(at**2 * np.sin(0.3 * at)) - 0.25 * 0.3**-1.5, rtol=1e-12)
    assert got[2] == 0


# --- compiled ---------------------------------------------------------------------------------------------------------


def test_compiled_derivatives_are_the_evaluated_ones():
    x, v = sc.vector("x", shape=("n",)), sc.vector("v", shape=("n",))
    cost = (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
    results = [sc.grad(cost, x), sc.hvp(cost, x, v), sc.hessian(cost, x), sc.jacobian(sc.sin(x) * x.sum(), x)]
    f = sc.compile(results, [x, v])
    for n in (2, 5):
        at = {x: np.linspace(-1, 1, n), v: np.ones(n)}
        for got, want in zip(f(at[x], at[v]), number(results, at, {"n": n}), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_compiled_complex_gradient():
    """The parts of abs differ in type and share memory."""
    z = sc.input("z", "c128", (2,))
    f = sc.compile(sc.grad((abs(z) ** 2).sum(), z))
    np.testing.assert_allclose(f(np.array([1 + 2j, 0])), [2 + 4j, 0])


def test_gradient_of_a_deferred_expression():
    a, b = sc.Variable("A"), sc.Variable("B")
    f = sc.compile(sc.grad(sc.log(a * b).sum(), [a, b]))
    got = f(A=np.ones(3), B=np.full(3, 2.0))
    np.testing.assert_allclose(got, [[1, 1, 1], [0.5, 0.5, 0.5]])


@pytest.mark.parametrize(("fn", "at", "slopes"), [
    (lambda x: 3.0 * x, (3.0,), (3.0,)),  # a number of the function is not its argument
    (lambda x, y: x * y, (3.0, 3.0), (3.0, 3.0)),
    (lambda x: sc.scan(lambda c, _: (c * x, None), sc.asarray(1.0), length=3)[0] + 2 * x, (0.2,), (2.12,)),
    (lambda x: sc.cond(x > 0, lambda: x * 2, lambda: x), (0.2,), (2.0,)),
])
def test_arguments_are_places_whatever_is_equal_to_them(fn, at, slopes):
    places = tuple(range(len(at)))
    found = sc.compile(sc.value_and_grad(fn, places)(*at)[1])()
    np.testing.assert_allclose(found, slopes)
    np.testing.assert_allclose(sc.jit(sc.value_and_grad(fn, places))(*at)[1], slopes)
    v = sc.scalar("v")
    outer = sc.compile([v, sc.value_and_grad(lambda a: a * v)(v)[1]])  # v stays what it is in the function
    assert outer(5.0)[1] == 5.0
