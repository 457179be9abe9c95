"""Places of extremes in rows: the first of equals, in any part of a row, and none beyond it."""

import numpy as np
import pytest

import symc as sc
from symc.codegen.cpu.first_place import PART

LENGTHS = (1, 2, 7, 8, 9, 17, PART - 1, PART, PART + 1, 2 * PART, 2 * PART + 9, 5 * PART + 1)


def rows(n: int, dtype: str) -> np.ndarray:
    """Rows whose extreme is first, last, everywhere, beside a boundary, or a nan."""
    x = np.zeros((9, n), dtype)
    for k, place in enumerate((0, n - 1, n // 2, min(PART, n) - 1, PART % n)):
        x[k, place:] = 1 - k % 2 * (2 if x.dtype.kind in 'if' else 1)
    x[5, n // 3], x[5, n - 1] = 3, 3
    if dtype.startswith("float"):
        x[6, n // 2 :] = np.nan
        x[7] = -np.inf
        x[8] = np.where(np.arange(n) % 2, 0.0, -0.0)
    return x


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "int8", "uint16", "bool"])
def test_rows_of_every_length(dtype: str, known: bool) -> None:
    f = None
    for n in LENGTHS if not known else (PART, PART + 1, 5 * PART + 1):
        if f is None or known:
            x = sc.input("x", dtype, ("m", n if known else "n"))
            f = sc.compile([sc.argmax(x, axis=1), sc.argmin(x, axis=1)], [x])
        data = rows(n, dtype)
        for given in (data, np.repeat(data, 2, axis=1)[:, ::2], data[::-1]):
            most, least = f(given)
            np.testing.assert_array_equal(most, given.argmax(axis=1))
            np.testing.assert_array_equal(least, given.argmin(axis=1))
        assert f(data[:0])[0].shape == (0,)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "uint8", "bool"])
def test_whole_arrays(dtype: str) -> None:
    x = sc.input("x", dtype, ("n",))
    f = sc.compile([sc.argmax(x), sc.argmin(x)], [x])
    for n in LENGTHS:
        for row in rows(n, dtype):
            assert [int(k) for k in f(row)] == [row.argmax(), row.argmin()], (n, row)


def test_elements_are_computed_once() -> None:
    """What is compared is a loop over all, and one over a part; the extreme beside it shares the kernel."""
    x = sc.input("x", "float32", ("m", "n"))
    f = sc.compile(sc.argmax(sc.exp(sc.sin(x)), axis=1), [x])
    assert f.source.count("exp(") == f.source.count("sin(") == 2 and "min(256" in f.source
    both = sc.compile([sc.argmax(x, axis=1), sc.max(x, axis=1)], [x])
    assert len(both.kernels) == 1 and both.source.count("a0[") == 3
    y = sc.exp(sc.sin(x))
    kept = sc.compile([y, sc.argmax(y, axis=1), sc.argmin(y, axis=1)], [x])
    data = np.random.default_rng(0).normal(size=(3, 700)).astype("float32")
    whole, most, least = kept(data)
    np.testing.assert_array_equal(whole, sc.compile(y, [x])(data))
    np.testing.assert_array_equal([most, least], [whole.argmax(axis=1), whole.argmin(axis=1)])
    assert len(kept.kernels) == 1
    few = sc.input("few", "float32", ("m", 16))
    assert "256" not in sc.compile(sc.argmax(few, axis=1), [few]).source  # one loop


def test_first_of_many_conditions() -> None:
    """The least index where something holds, as users write it; nothing where it holds nowhere."""
    x = sc.input("x", "float32", ("m", "n"))
    y = sc.input("y", "float32", ("m",))
    f = sc.compile(sc.argmax((x > y[:, None]) & (x < 2 * y[:, None]), axis=1), [x, y])
    data = np.random.default_rng(0).normal(size=(40, 600)).astype("float32")
    limit = np.linspace(0.5, 3.4, 40, dtype="float32")
    want = ((data > limit[:, None]) & (data < 2 * limit[:, None])).argmax(axis=1)
    np.testing.assert_array_equal(f(data, limit), want)
