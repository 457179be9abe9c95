"""What is scaled before it is summed, so that it stays in the range of float16, is scaled before it is summed."""

from __future__ import annotations

import numpy as np

import symc as sc

#: Formulas of matrices of hundreds, which are finite where they are computed as they are written.
FORMULAS = {
    "sum of quotients": lambda a, b, v: np.sum(a / 100, axis=1),
    "sum of multiples": lambda a, b, v: np.sum(a * np.float16(0.01), axis=1),
    "sum by the size": lambda a, b, v: np.sum(a * v / a.shape[1], axis=1),
    "sum by rows": lambda a, b, v: np.sum(a * v / np.max(a, axis=1, keepdims=True), axis=1),
    "squares": lambda a, b, v: np.sum((a / 100) ** 2),
    "running sum": lambda a, b, v: np.cumsum(a / 100, axis=1),
    "end of a running sum": lambda a, b, v: np.cumsum(v * np.float16(0.01))[-1],
    "product": lambda a, b, v: (a / 100) @ b,
    "product with multiples": lambda a, b, v: a @ (b * np.float16(0.01)),
    "products with a vector": lambda a, b, v: (a / 100) @ v + (v / 100) @ v,
    "attention": lambda a, b, v: (a / np.float16(10)) @ (a / np.float16(10)).T,
    "chain": lambda a, b, v: (a / 1000) @ b @ (b.T / 1000),
    "einsum": lambda a, b, v: np.einsum("ij,jk->ik", a / 100, b),
    "trace": lambda a, b, v: np.trace((a / 100) @ (b / 10)[:, :2]),
}


def test_products_and_sums_of_halves_stay_in_range():
    arrays = [np.full(shape, 100, "float16") for shape in ((2, 100), (100, 3), (100,))]
    inputs = [sc.input(name, "float16", shape) for name, shape in (("a", (2, "k")), ("b", ("k", "m")), ("v", ("k",)))]
    f = sc.compile({name: form(*inputs) for name, form in FORMULAS.items()}, inputs, backend="numpy")
    for name, got in f(*arrays).items():
        want = FORMULAS[name](*arrays)
        assert np.isfinite(want).all(), name
        np.testing.assert_allclose(got, want, rtol=2e-2, err_msg=name)
