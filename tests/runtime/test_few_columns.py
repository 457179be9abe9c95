"""Products with few columns, which native code of our own computes: every tile, lengths beside vectors and blocks."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.runtime.cpu.native import few_columns_ir

random = np.random.default_rng(0)
LETTERS = {"float32": "s", "float64": "d"}


def compiled(dtype: str, trans: bool):
    a, c = sc.input("a", dtype, ("m", "k")), sc.input("c", dtype, ("m", "n"))
    b = sc.input("b", dtype, ("n", "k") if trans else ("k", "n"))
    product = a @ (b.T if trans else b)
    return sc.compile([product, 2.5 * product - 0.5 * c], [a, b, c])


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("dtype", list(LETTERS))
def test_products_of_few_columns(dtype: str, trans: bool) -> None:
    f, most = compiled(dtype, trans), few_columns_ir.MOST[LETTERS[dtype]]
    block = few_columns_ir.BLOCK // np.dtype(dtype).itemsize
    sizes = [(8 + n % 5, n, k) for n in range(2, most + 1) for k in (32, 33, 39, 40, block - 1, block, block + 1)]
    for m, n, k in [*sizes, (9, 3, 3 * block + 7), (300, 5, 300)]:
        assert few_columns_ir.serves(LETTERS[dtype], m, n, k) == 1
        a, b, c = (random.normal(size=s).astype(dtype) for s in ((m, k), (k, n), (m, n)))
        exact = a.astype("float64") @ b.astype("float64")
        bound = 4 * k * np.finfo(dtype).eps * (np.abs(a) @ np.abs(b)) + 4 * np.finfo(dtype).eps * np.abs(c)
        product, combined = f(a, b.T.copy() if trans else b, c)
        assert np.all(np.abs(product - exact) <= bound), (m, n, k)
        assert np.all(np.abs(combined - (2.5 * exact - 0.5 * c)) <= 3 * bound), (m, n, k)


def test_added_in_place() -> None:
    w = sc.shared(np.zeros((16, 3)), "w")
    d, x = sc.input("d", "float64", (16, "n")), sc.input("x", "float64", ("n", 3))
    step = sc.compile([], [d, x], updates={w: w + d @ x})
    given = [random.normal(size=s) for s in ((16, 700), (700, 3))]
    for _ in range(3):
        step(*given)
    assert np.allclose(w.get_value(), 3 * (given[0] @ given[1]), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("k", [32, 35, 259])
def test_nan_and_infinity_pass(k: int) -> None:
    """Also where the last vector of a row begins among numbers that were multiplied already."""
    f = compiled("float64", False)
    for place in (0, k - 5, k - 3, k - 1):
        a, b, c = np.ones((9, k)), np.ones((k, 5)), np.full((9, 5), np.nan)
        a[1, place], a[2, place], b[place, 4] = np.inf, -np.inf, np.nan
        product, combined = f(a, b, c)
        want = np.full((9, 5), float(k))
        want[1], want[2], want[:, 4] = np.inf, -np.inf, np.nan
        np.testing.assert_array_equal(product, want)
        assert np.isnan(combined).all()
        b[place] = 0
        assert np.isnan(f(a, b, c)[0][1:3]).all() and not np.isnan(f(a, b, c)[0][3:]).any()


@pytest.mark.parametrize("size", [(7, 4, 64), (8, 1, 64), (8, 9, 64), (8, 4, 31), (20_000, 4, 784)])
def test_bounds(size: tuple[int, int, int]) -> None:
    """What is left to BLAS: few rows, a vector, many columns, short sums, matrices that are read from memory."""
    assert few_columns_ir.serves("d", *size) == 0
