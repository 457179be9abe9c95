"""Searches by halves: several elements side by side, the same places as NumPy's one by one."""

import numpy as np
import pytest

import symc as sc
from symc.codegen.cpu.search import ABREAST, MANY

SIZES = (0, 1, ABREAST - 1, ABREAST, 3 * ABREAST + 5)


def _keys(rng, kind, edges, n):
    x = rng.choice(edges, n) if edges.size and kind == "present" else rng.uniform(-1, 11, n)
    if kind == "special":
        x[: n // 2] = rng.choice([np.nan, np.inf, -np.inf, 0.0], n // 2)
    return np.sort(x) if kind == "sorted" else x


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", ["random", "sorted", "present", "special"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_places(dtype, kind, side):
    if kind == "special" and dtype == "int64":
        kind = "random"
    a, v = sc.input("a", dtype, shape=("n",)), sc.input("v", dtype, shape=("m",))
    f = sc.compile(sc.searchsorted(a, v, side=side), [a, v])
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, MANY, MANY + 1, 500):
        edges = np.sort(rng.uniform(0, 10, n)).astype(dtype)
        if kind == "special":
            edges[-(n // 3):] = np.nan
        for m in SIZES:
            x = _keys(rng, kind, edges, m).astype(dtype)
            np.testing.assert_array_equal(f(edges, x), np.searchsorted(edges, x, side=side))


def test_searches_in_rows_of_their_own():
    a, v = sc.input("a", shape=("k", "n")), sc.input("v", shape=("k", "m"))
    f = sc.compile(sc.vmap(sc.searchsorted)(a, v), [a, v])
    rng = np.random.default_rng(0)
    edges, x = np.sort(rng.uniform(size=(3, 100)), axis=1), np.sort(rng.uniform(size=(3, 29)), axis=1)
    np.testing.assert_array_equal(f(edges, x), [np.searchsorted(e, r) for e, r in zip(edges, x)])


@pytest.mark.parametrize("make", [
    lambda a, v: sc.searchsorted(a, v),
    lambda a, v: sc.interp(v, a, sc.exp(a)),
    lambda a, v: sc.exp(a)[sc.minimum(sc.digitize(v, a), a.shape[0] - 1)],
    lambda a, v: sc.zeros(900).at[sc.searchsorted(a, v)].add(v),
])
def test_several_are_searched_for_at_a_time(make):
    """Each step of the loop by halves is one of as many searches, whatever is made of the places."""
    a, v = sc.input("a", shape=("n",)), sc.input("v", shape=("m",))
    f = sc.compile(make(a, v), [a, v])
    (source,) = [k.source for k in f.kernels if ">> 1" in k.source]
    halving = source[source.index(">> 1"):]
    assert halving[: halving.index("if w")].count(" else c") == ABREAST
    rng = np.random.default_rng(0)
    edges, x = np.sort(rng.uniform(size=100)), rng.uniform(size=83)
    np.testing.assert_allclose(f(edges, x), sc.compile(make(a, v), [a, v], mode="reference")(edges, x), rtol=1e-12)
