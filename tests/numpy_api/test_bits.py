"""Bits in bytes, and places of what is true: how they are computed. What they are stands in test_numpy_keywords.py."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc


@pytest.mark.parametrize("dtype, kernels", [("bool", 1), ("uint8", 1), ("int64", 2)])
def test_eight_bits_are_packed_in_one_step(dtype, kernels):
    """No loop over eight; what has more bytes is compared first; zeros are put behind where they may be missing."""
    for n in (640, "n"):
        x = sc.input("x", dtype, (n,))
        f = sc.compile(sc.packbits(x), [x])
        assert len(f.kernels) <= kernels + (n == "n")
        assert "range(8)" not in f.source
        for size in (640, 0, 3, 1001)[: 1 if n == 640 else 4]:
            a = (np.random.default_rng(size).integers(-1, 2, size) * 3).astype(dtype)
            np.testing.assert_array_equal(f(a), np.packbits(a))


def test_places_of_what_is_true():
    """Eight at once where all fit, one by one at the end, none where none are."""
    r = np.random.default_rng(0)
    x = sc.input("x", "bool", ("n",))
    f = sc.compile(sc.nonzero(x)[0], [x])
    for n in (0, 1, 7, 8, 9, 31, 257):
        for part in (0.0, 0.02, 0.5, 1.0):
            a = r.random(n) < part
            np.testing.assert_array_equal(f(a), np.nonzero(a)[0])
    odd = np.array([0, 2, 0, 255, 1, 128, 0, 0] * 3, "uint8").view("bool")  # true in other bits
    np.testing.assert_array_equal(f(odd), np.nonzero(odd)[0])


def test_bits_are_unpacked_side_by_side():
    x = sc.input("x", "uint8", ("n",))
    f = sc.compile(sc.unpackbits(x), [x])
    assert len(f.kernels) == 1 and f.source.count("= a0[") == 1 and "range(8)" not in f.source
    a = np.arange(256, dtype="uint8")
    np.testing.assert_array_equal(f(a), np.unpackbits(a))


@pytest.mark.parametrize("side", ["left", "right"])
def test_bools_have_two_places(side):
    """They are searched for, whatever number of bools there is."""
    x, y = sc.input("x", "bool", ("n",)), sc.input("y", "bool", ("m", "k"))
    f = sc.compile(sc.searchsorted(x, y, side), [x, y])
    assert ["while" in k.source for k in f.kernels] == [True, False]
    many = np.random.default_rng(0).random((5, 40)) < 0.5
    for zeros, ones in ((0, 0), (0, 3), (3, 0), (70, 30), (1, 1)):
        line = np.repeat([False, True], [zeros, ones])
        for a in (many, many[:0]):
            np.testing.assert_array_equal(f(line, a), np.searchsorted(line, a, side))
