"""Quotients by whole numbers are made of products where that is sooner done, and are those of divisions, bit for
bit, if they are no denormal numbers."""

import ast

import numpy as np
import pytest

import symc as sc
from symc.runtime.compilers.llvm import fuses
from symc.runtime.compilers.quotients import MOST, is_whole, pays

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0]


def _numbers(dtype, divisor):
    """All kinds: near the ends of the range, denormal, multiples of the divisor and their neighbours, random."""
    rng, info = np.random.default_rng(0), np.finfo(dtype)
    whole = (rng.integers(-(2**20), 2**20, 4000) * divisor).astype(dtype)
    ends = np.array([info.max, info.tiny, info.smallest_subnormal, -info.max, info.tiny * 3, info.eps], dtype)
    random = np.ldexp(rng.uniform(1, 2, 40_000), rng.integers(info.minexp - 20, info.maxexp, 40_000)).astype(dtype)
    halves = (whole / 2 + rng.integers(0, 2, whole.size)).astype(dtype)
    return np.concatenate([np.array(SPECIAL, dtype), ends, whole, np.nextafter(whole, np.inf, dtype=dtype), halves,
                           np.ldexp(whole, info.minexp - 10).astype(dtype), random, -random])


@pytest.mark.parametrize("dtype, divisors", [("float32", (3, 7, 10, 255, -9, 1001, 65535)),
                                             ("float64", (3, 7, 10, 255, -9, 86400, 2**40 - 1))])
def test_bit_for_bit(dtype, divisors):
    x = sc.input("x", dtype, shape=("n",))
    with np.errstate(all="ignore"):
        for d in divisors:
            array, number = _numbers(dtype, d), np.dtype(dtype).type(d)
            f = sc.compile(x / number, [x])
            got, want = f(array), array / number
            far = np.abs(want) < np.finfo(dtype).tiny
            assert np.array_equal(got[~far], want[~far], equal_nan=True), d
            assert np.array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0])), d
            assert np.all(np.abs(got[far] - want[far]) <= np.finfo(dtype).smallest_subnormal), d


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("source", ["uint8", "int16", "int32", "uint32", "int64", "bool"])
def test_integers_bit_for_bit(source, dtype):
    """Two operations, and as exact: all short ones, and the ends and any of the others."""
    x = sc.input("x", source, shape=("n",))
    ends = (0, 1) if source == "bool" else (np.iinfo(source).min, np.iinfo(source).max)
    low, high = max(ends[0], -(2**62)), min(ends[1], 2**62)
    numbers = np.concatenate([np.arange(max(low, -300), min(high, 300) + 1), ends,
                              np.random.default_rng(0).integers(low, high, 20_000, endpoint=True)])
    array = numbers.astype(source)
    for d in (3, 7, 255, -9, 1001, 65535):
        number = np.dtype(dtype).type(d)
        got, want = sc.compile(x.astype(dtype) / number, [x])(array), array.astype(dtype) / number
        assert np.array_equal(got.view(f"u{got.itemsize}"), want.view(f"u{got.itemsize}")), d


@pytest.mark.parametrize("source", ["bool", "int8", "uint64", "float32", "float64"])
def test_divisors_that_are_no_whole_numbers(source):
    """Nor is an infinity or a nan."""
    x, array = sc.input("x", source, shape=("n",)), np.array([0, 1, 2, 100], source)
    divisors = [np.inf, -np.inf, np.nan, 2.5, 1e300, -0.0]
    with np.errstate(all="ignore"):
        for d, got in zip(divisors, sc.compile([x / d for d in divisors], [x])(array), strict=True):
            np.testing.assert_array_equal(got, array / d)


@pytest.mark.parametrize("text, yes", [
    ("x / 3.0", True), ("x / f32(255.0)", True), ("x / y", False), ("math.sqrt(x / y) / 7.0 + x / z", True),
    ("x / 3.0 + " + " + ".join(f"x * {k}.5" for k in range(20)), False), ("x + 3.0", False),
])
def test_where_it_pays(text, yes):
    assert pays(ast.parse(f"t = {text}\no[i] = t").body) is yes


def test_which_divisors():
    assert [d for d in (0.0, 1.0, 2.0, 3.0, -6.0, 0.1, 2.5, 1024.0, 2.0**50 + 1) if is_whole(d, "f64")] == [3.0, -6.0]
    assert not is_whole(None, "f64") and not is_whole(3.0, "f16") and not is_whole(float(MOST["f32"] + 1), "f32")
    assert fuses() in (True, False)
