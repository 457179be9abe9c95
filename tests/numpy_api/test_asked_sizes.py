"""Functions that need to know a size, of arguments of a traced function; and ``accumulate`` of any ufunc."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import symc as sc
from symc.errors import SymbolicValueError
from tests.covering import pairwise

V, W = np.arange(1.0, 6), np.array([2.0, 1, 3])
KNOWING = {
    "cross": (lambda x, y: np.cross(x, y), np.ones((4, 3)), np.arange(12.0).reshape(4, 3)),
    "delete": (lambda x: np.delete(x, [1, 2]), V),
    "insert": (lambda x: np.insert(x, [1, 2], [7.0, 8.0]), V),
    "polyadd": (lambda x, y: np.polyadd(x, y), V, W),
    "polydiv": (lambda x, y: np.polydiv(x, y)[0], V, W),
    "poly": (lambda x: np.poly(x), W),
    "tril_indices_from": (lambda x: np.tril_indices_from(x)[1], np.ones((3, 4))),
    "histogramdd": (lambda x: np.histogramdd(x, bins=[np.arange(4.0)] * 2)[0], np.arange(12.0).reshape(6, 2) / 4),
}


@pytest.mark.parametrize("name", KNOWING)
def test_a_size_that_must_be_known_is_asked_for(name):
    function, *arrays = KNOWING[name]
    f = sc.jit(function)
    np.testing.assert_allclose(f(*arrays), function(*arrays))
    assert f.questions and all("the number" in q for q in f.questions)


@pytest.mark.parametrize(("dtype", "mode", "of"), pairwise(itertools.product(
    ["f8", "f4", "c16", "i8", "i1", "u2", "?"], ["full", "same", "valid"], [np.convolve, np.correlate])))
def test_convolutions_of_any_sizes_are_one_variant(dtype, mode, of):
    rng = np.random.default_rng(0)
    f = sc.jit(lambda x, y: of(x, y, mode))
    for n, k in ((5, 3), (3, 5), (1, 1), (70, 40), (40, 70), (1, 9)):
        x, y = ((rng.normal(size=(m, 2)) @ ([3, 3j] if dtype == "c16" else [3, 0])).astype(dtype) for m in (n, k))
        got, want = f(x, y), of(x, y, mode)
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-4 if dtype == "f4" else 1e-11, atol=1e-5)
    assert not f.questions


def test_products_of_polynomials_of_any_degrees_have_derivatives():
    f = sc.jit(lambda p, q, x: np.polyval(np.polymul(p, q), x))
    slope = sc.jit(lambda p, q, x: sc.grad(np.polyval(np.polymul(p, q), x).sum(), [p, q]))
    for n, k in ((3, 4), (7, 2), (1, 12)):
        p, q, x = np.arange(1.0, n + 1), np.arange(2.0, k + 2), np.array([0.5, -1.5])
        np.testing.assert_allclose(f(p, q, x), np.polyval(np.polymul(p, q), x))
        of_p, of_q = slope(p, q, x)
        np.testing.assert_allclose(of_p, np.vander(x, n).T @ np.polyval(q, x))
        np.testing.assert_allclose(of_q, np.vander(x, k).T @ np.polyval(p, x))


def test_what_is_not_finite_stays_where_it_is_and_no_elements_are_refused():
    x, y = np.array([1.0, np.inf, 2, 3, 4, 5, 6, 7, 8, 9, 10]), np.arange(1.0, 11)
    f = sc.jit(np.convolve)
    np.testing.assert_array_equal(f(x, y), np.convolve(x, y))
    np.testing.assert_array_equal(f(y, x), np.convolve(y, x))
    with pytest.raises(sc.errors.ShapeError, match="at least 1"):
        f(np.zeros(0), y)


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
