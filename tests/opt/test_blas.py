"""Sums of products: how many calls of which routine they are, in whose memory, and that they mean what they meant."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symc as sc
from symc.codegen.plan.library_calls import library_calls
from symc.driver.build import build
from symc.ir.types import TensorType
from symc.ir.value import fresh_input
from symc.opt import run_pass
from symc.opt.loops.rows import row_op
from symc.tensors.callsite import caller
from symc.testing import assert_no_alloc

SHAPES = {"A": "mk", "B": "kn", "C": "mn", "D": "mn", "E": "mk", "F": "nk", "u": "k", "v": "m", "w": "n",
          "s": "", "t": ""}  # fmt: skip
SIZES = {"m": 9, "k": 11, "n": 10}


def leaves(names: str, dtype: str = "float64") -> list[sc.Tensor]:
    """Variables of the shapes above."""
    return [sc.input(x, dtype, shape=tuple(SHAPES[x])) for x in names]


def arrays(names: str, dtype: str = "float64", **sizes: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    out = []
    for x in names:
        shape = tuple({**SIZES, **sizes}[d] for d in SHAPES[x])
        a = rng.normal(size=shape)
        out.append(np.asarray(a + 1j * rng.normal(size=shape) if dtype[0] == "c" else a, dtype))
    return out


def check(f, names: str, expression, dtype: str = "float64", **sizes: int) -> None:
    """``f`` gives what NumPy gives for the same expression, to rounding."""
    given = arrays(names, dtype, **sizes)
    with np.errstate(all="ignore"):
        want = np.asarray(expression(*given))
    got = f(*given)
    assert (got.shape, got.dtype) == (want.shape, np.dtype(dtype))
    np.testing.assert_allclose(got, want, rtol=0, atol=200 * np.finfo(dtype).eps * 10)


# --- one call, nothing else -------------------------------------------------------------------------------------------

ONE = {
    "0.5 * C + 2 * A @ B": ("ABC", lambda a, b, c: 0.5 * c + 2 * (a @ b)),
    "C - A @ B": ("ABC", lambda a, b, c: c - a @ b),
    "A @ B - C": ("ABC", lambda a, b, c: a @ b - c),
    "-(A @ B) - C": ("ABC", lambda a, b, c: -(a @ b) - c),
    "(C - A @ B) / 3": ("ABC", lambda a, b, c: (c - a @ b) / 3),
    "2 * (C - 3 * (A @ B) / 4) * 5": ("ABC", lambda a, b, c: 2 * (c - 3 * (a @ b) / 4) * 5),
    "C + A @ F.T": ("AFC", lambda a, f, c: c + a @ f.T),
    "C + (F @ A.T).T": ("AFC", lambda a, f, c: c + (f @ a.T).T),
    "C.T @ A + F": ("CAF", lambda c, a, f: c.T @ a + f),
    "2 * A @ B": ("AB", lambda a, b: 2 * (a @ b)),
    "-A @ B": ("AB", lambda a, b: -(a @ b)),
    "s * A @ B": ("ABs", lambda a, b, s: s * (a @ b)),
    "s * A @ B + t * C": ("ABCst", lambda a, b, c, s, t: s * (a @ b) + t * c),
    "t * (C - s * A @ B * 2) / 8": ("ABCs", lambda a, b, c, s: (c - s * (a @ b) * 2) / 8),
    "C + C + A @ B": ("ABC", lambda a, b, c: c + c + a @ b),
    "C - A @ B - 0.25 * C": ("ABC", lambda a, b, c: c - a @ b - 0.25 * c),
    "(A.T @ C).T - F": ("ACF", lambda a, c, f: (a.T @ c).T - f),
}  # fmt: skip


@pytest.mark.usefixtures("each_library")
@pytest.mark.parametrize("text", ONE)
def test_one_call_and_no_kernel(text):
    names, expression = ONE[text]
    variables = leaves(names)
    f = sc.compile(expression(*variables), variables)
    assert len(f.kernels) == 0, f.plan
    assert f.calls == {"gemm": 1}
    check(f, names, expression)


@pytest.mark.usefixtures("each_library")
@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
def test_other_dtypes(dtype):
    variables = leaves("ABCst", dtype)

    def expression(a, b, c, s, t):
        return s * (a @ b) - np.asarray(0.3, dtype)[()] * c * t

    f = sc.compile(expression(*variables), variables)
    assert f.calls == {"gemm": 1} and not f.kernels
    check(f, "ABCst", expression, dtype)


@pytest.mark.parametrize("number", [2j, -0.5 + 1j])
def test_complex_numbers(number):
    variables = leaves("ABC", "complex128")
    f = sc.compile(variables[2] - number * (variables[0] @ variables[1]), variables)
    assert f.calls == {"gemm": 1}
    check(f, "ABC", lambda a, b, c: c - number * (a @ b), "complex128")


def test_what_a_library_does_not_multiply():
    """Integers and half precision are kernels."""
    for dtype in ("int64", "float16"):
        a, b, c = leaves("ABC", dtype)
        f = sc.compile(c + 2 * (a @ b), [a, b, c])
        given = [x.astype(dtype) for x in arrays("ABC")]
        want = given[2] + 2 * (given[0] @ given[1])
        np.testing.assert_allclose(f(*given).astype("f8"), want.astype("f8"), rtol=3e-3, atol=3e-3)
        assert f.calls == ({} if dtype == "int64" else {"gemm": 1})


GEMV = {
    "A @ u": ("Au", lambda a, u: a @ u),
    "A.T @ v": ("Av", lambda a, v: a.T @ v),
    "2 * A @ u - v": ("Auv", lambda a, u, v: 2 * (a @ u) - v),
    "s * A @ u + t * v": ("Auvst", lambda a, u, v, s, t: s * (a @ u) + t * v),
    "u - A.T @ v / 2": ("Auv", lambda a, u, v: u - a.T @ v / 2),
    "v @ A + u": ("vAu", lambda v, a, u: v @ a + u),
    "A @ u[:, None]": ("Au", lambda a, u: a @ u[:, None]),
    "(A @ u[:, None])[:, 0] + v": ("Auv", lambda a, u, v: (a @ u[:, None])[:, 0] + v),
    "(v[None] @ A)[0] - u": ("Auv", lambda a, u, v: (v[None] @ a)[0] - u),
}  # fmt: skip


@pytest.mark.usefixtures("each_library")
@pytest.mark.parametrize("text", GEMV)
def test_matrix_times_vector(text):
    names, expression = GEMV[text]
    variables = leaves(names)
    f = sc.compile(expression(*variables), variables)
    assert (f.calls, len(f.kernels)) == ({"gemv": 1}, 0), f.plan
    check(f, names, expression)


SEVERAL = {
    "A @ B + E @ B": ("ABEF", lambda a, b, e, f: a @ b + e @ f.T, 2),
    "A @ B - 2 * E @ F.T + C": ("ABCEF", lambda a, b, c, e, f: a @ b - 2 * (e @ f.T) + c, 2),
    "3 * A @ B - E @ F.T + D @ F @ B": ("ABDEF", lambda a, b, d, e, f: 3 * (a @ b) - e @ f.T + d @ (f @ b), 4),
    "A @ u + E @ u": ("AEuv", lambda a, e, u, v: a @ u + 2 * (e @ u) - v, 2),
}  # fmt: skip


@pytest.mark.parametrize("text", SEVERAL)
def test_the_first_product_writes_and_the_others_add(text):
    names, expression, most = SEVERAL[text]
    variables = leaves(names)
    f = sc.compile(expression(*variables), variables, pipeline="canonicalize,simplify,blas,fuse")
    assert sum(f.calls.values()) <= most and not f.kernels, f.plan
    steps = f._compilation.plan.steps
    written = [s.writes[0] for s in steps if s.value.shape == steps[-1].value.shape]
    assert len(set(written)) <= 1 + (text[0] == "3")  # one buffer
    check(f, names, expression)


@pytest.mark.usefixtures("each_library")
def test_batches():
    for left, right in (("bmk", "bkn"), ("bmk", "bnk"), ("bkm", "bkn")):
        x, y = sc.input("x", "float64", shape=tuple(left)), sc.input("y", "float64", shape=tuple(right))
        c, s = sc.input("c", "float64", shape=tuple("bmn")), sc.input("s", "float64", shape=())
        e = s * sc.einsum(f"{left},{right}->bmn", x, y) - c / 2
        f = sc.compile(e, [x, y, c, s])
        assert f.calls == {"gemm": 1} and not f.kernels
        sizes = {**SIZES, "b": 3}
        rng = np.random.default_rng(0)
        a, b, d = (rng.normal(size=[sizes[i] for i in shape]) for shape in (left, right, "bmn"))
        for number in (2.0, 0.0):
            want = number * np.einsum(f"{left},{right}->bmn", a, b) - d / 2
            np.testing.assert_allclose(f(a, b, d, np.float64(number)), want, atol=1e-12)


SHARED = {
    "mk,bkn->bmn": (0, 0), "mk,bkn->mbn": (0, 1), "bkm,kn->bmn": (0, 0), "bkm,nk->bmn": (0, 0), "km,abkn->abmn": (0, 0),
    "bmk,kn->bmn": (0, 0), "mjk,bjkn->bmn": (0, 0), "bkm,k->bm": (0, 0),
}  # fmt: skip


@pytest.mark.usefixtures("each_library")
@pytest.mark.parametrize("formula", SHARED)
def test_one_matrix_for_a_whole_batch(formula):
    """It is multiplied with every matrix of the batch where that lies; nothing is moved."""
    (left, right), result = formula.split("->")[0].split(","), formula.split("->")[1]
    x, y, c = (sc.input(n, "float64", shape=tuple(s)) for n, s in zip("xyc", (left, right, result), strict=True))
    f = sc.compile(sc.einsum(formula, x, y), [x, y])
    kernels, moved = SHARED[formula]
    assert sum(f.calls.values()) == 1 and len(f.kernels) == kernels + moved, f.plan
    g = sc.compile(c - 2 * sc.einsum(formula, x, y), [x, y, c])
    assert sum(g.calls.values()) == 1 and len(g.kernels) <= 1
    rng = np.random.default_rng(0)
    for sizes in ({**SIZES, "a": 2, "b": 3, "j": 4}, {**SIZES, "a": 2, "b": 3, "j": 4, "k": 0, "m": 1}):
        a, b, d = (rng.normal(size=[sizes[i] for i in s]) for s in (left, right, result))
        np.testing.assert_allclose(f(a, b), np.einsum(formula, a, b), atol=1e-12)
        np.testing.assert_allclose(g(a, b, d), d - 2 * np.einsum(formula, a, b), atol=1e-12)


def test_axes_that_are_rows_together():
    x, w = sc.input("x", "float64", shape=("b", "t", "k")), sc.input("w", "float64", shape=("k", "n"))
    c = sc.input("c", "float64", shape=("b", "t", "n"))
    f = sc.compile(c - 2 * (x @ w), [x, w, c])
    assert f.calls == {"gemm": 1} and not f.kernels
    rng = np.random.default_rng(0)
    a, b, d = rng.normal(size=(2, 3, 9)), rng.normal(size=(9, 10)), rng.normal(size=(2, 3, 10))
    np.testing.assert_allclose(f(a, b, d), d - 2 * (a @ b), atol=1e-12)


# --- what stays with kernels ------------------------------------------------------------------------------------------

STAYS = {
    "tanh(A @ B + C)": ("ABC", lambda a, b, c: np.tanh(a @ b + c)),
    "sum(A @ B + C)": ("ABC", lambda a, b, c: (a @ b + c).sum()),
    "A @ B + w": ("ABw", lambda a, b, w: a @ b + w),
    "A @ B + C * D": ("ABCD", lambda a, b, c, d: a @ b + c * d),
    "C + A @ B / s": ("ABCs", lambda a, b, c, s: c + a @ b / s),
    "0 * C + A @ B": ("ABC", lambda a, b, c: 0 * c + a @ b),
    "tanh(2 * A @ B)": ("AB", lambda a, b: np.tanh(2 * (a @ b))),
}  # fmt: skip


@pytest.mark.parametrize("text", STAYS)
def test_a_sum_that_a_kernel_computes_anyway_is_left_to_it(text):
    names, expression = STAYS[text]
    variables = leaves(names)
    f = sc.compile(expression(*variables), variables)
    assert f.calls == {"gemm": 1} and not any(v.op.name == "gemm" for v in f._compilation.final.values())
    assert len(f.kernels) <= 1
    check(f, names, expression)


def test_products_of_a_kernels_sum_are_added_to_each_other():
    variables = leaves("ABCEF")
    f = sc.compile(sc.tanh(variables[0] @ variables[1] + variables[3] @ variables[4].T + variables[2]), variables)
    assert f.calls == {"gemm": 2} and len(f.kernels) == 1
    assert [s.value.op.name for s in f._compilation.plan.steps] == ["dot", "gemm", "fused"]
    check(f, "ABCEF", lambda a, b, c, e, f: np.tanh(a @ b + e @ f.T + c))


def test_a_product_with_other_uses_is_no_part_of_a_sum():
    a, b, c = leaves("ABC")
    p = a @ b
    f = sc.compile((p, p + c), [a, b, c])
    assert f.calls == {"gemm": 1}
    x, y, z = arrays("ABC")
    np.testing.assert_allclose(f(x, y, z)[1], x @ y + z, atol=1e-12)


def test_an_outer_product_is_one_kernel_in_place():
    u, v = leaves("vw")
    state = sc.shared(np.ones((9, 10)), "state")
    f = sc.compile([], [u, v], updates={state: state - 0.1 * (u[:, None] @ v[None, :])})
    assert f.calls == {} and len(f.kernels) == 1
    assert_no_alloc(f)
    assert "(result)" not in f.plan and "in place" in f.plan
    x, y = arrays("vw")
    f(x, y)
    np.testing.assert_allclose(state.get_value(), 1 - 0.1 * np.outer(x, y))


# --- what there is in special numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["A", "B", "C"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("s", [0.0, -0.0, 1.0, 2.0])
@pytest.mark.parametrize("t", [0.0, 1.0, -3.0])
def test_nothing_is_ignored(name, bad, s, t):
    """A library looks at nothing that it multiplies by 0."""
    for names in ("ABCst", "Auvst"):
        f = COMPILED.setdefault(names, _scaled(names))
        given = dict(zip(names, arrays(names), strict=True))
        given |= {"s": np.float64(s), "t": np.float64(t)}
        key = {"A": "A", "B": names[1], "C": names[2]}[name]
        given[key][(1,) * given[key].ndim] = bad
        a, b, c, *_ = given.values()
        with np.errstate(all="ignore"):
            want = given["s"] * (a @ b) + given["t"] * c
        np.testing.assert_allclose(f(*given.values()), want, atol=1e-12)


COMPILED: dict = {}


def _scaled(names: str):
    a, b, c, s, t = leaves(names)
    return sc.compile(s * (a @ b) + t * c, [a, b, c, s, t])


@pytest.mark.usefixtures("each_library")
def test_an_alpha_of_zero_in_every_layout():
    """The product is then made row by row."""
    for shapes in (("mk", "kn"), ("mk", "nk"), ("km", "kn"), ("km", "nk")):
        x, y = (sc.input(n, "float64", shape=tuple(s)) for n, s in zip("xy", shapes, strict=True))
        c, s = leaves("Cs")
        f = sc.compile(c - s * sc.einsum(f"{shapes[0]},{shapes[1]}->mn", x, y), [x, y, c, s])
        assert f.calls == {"gemm": 1}
        rng = np.random.default_rng(0)
        a, b = (rng.normal(size=[SIZES[i] for i in shape]) for shape in shapes)
        a[2, 3] = np.inf
        d = rng.normal(size=(9, 10))
        for number in (0.0, 1.5):
            with np.errstate(all="ignore"):
                want = d - number * np.einsum(f"{shapes[0]},{shapes[1]}->mn", a, b)
            np.testing.assert_allclose(f(a, b, d, np.float64(number)), want, atol=1e-12)


@pytest.mark.parametrize("sizes", [dict(m=0), dict(k=0), dict(n=0), dict(m=0, k=0, n=0), dict(m=1), dict(k=1),
                                   dict(n=1), dict(m=1, n=1), dict(m=1, k=1, n=1), dict(m=1, k=0), dict(n=1, k=0)])
def test_no_or_one_row(sizes):
    expressions = {
        "ABCst": lambda a, b, c, s, t: s * (a @ b) - t * c,
        "ABC": lambda a, b, c: 2 * (a @ b) + 0.5 * c,
        "ABs": lambda a, b, s: s * (a @ b),
        "AB": lambda a, b: -(a @ b),
        "Auv": lambda a, u, v: a @ u - 3 * v,
    }
    for names, expression in expressions.items():
        if ("zero", names) not in COMPILED:
            variables = leaves(names)
            COMPILED["zero", names] = sc.compile(expression(*variables), variables)
        check(COMPILED["zero", names], names, expression, **sizes)
        if "s" in names:
            zero = [np.zeros(()) if n == "s" else a for n, a in zip(names, arrays(names, **sizes), strict=True)]
            np.testing.assert_allclose(COMPILED["zero", names](*zero), expression(*zero), atol=1e-12)


def test_arrays_of_any_layout():
    names, expression = ONE["0.5 * C + 2 * A @ B"]
    variables = leaves(names)
    f = sc.compile(expression(*variables), variables)
    a, b, c = arrays("ABC")
    want = expression(a, b, c)
    odd = [np.asfortranarray(a), np.repeat(b, 2, axis=1)[:, ::2], c[::-1][::-1]]
    odd[2].flags.writeable = False
    np.testing.assert_array_equal(f(*odd), want)
    np.testing.assert_array_equal(c, odd[2])


# --- whose memory -----------------------------------------------------------------------------------------------------


def test_a_parameter_is_updated_in_place():
    """``W -= lr * X.T @ G`` is one call that adds to W, without memory of its own."""
    x, g = sc.input("x", "float64", shape=("n", 11)), sc.input("g", "float64", shape=("n", 10))
    lr = sc.input("lr", "float64", shape=())
    w = sc.shared(arrays("B")[0], "w")
    before = w.get_value()
    f = sc.compile([], [x, g, lr], updates={w: w - lr * (x.T @ g)})
    assert f.calls == {"gemm": 1} and not f.kernels
    assert "alloc" not in f.plan and "in place, donated" in f.plan
    a, b = np.random.default_rng(0).normal(size=(7, 11)), np.random.default_rng(1).normal(size=(7, 10))
    f(a, b, 0.1)
    np.testing.assert_allclose(w.get_value(), before - 0.1 * a.T @ b, atol=1e-13)
    f(a, b, 0.0)
    np.testing.assert_allclose(w.get_value(), before - 0.1 * a.T @ b, atol=1e-13)


def test_weight_decay_is_beta():
    x, g = sc.input("x", "float64", shape=("n", 11)), sc.input("g", "float64", shape=("n", 10))
    w = sc.shared(arrays("B")[0], "w")
    f = sc.compile([], [x, g], updates={w: w - 0.1 * (x.T @ g + 0.01 * w)})
    assert f.calls == {"gemm": 1} and not f.kernels and "alloc" not in f.plan
    a, b = np.random.default_rng(0).normal(size=(7, 11)), np.random.default_rng(1).normal(size=(7, 10))
    want = w.get_value() - 0.1 * (a.T @ b + 0.01 * w.get_value())
    f(a, b)
    np.testing.assert_allclose(w.get_value(), want, atol=1e-13)


def test_the_gradient_of_a_linear_layer_updates_in_place():
    """All products of a step of gradient descent: two forward, one back, two that add to parameters."""
    x, y = sc.input("x", "float64", shape=(7, 20)), sc.input("y", "float64", shape=(7, 10))
    rng = np.random.default_rng(0)
    w = [sc.shared(rng.normal(size=s), f"w{k}") for k, s in enumerate([(20, 15), (15, 10)])]
    loss = sc.mean((sc.tanh(x @ w[0]) @ w[1] - y) ** 2)
    f = sc.compile(loss, [x, y], updates={v: v - 0.1 * g for v, g in zip(w, sc.grad(loss, w), strict=True)})
    r = sc.compile(sc.grad(loss, w), [x, y], mode="reference")
    assert f.calls == {"gemm": 5}
    adding = [s for s in f._compilation.plan.steps if s.value.op.name == "gemm"]
    assert [s.writes[0] for s in adding] == [s.reads[2] for s in adding] and len(adding) == 2
    a, b = rng.normal(size=(7, 20)), rng.normal(size=(7, 10))
    want = [v.get_value() - 0.1 * g for v, g in zip(w, r(a, b), strict=True)]
    f(a, b)
    for v, x in zip(w, want, strict=True):
        np.testing.assert_allclose(v.get_value(), x, atol=1e-13)


def test_what_is_multiplied_is_not_written_over():
    x = sc.input("x", "float64", shape=("n", "n"))
    a = np.random.default_rng(0).normal(size=(9, 9))
    f = sc.compile(x + x @ x, [x], donate=[x])
    assert f.calls == {"gemm": 1} and not f.kernels
    np.testing.assert_allclose(f(a.copy()), a + a @ a, atol=1e-12)
    s = sc.shared(a, "s")
    g = sc.compile([], [], updates={s: s - 0.5 * (s @ s)})
    g()
    np.testing.assert_allclose(s.get_value(), a - 0.5 * (a @ a), atol=1e-12)


def test_an_argument_keeps_its_bytes_and_a_temp_is_written_over():
    a, b, c = leaves("ABC")
    f = sc.compile(sc.sort(c) + a @ b, [a, b, c], donate=[])
    x, y, z = arrays("ABC")
    kept = z.copy()
    np.testing.assert_allclose(f(x, y, z), np.sort(z) + x @ y, atol=1e-12)
    np.testing.assert_array_equal(z, kept)
    last = f._compilation.plan.steps[-1]
    assert last.value.op.name == "gemm" and last.reads[2] == last.writes[0]


def test_out_may_not_be_mistaken_for_what_is_added():
    a, b, c = leaves("ABC")
    f = sc.compile(c - a @ b, [a, b, c])
    x, y, z = arrays("ABC")
    out = np.full_like(z, np.nan)
    assert f(x, y, z, out=out) is out
    np.testing.assert_allclose(out, z - x @ y, atol=1e-12)


# --- loops and branches -----------------------------------------------------------------------------------------------


def test_a_body_of_a_loop():
    x0 = sc.input("x0", "float64", shape=("m", "n"))
    w, steps = sc.input("w", "float64", shape=("m", "m")), 40
    f = sc.compile(sc.scan(lambda h, _: (h - 0.1 * (w @ h), None), x0, length=steps)[0], [x0, w])
    assert f.calls == {"gemm": 1} and not f.kernels
    rng = np.random.default_rng(0)
    h, m = rng.normal(size=(6, 9)), rng.normal(size=(6, 6))
    got = f(h, m)
    for _ in range(steps):
        h = h - 0.1 * (m @ h)
    np.testing.assert_allclose(got, h, rtol=1e-9)


def test_a_carry_that_only_products_add_to_is_added_to_in_place():
    """The sum cannot leave the loop, because every step reads it elsewhere too."""
    c0 = sc.input("c0", "float64", shape=("m", "m"))
    xs = sc.input("xs", "float64", shape=("t", "m", "m"))

    def step(carry, x):
        c, d = carry
        return (c + x @ d, sc.tanh(d + c)), None

    f = sc.compile(sc.scan(step, (c0, c0 * 2), xs)[0], [c0, xs])
    body = next(s.bodies[-1] for s in f._compilation.plan.steps if s.kind == "control")
    adds = next(s for s in body.steps if s.value.op.name == "gemm")
    assert adds.reads[2] == adds.writes[0], f.plan
    rng = np.random.default_rng(0)
    a, x = rng.normal(size=(9, 9)), rng.normal(size=(5, 9, 9))
    got = f(a, x)
    c, d = a, a * 2
    for t in range(5):
        c, d = c + x[t] @ d, np.tanh(d + c)
    np.testing.assert_allclose(got[0], c, rtol=1e-9)
    np.testing.assert_allclose(got[1], d, rtol=1e-9)


def test_while_and_branches():
    a, b, c = leaves("ABC")
    p = sc.input("p", "bool", shape=())
    f = sc.compile(sc.cond(p, lambda: c - 2 * (a @ b), lambda: c * 1.0), [a, b, c, p])
    assert f.calls == {"gemm": 1}
    x, y, z = arrays("ABC")
    np.testing.assert_allclose(f(x, y, z, True), z - 2 * (x @ y), atol=1e-12)
    np.testing.assert_array_equal(f(x, y, z, False), z)
    w = sc.input("w", "float64", shape=("m", "m"))
    g = sc.compile(sc.while_loop(lambda h: sc.max(sc.abs(h)) < 100, lambda h: 3 * h + 0.01 * (w @ h), c), [w, c])
    assert g.calls == {"gemm": 1}
    m, h = np.random.default_rng(0).normal(size=(9, 9)), z
    while np.abs(h).max() < 100:
        h = 3 * h + 0.01 * (m @ h)
    np.testing.assert_allclose(g(m, z), h, rtol=1e-12)


# --- symmetric products -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_a_matrix_times_its_transpose(dtype):
    x = sc.input("x", dtype, shape=("n", "k"))
    f = sc.compile((x @ x.T, -2 * (x.T @ x)), [x])
    assert f.calls == {"syrk": 2} and not f.kernels
    rng = np.random.default_rng(0)
    for n, k in ((5, 4), (130, 200), (200, 130), (1, 140), (140, 1), (128, 0), (0, 128), (257, 129)):
        a = rng.normal(size=(n, k)) + (1j * rng.normal(size=(n, k)) if dtype[0] == "c" else 0)
        a = a.astype(dtype)
        for got, want in zip(f(a), (a @ a.T, -2 * (a.T @ a)), strict=True):
            np.testing.assert_allclose(got, want, rtol=0, atol=np.finfo(dtype).eps * 4000)
            if min(n, k) >= 128:  # half of it was computed
                np.testing.assert_array_equal(got, got.T)


def test_symmetric_products_in_batches_scaled_at_run_time():
    x, s = sc.input("x", "float64", shape=("b", "n", "k")), sc.input("s", "float64", shape=())
    f = sc.compile(s * (x @ x.mT), [x, s])
    assert f.calls == {"syrk": 1}
    a = np.random.default_rng(0).normal(size=(2, 130, 140))
    for number in (0.0, 2.5):
        np.testing.assert_allclose(f(a, number), number * (a @ a.swapaxes(1, 2)), atol=1e-11)


def test_what_adds_to_something_is_no_symmetric_product():
    x, c = sc.input("x", "float64", shape=("n", "k")), sc.input("c", "float64", shape=("n", "n"))
    f = sc.compile(c + x @ x.T, [x, c])
    assert f.calls == {"gemm": 1}
    a, b = np.random.default_rng(0).normal(size=(130, 140)), np.random.default_rng(1).normal(size=(130, 130))
    np.testing.assert_allclose(f(a, b), b + a @ a.T, atol=1e-11)


# --- with everything else ---------------------------------------------------------------------------------------------


def test_modes_saving_vmap_and_derivatives(tmp_path):
    names, expression = ONE["s * A @ B + t * C"]
    variables = leaves(names)
    f = sc.compile(expression(*variables), variables)
    given = arrays(names)
    want = expression(*given)
    for mode in ("reference", "fast_compile", "debug", "nan_guard"):
        np.testing.assert_allclose(sc.compile(expression(*variables), variables, mode=mode)(*given), want, atol=1e-12)
    f.save(tmp_path / "f")
    g = sc.load(tmp_path / "f")
    np.testing.assert_array_equal(g(*given), f(*given))
    assert g.calls == f.calls
    assert f.memory(m=9, k=11, n=10) == sum(a.nbytes for a in given) + want.nbytes
    assert "call gemm" in f.plan
    assert "[blas]" in f.explain()
    xs = sc.input("xs", "float64", shape=("b", "m", "k"))
    h = sc.compile(sc.vmap(lambda x: expression(x, *variables[1:]))(xs), [xs, *variables[1:]])
    stack = np.stack([given[0], 2 * given[0]])
    many = h(stack, *given[1:])
    for k in (0, 1):
        np.testing.assert_allclose(many[k], expression(stack[k], *given[1:]), atol=1e-12)
    total = sc.sum(expression(*variables) ** 2)
    d = sc.compile(sc.grad(total, variables), variables)
    r = sc.compile(sc.grad(total, variables), variables, mode="reference")
    for x, y in zip(d(*given), r(*given), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10)


def test_a_budget_of_bytes():
    """Gemms are computed a second time like everything else."""
    x = sc.input("x", "float64", shape=(64, 64))
    w = [sc.input(f"w{k}", "float64", shape=(64, 64)) for k in range(6)]
    h = x
    for v in w:
        h = sc.tanh(h - 0.1 * (h @ v))
    grads = sc.grad(sc.sum(h), w)
    free = sc.compile(grads, [x, *w])
    limit = int(free.memory()) - 2 * 64 * 64 * 8
    f = sc.compile(grads, [x, *w], max_bytes=limit)
    assert f.memory() <= limit
    rng = np.random.default_rng(0)
    given = [rng.normal(size=(64, 64)) * 0.1 for _ in range(7)]
    for a, b in zip(f(*given), free(*given), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_what_adds_to_rows_is_computed_for_some_rows_at_a_time():
    """A budget takes loops in parts, and with them what makes their rows."""
    a, b, c, s = leaves("ABCs")
    f = sc.compile(c + 2 * (a @ b), [a, b, c])._compilation.final
    (v,) = [v for v in f.values() if v.op.name == "gemm"]
    op = row_op(v, v.operands[0].shape[0])
    assert op is not None and op.rows == (True, False, True) and not op.total
    part = op.on([fresh_input(TensorType("f64", (2, *o.shape[1:]))) if r else o
                  for o, r in zip(v.operands, op.rows, strict=True)], 2)[0]  # fmt: skip
    assert part.shape == (2, *v.shape[1:])
    g = sc.compile(s * (a.T @ c), [a, c, s])._compilation.final
    (v,) = [v for v in g.values() if v.op.name == "gemm"]
    op = row_op(v, v.operands[0].shape[0])
    assert op is not None and op.rows == (True, True, False) and op.total
    d = sc.input("d", "float64", shape=("n", "n"))
    h = sc.compile(d + c.T @ c, [c, d])._compilation.final
    (v,) = [v for v in h.values() if v.op.name == "gemm"]
    assert row_op(v, v.operands[0].shape[0]) is None  # a part would add what is added once more


@pytest.mark.long
def test_long_sums_take_linear_time():
    """400 and 1,600 products: every one is looked at a few times, and added to one buffer."""
    seconds = []
    for n in (400, 1600):
        xs = [sc.input(f"x{k}", "float64", shape=(9, 9)) for k in range(40)]
        total = xs[0]
        for k in range(n):
            total = total - (k + 1) * (xs[k % 40] @ xs[k // 40]) / 2
        f = build([total], xs, None, None, (), "f", caller()).function
        start = time.process_time()
        made = run_pass("blas", f)
        seconds.append(time.process_time() - start)
        assert sum(v.op.name == "gemm" for v in made.values()) > 300
    assert seconds[1] < 12 * seconds[0] + 0.2


def test_an_exception_leaves_states_as_they_were():
    x = sc.input("x", "float64", shape=("n", "n"))
    i = sc.input("i", "int64", shape=("j",))
    s = sc.shared(np.eye(9), "s")
    f = sc.compile(x[i], [x, i], updates={s: s - x @ x})
    with pytest.raises(IndexError):
        f(np.ones((9, 9)), np.array([100]))
    np.testing.assert_array_equal(s.get_value(), np.eye(9))


# --- random sums ------------------------------------------------------------------------------------------------------

TERMS = {"A @ B": lambda v: v["A"] @ v["B"], "E @ F.T": lambda v: v["E"] @ v["F"].T, "C": lambda v: v["C"],
         "D": lambda v: v["D"], "w": lambda v: v["w"] + 0 * v["C"]}  # fmt: skip


@st.composite
def sums(draw, depth: int = 4):
    """A nest of sums, differences, multiples and fractions, as a function of variables."""
    if not depth or draw(st.integers(0, 4)) == 0:
        return TERMS[draw(st.sampled_from(sorted(TERMS)))]
    inner = draw(sums(depth - 1))
    kind = draw(st.sampled_from(["+", "-", "neg", "number", "fraction", "s"]))
    if kind in "+-":
        other = draw(sums(depth - 1))
        return (lambda v: inner(v) + other(v)) if kind == "+" else (lambda v: inner(v) - other(v))
    number = draw(st.sampled_from([2.0, -0.5, 3.0, 0.1]))
    return {"neg": lambda v: -inner(v), "number": lambda v: number * inner(v), "fraction": lambda v: inner(v) / number,
            "s": lambda v: v["s"] * inner(v)}[kind]


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(sums(), st.sampled_from([0.0, -1.5]))
def test_any_sum(make, s):
    names = "ABCDEFws"
    variables = dict(zip(names, leaves(names), strict=True))
    result = make(variables)
    f = sc.compile(result, list(variables.values()), pipeline="canonicalize,simplify,canonicalize,blas")
    given = dict(zip(names, arrays(names), strict=True)) | {"s": np.float64(s)}
    np.testing.assert_allclose(f(*given.values()), make(given), rtol=1e-9, atol=1e-10)


# --- counting ---------------------------------------------------------------------------------------------------------


def test_library_calls_count_routines_also_in_bodies():
    n = sc.input("a", "float64", shape=("n", "n"))
    v = sc.input("v", "float64", shape=("n",))
    f = sc.compile((sc.exp(n @ n), n @ v, sc.sort(v)), [n, v])
    assert f.calls == {"gemm": 1, "gemv": 1, "sort": 1} == library_calls(f._compilation.plan)
    g = sc.compile(sc.scan(lambda h, _: (sc.tanh(n @ h), None), v, length=50)[0], [n, v])
    assert g.calls == {"gemv": 1}
    assert sc.compile(v + 1, [v]).calls == {}


def test_the_calls_of_a_function_without_a_plan():
    v = sc.input("v", "float64", shape=("n",))
    f = sc.compile(v + 1, [v], mode="reference")
    with pytest.raises(sc.PlanError, match="no plan"):
        f.calls
    assert np.array_equal(f(np.ones(2)), [2, 2])


# --- products of nothing ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["default", "reference"])
def test_what_adds_up_nothing_is_zero_times_anything(mode):
    """A product that has no terms is 0 also if the number that was multiplied by, or divided by, leaves the sum."""
    A, B, C, s = leaves("ABCs")
    ones = sc.broadcast_to(s, (A.shape[1],))
    f = sc.compile([(s * A) @ B, A @ (B / s), C - (s * A) @ B, (s * A) @ ones, (s * A).sum(1), (A / s).sum(1)],
                   [A, B, C, s], mode=mode)
    a, b, c, _ = arrays("ABCs", k=0)
    for number in (np.inf, np.nan, 0.0, 2.0):
        for got, want in zip(f(a, b, c, number), [a @ b, a @ b, c, *[np.zeros(len(a))] * 3], strict=True):
            np.testing.assert_array_equal(got, want)
    a, b, c, _ = arrays("ABCs")
    with np.errstate(all="ignore"):
        for got in f(a, b, c, np.nan):
            assert np.isnan(got).all()


def test_a_guard_against_nothing_is_no_part_of_a_gemm():
    A, B, C, s = leaves("ABCs")
    f = sc.compile(C - (s * A) @ B, [A, B, C, s])
    assert f.calls == {"gemm": 1} and not f.kernels
    check(f, "ABCs", lambda a, b, c, s: c - s * (a @ b))
