"""Concatenation and the gradient of slices: parts of one type are written where they belong by the kernel that makes
them."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.ir.op import lookup
from symc.ir.reference import run_values
from symc.ir.types import TensorType
from symc.ir.value import fresh_input


def test_gradient_of_slices_is_one_array_written_once():
    x, r = sc.input("x", "float64", ("n", 8)), sc.input("r", "float64", ("n", 2))
    a, b, c, d = (x[:, 2 * k : 2 * k + 2] for k in range(4))
    f = sc.compile(sc.grad(((sc.sin(a) * b + sc.tanh(c) * d) * r).sum(), x), [x, r])
    assert len(f.kernels) == 1 and "packed_concat %" in f.dump() and " pad " not in f.dump()
    rng = np.random.default_rng(0)
    for n in (0, 1, 5):
        x_, r_ = rng.normal(size=(n, 8)), rng.normal(size=(n, 2))
        a, b, c, d = (x_[:, 2 * k : 2 * k + 2] for k in range(4))
        want = np.concatenate([r_ * np.cos(a) * b, r_ * np.sin(a), r_ * d / np.cosh(c) ** 2, r_ * np.tanh(c)], 1)
        np.testing.assert_allclose(f(x_, r_), want, rtol=1e-12, atol=1e-15)


def test_pieces_that_do_not_fill_the_axis_keep_their_zeros():
    x = sc.input("x", "float64", (8,))
    f = sc.compile(sc.grad((x[1:3] * 2).sum() + (x[3:5] ** 2).sum(), x), [x])
    got = f(np.arange(8.0))
    np.testing.assert_array_equal(got, [0, 2, 2, 6, 8, 0, 0, 0])
    assert f.dump().count(" pad ") <= 1


@pytest.mark.parametrize("axis, dtype", [(0, "float32"), (1, "float64"), (2, "int32"), (1, "bool"), (0, "float16")])
def test_parts_of_a_concatenation_along_every_axis(axis, dtype):
    parts = [sc.input(f"p{k}", dtype, ("n", 3, 2)) for k in range(3)]
    whole = sc.concatenate([~p if dtype == "bool" else -p for p in parts], axis)
    f = sc.compile(whole, parts)
    assert "packed_concat" in f.dump() and len(f.kernels) == 1
    data = [np.random.default_rng(k).integers(0, 2, (4, 3, 2)).astype(dtype) for k in range(3)]
    np.testing.assert_array_equal(f(*data), np.concatenate([~d if dtype == "bool" else -d for d in data], axis))


def test_a_concatenation_that_a_kernel_reads_is_an_index():
    a, b = sc.vector("a", shape=("n",)), sc.vector("b", shape=("n",))
    f = sc.compile(sc.sum(sc.concatenate([a, b]) ** 2), [a, b])
    assert " packed_concat " not in f.dump() and f(np.ones(3), np.ones(3) * 2) == 15


def test_abreast_is_concat():
    leaves = [fresh_input(TensorType("f64", (2, 3))) for _ in range(3)]
    data = [np.random.default_rng(k).normal(size=(2, 3)) for k in range(3)]
    for axis in (0, 1):
        v = lookup("packed_concat")(*leaves, axis=axis)
        (got,) = run_values([v], dict(zip(leaves, data, strict=True)), {}, check=True)
        np.testing.assert_array_equal(got, np.concatenate(data, axis))
