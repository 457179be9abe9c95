"""Functions that need to know a size, of arguments of a traced function; and ``accumulate`` of any ufunc."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.errors import SymbolicValueError

V, W = np.arange(1.0, 6), np.array([2.0, 1, 3])
KNOWING = {
    "cross": (lambda x, y: np.cross(x, y), np.ones((4, 3)), np.arange(12.0).reshape(4, 3)),
    "delete": (lambda x: np.delete(x, [1, 2]), V),
    "insert": (lambda x: np.insert(x, [1, 2], [7.0, 8.0]), V),
    "polyadd": (lambda x, y: np.polyadd(x, y), V, W),
    "polydiv": (lambda x, y: np.polydiv(x, y)[0], V, W),
    "poly": (lambda x: np.poly(x), W),
    "convolve": (lambda x, y: np.convolve(x, y, "same"), V, W),
    "convolve, short first": (lambda x, y: np.convolve(x, y), W, V),
    "correlate": (lambda x, y: np.correlate(x, y, "valid"), V, W),
    "tril_indices_from": (lambda x: np.tril_indices_from(x)[1], np.ones((3, 4))),
    "histogramdd": (lambda x: np.histogramdd(x, bins=[np.arange(4.0)] * 2)[0], np.arange(12.0).reshape(6, 2) / 4),
}


@pytest.mark.parametrize("name", KNOWING)
def test_a_size_that_must_be_known_is_asked_for(name):
    function, *arrays = KNOWING[name]
    f = sc.jit(function)
    np.testing.assert_allclose(f(*arrays), function(*arrays))
    assert f.questions and all("the number" in q for q in f.questions)


def test_a_convolution_asks_for_another_variant_where_sizes_differ():
    f = sc.jit(np.convolve)
    for n, k in ((5, 3), (3, 5), (70, 40)):
        x, y = np.arange(1.0, n), np.arange(2.0, k)
        np.testing.assert_allclose(f(x, y), np.convolve(x, y))


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "subtract", "logaddexp", "divide", "bitwise_xor"])
@pytest.mark.parametrize("shape, axis", [((5,), 0), ((3, 4), 1), ((3, 4), 0), ((0,), 0), ((2, 0, 3), 1),
                                         ((2, 3, 4), -1)])
def test_accumulate_is_that_of_numpy(name, shape, axis):
    ufunc = getattr(np, name)
    x = np.random.default_rng(0).normal(size=shape) * 5
    x = x.astype("int16") if name == "bitwise_xor" else x
    got, wanted = sc.jit(lambda x: ufunc.accumulate(x, axis=axis))(x), ufunc.accumulate(x, axis=axis)
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(got, wanted, rtol=1e-13)


def test_accumulate_keeps_nan_and_has_gradients():
    x = np.array([1, np.nan, 3.0])
    np.testing.assert_array_equal(sc.jit(np.maximum.accumulate)(x), [1, np.nan, np.nan])
    s = sc.input("s", "float64", shape=("n",))
    slope = sc.compile(sc.grad(sc.sum(np.maximum.accumulate(s) * np.arange(1.0, 5)), s), [s])
    np.testing.assert_array_equal(slope(np.array([1.0, 3, 2, 5])), [1, 5, 0, 4])


def test_accumulate_that_changes_the_dtype_is_refused():
    with pytest.raises(SymbolicValueError, match="of a dtype that it keeps"):
        sc.jit(np.less.accumulate)(np.arange(3.0))
