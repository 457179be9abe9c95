"""Extremes, their places and searches of complex numbers, of which parts are infinite or nan, against NumPy."""

import warnings

import numpy as np
import pytest

import symc as sc

ENDS = [0.0, -1.0, 2.0, np.inf, -np.inf]


def _numbers(rng, shape, parts):
    out = np.empty(shape, complex)
    out.real, out.imag = rng.choice(parts, shape), rng.choice(parts, shape)
    return out


def _same(got, want, what):
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape), what
    missing = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got), missing, err_msg=what)
    np.testing.assert_array_equal(got[~missing], want[~missing], err_msg=what)


@pytest.mark.parametrize("parts", [ENDS, [*ENDS, np.nan]], ids=["infinite", "nan"])
def test_extremes_and_their_places(parts):
    names = ["max", "min", "argmax", "argmin", "nanmax", "nanmin", "nanargmax", "nanargmin"]
    x = sc.input("x", "complex128", ("n", "m"))
    wanted = [(name, axis) for name in names for axis in (None, 0, 1)]
    f = sc.compile([getattr(sc, name)(x, axis=axis) for name, axis in wanted], [x], mode="reference")
    rng = np.random.default_rng(0)
    for _ in range(40):
        z = _numbers(rng, (rng.integers(1, 5), rng.integers(1, 5)), parts)
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            for (name, axis), got in zip(wanted, f(z), strict=True):
                if name.startswith("nanarg") and np.isnan(z).all(axis).any():
                    continue  # NumPy raises
                _same(got, getattr(np, name)(z, axis=axis), f"{name} {axis} {z}")


def test_searches():
    x, y = (sc.input(name, "complex128", (name,)) for name in "xy")
    f = sc.compile([sc.searchsorted(x, y, side) for side in ("left", "right")], [x, y])
    rng = np.random.default_rng(0)
    for _ in range(40):
        a = np.sort(_numbers(rng, rng.integers(0, 9), [*ENDS, np.nan]))
        v = _numbers(rng, 9, [*ENDS, np.nan])
        for side, got in zip(("left", "right"), f(a, v), strict=True):
            np.testing.assert_array_equal(got, np.searchsorted(a, v, side), err_msg=f"{a} {v}")


def test_sums_of_infinities_are_no_products():
    x = sc.input("x", "complex128", ("n",))
    z = np.array([complex(np.inf, 0), complex(1, -np.inf), 1 + 2j])
    got = sc.compile([x + x, x + x + x], [x])(z)
    for found, want in zip(got, (z + z, z + z + z), strict=True):
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "complex128"])
def test_sums_and_products_in_bool(dtype):
    x = sc.input("x", dtype, ("n", "m"))
    z = np.array([[0, 1, 1], [0, 0, 0], [1, 1, 1]], dtype)
    for given in ({}, {"axis": 1}, {"axis": 0, "keepdims": True}, {"axis": 1, "where": z.T != 0}, {"initial": True},
                  {"initial": False}):
        made = [sc.sum(x, dtype=bool, **given), sc.prod(x, dtype=bool, **given)]
        for got, fn in zip(sc.compile(made, [x], mode="reference")(z), (np.sum, np.prod), strict=True):
            want = fn(z, dtype=bool, **given)
            assert got.dtype == bool
            np.testing.assert_array_equal(got, want)


def test_places_among_complex_numbers_with_nans_infinities_and_zeros():
    """Both are sorted together: not all pairs are compared."""
    special = np.array([0, 1, -1, np.nan, np.inf, -np.inf, -0.0])
    x, y = sc.input("x", "complex128", ("n",)), sc.input("y", "complex128", ("m", "k"))
    f = sc.compile([sc.searchsorted(x, y), sc.searchsorted(x, y, "right"), sc.isin(y, x)], [x, y])
    rng = np.random.default_rng(0)
    for n, m in ((0, 3), (3, 0), (1, 1), (40, 30), (3000, 1500)):
        a, b = (rng.choice(special, (k, 2)).view("c16") for k in (n, 2 * m))
        a, b = np.sort(a[:, 0]), b.reshape(m, 2)
        want = np.searchsorted(a, b), np.searchsorted(a, b, "right"), np.isin(b, a)
        for got, expected in zip(f(a, b), want, strict=True):
            np.testing.assert_array_equal(got, expected)
    assert f.memory(n=9000, m=9000, k=1) < 500 * 9000  # bytes; a truth for each pair would be 9000 for each
