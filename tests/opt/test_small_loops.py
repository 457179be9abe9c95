"""Small loops become one kernel (`small_loops`): the same numbers as the loop's reference, and no step of a plan."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.ir.op import lookup
from symc.ir.reference import evaluate_function
from symc.opt import optimize

pytestmark = pytest.mark.long


def both(outputs, inputs, *args, kernels: int = 1):
    """Compiled and by reference; the compiled function is ``kernels`` kernels and nothing else."""
    f = sc.compile(outputs, inputs)
    assert [s.kind for s in f._compilation.plan.steps] == ["launch"] * kernels, str(f.plan)
    want = sc.compile(outputs, inputs, mode="reference")(*args)
    got = f(*args)
    for a, b in zip(flat(got), flat(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
    return f, got


def flat(nest):
    return [x for part in nest for x in flat(part)] if isinstance(nest, tuple | list) else [np.asarray(nest)]


def lorenz(u):
    x, y, z = u[0], u[1], u[2]
    return sc.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8 / 3 * z])


def test_an_integrator_is_one_kernel_and_keeps_its_trace():
    u0 = sc.input("u0", "float64", (3,))

    def step(u, _):
        k = lorenz(u + 0.005 * lorenz(u))
        return u + 0.01 * k, u

    _, (_, trace) = both(sc.scan(step, u0, length=50), [u0], np.ones(3))
    assert trace.shape == (50, 3)


def test_rows_captured_values_and_directions():
    x, w = sc.input("x", "float64", ("n", 2)), sc.input("w", "float64", (2, 2))
    for reverse in (False, True):
        final, ys = sc.scan(lambda h, r: ((h @ w).clip(-1, 1) + r, (h.sum(), r * 2)), sc.zeros(2), x, reverse=reverse)
        rng = np.random.default_rng(0)
        for n in (0, 1, 7):
            both((final, ys), [x, w], rng.normal(size=(n, 2)), rng.normal(size=(2, 2)))


def test_dtypes_swaps_counters_and_choices():
    k = sc.input("k", "int32", ())

    def step(state, _):
        a, b, i, flag = state
        return (b, a + b, i + 1, sc.logical_not(flag)), sc.where(flag, a, -a)

    both(sc.scan(step, (sc.zeros((), "int32"), k, 0, True), length=9), [k], np.int32(3))


def test_while_newton_and_its_number_of_steps():
    a = sc.input("a", "float64", ())
    root = sc.while_loop(lambda x: abs(x * x - a) > 1e-12, lambda x: (x + a / x) / 2, a)
    f, got = both([root], [a], 2.0)
    assert np.isclose(got[0], np.sqrt(2)) and "while True" in f.source
    both([sc.while_loop(lambda x: x > 0, lambda x: x - 1, a, max_steps=3)], [a], 10.0)


def test_nested_loops_and_choices_in_one_kernel():
    x = sc.input("x", "float64", ("n",))

    def step(total, a):
        inner = sc.while_loop(lambda s: s < 100.0, lambda s: s * 2 + 1, a)
        extra = sc.cond(a > 0, lambda: a * 2, lambda: a - 1)
        return total + inner + extra, sc.fori_loop(0, 3, lambda i, s: s * a + i, 1.0)

    both(sc.scan(step, 0.0, x), [x], np.array([0.5, -0.3, 3.0]))


@pytest.mark.parametrize("dtype", ["int64", "uint32", "float64", "bool"])
def test_constant_tables_are_operands_of_the_kernel(dtype):
    tables = [np.arange(300) ** 2 % 251 > 100 if dtype == "bool" else (np.arange(300) ** 2 % 251).astype(dtype),
              np.arange(300)[::-1].copy(), (np.arange(12) % 5).reshape(3, 4)]
    x, k = sc.input("x", "int64", ("n",)), sc.input("k", "int64", ())

    def step(at, r):
        found = sc.asarray(tables[0])[at % 300]
        inner = sc.fori_loop(0, 3, lambda i, s: s + sc.asarray(tables[2])[i, (at + s) % 4], r)
        return (at + sc.asarray(tables[1])[r % 300] + inner) % 1000, found

    both(sc.scan(step, k, x), [k, x], np.int64(7), np.arange(40))
    both(sc.scan(lambda h, row: (h + row * h % 7, h), k, sc.asarray(tables[0].astype("int64"))), [k], np.int64(3))


@pytest.mark.parametrize("what", ["large", "call", "long"])
def test_what_is_not_small_keeps_its_step(what):
    x = sc.input("x", "float64", ("n", 40) if what == "large" else ("n", 3))
    body = {"large": lambda h, r: (h * 0.5 + r, h), "call": lambda h, r: (sc.sort(h) + r, h),
            "long": lambda h, r: (sum((sc.sin(h * k) for k in range(1, 90)), r), h)}[what]
    f = sc.compile(sc.scan(body, sc.zeros(x.shape[1]), x))
    assert any(v.op.name == "scan" for v in f._compilation.final.values())


@pytest.mark.parametrize("name", ["scan", "while"])
def test_loop_form_has_a_reference(name):
    """The stage after the pass, evaluated by NumPy, is what the op means."""
    from symc.ir.attrs import Attrs
    from symc.ir.function import Input, function
    from symc.ir.ops.kernel import results_of
    from symc.ir.types import TensorType
    from symc.ir.value import fresh_input, make

    op = lookup(name)
    for arrays, attrs in op.samples():
        attrs = dict(attrs)
        regions = attrs.pop("regions")
        leaves = [fresh_input(TensorType(np.asarray(a).dtype, np.shape(a))) for a in arrays]
        v = make(op, leaves, Attrs(attrs), regions)
        f = function("f", [(x, Input(f"x{k}", x.type)) for k, x in enumerate(leaves)], results_of(v))
        g = optimize(f, "small_loops").function
        assert any(x.op.name == "fused" for x in g.values())
        for a, b in zip(evaluate_function(f, arrays), evaluate_function(g, arrays), strict=True):
            np.testing.assert_allclose(a, b)
