"""Medians, quantiles and other elements of sorted lines, found without sorting: bit for bit those of a stable sort."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc

LENGTHS = (1, 2, 3, 64, 511, 512, 513, 4000)


def lines(dtype: str, n: int) -> np.ndarray:
    """Lines of many kinds: random, equal, of two values, in order, turned, up and down, mostly nan, of zeros."""
    rng = np.random.default_rng(n)
    k = np.arange(n)
    rows = [rng.normal(size=n) * 1e4, np.full(n, 7), rng.integers(0, 2, n), k, -k, np.minimum(k, n - k),
            rng.integers(-9, 9, n), np.where(rng.random(n) < 0.01, k, 5)]
    x = np.array(rows).astype(dtype)
    if dtype.startswith("f"):
        odd = rng.choice([-0.0, 0.0, np.nan, np.inf, -np.inf, 1.0], (2, n))
        most = np.where(rng.random(n) < 0.02, 1.5, np.nan)
        x = np.concatenate([x, odd, [most, np.full(n, np.nan), np.where(k % 3, 0.0, -0.0)]]).astype(dtype)
    return x


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u4", "i2"])
def test_any_place_of_any_line(dtype: str) -> None:
    x = sc.input("x", dtype, ("m", "n"))
    places = [sc.input(f"p{k}", "int64", ()) for k in range(4)]
    rows = sc.compile([sc.sort(x, axis=1)[:, p] for p in places], [x, *places])
    columns = sc.compile([sc.sort(x, axis=0)[p] for p in places], [x, *places])
    assert " = order_statistics " in rows.dump() and "sort" not in rows.dump()
    for n in LENGTHS:
        a = lines(dtype, n)
        whole = np.sort(a, axis=1, kind="stable")
        for k in ([0, n - 1, n // 2, n // 3], [n // 2, n // 2, max(n // 2 - 1, 0), n - 1]):
            for found in (rows(a, *k), columns(np.ascontiguousarray(a.T), *k)):
                for got, p in zip(found, k, strict=True):
                    assert got.tobytes() == np.ascontiguousarray(whole[:, p]).tobytes()


@pytest.mark.long
def test_quantiles_and_deviations_of_numpy() -> None:
    x = sc.input("x", "float64", ("m", "n"))
    middle = sc.median(x, axis=1)
    f = sc.compile([middle, sc.median(abs(x - middle[:, None]), axis=1), sc.quantile(x, 0.3, axis=0),
                    sc.percentile(x, [5, 50, 95])], [x])
    assert "sort" not in f.dump()
    for shape in ((3, 7), (2, 900), (40, 41)):
        a = np.random.default_rng(1).normal(size=shape)
        middles = np.median(a, axis=1)
        for got, want in zip(f(a), [middles, np.median(abs(a - middles[:, None]), axis=1),
                                    np.quantile(a, 0.3, axis=0), np.percentile(a, [5, 50, 95])], strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-15)


def test_derivatives_and_loops() -> None:
    x = sc.input("x", "float64", (700,))
    f = sc.compile([sc.median(x), sc.grad(sc.quantile(x, 0.25) ** 2, x)], [x])
    a = np.random.default_rng(2).normal(size=700)
    value, slope = f(a)
    assert value == np.median(a)
    want = np.zeros(700)
    order, q = np.argsort(a), np.quantile(a, 0.25)
    want[order[174]], want[order[175]] = 2 * q * 0.25, 2 * q * 0.75
    np.testing.assert_allclose(slope, want, rtol=1e-12)
    _, ys = sc.scan(lambda c, _: (c * 0.5 + 1, sc.median(x * c)), init=sc.asarray(1.0), length=3)
    np.testing.assert_allclose(sc.compile(ys, [x])(a), [np.median(a * c) for c in (1.0, 1.5, 1.75)], rtol=1e-14)


def test_places_that_are_none() -> None:
    x, p = sc.input("x", "float64", ("n",)), sc.input("p", "int64", ())
    f = sc.compile(sc.sort(x)[p], [x, p])
    a = np.arange(900.0)[::-1]
    assert f(a, -1) == 899 and f(a, -900) == 0
    for k in (900, -901):
        with pytest.raises(sc.errors.SymcError, match="index"):
            f(a, k)
    with pytest.raises(sc.errors.SymcError):
        f(a[:0], 0)


def test_every_user_reads_a_place_or_the_line_is_sorted() -> None:
    x = sc.input("x", "float64", ("n",))
    s = sc.sort(x)
    texts = [sc.compile(e).dump() for e in ([s[x.shape[0] // 2], sc.sum(s[1:] * s[:-1])],
                                            [s[x.shape[0] * k // 10] for k in range(1, 10)])]
    assert all(" = order_statistics " not in t and "sort %x" in t for t in texts)
