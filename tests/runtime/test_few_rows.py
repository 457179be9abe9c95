"""Products with few rows of a matrix, which native code of our own computes: every height of a tile, and its bounds."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.runtime.cpu.native import few_rows_ir

random = np.random.default_rng(0)


def served(dtype: str, m: int, n: int, k: int) -> bool:
    return few_rows_ir.serves({"float32": "s", "float64": "d"}[dtype], m, n, k)


def compiled(dtype: str):
    a, b, c = (sc.input(x, dtype, s) for x, s in (("a", ("m", "k")), ("b", ("k", "n")), ("c", ("m", "n"))))
    return sc.compile([a @ b, 2.5 * (a @ b) - 0.5 * c], [a, b, c])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_few_rows(dtype):
    f = compiled(dtype)
    most = few_rows_ir.MOST[{"float32": "s", "float64": "d"}[dtype]]
    sizes = [(m, 32 * (1 + m % 3), k) for m in range(4, most + 1) for k in (1, 2, 33)] + [(7, 64, 2048)]
    for m, n, k in sizes:
        assert served(dtype, m, n, k)
        a, b, c = (random.normal(size=s).astype(dtype) for s in ((m, k), (k, n), (m, n)))
        exact = a.astype("float64") @ b.astype("float64")
        bound = 4 * k * np.finfo(dtype).eps * (np.abs(a) @ np.abs(b)) + 4 * np.finfo(dtype).eps * np.abs(c)
        product, combined = f(a, b, c)
        assert np.all(np.abs(product - exact) <= bound), (m, n, k)
        assert np.all(np.abs(combined - (2.5 * exact - 0.5 * c)) <= 3 * bound), (m, n, k)


def test_added_in_place():
    x, w = sc.input("x", "float32", ("n", 64)), sc.shared(np.zeros((16, 64), "float32"), "w")
    d = sc.input("d", "float32", (16, "n"))
    step = sc.compile([], [d, x], updates={w: w + d @ x})
    given = [random.normal(size=s).astype("float32") for s in ((16, 5), (5, 64))]
    for _ in range(3):
        step(*given)
    assert np.allclose(w.get_value(), 3 * (given[0] @ given[1]), rtol=1e-5, atol=1e-5)


def test_nan_and_infinity_pass():
    f = compiled("float64")
    a, b, c = np.ones((4, 3)), np.ones((3, 32)), np.full((4, 32), np.nan)
    a[1, 2], b[0, 5] = np.inf, np.nan
    product, combined = f(a, b, c)
    assert np.array_equal(np.isnan(product), np.isnan(a @ b)) and np.isinf(product[1, 0])
    assert np.isnan(combined).all()


@pytest.mark.parametrize("size", [(3, 32, 8), (33, 32, 8), (8, 31, 8), (8, 32, 2049), (8, 32 * 600, 64)])
def test_bounds(size):
    """What is left to BLAS: too few or many rows, columns that are no panels, long sums, matrices beyond the cache."""
    m, n, k = size
    assert not served("float32", m, n, k)
    f = compiled("float32")
    a, b, c = (random.normal(size=s).astype("float32") for s in ((m, k), (k, n), (m, n)))
    assert np.allclose(f(a, b, c)[0], a @ b, rtol=1e-3, atol=1e-3)
