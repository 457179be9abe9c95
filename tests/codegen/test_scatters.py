"""Scatters whose places are computed: blocks of them by a loop of its own, tables of what is small and exact; by both
compilers and in C, at sizes around a block."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.codegen.cpu.scatters import BLOCK, FEW, SMALL, TABLES

SIZES = (0, 1, 3, FEW, BLOCK - 1, BLOCK, BLOCK + TABLES - 1, 3 * BLOCK + 5)


def arrays(f) -> int:
    """The number of arrays of a kernel's own."""
    return f.source.count("= memory(")


def loops(f) -> int:
    return f.source.count("for ")


def bins(x, n: int):
    return sc.clip((x * 10).astype("int64"), 0, n - 1)


def numbers(n: int) -> np.ndarray:
    return np.random.default_rng(n).normal(size=n) * 3


def expected(x: np.ndarray, n: int) -> np.ndarray:
    return np.clip((x * 10).astype("int64"), 0, n - 1)


@pytest.mark.parametrize("backend", ["llvm", "numba"])
@pytest.mark.parametrize("count", [SMALL, SMALL + 1])
def test_counts(backend, count):
    x = sc.input("x", "float64", ("n",))
    f = sc.compile(sc.zeros(count, "int32").at[bins(x, count)].add(1), [x], backend=backend)
    assert arrays(f) == (TABLES if count == SMALL else 1)  # places, and all tables but the result
    for n in SIZES:
        a = numbers(n)
        np.testing.assert_array_equal(f(a), np.bincount(expected(a, count), minlength=count))


KINDS = ["add", "multiply", "max", "min", "set"]
CASES = [(kind, dtype) for dtype in ("int8", "uint64", "float32", "float64", "float16") for kind in KINDS]
CASES += [("add", "complex128"), ("set", "complex128"), ("add", "bool"), ("set", "bool")]


@pytest.mark.parametrize("kind, dtype", CASES)
def test_every_kind_in_the_order_of_elements(kind, dtype):
    """What is put is computed, at a cost, and several elements have the same place: the last stays, sums are rounded as
    one by one."""
    x = sc.input("x", "float64", ("n",))
    start = np.ones(20, dtype)

    def value(xp, x):
        return (xp.exp(x) * 2 + x).astype(dtype)

    f = sc.compile(getattr(sc.asarray(start).at[bins(x, 20)], kind)(value(sc, x)), [x])
    put = {"add": np.add, "multiply": np.multiply, "max": np.maximum, "min": np.minimum}
    for n in (0, 7, FEW + 1, 3 * BLOCK + 5):
        a = np.random.default_rng(n).normal(size=n) / 4
        y = sc.compile(value(sc, x), [x])(a)
        want = start.copy()
        if kind == "set":
            want[expected(a, 20)] = y
        else:
            with np.errstate(over="ignore"):
                put[kind].at(want, expected(a, 20), y)
        np.testing.assert_array_equal(f(a), want)


def test_what_is_computed_is_one_loop_and_what_is_put_another():
    x, w = sc.input("x", "float64", ("n",)), sc.input("w", "float64", ("n",))
    big = sc.zeros(1000)
    one = sc.compile(big.at[(x * 3).astype("int64")].add(1.0), [x])
    assert (arrays(one), loops(one)) == (1, 4)  # zeros, blocks, places, sums
    both = sc.compile(big.at[(x * 3).astype("int64")].add(sc.exp(w)), [x, w])
    assert (arrays(both), loops(both)) == (2, 4)
    assert both.source.count("exp(") == 1


def test_plain_places_and_cheap_values_are_put_as_they_are_read():
    i, x = sc.input("i", "int64", ("n",)), sc.input("x", "float64", ("n",))
    big, short = sc.zeros(1000), sc.input("x", "float64", (FEW,))
    for f in (sc.compile(sc.bincount(i, minlength=1000), [i]), sc.compile(big.at[i].add(x * 2 + 1), [i, x]),
              sc.compile(big.at[sc.arange(1, 900)].add(sc.exp(x)), [x]),
              sc.compile(big.at[(short * 3).astype("int64")].add(1.0), [short])):
        assert arrays(f) == 0


def test_places_out_of_bounds_are_told():
    x = sc.input("x", "float64", ("n",))
    f = sc.compile(sc.zeros(100, "int64").at[(x * 3).astype("int64")].add(1), [x])
    assert arrays(f) == TABLES
    with pytest.raises(IndexError):
        f(np.linspace(0, 90, 1000))


def test_rows_of_images():
    """A loop in another has blocks, and no tables: those are for all of a result."""
    x = sc.input("x", "float64", ("m", "n"))
    m = x.shape[0]
    f = sc.compile(sc.zeros((m, 30), "int64").at[sc.arange(m)[:, None], bins(x, 30)].add(1), [x])
    assert arrays(f) <= 1
    for shape in ((0, 5), (3, 0), (2, FEW), (5, BLOCK + 3)):
        a = np.random.default_rng(0).normal(size=shape)
        want = np.zeros((shape[0], 30), int)
        np.add.at(want, (np.arange(shape[0])[:, None], expected(a, 30)), 1)
        np.testing.assert_array_equal(f(a), want)


def test_what_is_updated_may_be_read():
    x = sc.input("x", "float64", ("n",))
    f = sc.compile(x.at[bins(x, 3)].add(x * 2), [x])
    a = numbers(700)
    want = a.copy()
    np.add.at(want, expected(a, 3), a * 2)
    np.testing.assert_array_equal(f(a.copy()), want)
