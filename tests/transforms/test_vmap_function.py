"""``sc.vmap``: what it gives is what a Python loop over the entries gives, through nests, axes, derivatives and jit."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

import symc as sc

RNG = np.random.default_rng(0)


def run(out, feed, mode="reference"):
    return sc.compile(out, list(feed), mode=mode)(*feed.values())


def tensors(**arrays):
    """Inputs with symbolic leading sizes, for arrays by name."""
    return [sc.input(k, a.dtype, [f"{k}{i}" for i in range(a.ndim)]) for k, a in arrays.items()]


@pytest.mark.parametrize("mode", ["reference", "default"])
@pytest.mark.parametrize("in_axis", [0, 1, -1])
@pytest.mark.parametrize("out_axis", [0, 1, -1])
def test_axes(mode, in_axis, out_axis):
    a, b = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 4))
    x, w = sc.input("x", "float64", ("n", "m")), sc.input("w", "float64", (4, 4))
    out = sc.vmap(lambda v: sc.tanh(v * w[: v.shape[0], 0]), in_axis, out_axis)
    got = run(out(x), {x: a, w: b}, mode)
    rows = np.moveaxis(a, in_axis, 0)
    want = np.stack([np.tanh(r * b[: r.shape[0], 0]) for r in rows], axis=out_axis)
    np.testing.assert_allclose(got, want, rtol=1e-14)


def test_the_size_is_symbolic():
    x = sc.input("x", "float64", ("n", 3))
    f = sc.compile(sc.vmap(lambda v: v / sc.sum(v))(x))
    for n in (0, 1, 4):
        a = RNG.uniform(1, 2, (n, 3))
        np.testing.assert_allclose(f(a), a / a.sum(1, keepdims=True), rtol=1e-14)


def test_sizes_that_may_be_equal_are_checked_in_a_call():
    x, y = sc.vector("x"), sc.vector("y")
    f = sc.compile(sc.vmap(lambda a, b: a * b)(x, y))
    assert f([1, 2], [3, 4]).tolist() == [3, 8]
    with pytest.raises(sc.ShapeError, match=r"sc\.vmap"):
        f([1, 2], [3, 4, 5])


@dataclasses.dataclass
class Pair:
    left: object
    right: object


def test_nests_of_arguments_axes_and_results():
    a, b, c = RNG.normal(size=(5, 2)), RNG.normal(size=(2, 5)), RNG.normal(size=2)
    x, y, z = tensors(x=a, y=b, z=c)

    def f(pair, rest, scale=1.0):
        return {"sum": pair.left + pair.right, "rest": (rest[0] * scale, rest[1])}

    axes = (Pair(0, 1), [0, None])
    out = sc.vmap(f, axes, {"sum": 1, "rest": (0, None)})(Pair(x, y), [x, z])
    got = run(out, {x: a, y: b, z: c})
    np.testing.assert_array_equal(got["sum"], a.T + b)
    np.testing.assert_array_equal(got["rest"][0], a)
    np.testing.assert_array_equal(got["rest"][1], c)


def test_keyword_arguments_have_their_entries_along_axis_0():
    a, s = RNG.normal(size=(4, 2)), RNG.normal(size=4)
    x, k = tensors(x=a, k=s)
    got = run(sc.vmap(lambda v, scale: v * scale)(x, scale=k), {x: a, k: s})
    np.testing.assert_array_equal(got, a * s[:, None])


def test_what_is_captured_and_what_is_not_a_tensor_stays_whole():
    w = sc.shared(np.arange(3.0), "w")
    x = sc.matrix("x")
    out = sc.vmap(lambda v, how, k: sc.sum(v * w) if how == "sum" else k, (0, None, None))
    assert sc.compile(out(x, "sum", 7))(np.ones((2, 3))).tolist() == [3, 3]
    assert sc.compile(out(x, "k", 7), [x])(np.ones((2, 3))).tolist() == [7, 7]


def test_numbers_keep_the_dtype_of_single_precision():
    x = sc.vector("x", "float32")
    assert sc.vmap(lambda v: v * 2.5 + 1)(x).dtype == np.float32
    assert sc.vmap(lambda v, s: v * s, (0, None))(x, 2.5).dtype == np.float32


def test_nested():
    a, b = RNG.normal(size=(3, 4)), RNG.normal(size=(5, 4))
    x, y = tensors(x=a, y=b)
    kernel = lambda u, v: sc.exp(-sc.sum((u - v) ** 2))
    table = sc.vmap(sc.vmap(kernel, (None, 0)), (0, None))(x, y)
    want = np.exp(-np.sum((a[:, None] - b[None]) ** 2, axis=2))
    np.testing.assert_allclose(run(table, {x: a, y: b}, "default"), want, rtol=1e-13)


def test_of_a_gradient_and_the_gradient_of_it():
    a, b = RNG.normal(size=(6, 3)), RNG.normal(size=(3, 2))
    x, w = tensors(x=a, w=b)
    loss = lambda v: sc.sum(sc.tanh(v @ w) ** 2)
    rows = sc.vmap(lambda v: sc.grad(loss(v), v))(x)
    whole = sc.grad(sc.sum(sc.vmap(loss)(x)), x)
    weights = sc.vmap(lambda v: sc.grad(loss(v), w))(x)  # one gradient an example
    got = run([rows, whole, weights, sc.grad(sc.sum(sc.vmap(loss)(x)), w)], {x: a, w: b}, "default")
    np.testing.assert_allclose(got[0], got[1], rtol=1e-12)
    assert got[2].shape == (6, 3, 2)
    np.testing.assert_allclose(got[2].sum(0), got[3], rtol=1e-12)
    sc.verify_grad(lambda v: sc.vmap(lambda r: sc.logsumexp(r))(v), [a])


def test_of_a_hessian():
    a = RNG.normal(size=(4, 3))
    (x,) = tensors(x=a)
    got = run(sc.vmap(lambda v: sc.hessian(sc.sum(v**3), v))(x), {x: a})
    np.testing.assert_allclose(got, np.stack([np.diag(6 * r) for r in a]), rtol=1e-12)


@pytest.mark.parametrize("mode", ["reference", "default"])
def test_of_loops_and_branches(mode):
    a, b = RNG.normal(size=(4, 3)), RNG.uniform(0.5, 3, size=4)
    x, w = tensors(x=a, w=b)

    def entry(row, s):
        last, all_ = sc.scan(lambda c, r: (sc.tanh(c * s + r), c), s, row)
        doubled = sc.while_loop(lambda c: c < 10, lambda c: c * 2, s, max_steps=20)
        chosen = sc.cond(s > 1.5, lambda v: sc.sum(v), lambda v: sc.prod(v), row)
        return last, all_, doubled, chosen

    def slope(row, s):
        last, _, doubled, chosen = entry(row, s)
        return sc.grad(last + doubled + chosen, [row, s])

    got = run([sc.vmap(entry)(x, w), sc.vmap(slope)(x, w)], {x: a, w: b}, mode)
    row, s = sc.vector("row"), sc.scalar("s")
    one = sc.compile([entry(row, s), slope(row, s)], [row, s], mode="reference")
    for k in range(4):
        values, slopes = one(a[k], b[k])
        for g, want in zip([*got[0], *got[1]], [*values, *slopes], strict=True):
            np.testing.assert_allclose(g[k], want, rtol=1e-10, atol=1e-12)


def test_with_jit_on_either_side():
    a, b = RNG.normal(size=(3, 4)), RNG.normal(size=4)
    outside = sc.jit(sc.vmap(lambda row, v: row @ v, (0, None)))
    inside = sc.vmap(sc.jit(lambda row, v: row @ v), (0, None))
    x, v = tensors(x=a, v=b)
    np.testing.assert_allclose(outside(a, b), a @ b, rtol=1e-14)
    np.testing.assert_allclose(run(inside(x, v), {x: a, v: b}), a @ b, rtol=1e-14)


def test_variables_without_a_type():
    x = sc.Variable("x")
    f = sc.compile(sc.vmap(lambda v: sc.sum(v))(x))
    assert f(x=np.ones((2, 3))).tolist() == [3, 3] and f(x=np.ones((2, 3, 4))).tolist() == [12, 12]


def test_an_array_of_numbers_can_be_batched():
    assert sc.compile(sc.vmap(lambda v: v.sum())(np.arange(6).reshape(2, 3)))().tolist() == [3, 12]


def test_lines_are_those_of_the_function():
    x = sc.matrix("x")

    def entry(v):
        doubled = v * 2
        return sc.exp(doubled)

    text = sc.compile(sc.vmap(entry)(x)).dump("input")
    first = entry.__code__.co_firstlineno
    assert re.search(rf"mul .*test_vmap_function.py:{first + 1}\b", text)
    assert re.search(rf"exp .*test_vmap_function.py:{first + 2}\b", text)


def test_errors_inside_name_the_argument_and_the_line():
    x = sc.input("rows", "float64", ("n", 3))
    with pytest.raises(sc.ShapeError, match=r"(?s)%rows : f64\[3\].*sc.vmap\(lambda v: v \+ np.ones\(2\)"):
        sc.vmap(lambda v: v + np.ones(2))(x)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda x, y: sc.vmap(lambda a, b: a)(x, y), sc.ShapeError, "a has 2 entries, b has 3"),
    (lambda x, y: sc.vmap(lambda a: a, 2)(x), sc.ShapeError, "a has no axis 2, it has 2 axes"),
    (lambda x, y: sc.vmap(lambda a: a)(1.0), sc.ShapeError, "a has no axis 0, it has 0 axes"),
    (lambda x, y: sc.vmap(lambda a: a, 0, 3)(x), sc.ShapeError, "result of 2 axes has no axis 3"),
    (lambda x, y: sc.vmap(lambda a: None)(x), sc.InputError, "the function returns no tensors"),
    (lambda x, y: sc.vmap(lambda a: "a")(x), sc.InputError, "result is not a tensor but str 'a'"),
    (lambda x, y: sc.vmap(lambda a: a)("a"), sc.InputError, "a is not a tensor but str 'a'"),
    (lambda x, y: sc.vmap(lambda a: a, None)(x), sc.InputError, "no argument has a batch axis"),
    (lambda x, y: sc.vmap(lambda a: a, (0, 0))(x), sc.InputError, "in_axes has 2 items for 1 positional arguments"),
    (lambda x, y: sc.vmap(lambda a: a, ({"k": 0},))((x, y)), sc.InputError, r"in_axes\[0\] must be an int, None"),
    (lambda x, y: sc.vmap(lambda a: a, (True,))(x), sc.InputError, r"in_axes\[0\] must be an int, None"),
    (lambda x, y: sc.vmap(lambda a: a, 0, None)(x), sc.InputError, "result differs between entries"),
    (lambda x, y: sc.vmap(x), sc.InputError, "vmap takes a function, not Tensor"),
    (lambda x, y: sc.vmap(lambda a: sc.Variable("z") * a)(x), sc.InputError, "uses a variable without a type"),
])  # fmt: skip
def test_mistakes(call, error, text):
    x, y = sc.input("x", "float64", (2, 3)), sc.input("y", "float64", (3, 3))
    with pytest.raises(error, match=text) as e:
        call(x, y)
    assert "test_vmap_function.py" in str(e.value)
