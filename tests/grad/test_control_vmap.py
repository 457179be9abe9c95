"""vmap of loops and branches: the loop over a batch is the loop over every entry, whichever parts are batched."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import symc as sc
from symc.ir.traverse import every_value, postorder
from tests.grad.control_fuzz import NESTED, Loops, recipe, run

RNG = np.random.default_rng(11)
N = 3


def check(fn, arrays, axes, rtol=1e-10):
    """``vmap(fn)`` on batches against ``fn`` on every entry; an array has the batch axis where ``axes`` is not None."""
    inputs = [sc.input(f"b{k}", a.dtype, a.shape) for k, a in enumerate(arrays)]
    out = sc.vmap(fn, in_axes=tuple(axes))(*inputs)
    got = sc.compile(list(out), inputs, mode="reference")(*arrays)
    entries = [a if axis is None else a[0] for a, axis in zip(arrays, axes, strict=True)]
    single = [sc.input(f"s{k}", a.dtype, np.shape(a)) for k, a in enumerate(entries)]
    f = sc.compile(list(fn(*single)), single, mode="reference")
    for k in range(N):
        want = f(*[a if axis is None else a[k] for a, axis in zip(arrays, axes, strict=True)])
        for j, (g, w) in enumerate(zip(got, want, strict=True)):
            np.testing.assert_allclose(g[k], w, rtol=rtol, atol=1e-12, err_msg=f"result {j} of entry {k}, axes {axes}")


def batches(*arrays, axes):
    return [a if axis is None else np.stack([a * 0.8**k for k in range(N)]).astype(a.dtype)
            for a, axis in zip(arrays, axes, strict=True)]


SOME = [axes for axes in itertools.product([0, None], repeat=3) if any(a == 0 for a in axes)]


@pytest.mark.parametrize("axes", SOME)
def test_scan_whichever_parts_are_batched(axes):
    def fn(h0, xs, w):
        def step(c, x):
            h, total, k = c
            return (sc.tanh(h @ w + x), total + h.sum(), k + 1), (x * k, k)

        (h, total, k), (ys, ks) = sc.scan(step, (h0, sc.asarray(0.0), sc.asarray(0)), xs, reverse=True)
        return h, total, k, ys, ks

    check(fn, batches(RNG.normal(size=2), RNG.normal(size=(4, 2)), RNG.normal(size=(2, 2)), axes=axes), axes)


@pytest.mark.parametrize("axes", SOME)
def test_while_whichever_parts_are_batched(axes):
    def fn(x, limit, w):
        def body(s):
            return s[0] + 1, s[1] * w + 0.5

        k, y = sc.while_loop(lambda s: (s[0] < 6) & (s[1].sum() < limit), body, (sc.asarray(0), x), max_steps=5)
        return k, y

    check(fn, batches(np.array([0.1, 0.3]), np.array(9.0), np.array([1.5, 1.2]), axes=axes), axes)


def test_entries_that_are_done_keep_their_carry_and_their_count():
    n = sc.input("n", "int64", (4,))
    from symc.transforms.control import while_count

    def fn(n):
        return while_count(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2.0), (sc.asarray(0), sc.asarray(1.0)))

    (k, y), count = sc.vmap(fn)(n)
    got = sc.compile([k, y, count], [n], mode="reference")([0, 3, 1, 5])
    for a, want in zip(got, ([0, 3, 1, 5], [1, 8, 2, 32], [0, 3, 1, 5]), strict=True):
        np.testing.assert_array_equal(a, want)


def test_what_a_done_entry_would_compute_does_not_matter():
    x = sc.input("x", "float64", (3,))
    y = sc.vmap(lambda v: sc.while_loop(lambda s: s > 1, lambda s: sc.log(s), v))(x)
    np.testing.assert_allclose(sc.compile(y, [x], mode="reference")([0.5, 2.0, 50.0]),
                               [0.5, np.log(2), np.log(np.log(np.log(50.0)))])
    g = sc.grad(y.sum(), x)
    got = sc.compile(g, [x], mode="reference")([0.5, 2.0, 1e9])
    assert np.isfinite(got).all() and got[0] == 1 and got[1] == 0.5


@pytest.mark.parametrize("axes", SOME)
def test_cond_and_switch(axes):
    def fn(p, x, y):
        a, b = sc.cond(p > 1, lambda: (sc.sin(x), y * 2), lambda: (x * y, y))
        (k,) = [p.astype("int64")]
        return a, b, sc.switch(k, [lambda: x, lambda: y, lambda: x - y])

    check(fn, batches(np.array(1.9), np.array([1.0, 2.0]), np.array([0.5, -2.0]), axes=axes), axes)


def test_one_choice_for_all_entries_stays_lazy():
    p, x = sc.input("p", "bool", ()), sc.input("x", "float64", (4,))
    y = sc.vmap(lambda v: sc.cond(p, lambda: sc.debug.assert_(v * 2, False), lambda: v * 3))(x)
    np.testing.assert_array_equal(sc.compile(y, [x, p], mode="reference")(np.ones(4), False), 3)


def test_only_what_is_batched_gets_the_axis():
    xs = sc.input("xs", "float64", ("b", "t"))
    w = sc.input("w", "float64", (5, 5))

    def fn(xs):
        (_, total), _ = sc.scan(lambda c, x: ((sc.tanh(w @ c[0]), c[1] + x * c[0].sum()), None), (sc.ones(5), 0.0), xs)
        return total

    out = sc.vmap(fn)(xs)
    (loop,) = [v for v in postorder([out.value]) if v.op.name == "scan"]
    (product,) = [v for v in every_value(loop.regions[0]) if v.op.name == "dot"]
    assert product.shape == (5,)


def test_axis_and_size_of_a_batch_may_be_anything():
    xs = sc.input("xs", "float64", ("t", "b", 2))
    out = sc.vmap(lambda x: sc.scan(lambda h, r: (h + r, h * r), sc.zeros(2), x), in_axes=1, out_axes=1)(xs)
    final, ys = sc.compile(list(out), [xs], mode="reference")(x := RNG.normal(size=(4, 3, 2)))
    np.testing.assert_allclose(final.T, x.sum(0))
    np.testing.assert_allclose(ys, (np.cumsum(x, 0) - x) * x)


def test_nested_vmap():
    x = sc.input("x", "float64", (2, 3))

    def fn(v):
        return sc.while_loop(lambda s: s < 10, lambda s: s * 2, v)

    got = sc.compile(sc.vmap(sc.vmap(fn))(x), [x], mode="reference")(a := RNG.uniform(0.5, 20, size=(2, 3)))
    want = [[v if v >= 10 else v * 2 ** np.ceil(np.log2(10 / v)) for v in row] for row in a]
    np.testing.assert_allclose(got, want)


NESTS = [(), *((n,) for n in NESTED), ("scan", "while"), ("while", "cond"), ("cond", "scan"), ("scan", "switch"),
         ("switch", "while"), ("while", "scan")]  # fmt: skip


@pytest.mark.parametrize("seed, inner", list(enumerate(NESTS)))
def test_gradients_of_batches(seed, inner):
    rng = np.random.default_rng(seed)
    body = recipe(rng, inner)

    def cost(h0, xs, w):
        def step(carry, x):
            h, k = carry
            a, b = run(Loops(max_steps=4 if seed % 2 else None), body, [h, x], w, k % 3)
            return (sc.tanh(a), k + 1), b

        (h, _), ys = sc.scan(step, (h0, sc.asarray(0)), xs)
        return h.sum() + ys.sum()

    def gradients(h0, xs, w):
        return [cost(h0, xs, w), *sc.grad(cost(h0, xs, w), [h0, xs, w], disconnected="zero")]

    axes = [(0, 0, 0), (0, None, None), (None, 0, 0)][seed % 3]
    arrays = batches(rng.normal(size=3), rng.normal(size=(2, 3)), rng.normal(size=(3, 3)) * 0.7, axes=axes)
    check(gradients, arrays, axes, rtol=1e-8)


def test_jacobian_through_loops():
    x = sc.input("x", "float64", (3,))
    w = RNG.normal(size=(3, 3))
    y, _ = sc.scan(lambda h, _: (sc.tanh(h @ w), None), x, length=3)
    z = sc.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, sc.sin(s[1])), (sc.asarray(0), y), max_steps=3)[1]
    forward, backward = (sc.jacobian(z, x, mode=m) for m in ("fwd", "rev"))
    a, b, h = sc.compile([forward, backward, sc.hessian(z.sum(), x)], [x], mode="reference")(v := RNG.normal(size=3))
    np.testing.assert_allclose(a, b, rtol=1e-10)
    f = sc.compile(sc.grad(z.sum(), x), [x], mode="reference")
    e = 1e-6
    differences = [(f(v + e * d) - f(v - e * d)) / (2 * e) for d in np.eye(3)]
    np.testing.assert_allclose(h, differences, rtol=1e-5, atol=1e-8)
