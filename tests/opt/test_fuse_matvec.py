"""Products of one matrix with vectors, from both sides, are one kernel that reads it once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symc as sc
from symc.testing import assert_calls

pytestmark = pytest.mark.long


def logistic(dtype: str, shape: tuple = ("n", "d")):
    x, y, w = (sc.input(n, dtype, shape=s) for n, s in zip("xyw", [shape, shape[:1], shape[1:]], strict=True))
    z = x @ w
    loss = sc.mean(sc.softplus(z) - y * z) + 0.05 * sc.sum(w * w)
    return [loss, sc.grad(loss, w)], [x, y, w]


def arrays(dtype: str, n: int, d: int) -> list[np.ndarray]:
    r = np.random.default_rng(n + d)
    return [r.standard_normal(s).astype(dtype) for s in ((n, d), (n,), (d,))]


def reading(f, name: str) -> int:
    """How many kernels read an input."""
    return str(f.plan).split("return")[0].count(f" %{name}") - str(f.plan).split("{")[0].count(f"%{name}:")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("backend", ["llvm", "numba"])
def test_logistic_regression_and_gradient_read_the_data_once(dtype, backend):
    outputs, inputs = logistic(dtype)
    f = sc.compile(outputs, inputs, backend=backend)
    assert_calls(f)  # no product is a call
    assert len([k for k in f.kernels if "sigmoid" in k.name]) == 1
    reference = sc.compile(outputs, inputs, mode="reference")
    for n, d in ((1, 1), (5, 3), (3, 1030), (1030, 2), (40, 64)):
        given = arrays(dtype, n, d)
        for got, want in zip(f(*given), reference(*given), strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-5 if dtype == "float32" else 1e-12, atol=1e-6)


@given(n=st.integers(0, 40), d=st.sampled_from([0, 1, 15, 16, 17, 33]), seed=st.integers(0, 5))
@settings(deadline=None, max_examples=25, derandomize=True)
def test_any_extents_and_strides(n, d, seed):
    x, w = sc.input("x", "float64", shape=("n", "d")), sc.input("w", "float64", shape=("d",))
    f = CACHE.setdefault("f", sc.compile([x @ w, sc.tanh(x @ w) @ x], [x, w]))
    r = np.random.default_rng(seed)
    a, b = r.standard_normal((d, 2 * n)).T[::2], r.standard_normal(2 * d)[::2]
    z, g = f(a, b)
    np.testing.assert_allclose(z, a @ b, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(g, np.tanh(a @ b) @ a, rtol=1e-12, atol=1e-12)


CACHE: dict = {}


def test_what_needs_all_rows_first_keeps_the_library():
    x, w = sc.input("x", "float64", shape=(100, 50)), sc.input("w", "float64", shape=(50,))
    z = x @ w
    f = sc.compile(sc.softmax(z, axis=0) @ x, [x, w])
    assert_calls(f, gemv=2)
    assert "element by element" in str(f.why_not("fuse_matvec"))


def test_one_side_alone_keeps_the_library():
    x, w = sc.input("x", "float64", shape=(100, 50)), sc.input("w", "float64", shape=(50,))
    f = sc.compile(sc.exp(x @ w), [x, w])
    assert_calls(f, gemv=1)
    assert "one side" in str(f.why_not("fuse_matvec"))


def test_narrow_and_wide_matrices_keep_the_library():
    for d in (8, 20000):
        assert_calls(sc.compile(*logistic("float32", (100, d))), gemv=2)


def test_the_same_in_a_loop():
    x, w = sc.input("x", "float64", shape=("n", "d")), sc.input("w", "float64", shape=("d",))

    def step(v, _):
        return v - 0.1 * (sc.tanh(x @ v) @ x), None

    f = sc.compile(sc.scan(step, w, length=3)[0], [x, w])
    assert_calls(f)
    a, v = arrays("float64", 7, 20)[::2]
    want = v
    for _ in range(3):
        want = want - 0.1 * (np.tanh(a @ want) @ a)
    np.testing.assert_allclose(f(a, v), want, rtol=1e-12)
