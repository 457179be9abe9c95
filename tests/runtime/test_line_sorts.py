"""Sorted lines: floats of 16 bits are sorted as integers of the same order, long lines by counting; places by integers
that hold a number's leading bits and its place. Places and numbers are those of a stable sort, bit by bit: zeros of
both signs, and nans, in the order in which they were given."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.runtime.cpu import numpy_sorts
from symc.runtime.routines.line_sorts import LONG

R = np.random.default_rng(0)
ODD = np.array([0, 0x8000, 0x7E00, 0xFE01, 0x7C00, 0xFC00, 1, 0x8001, 0x3C00, 0xBC00], "u2")
LENGTHS = (0, 1, 2, 5, LONG - 1, LONG, LONG + 1, 3000)


def lines():
    """Of all bits, of few (zeros, nans, infinities, the least numbers), and of zeros alone."""
    for n in LENGTHS:
        for bits in (np.arange(65536), ODD, ODD[:2], ODD[:4]):
            yield R.choice(bits, n).astype("u2").view("f2")
    yield R.permutation(65536).astype("u2").view("f2")


@pytest.mark.parametrize("axis", [0, 1])
def test_halves_in_the_order_of_a_stable_sort(axis):
    x = sc.input("x", "float16", ("n", "m"))
    f = sc.compile([sc.sort(x, axis=axis), sc.argsort(x, axis=axis)], [x])
    for line in lines():
        a = np.stack([line, line[::-1]], 1 - axis)
        found, places = f(a)
        np.testing.assert_array_equal(found.view("u2"), np.sort(a, axis=axis, kind="stable").view("u2"))
        np.testing.assert_array_equal(places, np.argsort(a, axis=axis, kind="stable"))


@pytest.mark.parametrize("dtype", ["int16", "uint16"])
def test_short_integers(dtype):
    x = sc.input("x", dtype, ("n",))
    f = sc.compile(sc.sort(x), [x])
    for n in LENGTHS:
        a = R.integers(0, 65536, n).astype("u2").view(dtype)
        np.testing.assert_array_equal(f(a), np.sort(a))


@pytest.mark.skipif(not numpy_sorts.known(), reason="sorts are NumPy's functions")
def test_long_lines_of_few_bits_are_counted():
    dtypes = ("i8", "i16", "u16", "i32", "f64")
    entries = {t: {numpy_sorts.entry(f"{what} {t}") for what in ("sort", "long")} for t in dtypes}
    assert [t for t, found in entries.items() if len(found) > 1] == ["i8", "i16", "u16"]


def whole_numbers(d: np.dtype, n: int):
    """All, few, the extremes (whose distance is no i64), and one far from all others, which differ in lost bits."""
    i = np.iinfo(d)
    yield R.integers(i.min, i.max, n, d, endpoint=True)
    yield R.integers(0, 4, n).astype(d)
    yield R.choice(np.array([i.min, i.max, 0, 1, i.min + 1, i.max - 1], d), n)
    far = R.integers(0, 100, n).astype(d)
    far[n // 2 :][:1] = i.max
    yield far


def floats(d: np.dtype, n: int):
    """All bits, numbers that are whole, special ones, and such that differ in their last digits alone, also beside one
    far from them: so many ties that places are sorted as before."""
    yield R.integers(0, 256, n * d.itemsize, "u1").view(d)
    yield R.integers(0, 4, n).astype(d)
    yield R.choice(np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1, np.finfo(d).smallest_subnormal], d), n)
    close = (1 + R.integers(0, n + 1, n) * np.finfo(d).eps).astype(d)
    yield close
    far = close.copy()
    far[n // 2 :][:1] = -np.finfo(d).max
    yield far


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u8", "i4", "u4", "i2", "u1", "?"])
def test_places_in_the_order_of_a_stable_sort(dtype):
    d = np.dtype(dtype)
    x = sc.input("x", d.name, ("n", "m", "k"))
    f = sc.compile([sc.argsort(x, axis=1), sc.sort(x, axis=1)], [x])
    for n in (0, 1, 2, 17, 700, 5000):
        for line in (floats if d.kind == "f" else whole_numbers)(d if d.kind != "b" else np.dtype("u1"), n):
            line = line > 1 if d.kind == "b" else line
            for a in (line.reshape(1, n, 1), np.stack([line, line[::-1]], 1)[None]):
                places, found = f(a)
                np.testing.assert_array_equal(places, np.argsort(a, axis=1, kind="stable"))
                want = np.sort(a, axis=1, kind="stable")
                np.testing.assert_array_equal(found, want)
                assert d.kind != "f" or not (np.signbit(found) != np.signbit(want))[want == 0].any()
