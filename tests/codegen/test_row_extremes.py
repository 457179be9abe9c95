"""The greatest and least of rows: a nan anywhere, infinities, zeros of either sign; whole vectors and what is left."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("backend", ["llvm", "numba"])
def test_extremes_of_rows_columns_and_all(dtype, backend):
    x = sc.input("x", dtype, shape=("n", "m"))
    f = sc.compile([sc.max(x, axis=1), sc.min(x, axis=1), sc.max(x), sc.min(x, axis=0)], [x], backend=backend)
    for n, m in ((1, 1), (3, 17), (2, 1030)):
        r = np.random.default_rng(n)
        plain = r.standard_normal((n, m)).astype(dtype)
        first, last = plain.copy(), plain.copy()
        low, zeros = np.full_like(plain, -np.inf), np.full_like(plain, -0.0)
        first[0, 0] = last[-1, -1] = np.nan
        zeros[0, -1] = 0.0
        for a in (plain, first, last, low, -low, zeros):
            for got, want in zip(f(a), (a.max(1), a.min(1), a.max(), a.min(0)), strict=True):
                np.testing.assert_array_equal(got, want)
